"""Lower precision where the kernel declares more: half, bfloat16, tf32, float, fast intrinsics."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.source.edits import Edit
from optiml_magic.source.syntax import walk
from optiml_magic.testing.mutations.base import Change, Function, operator_of, replaced, within

_FAST = {"expf": "__expf", "logf": "__logf", "sinf": "__sinf", "cosf": "__cosf", "powf": "__powf",
         "tanf": "__tanf", "exp": "__expf", "log": "__logf", "sin": "__sinf", "cos": "__cosf",
         "log2f": "__log2f", "exp10f": "__exp10f", "tanhf": "__tanhf"}  # fmt: skip
_WRITES = ("assignment_expression", "update_expression", "pointer_expression")


def through_half(function: Function, node: Node) -> Iterator[Change]:
    """A float is rounded to half, where it is kept or read."""
    yield from _narrowed(function, node, "float", "__half2float(__float2half({}))", "cuda_fp16.h")


def through_bfloat16(function: Function, node: Node) -> Iterator[Change]:
    """A float is rounded to bfloat16."""
    form = "__bfloat162float(__float2bfloat16({}))"
    yield from _narrowed(function, node, "float", form, "cuda_bf16.h")


def through_tf32(function: Function, node: Node) -> Iterator[Change]:
    """A float keeps 10 bits of its fraction."""
    form = "__uint_as_float(__float_as_uint({}) & 0xffffe000u)"
    yield from _narrowed(function, node, "float", form)


def float_for_double(function: Function, node: Node) -> Iterator[Change]:
    """A double is rounded to float."""
    yield from _narrowed(function, node, "double", "(double)(float)({})")


def sum_in_half(function: Function, node: Node) -> Iterator[Change]:
    """``sum += x`` of a float is rounded to half each time."""
    token = operator_of(node) if node.type == "assignment_expression" else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if token is None or left is None or right is None or function.text(token) != "+=":
        return
    if function.type_of(left) == "float":
        name, value = function.text(left), function.text(right)
        rounded = f"{name} = __half2float(__float2half({name} + ({value})))"
        yield (_include("cuda_fp16.h"), *replaced(node, rounded))


def fast_intrinsic(function: Function, node: Node) -> Iterator[Change]:
    """``expf`` becomes ``__expf``."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    if called is not None and function.text(called) in _FAST:
        yield replaced(called, _FAST[function.text(called)])


def _narrowed(
    function: Function, node: Node, kind: str, form: str, header: str = ""
) -> Iterator[Change]:
    for value in _values(function, node, kind):
        change = replaced(value, form.format(function.text(value)))
        yield (_include(header), *change) if header else change


def _values(function: Function, node: Node, kind: str) -> Iterator[Node]:
    """What is assigned to a name of that type, given to it at first, or read from an array."""
    if node.type == "assignment_expression":
        right = node.child_by_field_name("right")
        if right is not None and function.type_of(node.child_by_field_name("left")) == kind:
            yield from _computed(function, right)
    elif node.type == "init_declarator":
        value, name = node.child_by_field_name("value"), node.child_by_field_name("declarator")
        is_plain = value is not None and name is not None and name.type == "identifier"
        if value is not None and is_plain and function.type_of(name) == kind:
            yield from _computed(function, value)
    elif node.type == "subscript_expression" and node.parent is not None:
        parent = node.parent
        is_read = parent.type not in ("subscript_expression", "field_expression", *_WRITES)
        is_right = parent.type == _WRITES[0] and node == parent.child_by_field_name("right")
        is_index = within(node, "subscript_argument_list")
        if (is_read or is_right) and not is_index and function.type_of(node) == kind:
            yield node


def _computed(function: Function, value: Node) -> Iterator[Node]:
    """A value that is made of others; a read of an array is looked at by itself."""
    names = (node for node in walk(value) if node.type == "identifier")
    if value.type not in ("initializer_list", "subscript_expression") and any(
        function.text(name) in function.types for name in names
    ):
        yield value


def _include(header: str) -> Edit:
    return Edit(0, 0, f"#include <{header}>\n")
