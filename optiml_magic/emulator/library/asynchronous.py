"""Arrivals at an mbarrier, which lies in shared memory, so that one host thread alone sees it."""

from __future__ import annotations

from optiml_magic.emulator.library import family


@family("om_mbarrier_arrive")
def arrive() -> str:
    """Lane by lane; the last arrival begins the next phase. Answers the state before."""
    return """
define internal <32 x i64> @om_mbarrier_arrive(
    <32 x i64> %a, <32 x i64> %n, <32 x i64> %d, i32 %mask
) noinline {
entry:
  %ap = alloca <32 x i64>, align 64
  %np = alloca <32 x i64>, align 64
  %dp = alloca <32 x i64>, align 64
  %rp = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  store <32 x i64> %n, ptr %np
  store <32 x i64> %d, ptr %dp
  store <32 x i64> zeroinitializer, ptr %rp
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %lane
lane:
  %rest = phi i32 [%mask, %entry], [%rest1, %lane]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %api = getelementptr i64, ptr %ap, i64 %kz
  %npi = getelementptr i64, ptr %np, i64 %kz
  %dpi = getelementptr i64, ptr %dp, i64 %kz
  %rpi = getelementptr i64, ptr %rp, i64 %kz
  %at = load i64, ptr %api
  %word = inttoptr i64 %at to ptr
  %count = load i64, ptr %npi
  %drop = load i64, ptr %dpi
  %old = load i64, ptr %word
  store i64 %old, ptr %rpi
  %low = and i64 %old, 1048575
  %gone = mul i64 %drop, %count
  %expected = sub i64 %low, %gone
  %mid = lshr i64 %old, 20
  %pending0 = and i64 %mid, 1048575
  %pending = sub i64 %pending0, %count
  %phase0 = lshr i64 %old, 40
  %over = icmp eq i64 %pending, 0
  %step = zext i1 %over to i64
  %phase = add i64 %phase0, %step
  %left = select i1 %over, i64 %expected, i64 %pending
  %p1 = shl i64 %left, 20
  %p2 = shl i64 %phase, 40
  %w1 = or i64 %expected, %p1
  %w2 = or i64 %w1, %p2
  store i64 %w2, ptr %word
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  %r = load <32 x i64>, ptr %rp
  ret <32 x i64> %r
}"""
