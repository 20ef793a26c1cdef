"""One worker: takes blocks until none is left, and runs each block's warps from barrier to barrier.

A warp's status: 0 runs, 1 has exited, otherwise it waits: 2 + barrier number, and in the bits from
8 up how many warps the barrier waits for (0: all of the block). PTX ISA, "bar, barrier".
"""

from __future__ import annotations

from optiml_magic.emulator.faults import code
from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import BARRIERS, ENTRY, SLICE, STACK
from optiml_magic.emulator.library import family
from optiml_magic.ptx.cfg import EXIT


@family("om_worker(|_checked)")
def worker(checked: str) -> str:
    """``_checked`` functions tell the checks of every block and barrier; nothing else differs."""
    watch = "call void @om_watch_block(ptr %w, i64 %place)" if checked else ""
    return expand(f"""
define void @om_worker{checked}(ptr %w, ptr %kernel) {{
entry:
  %control = get %w W.control
  %total = get %control C.total
  %next = at %control C.next
  %stop = at %control C.stop
  br label %again
again:
  %stopped = load atomic i32, ptr %stop monotonic, align 4
  %halt = icmp ne i32 %stopped, 0
  br i1 %halt, label %done, label %take
take:
  %place = atomicrmw add ptr %next, i64 1 monotonic
  %over = icmp uge i64 %place, %total
  br i1 %over, label %done, label %find
find:
  %order = get %control C.order
  %plain = icmp eq ptr %order, null
  br i1 %plain, label %run, label %listed
listed:
  %listed_at = getelementptr i64, ptr %order, i64 %place
  %named = load i64, ptr %listed_at
  br label %run
run:
  %block = phi i64 [%place, %find], [%named, %listed]
  set %w W.block %block
  %nx = get %w W.nctaid_x
  %ny = get %w W.nctaid_y
  %nxz = zext i32 %nx to i64
  %nyz = zext i32 %ny to i64
  %x = urem i64 %block, %nxz
  %yz = udiv i64 %block, %nxz
  %y = urem i64 %yz, %nyz
  %z = udiv i64 %yz, %nyz
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  set %w W.ctaid_x %x32
  set %w W.ctaid_y %y32
  set %w W.ctaid_z %z32
  %shared = get %w W.shared
  %bytes = get %w W.shared_size
  call void @llvm.memset.p0.i64(ptr %shared, i8 -1, i64 %bytes, i1 false)
  {watch}
  call void @om_block{checked}(ptr %w, ptr %kernel)
  %kind = get %w W.fault_kind
  %bad = icmp ne i32 %kind, 0
  br i1 %bad, label %fault, label %again
fault:
  store atomic i32 1, ptr %stop monotonic, align 4
  br label %done
done:
  ret void
}}""")


@family("om_block(|_checked)")
def block(checked: str) -> str:
    return expand(f"""
define internal void @om_block{checked}(ptr %w, ptr %kernel) noinline {{
entry:
  %warps = get %w W.warps
  %states = get %w W.warp_states
  %stride = get %w W.warp_stride
  %status = get %w W.warp_status
  set %w W.red_sum 0
  set %w W.red_lanes 0
  %warpsz = zext i32 %warps to i64
  %arrivals = getelementptr i32, ptr %status, i64 %warpsz
  call void @llvm.memset.p0.i64(ptr %arrivals, i8 0, i64 {4 * BARRIERS}, i1 false)
  br label %reset
reset:
  %r = phi i32 [0, %entry], [%r1, %reset]
  %rz = zext i32 %r to i64
  %ro = mul i64 %rz, %stride
  %warp0 = getelementptr i8, ptr %states, i64 %ro
  %initial = get %warp0 P.initial
  set %warp0 P.live %initial
  set %warp0 P.top 0
  %e0 = getelementptr i8, ptr %warp0, i64 {STACK}
  %e1 = getelementptr i8, ptr %warp0, i64 {STACK + 4}
  %e2 = getelementptr i8, ptr %warp0, i64 {STACK + 8}
  store i32 0, ptr %e0
  store i32 {EXIT}, ptr %e1
  store i32 %initial, ptr %e2
  %st0 = getelementptr i32, ptr %status, i64 %rz
  store i32 0, ptr %st0
  %r1 = add i32 %r, 1
  %rend = icmp eq i32 %r1, %warps
  br i1 %rend, label %round, label %reset
round:
  br label %warp
warp:
  %i = phi i32 [0, %round], [%i1, %after]
  %first = phi i32 [1, %round], [%first1, %after]
  %alike = phi i1 [true, %round], [%alike1, %after]
  %ready = phi i1 [false, %round], [%ready1, %after]
  %step = get %w W.warp_step
  %begin = get %w W.warp_first
  %far = mul i32 %i, %step
  %further = add i32 %far, %begin
  %turn = urem i32 %further, %warps
  %iz = zext i32 %turn to i64
  %st = getelementptr i32, ptr %status, i64 %iz
  %old = load i32, ptr %st
  %runs = icmp eq i32 %old, 0
  br i1 %runs, label %call, label %after
call:
  %o = mul i64 %iz, %stride
  %state = getelementptr i8, ptr %states, i64 %o
  set %w W.warp %turn
  %new = call i32 %kernel(ptr %w, ptr %state)
  store i32 %new, ptr %st
  %bad = icmp slt i32 %new, 0
  br i1 %bad, label %done, label %after
after:
  %now = phi i32 [%old, %warp], [%new, %call]
  %gone = icmp eq i32 %now, 1
  %yields = icmp eq i32 %now, 0
  %ready1 = or i1 %ready, %yields
  %fresh = icmp eq i32 %first, 1
  %first0 = select i1 %fresh, i32 %now, i32 %first
  %first1 = select i1 %gone, i32 %first, i32 %first0
  %eq0 = icmp eq i32 %now, %first1
  %eq1 = or i1 %gone, %eq0
  %alike1 = and i1 %alike, %eq1
  %i1 = add i32 %i, 1
  %end = icmp eq i32 %i1, %warps
  br i1 %end, label %judge, label %warp
judge:
  br i1 %ready1, label %round, label %idle
idle:
  %allgone = icmp eq i32 %first1, 1
  br i1 %allgone, label %done, label %release
release:
  call void @om_release{checked}(ptr %w, ptr %status, i32 %warps, i32 %first1, i1 %alike1)
  %kind = get %w W.fault_kind
  %stuck = icmp ne i32 %kind, 0
  br i1 %stuck, label %done, label %round
done:
  ret void
}}""")


@family("om_refuel")
def refuel() -> str:
    """The next slice of the budget: 0 when there is none, or when the launch is to stop."""
    return expand(f"""
define internal i32 @om_refuel(ptr %w, i32 %stop, i32 %line, i32 %lane) noinline {{
entry:
  %told = icmp ne i32 %stop, 0
  br i1 %told, label %no, label %look
look:
  %budget = get %w W.budget
  %some = icmp sgt i64 %budget, 0
  br i1 %some, label %yes, label %spent
spent:
  call void @om_fault(ptr %w, i32 {code("instruction_limit")}, i32 %line, i32 %lane, i64 0)
  br label %no
no:
  ret i32 0
yes:
  %slice = call i64 @llvm.umin.i64(i64 %budget, i64 {SLICE})
  %rest = sub i64 %budget, %slice
  set %w W.budget %rest
  set %w W.fuel %slice
  ret i32 1
}}""")


@family("om_turn")
def turn() -> str:
    """The other side of a branch has its turn, so that lanes that poll cannot starve their warp's.

    Of the innermost branch whose two sides are under way, the side below comes to the top of the
    stack. From sm_70 on lanes make progress apart from each other (CUDA C++ Programming Guide,
    "Independent Thread Scheduling").
    """
    return expand(f"""
define internal void @om_turn(ptr %warp) noinline {{
entry:
  %top = get %warp P.top
  %stack = getelementptr i8, ptr %warp, i64 {STACK}
  br label %look
look:
  %i = phi i32 [%top, %entry], [%j, %down]
  %some = icmp sgt i32 %i, 0
  br i1 %some, label %compare, label %done
compare:
  %j = sub i32 %i, 1
  %io = mul i32 %i, {ENTRY}
  %jo = mul i32 %j, {ENTRY}
  %ip = getelementptr i8, ptr %stack, i32 %io
  %jp = getelementptr i8, ptr %stack, i32 %jo
  %imp = getelementptr i8, ptr %ip, i64 4
  %jmp = getelementptr i8, ptr %jp, i64 4
  %im = load i32, ptr %imp
  %jm = load i32, ptr %jmp
  %jpc = load i32, ptr %jp
  %sides = icmp eq i32 %im, %jm
  %waits = icmp eq i32 %jpc, %jm
  %moves = xor i1 %waits, true
  %swap = and i1 %sides, %moves
  br i1 %swap, label %rotate, label %down
down:
  br label %look
rotate:
  %side = load <{ENTRY} x i8>, ptr %jp, align 4
  %count = sub i32 %top, %j
  %bytes = mul i32 %count, {ENTRY}
  %wide = zext i32 %bytes to i64
  call void @llvm.memmove.p0.p0.i64(ptr %jp, ptr %ip, i64 %wide, i1 false)
  %to = mul i32 %top, {ENTRY}
  %tp = getelementptr i8, ptr %stack, i32 %to
  store <{ENTRY} x i8> %side, ptr %tp, align 4
  br label %done
done:
  ret void
}}""")


@family("om_release(|_checked)")
def release(checked: str) -> str:
    """Let the warps go on whose barrier is complete; a fault where none is."""
    meet = "call void @om_watch_meet(ptr %w, ptr %status, i32 %warps)" if checked else ""
    join = "call void @om_watch_join(ptr %w, ptr %status, i32 %warps)" if checked else ""
    return expand(f"""
define internal void @om_release{checked}(
    ptr %w, ptr %status, i32 %warps, i32 %first, i1 %alike
) noinline {{
entry:
  %sum = get %w W.red_sum
  %lanes = get %w W.red_lanes
  set %w W.red_sum_done %sum
  set %w W.red_lanes_done %lanes
  set %w W.red_sum 0
  set %w W.red_lanes 0
  %counted = icmp uge i32 %first, 256
  %plain = xor i1 %counted, true
  %simple = and i1 %plain, %alike
  br i1 %simple, label %met, label %outer
met:
  {meet}
  br label %everyone
everyone:
  %e = phi i32 [0, %met], [%e1, %everyone]
  %ez = zext i32 %e to i64
  %ep = getelementptr i32, ptr %status, i64 %ez
  %es = load i32, ptr %ep
  %egone = icmp eq i32 %es, 1
  %enew = select i1 %egone, i32 1, i32 0
  store i32 %enew, ptr %ep
  %e1 = add i32 %e, 1
  %eend = icmp eq i32 %e1, %warps
  br i1 %eend, label %done, label %everyone
outer:
  %i = phi i32 [0, %entry], [%i1, %next]
  %moved = phi i32 [0, %entry], [%moved1, %next]
  %iz = zext i32 %i to i64
  %sp = getelementptr i32, ptr %status, i64 %iz
  %s = load i32, ptr %sp
  %waits = icmp sgt i32 %s, 1
  br i1 %waits, label %look, label %next
look:
  %wanted = lshr i32 %s, 8
  br label %inner
inner:
  %j = phi i32 [0, %look], [%j1, %inner]
  %same = phi i32 [0, %look], [%same1, %inner]
  %alive = phi i32 [0, %look], [%alive1, %inner]
  %jz = zext i32 %j to i64
  %tp = getelementptr i32, ptr %status, i64 %jz
  %t0 = load i32, ptr %tp
  %t = and i32 %t0, 1073741823
  %iseq = icmp eq i32 %t, %s
  %isz = zext i1 %iseq to i32
  %same1 = add i32 %same, %isz
  %exited = icmp eq i32 %t, 1
  %there = xor i1 %exited, true
  %az = zext i1 %there to i32
  %alive1 = add i32 %alive, %az
  %j1 = add i32 %j, 1
  %jend = icmp eq i32 %j1, %warps
  br i1 %jend, label %decide, label %inner
decide:
  %all = icmp eq i32 %wanted, 0
  %need = select i1 %all, i32 %alive1, i32 %wanted
  %slow = and i32 %s, 255
  %number = sub i32 %slow, 2
  %behind = add i32 %warps, %number
  %behindz = zext i32 %behind to i64
  %ap = getelementptr i32, ptr %status, i64 %behindz
  %came = load i32, ptr %ap
  %here = add i32 %same1, %came
  %enough = icmp uge i32 %here, %need
  br i1 %enough, label %mark, label %next
mark:
  %flag = or i32 %s, 1073741824
  store i32 %flag, ptr %sp
  br label %next
next:
  %m = phi i32 [0, %outer], [0, %decide], [1, %mark]
  %moved1 = or i32 %moved, %m
  %i1 = add i32 %i, 1
  %iend = icmp eq i32 %i1, %warps
  br i1 %iend, label %joined, label %outer
joined:
  {join}
  br label %sweep
sweep:
  %q = phi i32 [0, %joined], [%q1, %swept]
  %qz = zext i32 %q to i64
  %qp = getelementptr i32, ptr %status, i64 %qz
  %v = load i32, ptr %qp
  %goes = icmp uge i32 %v, 1073741824
  %v1 = select i1 %goes, i32 0, i32 %v
  store i32 %v1, ptr %qp
  br i1 %goes, label %clear, label %swept
clear:
  ; the arrivals without a wait are used up as well
  %vlow = and i32 %v, 255
  %vnumber = sub i32 %vlow, 2
  %vbehind = add i32 %warps, %vnumber
  %vz = zext i32 %vbehind to i64
  %vp = getelementptr i32, ptr %status, i64 %vz
  store i32 0, ptr %vp
  br label %swept
swept:
  %q1 = add i32 %q, 1
  %qend = icmp eq i32 %q1, %warps
  br i1 %qend, label %check, label %sweep
check:
  %none = icmp eq i32 %moved1, 0
  br i1 %none, label %stuck, label %done
stuck:
  call void @om_fault(ptr %w, i32 {code("deadlock")}, i32 0, i32 0, i64 0)
  br label %done
done:
  ret void
}}""")
