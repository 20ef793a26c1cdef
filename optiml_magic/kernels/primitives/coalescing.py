"""Which accesses of a kernel lie apart where something differs, and blocks whose rows are warps."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.cutting import freedom
from optiml_magic.kernels.primitives.sizes import FIRST, value
from optiml_magic.kernels.reading import Access

_WARP, _SECTOR = 32, 32
_THREAD = "threadIdx.x"
_MOST_LOOPS = 3


def apart(kernel: Kernel, name: str, *, data: bool = True) -> int:
    """Sectors that a warp touches in elements that lie apart where ``name`` differs.

    Each access counts once, in loops more. 0 where all take neighbouring elements, or together
    whole sectors, as those of the three parts of a place do. Places that ``data`` tell, which may
    be neighbours as well, such as where the rows of a resized image begin, count as apart or not.
    """
    asked = [access for access in kernel.reading.accesses if access.space == "global"]
    parts = _parts(kernel, asked, name)
    return sum(
        _sectors(kernel, access, name) * 8 ** min(len(access.loops), _MOST_LOOPS)
        for access in asked
        if access not in parts and (data or not _told_by_data(kernel, access, name))
    )


def _told_by_data(kernel: Kernel, access: Access, name: str) -> bool:
    """Whether elements that memory holds say how far the place moves with ``name``."""
    form = access.offset
    symbols = kernel.reading.symbols.inside(form) if form is not None else frozenset[str]()
    table = kernel.reading.symbols.table
    return any(
        symbol.kind == "load" and name in symbol.depends
        for symbol in (table[s] for s in symbols & table.keys())
    )


def sectors_apart(kernel: Kernel) -> dict[Access, int]:
    """Sectors that a warp touches by each access whose elements lie apart from lane to lane."""
    asked = [access for access in kernel.reading.accesses if access.space == "global"]
    found = {access: _sectors(kernel, access, along(kernel, "x")) for access in asked}
    return {access: taken for access, taken in found.items() if taken}


def side_by_side(kernel: Kernel, access: Access, apart: int = 1) -> bool:
    """Whether the lanes of a warp take neighbours at the measured sizes, whatever tells them so.

    Or elements that lie as many ``apart`` at most.
    """
    sectors, size = _sectors(kernel, access, _THREAD), access.element.size or 0
    return access.offset is not None and sectors <= size * apart


def _parts(kernel: Kernel, asked: Sequence[Access], name: str) -> set[Access]:
    """Accesses that come as near as a sector and are all that lies between two neighbours."""
    groups = dict[tuple[str, tuple[str, ...], str, int], list[Access]]()
    for access in asked:
        by = access.offset.coefficient(name) if access.offset is not None else None
        step = value(kernel, by) if by is not None else None
        if step is not None and 0 < abs(step) <= _SECTOR:
            key = access.array, access.loops, access.mode, step
            groups.setdefault(key, []).append(access)
    found = set[Access]()
    for (*_, step), own in groups.items():
        places = {access.offset: access.element.size or 0 for access in own}
        if sum(places.values()) >= abs(step):
            found.update(own)
    return found


def along(kernel: Kernel, axis: str) -> str:
    """What differs between neighbours along an axis; blocks of one thread are their own."""
    alone = kernel.block["xyz".index(axis)] == 1
    return f"{'blockIdx' if alone else 'threadIdx'}.{axis}"


def wide(kernel: Kernel, axis: str) -> dict[str, int] | None:
    """Extents whose rows along ``axis`` are warps, of as many threads or the next whole warps.

    None where none can be.
    """
    sizes = kernel.block[0], kernel.block["xyz".index(axis)]
    if sizes[0] is None or sizes[1] is None or sizes[1] % _WARP == 0:
        return None
    count = sizes[0] * sizes[1]
    shape = {axis: _WARP, "x": -(-count // _WARP)}
    try:
        fits = all(
            freedom(kernel, a).allows(extent, kernel.block["xyz".index(a)] or 1)
            for a, extent in shape.items()
        )
    except NotLegal:
        return None
    return shape if fits else None


def _sectors(kernel: Kernel, access: Access, name: str) -> int:
    """Of one access, 0 where its elements are neighbours: 32 lanes, sectors of 32 bytes."""
    form, size = access.offset, access.element.size
    if form is None or size is None:
        return 0  # whatever it is, it is so along every axis
    by = form.coefficient(name)
    if by is None or name in kernel.reading.symbols.inside(form.without([name])):
        first = FIRST | dict.fromkeys(access.loops, 0)
        places = [value(kernel, form, first | {name: lane}) for lane in range(_WARP)]
        found = {place // _WARP for place in places if place is not None}
        return _WARP if None in places else 0 if len(found) <= size else len(found)
    bytes_apart = value(kernel, by)
    if bytes_apart is None:
        return _WARP
    return 0 if abs(bytes_apart) <= size else min(_WARP, abs(bytes_apart))
