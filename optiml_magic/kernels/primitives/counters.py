"""P10, privatise: a block's own copies of the elements that its threads update, in shared memory.

All threads of a block set the copies to what changes nothing, wait, update these, and wait again;
then each element that has changed is updated once for all of them. Where an index may lie beyond
the copies, such an update goes to the array itself, so nothing has to be known of it. Where blocks
update elements of their own, such as the histogram of a line of an image, the copies are of these:
what of an index is the same for all threads of a block is where they begin. The copies of one
element lie side by side and lanes use them in turn: of 32 copies each lane has its own, in a bank
of its own, whatever the elements. Source: Gomez-Luna et al., "An optimized approach to histogram
computation on GPU" (2013).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Cast, Choice, Expr, Literal
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.room import SHARED, room
from optiml_magic.kernels.primitives.sizes import value
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
from optiml_magic.kernels.tree import Statement
from optiml_magic.kernels.types import CType
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

COPIES = (1, 2, 4, 8, 16, 32)
_ZERO = Polynomial()
_BLOCKS = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})
#: Copies that are loaded at once at the end: 32 of them took 48 registers, so that an H200 had
#: room for one block of 1,024 threads in place of two, and needed 66 us in place of 48.
_TOGETHER = 8
_LOOSE = 4  # times an array's elements, from which on what its indices say is not asked; ours


@dataclass(frozen=True, eq=False)
class Counters:
    """An array of whose ``count`` elements a block holds so many, from ``base`` on.

    They are ``all`` that it updates, where its indices say so by themselves.
    """

    whole: Updated
    count: int
    held: int
    all: bool
    base: Polynomial = _ZERO

    @property
    def apart(self) -> bool:
        """Whether blocks have elements of their own."""
        return self.base != _ZERO

    @property
    def array(self) -> str:
        return self.whole.array

    @property
    def bytes(self) -> int:
        return self.held * (self.whole.type.size or 0)

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
def private(
    kernel: Kernel, arrays: Sequence[tuple[str, int]], copies: int = 1, rows: Collection[str] = ()
) -> Kernel:
    """A block's own copies of the first elements of these arrays, so many of each.

    Of those that are ``rows`` each block has elements of its own.
    """
    found = {c.array: c for c in updated(kernel) if isinstance(c, Updated)}
    chosen = list[Counters]()
    for name, count in arrays:
        if name not in found:
            raise NotLegal(f"`{name}` is not only updated")
        whole = found[name]
        base = _base(kernel, whole) if name in rows else _ZERO
        if base is None:
            raise NotLegal(f"where a block's elements of `{name}` begin is not read")
        within = all(_within(kernel, u, count, base) for u in whole.updates)
        chosen.append(Counters(whole, count, count, within, base))
    return _Keeping(kernel, chosen, copies).kernel()


def _spread(kernel: Kernel, update: Update) -> bool:
    return not fixed(kernel, update.access.index) and not by_few(kernel, update)


def _counted(kernel: Kernel, found: Updated) -> Counters | Refused:
    size, line = found.type.size or 1, found.updates[0].access.line
    proved = _proved(kernel, found)
    facts = kernel.facts.arrays.get(found.array) if kernel.facts is not None else None
    held = facts.nbytes // size if facts is not None else None
    loose = proved is not None and held is not None and proved > _LOOSE * held
    if proved is not None and not loose and (proved * size <= SHARED or held is None):
        held = proved
    if held is not None and held * size <= SHARED:
        return Counters(found, held, held, held == proved)
    row = _row(kernel, found)
    if row is not None and row.bytes <= SHARED:
        return row
    if held is not None and held * size <= room(kernel):
        return Counters(found, held, held, held == proved)
    if held is None:
        return Refused(f"how many elements of `{found.array}` there are is not known", line)
    return Refused(f"{held} elements of `{found.array}` do not fit shared memory", line)


def _row(kernel: Kernel, found: Updated) -> Counters | None:
    """The elements of one block, where another has others."""
    base = _base(kernel, found)
    if base is None:
        return None
    proved = _proved(kernel, found, base)
    blocks = {name for name in kernel.reading.symbols.inside(base) if name.startswith("blockIdx")}
    steps = [form for name in blocks if (form := base.coefficient(name)) is not None]
    apart = [step for form in steps if (step := value(kernel, form)) is not None and step > 0]
    held = proved or min(apart, default=None)
    if held is None or not blocks:
        return None
    grid = kernel.facts.grid if kernel.facts is not None else (1, 1, 1)
    rows = math.prod(grid["xyz".index(name[-1])] for name in blocks)
    return Counters(found, held * rows, held, held == proved, base)


def _base(kernel: Kernel, found: Updated) -> Polynomial | None:
    """What of all indices is a block's own; None where they differ in it.

    What all blocks have alike belongs to the rest: `value - lowest` is not negative as a whole.
    """
    bases = set[Polynomial]()
    for update in found.updates:
        if update.access.index is None:
            return None
        parts = [Polynomial((term,)) for term in update.access.index.terms if term[0]]
        own = (p for p in parts if _BLOCKS & kernel.reading.symbols.inside(p) and fixed(kernel, p))
        bases.add(sum(own, _ZERO))
    return bases.pop() if len(bases) == 1 else None


def _proved(kernel: Kernel, found: Updated, base: Polynomial = _ZERO) -> int | None:
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
              and all(_within(kernel, u, c, base) for u in found.updates))  # fmt: skip
    return next(within, None)


def _within(kernel: Kernel, update: Update, count: int, base: Polynomial) -> bool:
    index = update.access.index
    if index is None:
        return False
    ranges = Ranges(update.access.guard, kernel.reading.symbols)
    return ranges.within(index - base, Polynomial.constant(count))


class _Keeping:
    def __init__(self, kernel: Kernel, found: Sequence[Counters], copies: int) -> None:
        self.old = kernel
        self.found = found
        self.start = copies
        self.bytes = sum(own.bytes for own in found)
        #: Only what a launch asks for may be more than any kernel can declare.
        self.asked = self.bytes > SHARED
        if self.asked and (len(found) > 1 or self.bytes > room(kernel)):
            raise NotLegal("its counters do not fit shared memory", found[0].line)
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
        self.first = {c: self._fresh(f"{c.array}_first") for c in found if c.apart}
        self.speller = LocalSpeller(kernel.reading.symbols, {}, moved=effects.moved)
        self.speller.kernel = kernel

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        declared, emptied, closing = list[str](), list[str](), list[str]()
        owns = [self._fresh(f"{own.array}_own") for own in self.found]
        for own, name in zip(self.found, owns, strict=True):
            whole, count = own.whole, own.held
            if own in self.first:
                word = "long long" if any(self._is_wide(u) for u in whole.updates) else "int"
                begin = self.speller.form(own.base)
                declared.append(f"const {word} {self.first[own]} = {begin};")
            declared.append(
                f"extern __shared__ {whole.kind} {name}[];" if self.asked
                else f"__shared__ {whole.kind} {name}[{self.copies} * {count}];"
            )  # fmt: skip
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
        launch = self.old.launch
        if self.asked:
            launch = replace(launch, shared=parse_expression(f"{self.copies} * {self.bytes}"))
        return self.old.rewritten(
            replace(body, body=inside), launch=launch, directives=[self._tune()]
        )

    def _updating(self, own: Counters, update: Update, name: str) -> str:
        whole, function = own.whole, own.whole.function
        added = converted(self.old, whole, update)
        wide, first = self._is_wide(update), self.first.get(own)
        signed = wide or any(
            k is None or k.signed or (k.size or 0) < 4 for k in self._kinds(update)
        )
        word = ("long long" if wide else "int") if signed else "unsigned"
        index = self.old.spelled(update.index)
        loose = isinstance(update.index, Binary | Choice | Assign | Cast)
        if first is not None:
            index = f"({index}) - {first}" if loose else f"{index} - {first}"
        if own.all:
            place = self._place(name, f"({index})" if loose or first is not None else index)
            return f"{function}(&{place}, {added});"
        shared = f"{function}(&{self._place(name, self.bin)}, {added});"
        declared = f"const {word} {self.bin} = {index};"
        test = f"{self.bin} < {own.held}"
        test = f"{self.bin} >= 0 && {test}" if signed else test
        beyond = f"{function}(&{whole.array}[{self._element(own)}], {added});"
        return f"{{\n{declared}\nif ({test}) {shared}\nelse {beyond}\n}}"

    def _is_wide(self, update: Update) -> bool:
        return any(k is None or not k.integral or k.size == 8 for k in self._kinds(update))

    def _kinds(self, update: Update) -> list[CType | None]:
        """The types of an index, or of those whose sum it is."""
        types, left, parts = self.old.reading.types, [update.index], list[Expr]()
        while left:
            part = left.pop()
            if isinstance(part, Binary) and part not in types:
                left += [part.left, part.right]
            elif part in types or not isinstance(part, Literal):
                parts.append(part)
        return [types.get(part) for part in parts]

    def _element(self, own: Counters) -> str:
        """The element of the array that a copy is of."""
        return f"{self.first[own]} + {self.bin}" if own in self.first else self.bin

    def _place(self, name: str, bin_: str, copy: str = "") -> str:
        return f"{name}[{bin_} * {self.copies} + {copy or self.copy}]"

    def _closing(self, own: Counters, name: str) -> str:
        whole, bin_ = own.whole, self.bin
        total, other = self.old.fresh("total"), self.old.fresh("other", *self.taken)
        turned = f"({self.copy} + {other}) % {self.copies}"  # lanes begin in banks of their own
        return (
            f"for (int {bin_} = threadIdx.x; {bin_} < {own.held}; {bin_} += blockDim.x) {{\n"
            f"{whole.kind} {total} = {self._place(name, bin_)};\n"
            f"#pragma unroll {_TOGETHER}\n"
            f"for (int {other} = 1; {other} < {self.copies}; ++{other}) "
            f"{whole.combining(total, self._place(name, bin_, turned))}\n"
            f"if ({total} != {whole.identity}) "
            f"{whole.function}(&{whole.array}[{self._element(own)}], {total});\n}}"
        )

    def _tune(self) -> TuneDirective:
        most = room(self.old) if self.asked else SHARED
        fits = parse_expression(f"{self.copies} * {self.bytes} <= {most}")
        return TuneDirective(self.copies, COPIES, self.start, fits)
