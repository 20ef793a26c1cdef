"""P26, unparted: what both ways of a branch add is added without it.

A block that kept the inner part of a window in shared memory took the rest from where it was:
``if (inside) sum += f * (x < w ? a[x] : 0); else if (0 <= x && x < w) sum += f * a[x];`` once
nothing is staged. Both ways add the same element where it is there; where it is not, one adds zero
and the other nothing, which is the same but for what is not finite and for the sign of a zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Choice,
    Expr,
    Literal,
    Name,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.primitives.stepwise import plain
from optiml_magic.kernels.primitives.type_names import names_in
from optiml_magic.kernels.primitives.zeros import is_zero
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Compare, Condition, Every
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Statement, body_of, walk
from optiml_magic.kernels.types import INT

_SMALL = (1, 2)  # bytes of what counts as an `int` in a sum
_ZERO = "zero times what is not finite, and which of two zeros comes first"


@primitive
def unparted(kernel: Kernel) -> Kernel:
    """The kernel without such branches; it has one."""
    effects, swaps, floats = Effects(kernel), dict[Node, Node](), False
    for branch in walk(kernel.function.body):
        if not isinstance(branch, If) or branch.other is None or branch.before is not None:
            continue
        then, otherwise = _added(effects, branch.then), _added(effects, branch.other)
        if then is None or otherwise is None or not plain(branch.test, effects):
            continue
        if names_in(kernel, branch) or not _quiet_ways(effects, branch):
            continue
        for kept, other, way in (
            (otherwise, then, branch.other), (then, otherwise, branch.then),
        ):  # fmt: skip
            if _covers(kernel, branch, kept, other):
                swaps[branch] = way
                floats = floats or (other.choice is not None and _floats(kernel, other))
                break
    if not swaps:
        raise NotLegal("no branch adds the same both ways")
    told = (*kernel.arithmetic, *([_ZERO] * floats))
    made = kernel.rewritten(edited(kernel.function.body, swaps))
    return where_legal(pruned, replace(made, arithmetic=tuple(dict.fromkeys(told))))


@dataclass(frozen=True)
class _Added:
    """``sum += value`` with an element in it, or zero where a ``choice`` says so.

    The statement, that is all that a way does, may stand under a test of its own.
    """

    sum: Name
    value: Expr
    load: Access
    choice: Choice | None
    tested: bool


def _added(effects: Effects, way: Statement) -> _Added | None:
    body = [*_bare(way)]
    tested = len(body) == 1 and isinstance(body[0], If)
    if tested:
        (branch,) = body
        assert isinstance(branch, If)
        if branch.other is not None or branch.before is not None:
            return None
        if not plain(branch.test, effects):
            return None
        body = [*_bare(branch.then)]
    match body:
        case [Evaluate(expression=Assign(op="+=", target=Name() as sum_, value=value))]:
            inside = {*every(value)}
            loads = [a for a in effects.accesses(body[0]) if a.guard]
            parts = [e for e in inside if isinstance(e, Choice)]
            choice = parts[0] if len(parts) == 1 else None
            own = {*every(choice.then)} if choice is not None else inside
            found = [a for a in loads if a.own in own and a.call is None and _varies(a, loads)]
            if len(parts) > 1 or len(found) != 1 or sum_.variable in names([value]):
                return None
            if not quiet(value) or any(isinstance(e, Call | Unread) for e in inside):
                return None
            if choice is not None and (tested or not plain(choice.test, effects)):
                return None
            return _Added(sum_, value, found[0], choice, tested)
    return None


def _varies(access: Access, loads: Sequence[Access]) -> bool:
    """Whether this is the element that may not be there: the guards of others are no longer."""
    thread = {f"threadIdx.{axis}" for axis in "xyz"}
    own = access.index is not None and bool(access.index.symbols & thread)
    return own and all(len(a.guard) <= len(access.guard) for a in loads)


def _bare(way: Statement) -> Iterator[Statement]:
    """What a way does besides declaring what it asks for."""
    for statement in body_of(way):
        if isinstance(statement, Block):
            yield from _bare(statement)
        elif not isinstance(statement, Declare):
            yield statement


def _covers(kernel: Kernel, branch: If, kept: _Added, other: _Added) -> bool:
    """Whether one way does what the other does, where the branch would have led there."""
    if not kept.tested or other.tested or kept.sum.variable is not other.sum.variable:
        return False
    one, two, choice = kept.load, other.load, other.choice
    if one.array != two.array or one.element != two.element:
        return False
    if one.index is None or one.index != two.index:
        return False
    left = [
        edited(kept.value, {one.node: text("@")}),
        edited(other.value, {choice or two.node: text("@")}),
    ]
    inside = declared_in(branch)
    if kernel.spelled(left[0]) != kernel.spelled(left[1]) or names(left) & inside:
        return False
    if choice is not None and (
        choice.then is not two.node or not _is_zero(choice.other)
        or not _is_of_type(kernel, choice, two.node)
        or not is_zero(other.value, {choice}, {})
    ):  # fmt: skip
        return False
    way, held = (two.guard[:-1], [two.guard[-1]]) if choice is not None else (two.guard, [])
    if not way or len(one.guard) != len(way) + 1 or one.guard[:-2] != way[:-1]:
        return False
    if one.guard[-2] != ~way[-1] and way[-1] != ~one.guard[-2]:
        return False
    tests = all(_follows(kernel, [*way, one.guard[-1]], wanted) for wanted in held)
    return tests and _follows(kernel, [*way, *held], one.guard[-1])


def _quiet_ways(effects: Effects, branch: If) -> bool:
    """Whether what the ways declare is computed from names and numbers."""
    declared = (s for s in walk(branch) if isinstance(s, Declare))
    return all(
        v.value is not None and plain(v.value, effects) and not v.type.reference and not v.array
        for s in declared for v in s.variables
    )  # fmt: skip


def _is_of_type(kernel: Kernel, choice: Choice, load: Expr) -> bool:
    """Whether an element counts as what a choice of it or zero does: as itself or as an `int`."""
    types = kernel.reading.types
    one, both = types.get(load), types.get(choice)
    if one is None or both is None or both.kind == "unknown":
        return False
    small = one.integral and one.size in _SMALL and both == INT
    return small or both == one


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0


def _follows(kernel: Kernel, given: list[Condition], wanted: Condition) -> bool:
    """Whether a condition certainly holds where others do."""
    ranges = Ranges(given, kernel.reading.symbols)
    parts = wanted.parts if isinstance(wanted, Every) else (wanted,)
    held = {part for one in given for part in one.conjuncts()}
    return all(
        part in held
        or (isinstance(part, Compare) and part.op == ">=" and ranges.nonnegative(part.form))
        for part in parts
    )


def _floats(kernel: Kernel, added: _Added) -> bool:
    kind = kernel.reading.types.get(added.sum)
    return kind is None or not kind.integral
