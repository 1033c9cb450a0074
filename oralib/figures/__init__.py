"""Pictures of the experiments and tables, in one house style.

Each function returns a picture that a notebook shows by itself.
"""

from oralib.figures.exact import gap_chain, law, mass, outputs
from oralib.figures.experiments import (
    adaptive,
    by_epsilon,
    ceiling,
    efficacy,
    guess_audit,
    score_audit,
    tradeoff,
)
from oralib.figures.general import heatmap, lines, maps, quantiles, ranking, stacked
from oralib.figures.style import BLUE, CYCLE, GREEN, GREY, ORANGE, PINK, RED, SKY, STYLE, Picture
from oralib.figures.sweeps import swept

__all__ = ["BLUE", "CYCLE", "GREEN", "GREY", "ORANGE", "PINK", "RED", "SKY", "STYLE", "Picture"]
__all__ += ["adaptive", "by_epsilon", "ceiling", "efficacy", "gap_chain", "guess_audit", "heatmap"]
__all__ += ["law", "lines", "maps", "mass", "outputs", "quantiles", "ranking", "score_audit"]
__all__ += ["stacked", "swept", "tradeoff"]
