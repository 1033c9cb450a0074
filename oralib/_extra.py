"""What the extra ``runs`` brings, and that it is there."""

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
    missing = {package: module for package, module in RUNS.items() if _is_missing(module)}
    if missing:
        raise ModuleNotFoundError(
            f"{who} needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'oralib[runs]'",
            name=next(iter(missing.values())),
        )


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ValueError:  # of a module without a spec, which is there
        return False
    except ImportError:
        return True
