"""Execution spaces made explicit: what NVRTC compiles for the device unmarked, marked.

The search compiles with NVRTC's ``-default-device``, which nvcc lacks: there a function without a
marker is the host's. Source: NVRTC documentation, "Supported Compile Options".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import parse

_SPACES = frozenset({"__global__", "__device__", "__host__", "__constant__", "__shared__"})
_CONTAINERS = frozenset(
    {
        "translation_unit", "namespace_definition", "declaration_list", "linkage_specification",
        "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "template_declaration",
        "struct_specifier", "class_specifier", "union_specifier", "field_declaration_list",
        "declaration", "type_definition",
    }
)  # fmt: skip
_CONSTANTS = re.compile(
    r"(?:un)?signed|bool|char|short|int|long|float|double|size_t|u?int\d+_t|\s+|auto"
)


def marked(text: str) -> str:
    """``text`` with ``__device__`` before each function and table that has no marker of its own.

    Constants of built-in types stay as they are: any CUDA compiler folds them into device code.
    """
    syntax = parse(text)
    places = sorted(set(_unmarked(syntax.root)))
    return apply(text, [Edit(at, at, "__device__ ") for at in places])


def _unmarked(node: Node) -> Iterator[int]:
    for child in node.children:
        if child.type == "function_definition":
            defaulted = any("method_clause" in part.type for part in child.children)
            if not defaulted and not _has_space(child):
                yield child.start_byte
        elif child.type in ("declaration", "field_declaration") and _wants_space(child):
            yield child.start_byte
        if child.type in _CONTAINERS:
            yield from _unmarked(child)


def _has_space(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    end = declarator.start_byte if declarator is not None else node.end_byte
    head = (node.text or b"")[: end - node.start_byte].decode(errors="replace")
    return bool(_SPACES & set(re.findall(r"\w+", head)))


def _wants_space(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    if declarator is None or _has_space(node):
        return False
    if _is_prototype(declarator):
        return True
    if node.type == "field_declaration" or text_of(node).startswith("friend"):
        return False
    constant = any(text_of(child) in ("const", "constexpr") for child in node.children)
    spelled = text_of(node.child_by_field_name("type"))
    plain = not _CONSTANTS.sub("", spelled) and not declared(declarator).depth
    return not (constant and plain)


def _is_prototype(declarator: Node) -> bool:
    """Whether it declares a function; a pointer to one, ``float (*f)(float)``, is data."""
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or declarator.named_children[-1]
    inner = declarator.child_by_field_name("declarator")
    return (
        declarator.type == "function_declarator"
        and inner is not None
        and inner.type != "parenthesized_declarator"
    )
