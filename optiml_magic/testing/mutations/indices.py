"""Wrong places: indices, strides, axes and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.testing.mutations.base import Change, Function, operator_of, replaced

_AXES = {"x": "y", "y": "x", "z": "x"}
_PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


def index_off_by_one(function: Function, node: Node) -> Iterator[Change]:
    """``a[i]`` becomes ``a[i + 1]``, on either side of an assignment."""
    if node.type == "subscript_argument_list" and len(node.named_children) == 1:
        (index,) = node.named_children
        yield replaced(index, f"({function.text(index)}) + 1")


def index_before(function: Function, node: Node) -> Iterator[Change]:
    """``a[i]`` becomes ``a[i - 1]``."""
    if node.type == "subscript_argument_list" and len(node.named_children) == 1:
        (index,) = node.named_children
        yield replaced(index, f"({function.text(index)}) - 1")


def indices_exchanged(function: Function, node: Node) -> Iterator[Change]:
    """``tile[y][x]`` becomes ``tile[x][y]``."""
    inner = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
    if inner is None or inner.type != "subscript_expression":
        return
    one, two = inner.child_by_field_name("indices"), node.child_by_field_name("indices")
    if one and two and function.text(one) != function.text(two):
        yield (*replaced(one, function.text(two)), *replaced(two, function.text(one)))


def row_and_column_exchanged(function: Function, node: Node) -> Iterator[Change]:
    """``row * cols + col`` becomes ``col * cols + row``."""
    product = node.child_by_field_name("left") if node.type == "binary_expression" else None
    token, rest = operator_of(node), node.child_by_field_name("right")
    if product is None or product.type != "binary_expression" or token is None or rest is None:
        return
    times, row = operator_of(product), product.child_by_field_name("left")
    if times is None or row is None or rest.type == "number_literal":
        return
    if function.text(times) == "*" and function.text(token) == "+":
        yield (
            *replaced(row, f"({function.text(rest)})"),
            *replaced(rest, f"({function.text(row)})"),
        )


def stride_off_by_one(function: Function, node: Node) -> Iterator[Change]:
    """``row * cols + col`` becomes ``row * (cols + 1) + col``."""
    product = node.child_by_field_name("left") if node.type == "binary_expression" else None
    token = operator_of(node)
    if product is None or product.type != "binary_expression" or token is None:
        return
    times, stride = operator_of(product), product.child_by_field_name("right")
    if times is None or stride is None or stride.type == "number_literal":
        return
    if function.text(times) == "*" and function.text(token) == "+":
        yield replaced(stride, f"({function.text(stride)} + 1)")


def wrong_axis(function: Function, node: Node) -> Iterator[Change]:
    """``threadIdx.x`` becomes ``threadIdx.y``."""
    if node.type != "field_expression":
        return
    place, field = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if place is not None and field is not None and function.text(place) in _PLACES:
        yield replaced(field, _AXES[function.text(field)])


def wrong_size(function: Function, node: Node) -> Iterator[Change]:
    """An integer parameter becomes the next one: ``cols`` where ``rows`` belongs."""
    if node.type != "identifier" or node.parent is None or len(function.sizes) < 2:
        return
    name, sizes = function.text(node), function.sizes
    if name in sizes and not node.parent.type.endswith("declaration"):
        yield replaced(node, sizes[(sizes.index(name) + 1) % len(sizes)])


def thread_for_block(function: Function, node: Node) -> Iterator[Change]:
    """``blockIdx`` becomes ``threadIdx``: every block does the work of the first few."""
    if node.type == "field_expression":
        place = node.child_by_field_name("argument")
        if place is not None and function.text(place) == "blockIdx":
            yield replaced(place, "threadIdx")


def array_too_short(function: Function, node: Node) -> Iterator[Change]:
    """``__shared__ float tile[32][33]`` becomes one row shorter."""
    size = node.child_by_field_name("size") if node.type == "array_declarator" else None
    name = node.child_by_field_name("declarator")
    if name is None or name.type != "identifier":
        return
    declaration = node.parent
    while declaration is not None and declaration.type == "array_declarator":
        declaration = declaration.parent
    if size is None or declaration is None or "__shared__" not in function.text(declaration):
        return
    yield replaced(size, f"({function.text(size)}) - 1")
