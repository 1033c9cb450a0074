"""What canaries saw of the training that they scored: a comment in the first line of their file."""

import json
from dataclasses import asdict, dataclass

_MARK = "# oralib canaries: "


@dataclass(frozen=True)
class Seen:
    """What :class:`oralib.Canaries` saw of a training run, beside their scores.

    Attributes
    ----------
    noise : float
        The noise that the gradients show, as a share of the stated one.
    sigma : float
        The stated noise multiplier.
    steps, planned : int
        How many steps were observed, and how many were planned.

    Examples
    --------
    >>> Seen(noise=0.5, sigma=1.5, steps=30, planned=50).as_stated
    False
    """

    noise: float
    sigma: float
    steps: int
    planned: int

    @property
    def as_stated(self) -> bool:
        """Whether the gradients show the stated noise."""
        return self.noise == 1

    def comment(self) -> str:
        """The first line of a score file."""
        return f"{_MARK}{json.dumps(asdict(self))}\n"

    @classmethod
    def of_comment(cls, line: str) -> "Seen | None":
        """What such a line says; None if it is another line."""
        if not line.startswith(_MARK):
            return None
        try:
            return cls(**json.loads(line.removeprefix(_MARK)))
        except (ValueError, TypeError):
            raise ValueError(", line 1: the comment of the canaries is damaged") from None
