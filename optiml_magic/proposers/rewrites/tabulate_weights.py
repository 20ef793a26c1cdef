"""Short loops that compute the same weights in every round of the loop around them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.expressions import Binary, Call, every
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.invariant import computed_before, repeating
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.sines_apart import sines_apart
from optiml_magic.kernels.primitives.sized import bounding, sized
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.tabulated import LONGEST, Value, tabulated, tabulating
from optiml_magic.kernels.tree import expressions
from optiml_magic.kernels.types import named
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_ROUNDED = ("products are rounded before a sum takes them",)
_PLACES = 0.3  # the chance where it is places alone that are computed before a loop: ours
_USUAL = 8.0  # rounds of a loop whose number is not known


def short_counted(kernel: Kernel) -> Kernel:
    """Short loops that begin where their thread says, such as at a pixel's place, count from 0."""
    for at in range(len(loops_in(kernel.function.body))):
        axis = kernel.axes().get(loops_in(kernel.function.body)[at])
        known = axis is not None and axis.start is not None and axis.start.value is not None
        if axis is not None and not known and 1 < (axis.trips or 0) <= LONGEST:
            kernel = where_legal(as_counted, kernel, at, is_simple)
    return kernel


class TabulateWeights(KernelRule):
    """Weights of a filter along x, which are those of every row; angles of a transform."""

    name = "tabulate_weights"
    before = (sines_apart, scoped, *PLAIN, in_full, direct, short_counted)
    teaches = (
        "Every round of a loop computed the same row of weights anew, or the same value, with "
        "functions that take dozens of instructions. They are computed once, before the loop, into "
        "registers. A compiler does so with what it can move by itself, which a function with a "
        "branch is not."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        given, sizes, found = kernel, dict[str, int](), tabulating(kernel)
        if found is None and (sizes := _short_sizes(kernel)):
            kernel = where_legal(sized, kernel, sizes)
            found = tabulating(kernel)
        if found is None:
            yield from self._alike(given)
            return
        at, values = found
        loop = loops_in(kernel.function.body)[at]
        axis = kernel.axes().get(loop)
        times = rounds(kernel, axis) if axis is not None else None
        rounded = any(value.rounded for value in values) or repeating(kernel)
        yield Site(
            f"before {at}",
            "compute what a short loop weighs by before the loop around it"
            + "".join(f", where {name} is {size}" for name, size in sizes.items()),
            partial(_apply, kernel, at),
            _PLACES if all(_is_place(kernel, value) for value in values) else 0.8, _fewer(times),
            arithmetic=_ROUNDED if rounded else (),
        )  # fmt: skip

    def _alike(self, kernel: Kernel) -> Iterator[Site]:
        """Values alone, where no short loop has weights of its own."""
        at = repeating(kernel)
        if not at:
            return
        loop = loops_in(kernel.function.body)[at[0]]
        axis = kernel.axes().get(loop)
        times = rounds(kernel, axis) if axis is not None else None
        yield Site(
            f"alike {at[0]}",
            "compute what is the same in all rounds of a loop before it",
            partial(_before, kernel), 0.6, _fewer(times), arithmetic=_ROUNDED,
        )  # fmt: skip


def _short_sizes(kernel: Kernel) -> dict[str, int]:
    """The sizes that bound short loops within others."""
    inner = {x for loop in loops_in(kernel.function.body) for x in loops_in(loop.body)}
    return bounding(kernel, LONGEST, lambda axis: axis.node in inner)


def _is_place(kernel: Kernel, value: Value) -> bool:
    """Whether it is a whole number by a few instructions, as a function that clamps finds it."""
    calls = [e for e in every(value.node) if isinstance(e, Call)]
    bodies = [f.body for e in calls for f in kernel.unit.called(e.function, len(e.arguments))]
    inside = [*every(value.node), *(e for body in bodies for e in expressions(body))]
    divides = any(isinstance(e, Binary) and e.op in "/%" for e in inside)
    types = (kernel.reading.types.get(e) for e in every(value.node))
    whole = all(kind is None or kind.integral for kind in types) and not is_long(kernel, value.node)
    return whole and not divides and named(value.kind, kernel.unit.aliases).integral


def _fewer(times: int | None) -> Hypothesis:
    return Hypothesis(
        "smsp__inst_executed.sum", "lower",
        "functions of a few numbers are computed once for all rounds",
        (1.1, max(1.2, float(times or _USUAL))),
    )  # fmt: skip


def _apply(kernel: Kernel, at: int) -> Kernel | Refused:
    made = tabulated(kernel, at)
    return made if isinstance(made, Refused) else _before(made)


def _before(kernel: Kernel) -> Kernel:
    """What rounds have in common before their loops, the outermost first."""
    for at in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(computed_before, kernel, at)
    return kernel
