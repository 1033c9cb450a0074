"""Packages that only some need, and what to install where one of them is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

#: What the extra ``runs`` installs, each with the module that it brings.
RUNS = {
    "papermill": "papermill",
    "nbformat": "nbformat",
    "ipykernel": "ipykernel",
    "myst-parser": "myst_parser",
    "pybtex": "pybtex",
    "dask": "dask",
    "distributed": "distributed",
    "cryptography": "cryptography",
    "filelock": "filelock",
    "pyyaml": "yaml",
}


def check_runs(who: str) -> None:
    """That all is there that runs of chapters need; who needs it is for the message."""
    missing = [package for package, module in RUNS.items() if find_spec(module) is None]
    if missing:
        raise ModuleNotFoundError(
            f"{who} needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'oralib[runs]'",
            name=RUNS[missing[0]],
        )


@contextmanager
def needed(*packages: str) -> Iterator[None]:
    """Say what to install if one of the packages for real trainings is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"real trainings need {' and '.join(packages)}, and there is no {error.name}: "
            "pip install 'oralib[torch]', or make torch in the repository",
            name=error.name,
        ) from None
