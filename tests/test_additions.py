"""Every mechanism and every guesser is complete: exported, explained, tested, in the reference.

They are found by walking the modules of their folders. A public file, other than protocol.py, holds
mechanisms or guessers; a file whose name begins with _ holds what several of them share.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest
import zoo
from test_fuzz import HOMES

from oralib import guessers, mechanisms

ROOT = Path(__file__).parent.parent
GAMES_PAGE = (ROOT / "book" / "api-games.md").read_text()
OVERVIEW = (ROOT / "book" / "api.md").read_text()
#: The classes with an entry in the zoo, on at least two elements.
DISCRETE = {type(mechanism) for mechanism, _, sizes, _ in zoo.ZOO.values() if max(sizes) > 1}
CONTINUOUS = {type(mechanism) for mechanism, _, sizes in zoo.CONTINUOUS.values() if max(sizes) > 1}
GUESSERS = {type(guesser) for guesser, _, _ in zoo.GUESSERS.values()}


def modules(folder):
    """Return all modules of a folder."""
    found = pkgutil.walk_packages(folder.__path__, f"{folder.__name__}.")
    return [importlib.import_module(module.name) for module in found]


def file_of(module):
    return Path(module.__file__).relative_to(ROOT).as_posix()


def is_shared(module):
    name = module.__name__.rpartition(".")[2]
    return name.startswith("_") or name == "protocol"


def public_classes(module):
    """Return the classes that a module defines."""
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def has_zoo_entry(folder, thing):
    if folder is guessers:
        return thing in GUESSERS
    return thing in (DISCRETE if hasattr(thing, "likelihood") else CONTINUOUS)


def omissions(folder, module, thing):
    """Return what a mechanism or guesser is lacking, and where to put it."""
    name = thing.__name__
    example_uses_it = any(
        name in example.source
        for example in doctest.DocTestParser().get_examples(thing.__doc__ or "")
    )
    has_fuzz_call = any(
        name in calls and getattr(home, name) is thing for home, calls in HOMES.items()
    )
    entry = re.compile(rf"^\.\. autoclass:: oralib\.(\w+\.)?{name}$", re.MULTILINE)
    has_entry = entry.search(GAMES_PAGE)
    row = re.compile(rf"^   oralib\.(\w+\.)?{name}$", re.MULTILINE)
    is_exported = getattr(folder, name, None) is thing and name in folder.__all__
    table = "ZOO" if hasattr(thing, "likelihood") else "CONTINUOUS"
    table = "GUESSERS" if folder is guessers else table
    conditions = {
        f"{file_of(module)}: __all__ must name {name}": name in getattr(module, "__all__", ()),
        f"{file_of(folder)}: import {name} and name it in __all__": is_exported,
        f"{file_of(module)}: the docstring of {name} needs an example (>>>)": example_uses_it,
        f"tests/zoo.py: {table} needs {name} beside its definition": has_zoo_entry(folder, thing),
        f"tests/test_fuzz.py: HOMES needs a call of {name} that works": has_fuzz_call,
        f"book/api-games.md: needs the entry `.. autoclass:: {folder.__name__}.{name}`": has_entry,
        f"book/api.md: must list `{folder.__name__}.{name}`": row.search(OVERVIEW),
    }
    return [message for message, is_there in conditions.items() if not is_there]


@pytest.mark.parametrize("folder", [mechanisms, guessers], ids=lambda folder: folder.__name__)
def test_every_addition_is_complete(folder):
    missing = []
    for module in modules(folder):
        things = public_classes(module)
        if is_shared(module):
            missing += [
                f"{file_of(module)}: {thing.__name__} needs a file of its own"
                for thing in things
                if is_dataclass(thing)
            ]
        elif not things:
            missing.append(f"{file_of(module)}: a file of shared parts has a name with a leading _")
        else:
            missing += [line for thing in things for line in omissions(folder, module, thing)]
    assert not missing, "\n" + "\n".join(missing)
