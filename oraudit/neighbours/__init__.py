"""The neighbour test: how far what is released moves if one example is taken out."""
