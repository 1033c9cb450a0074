"""Pictures of the experiments and tables, in one house style.

Each function returns a picture that a notebook shows by itself.
"""

from orabook.figures.exact import gap_chain, law, mass, outputs
from orabook.figures.experiments import (
    adaptive,
    by_epsilon,
    ceiling,
    efficacy,
    tradeoff,
)
from orabook.figures.general import heatmap, lines, maps, quantiles, ranking, stacked, tiles
from orabook.figures.style import BLUE, CYCLE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, Picture
from orabook.figures.sweeps import swept

__all__ = ["BLUE", "CYCLE", "GREEN", "GREY", "ORANGE", "PINK", "RED", "SKY", "STYLE", "Picture"]
__all__ += ["adaptive", "by_epsilon", "ceiling", "efficacy", "gap_chain", "heatmap"]
__all__ += ["law", "lines", "maps", "mass", "outputs", "quantiles", "ranking"]
__all__ += ["stacked", "swept", "tiles", "tradeoff"]
