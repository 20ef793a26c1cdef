"""What a checked kernel calls: shadow cells of memory, and who is ordered before whom.

Every access leaves a record (time, strength, point, warp, lane) in the cells that it covers: one
for the last write, three for reads. Two accesses conflict if one writes and nothing orders them.
The clock ticks at each act of synchronisation; knowledge of other lanes, warps and blocks is the
time up to which their accesses come first (FastTrack, Flanagan and Freund 2009, over the scopes of
HiRace). Blocks run one after the other on one host thread, so a time names its block too.

Here is how hazards are kept; ``cells`` has the accesses, ``ordering`` and ``releases`` the order,
``copies`` what is under way.
"""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import HAZARD, MOST_HAZARDS, POINT_BITS, POINT_SHIFT, TIME_SHIFT
from optiml_magic.emulator.library import family

# Validity of a byte: 0 nobody wrote it, 1 it is defined, more: 1 + the point where the undefined
# value that was stored here came from (0 again for points beyond a byte), 255 it is being copied.
ORIGINS, IN_FLIGHT = 253, 255
# The kinds of HAZARD; races are ordered by how far apart the two threads are.
WITHIN_WARP, WITHIN_BLOCK, ACROSS, UNDEFINED, ABSENT, OUTSIDER, GONE, SPLIT, FLYING, MISSED = range(
    1, 11
)
VOLATILE, ATOMIC, SWAP = 1, 2, 3  # strengths; 0 is an ordinary access


@family("om_watch_hazard")
def hazard() -> str:
    """Count a hazard under its kind and its two points; the first of each is kept."""
    points = ((1 << POINT_BITS) - 1) << POINT_SHIFT
    return expand(f"""
define internal void @om_watch_hazard(
    ptr %w, i64 %kind, i64 %mine, i64 %other, i64 %host
) cold noinline {{
entry:
  %k = get %w W.watch
  %rows = get %k K.hazards
  %n = get %k K.hazard_count
  %pm = and i64 %mine, {points}
  %po = and i64 %other, {points}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %o = mul i64 %i, {HAZARD.size}
  %row = getelementptr i8, ptr %rows, i64 %o
  %end = icmp eq i64 %i, %n
  br i1 %end, label %fresh, label %compare
compare:
  %hk = get %row H.kind
  %hm = get %row H.mine
  %ho = get %row H.other
  %hpm = and i64 %hm, {points}
  %hpo = and i64 %ho, {points}
  %e0 = icmp eq i64 %hk, %kind
  %e1 = icmp eq i64 %hpm, %pm
  %e2 = icmp eq i64 %hpo, %po
  %e3 = and i1 %e0, %e1
  %e4 = and i1 %e3, %e2
  br i1 %e4, label %known, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
known:
  count %row H.count 1
  ret void
fresh:
  %full = icmp uge i64 %n, {MOST_HAZARDS}
  br i1 %full, label %done, label %keep
keep:
  set %row H.kind %kind
  set %row H.mine %mine
  set %row H.other %other
  set %row H.host %host
  %block = get %w W.block
  set %row H.block %block
  set %row H.count 1
  count %k K.hazard_count 1
  br label %done
done:
  ret void
}}""")


@family("om_watch_race")
def race() -> str:
    """A conflict that nothing orders, by the nearest thing that could have ordered it."""
    return expand(f"""
define internal void @om_watch_race(ptr %w, i64 %mine, i64 %other, i64 %host) cold noinline {{
  %k = get %w W.watch
  %began = get %k K.began
  %t = lshr i64 %other, {TIME_SHIFT}
  %foreign = icmp ult i64 %t, %began
  %wm = and i64 %mine, 992
  %wo = and i64 %other, 992
  %same = icmp eq i64 %wm, %wo
  %near = select i1 %same, i64 {WITHIN_WARP}, i64 {WITHIN_BLOCK}
  %kind = select i1 %foreign, i64 {ACROSS}, i64 %near
  call void @om_watch_hazard(ptr %w, i64 %kind, i64 %mine, i64 %other, i64 %host)
  ret void
}}""")


@family("om_watch_block")
def begin_block() -> str:
    """A block begins: nothing in its shared and local memory is defined."""
    return expand("""
define internal void @om_watch_block(ptr %w, i64 %ordinal) noinline {
  %k = get %w W.watch
  %t0 = get %k K.time
  %t = add i64 %t0, 1
  set %k K.began %t
  set %k K.settled %t
  %after = add i64 %t, 1
  set %k K.time %after
  set %k K.ordinal %ordinal
  %starts = get %k K.starts
  %start = getelementptr i64, ptr %starts, i64 %ordinal
  store i64 %t, ptr %start
  set %k K.fenced 0
  set %k K.acquired_count 0
  set %k K.flight_count 0
  %sv = get %k K.shared_valid
  %ss = get %w W.shared_size
  call void @llvm.memset.p0.i64(ptr %sv, i8 0, i64 %ss, i1 false)
  %lv = get %k K.local_valid
  %ls = get %w W.local_size
  %warps = get %w W.warps
  %wz = zext i32 %warps to i64
  %l0 = mul i64 %ls, %wz
  %l1 = shl i64 %l0, 5
  call void @llvm.memset.p0.i64(ptr %lv, i8 0, i64 %l1, i1 false)
  ret void
}""")


@family("om_watch_record")
def record() -> str:
    return expand(f"""
define internal i64 @om_watch_record(ptr %w, i32 %point, i32 %lane) alwaysinline {{
  %k = get %w W.watch
  %time = get %k K.time
  %number = get %w W.warp
  %b0 = shl i64 %time, {TIME_SHIFT}
  %b3 = zext i32 %point to i64
  %b4 = shl i64 %b3, {POINT_SHIFT}
  %b5 = zext i32 %number to i64
  %b6 = shl i64 %b5, 5
  %b7 = zext i32 %lane to i64
  %b8 = or i64 %b0, %b4
  %b9 = or i64 %b6, %b7
  %r = or i64 %b8, %b9
  ret i64 %r
}}""")


@family("om_watch_arrival")
def arrival() -> str:
    return expand(f"""
define internal i64 @om_watch_arrival(ptr %w, i32 %point, i32 %warp) alwaysinline {{
  %k = get %w W.watch
  %time = get %k K.time
  %b0 = shl i64 %time, {TIME_SHIFT}
  %b3 = zext i32 %point to i64
  %b4 = shl i64 %b3, {POINT_SHIFT}
  %b5 = zext i32 %warp to i64
  %b6 = shl i64 %b5, 5
  %b8 = or i64 %b0, %b4
  %r = or i64 %b8, %b6
  ret i64 %r
}}""")


@family("om_watch_used")
def used() -> str:
    """An undefined value of the lanes ``undef`` decides something that cannot be taken back."""
    return expand(f"""
define internal void @om_watch_used(ptr %w, i32 %point, i32 %origin, i32 %undef) noinline {{
  %none = icmp eq i32 %undef, 0
  br i1 %none, label %done, label %some
some:
  %k = get %w W.watch
  %lane = call i32 @llvm.cttz.i32(i32 %undef, i1 true)
  %mine = call i64 @om_watch_record(ptr %w, i32 %point, i32 %lane)
  %other = call i64 @om_watch_record(ptr %w, i32 %origin, i32 %lane)
  %oz = zext i32 %origin to i64
  %origins = get %k K.origins
  %op = getelementptr i64, ptr %origins, i64 %oz
  %h = load i64, ptr %op
  call void @om_watch_hazard(ptr %w, i64 {UNDEFINED}, i64 %mine, i64 %other, i64 %h)
  br label %done
done:
  ret void
}}""")


@family("om_watch_trace")
def trace() -> str:
    """Where an undefined value came from: from here, unless a store has brought it.

    False for what is only not there yet: that is a race with the copy, and reported as such.
    """
    return expand(f"""
define internal i1 @om_watch_trace(
    ptr %w, i64 %point, ptr %valid, i64 %width, i64 %h, i64 %me, ptr %cell
) cold noinline {{
entry:
  %k = get %w W.watch
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %end = icmp eq i64 %i, %width
  br i1 %end, label %here, label %look
look:
  %p = getelementptr i8, ptr %valid, i64 %i
  %v = load i8, ptr %p
  %flying = icmp eq i8 %v, -1
  br i1 %flying, label %copied, label %stored
copied:
  %wr = load i64, ptr %cell
  call void @om_watch_hazard(ptr %w, i64 {FLYING}, i64 %me, i64 %wr, i64 %h)
  ret i1 false
stored:
  %brought = icmp ugt i8 %v, 1
  br i1 %brought, label %there, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
there:
  %vz = zext i8 %v to i64
  %from = sub i64 %vz, 1
  set %k K.origin %from
  ret i1 true
here:
  set %k K.origin %point
  %origins = get %k K.origins
  %origin = getelementptr i64, ptr %origins, i64 %point
  store i64 %h, ptr %origin
  ret i1 true
}}""")
