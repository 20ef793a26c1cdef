"""What lanes of a warp do together: shuffles, votes, reductions, and fences.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync".
A lane that reads an inactive one gets that lane's last value; the ISA leaves it undefined.
"""

from __future__ import annotations

from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, each, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Immediate, Instruction, Pair

_I32 = integers(32)
_LANE = each(range(32), 32)


@lowers("shfl", takes="sync up down bfly idx")
def shuffle(k: Lanes, i: Instruction) -> None:
    if "sync" not in i.parts:
        raise k.unsupported()
    target, source, b, c = i.operands[:4]
    value = k.read(source, "b32")
    amount = _and(k, k.read(b, "b32"), constant(31, 32))
    clamp = k.read(c, "b32")
    segment = _and(k, _op(k, "lshr", clamp, constant(8, 32)), constant(31, 32))
    outside = _op(k, "xor", segment, constant(31, 32))
    low = _and(k, _LANE, segment)
    last = _op(k, "or", low, _and(k, _and(k, clamp, constant(31, 32)), outside))
    mode = next(p for p in i.parts if p in ("up", "down", "bfly", "idx"))
    index = {
        "up": lambda: _op(k, "sub", _LANE, amount),
        "down": lambda: _op(k, "add", _LANE, amount),
        "bfly": lambda: _op(k, "xor", _LANE, amount),
        "idx": lambda: _op(k, "or", low, _and(k, amount, outside)),
    }[mode]()
    order = "sge" if mode == "up" else "sle"
    inside = k.code.let(f"icmp {order} {_I32} {index}, {last}")
    index = k.code.let(f"select {vector('i1')} {inside}, {_I32} {index}, {_I32} {_LANE}")
    k.sources = index
    moved = k.call("om_permute", _I32, f"{_I32} {value}", f"{_I32} {index}")
    if isinstance(target, Pair):
        k.write(target.first, moved, "b32")
        k.write(target.second, inside, "pred")
    else:
        k.write(target, moved, "b32")


def _op(k: Lanes, name: str, a: str, b: str) -> str:
    return k.code.let(f"{name} {_I32} {a}, {b}")


def _and(k: Lanes, a: str, b: str) -> str:
    return _op(k, "and", a, b)


@lowers("vote", takes="sync all any uni ballot")
def vote(k: Lanes, i: Instruction) -> None:
    if "sync" not in i.parts:
        raise k.unsupported()
    target, predicate, members = i.operands
    said = k.code.let(f"and {vector('i1')} {k.predicate(predicate)}, {k.mask_vector()}")
    yes = k.code.splat(k.code.let(f"bitcast {vector('i1')} {said} to i32"), "i32")
    present = k.code.splat(k.mask(), "i32")
    wanted = k.read(members, "b32")
    yes, present = _and(k, yes, wanted), _and(k, present, wanted)
    if "ballot" in i.parts:
        k.write(target, yes, "b32")
        return
    all_ = k.code.let(f"icmp eq {_I32} {yes}, {present}")
    none = k.code.let(f"icmp eq {_I32} {yes}, zeroinitializer")
    if "all" in i.parts:
        result = all_
    elif "any" in i.parts:
        result = k.code.let(f"xor {vector('i1')} {none}, {constant(-1, 1)}")
    else:  # uni
        result = k.code.let(f"or {vector('i1')} {all_}, {none}")
    k.write(target, result, "pred")


@lowers("activemask")
def active(k: Lanes, i: Instruction) -> None:
    k.write(i.operands[0], k.code.splat(k.mask(), "i32"), "b32")


@lowers("match", takes="sync any all")
def match(k: Lanes, i: Instruction) -> None:
    target, source, members = i.operands
    width = 64 if i.type == "b64" else 32
    t = integers(width)
    equal = k.call(f"om_match_{width}", _I32, f"{t} {k.read(source, i.type)}", f"i32 {k.mask()}")
    wanted = k.read(members, "b32")
    equal = _and(k, equal, wanted)
    if "any" in i.parts:
        k.write(target, equal, "b32")
        return
    present = _and(k, k.code.splat(k.mask(), "i32"), wanted)
    whole = k.code.let(f"icmp eq {_I32} {equal}, {present}")
    mask = k.code.let(f"select {vector('i1')} {whole}, {_I32} {equal}, {_I32} zeroinitializer")
    if isinstance(target, Pair):
        k.write(target.first, mask, "b32")
        k.write(target.second, whole, "pred")
    else:
        k.write(target, mask, "b32")


_REDUCE = {
    ("add", "s"): ("add", 0),
    ("add", "u"): ("add", 0),
    ("min", "s"): ("smin", 0x7FFFFFFF),
    ("min", "u"): ("umin", 0xFFFFFFFF),
    ("max", "s"): ("smax", 0x80000000),
    ("max", "u"): ("umax", 0),
    ("and", "b"): ("and", 0xFFFFFFFF),
    ("or", "b"): ("or", 0),
    ("xor", "b"): ("xor", 0),
}


@lowers("redux", takes="sync add min max and or xor")
def reduce(k: Lanes, i: Instruction) -> None:
    target, source, members = i.operands
    if not isinstance(members, Immediate) or members.value & 0xFFFFFFFF != 0xFFFFFFFF:
        _partial_reduce(k, i)
        return
    k.write(target, _reduced(k, i, k.read(source, i.type), k.mask_vector()), i.type)


def _partial_reduce(k: Lanes, i: Instruction) -> None:
    """Several groups of a warp may reduce at once, each lane with the mask of its own group."""
    target, source, members = i.operands
    name, neutral = _operation(i)
    function = f"om_reduce_{name}_{neutral}"
    value, wanted = k.read(source, i.type), k.read(members, "b32")
    mask = f"i32 {k.mask()}"
    result = k.call(function, _I32, f"{_I32} {value}", f"{_I32} {wanted}", mask)
    k.write(target, result, i.type)


def _operation(i: Instruction) -> tuple[str, int]:
    """LLVM's name of the reduction, and its neutral element."""
    operation = next(p for p in i.parts if p in ("add", "min", "max", "and", "or", "xor"))
    return _REDUCE[operation, i.type[0]]


def _reduced(k: Lanes, i: Instruction, value: str, lanes: str) -> str:
    name, neutral = _operation(i)
    kept = k.code.let(
        f"select {vector('i1')} {lanes}, {_I32} {value}, {_I32} {constant(neutral, 32)}"
    )
    one = k.call(f"llvm.vector.reduce.{name}.v32i32", "i32", f"{_I32} {kept}")
    return k.code.splat(one, "i32")


@lowers("elect", takes="sync")
def elect(k: Lanes, i: Instruction) -> None:
    """The lowest member is chosen."""
    target, members = i.operands
    wanted = _and(k, k.read(members, "b32"), k.code.splat(k.mask(), "i32"))
    lowest = k.call("llvm.cttz.v32i32", _I32, f"{_I32} {wanted}", "i1 false")
    chosen = k.code.let(f"icmp eq {_I32} {lowest}, {_LANE}")
    if isinstance(target, Pair):
        k.write(target.first, lowest, "b32")
        k.write(target.second, chosen, "pred")
    else:
        k.write(target, lowest, "b32")


@lowers("bar", "barrier", takes="warp sync")
def warp_barrier(k: Lanes, i: Instruction) -> None:
    """``bar.warp.sync``: lanes run in lockstep, so there is nothing to wait for."""
    if "warp" not in i.parts:
        raise k.unsupported()


@lowers(
    "membar", "fence", "nanosleep", "pmevent", takes="cta gl sys gpu sc acq_rel acquire release"
)
def no_effect(_k: Lanes, _i: Instruction) -> None:
    """A block runs on one host thread and global atomics are sequentially consistent."""
