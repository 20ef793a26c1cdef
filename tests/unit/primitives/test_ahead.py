"""Lanes that look ahead for rounds that change something: the same bits, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.lanes import Lanes, share
from tests.present import examples, sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WARP = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (32, 64, 128))
ROWS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* y, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
LOOP = "for (int j = 0; j < m; ++j)"
LIST = "float best[3] = {-9, -9, -9}; int at[3] = {0, 0, 0};"
PUT = (
    "int p = 2; while (p > 0 && best[p - 1] < %s) { best[p] = best[p - 1]; at[p] = at[p - 1]; --p; }"
    " best[p] = %s; at[p] = j;"
)
OUT = "for (int l = 0; l < 3; ++l) out[i * 3 + l] = best[l] + 100 * at[l];"
BODIES = {
    "greatest": f"{LIST} {LOOP} {{ float v = x[i * m + j]; if (v > best[2]) {{ {PUT % ('v', 'v')} "
    f"}} }} {OUT}",
    "not itself": f"{LIST} {LOOP} {{ if (j == i) continue; float v = y[j] - y[i]; float d = -v * v; "
    f"if (d > best[2]) {{ {PUT % ('d', 'd')} }} }} {OUT}",
    "of some": f"{LIST} {LOOP} {{ float v = y[j]; if (v > 0) {{ float d = v * y[i]; if (best[2] < d) "
    f"{{ {PUT % ('d', 'd')} }} }} }} {OUT}",
    "backwards": f"{LIST} for (int j = m - 1; j >= 0; j -= 2) {{ float v = x[i * m + j]; "
    f"if (!(v <= best[2])) {{ {PUT % ('v', 'v')} }} }} {OUT}",
    "rises": f"float peak = 0; int count = 0, last = -1; {LOOP} if (x[i * m + j] > peak + 0.5f) {{ "
    "peak = x[i * m + j]; if (last >= 0) count += j - last; last = j; } "
    "out[i * 3] = peak + count + last;",
    "first few": f"int count = 0; float sum = 0; {LOOP} {{ float v = y[j]; if (count < 3 && v > "
    "y[i]) { sum = sum * 0.5f + v; ++count; } } out[i * 3] = sum + count;",
    "in dimensions": f"{LIST} for (int j = 0; j < n; j++) {{ float d = 0; for (int l = 0; l < 3; ++l) "
    "{ float a = x[i * m + l] - x[j * m + l]; d -= a * a; } "
    f"if (d > best[2]) {{ {PUT % ('d', 'd')} }} }} {OUT}",
    "a row of its own": f"{LIST} {LOOP} {{ float v[2]; v[0] = y[j]; v[1] = v[0] * y[i]; float s = "
    f"v[0] + v[1]; if (s > best[2]) {{ {PUT % ('s', 's')} }} }} {OUT}",
}
ARRAYS = {"x": Array("f4", ("n", "m"), "odd"), "y": Array("f4", ("max(n, m)",), "odd"),
          "out": Array("f4", ("n * 3",), "zeros")}  # fmt: skip


@pytest.mark.parametrize("name", sampled(BODIES, every=2))
def test_lanes_make_the_same_rounds_in_the_same_order(name: str) -> None:
    before = ROWS % BODIES[name]
    made = share(kernel_of(before), [0], WARP, far=True)
    assert "__ballot_sync" in written(made)
    text = kernel_of(written(made)).program
    for lanes in (8, 32, 2)[:: examples(2, 1)]:
        after = text.with_values({"LANES": lanes}).text
        assert end_of(before, after, ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"


ONE = f"float s = 1, c = 0; {LOOP} {{ float v = y[j]; %s }} out[i] = s;"
FEW = (
    f"float l[2] = {{0, 0}}; %s {LOOP} {{ float v = y[j] + %s; if (v > l[0]) %s; }} out[i] = l[0];"
)
STAY = {
    "what is found depends on what lasts": ONE % "v -= s; if (v > s) s = s * v;",
    "it is stored in each change": ONE % "if (v > s) { s = s * v; out[j] = s; }",
    "it does not ask for what lasts": ONE % "if (v > 0) s = s * s * v + 1;",
    "both ways change it": ONE % "if (v > s) s = s * v; else s += 1;",
    "each round changes something": ONE % "c++; if (v > s) s = s * v + c;",
    "the branch is not the last": ONE % "if (v > s) s = s * v; v = s;",
    "what is found changes": ONE % "if (v > s) { v += 1; s = s * v; }",
    "the test changes something": ONE % "if (v > s++) s = s * v;",
    "it ends early": ONE % "if (v > s) { s = s * v; if (s > 9) break; }",
    "an element that lasts": FEW % ("", "l[j & 1]", "l[0] = v"),
    "by a reference": FEW % ("float& w = l[0];", "w", "l[j & 1] = v"),
    "by a pointer": FEW % ("float* w = l;", "w[1]", "l[j & 1] = v"),
    "a name of another": f"float s = 0, t = y[0]; {LOOP} {{ float v = y[j] - t; if (v > 0) {{ "
    "float t = v + 1; if (t > s) s = t - s; } } out[i] = s;",
    "a vector of a round": f"float s = 0; {LOOP} {{ float2 v = make_float2(y[j], 1); "
    "if (v.x > s) s = v.x * v.y - s; } out[i] = s;",
    "an array of a round": f"float s = 0; {LOOP} {{ float v[2]; v[0] = y[j]; v[1] = 1; "
    "if (v[0] > s) s = v[0] * v[1] - s; } out[i] = s;",
}


@pytest.mark.parametrize("name", STAY)
def test_rounds_that_no_lane_may_look_ahead_to(name: str) -> None:
    assert refused(share(kernel_of(ROWS % STAY[name]), [0], WARP, far=True))


def test_only_lanes_of_a_warp_look_ahead() -> None:
    block = Lanes("block", 64, 64, (64,), (64,))
    found = share(kernel_of(ROWS % BODIES["greatest"]), [0], block, far=True)
    assert refused(found) == "only lanes of a warp look ahead"
