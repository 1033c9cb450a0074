"""Pictures of the experiments and tables, in one house style.

Each function returns a picture that a notebook shows by itself.
"""

from orabook.figures.exact import gap_chain, mass, outputs
from orabook.figures.general import (
    curves_of,
    dots,
    heatmap,
    lines,
    ranking,
    stacked,
    swept,
    tiles,
)
from orabook.figures.style import BLUE, CYCLE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, Picture

__all__ = ["BLUE", "CYCLE", "GREEN", "GREY", "ORANGE", "PINK", "RED", "SKY", "STYLE", "Picture"]
__all__ += ["curves_of", "dots", "gap_chain", "heatmap", "lines", "mass", "outputs"]
__all__ += ["ranking", "stacked", "swept", "tiles"]
