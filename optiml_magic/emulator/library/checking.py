"""What a checked kernel calls: shadow cells of memory, and who is ordered before whom.

Every access leaves a record (time, strength, point, warp, lane) in the cells that it covers: one
for the last write, three for reads. Two accesses conflict if one writes and nothing orders them.
The clock ticks at each act of synchronisation; knowledge of other lanes, warps and blocks is the
time up to which their accesses come first (FastTrack, Flanagan and Freund 2009, over the scopes of
HiRace). Blocks run one after the other on one host thread, so a time names its block too.
"""

from __future__ import annotations

from optiml_magic.emulator.ir import constant, each, expand
from optiml_magic.emulator.layout import (
    ACQUIRED,
    ALLOCATION,
    HAZARD,
    MOST_ACQUIRED,
    MOST_HAZARDS,
    MOST_RELEASES,
    POINT_BITS,
    POINT_SHIFT,
    RELEASE,
    RELEASED,
    STRONG_SHIFT,
    TIME_SHIFT,
)
from optiml_magic.emulator.library import family

# Validity of a byte: 0 nobody wrote it, 1 it is defined, more: 1 + the point where the undefined
# value that was stored here came from (0 again for points beyond a byte).
_POINTS = 254
# The kinds of HAZARD; races are ordered by how far apart the two threads are.
WITHIN_WARP, WITHIN_BLOCK, ACROSS, UNDEFINED, ABSENT, OUTSIDER, GONE, SPLIT = range(1, 9)
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


@family("om_watch_place")
def place() -> str:
    """Cell, validity and floor of a host address: records older than the floor are void."""
    return expand("""
define internal { ptr, ptr, i64 } @om_watch_place(ptr %w, ptr %warp, i64 %h) alwaysinline {
entry:
  %k = get %w W.watch
  %g = get %k K.granule
  %shared = get %w W.shared
  %si = ptrtoint ptr %shared to i64
  %srel = sub i64 %h, %si
  %ssize = get %w W.shared_size
  %iss = icmp ult i64 %srel, %ssize
  br i1 %iss, label %inshared, label %beyond
inshared:
  %sv0 = get %k K.shared_valid
  %sv = getelementptr i8, ptr %sv0, i64 %srel
  %sc0 = get %k K.shared_cells
  %sg = lshr i64 %srel, %g
  %so = shl i64 %sg, 5
  %sc = getelementptr i8, ptr %sc0, i64 %so
  %began = get %k K.began
  br label %done
beyond:
  %gh = get %k K.last_host
  %gs = get %k K.last_size
  %grel = sub i64 %h, %gh
  %isg = icmp ult i64 %grel, %gs
  br i1 %isg, label %inglobal, label %elsewhere
elsewhere:
  %local = get %warp P.local
  %li = ptrtoint ptr %local to i64
  %lrel = sub i64 %h, %li
  %lsize = get %w W.local_size
  %lspan = shl i64 %lsize, 5
  %isl = icmp ult i64 %lrel, %lspan
  br i1 %isl, label %inlocal, label %look
inlocal:
  %number = get %w W.warp
  %nz = zext i32 %number to i64
  %lo = mul i64 %nz, %lspan
  %lb = add i64 %lo, %lrel
  %lv0 = get %k K.local_valid
  %lv = getelementptr i8, ptr %lv0, i64 %lb
  br label %done
look:
  %found = call i1 @om_watch_find(ptr %w, i64 %h)
  br i1 %found, label %again, label %nowhere
nowhere:
  %sink = at %k K.sink0
  br label %done
again:
  %gh1 = get %k K.last_host
  %grel1 = sub i64 %h, %gh1
  br label %inglobal
inglobal:
  %rel = phi i64 [%grel, %beyond], [%grel1, %again]
  %base = get %k K.last_base
  %at = add i64 %base, %rel
  %gv0 = get %k K.global_valid
  %gv = getelementptr i8, ptr %gv0, i64 %at
  %gc0 = get %k K.global_cells
  %gg = lshr i64 %at, %g
  %go = shl i64 %gg, 5
  %gc = getelementptr i8, ptr %gc0, i64 %go
  br label %done
done:
  %cell = phi ptr [%sc, %inshared], [null, %inlocal], [null, %nowhere], [%gc, %inglobal]
  %valid = phi ptr [%sv, %inshared], [%lv, %inlocal], [%sink, %nowhere], [%gv, %inglobal]
  %floor = phi i64 [%began, %inshared], [1, %inlocal], [1, %nowhere], [1, %inglobal]
  %r0 = insertvalue { ptr, ptr, i64 } undef, ptr %cell, 0
  %r1 = insertvalue { ptr, ptr, i64 } %r0, ptr %valid, 1
  %r2 = insertvalue { ptr, ptr, i64 } %r1, i64 %floor, 2
  ret { ptr, ptr, i64 } %r2
}""")


@family("om_watch_find")
def find() -> str:
    """Make the allocation that holds a host address the last one met; false where none does."""
    return expand(f"""
define internal i1 @om_watch_find(ptr %w, i64 %h) noinline {{
entry:
  %k = get %w W.watch
  %table = get %w W.table
  %n = get %w W.table_count
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %next]
  %end = icmp eq i64 %i, %n
  br i1 %end, label %no, label %look
look:
  %o = mul i64 %i, {ALLOCATION.size}
  %row = getelementptr i8, ptr %table, i64 %o
  %host = get %row A.host
  %size = get %row A.size
  %rel = sub i64 %h, %host
  %in = icmp ult i64 %rel, %size
  br i1 %in, label %yes, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
yes:
  %sector = get %row A.sector
  %base = shl i64 %sector, 5
  set %k K.last_host %host
  set %k K.last_size %size
  set %k K.last_base %base
  ret i1 true
no:
  ret i1 false
}}""")


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


@family("om_watch_exempt")
def exempt() -> str:
    """Strong accesses do not race with each other, save volatile ones within a warp's shared cells.

    ``volatile`` orders nothing between the lanes of a warp, which no longer run in lockstep
    (CUDA C++ Programming Guide, "Independent Thread Scheduling"). PTX ISA, "Data Races".
    """
    return expand(f"""
define internal i1 @om_watch_exempt(i64 %mine, i64 %rec, i64 %floor) alwaysinline {{
  %a0 = lshr i64 %mine, {STRONG_SHIFT}
  %a = and i64 %a0, 3
  %b0 = lshr i64 %rec, {STRONG_SHIFT}
  %b = and i64 %b0, 3
  %as = icmp ne i64 %a, 0
  %bs = icmp ne i64 %b, 0
  %both = and i1 %as, %bs
  %sum = add i64 %a, %b
  %loose = icmp eq i64 %sum, {2 * VOLATILE}
  %wm = and i64 %mine, 992
  %wr = and i64 %rec, 992
  %samewarp = icmp eq i64 %wm, %wr
  %local = icmp ugt i64 %floor, 1
  %t0 = and i1 %loose, %samewarp
  %t1 = and i1 %t0, %local
  %t2 = xor i1 %t1, true
  %r = and i1 %both, %t2
  ret i1 %r
}}""")


@family("om_watch_guess")
def guess() -> str:
    """An ordinary read beside a compare-and-swap: its value is a guess, which the swap confirms.

    So begin the loops of the CUDA C++ Programming Guide, "Atomic Functions".
    """
    return expand(f"""
define internal i1 @om_watch_guess(i64 %read, i64 %write) alwaysinline {{
  %a0 = lshr i64 %read, {STRONG_SHIFT}
  %a = and i64 %a0, 3
  %b0 = lshr i64 %write, {STRONG_SHIFT}
  %b = and i64 %b0, 3
  %plain = icmp eq i64 %a, 0
  %swap = icmp eq i64 %b, {SWAP}
  %r = and i1 %plain, %swap
  ret i1 %r
}}""")


@family("om_watch_see")
def see() -> str:
    """A lane reads a cell."""
    return expand("""
define internal void @om_watch_see(
    ptr %w, i32 %lane, i64 %me, ptr %cell, i64 %floor, i64 %h
) alwaysinline {
entry:
  %r1p = getelementptr i64, ptr %cell, i64 1
  %r1 = load i64, ptr %r1p
  %again = icmp eq i64 %r1, %me
  br i1 %again, label %done, label %check
check:
  %wr = load i64, ptr %cell
  %fine = call i1 @om_watch_before(ptr %w, i32 %lane, i64 %wr, i64 %floor)
  br i1 %fine, label %reads, label %doubt
doubt:
  %ex0 = call i1 @om_watch_exempt(i64 %me, i64 %wr, i64 %floor)
  %guess = call i1 @om_watch_guess(i64 %me, i64 %wr)
  %ex = or i1 %ex0, %guess
  br i1 %ex, label %reads, label %race
race:
  call void @om_watch_race(ptr %w, i64 %me, i64 %wr, i64 %h)
  br label %reads
reads:
  %past = call i1 @om_watch_before(ptr %w, i32 %lane, i64 %r1, i64 %floor)
  br i1 %past, label %keep, label %crowd
crowd:
  call void @om_watch_crowd(ptr %w, i32 %lane, i64 %me, ptr %cell, i64 %floor)
  br label %keep
keep:
  store i64 %me, ptr %r1p
  br label %done
done:
  ret void
}""")


@family("om_watch_crowd")
def crowd() -> str:
    """Which of the earlier readers to keep: one of the same warp, and one from further away."""
    return expand(f"""
define internal void @om_watch_crowd(
    ptr %w, i32 %lane, i64 %me, ptr %cell, i64 %floor
) noinline {{
entry:
  %k = get %w W.watch
  %began = get %k K.began
  %r1p = getelementptr i64, ptr %cell, i64 1
  %r2p = getelementptr i64, ptr %cell, i64 2
  %r3p = getelementptr i64, ptr %cell, i64 3
  %r1 = load i64, ptr %r1p
  %t1 = lshr i64 %r1, {TIME_SHIFT}
  %here = icmp uge i64 %t1, %began
  %wm = and i64 %me, 992
  %w1 = and i64 %r1, 992
  %samewarp = icmp eq i64 %wm, %w1
  %near = and i1 %here, %samewarp
  br i1 %near, label %second, label %third
second:
  store i64 %r1, ptr %r2p
  ret void
third:
  %r3 = load i64, ptr %r3p
  %t3 = lshr i64 %r3, {TIME_SHIFT}
  %recent = icmp uge i64 %t3, %began
  %away = xor i1 %here, true
  %take0 = or i1 %recent, %away
  %past = call i1 @om_watch_before(ptr %w, i32 %lane, i64 %r3, i64 %floor)
  %take = or i1 %take0, %past
  br i1 %take, label %replace, label %done
replace:
  store i64 %r1, ptr %r3p
  br label %done
done:
  ret void
}}""")


@family("om_watch_mark")
def mark() -> str:
    """A lane writes a cell; ``same``: it writes what is there, which no other write can mind."""
    reads = "\n".join(_against_read(number) for number in (1, 2, 3))
    return expand(f"""
define internal void @om_watch_mark(
    ptr %w, i32 %lane, i64 %me, ptr %cell, i64 %floor, i64 %h, i1 %same
) alwaysinline {{
entry:
  %wr = load i64, ptr %cell
  %fine0 = call i1 @om_watch_before(ptr %w, i32 %lane, i64 %wr, i64 %floor)
  %fine = or i1 %fine0, %same
  br i1 %fine, label %read1, label %doubt
doubt:
  %ex = call i1 @om_watch_exempt(i64 %me, i64 %wr, i64 %floor)
  br i1 %ex, label %read1, label %race
race:
  call void @om_watch_race(ptr %w, i64 %me, i64 %wr, i64 %h)
  br label %read1
{reads}
read4:
  store i64 %me, ptr %cell
  ret void
}}""")


def _against_read(number: int) -> str:
    n = number
    return f"""
read{n}:
  %p{n} = getelementptr i64, ptr %cell, i64 {n}
  %r{n} = load i64, ptr %p{n}
  %none{n} = icmp eq i64 %r{n}, 0
  br i1 %none{n}, label %read{n + 1}, label %ask{n}
ask{n}:
  store i64 0, ptr %p{n}
  %ok{n} = call i1 @om_watch_before(ptr %w, i32 %lane, i64 %r{n}, i64 %floor)
  br i1 %ok{n}, label %read{n + 1}, label %doubt{n}
doubt{n}:
  %strong{n} = call i1 @om_watch_exempt(i64 %me, i64 %r{n}, i64 %floor)
  %guess{n} = call i1 @om_watch_guess(i64 %r{n}, i64 %me)
  %ex{n} = or i1 %strong{n}, %guess{n}
  br i1 %ex{n}, label %read{n + 1}, label %race{n}
race{n}:
  call void @om_watch_race(ptr %w, i64 %me, i64 %r{n}, i64 %h)
  br label %read{n + 1}"""


# The start of a loop over the active lanes: %i is the lane, %h its host address, %me its record.
_LOOP = f"""
entry:
  %k = get %w W.watch
  %bad = get %w W.fault_kind
  %healthy = icmp eq i32 %bad, 0
  %some = icmp ne i32 %mask, 0
  %go = and i1 %healthy, %some
  br i1 %go, label %begin, label %leave
leave:
  LEAVE
begin:
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %a, ptr %ap
  %time = get %k K.time
  %number = get %w W.warp
  %b0 = shl i64 %time, {TIME_SHIFT}
  %b1 = zext i32 %strong to i64
  %b2 = shl i64 %b1, {STRONG_SHIFT}
  %b3 = zext i32 %point to i64
  %b4 = shl i64 %b3, {POINT_SHIFT}
  %b5 = zext i32 %number to i64
  %b6 = shl i64 %b5, 5
  %b7 = or i64 %b0, %b2
  %b8 = or i64 %b4, %b6
  %record = or i64 %b7, %b8
  %g = get %k K.granule
  %cells0 = lshr i64 WIDTH, %g
  %cells = call i64 @llvm.umax.i64(i64 %cells0, i64 1)
  PREPARE
  br label %lane
lane:
  %rest = phi i32 [%mask, %begin], [%rest1, %next]
  PHI
  %i = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %iz = zext i32 %i to i64
  %hp = getelementptr i64, ptr %ap, i64 %iz
  %h = load i64, ptr %hp
  %me = or i64 %record, %iz
  %where = call {{ ptr, ptr, i64 }} @om_watch_place(ptr %w, ptr %warp, i64 %h)
  %cell = extractvalue {{ ptr, ptr, i64 }} %where, 0
  %valid = extractvalue {{ ptr, ptr, i64 }} %where, 1
  %floor = extractvalue {{ ptr, ptr, i64 }} %where, 2
  %shadowed = icmp ne ptr %cell, null
"""


def _loop(width: int, *, leave: str = "ret void", prepare: str = "", phi: str = "") -> str:
    text = _LOOP.replace("LEAVE", leave).replace("PREPARE", prepare)
    return text.replace("PHI", phi).replace("WIDTH", str(width))


@family(r"om_watch_load_(\d)")
def load(width_text: str) -> str:
    """Lanes that load what nobody wrote: a bit for each."""
    width = int(width_text)
    t = f"i{8 * width}"
    defined = int.from_bytes(b"\1" * width, "little")
    return expand(f"""
define internal i32 @om_watch_load_{width}(
    ptr %w, ptr %warp, i32 %point, <32 x i64> %a, i32 %mask, i32 %strong
) noinline {{
{_loop(width, leave="ret i32 0", phi="%undef = phi i32 [0, %begin], [%undef1, %next]")}
  %seen = load {t}, ptr %valid, align 1
  %known = icmp eq {t} %seen, {defined}
  br i1 %known, label %cellular, label %unknown
unknown:
  call void @om_watch_trace(ptr %w, i64 %b3, ptr %valid, i64 {width}, i64 %h)
  br label %cellular
cellular:
  %bit = shl i32 1, %i
  %new = select i1 %known, i32 0, i32 %bit
  %undef1 = or i32 %undef, %new
  br i1 %shadowed, label %cells_, label %next
cells_:
  %j = phi i64 [0, %cellular], [%j1, %cells_next]
  %co = shl i64 %j, 5
  %c = getelementptr i8, ptr %cell, i64 %co
  call void @om_watch_see(ptr %w, i32 %i, i64 %me, ptr %c, i64 %floor, i64 %h)
  br label %cells_next
cells_next:
  %j1 = add i64 %j, 1
  %last = icmp uge i64 %j1, %cells
  br i1 %last, label %next, label %cells_
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret i32 %undef1
}}""")


@family(r"om_watch_store_(\d)")
def store(width_text: str) -> str:
    """Check and store, lane by lane; ``undef`` are the lanes whose value is undefined."""
    width = int(width_text)
    t = f"i{8 * width}"
    defined = int.from_bytes(b"\1" * width, "little")
    prepare = f"""%vp = alloca <32 x {t}>, align 64
  store <32 x {t}> %v, ptr %vp
  %far = icmp ugt i32 %origin, {_POINTS}
  %next_ = add i32 %origin, 1
  %code = select i1 %far, i32 0, i32 %next_
  %code64 = zext i32 %code to i64
  %filled = mul i64 %code64, {int.from_bytes(bytes([1] * 8), "little")}
  %tainted = {"add i64 %filled, 0" if width == 8 else f"trunc i64 %filled to {t}"}"""
    return expand(f"""
define internal void @om_watch_store_{width}(
    ptr %w, ptr %warp, i32 %point, <32 x i64> %a, <32 x {t}> %v, i32 %mask, i32 %strong,
    i32 %undef, i32 %origin
) noinline {{
{_loop(width, prepare=prepare)}
  %xp = getelementptr {t}, ptr %vp, i64 %iz
  %x = load {t}, ptr %xp
  %to = inttoptr i64 %h to ptr
  %was = load {t}, ptr %to, align {width}
  %same = icmp eq {t} %was, %x
  store {t} %x, ptr %to, align {width}
  %ub = lshr i32 %undef, %i
  %u1 = trunc i32 %ub to i1
  %mark = select i1 %u1, {t} %tainted, {t} {defined}
  store {t} %mark, ptr %valid, align 1
  br i1 %shadowed, label %cells_, label %next
cells_:
  %j = phi i64 [0, %lane], [%j1, %cells_next]
  %co = shl i64 %j, 5
  %c = getelementptr i8, ptr %cell, i64 %co
  call void @om_watch_mark(
    ptr %w, i32 %i, i64 %me, ptr %c, i64 %floor, i64 %h, i1 %same)
  br label %cells_next
cells_next:
  %j1 = add i64 %j, 1
  %last = icmp uge i64 %j1, %cells
  br i1 %last, label %next, label %cells_
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void
}}""")


@family(r"om_watch_atomic_(\d)")
def atomic(width_text: str) -> str:
    """The check of a read-modify-write, after it was done: lanes that met an undefined value."""
    width = int(width_text)
    t = f"i{8 * width}"
    defined = int.from_bytes(b"\1" * width, "little")
    return expand(f"""
define internal i32 @om_watch_atomic_{width}(
    ptr %w, ptr %warp, i32 %point, <32 x i64> %a, i32 %mask, i32 %strong
) noinline {{
{_loop(width, leave="ret i32 0", phi="%undef = phi i32 [0, %begin], [%undef1, %next]")}
  %seen = load {t}, ptr %valid, align 1
  store {t} {defined}, ptr %valid, align 1
  %known = icmp eq {t} %seen, {defined}
  br i1 %known, label %cellular, label %unknown
unknown:
  call void @om_watch_trace(ptr %w, i64 %b3, ptr %valid, i64 {width}, i64 %h)
  br label %cellular
cellular:
  %bit = shl i32 1, %i
  %new = select i1 %known, i32 0, i32 %bit
  %undef1 = or i32 %undef, %new
  br i1 %shadowed, label %cells_, label %next
cells_:
  %j = phi i64 [0, %cellular], [%j1, %cells_next]
  %co = shl i64 %j, 5
  %c = getelementptr i8, ptr %cell, i64 %co
  call void @om_watch_mark(ptr %w, i32 %i, i64 %me, ptr %c, i64 %floor, i64 %h, i1 false)
  br label %cells_next
cells_next:
  %j1 = add i64 %j, 1
  %last = icmp uge i64 %j1, %cells
  br i1 %last, label %next, label %cells_
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret i32 %undef1
}}""")


@family("om_watch_trace")
def trace() -> str:
    """Where an undefined value came from: from here, unless a store has brought it."""
    return expand("""
define internal void @om_watch_trace(
    ptr %w, i64 %point, ptr %valid, i64 %width, i64 %h
) cold noinline {
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
  %brought = icmp ugt i8 %v, 1
  br i1 %brought, label %there, label %next
next:
  %i1 = add i64 %i, 1
  br label %loop
there:
  %vz = zext i8 %v to i64
  %from = sub i64 %vz, 1
  set %k K.origin %from
  ret void
here:
  set %k K.origin %point
  %origins = get %k K.origins
  %origin = getelementptr i64, ptr %origins, i64 %point
  store i64 %h, ptr %origin
  ret void
}""")


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


@family("om_watch_members")
def members() -> str:
    """The member masks of a ``.sync`` instruction; those who share one meet there if ``meets``.

    PTX ISA, "bar.warp.sync", "shfl.sync": the executing lane must be a member, and every member
    that has not exited must execute the instruction.
    """
    return expand(f"""
define internal void @om_watch_members(
    ptr %w, i32 %point, <32 x i32> %members, i32 %mask, i32 %live, i32 %meets
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
  br i1 %does, label %meet, label %next
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
  call void @om_watch_release(ptr %w, i64 1, i64 %ordinal)
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
