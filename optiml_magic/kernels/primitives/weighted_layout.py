"""Names, numbers and shared memory of tiles of rows and of the keys that they weigh.

A block has ``BM`` rows, and takes ``BN`` keys at a time. ``LANES`` neighbouring threads have ``TM``
rows together: of what these and the keys of a tile are combined to, each thread has ``BN / LANES``
columns, and of the array its share. The first threads of a block follow the scalars of a row each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.weighted import Pass, Weighted
from optiml_magic.kernels.primitives.weighted_scalars import AtOnce, at_once
from optiml_magic.kernels.tree import Declare, Variable
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

ROWS, KEYS, OWN, LANES = (16, 32, 64, 128), (16, 32, 64), (2, 4, 8), (8, 16, 32)
_SPARE = 4  # elements behind each row of a tile, which keep rows off their banks
_BESIDE = 64  # bytes of what is not in tiles
_MOST = 512  # threads of a block
INT = named("int", {})
_REGISTERS = 160  # of a thread, for what it holds of tiles


class WeightedLayout:
    """Raises NotLegal where its tiles hold several kinds of numbers."""

    def __init__(self, kernel: Kernel, found: Weighted) -> None:
        self.old, self.found, self.items = kernel, found, found.items
        self.effects = Effects(kernel)
        self.taken = [found.items.name]
        fresh = self.fresh
        self.rows, self.keys, self.own, self.lanes = map(fresh, ("BM", "BN", "TM", "LANES"))
        self.each, self.threads = fresh("TN"), fresh("THREADS")
        self.across, self.wide = fresh("TD"), fresh("WIDE")
        self.lane, self.first_row, self.row = map(fresh, ("lane", "first_row", "own_row"))
        self.live, self.i, self.j, self.u = map(fresh, ("live", "i", "j", "part"))
        self.tile, self.slot, self.end = map(fresh, ("tile", "slot", "keys_end"))
        self.next, self.turn, self.begin = map(fresh, ("next_keys", "turn", "from_key"))
        self.range, self.key = fresh("keys_range"), fresh("key_in_tile")
        self.begun, self.ended, self.count = map(fresh, ("own_begin", "own_end", "own_count"))
        self.ran, self.used, self.all = map(fresh, ("ran", "used", "all_ran"))
        self.bits, self.whole, self.live_key = map(fresh, ("own_ran", "whole", "live_key"))
        self.row_tile, self.key_tile = fresh("row_tile"), fresh("key_tile")
        self.scores, self.weights = fresh("scores"), fresh("weights")
        self.factors, self.run, self.first = map(fresh, ("factors", "factor", "first_of_step"))
        self.row_now, self.key_now, self.sums = map(fresh, ("row_now", "key_now", "sums"))
        array = found.array.name if found.array is not None else "acc"
        self.pool, self.room = fresh("pool"), fresh("ROOM")
        self.held, self.mine = fresh(f"{array}_rows"), fresh(f"{array}_own")
        dots = [d for p in found.passes for d in p.dots]
        values = [p.value for p in found.passes if p.value is not None]
        self.row_kind = _one([o.type for d in dots for o in d.rows])
        self.key_kind = _one([o.type for o in (*(o for d in dots for o in d.keys), *values)])
        self.sum_kind = _one([d.reduction.type for d in dots])
        self.depth = max(d.length for d in dots)
        updates = [u for p in found.passes for u in p.updates]
        self.columns = max((u.length for u in updates), default=0)
        self.most_rows, self.most_keys = (max(len(n) for n in of) for of in (
            [d.rows for d in dots], [d.keys for d in dots]))  # fmt: skip
        self.most_dots = max(len(p.dots) for p in found.passes)
        self.at_once = {p: known for p in found.passes if (known := self._at_once(p)) is not None}
        self.shared, self.carried = dict[Variable, str](), dict[Variable, str]()
        for variable in (v for part in self.at_once for v in self.row_locals(part)):
            self.shared.setdefault(variable, fresh(f"row_{variable.name}"))
            self.carried.setdefault(variable, fresh(f"{variable.name}_now"))
        self.row_ends = fresh("row_from"), fresh("row_to")
        self.own_row, self.first_item = fresh("row_here"), fresh("first_item")
        self.compared, self.now, self.apart = map(fresh, ("compared", "extreme", "apart"))
        if self._in_place():
            self.weights = f"{self.scores}[0]"

    def _at_once(self, part: Pass) -> AtOnce | None:
        """The scalars of a pass, where the order of its keys does not say what they become."""
        try:
            found = at_once(self.old, self.effects, part)
            for variable in self._row_locals(part, found):
                kind = type_of(self.old, variable)
                if variable.array or kind.depth or kind.lanes != 1 or kind.size is None:
                    return None
        except NotLegal:
            return None
        return found

    def row_locals(self, part: Pass) -> list[Variable]:
        """The locals of a row that its keys ask for, and those that they change."""
        return self._row_locals(part, self.at_once[part])

    def _row_locals(self, part: Pass, known: AtOnce) -> list[Variable]:
        inside = {e for s in known.head for e in self.effects.inside(s)}
        for dot in part.dots:
            inside -= self.effects.inside(dot.axis.node)
        asked = names([*known.parts, *(e for e in inside if not e.parts)])
        own = {v for s in self.items.inside if isinstance(s, Declare) for v in s.variables}
        own -= {self.items.holding}
        return sorted((asked & own) | {*known.states}, key=lambda v: (v.line, v.name))

    @property
    def _in_order(self) -> list[Pass]:
        """The passes whose scalars follow one after the other."""
        return [p for p in self.found.passes if p not in self.at_once]

    def fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    @property
    def kind(self) -> str:
        """The type of the array's elements."""
        assert self.found.type is not None
        return self.found.type.name

    @property
    def key_word(self) -> str:
        """The type of what tiles of keys hold."""
        assert self.key_kind is not None
        return self.key_kind.name

    @property
    def block(self) -> str:
        """The threads of a block, over tuned names."""
        return f"{self.rows} / {self.own} * {self.lanes}"

    @property
    def full(self) -> str:
        """A bit for each key of a tile."""
        return f"~0ull >> (64 - {self.keys})"

    @property
    def padded(self) -> str:
        """The columns of the array, with those that fill the last of them for all lanes."""
        return f"(({self.columns} + {self.lanes} - 1) / {self.lanes} * {self.lanes})"

    def column(self, at: str) -> str:
        """Which column of the array a thread's own one is: runs are one load each."""
        run, own = f"{at} / {self.wide}", f"{at} % {self.wide}"
        return f"({run} * {self.lanes} + {self.lane}) * {self.wide} + {own}"

    def each_of(self, columns: str, words: str) -> str:
        """Something for each of a thread's rows and ``columns``."""
        i, j = self.i, self.j
        return (
            f"#pragma unroll\nfor (int {i} = 0; {i} < {self.own}; ++{i})\n#pragma unroll\n"
            f"for (int {j} = 0; {j} < {columns}; ++{j}) {words}"
        )

    # -- memory

    def _in_place(self) -> bool:
        """Whether the weight of a key may lie where what it was combined to did."""
        kinds = {kind.name for kind in (self.sum_kind, self.found.type) if kind is not None}
        passes = [p for p in self.found.passes if p.updates]
        return (
            len(kinds) == 1
            and not self.at_once
            and all(p.sure and len(p.dots) <= 1 for p in passes)
        )

    @property
    def together(self) -> bool:
        """Whether the array lies where keys do, of which nobody asks before and behind them."""
        kinds = {kind.name for kind in (self.key_kind, self.found.type) if kind is not None}
        return len(kinds) == len(self.found.passes) == 1 and self.found.array is not None

    def _arrays(self) -> Iterator[tuple[str, CType, str]]:
        """The shared arrays, but for those that lie together: name, type and extents."""
        assert self.key_kind is not None
        assert self.sum_kind is not None
        if self.row_kind is not None:
            several = self.most_rows * self.most_dots
            extents = f"[{several}][{self.rows}][{self.depth} + {_SPARE}]"
            yield self.row_tile, self.row_kind, extents
        if not self.together:
            yield self.key_tile, self.key_kind, self._key_extents()
        row = f"[{self.keys}][{self.rows} + {_SPARE}]"
        if self._in_order or self.most_dots > 1:
            yield self.scores, self.sum_kind, f"[{max(1, self.most_dots)}]{row}"
        if self.at_once:
            for name in self.row_ends:
                yield name, INT, f"[{self.rows}]"
        for variable, name in self.shared.items():
            yield name, type_of(self.old, variable), f"[{self.rows}]"
        if (kind := self.found.type) is not None:
            if not self._in_place():
                yield self.weights, kind, row
            if any(p.scaled for p in self._in_order):
                yield self.factors, kind, row
            if not self.together:
                yield self.held, kind, self._held_extents()

    def _key_extents(self) -> str:
        longest = str(self.depth)
        if self.found.array is not None:
            longest = f"({self.padded} > {longest} ? {self.padded} : {longest})"
        return f"[{self.most_keys}][{self.keys}][{longest} + {_SPARE}]"

    def _held_extents(self) -> str:
        return f"[{self.rows}][{self.found.extent} + 1]"

    def declared(self) -> Iterator[str]:
        """Numbers and shared arrays."""
        yield f"constexpr int {self.threads} = {self.block};"
        yield f"constexpr int {self.each} = {self.keys} / {self.lanes};"
        if self.found.array is not None:
            yield f"constexpr int {self.across} = {self.padded} / {self.lanes};"
            whole = f"{self.across} % 4 == 0 ? 4 : {self.across} % 2 == 0 ? 2 : 1"
            yield f"constexpr int {self.wide} = {whole};"
        for name, kind, extents in self._arrays():
            yield f"__shared__ __align__(16) {kind.name} {name}{extents};"
        if self.together:
            yield from self._pooled()
        yield f"__shared__ int {self.range}[{len(self.found.passes)}][2];"
        if any(p.updates for p in self._in_order):
            yield f"__shared__ unsigned long long {self.ran}[{self.rows}];"
        if any(not p.sure and p.updates for p in self.found.passes):
            yield f"__shared__ unsigned {self.used}[({self.keys} + 31) / 32];"

    def _pooled(self) -> Iterator[str]:
        both = {self.key_tile: self._key_extents(), self.held: self._held_extents()}
        one, other = map(_count, both.values())
        yield f"// `{self.held}` lies where the keys do, before them and behind them."
        yield f"constexpr int {self.room} = {one} > {other} ? {one} : {other};"
        yield f"__shared__ __align__(16) {self.kind} {self.pool}[{self.room}];"
        for name, extents in both.items():
            row = "[" + extents.partition("][")[2]
            yield f"auto {name} = reinterpret_cast<{self.kind} (*){row}>({self.pool});"

    def _bytes(self) -> str:
        """What the shared arrays take, over tuned names."""
        found = [f"{_count(extents)} * {kind.size}" for _, kind, extents in self._arrays()]
        if self.together:
            assert self.key_kind is not None
            both = f"{_count(self._key_extents())}, {_count(self._held_extents())}"
            found.append(f"max({both}) * {self.key_kind.size}")
        return " + ".join([*found, f"8 * {self.rows}", str(_BESIDE)])

    def tunes(self) -> list[TuneDirective]:
        sums, longest = self.most_dots, max(self.depth, self.columns)
        held = [
            f"{self.own} * {self.keys} / {self.lanes} * {sums}",
            f"{self.own} * {self.padded} / {self.lanes}",
            f"4 * ({self.own} + {self.keys} / {self.lanes})",
            f"{self.keys} * {longest} * {self.most_keys} / ({self.block})",
        ]  # fmt: skip
        fits = [
            f"{self.block} >= 32", f"{self.block} <= {_MOST}", f"{self.own} <= {self.lanes}",
            f"{self.keys} >= {self.lanes}", f"{' + '.join(held)} <= {_REGISTERS}",
            f"{self._bytes()} <= {SHARED}",
        ]  # fmt: skip
        return [
            TuneDirective(self.rows, ROWS, 32),
            TuneDirective(self.keys, KEYS, 32),
            TuneDirective(self.own, OWN, 4),
            TuneDirective(self.lanes, LANES, 16, parse_expression(" && ".join(fits))),
        ]


def _one(kinds: Sequence[CType]) -> CType | None:
    if len({kind.name for kind in kinds}) > 1:
        raise NotLegal("its tiles hold numbers of several types")
    return kinds[0] if kinds else None


def _count(extents: str) -> str:
    """How many elements an array has."""
    return " * ".join(f"({part})" for part in extents.strip("[]").split("]["))
