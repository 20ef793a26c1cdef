"""Which loads of neighbouring items along a row become windows, and which stores vectors.

Where a thread takes neighbours along x, its lanes are that far apart; so all that its items load
and store along x comes and goes by vectors, or the step is refused.
"""

from __future__ import annotations

from functools import partial

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Expr, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.indices import COUNTER, ITEM, Along, Element, factor
from optiml_magic.kernels.primitives.items import Items
from optiml_magic.kernels.primitives.windows import Round, Sizes, Taken, Window, widest
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Loop

_ZERO, _ONE = Polynomial(), Polynomial.constant(1)


class Vectored:
    """Makes the windows of what is decided. Items along x come in multiples of ``least``.

    ``rows`` are the strides of which a vector's elements must be a divisor, with these.
    """

    def __init__(self, decided: Decided, along: Along, least: int) -> None:
        self.decided = decided
        self.kernel = decided.kernel
        self.along = along
        self.least = least
        self.others = tuple(a for a in decided.interior.along if a.several and a is not along)
        self.turn = decided.kernel.fresh("part")
        self.rows: set[tuple[Sizes, int]] = set()
        self.stores: dict[Expr, tuple[Element, Access, int]] = {}
        self._sure = set(decided.always(self.kernel.function.body))
        self._groups: dict[tuple[object, ...], Window] = {}

    def fill(self) -> None:
        """Windows for all loads along x. Raises NotLegal where something else lies there."""
        alive = self.decided.alive(self.kernel.function.body)
        inside = {e for s in alive for top in s.expressions for e in every(top)}
        known = {a for _, accesses in self.decided.found.values() for a in accesses}
        for access in self.kernel.reading.accesses:
            alone = access.space == "global" and access.own in inside and access not in known
            if alone and (access.offset is None or self._moves(access.offset)):
                raise NotLegal(f"where its items are in `{access.array}` is not read", access.line)
        for node, (at, accesses) in self.decided.found.items():
            if factor(at.steps.get((), _ZERO), self._item) or any(
                self._item in f.symbols for f in at.steps.values()
            ):
                self._one(node, at, accesses)
        for group in self._groups.values():
            self.decided.windows.setdefault(group.taken[0].scope, []).append(group)
            for sizes in {s for one in group.taken for s in one.at.steps if s}:
                self.rows.add((sizes, group.width))
            self._aligned(group.taken[0].at, group.taken[0].access, group.width)
        for at, access, width in self.stores.values():
            self.rows |= {(sizes, width) for sizes in at.steps if sizes}
            self._aligned(at, access, width)
        self._whole()
        for node, (_, accesses) in self.decided.found.items():
            for group in self._groups.values():
                for one in group.taken:
                    if one.access is accesses[0]:
                        self.decided.swaps[node] = text(group.place(one))

    @property
    def beyond(self) -> tuple[int, int]:
        """How far accesses may reach behind what the items ask for along x, at both ends."""
        found = [group.beyond for group in self._groups.values()]
        return max((b for b, _ in found), default=0), max((b for _, b in found), default=0)

    @property
    def _item(self) -> str:
        return f"{ITEM}{self.along.item}"

    def _moves(self, form: Polynomial) -> bool:
        inside = self.kernel.reading.symbols.inside(form)
        return bool(inside & {"threadIdx.x", "blockIdx.x"})

    def _one(self, node: Expr, at: Element, accesses: tuple[Access, ...]) -> None:
        access = accesses[0]
        apart = f"items are not neighbours in `{access.array}`"
        others = [f for s, f in at.steps.items() if s]
        plain = at.steps.get((), _ZERO).coefficient(self._item) == _ONE
        if not plain or any(self._item in f.symbols for f in others):
            raise NotLegal(apart, access.line)
        if any(a.mode != "load" for a in accesses):
            self._store(node, at, accesses)
            return
        written = [name for name in self.kernel.reading.written
                   if self.decided.effects.same(name, access.array)]  # fmt: skip
        if written or access.own not in self._sure:
            raise NotLegal(f"not every item loads its elements of `{access.array}` anew",
                           access.line)  # fmt: skip
        scope, rounds = self._around(access)
        mine = {f"{COUNTER}{r.name}": r for r in rounds}
        items = {f"{ITEM}{a.item}" for a in (self.along, *self.others)}
        outer = {
            s: rest for s, f in at.steps.items()
            if (rest := f.without([*mine, *items, ""]) - _number(f)).terms
        }  # fmt: skip
        within = at.steps.get((), _ZERO)
        if () in outer or any(abs(factor(within, name)) > self.least for name in mine):
            raise NotLegal(apart, access.line)
        by = tuple(
            (s, name, factor(f, name)) for s, f in sorted(at.steps.items())
            for name in sorted(items) if factor(f, name)
        )  # fmt: skip
        if any(factor < 0 for _, _, factor in by):
            raise NotLegal(apart, access.line)
        key = (scope, at.array, at.base, *sorted((s, str(f)) for s, f in outer.items()),
               tuple(b for b in by if b[0]))  # fmt: skip
        if key not in self._groups:
            taken = [g.name for g in self._groups.values()]
            wide = self.decided.is_wide(node)
            self._groups[key] = Window(
                self.kernel.fresh(f"{at.array}_row", *taken), self.decided.base(at, access),
                Items(at.array, at.base, (access,)), widest(access, self.least), self.along,
                self.others, self.turn, outer, self.decided.interior.speller.form,
                partial(self.decided.offset, wide),
            )  # fmt: skip
        self._groups[key].taken.append(Taken(access, at, rounds, scope))

    def _around(self, access: Access) -> tuple[Loop | None, tuple[Round, ...]]:
        """The innermost loop around all items, and the rounds of those within."""
        scope: Loop | None = None
        rounds: list[Round] = []
        for axis in self.kernel.reading.loops(access):
            if not rounds and self.decided.keeps(axis.node):
                scope = axis.node
                continue
            count = self.decided.interior.rounds(axis.name)
            start = None if axis.start is None else self.decided.interior.placed(axis.start).value
            step = axis.step.value if axis.step is not None else None
            unrolled = axis.node in self.decided.unrolled and axis.variable is not None
            if not unrolled or not count or start is None or not step or axis.variable is None:
                raise NotLegal("a loop around its loads is not unrolled", axis.line)
            rounds.append(Round(axis.variable.name, start, step, count))
        return scope, tuple(rounds)

    def _store(self, node: Expr, at: Element, accesses: tuple[Access, ...]) -> None:
        access = accesses[0]
        within = at.steps[()] - Polynomial.symbol(self._item)
        width = widest(access, self.least)
        counters = [n for f in at.steps.values() for n in f.symbols if n.startswith(COUNTER)]
        if len(accesses) > 1 or within.value is None or within.value % width or (
            counters and self._around(access)[1]
        ):  # fmt: skip
            raise NotLegal(
                f"what items store to `{access.array}` does not fill a vector", access.line
            )
        self.stores[node] = at, access, width

    def _aligned(self, at: Element, access: Access, width: int) -> None:
        interior = self.decided.interior
        words = self.decided.address(at.base)
        place = f"&{at.array}[{words}]" if words != "0" else at.array
        size = width * (access.element.size or 1)
        interior.whole[at.base, place] = f"(size_t){place} % {size} == 0"

    def width(self, target: Expr) -> int:
        """The bytes of the vectors that go to an element's place; 0 where none do."""
        found = self.stores.get(target)
        return found[2] * (found[1].element.size or 0) if found is not None else 0

    def stored(self, target: Expr, own: str) -> list[str]:
        """What stores the local array ``own``, an element for each item."""
        at, access, width = self.stores[target]
        heads = [f"for (int {a.item} = 0; {a.item} < {a.count}; ++{a.item}) {{"
                 for a in self.others]  # fmt: skip
        turn = self.turn
        heads.append(f"for (int {turn} = 0; {turn} < {self.along.count}; {turn} += {width}) {{")
        within = at.steps[()] - Polynomial.symbol(self._item) + Polynomial.symbol(f"{ITEM}{turn}")
        there = self.decided.offset(self.decided.is_wide(target), {**at.steps, (): within})
        here = own + "".join(f"[{a.item}]" for a in self.others) + f"[{turn}]"
        array = Items(at.array, at.base, (access,))
        line = array.stored(width, f"&{here}", f"&{self.decided.base(at, access)}[{there}]")
        made = [line for head in heads for line in ("#pragma unroll", head)]
        return [*made, line, *"}" * len(heads)]

    def _whole(self) -> None:
        """Rows, and what is so many of them, hold whole vectors."""
        alone = {sizes for sizes, _ in self.rows if len(sizes) == 1}
        for sizes, width in sorted(self.rows):
            if len(sizes) == 1 or not any((name,) in alone for name in sizes):
                words = " * ".join(sizes)
                words = f"({words})" if len(sizes) > 1 else words
                form = Polynomial.of({sizes: width})
                self.decided.interior.whole[form, ""] = f"{words} % {width} == 0"


def _number(form: Polynomial) -> Polynomial:
    return Polynomial.constant(dict(form.terms).get((), 0))
