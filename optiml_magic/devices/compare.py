"""Fixed code that compares a buffer with the wanted one: statistics only, judged elsewhere.

The same code runs on NumPy and on CuPy arrays; ``xp`` names the library. It looks at bytes and
reads each number of an element by itself, so a struct needs no support of the library, nor does
bfloat16, which is widened to float32 by a shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from optiml_magic.devices.base import Array, Tolerance
from optiml_magic.devices.reductions import counted, place_of_largest, reduced
from optiml_magic.model.dtypes import BFLOAT16, DType, Number, kind, numbers
from optiml_magic.model.verdict import OutputCheck

_PART = 1 << 16  # elements compared at a time in host memory
_CELLS = (8, 32)  # rows and columns of the picture of an output
_LARGEST = float(np.finfo(np.float64).max)


def compare(  # the last two only name the array library and what the bytes mean
    name: str,
    got: Any,
    expected: Any,
    tolerance: Tolerance,
    poison: Any | None,
    *,
    xp: Any = np,
    dtypes: tuple[DType, DType] | None = None,
) -> OutputCheck:
    """Compare element by element, failing closed: a NaN passes only where the oracle has one too.

    Args:
        name: of the output.
        got: what the kernel left, any shape.
        expected: same shape, in the oracle's precision.
        tolerance: zero for integers and booleans unless the user allows more.
        poison: what the buffer held before the launch, to tell unwritten elements.
        xp: the array library of ``got``, ``expected`` and ``poison``.
        dtypes: of ``got`` and ``expected``, where the library stores them as others of their size.
    """
    dtype, wide = dtypes or (got.dtype, expected.dtype)
    shape = got.shape[: got.ndim - 1] if dtype.names and got.dtype != dtype else got.shape
    rows, wanted_rows = _rows(got, dtype), _rows(expected, wide)
    wrong, nonfinite = xp.zeros(len(rows), bool), xp.zeros(len(rows), bool)
    error = largest = ulp = share = 0.0
    part = _PART if xp is np else max(len(rows), 1)  # temporaries would outgrow the arrays
    limits = tolerance.fields or (tolerance,) * len(numbers(dtype))
    for have, want, limit in zip(numbers(dtype), numbers(wide), limits, strict=True):
        squares = scales = 0.0
        for start in range(0, len(rows), part):
            here = slice(start, start + part)
            found = _errors(
                _read(rows[here], have, xp), _read(wanted_rows[here], want, xp), limit, xp
            )
            wrong[here] |= found.wrong.any(axis=1)
            nonfinite[here] |= found.nonfinite.any(axis=1)
            squares, scales = squares + found.squares, scales + found.scales
            share = max(share, found.share)
            if found.largest > largest:
                largest = found.largest
                ulp = largest / _last_place(found.at_largest, have.dtype)
        error = max(error, math.sqrt(squares / scales) if scales else math.sqrt(squares))
    where = xp.flatnonzero(wrong)
    first = int(where[0]) if where.size else None
    unwritten = 0
    if poison is not None and where.size:
        unwritten = counted(same_bits(got, poison, dtype)[where], xp)
    return OutputCheck(
        name=name,
        elements=len(rows),
        wrong=int(where.size),
        unwritten=unwritten,
        nonfinite=counted(nonfinite, xp),
        error=_finite(error),
        max_abs_error=_finite(largest),
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        first_index=() if first is None else tuple(map(int, np.unravel_index(first, shape))),
        got="" if first is None else _shown(rows, first, dtype),
        wanted="" if first is None else _shown(wanted_rows, first, wide),
        max_ulp=_finite(ulp),
        picture=() if first is None else _picture(where, shape, xp),
        share=_finite(share),
    )


def _last_place(value: float, dtype: DType) -> float:
    """The unit in the last place of a value in a floating-point dtype; infinite for others."""
    if kind(dtype) not in "fc":
        return math.inf
    limits: Any = ml_dtypes.finfo(dtype.type(0).real.dtype)  # type: ignore[no-untyped-call]
    exponent = math.frexp(max(abs(value), float(limits.smallest_normal)))[1] - 1
    return math.ldexp(float(limits.eps), exponent)


def _picture(where: Any, shape: tuple[int, ...], xp: Any) -> tuple[str, ...]:
    """Which cells of an output hold wrong elements; ``where`` are flat indices.

    An output of one axis is folded: its eighths below one another, a small one in rows of 32.
    """
    size, cols = math.prod(shape), shape[-1] if shape else 1
    if size == cols:
        cols = min(size, max(_CELLS[1], -(-size // _CELLS[0])))
    rows = -(-size // cols)
    down, across = min(_CELLS[0], rows), min(_CELLS[1], cols)

    def cells(at: Any, lib: Any) -> Any:
        cell = (at // cols * down // rows) * across + at % cols * across // cols
        return lib.bincount(cell, minlength=down * across)

    counts = cells(where, xp)
    counts = counts if xp is np else counts.get()
    # Every row of a cell holds as many elements: counted along the two axes, not over them all.
    heights = np.bincount(np.arange(rows) * down // rows, minlength=down)
    widths = np.bincount(np.arange(cols) * across // cols, minlength=across)
    totals = np.outer(heights, widths).reshape(-1)
    totals -= cells(np.arange(size, rows * cols), np)  # the end of the last row may be missing
    marks = np.where(counts == 0, ".", np.where(counts < totals, "+", "#"))
    marks = np.where(totals == 0, " ", marks)
    return tuple("".join(row).rstrip() for row in marks.reshape(down, across))


def _rows(array: Any, dtype: DType) -> Any:
    """The bytes of an array, a row for each element."""
    flat = array.reshape(-1)
    if not flat.flags.c_contiguous:  # a reference may return its input backwards
        flat = flat.copy()
    return flat.view(np.uint8).reshape(flat.nbytes // dtype.itemsize, dtype.itemsize)


def _read(rows: Any, number: Number, xp: Any) -> Any:
    """One number of each element as an array (elements, count) that the library can compute with.

    A bool is read as its byte: any other than 0 and 1 is no bool, however true it looks.
    """
    size = number.count * number.dtype.itemsize
    taken = rows[:, number.offset : number.offset + size]
    # The numbers of a packed struct lie anywhere, and a card reads none that is not aligned. A
    # single row is contiguous as it is.
    taken = xp.ascontiguousarray(taken) if size == rows.shape[1] else taken.copy()
    if number.dtype == BFLOAT16:
        return (taken.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return taken.view(np.uint8 if number.dtype.kind == "b" else number.dtype)


def _shown(rows: Any, at: int, dtype: DType) -> str:
    row = rows[at]
    raw: Any = row if isinstance(row, np.ndarray) else row.get()
    return str(np.ascontiguousarray(raw).view(dtype)[0])


def _finite(value: float) -> float:
    """JSON has no infinity; an overflowing norm is as good as the largest double."""
    return min(_LARGEST, value)


@dataclass(frozen=True)
class _Errors:
    wrong: Any  # per number
    nonfinite: Any  # where it should not be
    squares: float  # of the differences, summed
    scales: float  # of the wanted values
    largest: float  # difference
    at_largest: float  # what is wanted there
    share: float  # of what is allowed, at most


def _errors(got: Any, expected: Any, tolerance: Tolerance, xp: Any) -> _Errors:
    with np.errstate(all="ignore"):
        if got.dtype.kind in "fc":
            wrong, nonfinite, difference, scale = _float_errors(got, expected, tolerance, xp)
            allowed = tolerance.atol + tolerance.rtol * scale
            share = (
                float(reduced(xp.max, xp.where(difference > 0, difference / allowed, 0.0), xp))
                if (difference.size)
                else 0.0
            )
        else:
            share = 0.0
            nonfinite = xp.zeros(got.shape, bool)
            difference = xp.abs(got.astype(np.float64) - expected.astype(np.float64))
            scale = xp.abs(expected.astype(np.float64))
            allowed = tolerance.atol + tolerance.rtol * scale
            # Equal bits or an allowance the user asked for: a double cannot tell large integers.
            wrong = (got != expected) & ((allowed == 0) | (difference > allowed))
        squares = float(reduced(xp.sum, difference**2, xp))
        scales = float(reduced(xp.sum, scale**2, xp))
    worst = place_of_largest(difference, xp) if difference.size else None
    largest = 0.0 if worst is None else float(difference.reshape(-1)[worst])
    at_largest = 0.0 if worst is None else float(scale.reshape(-1)[worst])
    return _Errors(wrong, nonfinite, squares, scales, largest, at_largest, share)


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


def same_bits(got: Any, poison: Any, dtype: DType) -> Any:
    """Per element, flat: whether it still holds the very bits of the poison."""
    one, two = _rows(got, dtype), _rows(poison, dtype)
    return (one == two).all(axis=1)


def poison_like(array: Array, seed: int) -> Array:
    """Random bits in the shape and dtype of ``array``: what an output holds before a launch."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, -(-array.nbytes // 4), dtype=np.uint32)
    raw = words.view(np.uint8)[: array.nbytes]
    unlikely(raw, array.dtype)
    return raw.view(array.dtype).reshape(array.shape)


def unlikely(raw: Any, dtype: DType) -> None:
    """Make every bool among the bytes neither false nor true."""
    rows = raw.reshape(raw.size // dtype.itemsize, dtype.itemsize)
    for number in numbers(dtype):
        if number.dtype.kind == "b":
            rows[:, number.offset : number.offset + number.count] |= 0x80
