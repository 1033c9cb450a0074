"""A notebook executed in a kernel that says what it is.

papermill does the work. Before the first cell and after the last one the kernel is asked about
itself, in silence: nothing of it is in the notebook, nor among the kernel's variables. The numbers
in prose are asked for in the same way, when their cell is reached.
"""

import ast
import contextlib
import inspect
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from oralib.runs import inside, prose, warm
from oralib.runs.record import RunFailed

KERNEL = "python3"

#: Seconds for a kernel to answer when it has nothing else to do. On a busy machine it is slow.
START = 60

#: What nbclient would print beside the error that it raises.
_unheard = logging.getLogger(__name__)
_unheard.addHandler(logging.NullHandler())
_unheard.propagate = False


def _question(*asked: str) -> str:
    """An expression that calls functions of ``inside`` in a kernel; the answer of the last one."""
    return (
        # A chapter may have an exec of its own.
        f"(lambda space: (__import__('builtins').exec({inspect.getsource(inside)!r}, space), "
        f"space['answer'](*{asked!r}))[-1])"
        "({'__name__': 'inside'})"
    )


def execute(
    text: str,
    output: Path,
    values: Mapping[str, Any],
    *,
    log: Path,
    library: str,
    cwd: Path,
    progress: bool = False,
    again: bool = False,
    tries: int = 3,
) -> dict[str, Any]:
    """Execute a notebook with other parameters, and return what its kernel says about itself.

    Parameters
    ----------
    text : the notebook. It is not read from a file again, which somebody could have exchanged.
    output : where to write it executed; it is also there after an error.
    log : where to write what the kernel says about its own troubles.
    library : the digest of the library that the kernel must have, before and after.
    again : whether this process will start more such kernels, so that they should share imports.
    tries : how often to start a kernel whose ports somebody else takes before it does.
    """
    words: list[dict[str, Any]] = []

    def anew(again: bool, tries: int) -> dict[str, Any]:
        place: dict[str, Any] = {"log": log, "library": library, "cwd": cwd}
        return execute(text, output, values, **place, progress=progress, again=again, tries=tries)

    def from_nothing() -> dict[str, Any]:
        """The same in a kernel that has imported nothing before the notebook could say how."""
        warm.down()
        return anew(False, tries)

    try:
        papermill.execute_notebook(
            nbformat.reads(text, 4),
            _plain(output),
            dict(values),
            engine_name="oralib",
            cwd=str(cwd),
            progress_bar={"disable": None, "leave": False} if progress else False,
            kernel_name=KERNEL,
            language="python",
            log_output=False,
            start_timeout=START,
            library=library,
            words=words,
            errors=log,
            again=again,
        )
    except papermill.PapermillExecutionError as error:
        if words[0]["slow"] and words[-1]["own_start"]:
            return from_nothing()
        raise RunFailed(f"{error.ename}: {error.evalue}", words[-1]["written"]) from None
    except NoSuchKernel:
        raise RunFailed(f"there is no kernel {KERNEL!r}; install ipykernel") from None
    except CellTimeoutError:
        raise RunFailed(
            f"the kernel {KERNEL!r} lives and does not answer any more; something in the notebook, "
            "or too little memory, keeps it from that"
        ) from None
    except (FileNotFoundError, PermissionError) as error:
        raise RunFailed(f"the kernel {KERNEL!r} cannot be started in {cwd}: {error}") from None
    except RuntimeError as error:  # of a kernel that dies, or never begins
        said, log_lines = str(error), log.read_text(encoding="utf-8", errors="replace").splitlines()
        if tries > 1 and not words and any("Address already in use" in line for line in log_lines):
            return anew(again, tries - 1)
        if "respond" in said:
            said = f"the kernel {KERNEL!r} has not answered within {START} s of its start"
            # What it says last is that it was ended then.
            log_lines = [line for line in log_lines if re.match(r"\w+Error\b", line)]
        lines = [said, *log_lines[-1:]]
        raise RunFailed(" ".join(" ".join(lines).split()) or type(error).__name__) from None
    except nbformat.ValidationError as error:
        raise RunFailed(f"an output is not as notebooks have it: {error.message}") from None
    except (RunFailed, OSError, MemoryError):
        raise
    except Exception as error:  # of clients that are told nonsense, in many forms
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise RunFailed(f"the kernel {KERNEL!r} cannot be understood: {said}") from None
    before, after = words
    if after["own_start"]:
        if before["slow"]:
            return from_nothing()
        warm.down()
    warm.learn(after["slow"])
    changed = [name for name, digest in after["used"].items() if digest == inside.CHANGED]
    if changed:
        raise RunFailed(
            f"{', '.join(changed)} has changed since it was read, so the results are not kept; "
            "run it again",
            after["written"],
        )
    if after["library"] != library or after["touched"] != before["touched"]:
        raise RunFailed(
            f"oralib at {after['place']} has changed in the meantime, so the results are not kept; "
            "run it again",
            after["written"],
        )
    return after


def _plain(path: Path) -> str:
    """A path for papermill, which would fill in what stands in braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


class _Client(PapermillNotebookClient):
    """Asks the kernel what it is, first and last, and for the numbers in prose on the way."""

    def __init__(
        self, notebook: Any, library: str, words: list[dict[str, Any]], again: bool, **kw: Any
    ) -> None:
        super().__init__(notebook, **kw)
        self._library = library
        self._words = words
        self._again = again

    def create_kernel_manager(self) -> Any:
        manager = super().create_kernel_manager()
        if self._again:
            warm.up(manager)
        return manager

    def papermill_execute_cells(self) -> None:
        self.timeout = START
        said = self._ask("end_with_parent", "watch_files", "described")
        self.timeout = None  # type: ignore[assignment]  # cells take as long as they take
        if said["library"] is None:
            raise RunFailed(f"the kernel {KERNEL!r}, {said['executable']}, has no oralib")
        if said["library"] != self._library:
            raise RunFailed(
                f"the kernel {KERNEL!r}, {said['executable']}, has another oralib than the one "
                f"that was asked for: {said['place']} is of version {said['library']}, not "
                f"{self._library}"
            )
        self._words.append(said)
        super().papermill_execute_cells()
        for cell in self.nb.cells:
            outputs = cell.get("outputs", [])
            for output in outputs:
                # papermill takes a cell that ends the kernel for the end of a notebook.
                if output.output_type == "error" and output.ename == "SystemExit":
                    said = f"SystemExit: {output.evalue or 0}, before the last cell"
                    raise RunFailed(said, self._written_by_now())
            if cell.metadata.papermill.get("exception"):
                if any(output.output_type == "error" for output in outputs):
                    with contextlib.suppress(RunFailed):  # of a kernel that can say nothing
                        self._words.append(self._ask("described_after_error"))
                    return  # papermill will say it
                # A kernel that cannot tell an exception, for want of file handles, prints it.
                lines = "".join(output.get("text", "") for output in outputs).split("\n")
                raise RunFailed(next(filter(str.strip, reversed(lines)), "a cell failed"))
        with self._telling_what_is_written():
            prose.check_unchanged(self, self.nb)
        self._words.append(self._ask("described"))

    @contextlib.contextmanager
    def _telling_what_is_written(self) -> Iterator[None]:
        try:
            yield
        except RunFailed as error:  # of prose that cannot be filled in
            raise RunFailed(str(error), self._written_by_now()) from None

    def _written_by_now(self) -> dict[str, bool | None]:
        with contextlib.suppress(RunFailed):  # of a kernel that can say nothing
            return dict(self._ask("described_after_error")["written"])
        return {}

    def execute_cell(self, cell: Any, cell_index: int, **kw: Any) -> Any:
        with self._telling_what_is_written():
            prose.fill_in(self, cell)
        return super().execute_cell(cell, cell_index, **kw)

    def _ask(self, *asked: str) -> Any:
        expressions = {"answer": _question(*asked)}
        message = self.kc.execute(
            "", silent=True, store_history=False, user_expressions=expressions
        )
        answer = self.wait_for_reply(message)["content"]["user_expressions"]["answer"]
        if answer["status"] != "ok":
            raise RunFailed(f"the kernel {KERNEL!r} cannot say what it is: {answer['evalue']}")
        said = json.loads(ast.literal_eval(answer["data"]["text/plain"]))
        if isinstance(said, dict) and "error" in said:
            raise RunFailed(f"the kernel {KERNEL!r} cannot say what it is: {said['error']}")
        return said


def _environment(profile: str) -> dict[str, str]:
    """That of a kernel: start-up files of the user are no part of a chapter.

    Its assertions are, and the modules beside it.
    """
    personal = ("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONSAFEPATH")
    given = {name: word for name, word in os.environ.items() if name not in personal}
    return {**given, "IPYTHONDIR": profile}


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, start_timeout: int, **kw: Any
    ) -> Any:
        client = _Client(
            nb_man,
            kw["library"],
            kw["words"],
            kw["again"],
            kernel_name=kernel_name,
            startup_timeout=start_timeout,
            iopub_timeout=START,  # for the output of a cell that has ended, on a busy machine
            log=_unheard,
        )
        # papermill would write the whole notebook twice for each of its cells; it is written at the
        # end, however that comes.
        nb_man.save = lambda **kw: None
        # A kernel has a word to say on the terminal when its parent dies, but nobody to say it to.
        try:
            with (
                kw["errors"].open("wb") as errors,
                tempfile.TemporaryDirectory(prefix="oralib-", ignore_cleanup_errors=True) as folder,
            ):
                return client.execute(stderr=errors, env=_environment(folder))
        finally:
            del nb_man.save


papermill_engines.register("oralib", _Engine)
