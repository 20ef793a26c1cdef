"""Function-like macros and functions of a few statements, applied to arguments.

What a launch is computed with: ``#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.syntax import name_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OWN_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)  # no member's
_STATEMENTS = 8  # of a function that is followed; ours
_BRANCHES = 3


@dataclass(frozen=True)
class Definition:
    """``body`` is an expression of the parameters; a macro's is replaced as text, as in C."""

    parameters: tuple[str, ...]
    body: str
    is_macro: bool

    def applied(
        self, arguments: Sequence[str], constants: Mapping[str, int], *, alone: bool = False
    ) -> str | None:
        """The body with its parameters replaced, or None where that cannot be decided for certain.

        A macro is told where brackets around its arguments and its result would change nothing;
        around its result they do not where it stands ``alone``.
        """
        if len(arguments) != len(self.parameters):
            return None
        closed = self._replaced([f"({argument})" for argument in arguments], constants)
        if not self.is_macro:
            return closed
        try:
            beside = "" if alone else "~"
            as_written = parse_expression(f"{beside}{self._replaced(arguments, constants)}")
            return closed if as_written == parse_expression(f"{beside}({closed})") else None
        except SourceError:
            return None

    def spelled(self, arguments: Sequence[str]) -> str:
        """The body of a function with names for its parameters; empty for anything else."""
        if self.is_macro or len(arguments) != len(self.parameters):
            return ""
        known = dict(zip(self.parameters, arguments, strict=True))
        return _OWN_WORD.sub(lambda word: known.get(word[0], word[0]), self.body)

    def _replaced(self, arguments: Sequence[str], constants: Mapping[str, int]) -> str:
        known = {name: f"({value})" for name, value in constants.items()}
        known |= dict(zip(self.parameters, arguments, strict=True))
        return _WORD.sub(lambda word: known.get(word[0], word[0]), self.body)


def definitions(syntax: Syntax) -> dict[str, Definition]:
    """The definitions of a text by name; a name that is defined twice has none."""
    found: dict[str, Definition] = {}
    twice: set[str] = set()
    for name, definition in _definitions(syntax):
        if name in found and found[name] != definition:
            twice.add(name)
        found[name] = definition
    return {name: definition for name, definition in found.items() if name not in twice}


def _definitions(syntax: Syntax) -> Iterator[tuple[str, Definition]]:
    for node in nodes_of(syntax.root):
        if node.type == "preproc_function_def":
            listed = node.child_by_field_name("parameters")
            body = text_of(node.child_by_field_name("value")).split("//")[0].strip()
            names = tuple(text_of(n) for n in (listed.named_children if listed else ()))
            yield text_of(node.child_by_field_name("name")), Definition(names, body, True)
        elif node.type == "function_definition":
            returned = _returned(node)
            types = [scalar_dtype(text_of(node.child_by_field_name("type")))]
            types += [scalar_dtype(formal.type) for formal in formals(node)]
            if returned and not any(t and t[1] == "f" for t in types):
                names = tuple(formal.name for formal in formals(node))
                yield name_of(node), Definition(names, returned, False)


def _returned(function: Node) -> str:
    """What a function returns, as one expression of its parameters; empty where that is unclear."""
    body = function.child_by_field_name("body")
    statements = [c for c in (body.named_children if body else ()) if c.type != "comment"]
    own = {formal.name: formal.name for formal in formals(function) if not formal.reference}
    return _after(statements, own, _BRANCHES) if len(statements) <= _STATEMENTS else ""


def _after(statements: Sequence[Node], locals_: Mapping[str, str], branches: int) -> str:
    """What these statements return, where ``locals_`` and parameters are these by now."""
    if not statements:
        return ""
    first, *rest = statements
    if first.type == "return_statement":
        returned = next(iter(first.named_children), None)
        return _spelled(returned, locals_) if returned is not None else ""
    if first.type == "if_statement" and branches:
        asked = _spelled(first.child_by_field_name("condition"), locals_)
        sides = [first.child_by_field_name(side) for side in ("consequence", "alternative")]
        ways = [_after([*_within(side), *rest], locals_, branches - 1) for side in sides]
        return f"({asked} ? ({ways[0]}) : ({ways[1]}))" if asked and all(ways) else ""
    changed = _set(first, locals_)
    return _after(rest, {**locals_, **changed}, branches) if changed else ""


def _within(side: Node | None) -> list[Node]:
    """The statements of one side of a branch."""
    if side is None:
        return []
    if side.type == "else_clause":
        return [inner for child in side.named_children for inner in _within(child)]
    own = side.named_children if side.type == "compound_statement" else [side]
    return [one for one in own if one.type != "comment"]


def _set(statement: Node, locals_: Mapping[str, str]) -> dict[str, str]:
    """What a statement that only sets locals makes of them; nothing where it does more."""
    if statement.type == "declaration":
        kind = text_of(statement.child_by_field_name("type"))
        dtype = scalar_dtype(kind)
        found: dict[str, str] = {}
        for one in statement.children_by_field_name("declarator"):
            value = one.child_by_field_name("value")
            name = text_of(one.child_by_field_name("declarator"))
            made = value is not None and value.type == "argument_list"
            if value is None or not name.isidentifier() or made != (kind == "dim3"):
                return {}
            if not made and (dtype is None or dtype[1] == "f"):
                return {}
            text = _spelled(value, {**locals_, **found})
            found[name] = f"dim3{text}" if made else f"({text})"
        return found
    plain = statement.type == "expression_statement" and statement.named_child_count == 1
    inner = statement.named_child(0) if plain else None
    if inner is None or inner.type not in ("assignment_expression", "update_expression"):
        return {}
    operator = text_of(inner.child_by_field_name("operator"))
    left = inner.child_by_field_name("left") or inner.child_by_field_name("argument")
    name = text_of(left)
    right = inner.child_by_field_name("right")
    more = "1" if right is None else _spelled(right, locals_)
    if name not in locals_ or operator[:1] not in "=+-*/":
        return {}
    before = locals_[name]
    return {name: f"({more})" if operator == "=" else f"({before} {operator[0]} ({more}))"}


def _spelled(node: Node | None, locals_: Mapping[str, str]) -> str:
    return _OWN_WORD.sub(lambda word: locals_.get(word[0], word[0]), text_of(node))
