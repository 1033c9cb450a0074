"""What a Python process can say about itself: its version, its packages, its copy of the library.

The text of this module is also executed inside the kernels that run chapters, which may belong to
another environment. So it needs the standard library alone.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
from pathlib import Path

PACKAGES = ("oralib", "numpy", "scipy", "numba", "matplotlib", "dp-accounting", "ipykernel")


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
    return [path for path in found if "runs" not in path.relative_to(package).parts]


def described() -> str:
    """What this process is, as JSON. ``touched`` changes even if a source is edited and restored.

    The library is the one that has been imported, or the one that would be.
    """
    loaded = sys.modules.get("oralib")
    spec = None if loaded is not None else importlib.util.find_spec("oralib")
    origin = getattr(loaded, "__file__", None) or (spec.origin if spec is not None else None)
    package = None if origin is None else Path(origin).resolve().parent
    files = [] if package is None else [(str(p), p.stat()) for p in _sources(package)]
    return json.dumps(
        {
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": {name: _version(name) for name in PACKAGES},
            "library": None if package is None else library_digest(package),
            "place": None if package is None else str(package),
            "touched": [[name, stat.st_mtime_ns, stat.st_size] for name, stat in files],
        }
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
