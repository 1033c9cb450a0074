"""The Sphinx extensions of the book, a file for each concern; each ends with its ``setup``."""
