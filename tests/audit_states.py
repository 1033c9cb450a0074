"""Every state that a report can be in: how it comes about, and its exit status.

``audit_states.txt`` has their reports in full. What a sentence, a tone or a number becomes is seen
there as a changed line. ``python tests/audit_states.py`` writes it anew.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from oralib import Training
from oraudit.canaries.counted import Bound, Counted, StatedTest
from oraudit.records import Event, Look, Seen, Told
from oraudit.records.batches import Batches
from oraudit.records.noise import NoiseRecord
from oraudit.report import Result, counts_verdict, judge, judge_counts, refused

TABLE = Path(__file__).with_suffix(".txt")

#: The function by which a report proposes numbers of canaries, for tests to replace.
EXPECT = "oraudit.report.counts_verdict.expect"

#: N, and the steps of a training.
EXAMPLES = 400
STEPS = 40

CLAIM = (7.0, 1e-5)


# ------------------------------------------------------------------------- what a witness has seen


def noise_of(steps=STEPS, share=1.0, sizes=(1500, 300), sigma=2.0, seed=1):
    """Noise of this share of what was told, beside clipped sums."""
    rng = np.random.default_rng(seed)
    record = NoiseRecord()
    for _ in range(steps):
        clipped = [rng.normal(size=size).astype(np.float32) for size in sizes]
        noises = [rng.normal(scale=share * sigma, size=size) for size in sizes]
        noisy = [(one + two).astype(np.float32) for one, two in zip(clipped, noises, strict=True)]
        record.add(clipped, noisy, sigma)
    return record.finished(steps)


def batches_of(steps=STEPS, rate=0.15, size=None, same=False, seed=2):
    """Poisson batches, or such of one size; equal inputs make fingerprints tell nothing."""
    rng = np.random.default_rng(seed)
    prints = rng.integers(2**62, size=EXAMPLES)
    if same:
        prints[:] = 7
    drawn = []
    for _ in range(steps):
        chosen = rng.random(EXAMPLES) < rate
        if size is not None:
            chosen = rng.permutation(EXAMPLES) < size
        drawn.append(prints[chosen])
    return Batches(tuple(len(each) for each in drawn), tuple(drawn))


def looks_of(steps=12, **changes):
    """Looks at clipping that find nothing."""
    look = Look(1, error=1e-7, tolerance=1e-4, largest=1.0)
    return tuple(replace(look, step=step, **changes) for step in range(1, steps + 1))


def unknown_batches(steps=STEPS):
    return Batches((None,) * steps, (None,) * steps)


HONEST = Seen(
    names=["body", "head"],
    told=(Told(1.0, 2.0, 0.15),) * STEPS,
    noise=noise_of(),
    looks=looks_of(),
    batches=batches_of(),
    events=(Event("accountant-told", None, number=STEPS),),
    examples=EXAMPLES,
    claim=None,
)

#: Nothing is known but the steps.
BARE = replace(
    HONEST, noise=None, looks=(), batches=unknown_batches(), events=(), examples=None, names=[]
)


def with_events(*events, seen=HONEST):
    return replace(seen, events=(*seen.events, *events))


NO_STEP = replace(BARE, told=(), batches=Batches((), ()))
CLAIMED = replace(HONEST, claim=CLAIM)
OFF = looks_of(3, error=0.2)
HALF_NOISE = replace(HONEST, noise=noise_of(share=0.5))
PLAIN_STEP = Event("plain-step", 5)
SAFER = Event("accountant-told", None, number=10)
SCALE = Event("buffer-changed", 7, "average")
REPLACED = Event("replaced", None, "step")


# ------------------------------------------------------------------------------- what counts say


TRAINING = (Training(2.4224, 0.1, 100),)
POWER = {0.9: 0.001, 0.8: 0.02, 0.7: 0.13, 0.6: 0.5, 0.5: 0.957}
BOUND = Bound(0.4967, 1e-5, right=79, guesses=127, largest=1.312)
TEST = StatedTest(94, 158, need=129, epsilon=1.2, p_value=0.4, refuted=False, power=POWER)
REFUTED = replace(TEST, right=140, p_value=0.001, refuted=True)
HOPELESS = replace(TEST, right=20, guesses=20, need=None, epsilon=None, p_value=None, power={})
UNKNOWN = replace(TEST, power={})
WEAK = replace(TEST, right=10, guesses=16, need=15, power={0.7: 0.04, 0.5: 0.1})
COUNTED = Counted(1000, 0.05, "scores", BOUND, test=TEST, training=TRAINING)
SUM = replace(COUNTED, origin="sum", share_of_norm=0.04186, sees="log-likelihood ratios")
LOW = replace(BOUND, right=12, guesses=20)
FEW = replace(COUNTED, canaries=30, bound=LOW, test=WEAK)
ONE = replace(COUNTED, canaries=1, bound=replace(BOUND, right=1, guesses=1))
BLACK_BOX = replace(COUNTED, training=None, test=UNKNOWN, claim=(2.0, 1e-5))
HIGH = replace(BOUND, epsilon=2.6039, right=120, largest=3.0)


def expect(training, canaries, *, beta, delta, side):
    """In place of ``oraudit.expect``, which the exact law would take minutes for."""
    assert training == TRAINING
    assert (beta, delta) == (0.05, 1e-5)
    power = {100: 0.2, 200: 0.48, 500: 0.5, 1000: 0.95}.get(canaries, 1.0)
    return SimpleNamespace(power={0.5: power if side == "both" else 0.3})


def expect_nothing(training, canaries, *, beta, delta, side):
    """As of a law that is not known."""
    return SimpleNamespace(power={})


# ------------------------------------------------------------------------------------- the states


@dataclass(frozen=True)
class State:
    """How a report comes about, and the exit status that it must have."""

    exit: int
    make: Callable[[], Result]
    expect: Any = expect


def seen(exit_status, what, **how):
    return State(exit_status, partial(judge, what, **how))


def scores(exit_status, what, expect=expect, **how):
    return State(exit_status, partial(judge_counts, what, **how), expect)


def made(exit_status, make):
    return State(exit_status, make)


def with_noise(**changes):
    return replace(HONEST, noise=replace(HONEST.noise, **changes))


def kinds_of_steps(number):
    told = tuple(Told(1.0, 2.0 + (step % number) / 1000, 0.15) for step in range(STEPS * 3))
    return replace(BARE, told=told, batches=unknown_batches(len(told)))


def several_looks():
    return (*looks_of(6), *looks_of(6, largest=0.9))


STATES: dict[str, State] = {
    # ------------------------------------------------------------------------------- the witness
    "no step": seen(3, NO_STEP),
    "no step, and something else": seen(3, with_events(PLAIN_STEP, seen=NO_STEP)),
    "honest": seen(0, HONEST),
    "honest, claim met": seen(0, CLAIMED),
    "honest, claim at another δ": seen(0, replace(HONEST, claim=(3.13, 1e-6))),
    "claim not met": seen(1, replace(HONEST, claim=(1.0, 1e-5))),
    "no loader and no model": seen(
        0,
        replace(HONEST, batches=unknown_batches(), looks=()),
        unlooked=("the rate and the batches (no loader)", "buffers (no model)", "clipping"),
    ),
    "nothing is known but steps": seen(0, BARE),
    "more than the way in says": seen(0, BARE, unlooked=("buffers (no model)",)),
    "rates not given": seen(0, replace(HONEST, told=(Told(1.0, 2.0),) * STEPS)),
    "number of examples not given": seen(0, replace(HONEST, examples=None)),
    "one step": seen(
        0,
        replace(
            HONEST,
            told=HONEST.told[:1],
            noise=noise_of(1),
            looks=looks_of(1),
            batches=batches_of(1),
            events=(),
        ),
    ),
    "one small tensor": seen(0, replace(HONEST, noise=noise_of(sizes=(60,)))),
    "just enough numbers": seen(0, replace(HONEST, noise=noise_of(sizes=(5,)))),
    "a tensor without numbers": seen(0, replace(HONEST, noise=noise_of(sizes=(1500, 0)))),
    "noise not finite": seen(1, with_noise(squares=np.full((STEPS, 2), np.inf))),
    "noise not finite at once": seen(
        1,
        with_noise(squares=np.where(np.arange(STEPS)[:, None] == 3, np.inf, HONEST.noise.squares)),
    ),
    "less private": seen(1, HALF_NOISE),
    "no noise": seen(1, replace(HONEST, noise=noise_of(share=0.0))),
    "no noise told": seen(1, replace(HONEST, told=(Told(1.0, 0.0, 0.15),) * STEPS)),
    "no noise told at one step": seen(
        1, replace(HONEST, told=(Told(1.0, 0.0, 0.15), *HONEST.told[1:]))
    ),
    "hardly any noise told": seen(0, replace(BARE, told=(Told(1.0, 0.15, 0.15),) * STEPS)),
    "safer only": seen(0, with_events(SAFER)),
    "noise safer": seen(0, replace(HONEST, noise=noise_of(share=2.0))),
    "side unknown": seen(1, replace(HONEST, looks=OFF)),
    "a cause": seen(1, replace(HONEST, looks=looks_of(3, error=0.2, causes={"none clipped": 7.0}))),
    "a cause at one look": seen(
        1, replace(HONEST, looks=(*looks_of(3), *looks_of(1, error=0.2, causes={"late": 2.0})))
    ),
    "two looks in a step": seen(0, replace(HONEST, looks=several_looks())),
    "another clip": seen(1, with_events(Event("apart-clip", 3, number=3.0))),
    "examples twice": seen(
        1,
        replace(
            HONEST,
            batches=replace(
                HONEST.batches,
                sizes=tuple(2 * size for size in HONEST.batches.sizes),
                fingerprints=tuple(np.repeat(each, 2) for each in HONEST.batches.fingerprints),
            ),
            told=(Told(1.0, 2.0, 0.3),) * STEPS,
        ),
    ),
    "examples twice, N not given": seen(
        1,
        replace(
            HONEST,
            examples=None,
            batches=replace(
                HONEST.batches,
                fingerprints=tuple(np.repeat(each, 2) for each in HONEST.batches.fingerprints),
            ),
        ),
    ),
    "batches too large": seen(1, replace(HONEST, batches=batches_of(rate=0.3))),
    "batches of one size": seen(1, replace(HONEST, batches=batches_of(size=60))),
    "all batches empty": seen(1, replace(HONEST, batches=batches_of(rate=0.0))),
    "all batches full": seen(
        0, replace(HONEST, batches=batches_of(rate=1.0), told=(Told(1.0, 2.0, 1.0),) * STEPS)
    ),
    "equal inputs": seen(0, replace(HONEST, batches=batches_of(same=True))),
    "rates change": seen(
        0, replace(BARE, told=(Told(1.0, 2.0, 0.1), Told(1.0, 3.0, 0.2)) * (STEPS // 2))
    ),
    "many kinds of steps": seen(0, kinds_of_steps(120)),
    "as many kinds as can be": seen(0, kinds_of_steps(4)),
    "failed and also failed": seen(1, with_events(PLAIN_STEP, seen=HALF_NOISE)),
    "failed and undecided": seen(1, with_events(PLAIN_STEP, REPLACED)),
    "failed and safer": seen(1, with_events(PLAIN_STEP, SAFER)),
    "undecided only": seen(3, with_events(REPLACED)),
    "undecided and safer": seen(3, with_events(REPLACED, SAFER)),
    "may be post-processing": seen(3, with_events(SCALE)),
    "post-processing that is allowed": seen(0, with_events(SCALE), allow=("buffers-outside",)),
    "another name is allowed": seen(3, with_events(SCALE), allow=("weights-outside",)),
    "allowed and undecided": seen(3, with_events(SCALE, REPLACED), allow=("buffers-outside",)),
    "allowed and failed": seen(1, with_events(SCALE, PLAIN_STEP), allow=("buffers-outside",)),
    "a failure cannot be allowed": seen(1, HALF_NOISE, allow=("noise-size",)),
    "half the noise, and a claim not met": seen(1, replace(HALF_NOISE, claim=(1.0, 1e-5))),
    "half the noise, and none at a step": seen(
        1, with_events(Event("earlier-steps"), seen=HALF_NOISE)
    ),
    "the same words once": seen(
        1, with_events(*(Event("accountant-forgot", step, number=3) for step in (5, 9)))
    ),
    "line ends in words": seen(3, with_events(Event("unwatched", 3, "no\nshape <2>  | *x*"))),
    # --------------------------------------------------------------------- a witness and canaries
    "canaries": seen(0, HONEST, counts=SUM),
    "canaries, claim met": seen(0, CLAIMED, counts=SUM),
    "canaries, weak": seen(0, HONEST, counts=replace(SUM, test=WEAK)),
    "canaries, too few": seen(
        0, HONEST, counts=replace(SUM, canaries=20, bound=LOW, test=HOPELESS)
    ),
    "canaries, power not known": seen(0, HONEST, counts=replace(SUM, test=UNKNOWN)),
    "canaries, no claim": seen(0, HONEST, counts=replace(SUM, test=None, training=None)),
    "canaries refute": seen(1, HONEST, counts=replace(SUM, test=REFUTED)),
    "bound above the claim": seen(
        1, replace(HONEST, claim=(2.5, 1e-5)), counts=replace(SUM, bound=HIGH)
    ),
    "bound as the claim": seen(
        0, CLAIMED, counts=replace(SUM, bound=replace(HIGH, epsilon=7.0, largest=8.0))
    ),
    "bound at a smaller δ": seen(
        0,
        replace(CLAIMED, claim=(7.0, 1e-4)),
        counts=replace(SUM, bound=replace(HIGH, epsilon=7.5, largest=8.0)),
    ),
    "bound above the claim of counts": seen(
        1, CLAIMED, counts=replace(SUM, bound=HIGH, claim=(2.5, 1e-5))
    ),
    "canaries refute, and the bound": seen(
        1,
        replace(HONEST, claim=(2.5, 1e-5)),
        counts=replace(SUM, bound=HIGH, test=REFUTED),
    ),
    "failed, canaries not": seen(1, HALF_NOISE, counts=SUM),
    "failed, and canaries refute": seen(1, HALF_NOISE, counts=replace(SUM, test=REFUTED)),
    "undecided, and canaries refute": seen(
        1, with_events(REPLACED), counts=replace(SUM, test=REFUTED)
    ),
    "no step, canaries refute": seen(1, NO_STEP, counts=replace(SUM, test=REFUTED)),
    "no step, canaries do not": seen(3, NO_STEP, counts=SUM),
    "nothing is known but canaries": seen(0, BARE, counts=SUM),
    # --------------------------------------------------------------------------------- scores alone
    "scores": scores(0, COUNTED),
    "scores, claim met": scores(0, replace(COUNTED, claim=(2.0, 1e-5))),
    "scores, claim met exactly": scores(0, replace(COUNTED, claim=(1.8155, 1e-5))),
    "scores, training not of the claim": scores(1, replace(COUNTED, claim=(1.0, 1e-5))),
    "scores refute": scores(1, replace(COUNTED, test=REFUTED)),
    "scores refute, and the bound": scores(
        1, replace(COUNTED, test=REFUTED, bound=HIGH, claim=(2.0, 1e-5))
    ),
    "scores, bound above the claim": scores(
        1, replace(BLACK_BOX, bound=HIGH, test=replace(UNKNOWN, need=150))
    ),
    "scores, weak": scores(3, FEW),
    "scores, weak on one side": scores(3, replace(FEW, side="in")),
    "scores, weak with most canaries": scores(3, replace(FEW, canaries=100_000)),
    "scores, weak and no law": scores(3, FEW, expect=expect_nothing),
    "scores, one weak canary": scores(3, replace(ONE, test=replace(HOPELESS, right=1, guesses=1))),
    "scores, one canary that could": scores(
        3, replace(ONE, test=replace(WEAK, right=0, guesses=1, need=1))
    ),
    "scores, power of a half": scores(0, replace(COUNTED, test=replace(TEST, power={0.5: 0.5}))),
    "scores, power below a half": scores(
        3, replace(COUNTED, test=replace(TEST, power={0.5: 0.4999}))
    ),
    "scores, too few": scores(3, replace(FEW, canaries=20, test=HOPELESS)),
    "scores, power not known": scores(3, replace(COUNTED, test=UNKNOWN)),
    "scores, only a claim": scores(3, BLACK_BOX),
    "scores, only a claim, with power": scores(3, replace(BLACK_BOX, test=TEST)),
    "scores, only a claim, too few": scores(3, replace(BLACK_BOX, test=HOPELESS)),
    "scores, only a claim, refuted": scores(1, replace(BLACK_BOX, test=replace(REFUTED, power={}))),
    "scores, nothing stated": scores(3, replace(COUNTED, test=None, training=None)),
    "scores of a sum": scores(0, SUM, unlooked=("what the file does not say",)),
    "scores, one side": scores(0, replace(COUNTED, side="in")),
    "scores, balanced coins": scores(0, replace(COUNTED, coins="balanced")),
    "scores, examples replaced": scores(0, replace(COUNTED, adjacency="replace")),
    "scores, stretches": scores(
        0, replace(COUNTED, training=(*TRAINING, Training(3.0, 0.2, 1000)), sees="losses")
    ),
    "scores, no bound": scores(0, replace(COUNTED, bound=replace(BOUND, epsilon=0.0, right=60))),
    "scores, one in a thousand": scores(0, replace(COUNTED, beta=0.001)),
    # ------------------------------------------------------------------------------------ the rest
    "refused": made(3, lambda: refused("this optimizer has\nno hook")),
    "interrupted, passed": made(3, lambda: judge(HONEST).interrupted("the script ended early")),
    "interrupted, failed": made(1, lambda: judge(HALF_NOISE).interrupted("the script ended early")),
    "interrupted, undecided": made(3, lambda: judge(NO_STEP).interrupted("the script ended early")),
    "a card": made(
        0,
        lambda: judge(replace(HONEST, claim=(7.0, 0.0025))).with_card(
            {"model": "a small net", "seeds": True, "Was it reviewed?": "yes\nby two"}
        ),
    ),
}


# ------------------------------------------------------------------------------------- in writing


def block(name: str, result: Result) -> str:
    """All that a report says, as lines of the table."""
    facts = result.facts
    lines = [f"=== {name}: exit {result.exit}, {facts.tone}", *facts.text.splitlines()]
    lines.append("tones     " + ", ".join(f"{each.name} {each.tone}" for each in facts.rows))
    lines += [f"{question} {answer}" for question, answer in facts.answers]
    card = [pair for pair in facts.card if pair[1] != "not given" and pair[0] != "Libraries"]
    lines.append("card      " + "; ".join(f"{question}: {answer}" for question, answer in card))
    numbers = [[each.name, each.value, each.error, each.limit] for each in facts.numbers]
    lines.append("numbers   " + "; ".join(" ".join(map(_shown, number)) for number in numbers))
    for each in result.findings:
        measured = " ".join(map(_shown, (each.number, each.error, each.limit)))
        flags = f"{each.allowed_by or '-'} {each.undecided}"
        lines.append(f"finding   {each.name}, {each.side}, step {each.step}, {measured}, {flags}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def table() -> str:
    """The table of all states."""
    blocks = []
    for name, state in STATES.items():
        counts_verdict.expect = state.expect
        blocks.append(block(name, state.make()))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    TABLE.write_text(table(), encoding="utf-8")
