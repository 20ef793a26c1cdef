"""P10 undone: counters that a block keeps in shared memory, as updates of the array itself.

A block sets its copy to zero, waits, updates it, waits, and adds each element to the array's own.
Rules then see one item a thread, and keep copies with as many blocks and loads as they like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Call, Expr, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, outermost
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.updates import Update, Updated, fixed, leaves, updated
from optiml_magic.kernels.reading import Access, Space
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Loop, Statement, Variable
from optiml_magic.kernels.types import named

_BARRIER, _THREAD, _WIDTH = "__syncthreads", "threadIdx.x", "blockDim.x"
_SHARED: tuple[Space, ...] = ("shared",)
_ZEROES = frozenset("+|^")  # operations that zero changes nothing of


@dataclass(frozen=True, eq=False)
class _Copy:
    """``own`` is updated in shared memory, and ``whole`` at its end, ``base`` elements further."""

    own: Updated
    whole: Updated
    base: Polynomial


@primitive
def released(kernel: Kernel) -> Kernel:
    """The kernel with its shared counters' updates in the array that these are added to."""
    if not any(access.space == "shared" for access in kernel.reading.accesses):
        raise NotLegal("its threads share no memory")
    return _Releasing(kernel).kernel()


class _Releasing:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.effects.straightforward(alone=False)
        if kernel.block[1:] != (1, 1) or kernel.block[0] is None or kernel.launch.shared:
            raise NotLegal("its blocks have more than one row")
        line = leaves(kernel.function.body)
        if line:
            raise NotLegal("threads leave before their block adds up", line)
        self.width = kernel.block[0]
        parts = _between_barriers(kernel.function.body.body)
        if len(parts) != 3 or len(kernel.reading.barriers) != 2:  # zeros, updates, sums
            raise NotLegal("its block does not wait twice")
        self.before, self.updating, self.after = parts
        self.dropped = {s for s in self.before if self._shared(s)}
        for statement in self.dropped:
            self._check_zeros(statement)
        self.dropped |= {s for s in self.after if self._shared(s)}

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node | tuple[Statement, ...]] = {}
        copies = self._copies()
        for copy in copies:
            for update in copy.own.updates:
                swaps |= self._moved(copy, update)
        body = self.old.function.body
        names = {copy.own.array for copy in copies}
        kept = list[Statement]()
        for statement in body.body:
            if statement in self.dropped or _is_barrier(statement):
                continue
            if isinstance(statement, Declare):
                others = tuple(v for v in statement.variables if v.name not in names)
                if not others:
                    continue
                if others != statement.variables:
                    kept.append(replace(statement, variables=others, span=None))
                    continue
            kept.append(statement)
        whole = edited(replace(body, body=tuple(kept)), swaps)
        return self.old.rewritten(whole)

    def _shared(self, statement: Statement) -> list[Access]:
        inside = self.effects.inside(statement)
        return [a for a in self.old.reading.accesses if a.own in inside and a.space == "shared"]

    def _check_zeros(self, statement: Statement) -> None:
        """Raise NotLegal where a statement does more than to set shared elements to zero."""
        accesses = self._shared(statement)
        zeros = all(
            a.mode == "store" and isinstance(a.value, Literal) and a.value.value == 0
            for a in accesses
        )
        calls = any(isinstance(e, Call) for e in self.effects.inside(statement))
        more = calls or self.effects.accesses(statement) or self.effects.changed(statement)
        if not zeros or more:
            raise NotLegal("its block does not begin with zeros", statement.line)

    def _copies(self) -> list[_Copy]:
        found = list[_Copy]()
        middle = Block(None, 0, tuple(self.updating))
        for own in updated(self.old, middle, _SHARED):
            if isinstance(own, Refused):
                raise NotLegal(own.reason, own.line)
            ends = [s for s in self.after if any(a.array == own.array for a in self._shared(s))]
            begun = any(a.array == own.array for s in self.dropped for a in self._shared(s)
                        if a.mode == "store")  # fmt: skip
            if len(ends) != 1 or not begun or own.op not in _ZEROES:
                line = own.updates[0].access.line
                raise NotLegal(f"`{own.array}` is not added to an array once", line)
            found.append(self._copy(own, ends[0]))
        names = {copy.own.array for copy in found}
        for access in self.old.reading.accesses:
            if access.space == "shared" and access.array not in names:
                raise NotLegal(f"`{access.array}` is shared for something else", access.line)
        self._check_apart()
        if len({copy.whole.array for copy in found}) != len(found):
            raise NotLegal("two copies are added to one array")
        return found

    def _copy(self, own: Updated, end: Statement) -> _Copy:
        """What a statement adds an array to. Raises NotLegal where it does more, or not all."""
        loads = [a for a in self._shared(end) if a.array == own.array]
        wholes = [*updated(self.old, end)]
        whole = wholes[0] if len(wholes) == 1 else None
        if not isinstance(whole, Updated) or len(whole.updates) != 1 or whole.op != own.op:
            raise NotLegal(f"`{own.array}` is not added to one array", end.line)
        update, first = whole.updates[0], min(loads, key=lambda load: len(load.guard))
        others = [a for a in self.effects.accesses(end) if a is not update.access]
        alike = {a.index for a in loads} == {first.index} and len(loads) == len(self._shared(end))
        if others or not alike or first.index is None or update.access.index is None:
            raise NotLegal("more than its elements is added", end.line)
        if own.type != whole.type or update.negative or self.effects.changed(end):
            raise NotLegal(f"`{own.array}` and `{whole.array}` are not alike", end.line)
        base = update.access.index - first.index
        if not fixed(self.old, base):
            raise NotLegal("its elements are not added to as many in a row", end.line)
        for access in self.old.reading.accesses:
            if access is not update.access and self.effects.same(access.array, whole.array):
                raise NotLegal(f"`{whole.array}` is touched in another way as well", access.line)
        self._check_all(own, first, end)
        self._check_values(own, end, {a.node for a in loads}, update)
        return _Copy(own, whole, base)

    def _check_all(self, own: Updated, load: Access, end: Statement) -> None:
        """Raise NotLegal where a thread of the block does not come to each element once."""
        array = self.old.reading.arrays[own.array]
        count = array.extents[0] if len(array.extents) == 1 else None
        loops = [*outermost(end)]
        tests = [c for condition in load.guard for c in condition.conjuncts()]
        if count is None or count.value is None or load.index is None:
            raise NotLegal(f"how many elements `{own.array}` has is not a number", end.line)
        thread = Polynomial.symbol(_THREAD)
        if not loops:
            last = count - Polynomial.constant(1) - thread
            fits = [c for c in tests if isinstance(c, Compare) and (c.op, c.form) == (">=", last)]
            if load.index != thread or len(fits) < len(tests):
                raise NotLegal(f"not each element of `{own.array}` is added", end.line)
            if self.width < count.value or (self.width > count.value and not fits):
                raise NotLegal(f"not each element of `{own.array}` is added", end.line)
            return
        axis = self.old.axes().get(loops[0])
        steps = (Polynomial.constant(self.width), Polynomial.symbol(_WIDTH))
        if axis is None or len(load.loops) != 1 or not axis.exact or axis.scaled:
            raise NotLegal(f"not each element of `{own.array}` is added", end.line)
        if axis.start != thread or axis.step not in steps or axis.stop != count:
            raise NotLegal(f"not each element of `{own.array}` is added", end.line)
        item = thread + axis.step * Polynomial.symbol(axis.name)
        if load.index != item or not all(c in axis.held for c in tests):
            raise NotLegal(f"not each element of `{own.array}` is added", end.line)

    def _check_values(self, own: Updated, end: Statement, loads: set[Expr], update: Update) -> None:
        """Raise NotLegal where more decides on a sum than whether an element is zero."""
        held = set[Variable]()
        counts = not own.type.signed and own.type.integral
        counts |= all(
            isinstance(u.value, Literal) and (u.value.value or 0) >= 0 and not u.negative
            for u in own.updates
        )

        def element(expr: Expr) -> bool:
            return expr in loads or (isinstance(expr, Name) and expr.variable in held)

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
                    if loads <= self.effects.inside(then) or _not_zero(
                        test, element, counts=counts
                    ):
                        follow(then)
                        return
                case Evaluate() if statement is update.statement and element(update.value):
                    return
                case Blank():
                    return
            raise NotLegal("more than its elements is added", statement.line)

        follow(end)

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
        speller = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.old
        base = speller.form(copy.base)
        index = self.old.spelled(update.index)
        place = index if base == "0" else f"{base} + ({index})"
        value = self.old.spelled(call.arguments[1])
        there = f"&{copy.whole.array}[{place}]"
        return {update.statement: (lines(f"{call.function}({there}, {value});"),)}


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


def _not_zero(test: Expr, element: Callable[[Expr], bool], *, counts: bool) -> bool:
    """Whether a test is that an element is not zero, or of ``counts`` above it."""
    match test:
        case Binary(op=op, left=left, right=Literal(value=0)):
            return element(left) and (op == "!=" or (op == ">" and counts))
    return element(test)
