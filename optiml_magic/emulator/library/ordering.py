"""Who is ordered before whom: lanes, warps and the barriers at which they meet."""

from __future__ import annotations

from optiml_magic.emulator.ir import constant, each, expand
from optiml_magic.emulator.layout import TIME_SHIFT
from optiml_magic.emulator.library import family
from optiml_magic.emulator.library.checking import ABSENT, GONE, OUTSIDER, SPLIT


@family("om_watch_before")
def before() -> str:
    """Whether the access of a record comes before what this lane does now."""
    return expand(f"""
define internal i1 @om_watch_before(ptr %w, i32 %lane, i64 %rec, i64 %floor) alwaysinline {{
entry:
  %k = get %w W.watch
  %t = lshr i64 %rec, {TIME_SHIFT}
  %began = get %k K.began
  %settled = get %k K.settled
  %void = icmp ult i64 %t, %floor
  %rel = sub i64 %t, %began
  %span = sub i64 %settled, %began
  %old = icmp ule i64 %rel, %span
  %easy = or i1 %void, %old
  br i1 %easy, label %done, label %slow
slow:
  %r = call i1 @om_watch_ordered(ptr %w, i32 %lane, i64 %rec)
  br label %done
done:
  %b = phi i1 [true, %entry], [%r, %slow]
  ret i1 %b
}}""")


@family("om_watch_ordered")
def ordered() -> str:
    return expand(f"""
define internal i1 @om_watch_ordered(ptr %w, i32 %lane, i64 %rec) noinline {{
entry:
  %k = get %w W.watch
  %t = lshr i64 %rec, {TIME_SHIFT}
  %began = get %k K.began
  %foreign = icmp ult i64 %t, %began
  br i1 %foreign, label %other, label %within
other:
  %x = call i1 @om_watch_across(ptr %w, i64 %rec)
  ret i1 %x
within:
  %u0 = lshr i64 %rec, 5
  %u = and i64 %u0, 31
  %mine32 = get %w W.warp
  %mine = zext i32 %mine32 to i64
  %same = icmp eq i64 %u, %mine
  br i1 %same, label %sibling, label %warps
warps:
  %clocks = get %k K.clocks
  %o0 = shl i64 %mine, 5
  %o1 = or i64 %o0, %u
  %cp = getelementptr i64, ptr %clocks, i64 %o1
  %known = load i64, ptr %cp
  %b0 = icmp ule i64 %t, %known
  ret i1 %b0
sibling:
  %l = and i64 %rec, 31
  %me = zext i32 %lane to i64
  %self = icmp eq i64 %l, %me
  br i1 %self, label %yes, label %met
yes:
  ret i1 true
met:
  %bases = get %k K.bases
  %bp = getelementptr i64, ptr %bases, i64 %mine
  %base = load i64, ptr %bp
  %all = icmp ule i64 %t, %base
  br i1 %all, label %yes, label %pair
pair:
  %lanes = get %k K.lanes
  %p0 = shl i64 %mine, 10
  %p1 = shl i64 %me, 5
  %p2 = or i64 %p0, %p1
  %p3 = or i64 %p2, %l
  %lp = getelementptr i64, ptr %lanes, i64 %p3
  %know = load i64, ptr %lp
  %b1 = icmp ule i64 %t, %know
  ret i1 %b1
}}""")


@family("om_watch_members")
def members() -> str:
    """The member masks of a ``.sync`` instruction; those who share one meet there if ``meets``.

    PTX ISA, "bar.warp.sync", "shfl.sync": the executing lane must be a member, and every member
    that has not exited must execute the instruction.
    """
    return expand(f"""
define internal void @om_watch_members(
    ptr %w, ptr %warp, i32 %point, <32 x i32> %members, i32 %mask, i32 %live, i32 %meets
) noinline {{
entry:
  %mp = alloca <32 x i32>, align 64
  store <32 x i32> %members, ptr %mp
  br label %group
group:
  %rest = phi i32 [%mask, %entry], [%rest1, %next]
  %over = icmp eq i32 %rest, 0
  br i1 %over, label %done, label %take
take:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %lz = zext i32 %lane to i64
  %p = getelementptr i32, ptr %mp, i64 %lz
  %m = load i32, ptr %p
  %ms = splat i32 %m
  %eq = icmp eq <32 x i32> %members, %ms
  %alike0 = bitcast <32 x i1> %eq to i32
  %alike = and i32 %alike0, %rest
  %others = xor i32 %alike, -1
  %rest1 = and i32 %rest, %others
  %notm = xor i32 %m, -1
  %strays = and i32 %alike, %notm
  %astray = icmp ne i32 %strays, 0
  br i1 %astray, label %outsider, label %complete
outsider:
  %sl = call i32 @llvm.cttz.i32(i32 %strays, i1 true)
  %r0 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %sl)
  call void @om_watch_hazard(ptr %w, i64 {OUTSIDER}, i64 %r0, i64 %r0, i64 0)
  br label %complete
complete:
  %named = and i32 %m, %live
  %nothere = xor i32 %alike, -1
  %missing = and i32 %named, %nothere
  %lacks = icmp ne i32 %missing, 0
  br i1 %lacks, label %absent, label %order
absent:
  %al = call i32 @llvm.cttz.i32(i32 %missing, i1 true)
  %r1 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %lane)
  %r2 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %al)
  call void @om_watch_hazard(ptr %w, i64 {ABSENT}, i64 %r1, i64 %r2, i64 0)
  br label %order
order:
  %does = icmp ne i32 %meets, 0
  br i1 %does, label %meet, label %leavers
leavers:
  %initial = get %warp P.initial
  %dead = xor i32 %live, -1
  %left0 = and i32 %initial, %dead
  %left = and i32 %left0, %m
  %nobody = icmp eq i32 %left, 0
  br i1 %nobody, label %next, label %named_dead
named_dead:
  %dl = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %r3 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %lane)
  %r4 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %dl)
  call void @om_watch_hazard(ptr %w, i64 {GONE}, i64 %r3, i64 %r4, i64 0)
  br label %next
meet:
  call void @om_watch_sync(ptr %w, i32 %alike, i32 %live)
  br label %next
next:
  br label %group
done:
  ret void
}}""")


@family("om_watch_sync")
def sync() -> str:
    """Lanes of one warp meet: each knows afterwards what any of them knew."""
    return expand("""
define internal void @om_watch_sync(ptr %w, i32 %mask, i32 %live) noinline {
entry:
  %k = get %w W.watch
  %time = get %k K.time
  %after = add i64 %time, 1
  set %k K.time %after
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %out = xor i32 %mask, -1
  %left = and i32 %live, %out
  %whole = icmp eq i32 %left, 0
  br i1 %whole, label %everyone, label %some
everyone:
  %bases = get %k K.bases
  %bp = getelementptr i64, ptr %bases, i64 %nz
  store i64 %time, ptr %bp
  ret void
some:
  %lanes = get %k K.lanes
  %o = shl i64 %nz, 10
  %rows = getelementptr i64, ptr %lanes, i64 %o
  br label %gather
gather:
  %r = phi i32 [%mask, %some], [%r1, %gather]
  %sum = phi <32 x i64> [zeroinitializer, %some], [%sum1, %gather]
  %i = call i32 @llvm.cttz.i32(i32 %r, i1 true)
  %below = sub i32 %r, 1
  %r1 = and i32 %r, %below
  %iz = zext i32 %i to i64
  %io = shl i64 %iz, 5
  %row = getelementptr i64, ptr %rows, i64 %io
  %v = load <32 x i64>, ptr %row, align 8
  %more = icmp ugt <32 x i64> %v, %sum
  %sum1 = select <32 x i1> %more, <32 x i64> %v, <32 x i64> %sum
  %end = icmp eq i32 %r1, 0
  br i1 %end, label %spread, label %gather
spread:
  %mv = bitcast i32 %mask to <32 x i1>
  %ts = splat i64 %time
  %all = select <32 x i1> %mv, <32 x i64> %ts, <32 x i64> %sum1
  br label %give
give:
  %q = phi i32 [%mask, %spread], [%q1, %give]
  %j = call i32 @llvm.cttz.i32(i32 %q, i1 true)
  %qb = sub i32 %q, 1
  %q1 = and i32 %q, %qb
  %jz = zext i32 %j to i64
  %jo = shl i64 %jz, 5
  %to = getelementptr i64, ptr %rows, i64 %jo
  store <32 x i64> %all, ptr %to, align 8
  %fin = icmp eq i32 %q1, 0
  br i1 %fin, label %done, label %give
done:
  ret void
}""")


@family("om_watch_arrive")
def arrive() -> str:
    """A warp arrives at a barrier; lanes of it that have exited are worth a word."""
    return expand(f"""
define internal void @om_watch_arrive(ptr %w, ptr %warp, i32 %point, i32 %live) noinline {{
  %k = get %w W.watch
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %arrived = get %k K.arrived
  %p = getelementptr i32, ptr %arrived, i64 %nz
  store i32 %point, ptr %p
  %initial = get %warp P.initial
  %keep = xor i32 %live, -1
  %gone = and i32 %initial, %keep
  %none = icmp eq i32 %gone, 0
  br i1 %none, label %done, label %report
report:
  %lane = call i32 @llvm.cttz.i32(i32 %live, i1 false)
  %some = and i32 %lane, 31
  %left = call i32 @llvm.cttz.i32(i32 %gone, i1 true)
  %r0 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %some)
  %r1 = call i64 @om_watch_record(ptr %w, i32 %point, i32 %left)
  call void @om_watch_hazard(ptr %w, i64 {GONE}, i64 %r0, i64 %r1, i64 0)
  br label %done
done:
  ret void
}}""")


@family("om_watch_meet")
def meet() -> str:
    """A barrier of the whole block completes: all that was done so far is settled."""
    return expand(f"""
define internal void @om_watch_meet(ptr %w, ptr %status, i32 %warps) noinline {{
entry:
  %k = get %w W.watch
  %time = get %k K.time
  set %k K.settled %time
  %after = add i64 %time, 1
  set %k K.time %after
  %arrived = get %k K.arrived
  %fences = get %k K.fences
  br label %look
look:
  %i = phi i32 [0, %entry], [%i1, %seen]
  %first = phi i32 [-1, %entry], [%first1, %seen]
  %firstwarp = phi i32 [0, %entry], [%firstwarp1, %seen]
  %gone = phi i32 [-1, %entry], [%gone1, %seen]
  %sum = phi <32 x i64> [zeroinitializer, %entry], [%sum1, %seen]
  %iz = zext i32 %i to i64
  %fo = shl i64 %iz, 5
  %fp = getelementptr i64, ptr %fences, i64 %fo
  %f = load <32 x i64>, ptr %fp, align 8
  %more = icmp ugt <32 x i64> %f, %sum
  %sum1 = select <32 x i1> %more, <32 x i64> %f, <32 x i64> %sum
  %sp = getelementptr i32, ptr %status, i64 %iz
  %s = load i32, ptr %sp
  %exited = icmp eq i32 %s, 1
  %gone1 = select i1 %exited, i32 %i, i32 %gone
  br i1 %exited, label %seen, label %there
there:
  %pp = getelementptr i32, ptr %arrived, i64 %iz
  %point = load i32, ptr %pp
  %isfirst = icmp eq i32 %first, -1
  %begun = select i1 %isfirst, i32 %point, i32 %first
  %begunwarp = select i1 %isfirst, i32 %i, i32 %firstwarp
  %alike = icmp eq i32 %point, %begun
  br i1 %alike, label %seen, label %split
split:
  %q0 = call i64 @om_watch_arrival(ptr %w, i32 %point, i32 %i)
  %q1 = call i64 @om_watch_arrival(ptr %w, i32 %begun, i32 %begunwarp)
  call void @om_watch_hazard(ptr %w, i64 {SPLIT}, i64 %q0, i64 %q1, i64 0)
  br label %seen
seen:
  %first1 = phi i32 [%first, %look], [%begun, %there], [%begun, %split]
  %firstwarp1 = phi i32 [%firstwarp, %look], [%begunwarp, %there], [%begunwarp, %split]
  %i1 = add i32 %i, 1
  %end = icmp eq i32 %i1, %warps
  br i1 %end, label %fenced, label %look
fenced:
  %any = get %k K.fenced
  %some = icmp ne i64 %any, 0
  br i1 %some, label %share, label %missing
share:
  %n = phi i32 [0, %fenced], [%n1, %share]
  %nz = zext i32 %n to i64
  %no = shl i64 %nz, 5
  %np = getelementptr i64, ptr %fences, i64 %no
  store <32 x i64> %sum1, ptr %np, align 8
  %n1 = add i32 %n, 1
  %nend = icmp eq i32 %n1, %warps
  br i1 %nend, label %missing, label %share
missing:
  %none = icmp eq i32 %gone1, -1
  br i1 %none, label %done, label %report
report:
  %g0 = call i64 @om_watch_arrival(ptr %w, i32 %first1, i32 %firstwarp1)
  %g1 = call i64 @om_watch_arrival(ptr %w, i32 %first1, i32 %gone1)
  call void @om_watch_hazard(ptr %w, i64 {GONE}, i64 %g0, i64 %g1, i64 0)
  br label %done
done:
  ret void
}}""")


@family("om_watch_join")
def join() -> str:
    """Some warps pass a barrier together: those whose status carries the flag, group by group."""
    return expand("""
define internal void @om_watch_join(ptr %w, ptr %status, i32 %warps) noinline {
entry:
  %k = get %w W.watch
  %time = get %k K.time
  %after = add i64 %time, 1
  set %k K.time %after
  %clocks = get %k K.clocks
  %fences = get %k K.fences
  br label %outer
outer:
  %i = phi i32 [0, %entry], [%i1, %next]
  %iz = zext i32 %i to i64
  %sp = getelementptr i32, ptr %status, i64 %iz
  %s = load i32, ptr %sp
  %goes = icmp uge i32 %s, 1073741824
  br i1 %goes, label %signals, label %next
signals:
  %slow = and i32 %s, 255
  %barrier = sub i32 %slow, 2
  %bz = zext i32 %barrier to i64
  %bo = shl i64 %bz, 5
  %arrivals = get %k K.arrivals
  %ap = getelementptr i64, ptr %arrivals, i64 %bo
  %came = load <32 x i64>, ptr %ap, align 8
  br label %sum
sum:
  %j = phi i32 [0, %signals], [%j1, %summed]
  %c = phi <32 x i64> [%came, %signals], [%c2, %summed]
  %f = phi <32 x i64> [zeroinitializer, %signals], [%f2, %summed]
  %m = phi i32 [0, %signals], [%m2, %summed]
  %jz = zext i32 %j to i64
  %tp = getelementptr i32, ptr %status, i64 %jz
  %t = load i32, ptr %tp
  %mate = icmp eq i32 %t, %s
  br i1 %mate, label %add, label %summed
add:
  %jo = shl i64 %jz, 5
  %cp = getelementptr i64, ptr %clocks, i64 %jo
  %cv = load <32 x i64>, ptr %cp, align 8
  %cg = icmp ugt <32 x i64> %cv, %c
  %c1 = select <32 x i1> %cg, <32 x i64> %cv, <32 x i64> %c
  %fp = getelementptr i64, ptr %fences, i64 %jo
  %fv = load <32 x i64>, ptr %fp, align 8
  %fg = icmp ugt <32 x i64> %fv, %f
  %f1 = select <32 x i1> %fg, <32 x i64> %fv, <32 x i64> %f
  %bit = shl i32 1, %j
  %m1 = or i32 %m, %bit
  br label %summed
summed:
  %c2 = phi <32 x i64> [%c, %sum], [%c1, %add]
  %f2 = phi <32 x i64> [%f, %sum], [%f1, %add]
  %m2 = phi i32 [%m, %sum], [%m1, %add]
  %j1 = add i32 %j, 1
  %jend = icmp eq i32 %j1, %warps
  br i1 %jend, label %store, label %sum
store:
  %mv = bitcast i32 %m2 to <32 x i1>
  %ts = splat i64 %time
  %all = select <32 x i1> %mv, <32 x i64> %ts, <32 x i64> %c2
  br label %give
give:
  %q = phi i32 [%m2, %store], [%q1, %give]
  %l = call i32 @llvm.cttz.i32(i32 %q, i1 true)
  %qb = sub i32 %q, 1
  %q1 = and i32 %q, %qb
  %lz = zext i32 %l to i64
  %lo = shl i64 %lz, 5
  %to = getelementptr i64, ptr %clocks, i64 %lo
  store <32 x i64> %all, ptr %to, align 8
  %fo = getelementptr i64, ptr %fences, i64 %lo
  store <32 x i64> %f2, ptr %fo, align 8
  %bases = get %k K.bases
  %bp = getelementptr i64, ptr %bases, i64 %lz
  store i64 %time, ptr %bp
  %qend = icmp eq i32 %q1, 0
  br i1 %qend, label %next, label %give
next:
  %i1 = add i32 %i, 1
  %end = icmp eq i32 %i1, %warps
  br i1 %end, label %done, label %outer
done:
  ret void
}""")


@family("om_watch_signal")
def signal() -> str:
    """``bar.arrive``: the warps that wait at the barrier will know what this one knows."""
    return expand("""
define internal void @om_watch_signal(ptr %w, i32 %status) noinline {
  %k = get %w W.watch
  %time = get %k K.time
  %after = add i64 %time, 1
  set %k K.time %after
  %low = and i32 %status, 255
  %barrier = sub i32 %low, 2
  %bz = zext i32 %barrier to i64
  %bo = shl i64 %bz, 5
  %arrivals = get %k K.arrivals
  %ap = getelementptr i64, ptr %arrivals, i64 %bo
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %no = shl i64 %nz, 5
  %clocks = get %k K.clocks
  %cp = getelementptr i64, ptr %clocks, i64 %no
  %a = load <32 x i64>, ptr %ap, align 8
  %c = load <32 x i64>, ptr %cp, align 8
  %more = icmp ugt <32 x i64> %c, %a
  %sum = select <32 x i1> %more, <32 x i64> %c, <32 x i64> %a
  store <32 x i64> %sum, ptr %ap, align 8
  %own = getelementptr i64, ptr %ap, i64 %nz
  store i64 %time, ptr %own
  ret void
}""")


@family("om_watch_sources")
def sources() -> str:
    """Lanes of a shuffle whose source is not there, or holds an undefined value itself."""
    return expand(f"""
define internal i32 @om_watch_sources(
    ptr %w, <32 x i32> %index, <32 x i32> %members, i32 %mask, i32 %undef
) noinline {{
entry:
  %present0 = splat i32 %mask
  %present = and <32 x i32> %present0, %members
  %wanted = and <32 x i32> %index, {constant(31, 32)}
  %shifted = lshr <32 x i32> %present, %wanted
  %bit = and <32 x i32> %shifted, {constant(1, 32)}
  %absent = icmp eq <32 x i32> %bit, zeroinitializer
  %own = icmp eq <32 x i32> %wanted, {each(range(32), 32)}
  %other = xor <32 x i1> %own, {constant(-1, 1)}
  %gone0 = and <32 x i1> %absent, %other
  %us = splat i32 %undef
  %u0 = lshr <32 x i32> %us, %wanted
  %u1 = trunc <32 x i32> %u0 to <32 x i1>
  %all = or <32 x i1> %gone0, %u1
  %r0 = bitcast <32 x i1> %all to i32
  %r = and i32 %r0, %mask
  ret i32 %r
}}""")
