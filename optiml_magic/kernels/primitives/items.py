"""Consecutive elements of one array by one access, through a small array in registers.

Source: CUDA C++ Programming Guide, "Device Memory Accesses": 4, 8 or 16 bytes, at addresses that
are multiples of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd

from optiml_magic.kernels.expressions import Assign, Expr, Step
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Evaluate

_WORDS = {
    ("float", 16): "float4", ("float", 8): "float2", ("double", 16): "double2",
    ("int", 16): "int4", ("int", 8): "int2",
}  # fmt: skip
_PLAIN = {16: "uint4", 8: "uint2", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
WIDEST = 16  # bytes of one access
_SIZES = (1, 2, 4, 8)
_WORD = 4  # bytes that a thread asks for at once, at least: ours
TRIPLES = (3, 6, 12)  # bytes of vectors of three, which lie side by side without a gap


@dataclass(frozen=True)
class Items:
    """The accesses to consecutive elements of one array.

    Where ``apart`` is more than 1, an item is so many elements; ``index`` is that of its first.
    Where they go ``backward``, the next item's elements lie before those of an item.
    """

    array: str
    index: Polynomial
    accesses: tuple[Access, ...]
    apart: int = 1
    backward: bool = False

    @property
    def size(self) -> int:
        return self.accesses[0].element.size or 0

    @property
    def kind(self) -> str:
        return self.accesses[0].element.name

    def does(self, mode: str) -> bool:
        return any(access.mode == mode for access in self.accesses)

    def vector(self, width: int) -> str:
        """The type of so many elements at once."""
        return self.word(self.size * width)

    def word(self, whole: int) -> str:
        """The type of so many bytes at once."""
        return word(self.kind, whole)

    def declared(self, own: str, width: int, count: str = "") -> str:
        """A local array ``own`` of ``count`` elements, of one vector unless it says more."""
        return f"alignas({width * self.size}) {self.kind} {own}[{count or width}];"

    def loaded(self, width: int, own: str, there: str) -> str:
        """So many elements from the address ``there`` in memory to that of ``own``."""
        return moved(self.vector(width), own, there)

    def stored(self, width: int, own: str, there: str) -> str:
        """The other way round."""
        return self.loaded(width, there, own)


def word(kind: str, whole: int) -> str:
    """The type of so many bytes at once, of elements of a kind."""
    return _WORDS.get((kind, whole)) or _PLAIN[whole]


def moved(vector: str, to: str, there: str, at: str = "") -> str:
    """The statement that moves a vector that is ``there``, or the one ``[at]`` behind it."""
    before = "" if at else "*"
    own, other = f"reinterpret_cast<{vector}*>({to})", f"reinterpret_cast<const {vector}*>({there})"
    return f"{before}{own}{at} = {before}{other}{at};"


def is_plain(kernel: Kernel, access: Access, sizes: Collection[int] = _SIZES) -> bool:
    """Whether an access takes one number, as the array that it is in holds them."""
    plain = access.element.kind in ("int", "float", "bool", "vector")
    return plain and access.element.size in sizes and _is_whole(kernel, access)


def is_record(kernel: Kernel, access: Access) -> bool:
    """Whether an access takes a whole structure, of less than a vector, which is but its bytes."""
    kind = access.element
    small = kind.kind == "record" and kind.size is not None and kind.size < WIDEST
    return small and _is_whole(kernel, access) and kernel.unit.structs.is_plain(kind.name)


def _is_whole(kernel: Kernel, access: Access) -> bool:
    array = kernel.reading.arrays.get(access.array)
    return array is not None and array.element == access.element and access.element.depth == 0


def parts(kernel: Kernel, access: Access) -> int:
    """How many numbers an element of its array has, where an access takes one of them; else 0."""
    array, kind = kernel.reading.arrays.get(access.array), access.element
    if array is None or array.element.kind not in ("vector", "record"):
        return 0
    whole, size = array.element.size, kind.size
    plain = kind.kind in ("int", "float") and kind.depth == array.element.depth == 0
    return whole // size if plain and whole and size and whole % size == 0 else 0


def numbers(kernel: Kernel, access: Access) -> int:
    """1 where an access takes a plain element, 3 where it takes one of three numbers; else 0."""
    if is_plain(kernel, access):
        return 1
    array = kernel.reading.arrays.get(access.array)
    triple = array is not None and array.element.size in TRIPLES
    return parts(kernel, access) if triple else 0


def element(effects: Effects, access: Access) -> Expr | None:
    """What stands for the element in the kernel's own text, and is no more than that."""
    node = effects.taken(access)
    place = node.target if isinstance(node, Assign | Step) else node
    if place is None or effects.changed(Evaluate(None, access.line, place)):
        return None  # `*p++` moves a pointer as well
    return place


@dataclass(frozen=True)
class Place:
    """An index as ``apart`` elements an item behind ``first``, and what then must divide.

    Where items go ``backward``, each lies so far before the one before it. Within items whose
    number ``whole`` forms divide, ``first`` does not change.
    """

    apart: int
    backward: bool
    first: Polynomial
    whole: tuple[Polynomial, ...]

    def like(self, group: Items) -> bool:
        """Whether it is where a group's items begin."""
        own = (self.apart, self.backward, self.first)
        return own == (group.apart, group.backward, group.index)


def widest(groups: Sequence[Items]) -> int:
    """How many rounds fill a vector of the widest group.

    Where rounds take several elements, they fill one at least, and a word of every other group.
    """
    each = [group.size * group.apart for group in groups]
    if all(group.apart == 1 for group in groups):
        return WIDEST // max(each)
    return next(n for n in (2, 4, 8, 16) if n * min(each) >= _WORD and n * max(each) % WIDEST == 0)


def vector_of(group: Items, rounds: int) -> int:
    """How many elements of a group, of which so many rounds take some, one access brings."""
    return gcd(WIDEST, rounds * group.apart * group.size) // group.size
