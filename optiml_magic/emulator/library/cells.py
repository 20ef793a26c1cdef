"""The cells of a checked kernel: what an access conflicts with, and the record that it leaves."""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import ALLOCATION, POINT_SHIFT, STRONG_SHIFT, TIME_SHIFT
from optiml_magic.emulator.library import family
from optiml_magic.emulator.library.checking import ORIGINS, SWAP, VOLATILE


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
  %traced = call i1 @om_watch_trace(
    ptr %w, i64 %b3, ptr %valid, i64 {width}, i64 %h, i64 %me, ptr %cell)
  br label %cellular
cellular:
  %isundef = phi i1 [false, %lane], [%traced, %unknown]
  %bit = shl i32 1, %i
  %new = select i1 %isundef, i32 %bit, i32 0
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
  %far = icmp ugt i32 %origin, {ORIGINS}
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
  %traced = call i1 @om_watch_trace(
    ptr %w, i64 %b3, ptr %valid, i64 {width}, i64 %h, i64 %me, ptr %cell)
  br label %cellular
cellular:
  %isundef = phi i1 [false, %lane], [%traced, %unknown]
  %bit = shl i32 1, %i
  %new = select i1 %isundef, i32 %bit, i32 0
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
