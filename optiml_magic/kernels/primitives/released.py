"""P10 undone: counters that a block keeps in shared memory, as updates of the array itself.

A block sets its copy to zero, waits, updates it, waits, and adds each element to the array's own.
Rules then see one item a thread, and keep copies with as many blocks and loads as they like. What
the least or the greatest of a block begins with is combined into the array as well, by each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.block_threads import BlockThreads, by_one_at_least
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.one_extent import one_extent
from optiml_magic.kernels.primitives.updates import (
    Update,
    Updated,
    elements_alone,
    fixed,
    leaves,
    updated,
)
from optiml_magic.kernels.reading import Access, Space
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType, named

_BARRIER = "__syncthreads"
_SHARED: tuple[Space, ...] = ("shared",)
_ZEROES = frozenset("+|^")  # operations that zero changes nothing of
_ROUNDED = "the rounding of products"
_AGAIN = frozenset(("min", "max", "&"))  # those that the same value may be combined by again


@dataclass(frozen=True, eq=False)
class _Copy:
    """``own`` is updated in shared memory, and ``whole`` at its end, ``base`` elements further."""

    own: Updated
    whole: Updated
    base: Polynomial
    first: Expr | None  # what it begins with, where that is no zero
    element: Expr  # its element, in what is added to the array: as it is, or times a number
    added: Expr


@primitive
def released(kernel: Kernel) -> Kernel:
    """The kernel with its shared counters' updates in the array that these are added to."""
    if not any(access.space == "shared" for access in kernel.reading.accesses):
        raise NotLegal("its threads share no memory")
    return _Releasing(where_legal(one_extent, kernel)).kernel()


class _Releasing:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.effects.straightforward(alone=False)
        if None in kernel.block or kernel.launch.shared:
            raise NotLegal("its blocks have no fixed extents")
        line = leaves(kernel.function.body)
        if line:
            raise NotLegal("threads leave before their block adds up", line)
        self.threads = BlockThreads(kernel)
        parts = _between_barriers(kernel.function.body.body)
        if len(parts) != 3 or len(kernel.reading.barriers) != 2:  # zeros, updates, sums
            raise NotLegal("its block does not wait twice")
        self.before, self.updating, self.after = parts
        self.dropped = {s for s in self.before if self._shared(s)}
        self.begun: dict[str, list[Access]] = {}
        for statement in self.dropped:
            for access in self._begun(statement):
                self.begun.setdefault(access.array, []).append(access)
        self.dropped |= {s for s in self.after if self._shared(s)}

    def kernel(self) -> Kernel:
        copies = self._copies()
        scaled = any(copy.added is not copy.element for copy in copies)
        made = self._released(copies)
        return replace(made, arithmetic=(*made.arithmetic, *(_ROUNDED,) * scaled))

    def _released(self, copies: Sequence[_Copy]) -> Kernel:
        swaps: dict[Node, Node | tuple[Statement, ...]] = {}
        for copy in copies:
            for update in copy.own.updates:
                swaps |= self._moved(copy, update)
        body = self.old.function.body
        own = {copy.own.array for copy in copies}
        kept = list[Statement]()
        for statement in body.body:
            if statement in self.dropped or _is_barrier(statement):
                continue
            if isinstance(statement, Declare):
                others = tuple(v for v in statement.variables if v.name not in own)
                if not others:
                    continue
                if others != statement.variables:
                    kept.append(replace(statement, variables=others, span=None))
                    continue
            kept.append(statement)
        kept, begun = self._asked(kept), [self._beginning(c) for c in copies if c.first is not None]
        first = kept[-1] if begun and kept else None
        if isinstance(first, If) and isinstance(first.then, Block) and first.other is None:
            then = replace(first.then, body=(*map(lines, begun), *first.then.body))
            inner = (*kept[:-1], replace(first, then=then))
            made = self.old.rewritten(edited(replace(body, body=inner), swaps))
            if by_one_at_least(made, {copy.whole.array for copy in copies}):
                return made
        outer = (*map(lines, begun), *kept)
        return self.old.rewritten(edited(replace(body, body=outer), swaps))

    def _asked(self, kept: list[Statement]) -> list[Statement]:
        """The statements but for locals that only what was dropped asked for."""
        gone = names(e for s in self.dropped for w in walk(s) for e in w.expressions)
        asked = names(e for s in kept for w in walk(s) for e in w.expressions)
        for at, statement in enumerate(kept):
            if isinstance(statement, Declare) and statement.variables:
                own = {*statement.variables}
                quiet = not any(isinstance(e, Call) for e in self.effects.inside(statement))
                if quiet and own <= (gone & self.effects.lasting) - asked and not (
                    self.effects.accesses(statement) or self._shared(statement)
                ):  # fmt: skip
                    return self._asked([*kept[:at], *kept[at + 1 :]])
        return kept

    def _shared(self, statement: Statement) -> list[Access]:
        inside = self.effects.inside(statement)
        return [a for a in self.old.reading.accesses if a.own in inside and a.space == "shared"]

    def _begun(self, statement: Statement) -> list[Access]:
        """The shared elements that a statement sets. Raises NotLegal where it does more."""
        accesses = self._shared(statement)
        own = {a.array for a in accesses}
        if isinstance(statement, Declare):
            raise NotLegal("its block begins as it declares something", statement.line)
        values = all(a.mode == "store" and self._given(a.value) for a in accesses)
        calls = any(isinstance(e, Call) for e in self.effects.inside(statement))
        changed = {v for v in self.effects.changed(statement) if v.name not in own}
        if not values or calls or self.effects.accesses(statement) or changed:
            raise NotLegal("its block does not begin with zeros, or what is given", statement.line)
        return accesses

    def _given(self, value: Expr | None) -> bool:
        """Whether it is made of numbers, names for these, and parameters that stay."""
        match value:
            case Literal():
                return True
            case Name(variable=None):
                return builtin(value) is None
            case Name(variable=Variable(storage="parameter", type=kind, name=name)):
                return not kind.depth and not kind.reference and name not in self.effects.moved
            case Unary(op="+" | "-" | "~") | Cast() | Binary(op="+" | "-" | "*" | "<<" | ">>"):
                return all(self._given(part) for part in value.parts)
        return False

    def _first(self, own: Updated) -> Expr | None:
        """What the elements of a copy begin with; None for zeros. Raises NotLegal."""
        values = [access.value for access in self.begun.get(own.array, ())]
        zeros = [isinstance(v, Literal) and v.value == 0 for v in values]
        if own.op in _ZEROES and values and all(zeros):
            return None
        line = own.updates[0].access.line
        if own.op in _AGAIN and len(values) == 1 and self._count(own, line) == 1:
            return values[0]
        raise NotLegal(f"`{own.array}` does not begin with zeros", line)

    def _beginning(self, copy: _Copy) -> str:
        """What a copy began with, combined into the array."""
        assert copy.first is not None
        value = f"({copy.own.kind})({self.old.spelled(copy.first)})"
        return f"{copy.whole.function}({self._there(copy, '0')}, {value});"

    def _count(self, own: Updated, line: int) -> int:
        """How many elements a copy has."""
        array = self.old.reading.arrays.get(own.array)
        extents = array.extents if array is not None else ()
        if array is None or array.dynamic or len(extents) > 1:
            raise NotLegal(f"how many elements `{own.array}` has is not a number", line)
        count = extents[0].value if extents and extents[0] is not None else None
        if extents and count is None:
            raise NotLegal(f"how many elements `{own.array}` has is not a number", line)
        return 1 if count is None else count

    def _copies(self) -> list[_Copy]:
        found = list[_Copy]()
        middle = Block(None, 0, tuple(self.updating))
        for own in updated(self.old, middle, _SHARED):
            if isinstance(own, Refused):
                raise NotLegal(own.reason, own.line)
            end = self._end(own.array, self.after)
            if end is None or own.array not in self.begun:
                line = own.updates[0].access.line
                raise NotLegal(f"`{own.array}` is not added to an array once", line)
            found.append(self._copy(own, end))
        arrays = {copy.own.array for copy in found}
        for access in self.old.reading.accesses:
            if access.space == "shared" and access.array not in arrays:
                raise NotLegal(f"`{access.array}` is shared for something else", access.line)
        self._check_apart()
        elements_alone(self.old, arrays)
        if len({(copy.whole.array, copy.base) for copy in found}) != len(found):
            raise NotLegal("two copies are added to one array")
        return found

    def _end(self, array: str, statements: Iterable[Statement]) -> Statement | None:
        """The one statement that asks for an array, of several that share a loop or a test."""
        held = [(s, {a.array for a in self._shared(s)}) for s in statements]
        ends = [s for s, arrays in held if array in arrays]
        if len(ends) != 1:
            return None
        match ends[0]:
            case (
                Block(body=inner) | Loop(body=Block(body=inner)) |
                If(then=Block(body=inner), other=None, before=None)
            ) if len({a.array for a in self._shared(ends[0])}) > 1:  # fmt: skip
                alone = all(self._shared(s) or isinstance(s, Blank) for s in inner)
                return self._end(array, inner) if alone else None
        return ends[0]

    def _copy(self, own: Updated, end: Statement) -> _Copy:
        """What a statement adds an array to. Raises NotLegal where it does more, or not all."""
        loads = [a for a in self._shared(end) if a.array == own.array]
        wholes = [*updated(self.old, end, apart=True)]
        whole = wholes[0] if len(wholes) == 1 else None
        if not isinstance(whole, Updated) or len(whole.updates) != 1 or whole.op != own.op:
            raise NotLegal(f"`{own.array}` is not added to one array", end.line)
        update, first = whole.updates[0], min(loads, key=lambda load: len(load.guard))
        if any(load.mode != "load" for load in loads):
            raise NotLegal("more than its elements is added", end.line)
        others = [a for a in self.effects.accesses(end) if a is not update.access]
        alike = {a.index for a in loads} == {first.index} and len(loads) == len(self._shared(end))
        if others or not alike or first.index is None or update.access.index is None:
            raise NotLegal("more than its elements is added", end.line)
        alike = own.type == whole.type or (own.little and _holds(whole.type, own.type))
        if not alike or update.negative or self.effects.changed(end):
            raise NotLegal(f"`{own.array}` and `{whole.array}` are not alike", end.line)
        base = self.threads.plain(update.access.index) - self.threads.plain(first.index)
        if not fixed(self.old, base):
            raise NotLegal("its elements are not added to as many in a row", end.line)
        for access in self.old.reading.accesses:
            ending = access.mode == "atomic" and access.array == whole.array and any(
                access.own in self.effects.inside(s) for s in self.after if self._shared(s)
            )  # fmt: skip
            if not ending and self.effects.same(access.array, whole.array):
                raise NotLegal(f"`{whole.array}` is touched in another way as well", access.line)
        if not self.threads.each_once(first, self._count(own, end.line)):
            raise NotLegal(f"not each element of `{own.array}` is added", end.line)
        value = update.value
        while isinstance(value, Cast) and own.exact:
            if named(value.type, self.old.unit.aliases) not in (own.type, whole.type):
                break
            value = value.operand
        update = replace(update, value=value)
        element = self._element(own, end, {a.node for a in loads}, update)
        return _Copy(own, whole, base, self._first(own), element, value)

    def _element(self, own: Updated, end: Statement, loads: set[Expr], update: Update) -> Expr:
        """The element in what is added. Raises NotLegal where more decides on it than its zeros."""
        held = set[Variable]()
        counts = not own.type.signed and own.type.integral
        counts |= own.little

        def element(expr: Expr) -> bool:
            return expr in loads or (isinstance(expr, Name) and expr.variable in held)

        def scaled(value: Expr) -> Expr | None:
            match value:
                case _ if element(value):
                    return value
                case _ if own.op != "+" or own.exact:
                    return None
                case Binary(op="*" | "/", left=left, right=right) if self._given(right):
                    return scaled(left)
                case Binary(op="*", left=left, right=right) if self._given(left):
                    return scaled(right)
            return None

        def follow(statement: Statement) -> None:
            match statement:
                case Block(body=body):
                    for inner in body:
                        follow(inner)
                    return
                case Declare(variables=(only,)) if only.value in loads and not only.type.depth:
                    if named(only.type.base, self.old.unit.aliases) == own.type:
                        held.add(only)
                        return
                case Loop(body=body) if loads <= self.effects.inside(body):
                    follow(body)
                    return
                case If(test=test, then=then, other=None, before=None):
                    # What is asked before all loads is among the guards of the first of them.
                    zeros = own.op in _ZEROES and _not_zero(test, element, counts=counts)
                    if loads <= self.effects.inside(then) or zeros:
                        follow(then)
                        return
                case Evaluate() if statement is update.statement and scaled(update.value):
                    return
                case Blank():
                    return
            raise NotLegal("more than its elements is added", statement.line)

        follow(end)
        found = scaled(update.value)
        assert found is not None
        return found

    def _check_apart(self) -> None:
        """Raise NotLegal where threads see behind a barrier what others wrote to global memory."""
        parts = [Block(None, 0, tuple(part)) for part in (self.before, self.updating, self.after)]
        touched = [self.effects.accesses(part) for part in parts]
        for at, part in enumerate(touched):
            others = [a for n, more in enumerate(touched) if n != at for a in more]
            for access in part:
                if access.mode != "load" and any(
                    self.effects.same(access.array, other.array) for other in others
                ):
                    raise NotLegal(f"`{access.array}` is touched around a barrier", access.line)

    def _moved(self, copy: _Copy, update: Update) -> dict[Node, Node | tuple[Statement, ...]]:
        """The same update of the array itself."""
        call = update.access.node
        assert isinstance(call, Call)
        if call.function not in (copy.whole.function, "atomicSub"):
            raise NotLegal(f"`{call.function}` is seen by its block alone", update.access.line)
        there = self._there(copy, self.old.spelled(update.index))
        value = self.old.spelled(call.arguments[1])
        if copy.added is not copy.element:
            words = text(f"({copy.own.kind})({value})")
            value = self.old.spelled(edited(copy.added, {copy.element: words}))
        return {update.statement: (lines(f"{call.function}({there}, {value});"),)}

    def _there(self, copy: _Copy, index: str) -> str:
        """Where an element of a copy lies in the array."""
        speller = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.old
        base = speller.form(copy.base)
        return f"&{copy.whole.array}[{index if base == '0' else f'{base} + ({index})'}]"


def _between_barriers(statements: Sequence[Statement]) -> list[list[Statement]]:
    """The statements before the first barrier, between two of them, and behind the last."""
    found: list[list[Statement]] = [[]]
    for statement in statements:
        if _is_barrier(statement):
            found.append([])
        else:
            found[-1].append(statement)
    return found


def _is_barrier(statement: Statement) -> bool:
    match statement:
        case Evaluate(expression=Call(function=function)):
            return function == _BARRIER
    return False


def _holds(wide: CType, narrow: CType) -> bool:
    """Whether each number that is not negative is the same in the wider type."""
    return wide.integral and narrow.integral and (wide.size or 0) > (narrow.size or 0)


def _not_zero(test: Expr, element: Callable[[Expr], bool], *, counts: bool) -> bool:
    """Whether a test is that an element is not zero, or of ``counts`` above it."""
    match test:
        case Binary(op=op, left=left, right=Literal(value=0)):
            return element(left) and (op == "!=" or (op == ">" and counts))
    return element(test)
