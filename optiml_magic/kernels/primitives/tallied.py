"""P20, counts without branches: ``if (s > 0) more++; else if (s < 0) less++;`` adds the tests.

Lanes of a warp go different ways in a branch, one after the other, and a compiler moves little over
it: what an item loads alike in all rounds it loads in each of them. ``more += s > 0`` is one way.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
    every,
    is_logical,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.tree import Block, Evaluate, If, Statement, Variable, body_of, walk
from optiml_magic.kernels.types import named

_MOST = 4  # counters of a branch: ours


@primitive
def tallied(kernel: Kernel) -> Kernel:
    """The kernel whose loops count without branches; it has some that do."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    effects = Effects(kernel)
    for loop in loops_in(kernel.function.body):
        for block in (s for s in walk(loop.body) if isinstance(s, Block)):
            for branch in block.body:
                added = _added(kernel, effects, branch) if isinstance(branch, If) else None
                if added is not None:
                    swaps[branch] = added
    if not swaps:
        raise NotLegal("no branch of a loop does nothing but count")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _added(kernel: Kernel, effects: Effects, branch: If) -> tuple[Statement, ...] | None:
    """What adds the tests; None where a branch does something else, or asks for what it counts."""
    found = [*_counts(kernel, branch, ())]
    counters = [own for own, *_ in found if own is not None and own not in effects.lent]
    tests = [test for _, _, given in found for test in given]
    if len(counters) < len(found) or not found or len(found) > _MOST:
        return None
    if not all(_is_plain(kernel, effects, test) for test in tests) or names(tests) & {*counters}:
        return None
    made = list[Statement]()
    for own, by, given in found:
        assert own is not None
        test = given[0]
        if by is None and len(given) == 1 and not _is_truth(kernel, test):
            test = Binary(None, "!=", test, Literal(None, "0", 0))
        for other in given[1:]:
            test = Binary(None, "&&", test, other)
        value = test if by is None else Choice(None, test, by, Literal(None, "0", 0))
        made.append(
            Evaluate(None, branch.line, Assign(None, "+=", Name(None, own.name, own), value))
        )
    return tuple(made)


def _counts(
    kernel: Kernel, statement: Statement, given: tuple[Expr, ...]
) -> Iterator[tuple[Variable | None, Expr | None, tuple[Expr, ...]]]:
    """The counters of a branch, by what they grow, and the tests that hold there."""
    match statement:
        case If(before=None, constant=False, test=test, then=then, other=other):
            for inner in body_of(then):
                yield from _counts(kernel, inner, (*given, test))
            for inner in body_of(other) if other is not None else ():
                yield from _counts(kernel, inner, (*given, denied(kernel, test)))
        case Evaluate(expression=Step(op="++", target=Name(variable=Variable() as own))) if (
            _is_counter(kernel, own)
        ):
            yield own, None, given
        case Evaluate(
            expression=Assign(op="+=", target=Name(variable=Variable() as own),
                              value=Literal(value=int(by)) as literal)
        ) if _is_counter(kernel, own):  # fmt: skip
            yield own, None if by == 1 else literal, given
        case _:
            yield None, None, given


def _is_truth(kernel: Kernel, test: Expr) -> bool:
    """Whether a test is 0 or 1 as a number, also one that was made."""
    kind = kernel.reading.types.get(test)
    made = isinstance(test, Binary | Unary) and test.op in ("<", "<=", ">", ">=", "==", "!=", "!")
    return made or is_logical(test) or (kind is not None and kind.name == "bool")


def _is_counter(kernel: Kernel, own: Variable) -> bool:
    kind = named(own.type.base, kernel.unit.aliases)
    plain = own.storage == "local" and not own.array and not own.type.depth
    return plain and not own.type.reference and kind.kind == "int" and (kind.size or 0) >= 4


def _is_plain(kernel: Kernel, effects: Effects, test: Expr) -> bool:
    """Whether to compute a test does nothing, and loads nothing."""
    if any(a.own in {*every(test)} for a in kernel.reading.accesses):
        return False
    plain = Name | Literal | Binary | Unary | Cast | Choice
    return all(
        (isinstance(e, plain) and not (isinstance(e, Unary) and e.op in "*&")) or bool(builtin(e))
        for e in every(test)
    ) and not any(v in effects.lent for v in names([test]))  # fmt: skip
