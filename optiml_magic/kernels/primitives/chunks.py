"""P15, chunks: blocks share the rounds of a loop, each takes neighbouring ones.

As ``parts``, without rows of threads: the threads of a block stay alike, each with one item, and
what a round reads for all of them they still read together. A part is stored behind the loop, where
the guards of the kernel are still around.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import Swaps, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.grids import form_of, needed, said_alike
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.mapped import check_own_work, mapped
from optiml_magic.kernels.primitives.naming import declared_type, speller_before
from optiml_magic.kernels.primitives.parts import Sharing, Splitting
from optiml_magic.kernels.tree import Statement
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    ScratchDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import parse_expression


@primitive
def chunk(
    kernel: Kernel, at: int, parts: int, counts: tuple[int, ...], whole: int | str = 1
) -> Kernel:  # fmt: skip
    """The kernel that combines the parts of the loop with this number, which counts from 0 by 1.

    In front of it stands the one that makes them. ``counts`` are the numbers of parts to choose
    from; all but the last have a multiple of ``whole`` rounds, a number or what is one there.
    """
    return Chunks(kernel.settled(), at, Sharing(1, parts, (1,), counts), whole).kernel()


def front(kernel: Kernel) -> Kernel:
    """The kernel that makes the parts, of the one that combines them."""
    at = kernel.program.launches.index(kernel.launch)
    return replace(kernel, launch=kernel.program.launches[at - 1], behind=kernel)


def is_alone(kernel: Kernel) -> bool:
    """Whether one thread along x does it all."""
    blocks = kernel.launch.grid[0]
    fixed = not blocks.names and not blocks.arrays
    return kernel.block[0] == 1 and fixed and blocks.evaluate({}) == 1


class Chunks(Splitting):
    """Parts of neighbouring rounds, in their order."""

    in_order = True

    def __init__(self, kernel: Kernel, at: int, sharing: Sharing, whole: int | str = 1) -> None:
        super().__init__(kernel, at, sharing)
        self.whole = whole
        alone = is_alone(kernel)
        if alone:
            check_own_work(kernel, self.effects)
        items = None if alone else mapped(kernel, self.effects)
        self.across = parse_expression("1") if items is None else items.count
        self.down = needed(kernel, "y") if "y" in self.before else None
        number = kernel.axes()[self.loop]
        if not is_simple(number, self.effects):
            raise NotLegal("the loop does not count from 0 by 1", self.loop.line)
        assert number.variable is not None
        self.counter = number.variable
        speller = speller_before(kernel, self.effects, self.loop)
        self.limit = "1" if items is None else items.limit(speller)
        rows = self._rows_of_launch()
        self.high = "gridDim.y * blockDim.y" if rows is None else speller.count(rows)
        self.down = None if rows is None else self.down
        self.total = count_of(number, speller, self.effects)
        name = self.counter.name
        self.each, self.start = self._fresh(f"{name}_each"), self._fresh(f"{name}_start")
        self.count, self.own = self._fresh(f"{name}_count"), self._fresh(f"{name}_own")
        self.round = self._fresh(f"{name}_round")

    def _rows_of_launch(self) -> Polynomial | None:
        """The rows of threads that do something, or that there are, in the kernel's own sizes."""
        kernel, launch = self.old, self.old.launch
        if "y" not in self.before:
            return None
        extents = [self.down] if self.down is not None else [launch.grid[1], *launch.block[1:2]]
        names = {name for extent in extents for name in extent.names}
        own = {p for p in kernel.function.parameters if p.name in names}
        forms = [form_of(extent.tree, kernel.reading.symbols) for extent in extents]
        if self.down is None and (not said_alike(kernel, names) or len(own) < len(names)):
            return None
        self.used |= own
        known = [form for form in forms if form is not None]
        return prod(known, start=Polynomial.constant(1)) if len(known) == len(forms) else None

    def _turn(self) -> str:
        return f"blockIdx.{self.axis}"

    def _own_rounds(self, private: Swaps) -> tuple[Statement, ...]:
        """The loop over neighbouring rounds, and their parts, stored."""
        kind, name = declared_type(self.old, self.counter), self.counter.name
        total, parts, each, start = self.total, self.parts, self.each, self.start
        count, own, turn = self.count, self.own, self.round
        body = self.old.show(self.loop.body, private).strip()
        inner = body[1:].lstrip() if body.startswith("{") else f"{body}\n}}"
        all_parts = f"({parts} * {self.whole})" if self.whole != 1 else parts
        shares = f"{count} / {all_parts} + ({count} % {all_parts} != 0)"
        if self.whole != 1:  # of which a multiple is read, as of no comparison
            rest = f"({count} % {all_parts} + {all_parts} - 1) / {all_parts}"
            shares = f"({count} / {all_parts} + {rest}) * {self.whole}"
        first = f"min(({kind}){self.turn} * {each}, {count})"
        return (
            lines(f"const {kind} {count} = {total}, {each} = {shares};"),
            lines(f"const {kind} {start} = {first}, {own} = min({each}, {count} - {start});"),
            lines(f"for ({kind} {turn} = 0; {turn} < {own}; ++{turn}) {{\n"
                  f"const {kind} {name} = {start} + {turn};\n{inner}"),
        )  # fmt: skip

    def _left(self) -> tuple[Statement, ...]:
        at = f"{self.turn} * {self.threads} + {self.thread}"
        stored = [f"{p.scratch}[{at}] = {p.local};" for p in self.pieces]
        return tuple(map(lines, [*self._places(), *stored]))

    def _ending(self) -> str:
        return ""

    def _places(self) -> list[str]:
        """Which of the items this is, by rows where there are several."""
        x = "(size_t)blockIdx.x * blockDim.x + threadIdx.x"
        threads, thread = f"(size_t){self.limit}", x
        if "y" in self.before:
            threads += f" * {self.high}"
            thread = f"((size_t)blockIdx.y * blockDim.y + threadIdx.y) * {self.limit} + ({x})"
        return [f"const size_t {self.threads} = {threads};",
                f"const size_t {self.thread} = {thread};"]  # fmt: skip

    def _directives(self) -> list[Directive]:
        launch, sharing = self.old.launch, self.sharing
        rows = [f"({extent})" for extent in (*launch.grid[1:], *launch.block[1:])]
        rows = [f"({self.down})"] if self.down is not None else rows
        count = parse_expression(" * ".join([self.parts, f"({self.across})", *rows]))
        return [
            TuneDirective(self.parts, sharing.part_counts, sharing.parts),
            *(ScratchDirective(p.scratch, p.dtype, count) for p in self.pieces),
        ]

    def _launch(self, name: str) -> LaunchDirective:
        made = super()._launch(name)
        return replace(made, block=made.block[: len(self.old.launch.block)])
