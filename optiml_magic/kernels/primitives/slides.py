"""Windows that slide: loops whose rounds compute by where item and round together stand.

In a moving sum the item ``i`` adds ``f(i + k)`` in round ``k``, and its neighbour computes nearly
all of the same values. ``moves`` says whether all that a round does is made of such a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.margins import Margin, around
from optiml_magic.kernels.primitives.moves import Along, Following
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Blank, Declare, Evaluate, Loop, Statement, walk
from optiml_magic.kernels.types import named

_EVERYWHERE = ("+", "*", "&", "|", "^", "min", "max", "<", ">")


@dataclass(frozen=True, eq=False)
class Window:
    """A loop that slides, in a statement of the items' own.

    Attributes:
        before: what an item does before that statement and all margins.
        margins: the tests that keep items near a border from it, the outermost first.
        nest: the statement: this loop, or loops around it that all items have alike.
        after: what an item does behind it.
        axis: the loop.
        rounds: how many rounds it has, the same for all items.
        sign: 1 where a later round stands where a later item does, else -1.
        reductions: what is combined, each over all loops of the nest.
    """

    items: Mapped
    before: tuple[Statement, ...]
    margins: tuple[Margin, ...]
    nest: Loop
    after: tuple[Statement, ...]
    axis: Axis
    rounds: Polynomial
    sign: int
    reductions: tuple[Reduction, ...]

    @property
    def begun(self) -> tuple[Statement, ...]:
        """What an item with a window does before the loop."""
        return (*self.before, *(s for margin in self.margins for s in margin.before))

    @property
    def statements(self) -> Iterator[Statement]:
        """All that an item may do, near a border or not."""
        yield from (*self.begun, self.nest, *self.after)
        for margin in self.margins:
            yield from (*margin.others, *margin.behind)


def window(kernel: Kernel, at: int) -> Window:
    """The loop with this number as one that slides. Raises NotLegal where it does not."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    axis = kernel.axes().get(loop)
    if axis is not None and not axis.exact:
        raise NotLegal(f"the loop has another way out: {axis.reason}", loop.line)
    if axis is None or not is_simple(axis, effects) or axis.stop is None:
        raise NotLegal("the loop does not count from 0 by 1", loop.line)
    items, symbols = mapped(kernel, effects), kernel.reading.symbols
    if any(symbols[name].kind != "scalar" for name in symbols.made_of(axis.stop)):
        raise NotLegal("each item may have another number of rounds", loop.line)
    for letter in "yz":
        if uses(kernel, letter).parts or uses(kernel, letter).strides:
            raise NotLegal(f"a thread asks for more than its index along {letter}", loop.line)
    found = around(kernel, effects, items.inside, loop)
    if found.margins and not named(items.words, kernel.unit.aliases).signed:
        raise NotLegal("items near a border are counted in an unsigned type", loop.line)
    before = (*found.before, *(s for margin in found.margins for s in margin.before))
    _check_before(effects, before)
    along = Along("x", items.swaps, items.holding)
    sign = Following(kernel, effects, along, axis, found.nest, before).sign()
    combined = tuple(_reductions(kernel, effects, axis, found.nest))
    return Window(
        items, found.before, found.margins, found.nest, found.after, axis, axis.stop, sign, combined
    )


def may_slide(kernel: Kernel, loop: Loop) -> bool:
    """Whether a load in a loop goes along with rounds as with items: cheap, and not certain."""
    axis = kernel.axes().get(loop)
    for access in kernel.reading.accesses if axis is not None else ():
        if axis is None or axis.name not in access.loops or access.offset is None:
            continue
        symbols, names = kernel.reading.symbols, (axis.name, "threadIdx.x")
        inside = symbols.inside(access.offset)
        if access.space == "global" and access.mode == "load" and {*names} <= inside:
            by = [access.offset.coefficient(name) for name in names]
            if None in by or (by[0] is not None and by[1] in (by[0], Polynomial() - by[0])):
                return True
    return False


def _check_before(effects: Effects, before: Sequence[Statement]) -> None:
    """Raise NotLegal where what an item does first could not be done twice."""
    written = effects.kernel.reading.written
    for statement in before:
        if not isinstance(statement, Declare | Evaluate | Blank):
            raise NotLegal("items do more before the loop than to begin", statement.line)
        for access in effects.accesses(statement):
            if access.mode != "load" or any(effects.same(access.array, w) for w in written):
                raise NotLegal(f"`{access.array}` is written as well", access.line)


def _reductions(kernel: Kernel, effects: Effects, axis: Axis, nest: Loop) -> Iterator[Reduction]:
    """What the nest leaves behind, each local by one reduction over all of it."""
    outer = kernel.axes().get(nest)
    if outer is None or not outer.exact:
        raise NotLegal("a loop around it is not read", nest.line)
    names = [v.name for s in walk(kernel.function.body) if isinstance(s, Declare)
             for v in s.variables]  # fmt: skip
    inner, loops = effects.inside(axis.node.body), {axis.name, outer.name}
    for variable in effects.changed(nest):
        found = [r for r in kernel.reading.reductions
                 if r.place == variable.name and loops <= {*r.axes}]  # fmt: skip
        if len(found) != 1 or found[0].carried or names.count(variable.name) != 1:
            raise NotLegal(f"`{variable.name}` goes from round to round", nest.line)
        (one,) = found
        combine.supported(one)
        combine.nothing(one)
        kind = named(variable.type.base, kernel.unit.aliases)
        if one.op not in _EVERYWHERE or kind != one.type:
            raise NotLegal(f"`{variable.name}` is not combined as a plain number", one.line)
        for expr in effects.inside(nest) - inner:
            if isinstance(expr, Name) and expr.variable is variable:
                raise NotLegal(f"`{variable.name}` is asked for around the loop", one.line)
        yield one
