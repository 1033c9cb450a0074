"""The neighbour test: how far what is released moves if one example is taken out."""

from oraudit.neighbour_test.compare import NeighbourResult
from oraudit.neighbour_test.pure import neighbours_of

__all__ = ["NeighbourResult", "neighbours_of"]
