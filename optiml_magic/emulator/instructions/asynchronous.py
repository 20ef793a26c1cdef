"""cp.async and mbarrier: what may happen at any time before a wait happens at once here.

Source: PTX ISA, "cp.async", "mbarrier". Of cp.async's source, all bytes of the copy are checked.
"""

from __future__ import annotations

from optiml_magic.emulator.instructions import access
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers, vector
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.ptx.nouns import Immediate, Instruction, Operand, Sink

_HINTS = "L2::cache_hint L2::64B L2::128B L2::256B"
_SCOPES = "release acquire relaxed cta cluster"


@lowers(
    "cp",
    takes=f"async ca cg shared shared::cta global commit_group wait_group wait_all mbarrier arrive "
    f"noinc {_HINTS}",
)
def copy(k: Lanes, i: Instruction) -> None:
    if i.parts[1] != "async":
        raise k.unsupported()
    if "mbarrier" in i.parts:
        # The copies are done: with .noinc that is an arrival, without it neither more nor less.
        if k.watch:
            k.watch.boards(k, _word(k, i, i.operands[0]))
        if "noinc" in i.parts:
            _arrive(k, i, i.operands[0], constant(1, 32), "arrive")
    elif not {"commit_group", "wait_group", "wait_all"} & set(i.parts):
        _copy(k, i)


def _copy(k: Lanes, i: Instruction) -> None:
    hinted = "L2::cache_hint" in i.parts  # by a policy that stands last
    to, source, size, *rest = i.operands[:-1] if hinted else i.operands
    if not isinstance(size, Immediate):
        raise k.unsupported("a size that is not constant")
    width = size.value
    given = k.read(rest[0], "u32") if rest else constant(width, 32)
    some = k.code.let(f"icmp ne {integers(32)} {given}, zeroinitializer")
    some = k.code.let(f"and {vector('i1')} {some}, {k.mask_vector()}")
    mask = k.code.let(f"bitcast {vector('i1')} {some} to i32")
    hosts = access.resolve(k, i, source, "load", width, space="global", mask=mask)
    targets = access.resolve(k, i, to, "store", width, space="shared")
    for at in range(0, width, 4):
        if k.watch:
            k.watch.copied(i, access.shifted(k, hosts, at), mask)
        value = access.gather(k, "b32", access.shifted(k, hosts, at), mask)
        if rest:
            value = _kept(k, value, given, at)
        if k.watch:
            k.watch.deliver(k, i, access.shifted(k, targets, at), value)
        else:
            access.scatter(k, "b32", access.shifted(k, targets, at), value, k.mask())


def _kept(k: Lanes, value: str, given: str, at: int) -> str:
    """The bytes of a word that lie before the end of the source, zeros behind it."""
    t = integers(32)
    mask = "zeroinitializer"
    for byte in range(4):
        inside = k.code.let(f"icmp ugt {t} {given}, {constant(at + byte, 32)}")
        bits = constant(255 << 8 * byte, 32)
        bits = k.code.let(f"select {vector('i1')} {inside}, {t} {bits}, {t} zeroinitializer")
        mask = k.code.let(f"or {t} {mask}, {bits}")
    return k.code.let(f"and {t} {value}, {mask}")


@lowers(
    "mbarrier",
    takes=f"init inval arrive arrive_drop noComplete test_wait try_wait parity pending_count "
    f"shared shared::cta {_SCOPES}",
)
def barrier(k: Lanes, i: Instruction) -> None:
    """An mbarrier is one word: expected arrivals, pending ones and the phase, 20 bits each."""
    name = i.parts[1]
    if name == "init":
        _init(k, i)
    elif name in ("arrive", "arrive_drop"):
        target, address, *count = i.operands
        given = k.read(count[0], "u32") if count else constant(1, 32)
        k.write(target, _arrive(k, i, address, given, name), "b64")
    elif name in ("test_wait", "try_wait"):
        _test(k, i)
    elif name == "pending_count":
        state = k.read(i.operands[1], "b64")
        moved = k.code.let(f"lshr {integers(64)} {state}, {constant(20, 64)}")
        low = k.code.let(f"and {integers(64)} {moved}, {constant((1 << 20) - 1, 64)}")
        k.write(i.operands[0], k.resize(low, 64, 32), "u32")
    elif name != "inval":
        raise k.unsupported()


def _word(k: Lanes, i: Instruction, address: Operand) -> str:
    return access.resolve(k, i, address, "atomic", 8)


def _init(k: Lanes, i: Instruction) -> None:
    count = k.resize(k.read(i.operands[1], "u32"), 32, 64)
    up = k.code.let(f"shl {integers(64)} {count}, {constant(20, 64)}")
    word = k.code.let(f"or {integers(64)} {count}, {up}")
    hosts = _word(k, i, i.operands[0])
    access.scatter(k, "b64", hosts, word, k.mask())
    if k.watch:
        k.watch.begins(k, hosts)


def _arrive(k: Lanes, i: Instruction, address: Operand, count: str, name: str) -> str:
    """The state before the arrival, which names the phase."""
    hosts = _word(k, i, address)
    wide = k.resize(count, 32, 64)
    drop = constant(int(name == "arrive_drop"), 64)
    old = k.call(
        "om_mbarrier_arrive",
        integers(64),
        f"{integers(64)} {hosts}",
        f"{integers(64)} {wide}",
        f"{integers(64)} {drop}",
        f"i32 {k.mask()}",
    )
    if k.watch:
        k.watch.arrives(k, i, hosts, old, wide)
    return old


def _test(k: Lanes, i: Instruction) -> None:
    """Whether the phase of a state, or that of a parity, is over."""
    t = integers(64)
    hosts = _word(k, i, i.operands[1])
    word = access.gather(k, "b64", hosts)
    phase = k.code.let(f"lshr {t} {word}, {constant(40, 64)}")
    if "parity" in i.parts:
        low = k.code.let(f"and {t} {phase}, {constant(1, 64)}")
        asked = k.resize(k.read(i.operands[2], "u32"), 32, 64)
        asked = k.code.let(f"and {t} {asked}, {constant(1, 64)}")
    else:
        low = phase
        asked = k.code.let(f"lshr {t} {k.read(i.operands[2], 'b64')}, {constant(40, 64)}")
    over = k.code.let(f"icmp ne {t} {low}, {asked}")
    if k.watch:
        k.watch.tested(k, hosts, over)
    if not isinstance(i.operands[0], Sink):
        k.write(i.operands[0], over, "pred")
