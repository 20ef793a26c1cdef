"""Wavefronts of requests to shared memory: exact, per warp."""

from __future__ import annotations

from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.library import family


@family("om_count_banks")
def count_banks() -> str:
    """Passes over 32 banks of 4 bytes: distinct units per bank, in phases of 128 bytes.

    A unit is one lane's 4, 8 or 16 bytes; lanes of 8 (16) bytes go by half (quarter) warps. Lanes
    of an atomic (``kind`` 3) that meet at a unit are counted apart, as the turns that they take.
    ``marks`` has a byte for each 4 bytes of shared memory, zero but within this function.
    """
    return expand(
        f"""
define internal void @om_count_banks(
    ptr %w, ptr %site, <32 x i32> %a, i32 %mask, i64 %width, i32 %kind
) noinline {{
entry:
  %up = alloca <32 x i32>, align 64
  %cp = alloca <32 x i8>, align 32
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %skip, label %begin
skip:
  ret void
begin:
  %lanes32 = call i32 @llvm.ctpop.i32(i32 %mask)
  %lanes = zext i32 %lanes32 to i64
  count %site S.requests 1
  count %site S.lanes %lanes
  %w32 = trunc i64 %width to i32
  %unit = call i32 @llvm.umax.i32(i32 %w32, i32 4)
  %shift = call i32 @llvm.cttz.i32(i32 %unit, i1 true)
  %group = udiv i32 128, %unit
  %shifts = splat i32 %shift
  %u = lshr <32 x i32> %a, %shifts
  %mv = bitcast i32 %mask to <32 x i1>
  %used = and i32 %kind, 3
  %atomic = icmp eq i32 %used, 3
  %narrow = icmp eq i32 %unit, 4
  br i1 %narrow, label %words, label %wider
words:
  br i1 %atomic, label %spread, label %span
span:
  %ulo = select <32 x i1> %mv, <32 x i32> %u, <32 x i32> {each([0xFFFFFFFF] * 32, 32)}
  %uhi = select <32 x i1> %mv, <32 x i32> %u, <32 x i32> zeroinitializer
  %lo = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %ulo)
  %hi = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %uhi)
  %wide = sub i32 %hi, %lo
  %fits = icmp ult i32 %wide, 32
  br i1 %fits, label %one, label %spread
spread:
  %in = and <32 x i32> %u, {each([31] * 32, 32)}
  %bits0 = shl <32 x i32> {each([1] * 32, 32)}, %in
  %bits1 = select <32 x i1> %mv, <32 x i32> %bits0, <32 x i32> zeroinitializer
  %bits = call i32 @llvm.vector.reduce.or.v32i32(<32 x i32> %bits1)
  %apart = call i32 @llvm.ctpop.i32(i32 %bits)
  %alone = icmp eq i32 %apart, %lanes32
  br i1 %alone, label %one, label %slow
one:
  count %site S.wavefronts 1
  count %site S.ideal 1
  ret void
wider:
  %u0 = extractelement <32 x i32> %u, i32 0
  %u0s = splat i32 %u0
  %steps = sub <32 x i32> %u, %u0s
  %run0 = icmp ne <32 x i32> %steps, {each(range(32), 32)}
  %run1 = bitcast <32 x i1> %run0 to i32
  %same0 = icmp ne <32 x i32> %steps, zeroinitializer
  %same1 = bitcast <32 x i1> %same0 to i32
  %runs = icmp eq i32 %run1, 0
  %equal0 = icmp eq i32 %same1, 0
  %plain = xor i1 %atomic, true
  %equal = and i1 %equal0, %plain
  %smooth0 = or i1 %runs, %equal
  %whole = icmp eq i32 %mask, -1
  %smooth = and i1 %smooth0, %whole
  br i1 %smooth, label %phases, label %slow
phases:
  %phases32 = udiv i32 32, %group
  %phasesz = zext i32 %phases32 to i64
  count %site S.wavefronts %phasesz
  count %site S.ideal %phasesz
  ret void
slow:
  store <32 x i32> %u, ptr %up
  %marks = get %w W.marks
  %banks = sub i32 %group, 1
  %full = icmp eq i32 %group, 32
  %g0 = shl i32 1, %banks
  %g1 = shl i32 %g0, 1
  %g2 = sub i32 %g1, 1
  %first = select i1 %full, i32 -1, i32 %g2
  br label %phase
phase:
  %at = phi i32 [0, %slow], [%at1, %phased]
  %waves = phi i64 [0, %slow], [%waves1, %phased]
  %ideal = phi i64 [0, %slow], [%ideal1, %phased]
  %turns = phi i64 [0, %slow], [%turns1, %phased]
  %here = shl i32 %first, %at
  %pm = and i32 %mask, %here
  %empty = icmp eq i32 %pm, 0
  store <32 x i8> zeroinitializer, ptr %cp
  br i1 %empty, label %phased, label %loop
loop:
  %rest = phi i32 [%pm, %phase], [%rest1, %loop]
  %max = phi i8 [0, %phase], [%max1, %loop]
  %most = phi i8 [0, %phase], [%most1, %loop]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %upk = getelementptr i32, ptr %up, i64 %kz
  %x = load i32, ptr %upk
  %xz = zext i32 %x to i64
  %mx = getelementptr i8, ptr %marks, i64 %xz
  %met = load i8, ptr %mx
  %met1 = add i8 %met, 1
  store i8 %met1, ptr %mx
  %most1 = call i8 @llvm.umax.i8(i8 %most, i8 %met1)
  %isnew = icmp eq i8 %met, 0
  %newz = zext i1 %isnew to i8
  %bank = and i32 %x, %banks
  %bz = zext i32 %bank to i64
  %cb = getelementptr i8, ptr %cp, i64 %bz
  %c = load i8, ptr %cb
  %c1 = add i8 %c, %newz
  store i8 %c1, ptr %cb
  %max1 = call i8 @llvm.umax.i8(i8 %max, i8 %c1)
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %clear, label %loop
clear:
  %left = phi i32 [%pm, %loop], [%left1, %clear]
  %j = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %under = sub i32 %left, 1
  %left1 = and i32 %left, %under
  %jz = zext i32 %j to i64
  %upj = getelementptr i32, ptr %up, i64 %jz
  %y = load i32, ptr %upj
  %yz = zext i32 %y to i64
  %my = getelementptr i8, ptr %marks, i64 %yz
  store i8 0, ptr %my
  %clean = icmp eq i32 %left1, 0
  br i1 %clean, label %phased, label %clear
phased:
  %m = phi i8 [0, %phase], [%max1, %clear]
  %t = phi i8 [1, %phase], [%most1, %clear]
  %busy = phi i64 [0, %phase], [1, %clear]
  %mz = zext i8 %m to i64
  %waves1 = add i64 %waves, %mz
  %ideal1 = add i64 %ideal, %busy
  %tz = zext i8 %t to i64
  %more = sub i64 %tz, 1
  %turns1 = add i64 %turns, %more
  %at1 = add i32 %at, %group
  %over = icmp uge i32 %at1, 32
  br i1 %over, label %done, label %phase
done:
  count %site S.wavefronts %waves1
  count %site S.ideal %ideal1
  br i1 %atomic, label %meet, label %finish
meet:
  count %site S.contention %turns1
  br label %finish
finish:
  ret void
}}"""
    )
