"""Sectors of global and local requests, wavefronts of shared ones: exact, per warp."""

from __future__ import annotations

from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.library import family


@family("om_count_sectors")
def count_sectors() -> str:
    """Distinct sector numbers among the active lanes, times ``scale``; ``kind`` marks them.

    ``kind`` has bit 0 for sectors that are read and bit 1 for sectors that are written.
    """
    return expand(
        """
define internal void @om_count_sectors(
    ptr %w, ptr %site, <32 x i32> %s, i32 %mask, i64 %width, i32 %kind, i64 %scale
) noinline {
entry:
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %skip, label %begin
skip:
  ret void
begin:
  %sp = alloca <32 x i32>, align 64
  store <32 x i32> %s, ptr %sp
  %lines = lshr <32 x i32> %s, """
        + each([2] * 32, 32)
        + """
  %stamps = get %w W.stamps
  %written = get %w W.written
  %block = get %w W.block
  %b32 = trunc i64 %block to i32
  %stamp = add i32 %b32, 1
  %k0 = and i32 %kind, 1
  %reads = icmp ne i32 %k0, 0
  %k1 = and i32 %kind, 2
  %writes = icmp ne i32 %k1, 0
  %warp = get %w W.warp
  %warpz = zext i32 %warp to i64
  %awake = get %w W.warp_stamps
  %ap = getelementptr i32, ptr %awake, i64 %warpz
  %aold = load i32, ptr %ap
  %known = icmp eq i32 %aold, %stamp
  br i1 %known, label %loop, label %wakes
wakes:
  store i32 %stamp, ptr %ap
  count %w W.memory_warps 1
  br label %loop
loop:
  %rest = phi i32 [%mask, %begin], [%mask, %wakes], [%rest1, %next]
  %n = phi i64 [0, %begin], [0, %wakes], [%n1, %next]
  %l = phi i64 [0, %begin], [0, %wakes], [%l1, %next]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %kz = zext i32 %k to i64
  %spk = getelementptr i32, ptr %sp, i64 %kz
  %x = load i32, ptr %spk
  %xs = splat i32 %x
  %eq = icmp eq <32 x i32> %s, %xs
  %same = bitcast <32 x i1> %eq to i32
  %other = xor i32 %same, -1
  %rest1 = and i32 %rest, %other
  %n1 = add i64 %n, 1
  %xl = lshr i32 %x, 2
  %xls = splat i32 %xl
  %eql = icmp eq <32 x i32> %lines, %xls
  %samel = bitcast <32 x i1> %eql to i32
  %done0 = xor i32 %rest, -1
  %done1 = and i32 %mask, %done0
  %met = and i32 %samel, %done1
  %isnew = icmp eq i32 %met, 0
  %newl = zext i1 %isnew to i64
  %l1 = add i64 %l, %newl
  %xz = zext i32 %x to i64
  br i1 %reads, label %read, label %notread
read:
  %st = getelementptr i32, ptr %stamps, i64 %xz
  %seen = load i32, ptr %st
  %old = icmp eq i32 %seen, %stamp
  br i1 %old, label %notread, label %fresh
fresh:
  store i32 %stamp, ptr %st
  count %w W.read_per_block 1
  br label %notread
notread:
  br i1 %writes, label %write, label %next
write:
  %wr = getelementptr i8, ptr %written, i64 %xz
  store i8 1, ptr %wr
  br label %next
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %loop
done:
  %sectors = mul i64 %n1, %scale
  %lanes32 = call i32 @llvm.ctpop.i32(i32 %mask)
  %lanes = zext i32 %lanes32 to i64
  %bytes = mul i64 %lanes, %width
  %up = add i64 %bytes, 31
  %least0 = lshr i64 %up, 5
  %least = call i64 @llvm.umin.i64(i64 %least0, i64 %sectors)
  count %site S.requests 1
  count %site S.sectors %sectors
  count %site S.ideal %least
  count %site S.lanes %lanes
  count %site S.lines %l1
  ret void
}"""
    )


@family("om_count_banks")
def count_banks() -> str:
    """Passes over 32 banks of 4 bytes: distinct units per bank, in phases of 128 bytes.

    A unit is one lane's 4, 8 or 16 bytes; lanes of 8 (16) bytes go by half (quarter) warps.
    Each lane of an atomic needs a pass of its own, even at one address.
    """
    return expand(
        """
define internal void @om_count_banks(
    ptr %w, ptr %site, <32 x i32> %a, i32 %mask, i64 %width, i32 %kind
) noinline {
entry:
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
  %atomic = icmp eq i32 %kind, 3
  %narrow = icmp eq i32 %unit, 4
  %notatomic = xor i1 %atomic, true
  %maybe = and i1 %narrow, %notatomic
  br i1 %maybe, label %span, label %slow
span:
  %mv = bitcast i32 %mask to <32 x i1>
  %ulo = select <32 x i1> %mv, <32 x i32> %u, <32 x i32> """
        + each([0xFFFFFFFF] * 32, 32)
        + """
  %uhi = select <32 x i1> %mv, <32 x i32> %u, <32 x i32> zeroinitializer
  %lo = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %ulo)
  %hi = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %uhi)
  %wide = sub i32 %hi, %lo
  %fits = icmp ult i32 %wide, 32
  br i1 %fits, label %one, label %slow
one:
  count %site S.wavefronts 1
  count %site S.ideal 1
  ret void
slow:
  %up = alloca <32 x i32>, align 64
  %cp = alloca <32 x i8>, align 32
  store <32 x i32> %u, ptr %up
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
  %here = shl i32 %first, %at
  %pm = and i32 %mask, %here
  %empty = icmp eq i32 %pm, 0
  store <32 x i8> zeroinitializer, ptr %cp
  br i1 %empty, label %phased, label %loop
loop:
  %rest = phi i32 [%pm, %phase], [%rest1, %loop]
  %max = phi i8 [0, %phase], [%max1, %loop]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %kz = zext i32 %k to i64
  %upk = getelementptr i32, ptr %up, i64 %kz
  %x = load i32, ptr %upk
  %xs = splat i32 %x
  %eq = icmp eq <32 x i32> %u, %xs
  %same = bitcast <32 x i1> %eq to i32
  %single = shl i32 1, %k
  %gone = select i1 %atomic, i32 %single, i32 %same
  %other = xor i32 %gone, -1
  %rest1 = and i32 %rest, %other
  %bank = and i32 %x, %banks
  %bz = zext i32 %bank to i64
  %cb = getelementptr i8, ptr %cp, i64 %bz
  %c = load i8, ptr %cb
  %c1 = add i8 %c, 1
  store i8 %c1, ptr %cb
  %max1 = call i8 @llvm.umax.i8(i8 %max, i8 %c1)
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %phased, label %loop
phased:
  %m = phi i8 [0, %phase], [%max1, %loop]
  %busy = phi i64 [0, %phase], [1, %loop]
  %mz = zext i8 %m to i64
  %waves1 = add i64 %waves, %mz
  %ideal1 = add i64 %ideal, %busy
  %at1 = add i32 %at, %group
  %over = icmp uge i32 %at1, 32
  br i1 %over, label %done, label %phase
done:
  count %site S.wavefronts %waves1
  count %site S.ideal %ideal1
  ret void
}"""
    )
