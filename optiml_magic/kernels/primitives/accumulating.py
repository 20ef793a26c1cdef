"""P9, keep in a register: an element that every round of a loop takes, held in a local meanwhile.

``for (...) out[i] += x[k];`` becomes ``float sum = out[i]; for (...) sum += x[k]; out[i] = sum;``.
A compiler does not do so itself where it cannot tell that no other array of the loop is this one.
The local then is the place of a reduction, which other steps look for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import gcd

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Member, Unary, every
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.sizes import FIRST
from optiml_magic.kernels.ranges import holds
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    walk,
)

_SPACES = ("global", "shared")
_ONE = Polynomial.constant(1)


@dataclass(frozen=True, eq=False)
class Held:
    """One element of ``array`` that nothing but ``accesses`` touches in a loop.

    ``first`` gives it a value directly before the loop. Where it is None, the element is loaded;
    where the loop may have no round, and nothing else says that the element is there and the
    thread's own, this is done under ``test``.
    """

    array: str
    loop: Loop
    accesses: tuple[Access, ...]
    first: Statement | None
    test: str


@primitive
def in_register(kernel: Kernel) -> Kernel:
    """The kernel with each element that a loop stores to in every round as a local of the loop."""
    found = held(kernel)
    if not found:
        raise NotLegal("no loop stores to one element in all of its rounds")
    taken: list[str] = []
    swaps: dict[Node, Node] = {}
    around: dict[Loop, list[tuple[str, str, str]]] = {}
    changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for one in found:
        name = kernel.fresh(f"{one.array.replace('.', '_')}_value", *taken)
        taken.append(name)
        swaps |= {access.place: text(name) for access in one.accesses}
        there = _shown(kernel, one.accesses[0].place)
        begin = there
        if isinstance(one.first, Evaluate) and isinstance(one.first.expression, Assign):
            begin = _shown(kernel, one.first.expression.value)
            changes[one.first] = None
        kind = one.accesses[0].element.name
        around.setdefault(one.loop, []).append((f"{kind} {name} = {begin};",
                                                f"{there} = {name};", one.test))  # fmt: skip
    for loop, parts in around.items():
        whole = [*(before for before, _, _ in parts), kernel.show(loop, swaps),
                 *(after for _, after, _ in parts)]  # fmt: skip
        test = parts[0][2]
        if test:
            whole = [f"if ({test}) {{", *whole, "}"]
        changes[loop] = (lines("\n".join(whole)),)
    return kernel.rewritten(edited(kernel.function.body, changes))


def held(kernel: Kernel) -> list[Held]:
    """What may be held, of nested loops in the outermost that it may."""
    reading = kernel.reading
    stores = [a for a in reading.accesses
              if a.mode == "store" and a.loops and a.space in _SPACES]  # fmt: skip
    constant = [a for a in stores if a.index is not None and a.loops[-1]
                not in reading.symbols.inside(a.index)]  # fmt: skip
    if not constant:
        return []
    effects = Effects(kernel)
    effects.straightforward(alone=False)
    places = dict[tuple[str, Polynomial | None], Access]()
    for access in constant:
        places.setdefault((access.array, access.index), access)
    found: list[Held] = []
    done: set[tuple[str, Polynomial | None]] = set()
    reasons: list[NotLegal] = []
    for loop, axis in kernel.axes().items():
        for one in places.values():
            touching = _touching(effects, loop, one.array)
            inside = [a for a in touching if not _elsewhere(kernel, a, one)]
            if (one.array, one.index) in done or not any(a.index == one.index for a in inside):
                continue
            try:
                found.append(_Holding(kernel, effects, loop, axis, inside).held())
                done.add((one.array, one.index))
            except NotLegal as reason:
                reasons.append(reason)
    if not found and reasons:
        raise reasons[-1]
    return _apart(found)


def _touching(effects: Effects, statement: Statement, array: str) -> list[Access]:
    """What a statement does with an array, whose threads may share it."""
    inside = effects.inside(statement)
    return [
        a for a in effects.reading.accesses
        if a.own in inside and a.space in _SPACES and effects.same(a.array, array)
    ]  # fmt: skip


def _elsewhere(kernel: Kernel, access: Access, held: Access) -> bool:
    """Whether no thread is at what is held by this access.

    It is to another member, or before the element, or behind it, in a thread's own row.

    As in ``for (j = i + 1; j < n; ...) x[i] -= a[j] * x[j];`` with ``x = all + n * t``: no other
    thread reads the element meanwhile. So it is in a thread's own column, ``x[j * m + t]``.
    """
    held_at = held.index
    if access.index is None or held_at is None or access.mode == "atomic":
        return False
    if _other_member(access, held):
        return True
    if _in_column(kernel, access, access.index, held_at):
        return True
    way, symbols = access.index - held_at, kernel.reading.symbols
    if not any(holds(far - _ONE, access.guard, symbols) for far in (way, -way)):
        return False
    for form in (access.index, held_at):
        placed = index(form, "x", kernel.block[0] or 1)
        row = placed.coefficient("@x") if placed is not None else None
        if placed is None or row is None or "@x" in row.symbols:
            return False
        at = placed.without(["@x"])
        if not all(holds(f, access.guard, symbols) for f in (at, row - at - _ONE)):
            return False
    return True


def _other_member(access: Access, held: Access) -> bool:
    """Whether structures are as far apart as the members that they ask for never meet."""
    first, second = access.offset, held.offset
    sizes = access.element.size, held.element.size
    if first is None or second is None or None in sizes or access.array != held.array:
        return False
    apart = gcd(*(by for form in (first, second) for symbols, by in form.terms if symbols))
    if not apart:
        return False
    way = dict((first - second).terms).get((), 0) % apart
    return way >= (sizes[1] or 0) and apart - way >= (sizes[0] or 0)


def _in_column(kernel: Kernel, access: Access, at: Polynomial, held_at: Polynomial) -> bool:
    """Whether both are in the column of the thread, in other rows, which are as wide as sizes say.

    Where the guard keeps its index in the grid below the width no other thread has this column.
    """
    width, symbols = kernel.block[0] or 1, kernel.reading.symbols
    item = Polynomial.symbol("blockIdx.x") * Polynomial.constant(width)
    item += Polynomial.symbol("threadIdx.x")
    for name in sorted(at.symbols | held_at.symbols):
        size = Polynomial.symbol(name)
        if symbols[name].kind != "scalar" or not holds(size - item - _ONE, access.guard, symbols):
            continue
        first, second = ((form - item).coefficient(name) for form in (at, held_at))
        whole = all(not (form - item).without([name]).terms for form in (at, held_at))
        if not whole or first is None or second is None:
            continue
        if any(FIRST.keys() & symbols.inside(row) for row in (first, second)):
            continue
        way = first - second
        if any(holds(far - _ONE, access.guard, symbols) for far in (way, -way)):
            return True
    return False


def _apart(found: Sequence[Held]) -> list[Held]:
    """Of those in one loop the ones whose rounds have the same test; of nested loops the outer."""
    kept: list[Held] = []
    for one in found:
        nested = any(one.loop in loops_in(other.loop.body) or other.loop in loops_in(one.loop.body)
                     for other in kept)  # fmt: skip
        differ = any(other.loop is one.loop and other.test != one.test for other in kept)
        if not nested and not differ:
            kept.append(one)
    return kept


def _shown(kernel: Kernel, e: Expr) -> str:
    return kernel.spelled(e)


class _Holding:
    """Whether one element may be held through one loop; ``inside`` is all that may touch it."""

    def __init__(
        self, kernel: Kernel, effects: Effects, loop: Loop, axis: Axis, inside: list[Access]
    ) -> None:
        self.kernel = kernel
        self.effects = effects
        self.loop = loop
        self.axis = axis
        self.inside = inside

    def held(self) -> Held:
        self._check_element()
        check_quiet(self.kernel, self.effects, self.loop)
        first = self._first()
        test = ""
        if first is None and not self._surely():
            test = self._test()
        array = self.inside[0].array
        return Held(array, self.loop, tuple(self.inside), first, test)

    def _check_element(self) -> None:
        symbols, one = self.kernel.reading.symbols, self.inside[0]
        own = {a.name for a in self.kernel.reading.axes if a.node in set(loops_in(self.loop))}
        for access in self.inside:
            if access.index is None or access.index != one.index or access.array != one.array:
                raise NotLegal("the loop touches other elements of the array", access.line)
            if access.mode == "atomic" or access.call is not None:
                raise NotLegal("an element is not only loaded and stored", access.line)
            plain = isinstance(access.place, Index | Member | Unary) and access.element.lanes == 1
            if not plain or access.element != one.element or access.verbatim:
                raise NotLegal("an element is not taken as a whole", access.line)
        followed = one.index is not None and (symbols.known(one.index) or self._plainly_said())
        if one.index is None or not followed or own & symbols.inside(one.index):
            raise NotLegal("its rounds touch different elements", one.line)
        asked = names(access.place for access in self.inside)
        inner = {v for s in walk(self.loop) if isinstance(s, Declare) for v in s.variables}
        changed = self.effects.changed(self.loop)
        if asked & (inner | changed.keys()) or any(v.type.volatile for v in asked):
            raise NotLegal("where the element is changes in the loop", one.line)
        if any(isinstance(e, Call) for access in self.inside for e in every(access.place)):
            raise NotLegal("where the element is, a function says", one.line)

    def _plainly_said(self) -> bool:
        """Whether locals alone say where the element is: what they are, need not be followed."""
        places = {access.place for access in self.inside}
        parts = {part for place in places for part in every(place)}
        loaded = (a for a in self.kernel.reading.accesses if a.own in parts)
        own = all(v.storage in ("local", "parameter", "shared") and not v.type.reference
                  and (v.storage != "shared" or v.array) for v in names(parts))  # fmt: skip
        return own and all(a.place in places for a in loaded)

    def _first(self) -> Statement | None:
        """The assignment to the element that stands before the loop, with nothing of it between."""
        one = self.inside[0]
        for block in walk(self.kernel.function.body):
            if not isinstance(block, Block) or self.loop not in block.body:
                continue
            for statement in reversed(block.body[: block.body.index(self.loop)]):
                touched = _touching(self.effects, statement, one.array)
                if self._gives(statement, touched):
                    return statement if self._still(block, statement) else None
                if touched:
                    return None
        return None

    def _gives(self, statement: Statement, touched: Sequence[Access]) -> bool:
        one = self.inside[0]
        match statement:
            case Evaluate(expression=Assign(op="=", target=target)):
                return len(touched) == 1 and (
                    touched[0].place is target
                    and touched[0].mode == "store"
                    and touched[0].index == one.index
                    and touched[0].element == one.element
                )
        return False

    def _still(self, block: Block, statement: Statement) -> bool:
        """Whether its value may as well be computed directly before the loop."""
        assert isinstance(statement, Evaluate)
        assert isinstance(statement.expression, Assign)
        value = statement.expression.value
        between = block.body[block.body.index(statement) + 1 : block.body.index(self.loop)]
        if any(isinstance(e, Call | Assign) for e in every(value)) or self._loads(value):
            return not between
        changed = self.effects.changed(*between)
        leaves = any(isinstance(s, Leave) for s in chain.from_iterable(map(walk, between)))
        return not leaves and not names([value]) & changed.keys()

    def _loads(self, value: Expr) -> bool:
        own = {*every(value)}
        return any(access.own in own for access in self.kernel.reading.accesses)

    def _surely(self) -> bool:
        """Whether each thread that comes to the loop stores to the element, whatever the rounds."""
        one = self.inside[0]
        known = self._known(self.axis.guard)
        stores = (
            a
            for a in self.kernel.reading.of(one.array)
            if a.mode == "store" and a.index == one.index and a.element == one.element
        )
        return any(self._known(a.guard) <= known and not a.loops for a in stores) or (
            self._rounds() and self._in_each()
        )  # fmt: skip

    def _in_each(self) -> bool:
        """Whether each round stores to the element."""
        known = self._known((*self.axis.guard, self.axis.test))
        return any(a.mode == "store" and self._known(a.guard) <= known
                   and a.loops[-1] == self.axis.name for a in self.inside)  # fmt: skip

    def _rounds(self) -> bool:
        return self.axis.first or bool(self.axis.trips)

    @staticmethod
    def _known(guard: Sequence[Condition]) -> set[Condition]:
        return {part for condition in guard for part in condition.conjuncts()}

    def _test(self) -> str:
        """What says that there is a first round, in which the element is stored to."""
        if not self._in_each():
            raise NotLegal("whether a round stores to the element is not known", self.loop.line)
        return first_test(self.kernel, self.effects, self.axis)


def check_quiet(kernel: Kernel, effects: Effects, loop: Loop) -> None:
    """Raise NotLegal where a loop may end the kernel, or threads exchange something in it."""
    own = effects.inside(loop)
    for access in kernel.reading.accesses:
        if access.own in own and access.mode == "atomic":
            raise NotLegal("there is an atomic operation in the loop", access.line)
    axis = kernel.axes().get(loop)
    if axis is None or any(axis.name in barrier.loops for barrier in kernel.reading.barriers):
        raise NotLegal("threads wait for each other in the loop", loop.line)
    for e in own:
        if isinstance(e, Call) and bare(e.function).startswith("__threadfence"):
            raise NotLegal("threads tell each other something in the loop", loop.line)
    for statement in walk(loop):
        if isinstance(statement, Leave) and statement.kind == "return":
            raise NotLegal("the kernel may end in the loop", statement.line)


def first_test(kernel: Kernel, effects: Effects, axis: Axis) -> str:
    """What says, directly before a loop, that it has a first round."""
    loop, parts, spelled = axis.node, [*axis.test.conjuncts()], []
    speller = speller_before(kernel, effects, loop)
    for part in parts:
        if not isinstance(part, Compare):
            raise NotLegal("whether there is a first round is not known", loop.line)
        form = speller.local(part.form.without([axis.name]))
        try:
            spelled.append(speller.condition(Compare(part.op, form, part.roots)))
        except Unspelled as reason:
            raise NotLegal(f"its first test cannot be written: {reason}", loop.line) from reason
    return " && ".join(spelled)
