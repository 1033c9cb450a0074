"""The ground: files that must agree with each other, and promises of the README."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pandas as pd
import pytest
import yaml

import conftest
import oralib
from orabook import results
from orabook.__main__ import main
from orabook.builder import downloads
from orabook.experiments import REPORTED
from orabook.runs import run
from orabook.runs.folders import appearing, check_new

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: The extras that are not in the lock.
LARGE = ("torch", "jax", "recipes")
#: The packages of the repository.
PACKAGES = ("oralib", "oraudit", "orabook", "ledger", "benchmarks")
#: Those that are not in the wheel.
NOT_INSTALLED = {"ledger", "benchmarks"}
#: The texts of the workflows on GitHub.
WORKFLOWS = {
    path.name: path.read_text()
    for path in [*(ROOT / ".github/workflows").iterdir(), ROOT / "book" / "recipes" / "audit.yml"]
}
#: The pins, each with its hashes.
LOCK = (ROOT / "requirements.lock").read_text().replace(" \\\n    ", " ").splitlines()


def test_torch_has_pins_of_its_own():
    lines = (ROOT / "requirements-torch.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.match(r"^[a-z-]+==[0-9.]+$", pin) for pin in pins)
    extras = [*EXTRAS["torch"], *EXTRAS["jax"], *EXTRAS["recipes"]]
    assert {pin.split("==")[0] for pin in pins} == names(extras)
    assert not {pin.split("==")[0] for pin in pins} & {re.split(r"==|\[", line)[0] for line in LOCK}


def test_lock_pins_every_requirement_and_names_no_address():
    pinned = {line.split("==")[0].split("[")[0].lower() for line in LOCK}
    small = [entries for extra, entries in EXTRAS.items() if extra not in LARGE]
    required = set().union(*map(names, [PROJECT["dependencies"], *small]))
    assert required - {"oralib"} <= pinned
    pin = re.compile(r"[A-Za-z0-9._-]+(\[.+\])?==[^ ;]+( ; [^-]+)?( --hash=sha256:[0-9a-f]{64})+")
    assert [line for line in LOCK if not pin.fullmatch(line)] == []
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
    error = "error: papermill is not installed: pip install '.[runs]' in the repository\n"
    assert capsys.readouterr().err == error


def test_every_package_is_on_each_list():
    """A folder of modules at the top; what a rerun depends on are those that are installed."""
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    tools = SETTINGS["tool"]
    installed = set(tools["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert folders == set(PACKAGES) == set(IMPORTS)
    assert installed == folders - NOT_INSTALLED == set(run.PACKAGES)
    assert folders <= set(downloads.PROJECT)
    assert folders - {"benchmarks"} <= set(tools["pytest"]["ini_options"]["testpaths"])
    assert folders - {"benchmarks"} == set(tools["mypy"]["files"])
    hidden = yaml.safe_load((ROOT / "_config.yml").read_text())["exclude_patterns"]
    assert folders <= set(hidden)


#: What each package may import of the others.
IMPORTS = {
    "oralib": set(),
    "oraudit": {"oralib"},
    "orabook": {"oralib", "oraudit"},
    "ledger": {"oralib", "orabook"},
    "benchmarks": {"oralib", "orabook", "oraudit"},
}


@pytest.mark.parametrize("package", IMPORTS)
def test_packages_import_only_what_they_may(package):
    others = "|".join(sorted(set(IMPORTS) - {package}))
    texts = [path.read_text() for path in (ROOT / package).rglob("*.py")]
    assert texts
    lines = rf"^ *(?:from|import) ({others})\b"
    imported = set().union(*(re.findall(lines, text, re.MULTILINE) for text in texts))
    assert imported == IMPORTS[package]


def test_lists_of_files_name_files_that_exist():
    """Check what pytest and mypy leave out, and what the Makefile calls."""
    paths = [Path(path) for path in conftest.collect_ignore]
    paths += map(Path, SETTINGS["tool"]["mypy"]["exclude"])
    texts = [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / ".github/workflows").glob("*.yml")]
    commands = "".join(path.read_text() for path in texts)
    files = re.findall(rf"\b(?:{'|'.join(PACKAGES)}|tests)/[\w/.-]+\.py", commands)
    modules = re.findall(rf"-m ((?:{'|'.join(PACKAGES)}|tests)[\w.]*)", commands)
    assert min(len(paths), len(files), len(modules)) > 2
    for path in [*paths, *map(Path, files)]:
        assert (ROOT / path).exists(), path
    for module in modules:
        path = ROOT.joinpath(*module.split("."))
        assert (path / "__main__.py").exists() or path.with_suffix(".py").exists(), module


def test_a_wheel_has_packages_and_extras_only(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        header = HeaderParser().parsestr(wheel.read(metadata).decode())
    installed = set(PACKAGES) - NOT_INSTALLED
    ours = [path for name in installed for path in (ROOT / name).rglob("*")]
    sources = [path for path in ours if path.is_file() and "__pycache__" not in path.parts]
    assert files == {path.relative_to(ROOT).as_posix() for path in sources}
    assert {f"{name}/py.typed" for name in installed} <= files
    assert set(header.get_all("Provides-Extra")) == set(EXTRAS)
    assert not {"selenium", "matplotlib"} & names(PROJECT["dependencies"])
    needed = [entry for entry in header.get_all("Requires-Dist") if "extra == 'runs'" in entry]
    assert names(EXTRAS["runs"]) - {"oralib"} <= names(needed) != set()


def test_conda_environment_is_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, _, pip = environment["dependencies"]
    assert python.replace(" ", "") == "python" + PROJECT["requires-python"].replace(" ", "")
    assert pip["pip"] == ["--requirement requirements.lock"]


def test_targets_that_are_named_exist():
    makefile = (ROOT / "Makefile").read_text()
    texts = [(ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")]
    targets = re.findall(
        r"(?:run: |`|^)make ([a-z-]+)", "\n".join([*texts, *WORKFLOWS.values()]), re.M
    )
    assert len(targets) > 20
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_file_of_tests_has_a_topic():
    table = set(re.findall(r"`(test_\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert table == {path.stem for path in (ROOT / "tests").glob("test_*.py")}


def test_checks_run_every_python_that_is_promised():
    promised = [entry.rpartition(" ")[2] for entry in PROJECT["classifiers"] if " 3." in entry]
    assert PROJECT["requires-python"] == f">={promised[0]}"  # and no upper limit
    assert all(f'"{python}"' in WORKFLOWS["checks.yml"] for python in promised)


def test_the_table_of_tests_names_modules_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    checked = 0
    for modules in re.findall(r"^\| .* \| (.*) \| .*`test_", text, re.MULTILINE):
        package = ""
        for name in re.findall(r"`([\w.]+)`", modules):
            if name.startswith("."):
                name = package + name
            elif name.split(".")[0] not in PACKAGES:
                name = f"oralib.{name}"
            package = name.rpartition(".")[0]
            path = ROOT.joinpath(*name.split("."))
            assert path.is_dir() or path.with_suffix(".py").exists(), name
            checked += 1
    assert checked > 60


def test_citation_has_version_and_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    entry = json.loads((ROOT / ".zenodo.json").read_text())
    assert all(entry[name] == citation[name] for name in ("title", "version", "license"))
    assert citation["version"] == PROJECT["version"]
    footer = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["extra_footer"]
    assert f"oralib {PROJECT['version']}" in footer
    (paper,) = citation["references"]
    authors = [author["family-names"] for author in paper["authors"]]
    assert authors == ["Keinan", "Shenfeld", "Ligett"]


def test_blanks_for_the_owner_are_in_one_place():
    """They are in the list for a release, where `make release` finds them."""
    asked = re.compile(r"to be filled in:")
    files = [ROOT / name for name in downloads.files()]
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in files
        if path.suffix in (".md", ".cff", ".json", ".yml", ".toml")
    }
    assert [name for name, text in texts.items() if asked.search(text)] in (["CONTRIBUTING.md"], [])


@pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)
def test_actions_are_pinned_by_commit(text):
    """Also those of a workflow that readers copy."""
    jobs = yaml.safe_load(text)["jobs"].values()
    steps = [step for job in jobs for step in job["steps"] if "uses" in step]
    pinned = re.findall(r"uses: [\w/-]+@[0-9a-f]{40} # v[\d.]+$", text, re.MULTILINE)
    assert len(pinned) == len(steps) > 0


def test_a_workflow_runs_what_must_pass():
    assert "run: bash .ci/run" in WORKFLOWS["checks.yml"]
    assert (ROOT / ".ci" / "run").read_text().endswith("\nmake check\n")


def test_containers_install_the_lock_and_this_repository():
    """Binder reads its own folder; a development container has the environment of `make`."""
    asked = (ROOT / ".binder" / "requirements.txt").read_text()
    assert "\n--requirement ../requirements.lock\n" in asked
    assert "--no-deps --no-build-isolation --editable ." in (ROOT / ".binder/postBuild").read_text()
    assert os.access(ROOT / ".binder" / "postBuild", os.X_OK)
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make .venv/ready"
    assert container["remoteEnv"]["PATH"].startswith("${containerWorkspaceFolder}/.venv/bin:")
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).is_file()


def test_readme_has_a_map_of_the_root():
    """A line for each folder, other than those of tools, and for the files of the book."""
    readme = (ROOT / "README.md").read_text()
    on_map = re.findall(r"^\| `([\w./]+)`", readme, re.MULTILINE)
    folders = {
        f"{name}/" for name in downloads.PROJECT if (ROOT / name).is_dir() and name[0] != "."
    }
    assert folders | {"_config.yml", "environment.yml"} <= set(on_map)
    for name in re.findall(r"`([\w./]+)`", "".join(re.findall(r"^\| `.*", readme, re.MULTILINE))):
        assert (ROOT / name).exists(), name


def test_readme_quotes_the_ladder():
    """The headline has the numbers of the tables and of the chapter that it names."""
    readme = " ".join((ROOT / "README.md").read_text().split())
    tables = (ROOT / "book" / "data" / f"{name}.csv" for name in ("ladder", "many-weights"))
    bound = pd.concat([pd.read_csv(table, index_col="change") for table in tables])["bound"]
    limit = results.recorded("08-how-much-can-one-run-show")["limit_of_one_run"]
    for sentence in (
        f"certified at ε = 2, an audit shows {REPORTED[8][0]}.",
        f"get to {bound['crowding']:.2f}, and on one of 100,000 weights to "
        f"{bound['800,000 canaries']:.2f}; there the paper's own audit shows "
        f"{bound['control']:.2f}, so most of that rise",
        f"reliably shows more than {limit:.2f}.",
    ):
        assert sentence in readme
    middle = (bound["as in the paper"] + bound["800,000 canaries"]) / 2
    assert bound["control"] > middle


def blocks(language):
    """The code of the README in this language, a text for each block."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


README_EXAMPLES = blocks("python")


def test_readme_examples_give_the_numbers_they_promise():
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
    assert promises == 5


def test_every_name_at_the_top_explains_itself():
    assert len(oralib.__all__) == len(set(oralib.__all__))
    assert all(getattr(oralib, name).__doc__ for name in oralib.__all__)
    groups = oralib.__doc__.split("::\n\n")[1:]
    listed = [re.findall(r"^    (\w+(?:, \w+)*)  ", group, re.MULTILINE) for group in groups]
    names = [name for group in listed for row in group for name in row.split(", ")]
    assert sorted(names) == sorted(oralib.__all__)
    assert all(len(group) < 24 for group in listed)  # the lines of a screen


#: The rooms of the library: a room imports none of those after it.
ORDER = ["ground", "bounds", "mechanisms", "channels", "guessers", "games", "dpsgd"]


def test_data_walks_one_way():
    """No module imports one that stands to its right."""
    for place, name in enumerate(ORDER):
        files = [ROOT / "oralib" / f"{name}.py", *(ROOT / "oralib" / name).glob("*.py")]
        source = "\n".join(file.read_text() for file in files if file.exists())
        assert source, name
        imported = set(re.findall(r"^ *from oralib\.(\w+)[\w.]* import", source, re.MULTILINE))
        assert not imported & set(ORDER[place + 1 :]), name
        assert not (ROOT / "oralib" / f"{name}.py").exists() or name not in imported, name


SOURCES = {str(f.relative_to(ROOT)): f.read_text() for f in (ROOT / "oralib").rglob("*.py")}


def test_the_library_knows_nothing_of_the_book():
    """Neither an import nor a path."""
    assert len(SOURCES) > 20
    book = re.compile(r"""\b(orabook|ledger)\b|\bbook/|["']book["']""")
    assert [name for name, source in SOURCES.items() if book.search(source)] == []


def test_importing_the_library_imports_nothing_large():
    """A package that few functions need is imported by them."""
    heavy = ("scipy.stats", "scipy.special", "scipy.optimize", "pandas", "matplotlib", "torch")
    heavy += ("dp_accounting", "IPython", "papermill")
    look = f"""import oralib, sys
print([name for name in sys.modules if name.startswith({heavy})])"""
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("package", ["oralib", "oraudit", "orabook"])
def test_the_reference_lists_every_module(package):
    reference = (ROOT / "book" / "api.md").read_text()
    places = [*(ROOT / package).glob("*.py"), *(ROOT / package).glob("*/__init__.py")]
    names = {path.parent.name if path.stem == "__init__" else path.stem for path in places}
    # Neither is for readers: where the files of the book are, and the ground of oralib.
    for name in names - {package, "place", "ground"}:
        assert name.startswith("_") or re.search(rf"^\| .*`{name}`", reference, re.MULTILINE), name


def test_without_git_only_project_files_are_carried(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "ROOT", tmp_path)
    ours = ["README.md", "oralib/one.py"]
    for name in (*ours, "oralib/__pycache__/one.pyc", ".env", "my-scores.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert downloads.files() == ours


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone")
def test_project_files_are_what_git_tracks():
    assert {name.partition("/")[0] for name in downloads.files()} == set(downloads.PROJECT)


def test_a_new_folder_is_complete_and_replaces_nothing(tmp_path):
    def write(folder, content):
        check_new(folder)
        with appearing(folder) as written:
            (written / "one").write_bytes(content)

    write(tmp_path / "a" / "new", b"1")
    assert [x.read_bytes() for x in (tmp_path / "a" / "new").iterdir()] == [b"1"]
    for taken in ("new", "new/one"):
        with pytest.raises(ValueError, match="exists; give another folder"):
            write(tmp_path / "a" / taken, b"2")
    with pytest.raises(TypeError):
        write(tmp_path / "a" / "other", "no bytes")
    assert [x.name for x in (tmp_path / "a").iterdir()] == ["new"]
