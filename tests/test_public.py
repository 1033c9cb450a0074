"""Public names: each module lists its own, and a command offers what it calls."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from orabook import runs
from orabook.__main__ import main

ROOT = Path(__file__).parent.parent
PACKAGES = ("oralib", "oraudit", "orabook", "ledger")

#: Functions that neighbours in the house share, while no user calls them, by their module.
SHARED = {
    "oralib.channels": "average_of_best largest_loss",
    "oralib.games": """adaptive_game check_base check_number check_players guesses_at
        law_of_guesses play_game""",
    "orabook.laws": "guess_distances law_of likely_counts single_step_law",
}


def is_public(path):
    """Return whether no part of the path begins with an underscore, but for `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return not any(part.startswith("_") and part != "__init__" for part in parts)


FILES = {
    package: [path for path in sorted((ROOT / package).rglob("*.py")) if is_public(path)]
    for package in PACKAGES
}


@cache
def parsed(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


def module_name(path):
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def defined(body, kinds):
    """The public names of these kinds of definition in a module, also those in an ``if``."""
    names = set()
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            names |= defined([*node.body, *node.orelse], kinds)
        elif not isinstance(node, kinds):
            continue
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            places = [place for target in targets for place in ast.walk(target)]
            names |= {place.id for place in places if isinstance(place, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def imported(tree):
    """The names that a module takes from others."""
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def listed(tree):
    """The names in ``__all__``; None if the module has none."""
    names = None
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            names = [*(names or []), *ast.literal_eval(node.value)]
    return names


@cache
def taken_elsewhere():
    """All pairs (module, name) that one of our files takes from another, by name or by a dot."""
    modules = {module_name(path) for paths in FILES.values() for path in paths}
    pairs = set()
    for path in [path for paths in FILES.values() for path in paths]:
        nodes = list(ast.walk(parsed(path)))
        homes = {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                pairs |= {(node.module, alias.name) for alias in node.names}
                homes |= {
                    alias.asname or alias.name: f"{node.module}.{alias.name}"
                    for alias in node.names
                    if f"{node.module}.{alias.name}" in modules
                }
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                pairs.add((homes.get(node.value.id), node.attr))
    return pairs


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_list_their_public_names(package):
    """Functions and classes, and those constants and types that another module imports."""
    code = (ast.FunctionDef, ast.ClassDef)
    values = (ast.Assign, ast.AnnAssign)
    assert len(FILES[package]) > 10
    for path in FILES[package]:
        module = module_name(path)
        tree = parsed(path)
        constants = defined(tree.body, values)
        public = defined(tree.body, code)
        public |= {name for name in constants if (module, name) in taken_elsewhere()}
        public -= set(SHARED.get(module, "").split())
        names = listed(tree)
        if names is None:
            assert not public, f"{module} has no __all__, and defines {sorted(public)}"
            continue
        assert len(names) == len(set(names)), f"{module} lists a name twice"
        missing = public - set(names)
        assert not missing, f"__all__ of {module} lacks {sorted(missing)}"
        unknown = set(names) - public - constants - imported(tree)
        lazy = "__getattr__" in {getattr(node, "name", "") for node in tree.body}
        assert lazy or not unknown, f"__all__ of {module} lists {sorted(unknown)}, defined nowhere"


def test_shared_functions_exist_and_are_shared():
    """A function in no neighbour's imports is no longer an exception to the rule above."""
    for module, names in SHARED.items():
        (path,) = (
            path for paths in FILES.values() for path in paths if module_name(path) == module
        )
        assert set(names.split()) <= defined(parsed(path).body, (ast.FunctionDef, ast.ClassDef))
        unused = {name for name in names.split() if (module, name) not in taken_elsewhere()}
        assert not unused, f"{module}: nothing imports {sorted(unused)}"


#: What a command calls; the options whose names differ from the parameter's; and parameters that
#: are no option, each with its reason.
COMMANDS = {
    "run": (
        runs.run_chapter,
        {"chapter": "chapter", "changed": "-p", "folder": "--out"},
        {
            "page": "a run by hand has its page; only the points of a sweep go without",
            "inputs": "the files of a grid, which only a sweep has",
            "progress": "the bar is shown wherever somebody looks at a terminal",
        },
    ),
    "sweep": (
        runs.sweep_grid,
        {"grid": "GRID.yml"},
        {},
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_offers_what_it_calls(command, capsys):
    function, renamed, withheld = COMMANDS[command]
    with pytest.raises(SystemExit):
        main([command, "--help"])
    usage = capsys.readouterr().out
    parameters = set(inspect.signature(function).parameters)
    assert set(renamed) | set(withheld) <= parameters
    for name in parameters - set(withheld):
        option = renamed.get(name, "--" + name.replace("_", "-"))
        offered = re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", usage)
        assert offered, f"{command} has no {option} for {function.__name__}({name}=)"
