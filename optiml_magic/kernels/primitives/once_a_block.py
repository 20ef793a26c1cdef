"""P13 within a block: what several of its threads compute alike, one of them computes for all.

A coefficient of a transform needs the sums along the rows of its block, which are the same for all
threads of a column, and cosines that depend on a round and on one index of a thread alone. A block
finds them together before the loop that asks for them, in shared memory, and waits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    every,
)
from optiml_magic.kernels.primitives.alike_in_block import Alike, alike, meant
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import (
    parted,
)
from optiml_magic.kernels.tree import (
    Block,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective

_WORD = 4  # bytes


@primitive
def once_a_block(kernel: Kernel) -> Kernel:
    """The kernel with all of that computed once a block."""
    kernel = kernel.settled()
    found, asked = alike(kernel)
    if not found:
        raise NotLegal("nothing that takes long is the same for several threads of a block")
    return _Sharing(kernel, found).kernel(asked)


class _Sharing:
    """The block's own loops in front of those that ask for what they find."""

    def __init__(self, kernel: Kernel, found: Sequence[Alike]) -> None:
        self.old, self.found = kernel, found
        self.block = {a: n or 1 for a, n in zip("xyz", kernel.block, strict=True)}
        self.taken: list[str] = []
        self.arrays = {
            one: [self._fresh(n if n.endswith("_of") else f"{n}_of") for n, _, _ in one.results]
            for one in found
        }
        self.swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for one in found:
            if one.node is not None:
                said = meant(kernel, one.node)
                (name,) = self.arrays[one]
                for statement in walk(one.around.body):
                    for expr in statement.expressions:
                        self.swaps |= {
                            e: text(f"{name}{self._place(one)}")
                            for e in every(expr)
                            if type(e) is type(one.node) and meant(kernel, e) == said
                        }

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _counter(self, one: Alike) -> Variable:
        counter = self.old.axes()[one.loop].variable
        assert counter is not None
        return counter

    def _place(self, one: Alike) -> str:
        return f"[{self._counter(one).name}]" + "".join(f"[threadIdx.{a}]" for a in one.axes)

    def _filled(self, one: Alike) -> list[str]:
        """The rounds of one, shared by the threads that would compute the same."""
        old, counter = self.old, self._counter(one)
        shape = "".join(f"[{n}]" for n in (one.rounds, *(self.block[a] for a in one.axes)))
        place, arrays = self._place(one), self.arrays[one]
        rank = f"threadIdx.{one.missing[0]}"
        for axis in one.missing[1:]:
            rank = (
                f"({rank}) * {self.block[axis]}" if " " in rank else f"{rank} * {self.block[axis]}"
            )
            rank += f" + threadIdx.{axis}"
        many = math.prod(self.block[a] for a in one.missing)
        size = named(counter.type.base, old.unit.aliases).size or 0
        kind = counter.type.base if size >= _WORD else "int"  # a smaller one may not hold a step
        head = f"for ({kind} {counter.name} = {rank}; {counter.name} < {one.rounds}; "
        head += f"{counter.name} += {many})"
        if one.node is not None:
            body = [old.show(s) for s in one.made_of]
            values = [old.spelled(one.node)]
        else:
            own = [*parted(one.loop.body)]
            body = [old.show(s) for s in one.made_of]
            body += [old.show(edited(own[n], self.swaps)) for n in one.chosen]
            values = [name for name, _, _ in one.results]
        typed = zip(arrays, one.results, strict=True)
        told = [f"__shared__ {words} {name}{shape};" for name, (_, words, _) in typed]
        stored = [f"{name}{place} = {v};" for name, v in zip(arrays, values, strict=True)]
        return [*told, head + " {\n" + "\n".join([*body, *stored]) + "\n}"]

    def kernel(self, asked: Sequence[RequireDirective]) -> Kernel:
        whole: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for top in self.old.function.body.body:
            within = {*walk(top)}
            here = [one for one in self.found if one.around in within]
            if not isinstance(top, Loop) or not here:
                continue
            tables = [one for one in here if one.node is not None]
            sums = [one for one in here if one.node is None]
            opening = [line for one in tables for line in self._filled(one)]
            opening += ["__syncthreads();"] * bool(tables)
            inner: dict[Node, Node | tuple[Statement, ...] | None] = {**self.swaps}
            for one in sums:
                filled = "\n".join([*self._filled(one), "__syncthreads();"])
                left = self._left(one)
                if one.around is top:
                    opening.append(filled)
                # The next round brings others, when all have taken these.
                closing = () if one.around is top else (lines("__syncthreads();"),)
                inner[one.around] = left if one.around is top else (lines(filled), left, *closing)
            made = inner[top] if top in inner else edited(top, inner)
            assert isinstance(made, Statement)
            whole[top] = (lines("\n".join(opening)), made) if opening else made
        return self.old.rewritten(edited(self.old.function.body, whole), directives=asked)

    def _left(self, one: Alike) -> Statement:
        """A loop that loads what the block has found."""
        loop, left = one.loop, list[Statement]()
        for number, statement in enumerate(parted(loop.body)):
            if number == one.chosen[0]:
                left += [
                    lines(f"{words} {name} = {array}{self._place(one)};")
                    for array, (name, words, _) in zip(self.arrays[one], one.results, strict=True)
                ]
            if number not in one.chosen:
                left.append(edited(statement, self.swaps))
        return edited(loop, {loop.body: Block(None, loop.line, tuple(left))})
