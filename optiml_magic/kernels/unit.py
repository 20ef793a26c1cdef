"""A text lifted once: its functions, and everything that stands around them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from optiml_magic.kernels.allowance import spend
from optiml_magic.kernels.expressions import Call, Expr
from optiml_magic.kernels.lift import Lifter
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.parsing import parsed
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.preprocessor.preprocess import Preprocessed, preprocess
from optiml_magic.kernels.structs import Structs
from optiml_magic.kernels.symbols import Symbol, Symbols
from optiml_magic.kernels.tree import Declare, Function, Variable
from optiml_magic.kernels.types import INT, named
from optiml_magic.kernels.values import Alias, Value
from optiml_magic.kernels.variables import dynamic_shared
from optiml_magic.source.aliases import type_aliases
from optiml_magic.source.program import Program
from optiml_magic.source.syntax import Syntax

Defines = tuple[tuple[str, int | str], ...]
_WORD = re.compile(r"\w+")


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

    def makes(self, expr: Expr) -> bool:
        """Whether it is a call that returns a value of its own, and leads nowhere else."""
        if not isinstance(expr, Call) or expr.receiver is not None or expr.template:
            return False
        results = [f.result for f in self.called(expr.function, len(expr.arguments))]
        told = all(r.base not in self.aliases and "auto" not in r.base for r in results)
        return bool(results) and told and not any(r.reference or r.depth for r in results)

    @cached_property
    def _dynamic_shared(self) -> frozenset[str]:
        return frozenset(dynamic_shared(self, inside=True))

    def uses_dynamic_shared(self, function: Function) -> bool:
        """Whether a function, or one of this text that it calls, names such an array."""
        seen: set[str] = set()
        stack = [function]
        while stack and self._dynamic_shared:
            start, end = stack.pop().span
            words = set(_WORD.findall(self.syntax.text[start:end].decode()))
            if words & self._dynamic_shared:
                return True
            for name in (words & self._by_name.keys()) - seen:
                seen.add(name)
                stack += self._by_name[name]
        return False

    @cached_property
    def structs(self) -> Structs:
        return Structs(self.syntax, self.aliases)

    def line(self, start: int, end: int) -> int:
        """The 1-based line of the text that a span of the preprocessed text comes from."""
        return self.lines(start, end).start

    def lines(self, start: int, end: int) -> range:
        """All lines of the text that a span of the preprocessed text comes from."""
        first, last = self.origin.origin(start, end)
        begin = bisect_right(self.newlines, first - 1) + 1
        return range(begin, max(begin, bisect_right(self.newlines, last - 2) + 1) + 1)

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


def lift(
    text: str, defines: Mapping[str, int | str] | None = None, *, foreign: bool = False
) -> Unit:
    """The functions of a text as trees; ``defines`` are macros from outside of it.

    Where it is ``foreign``, there may be others: what depends on them is kept with all branches.
    Raises TooMuch where a rule asks for more than it may have read.
    """
    spend(text)
    return _lifted(text, tuple(sorted((defines or {}).items())), foreign)


def lift_program(program: Program, defines: Mapping[str, int | str] | None = None) -> Unit:
    """A program as it is compiled: its tuned values are macros where the preprocessor asks.

    ``defines`` are all macros from outside; None where nobody knows them.
    """
    return lift(program.text, {**(defines or {}), **program.macros}, foreign=defines is None)


@lru_cache(maxsize=256)
def _lifted(text: str, defines: Defines, foreign: bool) -> Unit:
    return _of(text, preprocess(text, dict(defines), foreign=foreign))


@lru_cache(maxsize=256)
def _of(text: str, origin: Preprocessed) -> Unit:
    """Mostly the same for who knows the macros from outside as for who does not."""
    syntax, less, bare = parsed(origin.text)
    newlines = tuple(match.start() for match in re.finditer(b"\n", text.encode()))
    lifter = Lifter(syntax, origin=origin, newlines=newlines, less=less, bare=bare)
    return Unit(
        text, origin, syntax, tuple(lifter.functions()), tuple(lifter.declarations()),
        tuple(lifter.enumerators()), newlines,
    )  # fmt: skip
