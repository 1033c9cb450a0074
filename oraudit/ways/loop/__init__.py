"""The way into training loops of one's own, in NumPy, PyTorch or JAX: one call a step."""
