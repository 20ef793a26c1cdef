"""Lanes that look at other lanes."""

from __future__ import annotations

from optiml_magic.emulator.ir import expand, integers
from optiml_magic.emulator.library import family


@family("om_permute")
def permute() -> str:
    """Lane i gets the value of lane index[i]."""
    return """
define internal <32 x i32> @om_permute(<32 x i32> %v, <32 x i32> %index) noinline {
entry:
  %vp = alloca <32 x i32>, align 64
  %ip = alloca <32 x i32>, align 64
  %rp = alloca <32 x i32>, align 64
  store <32 x i32> %v, ptr %vp
  store <32 x i32> %index, ptr %ip
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %from = getelementptr i32, ptr %ip, i64 %i
  %j = load i32, ptr %from
  %safe = and i32 %j, 31
  %jz = zext i32 %safe to i64
  %p = getelementptr i32, ptr %vp, i64 %jz
  %x = load i32, ptr %p
  %to = getelementptr i32, ptr %rp, i64 %i
  store i32 %x, ptr %to
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, 32
  br i1 %end, label %done, label %loop
done:
  %r = load <32 x i32>, ptr %rp
  ret <32 x i32> %r
}"""


@family(r"om_match_(32|64)")
def match(width: str) -> str:
    """For each lane the active lanes that hold the same value."""
    t = integers(int(width))
    return expand(f"""
define internal <32 x i32> @om_match_{width}({t} %v, i32 %mask) noinline {{
entry:
  %vp = alloca {t}, align 64
  %rp = alloca <32 x i32>, align 64
  store {t} %v, ptr %vp
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %p = getelementptr i{width}, ptr %vp, i64 %i
  %x = load i{width}, ptr %p
  %xs = splat i{width} %x
  %eq = icmp eq {t} %v, %xs
  %same = bitcast <32 x i1> %eq to i32
  %here = and i32 %same, %mask
  %to = getelementptr i32, ptr %rp, i64 %i
  store i32 %here, ptr %to
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, 32
  br i1 %end, label %done, label %loop
done:
  %r = load <32 x i32>, ptr %rp
  ret <32 x i32> %r
}}""")


@family(r"om_reduce_(\w+?)_(\d+)")
def reduce(operation: str, neutral: str) -> str:
    """For each lane the reduction over the active lanes of its own mask."""
    return expand(f"""
define internal <32 x i32> @om_reduce_{operation}_{neutral}(<32 x i32> %v, <32 x i32> %members,
                                                            i32 %mask) noinline {{
entry:
  %mp = alloca <32 x i32>, align 64
  %rp = alloca <32 x i32>, align 64
  store <32 x i32> %members, ptr %mp
  %neutral = splat i32 {neutral}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %p = getelementptr i32, ptr %mp, i64 %i
  %own = load i32, ptr %p
  %here = and i32 %own, %mask
  %lanes = bitcast i32 %here to <32 x i1>
  %kept = select <32 x i1> %lanes, <32 x i32> %v, <32 x i32> %neutral
  %one = call i32 @llvm.vector.reduce.{operation}.v32i32(<32 x i32> %kept)
  %to = getelementptr i32, ptr %rp, i64 %i
  store i32 %one, ptr %to
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, 32
  br i1 %end, label %done, label %loop
done:
  %r = load <32 x i32>, ptr %rp
  ret <32 x i32> %r
}}""")
