"""Distributed trainings with Opacus, an audit on each rank that knows what all ranks see.

A rank alone sees a part of each batch, and its own noise, if it adds any. So all ranks meet once in
each private step, at a point where they wait for each other anyway. Each tells the others some
numbers of its sums before and after the noise: they are added up if ranks share the weights (DDP),
and joined if each rank has weights of its own (FSDP2). Each also tells how large its part of the
batch was, which examples it had, and how it clipped. From then on all ranks have the same numbers,
and each makes the same audit of them as one process would.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch

from oraudit.canaries.coins import SECRET_BITS
from oraudit.canaries.live import Canaries, spread
from oraudit.records import Batches, Event, Ranks, Seen
from oraudit.ways.opacus import joined, saved
from oraudit.ways.opacus.chain import Looks, call_once_after
from oraudit.ways.opacus.fingerprints import shard
from oraudit.ways.opacus.harmless import harmless
from oraudit.ways.opacus.independent_gradients import due
from oraudit.ways.opacus.inputs import are_examples
from oraudit.ways.opacus.one_process import OpacusAudit
from oraudit.ways.opacus.rank_rows import AFTER, BEFORE, HEARD, LOOK, Layout
from oraudit.ways.opacus.ranks import FAILED, LEAVING, WATCHING, CannotMeet, Ended, Meeting
from oraudit.ways.opacus.refused import CannotAttach, check_placement
from oraudit.ways.opacus.steps import NoisySum

__all__ = ["DistributedAudit"]

#: The most weights, of all ranks together, whose sums ranks tell each other in each step.
LOOKED = 16_384


class DistributedAudit(OpacusAudit):
    """An audit of one rank of a training with DDP, where all ranks have the same weights.

    Examples
    --------
    >>> audit = oraudit.attach(optimizer, model, loader)  # on each rank  # doctest: +SKIP
    >>> type(audit).__name__  # doctest: +SKIP
    'DistributedAudit'
    """

    _saved_as = "DistributedAudit"

    #: True if all ranks have the same weights, False if each has its own.
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
        check_placement(optimizer, params, shared=self._shared)
        # FSDP averages over ranks what DDP adds up.
        self._averaged = 1 if self._shared else optimizer.world_size
        self._device = shard(params[0]).device
        sizes = [shard(p).numel() for p in params]
        room = max(LOOKED // (len(sizes) * self._averaged), 1)
        self._looked_at = [slice(0, None, max(-(-size // room), 1)) for size in sizes]
        pairs = zip(sizes, self._looked_at, strict=True)
        self.meeting = _meeting_about(
            {
                "kind": type(optimizer).__name__,
                "looked": [len(range(size)[places]) for size, places in pairs],
                "room": _room(optimizer, loader),
                "canaries": canaries,
                # All ranks have the coins of the first one.
                "seed": secrets.randbits(SECRET_BITS) if canaries and seed is None else seed,
                "sizes": sizes,
            }
        )
        facts = self.meeting.facts
        _check_alike(facts, ("kind", "looked") if self._shared else ("kind",), canaries)
        self._layout = Layout(
            looked=[fact["looked"] for fact in facts], room=max(fact["room"] for fact in facts)
        )
        self._sums_told: tuple[torch.Tensor, torch.Tensor] | None = None
        self._own_last: tuple[Any, Any] = (None, None)
        self._rows: list[Any] = []
        self._published = 0
        self._heard: list[list[Any]] = [[] for _ in facts]
        self._riding = [0 for _ in facts]
        self._ridden: torch.Tensor | None = None
        super().__init__(
            optimizer, model, loader, canaries=canaries, seed=facts[0]["seed"], **options
        )

    # ------------------------------------------------------------------- on the chain and off it

    def _looks_at_chain(self) -> dict[str, Looks]:
        return {**super()._looks_at_chain(), self._meeting_at: (_look_at_nothing, self._meet)}

    def detach(self) -> None:
        """Take the audit off. The other ranks hear of it in the next step, if there is one."""
        if self._ended is not None:
            return
        super().detach()
        if not self.meeting.ended:
            call_once_after(self._optimizer, self._meeting_at, self._say_goodbye)

    # ------------------------------------------------------------------------------- the meeting

    def _meet(self, _kept: None) -> None:
        """Tell all ranks what this one has seen of the step, and hear the same of them.

        All ranks take part in every meeting. After an error on this rank alone, it takes part with
        empty numbers and says so.
        """
        try:
            self.meeting.hear()
        except Ended as reason:
            self._stop(str(reason))
            return
        self._look_together(watching=True)
        message = self._told_numbers()
        if message is None:
            self._fail()
            return
        sums, row = message
        together = self._join(sums)
        self._rows.append(self.meeting.tell(row))
        self._keep(together)

    def _look_together(self, *, watching: bool) -> None:
        """Look at clipping on all ranks together: not here, as each looks at its own sums."""

    def _fail(self) -> None:
        """Tell all ranks that this one has met an error, and stop."""
        self._over = True
        with suppress(Exception):  # which may be the error that is met
            self._publish()
        self._meet_empty(FAILED)
        self._weights.forget()

    def _say_goodbye(self) -> None:
        """Meet once more, so that the others need not wait, and never again."""
        try:
            self.meeting.hear()
        except Ended:
            return
        self._look_together(watching=False)
        self._meet_empty(LEAVING)

    def _meet_empty(self, state: int) -> None:
        self._join(torch.zeros(2 * self._layout.half + max(self._riding), device=self._device))
        self.meeting.tell(torch.full((self._layout.length,), -1, device=self._device), state)
        self.meeting.ended = "this rank told nothing"

    @harmless
    def _stop(self, reason: str) -> None:
        self._record.see("unwatched", reason)
        self._over = True
        self._weights.forget()

    def _join(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the sum of all ranks' numbers as one row; a row for each rank with own weights."""
        return self.meeting.add_up(numbers)[None]

    @harmless
    def _told_numbers(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the sums and the row that this rank tells of the step, and send its messages."""
        assert self._sums_told is not None, "no noise was seen in this step"
        before, after = self._sums_told
        sums = self._layout.sums(before, after, self._ridden, max(self._riding))
        batches = self._record.batches
        fingerprints = None
        if batches.inputs is not None:
            no_examples = torch.zeros(0, dtype=torch.int64, device=self._device)
            fingerprints = torch.cat([no_examples, *batches.inputs])
        scale = (self._effective(float(self._optimizer.noise_multiplier)) * self._clip()) or 1.0
        stride = max(len(before) // HEARD, 1)
        noise = ((after - before)[::stride][:HEARD] / scale).double()
        row = self._layout.row(batches.size, fingerprints, self._numbers_around(), noise)
        self._publish()
        return sums, row

    def _numbers_around(self) -> torch.Tensor:
        """Return the numbers around this step, the use of the last gradient, and the worst look."""
        around = self._record.around
        current = {
            **around.now,
            "clip": self._clip(),
            "sigma": float(self._optimizer.noise_multiplier),
            "rate": self._learning_rate(),
        }
        worst = max(
            self._looks_of_step(), key=lambda look: look.error / look.tolerance, default=None
        )
        values = [current.get(name, torch.nan) for name in BEFORE]
        values += [around.last.get(name, torch.nan) for name in AFTER]
        values += [torch.nan if worst is None else getattr(worst, name) for name in LOOK]
        device = self._device
        return torch.stack([torch.as_tensor(v, dtype=torch.float64, device=device) for v in values])

    def _looks_of_step(self) -> list[Any]:
        """Return the looks at clipping in the step that is under way."""
        return [look for look in self._record.looks if look.step == self._record.step]

    def _publish(self) -> None:
        """Send the others what no row of numbers says: events, and causes of sums that are off."""
        new = self._record.events[self._published :]
        names = self._record.names
        message = {
            "events": [asdict(event) for event in new if event.kind != "seeded"],
            "causes": [
                {cause.format(names=names): moves for cause, moves in look.causes.items()}
                for look in self._looks_of_step()
                if not look.holds
            ],
            "step": self._record.step,
        }
        self._published = len(self._record.events)
        if message["events"] or message["causes"]:
            self.meeting.send(message)

    @harmless
    def _keep(self, together: torch.Tensor) -> None:
        """Keep the sums of all ranks, as of one process."""
        half = self._layout.half
        clip = self._clip()
        sigma = float(self._optimizer.noise_multiplier)
        before = self._tensors_of(together[:, :half])
        after = self._tensors_of(together[:, half : 2 * half])
        self._record.noise.add(before, after, self._effective(sigma) * clip)
        # For shared weights the sum of all ranks is what this rank uses; it is known only now.
        row = together[0 if self._shared else self.meeting.rank]
        size = sum(self._layout.looked[self.meeting.rank])
        clipped = row[:size]
        self._own_last = (clipped, row[half : half + size] - clipped)
        self._noisy = NoisySum(clip, sigma)
        self._sums_told = None
        if self._canaries is not None:
            rows = zip(together, self._riding[: len(together)], strict=True)
            looks = torch.cat([row[2 * half :][:count] for row, count in rows])
            self._canaries.score(looks, self._effective(sigma))
            self._ridden = None

    def _tensors_of(self, together: torch.Tensor) -> list[torch.Tensor]:
        """Return the numbers of each tensor in rows that were joined, without empty ones."""
        tensors: list[torch.Tensor] = []
        for row, counts in zip(together, self._layout.looked[: len(together)], strict=True):
            tensors += row[: sum(counts)].split(list(counts))
        return [tensor for tensor in tensors if len(tensor)]

    # ------------------------------------------------------------------------ the chain of a step

    def _summed(self) -> list[torch.Tensor]:
        """Return the clipped sums of this rank."""
        return [p.summed_grad.detach() for p in self._params]

    def _kept_sums(self) -> Any:
        return self._told_of_sums(self._summed())

    def _told_of_sums(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return what this rank tells of its sums."""
        return self._sampled(tensors) * self._averaged

    def _sampled(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the numbers of tensors that are looked at."""
        parts = [
            shard(tensor.detach()).reshape(-1)[places]
            for tensor, places in zip(tensors, self._looked_at, strict=True)
        ]
        return torch.cat(parts).float()

    def _last(self) -> tuple[Any, Any]:
        return self._own_last

    @harmless
    def _after_noise(self, kept: Any) -> None:
        if kept is None:
            return
        noisy = [p.grad for p in self._params]
        self._sums_told = (kept, self._told_of_sums(noisy))
        if self._canaries is not None:
            self._ridden = self._canaries.look([shard(tensor.detach()) for tensor in noisy])

    @harmless
    def _before_step(self, *args: Any) -> None:
        if self._sums_told is not None and self._depth == 0:
            self._record.see("replaced", self._meeting_at)
            self._over = True
            return
        super()._before_step(*args)

    def _is_due(self) -> bool:
        return self._rules.gradients is not None and due(self.meeting.steps + 1)

    # ---------------------------------------------------------------------------------- canaries

    def _placed_canaries(self, n: int, seed: int | None) -> Canaries:
        """Return canaries on the weights of all ranks; they are looked at where these are."""
        facts = self.meeting.facts
        if self._shared:
            self._riding = [n for _ in facts]
            return Canaries(n, sizes=facts[0]["sizes"], seed=seed)
        sizes = [size for fact in facts for size in fact["sizes"]]
        counts = spread(n, sizes)
        ends = [0, *accumulate(len(fact["sizes"]) for fact in facts)]
        self._riding = [sum(counts[first:last]) for first, last in pairwise(ends)]
        rank = self.meeting.rank
        return Canaries(n, sizes=sizes, seed=seed, own=(ends[rank], ends[rank + 1]))

    def _ride(self, **options: Any) -> None:
        adds = not self._shared or self.meeting.rank == 0
        super()._ride(divisor=self._averaged, adds=adds, **options)

    # ------------------------------------------------------------------------------------- result

    def _seen(self) -> Seen:
        seen = super()._seen()
        messages, lost = self._messages()
        events = [*lost, *joined.events_of(message for of in messages for message in of)]
        seen = replace(seen, events=[*dict.fromkeys(events), *self._own_events(seen)])
        if not self._rows or not seen.steps:
            return seen
        rows = torch.stack(self._rows[: seen.steps]).cpu().numpy()
        watched = (rows[:, :, 0] == WATCHING).all(1)
        seen = joined.cut(seen, len(rows) if watched.all() else int(watched.argmin()))
        if not seen.steps or seen.around is None:
            return seen
        # Each row begins with how its rank is, and how many messages it has sent.
        return self._seen_together(seen, rows[: seen.steps, :, 2:], joined.causes_of(messages))

    def _seen_together(self, seen: Seen, rows: Any, causes: Mapping[tuple[int, int], Any]) -> Seen:
        """Return what all ranks have seen, from their rows in each step."""
        assert seen.around is not None
        sizes = self._layout.sizes(rows)
        total = np.where((sizes >= 0).all(1), sizes.sum(1), -1)
        real = self._layout.reals(rows)
        parts = self._layout.fingerprints(rows)
        self._comparable = self._can_compare(seen, parts)
        has_examples = self._comparable and all(part is not None for step in parts for part in step)
        ranks = Ranks(
            sizes=sizes,
            noise=joined.noise(real),
            twice=np.array([joined.twice(step) if has_examples else -1 for step in parts]),
            shared=self._shared,
        )
        batches = Batches(
            tuple(None if size < 0 else int(size) for size in total),
            tuple(np.concatenate(step) if has_examples else None for step in parts),
        )
        return replace(
            seen,
            names=self._names_of_all(seen.names),
            batches=batches,
            around=joined.around(seen.around, total, real),
            looks=joined.looks(real, causes),
            events=[*seen.events, *joined.apart_clips(real, shared=self._shared)],
            ranks=ranks,
        )

    def _own_events(self, own: Seen) -> list[Event]:
        """Return the events that only this rank knows."""
        seeds = [event for event in self._record.events if event.kind == "seeded"]
        unpublished = self._record.events[self._published :]
        late = own.events[len(self._record.events) :]
        return [*seeds, *(event for event in unpublished if event.kind != "seeded"), *late]

    def _can_compare(self, own: Seen, parts: Sequence[Any]) -> bool:
        """Return whether the fingerprints of all ranks tell examples apart."""
        if self._loader is None:
            return False
        flat = [part for step in parts for part in step]
        world = self.meeting.world
        rates = [(step.rate or 0.0) / world for step in own.told for _ in range(world)]
        return are_examples(flat, rates, self._loader.dataset)

    def _names_of_all(self, names: Sequence[str]) -> list[str]:
        """Return the names of the tensors that are looked at, of all ranks together."""
        return [name for name, size in zip(names, self._layout.looked[0], strict=True) if size]

    def _messages(self) -> tuple[list[list[Any]], list[Event]]:
        """Return each rank's messages, also of earlier processes, and an event if some are lost."""
        try:
            messages = self.meeting.read()
        except RuntimeError as error:  # the process that keeps the messages has ended
            lost = Event("unwatched", None, f"what other ranks saw is lost ({error})")
            return [list(former) for former in self._heard], [lost]
        return list(self._with_former(messages)), []

    def _with_former(self, messages: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
        """Yield each rank's messages, those of earlier processes first."""
        for former, new in zip(self._heard, messages, strict=True):
            yield [*former, *new]

    # ------------------------------------------------------------------------------------- resumed

    def _content(self) -> dict[str, Any]:
        """Return what was seen so far on all ranks, for the checkpoint of any of them."""
        return {
            **super()._content(),
            "rows": [row.cpu() for row in self._rows],
            "heard": list(self._with_former(self.meeting.read())),
        }

    def _check(self, content: Mapping[str, Any]) -> int:
        parts = {key: part for key, part in content.items() if key not in saved.RANK_PARTS}
        steps = super()._check(parts)
        saved.check_ranks(content, steps, (self.meeting.world, self._layout.length + 2))
        return steps

    def _take(self, content: Mapping[str, Any]) -> None:
        """Go on from audits of earlier processes; all ranks do, or none."""
        super()._take(content)
        self._rows = [torch.from_numpy(row).to(self._device) for row in content["rows"]]
        self._heard = [list(messages) for messages in content["heard"]]
        self._published = len(self._record.events)

    def _unlooked(self) -> list[str]:
        counts = self._layout.looked[: 1 if self._shared else None]
        missing = self._numbers - sum(map(sum, counts))
        unlooked = super()._unlooked()
        if missing > 0:
            unlooked.insert(0, f"the noise of {missing} of {self._numbers} weights")
        return unlooked


def _look_at_nothing() -> None:
    """Do nothing before ranks meet."""


def _meeting_about(facts: Mapping[str, Any]) -> Meeting:
    """Return a meeting of all ranks about these facts of an optimizer, or refuse the optimizer."""
    try:
        return Meeting(facts)
    except CannotMeet as reason:
        raise CannotAttach(f"optimizer is {facts['kind']}: {reason}") from None


def _check_alike(facts: Sequence[Mapping[str, Any]], names: Sequence[str], canaries: int) -> None:
    """Raise CannotAttach if ranks differ in these facts, or in their canaries."""
    if any(fact[name] != facts[0][name] for fact in facts for name in names):
        raise CannotAttach("the ranks have different optimizers or models")
    if any(fact["canaries"] != canaries for fact in facts):
        raise CannotAttach("the ranks have different numbers of canaries")


def _room(optimizer: Any, loader: Any) -> int:
    """Return the most examples that a rank tells of; hardly any batch has more."""
    mean = optimizer.expected_batch_size
    if mean is None and loader is not None:
        mean = len(loader.dataset) * getattr(loader, "sample_rate", 1 / max(len(loader), 1))
    return 0 if not mean else int(2 * mean + 10 * mean**0.5 + 10)
