"""Text to a syntax tree, read again where the grammar mistakes what it cannot know.

C++ cannot be parsed without knowing what is a type and what a variable; the grammar guesses.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from optiml_magic.source.formals import declared
from optiml_magic.source.syntax import Syntax, parse, walk

_DECLARING = frozenset({"declaration", "parameter_declaration", "optional_parameter_declaration"})
_MOST_TRIES = 6


def parsed(raw: bytes) -> tuple[Syntax, frozenset[int], dict[int, int]]:
    """The tree of a text, where its ``<`` had to be read as ``>``, and parentheses it lacks.

    These are around names that are no types, each by where it opens and closes.

    The grammar takes ``b < 0 || b > n`` for a template, ``(a) && (b)`` for a cast, and at times
    ``tile<32> warp = ...`` for a comparison. What is a variable and what is not tells better: with
    an operator that binds alike, without the parentheses, or with the template argument as a part
    of the name, the text is read as it is meant.
    """
    syntax = parse(raw.decode("utf-8", "surrogatepass"))
    masked = bytearray(raw)
    less, bare = set[int](), dict[int, int]()
    for _ in range(_MOST_TRIES):
        templates, values, types = _mistaken(syntax.root)
        if not templates and not values and not types:
            break
        for at in templates:
            masked[at] = ord(">")
        for start, end in values:
            bare[start] = masked.index(b")", end)
            masked[start] = masked[bare[start]] = ord(" ")
        for start, end in types:
            masked[start:end] = re.sub(rb"\W", b"_", masked[start:end])
        less |= templates
        syntax = Syntax(raw, parse(masked.decode("utf-8", "surrogatepass")).root)
    return syntax, frozenset(less), bare


def _mistaken(root: Node) -> tuple[set[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """Where variables are taken for templates, where for types, and templates for variables."""
    variables: set[bytes] = set()
    templates: list[tuple[bytes, int]] = []
    casts: list[tuple[bytes, int, int]] = []
    types: list[tuple[bytes, int, int]] = []
    announced: set[int] = set()
    for node in walk(root):
        kind = node.type
        if kind == "template_declaration":  # `template <class T> T f(int);` is no variable
            announced |= {child.id for child in node.children if child.type == "declaration"}
        elif kind in _DECLARING and node.id not in announced:
            if node.child_by_field_name("type") is None:  # a constructor, `Info();`
                continue
            for declarator in node.children_by_field_name("declarator"):
                variables.add(declared(declarator).name.encode())
        elif kind == "template_argument_list" and node.parent is not None:
            name = node.parent.child_by_field_name("name")
            if name is not None and name.text:
                templates.append((name.text, node.start_byte))
        elif kind == "cast_expression":
            spelled = node.child_by_field_name("type")
            if spelled is not None and spelled.text:
                casts.append((spelled.text, node.start_byte, spelled.end_byte))
        elif kind == "binary_expression" and (found := _declares(node)) is not None:
            types.append(found)
    return (
        {at for name, at in templates if name in variables},
        [(start, end) for name, start, end in casts if name in variables],
        [(start, end) for name, start, end in types if name not in variables],
    )


def _declares(node: Node) -> tuple[bytes, int, int] | None:
    """``name < 32 > variable = value`` as a statement: the name, and where ``<32>`` stands."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if left is None or right is None or operator is None:
        return None
    if operator.type != ">" or left.type != "binary_expression":
        return None
    inner, name = left.child_by_field_name("operator"), left.child_by_field_name("left")
    if right.type not in ("assignment_expression", "identifier", "call_expression"):
        return None
    if inner is None or inner.type != "<" or name is None or name.text is None:
        return None
    # Asked last: the grammar looks for a parent from the root, which deep sums make dear.
    if node.parent is None or node.parent.type != "expression_statement":
        return None
    return name.text, inner.start_byte, operator.end_byte
