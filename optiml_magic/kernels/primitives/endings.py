"""P17, endings: ``if (c) { ...; return; } rest`` becomes ``if (c) { ... } else { rest }``.

So all threads come to the end of a kernel, where they may store together. Guards that do nothing
but return stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Block, If, Leave, Statement, walk


@primitive
def ended(kernel: Kernel) -> Kernel:
    """A kernel whose branches go on to its end, each in the place of a way out of it."""
    body = kernel.function.body
    made = _ended(body.body)
    if made is None:
        raise NotLegal("no branch ends in a way out")
    return kernel.rewritten(replace(body, body=made))


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
    ways = [s for inner in body for s in walk(inner) if isinstance(s, Leave) and s.kind == "return"]
    return len(body) > 1 and ways == [body[-1]]
