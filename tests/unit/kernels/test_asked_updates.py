"""Assignments whose values somebody asks for: what they update is no sum of its loop alone."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Reading
from optiml_magic.kernels.unit import lift
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* a, int* out, int n, int m) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    int s = 0, c = 0;
    for (int k = 0; k < m; ++k) { BODY }
    out[row] = s + 1000 * c;
}
"""
V = "a[row * m + k]"
ARRAYS = {"a": Array("i4", ("n", "m")), "out": Array("i4", ("n",), "zeros")}
ASKED = [
    f"if ({V} > 0 && c++ < 5) s += {V};",
    f"if ({V} > 0 && ++c < 5) s += {V};",
    f"if ({V} > 0) s += {V} * c++;",
    f"if ({V} > 0) {{ int q = c++; s += q & 3; }}",
    f"if ({V} > 0 && (c += 1) < 5) s += {V};",
    f"s += (c += {V}) & 3;",
    f"s += {V} > 0 ? c++ : 1;",
    f"{V} > 0 && c-- > -5 && (s += {V});",
    f"if ((c = max(c, {V})) < 9) s += {V};",
    f"bool t = {V} > 0 && c++ < 5; if (t) s += {V};",
    f"if ({V} > 0 && c++ < 5) continue; s += {V};",
    f"s += (c += {V}, {V}) + (c ^= 1);",
]
UNASKED = [
    f"{V} > 0 && c++; s += {V};",
    f"{V} > 0 ? (void)c++ : (void)0; s += {V};",
    f"{V} > 0 ? c++ : c--; s += {V};",
    f"s += {V}, c += {V} & 3;",
    f"(void)(c += {V}); s += 2 * {V};",
]


def reading(body: str) -> Reading:
    unit = lift(TEXT.replace("BODY", body))
    return read(unit, unit.kernels[0], ())


@pytest.mark.parametrize("body", ASKED)
def test_a_sum_that_a_round_asks_for_is_none(body: str) -> None:
    assert "c" not in {r.place for r in reading(body).reductions}
    text = TEXT.replace("BODY", body)
    ideas, _ = asked(RowToLanes(), text)
    for one in made(ideas)[:2]:
        sizes, others = {"n": 5, "m": 70}, {"n": 2, "m": 3}
        assert end_of(text, one.text, ARRAYS, sizes, others) in ("same", "narrowed")


@pytest.mark.parametrize("body", UNASKED)
def test_one_that_nobody_asks_for_is(body: str) -> None:
    assert {"s", "c"} == {r.place for r in reading(body).reductions}


def test_what_a_head_adds_nobody_asks_for() -> None:
    head = "for (int k = 0; k < m; s += a[k], ++k) c ^= a[k];"
    unit = lift(TEXT.replace("for (int k = 0; k < m; ++k) { BODY }", head))
    assert {"s", "c"} == {r.place for r in read(unit, unit.kernels[0], ()).reductions}
