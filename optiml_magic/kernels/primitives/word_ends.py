"""Searches by words that end where their bounds do, whatever they find beyond.

Where nothing but the end of a loop follows from what it finds, the symbols behind its bounds need
no mask: the counter goes no further than the least of the bounds, which is known before the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Index, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import bracketed
from optiml_magic.kernels.primitives.nonnegative import is_above
from optiml_magic.kernels.primitives.packed_places import Symbol, bare
from optiml_magic.kernels.primitives.word_loops import Bound, WordLoop
from optiml_magic.kernels.tree import Evaluate, Leave, Statement, Variable

_FAR = 2**30  # numbers beyond may overflow a difference: ours


@dataclass(frozen=True, eq=False)
class Ends:
    """``bounds`` are what the counter stays below, ``going`` what else its loop goes on by."""

    bounds: tuple[Expr, ...]
    going: tuple[Expr, ...]


def ends_of(found: WordLoop) -> Ends | None:
    """The ends of a search that does no more than end; None for other loops."""
    own, before = found.round.counter, found.loop.before
    plain = all(b.op == "<" and b.kind.signed and b.kind.size == 4 for b in found.bounds)
    if not found.stops or not plain or not all(_breaks(s) for s in found.then):
        return None
    if before is not None and not _begins(before, own):
        return None
    if any(not s.alone and _last(found, s) is None for s in found.symbols):
        return None
    bounds = [_below(found.round.kernel, bound, own) for bound in found.bounds]
    asked = {e.variable for b in bounds if b is not None for e in every(b) if isinstance(e, Name)}
    if None in bounds or own in asked or asked & Effects(found.round.kernel).addressed:
        return None
    going = [t for t in found.going if not any(_says(t, bound) for bound in found.bounds)]
    return Ends(tuple(b for b in bounds if b is not None), tuple(going))


def _breaks(statement: Statement) -> bool:
    return isinstance(statement, Leave) and statement.kind == "break"


def _begins(statement: Statement, counter: Variable) -> bool:
    match statement:
        case Evaluate(expression=Assign(op="=", target=Name(variable=own))):
            return own is counter
    return False


def _says(test: Expr, bound: Bound) -> bool:
    match test:
        case Binary(left=left, right=right):
            return {left, right} == {bound.low, bound.high}
    return False


def _below(kernel: Kernel, bound: Bound, counter: Variable) -> Expr | None:
    """What the counter stays below where ``bound`` holds; None where that may overflow."""
    rest, high = _without(bound.low, counter), bound.high
    if rest is None:
        return None
    if _is_nothing(rest):
        return high
    near = isinstance(high, Literal) and isinstance(high.value, int) and abs(high.value) < _FAR
    return Binary(None, "-", high, rest) if near or is_above(kernel, rest, ()) else None


def _without(expr: Expr, counter: Variable) -> Expr | None:
    """What is added to the counter."""
    match expr:
        case Name(variable=own) if own is counter:
            return Literal(None, "0", 0)
        case Binary(op="+" | "-" as op, left=left, right=right):
            ours = _without(left, counter)
            if ours is not None:
                nothing = _is_nothing(ours) and op == "+"
                return right if nothing else Binary(None, op, ours, right)
            theirs = _without(right, counter) if op == "+" else None
            if theirs is not None:
                return left if _is_nothing(theirs) else Binary(None, "+", left, theirs)
    return None


def _is_nothing(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0


def _last(found: WordLoop, symbol: Symbol) -> str | None:
    """Which word the last symbol is in that a step from ``symbol`` may ask for, spelled."""
    high = next((b.high for b in found.bounds if same(b.low, symbol.at)), None)
    count = symbol.width // symbol.bits
    if high is None or not isinstance(symbol.word, Index):
        return None
    match bare(symbol.word.index):
        case Binary(op="/" | ">>" as op, left=left, right=Literal(value=int() as by)) if (
            same(bare(left), symbol.at) and (by if op == "/" else 1 << by) == count
        ):
            known = high.value if isinstance(high, Literal) else None
            if isinstance(known, int):
                return str((known - 1) // count)
            return f"({bracketed(found.round.kernel, high)} - 1) >> {count.bit_length() - 1}"
    return None


def second_of(found: WordLoop, symbol: Symbol, first: str) -> str:
    """The word behind the one at ``first``, or the last one where that is it."""
    assert isinstance(symbol.word, Index)
    shown = found.round.kernel.spelled
    return f"{shown(symbol.word.base)}[min({shown(text(first))} + 1, {_last(found, symbol)})]"
