"""Threads as generators, and the grid that runs them until they meet.

A thread yields a ``Meeting`` where PTX makes it wait: for the members of a warp mask, or for a
block's barrier. Everything else a thread does alone, in any order.
"""

import random
import struct
from dataclasses import dataclass

from . import floats, integers
from .memory import CODE, GLOBAL, LOCAL, SHARED, Memory, combined
from .text import Group, Imm, Mem, Not, Reg, Sym, read, width_of

TYPES = {f"{k}{w}" for k in "usbf" for w in (8, 16, 32, 64, 128)} | {
    "pred", "f16x2", "bf16", "bf16x2", "u16x2", "s16x2", "tf32",
}  # fmt: skip
PAIR_TYPES = ("f16x2", "bf16x2")
SPACES = ("global", "shared", "local", "const", "param")
PARAMETERS = GLOBAL + (1 << 40)
STEPS = 100_000  # of one thread


class Trap(Exception):  # noqa: N818  # what PTX calls it
    """The kernel executed a trap, or an assertion failed."""


@dataclass
class Meeting:
    kind: tuple  # what must agree: the instruction and its mask, or the barrier's number
    mask: int  # of lanes that must come; None for a barrier of the block
    value: object
    count: int = 0  # threads that a barrier waits for, 0 all
    waits: bool = True  # False: bar.arrive


class Module:
    def __init__(self, ptx):
        text = read(ptx)
        self.functions, self.variables = text.functions, text.variables
        self.codes = {name: CODE + 16 * i for i, name in enumerate(self.functions, 1)}
        self.names = {code: name for name, code in self.codes.items()}

    def launch(self, kernel, grid, block, arguments, shared=0, seed=0):
        """Arrays are changed in place; anything else is bytes by value. Returns printed text."""
        return Grid(self, kernel, grid, block, arguments, shared, seed).run()


class Grid:
    def __init__(self, module, kernel, grid, block, arguments, shared, seed):
        self.module, self.kernel = module, module.functions[kernel]
        self.grid, self.block, self.dynamic = grid, block, shared
        self.memory, self.printed = Memory(), []
        self.random = random.Random(seed)
        self.symbols = dict(module.codes)
        at = GLOBAL
        for v in module.variables:
            if v.space in ("global", "const"):
                at = -(-at // 256) * 256
                self.symbols[v.name] = at
                self.memory.add(at, v.size)
                at += v.size + 4096
        for v in module.variables:
            if v.space in ("global", "const"):
                self.initialise(v)
        self.arrays, raw = [], []
        for a in arguments:
            if isinstance(a, bytes):
                raw.append(a)
                continue
            at = -(-at // 256) * 256
            data = bytearray(a.tobytes())
            self.memory.add(at, len(data), data)
            self.arrays.append((a, data))
            raw.append(at.to_bytes(8, "little"))
            at += len(data) + 4096
        self.parameters = {}
        at = PARAMETERS
        for v, value in zip(self.kernel.params, raw, strict=True):
            assert len(value) == v.size, (v, len(value))
            at = -(-at // v.align) * v.align
            self.parameters[v.name] = at
            self.memory.add(at, v.size, bytearray(value))
            at += v.size

    def initialise(self, v):
        size = width_of(v.type) // 8
        for i, value in enumerate(v.initial):
            known = value
            if isinstance(value, Sym):
                known = self.symbols[value.name] + value.offset
            self.memory.store(self.symbols[v.name] + i * size, size, known)

    def run(self):
        gx, gy, gz = self.grid
        for z in range(gz):
            for y in range(gy):
                for x in range(gx):
                    Block(self, (x, y, z)).run()
        for array, data in self.arrays:
            flat = array.reshape(-1).view("u1")
            flat[:] = memoryview(data)
        return "".join(self.printed)


class Block:
    def __init__(self, grid, index):
        self.grid, self.index = grid, index
        self.memory, self.barriers = Memory(), {}
        self.symbols = dict(grid.symbols)
        functions = grid.module.functions.values()
        every = [v for f in functions for v in f.locals] + grid.module.variables
        at = SHARED
        for v in sorted((v for v in every if v.space == "shared"), key=lambda v: v.size == 0):
            at = -(-at // max(v.align, 1 if v.size else 16)) * max(v.align, 1 if v.size else 16)
            self.symbols[v.name] = at
            at += v.size
        self.memory.add(SHARED, at - SHARED + grid.dynamic)

    def run(self):
        bx, by, bz = self.grid.block
        threads = [Thread(self, (i % bx, i // bx % by, i // (bx * by)), i)
                   for i in range(bx * by * bz)]  # fmt: skip
        running = {t.linear: t.run() for t in threads}
        waiting = {}
        arrived = []  # bar.arrive: (kind, count)
        ready = list(running)
        while ready:
            self.grid.random.shuffle(ready)
            for i in ready:
                meeting = self.step(running, i, threads[i].answer)
                while meeting is not None and not meeting.waits:
                    arrived.append(meeting)
                    meeting = self.step(running, i, None)
                if meeting is not None:
                    waiting[i] = meeting
            ready = self.resolve(threads, running, waiting, arrived)
        assert not waiting, f"deadlock: {waiting}"

    def step(self, running, i, answer):
        try:
            return running[i].send(answer)
        except StopIteration:
            del running[i]
            return None

    def resolve(self, threads, running, waiting, arrived):
        """The threads whose meeting is complete; each finds its answer in ``answer``."""
        ready, groups = [], {}
        for i, m in waiting.items():
            where = i // 32 if m.mask is not None else -1
            groups.setdefault((where, m.kind, m.mask), []).append(i)
        for (warp, kind, mask), members in groups.items():
            meetings = {i: waiting[i] for i in members}
            early = [m for m in arrived if m.kind == kind]
            if mask is not None:
                wanted = {i for i in running if i // 32 == warp and mask >> i % 32 & 1}
                assert set(members) <= wanted, f"{kind}: lanes outside of their own mask"
                complete = set(members) == wanted
            else:
                need = max(m.count for m in [*meetings.values(), *early]) or len(running)
                complete = len(members) + len(early) >= need
            if complete:
                ready += members
                for m in early:
                    arrived.remove(m)
                answers = together(kind, {i: m.value for i, m in meetings.items()})
                for i in members:
                    threads[i].answer = answers[i]
                    del waiting[i]
        return ready


def together(kind, values):
    """What each member of a complete meeting gets."""
    op = kind[0]
    base = op[0]
    if base == "shfl":
        return {i: shuffled(op, i, values) for i in values}
    if base == "vote":
        yes = sum(1 << i % 32 for i, p in values.items() if p)
        every, some = all(values.values()), any(values.values())
        name = next(p for p in op if p in ("ballot", "all", "any", "uni"))
        result = {"ballot": yes, "all": every, "any": some, "uni": every or not some}[name]
        return dict.fromkeys(values, int(result))
    if base == "match":
        same = {i: sum(1 << j % 32 for j, w in values.items() if w == v) for i, v in values.items()}
        if "any" in op:
            return {i: (m, None) for i, m in same.items()}
        whole = len(set(values.values())) == 1
        return {i: (m if whole else 0, int(whole)) for i, m in same.items()}
    if base == "redux":
        return dict.fromkeys(values, reduced(op, list(values.values())))
    if base == "elect":
        first = min(values)
        return {i: (first % 32, int(i == first)) for i in values}
    if "red" in op:
        votes = list(values.values())
        name = next(p for p in op if p in ("popc", "and", "or"))
        result = {"popc": sum(votes), "and": all(votes), "or": any(votes)}[name]
        return dict.fromkeys(values, int(result))
    return dict.fromkeys(values)


def shuffled(op, i, values):
    """PTX ISA, "shfl.sync", its own pseudo-code."""
    lane = i % 32
    _, b, c = values[i]
    b, segment, limit = b & 31, c >> 8 & 31, c & 31
    last = (lane & segment) | (limit & ~segment & 31)
    low = lane & segment
    name = next(p for p in op if p in ("up", "down", "bfly", "idx"))
    j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment & 31)}[name]
    inside = j >= last if name == "up" else j <= last
    j = j if inside else lane
    source = i - lane + j
    assert source in values, f"lane {lane} reads lane {j}, which is not there"
    return values[source][0], int(inside)


def reduced(op, values):
    type_ = op[-1]
    name = next(p for p in op if p in ("add", "min", "max", "and", "or", "xor"))
    total = integers.read(values[0], type_)
    for v in (integers.read(v, type_) for v in values[1:]):
        total = {
            "add": lambda: total + v,  # noqa: B023
            "min": lambda: min(total, v),  # noqa: B023
            "max": lambda: max(total, v),  # noqa: B023
            "and": lambda: total & v,  # noqa: B023
            "or": lambda: total | v,  # noqa: B023
            "xor": lambda: total ^ v,  # noqa: B023
        }[name]()
    return integers.wrap(total, 32)


class Frame:
    """One activation of a function: registers, local variables and parameters."""

    def __init__(self, thread, function, bound):
        self.function, self.pc, self.registers = function, 0, {}
        self.symbols = dict(bound)
        for v in function.locals:
            if v.space in ("local", "param"):
                thread.top = -(-thread.top // v.align) * v.align
                self.symbols[v.name] = thread.top
                thread.local.add(thread.top, v.size)
                thread.top += v.size


class Thread:
    def __init__(self, block, index, linear):
        self.block, self.grid, self.index, self.linear = block, block.grid, index, linear
        self.local, self.top = Memory(), LOCAL
        self.carry, self.answer = 0, None
        self.pending = []  # cp.async
        self.frames = [Frame(self, self.grid.kernel, self.grid.parameters)]

    def run(self):
        steps = branches = 0
        while self.frames:
            steps += 1
            assert steps < STEPS, "an endless loop"
            frame = self.frames[-1]
            if frame.pc == len(frame.function.code):
                self.frames.pop()
                continue
            op = frame.function.code[frame.pc]
            frame.pc += 1
            if op.guard is not None and bool(self.value(op.guard, "pred")) == op.unless:
                continue
            base = op.parts[0]
            if base in ("bra", "brx"):
                self.jump(frame, op)
            elif base == "ret":
                self.frames.pop()
            elif base == "exit":
                self.frames.clear()
            elif base == "trap":
                raise Trap("trap")
            elif base == "call":
                self.call(frame, op)
            elif meeting := self.meeting(op):
                yield from self.meet(op, meeting)
            else:
                self.execute(op)
            branches += base == "bra"
            if base == "bra" and branches % 16 == 0:
                yield Meeting(("turn",), 1 << self.linear % 32, None)  # a loop lets others run

    def jump(self, frame, op):
        if op.parts[0] == "bra":
            frame.pc = frame.function.labels[op.args[0].name]
            return
        index = self.value(op.args[0], "u32")
        frame.pc = frame.function.labels[frame.function.tables[op.args[1].name][index]]

    def call(self, frame, op):
        args = list(op.args)
        results = args.pop(0).items if isinstance(args[0], Group) else ()
        target = args.pop(0)
        given = args.pop(0).items if args and isinstance(args[0], Group) else ()
        where = lambda s: frame.symbols.get(s.name)  # noqa: E731
        if isinstance(target, Reg):
            name = self.grid.module.names[self.value(target, "u64")]
        else:
            name = target.name
        if name == "vprintf":
            text, arguments = (self.local.load(where(s), 8) for s in given)
            self.grid.printed.append(self.formatted(text, arguments))
            self.local.store(where(results[0]), 4, 1)
            return
        if name == "__assertfail":
            raise Trap(self.string(self.local.load(where(given[0]), 8)))
        function = self.grid.module.functions[name]
        bound = {p.name: where(s) for p, s in zip(function.params, given, strict=True)}
        bound |= {p.name: where(s) for p, s in zip(function.results, results, strict=True)}
        self.frames.append(Frame(self, function, bound))

    def string(self, address):
        out = bytearray()
        while byte := self.at(address).load(address, 1):
            out.append(byte)
            address += 1
        return out.decode()

    def formatted(self, text, address):
        """C's printf on a packed buffer; each argument is aligned to its own size."""
        import re

        def one(match):
            nonlocal address
            spec = match[0]
            if spec == "%%":
                return "%"
            kind = spec[-1]
            size = 8 if kind in "fFeEgGaAsp" or "ll" in spec or "l" in spec else 4
            address = -(-address // size) * size
            raw = self.at(address).load(address, size)
            address += size
            plain = re.sub(r"(hh|h|ll|l)", "", spec)
            if kind in "fFeEgG":
                return plain % struct.unpack("<d", raw.to_bytes(8, "little"))
            if kind == "s":
                return plain % self.string(raw)
            if kind == "c":
                return plain % chr(raw & 255)
            if kind in "di":
                return plain % integers.signed(raw, 8 * size)
            if kind == "p":
                return hex(raw)
            return plain.replace("u", "d") % raw

        return re.sub(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l)?[a-zA-Z%]", one, self.string(text))

    # Operands

    def value(self, arg, type_):
        """The raw bits of a source in the width of ``type_``."""
        width = width_of(type_)
        if isinstance(arg, Reg):
            return integers.wrap(self.frames[-1].registers.get(arg.name, 0), width)
        if isinstance(arg, Not):
            return 1 - self.value(arg.item, "pred")
        if isinstance(arg, Imm):
            return integers.wrap(arg.value, width)
        if isinstance(arg, Sym):
            if arg.name == "WARP_SZ":
                return 32
            if arg.name.startswith("%"):
                return integers.wrap(self.special(arg.name), width)
            return integers.wrap(self.symbol(arg), width)
        raise AssertionError(arg)

    def symbol(self, sym):
        """Variables of a space are offsets in it; only globals are generic addresses."""
        frame = self.frames[-1]
        address = frame.symbols.get(sym.name, self.block.symbols.get(sym.name))
        assert address is not None, sym
        for window in (SHARED, LOCAL):
            if window <= address < window + (1 << 32):
                return address - window + sym.offset
        return address + sym.offset

    def write(self, arg, bits, type_):
        """A register wider than the type is sign- or zero-extended."""
        if isinstance(arg, Sym) and arg.name == "_":
            return
        width, have = width_of(arg.type), width_of(type_)
        value = integers.signed(bits, have) if type_[0] == "s" else integers.wrap(bits, have)
        self.frames[-1].registers[arg.name] = integers.wrap(value, width)

    def special(self, name):
        root, _, axis = name[1:].partition(".")
        lane = self.linear % 32
        triples = {
            "tid": self.index,
            "ntid": self.grid.block,
            "ctaid": self.block.index,
            "nctaid": self.grid.grid,
        }
        if root in triples:
            return triples[root]["xyz".index(axis)]
        threads = self.grid.block[0] * self.grid.block[1] * self.grid.block[2]
        return {
            "laneid": lane,
            "warpid": self.linear // 32,
            "nwarpid": -(-threads // 32),
            "lanemask_eq": 1 << lane,
            "lanemask_lt": (1 << lane) - 1,
            "lanemask_le": (2 << lane) - 1,
            "lanemask_gt": 0xFFFFFFFF & ~((2 << lane) - 1),
            "lanemask_ge": 0xFFFFFFFF & ~((1 << lane) - 1),
            "dynamic_smem_size": self.grid.dynamic,
        }[root]

    # Waiting

    def meeting(self, op):
        base = op.parts[0]
        if base in ("shfl", "vote", "match", "redux", "elect"):
            mask = self.value(op.args[-1], "b32")
            if base == "shfl":
                value = tuple(self.value(a, "b32") for a in op.args[1:4])
            elif base == "vote":
                value = self.value(op.args[1], "pred")
            elif base == "elect":
                value = None
            else:
                value = self.value(op.args[1], "b64" if op.parts[-1] == "b64" else "b32")
            return Meeting((op.parts, mask), mask, value)
        if base not in ("bar", "barrier"):
            return None
        if "warp" in op.parts:
            mask = self.value(op.args[0], "b32")
            return Meeting((op.parts, mask), mask, None)
        args = list(op.args)
        value = None
        if "red" in op.parts:
            value = self.value(args.pop(), "pred")
            args.pop(0)
        number, count = (*(self.value(a, "u32") for a in args), 0, 0)[:2]
        kind = ((("red", *op.parts[-2:]) if value is not None else ("bar",)), number)
        return Meeting(kind, None, value, count, "arrive" not in op.parts)

    def meet(self, op, meeting):
        answer = yield meeting
        base = op.parts[0]
        if base == "shfl" or base == "elect" or (base == "match" and isinstance(op.args[0], Group)):
            target = op.args[0]
            if isinstance(target, Group):
                self.write(target.items[0], answer[0], "b32")
                self.write(target.items[1], answer[1], "pred")
            else:
                self.write(target, answer[0], "b32")
        elif base == "match":
            self.write(op.args[0], answer[0], "b32")
        elif base == "vote":
            self.write(op.args[0], answer, "b32" if "ballot" in op.parts else "pred")
        elif base == "redux":
            self.write(op.args[0], answer, "b32")
        elif "red" in op.parts:
            self.write(op.args[0], answer, "u32" if "popc" in op.parts else "pred")

    # Memory

    def at(self, address):
        if SHARED <= address < SHARED + (1 << 32):
            return self.block.memory
        return self.local if LOCAL <= address < LOCAL + (1 << 32) else self.grid.memory

    def generic(self, op, mem):
        """The generic address of an operand, and nothing about its size."""
        space = next((p.split("::")[0] for p in op.parts if p.split("::")[0] in SPACES), "generic")
        if isinstance(mem.base, Sym) and not mem.base.name.startswith("%"):
            frame = self.frames[-1]
            address = frame.symbols.get(mem.base.name, self.block.symbols.get(mem.base.name))
            return address + mem.base.offset + mem.offset
        base = self.value(mem.base, "b64") + mem.offset & (1 << 64) - 1
        window = {"shared": SHARED, "local": LOCAL}.get(space, 0)
        return (base & 0xFFFFFFFF) + window if window else base

    def execute(self, op):
        base, parts = op.parts[0], op.parts
        types = [p for p in parts if p in TYPES]
        if base in ("ld", "ldu", "st"):
            self.access(op, types[-1])
        elif base in ("atom", "red"):
            self.atomic(op, types[-1])
        elif base == "cvta":
            self.convert_address(op)
        elif base == "isspacep":
            self.is_in(op)
        elif base == "mov":
            self.move(op, types[-1])
        elif base in ("setp", "set"):
            self.compare(op, types)
        elif base == "selp":
            chosen = op.args[1] if self.value(op.args[3], "pred") else op.args[2]
            self.write(op.args[0], self.value(chosen, types[0]), types[0])
        elif base == "slct":
            self.select(op, types)
        elif base == "testp":
            bits = self.value(op.args[1], types[0])
            self.write(op.args[0], int(floats.property_of(op, types[0], bits)), "pred")
        elif base == "cvt":
            values = [self.value(a, types[1]) for a in op.args[1:]]
            result = floats.convert(op, types[0], types[1], values)
            self.write(op.args[0], result, "b32" if types[0] == "tf32" else types[0])
        elif base == "cp":
            self.copy(op)
        elif base == "mbarrier":
            self.barrier_object(op)
        elif base in ("membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard"):
            pass
        elif "f" in types[-1] and base not in ("and", "or", "xor", "not"):
            values = [self.value(a, types[-1]) for a in op.args[1:]]
            self.write(op.args[0], floats.compute(op, types[-1], values), types[-1])
        elif types[-1] == "pred":
            a, *b = (self.value(x, "pred") for x in op.args[1:])
            names = {"and": lambda: a & b[0], "or": lambda: a | b[0], "xor": lambda: a ^ b[0],
                     "not": lambda: 1 - a}  # fmt: skip
            self.write(op.args[0], names[base](), "pred")
        else:
            self.integer(op, types)

    def integer(self, op, types):
        base = op.parts[0]
        t = types[0] if base.startswith("v") else types[-1]
        kinds = [t] * 4
        if base in ("shl", "shr"):
            kinds = [t, "u32"]
        elif base == "bfe":
            kinds = [t, "u32", "u32"]
        elif base == "bfi":
            kinds = [t, t, "u32", "u32"]
        elif base in ("mad", "madc") and "wide" in op.parts:
            kinds = [t, t, f"{t[0]}{2 * width_of(t)}"]
        elif base in ("dp4a", "dp2a", "lop3", "fns", "szext", "bmsk", "prmt") or base[0] == "v":
            kinds = ["b32"] * 5
        values = [self.value(a, k) for a, k in zip(op.args[1:], kinds, strict=False)]
        result, carry = integers.compute(op, t, values, self.carry)
        if "wide" in op.parts:
            t = f"{t[0]}{2 * width_of(t)}"
        elif base in ("popc", "clz", "bfind"):
            t = "u32"
        if "cc" in op.parts:
            self.carry = carry
        self.write(op.args[0], result, t)

    def access(self, op, type_):
        mem = next(a for a in op.args if isinstance(a, Mem))
        other = op.args[1] if op.parts[0] == "st" else op.args[0]
        items = other.items if isinstance(other, Group) else (other,)
        address, size = self.generic(op, mem), width_of(type_) // 8
        assert address % (size * len(items)) == 0 or "param" in op.parts, "misaligned vector"
        for i, item in enumerate(items):
            memory = self.at(address + i * size)
            if op.parts[0] == "st":
                memory.store(address + i * size, size, self.value(item, type_))
            else:
                self.write(item, memory.load(address + i * size, size), type_)

    def atomic(self, op, type_):
        args = list(op.args)
        target = args.pop(0) if op.parts[0] == "atom" else Sym("_")
        address, size = self.generic(op, args[0]), width_of(type_) // 8
        name = next(p for p in op.parts if p in ATOMICS)
        lists = [a.items if isinstance(a, Group) else (a,) for a in args[1:]]
        targets = target.items if isinstance(target, Group) else (target,) * len(lists[0])
        for i, (item, *sources) in enumerate(zip(targets, *lists, strict=True)):
            memory = self.at(address)
            b, c = (*(self.value(s, type_) for s in sources), 0)[:2]
            old = memory.load(address + i * size, size)
            memory.store(address + i * size, size, combined(name, type_, old, b, c))
            self.write(item, old, type_)

    def copy(self, op):
        """cp.async: the bytes are read and written when the thread waits for them."""
        if "wait_all" in op.parts or "wait_group" in op.parts:
            keep = self.value(op.args[0], "u32") if "wait_group" in op.parts else 0
            groups = [g for g in self.pending if g is not None]
            del groups
            while self.pending and sum(p == "commit" for p in self.pending) > (
                keep if "wait_group" in op.parts else -1
            ):
                first = self.pending.pop(0)
                if first != "commit":
                    first()
            return
        if "commit_group" in op.parts:
            self.pending.append("commit")
            return
        if "mbarrier" in op.parts:
            while self.pending:
                first = self.pending.pop(0)
                if first != "commit":
                    first()
            if "noinc" in op.parts:
                self.arrived(self.block.barriers[self.generic(op, op.args[0])], 1, 0)
            return
        to, source, size, *rest = op.args
        to = self.generic(op, to)
        source = self.value(source.base, "b64") + source.offset
        size = self.value(size, "u32")
        count = self.value(rest[0], "u32") if rest else size

        def move():
            for i in range(size):
                byte = self.at(source + i).load(source + i, 1) if i < count else 0
                self.at(to + i).store(to + i, 1, byte)

        self.pending.append(move)

    def barrier_object(self, op):
        """An mbarrier as PTX describes it, kept beside the memory; a state is its phase."""
        parts, objects = op.parts, self.block.barriers
        if "pending_count" in parts:
            self.write(op.args[0], self.value(op.args[1], "b64") & 0xFFFFFFFF, "u32")
            return
        address = self.generic(op, next(a for a in op.args if isinstance(a, Mem)))
        if "init" in parts:
            count = self.value(op.args[1], "u32")
            objects[address] = {"expected": count, "pending": count, "phase": 0}
        elif "arrive" in parts or "arrive_drop" in parts:
            state = objects[address]
            self.write(op.args[0], state["phase"] << 32 | state["pending"], "b64")
            count = self.value(op.args[2], "u32") if len(op.args) > 2 else 1
            self.arrived(state, count, count if "arrive_drop" in parts else 0)
        elif "test_wait" in parts or "try_wait" in parts:
            phase = objects[address]["phase"]
            if "parity" in parts:
                over = phase % 2 != self.value(op.args[2], "u32") % 2
            else:
                over = phase != self.value(op.args[2], "b64") >> 32
            self.write(op.args[0], int(over), "pred")

    def arrived(self, state, count, dropped):
        state["expected"] -= dropped
        state["pending"] -= count
        if state["pending"] == 0:
            state["phase"] += 1
            state["pending"] = state["expected"]

    def convert_address(self, op):
        window = {"shared": SHARED, "local": LOCAL}.get(
            next(p.split("::")[0] for p in op.parts[1:] if p != "to"), 0
        )
        type_ = op.parts[-1]
        value = self.value(op.args[1], type_)
        self.write(op.args[0], value - window if "to" in op.parts else value + window, type_)

    def is_in(self, op):
        address, space = self.value(op.args[1], "u64"), op.parts[1].split("::")[0]
        windows = {"shared": SHARED, "local": LOCAL}
        if space in windows:
            inside = windows[space] <= address < windows[space] + (1 << 32)
        else:
            inside = GLOBAL <= address < PARAMETERS
        self.write(op.args[0], int(inside), "pred")

    def move(self, op, type_):
        target, source = op.args
        width = width_of(type_)
        if isinstance(target, Group):
            part = width // len(target.items)
            bits = self.value(source, type_)
            for i, item in enumerate(target.items):
                self.write(item, bits >> i * part, f"b{part}")
        elif isinstance(source, Group):
            part = width // len(source.items)
            bits = sum(self.value(s, f"b{part}") << i * part for i, s in enumerate(source.items))
            self.write(target, bits, type_)
        else:
            self.write(target, self.value(source, type_), type_)

    def compare(self, op, types):
        target, a, b, *third = op.args
        source, name = types[-1], op.parts[1]
        x, y = self.value(a, source), self.value(b, source)
        if source in PAIR_TYPES:
            pairs = zip(integers.halves(x), integers.halves(y), strict=True)
            results = [floats.compare(op, name, source[:-2], p, q) for p, q in pairs]
        elif "f" in source:
            results = [floats.compare(op, name, source, x, y)]
        else:
            results = [integers.compare(name, source, x, y)]
        if op.parts[0] == "setp":
            if len(results) == 1:
                results.append(not results[0])
            targets = target.items if isinstance(target, Group) else (target,)
            for item, result in zip(targets, results, strict=False):
                self.write(item, int(self.combine(op, result, third)), "pred")
            return
        results = [self.combine(op, r, third) for r in results]
        one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
        if types[0] in PAIR_TYPES:
            unit = one[types[0][:-2]]
            self.write(op.args[0], integers.joined(unit * r for r in results), "b32")
        elif len(results) == 2:
            self.write(op.args[0], integers.joined(0xFFFF * r for r in results), "b32")
        elif types[0] in one:
            self.write(op.args[0], one[types[0]] * results[0], types[0])
        else:
            self.write(op.args[0], -1 if results[0] else 0, types[0])

    def combine(self, op, result, third):
        if not third:
            return bool(result)
        p = bool(self.value(third[0], "pred"))
        name = next(x for x in op.parts[2:] if x in ("and", "or", "xor"))
        return {"and": result and p, "or": result or p, "xor": bool(result) != p}[name]

    def select(self, op, types):
        c = self.value(op.args[3], types[1])
        if types[1] == "f32":
            first = floats.compare(op, "ge", "f32", c, 0)
        else:
            first = integers.signed(c, 32) >= 0
        chosen = op.args[1] if first else op.args[2]
        self.write(op.args[0], self.value(chosen, types[0]), types[0])


ATOMICS = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"}
