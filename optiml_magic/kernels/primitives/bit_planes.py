"""P25, planes: elements that are compared for equality as planes of bits, 32 of them a word.

Two elements differ where any of their bits does. With bit ``b`` of 32 elements in one word, 32
comparisons are ``differ |= a ^ b`` for each bit, and ``__popc`` counts what differs. Which bits
tell elements apart the data say, so two launches before look for these and make planes of them
alone; a bit that all elements have alike needs none. What lies behind the end of a row is 0 on both
sides. Source: Warren, "Hacker's Delight" (2nd ed. 2012), 7-3 on transposed bits; CUDA C++
Programming Guide, "Warp Vote Functions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.differences import Differences, differences
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.operands import (
    COLUMN,
    ROW,
    Contraction,
    Operand,
    symbols_inside,
)
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.tile_guards import guards
from optiml_magic.kernels.primitives.tile_planes import Words
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    ScratchDirective,
    ZeroDirective,
)
from optiml_magic.source.expressions import Expression, parse_expression

BITS = 32  # elements of a word, and lanes of a warp
_WARPS = 4  # of a block that makes planes: ours
_THREADS = 256  # of one that looks for bits: ours


@dataclass(frozen=True)
class Planes:
    """A kernel whose loop goes over ``words`` of planes.

    Its text says what it does where a word has one plane: ``blocked`` takes those of a word as one.
    """

    kernel: Kernel
    words: Words


def bit_planes(kernel: Kernel, at: int) -> Planes:
    """The kernel behind launches that make planes of what the loop with this number compares.

    Raises NotLegal where the loop does anything else.
    """
    kernel = kernel.settled()
    return _Making(differences(Contraction(kernel, loops_in(kernel.function.body)[at]))).planes()


class _Making:
    """The three launches of a comparison."""

    def __init__(self, found: Differences) -> None:
        self.found, self.parts, self.old = found, found.parts, found.parts.kernel
        self._check_launch()
        self._check_sizes()
        plain, self.opening, self.given = self._spelled.partition("<")
        self.scope, self.colons, bare = plain.rpartition("::")
        self.taken = list[str]()
        self.bits, self.counts = self._fresh("bits_found"), self._fresh("plane_counts")
        self.looking, self.k, self.row = (
            self._fresh(f"{bare}_bits"), self._fresh("k"), self._fresh("row"),
        )  # fmt: skip
        self.names = {
            o: (self._fresh(f"{o.array}_planes"), self._fresh(f"{bare}_planes"))
            for o in self.operands
        }

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What there are planes of."""
        row, column = self.found.row, self.found.column
        return (row,) if self.found.same else (row, column)

    @property
    def width(self) -> int:
        """The bits of an element."""
        return 8 * (self.found.element.size or 4)

    @property
    def _spelled(self) -> str:
        return self.old.launch.kernel or self.old.function.name

    def planes(self) -> Planes:
        old, launch = self.old, self.old.launch
        scratch = [self.counts, *(name for name, _ in self.names.values())]
        args = launch.args
        if args is not None:
            args = (*args, *map(parse_expression, scratch))
        swaps: dict[Node, Node | None] = dict.fromkeys(hints_of(old, self.parts.loop))
        body = edited(old.function.body, {**swaps, self.parts.loop: lines(self._counting())})
        made = old.rewritten(
            body, launch=replace(launch, kernel=self._spelled, args=args),
            directives=self._directives(),
            helpers=[self._looking(), *map(self._packing, self.operands)],
        )  # fmt: skip
        # What memory says would be loaded anew behind each barrier without a promise.
        kinds = ["const int*", *["const unsigned int*"] * len(self.operands)]
        declared = (
            f"{kind} __restrict__ {name}" for kind, name in zip(kinds, scratch, strict=True)
        )
        words = Words(f"{self.counts}[0]", self.width)
        return Planes(with_parameters(made, declared), words)

    def _check_launch(self) -> None:
        launch, function = self.old.launch, self.old.function
        if launch.condition is not None or launch.otherwise or launch.repeat is not None:
            raise NotLegal("its launch is one of a dispatch or of several rounds")
        if function.template or not self.old.unit.origin.whole(*(function.whole or function.span)):
            raise NotLegal("it is a template, or a macro makes it")
        if self.parts.outputs.flat is not None:
            raise NotLegal("its rows and columns are one index", self.parts.loop.line)

    def _check_sizes(self) -> None:
        """All that says how many elements there are, and where, is an ``int``."""
        found, parts = self.found, self.parts
        for one in (found.row, found.column):
            if {ROW, COLUMN} & symbols_inside(parts, one.form):
                raise NotLegal("an index is not a sum of its parts", parts.loop.line)
        sizes = found.rounds, parts.outputs.rows, parts.outputs.columns
        for form in sizes:
            self._expression(form)
        inside = frozenset[str]().union(
            *map(self.old.reading.symbols.inside, sizes),
            *(o.form.symbols for o in (found.row, found.column)),
            *(test.form.symbols for o in (found.row, found.column) for test in guards(parts, o)
              if isinstance(test, Compare)),
        )  # fmt: skip
        for parameter in self.old.function.parameters:
            kind = named(parameter.type.base, self.old.unit.aliases)
            if parameter.name in inside and (kind.kind, kind.size, kind.signed) != ("int", 4, True):
                raise NotLegal(f"`{parameter.name}` is not an `int`", parts.loop.line)

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    # -- the kernel

    def _counting(self) -> str:
        """What stands in the place of the loop."""
        out, sum_ = self.parts.outputs, self.found.sum.name
        across, down = (ROW, COLUMN) if out.swapped else (COLUMN, ROW)
        place = {
            side: f"(int)(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"
            for side, axis in ((across, "x"), (down, "y"))
        }
        words = []
        for side in (ROW, COLUMN):
            operand = self.operands[0 if side == ROW else -1]
            count = self._size(self._extent(operand.side))
            words.append(f"{self.names[operand][0]}[(size_t){self.k} * {count} + {place[side]}]")
        differing = self._fresh("differing")
        rounds = self._size(self.found.rounds)
        counted = f"max({rounds}, 0) - {differing}" if self.found.alike else differing
        return (
            f"{{\nint {differing} = 0;\n"
            f"for (int {self.k} = 0; {self.k} < {self.counts}[1]; ++{self.k}) "
            f"{differing} += __popc({words[0]} ^ {words[1]});\n"
            f"{sum_} {'-=' if self.found.down else '+='} {counted};\n}}"
        )

    # -- the launches before

    def _directives(self) -> Iterator[Directive]:
        """Scratch and launches; rows without an element still have a word each, which is empty."""
        deep = self._expression(self.found.rounds)
        yield ScratchDirective(self.bits, "<i4", parse_expression("1"))
        yield ScratchDirective(self.counts, "<i4", parse_expression("2"))
        yield ZeroDirective(self.bits)
        yield from self.parts.asked
        words = f"max(cdiv({deep}, {BITS}), 1)"
        for operand, (planes, _) in self.names.items():
            count = f"{self.width} * {words} * ({self._expression(self._extent(operand.side))})"
            yield ScratchDirective(planes, "<u4", parse_expression(count))
        rows = ", ".join(str(self._expression(self._extent(o.side))) for o in self.operands)
        most = f"max({rows})" if len(self.operands) > 1 else rows
        blocks = f"cdiv({most}, {BITS}) * max(cdiv({deep}, {_THREADS}), 1)"
        yield self._launch(self.looking, blocks, _THREADS, self._looking())
        for operand, (_, name) in self.names.items():
            each = f"cdiv({self._expression(self._extent(operand.side))}, {BITS * _WARPS})"
            yield self._launch(name, f"{each} * {words}", BITS * _WARPS, self._packing(operand))

    def _launch(self, name: str, blocks: str, threads: int, text: str) -> LaunchDirective:
        grid = (parse_expression(blocks),)
        args, launch = None, self.old.launch
        if launch.args is not None:
            by = dict(zip(self.old.function.parameters, launch.args, strict=True))
            own = [e for p, e in by.items() if p.name in _words(text)]
            args = (*own, *(parse_expression(n) for n in self._scratch(text)))
        spelled = f"{self.scope}{self.colons}{name}{self.opening}{self.given}"
        return LaunchDirective(spelled, grid, (parse_expression(str(threads)),), args=args)

    def _scratch(self, text: str) -> list[str]:
        """The scratch that a text asks for, in the order of its parameters."""
        every = (self.bits, self.counts, *(planes for planes, _ in self.names.values()))
        return [name for name in every if name in _words(text)]

    def _kernel(self, name: str, body: str) -> str:
        raw, function = self.old.unit.syntax.text, self.old.function
        shown = [raw[slice(*p.span)].decode() for p in function.parameters
                 if p.name in _words(body) and p.span is not None]  # fmt: skip
        for one in self._scratch(body):
            kind = "int" if one in (self.bits, self.counts) else "unsigned int"
            const = "const " * (one == self.bits and name != self.looking)
            shown.append(f"{const}{kind}* {one}")
        return tidied(f"__global__ void {name}({', '.join(shown)}) {{\n{body}\n}}")

    def _looking(self) -> str:
        """Which bits differ between any two elements: those by which one differs from the first."""
        fresh = self.old.fresh
        seen, turn, all_ = fresh("seen"), fresh("turn"), fresh("all_seen")
        first, across = fresh("first"), fresh("blocks_across")
        rounds, line = self._size(self.found.rounds), []
        for operand in self.operands:
            value = self._element(operand, self.k, self.row)
            there = self._there(operand, self.k, self.row)
            line.append(f"if ({there}) {seen} |= {first} ^ {value};")
        body = f"""\
__shared__ unsigned int {all_};
if (threadIdx.x == 0) {all_} = 0;
__syncthreads();
const int {across} = max(({rounds} + {_THREADS - 1}) / {_THREADS}, 1);
const int {self.k} = blockIdx.x % {across} * {_THREADS} + threadIdx.x;
unsigned int {seen} = 0;
if ({self.k} < {rounds}) {{
const unsigned int {first} = {self._there(self.found.row)} ? {self._element(self.found.row)} : 0;
#pragma unroll 8
for (int {turn} = 0; {turn} < {BITS}; ++{turn}) {{
const int {self.row} = blockIdx.x / {across} * {BITS} + {turn};
{chr(10).join(line)}
}}
}}
#pragma unroll
for (int {turn} = {BITS // 2}; {turn} > 0; {turn} /= 2) {{
{seen} |= __shfl_xor_sync(~0u, {seen}, {turn});
}}
if (threadIdx.x % {BITS} == 0) atomicOr(&{all_}, {seen});
__syncthreads();
if (threadIdx.x == 0 && {all_} != 0) atomicOr({self.bits}, (int){all_});"""
        return self._kernel(self.looking, body)

    def _packing(self, operand: Operand) -> str:
        """Planes of 32 elements of 32 rows for each warp, next to each other by their rows."""
        fresh = self.old.fresh
        lane, values, turn, left = (fresh(n) for n in ("lane", "values", "turn", "left"))
        at, word, bits, first = fresh("at"), fresh("word"), fresh("bits"), fresh("first_row")
        words, number = fresh("words"), fresh("own_word")
        planes, name = self.names[operand]
        rounds, count = self._size(self.found.rounds), self._size(self._extent(operand.side))
        value = self._element(operand, self.k, self.row)
        there = self._there(operand, self.k, self.row)
        told = ""
        if operand is self.operands[0]:
            told = f"""
if (blockIdx.x == 0 && threadIdx.x == 0) {{
{self.counts}[0] = __popc({left});
{self.counts}[1] = {words} * __popc({left});
}}"""
        body = f"""\
const int {words} = max(({rounds} + {BITS - 1}) / {BITS}, 1), {number} = blockIdx.x % {words};
const int {lane} = threadIdx.x % {BITS}, {self.k} = {number} * {BITS} + {lane};
const int {first} = (blockIdx.x / {words} * {_WARPS} + threadIdx.x / {BITS}) * {BITS};
unsigned int {values}[{BITS}];
#pragma unroll
for (int {turn} = 0; {turn} < {BITS}; ++{turn}) {{
const int {self.row} = {first} + {turn};
{values}[{turn}] = {self.k} < {rounds} && {there} ? {value} : 0;
}}
unsigned int {left} = max((unsigned int){self.bits}[0], 1u);{told}
for (int {at} = {number} * __popc({left}); {left} != 0; {left} &= {left} - 1, ++{at}) {{
unsigned int {word} = 0;
#pragma unroll
for (int {turn} = 0; {turn} < {BITS}; ++{turn}) {{
const unsigned int {bits} = __ballot_sync(~0u, {values}[{turn}] & {left} & -{left});
if ({lane} == {turn}) {word} = {bits};
}}
if ({first} + {lane} < {count}) {planes}[(size_t){at} * {count} + {first} + {lane}] = {word};
}}"""
        return self._kernel(name, body)

    # -- their parts

    def _extent(self, side: str) -> Polynomial:
        return self.parts.extent(side)

    def _speller(self, names: dict[str, str]) -> Speller:
        moved = self.parts.effects.moved
        return Speller(self.old.reading.symbols, names, wide=self.old.wide, moved=moved)

    def _size(self, form: Polynomial) -> str:
        return Speller(self.old.reading.symbols, {}, moved=self.parts.effects.moved).factor(form)

    def _element(self, operand: Operand, k: str = "", row: str = "") -> str:
        """The bits of an element, those above it 0; without a place of the first one."""
        names = {self.parts.axis.name: k, operand.side: row}
        form = operand.form if k else operand.form.without([*names])
        kind = {8: "unsigned char", 16: "unsigned short", 32: "unsigned int"}[self.width]
        loaded = f"({kind}){operand.array}[{self._speller(names).form(form)}]"
        return loaded if self.width == BITS else f"(unsigned int){loaded}"

    def _there(self, operand: Operand, k: str = "0", row: str = "0") -> str:
        """When an element is there, of rows that are columns as well whichever asks for it."""
        every = (self.found.row, self.found.column) if self.found.same else (operand,)
        ways = []
        for one in every:
            speller = self._speller({self.parts.axis.name: k, one.side: row})
            ways.append(" && ".join(map(speller.condition, guards(self.parts, one))))
        ways = [*dict.fromkeys(ways)]
        return ways[0] if len(ways) == 1 else f"({' || '.join(f'({way})' for way in ways)})"

    def _expression(self, form: Polynomial) -> Expression:
        names = [p.name for p in self.old.function.parameters]
        found = expression(form, self.old.reading.symbols, names)
        if found is None or not said_alike(self.old, found.names):
            raise NotLegal(
                "sizes alone do not say how many elements there are", self.parts.loop.line
            )
        return found


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
