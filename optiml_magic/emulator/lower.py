"""A kernel's graph to LLVM IR: one function that runs a warp until a barrier or its end.

Divergence is a stack of (pc, reconvergence pc, mask) in the warp's record. Lanes that took
different ways run one after the other until they meet at the immediate post-dominator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optiml_magic.emulator.faults import code
from optiml_magic.emulator.instructions.table import lower
from optiml_magic.emulator.ir import Code, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.layout import BARRIERS, ENTRY, STACK, WARP, WORKER
from optiml_magic.emulator.sites import Site, Tables
from optiml_magic.emulator.watch import Watch
from optiml_magic.ptx.cfg import EXIT, Block, Graph
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import Immediate, Instruction, Operand, bits
from optiml_magic.ptx.traits import is_barrier


@dataclass
class Lowered:
    """The text of one kernel's function, and what its counters mean."""

    text: str
    graph: Graph
    sites: list[Site]
    idle: list[Instruction]  # predicated instructions, in the order of their counters
    warp_size: int  # bytes of a warp record
    prints: bool  # printf is called
    watch: Watch | None = None  # of a kernel that is checked


def lower_kernel(
    name: str, graph: Graph, symbols: Mapping[str, int], *, checks: bool = False
) -> Lowered:
    """The function ``name``. Raises UnsupportedPtx for what cannot be lowered."""
    depth = (
        len(graph.blocks) + 40
    )  # see _diverge: waiting sides are disjoint, so at most 31 of them
    slots: dict[str, int] = {}
    at = -(-(STACK + ENTRY * depth) // 64) * 64
    for register in graph.registers.values():
        slots[register.name] = at
        at += 64 if register.type == "pred" else max(4 * bits(register.type), 64)
    return _Kernel(name, graph, slots, symbols, checks=checks).lowered(at)


class _Kernel:
    def __init__(
        self,
        name: str,
        graph: Graph,
        slots: dict[str, int],
        symbols: Mapping[str, int],
        *,
        checks: bool,
    ) -> None:
        self._name = name
        self._graph = graph
        self._slots = slots
        self._symbols = symbols
        self._code = Code()
        self._tables = Tables()
        self._watch = Watch(self._code, graph) if checks else None

    def lowered(self, warp_size: int) -> Lowered:
        if self._watch:
            warp_size = self._watch.reserve(warp_size)
        self._prologue()
        for block in self._graph.blocks:
            self._block(block)
        header = f"define i32 @{self._name}(ptr %w, ptr %warp) {{"
        text = "\n".join([header, *self._code.lines, "}"])
        tables, watch = self._tables, self._watch
        return Lowered(
            text, self._graph, tables.sites, tables.idle, warp_size, tables.prints, watch
        )

    def _prologue(self) -> None:
        c = self._code
        c.label("entry")
        for name in ("mask", "meet", "top", "live", "pause"):
            c.do(f"%{name} = alloca i32")
        c.do("store i32 0, ptr %pause")
        c.do(f"store i32 {c.get('%warp', WARP, 'live')}, ptr %live")
        c.do(f"store i32 {c.get('%warp', WARP, 'top')}, ptr %top")
        c.do("br label %dispatch")
        c.label("dispatch")
        pause = c.let("load i32, ptr %pause")
        c.do(f"br i1 {c.let(f'icmp eq i32 {pause}, 0')}, label %go, label %rest")
        c.label("rest")
        c.set("%warp", WARP, "top", c.let("load i32, ptr %top"))
        c.set("%warp", WARP, "live", c.let("load i32, ptr %live"))
        c.do("call void @om_turn(ptr %warp)")
        c.do("ret i32 0")
        c.label("go")
        top = c.let("load i32, ptr %top")
        c.do(f"br i1 {c.let(f'icmp slt i32 {top}, 0')}, label %gone, label %peek")
        c.label("peek")
        pc, meet, mask = (self._entry(top, i) for i in range(3))
        pc = c.let(f"load i32, ptr {pc}")
        meet = c.let(f"load i32, ptr {meet}")
        live = c.let("load i32, ptr %live")
        mask = c.let(f"and i32 {live}, {c.let(f'load i32, ptr {mask}')}")
        none = c.let(f"icmp eq i32 {mask}, 0")
        arrived = c.let(f"icmp eq i32 {pc}, {meet}")
        over = c.let(f"or i1 {none}, {arrived}")
        c.do(f"br i1 {over}, label %pop, label %resume")
        c.label("resume")
        c.do(f"store i32 {mask}, ptr %mask")
        c.do(f"store i32 {meet}, ptr %meet")
        cases = " ".join(f"i32 {b.index}, label %b{b.index}" for b in self._graph.blocks)
        c.do(f"switch i32 {pc}, label %gone [{cases}]")
        c.label("pop")
        top = c.let("load i32, ptr %top")
        c.do(f"store i32 {c.let(f'sub i32 {top}, 1')}, ptr %top")
        c.do("br label %dispatch")
        c.label("gone")
        c.do("ret i32 1")
        c.label("fault")
        c.do("ret i32 -1")

    def _entry(self, index: str, word: int) -> str:
        """A pointer to one word of a stack entry: 0 pc, 1 reconvergence pc, 2 mask."""
        c = self._code
        wide = c.let(f"zext i32 {index} to i64")
        offset = c.let(f"mul i64 {wide}, {ENTRY}")
        offset = c.let(f"add i64 {offset}, {STACK + 4 * word}")
        return c.let(f"getelementptr i8, ptr %warp, i64 {offset}")

    def _push(self, index: str, pc: int, meet: str, mask: str) -> None:
        for word, value in enumerate((str(pc), meet, mask)):
            self._code.do(f"store i32 {value}, ptr {self._entry(index, word)}")

    def _block(self, block: Block) -> None:
        c = self._code
        c.label(f"b{block.index}")
        mask = c.let("load i32, ptr %mask")
        self._count(block, mask)
        lanes = Lanes(c, self._slots, self._symbols, mask, self._tables)
        watch = lanes.watch = self._watch
        if watch:
            watch.enter()
        for instruction in block.instructions:
            if watch:
                watch.before(lanes, instruction)
            lower(lanes, instruction)
            if watch:
                watch.after(lanes, instruction)
            if instruction.guard is not None:
                self._count_idle(instruction, mask, lanes.mask())
        end = block.end
        if end is not None:
            lanes.begin(end)
            if watch:
                watch.decide(lanes, end)
        condition = self._condition(block, lanes)
        lanes.flush(block.live_out)
        if watch:
            watch.flush(lanes, block.live_out)
        if any(_may_fault(i) for i in block.instructions):
            self._check_fault(block)
        self._finish(block, mask, condition, lanes)

    def _count(self, block: Block, mask: str) -> None:
        c = self._code
        base = c.get("%w", WORKER, "blocks")
        warps = c.let(f"getelementptr i64, ptr {base}, i64 {2 * block.index}")
        lanes = c.let(f"getelementptr i64, ptr {base}, i64 {2 * block.index + 1}")
        active = self._popcount(mask)
        for pointer, value in ((warps, "1"), (lanes, active)):
            old = c.let(f"load i64, ptr {pointer}")
            c.do(f"store i64 {c.let(f'add i64 {old}, {value}')}, ptr {pointer}")

    def _count_idle(self, instruction: Instruction, mask: str, executing: str) -> None:
        c = self._code
        self._tables.idle.append(instruction)
        base = c.get("%w", WORKER, "idle")
        pointer = c.let(f"getelementptr i64, ptr {base}, i64 {len(self._tables.idle) - 1}")
        off = self._popcount(c.let(f"xor i32 {mask}, {executing}"))
        old = c.let(f"load i64, ptr {pointer}")
        c.do(f"store i64 {c.let(f'add i64 {old}, {off}')}, ptr {pointer}")

    def _popcount(self, mask: str) -> str:
        narrow = self._code.let(f"call i32 @llvm.ctpop.i32(i32 {mask})")
        return self._code.let(f"zext i32 {narrow} to i64")

    def _check_fault(self, block: Block) -> None:
        c = self._code
        kind = c.get("%w", WORKER, "fault_kind")
        bad = c.let(f"icmp ne i32 {kind}, 0")
        c.do(f"br i1 {bad}, label %fault, label %f{block.index}")
        c.label(f"f{block.index}")

    def _condition(self, block: Block, lanes: Lanes) -> str:
        """The value that the end of a block decides on, read before its registers are flushed."""
        end = block.end
        if end is None:
            return ""
        if end.base == "brx":
            return lanes.read(end.operands[0], "u32")
        if "red" in end.parts:
            return self._code.let(f"bitcast {vector('i1')} {self._voters(lanes, end)} to i32")
        return lanes.mask()

    def _voters(self, lanes: Lanes, end: Instruction) -> str:
        predicate = lanes.predicate(end.operands[-1])
        return self._code.let(f"and {vector('i1')} {predicate}, {lanes.mask_vector()}")

    def _finish(self, block: Block, mask: str, condition: str, lanes: Lanes) -> None:
        end = block.end
        if end is None:
            self._leave_or_jump(block, mask)
        elif is_barrier(end):
            self._barrier(block, end, mask, condition, lanes)
        elif end.base == "trap":
            self._raise("trap", end.line, condition)
            self._exit(block, mask, condition)
        elif end.base in ("ret", "exit"):
            self._exit(block, mask, condition)
        elif end.base == "brx":
            self._switch(block, condition, lanes)
        elif end.guard is None:
            self._jump(block, block.successors[0], mask)
        else:
            self._branch(block, mask, condition)

    def _leave_or_jump(self, block: Block, mask: str) -> None:
        if block.successors:
            self._jump(block, block.successors[0], mask)
        else:
            self._exit(block, mask, mask)

    def _jump(self, block: Block, target: int, mask: str) -> None:
        """All active lanes go to ``target``."""
        c = self._code
        if target <= block.index:
            pause = self._spend(block, target, mask)
            tag = c.name()[1:]
            c.do(f"br i1 {pause}, label %y{tag}, label %z{tag}")
            c.label(f"y{tag}")
            meet = c.let("load i32, ptr %meet")
            self._push(c.let("load i32, ptr %top"), target, meet, mask)
            c.do("br label %dispatch")
            c.label(f"z{tag}")
        if target in self._graph.joins:
            meet = c.let("load i32, ptr %meet")
            arrived = c.let(f"icmp eq i32 {meet}, {target}")
            c.do(f"br i1 {arrived}, label %pop, label %b{target}")
        else:
            c.do(f"br label %b{target}")

    def _spend(self, block: Block, target: int, mask: str) -> str:
        """Take a loop's instructions from the budget; whether other warps should run now.

        Other warps get their turn so that one that polls a flag cannot starve the one that sets it.
        """
        c = self._code
        body = self._graph.blocks[target : block.index + 1]
        size = sum(len(b.every) for b in body)
        spent = c.let(f"mul i64 {self._popcount(mask)}, {size}")
        fuel = c.let(f"sub i64 {c.get('%w', WORKER, 'fuel')}, {spent}")
        c.set("%w", WORKER, "fuel", fuel)
        stop = c.let(f"load volatile i32, ptr {c.get('%w', WORKER, 'stop')}")
        empty = c.let(f"icmp slt i64 {fuel}, 0")
        over = c.let(f"or i1 {empty}, {c.let(f'icmp ne i32 {stop}, 0')}")
        tag = c.name()[1:]
        c.do(f"br i1 {over}, label %s{tag}, label %g{tag}")
        c.label(f"s{tag}")
        line = next((i.line for i in reversed(block.every) if i.line), 0)
        lane = c.let(f"call i32 @llvm.cttz.i32(i32 {mask}, i1 false)")
        more = c.let(f"call i32 @om_refuel(ptr %w, i32 {stop}, i32 {line}, i32 {lane})")
        c.do("store i32 1, ptr %pause")
        c.do(f"br i1 {c.let(f'icmp eq i32 {more}, 0')}, label %fault, label %g{tag}")
        c.label(f"g{tag}")
        return over

    def _raise(self, kind: str, line: int, lanes: str) -> None:
        c = self._code
        lane = c.let(f"call i32 @llvm.cttz.i32(i32 {lanes}, i1 false)")
        number = code(kind)  # type: ignore[arg-type]
        c.do(f"call void @om_fault(ptr %w, i32 {number}, i32 {line}, i32 {lane}, i64 0)")

    def _exit(self, block: Block, mask: str, leaving: str) -> None:
        c = self._code
        keep = c.let(f"xor i32 {leaving}, -1")
        live = c.let("load i32, ptr %live")
        c.do(f"store i32 {c.let(f'and i32 {live}, {keep}')}, ptr %live")
        end = block.end
        if end is not None and end.base == "trap":
            none = c.let(f"icmp eq i32 {leaving}, 0")
            after = f"b{block.successors[0]}" if block.successors else "pop"
            c.do(f"br i1 {none}, label %{after}, label %fault")
            return
        if not block.successors:
            c.do("br label %pop")
            return
        rest = c.let(f"and i32 {mask}, {keep}")
        c.do(f"store i32 {rest}, ptr %mask")
        c.do(f"br i1 {c.let(f'icmp eq i32 {rest}, 0')}, label %pop, label %x{block.index}")
        c.label(f"x{block.index}")
        self._jump(block, block.successors[0], rest)

    def _branch(self, block: Block, mask: str, taken: str) -> None:
        c, b = self._code, block.index
        target, other = block.successors
        if target == other:
            self._jump(block, target, mask)
            return
        stay = c.let(f"xor i32 {mask}, {taken}")
        c.do(f"br i1 {c.let(f'icmp eq i32 {stay}, 0')}, label %t{b}, label %m{b}")
        c.label(f"t{b}")
        self._jump(block, target, mask)
        c.label(f"m{b}")
        c.do(f"br i1 {c.let(f'icmp eq i32 {taken}, 0')}, label %n{b}, label %d{b}")
        c.label(f"n{b}")
        self._jump(block, other, mask)
        c.label(f"d{b}")
        if min(target, other) <= b:
            self._spend(block, min(target, other), taken if target < other else stay)
        self._diverge(block, mask, [(target, taken), (other, stay)])

    def _diverge(self, block: Block, mask: str, sides: list[tuple[int, str]]) -> None:
        """Split the top of the stack; the side that runs first is pushed last.

        A side that cannot reach a barrier goes first: lanes that exit must be gone by then.
        Waiting sides hold disjoint lanes, and entries that wait for others nest like
        post-dominators, so the stack is never deeper than the number of blocks and 33.
        """
        c = self._code
        meet = c.let("load i32, ptr %meet")
        top = c.let("load i32, ptr %top")
        # Where this level meets already, its lanes wait in the entry below: replace, do not nest.
        nested = c.let(f"icmp ne i32 {meet}, {block.meet}")
        self._push(top, block.meet, meet, mask)
        at = c.let(f"add i32 {top}, {c.let(f'zext i1 {nested} to i32')}")
        sides = sorted(sides, key=lambda s: not self._before_barrier(s[0]))
        for target, lanes in sides:
            if target == block.meet:
                continue
            self._push(at, target, str(block.meet), lanes)
            some = c.let(f"icmp ne i32 {lanes}, 0")
            at = c.let(f"add i32 {at}, {c.let(f'zext i1 {some} to i32')}")
        c.do(f"store i32 {c.let(f'sub i32 {at}, 1')}, ptr %top")
        c.do("br label %dispatch")

    def _before_barrier(self, target: int) -> bool:
        return target != EXIT and self._graph.blocks[target].before_barrier

    def _switch(self, block: Block, index: str, lanes: Lanes) -> None:
        """``brx.idx``: one side for each distinct target; an index beyond the table exits."""
        c = self._code
        if block.meet == EXIT and block.end is not None and block.end.guard is not None:
            raise UnsupportedPtx("brx.idx", block.end.line, "A predicated brx.idx is unsupported.")
        masks: dict[int, str] = {}
        for number, target in enumerate(block.successors):
            here = lanes.read(Immediate(number), "u32")
            eq = c.let(f"icmp eq {vector('i32')} {index}, {here}")
            both = c.let(f"and {vector('i1')} {eq}, {lanes.mask_vector()}")
            m = c.let(f"bitcast {vector('i1')} {both} to i32")
            masks[target] = c.let(f"or i32 {masks[target]}, {m}") if target in masks else m
        mask = lanes.mask()
        if min(masks) <= block.index:
            self._spend(block, min(masks), mask)
        self._diverge(block, mask, list(masks.items()))

    def _barrier(
        self, block: Block, end: Instruction, mask: str, voters: str, lanes: Lanes
    ) -> None:
        c = self._code
        live = c.let("load i32, ptr %live")
        whole = c.let(f"icmp eq i32 {live}, {mask}")
        c.do(f"br i1 {whole}, label %w{block.index}, label %u{block.index}")
        c.label(f"u{block.index}")
        self._raise("barrier_divergence", end.line, mask)
        c.do("br label %fault")
        c.label(f"w{block.index}")
        status = self._status(end, mask, lanes)
        if "arrive" in end.parts:
            if self._watch:
                self._watch.signal(status)
            self._arrive(block, status, mask)
            return
        if self._watch:
            self._watch.arrive(end, live)
        if "red" in end.parts:
            for name, counted in (("red_sum", voters), ("red_lanes", mask)):
                count = c.let(f"call i32 @llvm.ctpop.i32(i32 {counted})")
                c.set("%w", WORKER, name, c.let(f"add i32 {c.get('%w', WORKER, name)}, {count}"))
        top = c.let("load i32, ptr %top")
        if not block.successors:
            self._exit(block, mask, mask)
            return
        meet = c.let("load i32, ptr %meet")
        self._push(top, block.successors[0], meet, mask)
        c.set("%warp", WARP, "top", top)
        c.set("%warp", WARP, "live", live)
        c.do(f"ret i32 {status}")

    def _status(self, end: Instruction, mask: str, lanes: Lanes) -> str:
        """What the scheduler calls a warp that waits; PTX asks for operands that all lanes share.

        2 + the barrier's number, and in the bits from 8 up how many warps it waits for (0: all).
        """
        c = self._code
        number, threads = ([*_barrier_operands(end), Immediate(0), Immediate(0)])[:2]
        if isinstance(number, Immediate) and isinstance(threads, Immediate):
            return str(2 + number.value + (threads.value // 32 << 8))
        first = c.let(f"call i32 @llvm.cttz.i32(i32 {mask}, i1 false)")
        lane = c.let(f"and i32 {first}, 31")
        values = []
        for operand in (number, threads):
            vector_ = lanes.read(operand, "u32")
            values.append(c.let(f"extractelement {vector('i32')} {vector_}, i32 {lane}"))
        which = c.let(f"add i32 {c.let(f'and i32 {values[0]}, {BARRIERS - 1}')}, 2")
        warps = c.let(f"lshr i32 {values[1]}, 5")
        return c.let(f"or i32 {which}, {c.let(f'shl i32 {warps}, 8')}")

    def _arrive(self, block: Block, status: str, mask: str) -> None:
        """``bar.arrive``: one warp more has come to the barrier, and does not wait there."""
        c = self._code
        base = c.get("%w", WORKER, "warp_status")
        warps = c.get("%w", WORKER, "warps")
        low = c.let(f"and i32 {status}, 255")
        number = c.let(f"sub i32 {low}, 2")
        at = c.let(f"zext i32 {c.let(f'add i32 {warps}, {number}')} to i64")
        pointer = c.let(f"getelementptr i32, ptr {base}, i64 {at}")
        old = c.let(f"load i32, ptr {pointer}")
        c.do(f"store i32 {c.let(f'add i32 {old}, 1')}, ptr {pointer}")
        self._leave_or_jump(block, mask)


def _barrier_operands(end: Instruction) -> tuple[Operand, ...]:
    """The barrier's number and how many threads it waits for, as far as they are given."""
    if "cluster" in end.parts:
        message = f"`{end.opcode}` is not supported: the emulator has no clusters."
        raise UnsupportedPtx(end.opcode, end.line, message)
    return end.operands[:-1] if "red" in end.parts else end.operands


def _may_fault(instruction: Instruction) -> bool:
    return instruction.base in _FAULTING


_FAULTING = ("ld", "st", "atom", "red", "assertfail", "vprintf", "cp", "mbarrier", "ldu")
