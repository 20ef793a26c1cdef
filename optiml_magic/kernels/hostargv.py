"""What a pasted program's command line gives its ``main``, by ``#pragma optiml argv(1024, 10)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.source.directives import ArgvDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import declared, parameters, text_of
from optiml_magic.source.grammar import HEAD, parse_directive
from optiml_magic.source.lexer import lex
from optiml_magic.source.syntax import name_of, nodes_of, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

_WHOLE = frozenset(
    {"atoi", "atol", "atoll", "stoi", "stol", "stoul", "stoll", "stoull", "strtol", "strtoul",
     "strtoll", "strtoull"}
)  # fmt: skip
_REAL = frozenset({"atof", "stof", "stod", "strtof", "strtod"})
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ARGV = re.compile(rf"{HEAD.pattern}\s*argv\b")


@dataclass(frozen=True)
class CommandLine:
    """``text`` is that of the program without the directive; no line of it moves."""

    text: str
    arguments: tuple[str, ...] | None = None


def command_line(text: str) -> CommandLine:
    """What the directive of a text says; no arguments where it has none."""
    if "argv" not in text:
        return CommandLine(text)
    lexed = lex(text)
    for line in lexed.active():
        if _ARGV.match(line.text):
            directive = parse_directive(line.text, line=lexed.line_at(line.start))
            blank = "\n" * text.count("\n", line.start, line.end)
            left = text[: line.start] + blank + text[line.end :]
            if isinstance(directive, ArgvDirective):
                return CommandLine(left, directive.arguments)
    return CommandLine(text)


def with_numbers_given(text: str, arguments: tuple[str, ...]) -> str:
    """The text with ``atoi(argv[1])`` and the like as the numbers that they are."""
    syntax, edits = parse(text), []
    for call, at in _asking(syntax):
        word = arguments[at - 1] if 0 < at <= len(arguments) else ""
        called = text_of(call.child_by_field_name("function")).removeprefix("std::")
        number = _number(word, called)
        if number:
            edits.append(Edit(call.start_byte, call.end_byte, number))
    return apply(text, edits) if edits else text


def _number(word: str, called: str) -> str:
    """What a function of the host makes of a word; nothing for one that is not a number."""
    found = _NUMBER.match(word)
    if found is None:
        return ""
    if called in _REAL:
        return repr(float(found[0]))
    whole = re.match(r"[-+]?\d+", word)  # `atoi` stops before a point
    return str(int(whole[0])) if whole else ""


def names_asked(syntax: Syntax) -> tuple[str, ...]:
    """What ``main`` calls each number of its command line, in capitals."""
    found: dict[int, str] = {}
    for call, at in _asking(syntax):
        parent: Node | None = call
        name = ""
        while parent is not None and "statement" not in parent.type and not name:
            if parent.type == "init_declarator":
                name = declared(parent).name
            elif parent.type == "assignment_expression":
                name = text_of(parent.child_by_field_name("left"))
            parent = parent.parent
        found.setdefault(at, re.sub(r"\W+", "_", name).strip("_").upper() or f"ARGUMENT_{at}")
    return tuple(found.get(at, f"ARGUMENT_{at}") for at in range(1, max(found, default=0) + 1))


def _asking(syntax: Syntax) -> Iterator[tuple[Node, int]]:
    """The calls that make a number of an argument, and which one it is.

    They are in ``main``, and in functions that it hands ``argv`` on to.
    """
    for function in nodes_of(syntax.root):
        if function.type != "function_definition":
            continue
        taken = [declared(p.child_by_field_name("declarator")).name for p in parameters(function)]
        if len(taken) < 2 or (name_of(function) != "main" and taken[1] != "argv"):
            continue
        for node in nodes_of(function):
            called = text_of(node.child_by_field_name("function")).removeprefix("std::")
            listed = node.child_by_field_name("arguments")
            if node.type != "call_expression" or called not in _WHOLE | _REAL or listed is None:
                continue
            first = text_of(next(iter(listed.named_children), None))
            at = re.fullmatch(rf"{re.escape(taken[1])} ?\[ ?(\d+) ?\]", first)
            if at is not None:
                yield node, int(at[1])
