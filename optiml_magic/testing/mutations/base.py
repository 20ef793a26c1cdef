"""What an operator is: a function of the text and a node of it in, ways to make it wrong out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.source.edits import Edit
from optiml_magic.source.syntax import Syntax, walk

_QUALIFIER = re.compile(r"\b(?:const|volatile|unsigned|signed|__restrict__|__shared__)\b")
_DECLARES = ("parameter_declaration", "optional_parameter_declaration", "declaration")
_NESTED = ("init_declarator", "pointer_declarator", "array_declarator", "reference_declarator")
_INTEGERS = ("int", "long", "long long", "size_t", "int32_t", "uint32_t", "int64_t", "")


@dataclass(frozen=True)
class Function:
    """A function that runs on the device, while faults are planted in it.

    ``types`` has the element type of each name: of a pointer or an array what it holds. ``sizes``
    are its integer parameters, in order.
    """

    syntax: Syntax
    node: Node
    types: Mapping[str, str]
    sizes: tuple[str, ...]

    @property
    def body(self) -> Node:
        return self.node.child_by_field_name("body") or self.node

    def text(self, node: Node) -> str:
        return self.syntax.source(node)

    def type_of(self, node: Node | None) -> str:
        """The element type of a name, or of what is indexed or pointed to by it; or nothing."""
        while node is not None and node.type in (
            "subscript_expression", "pointer_expression", "parenthesized_expression"
        ):  # fmt: skip
            node = node.child_by_field_name("argument") or next(iter(node.named_children), None)
        if node is None or node.type != "identifier":
            return ""
        return self.types.get(self.text(node), "")


Change = tuple[Edit, ...]
Operator = Callable[[Function, Node], Iterator[Change]]


def function(syntax: Syntax, node: Node) -> Function:
    """A ``function_definition`` with the types of the names that it declares."""
    types: dict[str, str] = {}
    sizes: list[str] = []
    for part in walk(node):
        declared = part.child_by_field_name("type") if part.type in _DECLARES else None
        if declared is None:
            continue
        plain = " ".join(_QUALIFIER.sub(" ", syntax.source(declared)).split())
        for declarator in part.children_by_field_name("declarator"):
            is_plain = declarator.type == "identifier"
            inner: Node | None = declarator
            while inner is not None and inner.type in _NESTED:
                last = inner.named_children[-1] if inner.named_children else None
                inner = inner.child_by_field_name("declarator") or last
            if inner is None or inner.type != "identifier":
                continue
            types[syntax.source(inner)] = plain
            if is_plain and part.type == "parameter_declaration" and plain in _INTEGERS:
                sizes.append(syntax.source(inner))
    return Function(syntax, node, types, tuple(sizes))


def replaced(node: Node, text: str) -> Change:
    """The node's span becomes ``text``."""
    return (Edit(node.start_byte, node.end_byte, text),)


def operator_of(node: Node) -> Node | None:
    """The token between the operands of a binary expression or an assignment."""
    return node.child_by_field_name("operator")


def bare(node: Node) -> Node:
    """A condition without its parentheses."""
    while node.type in ("parenthesized_expression", "condition_clause"):
        inner = [child for child in node.named_children if child.type != "comment"]
        if len(inner) != 1:
            return node
        node = inner[0]
    return node


def within(node: Node, *types: str) -> bool:
    """Whether some node above is of one of these types."""
    parent = node.parent
    while parent is not None:
        if parent.type in types:
            return True
        parent = parent.parent
    return False
