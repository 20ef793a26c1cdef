"""NumPy, and what of Python loses sizes, as a reference finds them while it is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from optiml_magic.rebound import rebound
from optiml_magic.synthesis.array import Trace, Traced, unrolled
from optiml_magic.synthesis.lifting import vectorized
from optiml_magic.synthesis.making import Grid
from optiml_magic.synthesis.maps import any_traced, astype, mapped, operand
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import WHOLE, Size
from optiml_magic.synthesis.table import FUNCTIONS

#: What of NumPy's Python reads and writes files and text.
_OUTSIDE = frozenset({"numpy.lib._npyio_impl", "numpy._core.arrayprint"})
_MATH = ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh")


class _Typed(type):
    """A type of numbers that is called by a function; NumPy reads its ``dtype``."""

    of: Any
    convert: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.convert(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.of)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.of)


def _typed(of: Any, convert: Callable[..., Any], instances: Any = None) -> Any:
    members = {"of": instances or of, "convert": staticmethod(convert)}
    if of is not np.ndarray:
        members["dtype"] = np.dtype(of)
    return _Typed("typed", (), members)


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
            f"`np.random.{name}`: random numbers are others each time", "give them as an input"
        )


class _Joining:
    """``r_`` and ``c_``, by NumPy's own code."""

    def __init__(self, trace: Trace, joining: Any) -> None:
        self._getitem = rebound(type(joining).__getitem__, trace.library, trace.plain)
        self._joining = joining

    def __getitem__(self, key: Any) -> Any:
        return self._getitem(self._joining, key)


class Library:
    """A module of NumPy as a reference finds it while it is traced.

    What is asked for is made then: entries of the table in place of its functions, and of
    those that NumPy writes in Python their own code, traced as well.
    """

    def __init__(self, trace: Trace, module: ModuleType = np) -> None:
        self._trace = trace
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = self._stand_in(getattr(self._module, name))
        setattr(self, name, found)
        return found

    def _stand_in(self, value: Any) -> Any:
        trace = self._trace
        if isinstance(value, ModuleType):
            if value is np.random:
                return _Random()
            return Library(trace, value) if value.__name__.startswith("numpy.") else value
        if isinstance(value, type):
            if value is np.ndarray:
                return _typed(value, value, (np.ndarray, Traced))
            if value is np.broadcast:
                return lambda *args: SimpleNamespace(
                    shape=trace.function(np.broadcast_shapes, [np.shape(x) for x in args], {})
                )
            if value is np.vectorize:
                return partial(vectorized, trace)
            concrete = issubclass(value, (np.number, np.bool_)) and value in np.sctypeDict.values()
            return _typed(value, _scalar(trace, value)) if concrete else value
        if value is np.mgrid or value is np.ogrid:
            return Grid(trace, dense=value is np.mgrid)
        if value is np.r_ or value is np.c_:
            return _Joining(trace, value)
        if getattr(type(value), "__hash__", None) is None:
            return value
        if value in FUNCTIONS:
            return partial(_called, trace, value)
        return value if own(value) is None else partial(_called_where_traced, trace, value)


def own(function: Any) -> FunctionType | None:
    """The code of a function that NumPy writes in Python."""
    code = getattr(function, "_implementation", function)
    home = getattr(code, "__globals__", {}).get("__name__", "")
    plain = isinstance(code, FunctionType) and home.startswith("numpy.") and home not in _OUTSIDE
    return code if plain else None


def _called(trace: Trace, function: Any, *args: Any, **kwargs: Any) -> Any:
    return trace.function(function, args, kwargs)


def _called_where_traced(trace: Trace, function: Any, *args: Any, **kwargs: Any) -> Any:
    if any_traced((*args, *kwargs.values())):
        return trace.function(function, args, kwargs)
    return function(*args, **kwargs)


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

    named = {"int": _typed(int, whole, WHOLE), "float": _typed(float, floating)}
    return {"len": length, "range": _steps, "math": _math(trace), "ndarray": kept, **named}


def _steps(first: Any, last: Any = None, by: Any = 1) -> Sequence[int]:
    """``range``, whose count alone is assumed."""
    start, stop = (0, first) if last is None else (first, last)
    given = (start, stop, by)
    start, stop, by = (n if isinstance(n, WHOLE) else operator.index(n) for n in given)
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
