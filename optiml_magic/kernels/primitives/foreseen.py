"""P8, foreseen: what every round of a loop but one loads, it loads in all of them.

Of pairs that leave each item alone, ``if (j == i) continue;``, no load is certain to be made, so
that none can be shared, staged or made before the loop. Where there are two items, the element of
the round that one leaves out the other one loads; where there are two rounds, what belongs to the
item alone is loaded in one of them. Both are asked of the sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)


@primitive
def foreseen(kernel: Kernel) -> Kernel:
    """The kernel with such loads in every round, or before the loop where they do not change."""
    if not any(_excludes(c) for a in kernel.reading.accesses for c in _parts(a.guard)):
        raise NotLegal("no round is left out")
    effects = Effects(kernel)
    items = mapped(kernel, effects)
    made = [_Foreseeing(kernel, effects, items, loop) for loop in loops_in(kernel.function.body)
            if is_counted(kernel.axes()[loop], effects)]  # fmt: skip
    taken, swaps = list[str](), dict[Node, Node | tuple[Statement, ...] | None]()
    asked: dict[str, None] = {}
    for one in made:
        if one.loads:
            one.swap(swaps, taken)
            asked |= dict.fromkeys(one.asked())
    if not swaps:
        raise NotLegal("no round is left out")
    body = edited(kernel.function.body, swaps)
    known = {str(r.condition) for r in kernel.program.requires}
    requires = [RequireDirective(parse_expression(a)) for a in asked if a not in known]
    return kernel.rewritten(body, directives=requires)


def _excludes(part: Condition) -> bool:
    return isinstance(part, Compare) and part.op == "!=" and bool(part.roots & {"threadIdx.x"})


def _parts(guard: Iterable[Condition]) -> frozenset[Condition]:
    return frozenset(part for condition in guard for part in condition.conjuncts())


class _Foreseeing:
    """One loop: which loads of it depend on nothing but that its round is not left out."""

    def __init__(self, kernel: Kernel, effects: Effects, items: Mapped, loop: Loop) -> None:
        self.kernel = kernel
        self.effects = effects
        self.items = items
        self.loop = loop
        self.axis: Axis = kernel.axes()[loop]
        self.rounds = self._rounds()
        self.loads = [*self._loads()] if self.rounds is not None else []

    def _rounds(self) -> Polynomial | None:
        """How many rounds each item makes; None where they are not the same for all items."""
        axis, given = self.axis, {p.name for p in self.kernel.function.parameters}
        if not axis.exact or not axis.bounded or axis.scaled or axis.step != _ONE:
            return None
        assert axis.start is not None
        assert axis.stop is not None
        rounds = axis.stop - axis.start
        told = rounds.symbols <= given - self.effects.moved and said_alike(
            self.kernel, rounds.symbols
        )
        alone = _parts(axis.guard) <= self.items.held
        return rounds if told and alone else None

    def _loads(self) -> Iterator[Access]:
        axis, kernel = self.axis, self.kernel
        assert axis.start is not None
        apart = axis.start + Polynomial.symbol(axis.name) - self.items.index
        always = self.items.held | _parts(axis.guard) | _parts((axis.test,))
        own = {v for s in walk(self.loop.body) if isinstance(s, Declare) for v in s.variables}
        changed = self.effects.changed(self.loop)
        for access in self.effects.accesses(self.loop):
            more = _parts(access.guard) - always
            left_out = all(
                isinstance(c, Compare) and c.op == "!=" and c.form in (apart, -apart) for c in more
            )
            form = access.index
            if form is None or not kernel.reading.symbols.known(form) or access.call is not None:
                continue
            asked = names([access.node]) - {axis.variable}
            if (
                more and left_out and access.mode == "load" and access.loops == (axis.name,)
                and self._whole(access) and not asked & (own | changed.keys())
                and not any(self.effects.same(access.array, a) for a in kernel.reading.written)
                and (self._of_item(form) != self._of_round(form))
            ):  # fmt: skip
                yield access

    def _whole(self, access: Access) -> bool:
        """Whether what stands in the text is a value of the element that is loaded."""
        return access.element.depth == 0 and (
            self.kernel.reading.types.get(access.node) == access.element
        )

    def _of_round(self, form: Polynomial) -> bool:
        return self.axis.name in self.kernel.reading.symbols.inside(form)

    def _of_item(self, form: Polynomial) -> bool:
        return bool({"threadIdx.x", "blockIdx.x"} & self.kernel.reading.symbols.inside(form))

    def asked(self) -> Iterator[str]:
        """What must hold of the sizes so that every element is loaded by somebody."""
        forms = [load.index for load in self.loads if load.index is not None]
        if any(self._of_round(form) for form in forms):
            yield f"{self.items.count} >= 2"
        if any(self._of_item(form) for form in forms):
            yield f"{self.rounds} >= 2"

    def swap(
        self, swaps: dict[Node, Node | tuple[Statement, ...] | None], taken: list[str]
    ) -> None:
        """Note what stands in the place of the loop."""
        before, within = list[str](), list[str]()
        named: dict[tuple[str, Polynomial], str] = {}
        inside: dict[Node, Node] = {}
        for load in self.loads:
            assert load.index is not None
            alone = self._of_item(load.index)
            key = load.array, load.index
            if key not in named:
                word = f"{load.array.replace('.', '_')}_{'own' if alone else 'met'}"
                named[key] = self.kernel.fresh(word, *taken)
                taken.append(named[key])
                shown = self.kernel.spelled(load.node)
                line = f"const {load.element.name} {named[key]} = {shown};"
                (before if alone else within).append(line)
            inside[load.node] = text(named[key])
        body = edited(self.loop.body, inside)
        statements = body.body if isinstance(body, Block) else (body,)
        whole = Block(None, self.loop.line, (*map(lines, within), *statements))
        loop = edited(self.loop, {self.loop.body: whole})
        found = (*map(lines, before), loop)
        swaps[self.loop] = found if before else loop
