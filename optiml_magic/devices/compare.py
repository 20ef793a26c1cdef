"""Fixed code that compares a buffer with the wanted one: statistics only, judged elsewhere."""

from __future__ import annotations

import numpy as np

from optiml_magic.devices.base import Array, Tolerance
from optiml_magic.model.verdict import OutputCheck

_LARGEST = float(np.finfo(np.float64).max)


def compare(
    name: str, got: Array, expected: Array, tolerance: Tolerance, poison: Array | None
) -> OutputCheck:
    """Compare element by element, failing closed: a NaN passes only where the oracle has one too.

    Args:
        name: of the output.
        got: what the kernel left, any shape.
        expected: same shape, in the oracle's precision.
        tolerance: for floating point; integers and booleans must be equal.
        poison: what the buffer held before the launch, to tell unwritten elements.
    """
    if got.dtype.kind in "fc":
        wrong, nonfinite, difference, scale = _float_errors(got, expected, tolerance)
    else:
        wrong, nonfinite = got != expected, np.zeros(got.shape, bool)
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        scale = np.abs(expected.astype(np.float64))
    where = np.flatnonzero(wrong)
    first = int(where[0]) if where.size else None
    unwritten = 0
    if poison is not None and where.size:
        unwritten = int(np.count_nonzero(_same_bits(got, poison).reshape(-1)[where]))
    with np.errstate(over="ignore"):
        norm = float(np.sqrt(np.sum(scale**2)))
        error = float(np.sqrt(np.sum(difference**2)))
    return OutputCheck(
        name=name,
        elements=got.size,
        wrong=int(where.size),
        unwritten=unwritten,
        nonfinite=int(np.count_nonzero(nonfinite)),
        error=_finite(error / norm if norm else error),
        max_abs_error=_finite(float(difference.max(initial=0.0))),
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        first_index=() if first is None else tuple(map(int, np.unravel_index(first, got.shape))),
        got="" if first is None else str(got.reshape(-1)[first]),
        wanted="" if first is None else str(expected.reshape(-1)[first]),
    )


def _finite(value: float) -> float:
    """JSON has no infinity; an overflowing norm is as good as the largest double."""
    return min(_LARGEST, value)


def _float_errors(
    got: Array, expected: Array, tolerance: Tolerance
) -> tuple[Array, Array, Array, Array]:
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        have, want = got.astype(wide), expected.astype(wide)
        finite = np.isfinite(have) & np.isfinite(want)
        difference = np.where(finite, np.abs(have - want), 0.0)
        scale = np.where(finite, np.abs(want), 0.0)
        close = finite & (difference <= tolerance.atol + tolerance.rtol * scale)
        same = ~finite & ((have == want) | (np.isnan(have) & np.isnan(want)))
    nonfinite = ~np.isfinite(have) & np.isfinite(want)
    return ~(close | same), nonfinite, difference, scale


def _same_bits(got: Array, poison: Array) -> Array:
    raw = np.dtype((np.void, got.dtype.itemsize))
    same: Array = np.ascontiguousarray(got).view(raw) == np.ascontiguousarray(poison).view(raw)
    return same


def poison_like(array: Array, seed: int) -> Array:
    """Random bits in the shape and dtype of ``array``: what an output holds before a launch."""
    rng = np.random.default_rng(seed)
    return np.frombuffer(rng.bytes(array.nbytes), dtype=array.dtype).reshape(array.shape).copy()
