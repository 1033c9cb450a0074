"""The helpers that every room stands on: arguments, kernels, rounding, random streams, text."""
