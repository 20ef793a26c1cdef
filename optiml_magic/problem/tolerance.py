"""How far a right answer may be off, by dtype. The constants are ours.

The wanted values are computed in float64 where the reference allows it, so what is left is the
rounding of the kernel itself. Relative to the larger of an element and the median of the output
(its zeros left out, so that neither a sentinel nor padding sets the scale), float32 code lands near
1e-6 and an fp16 or tf32 shortcut near 3e-4: the limit stands between.

Where many terms are added up, rounding errors grow like a random walk, with the root of their
number (Higham, Accuracy and Stability of Numerical Algorithms, section 2.6), and the limit grows
with it from ``_LONG`` terms on. The error of a shortcut does the opposite where all terms
have one sign: it averages out. So finalists also see inputs of mixed signs (``scales.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Tolerance
from optiml_magic.model.dtypes import BFLOAT16, kind, numbers, part

_RELATIVE = {2: 4e-3, 4: 2e-5, 8: 1e-10}  # by bytes of the real part
_BFLOAT16 = 3e-2  # four units in the last place, as for float16
_LONG = 1 << 14  # terms that the limits above have room for
_MOST_GROWTH = 6.0  # beyond, a shortcut would fit into the limit of a float32 output
_SEEN = 1 << 20  # elements whose median stands for that of all
_NARROW_ORACLE = 4.0  # how much wider where the oracle itself computed in the kernel's precision


def tolerance(
    expected: Array,
    dtype: np.dtype[np.generic],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    narrow_oracle: bool = False,
    terms: int = 1,
    scale: float | None = None,
) -> Tolerance:
    """The tolerance for an output of ``dtype``; a task's own ``rtol`` and ``atol`` win.

    ``terms`` is how many numbers may have been added up to one element. Each number of a struct has
    its own. ``scale`` is that of ``expected``, where it was computed before.
    """
    if dtype.names is not None:
        fields = tuple(
            tolerance(
                part(expected, wide),
                own.dtype,
                rtol=rtol,
                atol=atol,
                narrow_oracle=narrow_oracle,
                terms=terms,
            )
            for wide, own in zip(numbers(expected.dtype), numbers(dtype), strict=True)
        )
        return Tolerance(max(f.rtol for f in fields), max(f.atol for f in fields), fields)
    if kind(dtype) not in "fc":
        return Tolerance(rtol or 0.0, atol or 0.0)
    size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    relative = _BFLOAT16 if dtype == BFLOAT16 else _RELATIVE[size]
    relative *= _NARROW_ORACLE if narrow_oracle else 1.0
    if size >= 4:  # narrower outputs are summed in float32 and rounded once
        relative *= min(_MOST_GROWTH, max(1.0, math.sqrt(terms / _LONG)))
    relative = relative if rtol is None else rtol
    if atol is not None:
        return Tolerance(relative, atol)
    scale = scale_of(expected) if scale is None else scale
    # What underflows in a float is 0 in one kernel and not in another.
    wide = np.finfo(np.float64 if size == 8 else np.float32)
    least = float(wide.smallest_normal) if size >= 4 else 0.0
    return Tolerance(relative, max(relative * scale, least))


def scale_of(expected: Any, xp: Any = np) -> float:
    """The median magnitude of the numbers of an array that are finite and not 0; 0.0 without any.

    Of a large array every so many elements stand for all, an odd number, so that they come from
    all columns of a matrix; a median of 30 million takes as long as everything else of a trial.
    ``xp`` is the library of the array.
    """
    every = expected.size // _SEEN | 1
    found = _counting(expected.reshape(-1)[::every], xp)
    if not found.size and every > 1:
        found = _counting(expected, xp)
    return float(xp.median(found)) if found.size else 0.0


def _counting(values: Any, xp: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return xp.abs(values[xp.isfinite(values) & (values != 0)])


def terms(inputs: Iterable[Array], output: Array) -> int:
    """How many numbers may have been added up to one element of an output, at most.

    That is the longest axis of an input, or its elements for each of the output, where that is
    more: a matrix product and a sum of a whole array both reach it.
    """
    longest = 1
    for array in inputs:
        if kind(array.dtype) in "fc" or array.dtype.names is not None:
            longest = max(longest, *array.shape, -(-array.size // max(output.size, 1)))
    return longest
