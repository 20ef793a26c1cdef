"""The types that a call gives to a template's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.primitives.shares import Each, Share, Shared, Value
from optiml_magic.kernels.tree import Function
from optiml_magic.kernels.types import CType, named


def called_types(
    function: Function, call: Call, given: Sequence[Value], names: Mapping[str, str],
    of_kind: Callable[[Shared], CType],
) -> dict[str, str]:  # fmt: skip
    """How types of numbers are called that the call names, or that its arguments tell."""
    found = dict[str, str]()
    types = {p.name for p in function.template if p.is_type}
    for generic, words in zip(function.template, call.template, strict=False):
        kind = named(words, names)  # ``T`` of whoever calls may be another one's here
        if generic.is_type and is_number(kind):
            found[generic.name] = kind.name
    for parameter, value in zip(function.parameters, given, strict=True):
        told = _kind(value, of_kind)
        if parameter.type.base in types and told is not None and is_number(told):
            found.setdefault(parameter.type.base, told.name)
    return found


def is_number(kind: CType) -> bool:
    """Whether a type is one of plain numbers."""
    return (kind.integral or kind.floating) and not kind.depth and kind.lanes == 1


def _kind(value: Value, of_kind: Callable[[Shared], CType]) -> CType | None:
    match value:
        case Share(source=source):
            return source.kind
        case Each(kind=kind):
            return kind
        case Shared():
            return of_kind(value)
    return None
