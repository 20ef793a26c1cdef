"""What arrivals at an mbarrier pass on to those who find their phase over.

PTX ISA, "mbarrier.arrive" and "mbarrier.test_wait": an arrival releases; a test that answers true
acquires what all arrivals of the completed phase released. So what is passed on is kept apart for
the phase that is under way, and a test that answers false, or for an earlier phase, passes nothing
of it. Between warps it is kept by warp, between the lanes of one warp by lane.
"""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import (
    ARRIVALS,
    MBARRIER,
    MBARRIER_BYTES,
    MOST_MBARRIERS,
    OVER,
    OVER_LANES,
    UNDER_WAY_LANES,
)
from optiml_magic.emulator.library import family
from optiml_magic.emulator.library.checking import MISSED


@family("om_watch_mbarrier")
def mbarrier() -> str:
    """The row of the mbarrier at a host address; null where there is none, or no room for it."""
    return expand(f"""
define internal ptr @om_watch_mbarrier(ptr %w, i64 %place, i1 %make) noinline {{
entry:
  %k = get %w W.watch
  %rows = get %k K.mbarriers
  %n = get %k K.mbarrier_count
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %o = mul i64 %i, {MBARRIER_BYTES}
  %row = getelementptr i8, ptr %rows, i64 %o
  %end = icmp eq i64 %i, %n
  br i1 %end, label %absent, label %look
look:
  %p = get %row M.place
  %own = icmp eq i64 %p, %place
  br i1 %own, label %found, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
found:
  ret ptr %row
absent:
  %full = icmp uge i64 %n, {MOST_MBARRIERS}
  %room = xor i1 %full, true
  %new = and i1 %room, %make
  br i1 %new, label %add, label %none
add:
  set %row M.place %place
  count %k K.mbarrier_count 1
  ret ptr %row
none:
  ret ptr null
}}""")


@family("om_watch_begun")
def begun() -> str:
    """An mbarrier begins anew at the address of each active lane: nobody has arrived there."""
    return expand(f"""
define internal void @om_watch_begun(ptr %w, <32 x i64> %a, i32 %mask) noinline {{
entry:
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  {_GO}
lane:
  {_LANE}
  %row = call ptr @om_watch_mbarrier(ptr %w, i64 %place, i1 false)
  %none = icmp eq ptr %row, null
  br i1 %none, label %next, label %clear
clear:
  set %row M.seen 0
  %body = getelementptr i8, ptr %row, i64 {MBARRIER.size}
  call void @llvm.memset.p0.i64(ptr %body, i8 0, i64 {32 * ARRIVALS}, i1 false)
  br label %next
{_NEXT}
}}""")


@family("om_watch_arrives")
def arrives() -> str:
    """The active lanes arrived, one by one: ``old`` is the word before, ``n`` how often each did.

    The arrival that ends a phase makes all that was passed on in it known to those who test it.
    Nobody may arrive in a phase before a test found the one before it over (PTX ISA, "Phase of the
    mbarrier object").
    """
    return expand(f"""
define internal void @om_watch_arrives(
    ptr %w, i32 %point, <32 x i64> %a, <32 x i64> %old, <32 x i64> %n, i32 %mask
) noinline {{
entry:
  %ap = alloca <32 x i64>, align 64
  %op = alloca <32 x i64>, align 64
  %np = alloca <32 x i64>, align 64
  %known = alloca <32 x i64>, align 64
  %rowp = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  store <32 x i64> %old, ptr %op
  store <32 x i64> %n, ptr %np
  %k = get %w W.watch
  %time = get %k K.time
  %after = add i64 %time, 1
  set %k K.time %after
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %warps = get %w W.warps
  %clocks = get %k K.clocks
  %co = shl i64 %nz, 5
  %cp = getelementptr i64, ptr %clocks, i64 %co
  %c0 = load <32 x i64>, ptr %cp, align 8
  store <32 x i64> %c0, ptr %known
  %ownp = getelementptr i64, ptr %known, i64 %nz
  store i64 %time, ptr %ownp
  %c = load <32 x i64>, ptr %known
  %lanes = get %k K.lanes
  %lo = shl i64 %nz, 10
  %mine = getelementptr i64, ptr %lanes, i64 %lo
  {_GO}
lane:
  {_LANE}
  %row = call ptr @om_watch_mbarrier(ptr %w, i64 %place, i1 true)
  %none = icmp eq ptr %row, null
  br i1 %none, label %next, label %add
add:
  %io = shl i64 %iz, 5
  %rp = getelementptr i64, ptr %mine, i64 %io
  %r0 = load <32 x i64>, ptr %rp, align 8
  store <32 x i64> %r0, ptr %rowp
  %selfp = getelementptr i64, ptr %rowp, i64 %iz
  store i64 %time, ptr %selfp
  %r = load <32 x i64>, ptr %rowp
  %body = getelementptr i8, ptr %row, i64 {MBARRIER.size}
  %so = mul i64 %nz, {ARRIVALS}
  %sp = getelementptr i8, ptr %body, i64 %so
  call void @om_watch_join_to(ptr %sp, <32 x i64> %c)
  %slp = getelementptr i8, ptr %sp, i64 {UNDER_WAY_LANES}
  call void @om_watch_join_to(ptr %slp, <32 x i64> %r)
  %oip = getelementptr i64, ptr %op, i64 %iz
  %word = load i64, ptr %oip
  %nip = getelementptr i64, ptr %np, i64 %iz
  %often = load i64, ptr %nip
  %phase = lshr i64 %word, 40
  %seen = get %row M.seen
  %missed = icmp ult i64 %seen, %phase
  br i1 %missed, label %early, label %count
early:
  %who = call i64 @om_watch_record(ptr %w, i32 %point, i32 %i)
  call void @om_watch_hazard(ptr %w, i64 {MISSED}, i64 %who, i64 %who, i64 0)
  br label %count
count:
  %high = lshr i64 %word, 20
  %pending = and i64 %high, 1048575
  %last = icmp eq i64 %pending, %often
  br i1 %last, label %pass, label %next
pass:
  %u = phi i32 [0, %count], [%u1, %pass]
  %uz = zext i32 %u to i64
  %uo = mul i64 %uz, {ARRIVALS}
  %from = getelementptr i8, ptr %body, i64 %uo
  %froml = getelementptr i8, ptr %from, i64 {UNDER_WAY_LANES}
  %to = getelementptr i8, ptr %from, i64 {OVER}
  %tol = getelementptr i8, ptr %from, i64 {OVER_LANES}
  %pc = load <32 x i64>, ptr %from, align 8
  %pl = load <32 x i64>, ptr %froml, align 8
  call void @om_watch_join_to(ptr %to, <32 x i64> %pc)
  call void @om_watch_join_to(ptr %tol, <32 x i64> %pl)
  store <32 x i64> zeroinitializer, ptr %from, align 8
  store <32 x i64> zeroinitializer, ptr %froml, align 8
  %u1 = add i32 %u, 1
  %uend = icmp eq i32 %u1, %warps
  br i1 %uend, label %next, label %pass
{_NEXT}
}}""")


@family("om_watch_passes")
def passes() -> str:
    """The active lanes found a phase over: what was passed on in it comes before what follows.

    Where there are more mbarriers than can be followed, the lanes count as knowing everything.
    """
    return expand(f"""
define internal void @om_watch_passes(ptr %w, <32 x i64> %a, i32 %mask) noinline {{
entry:
  %ap = alloca <32 x i64>, align 64
  %known = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %k = get %w W.watch
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %warps = get %w W.warps
  %clocks = get %k K.clocks
  %co = shl i64 %nz, 5
  %cp = getelementptr i64, ptr %clocks, i64 %co
  %lanes = get %k K.lanes
  %lo = shl i64 %nz, 10
  %mine = getelementptr i64, ptr %lanes, i64 %lo
  {_GO}
lane:
  {_LANE}
  call void @om_watch_leave(ptr %w, i64 %place)
  %row = call ptr @om_watch_mbarrier(ptr %w, i64 %place, i1 false)
  %none = icmp eq ptr %row, null
  br i1 %none, label %unknown, label %gather
unknown:
  %count = get %k K.mbarrier_count
  %full = icmp uge i64 %count, {MOST_MBARRIERS}
  %now = get %k K.time
  %ticked = add i64 %now, 1
  %all = splat i64 %now
  br i1 %full, label %trust, label %next
trust:
  set %k K.time %ticked
  call void @om_watch_join_to(ptr %cp, <32 x i64> %all)
  br label %learn
gather:
  %at = inttoptr i64 %place to ptr
  %word = load i64, ptr %at
  %phase = lshr i64 %word, 40
  set %row M.seen %phase
  %body = getelementptr i8, ptr %row, i64 {MBARRIER.size}
  br label %each
each:
  %u = phi i32 [0, %gather], [%u1, %each]
  %sum = phi <32 x i64> [zeroinitializer, %gather], [%sum1, %each]
  %uz = zext i32 %u to i64
  %uo = mul i64 %uz, {ARRIVALS}
  %from = getelementptr i8, ptr %body, i64 %uo
  %over = getelementptr i8, ptr %from, i64 {OVER}
  %v = load <32 x i64>, ptr %over, align 8
  %more = icmp ugt <32 x i64> %v, %sum
  %both = select <32 x i1> %more, <32 x i64> %v, <32 x i64> %sum
  %self = icmp eq i32 %u, %number
  %sum1 = select i1 %self, <32 x i64> %sum, <32 x i64> %both
  %u1 = add i32 %u, 1
  %uend = icmp eq i32 %u1, %warps
  br i1 %uend, label %warps_, label %each
warps_:
  call void @om_watch_join_to(ptr %cp, <32 x i64> %sum1)
  store <32 x i64> %sum1, ptr %known
  %backp = getelementptr i64, ptr %known, i64 %nz
  %back = load i64, ptr %backp
  %bs = splat i64 %back
  %so = mul i64 %nz, {ARRIVALS}
  %sp = getelementptr i8, ptr %body, i64 %so
  %slp = getelementptr i8, ptr %sp, i64 {OVER_LANES}
  %near = load <32 x i64>, ptr %slp, align 8
  %further = icmp ugt <32 x i64> %bs, %near
  %told = select <32 x i1> %further, <32 x i64> %bs, <32 x i64> %near
  br label %learn
learn:
  %knows = phi <32 x i64> [%all, %trust], [%told, %warps_]
  %io = shl i64 %iz, 5
  %rp = getelementptr i64, ptr %mine, i64 %io
  call void @om_watch_join_to(ptr %rp, <32 x i64> %knows)
  br label %next
{_NEXT}
}}""")


@family("om_watch_join_to")
def join_to() -> str:
    return """
define internal void @om_watch_join_to(ptr %to, <32 x i64> %v) alwaysinline {
  %old = load <32 x i64>, ptr %to, align 8
  %more = icmp ugt <32 x i64> %v, %old
  %sum = select <32 x i1> %more, <32 x i64> %v, <32 x i64> %old
  store <32 x i64> %sum, ptr %to, align 8
  ret void
}"""


# A loop over the active lanes: %i is the lane, %place its address.
_GO = """%bad = get %w W.fault_kind
  %healthy = icmp eq i32 %bad, 0
  %some = icmp ne i32 %mask, 0
  %go = and i1 %healthy, %some
  br i1 %go, label %lane, label %done"""
_LANE = """%rest = phi i32 [%mask, %entry], [%rest1, %next]
  %i = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %iz = zext i32 %i to i64
  %hp = getelementptr i64, ptr %ap, i64 %iz
  %place = load i64, ptr %hp"""
_NEXT = """next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void"""
