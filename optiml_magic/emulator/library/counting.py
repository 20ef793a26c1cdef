"""Sectors and lines of global and local requests, and contention of atomics: exact, per warp."""

from __future__ import annotations

from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.layout import MEETING, SLOTS
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
  %room = get %w W.log_room
  %logs = icmp ne i64 %room, 0
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
  %unseen = icmp ne i32 %seen, %stamp
  br i1 %unseen, label %first_read, label %notread
first_read:
  store i32 %stamp, ptr %st
  br i1 %logs, label %log, label %notread
log:
  call void @om_log(ptr %w, i32 %x)
  br label %notread
notread:
  %add = phi i64 [0, %loop], [0, %read], [1, %first_read], [1, %log]
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
    """For an atomic: the most lanes that meet at one address, less one; they take turns.

    And the turns of each sector, as many as lanes meet at one of its addresses at most, with the
    blocks that made them. ``kind`` has bit 3 where lanes that are all at one word are one update.
    """
    return expand(f"""
define internal void @om_count_contention(
    ptr %w, ptr %site, <32 x i64> %a, i32 %mask, i32 %kind
) noinline {{
entry:
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %skip, label %begin
skip:
  ret void
begin:
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %sectors = lshr <32 x i64> %a, {each([5] * 32, 64)}
  %met = get %w W.met
  %block = get %w W.block
  %b32 = trunc i64 %block to i32
  %stamp = add i32 %b32, 1
  %k8 = and i32 %kind, 8
  %merges = icmp ne i32 %k8, 0
  br label %sector
sector:
  %left = phi i32 [%mask, %begin], [%left1, %counted]
  %most = phi i32 [1, %begin], [%most1, %counted]
  %k = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %kz = zext i32 %k to i64
  %apk = getelementptr i64, ptr %ap, i64 %kz
  %x = load i64, ptr %apk
  %number = lshr i64 %x, 5
  %numbers = splat i64 %number
  %near0 = icmp eq <32 x i64> %sectors, %numbers
  %near1 = bitcast <32 x i1> %near0 to i32
  %near = and i32 %near1, %mask
  %far = xor i32 %near, -1
  %left1 = and i32 %left, %far
  br label %word
word:
  %rest = phi i32 [%near, %sector], [%rest1, %word]
  %turns = phi i32 [1, %sector], [%turns1, %word]
  %j = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %jz = zext i32 %j to i64
  %apj = getelementptr i64, ptr %ap, i64 %jz
  %y = load i64, ptr %apj
  %ys = splat i64 %y
  %eq = icmp eq <32 x i64> %a, %ys
  %same0 = bitcast <32 x i1> %eq to i32
  %same = and i32 %same0, %mask
  %other = xor i32 %same, -1
  %rest1 = and i32 %rest, %other
  %meet = call i32 @llvm.ctpop.i32(i32 %same)
  %turns1 = call i32 @llvm.umax.i32(i32 %turns, i32 %meet)
  %last_word = icmp eq i32 %rest1, 0
  br i1 %last_word, label %count, label %word
count:
  %most1 = call i32 @llvm.umax.i32(i32 %most, i32 %turns1)
  %all = icmp eq i32 %same, %mask
  %one = and i1 %all, %merges
  %taken32 = select i1 %one, i32 1, i32 %turns1
  %taken = zext i32 %taken32 to i64
  %slot = and i64 %number, {SLOTS - 1}
  %at = mul i64 %slot, {MEETING.size}
  %place = getelementptr i8, ptr %met, i64 %at
  %old = get %place E.turns
  %new = add i64 %old, %taken
  set %place E.turns %new
  %last = get %place E.stamp
  %known = icmp eq i32 %last, %stamp
  br i1 %known, label %counted, label %first
first:
  set %place E.stamp %stamp
  %blocks = get %place E.blocks
  %blocks1 = add i32 %blocks, 1
  set %place E.blocks %blocks1
  br label %counted
counted:
  %end = icmp eq i32 %left1, 0
  br i1 %end, label %done, label %sector
done:
  %more = sub i32 %most1, 1
  %morez = zext i32 %more to i64
  count %site S.contention %morez
  ret void
}}""")
