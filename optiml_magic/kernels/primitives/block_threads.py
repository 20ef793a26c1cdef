"""Which threads of a block do what its text says once for each element, or once for the block."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.grids import form_of, needed_form, room
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import THREADS, Compare, Condition

_AXES = "xyz"
_MOST, _WRAPS = 1024, 1 << 31  # threads of a block, and where a number of 32 bits begins anew
_ZERO, _ONE = Polynomial.constant(0), Polynomial.constant(1)


class BlockThreads:
    """The threads of a block of known extents, numbered with x first."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.extents = [extent or 1 for extent in kernel.block]
        self.count = math.prod(self.extents)
        self.number, stride = _ZERO, 1
        for axis, extent in zip(_AXES, self.extents, strict=True):
            if extent > 1:
                by = Polynomial.constant(stride)
                self.number = self.number + by * Polynomial.symbol(f"threadIdx.{axis}")
            stride *= extent

    def each_once(self, access: Access, count: int) -> bool:
        """Whether one thread of the block, and one alone, comes to each of so many elements."""
        if access.index is None:
            return False
        index, loops, each = self._rows(access)
        if count % each:
            return False
        count //= each
        along = [loop.test for loop in self.kernel.reading.loops(access) if loop not in loops]
        tests = self._tests(c for c in access.guard if c not in along)
        first = self._first_alone([t for t in tests if isinstance(t, Compare) and t.op == "=="])
        thread, threads = (_ZERO, 1) if first else (self.number, self.count)
        if first:
            tests = [t for t in tests if not isinstance(t, Compare) or t.op != "=="]
        if len(loops) == 1:
            thread = thread + Polynomial.constant(threads) * Polynomial.symbol(loops[0].name)
        last = Polynomial.constant(count - 1) - thread
        if index != Polynomial.constant(each) * thread or len(loops) > 1 or not all(
            isinstance(test, Compare) and (test.op, test.form) == (">=", last) for test in tests
        ):  # fmt: skip
            return False
        if not loops:
            return threads == count or (threads > count and bool(tests))
        (axis,) = loops
        rounds = (axis.start, axis.step, axis.stop)
        known = [self.plain(form) for form in rounds if form is not None]
        begins = thread.without([axis.name])
        whole = [begins, Polynomial.constant(threads), Polynomial.constant(count)]
        return axis.exact and not axis.scaled and known == whole

    def _rows(self, access: Access) -> tuple[Polynomial, list[Axis], int]:
        """Where a row of elements begins that rounds go along, the other loops, and its length."""
        assert access.index is not None
        index, each = self.plain(access.index), 1
        loops = list(self.kernel.reading.loops(access))
        while loops:
            loop = loops[-1]
            whole = loop.exact and not loop.scaled and (loop.start, loop.step) == (_ZERO, _ONE)
            rounds = loop.stop.value if whole and loop.stop is not None else None
            if not rounds or index.coefficient(loop.name) != Polynomial.constant(each):
                break
            index, each = index.without([loop.name]), each * rounds
            loops.pop()
        return index, loops, each

    def plain(self, form: Polynomial) -> Polynomial:
        """A form without the places of threads along axes that have one alone."""
        extents = zip(_AXES, self.extents, strict=True)
        return form.without([f"threadIdx.{axis}" for axis, extent in extents if extent == 1])

    def _tests(self, guard: Iterable[Condition]) -> list[Condition]:
        return [
            replace(c, form=self.plain(c.form)) if isinstance(c, Compare) else c
            for condition in guard for c in condition.conjuncts()
        ]  # fmt: skip

    def _first_alone(self, tests: Sequence[Condition]) -> bool:
        """Whether tests let the first thread go on, and none else, whatever the data are."""
        zero = set[str]()
        for test in tests:
            if not isinstance(test, Compare) or test.op != "==":
                return False
            terms = dict(test.form.terms)
            if not all(len(of) == 1 and of[0] in THREADS for of in terms):
                return False
            most = sum(abs(factor) * _MOST for factor in terms.values())
            if len({factor > 0 for factor in terms.values()}) != 1 or most >= _WRAPS:
                return False
            zero |= {of[0] for of in terms}
        return bool(tests) and self.number.symbols <= zero


def by_one_at_least(kernel: Kernel, arrays: Collection[str]) -> bool:
    """Whether what is done to these first is done for one thread of a launch if there is any.

    Its guards are no more than that threads are no further than its launch is made for, and no
    blocks are launched where there is nothing for the first of these threads.
    """
    first = next((a for a in kernel.reading.accesses if a.array in arrays), None)
    if first is None or first.loops:
        return False
    bounds = set[Polynomial]()
    for at, (grid, block) in enumerate(zip(kernel.launch.grid, kernel.launch.block, strict=False)):
        width, axis = kernel.block[at], _AXES[at]
        whole = rounded_up(grid.tree, block.tree, width) if width and width > 1 else grid.tree
        bound = form_of(whole, kernel.reading.symbols) if whole is not None else None
        if bound is not None and width is not None and bound == needed_form(kernel, axis):
            bounds.add(room(axis, width, bound))
    tests = [c for condition in first.guard for c in condition.conjuncts()]
    return all(isinstance(c, Compare) and c.op == ">=" and c.form in bounds for c in tests)
