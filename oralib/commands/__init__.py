"""The commands of ``oralib``: each module adds its own to the parser and runs it."""
