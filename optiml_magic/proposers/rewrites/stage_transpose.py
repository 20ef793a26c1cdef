"""A load along rows and a store along columns, made to meet in a padded shared tile."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.accesses import Access, accesses, pattern
from optiml_magic.proposers.rewrites.blocks import guarded, tied_literals
from optiml_magic.proposers.rewrites.guards import returns_if
from optiml_magic.proposers.rewrites.indices import cooperative, helpers_see_threads, only_global
from optiml_magic.proposers.rewrites.kernel import builtin
from optiml_magic.proposers.rewrites.launches import AXES, expression, extents, recut, relaunch
from optiml_magic.proposers.rewrites.layout import indented, line_end, unit
from optiml_magic.proposers.rewrites.staging import always, element_bytes, escaped
from optiml_magic.proposers.rewrites.surgery import NotCertainError, Surgery
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Name, parse_expression
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.affine import Affine
    from optiml_magic.source.program import Program

_SHARED = 48 * 1024
_PLAIN = ("declaration", "if_statement", "expression_statement", "comment", "compound_statement")


@dataclass(frozen=True)
class Pair:
    """The load and the only store; ``rows_first`` where the load is the coalesced one."""

    load: Access
    store: Access
    rows_first: bool


def transposed_copy(
    program: Program, affine: Affine, launch: LaunchDirective
) -> Iterator[tuple[str, str, str]]:
    """The program with the copy staged, a title, and which side strode: ``ld`` or ``st``.

    Nothing where it is not such a copy.
    """
    sizes = extents(program, launch)
    kernel = affine.kernel
    if sizes is None or len(sizes) < 2 or sizes[2:] not in ((), (1,)) or len(launch.grid) < 2:
        return
    if cooperative(kernel) or helpers_see_threads(kernel):
        return
    if not all(only_global(affine, AXES[a], sizes[a]) and guarded(affine, a) for a in (0, 1)):
        return
    pair = _pair(affine)
    if pair is None:
        return
    try:
        text, title = _Copy(program, affine, launch, sizes, pair).stage()
    except NotCertainError:
        return
    yield text, title, "st" if pair.rows_first else "ld"


def _pair(affine: Affine) -> Pair | None:
    found = accesses(affine)
    stores = [access for access in found if access.store]
    if len(stores) != 1 or stores[0].load or any(access.loops for access in found):
        return None
    store = stores[0]
    if any(access.load and access.array == store.array for access in found):
        return None
    changed = escaped(affine, found) | {store.array.start}
    for load in found:
        if (
            load.store
            or load.array.start in changed
            or not always(load.node, affine.kernel.body, guards=True)
        ):
            continue
        along = [[pattern(affine, a, f"threadIdx.{x}") for x in "xy"] for a in (load, store)]
        if along == [["coalesced", "strided"], ["strided", "coalesced"]]:
            return Pair(load, store, rows_first=True)
        if along == [["strided", "coalesced"], ["coalesced", "strided"]]:
            return Pair(load, store, rows_first=False)
    return None


class _Copy:
    def __init__(
        self,
        program: Program,
        affine: Affine,
        launch: LaunchDirective,
        sizes: tuple[int, ...],
        pair: Pair,
    ) -> None:
        self.program, self.affine, self.launch = program, affine, launch
        self.sizes, self.pair, self.kernel = sizes, pair, affine.kernel
        self.surgery = Surgery(self.kernel)
        self.side = self.surgery.fresh("TILE")
        self.rows = self.surgery.fresh("TILE_ROWS")
        self.tile = self.surgery.fresh("tile")
        self.row = self.surgery.fresh("tile_row")
        self.step = unit(self.kernel)

    def stage(self) -> tuple[str, str]:
        self._check(self.kernel.body)
        body, step = self.kernel.body, self.step
        first, last = body.named_children[0], body.named_children[-1]
        if first.start_point[0] == body.start_point[0] or last.end_point[0] == body.end_point[0]:
            raise NotCertainError("a body on one line")
        blanks = self.surgery.blanks(first)
        load = [self._loop_head(), *indented("\n".join(self._load(body)), step).split("\n"), "}"]
        kind = self.pair.load.array.element
        lines = [f"__shared__ {kind} {self.tile}[{self.side}][{self.side} + {self._pad()}];", *load,
                 "__syncthreads();", self._loop_head()]  # fmt: skip
        at = body.children[0].end_byte
        self.surgery.replace(at, at, "".join(f"\n{blanks}{line}" for line in lines))
        self._store_phase()
        self.surgery.move(int(first.start_point[0]), int(last.end_point[0]), 1)
        stop = line_end(self.kernel, last.end_byte)
        self.surgery.replace(stop, stop, f"\n{blanks}}}")
        text = apply(self.program.text, [self._relaunched(), *self.surgery.edits()])
        title = f"transpose {self.kernel.text(self.pair.load.node)} through a 32x33 shared tile"
        return text, title

    def _check(self, node: Node) -> None:
        """Every statement is a definition, a guard or an assignment; nothing loops."""
        for child in node.named_children:
            if child.type not in _PLAIN:
                raise NotCertainError(child.type)
            if child.type == "if_statement":
                then = child.child_by_field_name("consequence")
                if child.child_by_field_name("alternative") is not None or then is None:
                    raise NotCertainError("an else branch")
                if returns_if(child) is None:
                    if then.type == "compound_statement":
                        self._check(then)
                    elif then.type not in _PLAIN:
                        raise NotCertainError(then.type)
                elif child.end_byte > self.pair.load.node.start_byte:
                    raise NotCertainError("a return after the load")
            elif child.type == "compound_statement":
                self._check(child)

    def _loop_head(self) -> str:
        row, side, rows = self.row, self.side, self.rows
        return f"for (int {row} = threadIdx.y; {row} < {side}; {row} += {rows}) {{"

    def _cell(self, *, straight: bool) -> str:
        """The tile's element of this thread: lanes along a row of the tile, or a column."""
        first, second = (self.row, "threadIdx.x") if straight else ("threadIdx.x", self.row)
        return f"{self.tile}[{first}][{second}]"

    def _load(self, block: Node) -> list[str]:
        """The way to the load, and the load put into the tile; what it does not need left out."""
        load = self.pair.load.node
        lines: list[str] = []
        for node in block.named_children if block.type == "compound_statement" else [block]:
            if node.end_byte <= load.start_byte:
                if node.type != "comment":
                    lines.append(self._moved(node, straight=self.pair.rows_first))
                continue
            then = node.child_by_field_name("consequence") if node.type == "if_statement" else None
            if then is not None:
                head = self._moved(node, straight=self.pair.rows_first, until=then.start_byte)
                inner = self._load(then)
                inside = [self.step + line for line in inner]
                lines += [f"{head.rstrip()} {{", *inside, "}"]
            elif node.type == "compound_statement":
                lines += self._load(node)
            else:
                value = self._moved(load, straight=self.pair.rows_first)
                lines.append(f"{self._cell(straight=self.pair.rows_first)} = {value};")
            break
        return _needed(lines)

    def _moved(self, node: Node, *, straight: bool, until: int | None = None) -> str:
        """The text of a node for the thread's place in the tile."""
        text, end = self.kernel.syntax.text, until or node.end_byte
        parts, at = [], node.start_byte
        for start, stop, new in self._renamed(node, straight=straight):
            if stop <= end:
                parts += [text[at:start].decode(), new]
                at = stop
        return "".join([*parts, text[at:end].decode()])

    def _renamed(self, node: Node, *, straight: bool) -> Iterator[tuple[int, int, str]]:
        along, across = "threadIdx.x", self.row
        places: Mapping[str, str] = {
            "threadIdx.x": along if straight else across,
            "threadIdx.y": across if straight else along,
            "blockDim.x": self.side,
            "blockDim.y": self.side,
        }
        literals = {
            literal.start_byte
            for axis in (0, 1)
            for literal in tied_literals(self.affine, self.sizes[axis], axis)
        }
        for part in walk(node):
            name = builtin(part)
            if name in places and places[name] != name:
                yield part.start_byte, part.end_byte, places[name]
            elif part.type == "number_literal" and part.start_byte in literals:
                yield part.start_byte, part.end_byte, self.side
            elif part.type == "return_statement":
                yield part.start_byte, part.end_byte, "continue;"

    def _store_phase(self) -> None:
        straight = not self.pair.rows_first
        load = self.pair.load.node
        for start, stop, new in self._renamed(self.kernel.body, straight=straight):
            if not load.start_byte <= start < load.end_byte:
                self.surgery.replace(start, stop, new)
        self.surgery.replace(load.start_byte, load.end_byte, self._cell(straight=straight))

    def _pad(self) -> int:
        return max(1, 4 // element_bytes(self.pair.load.array))

    def _relaunched(self) -> Edit:
        side, rows = Name(self.side), Name(self.rows)
        grid = [recut(self.launch.grid[a], self.launch.block[a].tree, side) for a in (0, 1)]
        if grid[0] is None or grid[1] is None:
            raise NotCertainError("a grid that is not cut by the block")
        bytes_ = element_bytes(self.pair.load.array)
        fits = f"{self.side} * ({self.side} + {self._pad()}) * {bytes_} <= {_SHARED}"
        tunes = [
            TuneDirective(self.side, (16, 32, 64), 32, parse_expression(fits)),
            TuneDirective(self.rows, (2, 4, 8, 16), 8,
                          parse_expression(f"{self.side} * {self.rows} <= 1024")),
        ]  # fmt: skip
        new = replace(
            self.launch,
            grid=(grid[0], grid[1], *self.launch.grid[2:]),
            block=(expression(side), expression(rows), *self.launch.block[2:]),
        )
        return relaunch(self.program, self.launch, new, tunes)


def _needed(lines: list[str]) -> list[str]:
    """The lines without definitions that no later line reads."""
    kept: list[str] = []
    for line in reversed(lines):
        name = re.match(r"(?:[\w:]+[\s*&]+)+(\w+)\s*=", line)
        rest = "\n".join(kept)
        if name is None or line.startswith("tile") or re.search(rf"\b{name[1]}\b", rest):
            kept.append(line)
    return kept[::-1]
