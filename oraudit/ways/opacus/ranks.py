"""The processes of a distributed training, its ranks, tell each other what each has seen.

They meet once in each private step, at a point that all of them pass: one sum, or one gathering,
of the numbers that are looked at, and one gathering of a row of counts. A rank never waits for one
that does not come. Before the first step each rank writes into the store of the process group that
it is there; if one is missing, no rank meets. A rank that leaves tells the others at one more
meeting, and all stop at the next step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import distributed

__all__ = ["FAILED", "LEAVING", "WATCHING", "CannotMeet", "Ended", "Meeting"]

#: The seconds to wait for a rank where nothing else makes ranks wait for each other.
PATIENCE = 60.0

#: The seconds to wait for the first rank after the training, when it may evaluate alone.
LONG_PATIENCE = 3600.0

#: The state that a rank tells of itself in each step.
WATCHING = 0
FAILED = 1
LEAVING = 2


class CannotMeet(RuntimeError):
    """The ranks cannot tell each other what they see; the text says why."""


class Ended(Exception):
    """The ranks meet no more; the text says why."""


class Meeting:
    """The meeting of all ranks of a process group; made on each of them at the same time.

    Parameters
    ----------
    facts
        The facts of this rank, told before the first step; :attr:`facts` has the facts of all.
    """

    def __init__(self, facts: Any) -> None:
        if not distributed.is_available() or not distributed.is_initialized():
            raise CannotMeet("there is no process group")
        self.rank = distributed.get_rank()
        self.world = distributed.get_world_size()
        self._store = distributed.distributed_c10d._get_default_store()
        number = self._store.add(f"oraudit/{self.rank}/audits", 1)
        self._name = f"oraudit/{number}"
        try:
            self.facts = self._assemble(facts)
        except RuntimeError as error:
            if isinstance(error, CannotMeet):
                raise
            raise CannotMeet(f"the store of the process group does not answer ({error})") from None
        self.ended = ""
        self.steps = 0
        self._sent = 0
        self._last: torch.Tensor | None = None
        self._messages: list[list[Any]] = [[] for _ in range(self.world)]

    def _key(self, topic: str, rank: int) -> str:
        return f"{self._name}/{topic}/{rank}"

    def _assemble(self, facts: Any) -> list[Any]:
        """Exchange the facts of all ranks; raise CannotMeet, on all alike, if one is missing."""
        self._store.set(self._key("facts", self.rank), json.dumps(facts))
        missing = self._wait("facts")
        # The first rank to write its list decides for all.
        wanted = json.dumps(missing)
        absent = json.loads(self._store.compare_set(f"{self._name}/absent", "", wanted))
        if absent:
            names = ", ".join(str(rank) for rank in absent)
            plural = "s" if len(absent) > 1 else ""
            raise CannotMeet(
                f"rank{plural} {names} attached no audit within {PATIENCE:.0f} s: attach one on "
                "every rank"
            )
        return [json.loads(self._store.get(self._key("facts", r))) for r in range(self.world)]

    def _wait(self, topic: str) -> list[int]:
        """Wait until all ranks have written their part; return the ranks that have not."""
        keys = [self._key(topic, rank) for rank in range(self.world)]
        self._poll(lambda: self._store.check(keys), PATIENCE)
        return [rank for rank, key in enumerate(keys) if not self._store.check([key])]

    def _poll(self, arrived: Callable[[], bool], patience: float) -> None:
        """Wait in short sleeps, so that signals arrive in between."""
        end = time.monotonic() + patience
        while not arrived() and time.monotonic() < end:
            time.sleep(0.02)

    # ------------------------------------------------------------------------------- in each step

    def hear(self) -> None:
        """Read the states of all ranks in the last step; raise Ended on all if one stopped."""
        if self.ended:
            raise Ended(self.ended)
        if self._last is None:
            return
        states = self._last[:, 0].tolist()
        for rank, state in enumerate(states):
            if state == FAILED:
                self.ended = f"the audit of rank {rank} met an error"
            if state == LEAVING:
                self.ended = f"the audit of rank {rank} was taken off"
        if self.ended:
            raise Ended(self.ended)

    def send(self, message: Any) -> None:
        """Leave a message that all ranks can read after the step."""
        self._store.set(f"{self._key('message', self.rank)}/{self._sent}", json.dumps(message))
        self._sent += 1

    def read(self) -> list[list[Any]]:
        """Return the messages of each rank that were sent before it met the others last."""
        counts = [0] * self.world if self._last is None else self._last[:, 1].tolist()
        for rank, count in enumerate(counts):
            for number in range(len(self._messages[rank]), count):
                message = self._store.get(f"{self._key('message', rank)}/{number}")
                self._messages[rank].append(json.loads(message))
        return self._messages

    def add_up(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the sum of all ranks' numbers."""
        distributed.all_reduce(numbers)
        return numbers

    def gather(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return a table with a row of numbers for each rank; all must give equally many."""
        table = numbers.new_empty((self.world, *numbers.shape))
        distributed.all_gather(list(table.unbind()), numbers)
        return table

    def tell(self, counts: torch.Tensor, state: int = WATCHING) -> torch.Tensor:
        """Tell all ranks the state of this one, how many messages it has sent, and its counts.

        Return the rows of all ranks, which begin with the state and the number of messages.
        """
        head = torch.tensor([state, self._sent], device=counts.device)
        self._last = self.gather(torch.cat([head, counts]))
        self.steps += 1
        return self._last

    # ------------------------------------------------------------------------------- at the end

    def settle(
        self,
        status: int,
        text: str,
        *,
        worst: Sequence[int],
        well: bool,
        say: Callable[[str], Any],
    ) -> int:
        """Let one rank report, and return the status that all agree on.

        The first rank waits for all, and says the text of a rank with the worst status, by the
        order of ``worst``. If a script has not ended well, it does not wait, as ranks might wait
        for each other in vain: then the first rank that comes here reports.
        """
        try:
            return self._settle(status, text, list(worst), well=well, say=say)
        except RuntimeError:  # the process that keeps the messages has ended
            say(text)
            return status

    def _settle(
        self, status: int, text: str, worst: list[int], *, well: bool, say: Callable[[str], Any]
    ) -> int:
        store = self._store
        everyone = range(self.world)
        agreed = f"{self._name}/agreed"
        ends = [self._key("end", rank) for rank in everyone]
        store.set(ends[self.rank], json.dumps([status, text]))
        if well:
            awaited = ends if self.rank == 0 else [agreed]
            self._poll(lambda: store.check(awaited) or store.check([agreed]), LONG_PATIENCE)
        speaker = store.compare_set(f"{self._name}/speaker", "", str(self.rank))
        if int(speaker) != self.rank:
            if well and store.check([agreed]):
                status = int(store.get(agreed))
            store.set(self._key("parted", self.rank), "")
            return status
        reports = {
            rank: json.loads(store.get(ends[rank]))
            for rank in everyone
            if store.check([ends[rank]])
        }
        rank = min(reports, key=lambda rank: (worst.index(reports[rank][0]), rank))
        status, text = reports[rank]
        differ = len({text for _, text in reports.values()}) > 1
        say(f"rank {rank} of {self.world}\n{text}" if differ else text)
        store.set(agreed, str(status))
        if well:  # this process may keep the messages: it goes last
            parted = [self._key("parted", rank) for rank in everyone if rank != self.rank]
            self._poll(lambda: store.check(parted), PATIENCE / 6)
        return status
