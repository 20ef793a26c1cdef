"""P4, divided: lanes share a local array, of which each round of some loops has an element.

The state of a scan or of a linear attention is an array that a thread carries through time. Where
loops over its elements touch each of them by its own round alone, each lane holds the elements of
its rounds, in registers, and what rounds combine is combined by shuffles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Expr, Index, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.lanes import Lanes, SharedRounds
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.restricted import shared_by_threads
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Declare, Loop, Statement, Variable, expressions, walk

_ONE = Polynomial.constant(1)


@dataclass(frozen=True, eq=False)
class Divided:
    """Arrays whose elements belong to the rounds of loops, all of ``rounds``.

    ``at`` are the numbers of these loops, ``elements`` what they index, with its loop; ``beside``
    are those of loops with as many rounds that only load what lies in a row.
    """

    arrays: tuple[Variable, ...]
    at: tuple[int, ...]
    rounds: int
    elements: dict[Index, Loop]
    beside: tuple[int, ...] = ()


@primitive
def divide(kernel: Kernel, lanes: Lanes) -> Kernel:
    """Lanes share the loops over such arrays, and each has its own elements of these.

    Of the numbers of lanes those stay that divide the rounds.
    """
    kernel = kernel.settled()
    found = divisible(kernel)
    counts = tuple(n for n in lanes.counts if found.rounds % n == 0)
    if not counts:
        raise NotLegal("its elements cannot be dealt out evenly")
    count = lanes.count if lanes.count in counts else counts[-1]
    given = replace(lanes, counts=counts, count=count)
    try:
        sharing = _Dividing(kernel, found, given)
        made = sharing.kernel()
    except NotLegal:
        if not found.beside:
            raise
        sharing = _Dividing(kernel, replace(found, beside=()), given)
        made = sharing.kernel()
    return shared_by_threads(made, sharing.exchanged) if sharing.exchanged else made


@once
def divisible(kernel: Kernel) -> Divided:
    """The local arrays that lanes may divide among them. Raises NotLegal where there is none."""
    effects, axes = Effects(kernel), kernel.axes()
    body = kernel.function.body
    loops = loops_in(body)
    counters: dict[Variable | None, Loop] = {
        axis.variable: loop
        for loop, axis in axes.items()
        if axis.variable is not None and axis.exact and is_simple(axis, effects)
    }
    named = [_named(e) for e in expressions(body)]
    elements: dict[Variable, dict[Index, Loop]] = {}
    for array in plain_arrays(kernel):
        found: dict[Index, Loop] = {}
        for expr in expressions(body):
            if isinstance(expr, Index) and _named(expr.base) is array:
                loop = counters.get(_named(bare(expr.index)))
                if loop is not None and expr in effects.inside(loop.body):
                    found[expr] = loop
        if found and len(found) == sum(v is array for v in named):
            elements[array] = found
    mine = {loop for found in elements.values() for loop in found.values()}
    rounds = {axes[loop].trips for loop in mine}
    if len(rounds) != 1 or None in rounds:
        raise NotLegal("no local array has an element for each round of a loop")
    (count,) = rounds
    assert count is not None
    for array in elements:
        if (extent_of(kernel, array) or 0) < count:
            raise NotLegal(f"`{array.name}` has fewer elements than rounds", array.line)
    at = tuple(n for n, loop in enumerate(loops) if loop in mine)
    every = {e: loop for found in elements.values() for e, loop in found.items()}
    beside = tuple(
        n for n, loop in enumerate(loops)
        if n not in at and loop in counters.values() and axes[loop].trips == count
        and not {*loops_in(loop.body)} and _walks(effects, axes[loop])
    )  # fmt: skip
    return Divided((*elements,), at, count, every, beside)


def _walks(effects: Effects, axis: Axis) -> bool:
    """Whether a loop loads an element after the other, and stores nothing."""
    found = effects.accesses(axis.node)
    steps = [a.index.coefficient(axis.name) for a in found if a.index is not None]
    return all(a.mode == "load" for a in found) and any(by == _ONE for by in steps)


def plain_arrays(kernel: Kernel) -> list[Variable]:
    """Plain arrays of one axis; what they begin with is nothing, or zeros."""
    return [
        v for s in walk(kernel.function.body) if isinstance(s, Declare) for v in s.variables
        if v.storage == "local" and len(v.extents) == 1 and not v.type.volatile
        and extent_of(kernel, v) is not None and not v.initial
        and (v.value is None or (isinstance(v.value, Literal) and v.value.value == 0))
    ]  # fmt: skip


def extent_of(kernel: Kernel, array: Variable) -> int | None:
    """How many elements there are, where that is a number or the name of one."""
    (extent,) = array.extents
    if isinstance(extent, Literal):
        return int(extent.value) if isinstance(extent.value, int) else None
    known = kernel.reading.arrays.get(array.name)
    form = known.extents[0] if known is not None and len(known.extents) == 1 else None
    return form.value if form is not None else None


def _named(expr: Expr) -> Variable | None:
    return expr.variable if isinstance(expr, Name) else None


class _Heads(Heads):
    """Loops whose rounds lanes have in turn, by their number among a lane's own."""

    rounds: int
    own: str

    def shared(
        self,
        loop: Loop,
        own: str,
        count: str,
        swaps: Mapping[Node, Node],
        told: Mapping[Node, tuple[Statement, ...]],
    ) -> Statement:
        variable = self.axes[loop].variable
        assert variable is not None
        assert isinstance(loop.before, Declare)
        body = self.kernel.show(loop.body, {**swaps, **told}).strip()
        inner = body[1:].lstrip() if body.startswith("{") else f"{body}\n}}"
        return lines(
            f"#pragma unroll\n"
            f"for (int {self.own} = 0; {self.own} < {self.rounds} / {count}; ++{self.own}) {{\n"
            f"const {loop.before.words} {variable.name} = {self.own} * {count} + {own};\n{inner}"
        )


class _Dividing(SharedRounds):
    leaves = False

    def __init__(self, kernel: Kernel, found: Divided, lanes: Lanes) -> None:
        self.found = found
        super().__init__(kernel, sorted((*found.at, *found.beside)), lanes, far=False)
        if self.scans:
            raise NotLegal("its rounds hand something on")
        heads = _Heads(kernel, self.loops, self.effects)
        heads.rounds, heads.own = found.rounds, self.fresh("own")
        self.heads = heads
        for expr in found.elements:
            self.swaps[expr.index] = text(heads.own)
        for array in found.arrays:
            (extent,) = array.extents
            assert extent is not None
            self.swaps[extent] = text(f"({found.rounds} / {self.count})")

    def combined(self, loop: Loop) -> tuple[Reduction, ...]:
        names = {array.name for array in self.found.arrays}
        return shareable(self.old, loop, self.effects, scanning=True, divided=names)
