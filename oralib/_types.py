"""The type of an array whose entries need no name."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
