"""What a checked kernel is given beside its own code: calls of ``library/checking``, and taint.

Undefined values are followed as Valgrind does: loading one is no error, using it is, where it
decides a branch, an address or a global store. A register's taint is one bit for each lane, and the
point that the undefined value came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optiml_magic.emulator.ir import Code, integers, vector
from optiml_magic.emulator.layout import POINT_BITS, WATCH, WORKER
from optiml_magic.emulator.library.checking import ATOMIC, SWAP, VOLATILE
from optiml_magic.ptx.nouns import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Vector,
    bits,
)
from optiml_magic.ptx.traits import defined, has_result, registers

if TYPE_CHECKING:
    from optiml_magic.emulator.lanes import Lanes
    from optiml_magic.ptx.cfg import Graph

Action = Literal[
    "load", "store", "atomic", "shuffle", "vote", "warp barrier", "barrier", "branch", "address"
]
Taint = tuple[str, str]  # i32 lanes, i32 point that it came from

_MEMORY = frozenset(["ld", "ldu", "st", "atom", "red"])
_MEMBERS = {"shfl": 4, "vote": 2, "match": 2, "redux": 2, "elect": 1, "bar": 0, "barrier": 0}
_STRONG = frozenset(["relaxed", "acquire", "release", "acq_rel", "mmio"])
_RELEASING = frozenset(["release", "acq_rel", "sc"])


@dataclass(frozen=True)
class Point:
    """An instruction that a hazard can name."""

    line: int  # of the compiled text
    action: Action
    space: str  # of a memory access: global, shared, local or generic
    width: int  # bytes of one element of an access


class Watch:
    """The checks of one kernel while it is lowered; ``points`` and ``granule`` outlive that."""

    def __init__(self, code: Code, graph: Graph) -> None:
        every = [i for block in graph.blocks for i in block.every]
        self.points: list[Point] = []
        self.granule = _granule(every)
        self.slots: dict[str, int] = {}  # tainted registers that outlive a block
        self._code = code
        self._tainted = _tainted(every)
        self._publishes = any(
            i.base in ("membar", "fence") or _RELEASING & set(i.parts) for i in every
        )
        self._crossing = [name for name in graph.registers if name in self._tainted]
        self._state: dict[str, Taint | None] = {}
        self._incoming: Taint | None = None

    def reserve(self, at: int) -> int:
        """Lay the taint of crossing registers into the warp's record; returns its new size."""
        for name in self._crossing:
            self.slots[name] = at
            at += 8
        return -(-at // 64) * 64

    def enter(self) -> None:
        """A block begins."""
        self._state = {}

    def before(self, k: Lanes, i: Instruction) -> None:
        """Everything that is to be said before the instruction is executed."""
        k.begin(i)
        k.hosts = k.sources = ""
        if i.guard is not None:
            self._use(k, i, i.guard, "branch")
        if i.base in _MEMORY or i.base == "cp":
            for operand in i.operands:
                if isinstance(operand, Address) and isinstance(operand.base, Register):
                    self._use(k, i, operand.base, "address")
        if i.base in ("membar", "fence") or (i.base in _MEMORY and _RELEASING & set(i.parts)):
            self._code.do("call void @om_watch_fence(ptr %w)")
        if i.base in _MEMBERS and "sync" in i.parts:
            self._collective(k, i)
        self._incoming = self._sum(k, i)

    def after(self, k: Lanes, i: Instruction) -> None:
        """What the instruction's results are tainted with, and what it did to memory."""
        taint = self._incoming
        if i.base in ("ld", "ldu"):
            self._loaded(k, i)
            return
        if i.base in ("atom", "red"):
            self._updated(k, i)
            return
        if i.base == "shfl":
            taint = self._shuffled(k, i)
        if i.base == "cp":
            self._copying(k, i)
        for register in defined(i):
            self._set(k, register, taint)

    def copied(self, i: Instruction, hosts: str, mask: str) -> None:
        """Four bytes of an asynchronous copy's source, before they are read."""
        self._code.let(
            f"call i32 @om_watch_load_4(ptr %w, ptr %warp, i32 {self._point(i, 'load', 4)}, "
            f"{integers(64)} {hosts}, i32 {mask}, i32 0)"
        )

    def deliver(self, k: Lanes, i: Instruction, hosts: str, value: str) -> None:
        """Four bytes of an asynchronous copy to shared memory."""
        self._code.do(
            f"call void @om_watch_store_4(ptr %w, ptr %warp, i32 {self._point(i, 'store', 4)}, "
            f"{integers(64)} {hosts}, {integers(32)} {value}, i32 {k.mask()}, i32 0, i32 0, i32 0)"
        )
        self._code.do(
            f"call void @om_watch_depart(ptr %w, ptr %warp, {integers(64)} {hosts}, i32 {k.mask()})"
        )

    def _copying(self, k: Lanes, i: Instruction) -> None:
        """Groups of copies, and waits for them."""
        if "commit_group" in i.parts:
            self._code.do(f"call void @om_watch_commit(ptr %w, i32 {k.mask()})")
        elif "wait_group" in i.parts or "wait_all" in i.parts:
            groups = i.operands[0] if "wait_group" in i.parts else None
            number = groups.value if isinstance(groups, Immediate) else -1
            self._code.do(f"call void @om_watch_await(ptr %w, i32 {k.mask()}, i64 {number})")

    def boards(self, k: Lanes, hosts: str) -> None:
        """The copies under way are waited for by the mbarriers at these addresses."""
        self._at_mbarriers("board", hosts, k.mask())

    def begins(self, k: Lanes, hosts: str) -> None:
        """Initialised mbarriers: nobody has arrived there."""
        self._at_mbarriers("begun", hosts, k.mask())

    def arrives(self, k: Lanes, i: Instruction, hosts: str, old: str, count: str) -> None:
        """Arrivals at mbarriers; ``old`` are their words before each, ``count`` how often each."""
        t = integers(64)
        self._code.do(
            f"call void @om_watch_arrives(ptr %w, i32 {self._point(i, 'barrier')}, {t} {hosts}, "
            f"{t} {old}, {t} {count}, i32 {k.mask()})"
        )

    def tested(self, k: Lanes, hosts: str, over: str) -> None:
        """Lanes whose bit in the vector ``over`` is set learn what the phase passed on."""
        where = self._code.let(f"bitcast {vector('i1')} {over} to i32")
        self._at_mbarriers("passes", hosts, self._code.let(f"and i32 {where}, {k.mask()}"))

    def _at_mbarriers(self, what: str, hosts: str, mask: str) -> None:
        self._code.do(f"call void @om_watch_{what}(ptr %w, {integers(64)} {hosts}, i32 {mask})")

    def store(self, k: Lanes, i: Instruction, hosts: str, value: str, item: Operand) -> None:
        """The store of one element, checked."""
        width = bits(i.type) // 8
        point = self._point(i, "store")
        taint = self._get(k, item) if isinstance(item, Register) else None
        undefined = origin = "0"
        if taint is not None:
            if _space(i) == "global":
                self._used(k, point, taint)
            else:
                undefined, origin = taint
        self._code.do(
            f"call void @om_watch_store_{width}(ptr %w, ptr %warp, i32 {point}, "
            f"{integers(64)} {hosts}, {integers(8 * width)} {value}, i32 {k.mask()}, "
            f"i32 {_strength(i)}, i32 {undefined}, i32 {origin})"
        )
        if self._publishes and _strength(i):
            self._each(k, "publish", hosts)

    def decide(self, k: Lanes, end: Instruction) -> None:
        """The end of a block: what it decides on must be defined."""
        for register in [*([end.guard] if end.guard else []), *_sources(end)]:
            self._use(k, end, register, "branch")

    def arrive(self, end: Instruction, live: str) -> None:
        """A warp reaches a barrier."""
        point = self._point(end, "barrier")
        self._code.do(f"call void @om_watch_arrive(ptr %w, ptr %warp, i32 {point}, i32 {live})")

    def signal(self, status: str) -> None:
        """A warp comes to a barrier and goes on: what it did comes before those who wait there."""
        self._code.do(f"call void @om_watch_signal(ptr %w, i32 {status})")

    def flush(self, k: Lanes, live: frozenset[str]) -> None:
        """Keep the taint of registers that outlive the block, in the active lanes."""
        c = self._code
        for name, taint in self._state.items():
            if name not in self.slots or name not in live:
                continue
            undefined, origin = taint or ("0", "0")
            old, before = self._fetch(name)
            mine = c.let(f"and i32 {undefined}, {k.block_mask}")
            others = c.let(f"and i32 {old}, {c.let(f'xor i32 {k.block_mask}, -1')}")
            merged = c.let(f"or i32 {mine}, {others}")
            some = c.let(f"icmp ne i32 {mine}, 0")
            point = c.let(f"select i1 {some}, i32 {origin}, i32 {before}")
            for offset, word in ((0, merged), (4, point)):
                slot = c.let(f"getelementptr i8, ptr %warp, i64 {self.slots[name] + offset}")
                c.do(f"store i32 {word}, ptr {slot}")

    def _loaded(self, k: Lanes, i: Instruction) -> None:
        target = i.operands[0]
        items = target.items if isinstance(target, Vector) else (target,)
        if not k.hosts:  # a parameter or a constant
            for register in defined(i):
                self._set(k, register, None)
            return
        point, width = self._point(i, "load"), bits(i.type) // 8
        for at, item in enumerate(items):
            hosts = k.code.let(f"add {integers(64)} {k.hosts}, {_splat(at * width)}")
            undefined = self._code.let(
                f"call i32 @om_watch_load_{width}(ptr %w, ptr %warp, i32 {point}, "
                f"{integers(64)} {hosts}, i32 {k.mask()}, i32 {_strength(i)})"
            )
            if isinstance(item, Register):
                self._set(k, item, (undefined, self._origin()))
        if self._publishes and _strength(i):
            self._each(k, "acquire", k.hosts)

    def _updated(self, k: Lanes, i: Instruction) -> None:
        point, width = self._point(i, "atomic"), bits(i.type) // 8
        if self._incoming is not None:
            self._used(k, point, self._incoming)
        undefined = self._code.let(
            f"call i32 @om_watch_atomic_{width}(ptr %w, ptr %warp, i32 {point}, "
            f"{integers(64)} {k.hosts}, i32 {k.mask()}, i32 {SWAP if 'cas' in i.parts else ATOMIC})"
        )
        self._used(k, point, (undefined, self._origin()))
        if self._publishes:
            if i.base == "atom":
                self._each(k, "acquire", k.hosts)
            self._each(k, "publish", k.hosts)
        for register in defined(i):
            self._set(k, register, None)

    def _origin(self) -> str:
        """The point that the checks named last as the source of an undefined value."""
        watch = self._code.get("%w", WORKER, "watch")
        return self._code.let(f"trunc i64 {self._code.get(watch, WATCH, 'origin')} to i32")

    def _collective(self, k: Lanes, i: Instruction) -> None:
        """Member masks are checked before; the lanes of a warp barrier meet in it."""
        action: Action = "vote"
        if i.base in ("bar", "barrier"):
            if "warp" not in i.parts:
                return
            action = "warp barrier"
        elif i.base == "shfl":
            action = "shuffle"
        else:
            for register in _sources(i):
                self._use(k, i, register, "vote")
        members = k.read(i.operands[_MEMBERS[i.base]], "b32")
        live = self._code.let("load i32, ptr %live")
        self._code.do(
            f"call void @om_watch_members(ptr %w, ptr %warp, i32 {self._point(i, action)}, "
            f"{integers(32)} {members}, i32 {k.mask()}, i32 {live}, "
            f"i32 {int(action == 'warp barrier')})"
        )

    def _shuffled(self, k: Lanes, i: Instruction) -> Taint:
        c = self._code
        point = self._point(i, "shuffle")
        before, origin = self._incoming or ("0", str(point))
        undefined = c.let(
            f"call i32 @om_watch_sources(ptr %w, {integers(32)} {k.sources}, "
            f"{integers(32)} {k.read(i.operands[4], 'b32')}, i32 {k.mask()}, i32 {before})"
        )
        if before == "0":
            return undefined, str(point)
        passed = c.let(f"icmp ne i32 {before}, 0")
        return undefined, c.let(f"select i1 {passed}, i32 {origin}, i32 {point}")

    def _each(self, k: Lanes, what: str, hosts: str) -> None:
        self._code.do(
            f"call void @om_watch_each_{what}(ptr %w, {integers(64)} {hosts}, i32 {k.mask()})"
        )

    def _use(self, k: Lanes, i: Instruction, register: Register, action: Action) -> None:
        taint = self._get(k, register)
        if taint is not None:
            self._used(k, self._point(i, action), taint)

    def _used(self, k: Lanes, point: int, taint: Taint) -> None:
        undefined = self._code.let(f"and i32 {taint[0]}, {k.mask()}")
        self._code.do(
            f"call void @om_watch_used(ptr %w, i32 {point}, i32 {taint[1]}, i32 {undefined})"
        )

    def _point(self, i: Instruction, action: Action, width: int = 0) -> int:
        if i.base in _MEMORY:
            width = bits(i.type) // 8
        self.points.append(Point(i.line, action, _space(i), width))
        return min(len(self.points), (1 << POINT_BITS) - 1)  # 0 names none

    def _sum(self, k: Lanes, i: Instruction) -> Taint | None:
        """The taint of a result: of any operand, but only of those that a predicate lets pass."""
        if i.base == "selp":
            return self._selected(k, i)
        if i.base in ("and", "or") and i.type == "pred":
            return self._joined(k, i)
        total: Taint | None = None
        for register in _sources(i):
            total = self._either(total, self._get(k, register))
        return total

    def _selected(self, k: Lanes, i: Instruction) -> Taint | None:
        _, one, two, chooser = i.operands
        sides = [self._get(k, side) if isinstance(side, Register) else None for side in (one, two)]
        if sides[0] is None and sides[1] is None:
            return self._get(k, chooser) if isinstance(chooser, Register) else None
        chosen = self._bits(k, chooser)
        kept: Taint | None = None
        for side, flip in zip(sides, ("0", "-1"), strict=True):
            if side is not None:
                where = self._code.let(f"xor i32 {chosen}, {flip}")
                kept = self._either(kept, (self._code.let(f"and i32 {side[0]}, {where}"), side[1]))
        for register in registers(chooser):
            kept = self._either(kept, self._get(k, register))
        return kept

    def _joined(self, k: Lanes, i: Instruction) -> Taint | None:
        """``and`` and ``or`` of predicates: a side that decides alone hides the other."""
        total: Taint | None = None
        for mine, other in ((i.operands[1], i.operands[2]), (i.operands[2], i.operands[1])):
            taint = next((self._get(k, r) for r in registers(mine)), None)
            if taint is None:
                continue
            open_ = self._bits(k, other)
            if i.base == "or":
                open_ = self._code.let(f"xor i32 {open_}, -1")
            unknown = next((self._get(k, r) for r in registers(other)), None)
            if unknown is not None:
                open_ = self._code.let(f"or i32 {open_}, {unknown[0]}")
            total = self._either(total, (self._code.let(f"and i32 {taint[0]}, {open_}"), taint[1]))
        return total

    def _bits(self, k: Lanes, operand: Operand) -> str:
        return self._code.let(f"bitcast {vector('i1')} {k.predicate(operand)} to i32")

    def _either(self, one: Taint | None, two: Taint | None) -> Taint | None:
        if one is None or two is None:
            return one or two
        both = self._code.let(f"or i32 {one[0]}, {two[0]}")
        first = self._code.let(f"icmp ne i32 {one[0]}, 0")
        return both, self._code.let(f"select i1 {first}, i32 {one[1]}, i32 {two[1]}")

    def _get(self, _k: Lanes, register: Register) -> Taint | None:
        name = register.name
        if name not in self._tainted:
            return None
        if name not in self._state:
            self._state[name] = self._fetch(name) if name in self.slots else None
        return self._state[name]

    def _set(self, k: Lanes, register: Register, taint: Taint | None) -> None:
        if register.name not in self._tainted:
            return
        if k.instruction.guard is not None:
            old = self._get(k, register)
            parts = [(taint, k.mask()), (old, self._code.let(f"xor i32 {k.mask()}, -1"))]
            taint = None
            for part, where in parts:
                if part is not None:
                    here = self._code.let(f"and i32 {part[0]}, {where}")
                    taint = self._either(taint, (here, part[1]))
        self._state[register.name] = taint

    def _fetch(self, name: str) -> Taint:
        words = [
            self._code.let(f"getelementptr i8, ptr %warp, i64 {self.slots[name] + offset}")
            for offset in (0, 4)
        ]
        undefined, origin = (self._code.let(f"load i32, ptr {word}") for word in words)
        return undefined, origin


def _sources(i: Instruction) -> Iterator[Register]:
    for operand in i.operands[1:] if has_result(i) else i.operands:
        if not isinstance(operand, Address):
            yield from registers(operand)


def _tainted(every: list[Instruction]) -> set[str]:
    """Registers that an undefined value of memory or of another lane can reach."""
    found: set[str] = set()
    grown = True
    while grown:
        grown = False
        for i in every:
            origin = i.base == "shfl" or (
                i.base in ("ld", "ldu") and _space(i) not in ("param", "const")
            )
            if origin or any(r.name in found for r in _sources(i)):
                new = {r.name for r in defined(i)} - found
                found |= new
                grown = grown or bool(new)
    return found


def _granule(every: list[Instruction]) -> int:
    """The logarithm of the bytes of a cell: as fine as the narrowest access, at most 4 bytes."""
    widths = [
        bits(i.type) // 8
        for i in every
        if i.base in _MEMORY and _space(i) not in ("param", "const")
    ]
    return min([4, *widths]).bit_length() - 1


def _space(i: Instruction) -> str:
    spaces = ("global", "shared", "local", "const", "param")
    return next((p.split("::")[0] for p in i.parts if p.split("::")[0] in spaces), "generic")


def _strength(i: Instruction) -> int:
    if _STRONG & set(i.parts):
        return ATOMIC
    return VOLATILE if "volatile" in i.parts else 0


def _splat(value: int) -> str:
    return f"<{', '.join([f'i64 {value}'] * 32)}>" if value else "zeroinitializer"
