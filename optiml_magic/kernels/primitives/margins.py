"""Items too near to a border for a window: ``if (x < r || x >= w - r) return;`` and its kind.

Each such test keeps items between bounds that all of them have alike. So those with a window are
neighbours, and a place that lies in the window of one of them is found from the nearest of these.
What the others do, such as to store a zero, each of them does in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, If, Leave, Loop, Statement

_ONE = Polynomial.constant(1)
_WORD = 4  # bytes from which on an unsigned number stays one where it is compared
_MORE = "a guard says more of an item than that it is far from the borders"


@dataclass(frozen=True, eq=False)
class Margin:
    """A test that parts the items with a window from those without one.

    Attributes:
        test: as it stands in the kernel; ``leaves`` where it holds for those without a window.
        lows: what the index along each axis is at least, where there is a window.
        lasts: what it is at most.
        before: what the items with a window do between the test and the loop.
        others: what the items without one do.
        behind: what all items do in the end.
    """

    test: Expr
    leaves: bool
    lows: tuple[tuple[str, Polynomial], ...]
    lasts: tuple[tuple[str, Polynomial], ...]
    before: tuple[Statement, ...]
    others: tuple[Statement, ...]
    behind: tuple[Statement, ...]


@dataclass(frozen=True, eq=False)
class Around:
    """What stands around a nest of loops: before all margins, within them, and behind the nest."""

    before: tuple[Statement, ...]
    margins: tuple[Margin, ...]
    nest: Loop
    after: tuple[Statement, ...]


def around(kernel: Kernel, effects: Effects, inside: Sequence[Statement], loop: Loop) -> Around:
    """What items do around the nest with a loop. Raises NotLegal where it has another branch."""
    todo, parts, found = [*inside], [list[Statement]()], list[tuple[If, bool, Statement | None]]()
    ends = list[tuple[Statement, ...]]()
    while todo:
        statement = todo.pop(0)
        within = loop in loops_in(statement)
        if within and isinstance(statement, Loop):
            margins = [
                Margin(branch.test, leaves, *_bounds(kernel, effects, branch, loop, leaves=leaves),
                       tuple(own), _others(other), end)
                for (branch, leaves, other), own, end in zip(found, parts[1:], ends, strict=True)
            ]  # fmt: skip
            return Around(tuple(parts[0]), tuple(margins), statement, tuple(todo))
        if within and isinstance(statement, If) and loop in loops_in(statement.then):
            found.append((statement, False, statement.other))
            ends.append(tuple(todo))
            then = statement.then
            todo = [*then.body] if isinstance(then, Block) else [then]
            parts.append([])
        elif within:
            break
        elif isinstance(statement, If) and statement.other is None and _returns(statement.then):
            found.append((statement, True, statement.then))
            ends.append(())
            parts.append([])
        else:
            parts[-1].append(statement)
    raise NotLegal("the loop stands in a branch of its own", loop.line)


def _returns(statement: Statement) -> bool:
    """Whether a branch ends the kernel for its item."""
    last = statement.body[-1:] if isinstance(statement, Block) else (statement,)
    return bool(last) and isinstance(last[0], Leave) and last[0].kind == "return"


def _others(statement: Statement | None) -> tuple[Statement, ...]:
    """What items without a window do; they come to the end by themselves."""
    if statement is None:
        return ()
    own = statement.body if isinstance(statement, Block) else (statement,)
    return own[:-1] if _returns(statement) else own


def _bounds(
    kernel: Kernel, effects: Effects, branch: If, loop: Loop, *, leaves: bool
) -> tuple[tuple[tuple[str, Polynomial], ...], tuple[tuple[str, Polynomial], ...]]:
    """What a test says of the items with a window. Raises NotLegal where that is not all of it."""
    parts = [*split_test(branch.test, "||" if leaves else "&&")]
    _check_plain(kernel, branch, parts)
    lows, lasts = list[tuple[str, Polynomial]](), list[tuple[str, Polynomial]]()
    for condition in _held(kernel, effects, branch, loop, len(parts)):
        axis, own, rest = _of_place(kernel, condition, branch.line)
        symbols = kernel.reading.symbols
        made = symbols.made_of(rest)
        if made & effects.moved or any(symbols[name].kind != "scalar" for name in made):
            raise NotLegal("each item has its own distance from the border", branch.line)
        if own == _ONE:
            lows.append((axis, -rest))
        elif own == -_ONE:
            lasts.append((axis, rest))
        else:
            raise NotLegal(_MORE, branch.line)
    return tuple(lows), tuple(lasts)


def _check_plain(kernel: Kernel, branch: If, parts: Sequence[Expr]) -> None:
    """Raise NotLegal where a test does something, or counts so that it may wrap around."""
    if branch.before is not None:
        raise NotLegal(_MORE, branch.line)
    for expr in (e for part in parts for e in every(part)):
        if isinstance(expr, Assign | Step | Call):
            raise NotLegal("a test around the loop does more than to compare", branch.line)
        if isinstance(expr, Binary) and expr.op in ("<", "<=", ">", ">="):
            for side in (expr.left, expr.right):
                kind = kernel.reading.types.get(side)
                if kind is None or (not kind.signed and (kind.size or 0) >= _WORD):
                    raise NotLegal("a test around the loop compares unsigned numbers", branch.line)


def _held(
    kernel: Kernel, effects: Effects, branch: If, loop: Loop, count: int
) -> Iterator[Condition]:
    """The conditions that a test of so many parts leaves to the loop."""
    guards = [g for g in kernel.reading.guards if g.test is branch.test]
    within = [
        {part for condition in access.guard for part in condition.conjuncts()}
        for access in effects.accesses(loop)
    ]
    for guard in guards if len(guards) == 1 else ():
        for condition in (guard.condition, ~guard.condition):
            parts = [*condition.conjuncts()]
            if len(parts) == count and within and all({*parts} <= own for own in within):
                return iter(parts)
    raise NotLegal(_MORE, branch.line)


def _of_place(
    kernel: Kernel, condition: Condition, line: int
) -> tuple[str, Polynomial, Polynomial]:
    """The axis that a condition is about, the factor of the index along it, and all the rest."""
    if isinstance(condition, Compare) and condition.op == ">=":
        for axis, width in zip("xy", kernel.block, strict=False):
            form, place = index(condition.form, axis, width or 1), f"@{axis}"
            factor = form.coefficient(place) if form is not None else None
            if form is not None and factor is not None and place in form.symbols:
                return axis, factor, form.without([place])
    raise NotLegal(_MORE, line)


def within(
    margins: Sequence[Margin], asked: Callable[[Margin], str], shown: Callable[[Statement], str],
    inside: Iterable[str],
) -> Iterator[str]:  # fmt: skip
    """The lines of items with a window in those of all items."""
    for margin in margins:
        yield asked(margin)
        yield from map(shown, margin.before)
    yield from inside
    for margin in reversed(margins):
        yield "} else {" if margin.others else "}"
        yield from map(shown, margin.others)
        if margin.others:
            yield "}"
        yield from map(shown, margin.behind)
