"""A reference that was written for NumPy, where the names in it stand for another library.

An array that it makes itself (``np.empty``) then lies where its inputs lie. Of SciPy the parts that
CuPy has under ``cupyx.scipy`` are taken from there. Python's own functions can have a counterpart
too.
"""

from __future__ import annotations

import builtins
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

_Dispatched = type(np.sum)
_NONE: Mapping[str, Any] = MappingProxyType({})


def rebound(
    call: Callable[..., Any], library: Any, plain: Mapping[str, Any] = _NONE
) -> Callable[..., Any]:
    """The same function with ``library`` where it, or what it calls, says NumPy.

    They are found by the global names and the closures of plain functions of its own package; what
    has no counterpart stays as it is. ``plain`` has counterparts of built-in functions, such as
    ``len``, and of modules by their names, such as ``math``; ``ndarray`` makes one of each array.
    """
    made = _Rebinding(library, plain, _package(call))
    return made.function(call) if isinstance(call, FunctionType) else made.value(call)


def computed(library: Any, call: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """What ``call`` makes of ``given``, where a view of it or a transpose is copied.

    A kernel has to write all of its outputs, in C order, so whoever is timed beside one does too.
    """
    arrays = [value for value in given.values() if isinstance(value, library.ndarray)]

    def whole(value: Any) -> Any:
        if not isinstance(value, library.ndarray) or any(value is array for array in arrays):
            return value  # the given array itself was changed in place
        shared = any(library.may_share_memory(value, array) for array in arrays)
        return value.copy() if shared or not value.flags.c_contiguous else value

    found = call(**given)
    if isinstance(found, Mapping):
        return {name: whole(value) for name, value in found.items()}
    return tuple(map(whole, found)) if isinstance(found, (tuple, list)) else whole(found)


class _Rebinding:
    def __init__(self, library: Any, plain: Mapping[str, Any], package: str) -> None:
        self._library = library
        self._plain = plain
        self._package = package
        self._made: dict[int, Any] = {}  # also what calls itself

    def value(self, value: Any) -> Any:
        """What replaces a value that a function can reach."""
        match value:
            case ModuleType():
                return self._module(value)
            case FunctionType():
                return self._owned(value) or self.function(value)
            case MethodType():
                return MethodType(self.value(value.__func__), value.__self__)
            case np.ndarray() if "ndarray" in self._plain:
                return self._plain["ndarray"](value)
            case tuple() if type(value) is tuple:
                return tuple(map(self.value, value))
            case functools.partial():
                return functools.partial(self.value(value.func), *value.args, **value.keywords)
            case np.ufunc() | BuiltinFunctionType() | _Dispatched():
                return self._owned(value) or value
            case type() if value.__module__ == "numpy":
                return self._owned(value) or value
        return value

    def _module(self, module: ModuleType) -> Any:
        first, _, rest = module.__name__.partition(".")
        if first in ("numpy", "cupy"):
            try:
                return functools.reduce(getattr, filter(None, rest.split(".")), self._library)
            except AttributeError:
                return module
        if first == "scipy":
            return _imported(f"cupyx.{module.__name__}") or module
        return self._plain.get(module.__name__, module)

    def _owned(self, function: Any) -> Any:
        """The counterpart of a function of NumPy or SciPy; None for anybody else's."""
        name = getattr(function, "__name__", "")
        if getattr(np, name, None) is function:
            return getattr(self._library, name, function)
        special = _imported("scipy.special") if isinstance(function, np.ufunc) else None
        if special is not None and getattr(special, name, None) is function:
            return getattr(_imported("cupyx.scipy.special"), name, function)
        return None

    def function(self, function: FunctionType) -> FunctionType:
        if id(function) in self._made:
            return self._made[id(function)]  # type: ignore[no-any-return]
        if _package(function) != self._package:
            return function
        scope = dict(function.__globals__)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        made = FunctionType(function.__code__, scope, function.__name__, closure=cells)
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        self._made[id(function)] = made
        for name in _names(function.__code__):
            if name in scope:
                scope[name] = self.value(scope[name])
            elif name in self._plain and hasattr(builtins, name):
                scope[name] = self._plain[name]
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.value(old.cell_contents)
            except ValueError:  # it has none yet
                continue
        return made


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function and those within it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _package(call: Callable[..., Any]) -> str:
    inner = call.func if isinstance(call, functools.partial) else call
    return str(getattr(inner, "__module__", "")).partition(".")[0]


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
