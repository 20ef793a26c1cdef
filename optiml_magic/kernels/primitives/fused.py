"""P23 and P9, fuse: two launches, one behind the other, as one kernel that does both for each item.

Threads that one launch has written for are not waited for in the next, so each element that either
writes and the other touches has to belong to one thread. What the first stores and the second loads
stays in a local; where nobody else asks for the array, it is not written at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Name
from optiml_magic.kernels.primitives.assigned import assigned
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.belonging import together
from optiml_magic.kernels.primitives.coherent import coherent, reads_only
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.flat import flat
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.meetings import first_base
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.paired import NAMES, Pair, done, numbered, paired, touching
from optiml_magic.kernels.primitives.rows import rows
from optiml_magic.kernels.primitives.serial import by_rows
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Evaluate, Leave, Statement, expressions, walk
from optiml_magic.kernels.types import named

#: One item a thread, along one axis where the launch has two for no reason.
_SHAPE = (unstrided, linear, in_full, direct, assigned)


@primitive
def fused(kernel: Kernel) -> Kernel:
    """The kernel and the one that is launched behind it as one."""
    line = _in_shape(kernel, (*_SHAPE, flat))
    if isinstance(line, Kernel) or len(kernel.launch.grid) < 2:
        return done(line)
    # Rows and columns may say which element it is where one index of all is divided for that.
    plane = _in_shape(kernel, _SHAPE)
    return done(plane if isinstance(plane, Kernel) else line)


@primitive
def _in_shape(kernel: Kernel, shape: Sequence[Callable[[Kernel], Kernel | Refused]]) -> Kernel:
    return _Fusing(_alike(_planar(_coherent(paired(kernel, shape))))).kernel()


def _coherent(pair: Pair) -> Pair:
    """The pair with plain loads of what either writes, which no load of one kernel may deny."""
    written = pair.first.reading.written | pair.second.reading.written
    if reads_only(pair.second, written):
        pair = pair.with_second(done(coherent(pair.second, written)))
    if reads_only(pair.first, written):
        pair = pair.with_first(done(coherent(pair.first, written)))
    return pair


@primitive
def fused_rows(kernel: Kernel) -> Kernel:
    """The same where one of both walks along rows: a thread of the other takes a row as well."""
    pair = paired(kernel, _SHAPE)
    if rows(pair.first):
        pair = pair.with_second(done(by_rows(pair.second, pair.first.block[0] or 1)))
    elif rows(pair.second):
        pair = pair.with_first(done(by_rows(pair.first, pair.second.block[0] or 1)))
    else:
        raise NotLegal("neither walks along rows", kernel.function.line)
    return _Fusing(_alike(_coherent(pair))).kernel()


def _planar(pair: Pair) -> Pair:
    """The pair where the second launch has the rows and columns of the first one for its items."""
    if len(pair.first.launch.grid) < 2 or len(pair.second.launch.grid) > 1:
        return pair
    return pair.with_second(where_legal(unravelled, pair.second, pair.first))


def _alike(pair: Pair) -> Pair:
    """The pair in blocks of one width, where either may have that of the other."""
    widths = pair.first.block[0], pair.second.block[0]
    if widths[0] == widths[1] or None in widths:
        return pair
    first = cut(numbered(pair.first), {"x": widths[1] or 1})
    if isinstance(first, Kernel):
        return pair.with_first(first)
    return pair.with_second(done(cut(numbered(pair.second), {"x": widths[0] or 1})))


class _Fusing:
    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        first, second = self.first, self.second = pair.first, pair.second
        self.effects = Effects(first), Effects(second)
        self.maps = mapped(first, self.effects[0]), mapped(second, self.effects[1])
        self._check_threads()
        written = first.reading.written | second.reading.written
        self.shared = {a.array for a in first.reading.accesses
                       if a.array in written and touching(second, a.array)}  # fmt: skip
        for array in sorted(self.shared):
            self._check_apart(array)
        self.passed = {
            array: stored for array in sorted(self.shared)
            if (stored := self._passed(array)) is not None
        }  # fmt: skip
        self.items: dict[str, str] = {}
        for array in self.passed:
            self.items[array] = first.fresh(f"{array}_item", *self.items.values())
        again = {a for a in self.passed if self._last(1, a)[1] is not None}
        self.gone = {array for array in self.passed if pair.alone(array)} - again
        self.unstored = self.gone | again  # by the first kernel

    # -- what makes it legal

    def _check_threads(self) -> None:
        """Raise NotLegal where the threads of both are not the same ones."""
        one, other = self.first.launch, self.second.launch
        if [*map(str, one.grid[1:])] != [*map(str, other.grid[1:])]:
            raise NotLegal("their launches have other axes", self.second.function.line)
        if [*map(str, one.block[1:])] != [*map(str, other.block[1:])]:
            raise NotLegal("their blocks have other axes", self.second.function.line)
        if self.maps[0].held != self.maps[1].held:
            raise NotLegal("their guards are not the same", self.second.function.line)
        for statement in (s for inside in self.maps[0].inside for s in walk(inside)):
            if isinstance(statement, Leave) and statement.kind == "return":
                raise NotLegal("an item is left before its end", statement.line)

    def _check_apart(self, array: str) -> None:
        """Raise NotLegal where an element may belong to other threads in the second kernel."""
        for one in touching(self.first, array):
            for other in touching(self.second, array):
                if one.mode == other.mode == "load":
                    continue
                if not together(self.first, one, self.second, other):
                    reason = f"another thread may have written what is read of `{array}`"
                    raise NotLegal(reason, other.line)

    def _passed(self, array: str) -> Access | None:
        """The last store of an item, that all loads of the second kernel are after.

        The second one may store to the element as well, once all of its loads are done.
        """
        own, store = self._last(0, array)
        more, again = self._last(1, array)
        if store is None or not more or (again is None and any(a.mode != "load" for a in more)):
            return None
        if not any(a.mode == "load" for a in more):
            return None
        for at, accesses in enumerate((own, more)):
            kernel, effects = (self.first, self.second)[at], self.effects[at]
            alike = all(
                a.index == store.index and is_plain(kernel, a) and a.call is None
                and _is_of(element(effects, a), array)
                for a in accesses
            )  # fmt: skip
            if not alike or self._named_in(at, array) != len(accesses):
                return None
        return store

    def _last(self, at: int, array: str) -> tuple[list[Access], Access | None]:
        """A kernel's accesses to an array, and its one store that is made last, of every item."""
        accesses = touching((self.first, self.second)[at], array)
        stores = [a for a in accesses if a.mode != "load"]
        if len(stores) != 1 or stores[0].mode != "store":
            return accesses, None
        node, inside = stores[0].node, self.maps[at].inside
        if not isinstance(node, Assign) or node.op != "=":
            return accesses, None
        own = (n for n, s in enumerate(inside) if isinstance(s, Evaluate) and s.expression is node)
        place = next(own, None)
        if place is None:
            return accesses, None
        before = {e for s in inside[: place + 1] for e in expressions(s)}
        done = all(a.node in before for a in accesses)
        early = [s for part in inside[:place] for s in walk(part) if isinstance(s, Leave)]
        if any(s.kind == "return" for s in early):
            return accesses, None
        return accesses, stores[0] if done else None

    def _named_in(self, at: int, array: str) -> int:
        """How often a kernel names an array."""
        kernel = (self.first, self.second)[at]
        own = (e for e in expressions(kernel.function.body) if isinstance(e, Name))
        return sum(e.name == array for e in own)

    # -- what is made

    def kernel(self) -> Kernel:
        return self.pair.as_one("\n".join(self._body()), self.gone)

    def _body(self) -> list[str]:
        second = self.maps[1]
        outside = [self.second.show(s) for s in second.outside]
        made = [*outside, f"{second.words} {second.name} = blockIdx.x * blockDim.x + threadIdx.x;"]
        speller = LocalSpeller(self.second.reading.symbols, {}, moved=self.effects[1].moved)
        speller.kernel = self.second
        bound = second.limit(speller)
        tests = [self._shown(second, test) for test in second.tests]
        inner = [*self._earlier(outside), *self._later()]
        if second.leaves:
            made.append(f"if ({second.name} >= {bound}) return;")
        else:
            tests.append(f"{second.name} < {bound}")
        if not tests:
            return [*made, *inner]
        test = tests[0] if len(tests) == 1 else " && ".join(f"({t})" for t in tests)
        return [*made, f"if ({test}) {{", *inner, "}"]

    def _shown(self, items: Mapped, expr: Expr) -> str:
        shown = self.second.show(Evaluate(None, 0, expr), dict(items.swaps))
        return shown.removesuffix(";")

    def _earlier(self, outside: Sequence[str]) -> list[str]:
        """What the first kernel does for its item, in braces where names would meet."""
        items, later = self.maps
        swaps: dict[Node, Node] = dict(items.swaps)
        own = self._declared(items)
        words = {
            w for s in (*later.outside, *later.inside) for w in NAMES.findall(self.second.show(s))
        } | {p.name for p in self.second.function.parameters} | {later.name}  # fmt: skip
        extra = [
            shown for s in items.outside if isinstance(s, Declare)
            and (shown := self.first.show(s)) not in outside
        ]  # fmt: skip
        renamed = (items.name, self._kind(items)) != (later.name, self._kind(later))
        apart = bool(own & words) or renamed or bool(extra)
        before: list[str] = []
        inner: list[str] = []
        if renamed:
            name = items.name
            if name == later.name:
                name = self.first.fresh(f"{name}_{self.first.function.name}")
                swaps |= self._named(name)
            inner.append(f"{items.words} {name} = {later.name};")
        inner += extra
        for statement in items.inside:
            stored = statement.expression if isinstance(statement, Evaluate) else None
            array = next((n for n, a in self.passed.items() if a.node is stored), "")
            if not array:
                inner.append(self.first.show(statement, swaps))
                continue
            inner += self._kept(array, statement, swaps, before if apart else None)
        return [*before, "{", *inner, "}"] if apart else inner

    def _kind(self, items: Mapped) -> tuple[int | None, bool]:
        """What the index is, whatever it is spelled as."""
        kind = named(items.words, self.first.unit.aliases)
        return kind.size, kind.signed

    def _named(self, new: str) -> dict[Node, Node]:
        """What to exchange in the first kernel, so that its item's index has another name."""
        body, own = self.first.function.body, self.maps[0].holding
        found: dict[Node, Node] = dict.fromkeys(self.maps[0].swaps, text(new))
        return found | {e: text(new) for e in expressions(body)
                        if isinstance(e, Name) and e.variable is own is not None}  # fmt: skip

    def _kept(
        self, array: str, statement: Statement, swaps: dict[Node, Node], before: list[str] | None
    ) -> list[str]:
        """A store into the local that stands for the element, and into the element if it stays."""
        store = self.passed[array].node
        assert isinstance(store, Assign)
        item, kind = self.items[array], self.passed[array].element.name
        value = self.first.show(Evaluate(None, 0, store.value), swaps)
        found = []
        if before is None:
            found.append(f"{kind} {item} = {value}")
        else:
            before.append(f"{kind} {item};")
            found.append(f"{item} = {value}")
        if array not in self.unstored:
            found.append(self.first.show(statement, {**swaps, store.value: text(item)}))
        return found

    def _later(self) -> list[str]:
        items = self.maps[1]
        swaps: dict[Node, Node] = dict(items.swaps)
        for array, item in self.items.items():
            for access in touching(self.second, array):
                if access.mode != "load":
                    continue
                swaps[element(self.effects[1], access) or access.node] = text(item)
        given = set(NAMES.findall(self.first.show(self.first.function.body)))
        given -= self._declared(self.maps[0]) | {self.maps[0].name} | self.gone
        clash = sorted(self._declared(items) & given)
        if clash:
            raise NotLegal(f"both kernels call something `{clash[0]}`", self.second.function.line)
        return [self.second.show(s, swaps) for s in items.inside]

    @staticmethod
    def _declared(items: Mapped) -> set[str]:
        every = (s for part in (*items.outside, *items.inside) for s in walk(part))
        return {v.name for s in every if isinstance(s, Declare) for v in s.variables}


def _is_of(expr: Expr | None, array: str) -> bool:
    """Whether this is an element of an array by its own name."""
    base = first_base(expr) if isinstance(expr, Index) else None
    return isinstance(base, Name) and base.name == array
