"""Choices that keep what there was, as one branch: ``m = c ? x : m; p = c ? k : p;``.

What is assigned together is seen to be so then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Choice, Expr, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Block, Evaluate, If, Statement, Variable, walk


@dataclass(frozen=True)
class _Kept:
    """``local = test ? value : local``, or the other way round where it is ``negated``."""

    statement: Statement
    local: Name
    test: Expr
    value: Expr
    negated: bool


@primitive
def branched(kernel: Kernel) -> Kernel:
    """The kernel with several such choices on one condition as a branch on it."""
    swaps: dict[Node, tuple[Statement, ...]] = {}
    for block in walk(kernel.function.body):
        for run in _runs(kernel, block) if isinstance(block, Block) else ():
            first = run[0]
            test = Unary(None, "!", first.test) if first.negated else first.test
            line = first.statement.line
            inside = tuple(
                Evaluate(None, line, Assign(None, "=", kept.local, kept.value)) for kept in run
            )
            swaps[first.statement] = (If(None, line, test, Block(None, line, inside)),)
            swaps |= {kept.statement: () for kept in run[1:]}
    if not swaps:
        raise NotLegal("no two choices have one condition")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _runs(kernel: Kernel, block: Block) -> Iterator[list[_Kept]]:
    """Neighbours of one condition, which none of them changes for those behind it."""
    run: list[_Kept] = []
    for statement in block.body:
        kept = _kept(kernel, statement)
        targets = {one.local.variable for one in run}
        fits = (
            kept is not None
            and bool(run)
            and kept.negated == run[0].negated
            and same(kept.test, run[0].test)
            and not any(isinstance(e, Name) and e.variable in targets for e in every(kept.test))
        )
        if kept is not None and fits:
            run.append(kept)
            continue
        if len(run) > 1:
            yield run
        run = [kept] if kept is not None else []
    if len(run) > 1:
        yield run


def _kept(kernel: Kernel, statement: Statement) -> _Kept | None:
    match statement:
        case Evaluate(
            expression=Assign(
                op="=",
                target=Name(variable=Variable()) as local,
                value=Choice(test=test, then=then, other=other),
            )
        ):
            for kept, value, negated in ((other, then, False), (then, other, True)):
                if same(kept, local) and _converts(kernel, local, value):
                    changes = any(isinstance(e, Assign) for e in (*every(test), *every(value)))
                    return None if changes else _Kept(statement, local, test, value, negated)
    return None


def _converts(kernel: Kernel, local: Expr, value: Expr) -> bool:
    """Whether a local that is kept has the same value after it was of the type of both."""
    kinds = [kernel.reading.types.get(e) for e in (local, value)]
    return all(k is not None and k.integral for k in kinds) or all(
        k is not None and k.floating for k in kinds
    )
