"""Distributed trainings with Opacus: DDP and FSDP2, an audit on each rank, and one report.

A rank alone sees a part of each batch, and the noise of that rank, if any. So all ranks meet once
in each private step, where they are together anyway. What they look at of the sums before and after
the noise, at the same weights, is added up over ranks that share the weights (DDP), or put beside
each other where each has its own (FSDP2); and each hears how large the others' batches were, which
examples these had, and how clipping was there. From then on it is an audit like that of one
process, the same on all ranks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import wraps
from typing import Any

import numpy as np
import torch
from opacus.optimizers import DPOptimizer
from torch.distributed.tensor import DTensor

from oraudit.records import Batches, Event, Look, Ranks, Seen
from oraudit.records.around import NAMES
from oraudit.records.causes import SMALL
from oraudit.records.clipping import EXACT, example_norms, weighted_sum
from oraudit.ways.beside import Beside, due
from oraudit.ways.inputs import are_examples
from oraudit.ways.opacus import RULE_ROUNDING, CannotAttach, OpacusAudit, _harmless, _Noisy
from oraudit.ways.ranks import FAILED, LEAVING, WATCHING, CannotMeet, Ended, Meeting
from oraudit.ways.sharded import MOST_WEIGHTS, ShardedBeside, local, whole

__all__ = ["DistributedAudit", "audit", "is_distributed"]

#: The most weights whose sums are looked at in each step, of all ranks together.
LOOKED = 16_384

#: How many numbers of each rank's own noise the others hear.
HEARD = 32

#: What is noted around a step before its gradient is used, and after that, a step later.
_BEFORE = tuple(name for name in NAMES if name not in ("factor", "off", "kept", "rest"))
_AFTER = ("factor", "off", "kept", "rest")

#: What ranks hear of a look.
_LOOK = ("error", "tolerance", "largest")


def audit(optimizer: Any, *args: Any, **options: Any) -> OpacusAudit:
    """The audit of a private optimizer, one process or many."""
    kind = DistributedAudit if is_distributed(optimizer) else OpacusAudit
    return kind(optimizer, *args, **options)


def is_distributed(optimizer: Any) -> bool:
    """Whether an optimizer is one part of a distributed training."""
    return isinstance(optimizer, DPOptimizer) and any(
        word in base.__name__
        for base in type(optimizer).__mro__
        for word in ("Distributed", "FSDP")
    )


class DistributedAudit(OpacusAudit):
    """An audit of one rank of a distributed training, which knows what all ranks see."""

    joins_ranks = True

    def __init__(
        self, optimizer: Any, model: Any = None, loader: Any = None, **options: Any
    ) -> None:
        params = list(optimizer.params)
        self._sharded = any(isinstance(p, DTensor) for p in params)
        _check_placed(optimizer, params)
        # FSDP averages over ranks what DDP adds up.
        self._averaged = optimizer.world_size if self._sharded else 1
        self._device = local(params[0]).device
        sizes = [local(p).numel() for p in params]
        room = max(LOOKED // (len(sizes) * (optimizer.world_size if self._sharded else 1)), 1)
        self._looked_at = [slice(0, None, max(-(-size // room), 1)) for size in sizes]
        counts = [len(range(size)[some]) for size, some in zip(sizes, self._looked_at, strict=True)]
        try:
            self.meeting = Meeting(
                {
                    "kind": type(optimizer).__name__,
                    "looked": counts,
                    "room": _room(optimizer, loader),
                }
            )
        except CannotMeet as reason:
            raise CannotAttach(f"optimizer is {type(optimizer).__name__}: {reason}") from None
        facts = self.meeting.facts
        alike = ("kind",) if self._sharded else ("kind", "looked")
        if any(each[what] != facts[0][what] for each in facts for what in alike):
            raise CannotAttach("the ranks have different optimizers or models")
        self._counts: list[list[int]] = [each["looked"] for each in facts]
        self._room = max(each["room"] for each in facts)
        self._mine: tuple[torch.Tensor, torch.Tensor] | None = None
        self._kept: list[Any] | None = None
        self._rows: list[Any] = []
        self._published = 0
        self._heard: list[list[Any]] = [[] for _ in facts]
        self._maker = ShardedBeside if self._sharded else Beside
        self._meeting_at = "reduce_gradients" if not self._sharded else "scale_grad"
        super().__init__(optimizer, model, loader, **options)

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
        if self._looks_together():
            self._look_together(watching=True)
        told = self._to_tell()
        if told is None:
            self._fail()
            return
        joined = self._join(told[0])
        self._rows.append(self.meeting.tell(told[1]))
        self._keep(joined)

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
        if self._looks_together():
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
        """How many numbers each rank tells: of the sum before the noise, and as many after it."""
        return 2 * max(sum(counts) for counts in self._counts)

    @property
    def _length(self) -> int:
        """How many counts each rank tells."""
        return 2 + len(_BEFORE) + len(_AFTER) + len(_LOOK) + HEARD + self._room

    @property
    def _row(self) -> int:
        """How many numbers a rank's row has: its counts, and how it is."""
        return self._length + 2

    def _join(self, numbers: torch.Tensor) -> torch.Tensor:
        """A row of what all ranks tell where each has its own weights, else their sum."""
        return self.meeting.gather(numbers) if self._sharded else self.meeting.add_up(numbers)[None]

    @_harmless
    def _to_tell(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        assert self._mine is not None, "no noise was seen in this step"
        before, after = self._mine
        numbers = torch.zeros(self._width, device=self._device)
        half = self._width // 2
        numbers[: len(before)] = before
        numbers[half : half + len(after)] = after
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
        every = max(len(before) // HEARD, 1)
        noise = ((after - before)[::every][:HEARD] / scale).double()
        noise = torch.cat([noise, noise.new_full((HEARD - len(noise),), torch.nan)])
        counts[2 : 2 + len(real) + HEARD] = torch.cat([real, noise]).view(torch.int64)
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
        values = [now.get(name, torch.nan) for name in _BEFORE]
        values += [around.last.get(name, torch.nan) for name in _AFTER]
        values += [torch.nan if look is None else getattr(look, name) for name in _LOOK]
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

    # ------------------------------------------------------------------ clipping of sharded weights

    def _looks_together(self) -> bool:
        """Whether all ranks look at the clipping of this step together."""
        return self._sharded and due(self.meeting.steps + 1) and self._numbers <= MOST_WEIGHTS

    def _look_together(self, *, watching: bool) -> None:
        """Hold the sum of all ranks' shards against the examples' gradients on all ranks.

        All ranks call this in the same step, and each part of it that all take part in.
        """
        weights = whole([p.detach() for p in self._params])
        summed = whole(self._kept or [p.grad for p in self._params])
        self._kept = None
        added = torch.cat([each.reshape(-1) for each in summed]) * self._averaged
        own = self._clip_beside(weights) if watching else None
        total = torch.zeros_like(added) if own is None else own[0]
        norms = added.new_full((2,), torch.nan) if own is None else own[1]
        total = self.meeting.add_up(total)
        self._compare_sums(added, total, self.meeting.gather(norms))

    @_harmless
    def _clip_beside(self, weights: list[torch.Tensor]) -> Any:
        """The sum of this rank's clipped gradients, made beside; the sum and largest of norms."""
        if self._beside is None or self._parts != 1:
            return None
        assert isinstance(self._beside, ShardedBeside)
        self._beside.whole = {id(p): each for p, each in zip(self._params, weights, strict=True)}
        norms = self._model.per_sample_gradient_norms.detach()
        made = self._make(len(norms), None)
        self._beside.whole = {}
        if made is None:
            return None
        if made.mixed > RULE_ROUNDING:
            self._record.see("examples-mix", number=made.mixed)
            return None
        self._hold_norms(made, norms)
        if not made.whole:
            return None
        real = example_norms(made.gradients)
        factors = (self._clip() / (real + SMALL)).clamp(max=1.0)
        total = torch.cat([weighted_sum(each, factors) for each in made.gradients])
        clipped = factors * real
        return total, torch.stack([clipped.sum(), clipped.max()])

    @_harmless
    def _compare_sums(self, added: Any, total: Any, norms: Any) -> None:
        """Note how far the sum is off, on the first rank, if all ranks have made gradients."""
        self._beside_clear()
        if self.meeting.rank or bool(norms.isnan().any()):
            return
        lengths = float(norms[:, 0].sum())
        distance = float((added - total).norm())
        self._record.looks.append(
            Look(
                step=self._record.step,
                error=distance / lengths if lengths > 0 else distance,
                tolerance=EXACT + SMALL / self._clip(),
                largest=float(norms[:, 1].max()) / self._clip(),
            )
        )

    @_harmless
    def _keep(self, joined: torch.Tensor) -> None:
        """Keep the sums of all ranks, as of one process."""
        half = self._width // 2
        parts = [_split(row[:half], counts) for row, counts in self._by_rank(joined)]
        noisy = [_split(row[half:], counts) for row, counts in self._by_rank(joined)]
        clip = self._clip()
        sigma = float(self._optimizer.noise_multiplier)
        unit = self._effective(sigma) * clip
        before = [part for each in parts for part in each if len(part)]
        after = [part for each in noisy for part in each if len(part)]
        self._record.noise.add(before, after, unit)
        own = self._mine if self._sharded else (joined[0, :half], joined[0, half:])
        assert own is not None
        size = sum(self._counts[self.meeting.rank])
        clipped = own[0][:size]
        self._noisy = _Noisy(clip, sigma, clipped, own[1][:size] - clipped, self._looked_at)
        self._mine = None

    def _by_rank(self, joined: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[int]]]:
        """The rows of what was joined, and how many numbers of each tensor they have."""
        return zip(joined, self._counts[: len(joined)], strict=True)

    # ------------------------------------------------------------------------ the chain of a step

    @_harmless
    def _before_accumulating(self) -> None:
        if not self._sharded:
            super()._before_accumulating()
            return
        norms = getattr(self._model, "per_sample_gradient_norms", None)
        if norms is not None:
            self._note_batch(len(norms))
            if self._parts == 1:
                self._record.around.note_norms(norms.detach(), self._clip())

    def _summed(self) -> list[torch.Tensor]:
        """The clipped sums of this rank, as far as they are looked at."""
        if self._sharded:
            state = self._optimizer.grad_state
            return [local(state[p]["summed_grad"]) for p in self._params]
        return [p.summed_grad for p in self._params]

    def _clipped(self) -> Any:
        if self._looks_together():
            # What follows may change these sums, if it adds no noise to them.
            state = self._optimizer.grad_state
            self._kept = [state[p]["summed_grad"].clone() for p in self._params]
        return self._told(self._summed())

    def _told(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The numbers of some tensors that are looked at."""
        parts = [
            each.detach().reshape(-1)[some]
            for each, some in zip(tensors, self._looked_at, strict=True)
        ]
        return torch.cat(parts).float() * self._averaged

    @_harmless
    def _after_noise(self, clipped: Any) -> None:
        if clipped is not None:
            self._mine = clipped, self._told([local(p.grad) for p in self._params])

    @_harmless
    def _before_step(self, *args: Any) -> None:
        if self._mine is not None and self._depth == 0:
            self._record.see("replaced", self._meeting_at)
            self._over = True
            return
        super()._before_step(*args)

    def _close(self, used: list[Any] | None) -> None:
        super()._close(None if used is None else [None if g is None else local(g) for g in used])

    def _is_due(self) -> bool:
        return self._beside is not None and due(self.meeting.steps + 1)

    def _make_beside(self) -> Any:
        beside = super()._make_beside()
        if not self._sharded or beside is None:
            return beside
        if self._numbers > MOST_WEIGHTS:
            self._unmade = f"{self._numbers} sharded weights are too many to be put together"
            return None
        return beside

    # ------------------------------------------------------------------------------------- result

    def _seen(self) -> Seen:
        own = super()._seen()
        events, causes = self._heard_of()
        own = replace(own, events=[*events, *self._own_events(own)])
        if not self._rows or not own.steps:
            return own
        rows = torch.stack(self._rows[: own.steps]).cpu().numpy()
        watched = (rows[:, :, 0] == WATCHING).all(1)
        own = _cut(own, len(rows) if watched.all() else int(watched.argmin()))
        rows = rows[: own.steps, :, 2:]
        if not own.steps:
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
        joined = [np.concatenate(step) if known else None for step in parts]
        ranks = Ranks(
            sizes=sizes,
            noise=real[:, :, -HEARD:],
            twice=np.array([_twice(step) if known else -1 for step in parts]),
            shared=not self._sharded,
        )
        apart = _apart_clips(real, shared=not self._sharded)
        return replace(
            own,
            names=self._names_of_all(own.names),
            batches=Batches(
                tuple(None if size < 0 else int(size) for size in total),
                tuple(joined),
            ),
            around=self._around_all(own, total, real),
            looks=_looks(real, causes),
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
        if not self._sharded:
            return [name for name, size in zip(names, self._counts[0], strict=True) if size]
        return [
            f"{name} of rank {rank}"
            for rank, counts in enumerate(self._counts)
            for name, size in zip(names, counts, strict=True)
            if size
        ]

    def _around_all(self, own: Seen, total: Any, real: Any) -> Any:
        """What stood around the steps on the first rank, and the worst use of a gradient on any."""
        assert own.around is not None
        columns = {name: real[:, 0, place] for place, name in enumerate(_BEFORE)}
        columns["size"] = np.where(total >= 0, total, np.nan).astype(float)
        first = len(_BEFORE)
        used = real[1:, :, first : first + len(_AFTER)]
        off = np.abs(np.nan_to_num(used[:, :, 1], nan=-1.0))
        worst = used[np.arange(len(used)), off.argmax(1)] if len(used) else used[:, 0]
        for place, name in enumerate(_AFTER):
            last = getattr(own.around, name)[len(used) :]
            columns[name] = np.concatenate([worst[:, place], last])
        return replace(own.around, **columns)

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

    def state_dict(self) -> dict[str, Any]:
        """What was seen so far on all ranks, for the checkpoint of any of them."""
        state = super().state_dict()
        heard = zip(self._heard, self.meeting.read(), strict=True)
        state["rows"] = [row.cpu() for row in self._rows]
        state["heard"] = [[*former, *messages] for former, messages in heard]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from an audit of earlier processes; all ranks call it, or none."""
        shapes = {tuple(row.shape) for row in state["rows"]} - {(self.meeting.world, self._row)}
        if shapes:
            raise ValueError(f"the state is of other ranks or batches: its rows have {shapes}")
        super().load_state_dict({key: state[key] for key in ("record", "account", "moved")})
        self._rows = [row.to(self._device) for row in state["rows"]]
        self._heard = [list(messages) for messages in state["heard"]]
        self._published = len(self._record.events)

    def _unlooked(self) -> list[str]:
        looked = sum(self._counts[0]) if not self._sharded else sum(map(sum, self._counts))
        unlooked = super()._unlooked()
        if looked < self._numbers:
            unlooked.insert(0, f"the noise of {self._numbers - looked} of {self._numbers} weights")
        return unlooked


def _cut(seen: Seen, steps: int) -> Seen:
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


def _looks(real: Any, causes: dict[tuple[int, int], Any]) -> tuple[Look, ...]:
    """The worst look of each rank in each step."""
    first = len(_BEFORE) + len(_AFTER)
    found = []
    for step, ranks in enumerate(real[:, :, first : first + len(_LOOK)], 1):
        for rank, (error, tolerance, largest) in enumerate(ranks):
            if not np.isnan(tolerance):
                why = causes.get((step, rank), {})
                found.append(Look(step, float(error), float(tolerance), float(largest), why))
    return tuple(found)


def _apart_clips(real: Any, *, shared: bool) -> list[Event]:
    """Where a rank clips at another norm than the one that the noise is made for."""
    clips = real[:, :, _BEFORE.index("clip")]
    noise = clips[:, 0] if shared else clips.min(1)
    apart = clips.max(1) / noise
    return [
        Event("apart-clip", step, "", float(ratio))
        for step, ratio in enumerate(apart, 1)
        if ratio > 1 + 1e-4
    ]


def _twice(parts: Sequence[Any]) -> int:
    """How many examples are on more than one rank."""
    different = [np.unique(part) for part in parts]
    return sum(map(len, different)) - len(np.unique(np.concatenate(different)))


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


def _check_placed(optimizer: Any, params: Sequence[Any]) -> None:
    """Refuse weights that are not placed as DDP or FSDP2 place them."""
    kind = type(optimizer).__name__
    sharded = [isinstance(p, DTensor) for p in params]
    if not all(sharded) if "FSDP" in kind else any(sharded):
        raise CannotAttach(f"optimizer is {kind}: only some of its weights are sharded")
    for p in params:
        if isinstance(p, DTensor) and (p.device_mesh.ndim != 1 or not p.placements[0].is_shard()):
            raise CannotAttach(
                f"optimizer is {kind}: its weights are placed as {p.placements}, and only shards "
                "of all ranks can be joined"
            )
