"""P10, privatise: a block's own copies of the elements that its threads update, in shared memory.

All threads of a block set the copies to what changes nothing, wait, update these, and wait again;
then each element that has changed is updated once for all of them. Where an index may lie beyond
the copies, such an update goes to the array itself, so nothing has to be known of it. The copies of
one element lie side by side and lanes use them in turn: of 32 copies each lane has its own, in a
bank of its own, whatever the elements. Source: Gomez-Luna et al., "An optimized approach to
histogram computation on GPU" (2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Cast, Choice
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.updates import (
    Update,
    Updated,
    by_few,
    converted,
    fixed,
    leaves,
    updated,
)
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Evaluate, Statement
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

COPIES = (1, 2, 4, 8, 16, 32)
#: Copies that are loaded at once at the end: 32 of them took 48 registers, so that an H200 had
#: room for one block of 1,024 threads in place of two, and needed 66 us in place of 48.
_TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Counters:
    """An array of which a block holds the first ``count`` elements.

    They are ``all`` that there are, where its indices say so by themselves.
    """

    whole: Updated
    count: int
    all: bool

    @property
    def array(self) -> str:
        return self.whole.array

    @property
    def bytes(self) -> int:
        return self.count * (self.whole.type.size or 0)

    @property
    def line(self) -> int:
        """That of the first update."""
        return self.whole.updates[0].access.line


def counters(kernel: Kernel) -> Iterator[Counters | Refused]:
    """The arrays whose updates a block could keep to itself, and why others are none."""
    for found in updated(kernel):
        if isinstance(found, Refused):
            yield found
        elif any(_spread(kernel, u) for u in found.updates):
            yield _counted(kernel, found)


@primitive
def private(kernel: Kernel, arrays: Sequence[tuple[str, int]], copies: int = 1) -> Kernel:
    """A block's own copies of the first elements of these arrays, so many of each."""
    found = {c.array: c for c in updated(kernel) if isinstance(c, Updated)}
    for name, _ in arrays:
        if name not in found:
            raise NotLegal(f"`{name}` is not only updated")
    chosen = [(found[name], count) for name, count in arrays]
    return _Keeping(kernel, [
        Counters(w, count, all(_within(kernel, u, count) for u in w.updates)) for w, count in chosen
    ], copies).kernel()  # fmt: skip


def _spread(kernel: Kernel, update: Update) -> bool:
    return not fixed(kernel, update.access.index) and not by_few(kernel, update)


def _counted(kernel: Kernel, found: Updated) -> Counters | Refused:
    size, line = found.type.size or 1, found.updates[0].access.line
    proved = _proved(kernel, found)
    facts = kernel.facts.arrays.get(found.array) if kernel.facts is not None else None
    held = facts.nbytes // size if facts is not None else None
    if proved is not None and (proved * size <= SHARED or held is None):
        held = proved
    if held is None:
        return Refused(f"how many elements of `{found.array}` there are is not known", line)
    if held * size > SHARED:
        return Refused(f"{held} elements of `{found.array}` do not fit shared memory", line)
    return Counters(found, held, held == proved)


def _proved(kernel: Kernel, found: Updated) -> int | None:
    """How many elements there are at most, as the indices and what decides on them say."""
    candidates = {1 << n for n in range(1, 17)}
    symbols = kernel.reading.symbols
    for update in found.updates:
        index = update.access.index
        if index is None or not symbols.known(index):
            continue
        for name in symbols.inside(index):
            symbol = symbols[name]
            ends = [symbol.high + 1] if symbol.high is not None else []
            candidates.update(ends, (a.value for a in symbol.arguments if a.value is not None))
        for part in (c for condition in update.access.guard for c in condition.conjuncts()):
            if isinstance(part, Compare):
                candidates.add(dict(part.form.terms).get((), 0) + 1)
    within = (c for c in sorted(candidates) if 0 < c <= 1 << 16
              and all(_within(kernel, u, c) for u in found.updates))  # fmt: skip
    return next(within, None)


def _within(kernel: Kernel, update: Update, count: int) -> bool:
    index = update.access.index
    if index is None:
        return False
    ranges = Ranges(update.access.guard, kernel.reading.symbols)
    return ranges.within(index, Polynomial.constant(count))


class _Keeping:
    def __init__(self, kernel: Kernel, found: Sequence[Counters], copies: int) -> None:
        self.old = kernel
        self.found = found
        self.start = copies
        effects = Effects(kernel)
        effects.straightforward()
        if kernel.block[0] is None or kernel.block[1:] != (1, 1):
            raise NotLegal("its blocks have more than one row")
        if kernel.launch.shared is not None:
            raise NotLegal("it has dynamic shared memory")
        line = leaves(kernel.function.body)
        if line:
            raise NotLegal("threads leave before their block adds up", line)
        for own in found:
            if own.array in effects.moved:
                raise NotLegal(f"`{own.array}` does not stay what it is")
        self.copies, self.taken = kernel.fresh("COPIES"), list[str]()
        self.bin = self._fresh("bin")
        self.copy = self._fresh("copy")

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        declared, emptied, closing = list[str](), list[str](), list[str]()
        owns = [self._fresh(f"{own.array}_own") for own in self.found]
        for own, name in zip(self.found, owns, strict=True):
            whole, count = own.whole, own.count
            declared.append(f"__shared__ {whole.kind} {name}[{self.copies} * {count}];")
            emptied.append(
                f"for (int {self.bin} = threadIdx.x; {self.bin} < {self.copies} * {count}; "
                f"{self.bin} += blockDim.x) {name}[{self.bin}] = {whole.identity};"
            )
            for update in whole.updates:
                swaps[update.statement] = lines(self._updating(own, update, name))
            closing.append(self._closing(own, name))
        copy = f"const int {self.copy} = threadIdx.x % {self.copies};"
        opening = [*declared, *emptied, copy, "__syncthreads();"]
        body = edited(self.old.function.body, swaps)
        inside = (*map(lines, opening), *body.body, lines("__syncthreads();"), *map(lines, closing))
        return self.old.rewritten(replace(body, body=inside), directives=[self._tune()])

    def _updating(self, own: Counters, update: Update, name: str) -> str:
        whole, function = own.whole, own.whole.function
        value = converted(self.old, whole, update)
        kind = self.old.reading.types.get(update.index)
        wide = kind is None or not kind.integral or kind.size == 8
        signed = wide or kind is None or kind.signed or (kind.size or 0) < 4
        word = ("long long" if wide else "int") if signed else "unsigned"
        index = self.old.show(Evaluate(None, 0, update.index)).removesuffix(";")
        if own.all:
            loose = isinstance(update.index, Binary | Choice | Assign | Cast)
            place = self._place(name, f"({index})" if loose else index)
            return f"{function}(&{place}, {value});"
        shared = f"{function}(&{self._place(name, self.bin)}, {value});"
        declared = f"const {word} {self.bin} = {index};"
        test = f"{self.bin} < {own.count}"
        test = f"{self.bin} >= 0 && {test}" if signed else test
        beyond = f"{function}(&{whole.array}[{self.bin}], {value});"
        return f"{{\n{declared}\nif ({test}) {shared}\nelse {beyond}\n}}"

    def _place(self, name: str, bin_: str, copy: str = "") -> str:
        return f"{name}[{bin_} * {self.copies} + {copy or self.copy}]"

    def _closing(self, own: Counters, name: str) -> str:
        whole, bin_ = own.whole, self.bin
        total, other = self.old.fresh("total"), self.old.fresh("other", *self.taken)
        turned = f"({self.copy} + {other}) % {self.copies}"  # lanes begin in banks of their own
        return (
            f"for (int {bin_} = threadIdx.x; {bin_} < {own.count}; {bin_} += blockDim.x) {{\n"
            f"{whole.kind} {total} = {self._place(name, bin_)};\n"
            f"#pragma unroll {_TOGETHER}\n"
            f"for (int {other} = 1; {other} < {self.copies}; ++{other}) "
            f"{whole.combining(total, self._place(name, bin_, turned))}\n"
            f"if ({total} != {whole.identity}) "
            f"{whole.function}(&{whole.array}[{bin_}], {total});\n}}"
        )

    def _tune(self) -> TuneDirective:
        whole = sum(own.bytes for own in self.found)
        fits = parse_expression(f"{self.copies} * {whole} <= {SHARED}")
        return TuneDirective(self.copies, COPIES, self.start, fits)
