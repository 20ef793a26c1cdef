"""Rows that one thread each walks along, walked by the lanes of a warp or a block together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.counted import counted
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.vectors import vectorise
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Point, Site

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_COUNTS = (2, 4, 8, 16, 32)
_BLOCKS = (64, 128, 256, 512)
_THREADS = (64, 128, 256, 512, 1024)
_A_LANE = 16  # elements of a row for each lane, where there are enough
_SHORT, _LONG = 256, 8192  # a block takes no shorter row, a warp no longer one: ours


class RowToLanes(KernelRule):
    """Loops over consecutive elements whose rows lie apart from thread to thread."""

    name = "row_to_lanes"
    before = (linear, planar)
    teaches = (
        "Each thread walked along a row of its own, so the lanes of a warp read elements that lie "
        "a row apart, a sector for each. Lanes that share a row read neighbouring elements, "
        "several at once where they are aligned, and many more threads hide the latency; shuffles "
        "combine what each of them has."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        effects = Effects(kernel)
        rows = _rows(kernel, effects)
        if not rows:
            return
        effects.straightforward()
        for axis in rows:
            if not axis.exact:
                reason = f"the loop has another way out: {axis.reason}"
                raise NotLegal(reason, axis.line)
        loops = loops_in(kernel.function.body)
        at = tuple(loops.index(axis.node) for axis in rows)
        lengths = [n for axis in rows if (n := rounds(kernel, axis)) is not None]
        length = max(lengths, default=0)
        counters = ", ".join(dict.fromkeys(a.variable.name for a in rows if a.variable))
        arithmetic = _arithmetic(kernel, rows)
        hypothesis = Hypothesis(_SECTORS, "lower", "lanes read neighbouring elements", (1.5, 8.0))
        if not length or length <= _LONG:
            yield Site(
                f"warp {at}", f"lanes of a warp share the loop over {counters}",
                partial(_apply, kernel, at, Lanes("warp", 32, 256, _COUNTS, _BLOCKS)),
                0.85, hypothesis, _lanes(length), arithmetic,
            )  # fmt: skip
        if not length or length >= _SHORT:
            yield Site(
                f"block {at}", f"a block shares the loop over {counters}",
                partial(_apply, kernel, at, Lanes("block", 256, 256, _THREADS, _THREADS)),
                0.86 if length > _LONG // 4 else 0.78, hypothesis, _threads(kernel, length),
                arithmetic,
            )  # fmt: skip


def _rows(kernel: Kernel, effects: Effects) -> list[Axis]:
    """The outermost loops that walk along rows, each thread along its own."""
    axes, found, inside = kernel.axes(), [], set[Loop]()
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if loop in inside or axis is None:
            continue
        if any(_along(kernel, axis, access) for access in effects.accesses(loop)):
            found.append(axis)
            inside |= set(loops_in(loop.body))
    return found


def _along(kernel: Kernel, axis: Axis, access: Access) -> bool:
    """Whether the rounds take neighbouring elements, and the threads such that lie apart."""
    form, size = access.offset, access.element.size
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or not size or by.value not in (size, -size):
        return False
    symbols = kernel.reading.symbols
    thread = form.coefficient("threadIdx.x")
    near = thread is not None and thread.value is not None and abs(thread.value) <= size
    return "threadIdx.x" in symbols.inside(form.without([axis.name])) and not (
        near and thread is not None and thread.terms
    )


def _arithmetic(kernel: Kernel, rows: list[Axis]) -> tuple[str, ...]:
    names = {axis.name for axis in rows}
    sums = [r for r in kernel.reading.reductions if names & set(r.axes) and not r.exact]
    return ("the order of additions",) if sums else ()


def _lanes(length: int) -> tuple[Point, ...]:
    """So many lanes that each has a few elements, and twice as many."""
    if not length:
        return ({}, {"LANES": 8})
    fit = max((n for n in _COUNTS if n * _A_LANE <= length + _A_LANE), default=_COUNTS[0])
    more = min(2 * fit, 32) if fit < 32 else 16
    return ({"LANES": fit}, {"LANES": more})


def _threads(kernel: Kernel, length: int) -> tuple[Point, ...]:
    rows = threads(kernel)
    if not length:
        return ({},)
    fit = max((n for n in _THREADS if n * _A_LANE <= length + _A_LANE), default=_THREADS[0])
    chip = CHIPS.get(kernel.chip)
    if rows is not None and chip is not None and rows < 4 * chip.sms:
        return ({"THREADS": _THREADS[-1]}, {"THREADS": 512})
    return ({"THREADS": fit}, {"THREADS": min(2 * fit, 1024) if fit < 1024 else 512})


def _apply(kernel: Kernel, at: tuple[int, ...], lanes: Lanes) -> Kernel | Refused:
    """Counted, as vectors, and shared: the loops with these numbers."""
    current = kernel
    for number in at:
        axis = current.axes().get(loops_in(current.function.body)[number])
        if axis is None:
            return Refused("a loop is not read")
        if not is_counted(axis, Effects(current)):
            plain = counted(current, number)
            if isinstance(plain, Refused):
                return plain
            current = plain
        whole = unpeeled(current, number)
        current = whole if isinstance(whole, Kernel) else current
    numbers = list(at)
    for number in reversed(at):
        before = loops_in(current.function.body)
        inner = len(loops_in(before[number].body))
        vectors = vectorise(current, number)
        if isinstance(vectors, Kernel):
            after = loops_in(vectors.function.body)
            added = len(after) - len(before)
            own = after[number : number + 1 + inner + added]
            within = {i for loop in own for i in loops_in(loop.body)}
            numbers = [n + added if n > number else n for n in numbers if n != number]
            numbers += [number + at for at, loop in enumerate(own) if loop not in within]
            current = vectors
    return share(current, sorted(numbers), lanes)
