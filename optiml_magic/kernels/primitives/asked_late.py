"""Pairs without that of an item with itself: what a round finds first, it finds for all of them.

``if (j == i) continue; d = 0; for (m ...) d += ...; sum += d;`` has the test around ``sum += d``
alone. All items then make the same inner rounds, which they may share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Unary, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, loops_in
from optiml_magic.kernels.primitives.enclosed import enclosed
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.pinned import room
from optiml_magic.kernels.primitives.tabulated import is_value
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, If, Loop, Statement, body_of, walk
from optiml_magic.source.directives import RequireDirective

_ONE = Polynomial.constant(1)


@primitive
def asked_late(kernel: Kernel) -> Kernel:
    """The kernel with its first such loop so."""
    kernel = where_legal(enclosed, kernel)
    effects, why = Effects(kernel), NotLegal("no round leaves one item out before a loop")
    for loop in loops_in(kernel.function.body):
        *before, branch = body_of(loop.body) or [loop.body]
        if not isinstance(branch, If) or not _leaves_one_out(kernel, branch):
            continue
        inside = body_of(branch.then)
        first = [*_finding(kernel, effects, inside)]
        while first and not loops_in(first[-1]):
            first.pop()
        rest = inside[len(first) :]
        if not first or not rest or _named_twice(before, first):
            continue
        asked = _asked(kernel, effects, first)
        if asked is None:
            why = NotLegal("who is left out may ask for elements that are not there", loop.line)
            continue
        late = replace(branch, then=Block(None, branch.line, tuple(rest)), span=None, head=None)
        body = Block(None, loop.line, (*before, *first, late))
        made = edited(kernel.function.body, {loop.body: body})
        return kernel.rewritten(made, directives=asked)
    raise why


def _leaves_one_out(kernel: Kernel, branch: If) -> bool:
    """Whether a branch without another one is taken but where two whole numbers are the same."""
    if branch.before is not None or branch.constant or branch.other is not None:
        return False
    match branch.test:
        case Binary(op="!=") as test:
            pass
        case Unary(op="!", operand=Binary(op="==") as test):
            pass
        case _:
            return False
    kinds = [kernel.reading.types.get(side) for side in (test.left, test.right)]
    touching = {access.own for access in kernel.reading.accesses}
    whole = all(kind is not None and kind.integral for kind in kinds)
    return whole and is_value(kernel, test, touching)


def _finding(kernel: Kernel, effects: Effects, inside: Sequence[Statement]) -> Iterator[Statement]:
    """The statements that a branch begins with and that do nothing but find locals of their own."""
    exact = {axis.node for axis in kernel.axes().values() if axis.exact}
    for at, statement in enumerate(inside):
        found = {v for s in inside[:at] for v in declared_in(s)}
        plain = isinstance(statement, Declare | Loop) and effects.computes(statement, ())
        if not plain or not {*effects.changed(statement)} <= found:
            return
        if any(ends(statement)) or effects.kept(statement) or not {*loops_in(statement)} <= exact:
            return
        if any(map(_may_trap, (e for s in walk(statement) for e in s.expressions))):
            return
        yield statement


def _may_trap(top: Expr) -> bool:
    return any(
        isinstance(e, Binary) and e.op in ("/", "%") and not isinstance(e.right, Literal)
        for e in every(top)
    )


def _named_twice(before: Sequence[Statement], first: Sequence[Statement]) -> bool:
    """Whether a local of the branch has the name of one that stands before it in the round."""
    names = [v.name for s in (*before, *first) if isinstance(s, Declare) for v in s.variables]
    return len(names) != len({*names})


def _asked(
    kernel: Kernel, effects: Effects, first: Sequence[Statement]
) -> list[RequireDirective] | None:
    """What arrays must have for all that is loaded; None where that is not certain."""
    inside = {e for statement in first for e in effects.inside(statement)}
    found = [a for a in kernel.reading.accesses if a.own in inside]
    symbols = kernel.reading.symbols
    asked = dict[str, RequireDirective]()
    for access in found:
        if access.mode != "load" or access.space != "global" or access.index is None:
            return None
        guard = (part for c in access.guard for part in c.conjuncts())
        known = Ranges([p for p in guard if not _is_apart(p)], symbols, sizes=True)
        counts = [_count(kernel, other) for other in found if other.array == access.array]
        within = next(
            (count for count in counts
             if count is not None and known.nonnegative(count - _ONE - access.index)), None
        )  # fmt: skip
        if within is None or not known.nonnegative(access.index):
            return None
        words = Speller(symbols, {}).form(within)
        enough = room(kernel, access, words)
        if enough is None:
            return None
        asked[str(enough)] = enough
    return [*asked.values()]


def _is_apart(part: Condition) -> bool:
    """Whether it says that two numbers differ, which whoever is left out does not know."""
    return isinstance(part, Compare) and part.op == "!="


def _count(kernel: Kernel, access: Access) -> Polynomial | None:
    """How many elements there are up to that of the last rounds, of sizes alone."""
    assert access.index is not None
    last = access.index
    for axis in reversed([*kernel.axes().values()]):
        by, test = last.coefficient(axis.name), axis.test
        if by is None or not isinstance(test, Compare) or test.op != ">=":
            return None
        if not by.terms:
            continue
        left = test.form.coefficient(axis.name)
        if left is None or left.value != -1:
            return None
        last = last.without([axis.name]) + by * test.form.without([axis.name])
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    return last + _ONE if last.symbols <= given - Effects(kernel).moved else None
