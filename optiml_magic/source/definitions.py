"""Function-like macros and functions of one ``return``, applied to arguments.

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
            if returned is not None and not any(t and t[1] == "f" for t in types):
                names = tuple(formal.name for formal in formals(node))
                yield name_of(node), Definition(names, text_of(returned), False)


def _returned(function: Node) -> Node | None:
    """The expression of a function that only returns one."""
    body = function.child_by_field_name("body")
    statements = [c for c in (body.named_children if body else ()) if c.type != "comment"]
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    return next(iter(statements[0].named_children), None)
