"""The loads and stores themselves, at host addresses that were checked."""

from __future__ import annotations

from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.library import family


@family(r"om_gather_(\d)")
def gather(width_text: str) -> str:
    """Load; when all lanes are active, half-warps that are contiguous or equal load at once."""
    width = int(width_text)
    t = f"i{8 * width}"
    low = ", ".join(f"i32 {i}" for i in range(16))
    high = ", ".join(f"i32 {i}" for i in range(16, 32))
    both = ", ".join(f"i32 {i}" for i in range(32))
    return f"""
define internal <32 x {t}> @om_gather_{width}(<32 x i64> %a, i32 %mask) noinline {{
entry:
  %full = icmp eq i32 %mask, -1
  br i1 %full, label %halves, label %lanes
halves:
  %al = shufflevector <32 x i64> %a, <32 x i64> undef, <16 x i32> <{low}>
  %ah = shufflevector <32 x i64> %a, <32 x i64> undef, <16 x i32> <{high}>
  %vl = call <16 x {t}> @om_half_{width}(<16 x i64> %al)
  %vh = call <16 x {t}> @om_half_{width}(<16 x i64> %ah)
  %v = shufflevector <16 x {t}> %vl, <16 x {t}> %vh, <32 x i32> <{both}>
  ret <32 x {t}> %v
lanes:
  %ap = alloca <32 x i64>, align 64
  %vp = alloca <32 x {t}>, align 64
  store <32 x i64> %a, ptr %ap
  store <32 x {t}> zeroinitializer, ptr %vp
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %lane
lane:
  %rest = phi i32 [%mask, %lanes], [%rest1, %lane]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %api = getelementptr i64, ptr %ap, i64 %kz
  %ai = load i64, ptr %api
  %from = inttoptr i64 %ai to ptr
  %x = load {t}, ptr %from, align {width}
  %vpi = getelementptr {t}, ptr %vp, i64 %kz
  store {t} %x, ptr %vpi
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  %r = load <32 x {t}>, ptr %vp
  ret <32 x {t}> %r
}}"""


@family(r"om_half_(\d)")
def load_half(width_text: str) -> str:
    """Sixteen lanes that are all active."""
    width = int(width_text)
    t = f"i{8 * width}"
    steps = ", ".join(f"i64 {i * width}" for i in range(16))
    return f"""
define internal <16 x {t}> @om_half_{width}(<16 x i64> %a) alwaysinline {{
entry:
  %first = extractelement <16 x i64> %a, i32 0
  %s0 = insertelement <16 x i64> undef, i64 %first, i32 0
  %s = shufflevector <16 x i64> %s0, <16 x i64> undef, <16 x i32> zeroinitializer
  %d = sub <16 x i64> %a, %s
  %c0 = icmp eq <16 x i64> %d, <{steps}>
  %c1 = bitcast <16 x i1> %c0 to i16
  %c = icmp eq i16 %c1, -1
  %from = inttoptr i64 %first to ptr
  br i1 %c, label %run, label %notrun
run:
  %v0 = load <16 x {t}>, ptr %from, align {width}
  br label %done
notrun:
  %e0 = icmp eq <16 x i64> %d, zeroinitializer
  %e1 = bitcast <16 x i1> %e0 to i16
  %e = icmp eq i16 %e1, -1
  br i1 %e, label %same, label %each
same:
  %x = load {t}, ptr %from, align {width}
  %v1a = insertelement <16 x {t}> undef, {t} %x, i32 0
  %v1 = shufflevector <16 x {t}> %v1a, <16 x {t}> undef, <16 x i32> zeroinitializer
  br label %done
each:
{_sixteen(t, width)}
  br label %done
done:
  %v = phi <16 x {t}> [%v0, %run], [%v1, %same], [%g16, %each]
  ret <16 x {t}> %v
}}"""


def _sixteen(type_: str, width: int) -> str:
    lines = [f"  %g0 = bitcast <16 x {type_}> undef to <16 x {type_}>"]
    for i in range(16):
        lines += [
            f"  %ga{i} = extractelement <16 x i64> %a, i32 {i}",
            f"  %gp{i} = inttoptr i64 %ga{i} to ptr",
            f"  %gx{i} = load {type_}, ptr %gp{i}, align {width}",
            f"  %g{i + 1} = insertelement <16 x {type_}> %g{i}, {type_} %gx{i}, i32 {i}",
        ]
    return "\n".join(lines)


@family(r"om_scatter_(\d)")
def scatter(width_text: str) -> str:
    """Store; of lanes that write to one address the highest wins."""
    width = int(width_text)
    t = f"i{8 * width}"
    steps = each([i * width for i in range(32)], 64)
    return expand(f"""
define internal void @om_scatter_{width}(<32 x i64> %a, <32 x {t}> %v, i32 %mask) noinline {{
entry:
  %full = icmp eq i32 %mask, -1
  br i1 %full, label %whole, label %lanes
whole:
  %first = extractelement <32 x i64> %a, i32 0
  %s = splat i64 %first
  %d = sub <32 x i64> %a, %s
  %c0 = icmp eq <32 x i64> %d, {steps}
  %c1 = bitcast <32 x i1> %c0 to i32
  %c = icmp eq i32 %c1, -1
  br i1 %c, label %run, label %lanes
run:
  %to = inttoptr i64 %first to ptr
  store <32 x {t}> %v, ptr %to, align {width}
  ret void
lanes:
  %ap = alloca <32 x i64>, align 64
  %vp = alloca <32 x {t}>, align 64
  store <32 x i64> %a, ptr %ap
  store <32 x {t}> %v, ptr %vp
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %lane
lane:
  %rest = phi i32 [%mask, %lanes], [%rest1, %lane]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %api = getelementptr i64, ptr %ap, i64 %kz
  %ai = load i64, ptr %api
  %toi = inttoptr i64 %ai to ptr
  %vpi = getelementptr {t}, ptr %vp, i64 %kz
  %x = load {t}, ptr %vpi
  store {t} %x, ptr %toi, align {width}
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void
}}""")
