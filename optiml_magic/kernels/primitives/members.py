"""P9, a thread's own structure: one of an array of structures, whose members a thread touches."""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.expressions import Expr, Index, Literal, Member, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.following import number
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.records import Owned, behind_each_other
from optiml_magic.kernels.primitives.regions import Region, certain, resting
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Variable


def structure(kernel: Kernel, region: Region, array: str, effects: Effects) -> Owned | None:
    """The element of an array of structures that a thread alone touches, member by member.

    It is stored as a whole: so where some members are not certainly stored, the thread loads others
    of the same element, which therefore holds something, and no other thread has that element.
    """
    reading, own = kernel.reading, region.touched[array]
    given = next((p for p in kernel.function.parameters if p.name == array), None)
    if given is None:
        return None  # where it leads may not be known
    kind = reading.arrays[array].element
    size = kind.size or 0
    accesses = tuple(a for a in reading.accesses if effects.same(a.array, array))
    if given.type.depth != 1 or kind.kind != "record" or array in effects.moved:
        return None
    whole = _elements(given, accesses, effects)
    inside = {t.access for t in own}
    if whole is None or any(a not in inside or a.mode == "atomic" for a in accesses):
        return None
    bases = {a: resting(kernel, a.offset, a.loops[region.depth :]) for a in accesses}
    base = bases[accesses[0]]
    if base is None or any(other != base for other in bases.values()):
        return None
    places = {t: number((t.access.offset or base) - base, t.rounds) for t in own}
    ends = {t: (at or 0) + (t.access.element.size or size + 1) for t, at in places.items()}
    within = all(at is not None and at >= 0 and ends[t] <= size for t, at in places.items())
    index = base.divided(size) if size else None
    if not within or index is None or not behind_each_other(index, 1, size):
        return None
    if not any(t.surely for t in own):
        return None
    loads = any(t.access.mode == "load" for t in own)
    stores = {places[t]: ends[t] for t in own if t.access.mode == "store"}
    sure = [
        at for at in stores
        if certain([t.open for t in own if t.access.mode == "store" and places[t] == at])
    ]  # fmt: skip
    all_stored = sum(stores[at] - (at or 0) for at in sure) == size
    if stores and (region.leaves or (not all_stored and not (loads and _alone(kernel, index)))):
        return None
    return Owned(array, index, 1, accesses, loads, bool(stores), given.type.base, size, whole)


def _elements(
    given: Variable, accesses: tuple[Access, ...], effects: Effects
) -> Mapping[Expr, str] | None:
    """What stands for the structure in each access, or for where it is, and what follows there.

    None where one is spelled in another way.
    """
    found: dict[Expr, str] = {}
    for access in accesses:
        node = element(effects, access) if access.call is None else None
        place = _spelled(node, given) if node is not None and access.array == given.name else None
        if place is None:
            return None
        found[place[0]] = place[1]
    return found


def _spelled(node: Expr, given: Variable) -> tuple[Expr, str] | None:
    """The same of one access: ``p[i]``, a reference to it, or a pointer to it."""
    pointer = False
    while not isinstance(node, Name):
        match node:
            case Index(base=Name(variable=variable)) if variable is given:
                return node, "[0]"
            case Member(base=inner, arrow=arrow):
                node, pointer = inner, arrow
            case Unary(op="*", operand=inner) | Index(base=inner, index=Literal(value=0)):
                node, pointer = inner, isinstance(inner, Name)
            case Index(base=Member() as inner):
                node, pointer = inner, False
            case _:
                return None
    return None if node.variable is given else (node, "" if pointer else "[0]")


def _alone(kernel: Kernel, index: Polynomial) -> bool:
    """Whether no two threads of the launch have the same element."""
    width = kernel.block[0]
    if width is None or len(kernel.launch.grid) != 1 or kernel.block[1:] != (1, 1):
        return False
    thread, block = (Polynomial.symbol(f"{name}.x") for name in ("threadIdx", "blockIdx"))
    rest = index - thread - block * Polynomial.constant(width)
    symbols = kernel.reading.symbols
    return all(symbols[name].kind == "scalar" for name in symbols.inside(rest))
