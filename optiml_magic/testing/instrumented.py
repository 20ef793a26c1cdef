"""PTX that logs its own accesses: before each load, store and atomic a note of who touches what.

The log is a variable of the module. A note is two words: the address, and the block, the thread and
the site in one. What is added is plain PTX in front of the instructions that were there, under
their predicates, and no jump: lanes meet, wait and return as they did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.emulator import calls
from optiml_magic.model.counters import Access
from optiml_magic.ptx.nouns import (
    Address,
    Function,
    Immediate,
    Instruction,
    Item,
    Negated,
    Operand,
    PtxModule,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
    bits,
)

LOG, USED = "optiml_log", "optiml_log_used"
MOST_NOTES = 1 << 25  # pages of the log are committed on first use
SITE_BITS, THREAD_BITS = 22, 10  # of a note's second word; the block has the bits above
_ACCESS: dict[str, Access] = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic",
}  # fmt: skip
_THREAD = Register("%optiml_thread", "u64")  # the second word, less the site
_AT, _WORD = Register("%optiml_at", "u64"), Register("%optiml_word", "u64")
_NARROW, _INDEX = Register("%optiml_narrow", "u32"), Register("%optiml_index", "u64")
_SOME = Register("%optiml_some", "pred")


@dataclass(frozen=True)
class LoggedSite:
    """An instruction of the PTX that notes its addresses; ``shared`` ones are offsets."""

    access: Access
    width: int  # bytes
    line: int
    shared: bool


def instrumented(module: PtxModule) -> tuple[PtxModule, tuple[LoggedSite, ...]]:
    """The module with its log, and what the numbers of the sites in it mean.

    Constant, local and parameter memory are not logged. Raises UnsupportedPtx where a call cannot
    be inlined.
    """
    sites: list[LoggedSite] = []
    functions = {
        name: _logging(calls.inline(module, function), sites) if function.entry else function
        for name, function in module.functions.items()
    }
    log = Variable(LOG, "global", 16 * (MOST_NOTES + 1), 16)  # what finds no room meets at the end
    used = Variable(USED, "global", 8, 8)
    return PtxModule([*module.variables, used, log], functions), tuple(sites)


def _logging(function: Function, sites: list[LoggedSite]) -> Function:
    body: list[Item] = list(_who())
    for item in function.body:
        if isinstance(item, Instruction):
            for site, address in _accesses(item):
                body += _note(item, address, len(sites), site)
                sites.append(site)
        body.append(item)
    return replace(function, body=body)


def _accesses(i: Instruction) -> Iterator[tuple[LoggedSite, Address]]:
    """What an instruction touches in global and shared memory, and where."""
    if i.opcode.startswith("cp.async.") and len(i.operands) > 2:
        match i.operands[:3]:  # a size that is not constant cannot be lowered
            case Address() as to, Address() as source, Immediate(value=width):
                yield LoggedSite("load", width, i.line, shared=False), source
                yield LoggedSite("store", width, i.line, shared=True), to
    elif i.base in _ACCESS and not {"local", "const"} & set(i.parts):
        place, value = _place_and_value(i)
        space = {part.split("::")[0] for part in i.parts}
        if "param" not in space and isinstance(place, Address):
            count = len(value.items) if isinstance(value, Vector) else 1
            width = count * bits(i.type) // 8
            yield LoggedSite(_ACCESS[i.base], width, i.line, shared="shared" in space), place


def _place_and_value(i: Instruction) -> tuple[Operand, Operand]:
    """The address of an access, and the operand that is as wide as it."""
    if i.base in ("ld", "ldu"):
        return i.operands[1], i.operands[0]
    if i.base == "atom":
        return i.operands[1], i.operands[2]
    return i.operands[0], i.operands[1]


def _who() -> Iterator[Instruction]:
    """The block and the thread in it, each counted with x fastest."""

    def axis(name: str, at: str) -> Special:
        return Special(f"%{name}.{at}")

    for register, place, extent in (
        (_INDEX, "ctaid", "nctaid"),
        (_WORD, "tid", "ntid"),
    ):
        yield _added("mov.u32", _NARROW, axis(place, "z"))
        for at in "yx":
            yield _added("mad.lo.u32", _NARROW, _NARROW, axis(extent, at), axis(place, at))
        yield _added("cvt.u64.u32", register, _NARROW)
    yield _added("mad.lo.u64", _THREAD, _INDEX, Immediate(1 << THREAD_BITS), _WORD)
    yield _added("shl.b64", _THREAD, _THREAD, Immediate(SITE_BITS))


def _note(i: Instruction, address: Address, number: int, site: LoggedSite) -> Iterator[Instruction]:
    """Take the next place in the log, in all lanes that execute ``i``, and write the note there."""
    guard, unless = i.guard, i.unless
    if i.base == "cp" and not site.shared and len(i.operands) > 3:
        # A copy of zero bytes is a fill with zeros: it reads nothing.
        given = (_SOME, i.operands[3], Immediate(0))
        if guard is None:
            yield _added("setp.ne.u32", *given)
        else:
            yield _added("setp.ne.and.u32", *given, Negated(guard) if unless else guard)
        guard, unless = _SOME, False
    yield from _address(address)
    yield _added("add.u64", _WORD, _THREAD, Immediate(number))
    yield _added("mov.u64", _INDEX, Immediate(0))  # a predicated result would keep an old one alive
    take = _added("atom.global.add.u64", _INDEX, Address(Symbol(USED)), Immediate(1))
    yield replace(take, guard=guard, unless=unless)
    yield _added("min.u64", _INDEX, _INDEX, Immediate(MOST_NOTES))
    yield _added("mad.lo.u64", _INDEX, _INDEX, Immediate(16), Symbol(LOG))
    note = _added("st.global.v2.u64", Address(_INDEX), Vector((_AT, _WORD)))
    yield replace(note, guard=guard, unless=unless)


def _address(address: Address) -> Iterator[Instruction]:
    base, offset = address.base, address.offset
    if isinstance(base, Symbol):
        yield _added("mov.u64", _AT, replace(base, offset=base.offset + offset))
    elif isinstance(base, Register) and bits(base.type) == 32:  # of shared memory; wraps around
        yield _added("add.u32", _NARROW, base, Immediate(offset))
        yield _added("cvt.u64.u32", _AT, _NARROW)
    else:
        yield _added("add.u64", _AT, base, Immediate(offset))


def _added(opcode: str, *operands: Operand) -> Instruction:
    return Instruction(opcode, operands, 0, counted=False)
