"""Arrays of which a kernel's items take neighbouring elements: what vectors may bring at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.adding import adds_alone
from optiml_magic.kernels.primitives.amid import Amid
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.covering import cover, ways
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.extents import existing
from optiml_magic.kernels.primitives.items import (
    TRIPLES,
    WIDEST,
    Items,
    Place,
    element,
    is_plain,
    is_record,
    parts,
)
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Statement

_MOST_APART = 4  # elements of an item that are taken as vectors, or as many as one vector holds
_WHOLE = 64  # bytes of an array that a thread takes one after the other, as of four floats; ours
_SIZES = (1, 2, 4, 8, *TRIPLES)
_THREAD, _BLOCK = "threadIdx.x", "blockIdx.x"


class Neighbours:
    """The arrays of which a kernel's items take neighbouring elements.

    ``found`` come and go by vectors. That the elements of those in ``asked`` exist is a condition
    of the launch, since some items leave them alone. ``left`` are loads that stay with each item.
    """

    def __init__(self, kernel: Kernel, items: Mapped, effects: Effects, within: Amid) -> None:
        self.kernel = kernel
        self.items = items
        self.held = items.held | within.held
        self.effects = effects
        self.inside = {e for s in items.inside for e in effects.inside(s)} - within.dead
        self.accesses = [a for a in kernel.reading.accesses
                         if a.own in self.inside and a.space == "global"]  # fmt: skip
        self.places = {a: self._place(a) for a in self.accesses}
        self.parted = set[str]()  # arrays of which groups have no element in common
        lying = [
            group
            for array in dict.fromkeys(access.array for access in self.accesses)
            for own in self._clusters(array)
            if (group := self._group(array, own)) is not None
        ]
        sure = [group for group in lying if self._is_certain(group)]
        self.asked = {
            group: asked for group in lying
            if group not in sure and (asked := self._existing(group, sure)) is not None
        }  # fmt: skip
        self.found = tuple(g for g in lying if g in sure or g in self.asked)
        self.left = tuple(g for g in lying if g not in self.found)
        self.added = tuple(filter(None, map(self._added, self.accesses)))
        sizes = [g.size & -g.size for g in (*lying, *self.added)]
        self.most = WIDEST // max(sizes, default=WIDEST)
        while self.most > 1 and any(g.size * g.apart * self.most > _WHOLE for g in lying):
            self.most //= 2
        self._check()

    def piece(self, group: Items, width: int) -> int:
        """How many bytes of ``width`` items' elements are taken at once."""
        whole = group.size * group.apart * width
        return min(WIDEST, whole & -whole)

    def fill(self, width: int) -> bool:
        """Whether ``width`` items' elements are vectors of one each."""
        alone = width == 1 or not self.added
        return alone and all(self.piece(group, width) <= group.size for group in self.found)

    @cached_property
    def whole(self) -> tuple[Polynomial, ...]:
        """What the items of a vector must divide."""
        groups = (*self.found, *self.added)
        places = (self.places[a] for group in groups for a in group.accesses)
        return tuple(dict.fromkeys(form for p in places if p is not None for form in p.whole))

    def offset(self, group: Items, access: Access) -> int:
        """Which of its item's elements an access takes."""
        place = self.places[access]
        assert place is not None
        return (place.first - group.index).value or 0

    def loaded(self) -> int:
        """The bytes that an item loads by vectors, without those of rows that come again."""
        new = (g for g in self.found if g.does("load") and not self._again(g))
        return sum(g.size * g.apart for g in new)

    def _again(self, group: Items) -> bool:
        """Whether items take what those of the row before took: ``i - i / w * w``."""
        symbols = self.kernel.reading.symbols
        return any(
            symbols[n].op == "/" and group.index.coefficient(n) == -symbols[n].arguments[1]
            for n in group.index.symbols
        )

    def _place(self, access: Access) -> Place | None:
        """Where its item's elements are; None where neighbouring items' do not lie together."""
        form, symbols = access.index, self.kernel.reading.symbols
        if form is None:
            return None
        whole: list[Polynomial] = []
        rows: list[Polynomial] = []  # from a row of items to the next, in elements
        for name in form.symbols:  # i % w is i - i / w * w
            symbol = symbols[name]
            if symbol.op != "%" or not self._digit(name):
                continue
            by, over = form.coefficient(name), symbol.arguments[1]
            if by is None:
                return None
            quotient = Polynomial.symbol(f"/{name[1:]}")
            if not quotient.symbols <= symbols.table.keys():
                sides = (self.items.index, over)
                quotient = self.kernel.reading_operations().operation("/", sides, low=0)
            rest = self.items.index - over * quotient
            form = form - by * Polynomial.symbol(name) + by * rest
        for name in form.symbols:
            if symbols[name].op == "/" and self._digit(name):
                by = form.coefficient(name)
                if by is None:
                    return None
                whole.append(symbols[name].arguments[1])
                rows.append(-by if str(by)[0] == "-" else by)
            elif self.begins(name):  # what a row of items has in common, such as where it begins
                by = form.coefficient(name)
                if by is None or (by.value is not None and by.value % WIDEST):
                    return None
                whole += self._overs(symbols[name].arguments[0])
                rows += [] if by.value else [by]
        apart = form.coefficient(_THREAD)
        most = max(_MOST_APART, WIDEST // (access.element.size or WIDEST))
        if apart is None or not apart.value or abs(apart.value) > most:
            return None
        first = form - apart * self.items.index
        hidden = first.without([n for n in first.symbols if self.steady(n)])
        inner = {a.name for a in self.kernel.reading.axes if a.node in self._loops}
        if ({_THREAD, _BLOCK} | inner) & symbols.inside(hidden) or inner & symbols.inside(first):
            return None
        many = abs(apart.value)
        items = [by.divided(many) for by in rows]
        whole += [by for by in items if by is not None]
        if None in items:  # such a row may begin between items
            return None
        return Place(many, apart.value < 0, first, tuple(dict.fromkeys(whole)))

    @cached_property
    def _loops(self) -> frozenset[Statement]:
        return frozenset(loop for s in self.items.inside for loop in loops_in(s))

    def steady(self, name: str) -> bool:
        """Whether it changes from one row of items to the next alone, by whole vectors."""
        return self._digit(name) or self.begins(name)

    def _digit(self, name: str) -> bool:
        """Whether a symbol is the item's index taken apart by what is the same for all items."""
        symbol = self.kernel.reading.symbols[name]
        if symbol.op not in ("/", "%") or len(symbol.arguments) != 2:
            return False
        index, over = symbol.arguments
        inside = self.kernel.reading.symbols.inside(over)
        return index == self.items.index and self.kernel.reading.symbols.known(over) and not (
            {_THREAD, _BLOCK} & inside or any(self.kernel.reading.symbols[n].kind == "load"
                                              for n in inside))  # fmt: skip

    def begins(self, name: str) -> bool:
        """Whether a symbol is an element that a row of items has in common, and nobody changes."""
        symbol = self.kernel.reading.symbols[name]
        if symbol.kind != "load" or len(symbol.arguments) != 1:
            return False
        written = (a.array for a in self.kernel.reading.accesses if a.mode != "load")
        inside = self.kernel.reading.symbols.inside
        index = symbol.arguments[0]
        digits = [n for n in index.symbols if n[:1] == "/" and self._digit(n)]
        rest = index.without(digits)
        return (
            bool(digits)
            and not any(self.effects.same(array, symbol.array) for array in written)
            and all(index.coefficient(n) is not None for n in digits)
            and not {_THREAD, _BLOCK} & inside(rest)
            and self.kernel.reading.symbols.known(rest)
            and not any(self.kernel.reading.symbols[n].kind in ("load", "counter")
                        for n in inside(rest))
        )  # fmt: skip

    def _overs(self, index: Polynomial) -> list[Polynomial]:
        """What the digits of an index are divided by."""
        table = self.kernel.reading.symbols
        return [table[n].arguments[1] for n in index.symbols if n[:1] == "/" and self._digit(n)]

    def _clusters(self, array: str) -> list[list[Access]]:
        """The accesses of an array whose elements lie together; all, where it is read and written.

        Where items only store, such as to planes of one array, no two of them meet anywhere.
        """
        own = [access for access in self.accesses if access.array == array]
        every = [a for a in self.kernel.reading.accesses if self.effects.same(a.array, array)]
        if any(a.mode != "load" for a in every):
            near = self._near_ones(own)
            if [*every] == own and len({a.element for a in own}) == 1 and self._are_apart(near):
                self.parted.add(array)
                return near
            alone = [*every] == own and all(a.mode == "store" for a in own)
            apart = self._near_ones(own) if alone else [own]
            # In the order of the text: where two are one after all, the later one stays.
            return apart if [a for c in apart for a in c] == own else [own]
        return self._near_ones(own)

    def _are_apart(self, clusters: Sequence[Sequence[Access]]) -> bool:
        """Whether no two of several clusters have an element in common, of whatever items."""
        ends = [self._ends(cluster) for cluster in clusters]
        ranges = Ranges(self._counted(), self.kernel.reading.symbols)
        return len(clusters) > 1 and all(
            one is not None and other is not None
            and any(ranges.nonnegative(low - high) for low, high in ((other[0], one[1]),
                                                                     (one[0], other[1])))
            for one, other in combinations(ends, 2)
        )  # fmt: skip

    def _counted(self) -> list[Condition]:
        """What is known where there is an item: of ``n / 2`` there are no more than half of n."""
        bound, symbols = self.items.bound, self.kernel.reading.symbols
        forms = [bound - Polynomial.constant(1)]
        for name in bound.symbols:
            symbol = symbols[name]
            if bound == Polynomial.symbol(name) and symbol.op == "/" and len(symbol.arguments) == 2:
                forms.append(symbol.arguments[0] - symbol.arguments[1] * bound)
        return [Compare(">=", form, frozenset()) for form in forms]

    def _ends(self, cluster: Sequence[Access]) -> tuple[Polynomial, Polynomial] | None:
        """The first element of a row that items have of a cluster, and the one behind the last."""
        places = [place for a in cluster if (place := self.places[a]) is not None]
        offsets = [(place.first - places[0].first).value for place in places]
        known = [offset for offset in offsets if offset is not None]
        if len(known) < len(cluster):
            return None
        by, first = Polynomial.constant(places[0].apart), places[known.index(min(known))].first
        end = first + Polynomial.constant(max(known) - min(known) + 1)
        others = (self.items.bound - Polynomial.constant(1)) * by
        return (first - others, end) if places[0].backward else (first, end + others)

    def _near_ones(self, own: list[Access]) -> list[list[Access]]:
        found: list[list[Access]] = []
        for access in own:
            near = (c for c in found if self._near(self.places[c[0]], self.places[access]))
            cluster = next(near, None)
            if cluster is None:
                found.append([access])
            else:
                cluster.append(access)
        return found

    def _near(self, one: Place | None, other: Place | None) -> bool:
        if one is None or other is None:
            return one is other
        if (one.apart, one.backward) != (other.apart, other.backward):
            return False
        between = (other.first - one.first).value
        return between is not None and abs(between) < one.apart

    def _group(self, array: str, accesses: Sequence[Access]) -> Items | None:
        places = [place for a in accesses if (place := self.places[a]) is not None]
        if len(places) < len(accesses) or len({(p.apart, p.backward) for p in places}) > 1:
            return None
        apart = places[0].apart
        offsets = [(p.first - places[0].first).value for p in places]
        known = [o for o in offsets if o is not None]
        least = min(known, default=0)
        if len(known) < len(offsets) or max(known) - least >= apart:
            return None
        first = places[known.index(least)].first  # that of a whole element, where this has parts
        for access in accesses:
            many = self.parts(access)
            if access.mode not in ("load", "store") or not many or first.divided(many) is None:
                return None
            if (
                apart % many
                or access.element != accesses[0].element
                or element(self.effects, access) is None
            ):
                return None
        return Items(array, first, tuple(accesses), apart, places[0].backward)

    def _added(self, access: Access) -> Items | None:
        """What items add to neighbouring floats, which nobody asks for."""
        place = self.places[access]
        if place is None or place.apart != 1 or place.backward or not self._always([access]):
            return None
        adds = adds_alone(self.kernel, self.effects, access)
        return Items(access.array, place.first, (access,)) if adds else None

    def parts(self, access: Access) -> int:
        """How many numbers an element of its array has, one of which it takes; else 1, or 0."""
        whole = is_plain(self.kernel, access, _SIZES) or is_record(self.kernel, access)
        return int(whole) or parts(self.kernel, access)

    def _is_certain(self, group: Items) -> bool:
        """Whether every item takes its elements, so that they exist, and stores what it may."""
        loads = any(a.mode == "load" for a in group.accesses)
        whole, stored = set[int](), set[int]()
        for offset in range(group.apart):
            own = [a for a in group.accesses if self.offset(group, a) == offset]
            whole |= {offset} if self._always(own) else set()
            stored |= {offset} if self._always([a for a in own if a.mode == "store"]) else set()
        # Nothing else says that they exist, and what no item stores would have to be known.
        return {0, group.apart - 1} <= whole and (loads or len(stored) == group.apart)

    def _always(self, accesses: Sequence[Access]) -> bool:
        """Whether one of them is made for every item."""
        once = [a for a in accesses if not self._in_loop(a)]
        return cover([way for a in once for way in ways(a.guard, self.held)])

    def _in_loop(self, access: Access) -> bool:
        inner = {a.name for a in self.kernel.reading.axes if a.node in self._loops}
        return bool(inner & {*access.loops})

    def _existing(self, group: Items, sure: Sequence[Items]) -> str | None:
        """What says that elements that some items do not load are there for vectors to load."""
        if any(self.effects.same(group.array, other) for other in self.kernel.reading.written):
            return None
        return existing(self.kernel, group, self.items.count, sure)

    def _check(self) -> None:
        """Raise NotLegal where items meet, or where vectors would take neighbours apart."""
        groups = (*self.found, *self.added)
        grouped = {access for group in groups for access in group.accesses}
        for access in self.accesses:
            if access.mode == "atomic" and access.own not in self.effects.unasked:
                raise NotLegal("it asks for what an atomic operation found", access.line)
            if access in grouped or access.offset is None:
                continue
            if any(access in group.accesses for group in self.left):
                self._check_left(access)
            elif {_THREAD, _BLOCK} & access.offset.symbols and not self._is_wide(access):
                reason = f"of `{access.array}` its items do not have neighbouring elements alone"
                raise NotLegal(reason, access.line)
        if not self.found and not self.added:
            raise NotLegal("its items have no neighbouring elements")
        for group in self.found:
            self._check_group(group)

    def _is_wide(self, access: Access) -> bool:
        """Whether each item's load is of an element that is a vector of the widest by itself."""
        size = self.kernel.reading.arrays[access.array].element.size or 1
        return access.mode == "load" and size % WIDEST == 0 and not self._in_loop(access)

    def _check_left(self, access: Access) -> None:
        """Raise NotLegal where what stays with an item is slow, or out of order with vectors."""
        if access.mode == "store":  # lanes would store elements with others between them
            raise NotLegal(f"`{access.array}` is stored for some items alone", access.line)
        stored = (group.array for group in self.found if group.does("store"))
        mixed = any(self.effects.same(access.array, array) for array in stored)
        if mixed or not self.found or self._in_loop(access):
            raise NotLegal(f"`{access.array}` is loaded for some items alone", access.line)

    def _check_group(self, group: Items) -> None:
        line = group.accesses[0].line
        for other in (*self.found, *self.left):
            between = (other.index - group.index).value
            # Whole vectors on, as in the next row of `#define N 512`, it begins alike.
            near = not between or between % (self.most * group.apart)
            if other is not group and other.array == group.array and between is not None and near:
                raise NotLegal(f"items share elements of `{group.array}`", line)
        every = [*self.kernel.reading.accesses]
        same = {name for name in self.kernel.reading.arrays
                if name != group.array and self.effects.same(name, group.array)}  # fmt: skip
        others = [access for access in every if access.array in same]
        both = [a for a in every if a in others or a in group.accesses]
        if not any(access.mode != "load" for access in both):
            return
        stored = {a for g in self.found if all(a.mode == "store" for a in g.accesses)
                  for a in g.accesses}  # fmt: skip
        for access in every:
            own = access in {*group.accesses} | stored or group.array in self.parted
            if access.array == group.array and not own:
                raise NotLegal("one item may read what another writes", access.line)
        for access in others:
            place = self.places.get(access)
            if place is None or not place.like(group):
                raise NotLegal("one item may read what another writes", access.line)
        if others:
            written = [at for at, a in enumerate(both) if a.mode != "load"]
            if any(a.mode == "load" for a in both[written[0] :]):
                raise NotLegal("an item reads by another name what it has written", line)
