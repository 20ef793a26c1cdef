"""The parameters that a function declares, as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.syntax import line_of

if TYPE_CHECKING:
    from tree_sitter import Node

_PARAMETERS = frozenset({"parameter_declaration", "optional_parameter_declaration"})
_LEAVES = frozenset({"identifier", "field_identifier", "type_identifier"})


@dataclass(frozen=True)
class Declared:
    """What a declarator makes of its type: ``depth`` counts pointers, arrays included."""

    name: str
    depth: int
    reference: bool = False
    array: bool = False
    function: bool = False


@dataclass(frozen=True)
class Formal:
    """One parameter: ``type`` is its type's text without qualifiers, const that of the pointee."""

    name: str
    type: str
    depth: int
    const: bool
    reference: bool
    optional: bool
    line: int

    @property
    def may_point(self) -> bool:
        """Whether it is a pointer, or of a type that may be or hold one."""
        return self.depth > 0 or element_dtype(self.type)[0] is None


def formals(function: Node) -> tuple[Formal, ...]:
    """The parameters of a ``function_definition``; a pack or an unreadable one has no name."""
    return tuple(_formal(node) for node in parameters(function))


def parameters(function: Node) -> tuple[Node, ...]:
    """The declarations of a ``function_definition``'s parameters."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    found = declarator.child_by_field_name("parameters") if declarator else None
    return tuple(node for node in found.named_children if _is_parameter(node)) if found else ()


def text_of(node: Node | None) -> str:
    """A node's text with its white space made single blanks."""
    raw = node.text if node is not None else None
    return " ".join(raw.decode(errors="replace").split()) if raw else ""


def declared(declarator: Node | None) -> Declared:
    """The name and shape that a declarator gives, whatever stands around the name."""
    depth, reference, array, function = 0, False, False, False
    while declarator is not None and declarator.type not in _LEAVES:
        kind = declarator.type
        depth += kind in (
            "pointer_declarator", "abstract_pointer_declarator", "array_declarator"
        )  # fmt: skip
        array = array or kind == "array_declarator"
        reference = reference or kind == "reference_declarator"
        function = function or kind == "function_declarator"
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.named_children if c.type in _LEAVES
                          or c.type.endswith("_declarator")), None)  # fmt: skip
        declarator = inner
    return Declared(text_of(declarator), depth, reference, array, function)


def _is_parameter(node: Node) -> bool:
    if node.type == "parameter_declaration" and text_of(node) == "void":
        return False
    return node.type in _PARAMETERS or node.type == "variadic_parameter_declaration"


def _formal(node: Node) -> Formal:
    shape = declared(node.child_by_field_name("declarator"))
    spelled = text_of(node.child_by_field_name("type"))
    words = [text_of(child) for child in node.children if child.type == "type_qualifier"]
    if shape.function:
        spelled = "function pointer"
    return Formal(
        shape.name if node.type in _PARAMETERS else "",
        spelled.removeprefix("struct ").removeprefix("union ").removeprefix("enum "),
        0 if shape.function else shape.depth,
        "const" in words or "constexpr" in words,
        shape.reference,
        node.type == "optional_parameter_declaration",
        line_of(node),
    )
