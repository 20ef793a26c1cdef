"""Read-modify-write, lane by lane from the lowest: atomic in global memory, plain in shared.

A block's shared memory is touched by one host thread only, so plain operations are atomic there.
Source: PTX ISA, "atom".
"""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.library import family

_NATIVE = {
    ("add", "i"): "add",
    ("and", "i"): "and",
    ("or", "i"): "or",
    ("xor", "i"): "xor",
    ("exch", "i"): "xchg",
    ("min", "s"): "min",
    ("max", "s"): "max",
    ("min", "u"): "umin",
    ("max", "u"): "umax",
}


@family(r"om_atom_([a-z]+)_([iusf]|b?f_)(\d+)_(global|shared)")
def atomic(operation: str, sort: str, bits_text: str, space: str) -> str:
    """``<32 x iN> old = op(addresses, b, c, mask)``; lanes not in the mask answer 0."""
    bits = int(bits_text)
    t = f"i{bits}"
    native = _NATIVE.get((operation, sort))
    if space == "shared":
        update = _plain(operation, sort, bits)
    elif native:
        update = f"  %old = atomicrmw {native} ptr %p, {t} %b seq_cst\n  br label %next"
    else:
        update = _exchange(operation, sort, bits)
    return expand(f"""
define internal <32 x {t}> @om_atom_{operation}_{sort}{bits}_{space}(
    <32 x i64> %a, <32 x {t}> %bs, <32 x {t}> %cs, i32 %mask
) noinline {{
entry:
  %ap = alloca <32 x i64>, align 64
  %bp = alloca <32 x {t}>, align 64
  %cp = alloca <32 x {t}>, align 64
  %rp = alloca <32 x {t}>, align 64
  store <32 x i64> %a, ptr %ap
  store <32 x {t}> %bs, ptr %bp
  store <32 x {t}> %cs, ptr %cp
  store <32 x {t}> zeroinitializer, ptr %rp
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %lane
lane:
  %rest = phi i32 [%mask, %entry], [%rest1, %next]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %apk = getelementptr i64, ptr %ap, i64 %kz
  %bpk = getelementptr {t}, ptr %bp, i64 %kz
  %cpk = getelementptr {t}, ptr %cp, i64 %kz
  %rpk = getelementptr {t}, ptr %rp, i64 %kz
  %ai = load i64, ptr %apk
  %p = inttoptr i64 %ai to ptr
  %b = load {t}, ptr %bpk
  %c = load {t}, ptr %cpk
{update}
next:
  store {t} %old, ptr %rpk
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  %r = load <32 x {t}>, ptr %rp
  ret <32 x {t}> %r
}}""")


def _plain(operation: str, sort: str, bits: int) -> str:
    t = f"i{bits}"
    return f"""
  %old = load {t}, ptr %p
{_combine(operation, sort, bits)}
  store {t} %new, ptr %p
  br label %next"""


def _exchange(operation: str, sort: str, bits: int) -> str:
    t = f"i{bits}"
    return f"""
  %seen = load atomic {t}, ptr %p monotonic, align {bits // 8}
  br label %again
again:
  %old = phi {t} [%seen, %lane], [%found, %again]
{_combine(operation, sort, bits)}
  %pair = cmpxchg ptr %p, {t} %old, {t} %new seq_cst seq_cst
  %found = extractvalue {{ {t}, i1 }} %pair, 0
  %won = extractvalue {{ {t}, i1 }} %pair, 1
  br i1 %won, label %next, label %again"""


def _combine(operation: str, sort: str, bits: int) -> str:
    """IR that computes %new from %old, %b and %c."""
    t = f"i{bits}"
    if sort.endswith("_"):
        return _half_sum(sort, bits)
    if sort == "f":
        f = {32: "float", 64: "double"}[bits]
        head = f"  %fo = bitcast {t} %old to {f}\n  %fb = bitcast {t} %b to {f}\n"
        if operation == "add":
            return head + f"  %fn = fadd {f} %fo, %fb\n  %new = bitcast {f} %fn to {t}"
        order = {"min": "olt", "max": "ogt"}[operation]
        return (
            head + f"  %lt = fcmp {order} {f} %fb, %fo\n  %nan = fcmp uno {f} %fo, %fo\n"
            f"  %take = or i1 %lt, %nan\n  %new = select i1 %take, {t} %b, {t} %old"
        )
    if operation in ("add", "and", "or", "xor"):
        return f"  %new = {operation} {t} %old, %b"
    if operation == "exch":
        return f"  %new = add {t} %b, 0"
    if operation == "cas":
        return f"  %eq = icmp eq {t} %old, %b\n  %new = select i1 %eq, {t} %c, {t} %old"
    if operation in ("min", "max"):
        order = ("s" if sort == "s" else "u") + {"min": "lt", "max": "gt"}[operation]
        return f"  %lt = icmp {order} {t} %b, %old\n  %new = select i1 %lt, {t} %b, {t} %old"
    if operation == "inc":
        return (
            f"  %ge = icmp uge {t} %old, %b\n  %up = add {t} %old, 1\n"
            f"  %new = select i1 %ge, {t} 0, {t} %up"
        )
    return (  # dec
        f"  %z = icmp eq {t} %old, 0\n  %gt = icmp ugt {t} %old, %b\n  %wrap = or i1 %z, %gt\n"
        f"  %down = sub {t} %old, 1\n  %new = select i1 %wrap, {t} %b, {t} %down"
    )


def _half_sum(sort: str, bits: int) -> str:
    """Both halves of a pair are added on their own (PTX ISA: the pair is not atomic as one)."""
    kind = "bf16" if sort.startswith("b") else "f16"
    if bits == 16:
        return f"  %new = call i16 @om_halfadd_{kind}(i16 %old, i16 %b)"
    return f"""
  %ol = trunc i32 %old to i16
  %bl = trunc i32 %b to i16
  %oh0 = lshr i32 %old, 16
  %oh = trunc i32 %oh0 to i16
  %bh0 = lshr i32 %b, 16
  %bh = trunc i32 %bh0 to i16
  %nl = call i16 @om_halfadd_{kind}(i16 %ol, i16 %bl)
  %nh = call i16 @om_halfadd_{kind}(i16 %oh, i16 %bh)
  %wl = zext i16 %nl to i32
  %wh = zext i16 %nh to i32
  %up = shl i32 %wh, 16
  %new = or i32 %up, %wl"""
