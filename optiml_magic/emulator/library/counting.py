"""Sectors of global and local requests, wavefronts of shared ones: exact, per warp."""

from __future__ import annotations

from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.library import family


@family("om_count_sectors")
def count_sectors() -> str:
    """Distinct sector numbers among the active lanes, times ``scale``; ``kind`` marks them.

    ``kind`` has bit 0 for sectors that are read and bit 1 for sectors that are written. Lanes whose
    sectors do not decrease, perhaps twice over in both half-warps, are counted without a search.
    """
    previous = ", ".join(f"i32 {max(lane - 1, 0)}" for lane in range(32))
    return expand(
        f"""
define internal void @om_count_sectors(
    ptr %w, ptr %site, <32 x i32> %s, i32 %mask, i64 %width, i32 %kind, i64 %scale
) noinline {{
entry:
  %sp = alloca <32 x i32>, align 64
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %skip, label %begin
skip:
  ret void
begin:
  %block = get %w W.block
  %b32 = trunc i64 %block to i32
  %stamp = add i32 %b32, 1
  %warp = get %w W.warp
  %warpz = zext i32 %warp to i64
  %awake = get %w W.warp_stamps
  %ap = getelementptr i32, ptr %awake, i64 %warpz
  %aold = load i32, ptr %ap
  %known = icmp eq i32 %aold, %stamp
  br i1 %known, label %look, label %wakes
wakes:
  store i32 %stamp, ptr %ap
  count %w W.memory_warps 1
  br label %look
look:
  %full = icmp eq i32 %mask, -1
  br i1 %full, label %whole, label %partial
whole:
  %low = shufflevector <32 x i32> %s, <32 x i32> undef, <16 x i32> <{_numbers(0, 16)}>
  %high = shufflevector <32 x i32> %s, <32 x i32> undef, <16 x i32> <{_numbers(16, 32)}>
  %twice0 = icmp eq <16 x i32> %low, %high
  %twice1 = bitcast <16 x i1> %twice0 to i16
  %twice = icmp eq i16 %twice1, -1
  %lanes0 = select i1 %twice, i32 65535, i32 -1
  br label %order
partial:
  %mv = bitcast i32 %mask to <32 x i1>
  %first = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %least0 = extractelement <32 x i32> %s, i32 %first
  %leasts = splat i32 %least0
  %kept = select <32 x i1> %mv, <32 x i32> %s, <32 x i32> %leasts
{_running_maximum("%kept", "%filled")}
  br label %order
order:
  %t = phi <32 x i32> [%s, %whole], [%filled, %partial]
  %lanes1 = phi i32 [%lanes0, %whole], [%mask, %partial]
  %before = shufflevector <32 x i32> %t, <32 x i32> undef, <32 x i32> <{previous}>
  %falls0 = icmp ult <32 x i32> %s, %before
  %falls1 = bitcast <32 x i1> %falls0 to i32
  %falls = and i32 %falls1, %lanes1
  %sorted = icmp eq i32 %falls, 0
  br i1 %sorted, label %rising, label %unsorted
rising:
  %lead0 = call i32 @llvm.cttz.i32(i32 %lanes1, i1 true)
  %lead = shl i32 1, %lead0
  %new0 = icmp ne <32 x i32> %s, %before
  %new1 = bitcast <32 x i1> %new0 to i32
  %new2 = or i32 %new1, %lead
  %new = and i32 %new2, %lanes1
  %ln = lshr <32 x i32> %s, {each([2] * 32, 32)}
  %lb = lshr <32 x i32> %before, {each([2] * 32, 32)}
  %newl0 = icmp ne <32 x i32> %ln, %lb
  %newl1 = bitcast <32 x i1> %newl0 to i32
  %newl2 = or i32 %newl1, %lead
  %newl = and i32 %newl2, %lanes1
  %lr32 = call i32 @llvm.ctpop.i32(i32 %newl)
  br label %mark
unsorted:
  %found = call i64 @om_distinct(<32 x i32> %s, i32 %mask)
  %distinct = trunc i64 %found to i32
  %lu = lshr i64 %found, 32
  %lu32 = trunc i64 %lu to i32
  br label %mark
mark:
  %each = phi i32 [%new, %rising], [%distinct, %unsorted]
  %l32 = phi i32 [%lr32, %rising], [%lu32, %unsorted]
  %n32 = call i32 @llvm.ctpop.i32(i32 %each)
  %nz = zext i32 %n32 to i64
  %lz = zext i32 %l32 to i64
  %untracked = icmp eq i32 %kind, 0
  br i1 %untracked, label %done, label %spread
spread:
  store <32 x i32> %s, ptr %sp
  %stamps = get %w W.stamps
  %written = get %w W.written
  %k0 = and i32 %kind, 1
  %reads = icmp ne i32 %k0, 0
  %k1 = and i32 %kind, 2
  %writes = icmp ne i32 %k1, 0
  br label %loop
loop:
  %rest = phi i32 [%each, %spread], [%rest1, %next]
  %fresh = phi i64 [0, %spread], [%fresh1, %next]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %spk = getelementptr i32, ptr %sp, i64 %kz
  %x = load i32, ptr %spk
  %xz = zext i32 %x to i64
  br i1 %reads, label %read, label %notread
read:
  %st = getelementptr i32, ptr %stamps, i64 %xz
  %seen = load i32, ptr %st
  store i32 %stamp, ptr %st
  %unseen = icmp ne i32 %seen, %stamp
  %one = zext i1 %unseen to i64
  br label %notread
notread:
  %add = phi i64 [0, %loop], [%one, %read]
  %fresh1 = add i64 %fresh, %add
  br i1 %writes, label %write, label %next
write:
  %wr = getelementptr i8, ptr %written, i64 %xz
  store i8 1, ptr %wr
  br label %next
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %marked, label %loop
marked:
  count %w W.read_per_block %fresh1
  br label %done
done:
  %sectors = mul i64 %nz, %scale
  %lanes32 = call i32 @llvm.ctpop.i32(i32 %mask)
  %lanes = zext i32 %lanes32 to i64
  %bytes = mul i64 %lanes, %width
  %up = add i64 %bytes, 31
  %ideal0 = lshr i64 %up, 5
  %ideal = call i64 @llvm.umin.i64(i64 %ideal0, i64 %sectors)
  count %site S.requests 1
  count %site S.sectors %sectors
  count %site S.ideal %ideal
  count %site S.lanes %lanes
  count %site S.lines %lz
  ret void
}}"""
    )


def _numbers(first: int, last: int) -> str:
    return ", ".join(f"i32 {lane}" for lane in range(first, last))


def _running_maximum(value: str, result: str) -> str:
    """Each lane the maximum of itself and all lanes before it, in five steps."""
    lines = []
    for step in (1, 2, 4, 8, 16):
        name = result if step == 16 else f"{result}.{step}"
        earlier = ", ".join(f"i32 {max(lane - step, 0)}" for lane in range(32))
        type_, shifted = "<32 x i32>", f"{result}.e{step}"
        lines += [
            f"  {shifted} = shufflevector {type_} {value}, {type_} undef, {type_} <{earlier}>",
            f"  {name} = call {type_} @llvm.umax.v32i32({type_} {value}, {type_} {shifted})",
        ]
        value = name
    return "\n".join(lines)


@family("om_distinct")
def distinct() -> str:
    """The first lane of each distinct sector, and in the upper half how many 128-byte lines."""
    return expand(
        f"""
define internal i64 @om_distinct(<32 x i32> %s, i32 %mask) noinline {{
entry:
  %sp = alloca <32 x i32>, align 64
  store <32 x i32> %s, ptr %sp
  %lines = lshr <32 x i32> %s, {each([2] * 32, 32)}
  br label %loop
loop:
  %rest = phi i32 [%mask, %entry], [%rest1, %loop]
  %each = phi i32 [0, %entry], [%each1, %loop]
  %l = phi i64 [0, %entry], [%l1, %loop]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %bit = shl i32 1, %k
  %each1 = or i32 %each, %bit
  %kz = zext i32 %k to i64
  %spk = getelementptr i32, ptr %sp, i64 %kz
  %x = load i32, ptr %spk
  %xs = splat i32 %x
  %eq = icmp eq <32 x i32> %s, %xs
  %same = bitcast <32 x i1> %eq to i32
  %other = xor i32 %same, -1
  %rest1 = and i32 %rest, %other
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
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %loop
done:
  %low = zext i32 %each1 to i64
  %high = shl i64 %l1, 32
  %both = or i64 %low, %high
  ret i64 %both
}}"""
    )


@family("om_count_contention")
def count_contention() -> str:
    """For an atomic: the most lanes that meet at one address, less one; they take turns."""
    return expand("""
define internal void @om_count_contention(ptr %site, <32 x i64> %a, i32 %mask) noinline {
entry:
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %skip, label %begin
skip:
  ret void
begin:
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  br label %loop
loop:
  %rest = phi i32 [%mask, %begin], [%rest1, %loop]
  %most = phi i32 [1, %begin], [%most1, %loop]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %kz = zext i32 %k to i64
  %apk = getelementptr i64, ptr %ap, i64 %kz
  %x = load i64, ptr %apk
  %xs = splat i64 %x
  %eq = icmp eq <32 x i64> %a, %xs
  %same0 = bitcast <32 x i1> %eq to i32
  %same = and i32 %same0, %mask
  %other = xor i32 %same, -1
  %rest1 = and i32 %rest, %other
  %meet = call i32 @llvm.ctpop.i32(i32 %same)
  %most1 = call i32 @llvm.umax.i32(i32 %most, i32 %meet)
  %left = call i32 @llvm.ctpop.i32(i32 %rest1)
  %end = icmp ule i32 %left, %most1
  br i1 %end, label %done, label %loop
done:
  %turns = sub i32 %most1, 1
  %turnsz = zext i32 %turns to i64
  count %site S.contention %turnsz
  ret void
}""")


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
  %atomic = icmp eq i32 %kind, 3
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
