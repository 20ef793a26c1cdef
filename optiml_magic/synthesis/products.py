"""Sums of products over shared axes: all of them one ``Contract``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.graph import Contract, Node, indexed
from optiml_magic.synthesis.maps import (
    agreed,
    cast,
    common,
    delivered,
    fitted,
    mapped,
    operand,
    together,
)  # fmt: skip
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import axis as here
from optiml_magic.synthesis.sizes import bare, constant
from optiml_magic.synthesis.table import function

_ONE = constant(1)


def contracted(
    trace: Trace,
    operands: Sequence[Traced],
    letters: Sequence[Sequence[int]],
    kept: Sequence[int],
    dtype: Any = None,
) -> Traced:
    """Einstein's sum; ValueError where axes of one letter differ."""
    dtype = common(operands) if dtype is None else dtype
    extents: dict[int, Polynomial] = {}
    for value, names in zip(operands, letters, strict=True):
        for extent, letter in zip(value.extents, names, strict=True):
            extents[letter] = agreed(trace, extents.get(letter, _ONE), extent)
    nodes: list[Node] = []
    for value, names in zip(operands, letters, strict=True):
        node = fitted(trace, value.node, tuple(extents[letter] for letter in names))
        nodes.append(cast(node, dtype))
    shape = tuple(extents[letter] for letter in kept)
    node = Contract(shape, dtype, tuple(nodes), tuple(map(tuple, letters)), tuple(kept))
    return Traced(trace, node)


@function(np.matmul)
def matmul(trace: Trace, x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
    if options:
        raise RefusalError(f"`matmul` with {', '.join(options)}", "cast its operands instead")
    one, two = operand(trace, x1), operand(trace, x2)
    if not one.ndim or not two.ndim:
        raise ValueError("matmul of a number")
    if one.extents[-1] != (shared := two.extents[max(two.ndim - 2, 0)]):
        left, right = trace.size(one.extents[-1]), trace.size(shared)
        if left != right:
            raise ValueError(f"matmul of {one.extents[-1]} columns and {shared} rows")
    batch = together(trace, [one.extents[:-2], two.extents[:-2]])
    rank = len(batch)
    row, inner, column = rank, rank + 1, rank + 2
    first = [*range(rank - max(one.ndim - 2, 0), rank), *([row] if one.ndim > 1 else []), inner]
    second = [
        *range(rank - max(two.ndim - 2, 0), rank), inner, *([column] if two.ndim > 1 else []),
    ]  # fmt: skip
    kept = [*range(rank)] + [row] * (one.ndim > 1) + [column] * (two.ndim > 1)
    dtype = np.matmul.resolve_dtypes((one.dtype, two.dtype, None))[-1]
    return delivered(trace, contracted(trace, (one, two), (first, second), kept, dtype), out)


@function(np.dot)
def dot(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    one, two = operand(trace, a), operand(trace, b)
    if not one.ndim or not two.ndim:
        return delivered(trace, mapped(trace, np.multiply, one, two), out)
    along = (one.ndim - 1,), (max(two.ndim - 2, 0),)
    return delivered(trace, tensordot(trace, one, two, along), out)


@function(np.inner)
def inner(trace: Trace, a: Any, b: Any) -> Any:
    one, two = operand(trace, a), operand(trace, b)
    if not one.ndim or not two.ndim:
        return mapped(trace, np.multiply, one, two)
    return tensordot(trace, one, two, ((-1,), (-1,)))


@function(np.vdot)
def vdot(trace: Trace, a: Any, b: Any) -> Any:
    one, two = (
        trace.function(np.ravel, (Traced(trace, operand(trace, x).node),), {}) for x in (a, b)
    )
    if one.dtype.kind == "c":
        one = mapped(trace, np.conjugate, one)
    return tensordot(trace, one, two, 1)


@function(np.outer)
def outer(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    one, two = (
        trace.function(np.ravel, (Traced(trace, operand(trace, x).node),), {}) for x in (a, b)
    )
    return delivered(trace, mapped(trace, np.multiply, one[:, None], two), out)


@function(np.tensordot)
def tensordot(trace: Trace, a: Any, b: Any, axes_: Any = 2, **options: Any) -> Any:
    one, two = operand(trace, a), operand(trace, b)
    chosen = options.get("axes", axes_)
    if isinstance(chosen, int):
        chosen = (range(one.ndim - chosen, one.ndim), range(chosen))
    left, right = (
        [int(k) % x.ndim for k in (part if np.iterable(part) else (part,))]
        for part, x in zip(chosen, (one, two), strict=True)
    )
    first = list(range(one.ndim))
    second = [one.ndim + k for k in range(two.ndim)]
    for j, k in zip(left, right, strict=True):
        if one.extents[j] != two.extents[k] and one.shape[j] != two.shape[k]:
            raise ValueError("shape-mismatch for sum")
        second[k] = first[j]
    summed = {first[j] for j in left}
    kept = [letter for letter in (*first, *second) if letter not in summed]
    return contracted(trace, (one, two), (first, second), kept)


@function(np.einsum)
def einsum(
    trace: Trace, subscripts: Any, *operands: Any, out: Any = None, dtype: Any = None, **more: Any
) -> Any:
    if not isinstance(subscripts, str):
        subscripts, operands = _as_string((subscripts, *operands))
    if set(more) - {"optimize", "order"}:
        raise RefusalError(f"`einsum` with {', '.join(more)}", "cast its operands instead")
    values = [operand(trace, x) for x in operands]
    if dtype is not None:
        values = [Traced(trace, cast(x.node, dtype)) for x in values]
    sides = subscripts.replace(" ", "").split("->")
    inputs = sides[0].split(",")
    dots = max(
        (x.ndim - len(names.replace("...", "")) for x, names in zip(values, inputs, strict=True)
         if "..." in names), default=0,
    )  # fmt: skip
    wide = [chr(0x2460 + k) for k in range(dots)]

    def named(names: str, rank: int) -> list[int]:
        room = rank - len(names.replace("...", ""))
        before, found, after = names.partition("...")
        filled = [*before, *(wide[dots - room :] if found and room else []), *after]
        return [ord(letter) for letter in filled]

    letters = [named(names, x.ndim) for names, x in zip(inputs, values, strict=True)]
    if len(sides) == 2:
        kept = named(sides[1], dots + len(sides[1].replace("...", "")))
    else:
        counts = [letter for names in letters for letter in names]
        once = sorted(n for n in set(counts) if counts.count(n) == 1 and n < 0x2460)
        kept = [*map(ord, wide), *once]
    numbered = {letter: k for k, letter in enumerate(dict.fromkeys(itertools.chain(*letters)))}
    result = contracted(
        trace, values, [[numbered[n] for n in names] for names in letters],
        [numbered[n] for n in kept],
    )  # fmt: skip
    return delivered(trace, result, out)


def _as_string(mixed: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Operands and lists of letters in turn, the last one of the result, as a string first."""
    names = ["".join("..." if k is Ellipsis else chr(97 + k) for k in x) for x in mixed[1::2]]
    values, kept = list(mixed[::2]), ""
    if len(mixed) % 2:
        *values, last = values
        kept = "->" + "".join("..." if k is Ellipsis else chr(97 + k) for k in last)
    return ",".join(names) + kept, tuple(values)


def _by_string(subscripts: str) -> Any:
    def called(trace: Trace, x1: Any, x2: Any, axis: int = -1, **options: Any) -> Any:
        sides = [operand(trace, x) for x in (x1, x2)]
        if axis != -1:
            sides = [trace.function(np.moveaxis, (x, axis, -1), {}) for x in sides]
        return einsum(trace, subscripts, *sides, **options)

    return called


for _name, _subscripts in {
    "vecdot": "...i,...i->...", "matvec": "...ij,...j->...i", "vecmat": "...i,...ij->...j",
}.items():  # fmt: skip
    function(getattr(np, _name, None))(_by_string(_subscripts))


@function(np.linalg.multi_dot)
def multi_dot(trace: Trace, arrays: Sequence[Any], *, out: Any = None) -> Any:
    """Always the two of the fewest products first, at the sizes at hand: any order is right."""
    values: list[Any] = [operand(trace, x) for x in arrays]
    while len(values) > 1:
        costs = [
            math.prod(bare(n) for n in (*one.shape, *two.shape[1:]))
            for one, two in itertools.pairwise(values)
        ]
        k = costs.index(min(costs))
        values[k : k + 2] = [matmul(trace, values[k], values[k + 1])]
    return delivered(trace, values[0], out)


@function(np.trace)
def traced_sum(
    trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Any:
    along = trace.function(np.diagonal, (operand(trace, a), offset, axis1, axis2), {})
    return trace.function(np.sum, (along,), {"axis": -1, "dtype": dtype})


@function(np.convolve)
def convolve(trace: Trace, a: Any, v: Any, mode: str = "full") -> Any:
    one, two = operand(trace, a), operand(trace, v)
    if one.shape[0] < two.shape[0]:
        one, two = two, one
    return _slid(trace, one, trace.function(np.flip, (two,), {}), mode)


@function(np.correlate)
def correlate(trace: Trace, a: Any, v: Any, mode: str = "valid") -> Any:
    one, two = operand(trace, a), operand(trace, v)
    if one.shape[0] < two.shape[0]:
        raise RefusalError("`correlate` with the longer one last", "give the longer one first")
    if two.dtype.kind == "c":
        two = mapped(trace, np.conjugate, two)
    return _slid(trace, one, two, mode)


def _slid(trace: Trace, long: Traced, short: Traced, mode: str) -> Traced:
    width = short.shape[0]
    sides = {"valid": (0, 0), "same": (width // 2, (width - 1) // 2), "full": (width - 1,) * 2}
    before, after = sides[mode]
    if mode == "same":  # NumPy's middle of the full result
        before, after = width - 1 - (width - 1) // 2, (width - 1) // 2
    padded = trace.function(np.pad, (long, (before, after)), {})
    shape = (padded.extents[0] - short.extents[0] + _ONE, short.extents[0])
    windows = Traced(trace, indexed(padded.node, (here(0) + here(1),), shape))
    return contracted(trace, (windows, short), ((0, 1), (1,)), (0,))
