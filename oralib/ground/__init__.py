"""The ground of all other modules: checks of arguments, kernels, rounding, random streams."""
