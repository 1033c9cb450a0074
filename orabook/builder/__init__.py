"""The book from its notebooks: executed, built, printed, and with the tables they read."""
