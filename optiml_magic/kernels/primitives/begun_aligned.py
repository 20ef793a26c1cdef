"""Threads that begin within a row, ``int j = 1 + i``, begin where a sector of memory does.

A stencil leaves out the border, and a step of an elimination what is done already, so that the
first thread has the second element, or that behind the pivot. Its neighbours are then in other
sectors than those of its row's beginning are, and no vector of them lies aligned. Begun up to 31
elements before, with a guard for these, threads stand as those do that ask whether they are inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import edited, lines, text
from optiml_magic.kernels.expressions import Binary, Call, Expr, Index, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import needed, said_alike
from optiml_magic.kernels.primitives.mapped import check_own_work
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.places import axis_of, bare, number
from optiml_magic.kernels.tree import Declare, Variable
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ALIGNED = 32  # elements: a sector of bytes, four of them of floats; ours


@dataclass(frozen=True)
class _Start:
    """A local that is an index and what is added to it: ``constant`` and the sizes ``names``.

    Those that are ``signed`` may be below zero, where a quotient is no sector's beginning.
    """

    statement: Declare
    local: Variable
    index: Expr
    constant: int
    names: tuple[str, ...]
    signed: tuple[str, ...]

    @property
    def before(self) -> str:
        """How many elements of a sector are before the first."""
        if not self.names:
            return str(self.constant % _ALIGNED)
        return f"{self._sum} - {self._sum} / {_ALIGNED} * {_ALIGNED}"

    @property
    def first(self) -> str:
        """The first element."""
        return " + ".join((*self.names, *([str(self.constant)] if self.constant else [])))

    @property
    def _sum(self) -> str:
        return f"({self.first})" if " " in self.first else self.first

    @property
    def begin(self) -> str:
        """What is added to the index of a thread instead; empty for nothing."""
        if self.names:
            return f"{self._sum} / {_ALIGNED} * {_ALIGNED}"
        return str(self.constant // _ALIGNED * _ALIGNED) if self.constant >= _ALIGNED else ""


@primitive
def begun_aligned(kernel: Kernel) -> Kernel:
    """The kernel whose threads along x begin so, where they begin at another element."""
    effects = Effects(kernel)
    check_own_work(kernel, effects)
    count = needed(kernel, "x", loads=True)
    if count is None:
        raise NotLegal("how many items there are its guards do not say as its launch does")
    start = _start(kernel, effects)
    if not said_alike(kernel, start.names):
        raise NotLegal("its launch does not say where its items begin", start.statement.line)
    begin = Binary(None, "+", start.index, text(start.begin)) if start.begin else start.index
    assert start.local.value is not None
    guard = lines(f"if ({start.local.name} < {start.first}) return;")
    said = edited(start.statement, {start.local.value: begin})
    grid = list(kernel.launch.grid)
    grid[0] = parse_expression(f"cdiv({count} + {start.before}, {kernel.launch.block[0]})")
    return kernel.rewritten(
        edited(kernel.function.body, {start.statement: (said, guard)}),
        launch=replace(kernel.launch, grid=tuple(grid)),
        directives=[RequireDirective(parse_expression(f"{name} >= 0")) for name in start.signed],
    )


def _start(kernel: Kernel, effects: Effects) -> _Start:
    """Where the index of a thread is asked for. Raises NotLegal where that is not all alike."""
    places = uses(kernel, "x").whole
    for statement in kernel.function.body.body:
        if not isinstance(statement, Declare) or any(_loads(e) for e in statement.expressions):
            break
        for local in statement.variables:
            terms = [*_terms(kernel, local.value)] if local.value is not None else []
            at = [term for term in terms if axis_of(kernel, term) == "x"]
            if len(at) != 1 or at != places or local not in effects.lasting:
                continue
            others = [term for term in terms if term is not at[0]]
            sizes = [_size(kernel, effects, term) for term in others]
            given = [size for size in sizes if isinstance(size, Variable)]
            if None in sizes:
                raise NotLegal(
                    "where its items begin is not a sum of numbers and sizes", statement.line
                )
            if not others:
                break
            return _Start(
                statement, local, at[0],
                constant=sum(size for size in sizes if isinstance(size, int)),
                names=tuple(size.name for size in given),
                signed=tuple(size.name for size in given if type_of(kernel, size).signed),
            )  # fmt: skip
    raise NotLegal("its threads begin with the first element")


def _terms(kernel: Kernel, expr: Expr) -> Iterator[Expr]:
    """The terms of a sum, of which an index is one."""
    if isinstance(expr, Binary) and expr.op == "+" and not axis_of(kernel, expr):
        yield from _terms(kernel, expr.left)
        yield from _terms(kernel, expr.right)
    else:
        yield expr


def _size(kernel: Kernel, effects: Effects, expr: Expr) -> int | Variable | None:
    """A number, or a size that stays as it is; None for anything else."""
    value, inner = number(kernel, expr), bare(expr)
    if isinstance(value, int) and value >= 0:
        return value
    if not isinstance(inner, Name) or inner.variable not in kernel.function.parameters:
        return None
    kind = kernel.reading.types.get(inner)
    if kind is None or not kind.integral or inner.variable in effects.changing:
        return None
    return inner.variable


def _loads(expr: Expr) -> bool:
    return any(isinstance(e, Index | Call) or (isinstance(e, Unary) and e.op == "*")
               for e in every(expr))  # fmt: skip
