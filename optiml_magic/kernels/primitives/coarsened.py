"""P5 and P12, coarsen and vectorise: a thread takes several items, their elements by one access.

A block takes a tile of items. Where all of them exist and every address is aligned, its threads
take neighbouring items as many at a time as 16 bytes of the widest element hold, and all loads of a
thread come before what it computes; elsewhere they take one item at a time, a block apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from optiml_magic.kernels.editing import Node, Swaps, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.adding import AT_ONCE
from optiml_magic.kernels.primitives.amid import amid, last
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.items import WIDEST, Items, element, moved
from optiml_magic.kernels.primitives.mapped import mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.neighbours import Neighbours
from optiml_magic.kernels.primitives.places import axis_of
from optiml_magic.kernels.primitives.stepped import Stepped
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, Leave, Statement, walk
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import Number, parse_expression


@dataclass(frozen=True)
class Coarse:
    """A thread takes ``items`` times ``width`` neighbouring items; blocks have ``block`` threads.

    The values of both that a tuner may choose from; blocks of more than one axis stay as they are.
    A width of 0 is as many items as 16 bytes of the widest element hold.
    """

    width: int = 0
    items: int = 1
    block: int = 256
    counts: tuple[int, ...] = (1, 2, 4)
    blocks: tuple[int, ...] = (64, 128, 256, 512, 1024)


def names(kernel: Kernel) -> tuple[str, str]:
    """What the items of a thread and the block's extent are called; empty where that stays."""
    launch = kernel.launch
    single = len(launch.block) == 1 and isinstance(launch.block[0].tree, Number)
    own = single and not kernel.function.launch_bounds
    return kernel.fresh("ITEMS"), kernel.fresh("BLOCK") if own else ""


@primitive
def coarsen(kernel: Kernel, coarse: Coarse) -> Kernel:
    """Threads of the kernel take several items along x, as vectors."""
    return _Coarsening(kernel.settled(), coarse).kernel()


class _Coarsening:
    def __init__(self, kernel: Kernel, coarse: Coarse) -> None:
        self.old = kernel
        self.coarse = coarse
        self.effects = Effects(kernel)
        self.items = mapped(kernel, self.effects)
        self.within = amid(kernel, self.items, self.effects)
        self.groups = Neighbours(kernel, self.items, self.effects, self.within)
        name = self.items.name
        fresh = kernel.fresh
        self.count, self.block = names(kernel)
        self.tile, self.start = fresh("tile"), fresh(f"{name}_start")
        self.first, self.turn, self.k = fresh(f"{name}_first"), fresh("turn"), fresh(f"{name}_item")
        self.width = coarse.width or self.groups.most
        if self.groups.fill(self.width):
            raise NotLegal("its elements fill a vector already")
        for form in self.groups.whole:
            if form.value is not None and form.value % self.width:
                raise NotLegal(f"rows of {form} items do not hold whole vectors")
        self._added = self.groups.added if self.width > 1 else ()
        self.stepped = Stepped(kernel, self.items, self.groups.whole, self.width)
        self.tests: list[str] = []  # of sizes, for vectors to be taken
        self.own: dict[Items, str] = {}
        for group in (*self.groups.found, *self._added):
            own = f"{group.array.replace('.', '_')}_items"
            self.own[group] = fresh(own, *self.own.values())

    def kernel(self) -> Kernel:
        items, words, start, turn = self.items, self.items.words, self.start, self.turn
        wide = "long" in words or "size_t" in words or "64" in words
        block = f"({words})blockIdx.x" if wide else "blockIdx.x"
        vectors = self._vectors()
        made = [
            f"const int {self.tile} = blockDim.x * {self.count} * {self.width};",
            f"const {words} {start} = {block} * {self.tile};",
            "if (" + " && ".join([f"(long long){start} + {self.tile} <= {self._bound}",
                                  *self._ended(), *self._aligned()]) + ") {",
            *vectors,
            "} else {",
            f"for (int {turn} = 0; {turn} < {self.count} * {self.width}; ++{turn}) {{",
            f"{words} {items.name} = {start} + {turn} * blockDim.x + threadIdx.x;",
            f"if ({items.name} < {self._bound}) {self._body({})}",
            "}",
            "}",
        ]  # fmt: skip
        inner: Statement = lines("\n".join(made))
        if items.tests:
            several = len(items.tests) > 1
            shown = [self._shown(test) for test in items.tests]
            test = " && ".join(f"({words})" if several else words for words in shown)
            inner = lines("\n".join([f"if ({test}) {{", *made, "}"]))
        body = replace(self.old.function.body, body=(*items.outside, inner))
        return self.old.rewritten(
            body, launch=self._launch(), directives=self._directives(),
            helpers=[AT_ONCE] if self._added else [],
        )  # fmt: skip

    def _vectors(self) -> list[str]:
        count, width = self.count, self.width
        at = f"{self.start} + ({self.turn} * blockDim.x + threadIdx.x) * {width}"
        head = [
            "#pragma unroll",
            f"for (int {self.turn} = 0; {self.turn} < {count}; ++{self.turn}) {{",
            f"const {self.items.words} {self.first} = {at};",
        ]
        declared, before, after = [], [], []
        swaps: dict[Node, Node] = {}
        for group in self._added:
            own, index = self.own[group], group.index + self.items.index
            declared.append(f"alignas({WIDEST}) {group.kind} {own}[{count} * {width}];")
            there = f"&{group.array}[{self._spelled(index, at=self.first)}]"
            here = f"{own} + {self.turn} * {width}"
            after.append(f"add_at_once<{width}>({there}, {here});")
        for group, own in self.own.items():
            if group in self._added:
                continue
            piece, whole = self.groups.piece(group, width), group.apart * width
            declared.append(f"alignas({piece}) {group.kind} {own}[{count} * {whole}];")
            for part in range(whole * group.size // piece):
                moves = self._moves(group, own, piece, part)
                before += [moves[0]] if group.does("load") else []
                after += [moves[1]] if group.does("store") else []
            for access in group.accesses:
                place = self._item(group, self.groups.offset(group, access))
                swaps[element(self.effects, access) or access.node] = text(f"{own}[{place}]")
        swaps = {**self.stepped.exchanged(self.k), **swaps} if self.width > 1 else swaps
        for group in self._added:
            (access,) = group.accesses
            call = access.node
            assert isinstance(call, Call)
            value = edited(call.arguments[1], self.within.settled({**self.items.swaps, **swaps}))
            own = f"{self.own[group]}[{self._item(group, 0)}]"
            swaps[call] = Assign(None, "=", text(own), value)
        body = self._body(swaps, amid=True)
        rows = self.stepped.before(body, self.first)
        self.tests += self.stepped.tests(body)
        each = self.stepped.each(body, self.k)
        if each:
            body = "\n".join(["{", *each, body[1:].lstrip()])
        if re.search(rf"\b{re.escape(self.items.name)}\b", body):
            words = f"{self.items.words} {self.items.name} = {self.first} + {self.k};"
            body = f"{{\n{words}\n{body[1:].lstrip()}"
        return [
            *declared,
            *([*head, *before, "}"] if before else []),
            *head,
            *rows,
            "#pragma unroll",
            f"for (int {self.k} = 0; {self.k} < {width}; ++{self.k}) {body}",
            *after,
            "}",
        ]

    def _item(self, group: Items, offset: int) -> str:
        """Where in the local array an element of the present item is."""
        item = f"{self.turn} * {self.width} + {self.k}"
        if group.backward:
            item = f"{self.turn} * {self.width} + {self.width - 1} - {self.k}"
        if group.apart == 1:
            return item
        place = f"({item}) * {group.apart}"
        return f"{place} + {offset}" if offset else place

    def _moves(self, group: Items, own: str, piece: int, at: int) -> tuple[str, str]:
        """The ``at``-th piece of a thread's elements from memory, and to it."""
        here = f"{own} + {self.turn} * {self.width * group.apart}"
        by, index = Polynomial.constant(group.apart), group.index
        if group.backward:
            index = index - by * (self.items.index + Polynomial.constant(self.width - 1))
        else:
            index = index + by * self.items.index
        word, parts = group.word(piece), self.groups.parts(group.accesses[0])
        there = f"&{group.array}[{self._spelled(index, parts, at=self.first)}]"
        many, rest = divmod(piece, group.size)
        if at and not rest and parts == 1:
            return self._both(word, f"{here} + {at * many}", f"{there[:-1]} + {at * many}]")
        return self._both(word, here, there, f"[{at}]" if at else "")

    def _both(self, word: str, here: str, there: str, at: str = "") -> tuple[str, str]:
        return moved(word, here, there, at), moved(word, there, here, at)

    def _ended(self) -> list[str]:
        """That no item of the tile is one of the few that fail a test at the ends."""
        found = []
        for end in self.within.ends:
            at = f"({self.start} + {self.tile} - 1)" if last(end) else self.start
            speller = self._speller(at)
            found.append(speller.condition(Compare(">=", speller.local(end.form), frozenset())))
        return found

    def _aligned(self) -> list[str]:
        found = []
        for group in self.groups.found:
            rest = [n for n in group.index.symbols if self.groups.steady(n)]
            index = group.index.without(rest)
            if group.backward:  # where vectors end
                index = index + Polynomial.constant(group.apart)
            at = self._spelled(index, self.groups.parts(group.accesses[0]))
            place = group.array if at == "0" else f"&{group.array}[{at}]"
            found.append(f"(size_t){place} % {self.groups.piece(group, self.width)} == 0")
        for form in self.groups.whole:
            if form.value is None and self.width > 1:
                words = self._spelled(form)
                words = f"({words})" if " " in words else words
                found.append(f"{words} % {self.width} == 0")
        return list(dict.fromkeys([*found, *self.tests]))

    @cached_property
    def _bound(self) -> str:
        return self.items.limit(self._speller())

    def _spelled(self, form: Polynomial, parts: int = 1, *, at: str = "") -> str:
        speller, whole = self._speller(at), form.divided(parts)
        assert whole is not None
        return speller.form(speller.local(whole))

    def _speller(self, at: str = "") -> LocalSpeller:
        known = dict[str, str]()
        for statement in self.items.outside:
            for variable in statement.variables if isinstance(statement, Declare) else ():
                axis = axis_of(self.old, variable.value) if variable.value is not None else ""
                if axis:
                    known.setdefault(f"@{axis}", variable.name)
        if at:
            known["@x"] = at
        reading = self.old.reading
        steady = frozenset(reading.arrays) - reading.written
        speller = LocalSpeller(
            reading.symbols, known, wide=self.old.wide, steady=steady, moved=self.effects.moved
        )
        speller.kernel = self.old
        return speller

    def _body(self, swaps: dict[Node, Node], *, amid: bool = False) -> str:
        """What is done for one item, or one ``amid`` others; ways out lead to the next."""
        leaves: dict[Node, Node] = {
            s: lines("continue;") for inside in self.items.inside for s in walk(inside)
            if isinstance(s, Leave) and s.kind == "return"
        }  # fmt: skip
        whole: Swaps = {**self.items.swaps, **leaves, **swaps}
        whole = self.within.settled(whole) if amid else whole
        shown = []
        for statement in self.items.inside:
            way = whole.get(statement, statement)
            parts = way if isinstance(way, tuple) else () if way is None else (way,)
            shown += [
                self.old.show(one, whole if one is statement else {})
                for one in parts if isinstance(one, Statement)
            ]  # fmt: skip
        return "{\n" + "\n".join(shown) + "\n}"

    def _shown(self, expr: Expr) -> str:
        return self.old.spelled(expr)

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        block = self.block or f"({launch.block[0]})"
        blocks = f"cdiv({self.items.count}, {block} * {self.count} * {self.width})"
        extents = (parse_expression(block), *launch.block[1:])
        return replace(launch, grid=(parse_expression(blocks), *launch.grid[1:]), block=extents)

    def _directives(self) -> list[Directive]:
        coarse = self.coarse
        found: list[Directive] = [TuneDirective(self.count, coarse.counts, coarse.items)]
        if self.block:
            blocks = {*coarse.blocks, self.old.block[0] or coarse.block}
            found.append(TuneDirective(self.block, tuple(sorted(blocks)), coarse.block))
        asked = dict.fromkeys(self.groups.asked.values())
        return [*found, *(RequireDirective(parse_expression(one)) for one in asked)]
