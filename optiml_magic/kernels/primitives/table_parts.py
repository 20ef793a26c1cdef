"""P10, a part of a table in shared memory: that of a block, where data say a place in it alone.

``luts[query * 8192 + k * 256 + code]`` with a byte for ``code`` stays within 8,192 elements of
where the block begins, however many queries there are. So the block brings these, and each thread
asks for how far behind their first its element is. Source: CUDA C++ Programming Guide, "Shared
Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.tabled import by_data, check_table, passed
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Statement
from optiml_magic.source.expressions import parse_expression

_FIXED = ("builtin", "scalar", "operation")


@dataclass(frozen=True)
class Part:
    """``count`` elements of an array from ``base`` on, in all threads of a block the same."""

    array: str
    kind: str
    base: Polynomial
    count: int
    bytes: int
    line: int
    looped: bool
    accesses: tuple[Access, ...]


def table_parts(kernel: Kernel) -> Iterator[Part | Refused]:
    """The parts of larger tables in which the data say what a block loads."""
    facts = kernel.facts
    for array in dict.fromkeys(a.array for a in kernel.reading.accesses if a.space == "global"):
        known = facts.arrays.get(array) if facts is not None else None
        loads = [a for a in kernel.reading.accesses if a.array == array]
        if (known is not None and known.nbytes <= SHARED) or not any(map(_asked, loads)):
            continue
        if not any(by_data(kernel, a) for a in loads):
            continue
        try:
            part = _part(kernel, array, loads)
        except NotLegal as reason:
            yield Refused(reason.reason, reason.line)
            continue
        if "blockIdx.x" in kernel.reading.symbols.inside(part.base):
            yield Refused(f"each block has a part of its own of `{array}`", part.line)
        else:
            yield part


@primitive
def parted(kernel: Kernel, arrays: Sequence[str]) -> Kernel:
    """The kernel whose blocks hold their parts of these arrays."""
    if kernel.block[0] is None or kernel.block[1:] != (1, 1):
        raise NotLegal("its blocks have more than one row")
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    speller = LocalSpeller(kernel.reading.symbols, {})
    speller.kernel = kernel
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    opening, counts, sizes, taken = list[str](), list[str](), list[str](), list[str]()

    def fresh(name: str) -> str:
        taken.append(kernel.fresh(name, *taken))
        return taken[-1]

    at = fresh("place")
    for array in arrays:
        part = _part(kernel, array, [a for a in kernel.reading.accesses if a.array == array])
        own, begin, count = (fresh(f"{array}_{word}") for word in ("table", "begin", "count"))
        counts.append(count)
        sizes.append(f"size({passed(kernel, array)})")
        inside = f"{begin} + {at} >= 0 && {begin} + {at} < {count}"
        opening += [
            f"__shared__ __align__(16) {part.kind} {own}[{part.count}];",
            f"const long long {begin} = {speller.address(part.base)};",
            f"for (int {at} = threadIdx.x; {at} < {part.count}; {at} += blockDim.x)",
            f"if ({inside}) {own}[{at}] = {array}[{begin} + {at}];",
        ]
        for access in part.accesses:
            place = element(Effects(kernel), access)
            assert place is not None
            swaps[place] = text(f"{own}[&{kernel.spelled(place)} - {array} - {begin}]")
    body = kernel.function.body
    brought = (lines("\n".join([*opening, "__syncthreads();"])),)
    launch = kernel.launch
    given = launch.args or tuple(parse_expression(p.name) for p in kernel.function.parameters)
    made = kernel.rewritten(
        replace(body, body=(*brought, *edited(body, swaps).body)),
        launch=replace(launch, args=(*given, *map(parse_expression, sizes))),
    )  # fmt: skip
    return with_parameters(made, (f"long long {name}" for name in counts))


def _asked(access: Access) -> bool:
    return access.mode == "load" and access.index is not None


def _part(kernel: Kernel, array: str, loads: Sequence[Access]) -> Part:
    effects = Effects(kernel)
    check_table(kernel, effects, array)
    bases, most = set[Polynomial](), 0
    for access in loads:
        place = element(effects, access) if access.call is None else None
        if access.index is None or place is None or isinstance(place, Call):
            raise NotLegal(f"where `{array}` is loaded is not read", access.line)
        base, last = _parted(kernel, access, access.index)
        bases.add(base)
        most = max(most, last)
    size = loads[0].element.size or 0
    if len(bases) != 1:
        raise NotLegal(f"a block loads from several parts of `{array}`", loads[0].line)
    if most < 1 or (most + 1) * size > SHARED:
        raise NotLegal(f"a block's part of `{array}` does not fit shared memory", loads[0].line)
    return Part(
        array, loads[0].element.name, next(iter(bases)), most + 1, (most + 1) * size,
        loads[0].line, any(load.loops for load in loads), tuple(loads),
    )  # fmt: skip


def _parted(kernel: Kernel, access: Access, form: Polynomial) -> tuple[Polynomial, int]:
    """Where a block's part begins, and how far behind that an access is at most."""
    symbols = kernel.reading.symbols
    base, last = Polynomial(), 0
    for monomial, factor in form.terms:
        term = Polynomial.of({monomial: factor})
        names = symbols.inside(term)
        if kernel.reading.uniform(term) and all(symbols[n].kind in _FIXED for n in names):
            base = base + (term if monomial else Polynomial())
            last += 0 if monomial else factor
            continue
        symbol = symbols[monomial[0]] if len(monomial) == 1 else None
        bounded = symbol is not None and symbol.low == 0 and symbol.high is not None
        if symbol is None or not bounded or factor < 0:
            raise NotLegal(f"how far apart a block loads from `{access.array}` is not known",
                           access.line)  # fmt: skip
        last += factor * (symbol.high or 0)
    if any(factor < 0 for _, factor in form.terms):
        raise NotLegal(f"a block's part of `{access.array}` begins before it", access.line)
    return base, last
