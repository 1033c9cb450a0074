"""The helpers that every other module stands on: arguments, kernels, rounding, random streams."""
