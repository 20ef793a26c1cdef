"""The directives of a kernel program, each printing itself as its canonical pragma.

``line`` (1-based), ``start`` and ``end`` (character offsets) say where one stands and take no part
in equality; a directive made by code has line 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from optiml_magic.source.expressions import Binary, Expression

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Directive:
    line: int = field(default=0, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True)
class RepeatDirective(Directive):
    """The launches that follow run ``count`` times, the named buffers swapped after each round."""

    count: Expression
    swaps: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"#pragma optiml {self.clauses()}"

    def clauses(self) -> str:
        return " ".join([f"repeat({self.count})", *(f"swap({a}, {b})" for a, b in self.swaps)])


@dataclass(frozen=True)
class LaunchDirective(Directive):
    """One launch: ``kernel`` is a name expression, None where the text has just one kernel.

    ``grid`` counts blocks and ``block`` threads, 1 to 3 axes from x on; ``shared`` counts bytes.
    ``args`` are in the kernel's order; None binds every parameter by its name. Consecutive launches
    whose ``repeat`` is one object are one round.

    A launch with a ``condition`` begins a dispatch, which those with ``otherwise`` continue: the
    host runs the first whose condition holds, or the last, which has none.
    """

    kernel: str | None
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression | None = None
    args: tuple[Expression, ...] | None = None
    repeat: RepeatDirective | None = None
    condition: Expression | None = None
    otherwise: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The scalars and tuned names that its extents and its condition read."""
        read = (*self.grid, *self.block, self.shared, self.condition)
        return frozenset().union(*(part.names for part in read if part is not None))

    @property
    def bare(self) -> LaunchDirective:
        """The launch alone, without the place that it has in a dispatch or a round."""
        return replace(self, repeat=None, condition=None, otherwise=False)

    def dispatched(
        self, fast: LaunchDirective, condition: Expression
    ) -> tuple[LaunchDirective, LaunchDirective]:
        """Two launches for the place of this one: ``fast`` where ``condition`` holds, else this."""
        both = condition
        if self.condition is not None:
            tree = Binary("&&", self.condition.tree, condition.tree)
            both = Expression(tree, str(Expression(tree, "")))
        first = replace(fast, repeat=self.repeat, otherwise=self.otherwise, line=self.line)
        own = self.repeat is not None and self.repeat.line == self.line
        return (
            replace(first, condition=both),
            replace(self, otherwise=True, repeat=None if own else self.repeat),
        )

    def __str__(self) -> str:
        clauses = [f"grid({_join(self.grid)})", f"block({_join(self.block)})"]
        if self.shared is not None:
            clauses.append(f"shared({self.shared})")
        if self.args is not None:
            clauses.append(f"args({_join(self.args)})")
        if self.repeat is not None and self.repeat.line == self.line:
            clauses.append(self.repeat.clauses())
        if self.otherwise:
            clauses.append("else")
        if self.condition is not None:
            clauses.append(f"if ({self.condition})")
        return " ".join(["#pragma optiml launch", *filter(None, [self.kernel]), *clauses])


def grouped(launches: Iterable[_T], of: Callable[[_T], LaunchDirective]) -> list[list[_T]]:
    """Launches in order, those of one dispatch together; ``of`` finds the directive of each."""
    steps: list[list[_T]] = []
    for launch in launches:
        if of(launch).otherwise:
            steps[-1].append(launch)
        else:
            steps.append([launch])
    return steps


@dataclass(frozen=True)
class TuneDirective(Directive):
    """A compile-time parameter; without a ``value`` the program is a template.

    ``value_start`` and ``value_end`` span the value's text, or the place where `` = v`` belongs.
    """

    name: str
    values: tuple[int, ...]
    value: int | None = None
    condition: Expression | None = None
    value_start: int = field(default=0, compare=False, kw_only=True)
    value_end: int = field(default=0, compare=False, kw_only=True)

    def __str__(self) -> str:
        text = f"#pragma optiml tune {self.name} in {{{_join(self.values)}}}"
        text += f" = {self.value}" if self.value is not None else ""
        return text + (f" if {self.condition}" if self.condition else "")


@dataclass(frozen=True)
class RequireDirective(Directive):
    """What must hold of the sizes at each launch."""

    condition: Expression

    def __str__(self) -> str:
        return f"#pragma optiml require {self.condition}"


@dataclass(frozen=True)
class ScratchDirective(Directive):
    """A temporary buffer of ``count`` elements; ``dtype`` is a numpy one such as ``<f4``."""

    name: str
    dtype: str
    count: Expression

    def __str__(self) -> str:
        return f"#pragma optiml scratch {self.name} {self.dtype.lstrip('<|')}[{self.count}]"


@dataclass(frozen=True)
class ZeroDirective(Directive):
    """A buffer cleared before the launches, inside the timed region."""

    buffer: str

    def __str__(self) -> str:
        return f"#pragma optiml zero({self.buffer})"


@dataclass(frozen=True)
class InitDirective(Directive):
    """What an output holds before the launches: a number, or the values of the array so named."""

    buffer: str
    value: int | float | str

    def __str__(self) -> str:
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            value = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return f"#pragma optiml init({self.buffer}) = {value}"


@dataclass(frozen=True)
class ArgvDirective(Directive):
    """What the command line gives the ``main`` of a pasted program; gone with that."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"#pragma optiml argv({', '.join(self.arguments)})"


@dataclass(frozen=True)
class SizeDirective(Directive):
    """A scalar parameter that follows an array's shape when sizes change."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        return f"#pragma optiml size {self.name} = {self.expression}"


def _join(parts: tuple[Expression, ...] | tuple[int, ...]) -> str:
    return ", ".join(map(str, parts))
