"""The card of a training: questions of the person who signs for it, and their answers.

The audit answers the questions that it can. Those who trained answer the others, which are "not
given" until then.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from oraudit.records import Seen
from oraudit.report.facts import Facts
from oraudit.report.words import epsilon_words

__all__ = ["NOT_GIVEN", "QUESTIONS", "answered", "asked", "filled", "libraries"]

#: The answer to a question that nobody has answered.
NOT_GIVEN = "not given"

#: The questions of a card, by the keys of ``card=``.
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

#: The libraries whose versions the card has, if they are loaded.
_LIBRARIES = ("numpy", "torch", "opacus", "jax", "optax", "transformers")


def asked(
    seen: Seen | None, *, delta: float, epsilon: float | None, training: str
) -> dict[str, str]:
    """Return all questions, with the answers that the audit knows."""
    answers = dict.fromkeys(QUESTIONS, NOT_GIVEN)
    answers["libraries"] = libraries()
    if training:
        answers["training"] = training
    if epsilon is not None:
        answers["epsilon"] = epsilon_words(epsilon)
    examples = None
    if seen is not None:
        examples = seen.examples
        if seen.noise is not None:
            answers["weights"] = f"{seen.noise.sizes.sum():,} in {len(seen.noise.sizes)} tensors"
        if examples is not None:
            answers["examples"] = f"{examples:,}"
    answers["delta"] = f"{delta:g}; {_against(delta, examples)}"
    return answers


def _against(delta: float, examples: int | None) -> str:
    """Compare δ with 1/N."""
    if examples is None:
        return "N is not given"
    share = 1 / examples
    if delta < share:
        return f"less than 1/N = {share:.2g}"
    return f"NOT less than 1/N = {share:.2g}"


def libraries() -> str:
    """Return the versions of the libraries that are loaded here."""
    versions = []
    for name in ("oralib", *(name for name in _LIBRARIES if name in sys.modules)):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"Python {sys.version.split()[0]}", *versions])


def answered(answers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the card as pairs of a question in full and its answer."""
    return tuple((QUESTIONS[key], answer) for key, answer in answers.items())


def filled(facts: Facts, answers: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the card with answers of those who trained; answers of the audit stay as they are."""
    card = dict(facts.card)
    for key, answer in answers.items():
        if not isinstance(key, str) or not key.strip():
            raise ValueError(f"card has the key {key!r}; it must be a question, such as 'model'")
        question = QUESTIONS.get(key, " ".join(key.split()))
        line = " ".join(str(answer).split())
        before = card.get(question, NOT_GIVEN)
        if before not in (NOT_GIVEN, line):
            raise ValueError(
                f"card says {line!r} to {key!r}, where the audit knows {before!r}: leave it out"
            )
        card[question] = line
    return tuple(card.items())
