"""Fixed code that compares a buffer with the wanted one: statistics only, judged elsewhere.

The same code runs on NumPy and on CuPy arrays; ``xp`` names the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Tolerance
from optiml_magic.model.verdict import OutputCheck

_LARGEST = float(np.finfo(np.float64).max)


def compare(  # the last one only names the array library
    name: str,
    got: Any,
    expected: Any,
    tolerance: Tolerance,
    poison: Any | None,
    *,
    xp: Any = np,
) -> OutputCheck:
    """Compare element by element, failing closed: a NaN passes only where the oracle has one too.

    Args:
        name: of the output.
        got: what the kernel left, any shape.
        expected: same shape, in the oracle's precision.
        tolerance: zero for integers and booleans unless the user allows more.
        poison: what the buffer held before the launch, to tell unwritten elements.
        xp: the array library of ``got``, ``expected`` and ``poison``.
    """
    if got.dtype.kind == "b":  # any other byte than 0 and 1 is no bool, however true it looks
        got, expected = got.view(np.uint8), expected.astype(np.uint8)
        poison = None if poison is None else poison.view(np.uint8)
    with np.errstate(all="ignore"):
        if got.dtype.kind in "fc":
            wrong, nonfinite, difference, scale = _float_errors(got, expected, tolerance, xp)
        else:
            nonfinite = xp.zeros(got.shape, bool)
            difference = xp.abs(got.astype(np.float64) - expected.astype(np.float64))
            scale = xp.abs(expected.astype(np.float64))
            allowed = tolerance.atol + tolerance.rtol * scale
            # Equal bits or an allowance the user asked for: a double cannot tell large integers.
            wrong = (got != expected) & ((allowed == 0) | (difference > allowed))
        norm = float(xp.sqrt(xp.sum(scale**2)))
        error = float(xp.sqrt(xp.sum(difference**2)))
    where = xp.flatnonzero(wrong)
    first = int(where[0]) if where.size else None
    unwritten = 0
    if poison is not None and where.size:
        unwritten = int(xp.count_nonzero(same_bits(got, poison)[where]))
    return OutputCheck(
        name=name,
        elements=got.size,
        wrong=int(where.size),
        unwritten=unwritten,
        nonfinite=int(xp.count_nonzero(nonfinite)),
        error=_finite(error / norm if norm else error),
        max_abs_error=_finite(float(difference.max()) if difference.size else 0.0),
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
    got: Any, expected: Any, tolerance: Tolerance, xp: Any
) -> tuple[Any, Any, Any, Any]:
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    have, want = got.astype(wide), expected.astype(wide)
    finite = xp.isfinite(have) & xp.isfinite(want)
    difference = xp.where(finite, xp.abs(have - want), 0.0)
    scale = xp.where(finite, xp.abs(want), 0.0)
    close = finite & (difference <= tolerance.atol + tolerance.rtol * scale)
    same = (have == want) | (xp.isnan(have) & xp.isnan(want))
    nonfinite = ~xp.isfinite(have) & xp.isfinite(want)
    return ~(close | same), nonfinite, difference, scale


def same_bits(got: Any, poison: Any) -> Any:
    """Per element, flat: whether it still holds the very bits of the poison."""
    size = got.dtype.itemsize
    one, two = (a.reshape(-1).view(np.uint8).reshape(-1, size) for a in (got, poison))
    return (one == two).all(axis=1)


def poison_like(array: Array, seed: int) -> Array:
    """Random bits in the shape and dtype of ``array``: what an output holds before a launch."""
    raw = np.frombuffer(np.random.default_rng(seed).bytes(array.nbytes), np.uint8).copy()
    if array.dtype.kind == "b":
        raw |= 0x80  # neither false nor true
    return raw.view(array.dtype).reshape(array.shape)
