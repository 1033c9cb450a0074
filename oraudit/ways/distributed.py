"""Distributed trainings with Opacus, an audit on each rank that knows what all ranks see.

A rank alone sees a part of each batch, and the noise of that rank, if any. So all ranks meet once
in each private step, where they are together anyway. What they look at of the sums before and after
the noise, at the same weights, is added up over ranks that share the weights (DDP), or put beside
each other where each has its own (FSDP2); and each hears how large the others' batches were, which
examples these had, and how clipping was there. From then on it is an audit like that of one
process, the same on all ranks.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch.distributed.tensor import DTensor

from oraudit.canaries.coins import SECRET_BITS
from oraudit.canaries.live import Canaries, spread
from oraudit.records import Batches, Event, Ranks, Seen, saved
from oraudit.ways import joined
from oraudit.ways.beside import due
from oraudit.ways.fingerprints import shard
from oraudit.ways.inputs import are_examples
from oraudit.ways.opacus import CannotAttach, OpacusAudit, _harmless, _Noisy
from oraudit.ways.ranks import FAILED, LEAVING, WATCHING, CannotMeet, Ended, Meeting

__all__ = ["DistributedAudit"]

#: The most weights whose sums are looked at in each step, of all ranks together.
LOOKED = 16_384


class DistributedAudit(OpacusAudit):
    """An audit of one rank of a training with DDP, where all ranks have the same weights."""

    #: Whether all ranks have the same weights, not each its own.
    _shared = True

    #: The method of the optimizer after which ranks meet.
    _meeting_at = "reduce_gradients"

    def __init__(
        self,
        optimizer: Any,
        model: Any = None,
        loader: Any = None,
        *,
        canaries: int = 0,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        params = list(optimizer.params)
        _check_placed(optimizer, params, shared=self._shared)
        # FSDP averages over ranks what DDP adds up.
        self._averaged = 1 if self._shared else optimizer.world_size
        self._device = shard(params[0]).device
        sizes = [shard(p).numel() for p in params]
        room = max(LOOKED // (len(sizes) * self._averaged), 1)
        self._looked_at = [slice(0, None, max(-(-size // room), 1)) for size in sizes]
        counts = [len(range(size)[some]) for size, some in zip(sizes, self._looked_at, strict=True)]
        try:
            self.meeting = Meeting(
                {
                    "kind": type(optimizer).__name__,
                    "looked": counts,
                    "room": _room(optimizer, loader),
                    "canaries": canaries,
                    # All ranks have the coins of the first one.
                    "seed": secrets.randbits(SECRET_BITS) if canaries and seed is None else seed,
                    "sizes": sizes,
                }
            )
        except CannotMeet as reason:
            raise CannotAttach(f"optimizer is {type(optimizer).__name__}: {reason}") from None
        facts = self.meeting.facts
        alike = ("kind", "looked") if self._shared else ("kind",)
        if any(each[what] != facts[0][what] for each in facts for what in alike):
            raise CannotAttach("the ranks have different optimizers or models")
        if any(each["canaries"] != canaries for each in facts):
            raise CannotAttach("the ranks have different numbers of canaries")
        self._counts: list[list[int]] = [each["looked"] for each in facts]
        self._room = max(each["room"] for each in facts)
        self._mine: tuple[torch.Tensor, torch.Tensor] | None = None
        self._own_sums: tuple[Any, Any] = (None, None)
        self._rows: list[Any] = []
        self._published = 0
        self._heard: list[list[Any]] = [[] for _ in facts]
        self._riding = [0 for _ in facts]
        self._ridden: torch.Tensor | None = None
        super().__init__(
            optimizer, model, loader, canaries=canaries, seed=facts[0]["seed"], **options
        )

    # ------------------------------------------------------------------- on the chain and off it

    def _stand_outermost(self) -> None:
        self._chain.setdefault(self._meeting_at, (_nothing, _nothing))
        super()._stand_outermost()

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name != self._meeting_at:
            return super()._around(name, method)

        @wraps(method)
        def met(*args: Any, **kwargs: Any) -> Any:
            if name in self._running or self._ended is not None:
                return method(*args, **kwargs)
            self._running.add(name)
            try:
                result = method(*args, **kwargs)
                self._meet()
            finally:
                self._running.discard(name)
            return result

        return met

    def detach(self) -> None:
        """Take the audit off. The other ranks hear of it in the next step, if there is one."""
        if self._ended is not None:
            return
        super().detach()
        if self.meeting.ended:
            return
        method = getattr(self._optimizer, self._meeting_at)
        own = self._optimizer.__dict__.get(self._meeting_at)

        @wraps(method)
        def farewell(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if self._optimizer.__dict__.get(self._meeting_at) is farewell:
                if own is None:
                    delattr(self._optimizer, self._meeting_at)
                else:
                    setattr(self._optimizer, self._meeting_at, own)
            self._say_goodbye()
            return result

        setattr(self._optimizer, self._meeting_at, farewell)

    # ------------------------------------------------------------------------------- the meeting

    def _meet(self) -> None:
        """Tell all ranks what this one has seen of the step, and hear of them: always, or never.

        Whatever goes wrong on this rank alone, it takes part with empty numbers and says so.
        """
        try:
            self.meeting.hear()
        except Ended as reason:
            self._stop(str(reason))
            return
        self._look_together(watching=True)
        told = self._to_tell()
        if told is None:
            self._fail()
            return
        together = self._join(told[0])
        self._rows.append(self.meeting.tell(told[1]))
        self._keep(together)

    def _look_together(self, *, watching: bool) -> None:
        """Look at clipping on all ranks together: in vain here, as each looks at its own sums."""

    def _fail(self) -> None:
        """Tell all ranks that this one has met an error, and stop."""
        self._over = True
        with suppress(Exception):  # which may be the error that is met
            self._publish()
        self._meet_empty(FAILED)
        self._forget_weights()

    def _say_goodbye(self) -> None:
        """Meet once more, so that the others need not wait, and never again."""
        try:
            self.meeting.hear()
        except Ended:
            return
        self._look_together(watching=False)
        self._meet_empty(LEAVING)

    def _meet_empty(self, state: int) -> None:
        self._join(torch.zeros(self._width, device=self._device))
        self.meeting.tell(torch.full((self._length,), -1, device=self._device), state)
        self.meeting.ended = "this rank told nothing"

    @_harmless
    def _stop(self, reason: str) -> None:
        self._record.see("unwatched", reason)
        self._over = True
        self._forget_weights()

    def _forget_weights(self) -> None:
        """Of what comes now nobody knows whether it is a private step."""
        self._after = None
        self._next = None

    @property
    def _width(self) -> int:
        """How many numbers each rank tells: of the sums, twice as many as of each, and canaries."""
        return 2 * self._half + max(self._riding)

    @property
    def _half(self) -> int:
        """How many numbers each rank tells of the sum before the noise, and as many after it."""
        return max(sum(counts) for counts in self._counts)

    @property
    def _length(self) -> int:
        """How many counts each rank tells."""
        return (
            2
            + len(joined.BEFORE)
            + len(joined.AFTER)
            + len(joined.LOOK)
            + joined.HEARD
            + self._room
        )

    @property
    def _row(self) -> int:
        """How many numbers a rank's row has: its counts, and how it is."""
        return self._length + 2

    def _join(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum of what all ranks tell, in a row; or a row of each, with weights of its own."""
        return self.meeting.add_up(numbers)[None]

    @_harmless
    def _to_tell(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        assert self._mine is not None, "no noise was seen in this step"
        before, after = self._mine
        numbers = torch.zeros(self._width, device=self._device)
        half = self._half
        numbers[: len(before)] = before
        numbers[half : half + len(after)] = after
        if self._ridden is not None:
            numbers[2 * half : 2 * half + len(self._ridden)] = self._ridden
        batches = self._record.batches
        inputs = batches.inputs
        drawn = None if inputs is None else torch.cat([_none(self._device), *inputs])
        if drawn is not None and len(drawn) > self._room:
            drawn = None
        counts = torch.full((self._length,), -1, device=self._device)
        counts[0] = -1 if batches.size is None else batches.size
        counts[1] = -1 if drawn is None else len(drawn)
        real = self._numbers_around()
        scale = (self._effective(float(self._optimizer.noise_multiplier)) * self._clip()) or 1.0
        every = max(len(before) // joined.HEARD, 1)
        noise = ((after - before)[::every][: joined.HEARD] / scale).double()
        noise = torch.cat([noise, noise.new_full((joined.HEARD - len(noise),), torch.nan)])
        counts[2 : 2 + len(real) + joined.HEARD] = torch.cat([real, noise]).view(torch.int64)
        if drawn is not None:
            counts[self._length - self._room :][: len(drawn)] = drawn
        self._publish()
        return numbers, counts

    def _numbers_around(self) -> torch.Tensor:
        """What stands around this step, how the one before was used, and the worst look."""
        around = self._record.around
        now = {
            **around.now,
            "clip": self._clip(),
            "sigma": float(self._optimizer.noise_multiplier),
            "rate": self._learning_rate(),
        }
        looks = [look for look in self._record.looks if look.step == self._record.step]
        look = max(looks, key=lambda look: look.error / look.tolerance, default=None)
        values = [now.get(name, torch.nan) for name in joined.BEFORE]
        values += [around.last.get(name, torch.nan) for name in joined.AFTER]
        values += [torch.nan if look is None else getattr(look, name) for name in joined.LOOK]
        device = self._device
        return torch.stack([torch.as_tensor(v, dtype=torch.float64, device=device) for v in values])

    def _publish(self) -> None:
        """Send the others what is not in numbers: events, and what explains a sum that is off."""
        new = self._record.events[self._published :]
        off = [look for look in self._record.looks if look.step == self._record.step]
        message = {
            "events": [asdict(each) for each in new if each.kind != "seeded"],
            "causes": [
                {each.format(names=self._record.names): more for each, more in look.causes.items()}
                for look in off
                if not look.holds
            ],
            "step": self._record.step,
        }
        self._published = len(self._record.events)
        if message["events"] or message["causes"]:
            self.meeting.send(message)

    @_harmless
    def _keep(self, together: torch.Tensor) -> None:
        """Keep the sums of all ranks, as of one process."""
        half = self._half
        parts = [_split(row[:half], counts) for row, counts in self._by_rank(together)]
        noisy = [_split(row[half : 2 * half], counts) for row, counts in self._by_rank(together)]
        clip = self._clip()
        sigma = float(self._optimizer.noise_multiplier)
        unit = self._effective(sigma) * clip
        before = [part for each in parts for part in each if len(part)]
        after = [part for each in noisy for part in each if len(part)]
        self._record.noise.add(before, after, unit)
        # How this rank uses its own weights: of those that it shares it knows all only now.
        row = together[0 if self._shared else self.meeting.rank]
        size = sum(self._counts[self.meeting.rank])
        clipped = row[:size]
        self._own_sums = clipped, row[half : half + size] - clipped
        self._noisy = _Noisy(clip, sigma)
        self._mine = None
        if self._canaries is not None:
            rows = zip(together, self._riding[: len(together)], strict=True)
            seen = torch.cat([row[2 * half :][:count] for row, count in rows])
            self._canaries.score(seen, self._effective(sigma))
            self._ridden = None

    def _by_rank(self, together: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[int]]]:
        """The rows of what was joined, and how many numbers of each tensor they have."""
        return zip(together, self._counts[: len(together)], strict=True)

    # ------------------------------------------------------------------------ the chain of a step

    def _summed(self) -> list[torch.Tensor]:
        """The clipped sums of this rank."""
        return [p.summed_grad.detach() for p in self._params]

    def _clipped(self) -> Any:
        return self._told(self._summed())

    def _told(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """What this rank tells of some sums."""
        return self._sampled(tensors) * self._averaged

    def _sampled(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The numbers of some tensors that are looked at."""
        parts = [
            shard(each.detach()).reshape(-1)[some]
            for each, some in zip(tensors, self._looked_at, strict=True)
        ]
        return torch.cat(parts).float()

    def _last(self) -> tuple[Any, Any]:
        return self._own_sums

    @_harmless
    def _after_noise(self, clipped: Any) -> None:
        if clipped is not None:
            noisy = [p.grad for p in self._params]
            self._mine = clipped, self._told(noisy)
            if self._canaries is not None:
                self._ridden = self._canaries.look([shard(each.detach()) for each in noisy])

    @_harmless
    def _before_step(self, *args: Any) -> None:
        if self._mine is not None and self._depth == 0:
            self._record.see("replaced", self._meeting_at)
            self._over = True
            return
        super()._before_step(*args)

    def _is_due(self) -> bool:
        return self._beside is not None and due(self.meeting.steps + 1)

    # ---------------------------------------------------------------------------------- canaries

    def _place(self, n: int, seed: int | None) -> Canaries:
        """Canaries on the weights of all ranks; they are looked at where these are."""
        facts = self.meeting.facts
        if self._shared:
            self._riding = [n for _ in facts]
            return Canaries(n, sizes=facts[0]["sizes"], seed=seed)
        sizes = [size for each in facts for size in each["sizes"]]
        counts = spread(n, sizes)
        ends = [0, *accumulate(len(each["sizes"]) for each in facts)]
        self._riding = [sum(counts[first:last]) for first, last in pairwise(ends)]
        rank = self.meeting.rank
        return Canaries(n, sizes=sizes, seed=seed, own=(ends[rank], ends[rank + 1]))

    def _ride(self, **options: Any) -> None:
        adds = not self._shared or self.meeting.rank == 0
        super()._ride(divisor=self._averaged, adds=adds, **options)

    # ------------------------------------------------------------------------------------- result

    def _seen(self) -> Seen:
        own = super()._seen()
        events, causes = self._heard_of()
        own = replace(own, events=[*events, *self._own_events(own)])
        if not self._rows or not own.steps:
            return own
        rows = torch.stack(self._rows[: own.steps]).cpu().numpy()
        watched = (rows[:, :, 0] == WATCHING).all(1)
        own = joined.cut(own, len(rows) if watched.all() else int(watched.argmin()))
        rows = rows[: own.steps, :, 2:]
        if not own.steps or own.around is None:
            return own
        sizes = rows[:, :, 0]
        total = np.where((sizes >= 0).all(1), sizes.sum(1), -1)
        real = rows[:, :, 2 : self._length - self._room].copy().view(np.float64)
        parts: list[Any] = [
            [
                each[self._length - self._room :][: each[1]] if each[1] >= 0 else None
                for each in step
            ]
            for step in rows
        ]
        self._comparable = self._can_compare(own, parts)
        known = self._comparable and all(part is not None for step in parts for part in step)
        examples = [np.concatenate(step) if known else None for step in parts]
        ranks = Ranks(
            sizes=sizes,
            noise=real[:, :, -joined.HEARD :],
            twice=np.array([joined.twice(step) if known else -1 for step in parts]),
            shared=self._shared,
        )
        apart = joined.apart_clips(real, shared=self._shared)
        return replace(
            own,
            names=self._names_of_all(own.names),
            batches=Batches(
                tuple(None if size < 0 else int(size) for size in total),
                tuple(examples),
            ),
            around=joined.around(own.around, total, real),
            looks=joined.looks(real, causes),
            events=[*own.events, *apart],
            ranks=ranks,
        )

    def _own_events(self, own: Seen) -> list[Event]:
        """What this rank has seen and the others have not heard of."""
        seeds = [event for event in self._record.events if event.kind == "seeded"]
        rest = self._record.events[self._published :]
        late = own.events[len(self._record.events) :]
        return [*seeds, *(each for each in rest if each.kind != "seeded"), *late]

    def _can_compare(self, own: Seen, parts: Sequence[Any]) -> bool:
        if self._loader is None:
            return False
        flat = [part for step in parts for part in step]
        world = self.meeting.world
        rates = [(told.rate or 0.0) / world for told in own.told for _ in range(world)]
        return are_examples(flat, rates, self._loader.dataset)

    def _names_of_all(self, names: Sequence[str]) -> list[str]:
        return [name for name, size in zip(names, self._counts[0], strict=True) if size]

    def _heard_of(self) -> tuple[list[Event], dict[tuple[int, int], Any]]:
        """What all ranks have told in words: events, and causes by step and rank."""
        events: dict[Event, None] = {}
        causes: dict[tuple[int, int], Any] = {}
        try:
            heard = self.meeting.read()
        except RuntimeError as error:  # the process that keeps the messages has ended
            heard = [[] for _ in self._heard]
            events[Event("unwatched", None, f"what other ranks saw is lost ({error})")] = None
        for rank, messages in enumerate(self._heard):
            for message in messages + heard[rank]:
                events.update((Event(**each), None) for each in message["events"])
                for each in message["causes"]:
                    causes[message["step"], rank] = each
        return list(events), causes

    _saved_as = "DistributedAudit"

    def _content(self) -> dict[str, Any]:
        """What was seen so far on all ranks, for the checkpoint of any of them."""
        heard = zip(self._heard, self.meeting.read(), strict=True)
        return {
            **super()._content(),
            "rows": [row.cpu() for row in self._rows],
            "heard": [[*former, *messages] for former, messages in heard],
        }

    def _check(self, content: Mapping[str, Any]) -> int:
        own = {key: each for key, each in content.items() if key not in ("rows", "heard")}
        steps = super()._check(own)
        saved.check_fields("the state", content, (*own, "rows", "heard"))
        for row in saved.rows("the rows of ranks", content["rows"], steps, steps + 2):
            if getattr(row, "shape", None) != (self.meeting.world, self._row):
                shape = getattr(row, "shape", row)
                raise ValueError(f"the state is of other ranks or batches: its rows have {shape}")
            saved.reals("each of the rows of ranks", row, kinds="i")
        for messages in saved.rows("heard", content["heard"], self.meeting.world):
            for message in saved.rows("what a rank was heard of", messages, 0, saved.MOST_STEPS):
                saved.check_fields("a message", message, ("events", "causes", "step"))
                saved.whole("the step of a message", message["step"], 1, steps + 2)
                for event in saved.rows("events heard", message["events"], 0, saved.MOST_STEPS):
                    saved.check_event("an event heard", event, steps + 1)
                for cause in saved.rows("causes heard", message["causes"], 0, saved.MOST_STEPS):
                    saved.check_causes("a cause heard", cause)
        return steps

    def _take(self, content: Mapping[str, Any]) -> None:
        """Go on from audits of earlier processes; all ranks do, or none."""
        super()._take(content)
        self._rows = [torch.from_numpy(row).to(self._device) for row in content["rows"]]
        self._heard = [list(messages) for messages in content["heard"]]
        self._published = len(self._record.events)

    def _unlooked(self) -> list[str]:
        looked = sum(sum(counts) for counts in self._counts[: 1 if self._shared else None])
        unlooked = super()._unlooked()
        if looked < self._numbers:
            unlooked.insert(0, f"the noise of {self._numbers - looked} of {self._numbers} weights")
        return unlooked


def _split(row: torch.Tensor, counts: Sequence[int]) -> Sequence[torch.Tensor]:
    return row[: sum(counts)].split(list(counts))


def _none(device: Any) -> torch.Tensor:
    return torch.zeros(0, dtype=torch.int64, device=device)


def _nothing(*_: Any) -> None:
    """Look at nothing."""


def _room(optimizer: Any, loader: Any) -> int:
    """How many examples of a step a rank can tell of: more than a batch ever has by chance."""
    mean = optimizer.expected_batch_size
    if mean is None and loader is not None:
        mean = len(loader.dataset) * getattr(loader, "sample_rate", 1 / max(len(loader), 1))
    return 0 if not mean else int(2 * mean + 10 * mean**0.5 + 10)


def _check_placed(optimizer: Any, params: Sequence[Any], *, shared: bool) -> None:
    """Refuse weights that are not placed as DDP or FSDP2 place them."""
    kind = type(optimizer).__name__
    sharded = sum(isinstance(p, DTensor) for p in params)
    if sharded != (0 if shared else len(params)):
        raise CannotAttach(f"optimizer is {kind}: {sharded} of {len(params)} weights are sharded")
    for p in params:
        if isinstance(p, DTensor) and (p.device_mesh.ndim != 1 or not p.placements[0].is_shard()):
            raise CannotAttach(
                f"optimizer is {kind}: its weights are placed as {p.placements}, and only shards "
                "of all ranks can be joined"
            )
