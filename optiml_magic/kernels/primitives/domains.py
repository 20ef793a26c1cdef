"""Which elements the threads of one block touch, counted one by one: what no formula need prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import THREADS, Always, Compare, Condition, Every, Some

_MOST = 1 << 18  # places of threads and rounds that are counted at once; ours
_MOST_ROUNDS = 1 << 12  # of one loop
Numbers = Any  # an array of whole numbers, one for each place


@dataclass(frozen=True, eq=False)
class Domain:
    """Threads of a block and rounds of loops; ``at`` has the numbers of each, place by place."""

    kernel: Kernel
    at: dict[str, Numbers]
    count: int

    def numbers(self, form: Polynomial) -> Numbers | None:
        """What a form is at each place; None where it depends on more than these."""
        total = np.zeros(self.count, np.int64)
        for monomial, factor in form.terms:
            product = np.full(self.count, factor, np.int64)
            for name in monomial:
                one = self._symbol(name)
                if one is None:
                    return None
                product = product * one
            total = total + product
        return total

    def _symbol(self, name: str) -> Numbers | None:
        if name in self.at:
            return self.at[name]
        symbol = self.kernel.reading.symbols.table.get(name)
        chosen = symbol is not None and symbol.kind == "select" and symbol.condition is not None
        if symbol is None or not (symbol.kind == "operation" or chosen):
            return None
        if len(symbol.arguments) != 2:
            return None
        left, right = (self.numbers(argument) for argument in symbol.arguments)
        if left is None or right is None:
            return None
        if chosen:
            assert symbol.condition is not None
            first = self.holds(symbol.condition)
            return np.where(first, left, right) if first is not None else None
        if symbol.op in ("min", "max"):
            return np.minimum(left, right) if symbol.op == "min" else np.maximum(left, right)
        if symbol.op not in ("/", "%") or not right.all():
            return None
        quotient = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)
        return quotient if symbol.op == "/" else left - quotient * right

    def holds(self, condition: Condition) -> Numbers | None:
        """Where a condition holds; None where it depends on more than these."""
        match condition:
            case Always(value=value):
                return np.full(self.count, value)
            case Compare(op=op, form=form):
                found = self.numbers(form)
                if found is None:
                    return None
                return found >= 0 if op == ">=" else (found == 0) == (op == "==")
            case Every(parts=parts) | Some(parts=parts):
                every: list[Any] = [self.holds(part) for part in parts]
                if any(one is None for one in every):
                    return None
                join = np.logical_and if isinstance(condition, Every) else np.logical_or
                return join.reduce(every)
        return None

    def certain(self, condition: Condition) -> Numbers:
        """Where a condition holds whatever else it depends on."""
        found = self.holds(condition)
        if found is None and isinstance(condition, Every | Some):
            join = np.logical_and if isinstance(condition, Every) else np.logical_or
            return join.reduce([self.certain(part) for part in condition.parts])
        return found if found is not None else np.full(self.count, False)

    def where(self, chosen: Numbers) -> Domain:
        at = {name: numbers[chosen] for name, numbers in self.at.items()}
        return Domain(self.kernel, at, int(np.count_nonzero(chosen)))


def parted(
    kernel: Kernel, guard: Iterable[Condition], inner: Sequence[Axis]
) -> tuple[Domain, list[Condition]] | None:
    """The threads of a block that come somewhere in which rounds of loops, and what else must hold.

    That is what is not decided by the place of a thread in its block and its round. None where it
    does not say how many rounds an ``inner`` loop has, or they are too many to count.
    """
    if None in kernel.block:
        return None
    names = sorted(THREADS)
    sizes = [kernel.block["xyz".index(name[-1])] or 1 for name in names]
    parts = [p for c in guard for p in c.conjuncts()]
    for axis in inner:
        rounds = _rounds(kernel, axis, parts)
        if rounds is None:
            return None
        names.append(axis.name)
        sizes.append(rounds)
    count = int(np.prod(sizes, dtype=np.int64))
    if count > _MOST:
        return None
    grid = np.unravel_index(np.arange(count), sizes)
    domain = Domain(kernel, dict(zip(names, grid, strict=True)), count)
    chosen, rest = np.full(count, True), list[Condition]()
    for part in parts:
        found = domain.holds(part)
        if found is None:
            rest.append(part)
        else:
            chosen &= found
    return domain.where(chosen), rest


def _rounds(kernel: Kernel, axis: Axis, guard: Sequence[Condition]) -> int | None:
    """As many rounds as any thread of a block makes, where a number says so."""
    if axis.trips is not None:
        return axis.trips
    threads = parted(kernel, (), ())
    best = None
    for part in guard:
        if not isinstance(part, Compare) or part.op != ">=" or threads is None:
            continue
        by = part.form.coefficient(axis.name)
        rest = threads[0].numbers(part.form.without([axis.name]))
        if by is None or by.value is None or by.value >= 0 or rest is None:
            continue
        most = int(rest.max()) // -by.value + 1
        best = most if best is None else min(best, most)
    return None if best is None or best > _MOST_ROUNDS else max(best, 0)
