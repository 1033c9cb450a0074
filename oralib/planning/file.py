"""What plans share: files under a digest, so that a change is seen, their audits, and tables."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any, Self, cast

from numpy.typing import ArrayLike

from oralib.ground import arguments
from oralib.planning.designs import Claim
from oralib.scores import ScoreAudit, audit_scores

#: The format of plan.json.
FORMAT = 3

#: The end of every plan in words.
AFTERWARDS = """\
Save the plan (--out plan.json) before the training. After the training, run:

oralib audit scores.csv --plan plan.json --out audit"""


class Saved:
    """What every kind of plan, a dataclass, does with its digest, its file and its audit."""

    claim: Claim
    guesses: int

    @property
    def digest(self) -> str:
        """Twelve digits that change with whatever the plan fixes or forecasts."""
        return sha256(json.dumps(asdict(cast(Any, self))).encode()).hexdigest()[:12]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan into a JSON file, for ``oralib audit --plan``."""
        fields = {"format": FORMAT, "kind": type(self).__name__, **asdict(cast(Any, self))}
        text = json.dumps({**fields, "digest": self.digest}, indent=1, allow_nan=False)
        target = arguments.path("path", path)
        partial = target.with_name(f"{target.name}.partial")  # a full disk harms no earlier plan
        partial.write_text(f"{text}\n", encoding="utf-8")
        partial.replace(target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The plan in a file that :meth:`save` wrote; a ValueError if somebody has changed it."""
        try:
            fields = json.loads(arguments.path("path", path).read_text(encoding="utf-8"))
            if not isinstance(fields, dict) or "format" not in fields:
                raise ValueError("it is not a plan")
            if (number := fields.pop("format")) != FORMAT:
                raise ValueError(f"its format is {number!r}, and this oralib reads {FORMAT}")
            digest, kind = fields.pop("digest"), fields.pop("kind")
            fields["claim"] = Claim(**fields["claim"])
            plan = {each.__name__: each for each in Saved.__subclasses__()}[kind]._of(fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"path must be a file from oralib plan, got {path}: {error}") from None
        if plan.digest != digest:
            raise ValueError(f"path must be a plan as it was saved, got {path}, which was changed")
        if not isinstance(plan, cls):
            raise ValueError(f"path must be a file from {cls.__name__}.save, got {path}, a {kind}")
        return plan

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)

    def _audit(self, scores: ArrayLike, included: ArrayLike, **how: Any) -> ScoreAudit:
        fixed: dict[str, Any] = {"claim": self.claim.epsilon, "guesses": self.guesses}
        fixed |= {"coins": "independent", **self.claim.test, **how}
        audit = audit_scores(scores, included, **fixed)
        note = "the claim, the number of guesses and which scores to guess were fixed in a plan, "
        note += f"digest {self.digest}; anyone who had it before the training can check that"
        return replace(audit, notes=(note, *audit.notes))


#: The plan of any kind in a file.
load_plan: Callable[[str | os.PathLike[str]], Any] = Saved.load


def table(widths: Sequence[int], rows: Sequence[Sequence[str]]) -> str:
    """Cells in columns of these widths: the first to the left, and the others to the right."""
    first, *others = widths
    return "\n".join(f"{x:<{first}}{''.join(map(str.rjust, cells, others))}" for x, *cells in rows)
