"""Which loads of neighbouring items along a row become windows, and which stores vectors.

Where a thread takes neighbours along x, its lanes are that far apart; so all that its items load
and store along x comes and goes by vectors, or the step is refused. An item may have several
elements beside each other, such as the bytes of a pixel, or take every second one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import gcd

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Expr, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.certain import certain
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.halos import Halo, lines_of
from optiml_magic.kernels.primitives.indices import COUNTER, ITEM, Along, Element, factor
from optiml_magic.kernels.primitives.items import WIDEST, Items, numbers
from optiml_magic.kernels.primitives.naming import size_of
from optiml_magic.kernels.primitives.reached import (
    exists,
    lies_between,
    on_plane,
    places,
    within,
)
from optiml_magic.kernels.primitives.rows_of_numbers import stride
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.windows import Round, Sizes, Taken, Window, widest
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import If, Loop

_ZERO = Polynomial()
_AWAY = "items are not neighbours in `{}`"
_APART = 4  # elements from an item to the next of which all sectors are asked for anyway: ours


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
        self.asked: dict[str, None] = {}  # what sizes of arrays must be
        self.apart: list[tuple[Polynomial, int]] = []  # elements from a row to the next, likewise
        self._others: set[Access] = set()  # that do not go along x
        self._sure = set(certain(decided, self.kernel.function.body))
        self._groups: dict[tuple[object, ...], Window] = {}
        self._loops = loops_in(decided.kernel.function.body)

    def fill(self) -> None:
        """Windows for all that lies along x. Raises NotLegal where something else lies there."""
        alive = self.decided.alive(self.kernel.function.body)
        inside = {e for s in alive for top in s.expressions for e in every(top)}
        known = {a for _, accesses in self.decided.found.values() for a in accesses}
        for access in self.kernel.reading.accesses:
            alone = access.space == "global" and access.own in inside and access not in known
            self._others |= {access} if alone else set()
            moves = access.offset is None or self._moves(access.offset)
            if alone and moves and not self._is_told(access):
                raise NotLegal(f"where its items are in `{access.array}` is not read", access.line)
        for at, accesses in self._along():
            along = any(self._item in form.symbols for form in at.steps.values())
            if along or self._strip(at, accesses):
                self._one(at, accesses)
            else:
                self._others |= {*accesses}
        for key, group in [*self._groups.items()]:
            if group.does("store") and self._is_whole(group):
                continue
            for one in group.taken:
                self._alone(one, group)
            if group.does("store"):
                del self._groups[key]
        whole = {g.array.array for g in self._groups.values() if g.width > 1 or () not in g.outer}
        for group in self._groups.values():
            if group.array.array not in whole:  # not what strips of it have left over
                access = group.taken[0].access
                raise NotLegal(_AWAY.format(access.array), access.line)
            self.decided.windows.setdefault(group.taken[0].scope, []).append(group)
            if group.width == 1:
                continue
            for sizes in {s for one in group.taken for s in one.at.steps if s}:
                self.rows.add((sizes, group.width))
            self._aligned(group.taken[0].at, group.taken[0].access, group.width)
        self._whole()
        self._border()
        taken = {one.access: (one, g) for g in self._groups.values() for one in g.taken}
        for node, (_, accesses) in self.decided.found.items():
            if accesses[0] in taken:
                one, group = taken[accesses[0]]
                self.decided.swaps[node] = text(group.place(one))

    @property
    def beyond(self) -> tuple[int, int]:
        """How far accesses may reach behind what the items ask for along x, at both ends."""
        found = [group.beyond for group in self._groups.values() if group.does("load")]
        return max((b for b, _ in found), default=0), max((b for _, b in found), default=0)

    def holds(self, target: Expr) -> bool:
        """Whether what is stored there goes to a window first."""
        accesses = self.decided.found[target][1] if target in self.decided.found else ()
        return any(one.access in accesses for g in self._groups.values() for one in g.taken)

    def taken_in(self, loop: Loop) -> list[tuple[Taken, Window]] | None:
        """What a loop takes from windows; None where it touches more of global memory."""
        inside = {*self.decided.effects.accesses(loop)}
        alive = {e for s in self.decided.alive(loop) for top in s.expressions for e in every(top)}
        found = [(o, g) for g in self._groups.values() for o in g.taken if o.access in inside]
        known = {a for one, _ in found for a in one.accesses}
        return found if {a for a in inside if a.own in alive} <= known else None

    @property
    def _item(self) -> str:
        return f"{ITEM}{self.along.item}"

    def _is_told(self, access: Access) -> bool:
        """Whether data say where a load is, once for each item: no vector would bring it."""
        table = self.kernel.reading.symbols.table
        inside = self.kernel.reading.symbols.inside(access.offset or _ZERO)
        return (
            access.mode == "load"
            and not access.loops
            and any(table[n].kind == "load" and self._moves(Polynomial.symbol(n)) for n in inside)
        )

    def _moves(self, form: Polynomial) -> bool:
        inside = self.kernel.reading.symbols.inside(form)
        return bool(inside & {"threadIdx.x", "blockIdx.x"})

    def _along(self) -> Iterator[tuple[Element, tuple[Access, ...]]]:
        """What is decided, behind addresses that are aligned at the measured sizes where they can.

        Strides of which all of an array are as many steps away belong to its address.
        """
        found = [*self.decided.found.values()]
        written = self.kernel.reading.written
        for at, accesses in found:
            beside = [other.steps for other, _ in found if other.array == at.array]
            alike = {
                s: f for s, f in at.steps.items()
                if s and f.value and all(steps.get(s) == f for steps in beside)
            }  # fmt: skip
            base = sum((f * stride(s) for s, f in alike.items()), at.base)
            steps = {s: f for s, f in at.steps.items() if s not in alike}
            whole = numbers(self.kernel, accesses[0]) > 1  # then addresses are those of elements
            if not whole and not any(self.decided.effects.same(n, at.array) for n in written):
                known = (value(self.kernel, Polynomial.of({m: by})) for m, by in base.terms)
                beyond = Polynomial.constant(sum(filter(None, known)) % widest(accesses[0], WIDEST))
                base, steps[()] = base - beyond, steps.get((), _ZERO) + beyond
            yield Element(at.array, base, steps), accesses

    def _one(self, at: Element, accesses: tuple[Access, ...]) -> None:
        access = accesses[0]
        away = _AWAY.format(access.array)
        others = [f for s, f in at.steps.items() if s]
        apart = factor(at.steps.get((), _ZERO), self._item)
        if not 0 <= apart <= _APART or any(map(self.along.moves, others)):
            raise NotLegal(away, access.line)
        scope, rounds = self._around(access)
        mine = {f"{COUNTER}{r.name}": r for r in rounds}
        several = (self.along, *self.others)
        digits = [d for a in several for f in at.steps.values() for d in a.digits(f)]
        if any(op != "/" for _, op, _ in digits):
            raise NotLegal(away, access.line)
        items = {*(f"{ITEM}{a.item}" for a in several), *(name for name, _, _ in digits)}
        outer = {
            s: rest for s, f in at.steps.items()
            if (rest := f.without([*mine, *items, ""]) - Polynomial.constant(f.number)).terms
        }  # fmt: skip
        within = at.steps.get((), _ZERO)
        if any(abs(factor(within, name)) > self.least for name in mine):
            raise NotLegal(away, access.line)
        width = widest(access, apart * self.least if apart else WIDEST)
        width = self._whole_rounds(width, outer.get((), _ZERO), access)
        if scope is None and access.mode == "store" and any(map(self.decided.keeps, self._loops)):
            # Once for each item, beside what a loop does for it: then rows may begin anywhere.
            rows = (stride(s) for s in at.steps if s)
            width = width if all(self._divides(width, row) for row in (at.base, *rows)) else 1
        by = tuple(
            (s, name, factor(f, name)) for s, f in sorted(at.steps.items())
            for name in sorted(items) if factor(f, name)
        )  # fmt: skip
        if any(factor < 0 or (name != self._item and not s) for s, name, factor in by):
            raise NotLegal(away, access.line)
        key = (scope, at.array, at.base, *sorted((s, str(f)) for s, f in outer.items()), by)
        if key not in self._groups:
            taken = [g.name for g in self._groups.values()]
            # Several rows on, in 32 bits, a compiler does not see that it may store vectors.
            several_on = width > 1 and access.mode == "store" and any(s and n > 1 for s, _, n in by)
            wide = self.decided.is_wide(access.node) or several_on
            name = self.kernel.fresh(f"{at.array}_row", *taken)
            begun, base = "", f"{name}_at"
            if self._is_gathered(at, access):
                begun = self.decided.declared(base, at, access)
            else:
                base = self.decided.base(at, access)
            self._groups[key] = Window(
                name, base,
                Items(at.array, at.base, (access,)), apart, width,
                self.along, self.others, self.turn, outer, self.decided.interior.speller.form,
                partial(self.decided.offset, wide), begun,
            )  # fmt: skip
        padded = self.decided.padded
        borders = padded.borders(access, at, rounds, self._item, apart) if padded else ()
        self._groups[key].taken.append(Taken(accesses, at, rounds, scope, borders))

    def _strip(self, at: Element, accesses: tuple[Access, ...]) -> bool:
        """Whether a strip of rounds loads whole vectors, the same for all items."""
        access, form = accesses[0], at.steps.get((), _ZERO)
        if any(a.mode != "load" for a in accesses) or self.decided.padded is not None:
            return False
        if any(name[:2] == ITEM for name in form.symbols):
            return False
        try:
            _, rounds = self._around(access)
        except NotLegal:
            return False
        by = {r: factor(form, f"{COUNTER}{r.name}") for r in rounds}
        constant = Polynomial.constant(form.number)
        outer = form.without([f"{COUNTER}{r.name}" for r in rounds]) - constant
        width = widest(access, WIDEST)
        if not outer.terms or self._whole_rounds(width, outer, access) != width:
            return False
        ends = [r.ends(times) for r, times in by.items()]
        number = form.number
        low, high = (sum(end[side] for end in ends) + number for side in (0, 1))
        rows = (stride(s) for s in at.steps if s)
        whole = all(self._divides(width, row) for row in (at.base, *rows))
        return whole and low % width == 0 == (high + 1) % width

    def _divides(self, width: int, form: Polynomial) -> bool:
        """Whether so many elements divide each part of an address, at the measured sizes."""
        parts = [*self._rows_before(form), form.without(self._places(form))]
        return not any((value(self.kernel, part) or 0) % width for part in parts)

    def _rows_before(self, form: Polynomial) -> list[Polynomial]:
        """How far apart the rows are that an address leaves behind."""
        own = f"@{self.along.axis}"
        found = (form.coefficient(name) for name in self._places(form) if name != own)
        return [by for by in found if by is not None]

    def _places(self, form: Polynomial) -> list[str]:
        """What of an address is no size."""
        return [n for n in sorted(form.symbols) if value(self.kernel, Polynomial.symbol(n)) is None]

    def _whole_rounds(self, width: int, outer: Polynomial, access: Access) -> int:
        """The elements of a vector, where rounds around all items go along the row by whole ones.

        Where these go by fewer each round loads one element after the other.
        """
        for axis in self.kernel.reading.loops(access):
            by = factor(outer, f"{COUNTER}{axis.variable.name}") if axis.variable else 0
            if by:
                start, step = (form.value if form is not None else None
                               for form in (axis.start, axis.step))  # fmt: skip
                width = gcd(width, by * step, by * start) if step and start is not None else 1
        return width

    def _is_gathered(self, at: Element, access: Access) -> bool:
        """Whether memory says where a row begins, which a round knows before it does anything."""
        interior, symbols = self.decided.interior, self.kernel.reading.symbols
        found = interior.moving.gathered(at.base)
        known = {a.name for a in self.kernel.reading.loops(access) if self.decided.keeps(a.node)}
        for name in found:
            inside = symbols.inside(Polynomial.symbol(name))
            if not {n for n in inside if symbols[n].kind == "counter"} <= known:
                reason = f"where rows of `{access.array}` begin is told too late"
                raise NotLegal(reason, access.line)
        return bool(found)

    def _is_anew(self, one: Taken, group: Window) -> bool:
        """Whether nothing writes what items load, and they load it, or what lies around it."""
        written = self.kernel.reading.written
        if any(self.decided.effects.same(name, one.access.array) for name in written):
            return False
        if lies_between(group, one, places(group, "load", self._sure)):
            return True
        interior = self.decided.interior
        bounds = [a.bound for a in interior.along if a.bound is not None]
        condition = (
            exists(self.kernel, one, group, self._groups.values(), self._sure)
            or within(self.kernel, one, interior, bounds)
            or on_plane(self.kernel, one, interior, bounds)
        )
        self.asked |= {condition: None} if condition is not None else {}
        return condition is not None

    def _border(self) -> None:
        """Windows of which only what items have of their own is certainly there."""
        interior, padded = self.decided.interior, self.decided.padded
        for window in self._groups.values():
            if padded is None or not any(one.borders for one in window.taken):
                continue
            halo = partial(Halo, window, least=self.least, sure=self._sure)
            for _, group in window.alike("load"):
                for form in halo(group).needed():
                    if any(name.startswith(COUNTER) for name in form.symbols):
                        reason = f"where `{group[0].access.array}` ends depends on a round"
                        raise NotLegal(reason, group[0].access.line)
                    interior.require(form)
            window.bordered = partial(lines_of, halo, interior.compared)
            for one in (one for one in window.taken if one.borders):
                own = interior.speller.form(window.steps(one, ()))
                padded.tell(one.access.own, f"({own} >= 0 && {own} < {window.count})")

    def _around(self, access: Access) -> tuple[Loop | If | None, tuple[Round, ...]]:
        """The innermost loop or test around all items, and the rounds of the loops within."""
        scope: Loop | If | None = None
        rounds: list[Round] = []
        for axis in self.kernel.reading.loops(access):
            if not rounds and self.decided.keeps(axis.node):
                scope = axis.node
                continue
            count = self.decided.interior.rounds(axis.name)
            start = None if axis.start is None else self.decided.interior.placed(axis.start).value
            step = axis.step.value if axis.step is not None else None
            unrolled = axis.node in self.decided.unrolled | self.decided.told
            if not unrolled or not count or start is None or not step or axis.variable is None:
                raise NotLegal("a loop around its loads is not unrolled", axis.line)
            rounds.append(Round(axis.variable.name, start, step, count, axis.name))
        inside = self.decided.effects.inside
        scopes = [*self.decided.scopes.of(access.own), *([scope] if scope is not None else [])]
        return min(scopes, key=lambda s: len(inside(s)), default=None), tuple(rounds)

    def _is_whole(self, group: Window) -> bool:
        """Whether items store all of a window, and nobody else touches what it is of.

        Each item then has its own elements of every row, side by side, and asks for no others.
        """
        effects, own = self.decided.effects, {a for one in group.taken for a in one.accesses}
        others = {a for g in self._groups.values() if g is not group for o in g.taken
                  for a in o.accesses}  # fmt: skip
        if any(effects.same(a.array, group.array.array) for a in (others | self._others) - own):
            return False
        stored = places(group, "store", self._sure)
        rows: dict[object, set[int]] = {}
        for row, at in stored:
            rows.setdefault(row, set()).add(at)
        first = min((at for _, at in stored), default=1)
        whole = {*range(first, first + group.apart)}
        return (
            first % group.width == 0
            and all(found == whole for found in rows.values())
            and all(lies_between(group, one, stored) for one in group.taken)
        )

    def _alone(self, one: Taken, group: Window) -> None:
        """Nothing writes what items load; they store to places that vectors could take."""
        access, within = one.access, one.at.steps[()] - Polynomial.symbol(self._item)
        if one.does("load") and not self._is_anew(one, group):
            reason = f"not every item loads its elements of `{access.array}` anew"
            raise NotLegal(reason, access.line)
        at = within.value
        if one.does("store") and (at is None or at % group.width or one.rounds):
            reason = f"what items store to `{access.array}` does not fill a vector"
            raise NotLegal(reason, access.line)

    def _aligned(self, at: Element, access: Access, width: int) -> None:
        interior, rest = self.decided.interior, at.base
        gathered = interior.moving.gathered(at.base)
        for monomial, times in at.base.terms:
            if gathered & {*monomial}:
                rest = rest - Polynomial.of({monomial: times})
                sizes = tuple(n for n in monomial if n not in gathered)
                if times % width and not sizes:
                    raise NotLegal(f"rows of `{access.array}` begin anywhere", access.line)
                self.rows |= {(sizes, width)} if times % width else set()
        self.apart += [(row, width) for row in self._rows_before(rest)]
        place = self.decided.place(at.array, rest, access)
        size = width * (access.element.size or 1)
        interior.whole[rest, place] = f"(size_t){place} % {size} == 0"

    def _whole(self) -> None:
        """Rows, and what is so many of them, hold whole vectors."""
        alone = {sizes for sizes, _ in self.rows if len(sizes) == 1}
        for sizes, width in sorted(self.rows):
            ((names, number),) = stride(sizes).terms
            if number % width == 0:
                continue
            if not names:
                raise NotLegal(f"rows of {number} elements are not whole vectors")
            if len(sizes) == 1 or not any((name,) in alone for name in sizes):
                words = " * ".join(size_of(self.kernel, name) for name in sizes)
                words = f"({words})" if len(sizes) > 1 else words
                form = Polynomial.constant(width) * stride(sizes)
                self.decided.interior.whole[form, ""] = f"{words} % {width} == 0"
