"""A ``switch`` as the branches that it is short for.

Cases that end before the next one are ``if`` and ``else``. One that runs on into the next is a
branch of its own, and what it runs on into is done for its labels as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Lambda,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    TypeName,
    Variable,
    Verbatim,
    walk,
)

_NAME = "chosen"
Case = tuple[Expr | None, tuple[Statement, ...]]


def branches(subject: Expr, cases: Sequence[Case]) -> If | Block | None:
    """The cases in their order, the default last, or None where they end in another way.

    ``cases`` are the labels as they are written, each with its value, None for the default, and
    what stands below it. What is switched on is asked anew by each test; where something happens in
    it, or cases run on into each other, it is a local of a block of its own. Statements keep their
    own text, the branches have none.
    """
    if any(isinstance(part, Lambda | Unread) for part in every(subject)):
        return None
    local = _local(subject, cases)
    asked = Name(None, local.name, local)
    made: Sequence[Statement] | None
    if not any(_happens(part) for part in every(subject)):
        alone = _apart(subject, cases)
        if alone is not None:
            return alone
        made = _running_on(asked, cases)
    else:
        alone = _apart(asked, cases)
        made = [alone] if alone is not None else _running_on(asked, cases)
    if not made:
        return None
    line = made[0].line
    return Block(None, line, (Declare(None, line, "const auto ", (local,)), *made))


def _apart(subject: Expr, cases: Sequence[Case]) -> If | None:
    """Cases of which each ends before the next one."""
    default: Statement | None = None
    tested: list[tuple[Expr, Block]] = []
    values: list[Expr | None] = []
    for at, (value, body) in enumerate(cases):
        values.append(value)
        if not body and at + 1 < len(cases):
            continue
        kept = _until_its_break(body, last=at + 1 == len(cases))
        if kept is None:
            return None
        line = body[0].line if body else 0
        block = Block(None, line, kept)
        if None in values:
            default = block if kept else None
        else:
            tested.append((_one_of(subject, values), block))
        values = []
    whole: Statement | None = default
    for test, block in reversed(tested):
        whole = If(None, block.line, test, block, whole)
    return whole if isinstance(whole, If) else None


def _running_on(subject: Expr, cases: Sequence[Case]) -> list[Statement] | None:
    """A branch for each run of statements, of what comes to it. Locals belong to one run alone."""
    every_value, found = [value for value, _ in cases], list[Statement]()
    coming: list[Expr | None] = []
    for at, (value, body) in enumerate(cases):
        coming.append(value)
        kept, ended = _cut(body)
        inside = [s for statement in kept for s in walk(statement)]
        declared = any(isinstance(s, Declare) for s in kept)
        if any(isinstance(s, Verbatim) for s in inside) or any(map(_breaks, kept)) or declared:
            return None
        if kept:
            block = Block(None, kept[0].line, kept)
            others = [one for one in every_value if one not in coming] if None in coming else []
            test = _one_of(subject, others or coming) if others or None not in coming else None
            if test is not None:
                test = Unary(None, "!", test) if others else test
            found.append(If(None, block.line, test, block) if test is not None else block)
        if ended or at + 1 == len(cases):
            coming = []
    return found


def _one_of(subject: Expr, values: Sequence[Expr | None]) -> Expr:
    """Whether what is switched on is one of some values."""
    tests = (Binary(None, "==", subject, each) for each in values if each is not None)
    test: Expr = next(tests)
    for other in tests:
        test = Binary(None, "||", test, other)
    return test


def _local(subject: Expr, cases: Sequence[Case]) -> Variable:
    """What is switched on, under a name that nothing in the cases has."""
    inside = [s for _, body in cases for one in body for s in walk(one)]
    taken = {e.name for s in inside for top in s.expressions for e in every(top)
             if isinstance(e, Name)}  # fmt: skip
    more = (f"{_NAME}_{number}" for number in count(2))
    name = next(n for n in chain([_NAME], more) if n not in taken)
    return Variable(name, TypeName("auto", const=True), "local", 0, value=subject)


def _happens(part: Expr) -> bool:
    if isinstance(part, Call):
        return not pure(part.function)
    return isinstance(part, (Assign, Step, Lambda, Unread))


def _until_its_break(body: Sequence[Statement], last: bool) -> tuple[Statement, ...] | None:
    """What a case does before it leaves the switch, None where that is not at its end alone."""
    kept, ended = _cut(body)
    inside = [s for statement in kept for s in walk(statement)]
    if any(isinstance(s, Verbatim) for s in inside) or any(map(_breaks, kept)):
        return None
    return kept if ended or last else None


def _cut(body: Sequence[Statement]) -> tuple[tuple[Statement, ...], bool]:
    """Statements without the break that they end in, and whether nothing runs on behind them."""
    ran = [s for s in body if not isinstance(s, Blank)]
    if not ran:
        return tuple(body), False
    final = ran[-1]
    if isinstance(final, Leave) and final.kind == "break":
        return tuple(body[: body.index(final)]), True
    if isinstance(final, Block):
        inner, ended = _cut(final.body)
        if len(inner) < len(final.body):
            final = replace(final, span=None, tail=None, body=inner)
        return (*body[: body.index(ran[-1])], final), ended
    return tuple(body), _leaves(final)


def _leaves(statement: Statement) -> bool:
    match statement:
        case Leave():
            return True
        case Block(body=body):
            return bool(body) and _leaves(body[-1])
        case If(then=then, other=other):
            return other is not None and _leaves(then) and _leaves(other)
    return False


def _breaks(statement: Statement) -> bool:
    """Whether a break in it leaves what is around it."""
    return any(leave.kind == "break" for leave in _outward(statement))


def _outward(statement: Statement) -> Iterator[Leave]:
    if isinstance(statement, Leave):
        yield statement
    if not isinstance(statement, Loop):
        for inner in statement.statements:
            yield from _outward(inner)
