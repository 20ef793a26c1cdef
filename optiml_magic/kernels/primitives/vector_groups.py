"""Which accesses of a loop vectors may make: consecutive elements, one in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Assign, Binary, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.again import always, rounds_made
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.covering import cover, ways
from optiml_magic.kernels.primitives.effects import Effects, loops_in, parted
from optiml_magic.kernels.primitives.extents import existing, of_rows
from optiml_magic.kernels.primitives.items import Items, element, is_plain
from optiml_magic.kernels.primitives.sizes import FIRST, value
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Evaluate, Leave, Loop, Variable, Verbatim, walk

_ONE = Polynomial.constant(1)
_PARTS = (2, 3, 4)  # elements of an array that a round may take side by side: ours
_NEIGHBOURS = (FIRST, {**FIRST, "threadIdx.x": 1})


@dataclass(frozen=True)
class Whole:
    """The end of the vectors of loops that make the same rounds, from a multiple of ``width``.

    The first of the loops declares it, with the ``tests`` of all of them.
    """

    name: str
    width: int
    tests: tuple[str, ...]
    declared: bool = False


class Groups:
    """The accesses of a loop by ``groups`` of one element each, and the loads ``beside`` these.

    Those ``asked`` for are loads that some rounds leave alone, with what says that they are there.
    """

    def __init__(self, kernel: Kernel, axis: Axis, start: Polynomial) -> None:
        self.old = kernel
        self.axis = axis
        self.loop = axis.node
        self.start = start
        self.effects = Effects(kernel)
        self.groups = self._groups()
        self.asked = self._existing()
        self.groups += self.asked
        self.beside = self._beside()

    def asks(self, group: Items) -> bool:
        """Whether a round may ask for an element as it was, before it stores it anew."""
        if not group.does("load"):
            return False
        stays = any(isinstance(s, Leave) for s in walk(self.loop.body))
        near = any(group is one for one, _ in self.beside.values())
        if not group.does("store") or group.apart > 1 or stays or near:
            return True
        for statement in parted(self.loop.body):
            inside = self.effects.inside(statement)
            own = [access for access in group.accesses if access.own in inside]
            if own:
                stored = statement.expression if isinstance(statement, Evaluate) else None
                plain = isinstance(stored, Assign) and stored.op == "="
                return not plain or any(a.mode == "load" or a.node is not stored for a in own)
        return True

    def way(self, group: Items) -> int:
        """1 where a group goes up through memory as the rounds go on, -1 where it goes down.

        Where a round takes several elements, by how many it goes up.
        """
        by = group.index.coefficient(self.axis.name)
        return 1 if by is None or by.value is None else by.value

    def base(self, group: Items) -> Polynomial:
        """The element of a counter of 0; of a group that goes down the one behind it.

        Where that is the first of a vector the vectors of the rounds from there on are whole.
        """
        return self.at(group, Polynomial())

    def first(self, group: Items) -> Polynomial:
        """The same of the first round."""
        return self.at(group, self.start)

    def at(self, group: Items, counter: Polynomial) -> Polynomial:
        """The same of another value of the counter."""
        way = self.way(group)
        own = group.index.without([self.axis.name]) + Polynomial.constant(way) * (
            counter - self.start
        )
        return own if way > 0 else own + _ONE

    def together(self, wide: Callable[[Items], int]) -> tuple[Items | None, list[Items]]:
        """Which groups have vectors, and the one by which rows begin where these are whole.

        None where all rows are whole vectors, or nobody knows: at the measured sizes they are.
        Where rows of some begin elsewhere than those of others, those that are stored come first.
        """
        first, base = self._measured(self.first), self._measured(self.base)
        if first is None or base is None:
            return None, self.groups
        if not any(at % wide(group) for group, own in base.items() for at in own):
            return None, self.groups
        plain = [group for group in self.groups if group.apart == 1]
        if not plain:
            raise NotLegal("its rows begin anywhere", self.loop.line)
        first = {group: first[group] for group in plain}

        def alike(one: Items) -> list[Items]:
            ahead = [-at * self.way(one) % wide(one) for at in first[one]]
            return [
                group for group, own in first.items()
                if not any((at + n * self.way(group)) % wide(group)
                           for at, n in zip(own, ahead, strict=True))
            ]  # fmt: skip

        def worth(one: Items) -> tuple[int, int]:
            found = alike(one)
            return sum(group.does("store") for group in found), len(found)

        best = max(plain, key=worth)
        return best, alike(best)

    def _measured(self, of: Callable[[Items], Polynomial]) -> dict[Items, list[int]] | None:
        """What that is for the first threads, at the measured sizes; None where nobody knows."""
        found = {g: [value(self.old, of(g), at) for at in _NEIGHBOURS] for g in self.groups}
        if any(None in places for places in found.values()):
            return None
        return {g: [at for at in places if at is not None] for g, places in found.items()}

    def _groups(self) -> list[Items]:
        found: dict[str, list[Access]] = {}
        for access in self.effects.accesses(self.loop):
            found.setdefault(access.array, []).append(access)
        groups = []
        for variable in self.effects.changed(self.old.function.body):
            if variable.storage == "parameter" and variable.name in found:
                raise NotLegal(f"the parameter `{variable.name}` changes", self.loop.line)
        for array, every in found.items():
            others = [a for name, more in found.items() if name != array for a in more
                      if self.effects.same(name, array)]  # fmt: skip
            if any(a.mode != "load" for a in (*every, *others)):
                alike = every[0].index is not None and all(a.index == every[0].index
                                                           for a in (*every, *others))  # fmt: skip
                clusters = [every] if alike else []
                several = self._several(array, every) if not others else []
                if all(a.mode == "store" for a in every) and [len(every)] == [
                    len(group.accesses) for group in several
                ]:
                    groups += several
            else:
                clusters = self._rows(every)
                groups += self._several(array, every)
            groups += [Items(array, form, tuple(own)) for own in clusters
                       if (form := own[0].index) is not None and self._is_group(own)]  # fmt: skip
        return groups

    def _several(self, array: str, loads: Sequence[Access]) -> list[Items]:
        """The loads of which a round takes several side by side, as the parts of a number."""
        found: dict[Polynomial, dict[int, list[Access]]] = {}
        for access in loads:
            if access.index is None:
                continue
            near = (form for form in found if (access.index - form).value is not None)
            form = next(near, access.index)
            apart = (access.index - form).value or 0
            found.setdefault(form, {}).setdefault(apart, []).append(access)
        groups = []
        for form, places in found.items():
            by = form.coefficient(self.axis.name)
            count = (by.value if by is not None else None) or 0
            first = min(places)
            if count not in _PARTS or sorted(places) != list(range(first, first + count)):
                continue
            every = [
                (access, form + Polynomial.constant(apart))
                for apart, own in places.items() for access in own
            ]  # fmt: skip
            if all(map(self._certain, places.values())) and all(
                self._consecutive(access, place, count) for access, place in every
            ):
                least = form + Polynomial.constant(first)
                groups.append(Items(array, least, tuple(access for access, _ in every), count))
        return groups

    def _existing(self) -> dict[Items, str]:
        """Loads that some rounds leave alone, with what says that their elements exist."""
        written, known = self.old.reading.written, {group.array for group in self.groups}
        sure: list[Items] | None = None
        found: dict[tuple[str, Polynomial], list[Access]] = {}
        for access in self.effects.accesses(self.loop):
            if access.array not in known and access.index is not None:
                found.setdefault((access.array, access.index), []).append(access)
        asked = {}
        for (array, form), own in found.items():
            if any(self.effects.same(array, other) for other in written):
                continue
            group = Items(array, form, tuple(own))
            if not all(self._consecutive(a, form) for a in own):
                continue
            sure = [*self.groups, *self._elsewhere()] if sure is None else sure
            condition = existing(self.old, group, None, sure)
            condition = condition or of_rows(self.old, own[0], self.axis)
            if condition is not None:
                asked[group] = condition
        return asked

    def _elsewhere(self) -> Iterator[Items]:
        """What loops beside this one take in each of their rounds, which are the same.

        A softmax stores all of its row, and seeks its greatest among the elements that a mask has.
        """
        kernel, own = self.old, rounds_made(self.axis)
        blocks = (s for s in walk(kernel.function.body) if isinstance(s, Block))
        block = next((b for b in blocks if self.loop in b.body), None)
        for loop in block.body if block is not None else ():
            axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
            if axis is None or loop is self.loop or not axis.exact or rounds_made(axis) != own:
                continue
            for access in self.effects.accesses(loop):
                form, inside = access.index, kernel.reading.symbols.inside
                by = form.coefficient(axis.name) if form is not None else None
                if form is None or by is None or not always(access, axis):
                    continue
                rest = form.without([axis.name])
                if axis.name not in inside(rest) and kernel.reading.symbols.known(form):
                    here = rest + by * Polynomial.symbol(self.axis.name)
                    yield Items(access.array, here, (access,))

    def _is_group(self, accesses: Sequence[Access]) -> bool:
        """Whether vectors may bring and take these, of which each takes the same element."""
        form = accesses[0].index
        stores = [a for a in accesses if a.mode != "load"]
        return (
            form is not None
            and all(self._consecutive(a, form) for a in accesses)
            and (self._certain(stores) if stores else self._certain(accesses))
        )

    def _certain(self, accesses: Sequence[Access]) -> bool:
        """Whether every round makes one of these, by whatever way it goes."""
        held = self.axis.held
        return cover({way for access in accesses for way in ways(access.guard, held)})

    def _rows(self, loads: Sequence[Access]) -> list[list[Access]]:
        """The loads that vectors may bring: of those a constant apart the likeliest ones alone.

        They are where the first round's is aligned if the array is, and of these as many as may be.
        """
        found: dict[Polynomial, list[Access]] = {}
        for access in loads:
            if access.index is not None:
                found.setdefault(access.index, []).append(access)
        rows: list[list[Polynomial]] = []
        for form in (form for form, own in found.items() if self._is_group(own)):
            near = next((row for row in rows if (form - row[0]).value is not None), None)
            if near is None:
                rows.append([form])
            else:
                near.append(form)
        best = (max(row, key=lambda f: (not self._behind(f), len(found[f]))) for row in rows)
        return [found[form] for form in best]

    def _behind(self, form: Polynomial) -> int:
        """How many elements an index lies behind the part of it that names alone say."""
        by = form.coefficient(self.axis.name) or Polynomial()
        own = form.without([self.axis.name]) - by * self.start
        ahead = 1 if by.value == -1 else 0  # it goes down from the element before a whole vector
        return next((factor for monomial, factor in own.terms if not monomial), 0) + ahead

    def _beside(self) -> dict[Access, tuple[Items, int]]:
        """Loads so many rounds from one that a vector brings, which are in it mostly."""
        found = {}
        for group in (one for one in self.groups if one.apart == 1):
            for access in self.effects.accesses(self.loop):
                if access.array != group.array or access in group.accesses or access.index is None:
                    continue
                apart = (access.index - group.index).value
                if apart and self._consecutive(access, access.index):
                    found[access] = group, apart * self.way(group)
        return found

    def _consecutive(self, access: Access, form: Polynomial, apart: int = 1) -> bool:
        """Whether a round takes the element beside that of the round before, or so many behind."""
        by = form.coefficient(self.axis.name)
        inner = {a.name for a in self.old.reading.axes if a.node in set(loops_in(self.loop.body))}
        symbols = self.old.reading.symbols
        rest = form.without([self.axis.name])
        return (
            access.mode in ("load", "store")
            and access.index == form
            and by is not None and by.value in ((1, -1) if apart == 1 else (apart,))
            and not ({self.axis.name} | inner) & symbols.inside(rest)
            and is_plain(self.old, access)
            and not any(loop in inner for loop in access.loops)
            and element(self.effects, access) is not None
        )  # fmt: skip


def check_head(effects: Effects, loop: Loop, counter: Variable) -> None:
    """Raise NotLegal where more than its counter moves in its head, or a part of it is not read."""
    heads = [e for s in (loop.before,) if s for e in s.expressions]
    heads += [e for e in (loop.test, loop.update) if e is not None]
    if {*effects.changed(*(Evaluate(None, loop.line, e) for e in heads))} - {counter}:
        raise NotLegal("more than its counter moves with the loop", loop.line)
    for leaf in (s for s in walk(loop) if isinstance(s, Verbatim)):
        raise NotLegal(f"{leaf.reason} is not read", leaf.line)


def quotients(kernel: Kernel, loop: Loop, counter: Variable, width: int) -> dict[Binary, str]:
    """Quotients and rests of a loop's counter that whole vectors of rounds have alike, by what.

    Of a number that is a multiple of ``width``, or a size that is one as it is measured.
    """
    effects, found = Effects(kernel), dict[Binary, str]()
    sizes = kernel.facts.scalars if kernel.facts is not None else {}
    for expr in effects.inside(loop.body):
        if not isinstance(expr, Binary) or expr.op not in ("/", "%"):
            continue
        match expr.left, expr.right:
            case Name(variable=own), Literal(value=int() as by) if own is counter:
                whole, words = by > 0 and by % width == 0, str(by)
            case Name(variable=own), Name(variable=Variable(storage="parameter") as by) if (
                own is counter and by.type.base == "int" and by.name not in effects.moved
            ):
                size = sizes.get(by.name)
                whole, words = size is not None and size % width == 0, by.name
            case _:
                continue
        if whole:
            found[expr] = words
    return found
