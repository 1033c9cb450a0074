"""Where an audit stands in a training, a class for each way in."""
