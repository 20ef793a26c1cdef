"""P20, pad: rows of a shared tile one element further apart, where lanes then meet other banks.

There are 32 banks of 4 bytes; lanes of a warp that ask one bank for different words are served one
after the other. Elements of 8 or 16 bytes are asked for by half or a quarter of a warp at a time.
Source: CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Expr, Index, Lambda, Literal, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import THREADS
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk

_BANKS, _WORD, _WARP = 32, 4, 32
_SIZES = (4, 8, 16)
_IN_A_LOOP = 8  # times that an access counts for each loop that it is in; ours


@dataclass(frozen=True, eq=False)
class Tile:
    """A shared array whose rows lie badly: passes of one request each, before and with a pad."""

    variable: Variable
    before: int
    after: int
    line: int


@primitive
def pad(kernel: Kernel) -> Kernel:
    """The kernel with all such tiles padded by one element a row."""
    found = {tile.variable for tile in tiles(kernel)}
    if not found:
        raise NotLegal("no lanes share a bank that a pad would part")
    swaps: dict[Node, Node] = {}
    for statement in _shared(kernel):
        variables = tuple(_wider(v) if v in found else v for v in statement.variables)
        if variables != statement.variables:
            swaps[statement] = replace(statement, span=None, variables=variables)
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def tiles(kernel: Kernel) -> list[Tile]:
    """The tiles that a pad makes better, all accesses to them together."""
    hidden = any(isinstance(e, Lambda) for e in expressions(kernel.function.body))
    if None in kernel.block or kernel.launch.shared is not None or hidden:
        return []
    found, room = [], 0
    for variable in (v for s in _shared(kernel) for v in s.variables):
        array = kernel.reading.arrays.get(variable.name)
        extents = [e.value if e is not None else None for e in array.extents] if array else []
        known = [e for e in extents if e is not None]
        if array is None or not array.element.size or len(known) < len(variable.extents):
            return []  # how much room is left is not known
        room += array.element.size * prod(known)
        if len(known) < 2 or array.element.size not in _SIZES:
            continue
        if not _always_indexed(kernel, variable):
            continue
        accesses = [a for a in kernel.reading.of(variable.name) if a.space == "shared"]
        wide = [*known[:-1], known[-1] + 1]
        words = array.element.size // _WORD
        asked = [(_passes(kernel, a, known, words), _passes(kernel, a, wide, words), a)
                 for a in accesses]  # fmt: skip
        both = [(a, b, _IN_A_LOOP ** len(access.loops)) for a, b, access in asked if a and b]
        if not both or len(both) < len(asked):
            continue
        if sum(b * often for _, b, often in both) < sum(a * often for a, _, often in both):
            worst, after, access = max(asked, key=lambda p: p[0] or 0)
            room += array.element.size * prod(known[:-1])
            found.append(Tile(variable, worst or 1, after or 1, access.line))
    return found if room <= SHARED else []


def _shared(kernel: Kernel) -> list[Declare]:
    return [
        s for s in walk(kernel.function.body)
        if isinstance(s, Declare) and any(v.storage == "shared" for v in s.variables)
    ]  # fmt: skip


def _wider(variable: Variable) -> Variable:
    last = variable.extents[-1]
    assert last is not None
    more = Binary(None, "+", last, Literal(None, "1", 1))
    return replace(variable, extents=(*variable.extents[:-1], more))


def _always_indexed(kernel: Kernel, variable: Variable) -> bool:
    """Whether nobody takes the address of a row or an element, so that only indices say where."""
    depth, whole, mentions = len(variable.extents), 0, 0
    for e in expressions(kernel.function.body):
        mentions += isinstance(e, Name) and e.variable is variable
        if isinstance(e, Index) and _bases(e, variable) == depth:
            whole += 1
        if isinstance(e, Unary) and e.op == "&" and _bases(e.operand, variable):
            return False
    return mentions == whole


def _bases(e: Expr, variable: Variable) -> int:
    """How many indices of an array an expression has; 0 where it is of none."""
    depth = 0
    while isinstance(e, Index):
        e, depth = e.base, depth + 1
    return depth if isinstance(e, Name) and e.variable is variable else 0


def _passes(kernel: Kernel, access: Access, extents: Sequence[int], words: int) -> int | None:
    """How often the banks are asked for one request of so many words; None where that is open."""
    if len(access.digits) != len(extents):
        return None
    wide, high = kernel.block[0] or 1, kernel.block[1] or 1
    places = list[int]()
    for lane in range(min(_WARP, wide * high * (kernel.block[2] or 1))):
        at = {"threadIdx.x": lane % wide, "threadIdx.y": lane // wide % high,
              "threadIdx.z": lane // wide // high}  # fmt: skip
        place = 0
        for digit, extent in zip(access.digits, extents, strict=True):
            moved = value(kernel, _moving(kernel, digit), at)
            if moved is None:
                return None
            place = place * extent + moved
        places.append(place)
    asking = _WARP // words
    requests = ({*places[first : first + asking]} for first in range(0, len(places), asking))
    return max(max(Counter(place * words % _BANKS for place in one).values()) for one in requests)


def _moving(kernel: Kernel, digit: Polynomial) -> Polynomial:
    """What of an index differs between the lanes of a warp: all else moves their banks alike."""
    depends = kernel.reading.symbols.depends
    return Polynomial.of({m: c for m, c in digit.terms if depends(Polynomial.of({m: c})) & THREADS})
