"""printf: each lane leaves the address of its format and the bytes of its arguments."""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import LOCAL_BASE, PRINT, PRINT_ARGUMENTS, PRINT_CAPACITY
from optiml_magic.emulator.library import family

_ROOM = PRINT.size + PRINT_ARGUMENTS


@family("om_print")
def print_() -> str:
    """``a``: generic addresses of the arguments, in local memory; all that follows them is kept."""
    return expand(f"""
define internal void @om_print(
    ptr %w, ptr %warp, <32 x i64> %f, <32 x i64> %a, i32 %mask
) noinline {{
entry:
  %fp = alloca <32 x i64>, align 64
  %ap = alloca <32 x i64>, align 64
  store <32 x i64> %f, ptr %fp
  store <32 x i64> %a, ptr %ap
  %buffer = get %w W.printed
  %block = get %w W.block
  %number = get %w W.warp
  %first = mul i32 %number, 32
  %size = get %w W.local_size
  %local = get %warp P.local
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %lane
lane:
  %rest = phi i32 [%mask, %entry], [%rest1, %next]
  %k = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %below = sub i32 %rest, 1
  %rest1 = and i32 %rest, %below
  %kz = zext i32 %k to i64
  %used = get %w W.printed_bytes
  %full = icmp ugt i64 %used, {PRINT_CAPACITY - _ROOM}
  br i1 %full, label %lost, label %keep
lost:
  count %w W.printed_lost 1
  br label %next
keep:
  %record = getelementptr i8, ptr %buffer, i64 %used
  %fpi = getelementptr i64, ptr %fp, i64 %kz
  %format = load i64, ptr %fpi
  set %record R.format %format
  set %record R.block %block
  %thread = add i32 %first, %k
  set %record R.thread %thread
  %to = getelementptr i8, ptr %record, i64 {PRINT.size}
  %api = getelementptr i64, ptr %ap, i64 %kz
  %address = load i64, ptr %api
  %offset = sub i64 %address, {LOCAL_BASE}
  %there = icmp ult i64 %offset, %size
  %after = sub i64 %size, %offset
  %short = call i64 @llvm.umin.i64(i64 %after, i64 {PRINT_ARGUMENTS})
  %bytes = select i1 %there, i64 %short, i64 0
  %stack = mul i64 %kz, %size
  %own = getelementptr i8, ptr %local, i64 %stack
  %source = getelementptr i8, ptr %own, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %source, i64 %bytes, i1 false)
  count %w W.printed_bytes {_ROOM}
  br label %next
next:
  %end = icmp eq i32 %rest1, 0
  br i1 %end, label %done, label %lane
done:
  ret void
}}""")
