"""P23, inline: a map is computed where the next launch asks for its elements, and no longer stored.

The next launch may ask for them in any order and as often as it likes: a reduction, a stencil.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.editing import lines as written
from optiml_magic.kernels.expressions import Assign, Binary, Choice, Expr, Index, Name, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.assigned import assigned
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.flat import flat
from optiml_magic.kernels.primitives.grids import form_of
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.primitives.mapped import mapped
from optiml_magic.kernels.primitives.meetings import first_base
from optiml_magic.kernels.primitives.paired import NAMES, Pair, paired, touching
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sunk import sunk
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Verbatim,
    expressions,
    walk,
)

_SHAPE = (assigned, unstrided, linear, flat, sunk)


@primitive
def inlined(kernel: Kernel) -> Kernel:
    """The kernel behind this one, which computes for itself what this one stores in scratch."""
    pair = paired(kernel)
    for step in _SHAPE:
        pair = pair.with_first(where_legal(step, pair.first))
    return Inlining(pair).kernel()


class Inlining:
    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.first, self.second = pair.first, pair.second
        self.effects = Effects(self.first), Effects(self.second)
        self.items = mapped(self.first, self.effects[0])
        self.whole, self.bound = self._all()
        self.store, self.at = self._stored()
        self.array = self.store.array
        #: What an item that is changed in place is before.
        self.own = [a for a in touching(self.first, self.array) if a.mode == "load"]
        self._check_array()
        self.loads = touching(self.second, self.array)
        self._check_loads()

    # -- what makes it legal

    def _all(self) -> tuple[Polynomial, Polynomial]:
        """The index of an item, and how many there are."""
        return self.items.index, self.items.bound

    def _check_work(self) -> None:
        for part in self.items.inside:
            for loop in loops_in(part):
                raise NotLegal("whoever asks for an element would repeat a loop", loop.line)

    def _stored(self) -> tuple[Access, Evaluate]:
        """The one store of an item, and its statement."""
        self._check_work()
        stores = [a for a in self.first.reading.accesses if a.mode != "load"]
        inside = [s for part in self.items.inside for s in walk(part)]
        if any(isinstance(s, Leave) and s.kind == "return" for s in inside):
            raise NotLegal("an item is left before its end", self.first.function.line)
        if len(stores) != 1 or not is_plain(self.first, stores[0]):
            raise NotLegal("it stores more than one element an item", self.first.function.line)
        (store,) = stores
        for statement in self.items.inside:
            if isinstance(statement, Evaluate) and statement.expression is store.node:
                node = store.node
                if isinstance(node, Assign) and node.op == "=" and store.index == self.whole:
                    return store, statement
        raise NotLegal("it does not always store an element of its item's index", store.line)

    def _check_array(self) -> None:
        """Raise NotLegal where somebody else may ask for the array, or for more of it."""
        line = self.store.line
        if not (self.pair.alone(self.array) if not self.own else self.pair.last(self.array)):
            raise NotLegal(f"`{self.array}` is asked for elsewhere", line)
        scratch = next(s for s in self.pair.program.scratch if s.name == self.array)
        if form_of(scratch.count.tree) != self.bound:
            raise NotLegal(f"not all of `{self.array}` is certain to be stored", line)
        self._check_own()
        self.effects[1].straightforward(lanes=True, alone=False)
        read = {a.array for a in self.first.reading.accesses if a.mode == "load"}
        for access in self.second.reading.accesses:
            if access.mode != "load" and access.space == "global" and access.array in read:
                raise NotLegal(f"`{access.array}` is written before it is read again", access.line)

    def _check_own(self) -> None:
        """Raise NotLegal where an item reads more of the array than what it is itself."""
        until = self.items.inside.index(self.at) + 1
        before = {e for s in self.items.inside[:until] for e in expressions(s)}
        named = [e for e in expressions(self.first.function.body) if isinstance(e, Name)]
        plain = all(
            a.index == self.whole and a.node in before and is_plain(self.first, a)
            for a in self.own
        )  # fmt: skip
        if not plain or sum(e.name == self.array for e in named) != len(self.own) + 1:
            raise NotLegal("it reads what it stores elsewhere, or once more", self.store.line)

    def _check_loads(self) -> None:
        function = self.second.function
        own = [e for e in expressions(function.body) if isinstance(e, Name)]
        if not self.loads or sum(e.name == self.array for e in own) != len(self.loads):
            raise NotLegal(f"`{self.array}` is not asked for element by element", function.line)
        for access in self.loads:
            base = first_base(access.node) if isinstance(access.node, Index) else None
            named = isinstance(base, Name) and base.name == self.array
            if access.mode != "load" or not named or not is_plain(self.second, access):
                raise NotLegal(f"`{self.array}` is not only read", access.line)
        own_names = {v.name for s in walk(self.first.function.body) if isinstance(s, Declare)
                     for v in s.variables} | {self.items.name}  # fmt: skip
        given = set(NAMES.findall(self.first.show(self.first.function.body))) - own_names
        inner = [s for s in walk(function.body) if isinstance(s, Declare)]
        hidden = {v.name for s in inner for v in s.variables} | self.effects[1].moved
        for name in sorted(given & hidden):
            raise NotLegal(f"both kernels call something `{name}`", function.line)

    # -- what is made

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        taken: list[str] = []
        around = {s: b for b in walk(self.second.function.body) if isinstance(b, Block)
                  for s in b.body}  # fmt: skip
        before: dict[Block, dict[str, str]] = {}
        for statement, asked in self._asking():
            made: list[str] = []
            inner: dict[Node, Node] = {}
            known: dict[str, str] = {}
            if statement in around:
                known |= before.setdefault(around[statement], {})
            for access in asked:
                form = str(access.index)
                if access.index is None or form not in known:
                    item = self.first.fresh(f"{self.array}_item", *taken)
                    taken.append(item)
                    self._check_copies(len(taken))
                    known[form] = item
                    made += self._computed(statement, access, item)
                    if statement in around and self._lasts(access.index):
                        before[around[statement]][form] = item
                inner[access.node] = text(known[form])
            new = edited(statement, inner)
            swaps[statement] = (written("\n".join(made)), replace(new, lead=None))
        for statement in [s for s in swaps if isinstance(s, If)]:
            swaps[statement] = self._outer(statement, swaps)
        body = self.second.show(edited(self.second.function.body, swaps))
        gone = set[str]() if self.own else {self.array}
        return self.pair.as_one(body.strip()[1:-1].strip("\n"), gone)

    def _check_copies(self, count: int) -> None:
        """Raise NotLegal where so many places that compute an element are too many."""

    def _lasts(self, form: Polynomial | None) -> bool:
        """Whether an index is the same for the statements behind as well, in the same block."""
        symbols, plain = self.second.reading.symbols, ("scalar", "builtin", "counter", "operation")
        if form is None or self.effects[1].moved:
            return False
        return all(symbols[name].kind in plain for name in symbols.inside(form))

    def _outer(
        self, branch: If, swaps: dict[Node, Node | tuple[Statement, ...] | None]
    ) -> tuple[Statement, ...]:
        """A branch that asks in its test, with what its arms ask for as well."""
        made = swaps.pop(branch)
        assert isinstance(made, tuple)
        *before, last = made
        return (*before, edited(last, swaps))

    def _asking(self) -> Iterator[tuple[Statement, list[Access]]]:
        """The statements that ask for elements, which they are certain to do as they begin."""
        for statement in walk(self.second.function.body):
            own = {e for top in statement.expressions for e in every(top)}
            asked = [a for a in self.loads if a.node in own]
            if not asked:
                continue
            if isinstance(statement, Loop | Verbatim) or self._is_head(statement):
                raise NotLegal("a loop asks for it in its head", statement.line)
            tops = statement.expressions
            only = isinstance(statement, Evaluate)
            moving = [e for e in own if isinstance(e, Assign | Step)
                      and not (only and e is tops[0])]  # fmt: skip
            several = isinstance(statement, Declare) and len(statement.variables) > 1
            if moving or several:
                raise NotLegal("what is asked for may change before", statement.line)
            sure = {e for top in tops for e in certain(top)}
            for access in asked:
                if access.node not in sure:
                    raise NotLegal("it is asked for only sometimes", access.line)
            yield statement, asked

    def _is_head(self, statement: Statement) -> bool:
        heads = (s for s in walk(self.second.function.body) if isinstance(s, Loop | If))
        return any(statement is s.before for s in heads)

    def _computed(self, statement: Statement, access: Access, item: str) -> list[str]:  # noqa: ARG002
        """The lines that compute one element into a local, for a statement that asks for it."""
        assert isinstance(access.node, Index)
        items = self.items
        index = self.second.spelled(access.node.index)
        words = set(NAMES.findall(self.second.program.text))
        name = items.name
        later = set(NAMES.findall(self.second.show(self.second.function.body)))
        if name in later:
            name = self.first.fresh(f"{self.array}_at", *words)
        within = (d for s in (*items.outside, *items.inside) for d in walk(s))
        bound = any(v.type.reference for d in within if isinstance(d, Declare) for v in d.variables)
        # A reference to what may change cannot be bound to a constant.
        head = f"{'' if bound else 'const '}{items.words} {name} = {index};"
        return self._lines(item, head, self._places(name))

    def _places(self, name: str) -> dict[Node, Node]:
        """What stands for the item's index, and for the local that holds it."""
        items = self.items
        own = [e for e in expressions(self.first.function.body) if isinstance(e, Name)]
        named = [e for e in own if e.variable is items.holding is not None]
        return dict.fromkeys((*items.swaps, *named), text(name))

    def _lines(self, item: str, head: str, swaps: dict[Node, Node]) -> list[str]:
        """What an item of the first kernel does, the places of which ``head`` says."""
        store = self.store.node
        assert isinstance(store, Assign)
        outside = [self.first.show(s, swaps) for s in self.items.outside if isinstance(s, Declare)]
        inside = []
        for statement in self.items.inside:
            if statement is self.at:
                value = self.first.show(Evaluate(None, 0, store.value), swaps)
                inside.append(f"{item} = {value}")
            else:
                inside.append(self.first.show(statement, swaps))
        return [f"{self.store.element.name} {item};", "{", head, *outside, *inside, "}"]


def certain(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are certain to be evaluated."""
    yield expr
    match expr:
        case Choice(test=test):
            yield from certain(test)
        case Binary(op="&&" | "||", left=left):
            yield from certain(left)
        case _:
            for part in expr.parts:
                yield from certain(part)
