"""C++ integer expressions of a function body as directive expressions, with its locals replaced.

Only a local that is defined once and never changed is followed; what cannot be written with the
names allowed is None, never a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.definitions import definitions
from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import nodes_of, passed_to, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.definitions import Definition
    from optiml_magic.source.syntax import Syntax

_MAX_DEPTH = 60
_ROUNDED_UP = re.compile(
    r"(\w+|\([^()]*\)) % (\w+)(?: != 0| > 0)? \? \1 / \2 \+ 1 : \1 / \2"
    r"|(\w+|\([^()]*\)) / (\w+) \+ \(\3 % \4 (?:!=|>) 0\)"
)
_CALLS = {"min": "min", "max": "max", "cdiv": "cdiv", "ceil_div": "cdiv", "ceildiv": "cdiv",
          "div_up": "cdiv", "divup": "cdiv", "DIVUP": "cdiv", "CEIL_DIV": "cdiv",
          "ceil_divide": "cdiv"}  # fmt: skip


_AROUND = frozenset({"parenthesized_expression", "field_expression"})
_COPIES = frozenset(
    {"cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync", "cudaMemcpy", "cudaMemcpyAsync"}
)
_ALONE = frozenset(
    {"argument_list", "init_declarator", "initializer_list", "kernel_call_syntax",
     "parenthesized_expression"}
)  # fmt: skip
_OPEN = frozenset({"binary_expression", "conditional_expression", "unary_expression"})


class Values:
    """The locals of one body, and the names that a directive may use as they are.

    ``kept`` are locals to leave as they are, too, though their values may be known; ``functions``
    are the macros and functions that may be called.
    """

    def __init__(
        self,
        body: Node,
        names: Collection[str],
        constants: Mapping[str, int] | None = None,
        kept: Collection[str] = (),
        functions: Mapping[str, Definition] | None = None,
    ) -> None:
        self.functions = functions or {}
        self.kept = frozenset(kept)
        self.constants = constants or {}
        self.changed = frozenset(name for name, _ in changes(body))
        self.names = frozenset(names) - self.changed
        self.definitions: dict[str, Node] = {}
        self.declared: dict[str, int] = {}
        for node in nodes_of(body):
            if node.type in ("declaration", "init_statement"):
                self._declare(node)

    def _declare(self, node: Node) -> None:
        for child in node.children_by_field_name("declarator"):
            shape = declared(child)
            self.declared[shape.name] = self.declared.get(shape.name, 0) + 1
            value = child.child_by_field_name("value")
            plain = not (shape.depth or shape.reference or shape.function)
            if child.type == "init_declarator" and value is not None and plain:
                self.definitions[shape.name] = value

    def definition(self, name: str) -> Node | None:
        """What a local is always equal to, if it is defined once and never changed."""
        if name in self.changed or self.declared.get(name) != 1:
            return None
        return self.definitions.get(name)

    def expression(self, node: Node) -> Expression | None:
        text = self.text(node)
        try:
            return parse_expression(text) if text is not None else None
        except SourceError:
            return None

    def text(self, node: Node | None, depth: int = 0) -> str | None:
        """The node in the grammar of directives, with every operand in parentheses."""
        if node is None or depth > _MAX_DEPTH:
            return None
        kind = node.type
        if kind == "number_literal":
            text = text_of(node).replace("'", "")
            return text if re.fullmatch(r"(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]{0,3}", text) else None
        if kind == "identifier":
            return self._name(text_of(node), depth)
        if kind == "parenthesized_expression" and node.named_child_count == 1:
            return self.text(node.named_child(0), depth + 1)
        if kind == "cast_expression":
            to = text_of(node.child_by_field_name("type"))
            return self._cast(to, node.child_by_field_name("value"), depth)
        if kind == "unary_expression":
            operator = text_of(node.child_by_field_name("operator"))
            inner = self.text(node.child_by_field_name("argument"), depth + 1)
            return f"{operator}({inner})" if inner and operator in "-+!~" else None
        if kind == "binary_expression":
            sides = [self.text(node.child_by_field_name(s), depth + 1) for s in ("left", "right")]
            operator = text_of(node.child_by_field_name("operator"))
            return f"({sides[0]}) {operator} ({sides[1]})" if all(sides) else None
        if kind == "conditional_expression":
            parts = [self.text(node.child_by_field_name(name), depth + 1)
                     for name in ("condition", "consequence", "alternative")]  # fmt: skip
            return "({}) ? ({}) : ({})".format(*parts) if all(parts) else None
        if kind == "sizeof_expression":
            return text_of(node)
        if kind == "initializer_list" and node.named_child_count == 1:
            return self.text(node.named_child(0), depth + 1)
        return self._call(node, depth) if kind == "call_expression" else None

    def _name(self, name: str, depth: int) -> str | None:
        if name in self.kept:
            return name
        local = self.definition(name)
        if local is not None:
            return self.text(local, depth + 1)
        if name in self.declared or name in self.changed:
            return None
        if name in self.names:
            return name
        return f"({self.constants[name]})" if name in self.constants else None

    def _cast(self, to: str, value: Node | None, depth: int) -> str | None:
        dtype = scalar_dtype(to)
        return self.text(value, depth + 1) if dtype and dtype[-2] in "iu" else None

    def _call(self, node: Node, depth: int) -> str | None:
        function = text_of(node.child_by_field_name("function"))
        arguments = passed_to(node)
        if function.startswith("static_cast<") and len(arguments) == 1:
            return self._cast(function[12:-1].strip(), arguments[0], depth)
        if scalar_dtype(function) is not None and len(arguments) == 1:
            return self._cast(function, arguments[0], depth)
        base = function.partition("<")[0].rpartition("::")[2]
        if base in ("ceil", "ceilf") and len(arguments) == 1:
            return self._ceiling(arguments[0], depth)
        parts = [self.text(argument, depth + 1) for argument in arguments]
        known = [part for part in parts if part]
        if len(known) < len(parts):
            return None
        if base in self.functions:
            spelled = [part if argument.type in _OPEN else f"({part})"
                       for argument, part in zip(arguments, known, strict=True)]  # fmt: skip
            alone = node.parent is not None and node.parent.type in _ALONE
            return self.functions[base].applied(spelled, self.constants, alone=alone)
        name = _CALLS.get(base)
        if name is None or len(parts) != 2:
            return None
        return f"{name}({parts[0]}, {parts[1]})"

    def _ceiling(self, node: Node, depth: int) -> str | None:
        """``ceil(n / 256.0)`` and ``ceil((float)n / threads)`` as a division rounded up."""
        node = _bare(node)
        if text_of(node.child_by_field_name("operator")) != "/":
            return None
        left, right = (self._operand(node.child_by_field_name(side), depth)
                       for side in ("left", "right"))  # fmt: skip
        if left is None or right is None:
            return None
        rounds_up = left[1] or right[1]
        return f"cdiv({left[0]}, {right[0]})" if rounds_up else f"({left[0]}) / ({right[0]})"

    def _operand(self, node: Node | None, depth: int) -> tuple[str, bool] | None:
        """An integer's text, and whether it stands there as a floating number."""
        node = _bare(node) if node is not None else None
        inner, floating = node, False
        if node is not None and node.type == "cast_expression":
            floating = _is_floating(node.child_by_field_name("type"))
            inner = node.child_by_field_name("value") if floating else node
        elif node is not None and node.type == "call_expression":
            floating = _is_floating(node.child_by_field_name("function"))
            listed = node.child_by_field_name("arguments")
            inner = next(iter(listed.named_children), None) if floating and listed else node
        elif node is not None and (whole := re.fullmatch(r"(\d+)\.0*[fF]?", text_of(node))):
            return whole[1], True
        text = self.text(inner, depth + 1)
        return (text, floating) if text is not None else None


def _bare(node: Node) -> Node:
    """An expression without the parentheses around it."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def _is_floating(type_: Node | None) -> bool:
    return scalar_dtype(text_of(type_)) in ("<f4", "<f8")


def tidy(expression: Expression) -> Expression:
    """The expression in canonical text, ``(n + B - 1) / B`` written as ``cdiv(n, B)``."""
    text = str(expression)
    match = re.fullmatch(r"\((.+) \+ (.+?) - 1\) / (.+)", text)
    if match and match[2] == match[3] and re.fullmatch(r"\w+", match[2]):
        return _parsed(f"cdiv({match[1]}, {match[2]})", text)
    match = _ROUNDED_UP.fullmatch(text)
    if match:
        return _parsed(f"cdiv({match[1] or match[3]}, {match[2] or match[4]})", text)
    match = re.fullmatch(r"\((.+) \+ (\d+)\) / (\d+)", text)
    if match and int(match[2]) + 1 == int(match[3]):
        return _parsed(f"cdiv({match[1]}, {match[3]})", text)
    return parse_expression(text)


def _parsed(text: str, fallback: str) -> Expression:
    """``text`` if it is an expression: what stood around the match may have been part of it."""
    try:
        return parse_expression(text)
    except SourceError:
        return parse_expression(fallback)


def constants(syntax: Syntax) -> dict[str, int]:
    """The integers that a text fixes outside functions: ``constexpr``, ``const``, ``#define``."""
    found: dict[str, int] = {}
    for name, text in _constant_texts(syntax, found):
        try:
            value = parse_expression(text).evaluate(found)
        except SourceError:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def _constant_texts(syntax: Syntax, known: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Names and expressions in order; ``known`` are the values found for those before."""
    functions = definitions(syntax)
    for node in syntax.root.children:
        if node.type == "preproc_def":
            yield (
                text_of(node.child_by_field_name("name")),
                text_of(node.child_by_field_name("value")).split("//")[0],
            )
        elif node.type == "declaration":
            words = [text_of(c) for c in node.children if c.type == "type_qualifier"]
            if "const" in words or "constexpr" in words:
                for child in node.children_by_field_name("declarator"):
                    value = child.child_by_field_name("value")
                    text = Values(node, (), known, functions=functions).text(value)
                    yield declared(child).name, text or text_of(value)
    for node in nodes_of(syntax.root):
        if node.type == "enum_specifier" and text_of(node.child(1)) not in ("class", "struct"):
            before = "-1"
            for one in walk(node):
                if one.type == "enumerator":
                    name, value = (one.child_by_field_name(part) for part in ("name", "value"))
                    yield text_of(name), text_of(value) or f"({before}) + 1"
                    before = text_of(name)


def _is_source(address: Node) -> bool:
    """Whether a function that copies to the device is given an address to read from."""
    while (parent := address.parent) is not None and parent.type in (
        "parenthesized_expression", "cast_expression",
    ):  # fmt: skip
        address = parent
    if parent is None or parent.type != "argument_list" or parent.parent is None:
        return False
    called = text_of(parent.parent.child_by_field_name("function")).partition("<")[0]
    given = [a for a in parent.named_children if a.type != "comment"]
    return called in _COPIES and len(given) > 1 and given[1] == address


def changes(body: Node) -> Iterator[tuple[str, Node]]:
    """The names assigned, updated, or whose address or reference is taken, and where.

    An address that a copy to the device reads from changes nothing.
    """
    for node in nodes_of(body):
        if node.type == "pointer_expression" and _is_source(node):
            continue
        target = None
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression" or (
            node.type == "pointer_expression"
            and text_of(node.child_by_field_name("operator")) == "&"
        ):
            target = node.child_by_field_name("argument")
        elif node.type == "init_declarator" and declared(node).reference:
            target = node.child_by_field_name("value")
        while target is not None and target.type in _AROUND:
            member = target.child_by_field_name("argument")  # `grid.x = 2` changes `grid`
            target = member if member is not None else target.named_child(0)
        if target is not None and target.type == "identifier":
            yield text_of(target), node
