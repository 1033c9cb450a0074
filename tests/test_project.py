"""The ground: files that must agree with each other, and promises of the README."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib.util import module_from_spec, spec_from_file_location
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pandas as pd
import pytest
import yaml

import oralib
from orabook.results import recorded
from oralib.__main__ import console, main
from oralib._folders import write_new
from oralib.experiments import REPORTED

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text().splitlines()


def required():
    """Every package that pyproject.toml asks for, with or without extras, but for large ones."""
    extras = {**PROJECT["optional-dependencies"]}
    del extras["torch"], extras["jax"]
    return set().union(*map(names, [PROJECT["dependencies"], *extras.values()]))


def test_torch_has_pins_of_its_own():
    lines = (ROOT / "requirements-torch.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.match(r"^[a-z-]+==[0-9.]+$", pin) for pin in pins)
    extras = PROJECT["optional-dependencies"]
    assert {pin.split("==")[0] for pin in pins} == names([*extras["torch"], *extras["jax"]])
    assert not {pin.split("==")[0] for pin in pins} & {line.split("==")[0] for line in LOCK}


def test_lock_pins_every_requirement_and_names_no_address():
    pinned = {line.split("==")[0].split("[")[0].lower() for line in LOCK}
    assert required() - {"oralib"} <= pinned
    assert all(re.match(r"^[A-Za-z0-9._-]+==[^ ;]+( ; .+)?$", line) for line in LOCK)
    assert not any("://" in line or "@" in line for line in LOCK)


def names(entries):
    """The names of required packages, spelt as in the lock."""
    return {re.split(r"[<>=!~\[; ]", entry)[0].lower().replace("_", "-") for entry in entries}


def test_missing_packages_are_named_with_their_extra(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("orabook.runs")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("orabook.runs", raising=False)
    monkeypatch.setitem(sys.modules, "papermill", None)  # as if it were not installed
    assert main(["run", "x.ipynb"]) == 2
    said = "error: papermill is not installed: pip install '.[runs]' in the repository\n"
    assert capsys.readouterr().err == said


def test_a_wheel_has_the_package_its_extras_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        header = HeaderParser().parsestr(wheel.read(metadata).decode())
    sources = (path for path in (ROOT / "oralib").rglob("*") if path.is_file())
    kept = {str(path.relative_to(ROOT)) for path in sources if "__pycache__" not in path.parts}
    assert files == kept
    assert set(header.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    required = [entry for entry in header.get_all("Requires-Dist") if "extra == 'runs'" in entry]
    assert names(PROJECT["optional-dependencies"]["runs"]) - {"oralib"} <= names(required)


def test_conda_environment_is_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, _, pip = environment["dependencies"]
    assert python.replace(" ", "") == "python" + PROJECT["requires-python"].replace(" ", "")
    assert pip["pip"] == ["--requirement requirements.lock", "--editable ."]


def test_citation_has_version_and_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    footer = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["extra_footer"]
    assert f"oralib {PROJECT['version']}" in footer
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Keinan",
        "Shenfeld",
        "Ligett",
    ]


def test_zenodo_says_the_same_as_the_citation():
    entry = json.loads((ROOT / ".zenodo.json").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for name in ("title", "version", "license"):
        assert entry[name] == citation[name]


def test_readme_compares_by_measured_numbers():
    """The numbers of the table are those of the chapter that ran the other package."""
    readme, found = (ROOT / "README.md").read_text(), recorded("auditing-a-real-training")
    rows = dict(re.findall(r"^\| (.*?) \| .* \| ([\d.]+) \|$", readme, re.MULTILINE))
    ours = next(value for name, value in rows.items() if "`audit_scores`" in name)
    theirs = rows["jax_privacy `epsilon_one_run`, the same guesses"]
    assert float(theirs) == pytest.approx(found["one_run_jax"], abs=5e-4)
    assert 0 <= float(ours) - float(theirs) < 0.01
    assert f"{found['blind_all_thresholds']:.1%}" in readme


def test_readme_quotes_the_news():
    readme = (ROOT / "README.md").read_text()
    best = pd.read_csv(ROOT / "book" / "data" / "best-bounds.csv", index_col="method")
    for value in (best.loc["crowding", "bound"], best.loc["hopping", "usual"], REPORTED[8][0]):
        assert f" {value:.2f}" in readme


def test_readme_commands_exist():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([a-z-]+)", readme))
    assert {"book", "test", "bench", "lint", "clean"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


README_EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_readme_examples_give_the_numbers_that_their_comments_promise():
    names = {}
    promises = 0
    for line in "".join(README_EXAMPLES).splitlines():
        code, _, comment = line.partition("#")
        promised = re.match(r"\s*(?:about )?([\d.]+|inf)", comment)
        if promised:
            value = eval(code, names)
            digits = len(promised[1].partition(".")[2])
            assert f"{value:.{digits}f}" == promised[1], line
            promises += 1
        else:
            exec(code, names)
    assert promises >= 6


def test_every_public_name_has_a_docstring():
    for name in oralib.__all__:
        assert getattr(oralib, name).__doc__, name


ORDER = [
    *("bounds", "scores", "mechanisms", "channel", "guessers", "games"),
    *("dpsgd", "laws", "methods", "planning", "experiments", "figures", "drawings"),
]


def test_data_walks_one_way():
    """No module imports one that stands to its right."""
    for place, name in enumerate(ORDER):
        files = [ROOT / "oralib" / f"{name}.py", *(ROOT / "oralib" / name).glob("*.py")]
        source = "\n".join(file.read_text() for file in files if file.exists())
        imported = set(re.findall(r"^from oralib\.(\w+) import", source, re.MULTILINE))
        assert not imported & set(ORDER[place + 1 :]), name
        assert not (ROOT / "oralib" / f"{name}.py").exists() or name not in imported, name


def test_the_library_does_not_need_its_runs():
    for source in (ROOT / "oralib").glob("*.py"):
        if source.name != "__main__.py":  # which imports them when they are asked for
            assert not re.search(r"import runs|oralib\.runs", source.read_text())


def test_readme_lists_every_module():
    readme = (ROOT / "README.md").read_text()
    names = {path.stem for path in (ROOT / "oralib").glob("*.py") if not path.stem.startswith("_")}
    for name in names | {"bounds", "runs"}:
        assert f"| `{name}` |" in readme, name


def test_modules_of_the_reference_are_there_after_the_first_import():
    names = "drawings, experiments, figures, laws, methods, parameters, results, tables"
    look = [f"oralib.{name}.__doc__" for name in f"{names}, runs, trainings".split(", ")]
    subprocess.run([sys.executable, "-c", f"import oralib; {'; '.join(look)}"], check=True)


@pytest.fixture
def downloads(tmp_path):
    """``orabook/builder/downloads.py`` of a project in a folder of its own."""
    home = tmp_path / "home" / "book" / "_ext"
    home.mkdir(parents=True)
    shutil.copy(ROOT / "book" / "_ext" / "downloads.py", home)
    program = module_from_spec(spec := spec_from_file_location("carried", home / "downloads.py"))
    spec.loader.exec_module(program)
    for name in ("README.md", "oralib/one.py", ".env", "my-scores.csv"):
        (program.ROOT / name).parent.mkdir(exist_ok=True)
        (program.ROOT / name).touch()
    return program


OURS_ALONE = ["README.md", "orabook/builder/downloads.py", "oralib/one.py"]


def test_without_git_only_what_belongs_to_the_project_is_carried(downloads):
    assert [name for name in downloads.files() if "__pycache__" not in name] == OURS_ALONE


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone")
def test_what_belongs_to_the_project_is_what_git_tracks():
    program = module_from_spec(
        spec := spec_from_file_location("carried", ROOT / "book" / "_ext" / "downloads.py")
    )
    spec.loader.exec_module(program)
    assert {name.partition("/")[0] for name in program.files()} == set(program.PROJECT)


def test_a_new_folder_is_complete_and_replaces_nothing(tmp_path):
    write_new(tmp_path / "a" / "new", {"one": b"1"})
    assert [x.read_bytes() for x in (tmp_path / "a" / "new").iterdir()] == [b"1"]
    for taken in ("new", "new/one"):
        with pytest.raises(ValueError, match="exists; give another folder"):
            write_new(tmp_path / "a" / taken, {"two": b"2"})
    with pytest.raises(TypeError):
        write_new(tmp_path / "a" / "other", {"one": "no bytes"})
    assert [x.name for x in (tmp_path / "a").iterdir()] == ["new"]


def test_ctrl_c_is_one_line_and_status_130(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("oralib.__main__.main", interrupted)
    monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO()))
    monkeypatch.setattr("sys.stderr", told := TextIOWrapper(BytesIO()))
    with pytest.raises(SystemExit) as ended:
        console()
    assert ended.value.code == 130
    told.seek(0)
    assert told.read() == "interrupted\n"
