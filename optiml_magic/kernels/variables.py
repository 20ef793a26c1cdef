"""The ``__constant__`` and ``__device__`` variables that a text declares outside of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.kernels.unit import Unit

_SCOPES = frozenset({"namespace_definition", "declaration_list", "linkage_specification"})
_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"})


@dataclass(frozen=True)
class DeviceVariable:
    """One variable of the module; ``name`` includes its namespaces.

    ``dtype`` is that of an element, of one lane for a vector type; None for a struct.
    ``initialiser`` is its text as written, with the ``=`` or the braces; without one it holds zeros
    until somebody fills it. No kernel writes to a ``const`` one.
    """

    name: str
    ctype: str
    dtype: str | None
    lanes: int
    space: Literal["constant", "device"]
    initialiser: str
    const: bool
    line: int

    @property
    def initialised(self) -> bool:
        """Whether it has a value of its own."""
        return bool(self.initialiser)

    @property
    def bare_name(self) -> str:
        """The name without namespaces: what an array of the user's is called."""
        return self.name.rsplit("::", 1)[-1]


def device_variables(unit: Unit, *, pointers: bool = False) -> tuple[DeviceVariable, ...]:
    """The variables of a text in order; those inside functions and classes are not the user's.

    Pointers are left out unless asked for: their values are addresses, which nobody can give.
    """
    return tuple(
        found
        for node, scope in _declarations(unit.syntax.root, ())
        for found in _declared(node, scope, unit, pointers=pointers)
    )


def _declarations(node: Node, scope: tuple[str, ...]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    for child in node.named_children:
        if child.type == "declaration":
            yield child, scope
        elif child.type in _SCOPES or child.type in _CONDITIONALS:
            name = text_of(child.child_by_field_name("name"))
            inner = (*scope, name) if child.type == "namespace_definition" and name else scope
            yield from _declarations(child, inner)


def _declared(
    node: Node, scope: tuple[str, ...], unit: Unit, *, pointers: bool
) -> Iterator[DeviceVariable]:
    words = {text_of(child) for child in node.children}
    if not words & {"__constant__", "__device__"} or words & {"extern", "__shared__"}:
        return
    for declarator in node.children_by_field_name("declarator"):
        shape = declared(declarator)
        spelled, depth, _ = resolve(text_of(node.child_by_field_name("type")), unit.aliases)
        pointer = depth or shape.depth > _extents(declarator)
        if not shape.name or shape.function or (pointer and not pointers):
            continue
        dtype, lanes = element_dtype(spelled)
        yield DeviceVariable(
            "::".join([*scope, shape.name]),
            spelled,
            dtype,
            lanes,
            "constant" if "__constant__" in words else "device",
            _initialiser(declarator),
            not pointer and bool(words & {"const", "constexpr", "__constant__"}),
            unit.line(declarator.start_byte, declarator.end_byte),
        )


def dynamic_shared(unit: Unit, *, inside: bool = False) -> dict[str, str]:
    """The types of the ``extern __shared__`` arrays by name, also those ``inside`` functions."""
    outside = (node for node, _ in _declarations(unit.syntax.root, ()))
    found = {}
    for node in walk(unit.syntax.root) if inside else outside:
        if node.type != "declaration":
            continue
        if {text_of(child) for child in node.children} >= {"extern", "__shared__"}:
            spelled = text_of(node.child_by_field_name("type"))
            for declarator in node.children_by_field_name("declarator"):
                found[declared(declarator).name] = spelled
    return found


def function_statics(unit: Unit) -> tuple[str, ...]:
    """The variables that functions keep from one launch to the next."""
    return tuple(
        declared(declarator).name
        for function in walk(unit.syntax.root)
        if function.type == "function_definition"
        for node in walk(function)
        if node.type == "declaration"
        and "static" in (words := {text_of(child) for child in node.children})
        and not words & {"const", "constexpr", "__constant__", "__shared__"}
        for declarator in node.children_by_field_name("declarator")
    )


def _initialiser(declarator: Node) -> str:
    inner = declarator.child_by_field_name("declarator")
    if declarator.type != "init_declarator" or inner is None or declarator.text is None:
        return ""
    written = declarator.text[inner.end_byte - declarator.start_byte :]
    return written.decode(errors="replace").strip()


def _extents(declarator: Node | None) -> int:
    """How many array brackets a declarator has."""
    found = 0
    while declarator is not None:
        found += declarator.type == "array_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return found
