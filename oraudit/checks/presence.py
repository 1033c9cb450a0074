"""The noise that is there: what rounding leaves of no noise must not look like repeated noise."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oraudit.records import Noise, Seen

__all__ = ["NO_NOISE", "present_noise"]

#: The share of the told size below which there is no noise, but rounding.
NO_NOISE = 1e-4


def present_noise(seen: Seen) -> Noise | None:
    """Return the noise, with its absent parts marked; None if all of it is absent.

    The noise of a tensor in a step is absent if there is none, if its sums are not finite, or if
    none was told. There sums are 0 and samples NaN.
    """
    noise = seen.noise
    if noise is None:
        return None
    absent = _absent(seen, noise)
    if absent.all():
        return None
    if not absent.any():
        return noise
    return replace(
        noise,
        squares=np.where(absent, 0.0, noise.squares),
        products=np.where(absent, 0.0, noise.products),
        sums=np.where(absent, 0.0, noise.sums),
        largest=np.where(absent, 0.0, noise.largest),
        sample=np.where(absent[:, noise.owners], np.nan, noise.sample),
        heads=np.where(absent[:, :, None], np.nan, noise.heads),
    )


def _absent(seen: Seen, noise: Noise) -> NDArray[np.bool_]:
    """Return which tensors have no noise in which steps."""
    absent = ~(noise.squares > NO_NOISE**2 * noise.sizes)
    absent |= ~np.isfinite(noise.squares + noise.sums)
    absent[seen.sigmas <= 0] = True
    return absent
