"""Numbers that host code spells out, and casts of what it computes."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from optiml_magic.kernels.literals import number
from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import parse, passed_to, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tree_sitter import Node

    from optiml_magic.source.definitions import Definition

_FUNCTIONS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {name: getattr(math, name)
     for name in ("sqrt", "exp", "log", "log2", "log10", "pow", "fabs", "floor", "ceil", "sin",
                  "cos", "tan", "tanh")}
)  # fmt: skip
_NAMED: Mapping[str, int | float] = MappingProxyType(
    {"M_PI": math.pi, "M_E": math.e, "M_SQRT2": math.sqrt(2), "M_PI_2": math.pi / 2,
     "INFINITY": math.inf, "HUGE_VALF": math.inf, "INT_MAX": 2**31 - 1, "INT_MIN": -(2**31),
     "FLT_MAX": 3.4028234663852886e38, "FLT_MIN": 1.1754943508222875e-38,
     "FLT_EPSILON": 1.1920928955078125e-07, "DBL_MAX": 1.7976931348623157e308,
     "DBL_EPSILON": 2.220446049250313e-16}
)  # fmt: skip


def literal_number(node: Node) -> int | float | None:
    """The value of a literal."""
    words = text_of(node)
    if node.type in ("true", "false"):
        return int(node.type == "true")
    found = number(words) if node.type in ("number_literal", "unary_expression") else None
    return None if found is None else found[0]


def named_number(name: str) -> int | float | None:
    """The value of a constant of the C library."""
    return _NAMED.get(name)


def computed(node: Node, number: Callable[[Node], int | float | None]) -> float | None:
    """What a function of the C library makes of numbers, ``sqrtf(d)``."""
    if node.type != "call_expression":
        return None
    base = text_of(node.child_by_field_name("function")).removeprefix("std::")
    function = _FUNCTIONS.get(base) or _FUNCTIONS.get(base.removesuffix("f"))
    listed = node.child_by_field_name("arguments")
    given = [number(one) for one in (listed.named_children if listed is not None else ())]
    known = [one for one in given if one is not None]
    if function is None or len(known) < len(given):
        return None
    try:
        return float(function(*known))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None


def converted(number: float | None, to: str) -> int | float | None:
    """What a cast to a type makes of a number; None where it is not known, or too large."""
    dtype = scalar_dtype(to)
    if number is None or dtype is None or not math.isfinite(number):
        return None
    if dtype[-2] == "f" or dtype == "bfloat16":
        return float(number)
    return int(number) if dtype[-2] in "iu" and abs(number) < 2**31 else None


def cast_of(node: Node) -> tuple[str, Node] | None:
    """The type that a cast in any of its spellings is to, and what it casts."""
    if node.type == "cast_expression":
        value = node.child_by_field_name("value")
        return None if value is None else (text_of(node.child_by_field_name("type")), value)
    if node.type != "call_expression":
        return None
    function, listed = (node.child_by_field_name(part) for part in ("function", "arguments"))
    given = listed.named_child(0) if listed is not None and listed.named_child_count == 1 else None
    if given is None:
        return None
    return text_of(function).removeprefix("static_cast<").removesuffix(">").strip(), given


def made_by_function(node: Node, functions: Mapping[str, Definition]) -> Node | None:
    """``grid_of(w, h, block)`` as the ``dim3`` that a function of the text makes of these."""
    called = functions.get(text_of(node.child_by_field_name("function")))
    if called is None or node.type != "call_expression":
        return None
    given = [*map(text_of, passed_to(node))]
    words = called.spelled([one if one.isidentifier() else f"({one})" for one in given])
    reread = walk(parse(f"auto x = {words};").root) if words.startswith("dim3") else ()
    return next((n for n in reread if n.type == "call_expression"), None)
