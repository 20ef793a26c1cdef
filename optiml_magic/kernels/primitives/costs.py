"""Roughly what a launch takes at the measured sizes, and how long its code is written out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from optiml_magic.chips import CHIPS
from optiml_magic.kernels import functions
from optiml_magic.kernels.expressions import Call, Expr, every
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.sizes import mean_rounds, middle, rounds, threads
from optiml_magic.kernels.tree import expressions

_RESIDENT = 2048  # threads of a multiprocessor that is full
_WAIT = 4e-8  # seconds of a round of a loop that loads, several of them under way: ours
_MANY = 16  # accesses that a function counts for which is a hundred instructions and more: ours
_SHORT = 64  # rounds of a loop that compilers write out: ours
_UNKNOWN = 32  # rounds of a loop of which nothing is known
_HUNDRED, _THIRTY = 100, 30  # instructions of functions that are long and middling: ours


def rough_seconds(kernel: Kernel) -> float | None:
    """The longer of two: its bytes at the memory's speed, and its turns of rounds one by one.

    None where the chip or the sizes are not known. Nothing is said of how accesses lie.
    """
    chip, count = CHIPS.get(kernel.chip), threads(kernel)
    if chip is None or count is None:
        return None
    at = middle(kernel)
    known = {
        axis.name: rounds(kernel, axis, at) if own is None else own
        for axis in kernel.reading.axes
        for own in (mean_rounds(kernel, axis),)
    }
    made = [
        (access.element.size or 1, math.prod(_rounds(known.get(name)) for name in access.loops))
        for access in kernel.reading.accesses
        if access.space == "global"
    ]
    turns = max(1.0, count / (_RESIDENT * chip.sms)) * max((n for _, n in made), default=1)
    return max(count * sum(size * n for size, n in made) / chip.dram_bandwidth, turns * _WAIT)


def code_of_calls(kernel: Kernel, found: Iterable[Expr]) -> int:
    """How many times as long code is as its accesses, for what it calls and what that calls."""
    return _MANY * sum(map(functions.is_long, _called(kernel, found))) or 1


def long_calls(kernel: Kernel) -> int:
    """How many calls of long functions a compiler writes out, where it unrolls short loops."""
    effects, axes, total = Effects(kernel), kernel.axes(), 0
    inside = {loop: effects.inside(loop) for loop in axes}
    for expr in expressions(kernel.function.body):
        count = sum(map(functions.is_long, _called(kernel, [expr])))
        for loop in (one for one in axes if count and expr in inside[one]):
            made = rounds(kernel, axes[loop]) or 1
            count *= made if made <= _SHORT else 1
        total += count
    return total


def is_long(kernel: Kernel, *found: Expr) -> bool:
    """Whether what expressions call is about a hundred instructions, or what that calls is."""
    names = [*_called(kernel, (e for one in found for e in every(one)))]
    return any(map(functions.is_long, names)) or sum(map(functions.is_middling, names)) > 1


def instructions(kernel: Kernel, expr: Expr) -> int:
    """Roughly those of the longest function that an expression calls, or that this calls; or 0."""
    names = {*_called(kernel, every(expr))}
    if any(map(functions.is_long, names)):
        return _HUNDRED
    return _THIRTY if any(map(functions.is_middling, names)) else 0


def _called(kernel: Kernel, found: Iterable[Expr]) -> Iterator[str]:
    """The names of the functions that are called, and of those that these call."""
    for call in found:
        if isinstance(call, Call):
            own = kernel.unit.called(call.function, len(call.arguments))
            within = [*own, *(more for one in own for more in reached(kernel.unit, one))]
            inner = (e for one in within for e in expressions(one.body))
            yield from (e.function for e in (call, *inner) if isinstance(e, Call))


def _rounds(known: int | None) -> int:
    return _UNKNOWN if known is None else known
