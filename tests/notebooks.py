"""Small notebooks that behave like chapters, for tests of runs and sweeps."""

import nbformat

PARAMETERS = """x: float = 1.0  # a number
n: int = 2  # an integer
ratios: list = [1, 2]  # a list
word: str = "a"  # a word
seed: int = 1  # seed of all random numbers"""

#: What glue does, without the import of Sphinx.
GLUE = """import os, time
from IPython.display import publish_display_data

def glue(name, value):
    data = {"application/papermill.record/text/plain": repr(value)}
    publish_display_data(data, metadata={"scrapbook": {"name": name}})
"""

COMPUTE = """time.sleep(0.05)
if word == "fail":
    raise RuntimeError(f"cannot do x={x}")
glue("square", x * x + n)
glue("text", f"{x:.1f} ± {n}")
glue("threads", int(os.environ.get("NUMBA_NUM_THREADS", 0)))"""

STORY = """(target)=
# A chapter

The square is {glue:text}`square`, see {doc}`elsewhere <other>` and {prf:ref}`thm-a`.

:::{prf:theorem} Squares
:label: thm-a
They are positive.
:::"""


def write_chapter(folder, *, name="small", extra=""):
    """A chapter with parameters in a folder; its path."""
    parameters = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    cells = [
        nbformat.v4.new_markdown_cell(STORY),
        parameters,
        nbformat.v4.new_code_cell(GLUE),
        nbformat.v4.new_code_cell(COMPUTE + extra),
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
