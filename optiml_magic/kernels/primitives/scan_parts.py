"""P15, a scan in parts: blocks share the rounds of a loop of which each goes on from the last.

``s += x[k]; y[k] = s;`` of few threads. Of two launches the first finds what each part of the
rounds combines, and leaves it in scratch. The second is the kernel as it was, a part to each block:
it takes in what all parts before its own have combined, and makes its rounds from there. Source:
NVIDIA, "Parallel Prefix Sum (Scan) with CUDA", GPU Gems 3, chapter 39, "reduce, then scan".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.errors import SourceError
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Name, builtin
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.chunks import Chunks, is_alone
from optiml_magic.kernels.primitives.mixing import LEAPS, filled, matrix
from optiml_magic.kernels.primitives.parts import Sharing
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.scan_order import Scan, left_out
from optiml_magic.kernels.primitives.scans import Scans, scanned
from optiml_magic.kernels.primitives.systems import System, reaching
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Reduction
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Evaluate,
    If,
    Statement,
    expressions,
    only_leaves,
    walk,
)
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import Number, parse_expression

_AT_ONCE = 8  # parts that are asked for together: ours


@primitive
def scan_in_parts(kernel: Kernel, at: int, parts: int, counts: tuple[int, ...]) -> Kernel:
    """The loop with this number, which counts from 0 by 1 and scans, in so many parts."""
    return _ScanParts(_of_one(kernel.settled()), at, Sharing(1, parts, (1,), counts)).kernel()


def _of_one(kernel: Kernel) -> Kernel:
    """A kernel of one thread in words that do not ask which it is: parts may be its blocks."""
    whole = all(e.tree == Number(1) for e in (*kernel.launch.grid[1:], *kernel.launch.block))
    if not is_alone(kernel) or not whole:
        return kernel
    every_place_read(kernel)
    own_text_only(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {
        e: text("1u" if name.startswith(("blockDim", "gridDim")) else "0u")
        for e in expressions(kernel.function.body) if (name := builtin(e))
    }  # fmt: skip
    for statement in kernel.function.body.body:
        match statement:
            case If(test=test, before=None, other=None, constant=False) if only_leaves(
                statement.then, "return"
            ) and _never(kernel.spelled(test, swaps)):
                swaps[statement] = None
    one = parse_expression("1")
    launch = replace(kernel.launch, grid=(one,), block=(one,))
    return kernel.rewritten(edited(kernel.function.body, swaps), launch=launch)


def _never(words: str) -> bool:
    """Whether a test of numbers alone fails."""
    try:
        test = parse_expression(words.replace("u", ""))
    except SourceError:
        return False
    return not test.names and not test.arrays and not test.evaluate({})


class _ScanParts(Chunks):
    scans: Scans
    system: System | None = None

    def _axis(self) -> str:
        found = super()._axis()
        asked = any(builtin(e).endswith(".x") for e in expressions(self.old.function.body))
        return "x" if is_alone(self.old) and len(self.old.launch.grid) == 1 and not asked else found

    def _places(self) -> list[str]:
        if self.axis != "x":
            return super()._places()
        return [f"const size_t {self.threads} = 1, {self.thread} = 0;"]

    def _launch(self, name: str) -> LaunchDirective:
        made = super()._launch(name)
        return made if self.axis != "x" else replace(made, block=(parse_expression("1"),))

    def _combining(self) -> tuple[Reduction, ...]:
        combined = shareable(self.old, self.loop, self.effects, scanning=True)
        found = scanned(self.old, self.loop, self.effects)
        if found is None:
            raise NotLegal("nothing goes from round to round", self.loop.line)
        if combined:
            raise NotLegal(f"`{combined[0].place}` is combined beside a scan", self.loop.line)
        for scan in found.found:
            if scan.factors is not None or scan.needs or scan.system is not None:
                self._together(scan)
                return tuple(replace(own.reduction, op="+") for own in self.scans.found)
        self.scans = found
        return tuple(scan.reduction for scan in found.found)

    def _together(self, first: Scan) -> None:
        """All that goes from round to round as one system, where it does not by itself."""
        try:
            found = scanned(self.old, self.loop, self.effects, together=True)
        except NotLegal as reason:
            name = first.variable.name
            words = f"what `{name}` combines depends on what went before: {reason.reason}"
            raise NotLegal(words, reason.line or first.variable.line) from None
        assert found is not None
        self.scans, self.system = found, found.found[0].system

    def _check_stores(self) -> None:
        """Stores of rounds do not meet, as lanes that share them ask; those around it are few.

        What stands ahead is done by the first part, and what stands behind by the last, while the
        others make their rounds: none of them meets what others store.
        """
        inside = self.effects.accesses(self.loop)
        ahead = [a for front, _ in self._around() for s in front for a in self.effects.accesses(s)]
        every_one = self.effects.accesses(self.old.function.body)
        stored = {a.array for a in every_one if a.mode != "load"}
        own = {a.array for a in inside if a.mode != "load"}
        around = {a.array for a in every_one if a.mode != "load" and a not in inside}
        for access in (a for a in every_one if a not in inside and a.space == "global"):
            if access.mode == "atomic":
                raise NotLegal("more than to store is done around the loop", access.line)
            others = stored if access.mode == "load" else own
            if not any(self.effects.same(access.array, name) for name in others):
                continue
            first = access in ahead and self._before_all(access)
            if access.mode == "load" and not (
                first and not any(self.effects.same(access.array, name) for name in around)
            ):
                raise NotLegal("it asks for what the kernel writes", access.line)
            if not first:
                raise NotLegal("what is stored around the loop may be stored in it", access.line)
        early = {a.array for a in ahead if a.mode != "load"}
        late = [a for a in every_one if a not in inside and a not in ahead and a.mode != "load"]
        for access in late:
            if any(self.effects.same(access.array, name) for name in early):
                raise NotLegal("what is stored behind the loop may be stored ahead", access.line)
        self._check_first(inside)

    def _before_all(self, ahead: Access) -> bool:
        """Whether an element lies before those that rounds store, as the first of a row does."""
        axis, symbols = self.old.axes()[self.loop], self.old.reading.symbols
        stores = [a for a in self.effects.accesses(self.loop)
                  if a.mode != "load" and self.effects.same(a.array, ahead.array)]  # fmt: skip
        if len(stores) != 1 or stores[0].index is None or ahead.index is None:
            return False
        (store,) = stores
        by = store.index.coefficient(axis.name) if store.index is not None else None
        if by is None or (store.array, store.element) != (ahead.array, ahead.element):
            return False
        begin = store.index.without([axis.name]) if store.index is not None else ahead.index
        steady = axis.name not in symbols.inside(begin)
        known = Ranges(store.guard, symbols).nonnegative(by - Polynomial.constant(1))
        return steady and known and begin - by == ahead.index

    def _check_first(self, inside: Sequence[Access]) -> None:
        """What rounds do before they scan both launches do, but for stores, which nobody loads."""
        dropped = [s for s in self.scans.first if self._stores(s)]
        for statement in self.scans.first:
            for access in self.effects.accesses(statement):
                if access.mode != "load" and statement not in dropped:
                    raise NotLegal("a round does more before it scans", access.line)
        gone = {a.own for s in dropped for a in self.effects.accesses(s)}
        lost = {a.array for s in dropped for a in self.effects.accesses(s) if a.mode != "load"}
        for access in inside:
            if access.mode == "load" and access.own not in gone and any(
                self.effects.same(access.array, name) for name in lost
            ):  # fmt: skip
                raise NotLegal("a round loads what it stored", access.line)

    def _spared(self, statement: Statement) -> bool:
        """Also what stores before the loop, which the second launch does."""
        return self._stores(statement) or super()._spared(statement)

    def _stores(self, statement: Statement) -> bool:
        """Whether a statement only stores to global memory, or adds to it."""
        if not isinstance(statement, Evaluate) or self.effects.changed(statement):
            return False
        own = self.effects.accesses(statement)
        return any(access.mode != "load" and access.space == "global" for access in own)

    def _shared(self) -> tuple[Statement, ...]:
        """What finds the parts alone."""
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        body = (*self.scans.first, *self.scans.rest, *self.scans.given.values())
        kept = list[Statement]()
        for piece in self.pieces:
            if piece.kept:
                kept.append(lines(f"{piece.local} = {piece.place};"))
                continue
            swaps |= {
                e: text(piece.local)
                for s in body for e in expressions(s)
                if isinstance(e, Name) and e.variable is not None
                and e.variable in self.changed and e.variable.name == piece.place
            }  # fmt: skip
        for old, new in self.scans.given.items():
            swaps[old] = edited(new, swaps)
        needed = frozenset[Statement]().union(*(scan.kept for scan in self.scans.found))
        swaps |= dict.fromkeys(left_out(needed, self.scans.rest))
        swaps |= {s: None for s in self.scans.first if self._stores(s)}
        return *self._own_rounds(swaps), *kept, *self._left()

    @property
    def changed(self) -> frozenset[object]:
        return frozenset(scan.variable for scan in self.scans.found)

    def kernel(self) -> Kernel:
        self._check_behind()
        return super().kernel()

    def _helpers(self) -> tuple[str, ...]:
        return () if self.system is None else LEAPS

    def _check_behind(self) -> None:
        """Raise NotLegal where what follows the loop asks for more than what was combined."""
        behind = [s for block in self._around() for s in block[1]]
        asked = {v for s in behind for v in self.effects.mentions(s)}
        lost = asked & ({*self.effects.changed(self.loop)} - self.changed)
        lost |= asked & ({*self.system.states} if self.system is not None else set())
        if lost or self.counter in asked:
            raise NotLegal("what follows the loop asks for its last round", self.loop.line)

    def _around(self) -> list[tuple[Sequence[Statement], Sequence[Statement]]]:
        """What stands before the loop and behind it, in each of the blocks around it."""
        found = list[tuple[Sequence[Statement], Sequence[Statement]]]()
        for block in walk(self.old.function.body):
            if isinstance(block, Block):
                at = [n for n, s in enumerate(block.body) if self.loop in {*walk(s)}]
                found += [(block.body[:n], block.body[n + 1 :]) for n in at]
        return found

    def _replaced(self) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """The second launch: parts before its own taken in, its rounds, and what is done once."""
        part, turn = self._fresh("part"), self.turn
        at = f"{part} * {self.threads} + {self.thread}"
        taken = "\n".join(p.joining(at) for p in self.pieces)
        loop = f"for (int {part} = 0; {part} < {turn}; ++{part}) {{"
        joined = [f"#pragma unroll {_AT_ONCE}", loop, taken, "}"]
        if self.system is not None:
            joined = self._led(self.system, part, at)
        before = (
            lines(f"const int {turn} = {self._turn()};"),
            *map(lines, self._places()),
            lines("\n".join(joined)),
        )
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {
            self.loop: (*before, *self._own_rounds({}))
        }
        axis = f"blockIdx.{self.axis}"
        for ahead, behind in self._around():
            for statement in (s for s in ahead if self._stores(s)):
                shown = self.old.show(statement).strip()
                swaps[statement] = lines(f"if ({axis} == 0) {{\n{shown}\n}}")
            rest = [s for s in behind if not isinstance(s, Blank)]
            if rest:
                shown = self.old.show(Block(None, 0, tuple(behind))).strip()
                swaps |= dict.fromkeys(rest[1:])
                swaps[rest[0]] = lines(f"if ({axis} == {self.parts} - 1) {shown}")
        return swaps

    def _led(self, found: System, part: str, at: str) -> list[str]:
        """The states behind all parts before its own, each of which multiplies them alike."""
        kind, size, turn, count = found.kind.name, len(found.states), self.turn, self.parts
        by, leap, whole = self._fresh("by"), self._fresh("leap"), f"[{size}][{size}] = {{}}"
        round_, far = self._fresh("reaching"), self._fresh("reached")
        states, own, each = (self._fresh(name) for name in ("states", "own_states", "rounds"))
        begun = ", ".join(state.name for state in found.states)
        left = ", ".join(f"{piece.scratch}[{at}]" for piece in self.pieces)
        columns = matrix(self.old, self.scans, found, self._fresh)
        rows = (", ".join(str(int(one)) for one in row) for row in reaching(found, self.scans.rest))
        shown = ", ".join(f"{{{row}}}" for row in rows)
        return [
            f"if ({turn} > 0 && ({self.total}) > 0) {{",
            f"const auto {each} = ({self.total}) / {count} + (({self.total}) % {count} != 0);",
            f"{kind} {by}[1]{whole}, {leap}{whole}, {far}{whole};",
            f"{kind} {round_}[{size}][{size}] = {{{shown}}};",
            *filled(found, by, columns),
            f"power_of({leap}, {by}[0], {each});",
            f"power_of({far}, {round_}, {each});",
            f"{kind} {states}[{size}] = {{{begun}}};",
            f"for (int {part} = 0; {part} < {turn}; ++{part}) {{",
            f"{kind} {own}[{size}] = {{{left}}};",
            f"leapt_into({own}, {leap}, {far}, {states});",
            *(f"{states}[{n}] = {own}[{n}];" for n in range(size)),
            "}",
            *(f"{state.name} = {states}[{n}];" for n, state in enumerate(found.states)),
            "}",
        ]

    def _relaunched(self, launch: LaunchDirective) -> LaunchDirective:
        at, one = "xyz".index(self.axis), parse_expression("1")
        grid = (*launch.grid, one, one)[:at]
        return replace(launch, grid=(*grid, parse_expression(self.parts)))
