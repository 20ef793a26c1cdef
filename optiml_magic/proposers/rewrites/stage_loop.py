"""A loop cut into tiles: the block loads what the next rounds read, and all threads share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.proposers.rewrites.affine import THREADS, Affine
from optiml_magic.proposers.rewrites.blocks import tuned_block
from optiml_magic.proposers.rewrites.guards import Condition, Guards
from optiml_magic.proposers.rewrites.launches import extents, relaunch
from optiml_magic.proposers.rewrites.layout import indented, unit
from optiml_magic.proposers.rewrites.slices import Slice
from optiml_magic.proposers.rewrites.staging import (
    Operand,
    UnitLoop,
    element_bytes,
    loads_under,
    operands,
    reduces_products,
    unit_loops,
)
from optiml_magic.proposers.rewrites.surgery import NotCertainError, Surgery
from optiml_magic.source.directives import Directive, LaunchDirective, TuneDirective
from optiml_magic.source.edits import apply
from optiml_magic.source.expressions import parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optiml_magic.proposers.rewrites.kernel import Kernel
    from optiml_magic.source.program import Program

_SHARED = 48 * 1024
_MOST_TILES = 4


@dataclass(frozen=True)
class Staged:
    """A loop rewritten: the new text, what was staged, and how sure the gain is."""

    text: str
    title: str
    reasons: frozenset[str]
    rounds: int


@dataclass(frozen=True)
class Tile:
    """A shared array for one operand: ``name[rows][columns]``, and the text that fills it."""

    operand: Operand
    name: str
    rows: str
    columns: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Block:
    """The launch to write, its tunes, and the block's extents as C expressions and as numbers."""

    launch: LaunchDirective
    tunes: tuple[Directive, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def threads(self) -> str:
        return " * ".join(n for n, s in zip(self.names, self.sizes, strict=True) if s > 1) or "1"

    def extent(self, axis: str) -> str:
        return self.names[THREADS.index(axis)]


def staged_loops(
    program: Program, affine: Affine, launch: LaunchDirective
) -> Iterator[Staged | tuple[str, int]]:
    """Each loop whose reads are strided or shared between threads, with those reads staged.

    Or why it is not, and the line of the loop.
    """
    sizes = extents(program, launch)
    if sizes is None:
        return
    for loop in unit_loops(affine):
        found = operands(affine, loop, sizes)
        worth = [o for o in found if o.reason in ("strided", "reused")] or [
            o for o in found if o.reason == "uniform"
        ]
        if not worth or len(worth) > _MOST_TILES:
            continue
        for rounds in (32, 16):
            try:
                yield _Stager(program, affine, _block(program, affine, launch), loop).stage(
                    worth, rounds
                )
            except NotCertainError as why:
                yield str(why), loop.node.start_point[0] + 1


def _block(program: Program, affine: Affine, launch: LaunchDirective) -> Block:
    tuned = tuned_block(program, affine, launch)
    assert tuned is not None
    if tuned.edits:  # literals of the kernel stand for the extents: leave both as they are
        return Block(launch, (), tuple(map(str, launch.block)), tuned.extents)
    return Block(tuned.launch, tuned.tunes, tuned.names, tuned.extents)


class _Stager:
    def __init__(self, program: Program, affine: Affine, block: Block, loop: UnitLoop) -> None:
        self.program, self.affine, self.block, self.loop = program, affine, block, loop
        self.kernel = affine.kernel
        self.surgery = Surgery(self.kernel)
        self.guards = Guards(affine, loop.node, self.surgery)
        for tune in block.tunes:
            assert isinstance(tune, TuneDirective)
            self.surgery.taken.append(tune.name)
        self.tile = self.surgery.fresh("TILE")
        self.start = self.surgery.fresh("start")
        self.thread = self.surgery.fresh("thread") if len(block.sizes) > 1 else "threadIdx.x"
        self.step = unit(self.kernel)

    def stage(self, worth: Sequence[Operand], rounds: int) -> Staged:
        self.guards.flatten()
        tiles = [t for t in map(self._tile, worth) if t is not None]
        if not any(t.operand.reason in ("strided", "reused", "uniform") for t in tiles):
            raise NotCertainError("no read can be staged")
        staged = [t.operand for t in tiles]
        zeros = len(tiles) == len(worth) and reduces_products(self.affine, self.loop, staged)
        tune = self._tune(tiles, rounds)
        self._declare(tiles)
        self._cut(tiles, zeros=zeros)
        block = self.block
        # The new launch keeps the offsets of the old one, which is all that its edit needs.
        head = relaunch(self.program, block.launch, block.launch, [*block.tunes, tune])
        text = apply(self.program.text, [head, *self.surgery.edits()])
        reads = ", ".join(dict.fromkeys(self.kernel.text(o.reads[0].node) for o in staged))
        title = f"stage {reads} in shared tiles of {rounds} rounds"
        return Staged(text, title, frozenset(o.reason for o in staged), rounds)

    def _tile(self, operand: Operand) -> Tile | None:
        conditions = loads_under(self.affine, self.loop, operand, self.guards.conditions)
        if conditions is None:
            return None
        name = self.surgery.fresh(f"tile_{operand.array.name}")
        rows, columns = self.tile, ""
        if operand.axis:
            extent = self.block.extent(operand.axis)
            pad = max(1, 4 // operand.bytes)
            padded = f"{self.tile} + {pad}"
            rows, columns = (extent, padded) if operand.along_loop else (self.tile, extent)
        return Tile(operand, name, rows, columns, tuple(conditions))

    def _tune(self, tiles: Sequence[Tile], rounds: int) -> TuneDirective:
        parts = [
            f"({t.rows}) * ({t.columns}) * {t.operand.bytes}" if t.columns
            else f"{t.rows} * {t.operand.bytes}" for t in tiles
        ]  # fmt: skip
        condition = parse_expression(f"{' + '.join(parts)} <= {_SHARED}")
        values = dict(self.program.values)
        values |= {t.name: t.value for t in self.block.tunes if isinstance(t, TuneDirective)
                   and t.value is not None}  # fmt: skip
        values[self.tile] = rounds
        present = declared_bytes(self.kernel, values)
        needed = parse_expression(" + ".join(parts)).evaluate(values)
        if present is None or needed + present > _SHARED:
            raise NotCertainError("more shared memory than a block has")
        return TuneDirective(self.tile, (8, 16, 32, 64), rounds, condition)

    def _declare(self, tiles: Sequence[Tile]) -> None:
        body = self.kernel.body
        first = next(c for c in body.named_children)
        blanks = self.surgery.blanks(first)
        lines = []
        for tile in tiles:
            shape = f"[{tile.rows}]" + (f"[{tile.columns}]" if tile.columns else "")
            lines.append(f"__shared__ {tile.operand.array.element} {tile.name}{shape};")
        if self.thread != "threadIdx.x":
            lines.append(f"const int {self.thread} = {self._linear()};")
        at = body.children[0].end_byte
        self.surgery.replace(at, at, "".join(f"\n{blanks}{line}" for line in lines))

    def _linear(self) -> str:
        """A thread's number in its block, x fastest, as the lanes of a warp are numbered."""
        text = ""
        for axis in reversed(range(len(self.block.sizes))):
            size, name = self.block.sizes[axis], self.block.names[axis]
            if text:
                text = f"({text}) * {name} + {THREADS[axis]}" if " " in text else (
                    f"{text} * {name} + {THREADS[axis]}")  # fmt: skip
            elif size > 1 or axis == 0:
                text = THREADS[axis]
        return text

    def _cut(self, tiles: Sequence[Tile], *, zeros: bool) -> None:
        loop, text = self.loop, self.kernel.text
        node, counter = loop.node, loop.counter
        blanks = self.surgery.blanks(node)
        guarded = bool(self.guards.active) and not zeros
        kind = counter.element
        last = text(loop.last)
        head = f"for ({kind} {self.start} = {text(loop.first)}; {self.start} {loop.compare} {last};"
        lines = [f"{head} {self.start} += {self.tile}) {{"]
        for tile in tiles:
            lines += indented("\n".join(self._load(tile, zeros=zeros)), self.step).split("\n")
        lines.append(f"{self.step}__syncthreads();")
        inner = self.step * (2 if guarded else 1)
        if guarded:
            lines.append(f"{self.step}if ({self.guards.active}) {{")
        name = counter.name
        head = f"for ({kind} {name} = 0; {name} < {self.tile}; ++{name})" if zeros else (
            f"for ({kind} {name} = {self.start}; {name} < {self.start} + {self.tile}"
            f" && {name} {loop.compare} {last}; ++{name})")  # fmt: skip
        lines.append(inner + head)
        closing = next(c for c in reversed(node.children) if c.type == ")")
        opened = ("\n" + blanks).join(lines)
        self.surgery.replace(node.start_byte, closing.end_byte, opened)
        for tile in tiles:
            for read in tile.operand.reads:
                there = self._read(tile, zeros=zeros)
                self.surgery.replace(read.node.start_byte, read.node.end_byte, there)
        closers = [f"{self.step}}}"] * guarded + [f"{self.step}__syncthreads();", "}"]
        self.surgery.replace(
            node.end_byte, node.end_byte, "".join(f"\n{blanks}{c}" for c in closers)
        )
        levels = 2 if guarded else 1
        self.surgery.move(int(closing.end_point[0]) + 1, int(node.end_point[0]), levels)

    def _read(self, tile: Tile, *, zeros: bool) -> str:
        name = self.loop.counter.name
        place = name if zeros else f"{name} - {self.start}"
        if not tile.operand.axis:
            return f"{tile.name}[{place}]"
        if tile.operand.along_loop:
            return f"{tile.name}[{tile.operand.axis}][{place}]"
        return f"{tile.name}[{place}][{tile.operand.axis}]"

    def _load(self, tile: Tile, *, zeros: bool) -> list[str]:
        """The loop in which the block's threads fill one tile, lanes along what is contiguous."""
        operand, loop = tile.operand, self.loop
        slot = self.surgery.fresh("slot")
        self.surgery.taken.pop()
        round_name = self.surgery.fresh(f"load_{loop.counter.name}")
        self.surgery.taken.pop()
        other = ""
        row, column = f"{slot}", ""
        lines = []
        if operand.axis:
            other = self.surgery.fresh(f"load_thread_{operand.axis[-1]}")
            self.surgery.taken.pop()
            by = self.tile if operand.along_loop else self.block.extent(operand.axis)
            row, column = f"{slot} / {by}", f"{slot} % {by}"
        loop_part, thread_part = (column or row, row) if operand.along_loop else (row, column)
        replaced = {loop.counter.symbol: round_name}
        if operand.axis:
            lines.append(f"const unsigned {other} = {thread_part};")
            replaced[operand.axis] = other
        lines.append(f"const {loop.counter.element} {round_name} = {self.start} + {loop_part};")
        cut = Slice(self.affine, replaced, loop.node.start_byte)
        element = cut.write(operand.reads[0].node)
        asked = [self._asked(cut, condition) for condition in tile.conditions]
        lines += cut.lines
        asked.append(f"{round_name} {loop.compare} {self.kernel.text(loop.last)}")
        there = f"{tile.name}[{row}]" + (f"[{column}]" if column else "")
        held = " && ".join(asked)
        if zeros:
            zero = _zero(operand.array.element)
            lines.append(f"{there} = {held} ? {element} : {zero};")
        else:
            lines += [f"if ({held}) {{", f"{self.step}{there} = {element};", "}"]
        count = f"{tile.rows} * {self.tile if operand.along_loop else tile.columns}"
        count = count if operand.axis else self.tile
        head = (
            f"for (int {slot} = {self.thread}; {slot} < {count}; {slot} += {self.block.threads}) {{"
        )
        return [head, *(self.step + line for line in lines), "}"]

    def _asked(self, cut: Slice, condition: Condition) -> str:
        node = condition.node
        if not condition.negated:
            text = cut.write(node)
            return f"({text})" if "||" in text else text
        flipped = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
        if node.type == "binary_expression" and node.children[1].type in flipped:
            left, op, right = node.children
            return f"{cut.write(left)} {flipped[op.type]} {cut.write(right)}"
        return f"!({cut.write(node)})"


def declared_bytes(kernel: Kernel, values: Mapping[str, int]) -> int | None:
    """Bytes of the shared arrays that a kernel has already; None where a size is not known."""
    total = 0
    for variable in kernel.variables:
        if "__shared__" not in variable.type:
            continue
        elements, node = 1, kernel.declarator(variable)
        while node is not None and node.type == "array_declarator":
            size = node.child_by_field_name("size")
            try:
                elements *= parse_expression(kernel.text(size) if size else "").evaluate(values)
            except SourceError:
                return None
            node = node.parent
        total += elements * element_bytes(variable)
    return total


def _zero(element: str) -> str:
    return {"float": "0.0f", "double": "0.0", "int": "0"}.get(element, f"{element}(0)")
