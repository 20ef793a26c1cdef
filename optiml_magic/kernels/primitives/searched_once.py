"""P13, searched once: neighbouring items' searches for a place are one until they part.

A thread's items lie beside each other, and each looks for its own place among the same elements: a
row by its offset, a run by its end. A round goes one way or the other by comparing an element with
the item's number. Where the first item and the last go the same way all items between do, whatever
the elements are. So the thread makes these rounds once, and each item goes on where two part.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.naming import numeral, type_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    body_of,
    walk,
)
from optiml_magic.kernels.types import CType

_MOST = 64  # items of a thread: ours
_ORDERS = ("<", "<=", ">", ">=")
_INT = 4  # bytes


@primitive
def search_once(kernel: Kernel) -> Kernel:
    """The kernel whose items make those rounds of a search once that they make alike."""
    reason = NotLegal("no items of a thread compare their numbers in a loop")
    for outer in reversed(loops_in(kernel.function.body)):
        axis = kernel.axes().get(outer)
        if axis is None or not 1 < (axis.trips or 0) <= _MOST:
            continue
        for loop in (s for s in body_of(outer.body) if isinstance(s, Loop)):
            try:
                return _Searching(kernel, axis, loop).kernel()
            except NotLegal as found:
                reason = found
    raise reason


class _Searching:
    """``loop`` is done by each item, a round of the loop around it, which ``axis`` counts."""

    def __init__(self, kernel: Kernel, axis: Axis, loop: Loop) -> None:
        self.old, self.axis, self.loop, self.outer = kernel, axis, loop, axis.node
        self.effects = Effects(kernel)
        own = body_of(self.outer.body)
        self.before, self.behind = own[: own.index(loop)], own[own.index(loop) + 1 :]
        self.items = {v for s in self.before if isinstance(s, Declare) for v in s.variables}
        self.state = [v for v in self.effects.changed(loop) if v in self.items]
        self.names = {v: kernel.fresh(f"{v.name}_all") for v in self.state}
        self.asked = 0
        self.unsigned = False
        self.ordered: dict[str, None] = {}  # what says that numbers do not wrap around
        self._check()

    def _check(self) -> None:
        loop, axis = self.loop, self.axis
        one = axis.step is not None and axis.step.value == 1 and not axis.scaled
        if axis.variable is None or axis.start is None or axis.start.value is None or not one:
            raise NotLegal("the items are not counted by one", self.outer.line)
        if loop.before or loop.update or loop.test is None or loop.kind == "do":
            raise NotLegal("more than a test is in the head of the search", loop.line)
        if any(isinstance(s, Leave | Verbatim) for s in walk(self.outer)):
            raise NotLegal("a search or an item may end early", loop.line)
        if {*self.effects.changed(loop)} - {*self.state}:
            raise NotLegal("a search changes more than locals of its item", loop.line)
        inside, written = self.effects.inside(loop), self.old.reading.written
        accesses = [a for a in self.old.reading.accesses if a.own in inside]
        loaded = {a.own for a in accesses if a.mode == "load" and a.space == "global"}
        for part in inside:
            memory = isinstance(part, Index) or (isinstance(part, Unary) and part.op in "*&")
            if isinstance(part, Call | Lambda | Unread | Member) or (memory and part not in loaded):
                raise NotLegal("a search does more than to compare elements", loop.line)
            if isinstance(part, Name) and part.variable and part.variable.type.volatile:
                raise NotLegal(f"`{part.name}` is volatile", loop.line)
        whole = {s.expression for s in walk(loop) if isinstance(s, Evaluate)}
        if any(isinstance(e, Assign | Step) and e not in whole for e in inside):
            raise NotLegal("a search changes something on the way", loop.line)
        if any(self.effects.same(a.array, array) for a in accesses for array in written):
            raise NotLegal("what is searched may change", loop.line)
        if self._depends(loop.test):
            raise NotLegal("a search ends where its item says", loop.line)

    def _depends(self, expr: Expr) -> bool:
        """Whether an expression of the search may differ from item to item, in one state."""
        own = self.items - {*self.state} | {self.axis.variable}
        return bool(names([expr]) & own)

    def kernel(self) -> Kernel:
        changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
        made = []
        for statement in self.before:
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable not in self.names:
                    continue
                if variable.array or variable.type.depth or variable.type.reference:
                    raise NotLegal(f"`{variable.name}` is not a plain local", variable.line)
                kind, name = variable.type.base, self.names[variable]
                if variable.value is not None:
                    self._check_first(variable.value)
                    made.append(f"{kind} {name} = {self.old.spelled(variable.value)};")
                    changes[variable.value] = Name(None, name)
                elif any(variable in self.effects.mentions(s) for s in self.behind):
                    raise NotLegal(f"`{variable.name}` begins with nothing", variable.line)
                else:
                    made.append(f"{kind} {name};")
        if any({*self.effects.changed(one)} & {*self.state} for one in self.before):
            raise NotLegal("a search does not begin where it is declared", self.loop.line)
        assert self.loop.test is not None
        once = self._once(body_of(self.loop.body), {*names([self.loop.test])})
        if not self.asked:
            raise NotLegal("no round of the search compares the item's number", self.loop.line)
        test = " && ".join((self._spelled(self.loop.test, {}), *self.ordered))
        made.append(f"while ({test}) {{\n{once}\n}}")
        first, inner = lines("\n".join(made)), edited(self.outer, changes)
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {self.outer: (first, inner)}
        for block in walk(self.old.function.body):
            for hint, behind in (
                zip(block.body, block.body[1:], strict=False) if isinstance(block, Block) else ()
            ):
                if behind is self.outer and isinstance(hint, Blank):
                    swaps |= {hint: None, self.outer: (first, hint, inner)}
        return self.old.rewritten(edited(self.old.function.body, swaps))

    def _check_first(self, value: Expr) -> None:
        """Raise NotLegal where a search does not begin alike for all items."""
        if names([value]) & (self.items | {self.axis.variable}):
            raise NotLegal("items begin their searches in different places", self.loop.line)
        if any(isinstance(e, Assign | Step | Call | Lambda | Unread) for e in every(value)):
            raise NotLegal("where a search begins is not plain", self.loop.line)
        loaded = {e.name for e in every(value) if isinstance(e, Name)}
        written = self.old.reading.written
        if any(self.effects.same(name, array) for name in loaded for array in written):
            raise NotLegal("where a search begins may change", self.loop.line)

    def _once(self, statements: Sequence[Statement], read: set[Variable]) -> str:
        """A round for all items, which is left where two of them part, to be made again by each.

        So before it compares it gives values to nothing alone that it has ``read``.
        """
        found, open_ = list[str](), True
        for statement in statements:
            match statement:
                case Blank():
                    continue
                case Declare(variables=variables):
                    for v in variables:
                        if v.value is None or v.array or self._depends(v.value):
                            raise NotLegal("a round declares what its item says", statement.line)
                        read |= names([v.value])
                    found.append(self._shown(statement))
                case If(test=test, then=then, other=other, before=None, constant=False):
                    if self._depends(test):
                        if not open_:
                            raise NotLegal("a round compares after a change", statement.line)
                        first, last = (self._spelled(test, self._key(test, at)) for at in (0, 1))
                        found.append(f"if (({first}) != ({last})) break;")
                        spelled = first
                    else:
                        spelled = self._spelled(test, {})
                    read |= names([test])
                    ways = [f"if ({spelled}) {{\n{self._way(then, read, open_=open_)}\n}}"]
                    if other is not None:
                        ways.append(f"{{\n{self._way(other, read, open_=open_)}\n}}")
                    found.append(" else ".join(ways))
                    open_ = False
                case Evaluate(expression=Assign(op=op, target=Name(variable=own), value=value)):
                    if self._depends(value):
                        raise NotLegal("a round changes what its item says", statement.line)
                    if op != "=" or own in names([value]) or own in read:
                        open_ = False
                    read |= names([value])
                    found.append(self._shown(statement))
                case _:
                    raise NotLegal("a round does more than to compare and move", statement.line)
        return "\n".join(found)

    def _way(self, way: Statement, read: set[Variable], *, open_: bool) -> str:
        compares = any(isinstance(s, If) and self._depends(s.test) for s in walk(way))
        if compares and not open_:
            raise NotLegal("a round compares after a change", way.line)
        return self._once(body_of(way), set(read))

    def _shown(self, statement: Statement) -> str:
        swaps: dict[Node, Node] = {}
        for part in (e for top in statement.expressions for e in every(top)):
            if isinstance(part, Name) and part.variable in self.names:
                swaps[part] = Name(None, self.names[part.variable])
        return self.old.show(statement, swaps)

    def _spelled(self, expr: Expr, swaps: dict[Node, Node]) -> str:
        own: dict[Node, Node] = dict(swaps)
        for part in every(expr):
            if isinstance(part, Name) and part.variable in self.names:
                own[part] = Name(None, self.names[part.variable])
        return self.old.spelled(expr, own)

    def _key(self, test: Expr, last: int) -> dict[Node, Node]:
        """What stands for the item's number in a comparison, of the first item or of the last."""
        if not isinstance(test, Binary) or test.op not in _ORDERS:
            raise NotLegal("an item does more than to compare its number", self.loop.line)
        sides = [side for side in (test.left, test.right) if self._depends(side)]
        if len(sides) != 1:
            raise NotLegal("both sides of a comparison depend on the item", self.loop.line)
        (key,) = sides
        other = test.right if key is test.left else test.left
        kinds = [self.old.reading.types.get(side) for side in (key, other)]
        self.unsigned = False
        if not _ordered(*kinds) or not self._grows(key):
            raise NotLegal("the numbers of items are not known to go up", self.loop.line)
        if self.unsigned:  # one between the first and the last may begin at 0 again
            ends = (f"({self.old.spelled(self._at(key, at))})" for at in (0, 1))
            self.ordered[" <= ".join(ends)] = None
        self.asked += 1
        return {key: self._at(key, last)}

    def _grows(self, expr: Expr) -> bool:
        """Whether an expression is no less for the next item, where it does not wrap around."""
        kind = self.old.reading.types.get(expr)
        if kind is None or not kind.integral or (kind.size or 0) < _INT:
            return False
        self.unsigned |= not kind.signed
        match expr:
            case Name(variable=Variable() as own) if own is self.axis.variable:
                return True
            case Name(variable=Variable(value=Expr() as value) as own) if own in self.items:
                lasting = own in self.effects.lasting and not own.type.depth
                return lasting and self._holds(kind, value) and self._grows(value)
            case Binary(op="+", left=left, right=right):
                return self._adds(left, right) or self._adds(right, left)
            case Binary(op="-", left=left, right=right):
                return self._adds(left, right)
            case Binary(op="*" | "/", left=left, right=Literal(value=int() as by)) if by > 0:
                return self._grows(left) and not self.unsigned
            case Cast(operand=operand):
                return self._holds(kind, operand) and self._grows(operand)
        return False

    def _holds(self, kind: CType, value: Expr) -> bool:
        """Whether a type holds whatever a value is."""
        own = self.old.reading.types.get(value)
        return own is not None and (own.size or 0) <= (kind.size or 0)

    def _adds(self, one: Expr, other: Expr) -> bool:
        return self._grows(one) and not names([other]) & (self.items | {self.axis.variable})

    def _at(self, expr: Expr, last: int) -> Expr:
        """The number of the first item, or of the last, spelled by what is known before both."""
        assert self.axis.start is not None
        assert self.axis.trips is not None
        place = (self.axis.start.value or 0) + last * (self.axis.trips - 1)
        swaps: dict[Node, Node] = {}
        for part in every(expr):
            if not isinstance(part, Name) or part.variable is None:
                continue
            if part.variable is self.axis.variable:
                swaps[part] = numeral(place, type_of(self.old, part.variable))
            elif part.variable in self.items and part.variable.value is not None:
                value = self._at(part.variable.value, last)
                swaps[part] = Cast(None, type_of(self.old, part.variable).name, value)
        return swaps[expr] if expr in swaps else edited(expr, swaps)  # type: ignore[return-value]


def _ordered(key: CType | None, other: CType | None) -> bool:
    """Whether a greater number compares as one, whatever both are made for that."""
    if key is None or other is None or key.depth or other.depth or not key.integral:
        return False
    signed = other.signed or (other.size or _INT) < _INT or not key.signed
    return other.floating or (other.integral and signed)
