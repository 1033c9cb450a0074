"""The training as all ranks together have seen it, from the rows that they told each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oraudit.records import Event, Look, Seen
from oraudit.records.around import NAMES, Around
from oraudit.ways.opacus.rank_rows import AFTER, BEFORE, HEARD, LOOK

__all__ = ["apart_clips", "around", "causes_of", "cut", "events_of", "looks", "noise", "twice"]


def cut(seen: Seen, steps: int) -> Seen:
    """Return the first steps of what was seen, before the one in which a rank told nothing."""
    if seen.steps == steps:
        return seen
    assert seen.noise is not None
    assert seen.around is not None
    per_step = ("squares", "products", "sums", "largest", "sample", "heads", "rounding")
    first = {name: getattr(seen.noise, name)[:steps] for name in per_step}
    around = {name: getattr(seen.around, name)[:steps] for name in NAMES}
    return replace(
        seen,
        told=seen.told[:steps],
        noise=replace(seen.noise, **first) if steps else None,
        around=replace(seen.around, **around),
        events=[event for event in seen.events if event.kind != "accountant-told"],
    )


def noise(real: Any) -> Any:
    """Return a few numbers of each rank's own noise, by step and rank."""
    return real[:, :, -HEARD:]


def looks(real: Any, causes: Mapping[tuple[int, int], Any]) -> tuple[Look, ...]:
    """Return the worst look of each rank in each step, with its causes by step and rank."""
    first = len(BEFORE) + len(AFTER)
    worst = []
    for step, ranks in enumerate(real[:, :, first : first + len(LOOK)], 1):
        for rank, (error, tolerance, largest) in enumerate(ranks):
            if not np.isnan(tolerance):
                explained = causes.get((step, rank), {})
                look = Look(step, float(error), float(tolerance), float(largest), explained)
                worst.append(look)
    return tuple(worst)


def around(own: Around, total: Any, real: Any) -> Around:
    """Return the numbers around the steps of the first rank, with the worst use of any rank."""
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
    """Return the steps in which a rank clips at another norm than the noise is made for."""
    clips = real[:, :, BEFORE.index("clip")]
    noise_clips = clips[:, 0] if shared else clips.min(1)
    ratios = clips.max(1) / noise_clips
    return [
        Event("apart-clip", step, "", float(ratio))
        for step, ratio in enumerate(ratios, 1)
        if ratio > 1 + 1e-4
    ]


def twice(parts: Sequence[Any]) -> int:
    """Return how many examples are on more than one rank."""
    different = [np.unique(part) for part in parts]
    return sum(map(len, different)) - len(np.unique(np.concatenate(different)))


def events_of(messages: Iterable[Any]) -> list[Event]:
    """Return the different events that messages of ranks tell of."""
    events = [Event(**fields) for message in messages for fields in message["events"]]
    return list(dict.fromkeys(events))


def causes_of(messages: Sequence[Sequence[Any]]) -> dict[tuple[int, int], Any]:
    """Return the causes of sums that are off, by step and rank, from each rank's messages."""
    causes: dict[tuple[int, int], Any] = {}
    for rank, of_rank in enumerate(messages):
        for message in of_rank:
            for explained in message["causes"]:
                causes[message["step"], rank] = explained
    return causes
