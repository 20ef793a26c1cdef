"""Which arrays hold values that decide: which way a kernel goes, and where it reads and writes.

Values flow from parameters through registers, whatever the order of instructions; what lies in
shared and local memory may be any of what the kernel loads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from optiml_magic.ptx.nouns import (
    Address,
    Call,
    Function,
    Instruction,
    Operand,
    PtxModule,
    Register,
    Symbol,
    bits,
)
from optiml_magic.ptx.traits import defined, is_barrier, registers, used

_OWN = frozenset(["shared", "local"])
_LOADS = frozenset(["ld", "ldu", "atom", "ldmatrix"])
_STORES = frozenset(["st", "red", "atom"])
_ADDRESSES = _LOADS | _STORES | {"cp", "prefetch", "prefetchu", "mbarrier", "stmatrix"}
_ALL = frozenset(["bra", "brx", "cp", "mbarrier", "nanosleep"])  # each of their operands says
_WIDE = 64  # bits of an address
_HELD = ""  # what shared and local memory hold


@dataclass(frozen=True)
class Steering:
    """Parameters and variables by name: values in ``by`` decide, those in ``written`` change."""

    by: frozenset[str]
    written: frozenset[str]


class _Unknown(Exception):  # noqa: N818  # an expected end
    pass


@dataclass(frozen=True)
class _Source:
    """What a register comes from: a parameter or a variable, or a value that lies there."""

    name: str
    loaded: bool = False


def steering(module: PtxModule, kernel: str) -> Steering | None:
    """What decides in a kernel; None where it calls functions, or an address is not followed."""
    function = module.functions.get(kernel)
    if function is None or any(isinstance(item, Call) for item in function.body):
        return None
    try:
        return _Flow(module, function).steering()
    except _Unknown:
        return None


class _Flow:
    def __init__(self, module: PtxModule, function: Function) -> None:
        self._body = [item for item in function.body if isinstance(item, Instruction)]
        self._named = {v.name for v in (*function.params, *module.variables)
                       if v.space not in _OWN}  # fmt: skip
        self._from: dict[Register, frozenset[_Source]] = {}
        if any(isinstance(i, Symbol) for v in module.variables for i in v.initial):
            raise _Unknown
        while sum(self._step(item) for item in self._body):
            pass

    def steering(self) -> Steering:
        by, read, written = set[str](), set[str](), set[str]()
        for item in self._body:
            self._check(item)
            told = self._of(*_deciding(item))
            by |= {source.name for source in told if source.loaded}
            if item.base in _LOADS and not _is_in(item, {"param"}):
                read |= {source.name for source in self._loaded(item)}
            if item.base == "cp" and any(isinstance(o, Address) for o in item.operands):
                read |= {source.name for source in self._places(item)}
            if item.base in _STORES and not _is_in(item, _OWN):
                written |= {source.name for source in self._places(item)}
        by |= read if _HELD in by else set()
        return Steering(frozenset(by - {_HELD}), frozenset(written - {_HELD}))

    def _check(self, item: Instruction) -> None:
        """That no address goes to memory, and none is used in a way that is not followed."""
        addresses = [o for o in item.operands if isinstance(o, Address)]
        if (addresses and item.base not in _ADDRESSES) or _is_in(item, {"bulk"}):
            raise _Unknown
        if any(all(source.loaded for source in self._addressed(a)) for a in addresses):
            raise _Unknown
        if item.base in _STORES and any(not s.loaded for s in self._of(*_stored(item))):
            raise _Unknown

    def _step(self, item: Instruction) -> bool:
        """Whether the registers that an instruction sets come from more than was known."""
        found = self._loaded(item) if item.base in _LOADS else self._of(*used(item))
        if item.base == "mov":
            found |= {_Source(o.name) for o in item.operands if isinstance(o, Symbol)}
        if item.guard is not None:
            found |= self._of(item.guard)
        grown = False
        for register in defined(item):
            before = self._from.get(register, frozenset())
            self._from[register] = before | found
            grown |= not found <= before
        return grown

    def _of(self, *registers: Register) -> frozenset[_Source]:
        return frozenset().union(*(self._from.get(r, frozenset()) for r in registers))

    def _loaded(self, item: Instruction) -> frozenset[_Source]:
        """What a load gives: a parameter, or the values at the places where its address leads."""
        if _is_in(item, {"param"}):
            return self._addressed(*item.operands)
        if _is_in(item, _OWN):
            return frozenset([_Source(_HELD, loaded=True)])
        return frozenset(_Source(s.name, loaded=True) for s in self._places(item))

    def _places(self, item: Instruction) -> frozenset[_Source]:
        """The parameters and variables to which the addresses of an instruction lead."""
        bases = [s for s in self._addressed(*item.operands) if not s.loaded]
        return frozenset(s if s.name in self._named else _Source(_HELD) for s in bases)

    def _addressed(self, *operands: Operand) -> frozenset[_Source]:
        found = frozenset[_Source]()
        for operand in operands:
            match operand:
                case Address(base=Symbol(name=name)):
                    found |= {_Source(name)}
                case Address(base=Register() as base):
                    found |= self._of(base)
        return found


def _is_in(item: Instruction, spaces: Collection[str]) -> bool:
    """Whether an instruction names one of these spaces or kinds, ``shared::cta`` as well."""
    return any(part.split("::")[0] in spaces for part in item.parts)


def _stored(item: Instruction) -> Iterator[Register]:
    """The registers, wide enough for an address, that go to memory."""
    for operand in item.operands:
        if not isinstance(operand, Address):
            wide = (r for r in registers(operand) if bits(r.type) == _WIDE)
            yield from (r for r in wide if "f" not in r.type)


def _deciding(item: Instruction) -> Iterator[Register]:
    """The registers that say where an instruction reads or writes, or whether it is done."""
    if item.guard is not None:
        yield item.guard
    if item.base in _ALL or is_barrier(item):
        yield from used(item)
    elif item.base == "shfl":
        for operand in item.operands[2:]:
            yield from (operand,) if isinstance(operand, Register) else ()
    elif item.base in _ADDRESSES:
        for operand in item.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Register):
                yield operand.base
