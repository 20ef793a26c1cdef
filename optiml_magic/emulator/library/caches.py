"""What each block reads first, noted in a log; and a cache that is fed with it afterwards."""

from __future__ import annotations

from optiml_magic.emulator.ir import expand
from optiml_magic.emulator.layout import BLOCK_MARK
from optiml_magic.emulator.library import family


@family("om_log")
def log() -> str:
    """Note a sector that the running block reads for the first time; full, the log stays as is."""
    return expand(f"""
define internal void @om_log(ptr %w, i32 %x) noinline {{
entry:
  %base = get %w W.log
  %used = get %w W.log_used
  %room = get %w W.log_room
  %block = get %w W.block
  %owner = add i64 %block, 1
  %last = get %w W.log_block
  %same = icmp eq i64 %owner, %last
  br i1 %same, label %extend, label %open
extend:
  %before = sub i64 %used, 1
  %bp = getelementptr i64, ptr %base, i64 %before
  %first = load i32, ptr %bp
  %np = getelementptr i8, ptr %bp, i64 4
  %n = load i32, ptr %np
  %next = add i32 %first, %n
  %follows = icmp eq i32 %next, %x
  br i1 %follows, label %longer, label %append
longer:
  %n1 = add i32 %n, 1
  store i32 %n1, ptr %np
  ret void
open:
  %both = add i64 %used, 1
  %fits2 = icmp ult i64 %both, %room
  br i1 %fits2, label %mark, label %full
mark:
  %mp = getelementptr i64, ptr %base, i64 %used
  %b32 = trunc i64 %block to i32
  store i32 {BLOCK_MARK}, ptr %mp
  %mn = getelementptr i8, ptr %mp, i64 4
  store i32 %b32, ptr %mn
  set %w W.log_block %owner
  br label %append
append:
  %at = phi i64 [%used, %extend], [%both, %mark]
  %fits = icmp ult i64 %at, %room
  br i1 %fits, label %write, label %full
write:
  %wp = getelementptr i64, ptr %base, i64 %at
  store i32 %x, ptr %wp
  %wn = getelementptr i8, ptr %wp, i64 4
  store i32 1, ptr %wn
  %at1 = add i64 %at, 1
  set %w W.log_used %at1
  ret void
full:
  set %w W.log_room 0
  set %w W.log_used -1
  ret void
}}""")


@family("om_replay")
def replay() -> str:
    """Sectors that miss an LRU cache of ``capacity`` of them, read in the order of the runs.

    ``links``: for each sector, and one more that stands for the cache itself, the sectors before
    and after it by last use (i32 each), -1 for those that are not in the cache.
    """
    return expand("""
define i64 @om_replay(ptr %runs, i64 %count, ptr %links, i32 %self, i64 %capacity) {
entry:
  %selfz = zext i32 %self to i64
  %sb = getelementptr i64, ptr %links, i64 %selfz
  %sa = getelementptr i8, ptr %sb, i64 4
  store i32 %self, ptr %sb
  store i32 %self, ptr %sa
  br label %run
run:
  %i = phi i64 [0, %entry], [%i1, %ran]
  %missed = phi i64 [0, %entry], [%missed2, %ran]
  %held = phi i64 [0, %entry], [%held2, %ran]
  %over = icmp eq i64 %i, %count
  br i1 %over, label %done, label %open
open:
  %rp = getelementptr i64, ptr %runs, i64 %i
  %first = load i32, ptr %rp
  %np = getelementptr i8, ptr %rp, i64 4
  %n = load i32, ptr %np
  %end = add i32 %first, %n
  br label %sector
sector:
  %x = phi i32 [%first, %open], [%x1, %push]
  %m = phi i64 [%missed, %open], [%m1, %push]
  %h = phi i64 [%held, %open], [%h1, %push]
  %xz = zext i32 %x to i64
  %xb = getelementptr i64, ptr %links, i64 %xz
  %xa = getelementptr i8, ptr %xb, i64 4
  %before = load i32, ptr %xb
  %absent = icmp eq i32 %before, -1
  br i1 %absent, label %miss, label %hit
hit:
  %after = load i32, ptr %xa
  call void @om_join(ptr %links, i32 %before, i32 %after)
  br label %push
miss:
  %mm = add i64 %m, 1
  %full = icmp uge i64 %h, %capacity
  br i1 %full, label %evict, label %grow
grow:
  %hh = add i64 %h, 1
  br label %push
evict:
  %victim = load i32, ptr %sb
  %vz = zext i32 %victim to i64
  %vb = getelementptr i64, ptr %links, i64 %vz
  %vbefore = load i32, ptr %vb
  call void @om_join(ptr %links, i32 %vbefore, i32 %self)
  store i32 -1, ptr %vb
  br label %push
push:
  %m1 = phi i64 [%m, %hit], [%mm, %grow], [%mm, %evict]
  %h1 = phi i64 [%h, %hit], [%hh, %grow], [%h, %evict]
  %head = load i32, ptr %sa
  call void @om_join(ptr %links, i32 %x, i32 %head)
  call void @om_join(ptr %links, i32 %self, i32 %x)
  %x1 = add i32 %x, 1
  %last = icmp eq i32 %x1, %end
  br i1 %last, label %ran, label %sector
ran:
  %missed2 = phi i64 [%m1, %push]
  %held2 = phi i64 [%h1, %push]
  %i1 = add i64 %i, 1
  br label %run
done:
  ret i64 %missed
}""")


@family("om_join")
def join() -> str:
    """Make two sectors neighbours in the order of last use."""
    return """
define internal void @om_join(ptr %links, i32 %one, i32 %other) alwaysinline {
  %onez = zext i32 %one to i64
  %ob = getelementptr i64, ptr %links, i64 %onez
  %oa = getelementptr i8, ptr %ob, i64 4
  store i32 %other, ptr %oa
  %otherz = zext i32 %other to i64
  %tb = getelementptr i64, ptr %links, i64 %otherz
  store i32 %one, ptr %tb
  ret void
}"""
