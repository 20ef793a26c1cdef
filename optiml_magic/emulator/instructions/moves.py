"""mov, cvta, isspacep: values, symbols and addresses. Source: PTX ISA, "mov", "cvta"."""

from __future__ import annotations

from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.layout import GLOBAL_BASE, LOCAL_BASE, SHARED_BASE, WINDOW
from optiml_magic.ptx.nouns import Instruction, Register, Sink, Vector, bits

_WINDOWS = {"shared": SHARED_BASE, "local": LOCAL_BASE}


@lowers("mov")
def move(k: Lanes, i: Instruction) -> None:
    target, source = i.operands
    if i.type == "pred":
        k.write(target, k.predicate(source), "pred")
    elif isinstance(target, Vector):
        _unpack(k, target, k.read(source, i.type), bits(i.type))
    elif isinstance(source, Vector):
        k.write(target, _pack(k, source, bits(i.type)), i.type)
    else:
        k.write(target, k.read(source, i.type), i.type)


def _unpack(k: Lanes, target: Vector, value: str, width: int) -> None:
    part = width // len(target.items)
    for at, item in enumerate(target.items):
        if isinstance(item, Sink):
            continue
        moved = k.code.let(f"lshr {integers(width)} {value}, {constant(at * part, width)}")
        k.write(item, k.resize(moved, width, part), f"b{part}")


def _pack(k: Lanes, source: Vector, width: int) -> str:
    part = width // len(source.items)
    total = "zeroinitializer"
    for at, item in enumerate(source.items):
        wide = k.resize(k.read(item, f"b{part}"), part, width)
        moved = k.code.let(f"shl {integers(width)} {wide}, {constant(at * part, width)}")
        total = k.code.let(f"or {integers(width)} {total}, {moved}")
    return total


@lowers("cvta", takes="to global shared local const param shared::cta param::entry")
def convert_address(k: Lanes, i: Instruction) -> None:
    """Global, constant and parameter addresses are generic addresses as they are."""
    target, source = i.operands
    width = bits(i.type)
    value = k.read(source, i.type)
    space = next(p.split("::")[0] for p in i.parts[1:] if p != "to")
    if base := _WINDOWS.get(space):
        operation = "sub" if "to" in i.parts else "add"
        value = k.code.let(f"{operation} {integers(width)} {value}, {constant(base, width)}")
    elif space not in ("global", "const", "param"):
        raise k.unsupported()
    k.write(target, value, i.type)


@lowers("isspacep", takes="global shared local const param shared::cta param::entry")
def is_in_space(k: Lanes, i: Instruction) -> None:
    target, source = i.operands
    space = i.parts[1].split("::")[0]
    value = k.read(source, "u64")
    t = integers(64)
    if base := _WINDOWS.get(space):
        inside = k.code.let(f"sub {t} {value}, {constant(base, 64)}")
        result = k.code.let(f"icmp ult {t} {inside}, {constant(WINDOW, 64)}")
    elif space == "global":
        result = k.code.let(f"icmp uge {t} {value}, {constant(GLOBAL_BASE, 64)}")
    else:
        raise k.unsupported()
    k.write(target, result, "pred")


@lowers("answer", takes="bar barrier red popc and or cta aligned")
def answer_of_barrier(k: Lanes, i: Instruction) -> None:
    """What ``bar.red`` gives after the barrier: how many lanes said yes, all, or any."""
    from optiml_magic.emulator.layout import WORKER

    yes, lanes = (k.code.get("%w", WORKER, f) for f in ("red_sum_done", "red_lanes_done"))
    target = i.operands[0]
    assert isinstance(target, Register)
    if "popc" in i.parts:
        k.write(target, k.code.splat(yes, "i32"), "u32")
        return
    test = f"icmp eq i32 {yes}, {lanes}" if "and" in i.parts else f"icmp ne i32 {yes}, 0"
    bit = k.code.splat(k.code.let(test), "i1")
    k.write(target, k.code.let(f"and {vector('i1')} {bit}, {constant(-1, 1)}"), "pred")
