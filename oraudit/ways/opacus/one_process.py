"""The audit of a training with Opacus in one process: its result, and its saved state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oraudit.canaries.counted import Counted
from oraudit.records import Batches, Earlier, Event, Seen
from oraudit.records.seal import opened, sealed
from oraudit.report import Result, judge
from oraudit.ways.opacus import saved
from oraudit.ways.opacus.audited import release, take_over
from oraudit.ways.opacus.hooks import remove_hooks
from oraudit.ways.opacus.inputs import are_examples
from oraudit.ways.opacus.steps import WatchedSteps

__all__ = ["OpacusAudit"]


class OpacusAudit(WatchedSteps):
    """An audit that stands around a private optimizer of Opacus; :func:`oraudit.attach` makes it.

    Parameters
    ----------
    optimizer, model, loader
        The parts that ``make_private`` has returned; the latter two may be None.
    allow
        Names of findings that are post-processing and meant.
    earlier
        Audits of trainings in this process that came before; None if they are not known.
    options
        The canaries, their seed and the claim, as for :func:`oraudit.attach`.

    Examples
    --------
    >>> audit = OpacusAudit(optimizer, model, loader)  # doctest: +SKIP
    >>> train(model, optimizer, loader)  # doctest: +SKIP
    >>> audit.result().check()  # doctest: +SKIP
    """

    #: The kind of audit that a saved state is of.
    _saved_as = "OpacusAudit"

    def __init__(
        self,
        optimizer: Any,
        model: Any = None,
        loader: Any = None,
        *,
        allow: Sequence[str] = (),
        earlier: Sequence[OpacusAudit] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(optimizer, model, loader, **options)
        self._allow = tuple(allow)
        self._earlier = None if earlier is None else list(earlier)
        self._comparable = False
        self._ended: Seen | None = None
        take_over(optimizer.original_optimizer, self)
        self._stand_around()

    def detach(self) -> None:
        """Take the audit off: the optimizer is as it was. The result stays."""
        if self._ended is not None:
            return
        try:
            self._ended = self._seen()
        except Exception as error:
            # The training may be on its way out with an error of its own.
            self._record.see("unwatched", f"{type(error).__name__}: {error}")
            self._ended = self._seen_without_noise()
        remove_hooks(self._handles)
        release(self._optimizer.original_optimizer)
        self._chain.leave()

    # ------------------------------------------------------------------------------------- result

    def result(self) -> Result:
        """Return the result so far; the training may go on."""
        seen = self._seen_until_now()
        counts = self._counted()
        return judge(seen, counts=counts, unlooked=self._unlooked(), allow=self._allow)

    def _counted(self) -> Counted | None:
        """Return the counts of the canaries' scores, if there are any."""
        if self._canaries is None:
            return None
        return self._canaries.counted(self._record.told, claim=self._record.claim)

    def _seen_until_now(self) -> Seen:
        """Return what was seen so far, or until the audit was taken off."""
        return self._seen() if self._ended is None else self._ended

    def _seen(self) -> Seen:
        """Return what was seen so far, with events that only a comparison at the end shows."""
        events = self._weights.changes() + self._chain_events()
        batches = self._record.batches
        if self._loader is not None and self._record.told:
            rates = [step.rate or 0.0 for step in self._record.told]
            fingerprints = batches.finished().fingerprints
            batches.comparable = are_examples(fingerprints, rates, self._loader.dataset)
            self._comparable = batches.comparable
        seen = self._record.finished()
        batches.comparable = True
        earlier = [training.as_earlier(self) for training in self._earlier or ()]
        return replace(
            seen,
            events=(*seen.events, *events),
            earlier=[training for training in earlier if training is not None],
        )

    def _seen_without_noise(self) -> Seen:
        """Return what the host has, without asking a device, which may be lost."""
        steps = tuple(self._record.told)
        no_batches = Batches((None,) * len(steps), (None,) * len(steps))
        events = tuple(self._record.events)
        return Seen(self._record.names, steps, None, (), no_batches, events, None, None)

    def _chain_events(self) -> list[Event]:
        """Return events for steps that were not watched, and for what the accountant was told."""
        events = []
        steps = len(self._record.told)
        if self._stepped + self._resumed != steps and steps:
            text = f"the optimizer stepped {self._stepped} times in {steps} private steps"
            events.append(Event("unwatched", None, text))
        if self._account is not None and steps:
            events.append(Event("accountant-told", None, "", self._account.all_told(steps)))
            if self._account.earlier:
                events.append(Event("earlier-steps", None, "", self._account.earlier))
        return events

    # -------------------------------------------------------------------------- not looked at

    def _unlooked(self) -> list[str]:
        """Return what was not looked at, as the report says it."""
        unlooked = []
        if self._canaries is not None and self._canaries.unusable:
            unlooked.append(f"counts ({self._canaries.unusable})")
        unlooked += self._unlooked_around()
        if self._inner is None:
            unlooked.append("buffers and weights of no private optimizer (no model was given)")
        if self._record.told and not self._rules.compared:
            subject = "ghost clipping" if self._ghost else "the layers' rules"
            reason = self._rules.reason
            unlooked.append(f"{subject}, and whether examples depend on each other ({reason})")
        return unlooked

    def _unlooked_around(self) -> list[str]:
        """Return what was not looked at of the accountant, the batches and other trainings."""
        unlooked = []
        earlier_steps = 0 if self._account is None else (self._account.earlier or 0)
        if earlier_steps:
            unlooked.append(f"the {earlier_steps} steps that the accountant knew before")
        if self._account is None:
            unlooked.append("the accountant (none was found in the optimizer's step hook)")
        if self._loader is None:
            unlooked.append("the rate and the batches (attach was not given the loader)")
        elif self._fills_empty():
            unlooked.append("the batches (rand_on_empty puts random examples into empty ones)")
        elif self._record.told and not self._comparable:
            unlooked.append("which examples are in a batch (inputs do not tell them apart)")
        if len(self._rates) > 1:
            unlooked.append("what decides the learning rate")
        if self._earlier is None:
            unlooked.append("other trainings of this process")
            return unlooked
        apart = sum(self._spends_apart(training) for training in self._earlier)
        if apart:
            also = "another" if apart == 1 else f"{apart} others"
            unlooked.append(f"what this training and {also} on its data spend together")
        return unlooked

    # ------------------------------------------------------------------------------ other trainings

    def as_earlier(self, later: OpacusAudit) -> Earlier | None:
        """Return this training as one that came before another in the same process."""
        seen = self._seen_until_now()
        if seen.noise is None or not later._weights.begun:
            return None
        goes_on = later._weights.goes_on_from(self._weights)
        return Earlier(seen.steps, seen.noise.sizes, seen.noise.sample, goes_on)

    def _spends_apart(self, other: OpacusAudit) -> bool:
        """Return whether another training has the same data and another accountant."""
        accountant = None if self._account is None else self._account.accountant
        other_accountant = None if other._account is None else other._account.accountant
        data = None if self._loader is None else self._loader.dataset
        if data is None or other._loader is None:
            return False
        return other._loader.dataset is data and accountant is not other_accountant

    # ------------------------------------------------------------------------------------- resumed

    def state_dict(self) -> dict[str, Any]:
        """Return what was seen so far, for the training's checkpoint; ``torch.save`` takes it."""
        return saved.with_tensors(sealed(self._saved_as, saved.with_arrays(self._content())))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from an audit of an earlier process, whose training is resumed.

        Raises ValueError, before anything is used, for a state that is not as it was saved.
        """
        content = opened(self._saved_as, saved.with_arrays(state))
        self._check(content)
        self._take(content)

    def _content(self) -> dict[str, Any]:
        """Return all that is saved, in lists, numbers, words and arrays."""
        return {
            "record": self._record.state(),
            "account": None if self._account is None else self._account.state(),
            "moved": self._weights.state(),
            "canaries": None if self._canaries is None else self._canaries.state(),
        }

    def _check(self, content: Mapping[str, Any]) -> int:
        """Check that an audit of this model can have saved this; return its number of steps."""
        canary_count = 0 if self._canaries is None else self._canaries.n
        weight_count = 0 if self._canaries is None else self._canaries.weights
        return saved.check_content(content, self._record.names, canary_count, weight_count)

    def _take(self, content: Mapping[str, Any]) -> None:
        """Go on from a state that :meth:`_check` has accepted."""
        self._record.load(content["record"])
        if self._canaries is not None:
            self._canaries.load(content["canaries"])
        self._resumed = len(self._record.told)
        self._alarmed_events = len(self._record.events)
        self._weights.load(content["moved"])
        if self._account is not None and content["account"] is not None:
            self._account.load(content["account"])
