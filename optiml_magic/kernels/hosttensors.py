"""What the wrapper of a PyTorch extension says of its tensors: data, and extents."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostpointers import uncast
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues

_DATA = re.compile(r"(\w+)\.(?:mutable_|const_)?data(?:_ptr)?\s*(?:<[\w:\s]*>)?\(\)")
_EXTENT = re.compile(
    r"(?P<tensor>\w+)\.(?:(?P<all>numel\(\))|size\((?P<axis>\d)\)|sizes\(\)\[(?P<at>\d)\])"
)

_MADE = re.compile(r"(?:torch|at)::(?P<kind>empty|zeros|ones|full)(?P<like>_like)?")


def tensor_of(argument: Node) -> str:
    """The tensor whose data an argument is; empty where it is none's."""
    found = _DATA.fullmatch(_plain(argument))
    return found[1] if found else ""


def tensor_extent(
    argument: Node, values: HostValues, tensors: Mapping[str, str]
) -> Expression | None:
    """A number that is an extent of a tensor, by the buffer that is its data."""
    local = values.definition(text_of(argument)) if argument.type == "identifier" else None
    found = _EXTENT.fullmatch(_plain(argument if local is None else local))
    buffer = tensors.get(found["tensor"]) if found else None
    if found is None or buffer is None:
        return None
    axis = found["axis"] or found["at"]
    return parse_expression(f"size({buffer})" if found["all"] else f"shape({buffer}, {axis})")


def tensor_made(
    definition: Node, values: HostValues, sizes: Mapping[str, str], tensors: Mapping[str, str]
) -> tuple[Expression, bool] | None:
    """How many elements a new tensor has, in the names of the task, and whether all are zeros.

    ``sizes`` are the numbers that the task has, by what the host calls them; extents of tensors
    that ``values`` are spelled with are known, too.
    """
    function, listed = (definition.child_by_field_name(part) for part in ("function", "arguments"))
    made = _MADE.fullmatch(text_of(function))
    first = listed.named_child(0) if listed is not None and listed.named_child_count else None
    if made is None or first is None:
        return None
    if made["like"]:
        buffer = tensors.get(text_of(first))
        found = f"size({buffer})" if buffer is not None else ""
        return (parse_expression(found), made["kind"] == "zeros") if found else None
    if first.type != "initializer_list":
        return None
    axes = [values.expression(axis) for axis in first.named_children]
    if not axes or any(axis is None or not axis.names <= sizes.keys() for axis in axes):
        return None
    text = " * ".join(f"({axis})" for axis in axes)
    renamed = re.sub(r"[A-Za-z_]\w*", lambda word: sizes.get(word[0], word[0]), text)
    return parse_expression(renamed), made["kind"] == "zeros"


def shape_made(definition: Node | None, values: HostValues) -> tuple[int, ...]:
    """The extents of a new tensor, where all of them are numbers; else none."""
    if definition is None or definition.type != "call_expression":
        return ()
    function, listed = (definition.child_by_field_name(part) for part in ("function", "arguments"))
    made = _MADE.fullmatch(text_of(function))
    first = listed.named_child(0) if listed is not None and listed.named_child_count else None
    if made is None or made["like"] or first is None or first.type != "initializer_list":
        return ()
    axes = [values.number(axis) for axis in first.named_children]
    whole = tuple(axis for axis in axes if isinstance(axis, int) and axis > 0)
    return whole if len(whole) == len(axes) else ()


def extents_asked(name: str, shape: tuple[int, ...]) -> dict[str, int]:
    """How host code asks a tensor of that name for its extents, and what they are."""
    found = {f"{name}.numel()": math.prod(shape), f"{name}.dim()": len(shape)} if shape else {}
    for axis, extent in enumerate(shape):
        found |= {f"{name}.size({axis})": extent, f"{name}.sizes()[{axis}]": extent}
    return found


def _plain(node: Node) -> str:
    return "".join(text_of(uncast(node)).split())
