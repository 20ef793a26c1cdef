"""The ``__constant__`` and ``__device__`` variables that a text declares outside of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optiml_magic.source.aliases import resolve, type_aliases
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import Syntax, line_of, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_SCOPES = frozenset({"namespace_definition", "declaration_list", "linkage_specification"})
_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"})


@dataclass(frozen=True)
class DeviceVariable:
    """One variable of the module; ``name`` includes its namespaces.

    ``dtype`` is that of an element, of one lane for a vector type; None for a struct. Without an
    initialiser it holds zeros until somebody fills it.
    """

    name: str
    ctype: str
    dtype: str | None
    lanes: int
    space: Literal["constant", "device"]
    initialised: bool
    line: int

    @property
    def bare_name(self) -> str:
        """The name without namespaces: what an array of the user's is called."""
        return self.name.rsplit("::", 1)[-1]


def device_variables(source: str | Syntax) -> tuple[DeviceVariable, ...]:
    """The variables of a text in order; those inside functions and classes are not the user's."""
    syntax = parse(source) if isinstance(source, str) else source
    aliases = type_aliases(syntax)
    return tuple(
        found
        for node, scope in _declarations(syntax.root, ())
        for found in _declared(node, scope, aliases)
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
    node: Node, scope: tuple[str, ...], aliases: dict[str, str]
) -> Iterator[DeviceVariable]:
    words = {text_of(child) for child in node.children}
    if not words & {"__constant__", "__device__"} or words & {"extern", "__shared__"}:
        return
    for declarator in node.children_by_field_name("declarator"):
        shape = declared(declarator)
        spelled, depth, _ = resolve(text_of(node.child_by_field_name("type")), aliases)
        if not shape.name or shape.function or depth or shape.depth > _extents(declarator):
            continue  # a function, or a pointer: its value is an address, which nobody can give
        dtype, lanes = element_dtype(spelled)
        yield DeviceVariable(
            "::".join([*scope, shape.name]),
            spelled,
            dtype,
            lanes,
            "constant" if "__constant__" in words else "device",
            declarator.type == "init_declarator",
            line_of(declarator),
        )


def _extents(declarator: Node | None) -> int:
    """How many array brackets a declarator has."""
    found = 0
    while declarator is not None:
        found += declarator.type == "array_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return found
