"""A loop that counts in its rounds, ``while (j <= k) { ...; j++; }``, counts in its head.

``int j = -k; while (j <= k) { ...; ++j; }`` is ``for (int j = -k; j <= k; ++j)``, as all steps know
loops that go through a window: so are ``do`` loops that are certain to have a round, and those that
a branch leaves first, ``while (true) { if (j > k) break; ... }``. One whose counter somebody asks
for behind it looks for something, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.loops import test_of
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    Verbatim,
    body_of,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_DIRECTIVES = re.compile(
    r"^\s*#\s*(?:define|undef|if|ifdef|ifndef|elif|else|endif)\b", re.MULTILINE
)
_ORDERS = ("<", "<=", ">", ">=", "!=")


@primitive
def stepwise(kernel: Kernel) -> Kernel:
    """The kernel with such loops as ``for`` loops; there must be one."""
    body, effects, swaps = kernel.function.body, Effects(kernel), _Swaps()
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    check_directives(kernel)
    around = {inner: s for s in walk(body) for inner in s.statements}
    for scope in reversed([s for s in walk(body) if isinstance(s, Block)]):  # the innermost first
        taken = set[Statement | None]()
        for at, loop in enumerate(scope.body):
            found = _found(kernel, effects, scope.body[:at], loop)
            if found is None or found.begin in taken:
                continue
            if _wanted(effects, around, loop, found.counter):
                continue
            asked = any(found.counter in effects.mentions(s) for s in scope.body[at + 1 :])
            swaps |= found.swaps(swaps, asked=asked)
            taken |= {found.begin} - {None}
    if not swaps:
        raise NotLegal("no loop moves its counter in its rounds alone")
    return kernel.rewritten(edited(body, swaps))


def _wanted(
    effects: Effects, around: Mapping[Statement, Statement], loop: Statement, counter: Variable
) -> bool:
    """Whether somebody asks behind a loop where its counter came to, as one does that searches."""
    inner = loop
    while (outer := around.get(inner)) is not None:
        if isinstance(outer, Block):
            later = outer.body[outer.body.index(inner) + 1 :]
            first = next((s for s in later if counter in effects.mentions(s)), None)
            if first is not None:
                head = first.before if isinstance(first, Loop) else first
                return not _gives(head, counter)
            if any(isinstance(s, Declare) and counter in s.variables for s in outer.body):
                return False
        inner = outer
    return False


def _gives(statement: Statement | None, counter: Variable) -> bool:
    match statement:
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
            return own is counter and counter not in names([value])
    return False


@dataclass(frozen=True)
class _Steps:
    """A loop with what moves its counter, in ``moves`` too, and the statement it begins with."""

    loop: Loop
    counter: Variable
    test: Expr
    update: Expr
    moves: tuple[Statement, ...]
    rounds: tuple[Statement, ...]
    begin: Statement | None  # None where its head says what it begins with

    def swaps(self, known: _Swaps, *, asked: bool) -> _Swaps:
        """The loop anew, with what is ``known`` of those in it, and what is left in front."""
        loop, gone = self.loop, _Swaps(dict.fromkeys(self.moves))
        before, kept = self._begun(asked=asked)
        body = edited(Block(None, loop.line, self.rounds), {**known, **gone})
        made = replace(
            loop, kind="for", before=before, test=self.test, update=self.update, body=body,
            span=None, head=None, foot=None,
        )  # fmt: skip
        return {loop: made} if self.begin is None else {loop: made, self.begin: kept}

    def _begun(self, *, asked: bool) -> tuple[Statement | None, tuple[Statement, ...]]:
        """What the head begins with, and what is left in front of the loop."""
        begin, own = self.begin, self.counter
        if not isinstance(begin, Declare):
            return (self.loop.before if begin is None else replace(begin, lead=None)), ()
        left = tuple(v for v in begin.variables if v is not own)
        before: Statement = replace(begin, variables=(own,), lead=None, span=None)
        if asked:
            assert own.value is not None
            bare, name = replace(own, value=None, span=None), Name(None, own.name, own)
            left = tuple(bare if v is own else v for v in begin.variables)
            before = Evaluate(None, begin.line, Assign(None, "=", name, own.value))
        return before, (replace(begin, variables=left, span=None),) if left else ()


def _found(
    kernel: Kernel, effects: Effects, ahead: Sequence[Statement], loop: Statement
) -> _Steps | None:
    """What there is to do about a statement that comes behind others of its block."""
    if not isinstance(loop, Loop) or (loop.before is not None and loop.update is not None):
        return None
    written, body = test_of(loop)
    test, stepped = _parted(written) if loop.kind == "do" else (written, loop.update)
    if test is None or (loop.kind == "do" and not _certain(kernel, effects, loop, test)):
        return None
    for counter in _compared(test):
        axis = kernel.axes().get(loop)
        other = loop.kind == "do" and (axis is None or axis.variable is not counter)
        if other or not _is_plain(kernel, effects, counter) or not is_read(kernel, counter):
            continue
        moved = _moved(kernel, effects, loop, body, counter) if stepped is None else (stepped, ())
        if stepped is not None and not _moves(stepped, counter):
            continue
        first = loop.before is not None or _begun(effects, ahead, counter)
        inside = declared_in(loop.body)
        if moved is None or not first or names([moved[0]]) & inside:
            continue
        if stepped is not None and loop.kind == "do" and counter in effects.changed(loop.body):
            continue
        if counter.name not in {v.name for v in inside}:
            begin = first if isinstance(first, Statement) else None
            return _Steps(loop, counter, test, *moved, body, begin)
    return None


def _is_plain(kernel: Kernel, effects: Effects, counter: Variable) -> bool:
    """Whether a counter is a whole number that nothing but its name leads to."""
    kind, own = counter.type, counter.storage == "local" and not counter.array
    odd = kind.depth or kind.reference or kind.volatile or counter in effects.lent
    return own and not odd and named(kind.base, kernel.unit.aliases).integral


def check_directives(kernel: Kernel) -> None:
    """Raise NotLegal where lines of a kernel are the preprocessor's, which stay where they are."""
    span = kernel.function.body.span
    assert span is not None
    raw = kernel.program.text.encode()[slice(*kernel.unit.origin.origin(*span))]
    if _DIRECTIVES.search(raw.decode()):
        raise NotLegal("lines of it are for the preprocessor")


def is_read(kernel: Kernel, local: Variable) -> bool:
    """Whether all places with the name of a local are read: ``decltype(j)`` is none of these."""
    body = kernel.function.body
    if body.span is None:
        return False
    places = re.findall(rf"(?<!\.)(?<!->)\b{re.escape(local.name)}\b", code(kernel.unit, body.span))
    named_so = sum(isinstance(e, Name) and e.name == local.name for e in expressions(body))
    return len(places) == named_so + sum(v.name == local.name for v in declared_in(body))


def _moved(
    kernel: Kernel, effects: Effects, loop: Loop, body: Sequence[Statement], counter: Variable
) -> tuple[Expr, tuple[Statement, ...]] | None:
    """What moves a counter once in each round, and the statements that do so."""
    last = _last(effects, body, counter)
    if last is None:
        return None
    moves = (last, *_early(kernel, loop, last))
    ways = [*ends(Block(None, 0, tuple(body)), "continue")]
    whole = len(effects.changed(loop.body)[counter]) == len(moves) == len(ways) + 1
    return (last.expression, moves) if whole else None


def _parted(test: Expr | None) -> tuple[Expr | None, Expr | None]:
    """A test without ``++`` of a counter in front of it, and that."""
    match test:
        case Binary(op=op, left=Step(prefix=True, target=Name() as name) as step) if op in _ORDERS:
            if name.variable in names([test.right]):
                return None, None
            return replace(test, left=name, span=None), step
    return test, None


def _compared(test: Expr) -> Iterator[Variable]:
    """The locals that a test, or a part of it that must hold, compares with something else."""
    match test:
        case Binary(op="&&", left=left, right=right):
            yield from _compared(left)
            yield from _compared(right)
        case Unary(op="!", operand=Binary() as inner) if inner.op != "&&":
            yield from _compared(inner)
        case Binary(op=op, left=left, right=right) if op in _ORDERS:
            for side in (left, right):
                if isinstance(side, Name) and side.variable is not None:
                    yield side.variable


def _last(effects: Effects, body: Sequence[Statement], counter: Variable) -> Evaluate | None:
    """The statement at the end of a round that moves a counter; others there ask for neither."""
    changed, passed = set[Variable](), False
    for statement in reversed(body):
        if counter in effects.mentions(statement):
            if not isinstance(statement, Evaluate) or not _moves(statement.expression, counter):
                return None
            value = getattr(statement.expression, "value", None)
            asked = changed & names(statement.expressions)
            if asked or (passed and value is not None and not plain(value, effects)):
                return None
            return statement
        if isinstance(statement, Blank):
            continue
        if not isinstance(statement, Evaluate):
            return None
        changed |= {*effects.changed(statement)}
        passed = True
    return None


def _moves(expr: Expr, counter: Variable) -> bool:
    """Whether an expression adds something to a counter, a plain number or what has a name."""
    match expr:
        case Step(target=Name(variable=own)):
            return own is counter
        case Assign(op="+=" | "-=", target=Name(variable=own), value=value):
            return own is counter and counter not in names([value]) and _still(value)
        case Assign(
            op="=", target=Name(variable=own), value=Binary(op="+" | "-", left=left, right=right)
        ):
            first, other = (left, right) if _is(left, counter) else (right, left)
            added = expr.value.op == "+" or first is left  # type: ignore[attr-defined]
            whole = own is counter and _is(first, counter) and added
            return whole and counter not in names([other]) and _still(other)
    return False


def _still(expr: Expr) -> bool:
    return quiet(expr) and not _loads(expr)


def _is(expr: Expr, counter: Variable) -> bool:
    return isinstance(expr, Name) and expr.variable is counter


def plain(expr: Expr, effects: Effects) -> bool:
    """Whether an expression asks for nothing but what has names of its own, and changes nothing."""
    own = [*every(expr)]
    bases = {e.base for e in own if isinstance(e, Member) and builtin(e)}
    named_ = [e.variable for e in own if isinstance(e, Name) and e not in bases]
    alone = all(
        v is not None and v.storage in ("local", "parameter") and v not in effects.lent
        and not v.type.reference for v in named_
    )  # fmt: skip
    return quiet(expr) and not _loads(expr) and alone


def _loads(expr: Expr) -> bool:
    """Whether an expression asks for memory by an address, or is not read."""
    return any(
        isinstance(e, Index | Lambda | Unread)
        or (isinstance(e, Member) and e.arrow)
        or (isinstance(e, Unary) and e.op in "*&")
        for e in every(expr)
    )


def _early(kernel: Kernel, loop: Loop, last: Evaluate) -> Iterator[Statement]:
    """The statements right before ways on to the next round that do what the last one does."""
    words, asked = kernel.spelled(last.expression), names([last.expression])
    ways = {*ends(Block(None, 0, body_of(loop.body)), "continue")}
    for block in walk(loop.body):
        if isinstance(block, Block):
            for one, way in zip(block.body, block.body[1:], strict=False):
                if way not in ways or not isinstance(one, Evaluate):
                    continue
                if kernel.spelled(one.expression) == words and names([one.expression]) == asked:
                    yield one


def _begun(effects: Effects, ahead: Sequence[Statement], counter: Variable) -> Statement | None:
    """What gives a counter its first value, where that may be done right before the loop."""
    between = list[Statement]()
    for statement in reversed(ahead):
        if counter not in effects.mentions(statement) and counter not in declared_in(statement):
            between.append(statement)
            continue
        match statement:
            case Declare(variables=variables) if counter in variables:
                value, at = counter.value, variables.index(counter)
                others = replace(statement, variables=variables[at + 1 :]).expressions
                kept = counter.opening == "=" and "auto" not in statement.words.split()
                steady = kept and not any(map(_stores, others))
                beside = {*variables[at + 1 :]}
                if value is None or not steady or counter in names(others):
                    return None
            case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
                beside = set()
                if own is not counter or any(any(ends(s)) for s in between):
                    return None
            case _:
                return None
        return statement if _waits(effects, value, between, beside) else None
    return None


def _waits(
    effects: Effects, value: Expr, between: Sequence[Statement], beside: set[Variable]
) -> bool:
    """Whether an expression has the same value behind some statements, and they without it."""
    if not quiet(value) or any(isinstance(e, Lambda | Unread) for e in every(value)):
        return False
    changed = {v for s in between for v in effects.changed(s)}
    declared = {v.name for s in between for v in declared_in(s)} | {v.name for v in beside}
    if names([value]) & changed or declared & {e.name for e in every(value) if isinstance(e, Name)}:
        return False
    return plain(value, effects) or all(
        isinstance(s, Declare | Blank) and not any(map(_stores, s.expressions)) for s in between
    )


def _stores(expr: Expr) -> bool:
    """Whether an expression may change something, or wait for those that do."""
    return not quiet(expr) or any(isinstance(e, Lambda | Unread) for e in every(expr))


def _certain(kernel: Kernel, effects: Effects, loop: Loop, test: Expr) -> bool:
    """Whether the test of a ``do`` loop holds before its first round, and may be asked there."""
    axis = kernel.axes().get(loop)
    if axis is None or axis.start is None or axis.stop is None or axis.step is None:
        return False
    by, parts = axis.step.value, [*axis.test.conjuncts()]
    others = names([test]) - {axis.variable}
    sides = test.parts if isinstance(test, Binary) else ()
    kinds = [
        named(e.variable.type.base, kernel.unit.aliases)
        if isinstance(e, Name) and e.variable is not None else kernel.reading.types.get(e)
        for e in sides
    ]  # fmt: skip
    if not kinds or not all(k is not None and k.integral and k.signed for k in kinds):
        return False
    if not by or axis.scaled or len(parts) != 1 or not plain(test, effects):
        return False
    if others & effects.changed(loop.body).keys():
        return False
    some = (axis.stop - axis.start) if by > 0 else (axis.start - axis.stop)
    ranges = Ranges(axis.guard, kernel.reading.symbols)
    return ranges.nonnegative(some - Polynomial.constant(1))
