"""P17, endings: ``if (c) { ...; return; } rest`` becomes ``if (c) { ... } else { rest }``.

So all threads come to the end of a kernel, where they may store together. Guards that do nothing
but return stay, or become branches around the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.expressions import Binary, Expr, Unary
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Block, If, Leave, Statement, only_leaves, walk

_DENIED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@primitive
def ended(kernel: Kernel) -> Kernel:
    """A kernel whose branches go on to its end, each in the place of a way out of it."""
    body = kernel.function.body
    made = _ended(body.body)
    if made is None:
        raise NotLegal("no branch ends in a way out")
    return kernel.rewritten(replace(body, body=made))


@primitive
def enclosed(kernel: Kernel) -> Kernel:
    """A kernel with branches around what comes behind its guards, ``if (c) return;``."""
    body = kernel.function.body
    made = _enclosed(kernel, body.body)
    if made is None:
        raise NotLegal("no guard does nothing but return")
    return kernel.rewritten(replace(body, body=made))


def denied(kernel: Kernel, test: Expr) -> Expr:
    """The opposite of a test."""
    types = kernel.reading.types
    if isinstance(test, Unary) and test.op == "!":
        return test.operand
    if isinstance(test, Binary) and test.op in _DENIED:
        sides = [types.get(side) for side in (test.left, test.right)]
        if all(kind is not None and kind.integral for kind in sides):
            return replace(test, op=_DENIED[test.op], span=None)
    return Unary(None, "!", test)


def _enclosed(kernel: Kernel, statements: Sequence[Statement]) -> tuple[Statement, ...] | None:
    for at, statement in enumerate(statements):
        match statement:
            case If(before=None, constant=False, test=test, then=then, other=None):
                rest = statements[at + 1 :]
                if rest and only_leaves(then, "return"):
                    within = _enclosed(kernel, rest) or tuple(rest)
                    whole = Block(None, rest[0].line, within)
                    return (*statements[:at], If(None, statement.line, denied(kernel, test), whole))
                if not rest and isinstance(then, Block):
                    inner = _enclosed(kernel, then.body)
                    if inner is not None:
                        body = replace(then, body=inner, span=None)
                        return (*statements[:at], replace(statement, then=body, span=None))
    return None


def _leaves(statement: Statement) -> bool:
    return isinstance(statement, Leave) and statement.kind == "return"


def _ended(statements: Sequence[Statement]) -> tuple[Statement, ...] | None:
    """The statements to the end of a kernel anew; None where they stay what they are."""
    for at, statement in enumerate(statements):
        rest = statements[at + 1 :]
        if not isinstance(statement, If) or statement.other is not None:
            continue
        then = statement.then
        if not isinstance(then, Block) or statement.before is not None or statement.constant:
            continue
        if _returns(then.body) and rest:
            other = _ended(rest)
            branch = replace(
                statement, then=replace(then, body=then.body[:-1], span=None),
                other=Block(None, rest[0].line, tuple(rest) if other is None else other),
                span=None, middle=None,
            )  # fmt: skip
            return (*statements[:at], branch)
        if not rest:
            inner = _ended(then.body)
            if inner is not None:
                body = replace(then, body=inner, span=None)
                return (*statements[:at], replace(statement, then=body, span=None))
    return None


def _returns(body: Sequence[Statement]) -> bool:
    """Whether a branch does something, and then leaves the kernel, at its end alone."""
    ways = [s for inner in body for s in walk(inner) if _leaves(s)]
    return len(body) > 1 and ways == [body[-1]]
