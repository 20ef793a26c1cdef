"""What fences and strong accesses pass on, between warps and between blocks.

What a warp knew at its last fence is published by its next strong write, under that address and its
block; a strong read of the address acquires it.
"""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import (
    ACQUIRED,
    MOST_ACQUIRED,
    MOST_RELEASES,
    RELEASE,
    RELEASED,
    TIME_SHIFT,
)
from optiml_magic.emulator.library import family


@family("om_watch_fence")
def fence() -> str:
    """What this warp knows by now may be published by a strong write that follows."""
    return expand("""
define internal void @om_watch_fence(ptr %w) noinline {
  %k = get %w W.watch
  %time = get %k K.time
  %after = add i64 %time, 1
  set %k K.time %after
  set %k K.fenced 1
  %settled = get %k K.settled
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %o = shl i64 %nz, 5
  %clocks = get %k K.clocks
  %cp = getelementptr i64, ptr %clocks, i64 %o
  %c = load <32 x i64>, ptr %cp, align 8
  %ss = splat i64 %settled
  %more = icmp ugt <32 x i64> %c, %ss
  %known = select <32 x i1> %more, <32 x i64> %c, <32 x i64> %ss
  %fences = get %k K.fences
  %fp = getelementptr i64, ptr %fences, i64 %o
  store <32 x i64> %known, ptr %fp, align 8
  %own = getelementptr i64, ptr %fp, i64 %nz
  store i64 %time, ptr %own
  ret void
}""")


@family("om_watch_slot")
def slot() -> str:
    """The entry of a place and a block in the table of releases; null where it is not wanted."""
    return expand(f"""
define internal ptr @om_watch_slot(ptr %w, i64 %place, i64 %ordinal, i1 %make) noinline {{
entry:
  %k = get %w W.watch
  %table = get %k K.releases
  %h0 = mul i64 %place, -7046029254386353131
  %h1 = mul i64 %ordinal, -4417276706812531889
  %h2 = xor i64 %h0, %h1
  %h3 = lshr i64 %h2, 40
  br label %probe
probe:
  %n = phi i64 [%h3, %entry], [%n1, %other]
  %index = and i64 %n, {MOST_RELEASES - 1}
  %o = mul i64 %index, {RELEASE.size}
  %row = getelementptr i8, ptr %table, i64 %o
  %p = get %row L.place
  %empty = icmp eq i64 %p, 0
  br i1 %empty, label %free, label %compare
compare:
  %q = get %row L.ordinal
  %e0 = icmp eq i64 %p, %place
  %e1 = icmp eq i64 %q, %ordinal
  %e = and i1 %e0, %e1
  br i1 %e, label %found, label %other
other:
  %n1 = add i64 %n, 1
  br label %probe
found:
  ret ptr %row
free:
  %entries = get %k K.entries
  %full = icmp uge i64 %entries, {MOST_RELEASES * 3 // 4}
  br i1 %make, label %room, label %no
room:
  br i1 %full, label %crowded, label %new
crowded:
  set %k K.trusting 1
  br label %no
no:
  ret ptr null
new:
  set %row L.place %place
  set %row L.ordinal %ordinal
  count %k K.entries 1
  ret ptr %row
}}""")


@family("om_watch_publish")
def publish() -> str:
    """A strong write after a fence: what was fenced can be acquired from this place."""
    return expand(f"""
define internal void @om_watch_publish(ptr %w, i64 %place) noinline {{
entry:
  %k = get %w W.watch
  %fenced = get %k K.fenced
  %some = icmp ne i64 %fenced, 0
  br i1 %some, label %go, label %done
go:
  %ordinal = get %k K.ordinal
  call void @om_watch_release(ptr %w, i64 %place, i64 %ordinal)
  %inner = call i1 @om_watch_inner(ptr %w, i64 %place)
  br i1 %inner, label %mark, label %outer
outer:
  call void @om_watch_release(ptr %w, i64 1, i64 %ordinal)
  br label %mark
mark:
  %any = call ptr @om_watch_slot(ptr %w, i64 %place, i64 -1, i1 true)
  %none = icmp eq ptr %any, null
  br i1 %none, label %done, label %chain
chain:
  %list = get %k K.acquired
  %n = get %k K.acquired_count
  br label %loop
loop:
  %i = phi i64 [0, %chain], [%i1, %next]
  %end = icmp eq i64 %i, %n
  br i1 %end, label %done, label %look
look:
  %o = mul i64 %i, {ACQUIRED.size}
  %row = getelementptr i8, ptr %list, i64 %o
  %p = get %row Q.place
  %own = icmp eq i64 %p, %place
  br i1 %own, label %next, label %linked
linked:
  set %any L.chained 1
  br label %done
next:
  %i1 = add i64 %i, 1
  br label %loop
done:
  ret void
}}""")


@family("om_watch_inner")
def inner() -> str:
    """Whether a host address lies in shared memory, which orders nothing between blocks."""
    return expand("""
define internal i1 @om_watch_inner(ptr %w, i64 %place) alwaysinline {
  %shared = get %w W.shared
  %si = ptrtoint ptr %shared to i64
  %rel = sub i64 %place, %si
  %size = get %w W.shared_size
  %r = icmp ult i64 %rel, %size
  ret i1 %r
}""")


@family("om_watch_release")
def release() -> str:
    return expand(f"""
define internal void @om_watch_release(ptr %w, i64 %place, i64 %ordinal) noinline {{
  %k = get %w W.watch
  %row = call ptr @om_watch_slot(ptr %w, i64 %place, i64 %ordinal, i1 true)
  %none = icmp eq ptr %row, null
  br i1 %none, label %done, label %write
write:
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %o = shl i64 %nz, 5
  %fences = get %k K.fences
  %fp = getelementptr i64, ptr %fences, i64 %o
  %f = load <32 x i64>, ptr %fp, align 8
  %rp = getelementptr i8, ptr %row, i64 {RELEASED}
  %r = load <32 x i64>, ptr %rp, align 8
  %more = icmp ugt <32 x i64> %f, %r
  %sum = select <32 x i1> %more, <32 x i64> %f, <32 x i64> %r
  store <32 x i64> %sum, ptr %rp, align 8
  br label %done
done:
  ret void
}}""")


@family("om_watch_acquire")
def acquire() -> str:
    """A strong read: what others published at this place comes before what follows."""
    return expand(f"""
define internal void @om_watch_acquire(ptr %w, i64 %place) noinline {{
entry:
  %k = get %w W.watch
  %entries = get %k K.entries
  %empty = icmp eq i64 %entries, 0
  br i1 %empty, label %done, label %ask
ask:
  %any = call ptr @om_watch_slot(ptr %w, i64 %place, i64 -1, i1 false)
  %none = icmp eq ptr %any, null
  br i1 %none, label %done, label %some
some:
  %ordinal = get %k K.ordinal
  %own = call ptr @om_watch_slot(ptr %w, i64 %place, i64 %ordinal, i1 false)
  %alone = icmp eq ptr %own, null
  br i1 %alone, label %others, label %siblings
siblings:
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %o = shl i64 %nz, 5
  %clocks = get %k K.clocks
  %cp = getelementptr i64, ptr %clocks, i64 %o
  %c = load <32 x i64>, ptr %cp, align 8
  %rp = getelementptr i8, ptr %own, i64 {RELEASED}
  %r = load <32 x i64>, ptr %rp, align 8
  %more = icmp ugt <32 x i64> %r, %c
  %sum = select <32 x i1> %more, <32 x i64> %r, <32 x i64> %c
  store <32 x i64> %sum, ptr %cp, align 8
  br label %others
others:
  %inner = call i1 @om_watch_inner(ptr %w, i64 %place)
  br i1 %inner, label %done, label %outer
outer:
  call void @om_watch_take(ptr %w, i64 %place)
  %chained = get %any L.chained
  %linked = icmp ne i64 %chained, 0
  br i1 %linked, label %wide, label %done
wide:
  call void @om_watch_take(ptr %w, i64 1)
  br label %done
done:
  ret void
}}""")


@family("om_watch_take")
def take() -> str:
    """Note that the running warp acquired from a place, unless it has before."""
    return expand(f"""
define internal void @om_watch_take(ptr %w, i64 %place) noinline {{
entry:
  %k = get %w W.watch
  %list = get %k K.acquired
  %n = get %k K.acquired_count
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %o = mul i64 %i, {ACQUIRED.size}
  %row = getelementptr i8, ptr %list, i64 %o
  %end = icmp eq i64 %i, %n
  br i1 %end, label %new, label %look
look:
  %p = get %row Q.place
  %u = get %row Q.warp
  %e0 = icmp eq i64 %p, %place
  %e1 = icmp eq i64 %u, %nz
  %e = and i1 %e0, %e1
  br i1 %e, label %done, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
new:
  %full = icmp uge i64 %n, {MOST_ACQUIRED}
  br i1 %full, label %crowded, label %add
crowded:
  set %k K.trusting 1
  br label %done
add:
  set %row Q.place %place
  set %row Q.warp %nz
  %time = get %k K.time
  set %row Q.time %time
  count %k K.acquired_count 1
  br label %done
done:
  ret void
}}""")


@family("om_watch_across")
def across() -> str:
    """Whether an access of an earlier block was published to what this warp acquired."""
    return expand(f"""
define internal i1 @om_watch_across(ptr %w, i64 %rec) noinline {{
entry:
  %k = get %w W.watch
  %n = get %k K.acquired_count
  %trusting = get %k K.trusting
  %trust = icmp ne i64 %trusting, 0
  br i1 %trust, label %yes, label %any
any:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %search, label %no
search:
  %t = lshr i64 %rec, {TIME_SHIFT}
  %starts = get %k K.starts
  %mine = get %k K.ordinal
  br label %bisect
bisect:
  %lo = phi i64 [0, %search], [%lo1, %halve]
  %hi = phi i64 [%mine, %search], [%hi1, %halve]
  %width = sub i64 %hi, %lo
  %found = icmp ule i64 %width, 1
  br i1 %found, label %list, label %halve
halve:
  %sum = add i64 %lo, %hi
  %mid = lshr i64 %sum, 1
  %mp = getelementptr i64, ptr %starts, i64 %mid
  %m = load i64, ptr %mp
  %under = icmp ule i64 %m, %t
  %lo1 = select i1 %under, i64 %mid, i64 %lo
  %hi1 = select i1 %under, i64 %hi, i64 %mid
  br label %bisect
list:
  %rows = get %k K.acquired
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %settled = get %k K.settled
  %u0 = lshr i64 %rec, 5
  %u = and i64 %u0, 31
  br label %loop
loop:
  %i = phi i64 [0, %list], [%i1, %next]
  %end = icmp eq i64 %i, %n
  br i1 %end, label %no, label %look
look:
  %o = mul i64 %i, {ACQUIRED.size}
  %row = getelementptr i8, ptr %rows, i64 %o
  %aw = get %row Q.warp
  %at = get %row Q.time
  %self = icmp eq i64 %aw, %nz
  %past = icmp ule i64 %at, %settled
  %c0 = get %k K.clocks
  %c1 = shl i64 %nz, 5
  %c2 = or i64 %c1, %aw
  %c3 = getelementptr i64, ptr %c0, i64 %c2
  %c4 = load i64, ptr %c3
  %told = icmp ule i64 %at, %c4
  %k0 = or i1 %self, %past
  %k1 = or i1 %k0, %told
  br i1 %k1, label %ask, label %next
ask:
  %place = get %row Q.place
  %e = call ptr @om_watch_slot(ptr %w, i64 %place, i64 %lo, i1 false)
  %none = icmp eq ptr %e, null
  br i1 %none, label %next, label %compare
compare:
  %rp = getelementptr i8, ptr %e, i64 {RELEASED}
  %fp = getelementptr i64, ptr %rp, i64 %u
  %f = load i64, ptr %fp
  %covered = icmp ule i64 %t, %f
  br i1 %covered, label %yes, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}""")


@family(r"om_watch_each_(acquire|publish)")
def each_lane(what: str) -> str:
    """Acquire or publish at the place of each active lane."""
    return expand(f"""
define internal void @om_watch_each_{what}(ptr %w, <32 x i64> %a, i32 %mask) noinline {{
entry:
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %bad = get %w W.fault_kind
  %healthy = icmp eq i32 %bad, 0
  %some = icmp ne i32 %mask, 0
  %go = and i1 %healthy, %some
  br i1 %go, label %lane, label %done
lane:
  %rest = phi i32 [%mask, %entry], [%rest1, %lane]
  %i = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %iz = zext i32 %i to i64
  %hp = getelementptr i64, ptr %ap, i64 %iz
  %h = load i64, ptr %hp
  call void @om_watch_{what}(ptr %w, i64 %h)
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void
}}""")
