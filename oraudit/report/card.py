"""The card of a training: what somebody who signs for it wants to know, and who said it.

What the audit knows it says; the rest is asked of those who train, and "not given" until they say.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from oraudit.records import Seen
from oraudit.report.facts import Facts
from oraudit.report.words import epsilon_words

__all__ = ["NOT_GIVEN", "QUESTIONS", "answered", "asked", "filled", "libraries"]

NOT_GIVEN = "not given"

#: What is asked, by the keys of ``card=``.
QUESTIONS = {
    "model": "Model",
    "weights": "Trainable weights",
    "data": "Data set",
    "examples": "Examples (N)",
    "commit": "Commit of the code",
    "who": "Who trained it",
    "date": "When",
    "hardware": "Hardware",
    "seeds": "Are the seeds secret?",
    "released": "Are the released weights those that were audited?",
    "training": "Noise, rate and steps",
    "epsilon": "The accountant's ε",
    "delta": "δ against 1/N",
    "libraries": "Libraries",
}

#: Libraries whose versions are told, if they are loaded.
_LIBRARIES = ("numpy", "torch", "opacus", "jax", "optax", "transformers")


def asked(seen: Seen | None, *, delta: float, epsilon: float | None, told: str) -> dict[str, str]:
    """All questions, with the answers that the audit knows."""
    known = dict.fromkeys(QUESTIONS, NOT_GIVEN)
    known["libraries"] = libraries()
    if told:
        known["training"] = told
    if epsilon is not None:
        known["epsilon"] = epsilon_words(epsilon)
    examples = None
    if seen is not None:
        examples = seen.examples
        if seen.noise is not None:
            known["weights"] = f"{seen.noise.sizes.sum():,} in {len(seen.noise.sizes)} tensors"
        if examples is not None:
            known["examples"] = f"{examples:,}"
    known["delta"] = f"{delta:g}; {_against(delta, examples)}"
    return known


def _against(delta: float, examples: int | None) -> str:
    if examples is None:
        return "N is not given"
    share = 1 / examples
    than = "less than" if delta < share else "NOT less than"
    return f"{than} 1/N = {share:.2g}"


def libraries() -> str:
    """The versions of the libraries that are loaded here."""
    found = []
    for name in ("oralib", *(name for name in _LIBRARIES if name in sys.modules)):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"Python {sys.version.split()[0]}", *found])


def answered(known: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The card as pairs of a question in full and its answer."""
    return tuple((QUESTIONS[key], answer) for key, answer in known.items())


def filled(facts: Facts, given: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The card with answers of those who train; what the audit knows they cannot change."""
    card = dict(facts.card)
    for key, answer in given.items():
        if not isinstance(key, str) or not key.strip():
            raise ValueError(f"card has the key {key!r}; it must be a question, such as 'model'")
        question = QUESTIONS.get(key, " ".join(key.split()))
        words = " ".join(str(answer).split())
        before = card.get(question, NOT_GIVEN)
        if before not in (NOT_GIVEN, words):
            raise ValueError(
                f"card says {words!r} to {key!r}, where the audit knows {before!r}: leave it out"
            )
        card[question] = words
    return tuple(card.items())
