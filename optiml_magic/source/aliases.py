"""The typedefs and usings of a text, and types with them followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import Syntax, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

_MAX_ALIASES = 20
_DROPPED = frozenset({"const", "volatile", "*", "struct", "__restrict__"})


def type_aliases(syntax: Syntax) -> dict[str, str]:
    """The aliased types by name, alias templates excepted; pointers end in ``*``.

    An enumeration is the type of its numbers.
    """
    found: dict[str, str] = {}
    for node in nodes_of(syntax.root):
        if node.type == "enum_specifier" and node.child_by_field_name("body") is not None:
            found[text_of(node.child_by_field_name("name"))] = _numbered_by(node)
        if node.type not in ("alias_declaration", "type_definition"):
            continue
        if node.parent is not None and node.parent.type == "template_declaration":
            continue
        spelled = text_of(node.child_by_field_name("type"))
        if node.type == "alias_declaration":
            found[text_of(node.child_by_field_name("name"))] = spelled
            continue
        kind = node.child_by_field_name("type")
        body = kind.child_by_field_name("body") if kind is not None else None
        if kind is not None and body is not None:  # typedef struct [P] { ... } Q;
            spelled = text_of(kind.child_by_field_name("name"))
            spelled = _numbered_by(kind) if kind.type == "enum_specifier" else spelled
        const = any(text_of(c) == "const" for c in node.children if c.type == "type_qualifier")
        for declarator in node.children_by_field_name("declarator"):
            shape = declared(declarator)
            if spelled and not shape.function and not shape.array:
                found[shape.name] = ("const " if const else "") + spelled + "*" * shape.depth
    found.pop("", None)
    return found


def _numbered_by(enumeration: Node) -> str:
    return text_of(enumeration.child_by_field_name("base")).strip(": ") or "int"


def type_macros(syntax: Syntax) -> dict[str, str]:
    """The macros that stand for a type of numbers: ``#define REAL float``; of several the last."""
    found: dict[str, str] = {}
    for node in nodes_of(syntax.root):
        if node.type == "preproc_def":
            spelled = text_of(node.child_by_field_name("value")).split("//")[0].strip()
            if scalar_dtype(spelled) is not None:
                found[text_of(node.child_by_field_name("name"))] = spelled
    return found


def resolve(spelled: str, aliases: Mapping[str, str]) -> tuple[str, int, bool]:
    """A type with its aliases followed: its name, pointer depth, and whether it is const."""
    depth, const = 0, False
    for _ in range(_MAX_ALIASES):
        words = spelled.replace("*", " * ").split()
        const = const or "const" in words
        depth += words.count("*")
        spelled = " ".join(word for word in words if word not in _DROPPED)
        if spelled not in aliases:
            break
        spelled = aliases[spelled]
    return spelled, depth, const


def spelled(name: str, aliases: Mapping[str, str]) -> str:
    """A type with its aliases followed, as it is written; another name as it is."""
    if name not in aliases:
        return name
    base, depth, _ = resolve(name, aliases)
    return base + "*" * depth
