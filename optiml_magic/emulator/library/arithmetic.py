"""Arithmetic that needs more than an instruction: division, directed rounding, functions."""

from __future__ import annotations

from optiml_magic.emulator.ir import constant, floats, integers
from optiml_magic.emulator.library import family

# Arguments of llvm.set.rounding (LLVM LangRef, "Floating Point Environment Manipulation").
_MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
_STRICT = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
_NAMES = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fma": "fma", "sqrt": "sqrt"}


@family(r"om_(div|rem)_([su])(\d+)")
def divide(operation: str, sign: str, bits_text: str) -> str:
    """Division by zero gives all ones (rem: the dividend), as the hardware does; no lane traps."""
    bits = int(bits_text)
    t = integers(bits)
    zero_result = constant(-1, bits) if operation == "div" else "%a"
    head = f"""
define internal {t} @om_{operation}_{sign}{bits}({t} %a, {t} %b) noinline {{
  %z = icmp eq {t} %b, zeroinitializer
  %one = select <32 x i1> %z, {t} {constant(1, bits)}, {t} %b
"""
    if sign == "u":
        body = f"  %q = u{operation} {t} %a, %one\n"
    else:  # the smallest number divided by -1 traps on x86
        other = (
            "sub " + t + " zeroinitializer, %a"
            if operation == "div"
            else "and " + t + " %a, zeroinitializer"
        )
        body = f"""  %m = icmp eq {t} %one, {constant(-1, bits)}
  %safe = select <32 x i1> %m, {t} {constant(1, bits)}, {t} %one
  %q0 = s{operation} {t} %a, %safe
  %n = {other}
  %q = select <32 x i1> %m, {t} %n, {t} %q0
"""
    return head + body + f"  %r = select <32 x i1> %z, {t} {zero_result}, {t} %q\n  ret {t} %r\n}}"


@family(r"om_(add|sub|mul|div|fma|sqrt)_(rz|rm|rp)_f(\d+)")
def rounded(operation: str, mode: str, bits_text: str) -> str:
    """One operation under another rounding mode of the host's float unit."""
    t = floats(int(bits_text))
    count = {"fma": 3, "sqrt": 1}.get(operation, 2)
    names = ["%a", "%b", "%c"][:count]
    typed = ", ".join(f"{t} {n}" for n in names)
    intrinsic = f"llvm.experimental.constrained.{_NAMES[operation]}.v32f{bits_text}"
    return _under(
        mode,
        f"define internal {t} @om_{operation}_{mode}_f{bits_text}({typed})",
        f"call {t} @{intrinsic}({typed}, {_STRICT})",
        t,
    )


@family(r"om_fptrunc_(rz|rm|rp)_f32")
def narrowed(mode: str) -> str:
    call = f"llvm.experimental.constrained.fptrunc.v32f32.v32f64({floats(64)} %a, {_STRICT})"
    return _under(
        mode,
        f"define internal {floats(32)} @om_fptrunc_{mode}_f32({floats(64)} %a)",
        f"call {floats(32)} @{call}",
        floats(32),
    )


@family(r"om_([su])itofp_(rz|rm|rp)_i(\d+)_f(\d+)")
def from_integer(sign: str, mode: str, from_bits: str, to_bits: str) -> str:
    source, target = integers(int(from_bits)), floats(int(to_bits))
    name = f"llvm.experimental.constrained.{sign}itofp.v32f{to_bits}.v32i{from_bits}"
    return _under(
        mode,
        f"define internal {target} @om_{sign}itofp_{mode}_i{from_bits}_f{to_bits}({source} %a)",
        f"call {target} @{name}({source} %a, {_STRICT})",
        target,
        # Without AVX-512, LLVM takes two parts of an unsigned integer from each other: 0 is x - x,
        # which is -0 where rounding is down.
        f"""  %zero = icmp eq {source} %a, zeroinitializer
  %result = select <32 x i1> %zero, {target} zeroinitializer, {target} %r
""",
    )


def _under(mode: str, header: str, call: str, type_: str, correction: str = "") -> str:
    """``call`` under ``mode``; ``correction`` makes ``%result`` of its ``%r``."""
    return f"""
{header} strictfp noinline {{
  call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp
  %r = {call} strictfp
  call void @llvm.set.rounding(i32 {_MODES["rn"]}) strictfp
{correction}  ret {type_} {"%result" if correction else "%r"}
}}"""


_LIBM = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh"}


@family(r"om_(sin|cos)_turns_f32")
def function_of_turns(name: str) -> str:
    """Sin or cos of 2 pi a; whole turns are taken off first, which is exact."""
    t = floats(32)
    two_pi = f"<{', '.join(['float 0x401921FB60000000'] * 32)}>"
    return f"""
define internal {t} @om_{name}_turns_f32({t} %a) noinline {{
  %whole = call {t} @llvm.roundeven.v32f32({t} %a)
  %rest = fsub {t} %a, %whole
  %angle = fmul {t} %rest, {two_pi}
  %r = call {t} @om_{name}_f32({t} %angle)
  ret {t} %r
}}"""


@family("om_fns")
def find_nth() -> str:
    """Lane by lane: the bit of a mask that is the n-th set one from a base, or all ones."""
    return """
define internal <32 x i32> @om_fns(<32 x i32> %m, <32 x i32> %b, <32 x i32> %o) noinline {
entry:
  %mp = alloca <32 x i32>, align 64
  %bp = alloca <32 x i32>, align 64
  %op = alloca <32 x i32>, align 64
  store <32 x i32> %m, ptr %mp
  store <32 x i32> %b, ptr %bp
  store <32 x i32> %o, ptr %op
  br label %lane
lane:
  %i = phi i64 [0, %entry], [%i1, %next]
  %mpi = getelementptr i32, ptr %mp, i64 %i
  %bpi = getelementptr i32, ptr %bp, i64 %i
  %opi = getelementptr i32, ptr %op, i64 %i
  %mask = load i32, ptr %mpi
  %base = load i32, ptr %bpi
  %offset = load i32, ptr %opi
  %back = icmp slt i32 %offset, 0
  %step = select i1 %back, i32 -1, i32 1
  %none = icmp eq i32 %offset, 0
  %minus = sub i32 0, %offset
  %size = select i1 %back, i32 %minus, i32 %offset
  %left0 = select i1 %none, i32 1, i32 %size
  br label %bit
bit:
  %at = phi i32 [%base, %lane], [%at1, %on]
  %left = phi i32 [%left0, %lane], [%left1, %on]
  %inside = icmp ult i32 %at, 32
  br i1 %inside, label %look, label %lost
look:
  %moved = lshr i32 %mask, %at
  %set = and i32 %moved, 1
  %left1 = sub i32 %left, %set
  %found = icmp eq i32 %left1, 0
  br i1 %found, label %next, label %miss
miss:
  br i1 %none, label %lost, label %on
on:
  %at1 = add i32 %at, %step
  br label %bit
lost:
  br label %next
next:
  %r = phi i32 [%at, %look], [-1, %lost]
  store i32 %r, ptr %mpi
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, 32
  br i1 %end, label %done, label %lane
done:
  %v = load <32 x i32>, ptr %mp
  ret <32 x i32> %v
}"""


@family(r"om_(ex2|lg2|sin|cos|tanh)_f32")
def function_of_libm(name: str) -> str:
    """Lane by lane through the C library's f32 function (about 1 ulp)."""
    t = floats(32)
    return f"""
define internal {t} @om_{name}_f32({t} %a) noinline {{
entry:
  %ap = alloca {t}, align 64
  store {t} %a, ptr %ap
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %p = getelementptr float, ptr %ap, i64 %i
  %x = load float, ptr %p
  %y = call float @{_LIBM[name]}f(float %x)
  store float %y, ptr %p
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, 32
  br i1 %end, label %done, label %loop
done:
  %r = load {t}, ptr %ap
  ret {t} %r
}}"""
