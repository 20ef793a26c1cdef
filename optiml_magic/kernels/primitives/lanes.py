"""P4 and P1, lanes: what a thread did, a group of lanes does; they share the rounds of some loops.

Outside of these loops all lanes do the same with the same values; a reduction ends with a
combination, after which all hold the whole; the first lane stores. Lanes that meet memory which
others have written wait for each other first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import filled, needed
from optiml_magic.kernels.primitives.lane_rounds import LaneRounds
from optiml_magic.kernels.primitives.places import Place, is_wide, placed
from optiml_magic.kernels.primitives.restricted import shared_by_threads
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import parse_expression


@dataclass(frozen=True)
class Lanes:
    """``count`` lanes work on what one thread did, in blocks of ``block`` threads.

    The values of both that a tuner may choose from; with ``group`` block they are one. Lanes that
    are ``apart`` leave the neighbours of a thread its neighbours, as far as their warp reaches;
    ``stacked`` ones leave it a whole warp of them, and ask for whole blocks of threads.
    """

    group: Group
    count: int
    block: int
    counts: tuple[int, ...]
    blocks: tuple[int, ...]


@primitive
def share(kernel: Kernel, at: Sequence[int], lanes: Lanes, *, far: bool = False) -> Kernel:
    """Lanes share the loops with these numbers, or look ahead in them where they see ``far``."""
    sharing = SharedRounds(kernel.settled(), at, lanes, far)
    made = sharing.kernel()
    return shared_by_threads(made, sharing.exchanged) if sharing.exchanged else made


class SharedRounds(LaneRounds):
    """The whole kernel is the scope: what a thread did, a group of lanes does."""

    leaves = True

    def __init__(self, kernel: Kernel, at: Sequence[int], lanes: Lanes, far: bool) -> None:
        loops = loops_in(kernel.function.body)
        self.lanes = lanes
        super().__init__(
            kernel, [loops[number] for number in at], lanes.group, Effects(kernel),
            kernel.function.body, far=far,
        )  # fmt: skip
        block = lanes.group == "block"
        self.count = kernel.fresh("THREADS" if block else "LANES")
        self.block = self.count if block else kernel.fresh("BLOCK")
        self.stacked = lanes.group == "stacked"
        self.named = f"{self.count}, {self.block}" if self.stacked else self.count
        self.item = kernel.fresh("item")
        self.wide = any(is_wide(kernel, e) for e in uses(kernel, "x").whole)
        self.swaps = placed(kernel, self._places_of())
        self.asked: list[RequireDirective] = []
        self.even = False  # whether groups of lanes must fill the blocks that there were

    def check(self) -> None:
        kernel = self.old
        if None in kernel.block:
            raise NotLegal("how many threads its blocks have is not known")
        if kernel.block[2] != 1:
            raise NotLegal("its blocks have three dimensions")
        if kernel.launch.shared is not None:
            raise NotLegal("it has dynamic shared memory")
        self.effects.straightforward()
        for access in self.effects.hidden():
            if access.mode != "load":
                raise NotLegal("a function stores for it", access.line)
        super().check()

    @property
    def flat(self) -> bool:
        """Whether the threads of a block lie along x alone."""
        return self.old.block[1] == 1

    @property
    def width(self) -> int:
        return (self.old.block[0] or 1) * (self.old.block[1] or 1)

    def _whole(self, *, wide: bool = False) -> str:
        """The thread that a group of lanes stands for, counted through the grid along x."""
        if self.lanes.group == "block":
            return "(long long)blockIdx.x" if wide else "(int)blockIdx.x"
        apart = f"({self.block} / {self.count})"
        inside = f"threadIdx.x / {self.count}"
        if self.stacked:
            inside = f"threadIdx.x % {apart}"
        if self.lanes.group == "apart":
            beside = f"(32 / {self.count})"
            inside = f"threadIdx.x / 32 * {beside} + threadIdx.x % {beside}"
        if wide:
            return f"((long long)blockIdx.x * {apart} + {inside})"
        return f"(int)(blockIdx.x * {apart} + {inside})"

    def _places_of(self) -> dict[str, Place]:
        if self.flat:
            return {"x": Place(self._whole(), self.width, wide=self._whole(wide=True))}
        across, down = self.old.block[0] or 1, self.old.block[1] or 1
        block, thread = f"({self.item} / {self.width})", f"{self.item} % {self.width}"
        x, y = f"({thread} % {across})", f"({thread} / {across})"
        return {
            "x": Place(f"({block} * {across} + {x})", across, x, block),
            "y": Place(f"((int)blockIdx.y * {down} + {y})", down, y, "blockIdx.y"),
        }

    def kernel(self) -> Kernel:
        body = self.old.function.body
        self.share()
        inside = edited(body, {**self.swaps, **self.changes})
        opening = {
            "block": "threadIdx.x",
            "warp": f"threadIdx.x % {self.count}",
            "apart": f"threadIdx.x % 32 / (32 / {self.count})",
            "stacked": f"threadIdx.x / ({self.block} / {self.count})",
        }[self.lanes.group]
        known = [f"const int {self.lane} = {opening};"]
        kind = "long long" if self.wide else "int"
        item = f"const {kind} {self.item} = {self._whole(wide=self.wide)};"
        known += [] if self.flat else [item]
        first, launch = lines("\n".join(known)), self._launch()
        return self.old.rewritten(
            replace(inside, body=(first, *inside.body)),
            launch=launch,
            directives=[*self._tunes(), *self._sizes()],
            helpers=self.helpers(),
        )

    def _launch(self) -> LaunchDirective:
        launch, lanes = self.old.launch, self.lanes
        width = self.width
        whole = needed(self.old, "x") if self.flat else None
        if whole is not None:
            each = f"{self.block} / {self.count}"
            first = f"{whole}" if lanes.group == "block" else f"cdiv({whole}, {each})"
        else:
            if lanes.group != "block" and self.width * lanes.count % lanes.block:
                raise NotLegal("its blocks cannot be cut into groups of lanes")
            self.even = True
            blocks = launch.grid[0]
            first = (f"({blocks}) * {width}" if lanes.group == "block"
                     else f"({blocks}) * ({width} / ({self.block} / {self.count}))")  # fmt: skip
        if self.stacked:
            touched = [a for s in self.stores for a in self.effects.accesses(s)]
            found = [*(self.axes[r].guard for r in self.loops), *(a.guard for a in touched)]
            self.asked.append(filled(self.old, found, f"{self.block} / {self.count}"))
        grid = (parse_expression(first), *launch.grid[1:])
        return replace(launch, grid=grid, block=(parse_expression(self.block),))

    def _sizes(self) -> list[RequireDirective]:
        """What the launch asks for, so that rounds behind a loop's end may ask as well."""
        words = dict.fromkeys(size for one in self.broken.values() for size in one.sizes)
        words |= dict.fromkeys(size for one in self.ahead.values() for size in one.sizes)
        return [RequireDirective(parse_expression(size)) for size in words]

    def _tunes(self) -> list[Directive]:
        lanes = self.lanes
        found: list[Directive] = [TuneDirective(self.count, lanes.counts, lanes.count)]
        if lanes.group != "block":
            when = f"{self.width} % ({self.block} / {self.count}) == 0" if self.even else ""
            when = f"{self.block} >= 32 * {self.count}" if self.stacked else when
            fits = parse_expression(when) if when else None
            found.append(TuneDirective(self.block, lanes.blocks, lanes.block, fits))
        return [*found, *self.asked]
