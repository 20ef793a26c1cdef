"""P24, aggregate atomics: what the threads of a block add to one place, they add together first.

Each thread combines into a local, a butterfly of shuffles and one round through shared memory
combine these, and one thread of the block does the one atomic operation that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.dispatched import both
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.updates import (
    Update,
    Updated,
    by_few,
    converted,
    fixed,
    leaves,
    updated,
)
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import parse_program

_WARP = 32


@dataclass(frozen=True, eq=False)
class Sum:
    """One place that all threads of a block combine into."""

    whole: Updated
    updates: tuple[Update, ...]

    def own_blocks(self, kernel: Kernel) -> bool:
        """Whether another block has another place."""
        index = self.updates[0].access.index
        blocks = {"blockIdx.x"} | ({"blockIdx.y"} if kernel.block[1] != 1 else set[str]())
        return index is not None and bool(blocks & kernel.reading.symbols.inside(index))


def sums(kernel: Kernel) -> tuple[list[Sum], list[Refused]]:
    """The places that all threads of a block combine into, and why others are none."""
    found, refused = list[Sum](), list[Refused]()
    for array in updated(kernel, apart=True):
        if isinstance(array, Refused):
            refused.append(array)
            continue
        places: dict[object, list[Update]] = {}
        for update in array.updates:
            if fixed(kernel, update.access.index) and not by_few(kernel, update):
                places.setdefault(update.access.index, []).append(update)
        found += [Sum(array, tuple(own)) for own in places.values()]
    return found, refused


@primitive
def gathered(kernel: Kernel) -> Kernel:
    """One atomic operation a block for each place that all its threads combine into."""
    found, refused = sums(kernel)
    if not found:
        reason = refused[0] if refused else Refused("nothing is added to one place by all threads")
        raise NotLegal(reason.reason, reason.line)
    return _Gathering(kernel, found).kernel()


@primitive
def in_whole_warps(kernel: Kernel) -> Kernel:
    """The kernel whose tuned numbers leave it blocks of whole warps alone."""
    tunes = _tunes(kernel)
    if not tunes or None in kernel.block or prod(n or 1 for n in kernel.block) % _WARP:
        raise NotLegal("its blocks are not of whole warps")
    last = tunes[-1]
    whole = parse_expression(f"({_threads(kernel)}) % {_WARP} == 0")
    condition = whole if last.condition is None else both(last.condition, whole)
    start, end = (len(kernel.program.text[:at].encode()) for at in (last.start, last.end))
    made = str(replace(last, condition=condition))
    program = parse_program(apply(kernel.program.text, [Edit(start, end, made)]))
    launch = next(one for one in program.launches if str(one) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)


def width(kernel: Kernel) -> str:
    """The threads of a block as its launch spells them. Raises NotLegal but for whole warps."""
    block, tunes = kernel.launch.block, _tunes(kernel)
    if None in kernel.block or any(size.arrays for size in block):
        raise NotLegal("how many threads its blocks have is not known")
    for values in product(*(tune.values for tune in tunes)):
        known = kernel.program.values | dict(zip((t.name for t in tunes), values, strict=True))
        legal = all(t.condition is None or t.condition.evaluate(known) for t in tunes)
        if legal and prod(size.evaluate(known) for size in block) % _WARP:
            raise NotLegal("its blocks are not of whole warps")
    return _threads(kernel)


def _tunes(kernel: Kernel) -> list[TuneDirective]:
    """The tuned numbers that the extents of its blocks come from."""
    names = {name for size in kernel.launch.block for name in size.names}
    return [tune for tune in kernel.program.tunes if tune.name in names]


def _threads(kernel: Kernel) -> str:
    """The threads of a block as its launch spells them."""
    block = kernel.launch.block
    sizes = [str(size) for size in block if str(size) != "1"]
    return " * ".join(f"({s})" if " " in s else s for s in sizes) if sizes[1:] else str(block[0])


class _Gathering:
    def __init__(self, kernel: Kernel, found: Sequence[Sum]) -> None:
        self.old = kernel
        self.found = found
        self.effects = Effects(kernel)
        self.effects.straightforward(lanes=True, alone=False)
        self.width = width(kernel)
        self.group: combine.Group = "block" if kernel.block[1:] == (1, 1) else "plane"
        line = leaves(kernel.function.body)
        if line:
            raise NotLegal("threads leave before their block adds up", line)
        own = {*declared_in(kernel.function.body), *kernel.function.parameters}
        for name in sorted({v.name for v in own} & {place.whole.op for place in found}):
            raise NotLegal(f"`{name}` has another meaning in it")

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node | tuple[Node, ...]] = {}
        opening, closing, taken = list[str](), list[str](), list[str]()
        for place in self.found:
            whole = place.whole
            combine.supported(whole.reduction)
            name = self.old.fresh(f"{whole.array}_part", *taken)
            taken.append(name)
            opening.append(f"{whole.kind} {name} = {whole.identity};")
            for update in place.updates:
                value = converted(self.old, whole, update)
                if whole.op in ("min", "max") and not value.startswith("("):
                    value = f"({whole.kind}){value}"
                swaps[update.statement] = lines(whole.combining(name, value))
            closing += self._closing(place, name)
        body = edited(self.old.function.body, swaps)  # type: ignore[arg-type]
        inside = (*map(lines, opening), *body.body, *map(lines, closing))
        helpers = combine.helpers((p.whole.reduction for p in self.found), self.group, mask=False)
        return self.old.rewritten(replace(body, body=inside), helpers=helpers)

    def _closing(self, place: Sum, name: str) -> list[str]:
        whole, index = place.whole, place.updates[0].access.index
        assert index is not None
        speller = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.old
        spelled = speller.form(index)
        there = whole.array if spelled == "0" else f"&{whole.array}[{spelled}]"
        update = f"{whole.function}({there}, {name});"
        axes = (a for a, n in zip("xyz", self.old.block, strict=True) if a == "x" or n != 1)
        first = " && ".join(f"threadIdx.{axis} == 0" for axis in axes)
        return [
            f"{name} = {combine.combined(whole.reduction, self.group, self.width, name)};",
            f"if ({first} && {name} != {whole.identity}) {update}",
        ]
