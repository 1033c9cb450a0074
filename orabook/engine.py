"""The engine that papermill finds as ``--engine oralib``, by an entry point in ``pyproject.toml``.

papermill imports this module whenever it is itself imported. So nothing else is imported here
before a notebook is run; ``orabook.products`` does the work.
"""

from typing import Any

__all__ = ["Engine"]


def _engine() -> Any:
    from orabook.products import ProductEngine

    return ProductEngine


class Engine:
    """The three functions that papermill asks of an engine."""

    @staticmethod
    def execute_notebook(nb: Any, kernel_name: str, **options: Any) -> Any:
        return _engine().execute_notebook(nb, kernel_name, **options)

    @staticmethod
    def nb_kernel_name(nb: Any, name: str | None = None) -> Any:
        return _engine().nb_kernel_name(nb, name)

    @staticmethod
    def nb_language(nb: Any, language: str | None = None) -> Any:
        return _engine().nb_language(nb, language)
