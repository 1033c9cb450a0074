"""What canaries saw of the training that they scored: a comment in the first line of their file."""

import json
from dataclasses import asdict, dataclass

from oralib.ground import arguments
from oralib.ground.types import WAYS, Way

_MARK = "# oralib canaries: "

#: A check fails beyond this many standard deviations: 1 in 1,000 for a normal number. There are at
#: most four checks of a training, none exactly normal: less than 1% of honest ones are accused.
LIMIT = 3.3

#: The parts of a training, and the ways in by which canaries can see that one is wrong.
SEES: dict[str, tuple[Way, ...]] = {
    "noise": WAYS,
    "steps": WAYS,
    "accountant": WAYS,
    "sampling": ("examples",),
    "clipping": ("examples",),
}


@dataclass(frozen=True)
class Check:
    """One check of a training run: a number as a share of what was stated, and how far off it is.

    ``name`` is ``"gradient"``, ``"noise"``, ``"steps"`` or, compared with a plan,
    ``"guesses"``; ``share`` is what was seen, ``error`` its standard error, and ``z`` nearly
    standard normal if all is as stated.

    Examples
    --------
    >>> Check("noise", 0.9, 0.002, z=-53.0).fits
    False
    """

    name: str
    share: float
    error: float
    z: float

    @property
    def fits(self) -> bool:
        """Whether an honest training run could look like this."""
        return abs(self.z) <= LIMIT

    def __str__(self) -> str:
        share = f"{self.share:.3g} ± {self.error:.1g}"
        return {
            "gradient": f"canaries add {share} times what they should",
            "noise": f"its noise is {share} times the stated noise",
            "steps": f"the correlation of neighbouring steps is {share}",
            "guesses": f"there are {share} times as many right guesses as the plan expects",
        }[self.name] + f" (z = {self.z:.1f})"


@dataclass(frozen=True)
class Seen:
    """What :class:`oralib.Canaries` saw of a training run, besides their scores.

    Attributes
    ----------
    way, software : str
        How the canaries entered the training, ``"sum"`` or ``"examples"``; and its software.
    sigma, sample_rate : float
        The noise multiplier and the sample rate, as the training states them.
    steps, planned : int
        How many steps there were, and how many were planned.
    checks, doubts : tuple of Check, tuple of str
        How gradients, if 100 or more, compare with what was stated; other reasons for doubt.

    Examples
    --------
    >>> Seen("sum", 1.5, 0.1, 30, 50, (Check("noise", 0.5, 0.01, -40.0),)).as_stated
    False
    """

    way: Way
    sigma: float
    sample_rate: float
    steps: int
    planned: int
    checks: tuple[Check, ...] = ()
    software: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the training looks unlike the stated one; empty if it does not."""
        failed = {check.name: check for check in self.checks if not check.fits}
        if "gradient" in failed:  # then noise and sampling cannot be told apart
            failed.pop("noise", None)
        reasons = [str(check) for check in failed.values()]
        if self.steps > self.planned:
            reasons.append(f"it made {self.steps:,} steps, and the claim is for {self.planned:,}")
        return (*reasons, *self.doubts)

    @property
    def as_stated(self) -> bool:
        """Whether the training looks like the stated one."""
        return not self.reasons

    def comment(self) -> str:
        """The first line of a score file."""
        return f"{_MARK}{json.dumps(asdict(self))}\n"

    @classmethod
    def of_comment(cls, line: str) -> "Seen | None":
        """What such a line says; None for any other line."""
        if not line.startswith(_MARK):
            return None
        try:
            fields = json.loads(line.removeprefix(_MARK))
            checks = tuple(Check(**check) for check in fields.pop("checks"))
            seen = cls(**fields | {"checks": checks, "doubts": tuple(fields["doubts"])})
            arguments.one_of("way", seen.way, WAYS)
            arguments.integers("steps", [seen.steps, seen.planned])
            numbers = [x for check in checks for x in (check.share, check.error, check.z)]
            arguments.reals("numbers", [seen.sigma, seen.sample_rate, *numbers])
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(", line 1: the comment of the canaries is damaged") from None
        return seen
