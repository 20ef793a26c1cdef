"""Where a kernel reads and writes its arrays, with each index as a polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.proposers.rewrites.affine import Affine, uncast
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.kernel import Variable

Pattern = Literal["broadcast", "coalesced", "strided", "unknown"]


@dataclass(frozen=True)
class Access:
    """A read or write of an element of a pointer parameter; ``node`` spans ``__ldg(...)`` too."""

    node: Node
    array: Variable
    index: Polynomial
    load: bool
    store: bool
    loops: tuple[Node, ...]  # innermost first

    @property
    def weight(self) -> int:
        """How much oftener than once it runs: a loop counts as eight rounds."""
        return int(8 ** len(self.loops))


def accesses(affine: Affine) -> tuple[Access, ...]:
    """Every access through a pointer parameter or a local pointer into one, in text order."""
    return tuple(_accesses(affine))


def pattern(affine: Affine, access: Access, thread: str) -> Pattern:
    """What neighbours along ``thread`` touch: one element, neighbouring ones, or ones far apart."""
    stride = affine.coefficient(access.index, thread)
    if stride is None:
        return "unknown"
    if stride.value is None:
        return "strided"
    return {0: "broadcast", 1: "coalesced"}.get(abs(stride.value), "strided")  # type: ignore[return-value]


def _accesses(affine: Affine) -> Iterator[Access]:
    for node in walk(affine.kernel.body):
        place = _place(affine, node)
        if place is None or _inside_address(node):
            continue
        load, store = _direction(node)
        yield Access(_with_ldg(node), *place, load, store, _loops(node))


def _place(affine: Affine, node: Node) -> tuple[Variable, Polynomial] | None:
    """The array and the index behind ``p[i]`` or ``*(p + i)``."""
    if node.type == "subscript_expression":
        base = _pointer(affine, node.child_by_field_name("argument"))
        indices = node.child_by_field_name("indices")
        if base is None or indices is None or len(indices.named_children) != 1:
            return None
        return base[0], base[1] + affine.form(indices.named_children[0])
    if node.type == "pointer_expression" and node.children[0].type == "*":
        return _pointer(affine, node.child_by_field_name("argument"))
    return None


def _pointer(affine: Affine, node: Node | None) -> tuple[Variable, Polynomial] | None:
    """The array that a pointer expression points into, and how many elements in."""
    if node is None:
        return None
    if node.type == "parenthesized_expression":
        return _pointer(affine, uncast(node))
    if node.type == "identifier":
        variable = affine.kernel.resolve(node)
        if variable is None or not variable.pointer or not affine.kernel.steady(variable):
            return None
        if variable.parameter:
            return (variable, Polynomial()) if not variable.array else None
        return _pointer(affine, variable.value)
    if node.type == "binary_expression" and node.children[1].type in "+-":
        base = _pointer(affine, node.children[0])
        if base is None:
            return None
        offset = affine.form(node.children[2])
        return base[0], base[1] + (offset if node.children[1].type == "+" else -offset)
    if node.type == "pointer_expression" and node.children[0].type == "&":
        return _place(affine, node.children[1])
    return None


def _direction(node: Node) -> tuple[bool, bool]:
    """Whether the element is read and whether it is written."""
    child, parent = node, node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "field_expression"):
        child, parent = parent, parent.parent
    if parent is None:
        return True, False
    if parent.type == "assignment_expression" and parent.children[0] == child:
        return parent.children[1].type != "=", True
    if parent.type == "update_expression":
        return True, True
    if parent.type == "pointer_expression" and parent.children[0].type == "&":
        return True, not _is_ldg(parent)
    return True, False


def _inside_address(node: Node) -> bool:
    """Whether ``&p[i]`` defines a local pointer, which is no access by itself."""
    parent = node.parent
    return (
        parent is not None
        and parent.type == "pointer_expression"
        and parent.children[0].type == "&"
        and parent.parent is not None
        and parent.parent.type == "init_declarator"
    )


def _is_ldg(address: Node) -> bool:
    arguments = address.parent
    call = arguments.parent if arguments is not None else None
    called = call.child_by_field_name("function") if call is not None else None
    return called is not None and called.text == b"__ldg"


def _with_ldg(node: Node) -> Node:
    parent = node.parent
    if parent is not None and parent.type == "pointer_expression" and _is_ldg(parent):
        assert parent.parent is not None
        assert parent.parent.parent is not None
        return parent.parent.parent
    return node


def _loops(node: Node) -> tuple[Node, ...]:
    loops = []
    parent = node.parent
    while parent is not None:
        if parent.type in ("for_statement", "while_statement", "do_statement"):
            loops.append(parent)
        parent = parent.parent
    return tuple(loops)
