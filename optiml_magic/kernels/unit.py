"""A text lifted once: its functions, and everything that stands around them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tree_sitter import Node

from optiml_magic.kernels.expressions import Call, Expr
from optiml_magic.kernels.lift import Lifter
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.preprocessor.preprocess import Preprocessed, preprocess
from optiml_magic.kernels.structs import Structs
from optiml_magic.kernels.symbols import Symbol, Symbols
from optiml_magic.kernels.tree import Declare, Function, Variable
from optiml_magic.kernels.types import INT, named
from optiml_magic.kernels.values import Alias, Value
from optiml_magic.source.aliases import type_aliases
from optiml_magic.source.formals import declared
from optiml_magic.source.syntax import Syntax, parse, walk

_DECLARING = frozenset({"declaration", "parameter_declaration", "optional_parameter_declaration"})
_MOST_TRIES = 6
Defines = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, eq=False)
class Unit:
    """``functions`` in the order of the text, kernels among them."""

    text: str
    origin: Preprocessed
    syntax: Syntax
    functions: tuple[Function, ...]
    declarations: tuple[Declare, ...] = field(repr=False)
    enumerators: tuple[tuple[str, Expr | None], ...] = field(repr=False)
    newlines: tuple[int, ...] = field(repr=False)

    @cached_property
    def kernels(self) -> tuple[Function, ...]:
        return tuple(function for function in self.functions if function.kernel)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """The typedefs of the text by name."""
        return type_aliases(self.syntax)

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Function, ...]]:
        found: dict[str, tuple[Function, ...]] = {}
        for function in (f for f in self.functions if not f.method):
            bare = function.name.partition("<")[0].rpartition("::")[2]
            found[bare] = (*found.get(bare, ()), function)
        return found

    def called(self, name: str, count: int) -> tuple[Function, ...]:
        """The functions of the text that a call of this name with so many arguments may mean."""
        return tuple(
            function
            for function in self._by_name.get(name.partition("<")[0].rpartition("::")[2], ())
            if function.required <= count <= len(function.parameters) and not function.kernel
        )

    @staticmethod
    def variable_of(call: Call) -> Variable | None:
        """The local that is called, such as a lambda."""
        del call
        return None

    @cached_property
    def structs(self) -> Structs:
        return Structs(self.syntax, self.aliases)

    def line(self, start: int, end: int) -> int:
        """The 1-based line of the text that a span of the preprocessed text comes from."""
        return bisect_right(self.newlines, self.origin.origin(start, end)[0] - 1) + 1

    def instantiated(
        self, function: Function, given: Sequence[str | Value], names: Mapping[str, str],
        constants: Mapping[str, Value], bound: Mapping[Variable, Value | Alias],
        symbols: Symbols | None = None,
    ) -> tuple[Mapping[str, str], Mapping[str, Value]]:  # fmt: skip
        """The types and constants inside a function with these template arguments.

        What is not given is deduced from the types of the arguments, or takes its default.
        """
        if not function.template:
            return names, constants
        types, values = dict(names), dict(constants)
        for at, parameter in enumerate(function.template):
            text = given[at] if at < len(given) else None
            if isinstance(text, Value):
                types.pop(parameter.name, None)
                values[parameter.name] = text
                continue
            if text is None and parameter.is_type:
                text = _deduced(parameter.name, bound)
            text = text if text is not None else parameter.default
            types.pop(parameter.name, None)
            values.pop(parameter.name, None)
            if text is None:
                if not parameter.is_type and symbols is not None:  # one number, fixed by a launch
                    roots = frozenset({parameter.name})
                    form = symbols.of(Symbol(parameter.name, "scalar", roots))
                    values[parameter.name] = Value(INT, roots, form)
                continue
            if parameter.is_type:
                types[parameter.name] = named(text, names).name or text
            elif text in constants:
                values[parameter.name] = constants[text]
            elif (read := number(text)) is not None and isinstance(read[0], int):
                values[parameter.name] = Value(INT, frozenset(), Polynomial.constant(read[0]))
            elif text in ("true", "false"):
                values[parameter.name] = Value(
                    INT, frozenset(), Polynomial.constant(int(text == "true"))
                )
        return types, values


def _deduced(name: str, bound: Mapping[Variable, Value | Alias]) -> str | None:
    for variable, value in bound.items():
        if variable.type.base == name and isinstance(value, Value) and value.type.name:
            return value.type.name
    return None


def lift(text: str, defines: Mapping[str, int | str] | None = None) -> Unit:
    """The functions of a text as trees; ``defines`` are macros from outside of it."""
    return _lifted(text, tuple(sorted((defines or {}).items())))


@lru_cache(maxsize=256)
def _lifted(text: str, defines: Defines) -> Unit:
    origin = preprocess(text, dict(defines))
    syntax, less = _parsed(origin.text)
    newlines = tuple(match.start() for match in re.finditer(b"\n", text.encode()))
    lifter = Lifter(syntax, origin=origin, newlines=newlines, less=less)
    return Unit(
        text, origin, syntax, tuple(lifter.functions()), tuple(lifter.declarations()),
        tuple(lifter.enumerators()), newlines,
    )  # fmt: skip


def _parsed(raw: bytes) -> tuple[Syntax, frozenset[int]]:
    """The tree of a text, and where its ``<`` had to be read as ``>``.

    The grammar takes ``b < 0 || b > n`` for a template, ``(a) && (b)`` for a cast, and at times
    ``tile<32> warp = ...`` for a comparison. What is a variable and what is not tells better: with
    an operator that binds alike, without the parentheses, or with the template argument as a part
    of the name, the text is read as it is meant.
    """
    syntax = parse(raw.decode())
    masked = bytearray(raw)
    less: set[int] = set()
    for _ in range(_MOST_TRIES):
        templates, values, types = _mistaken(syntax.root)
        if not templates and not values and not types:
            break
        for at in templates:
            masked[at] = ord(">")
        for start, end in values:
            masked[start] = ord(" ")
            masked[masked.index(b")", end)] = ord(" ")
        for start, end in types:
            masked[start:end] = re.sub(rb"\W", b"_", masked[start:end])
        less |= templates
        syntax = Syntax(raw, parse(masked.decode()).root)
    return syntax, frozenset(less)


def _mistaken(root: Node) -> tuple[set[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """Where variables are taken for templates, where for types, and templates for variables."""
    variables: set[bytes] = set()
    templates: list[tuple[bytes, int]] = []
    casts: list[tuple[bytes, int, int]] = []
    types: list[tuple[bytes, int, int]] = []
    for node in walk(root):
        kind = node.type
        if kind in _DECLARING:
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
    statement = node.parent is not None and node.parent.type == "expression_statement"
    if not statement or left is None or right is None or operator is None:
        return None
    if operator.type != ">" or left.type != "binary_expression":
        return None
    inner, name = left.child_by_field_name("operator"), left.child_by_field_name("left")
    if right.type not in ("assignment_expression", "identifier", "call_expression"):
        return None
    if inner is None or inner.type != "<" or name is None or name.text is None:
        return None
    return name.text, inner.start_byte, operator.end_byte
