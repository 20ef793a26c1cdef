"""Maps and gathers along rows: a thread takes the same place of several rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Name, builtin, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.kernels.primitives.jammed import (
    Several,
    blocks_name,
    extent_names,
    free_axes,
    item_names,
    jam,
    least,
    most_threads,
    shared,
)
from optiml_magic.kernels.primitives.rows_in_turn import ROWS, found_in, rows_in_turn
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds, threads
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.tree import Declare, Evaluate, expressions, walk
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.sums_behind import with_sums

_ITEMS = (4, 8, 2)
_EXTENTS = {"x": (32, 64, 128, 256), "y": (1, 2, 4, 8, 16), "z": (1, 2, 4)}
_SAVED = 0.05  # of its loads: from there on it is of share_loads
_ENOUGH = 512  # threads of a multiprocessor that hide what loads take
_WARP = 32
_LONG = 32  # rows from which on blocks of them are worth it: ours


class SeveralRows(KernelRule):
    """Padding, masks, flips, resizing: what vectors along a row cannot take; triangular systems."""

    name = "several_rows"
    before = (unstrided, linear, in_full, unravelled, unravelled_planes, floored)
    teaches = (
        "Each thread loaded one element and waited for it, and computed anew where it stands and "
        "what depends on its column alone. A thread that takes the same place of several rows "
        "computes that once, and has the loads of all of them under way at a time. Where a thread "
        "goes through rows that each ask for all rows before them, several of them do so together, "
        "so that each of those is loaded once for all."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from _in_turn(kernel)
        yield from with_sums(kernel, self._at_once(kernel))

    def _at_once(self, kernel: Kernel) -> Iterator[Site | Refused]:
        """Places of several rows, which neighbours in a column may have alike."""
        kernel = kernel.settled()
        effects = Effects(kernel)
        effects.straightforward()
        if loops_in(kernel.function.body) or not any(
            a.mode == "load" and a.space == "global" for a in kernel.reading.accesses
        ):
            return
        count, chip = threads(kernel), CHIPS.get(kernel.chip)
        enough = count is None or chip is None or count // _ITEMS[0] >= _ENOUGH * chip.sms
        for axis in sorted(set(free_axes(kernel)) - {"x"}):
            several = Several({axis: _ITEMS}, {}, _EXTENTS)
            if shared(kernel, several).saved[axis].share >= _SAVED:
                continue
            again = _again(kernel, axis, effects)
            yield Site(
                f"along {axis}",
                f"take several items along {axis} at once",
                partial(jam, kernel, several),
                round((0.4 if enough else 0.15) + 0.3 * again, 2),
                Hypothesis(
                    "smsp__inst_executed.sum", "lower",
                    "what is the same for all items of a thread is computed once", (1.05, 3.0),
                ),
                _points(kernel, several),
            )  # fmt: skip


def _in_turn(kernel: Kernel) -> Iterator[Site]:
    """Rows that each ask for all rows before them, several at once."""
    try:
        one = found_in(kernel)
    except NotLegal:
        return
    count = rounds(kernel, one.outer, {})
    if isinstance(rows_in_turn(kernel, ROWS[0]), Refused) or (count or _LONG) < _LONG:
        return
    # What all threads load alike is then one load for several rows of each of them.
    alike = any(
        a.index is not None and one.inner.name in a.loops
        and not {"threadIdx.x", "threadIdx.y"} & kernel.reading.symbols.inside(a.index)
        for a in kernel.reading.accesses if a.mode == "load"
    )  # fmt: skip
    name = kernel.fresh("ROWS")
    yield Site(
        f"in turn {one.outer.name}",
        f"take several rows at once of those that ask for all before them, over {one.row.name}",
        partial(rows_in_turn, kernel, ROWS[2]), 0.8 if alike else 0.5,
        Hypothesis(TIME, "lower", "what rows ask for is loaded once for several", (1.2, 4.0)),
        ({name: ROWS[2]}, {name: ROWS[3]}, {name: ROWS[1]}),
    )  # fmt: skip


def _again(kernel: Kernel, axis: str, effects: Effects) -> float:
    """The share of its arithmetic that is the same for all items along an axis."""
    body = kernel.function.body
    own = {f"threadIdx.{axis}", f"blockIdx.{axis}"}
    moving: set[object] = set()

    def moves(expr: Expr) -> bool:
        return any(builtin(e) in own or (isinstance(e, Name) and e.variable in moving)
                   for e in every(expr))  # fmt: skip

    for statement in walk(body):  # in the order of the text, as values are given
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable.value is not None and moves(variable.value):
                moving.add(variable)
        if isinstance(statement, Evaluate) and moves(statement.expression):
            moving |= effects.changed(statement).keys()
    work = [e for e in expressions(body) if isinstance(e, Binary | Call | Assign)]
    return sum(not moves(e) for e in work) / len(work) if work else 0.0


def _points(kernel: Kernel, several: Several) -> tuple[Point, ...]:
    """Blocks of two rows of warps or more, with four items a thread, then eight."""
    (name,) = item_names(kernel, several.counts).values()
    extents, blocks = extent_names(kernel), blocks_name(kernel)
    tall = {a: least(kernel, several, a) for a in "yz"}
    wide = max(_WARP, most_threads(kernel, several) // (tall["y"] * tall["z"]))
    own = {extents[a]: n for a, n in {**tall, "x": wide}.items() if a in extents}
    return tuple({name: n, **own, **({blocks: 1} if blocks else {})} for n in _ITEMS[:2])
