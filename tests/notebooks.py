"""Small notebooks that behave like chapters, for tests of runs and sweeps."""

import contextlib

import nbformat

PARAMETERS = """x: float = 1.0  # a number
n: int = 2  # an integer
ratios: list = [1, 2]  # a list
word: str = "a"  # a word
seed: int = 1  # seed of all random numbers"""

#: ``from oralib import results`` without the seconds that the import of the whole library takes.
IMPORTS = """import os, time
from importlib.util import find_spec, module_from_spec, spec_from_file_location

place = find_spec("oralib").submodule_search_locations[0]
spec = spec_from_file_location("results", os.path.join(place, "results.py"))
results = module_from_spec(spec)
spec.loader.exec_module(results)
"""

COMPUTE = """time.sleep(0.05)
if word == "fail":
    raise RuntimeError(f"cannot do x={x}")
square = x * x + n"""

STORY = """(target)=
# A chapter

See {doc}`elsewhere <other>` and {prf:ref}`thm-a`.

:::{prf:theorem} Squares
:label: thm-a
They are positive.
:::"""

CONCLUSION = 'The square is {eval}`square`, or {eval}`f"{square:.2f} ± {n}"`.'

RECORD = """results.record(
    square=square, text=f"{x:.1f} ± {n}", threads=int(os.environ.get("NUMBA_NUM_THREADS", 0))
)"""


def write_chapter(folder, *, name="small", extra=""):
    """A chapter with parameters in a folder; its path. ``extra`` comes last."""
    parameters = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    cells = [
        nbformat.v4.new_markdown_cell(STORY),
        parameters,
        nbformat.v4.new_code_cell(IMPORTS),
        nbformat.v4.new_code_cell(COMPUTE),
        nbformat.v4.new_markdown_cell(CONCLUSION),
        nbformat.v4.new_code_cell(RECORD + extra),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


def run_points_here(monkeypatch):
    """Sweeps run their points in this process, one by one, without a cluster."""
    from oralib.runs import cluster, sweep

    @contextlib.contextmanager
    def connected(workers, scheduler=None):
        yield None

    def ended(client, calls):
        for i, call in calls.items():
            yield i, sweep.run_point(*call)

    monkeypatch.setattr(cluster, "connected", connected)
    monkeypatch.setattr(sweep, "_ended", ended)
    for name in sweep._THREADS:  # which a worker sets, here for this process
        monkeypatch.setenv(name, "1")
