"""The ways into a training: each is public, documented, tried on trainings, saved and loaded.

A way is a folder or a module of oraudit/ways. A new one is found here by itself, and each test that
fails names what it lacks.
"""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oraudit
import oraudit.ways

ROOT = Path(__file__).parent.parent
FOUND = sorted(module.name for module in pkgutil.iter_modules(oraudit.ways.__path__))

#: Classes with a result that stand for an audit where there is none.
STAND_INS = ("Refused",)


@dataclass(frozen=True)
class Way:
    """How a way is tried.

    Attributes
    ----------
    languages
        The ``way`` of its cases in tests/witness.
    needs
        The packages without which it cannot be imported.
    started
        Returns an audit of some steps of an honest training, and a fresh audit of the same.
    """

    languages: tuple[str, ...]
    needs: tuple[str, ...]
    started: Callable[[], tuple[Any, Any]]


def started_loop():
    rng = np.random.default_rng(1)
    audits = [oraudit.Audit(examples=600) for _ in range(2)]
    for _ in range(5):
        gradients = rng.normal(size=(rng.binomial(600, 0.1), 100))
        gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients.sum(0)
        noisy = clipped + rng.normal(scale=2.0, size=100)
        audits[0].step(per_example=gradients, clipped=clipped, noisy=noisy, clip=1.0, sigma=2.0)
    return tuple(audits)


def started_opacus():
    from witness.opacus_loop import Training

    return Training().run(5).audit, Training(seed=5).audit


#: The ways that are tried, by their names in oraudit/ways.
WAYS = {
    "loop": Way(("NumPy", "PyTorch", "JAX"), (), started_loop),
    "opacus": Way(("Opacus",), ("torch", "opacus"), started_opacus),
}


#: The ways as parameters of tests that import them, marked where that takes PyTorch.
IMPORTED = [
    pytest.param(way, marks=pytest.mark.torch) if way in WAYS and WAYS[way].needs else way
    for way in FOUND
]


def tried(way):
    """Return the entry of a way, where its packages are installed."""
    assert way in WAYS, f"oraudit.ways.{way} is not in WAYS of tests/test_audit_ways.py"
    for package in WAYS[way].needs:
        pytest.importorskip(package)
    return WAYS[way]


def audits_of(way):
    """Return the classes of a way that have a result."""
    module = importlib.import_module(f"oraudit.ways.{way}")
    modules = [module]
    for inner in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        modules.append(importlib.import_module(inner.name))
    return [
        thing
        for module in modules
        for name, thing in vars(module).items()
        if isinstance(thing, type)
        and thing.__module__ == module.__name__
        and hasattr(thing, "result")
        and name not in STAND_INS
    ]


def public_names(way):
    """Return the public names of oraudit that lead into a way, each with its module."""
    homes = oraudit._HOMES.items()
    return {name: home for name, home in homes if f"{home}.".startswith(f"oraudit.ways.{way}.")}


@pytest.mark.parametrize("way", FOUND)
def test_every_way_is_public(way):
    assert public_names(way), f"no name of oraudit leads to oraudit.ways.{way}: see _HOMES"


@pytest.mark.parametrize("way", FOUND)
def test_every_way_is_in_the_reference(way):
    reference = (ROOT / "book" / "api-audits.md").read_text()
    for name in public_names(way):
        assert name in oraudit.__all__, f"{name} is not in oraudit.__all__"
        entries = [f"auto{kind}:: oraudit.{name}\n" for kind in ("function", "class")]
        assert any(entry in reference for entry in entries), f"book/api-audits.md lacks {name}"


@pytest.mark.parametrize("way", FOUND)
def test_every_way_shows_an_example(way):
    """Read from the source, as the packages of a way may be missing."""
    for name, home in public_names(way).items():
        path = ROOT.joinpath(*home.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = ast.parse(path.read_text())
        (entry,) = (node for node in tree.body if getattr(node, "name", None) == name)
        assert ">>> " in (ast.get_docstring(entry) or ""), f"{home}.{name} has no example"


@pytest.mark.torch
@pytest.mark.parametrize("way", FOUND)
def test_every_way_has_cases(way):
    """The zoo runs each case, and holds its report against the truth."""
    pytest.importorskip("torch")
    pytest.importorskip("opacus")
    from witness.case import HONEST
    from witness.cases import CASES

    languages = tried(way).languages
    truths = [case.truth for case in CASES if case.way in languages and case.witness]
    assert HONEST in truths, f"no honest training of tests/witness is audited by {way}"
    assert "less private" in truths, f"no broken training of tests/witness is audited by {way}"


@pytest.mark.parametrize("way", IMPORTED)
def test_every_audit_can_be_saved(way):
    tried(way)
    audits = audits_of(way)
    assert audits, f"oraudit.ways.{way} has no class with a result"
    for audit in audits:
        for method in ("state_dict", "load_state_dict"):
            assert hasattr(audit, method), f"{audit.__name__} of {way} has no {method}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", IMPORTED)
def test_saved_audits_go_on(way):
    started, fresh = tried(way).started()
    state = started.state_dict()
    fresh.load_state_dict(state)
    assert fresh.state_dict()["digest"] == state["digest"]
    for damaged in ({}, dict(state, digest="0" * 64), dict(state, format="another")):
        with pytest.raises(ValueError, match="the saved audit is damaged"):
            fresh.load_state_dict(damaged)


@pytest.mark.parametrize("way", IMPORTED)
def test_every_audit_explains_itself(way):
    tried(way)
    for audit in audits_of(way):
        text = vars(audit).get("__doc__") or ""
        assert ">>> " in text, f"{audit.__name__} has no example in its docstring"


def test_ways_write_records_and_know_no_check():
    for path in (ROOT / "oraudit" / "ways").rglob("*.py"):
        assert "oraudit.checks" not in path.read_text(), path.name
    for way in FOUND:
        home = ROOT / "oraudit" / "ways" / way
        files = [home.with_suffix(".py")] if not home.is_dir() else home.rglob("*.py")
        sources = "\n".join(path.read_text() for path in files)
        assert "Record(" in sources, f"{way} writes no record"


@pytest.mark.parametrize("module", ["oraudit", "oraudit.fixtures"])
def test_projects_load_no_framework(module):
    """As pytest loads the fixture in each project that has this package."""
    code = f"import sys; import {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "torch", "jax", "oralib"} & set(done.stdout.split())


def test_records_know_no_way():
    for path in (ROOT / "oraudit" / "records").glob("*.py"):
        assert "oraudit.ways" not in path.read_text(), path.name
