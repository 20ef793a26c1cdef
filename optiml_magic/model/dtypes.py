"""NumPy dtypes of all that a kernel may hold: numbers, bfloat16, structs of them.

bfloat16 is that of ml_dtypes, which NumPy knows as an opaque type (kind ``V``, ``<V2``); so what a
dtype means is asked here and not of its ``kind`` and ``str``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

DType = np.dtype[Any]
BFLOAT16: DType = np.dtype(ml_dtypes.bfloat16)
_SIZES = {"f": (2, 4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "c": (8, 16), "b": (1,)}


@dataclass(frozen=True)
class Number:
    """One number of an element, or a row of them: where it lies, in bytes from its beginning.

    ``path`` is empty for an element that is a number itself, and ``pos.x`` in a struct; ``count``
    is 1 but for a member that is an array.
    """

    path: str
    offset: int
    dtype: DType
    count: int = 1


def kind(dtype: DType) -> str:
    """NumPy's letter for a number: ``f`` for bfloat16 too; ``V`` for a struct, or what we lack."""
    if dtype == BFLOAT16:
        return "f"
    known = dtype.isnative and dtype.itemsize in _SIZES.get(dtype.kind, ())
    return dtype.kind if known else "V"


def numbers(dtype: DType) -> tuple[Number, ...]:
    """The numbers of an element in the order of its fields; empty if some of it is none."""
    found = tuple(_numbers(dtype, "", 0))
    return found if all(kind(number.dtype) != "V" for number in found) else ()


def row_of(dtype: DType) -> tuple[DType, int] | None:
    """Of a struct that is numbers of one dtype without a gap, that and how many; else None."""
    found = numbers(dtype) if dtype.names is not None else ()
    count = sum(number.count for number in found)
    kinds = {number.dtype for number in found}
    lane = next(iter(kinds)) if len(kinds) == 1 else None
    return (lane, count) if lane is not None and dtype.itemsize == count * lane.itemsize else None


def _numbers(dtype: DType, path: str, offset: int) -> Iterator[Number]:
    if dtype.names is None:
        base, shape = dtype.subdtype or (dtype, ())
        if base.names is None:
            yield Number(path, offset, base, int(np.prod(shape, dtype=np.int64)))
            return
        for at, place in enumerate(np.ndindex(*shape)):
            element = path + "".join(f"[{digit}]" for digit in place)
            yield from _numbers(base, element, offset + at * base.itemsize)
        return
    for name, (inner, start) in _members(dtype):
        yield from _numbers(inner, f"{path}.{name}" if path else name, offset + start)


def _members(dtype: DType) -> Iterator[tuple[str, tuple[DType, int]]]:
    assert dtype.names is not None
    assert dtype.fields is not None
    for name in dtype.names:
        inner, start = dtype.fields[name][:2]
        yield name, (inner, start)


def part(array: np.ndarray[Any, DType], number: Number) -> np.ndarray[Any, DType]:
    """One number of every element, as an array (elements, count)."""
    flat = np.ascontiguousarray(array).reshape(-1)
    rows = flat.view(np.uint8).reshape(flat.size, array.dtype.itemsize)
    size = number.count * number.dtype.itemsize
    return np.ascontiguousarray(rows[:, number.offset : number.offset + size]).view(number.dtype)


def widened(dtype: DType) -> DType:
    """The dtype in which an oracle answers: float64, complex128, and what is exact as it is."""
    if dtype.names is not None:
        return np.dtype([(name, widened(inner)) for name, (inner, _) in _members(dtype)])
    if dtype.subdtype is not None:
        return np.dtype((widened(dtype.subdtype[0]), dtype.subdtype[1]))
    return np.dtype({"f": np.float64, "c": np.complex128}.get(kind(dtype), dtype))


def title(dtype: DType) -> str:
    """As a user calls it: ``float32``, ``bfloat16``, ``struct {x: float32, id: int32[3]}``."""
    if dtype.names is not None:
        members = ", ".join(f"{name}: {title(inner)}" for name, (inner, _) in _members(dtype))
        return f"struct {{{members}}}"
    if dtype.subdtype is not None:
        return f"{title(dtype.subdtype[0])}[{', '.join(map(str, dtype.subdtype[1]))}]"
    return str(dtype.name) if dtype.isnative else f"byte-swapped {dtype.name}"


def spelled(dtype: DType) -> str:
    """The dtype as text that ``read`` understands, in another process too."""
    return json.dumps(_described(dtype))


def read(text: str) -> DType:
    """The dtype that ``spelled`` wrote."""
    return _understood(json.loads(text))


def _described(dtype: DType) -> Any:
    if dtype.names is not None:
        members = list(_members(dtype))
        return {
            "names": list(dtype.names),
            "formats": [_described(inner) for _, (inner, _) in members],
            "offsets": [start for _, (_, start) in members],
            "itemsize": dtype.itemsize,
        }
    if dtype.subdtype is not None:
        return [_described(dtype.subdtype[0]), list(dtype.subdtype[1])]
    return "bfloat16" if dtype == BFLOAT16 else dtype.str


def _understood(described: Any) -> DType:
    form: Any = described
    if isinstance(described, dict):
        form = {**described, "formats": [_understood(inner) for inner in described["formats"]]}
    elif isinstance(described, list):
        form = (_understood(described[0]), tuple(described[1]))
    dtype: DType = np.dtype(form)
    return dtype
