"""What all tests share."""

import os

import pytest
from hypothesis import settings

from orabook.extensions import stored_outputs

# As `orabook.trainings` does: PyTorch draws the same normal numbers on every processor.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")

# How many examples Hypothesis tries; `pytest --hypothesis-profile more` tries more of them.
settings.register_profile("few", deadline=None, max_examples=40)
settings.register_profile("more", deadline=None, max_examples=300)
settings.load_profile("few")

# Chapters with real trainings are compared with their outputs only where what they need is there.
collect_ignore = [str(path) for path in stored_outputs.chapters()]
# Modules without examples to test, which import PyTorch for seconds.
collect_ignore += ["oraudit/records/torch_noise.py", "orabook/trainings/_opacus.py"]
collect_ignore += ["oraudit/neighbour_test/pytorch.py", "oraudit/neighbour_test/random_numbers.py"]
collect_ignore += ["oraudit/ways/opacus"]
# Recipes, which tests/test_audit_recipes.py runs.
collect_ignore += ["book/recipes"]
# Trainings that tests import where PyTorch is there.
collect_ignore += [
    f"tests/witness/{name}.py"
    for name in ("cases", "honest", "loop_bugs", "opacus_bugs", "opacus_loop", "planted")
]


#: Of the slow tests these take longest. They begin first, so that no worker waits at the end.
LONGEST = ("test_rendered", "test_any_order", "test_parameters")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the cells of chapters with real trainings, which nbval collects without any marker."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    trained = {path for path in stored_outputs.BOOK.glob("*.ipynb") if stored_outputs.extras(path)}
    for item in items:
        if item.path in trained:
            item.add_marker("torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """After nbval has compared a cell: its pictures, and the numbers in the prose below it."""
    result = yield
    if type(item).__name__ == "IPyNbCell":
        from orabook.builder import compare  # the library is tested without Matplotlib, too

        compare.check_cell(item)
    return result
