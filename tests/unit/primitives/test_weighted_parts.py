"""Keys in parts, and what puts these together."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.kernels.primitives.weighted_parts import keys_in_parts, rows_in_parts
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, unchanged, written
from tests.unit.primitives.test_weighted import ARRAYS, ATTENTION, OTHERS, SIZES

_LOOP = "int j = 0; j < m; j++"
_RECURRENCE = ATTENTION[
    ATTENTION.index("float best") : ATTENTION.index("    }\n    for (int e = 0; e < 12; e++) out")
]
_BRANCHED = """if (s > top) {
            sum *= expf(top - s);
            for (int e = 0; e < 12; e++) a[e] *= expf(top - s);
            top = s;
        }
        float p = expf(s - top);
        sum += p;
        for (int e = 0; e < 12; e++) a[e] += p * v[j * 12 + e];
"""
_PLAIN = """float p = expf(-s * s);
        sum += p;
        for (int e = 0; e < 12; e++) a[e] += p * v[j * 12 + e];
"""
_TWICE = (
    f"for ({_LOOP}) {{ float s = 0.0f; for (int d = 0; d < 8; d++) "
    f"s += q[i * 8 + d] * keys[j * 8 + d]; top = fmaxf(top, s); }}\n    for ({_LOOP})"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (_LOOP, "int j = 0; j <= i && j < m; j++"),
        (_LOOP, "unsigned j = i > 9 ? i - 9 : 0; j < m; j++"),
        (_LOOP, "int j = i + 3; j < m; j++"),  # rows without keys
        (_RECURRENCE, _BRANCHED),
        (_RECURRENCE, _PLAIN),
        ("float best", "if (few[j]) continue; float best"),
        ("float best", "if (j < 170) s = __int_as_float(0xff800000); float best"),
        ("float best", "if (j % 200 > i) s = __int_as_float(0xff800000); float best"),
        ("a[e] = 0.0f", "a[e] = 0.0f, top = 0.5f"),
    ],
)
@pytest.mark.parametrize("sizes", [(SIZES, OTHERS), ({"n": 33, "m": 300}, {"n": 1, "m": 1})])
def test_parts_of_the_keys_make_the_same(
    old: str, new: str, sizes: tuple[dict[str, int], ...]
) -> None:
    text = ATTENTION.replace(old, new) if old else ATTENTION
    if "top = 0.5f" in new:
        text = ATTENTION.replace("top = -1e30f, sum = 0.0f", "top = 0.5f, sum = 0.25f")
    assert text != ATTENTION or not old
    made = keys_in_parts(kernel_of(text), 4)
    assert unchanged(text, written(made), ARRAYS, *sizes, rounds=True) == "same"


def test_heads_are_blocks_of_their_own() -> None:
    text = ATTENTION.replace("cdiv(n, 64))", "cdiv(n, 64), h)").replace("int m)", "int m, int h)")
    for name, each in (("q", "n * 8"), ("keys", "m * 8"), ("v", "m * 12"), ("out", "n * 12")):
        text = text.replace(f"{name}[", f"{name}[blockIdx.y * {each} + ")
    arrays = {
        n: Array(a.dtype, ("h", *a.shape), a.content) if n != "few" else a
        for n, a in ARRAYS.items()
    }
    made = keys_in_parts(kernel_of(text), 2)
    sizes = {**SIZES, "h": 3}, {**OTHERS, "h": 1}
    assert unchanged(text, written(made), arrays, *sizes, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("top = best;", "top = best * 0.9f;", ""),
        ("float top", "float last = 0.0f, top", ""),
        (f"for ({_LOOP})", _TWICE, "more than once"),
        ("cdiv(n, 64))", "cdiv(n, 64), 1, 2)", "three axes"),
    ],
)  # fmt: skip
def test_what_follows_in_order_stays_whole(old: str, new: str, why: str) -> None:
    text = ATTENTION.replace(old, new)
    if "last" in new:
        text = text.replace("top = best;", "last = 0.5f * last + s; top = best;")
        text = text.replace("(sum + 1.0f)", "(sum + last + 1.0f)")
    found = keys_in_parts(kernel_of(text), 4)
    assert isinstance(found, Refused)
    assert why in found.reason


_LANES = Lanes("warp", 4, 64, (2, 4), (64, 128))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (_LOOP, "int j = 0; j <= i && j < m; j++"),
        (_LOOP, "int j = i + 3; j < m; j++"),  # rows without keys
        (_RECURRENCE, _BRANCHED),
        (_RECURRENCE, _PLAIN),
        ("float best", "if (j < 170) s = __int_as_float(0xff800000); float best"),
        ("float best", "if (j % 200 > i) s = __int_as_float(0xff800000); float best"),
        ("a[e] = 0.0f", "a[e] = 0.0f, top = 0.5f"),
    ],
)
@pytest.mark.parametrize("sizes", [(SIZES, OTHERS), ({"n": 33, "m": 300}, {"n": 1, "m": 1})])
def test_rows_with_keys_of_their_own_are_held_by_lanes_for_each_part(
    old: str, new: str, sizes: tuple[dict[str, int], ...]
) -> None:
    text = ATTENTION.replace(old, new) if old else ATTENTION
    if "top = 0.5f" in new:
        text = ATTENTION.replace("top = -1e30f, sum = 0.0f", "top = 0.5f, sum = 0.25f")
    text = text.replace("keys[j * 8 + d]", "keys[(i / 2 * m + j) * 8 + d]")
    text = text.replace("v[j * 12 + e]", "v[(i / 2 * m + j) * 12 + e]")
    arrays = {
        **ARRAYS, "keys": Array("f4", ("n", "m", "8")), "v": Array("f4", ("n", "m", "12")),
    }  # fmt: skip
    assert isinstance(keys_in_parts(kernel_of(text), 4), Refused)
    made = written(rows_in_parts(kernel_of(text), 4, _LANES))
    assert "_of_keys" in made
    assert "lane" in made
    assert unchanged(text, made, arrays, *sizes, rounds=True) == "same"
