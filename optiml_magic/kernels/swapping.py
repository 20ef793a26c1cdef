"""Functions that update an element by compare-and-swap, until nobody came between.

``do { assumed = old; old = atomicCAS(p, assumed, f(assumed, v)); } while (old != assumed);`` is one
atomic operation that combines by ``f``, for which CUDA may have no function of its own: the
greatest of floats, say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    conjuncts,
    every,
)
from optiml_magic.kernels.functions import COMBINING, bare
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType, named

_SWAP = "atomicCAS"
#: What tells the bits of a number of so many bytes, and the number from these.
_TO_BITS = {4: frozenset({"__float_as_int", "__float_as_uint"}),
            8: frozenset({"__double_as_longlong"})}  # fmt: skip
_FROM_BITS = {4: frozenset({"__int_as_float", "__uint_as_float"}),
              8: frozenset({"__longlong_as_double"})}  # fmt: skip
_MIRRORED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "==", "!=": "!="}
_OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "==": "!=", "!=": "=="}
#: What holds of an element and a value that does not change it.
_BEYOND = {">=": "max", ">": "max", "<=": "min", "<": "min"}


@lru_cache(maxsize=256)
def swapping(function: Function) -> str | None:
    """What a function combines its second argument into the element at its first with.

    None for any other function, and where it is not certain that it is such a one.
    """
    if len(function.parameters) != 2 or function.kernel or function.method or function.template:
        return None
    place, value = function.parameters
    kinds = [(p.type.base, p.type.reference, p.type.volatile) for p in function.parameters]
    if (place.type.depth, value.type.depth) != (1, 0) or kinds[0] != kinds[1]:
        return None
    kind = named(place.type.base, {})
    if place.type.reference or place.type.volatile or place.type.const or kind.size not in (4, 8):
        return None
    if kind.kind not in ("int", "float"):
        return None
    swaps = [(s, e) for s in walk(function.body) for top in s.expressions for e in every(top)
             if isinstance(e, Call) and bare(e.function) == _SWAP]  # fmt: skip
    loops = [s for s in walk(function.body) if isinstance(s, Loop)]
    if len(swaps) != 1 or len(loops) != 1 or len(swaps[0][1].arguments) != 3:
        return None
    found = _Swapping(function, place, value, kind, loops[0], *swaps[0])
    return found.op()


@dataclass(eq=False)
class _Swapping:
    function: Function
    place: Variable
    value: Variable
    kind: CType
    loop: Loop
    statement: Statement
    swap: Call

    def __post_init__(self) -> None:
        size = self.kind.size if self.kind.floating else 0
        self.to_bits = _TO_BITS.get(size or 0, frozenset())
        self.from_bits = _FROM_BITS.get(size or 0, frozenset())
        body = self.loop.body
        self.made: frozenset[Variable] = frozenset()  # locals that hold what is to be swapped in
        self.round = (*body.body,) if isinstance(body, Block) else (body,)
        if self.loop.kind == "do" and self.statement is self.loop:
            self.round = (*self.round, self.loop)  # the swap is in its test

    def op(self) -> str | None:
        """The operation, if all that the function does is to repeat it until it has succeeded."""
        address, expected, desired = self.swap.arguments
        old, assumed = self._old(), self._local(expected, bits=True)
        if old is None or assumed is None or old is assumed or self.statement not in self.round:
            return None
        self.old, self.assumed = old, assumed
        self.tried = self.round.index(self.statement)
        self.kept = next((at for at, s in enumerate(self.round) if self._keeps(s)), self.tried)
        if self.kept >= self.tried or not self._leads(address, whole=True):
            return None
        wanted = self._now(desired, bits=self.kind.floating)
        if self.kind.floating:
            if not isinstance(wanted, Call) or wanted.function not in self.to_bits:
                return None
            wanted = self._now(wanted.arguments[0], bits=False)
        ways = self._ways()
        if ways is None or not all(map(self._only, walk(self.function.body))):
            return None
        op = self._combines(wanted)
        if op is None and self._given(wanted):
            op = self._tested()
        elif op not in ("min", "max") and "swapped" not in ways:
            return None
        return op if op is not None and ways <= {op, "swapped"} else None

    def _now(self, expr: Expr, *, bits: bool) -> Expr:
        """What a local holds that a round gives a value between what it expects and its swap."""
        own = expr.variable if isinstance(expr, Name) else None
        if own is None or own.storage != "local" or not self._holds(own, bits=bits):
            return expr
        given = dict[Statement, Expr]()
        for statement in walk(self.function.body):
            match statement:
                case Evaluate(expression=Assign(op="=", target=Name(variable=one), value=value)):
                    given |= {statement: value} if one is own else {}
                case Declare(variables=variables):
                    given |= {statement: own.value} if own in variables and own.value else {}
        if len(given) != 1 or not all(map(self._computes, given.values())):
            return expr
        ((statement, value),) = given.items()
        if statement not in self.round[self.kept + 1 : self.tried]:
            return expr
        self.made |= {own}
        return value

    def _old(self) -> Variable | None:
        """The local that gets what the swap has found."""
        for top in self.statement.expressions:
            for e in every(top):
                if isinstance(e, Assign) and self._swaps(e.value) and isinstance(e.target, Name):
                    own = e.target.variable
                    bits = self.kind.floating and e.value is self.swap
                    if e.op == "=" and own is not None and self._holds(own, bits=bits):
                        return own
        return None

    def _swaps(self, expr: Expr) -> bool:
        if isinstance(expr, Call) and expr.function in self.from_bits:
            return expr.arguments[0] is self.swap
        return expr is self.swap

    def _holds(self, variable: Variable, *, bits: bool) -> bool:
        """Whether a local is of the element's type, or a whole number with its bits."""
        kind = named(variable.type.base, {})
        if variable.type.depth or variable.array or kind.size != self.kind.size:
            return False
        if bits:
            return kind.kind == "int"
        return kind.kind == self.kind.kind and kind.signed == self.kind.signed

    def _local(self, expr: Expr, *, bits: bool) -> Variable | None:
        """The local that an expression is: its bits, or itself as a number of that type."""
        found, held = expr, bits and self.kind.floating
        if isinstance(expr, Call) and expr.function in (self.to_bits if bits else self.from_bits):
            found, held = expr.arguments[0], not bits
        if not isinstance(found, Name) or found.variable is None:
            return None
        local = found.variable.storage == "local"
        return found.variable if local and self._holds(found.variable, bits=held) else None

    def _leads(self, expr: Expr, *, whole: bool = False) -> bool:
        """Whether a pointer leads to the element; as ``whole``, to one of its size."""
        match expr:
            case Name(variable=Variable(value=given, type=kind) as own):
                fits = not whole or named(kind.base, {}).size == self.kind.size
                if own is self.place:
                    return fits
                return fits and kind.depth == 1 and given is not None and self._leads(given)
            case Cast(operand=operand, type=words):
                fits = not whole or named(words, {}).pointee.size == self.kind.size
                return fits and self._leads(operand)
        return False

    def _element(self, expr: Expr) -> bool:
        """Whether an expression loads the element."""
        match expr:
            case Unary(op="*", operand=pointer):
                return self._leads(pointer, whole=True)
            case Index(base=base, index=Literal(value=0)):
                return self._leads(base, whole=True)
            case Call(function=name, arguments=(inner,)) if name in self.to_bits | self.from_bits:
                return self._element(inner)
        return False

    def _keeps(self, statement: Statement) -> bool:
        """Whether a statement keeps what was seen as what is expected."""
        match statement:
            case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=given)):
                return own is self.assumed and self._seen(given)
            case Declare(variables=(own,)):
                return own is self.assumed and own.value is not None and self._seen(own.value)
        return False

    def _seen(self, expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.variable is self.old

    def _only(self, statement: Statement) -> bool:
        """Whether a statement is one of those that such a function has."""
        match statement:
            case Blank() | Block() | Loop(before=None, update=None) | If(before=None):
                return True  # ``_ways`` has looked at what they ask for
            case Leave(value=value):
                return value is None or self._computes(value)
            case Declare(variables=variables):
                return all(self._begins(v) for v in variables)
            case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=given)):
                if own is self.old:
                    outside = statement not in {*walk(self.loop)}
                    return self._swaps(given) or (outside and self._element(given))
                return own in self.made or (own is self.assumed and self._seen(given))
        return False

    def _begins(self, variable: Variable) -> bool:
        given = variable.value
        if variable.storage != "local" or variable.array or variable.initial:
            return False
        if variable in self.made:
            return True
        if given is None:
            return not variable.type.depth
        if variable.type.depth:
            return self._leads(given)
        return self._element(given) if variable is self.old else (
            variable is self.assumed and self._seen(given)
        )  # fmt: skip

    def _computes(self, expr: Expr) -> bool:
        known = self.to_bits | self.from_bits | {*COMBINING}
        calls = [e for e in every(expr) if isinstance(e, Call)]
        changed = any(isinstance(e, Assign | Step) for e in every(expr))
        return all(e.function in known for e in calls) and not changed

    def _ways(self) -> set[str] | None:
        """Why rounds end; None where one does so for another reason."""
        found: set[str | None] = set()
        alone = {s for s in walk(self.function.body) if isinstance(s, Leave)}
        for statement in walk(self.function.body):
            if isinstance(statement, If):
                then = [s for s in walk(statement.then) if not isinstance(s, Block | Blank)]
                if statement.other is not None or len(then) != 1 or not isinstance(then[0], Leave):
                    return None
                alone.discard(then[0])
                found.add(self._way(statement) if then[0].kind in ("return", "break") else None)
        if any(s is not self.function.body.body[-1] for s in alone):
            return None
        behind = self.loop.kind == "do"
        found |= {self._test(part, after=behind, swapped=behind) for part in self._goes_on()}
        return None if None in found else {way for way in found if way is not None}

    def _goes_on(self) -> Iterator[Expr]:
        """What all must hold that there is another round."""
        for part in conjuncts(self.loop.test) if self.loop.test is not None else ():
            if not (isinstance(part, Literal) and part.value == 1):
                yield part

    def _way(self, statement: If) -> str | None:
        """Why the function or its loop ends where a branch leads out."""
        at = self.round.index(statement) if statement in self.round else -1
        return self._test(statement.test, ends=True, after=at > self.kept, swapped=at >= self.tried)

    def _test(
        self, test: Expr, *, ends: bool = False, after: bool = False, swapped: bool = False
    ) -> str | None:
        """Why nothing is left to do where a test holds, or where it does not.

        ``after`` what is expected was kept, or the element was ``swapped``.
        """
        if not isinstance(test, Binary) or test.op not in _MIRRORED:
            return None
        op = test.op if ends else _OPPOSITE[test.op]
        left, right = test.left, test.right
        if op == "==":
            found = {self._compared(left), self._compared(right)}
            return "swapped" if swapped and found == {self.old, self.assumed} else None
        if self._given(left):
            left, right, op = right, left, _MIRRORED[op]
        local = self._local(left, bits=False)
        known = local is self.old or (after and local is self.assumed)
        return _BEYOND.get(op) if known and self._given(right) else None

    def _compared(self, expr: Expr) -> Variable | None:
        """The local that is compared, or that gets what the swap has found."""
        if isinstance(expr, Assign):
            expr = expr.target if self._swaps(expr.value) else expr
        if isinstance(expr, Call) and expr.function in self.to_bits | self.from_bits:
            expr = expr.arguments[0]
        return expr.variable if isinstance(expr, Name) else None

    def _given(self, expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.variable is self.value

    def _combines(self, expr: Expr) -> str | None:
        """By what operation an expression combines the element and the value."""
        match expr:
            case Call(function=name, arguments=(left, right)) if bare(name) in COMBINING:
                return COMBINING[bare(name)] if self._both(left, right) else None
            case Binary(op="+" | "&" | "|" | "^" as op, left=left, right=right):
                return op if self._both(left, right) else None
            case Choice(test=Binary(op=sign, left=left, right=right), then=then, other=other):
                if sign not in _BEYOND or not (self._both(left, right) and self._both(then, other)):
                    return None
                kept = self._given(then) == self._given(left)
                return _BEYOND[sign if kept else _MIRRORED[sign]]
        return None

    def _both(self, left: Expr, right: Expr) -> bool:
        """Whether one of these is the value, and the other the element."""
        if self._given(right):
            left, right = right, left
        return self._given(left) and self._local(right, bits=False) in (self.old, self.assumed)

    def _tested(self) -> str | None:
        """How the value compares with the element before each swap that stores it, in any round."""
        early = self._first(self.round[: self.tried])
        if early is not None:
            return early
        again = [self._test(p, after=self.loop.kind == "do") for p in self._goes_on()]
        last = next((way for way in again if way is not None), None)
        if self.loop.kind != "do":
            return last
        body = self.function.body.body
        before = self._first(body[: body.index(self.loop)]) if self.loop in body else None
        last = last or self._first(self.round[self.tried + 1 :])
        return before if before == last else None

    def _first(self, statements: tuple[Statement, ...]) -> str | None:
        """The comparison that leads out among some statements."""
        ways = (self._way(s) for s in statements if isinstance(s, If))
        return next((way for way in ways if way not in (None, "swapped")), None)
