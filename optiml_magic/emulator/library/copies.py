"""Asynchronous copies that nobody has waited for yet (PTX ISA, "cp.async")."""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import FLIGHT, MOST_FLIGHTS
from optiml_magic.emulator.library import family


@family("om_watch_depart")
def depart() -> str:
    """Four bytes for each active lane are being copied to its address, in its current group."""
    return expand(f"""
define internal void @om_watch_depart(ptr %w, ptr %warp, <32 x i64> %a, i32 %mask) noinline {{
entry:
  %k = get %w W.watch
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %bad = get %w W.fault_kind
  %healthy = icmp eq i32 %bad, 0
  %some = icmp ne i32 %mask, 0
  %go = and i1 %healthy, %some
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %base = shl i64 %nz, 5
  %flights = get %k K.flights
  %commits = get %k K.commits
  br i1 %go, label %lane, label %done
lane:
  %rest = phi i32 [%mask, %entry], [%rest1, %next]
  %i = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %iz = zext i32 %i to i64
  %hp = getelementptr i64, ptr %ap, i64 %iz
  %h = load i64, ptr %hp
  %where = call {{ ptr, ptr, i64 }} @om_watch_place(ptr %w, ptr %warp, i64 %h)
  %valid = extractvalue {{ ptr, ptr, i64 }} %where, 1
  %n = get %k K.flight_count
  %full = icmp uge i64 %n, {MOST_FLIGHTS}
  br i1 %full, label %next, label %log
log:
  store i32 -1, ptr %valid, align 1
  %o = mul i64 %n, {FLIGHT.size}
  %row = getelementptr i8, ptr %flights, i64 %o
  %thread = or i64 %base, %iz
  %cp = getelementptr i32, ptr %commits, i64 %thread
  %group = load i32, ptr %cp
  %gz = zext i32 %group to i64
  set %row F.valid %valid
  set %row F.thread %thread
  set %row F.group %gz
  set %row F.place 0
  count %k K.flight_count 1
  br label %next
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void
}}""")


@family("om_watch_commit")
def commit() -> str:
    """The copies of the active lanes up to here are a group of their own."""
    return expand("""
define internal void @om_watch_commit(ptr %w, i32 %mask) noinline {
  %k = get %w W.watch
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %base = shl i64 %nz, 5
  %commits = get %k K.commits
  %p = getelementptr i32, ptr %commits, i64 %base
  %c = load <32 x i32>, ptr %p, align 4
  %mv = bitcast i32 %mask to <32 x i1>
  %one = zext <32 x i1> %mv to <32 x i32>
  %sum = add <32 x i32> %c, %one
  store <32 x i32> %sum, ptr %p, align 4
  ret void
}""")


@family("om_watch_await")
def await_() -> str:
    """The active lanes wait for all but their last ``groups`` groups; -1: for all copies."""
    return expand(f"""
define internal void @om_watch_await(ptr %w, i32 %mask, i64 %groups) noinline {{
entry:
  %k = get %w W.watch
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %flights = get %k K.flights
  %commits = get %k K.commits
  %every = icmp slt i64 %groups, 0
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next], [%i, %gone]
  %n = get %k K.flight_count
  %end = icmp uge i64 %i, %n
  br i1 %end, label %done, label %look
look:
  %o = mul i64 %i, {FLIGHT.size}
  %row = getelementptr i8, ptr %flights, i64 %o
  %thread = get %row F.thread
  %group = get %row F.group
  %u = lshr i64 %thread, 5
  %mine = icmp eq i64 %u, %nz
  %l = and i64 %thread, 31
  %l32 = trunc i64 %l to i32
  %bit = lshr i32 %mask, %l32
  %here = trunc i32 %bit to i1
  %cp = getelementptr i32, ptr %commits, i64 %thread
  %c = load i32, ptr %cp
  %cz = zext i32 %c to i64
  %last = sub i64 %cz, %groups
  %past = icmp slt i64 %group, %last
  %due = or i1 %past, %every
  %b0 = and i1 %mine, %here
  %b1 = and i1 %b0, %due
  br i1 %b1, label %arrives, label %next
arrives:
  call void @om_watch_land(ptr %w, i64 %i)
  br label %gone
gone:
  br label %loop
next:
  %i1 = add i64 %i, 1
  br label %loop
done:
  ret void
}}""")


@family("om_watch_land")
def land() -> str:
    """A copy is there; the last one in the table takes its row."""
    return expand(f"""
define internal void @om_watch_land(ptr %w, i64 %i) noinline {{
  %k = get %w W.watch
  %flights = get %k K.flights
  %n = get %k K.flight_count
  %o = mul i64 %i, {FLIGHT.size}
  %row = getelementptr i8, ptr %flights, i64 %o
  %valid = get %row F.valid
  %v = load i32, ptr %valid, align 1
  %flying = icmp eq i32 %v, -1
  %mark = select i1 %flying, i32 16843009, i32 %v
  store i32 %mark, ptr %valid, align 1
  %n1 = sub i64 %n, 1
  %lo = mul i64 %n1, {FLIGHT.size}
  %last = getelementptr i8, ptr %flights, i64 %lo
  call void @llvm.memmove.p0.p0.i64(ptr %row, ptr %last, i64 {FLIGHT.size}, i1 false)
  set %k K.flight_count %n1
  ret void
}}""")


@family("om_watch_board")
def board() -> str:
    """What the active lanes have under way lands with the phase of the mbarrier at their address.

    PTX ISA, "cp.async.mbarrier.arrive": of all the copies that the executing thread began before.
    """
    return expand(f"""
define internal void @om_watch_board(ptr %w, <32 x i64> %a, i32 %mask) noinline {{
entry:
  %k = get %w W.watch
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %flights = get %k K.flights
  %n = get %k K.flight_count
  %bad = get %w W.fault_kind
  %healthy = icmp eq i32 %bad, 0
  br i1 %healthy, label %loop, label %done
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %end = icmp uge i64 %i, %n
  br i1 %end, label %done, label %look
look:
  %o = mul i64 %i, {FLIGHT.size}
  %row = getelementptr i8, ptr %flights, i64 %o
  %thread = get %row F.thread
  %aboard = get %row F.place
  %free = icmp eq i64 %aboard, 0
  %u = lshr i64 %thread, 5
  %mine = icmp eq i64 %u, %nz
  %l = and i64 %thread, 31
  %l32 = trunc i64 %l to i32
  %bit = lshr i32 %mask, %l32
  %here = trunc i32 %bit to i1
  %b0 = and i1 %mine, %here
  %b1 = and i1 %b0, %free
  br i1 %b1, label %boards, label %next
boards:
  %hp = getelementptr i64, ptr %ap, i64 %l
  %h = load i64, ptr %hp
  %at = inttoptr i64 %h to ptr
  %word = load i64, ptr %at
  %phase = lshr i64 %word, 40
  set %row F.place %h
  set %row F.phase %phase
  br label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
done:
  ret void
}}""")


@family("om_watch_leave")
def leave() -> str:
    """The copies that the phases of an mbarrier waited for which are over."""
    return expand(f"""
define internal void @om_watch_leave(ptr %w, i64 %place) noinline {{
entry:
  %k = get %w W.watch
  %flights = get %k K.flights
  %at = inttoptr i64 %place to ptr
  %word = load i64, ptr %at
  %now = lshr i64 %word, 40
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next], [%i, %lands]
  %n = get %k K.flight_count
  %end = icmp uge i64 %i, %n
  br i1 %end, label %done, label %look
look:
  %o = mul i64 %i, {FLIGHT.size}
  %row = getelementptr i8, ptr %flights, i64 %o
  %p = get %row F.place
  %phase = get %row F.phase
  %own = icmp eq i64 %p, %place
  %over = icmp ne i64 %phase, %now
  %due = and i1 %own, %over
  br i1 %due, label %lands, label %next
lands:
  call void @om_watch_land(ptr %w, i64 %i)
  br label %loop
next:
  %i1 = add i64 %i, 1
  br label %loop
done:
  ret void
}}""")
