"""Addresses in words: which array one lies in, or by how much it misses the nearest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.emulator.memory import Bytes

_STATIC = re.compile(r"E(\d+)([A-Za-z_]\w*)$")  # a variable of a function, in the Itanium mangling
_MANGLED = re.compile(r"_Z\w*?(\d+)([A-Za-z_]\w*)$")


@dataclass(frozen=True)
class Area:
    """A piece of memory that a kernel may use; ``data`` are its host bytes, where it has some."""

    address: int  # within its space
    size: int  # bytes
    name: str = ""
    itemsize: int = 1
    data: Bytes | None = None


def plain_name(symbol: str) -> str:
    """The name that stands in the text of a PTX symbol: ``tile`` of ``_ZZ3addPfE4tile``."""
    for pattern in (_STATIC, _MANGLED):
        if match := pattern.search(symbol):
            return match[2][: int(match[1])]
    return symbol.split("#", maxsplit=1)[0].rsplit("$", maxsplit=1)[-1]


def holding(areas: Sequence[Area], address: int) -> Area | None:
    """The area that an address lies in."""
    return next((a for a in areas if a.address <= address < a.address + a.size), None)


def element(areas: Sequence[Area], address: int, width: int = 1) -> str:
    """An address inside of an area as an element: ```tile`[17]``; empty where it lies in none.

    Where the size of an element is not known, ``width`` takes its place.
    """
    area = holding(areas, address)
    if area is None or not area.name:
        return ""
    itemsize = area.itemsize if area.itemsize > 1 else max(width, 1)
    return f"`{area.name}`[{(address - area.address) // itemsize}]"


def miss(areas: Sequence[Area], address: int, *, window: str = "") -> str:
    """By how much an address misses the nearest area; ``window`` names a space of small offsets."""
    where = f"offset {address}" if window else f"address {address:#x}"
    within = f"{window} memory" if window else ""
    if not window and address < 4096:
        return f"{where} is in no array: a null pointer, or an index from one"
    if not areas:
        return f"{where} lies in no {within or 'allocation'}: there is none"
    nearest = min(areas, key=lambda a: _gap(a, address))
    count, gap = nearest.size // nearest.itemsize, _gap(nearest, address)
    name = f"`{nearest.name}`" if nearest.name else f"the array at {nearest.address:#x}"
    unit = f"{count} elements of {nearest.itemsize} bytes" if nearest.itemsize > 1 else (
        f"{nearest.size} bytes"
    )  # fmt: skip
    index = (address - nearest.address) // nearest.itemsize
    if gap == 0:
        text = f"the access at {name}[{index}] reaches beyond its end"
    elif address < nearest.address:
        text = f"{name}[{index}] lies {nearest.address - address} bytes before its start"
    elif nearest.itemsize > 1:
        far = index - count + 1
        past = f"{_count(far, 'element')} ({far * nearest.itemsize} bytes)"
        text = f"{name}[{index}] lies {past} past its last"
    else:
        text = f"{name} at byte {index} lies {gap} bytes past its end"
    return f"{text}; it has {unit} ({where}{f' of {within}' if within else ''})"


def _gap(area: Area, address: int) -> int:
    """Bytes from an address to the nearest byte of an area; one past the end has a gap of 1."""
    if address < area.address:
        return area.address - address
    return max(0, address - (area.address + area.size) + 1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
