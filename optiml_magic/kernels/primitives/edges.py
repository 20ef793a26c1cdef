"""P19, the rest: items of threads near a border, dealt out among all threads of a block.

Such a thread is one of few of its warp, and the others would wait while it takes one item after
another. So a block notes which of its threads are near a border, and its threads take their items
one each.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.indices import Along


class Edges:
    """The lines around what threads do that are ``inside``, for blocks with these ``extents``.

    Attributes:
        inside: the name of what says whether a thread is far from the borders.
        swaps: what stands for a thread's place in its block where items are dealt out.
    """

    def __init__(self, kernel: Kernel, along: Sequence[Along], extents: Sequence[str]) -> None:
        self.kernel = kernel
        self.along = tuple(along)
        self.extents = {a: e for a, e in zip("xyz", extents, strict=False) if e != "1"}
        fresh = kernel.fresh
        self.inside, self.some = fresh("inside"), fresh("edges")
        self.own, self.count = fresh("thread"), fresh("edge_count")
        self.threads, self.one, self.turn = (
            fresh("edge_threads"), fresh("edge_thread"), fresh("edge_item"),
        )  # fmt: skip
        self.swaps: dict[Node, Node | None] = {}
        for axis in "xyz":
            for place in uses(kernel, axis).parts:
                if builtin(place) == f"threadIdx.{axis}":
                    self.swaps[place] = text(f"({self._place(axis)})")

    @property
    def threads_of_block(self) -> str:
        """How many threads a block has."""
        return " * ".join(self.extents.values()) or "1"

    def first(self, along: Along, thread: str) -> str:
        """The first index along an axis of a thread that stands there in its block."""
        words, axis = along.words, along.axis
        wide = "long" in words or "size_t" in words or "64" in words
        block = f"({words})blockIdx.{axis}" if wide else f"blockIdx.{axis}"
        at = f"{block} * blockDim.{axis} + {thread}"
        return f"({at}) * {along.count}" if along.several else at

    def before(self, tests: Sequence[str], exists: Sequence[str]) -> list[str]:
        """Which threads are near a border; of those alone that have an item at all."""
        has = "".join(f" && {test}" for test in exists)
        return [
            f"const bool {self.inside} = {' && '.join(tests)};",
            f"__shared__ unsigned short {self.threads}[{self.threads_of_block}];",
            f"__shared__ int {self.count};",
            f"const int {self.own} = {self._own()};",
            f"const bool {self.some} = __syncthreads_or(!{self.inside}{has});",
            f"if ({self.some}) {{",
            f"if ({self.own} == 0) {self.count} = 0;",
            "__syncthreads();",
            f"if (!{self.inside}{has}) {self.threads}[atomicAdd(&{self.count}, 1)] = {self.own};",
            "__syncthreads();",
            "}",
        ]

    def behind(self, body: str) -> list[str]:
        """Each item by itself, by the statements in ``body``."""
        several = sorted((a for a in self.along if a.several), key=lambda a: a.axis)
        items = " * ".join(a.count for a in several)
        items = f"({items})" if len(several) > 1 else items
        made, below = [f"const int {self.one} = {self.threads}[{self.turn} / {items}];"], ""
        for along in self.along:
            at = self.first(along, self._place(along.axis))
            if along.several:
                before = [a.count for a in several if a.axis < along.axis]
                below = f"{self.turn} / {_factor(' * '.join(before))}" if before else self.turn
                at = f"{at} + {below} % {along.count}"
            made.append(f"{along.words} {along.name} = {at};")
            if along.guard:
                made.append(f"if ({along.name} >= {along.guard}) continue;")
        return [
            f"if ({self.some}) {{",
            "#pragma unroll 1",
            (f"for (int {self.turn} = {self.own}; {self.turn} < {self.count} * {items}; "
            f"{self.turn} += {self.threads_of_block}) {{"),
            *made, body, "}", "}",
        ]  # fmt: skip

    def _own(self) -> str:
        """The number of a thread in its block."""
        found, before = "", ""
        for axis, extent in self.extents.items():
            term = f"threadIdx.{axis}{before}"
            found = f"{found} + {term}" if found else term
            before += f" * {_factor(extent)}"
        return found or "0"

    def _place(self, axis: str) -> str:
        """Where the thread of an item stands along an axis."""
        if axis not in self.extents:
            return "0"
        axes = [*self.extents]
        before = [_factor(self.extents[a]) for a in axes[: axes.index(axis)]]
        below = (
            f" / ({' * '.join(before)})" if len(before) > 1 else f" / {before[0]}" if before else ""
        )
        last = axis == axes[-1]
        return f"{self.one}{below}" + ("" if last else f" % {_factor(self.extents[axis])}")


def _factor(words: str) -> str:
    return f"({words})" if " " in words else words
