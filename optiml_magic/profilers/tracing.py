"""Floating-point operations of a NumPy reference, by running it on arrays that count.

Each arithmetic ufunc counts one operation an element, special functions as well; a product of
matrices two for each term. Comparisons, signs, extrema, rounding and moving data are free, and so
is whole-number arithmetic. Sources: NEP 13 (``__array_ufunc__``), NEP 18 (``__array_function__``).
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

_FREE = frozenset((
    "maximum", "minimum", "fmax", "fmin", "negative", "positive", "absolute", "fabs", "sign",
    "copysign", "rint", "floor", "ceil", "trunc", "conjugate", "spacing", "nextafter",
))  # fmt: skip
_PRODUCTS = frozenset(("dot", "inner", "vdot", "matmul", "outer", "tensordot", "einsum", "kron"))
_SLIDING = frozenset(("convolve", "correlate"))
_LONGEST = 3.0  # seconds of following one reference, while a card waits for it; ours
_COMPLEX = 4.0  # of a complex operation in real ones: 2 to add, 6 to multiply


class UntraceableError(Exception):
    """The reference left the arrays that count, or takes too long: the rest of it is not seen."""


@dataclass
class Tally:
    """Operations so far; from ``until`` on, by the monotonic clock, none are taken."""

    flops: float = 0.0
    until: float = math.inf

    def add(self, flops: float) -> None:
        if time.monotonic() > self.until:
            raise UntraceableError("it takes too long")
        self.flops += flops


class CountingArray(np.ndarray[Any, Any]):
    """An array that counts the arithmetic done with it, and with all that comes of it."""

    tally: Tally | None

    def __array_finalize__(self, source: Any) -> None:
        self.tally = getattr(source, "tally", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        tally = _tally((*inputs, *(options.get("out") or ())))
        plain = [_plain(x) for x in inputs]
        if options.get("out"):
            options["out"] = tuple(_plain(x) for x in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        several = result if isinstance(result, tuple) else (result,)
        if method != "at":
            tally.add(_ufunc_flops(ufunc, method, plain, several[0]))
        else:
            tally.add(_of(np.asarray(plain[1]).size, np.asarray(plain[0]).dtype))
        counted = tuple(_counting(x, tally) for x in several)
        return counted if isinstance(result, tuple) else counted[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(func, "__name__", "")
        module = getattr(func, "__module__", "")
        tally = _tally((*args, *kwargs.values()))
        if module.startswith("numpy.linalg") and name != "norm":
            raise UntraceableError(name)
        if name not in _PRODUCTS | _SLIDING and not module.startswith("numpy.fft"):
            return _rewrapped(super().__array_function__(func, types, args, kwargs), tally)
        plain = [_plain(x) for x in args]
        result = func(*plain, **{key: _plain(x) for key, x in kwargs.items()})
        tally.add(_function_flops(name, plain, np.asarray(result)))
        return _counting(np.asarray(result), tally)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(found, np.generic) and found.dtype.kind in "fc":
            raise UntraceableError("one element at a time")
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def dot(self, b: Any, out: Any = None) -> Any:
        return np.dot(self, b, out)

    def item(self, *_: Any) -> Any:
        raise UntraceableError("item")

    def tolist(self) -> Any:
        raise UntraceableError("tolist")


def traced_flops(reference: Callable[..., Any], values: Mapping[str, Any]) -> float | None:
    """The operations of a reference on inputs by name; None where they could not be followed."""
    tally = Tally(until=time.monotonic() + _LONGEST)
    try:
        arguments = {
            name: _counting(value.copy(), tally) if isinstance(value, np.ndarray) else value
            for name, value in _arguments(reference, values).items()
        }
        with np.errstate(all="ignore"):
            answer = reference(**arguments)
    except Exception:  # noqa: BLE001  # a reference may do what it likes with a strange array
        return None
    results = answer.values() if isinstance(answer, Mapping) else answer
    several = tuple(results) if isinstance(answer, (tuple, Mapping)) else (answer,)
    floating = [np.asarray(x).dtype.kind in "fc" for x in several]
    followed = all(isinstance(x, CountingArray) for x in several)
    return tally.flops if followed or not any(floating) else None


def _arguments(reference: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(reference).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(values)
    named = {p.name: p.name if p.name in values else p.name.rstrip("_") for p in parameters}
    return {name: values[source] for name, source in named.items() if source in values}


def _counting(value: Any, tally: Tally) -> Any:
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    array = cast(CountingArray, np.asarray(value).view(CountingArray))
    array.tally = tally
    return array


def _rewrapped(result: Any, tally: Tally) -> Any:
    """Functions written in C give plain arrays back."""
    if isinstance(result, (list, tuple)):
        return type(result)(_rewrapped(x, tally) for x in result)
    return _counting(result, tally) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    if isinstance(value, CountingArray):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(x) for x in value)
    return value


def _tally(values: Any) -> Tally:
    for value in values:
        if isinstance(value, CountingArray) and value.tally is not None:
            return value.tally
        if isinstance(value, (list, tuple)) and (found := _tally(value)).flops >= 0:
            return found
    return Tally(-math.inf)


def _of(operations: float, dtype: np.dtype[Any]) -> float:
    if dtype.kind == "c":
        return _COMPLEX * operations
    # bfloat16 is a dtype of kind V to NumPy.
    return float(operations) if dtype.kind in "fV" else 0.0


def _ufunc_flops(ufunc: Any, method: str, inputs: list[Any], result: Any) -> float:
    out = np.asarray(result)
    if ufunc.__name__ in _FREE:
        return 0.0
    if ufunc.signature is not None:  # matmul, vecdot and their like: two for each term
        return 2.0 * _of(out.size * np.asarray(inputs[0]).shape[-1], out.dtype)
    if method == "reduce":
        return _of(max(0, np.asarray(inputs[0]).size - out.size), out.dtype)
    return _of(out.size if method != "reduceat" else np.asarray(inputs[0]).size, out.dtype)


def _function_flops(name: str, args: list[Any], result: Any) -> float:
    if name == "einsum" and isinstance(args[0], str):
        sizes: dict[str, int] = {}
        for letters, array in zip(args[0].split("->")[0].split(","), args[1:], strict=False):
            sizes.update(zip(letters.strip(), np.asarray(array).shape, strict=False))
        return _of(len(args[1:]) * math.prod(sizes.values()), result.dtype)
    arrays = [np.asarray(x) for x in args if isinstance(x, np.ndarray)]
    if name in _SLIDING:
        return 2.0 * _of(result.size * min(x.size for x in arrays), result.dtype)
    if name in ("outer", "kron"):
        return _of(result.size, result.dtype)
    if name in _PRODUCTS:
        terms = math.prod(x.size for x in arrays[:2]) / max(result.size, 1)
        return 2.0 * _of(result.size * math.sqrt(terms), result.dtype)
    points = max(int(result.size), 2)  # fast Fourier transforms: 5 N log2 N (Van Loan 1992)
    return 5.0 * points * math.log2(points)
