"""NumPy, and what of Python loses sizes, as a reference finds them while it is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced, unrolled
from optiml_magic.synthesis.maps import astype, mapped, operand
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Size
from optiml_magic.synthesis.table import FUNCTIONS

_MATH = ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh")


class _Typed(type):
    """A type of numbers that is called by a function; NumPy reads its ``dtype``."""

    of: type
    convert: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.convert(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.of)


def _typed(of: Any, convert: Callable[..., Any]) -> Any:
    members = {"of": of, "dtype": np.dtype(of), "convert": staticmethod(convert)}
    return _Typed(of.__name__, (), members)


class Kept(np.ndarray[Any, Any]):
    """An array of the reference's own: plain, until a traced one is its subscript."""

    tracing: Trace

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, Kept):
            self.tracing = source.tracing

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(part, Traced) for part in (key if isinstance(key, tuple) else (key,))):
            return operand(self.tracing, np.asarray(self))[key]
        return super().__getitem__(key)


class _Random:
    def __getattr__(self, name: str) -> Any:
        raise RefusalError(
            f"`np.random.{name}`: random numbers are others each time", "Give them as an input."
        )


def library(trace: Trace, module: ModuleType = np) -> Any:
    """NumPy with entries of the table in the place of its functions."""
    names: dict[str, Any] = {}
    for name in dir(module):
        value = None if name.startswith("_") else getattr(module, name, None)
        if name == "random":
            names[name] = _Random()
        elif isinstance(value, ModuleType):
            inside = value.__name__.startswith(("numpy.lib", "numpy.linalg"))
            deeper = value.__name__.count(".") > module.__name__.count(".")
            names[name] = library(trace, value) if inside and deeper else value
        elif isinstance(value, type) and issubclass(value, (np.number, np.bool_)):
            concrete = value in np.sctypeDict.values()
            names[name] = _typed(value, _scalar(trace, value)) if concrete else value
        elif not name.startswith("_"):
            entered = getattr(type(value), "__hash__", None) is not None and value in FUNCTIONS
            names[name] = _entry(trace, value) if entered else value
    return SimpleNamespace(**names)


def _entry(trace: Trace, function: Any) -> Any:
    def called(*args: Any, **kwargs: Any) -> Any:
        return trace.function(function, args, kwargs)

    return called


def _scalar(trace: Trace, of: Any) -> Any:
    def converted(value: Any = 0) -> Any:
        if isinstance(value, (Traced, Size)):
            return astype(trace, operand(trace, value), of)
        return of(value)

    return converted


def plain(trace: Trace) -> Mapping[str, Any]:
    """Python's own functions and modules, by name, that would lose where a size came from."""

    def length(value: Any) -> int:
        return value.shape[0] if isinstance(value, Traced) and value.ndim else len(value)

    def whole(value: Any = 0, *base: Any) -> Any:
        return value if isinstance(value, Size) else int(value, *base)

    def floating(value: Any = 0.0) -> Any:
        if isinstance(value, Size) or (isinstance(value, Traced) and value.weak):
            number: Any = operand(trace, value)
            return number * 1.0
        return float(value)

    def kept(array: Any) -> Any:
        view = array.view(Kept)
        view.tracing = trace
        return view

    named = {"int": _typed(int, whole), "float": _typed(float, floating)}
    return {"len": length, "range": _steps, "math": _math(trace), "ndarray": kept, **named}


def _steps(first: Any, last: Any = None, by: Any = 1) -> Sequence[int]:
    """``range``, whose count alone is assumed."""
    start, stop = (0, first) if last is None else (first, last)
    given = (start, stop, by)
    start, stop, by = (n if isinstance(n, int) else operator.index(n) for n in given)
    if not any(isinstance(bound, Size) for bound in (start, stop, by)):
        unrolled(len(range(start, stop, by)))
        return range(start, stop, by)
    span, size = (stop - start, by) if by > 0 else (start - stop, -by)
    count = int((span + size - 1) // size) if span > 0 else 0
    unrolled(count)
    return [start + k * by for k in range(count)]


def _math(trace: Trace) -> Any:
    def entry(name: str) -> Any:
        def called(x: Any) -> Any:
            if not isinstance(x, (Size, Traced)):
                return getattr(math, name)(x)
            result = mapped(trace, getattr(np, name), x)
            result.weak = float
            return result

        return called

    names = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    return SimpleNamespace(**{**names, **{name: entry(name) for name in _MATH}})
