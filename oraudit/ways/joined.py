"""What ranks tell each other in each step, and what all together have seen then.

A rank's row begins with how large its part of the batch was, and how many fingerprints of examples
stand at its end. Between them are real numbers: those of :data:`BEFORE`, :data:`AFTER` and
:data:`LOOK`, and :data:`HEARD` of its noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oraudit.records import Event, Look, Seen
from oraudit.records.around import NAMES, Around

__all__ = ["AFTER", "BEFORE", "HEARD", "LOOK", "apart_clips", "around", "cut", "looks", "twice"]

#: How many numbers of each rank's own noise the others hear.
HEARD = 32

#: What is noted of a step once its gradient is used: others hear of it in the next step.
AFTER = ("factor", "off", "kept", "rest", "felt", "noisiness", "clean", "numbers")

#: What is noted before that.
BEFORE = tuple(name for name in NAMES if name not in AFTER)

#: What others hear of a look at clipping.
LOOK = ("error", "tolerance", "largest")


def cut(seen: Seen, steps: int) -> Seen:
    """Only the first steps of what was seen: in a later one a rank told nothing."""
    if seen.steps == steps:
        return seen
    assert seen.noise is not None
    assert seen.around is not None
    per_step = ("squares", "products", "sums", "largest", "sample", "heads", "rounding")
    noise = replace(seen.noise, **{name: getattr(seen.noise, name)[:steps] for name in per_step})
    around = replace(seen.around, **{name: getattr(seen.around, name)[:steps] for name in NAMES})
    return replace(
        seen,
        told=seen.told[:steps],
        noise=noise if steps else None,
        around=around,
        events=[event for event in seen.events if event.kind != "accountant-told"],
    )


def looks(real: Any, causes: dict[tuple[int, int], Any]) -> tuple[Look, ...]:
    """The worst look of each rank in each step."""
    first = len(BEFORE) + len(AFTER)
    found = []
    for step, ranks in enumerate(real[:, :, first : first + len(LOOK)], 1):
        for rank, (error, tolerance, largest) in enumerate(ranks):
            if not np.isnan(tolerance):
                why = causes.get((step, rank), {})
                found.append(Look(step, float(error), float(tolerance), float(largest), why))
    return tuple(found)


def around(own: Around, total: Any, real: Any) -> Around:
    """What stood around the steps on the first rank, and the worst use of a gradient on any."""
    columns = {name: real[:, 0, place] for place, name in enumerate(BEFORE)}
    columns["size"] = np.where(total >= 0, total, np.nan).astype(float)
    first = len(BEFORE)
    used = real[1:, :, first : first + len(AFTER)]
    off = np.abs(np.nan_to_num(used[:, :, 1], nan=-1.0))
    worst = used[np.arange(len(used)), off.argmax(1)] if len(used) else used[:, 0]
    for place, name in enumerate(AFTER):
        last = getattr(own, name)[len(used) :]
        columns[name] = np.concatenate([worst[:, place], last])
    return replace(own, **columns)


def apart_clips(real: Any, *, shared: bool) -> list[Event]:
    """Where a rank clips at another norm than the one that the noise is made for."""
    clips = real[:, :, BEFORE.index("clip")]
    noise = clips[:, 0] if shared else clips.min(1)
    apart = clips.max(1) / noise
    return [
        Event("apart-clip", step, "", float(ratio))
        for step, ratio in enumerate(apart, 1)
        if ratio > 1 + 1e-4
    ]


def twice(parts: Sequence[Any]) -> int:
    """How many examples are on more than one rank."""
    different = [np.unique(part) for part in parts]
    return sum(map(len, different)) - len(np.unique(np.concatenate(different)))
