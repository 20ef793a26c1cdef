"""From lanes' addresses to host addresses, checked and counted; also how a fault is recorded."""

from __future__ import annotations

from optiml_magic.emulator.faults import code
from optiml_magic.emulator.ir import each, expand
from optiml_magic.emulator.layout import ALLOCATION, LOCAL_BASE, SHARED_BASE, WINDOW
from optiml_magic.emulator.library import family


@family("om_fault")
def fault() -> str:
    """Record a fault, unless this worker has one already."""
    return expand("""
define internal void @om_fault(
    ptr %w, i32 %kind, i32 %line, i32 %lane, i64 %address
) cold noinline {
  %old = get %w W.fault_kind
  %none = icmp eq i32 %old, 0
  br i1 %none, label %first, label %done
first:
  set %w W.fault_kind %kind
  set %w W.fault_line %line
  set %w W.fault_lane %lane
  set %w W.fault_address %address
  %warp = get %w W.warp
  set %w W.fault_warp %warp
  %block = get %w W.block
  set %w W.fault_block %block
  br label %done
done:
  ret void
}""")


@family("om_resolve_global")
def resolve_global() -> str:
    """Fast where all lanes stay in the allocation that this site met last."""
    return expand(
        """
define internal <32 x i64> @om_resolve_global(
    ptr %w, ptr %warp, ptr %site, <32 x i64> %a, i32 %mask, i64 %width, i32 %kind
) noinline {
  %ap = alloca <32 x i64>, align 64
  %hp = alloca <32 x i64>, align 64
  %sp = alloca <32 x i32>, align 64
  %mv = bitcast i32 %mask to <32 x i1>
  %lo = get %site S.lo
  %size = get %site S.size
  %fits = icmp uge i64 %size, %width
  %limit = sub i64 %size, %width
  %los = splat i64 %lo
  %rel = sub <32 x i64> %a, %los
  %limits = splat i64 %limit
  %low = sub i64 %width, 1
  %lows = splat i64 %low
  %far = icmp ugt <32 x i64> %rel, %limits
  %under = and <32 x i64> %a, %lows
  %odd = icmp ne <32 x i64> %under, zeroinitializer
  %bad0 = or <32 x i1> %far, %odd
  %bad1 = and <32 x i1> %bad0, %mv
  %bad = bitcast <32 x i1> %bad1 to i32
  %good = icmp eq i32 %bad, 0
  %fast = and i1 %good, %fits
  br i1 %fast, label %near, label %search
near:
  %host = get %site S.host
  %hosts = splat i64 %host
  %h0 = add <32 x i64> %rel, %hosts
  %sector = get %site S.sector
  %sector32 = trunc i64 %sector to i32
  %sectors = splat i32 %sector32
  %rel5 = lshr <32 x i64> %rel, """
        + each([5] * 32, 64)
        + """
  %rel32 = trunc <32 x i64> %rel5 to <32 x i32>
  %s0 = add <32 x i32> %rel32, %sectors
  br label %found
search:
  store <32 x i64> %a, ptr %ap
  call void @om_search(ptr %w, ptr %site, ptr %ap, i32 %mask, i64 %width, ptr %hp, ptr %sp)
  %h1 = load <32 x i64>, ptr %hp
  %s1 = load <32 x i32>, ptr %sp
  br label %found
found:
  %h = phi <32 x i64> [%h0, %near], [%h1, %search]
  %s = phi <32 x i32> [%s0, %near], [%s1, %search]
  %count = get %w W.count
  %on = icmp ne i64 %count, 0
  br i1 %on, label %counting, label %done
counting:
  call void @om_count_sectors(
    ptr %w, ptr %site, <32 x i32> %s, i32 %mask, i64 %width, i32 %kind, i64 1)
  %used = and i32 %kind, 3
  %atomic = icmp eq i32 %used, 3
  br i1 %atomic, label %meet, label %done
meet:
  call void @om_count_contention(ptr %w, ptr %site, <32 x i64> %a, i32 %mask, i32 %kind)
  br label %done
done:
  ret <32 x i64> %h
}"""
    )


@family("om_search")
def search() -> str:
    """Lane by lane through the allocation table; faults where a lane is in none."""
    return expand(f"""
define internal void @om_search(
    ptr %w, ptr %site, ptr %ap, i32 %mask, i64 %width, ptr %hp, ptr %sp
) noinline {{
entry:
  %sink = at %w W.sink0
  %sinki = ptrtoint ptr %sink to i64
  %table = get %w W.table
  %n = get %w W.table_count
  %line = get %site S.line
  %low = sub i64 %width, 1
  br label %lane
lane:
  %i = phi i32 [0, %entry], [%i1, %next]
  %iz = zext i32 %i to i64
  %api = getelementptr i64, ptr %ap, i64 %iz
  %hpi = getelementptr i64, ptr %hp, i64 %iz
  %spi = getelementptr i32, ptr %sp, i64 %iz
  store i64 %sinki, ptr %hpi
  store i32 0, ptr %spi
  %m0 = lshr i32 %mask, %i
  %m1 = trunc i32 %m0 to i1
  br i1 %m1, label %active, label %next
active:
  %a = load i64, ptr %api
  br label %entry_of
entry_of:
  %t = phi i64 [0, %active], [%t1, %other]
  %end = icmp eq i64 %t, %n
  br i1 %end, label %nowhere, label %compare
compare:
  %row0 = mul i64 %t, {ALLOCATION.size}
  %row = getelementptr i8, ptr %table, i64 %row0
  %lo = get %row A.lo
  %size = get %row A.size
  %rel = sub i64 %a, %lo
  %in0 = icmp ult i64 %rel, %size
  %rest = sub i64 %size, %rel
  %in1 = icmp uge i64 %rest, %width
  %in = and i1 %in0, %in1
  br i1 %in, label %hit, label %other
other:
  %t1 = add i64 %t, 1
  br label %entry_of
nowhere:
  call void @om_fault(ptr %w, i32 {code("out_of_bounds")}, i32 %line, i32 %i, i64 %a)
  br label %next
hit:
  %under = and i64 %a, %low
  %even = icmp eq i64 %under, 0
  br i1 %even, label %good, label %misaligned
misaligned:
  call void @om_fault(ptr %w, i32 {code("misaligned")}, i32 %line, i32 %i, i64 %a)
  br label %next
good:
  %host = get %row A.host
  %sector = get %row A.sector
  set %site S.lo %lo
  set %site S.size %size
  set %site S.host %host
  set %site S.sector %sector
  %h = add i64 %host, %rel
  store i64 %h, ptr %hpi
  %r5 = lshr i64 %rel, 5
  %s = add i64 %sector, %r5
  %s32 = trunc i64 %s to i32
  store i32 %s32, ptr %spi
  br label %next
next:
  %i1 = add i32 %i, 1
  %last = icmp eq i32 %i1, 32
  br i1 %last, label %done, label %lane
done:
  ret void
}}""")


def _window(name: str, base: str, size: str, count: str) -> str:
    """Resolve in a space of small offsets: shared, or a lane's local memory."""
    return expand(f"""
define internal <32 x i64> @{name}(
    ptr %w, ptr %warp, ptr %site, <32 x i64> %a, i32 %mask, i64 %width, i32 %kind
) noinline {{
  %mv = bitcast i32 %mask to <32 x i1>
  %size = get %w W.{size}
  %fits = icmp uge i64 %size, %width
  %limit0 = sub i64 %size, %width
  %limit = select i1 %fits, i64 %limit0, i64 0
  %limits = splat i64 %limit
  %low = sub i64 %width, 1
  %lows = splat i64 %low
  %none0 = xor i1 %fits, true
  %none = splat i1 %none0
  %far0 = icmp ugt <32 x i64> %a, %limits
  %far1 = or <32 x i1> %far0, %none
  %far2 = and <32 x i1> %far1, %mv
  %under = and <32 x i64> %a, %lows
  %odd0 = icmp ne <32 x i64> %under, zeroinitializer
  %odd1 = and <32 x i1> %odd0, %mv
  %far = bitcast <32 x i1> %far2 to i32
  %odd = bitcast <32 x i1> %odd1 to i32
  %bad = or i32 %far, %odd
  %good = icmp eq i32 %bad, 0
  {base}
  br i1 %good, label %fine, label %faulty
faulty:
  %isfar = icmp ne i32 %far, 0
  %which = select i1 %isfar, i32 %far, i32 %odd
  %lane = call i32 @llvm.cttz.i32(i32 %which, i1 false)
  %address = extractelement <32 x i64> %a, i32 %lane
  %code = select i1 %isfar, i32 {code("out_of_bounds")}, i32 {code("misaligned")}
  %line = get %site S.line
  call void @om_fault(ptr %w, i32 %code, i32 %line, i32 %lane, i64 %address)
  %sink = at %w W.sink0
  %sinki = ptrtoint ptr %sink to i64
  %sinks = splat i64 %sinki
  ret <32 x i64> %sinks
fine:
  %h = add <32 x i64> %a, %bases
  %count = get %w W.count
  %on = icmp ne i64 %count, 0
  br i1 %on, label %counting, label %done
counting:
  {count}
  br label %done
done:
  ret <32 x i64> %h
}}""")


@family("om_resolve_shared")
def resolve_shared() -> str:
    return _window(
        "om_resolve_shared",
        """%base0 = get %w W.shared
  %basei = ptrtoint ptr %base0 to i64
  %bases = splat i64 %basei""",
        "shared_size",
        """%a32 = trunc <32 x i64> %a to <32 x i32>
  call void @om_count_banks(
    ptr %w, ptr %site, <32 x i32> %a32, i32 %mask, i64 %width, i32 %kind)""",
    )


@family("om_resolve_local")
def resolve_local() -> str:
    """Hardware interleaves local memory by 4-byte words, so that is how its sectors are counted."""
    lanes = each(range(32), 64)
    octets = each([lane // 8 for lane in range(32)], 32)
    return _window(
        "om_resolve_local",
        f"""%base0 = get %warp P.local
  %basei = ptrtoint ptr %base0 to i64
  %based = splat i64 %basei
  %strides = splat i64 %size
  %offsets = mul <32 x i64> %strides, {lanes}
  %bases = add <32 x i64> %based, %offsets""",
        "local_size",
        f"""%a2 = lshr <32 x i64> %a, {each([2] * 32, 64)}
  %a32 = trunc <32 x i64> %a2 to <32 x i32>
  %a4 = shl <32 x i32> %a32, {each([2] * 32, 32)}
  %s = add <32 x i32> %a4, {octets}
  %w2 = lshr i64 %width, 2
  %words = call i64 @llvm.umax.i64(i64 %w2, i64 1)
  call void @om_count_sectors(
    ptr %w, ptr %site, <32 x i32> %s, i32 %mask, i64 %width, i32 0, i64 %words)""",
    )


@family("om_resolve_generic")
def resolve_generic() -> str:
    """Each lane by the window its address lies in; three sites lie behind each other."""
    return expand(f"""
define internal <32 x i64> @om_resolve_generic(
    ptr %w, ptr %warp, ptr %site, <32 x i64> %a, i32 %mask, i64 %width, i32 %kind
) noinline {{
entry:
  %mv = bitcast i32 %mask to <32 x i1>
  %ss = sub <32 x i64> %a, {each([SHARED_BASE] * 32, 64)}
  %ls = sub <32 x i64> %a, {each([LOCAL_BASE] * 32, 64)}
  %iss = icmp ult <32 x i64> %ss, {each([WINDOW] * 32, 64)}
  %isl = icmp ult <32 x i64> %ls, {each([WINDOW] * 32, 64)}
  %ms0 = bitcast <32 x i1> %iss to i32
  %ml0 = bitcast <32 x i1> %isl to i32
  %ms = and i32 %ms0, %mask
  %ml = and i32 %ml0, %mask
  %msl = or i32 %ms, %ml
  %mn = xor i32 %msl, -1
  %mg = and i32 %mask, %mn
  %site1 = getelementptr i8, ptr %site, i64 96
  %site2 = getelementptr i8, ptr %site, i64 192
  %hasg = icmp ne i32 %mg, 0
  br i1 %hasg, label %global, label %notglobal
global:
  %hg = call <32 x i64> @om_resolve_global(
    ptr %w, ptr %warp, ptr %site, <32 x i64> %a, i32 %mg, i64 %width, i32 %kind)
  br label %notglobal
notglobal:
  %r0 = phi <32 x i64> [zeroinitializer, %entry], [%hg, %global]
  %hass = icmp ne i32 %ms, 0
  br i1 %hass, label %shared, label %notshared
shared:
  %hs = call <32 x i64> @om_resolve_shared(
    ptr %w, ptr %warp, ptr %site1, <32 x i64> %ss, i32 %ms, i64 %width, i32 %kind)
  %hss = select <32 x i1> %iss, <32 x i64> %hs, <32 x i64> %r0
  br label %notshared
notshared:
  %r1 = phi <32 x i64> [%r0, %notglobal], [%hss, %shared]
  %hasl = icmp ne i32 %ml, 0
  br i1 %hasl, label %local, label %done
local:
  %hl = call <32 x i64> @om_resolve_local(
    ptr %w, ptr %warp, ptr %site2, <32 x i64> %ls, i32 %ml, i64 %width, i32 %kind)
  %hll = select <32 x i1> %isl, <32 x i64> %hl, <32 x i64> %r1
  br label %done
done:
  %r = phi <32 x i64> [%r1, %notshared], [%hll, %local]
  ret <32 x i64> %r
}}""")
