"""ld, st, atom, red: addresses to host addresses (checked and counted), then the access.

Source: PTX ISA, "Data Movement and Conversion Instructions", "atom", "red".
"""

from __future__ import annotations

from optiml_magic.emulator.faults import code
from optiml_magic.emulator.instructions import half
from optiml_magic.emulator.instructions.table import lowers
from optiml_magic.emulator.ir import constant, integers
from optiml_magic.emulator.lanes import Lanes
from optiml_magic.emulator.layout import SITE, WORKER
from optiml_magic.emulator.sites import Site
from optiml_magic.model.counters import Access, Space
from optiml_magic.ptx.nouns import (
    Address,
    Instruction,
    Operand,
    Register,
    Sink,
    Symbol,
    Vector,
    bits,
)

_SPACES = ("global", "shared", "local", "const", "param")
_KIND = {"load": 1, "store": 2, "atomic": 3}
_MERGED = 8  # ptxas adds up what all lanes of a warp do at one word
_MERGING = frozenset(["add", "min", "max", "and", "or", "xor"])
PARAMETER = "param:"  # prefix of a kernel parameter among the symbols: its address is an offset


_TAKES = (
    "global shared local const param shared::cta param::entry param::func v2 v4 "
    "weak volatile relaxed acquire release acq_rel sc mmio cta gpu sys cluster "
    "nc ca cg cs lu cv wb wt L1::no_allocate L1::evict_normal L1::evict_first L1::evict_last "
    "L1::evict_unchanged L2::evict_normal L2::evict_first L2::evict_last L2::64B L2::128B L2::256B "
    "L2::cache_hint "
)
_ATOMIC_TAKES = _TAKES + "add min max exch cas and or xor inc dec noftz"


@lowers("ld", "ldu", takes=_TAKES)
def load(k: Lanes, i: Instruction) -> None:
    target, address = i.operands[:2]
    items = target.items if isinstance(target, Vector) else (target,)
    if _is_parameter(k, address):
        _load_parameter(k, i, items, address)
        return
    hosts = resolve(k, i, address, "load", len(items) * bits(i.type) // 8)
    for at, item in enumerate(items):
        value = gather(k, i.type, shifted(k, hosts, at * bits(i.type) // 8))
        k.write(item, value, i.type)


@lowers("st", takes=_TAKES)
def store(k: Lanes, i: Instruction) -> None:
    address, source = i.operands[:2]
    items = source.items if isinstance(source, Vector) else (source,)
    hosts = resolve(k, i, address, "store", len(items) * bits(i.type) // 8)
    for at, item in enumerate(items):
        width = bits(i.type)
        to = shifted(k, hosts, at * width // 8)
        value = k.read(item, i.type)
        if k.watch and k.hosts:
            k.watch.store(k, i, to, value, item)
        else:
            scatter(k, i.type, to, value, k.mask())


@lowers("atom", "red", takes=_ATOMIC_TAKES)
def atomic(k: Lanes, i: Instruction) -> None:
    target: Operand = Sink()
    operands = i.operands
    if i.base == "atom":
        target, *rest = i.operands
        operands = tuple(rest)
    if "L2::cache_hint" in i.parts:
        operands = operands[:-1]
    operation = next(p for p in i.parts if p in _OPERATIONS)
    width = bits(i.type)
    if half.is_half(i.type) and operation == "add":
        sort = "bf_" if i.type.startswith("b") else "f_"
    elif width > 64 or half.is_half(i.type) or (operation, i.type[0]) in _NO_FLOAT:
        raise k.unsupported()
    else:
        sort = i.type[0] if i.type[0] == "f" or operation in ("min", "max") else "i"
    space = "shared" if _space(i) == "shared" else "global"
    columns = [o.items if isinstance(o, Vector) else (o,) for o in operands[1:]]
    rows = list(zip(*columns, strict=True))
    targets = target.items if isinstance(target, Vector) else (target,) * len(rows)
    merged = width == 32 and sort != "f" and operation in _MERGING and not half.is_half(i.type)
    kind = _KIND["atomic"] | (_MERGED if merged else 0)
    swaps = sort.endswith(("f", "f_"))
    hosts = resolve(k, i, operands[0], "atomic", len(rows) * width // 8, kind=kind, swaps=swaps)
    for at, (item, row) in enumerate(zip(targets, rows, strict=True)):
        first, second = (k.read(o, i.type) for o in (row[0], row[-1]))
        old = k.call(
            f"om_atom_{operation}_{sort}{width}_{space}",
            integers(width),
            f"{integers(64)} {shifted(k, hosts, at * width // 8)}",
            f"{integers(width)} {first}",
            f"{integers(width)} {second}",
            f"i32 {k.mask()}",
        )
        k.write(item, old, i.type)


_NO_FLOAT = frozenset((name, "f") for name in ("min", "max", "and", "or", "xor", "inc", "dec"))
_OPERATIONS = frozenset(["add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"])


@lowers("assertfail", takes="param")
def assertfail(k: Lanes, i: Instruction) -> None:
    """A failed assert; the address of its text travels in the fault."""
    text = gather(k, "u64", resolve(k, i, i.operands[0], "load", 8))
    lane = k.code.let(f"call i32 @llvm.cttz.i32(i32 {k.mask()}, i1 false)")
    wrapped = k.code.let(f"and i32 {lane}, 31")
    address = k.code.let(f"extractelement {integers(64)} {text}, i32 {wrapped}")
    k.code.do(
        f"call void @om_fault(ptr %w, i32 {code('assertion')}, i32 {i.line}, i32 {lane}, "
        f"i64 {address})"
    )


@lowers("vprintf", takes="param")
def print_(k: Lanes, i: Instruction) -> None:
    """What printf was given is kept, to be made into text after the launch."""
    text, arguments = (gather(k, "u64", resolve(k, i, o, "load", 8)) for o in i.operands)
    k.tables.prints = True
    k.call(
        "om_print",
        "void",
        "ptr %w",
        "ptr %warp",
        f"{integers(64)} {text}",
        f"{integers(64)} {arguments}",
        f"i32 {k.mask()}",
    )


@lowers("createpolicy", takes="fractional range L2::evict_unchanged " + _TAKES)
def policy(k: Lanes, i: Instruction) -> None:
    """What a hint of a later access is; all are alike here."""
    k.write(i.operands[0], "zeroinitializer", i.type)


@lowers("prefetch", "prefetchu", "discard", "applypriority", takes=_TAKES + "L1 L2 L2::128")
def hint(_k: Lanes, _i: Instruction) -> None:
    """Cache hints change no value."""


def resolve(  # noqa: PLR0913  # an access has this many parts
    k: Lanes,
    i: Instruction,
    operand: Operand,
    access: Access,
    width: int,
    *,
    space: str = "",
    mask: str = "",
    kind: int = 0,
    swaps: bool = False,
) -> str:
    """Host addresses of the active lanes (or of ``mask``), after the checks; counts the request."""
    if not isinstance(operand, Address):
        raise k.unsupported("an access without an address")
    space = space or _space(i)
    counted = space not in ("const", "param")
    if space == "param" and isinstance(operand.base, Symbol):
        space = "local"  # where the arguments of inlined functions lie
    met: Space = "global" if space in ("const", "param") else space  # type: ignore[assignment]
    spaces: tuple[Space, ...] = ("global", "shared", "local") if space == "generic" else (met,)
    site = k.tables.site(Site(i.line, access, width, spaces, counted, swaps))
    base = k.code.get("%w", WORKER, "sites")
    pointer = k.code.let(f"getelementptr i8, ptr {base}, i64 {site * SITE.size}")
    hosts = k.call(
        f"om_resolve_{'generic' if space == 'generic' else met}",
        integers(64),
        "ptr %w",
        "ptr %warp",
        f"ptr {pointer}",
        f"{integers(64)} {addresses(k, operand)}",
        f"i32 {mask or k.mask()}",
        f"i64 {width}",
        f"i32 {(kind or _KIND[access]) if counted else 0}",
    )
    if counted:
        k.hosts = hosts
    return hosts


def addresses(k: Lanes, address: Address) -> str:
    """The lanes' addresses within their space, as i64."""
    match address.base:
        case Symbol():
            return constant(k.address_of(address.base) + address.offset, 64)
        case Register(type=type_) if bits(type_) == 32:
            # A compiler may fold a negative start into the register: 32 bits wrap around.
            base = k.read(address.base, "u32")
            if address.offset:
                offset = constant(address.offset, 32)
                base = k.code.let(f"add {integers(32)} {base}, {offset}")
            return k.resize(base, 32, 64)
        case _:
            base = k.read(address.base, "u64")
    if not address.offset:
        return base
    return k.code.let(f"add {integers(64)} {base}, {constant(address.offset, 64)}")


def _space(i: Instruction) -> str:
    named = next((p for p in i.parts if p.split("::")[0] in _SPACES), "generic")
    return named.split("::")[0]


def shifted(k: Lanes, hosts: str, offset: int) -> str:
    if not offset:
        return hosts
    return k.code.let(f"add {integers(64)} {hosts}, {constant(offset, 64)}")


def gather(k: Lanes, type_: str, hosts: str, mask: str = "") -> str:
    width = bits(type_)
    return k.call(
        f"om_gather_{width // 8}",
        integers(width),
        f"{integers(64)} {hosts}",
        f"i32 {mask or k.mask()}",
    )


def scatter(k: Lanes, type_: str, hosts: str, value: str, mask: str) -> None:
    width = bits(type_)
    k.call(
        f"om_scatter_{width // 8}",
        "void",
        f"{integers(64)} {hosts}",
        f"{integers(width)} {value}",
        f"i32 {mask}",
    )


def _is_parameter(k: Lanes, operand: Operand) -> bool:
    return (
        isinstance(operand, Address)
        and isinstance(operand.base, Symbol)
        and PARAMETER + operand.base.name in k.symbols
    )


def _load_parameter(k: Lanes, i: Instruction, items: tuple[Operand, ...], operand: Operand) -> None:
    """Kernel parameters are the same for all lanes: one scalar load."""
    assert isinstance(operand, Address)
    assert isinstance(operand.base, Symbol)
    offset = k.symbols[PARAMETER + operand.base.name] + operand.base.offset + operand.offset
    params = k.code.get("%w", WORKER, "params")
    width = bits(i.type)
    for at, item in enumerate(items):
        pointer = k.code.let(f"getelementptr i8, ptr {params}, i64 {offset + at * width // 8}")
        value = k.code.let(f"load i{width}, ptr {pointer}, align 1")
        k.write(item, k.code.splat(value, f"i{width}"), i.type)
