"""Calling a reference: in float64 where it allows that, twice, and by the names it asks for."""

from __future__ import annotations

import inspect
import keyword
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from tokenize import TokenError
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.errors import OracleError
from optiml_magic.model.dtypes import kind, numbers, part, title, widened
from optiml_magic.problem.libraries import Home, to_numpy


@dataclass(frozen=True)
class Answer:
    """What a reference wants each output to be, and whether it computed in float64.

    ``seconds`` is how long one call took. ``scales`` has the median of each output, as
    ``tolerance`` means it, and ``digests`` that of each input after its map, where they are known.
    """

    outputs: dict[str, Array]
    wide: bool
    seconds: float = 0.0
    scales: Mapping[str, float] = field(default_factory=dict)
    digests: Mapping[str, int] = field(default_factory=dict)


def source_of(reference: Callable[..., Any] | None) -> str:
    """The text of a reference; "" where it cannot be had."""
    try:
        return inspect.getsource(reference) if reference is not None else ""
    except (OSError, TypeError, SyntaxError, IndexError, TokenError):
        return ""  # of a lambda within a statement of several lines Python may find no end


def ask(
    reference: Callable[..., Any],
    values: Mapping[str, Any],
    outputs: Sequence[str],
    homes: Mapping[str, Home] = MappingProxyType({}),
    *,
    twice: bool = True,
) -> Answer:
    """The answer of a reference for inputs by name; ``outputs`` are in the kernel's order.

    Inputs that came from another library, see ``homes``, are handed to it as arrays of that.

    Raises OracleError where it fails, differs when called ``twice``, or returns the wrong number of
    things.
    """
    given = arguments(reference, values, outputs)
    wide, began = True, time.monotonic()
    try:
        first = reference(**_copies(given, homes, wide=True))
    except Exception:  # noqa: BLE001  # any failure means that float64 is not to its taste
        wide, began = False, time.monotonic()
        first = called(reference, _copies(given, homes, wide=False))
    seconds = time.monotonic() - began
    second = called(reference, _copies(given, homes, wide=wide)) if twice else first
    one, two = named(first, outputs), named(second, outputs)
    for name in outputs:
        if not numbers(one[name].dtype):
            raise OracleError(
                f"the reference returned {title(one[name].dtype)} for `{name}`",
                fix="return an array of numbers",
            )
    if twice:
        _demand_same(one, two)
    return Answer(one, wide, seconds)


def _demand_same(one: Mapping[str, Array], two: Mapping[str, Array]) -> None:
    """Raise OracleError where two answers differ."""
    for name, array in one.items():
        if not _same(array, two[name]):
            raise OracleError(
                f"the reference gave two different answers for `{name}`",
                fix="take its random numbers from a generator with a fixed seed, made inside it",
            )


def _same(one: Array, two: Array) -> bool:
    """Number by number: a NaN is itself, and the padding of a struct is nothing."""
    if (one.shape, one.dtype) != (two.shape, two.dtype):
        return False
    if _bits_alike(one, two):
        return True
    pairs = ((part(one, number), part(two, number)) for number in numbers(one.dtype))
    return all(np.array_equal(a, b, equal_nan=kind(a.dtype) in "fc") for a, b in pairs)


def _bits_alike(one: Array, two: Array) -> bool:
    """Several times as fast as to ask each number whether it is a NaN."""
    size = one.dtype.itemsize
    if size not in (1, 2, 4, 8):
        return False
    ours, theirs = (np.ascontiguousarray(array).view(f"u{size}") for array in (one, two))
    return bool(np.array_equal(ours, theirs))


def arguments(
    reference: Callable[..., Any], values: Mapping[str, Any], outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """The values that a reference asks for, by the names of its parameters; OracleError if none.

    An array of ``outputs`` without a value is said to be one.
    """
    try:
        parameters = [*inspect.signature(reference).parameters.values()]
    except (TypeError, ValueError):
        raise OracleError(
            f"the reference {reference!r} does not say what its parameters are",
            fix="wrap it in a function whose parameters are the names of the inputs",
        ) from None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(values)
    wanted = {}
    asked = [f'"{p.name}"' for p in parameters if p.name in outputs and p.name not in values]
    for parameter in parameters:
        plain = parameter.name.rstrip("_")  # `in_` stands for `in`, which Python keeps to itself
        if parameter.name in values:
            wanted[parameter.name] = values[parameter.name]
        elif keyword.iskeyword(plain) and plain in values:
            wanted[parameter.name] = values[plain]
        elif (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        ):
            if parameter.name in outputs:
                raise OracleError(
                    f"the reference asks for `{parameter.name}`, which has no content before the "
                    "kernel writes it",
                    fix=f"write inout=({', '.join(asked)},), give the first content in the inputs "
                    "and leave it out of `outputs`; or take it out of the parameters",
                )
            known = ", ".join(map(_spelled, values))
            raise OracleError(
                f"the reference asks for `{parameter.name}`, which is not an input",
                fix=f"name its parameters after the inputs: {known}"
                if known
                else f'give an array for it: inputs={{"{parameter.name}": ...}}',
            )
    return wanted


def _spelled(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _copies(values: Mapping[str, Any], homes: Mapping[str, Home], *, wide: bool) -> dict[str, Any]:
    return {name: _copy(value, homes.get(name), wide=wide) for name, value in values.items()}


def _copy(value: Any, home: Home | None, *, wide: bool) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    copy = value.astype(widened(value.dtype)) if wide else value.copy()
    return home.array(copy) if home else copy


def called(reference: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a reference returns; OracleError where it raises."""
    try:
        return reference(**arguments)
    except Exception as cause:
        raise OracleError(
            f"the reference raised {type(cause).__name__}: {cause}",
            fix="call it on the inputs by hand until it returns the wanted output",
        ) from cause


def named(
    answer: Any, outputs: Sequence[str], convert: Callable[[Any], Any] = to_numpy
) -> dict[str, Any]:
    """What a reference returned as arrays by name; raises OracleError for the wrong number."""
    if isinstance(answer, Mapping):
        missing = [name for name in outputs if name not in answer]
        if missing:
            raise OracleError(
                f"the reference's dict lacks `{missing[0]}`",
                fix=f"return all of {', '.join(outputs)}",
            )
        return {name: _array(convert(answer[name])) for name in outputs}
    several = list(answer) if isinstance(answer, tuple) else [answer]
    if len(several) != len(outputs) or any(value is None for value in several):
        lacking = any(value is None for value in several)
        got = "nothing" if lacking else f"{len(several)} array{'s' * (len(several) > 1)}"
        more = len(several) < len(outputs)
        raise OracleError(
            f"the reference returned {got}; the kernel writes {', '.join(outputs) or 'nothing'}",
            fix="return one array for each output, in the order of the kernel's parameters"
            + ("; one that only the kernels use: #pragma optiml scratch NAME float[n]" * more),
        )
    return {name: _array(convert(value)) for name, value in zip(outputs, several, strict=True)}


def _array(value: Any) -> Any:
    return value if hasattr(value, "dtype") and hasattr(value, "reshape") else np.asarray(value)
