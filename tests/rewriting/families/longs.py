"""The kernels of other families with numbers of 64 bits: their sizes, and where a thread stands."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from tests.rewriting.writing import Made

from . import columns, counts, maps, pairs, planes, rows, stencils, tiles

_OTHERS = (maps, rows, pairs, planes, columns, counts, stencils, tiles)
_HEAD = re.compile(r"__global__ void \w+\(([^)]*)\)")
_SIZE = re.compile(r"\bint (\w+)(?=\s*(?:,|$))")
_INDEX = re.compile(
    r"\bint (\w+) = blockIdx\.([xyz]) \* (\w+(?:\.[xyz])?) \+ threadIdx\.\2\s*(?=;)"
)
#: Of two lengths there is no least, and no pointer or reference to one leads to the other. Of a
#: loop to such a rest a compiler makes one without an end that nobody comes to.
_NARROW = re.compile(r"\b(?:min|max|abs|template|asm)\b|&(?!&)|\bint\s*[*&]|< \w+ % \d")


def long_numbers(rng: Random) -> Made:
    """A kernel of another family whose sizes, or indices, or both, have 64 bits."""
    one = rng.choice(rng.choice(_OTHERS).FAMILY)(rng)
    while _NARROW.search(one.text) or one.text.count("__global__") > 1:
        one = rng.choice(rng.choice(_OTHERS).FAMILY)(rng)
    text, sizes = one.text, rng.choice(["long long", "long long", "int"])
    head = _HEAD.search(text)
    assert head is not None
    given = _SIZE.sub(rf"{sizes} \1", head[1])
    text = text[: head.start(1)] + given + text[head.end(1) :]
    place = rng.choice(["long long", "long long", "int"]) if sizes != "int" else "long long"
    wide = rf"{place} \1 = ({place})blockIdx.\2 * \3 + threadIdx.\2"
    return replace(one, family=f"long_{one.family}", text=_INDEX.sub(wide, text))


FAMILY = (long_numbers,)
