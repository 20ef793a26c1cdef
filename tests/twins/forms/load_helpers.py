"""Reads of input arrays through a device function."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    index_of,
    input_loads,
    repeated,
    replace,
    src,
    with_prelude,
)

_LOAD = """template <typename E>
__device__ __forceinline__ E load(const E* from, int place) {
    return *(from + place);
}"""


def _step(syntax: Syntax) -> list[Edit]:
    for node, array in input_loads(syntax):
        return [replace(node, f"load({array.name}, {src(index_of(node))})")]
    return []


def apply(text: str) -> str | None:
    changed = repeated(text, _step)
    return changed and with_prelude(changed, _LOAD)
