"""Rounds that end with one branch, on all that they may change.

``if (x <= least) continue; ...`` becomes a branch around what follows, and ``if (a) ... else if (b)
...`` a branch on either around both.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.tree import Block, If, Statement, only_leaves


@primitive
def chained(kernel: Kernel, at: int) -> Kernel:
    """The kernel with one branch at the end of each round of the loop with this number."""
    loop = loops_in(kernel.function.body)[at]
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    made = _around(kernel, body) or _either(body)
    if made is None:
        raise NotLegal("its rounds do not end with several branches", loop.line)
    block = Block(None, loop.body.line, made)
    return kernel.rewritten(edited(kernel.function.body, {loop.body: block}))


def _around(kernel: Kernel, body: Sequence[Statement]) -> tuple[Statement, ...] | None:
    """A branch around what stands behind the last test that ends a round."""
    for at in range(len(body) - 2, -1, -1):
        match body[at]:
            case If(before=None, constant=False, other=None, test=test, then=then) as guard:
                if only_leaves(then, "continue"):
                    rest = Block(None, body[at + 1].line, tuple(body[at + 1 :]))
                    return (*body[:at], If(None, guard.line, denied(kernel, test), rest))
    return None


def _either(body: Sequence[Statement]) -> tuple[Statement, ...] | None:
    """A branch on all tests of a chain of branches that has no way beside them."""
    last = body[-1] if body else None
    tests, link = list[Expr](), last
    while isinstance(link, If) and link.before is None and not link.constant:
        tests.append(link.test)
        if link.other is None:
            break
        link = link.other
        if isinstance(link, Block) and len(link.body) == 1:
            (link,) = link.body
    else:
        return None
    acts = any(isinstance(e, Assign | Step | Call) for test in tests for e in every(test))
    if last is None or len(tests) < 2 or acts:
        return None
    test = tests[0]
    for other in tests[1:]:
        test = Binary(None, "||", test, other)
    return (*body[:-1], If(None, last.line, test, Block(None, last.line, (last,))))
