"""What a Python process can say about itself: its version, its packages, its copy of the library.

The text of this module is also executed inside the kernels that run chapters, which may belong to
another environment. So it needs the standard library alone.
"""

import contextlib
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import sys
import sysconfig
import time
import types
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGES = (
    *("oralib", "numpy", "scipy", "pandas", "numba", "matplotlib", "dp-accounting", "ipykernel"),
)

#: Take long to import, but do nothing more than that before they are used.
SLOW = ("numpy", "scipy", "pandas", "numba", "matplotlib.pyplot", "dp_accounting")

#: What folders of installed packages are called.
_SITES = ("site-packages", "dist-packages")


def answer(*asked: str) -> str:
    """Call these functions of this module; what the last one says, or what went wrong.

    A kernel answers an exception with its traceback, and opens files for that. Where a notebook has
    left no file handles it would not answer at all.
    """
    said = ""
    try:
        for name in asked:
            said = globals()[name]()
    except Exception as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})
    return said


def library_digest(package: Path) -> str:
    """A digest of the library's sources: it changes when results may."""
    digest = hashlib.sha256()
    for source in _sources(package):
        digest.update(source.relative_to(package).as_posix().encode() + b"\0")
        digest.update(source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources(package: Path) -> list[Path]:
    """All files but those of ``runs``: running is not computing."""
    found = sorted(package.rglob("*.py"))
    found = [path for path in found if "runs" not in path.relative_to(package).parts]
    # Editors leave hidden links beside a file that is being edited.
    return [path for path in found if path.is_file() and not path.name.startswith(".")]


def end_with_parent() -> None:
    """Let the system end this process when its parent dies, where it can.

    Kernels look for themselves, but know only parents that are followed by process 1. In a desktop
    session, and in many containers, another process takes the orphans.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError):  # a Python that was built without it
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def watch_files() -> None:
    """Note from now on which files this process opens, to read or to write, and their state."""
    opened: dict[str, dict[str, object]] = {
        **{"read": {}, "written": {}, "updated": {}},
        "digests": {},  # of what was read first and then written, as it was before that
        "last": {},  # the states in which files were opened last to be read
        "databases": {},
    }
    variables: set[bytes] = set()
    busy: list[str] = []  # the path whose digest is being taken, which opens it

    def hook(event: str, arguments: tuple) -> None:
        if event in ("os.putenv", "os.unsetenv"):
            variables.add(arguments[0])
        for name, mode, flags in _openings(event, arguments):
            if isinstance(name, str | bytes | os.PathLike):
                path = os.path.abspath(os.fsdecode(name))
                if path.endswith(".pyc"):  # what counts is the source that was compiled
                    try:
                        path = importlib.util.source_from_cache(path)
                    except ValueError:
                        continue
                if path in busy:
                    continue
                kind = _kind(mode, flags)
                if kind == "written" and path in opened["read"] and path not in opened["written"]:
                    busy.append(path)
                    opened["digests"].setdefault(path, _digest_if_possible(path))
                    busy.remove(path)
                opened[kind].setdefault(path, _state(path))
                if kind == "read":
                    opened["last"][path] = _state(path)
                if event == "sqlite3.connect":
                    opened["databases"].setdefault(path, None)
                if kind == "written" and isinstance(mode, str) and "+" in mode:
                    caller = str(sys._getframe(1).f_globals.get("__name__")).partition(".")[0]
                    # Pictures and archives are written by handles that could read as well.
                    if caller not in ("PIL", "zipfile"):
                        opened["read"].setdefault(path, None)  # by the same handle, as maps are

    began = time.time_ns()
    sys.audithook_of_oralib = (os.getcwd(), opened, began)  # type: ignore[attr-defined]
    sys.packages_before_oralib = _imported_packages()  # type: ignore[attr-defined]
    sys.paths_before_oralib = list(sys.path)  # type: ignore[attr-defined]
    sys.variables_set_in_oralib = variables  # type: ignore[attr-defined]
    sys.addaudithook(hook)
    _compile_anew()
    _keep_streams()


def _openings(event: str, arguments: tuple) -> list[tuple[object, str | None, int]]:
    """The files that an audit event opens: name, mode and flags."""
    if event == "open":
        return [(arguments[0], arguments[1], arguments[2])]
    if event == "sqlite3.connect":
        name = _database(arguments[0])
        if name in ("", ":memory:"):
            return []
        return [(name, "r+", 0), (f"{name}-wal", "r+", 0)]  # where the latest changes lie
    if event == "ctypes.dlopen":  # a library of the system has no folder
        named = isinstance(arguments[0], str) and os.sep in arguments[0]
        return [(arguments[0], "r", 0)] if named else []
    if event == "os.rename":  # also os.replace, by which files are changed as a whole
        return [(arguments[1], "w", 0)]
    return []


def _kind(mode: str | None, flags: int) -> str:
    """Whether a file is opened to be read, to be written, or perhaps for both."""
    if isinstance(mode, str):
        update, writes = "r" in mode and "+" in mode, any(letter in mode for letter in "wax+")
    else:
        update, writes = flags & 3 == os.O_RDWR and not flags & os.O_TRUNC, bool(flags & 3)
    return "updated" if update else "written" if writes else "read"


def _database(name: object) -> str:
    """The file of a database, which may be given by a URI; nothing if it is in memory."""
    text = os.fsdecode(name) if isinstance(name, bytes | os.PathLike) else str(name)
    if text.startswith("file:"):
        parts = urlsplit(text)
        text = "" if "mode=memory" in parts.query else unquote(parts.path)
    return text


def _keep_streams() -> None:
    """Let no cell leave the kernel without streams: it flushes them, and would never answer again.

    ``sys.stdout = None`` is enough for that. What is printed goes nowhere then, as it would anyway.
    """
    try:
        from IPython import get_ipython
    except ImportError:  # this is no kernel
        return
    shell = get_ipython()

    def mend(*_: object) -> None:
        for name in ("stdout", "stderr"):
            try:
                getattr(sys, name).flush()
            except Exception:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115

    if shell is not None:
        shell.events.register("post_run_cell", mend)


def _compile_anew() -> None:
    """Let modules that are not installed be compiled from their sources, whatever is in a cache.

    Python tells whether a cache is old by the time and the size of the source alone. An edit may
    leave both as they were; in many archives all files have the same time.
    """
    loader, installed = importlib.machinery.SourceFileLoader, _homes_of_what_is_installed()
    known = loader.path_stats

    def path_stats(self, path):  # type: ignore[no-untyped-def]
        if not _is_installed(os.path.realpath(path), installed):
            raise OSError("no cache is used for this source")  # it is then read and compiled
        return known(self, path)

    loader.path_stats = path_stats  # type: ignore[method-assign]


def _state(path: str) -> object:
    """What changes when a file does, even if its time is set back: None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size]


def files_used() -> dict[str, str]:
    """Digests of what the results depend on beside the library and what is installed.

    These are the modules that were imported from anywhere else, other sources and notebooks that
    were read, and all files that were read, and not written, in the folder where the process began
    or below. Names are relative to it. Files that were looked for and are not there are among them,
    and such as have changed meanwhile. Of what is installed only packages count that do not come
    from an index, where each version has a number: those of the user, and of a repository.
    """
    opened, here = _opened(), _home() + os.sep
    # A file that could have been changed, and was not, was read: that is how arrays are mapped.
    kept = {path: state for path, state in opened["updated"].items() if state == _state(path)}
    others = (path for path in opened["updated"] if path not in kept)
    written = {os.path.realpath(path) for path in (*opened["written"], *others)}
    # One that was written with the content that had been read is an input all the same.
    same_again = {
        _watched(path, here): digest
        for path, digest in opened["digests"].items()
        if digest == _digest_if_possible(path) and digest != ABSENT
    }
    before = {_watched(path, here): state for path, state in (kept | opened["read"]).items()}
    installed, own = _homes_of_what_is_installed(), _packages_of_the_user()
    # What is new may be made several times, and be removed, by the notebook's own processes.
    for new in _new_files(opened):
        before[_watched(new, here)] = opened["last"].get(new, opened["read"][new])
        if not os.path.exists(new):
            del before[_watched(new, here)]
    found = {path for path in before if path.startswith((here, *own)) or _is_code(path)}
    for label, module in list(sys.modules.items()):
        try:
            archive = getattr(getattr(module, "__loader__", None), "archive", None)
            path = archive or module.__file__
        except Exception:  # of an object that only looks like a module
            continue
        if isinstance(path, str) and os.path.isfile(path):
            found.add(_watched(os.path.abspath(path), here))
            if "." in str(label) and path.endswith(".py") and not path.endswith("__init__.py"):
                package = os.path.join(path[:-3], "__init__.py")  # which Python would take instead
                found.add(_watched(os.path.abspath(package), here))
    used: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in sorted(found):
        real = _real(path, folders)
        if real in written and path not in same_again:
            continue
        if _is_installed(real, installed) and not real.startswith(own):
            continue
        if _is_hidden(path, here) or os.path.isdir(path):
            continue
        name = os.path.relpath(path, here) if path.startswith(here) else path
        same = path in same_again or path not in before or before[path] == _state(path)
        used[name] = file_digest(path) if same else CHANGED
    return used


def files_written() -> dict[str, bool | None]:
    """The files that were written in the folder of the process or below: were they read as well?

    Then it may matter what others write there at the same time. None stands for a file that was not
    written from Python here and was new when it was read: a process or a library has made it.
    """
    opened, here = _opened(), _home() + os.sep
    new = _new_files(opened)
    changed = {path for path, state in opened["updated"].items() if state != _state(path)}
    both = {os.path.realpath(path) for path in (*opened["read"], *changed)}
    here_written = {os.path.realpath(path) for path in (*opened["written"], *changed)}
    found: dict[str, bool | None] = {}
    for path in sorted({*opened["written"], *new, *changed} - {*opened["databases"]}):
        real = os.path.realpath(path)
        path = real if real.startswith(here) else path
        if path.startswith(here) and not _is_hidden(path, here) and not os.path.isdir(path):
            found[os.path.relpath(path, here)] = real in both if real in here_written else None
    return found


def _new_files(opened: dict[str, dict[str, object]]) -> set[str]:
    """The files that have been made or changed since the notebook began, and then read."""
    last = opened["last"]
    return {
        path
        for path, state in opened["read"].items()
        if _is_new(state) or (state is None and _is_new(last.get(path)))
    }


def _is_new(state: object) -> bool:
    """Whether a file has changed since the notebook began, by the time that nobody can set."""
    began = getattr(sys, "audithook_of_oralib", (None, None, float("inf")))[2]
    return isinstance(state, list) and state[1] > began


def _opened() -> dict[str, dict[str, object]]:
    """What ``watch_files`` has noted."""
    kinds = ("read", "written", "updated", "digests", "last", "databases")
    nothing: dict[str, dict[str, object]] = {kind: {} for kind in kinds}
    opened: dict[str, dict[str, object]] = getattr(sys, "audithook_of_oralib", (None, nothing))[1]
    return opened


def _is_code(path: str) -> bool:
    """Whether it is a source or a notebook, which may have been run without being imported."""
    return path.endswith((".py", ".ipynb")) and os.path.isfile(path)


def _home() -> str:
    """The folder where this process began, as far as is known."""
    watched = getattr(sys, "audithook_of_oralib", None)
    return os.path.realpath(os.getcwd() if watched is None else watched[0])


def _module_files() -> list[tuple[str, object]]:
    """The names of all modules, and their files; one that is lazy is not waked up for it."""
    found = []
    for name, module in [*sys.modules.items()]:
        try:
            found.append((name, object.__getattribute__(module, "__dict__").get("__file__")))
        except Exception:  # no module at all: anything can be put there
            found.append((name, None))
    return found


def _modules_of(used: Iterable[str]) -> set[str]:
    """The first names of modules that were imported from these files."""
    home = _home()  # the notebook may be in another folder now
    files = {os.path.normpath(os.path.join(home, name)) for name in used}
    modules = _module_files()
    places = [(name, os.path.join(home, path)) for name, path in modules if isinstance(path, str)]
    found = {name for name, path in places if {path, os.path.realpath(path)} & files}
    return {name.partition(".")[0] for name in found} - {"__main__"}


def module_places(
    names: Iterable[str], folder: str, known: list[str] | None = None
) -> dict[str, str | None]:
    """Where a kernel that begins in this folder would find modules.

    It is told by the paths with which this process began, or by those that are known.

    A notebook may have found them elsewhere, by a path of its own; this is as if it had not.
    """
    folder = os.path.realpath(folder)
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    mine = {os.path.abspath(path) for path in given}
    # What Python puts first is the folder of a script, or the current one.
    others = getattr(sys, "paths_before_oralib", sys.path)[1:] if known is None else known
    others = [path for path in others if path and path != folder and path not in mine]
    homes = [i for i, path in enumerate(others) if os.path.basename(path) in _SITES]
    others.insert(min(homes, default=len(others)), folder)  # as IPython does
    paths = [*(os.path.join(folder, path) for path in given), *others]
    importlib.invalidate_caches()
    found: dict[str, str | None] = {}
    for name in names:
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if spec is None and find is not None:
                is_path = finder is importlib.machinery.PathFinder
                with contextlib.suppress(Exception):  # of a finder of somebody else
                    spec = find(name, paths) if is_path else find(name, None)
        place = None if spec is None else _place_of(spec)
        if place is not None and place.startswith(folder + os.sep):
            place = os.path.relpath(place, folder)  # it moves with the notebook
        found[name] = place
    return found


def described_after_error() -> str:
    """What there is to know of a notebook that has failed, as JSON."""
    return json.dumps({"own_start": _has_own_start(), "written": files_written()})


def _has_own_start() -> bool:
    """Whether the notebook has changed on what its imports may depend.

    These are variables of the environment, and folders where it would find other packages than
    those that have been imported. Such a notebook cannot begin where imports have ended.
    """
    variables = {*getattr(sys, "variables_set_in_oralib", ())} - {b"OPENBLAS_MAIN_FREE"}  # NumPy's
    known, home = getattr(sys, "paths_before_oralib", sys.path), _home()
    added = [os.path.join(home, path) for path in sys.path if path not in known]
    find, installed = importlib.machinery.PathFinder.find_spec, _imported_packages()
    return bool(variables) or any(find(name, added) for name in installed if added)


def _place_of(spec: importlib.machinery.ModuleSpec) -> str | None:
    """Where a module really lies, links followed; one without a file of its own has folders."""
    if spec.origin is not None:
        return os.path.realpath(spec.origin) if spec.has_location else spec.origin
    folders = spec.submodule_search_locations
    return None if folders is None else os.pathsep.join(sorted(map(os.path.realpath, folders)))


def _real(path: str, folders: dict[str, str]) -> str:
    """``os.path.realpath`` for many files: every folder is looked up once."""
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    path = os.path.join(folders[folder], name)
    return os.path.realpath(path) if os.path.islink(path) else path


def _watched(path: str, here: str) -> str:
    """The path by which a file is known; a link that lies here stays one, wherever it leads."""
    return path if path.startswith(here) else os.path.realpath(path)


#: What stands for the digest of a file that is not there, and of one that changed meanwhile.
ABSENT, CHANGED = "absent", "changed"


def _digest_if_possible(path: str) -> str | None:
    try:
        return file_digest(path)
    except OSError:
        return None


def file_digest(path: str) -> str:
    if not os.path.isfile(path):
        return ABSENT
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _homes_of_what_is_installed() -> tuple[str, ...]:
    """The beginnings of the paths of all that is installed, the library included."""
    package = _library()
    library = [] if package is None else [str(package)]
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    homes = {*(sysconfig.get_path(kind) for kind in kinds), os.path.dirname(os.__file__), *library}
    return tuple(os.path.realpath(home) + os.sep for home in homes if home)


def _packages_of_the_user() -> tuple[str, ...]:
    """The beginnings of the paths of packages that were installed from a folder or a repository."""
    found = []
    for home in _site_packages():
        for origin in Path(home).glob("*.dist-info/direct_url.json"):
            if origin.parent.name.startswith("oralib-"):
                continue
            with contextlib.suppress(OSError, ValueError):
                lines = (origin.parent / "RECORD").read_text(encoding="utf-8").splitlines()
                tops = {line.split(",")[0].strip('"').partition("/")[::2] for line in lines}
                found += [
                    os.path.join(home, top, "") if rest else os.path.join(home, top)
                    for top, rest in {(top, bool(rest)) for top, rest in tops}
                    if top != ".."
                ]
    return tuple(found)


def _site_packages() -> list[str]:
    """Where packages are installed, for this environment, for the user and for all."""
    found = [os.path.realpath(path) for path in sys.path if os.path.basename(path) in _SITES]
    return list(dict.fromkeys(found))


def _is_installed(real: str, homes: tuple[str, ...]) -> bool:
    return real.startswith(homes) or f"{os.sep}site-packages{os.sep}" in real


def _library() -> Path | None:
    """The folder of the library that has been imported, or of the one that would be."""
    loaded = sys.modules.get("oralib")
    spec = None if loaded is not None else importlib.util.find_spec("oralib")
    origin = getattr(loaded, "__file__", None) or (spec.origin if spec is not None else None)
    return None if origin is None else Path(origin).resolve().parent


def _is_hidden(path: str, here: str) -> bool:
    """Whether it lies in a folder here where programs keep their caches and settings."""
    if not path.startswith(here):
        return False
    folders = path.removeprefix(here).split(os.sep)[:-1]
    return any(part.startswith(".") or part == "__pycache__" for part in folders)


def described() -> str:
    """What this process is, as JSON; ``touched`` changes if a source is edited and restored."""
    package = _library()
    files = [] if package is None else [(str(p), p.stat()) for p in _sources(package)]
    return json.dumps(
        {
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": {name: version_of(name) for name in (*PACKAGES, *_further_packages())},
            "library": None if package is None else library_digest(package),
            "place": None if package is None else str(package),
            "used": (used := files_used()),
            "written": files_written(),
            "found": module_places(_modules_of(used) | _further_modules(), _home()),
            "slow": [name for name in SLOW if name in sys.modules],
            "own_start": _has_own_start(),
            "recorded": getattr(sys, "recorded_in_oralib", []),  # names of results
            "touched": [[name, stat.st_mtime_ns, stat.st_size] for name, stat in files],
        }
    )


#: What the packages of ``SLOW`` and their like import from elsewhere.
_BESIDE = (
    *("PIL", "absl", "attr", "attrs", "charset_normalizer", "contourpy", "cycler", "dateutil"),
    *("fontTools", "kiwisolver", "llvmlite", "mpmath", "packaging", "platformdirs", "pyparsing"),
    *("pytz", "six", "tqdm", "yaml", "cffi", "coverage", "pycparser"),
)

#: What every record names, or what belongs to it.
_USUAL = ("matplotlib", "mpl_toolkits", "oralib", *SLOW)


def _imported_packages() -> set[str]:
    """The first names of installed modules that have been imported."""
    kinds = [f"{os.sep}{name}{os.sep}" for name in _SITES]
    files = _module_files()
    return {
        name.partition(".")[0]
        for name, path in files
        if isinstance(path, str) and any(kind in path for kind in kinds)
    }


def _further_modules() -> set[str]:
    """The first names of installed modules that a notebook has imported beside the usual ones.

    What others have imported for themselves counts if the notebook, or a module of the user, has a
    name for it, or for something of it.
    """
    others = _imported_packages() - {*_USUAL, *getattr(sys, "packages_before_oralib", ())}
    return others - ({*_BESIDE} - _named_by_the_user() if others & {*_BESIDE} else set())


def _named_by_the_user() -> set[str]:
    """The first names of modules of which something is known in the notebook, or in a module."""
    installed, named = _homes_of_what_is_installed(), set()
    for name, path in _module_files():
        mine = isinstance(path, str) and not _is_installed(os.path.realpath(path), installed)
        if mine or name == "__main__":
            for value in list(object.__getattribute__(sys.modules[name], "__dict__").values()):
                kind = type(value)
                if kind is types.ModuleType:
                    named.add(value.__name__)
                elif kind.__module__ in ("builtins", "functools"):  # a function or a class, mostly
                    named.add(getattr(value, "__module__", None))
                named.add(kind.__module__)
    return {name.partition(".")[0] for name in named if isinstance(name, str)}


def _further_packages() -> list[str]:
    """What a notebook has imported beside the usual packages, by the names of installations."""
    tops = _further_modules()
    homes = importlib.metadata.packages_distributions() if tops else {}  # it takes half a second
    return sorted({dist for top in tops for dist in homes.get(top, ())} - {*PACKAGES})


def version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
