"""The neighbour test: how far what is released moves if one example is taken out."""

from oraudit.neighbours.compare import NeighbourResult
from oraudit.neighbours.pure import neighbours_of

__all__ = ["NeighbourResult", "neighbours_of"]
