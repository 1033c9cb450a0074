"""Our Sphinx extensions."""
