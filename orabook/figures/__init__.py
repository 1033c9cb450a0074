"""Pictures of the experiments and tables, in one house style.

Each function returns a picture that a notebook shows by itself.
"""

from orabook.figures.curves import curves_of, lines, stacked
from orabook.figures.exact import gap_chain, mass, outputs
from orabook.figures.maps import heatmap, tiles
from orabook.figures.rows import dots, ranking
from orabook.figures.style import BLUE, CYCLE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, Picture
from orabook.figures.sweeps import swept

__all__ = [
    "BLUE",
    "CYCLE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "RED",
    "SKY",
    "STYLE",
    "Picture",
    "curves_of",
    "dots",
    "gap_chain",
    "heatmap",
    "lines",
    "mass",
    "outputs",
    "ranking",
    "stacked",
    "swept",
    "tiles",
]
