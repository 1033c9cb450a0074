"""The commands: what they print, and that their exit status says the same as the report."""

import argparse
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oraudit
from oraudit import Result
from oraudit.__main__ import COMMANDS, main
from oraudit.commands import common

ROOT = Path(__file__).parent.parent
TF_PRIVACY = ROOT / "book/data/tf-privacy.csv"

#: All options of all commands together; a reader can keep ten in mind.
OPTIONS = {"--claim", "--allow", "-m", "--canaries", "--report", "--training"}
OPTIONS |= {"--beta", "--side", "--coins", "--adjacency"}


def command(*words):
    """The status of a command, where a usage error ends the process."""
    try:
        return main([str(word) for word in words])
    except SystemExit as end:
        return end.code


def scores_of(path, *, shift=0.0, canaries=400):
    """A file of scores that are higher by ``shift`` for canaries that are included."""
    rng = np.random.default_rng(1)
    coins = rng.random(canaries) < 0.5
    scores = rng.normal(size=canaries) + shift * coins
    rows = [f"{score!r},{coin:d}" for score, coin in zip(scores.tolist(), coins, strict=True)]
    path.write_text("\n".join(["score,included", *rows]))
    return path


# ------------------------------------------------------------------------------------------ help


def test_help_of_all_commands(capsys):
    found = set()
    for name in ("run", "scores", "expect"):
        assert command(name, "--help") == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        first, *_ = text.split("\n\n")[1:2]
        assert len(first.splitlines()) in (3, 4)
        assert "\nexit status:\n  0  " in text
        assert "\n  2  a usage error" in text
        found |= set(re.findall(r"^  (-\w|--[a-z-]+)", text, re.MULTILINE)) - {"-h", "--help"}
    assert found == OPTIONS
    assert len(found) <= 10
    assert command("--help") == 0
    text = capsys.readouterr().out
    assert [f"\n    {name} " in text for name in ("run", "scores", "expect")] == [True] * 3


NAMES = [each.__name__.rpartition(".")[2] for each in COMMANDS]

#: The function behind each command, by its name in the package.
BEHIND = {"run": "watch", "scores": "audit_scores", "expect": "expect"}

#: The options of commands alone: a folder for the report, and how a script is run.
OF_COMMANDS = {"report", "module"}


def options_of(name):
    """The help of a command, and its options without --help."""
    commands = argparse.ArgumentParser().add_subparsers()
    COMMANDS[NAMES.index(name)].add(commands)
    parser = commands.choices[name]
    options = [each for each in parser._actions if each.option_strings and each.dest != "help"]
    return parser.format_help(), options


def test_every_command_is_listed_once():
    files = {path.stem for path in Path(common.__file__).parent.glob("*.py")}
    assert sorted(NAMES) == sorted(files - {"__init__", "common"})
    assert set(BEHIND) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_option_is_in_the_help(name):
    text, options = options_of(name)
    for option in options:
        (word,) = option.option_strings
        assert re.search(rf"^  {word}\b", text, re.MULTILINE), f"{word} is not in the help"
        assert len(option.help or "") > 10, f"the help does not explain {word}"


@pytest.mark.parametrize("name", NAMES)
def test_each_option_is_in_the_book(name):
    notebook = json.loads((ROOT / "book/auditing-a-real-training.ipynb").read_text())
    page = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    for option in options_of(name)[1]:
        (word,) = option.option_strings
        as_argument = rf"(?<!\w){option.dest}="
        mention = re.search(rf"(?<![\w-]){word}\b|{as_argument}", page)
        assert mention, f"book/auditing-a-real-training.ipynb has neither {word} nor {option.dest}="


@pytest.mark.parametrize("name", NAMES)
def test_each_option_is_an_argument(name):
    """What a command can do, the function behind it can do."""
    if name == "run":
        pytest.importorskip("opacus")
    function = getattr(oraudit, BEHIND[name])
    arguments = set(inspect.signature(function).parameters) | OF_COMMANDS
    missing = {option.dest for option in options_of(name)[1]} - arguments
    assert not missing, f"oraudit.{BEHIND[name]} has no argument {', '.join(missing)}"


def test_help_imports_no_library():
    """Help and usage errors come at once."""
    code = "import sys; from oraudit.__main__ import main\ntry:\n    main(sys.argv[1:])\n"
    code += "except SystemExit as end:\n    pass\n"
    code += "print(sorted({'numpy', 'scipy', 'torch', 'oralib', 'numba'} & set(sys.modules)))"
    for words in (["--help"], ["scores", "--help"], ["expect", "--canaries", "0"], []):
        run = [sys.executable, "-c", code, *words]
        ended = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True)
        assert ended.stdout.splitlines()[-1] == "[]"


# ---------------------------------------------------------------------------------- usage errors

TRAINING = "2.42,0.1,100"
EXPECT = ("expect", "--training", TRAINING, "--canaries")
STRETCH = "must be SIGMA,RATE,STEPS with SIGMA > 0, 0 < RATE <= 1 and whole STEPS"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("audit",), "argument COMMAND: invalid choice: 'audit'"),
        (("scores",), "the following arguments are required: FILE"),
        (("scores", "x", "--delta", "1"), "unrecognized arguments: --delta 1"),
        (("scores", "x", "--train", TRAINING), "unrecognized arguments: --train"),
        (("expect", "--canaries", "5"), "the following arguments are required: --training"),
        (("expect", "--training", TRAINING), "the following arguments are required: --canaries"),
        *[
            (
                ("scores", "x", f"--training={word}"),
                f"argument --training: {STRETCH}, as in {TRAINING}, got '{word}'",
            )
            for word in (
                "1",
                "1,2,3",
                "0,.1,5",
                "-1,.1,5",
                "1,0,5",
                "1,.1,5.5",
                "1,.1,0",
                "nan,.1,5",
            )
        ],
        *[
            (
                ("scores", "x", "--claim", *words),
                "argument --claim: must be ε > 0 and δ between 0 and 1",
            )
            for words in (
                w.split() for w in ("0 .1", "2 0", "2 1", "nan .1", "inf .1", "2 nan", "a .1")
            )
        ],
        (("scores", "x", "--claim", "2"), "argument --claim: expected 2 arguments"),
        *[
            (
                ("scores", "x", "--beta", word),
                f"argument --beta: must be a number between 0 and 1, as 0.05, got '{word}'",
            )
            for word in ("0", "1", "nan", "5%", "x")
        ],
        (("scores", "x", "--side", "out"), "argument --side: invalid choice: 'out'"),
        (("scores", "x", "--coins", "fair"), "argument --coins: invalid choice: 'fair'"),
        (("scores", "x", "--adjacency", "zero"), "argument --adjacency: invalid choice: 'zero'"),
        *[
            (
                (*EXPECT, word),
                f"argument --canaries: must be a whole number, at least 1, got '{word}'",
            )
            for word in ("0", "-5", "2.5", "nan", "many", "1e300")
        ],
        (("run",), "the following arguments are required: script, arguments"),
        (("run", "--canaries", "0", "x.py"), "argument --canaries: must be a whole number"),
        (("run", "none.py"), "argument script: must be a file, got 'none.py', which is none"),
    ],
)
def test_usage_errors(words, line, capsys):
    assert command(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert line in err.splitlines()[-1] or line in err


def test_folder_that_exists_is_a_usage_error(tmp_path, capsys):
    for words in (("scores", "none.csv"), ("run",)):
        assert command(words[0], "--report", tmp_path, *words[1:], "x.py") == 2
        said = f"argument --report: must be a new folder, got '{tmp_path}', which exists\n"
        assert capsys.readouterr().err.endswith(said)
    assert command("scores", "none.csv", "--report", "~nobody-of-this-name/x") == 2
    assert "argument --report: ~nobody" in capsys.readouterr().err


def test_training_that_no_accountant_knows(capsys):
    assert command("scores", TF_PRIVACY, "--training", "1e-300,0.1,5") == 2
    assert "oraudit scores: argument --training: sigma must lie in" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- scores


def test_honest_scores_pass(capsys, tmp_path):
    folder = tmp_path / "deep" / "report"
    status = command("scores", TF_PRIVACY, "--training", "0.9937,0.1,100", "--report", folder)
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert out.startswith("PASSED")
    assert "a lower bound, not an estimate" in out
    digest = "41764a6b3c4b63023c63148f4ec69fca08c707612798888ace98959232120354"
    assert out.splitlines()[-1] == f"file      {TF_PRIVACY}, SHA-256 {digest}"
    saved = Result.load(folder)
    assert saved.status == "passed"
    assert saved.counts.digest == digest
    assert json.loads((folder / "report.json").read_text())["exit"] == 0
    assert str(saved) in out


def test_scores_that_show_too_much_fail(capsys, tmp_path):
    path = scores_of(tmp_path / "scores.csv", shift=5)
    folder = tmp_path / "report"
    assert command("scores", path, "--training", TRAINING, "--report", folder) == 1
    assert capsys.readouterr().out.startswith("FAILED")
    assert Result.load(folder).status == "failed"


def test_few_canaries_cannot_tell(capsys, tmp_path):
    path = scores_of(tmp_path / "scores.csv", canaries=20)
    assert command("scores", path, "--training", TRAINING) == 3
    assert capsys.readouterr().out.startswith("CANNOT TELL")


def test_stretches_are_one_training(capsys, tmp_path):
    path = scores_of(tmp_path / "scores.csv")
    command("scores", path, *["--training", "2.42,0.1,50"] * 2)
    two = capsys.readouterr().out
    command("scores", path, "--training", TRAINING)
    one = capsys.readouterr().out
    counts = re.findall(r"\d+ of \d+ right", one)
    assert counts
    assert counts == re.findall(r"\d+ of \d+ right", two)


def test_options_reach_the_counts(capsys, tmp_path):
    path = scores_of(tmp_path / "scores.csv", shift=5)
    lines = path.read_text().splitlines()
    halves = [[line for line in lines if line.endswith(coin)][:150] for coin in (",1", ",0")]
    path.write_text("\n".join([lines[0], *halves[0], *halves[1]]))
    folder = tmp_path / "report"
    words = ("--side", "in", "--coins", "balanced", "--adjacency", "replace", "--beta", 0.01)
    assert command("scores", path, "--claim", 1, 1e-6, *words, "--report", folder) == 1
    counts = Result.load(folder).counts
    assert (counts.beta, counts.side, counts.claim) == (0.01, "in", (1, 1e-6))
    assert (counts.coins, counts.adjacency) == ("balanced", "replace")


def test_guesses_in_a_file(capsys, tmp_path):
    path = tmp_path / "guesses.csv"
    coins = np.random.default_rng(2).random(300) < 0.5
    path.write_text("truth,guess\n" + "".join(f"{coin},{coin or ''}\n" for coin in coins))
    assert command("scores", path, "--training", TRAINING, "--side", "in") == 1
    assert capsys.readouterr().out.startswith("FAILED")
    assert command("scores", path, "--claim", 1, 1e-5, "--coins", "balanced") != 0
    assert capsys.readouterr().err.count("\n") == 1


def test_options_that_do_not_go_together(capsys):
    words = ("--training", TRAINING, "--adjacency", "replace")
    assert command("scores", TF_PRIVACY, *words) == 2
    assert "training says nothing of adjacency='replace'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "is empty: it must have a line with the names of columns, and one per canary"),
        ("score,included\n0.5,1\nx,0\n", ", line 3, column score: 'x' is not a finite number"),
        ("score,included\n0.5,1\n0.2,1\n", ": included must have canaries of both kinds"),
        ("score,included\n0.5,1\n0.5,0\n", ": scores must differ"),
        ("guess,truth\n,1\n,0\n", " has no guesses: all cells of the column guess are empty"),
    ],
)
def test_unusable_files_are_status_3(content, line, capsys, tmp_path):
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_text(content)
    folder = tmp_path / "report"
    assert command("scores", path, "--claim", 1, 1e-5, "--report", folder) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"oraudit scores: {path}")
    assert line in err
    assert not folder.exists()


@settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.floats().map(repr), st.sampled_from(["0", "1", "-1e308", "5e-324", "x"])),
            st.sampled_from("0011yn "),
        ),
        max_size=30,
    ),
)
def test_any_small_file_has_a_status(rows, tmp_path, capsys):
    path = tmp_path / "any.csv"
    path.write_text("score,included\n" + "".join(f"{score},{coin}\n" for score, coin in rows))
    status = command("scores", path, "--claim", 1, 1e-5)
    out, err = capsys.readouterr()
    assert status in (0, 1, 3)
    assert (out == "") == (err != "")
    assert err.count("\n") <= 1


def test_report_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "file").touch()
    path = scores_of(tmp_path / "scores.csv", shift=5)
    words = ("scores", path, "--training", TRAINING, "--report", tmp_path / "file" / "report")
    assert command(*words) == 1  # it has failed all the same
    assert "argument --report: " in (err := capsys.readouterr().err)
    assert err.count("\n") == 1


# ---------------------------------------------------------------------------------------- expect


def test_expect_says_what_it_computes(capsys):
    from oraudit import expect

    assert command(*EXPECT, "200", "--beta", "0.1", "--side", "in") == 0
    out = capsys.readouterr().out
    assert out == f"{expect((2.42, 0.1, 100), 200, beta=0.1, side='in')}\n"


# --------------------------------------------------------------------------------------- process


def test_clock_shows_only_on_a_terminal(monkeypatch, capsys):
    with common.clock("reading", after=0.01):
        pass
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with common.clock("reading", after=5.0):
        pass
    assert capsys.readouterr().err == ""
    with common.clock("reading", after=0.01):
        import time

        time.sleep(0.1)
    err = capsys.readouterr().err
    assert err.startswith("\rreading: 0 s")
    assert err.endswith(" \r")


def broken():
    raise OSError("a fault of ours")


def interrupted():
    raise KeyboardInterrupt


def closed():
    raise BrokenPipeError


@pytest.mark.parametrize(
    ("fault", "status"), [("broken", 3), ("interrupted", 130), ("closed", 141)]
)
def test_no_fault_of_ours_accuses_a_training(fault, status):
    """Python's own status after an error is 1, which would say that the training has failed."""
    code = "import sys; sys.path.insert(0, 'tests'); from oraudit.commands.common import process\n"
    code += f"from test_audit_commands import {fault}; process({fault})"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=-3).returncode == status
