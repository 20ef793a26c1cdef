"""Named maps of arrays: trial inputs are made of what lies on a device already, bit by bit alike.

The same code runs on NumPy and on CuPy arrays; ``xp`` names the library. So that both give the same
bits, random numbers are a hash of an element's place, powers come from a table that NumPy made, and
halves are computed in float32 and rounded once: what is left are single IEEE operations. A NaN that
a map makes has the same bits everywhere. CuPy's kernels take subnormal float32 numbers for 0, so a
map makes them 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import ml_dtypes
import numpy as np

from optiml_magic.devices.reductions import reduced
from optiml_magic.model.dtypes import BFLOAT16, DType, Number, kind, numbers

_PART = 1 << 16  # elements in host memory at a time, which a core's cache holds; a tile of noise
_PART_ON_CARD = 1 << 24
_LARGE = 1 << 17  # whose square needs more than 32 bits, while an index of it is still affordable
_STEPS = 4096  # of the table of magnitudes, over four decades
_WEIGHTS = 1 << 14  # words of one row of a digest
_NAN = {"f2": 0x7E00, "bf": 0x7FC0, "f4": 0x7FC00000, "f8": 0x7FF8000000000000}

Kind = Literal["times", "signs", "magnitudes", "below", "thirds", "steps", "large", "alike"]


@dataclass(frozen=True)
class Map:
    """A change of the numbers of an array whose kind, as ``model.dtypes`` has it, is in ``kinds``.

    - times: the values times ``factor``.
    - signs: half of them negated; floats that are all alike are drawn again, from -1 to 1.
    - magnitudes: each divided by 1 to 10,000.
    - below: the magnitudes times -``factor``.
    - thirds: a third of them 0.
    - steps: multiples of half of the largest.
    - large: integers of many bits.
    - alike: one of them everywhere.

    ``seed`` differs from array to array.
    """

    kind: Kind
    factor: float = 1.0
    kinds: str = "fc"
    seed: int = 0


def changes(change: Map, dtype: DType) -> bool:
    """Whether there is anything in an array of that dtype for the map to change."""
    return any(kind(number.dtype) in change.kinds for number in numbers(dtype))


def mapped(change: Map, array: Any, *, xp: Any = np, dtype: DType | None = None) -> Any:
    """A new array, changed; ``dtype`` where the library stores it as another of the same bytes."""
    dtype = dtype or array.dtype
    made = xp.array(array, order="C")
    if not made.size:
        return made
    rows = made.reshape(-1).view(np.uint8).reshape(-1, dtype.itemsize)
    with np.errstate(all="ignore"):
        for at, number in enumerate(numbers(dtype)):
            if kind(number.dtype) in change.kinds:
                _change(rows, number, replace(change, seed=change.seed * 1000 + at), xp)
    return made


def digest(array: Any, xp: Any = np) -> int:
    """63 bits of an array's bytes: a sum of its 32-bit words, each times a weight of its place.

    It tells damage and other arithmetic, and is no defence against somebody who knows the weights.
    """
    raw = xp.ascontiguousarray(array).reshape(-1).view(np.uint8)
    weights = xp.asarray(_weights())
    row, part = 4 * _WEIGHTS, 4 * (_PART if xp is np else _PART_ON_CARD)
    sums = []
    for start in range(0, raw.size, part):
        words = raw[start : start + part]
        if words.size % row:
            padded = xp.zeros(-(-words.size // row) * row, np.uint8)
            padded[: words.size] = words
            words = padded
        wide = words.view(np.uint32).reshape(-1, _WEIGHTS).astype(np.uint64)
        sums.append(_on_host((wide * weights).sum(axis=1, dtype=np.uint64)))
    rows = np.concatenate(sums) if sums else np.zeros(0, np.uint64)
    places = np.arange(rows.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15 & ~1)
    total: int = int((rows * (places + np.uint64(1))).sum(dtype=np.uint64)) + raw.size
    return (total % (1 << 64)) >> 1  # signed 64-bit integers travel best


def widened(array: Any, dtype: DType, xp: Any) -> Any:
    """Plain numbers as an oracle is asked with them: floats in float64, integers as they are."""
    if dtype == BFLOAT16:
        array = _shifted(array, xp)
    wide = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind)
    return array.astype(wide) if wide else array.copy()


def _change(rows: Any, number: Number, change: Map, xp: Any) -> None:
    part = _PART if xp is np else _PART_ON_CARD
    places = [slice(start, start + part) for start in range(0, len(rows), part)]
    whole = _Whole(rows, number, places, xp)
    size = number.count * number.dtype.itemsize
    for here in places:
        values = whole.values(here)
        made = _made(values, _Noise(here.start, values.shape, change.seed, xp), change, whole, xp)
        rows[here, number.offset : number.offset + size] = _stored(made, number, xp)


class _Whole:
    """One number of every element of an array, as (elements, count, 1, or 2 of a complex one)."""

    def __init__(self, rows: Any, number: Number, places: list[slice], xp: Any) -> None:
        self._rows, self._places, self._xp = rows, places, xp
        self.number = number

    def values(self, here: slice) -> Any:
        """A part of them, floats in the type that is computed in: halves as float32."""
        number, rows = self.number, self._rows[here]
        size = number.count * number.dtype.itemsize
        raw = self._xp.ascontiguousarray(rows[:, number.offset : number.offset + size])
        if number.dtype == BFLOAT16:
            found = _shifted(raw.view(np.uint16), self._xp)
        else:
            found = raw.view(_real(number.dtype))
        if found.dtype == np.float16:
            found = found.astype(np.float32)
        return _normal(found, self._xp).reshape(len(rows), number.count, -1)

    def parts(self) -> Iterator[Any]:
        """All of them, one after the other."""
        return map(self.values, self._places)

    @cached_property
    def largest(self) -> float:
        """The largest magnitude; NaN where there is one."""
        xp = self._xp
        return float(np.max([float(reduced(xp.max, xp.abs(part), xp)) for part in self.parts()]))

    @cached_property
    def is_alike(self) -> bool:
        """Whether all values are equal."""
        first = self.values(slice(0, 1))
        xp = self._xp
        return all(bool(reduced(xp.all, part == first, xp)) for part in self.parts())

    def one(self, seed: int) -> Any:
        """One element, chosen by the seed."""
        at = int(_hashed(np.arange(1), seed)[0]) % len(self._rows)
        return self.values(slice(at, at + 1))


class _Noise:
    """Random bits for a part of an array, the same for both parts of a complex number.

    A table of random words, for each tile of an array times and plus other numbers: the upper bits
    are good ones, and it costs two operations.
    """

    def __init__(self, start: int, shape: tuple[int, ...], seed: int, xp: Any) -> None:
        self._start, self._shape, self._seed, self._xp = start, shape, seed, xp

    def bits(self, more: int = 0) -> Any:
        """32 for each element."""
        rows, count, _ = self._shape
        first, size, seed = self._start * count, rows * count, 2 * self._seed + more
        tiles = np.arange(first // _PART, -(-(first + size) // _PART))
        factors = _hashed(tiles, seed) | np.uint32(1)
        terms = _hashed(tiles, seed + (1 << 20))
        xp = self._xp
        drawn = xp.asarray(_words()) * xp.asarray(factors)[:, None] + xp.asarray(terms)[:, None]
        return drawn.reshape(-1)[:size].reshape(rows, count, 1)


def _made(values: Any, noise: _Noise, change: Map, whole: _Whole, xp: Any) -> Any:
    real = _real(whole.number.dtype)
    match change.kind:
        case "times":
            return values * values.dtype.type(real.type(change.factor))
        case "below":
            return xp.abs(values) * values.dtype.type(real.type(-change.factor))
        case "signs":
            if values.dtype.kind == "u":
                return values
            if values.dtype.kind == "f" and whole.is_alike:
                return _uniform(values, noise, real)
            return xp.where(noise.bits() >= np.uint32(1 << 31), -values, values)
        case "magnitudes":
            table = (10.0 ** (-4.0 * (np.arange(_STEPS) + 0.5) / _STEPS)).astype(real)
            factors = xp.asarray(table.astype(values.dtype))
            return values * factors[(noise.bits() >> np.uint32(20)).astype(np.int64)]
        case "thirds":
            return xp.where(noise.bits() < np.uint32((1 << 32) // 3), values.dtype.type(0), values)
        case "steps":
            half = whole.largest / 2 or 1.0
            return (xp.rint(values.astype(np.float64) / half) * half).astype(values.dtype)
        case "large":
            high = min(_LARGE, int(np.iinfo(values.dtype).max) // 2)
            low = 0 if values.dtype.kind == "u" else -high
            drawn = noise.bits().astype(np.int64) * (high - low) >> 32
            return (drawn + low).astype(values.dtype)
        case "alike":
            return xp.zeros_like(values) + whole.one(change.seed)


def _uniform(values: Any, noise: _Noise, real: DType) -> Any:
    """From -1 to 1, as fine as the dtype can hold, each exact in it."""
    limits: Any = ml_dtypes.finfo(real)  # type: ignore[no-untyped-call]
    digits = int(limits.nmant) + 1
    high = noise.bits().astype(np.uint64) << np.uint64(32)
    drawn = (high | noise.bits(1).astype(np.uint64)) >> np.uint64(64 - digits)
    odd = 2 * drawn.astype(np.int64) + (1 - (1 << digits))
    uniform = (odd.astype(np.float64) * 2.0**-digits).astype(values.dtype)
    return uniform + np.zeros_like(values)


def _stored(made: Any, number: Number, xp: Any) -> Any:
    """The bytes of the values, a row for each element."""
    real = _real(number.dtype)
    made = _normal(made, xp)
    bits: Any = made
    if made.dtype.kind == "f":
        bad = xp.isnan(made)
        if real == BFLOAT16:
            word = made.view(np.uint32)
            rounded = word + np.uint32(0x7FFF) + ((word >> np.uint32(16)) & np.uint32(1))
            bits, name = (rounded >> np.uint32(16)).astype(np.uint16), "bf"
        else:
            name = f"f{real.itemsize}"
            bits = xp.ascontiguousarray(made.astype(real)).view(f"u{real.itemsize}")
        if bool(reduced(xp.any, bad, xp)):
            bits = xp.where(bad, bits.dtype.type(_NAN[name]), bits)
    return xp.ascontiguousarray(bits).reshape(len(bits), -1).view(np.uint8)


def _normal(values: Any, xp: Any) -> Any:
    """Float32 numbers with 0 for the subnormal ones; others as they are."""
    if values.dtype != np.float32:
        return values
    return xp.where(xp.abs(values) < np.finfo(np.float32).smallest_normal, np.float32(0), values)


def has_subnormals(array: Any, dtype: DType, xp: Any) -> bool:
    """Whether a plain array holds float32 or bfloat16 numbers that CuPy takes for 0."""
    if dtype == BFLOAT16:
        array = _shifted(array, xp)
    if array.dtype not in (np.float32, np.complex64) or not array.size:
        return False
    bits = xp.ascontiguousarray(array).reshape(-1).view(np.uint32) & np.uint32(0x7FFFFFFF)
    return bool(reduced(xp.any, (bits != 0) & (bits < np.uint32(0x00800000)), xp))


def _real(dtype: DType) -> DType:
    """The type of the parts of a complex number; other numbers have one part."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _shifted(bfloat16: Any, xp: Any) -> Any:
    """What NumPy or CuPy stores as the bits of bfloat16, as float32."""
    wide = xp.ascontiguousarray(bfloat16).view(np.uint16).astype(np.uint32)
    return (wide << np.uint32(16)).view(np.float32)


def _hashed(places: Any, seed: int) -> Any:
    """32 bits for each place (Chris Wellons' lowbias32)."""
    bits = (places + seed * 0x9E3779B1 % (1 << 31)).astype(np.uint32)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
    return bits ^ (bits >> np.uint32(16))


@lru_cache(maxsize=1)
def _words() -> Any:
    return np.random.default_rng(1).integers(0, 1 << 32, _PART, np.uint32)


@lru_cache(maxsize=1)
def _weights() -> Any:
    return np.random.default_rng(0).integers(0, 1 << 63, _WEIGHTS, np.uint64) * np.uint64(2) + 1


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
