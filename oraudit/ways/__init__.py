"""The ways into a training, a folder and a class each, which hand each step to a record."""
