"""Lanes that share the rounds of those with many: the same at odd sizes, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.lent import lent
from tests.present import examples, sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

ROWS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* start, const int* col, const float* x, %s* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
ARRAYS = {
    "start": Array("i4", ("n + 1",), "starts m"),
    "col": Array("i4", ("m",), "below n"),
    "x": Array("f4", ("n",)),
}
EDGES = "for (int e = start[i]; e < start[i + 1]; e++)"
BODIES = {
    "sum": f"if (i < n) {{ float s = x[i]; {EDGES} s += x[col[e]] * x[i]; out[i] = s; }}",
    "return": f"if (i >= n) return; float s = 0; {EDGES} s += x[col[e]]; out[i] = s * 2;",
    "greatest": f"if (i < n) {{ float s = -1; {EDGES} s = fmaxf(s, x[col[e]]); out[i] = s; }}",
    "some": f"if (i >= n) return; if (x[i] > 0) {{ float s = 0;\n#pragma unroll 4\n {EDGES} "
    "s += x[col[e]]; out[i] = s; }",
    "steps": "if (i < n) { float s = 0; for (int e = start[i]; e <= start[i + 1] - 1; e += 3) "
    "s += x[col[e]]; out[i] = s; }",
    "the other way round": "if (i < n) { float s = 0; int end = start[i + 1]; "
    "for (int e = start[i]; end != e; ++e) s += x[col[e]]; out[i] = s; }",
    "nested": "if (i < n) { float s = 0; for (int r = 0; r < 2; ++r) { float t = 0; "
    f"{EDGES} t += x[col[e]]; s += t * r; }} out[i] = s; }}",
    "rows within": f"if (i < n) {{ float s = 0; {EDGES} for (int l = 0; l < 3; ++l) "
    "s += x[(col[e] + l) % n]; out[i] = s; }",
    "atomics": f"if (i < n) {EDGES} atomicAdd(&out[col[e]], x[i]);",
    "a mark": f"if (i < n && x[i] > 0) {EDGES} if (x[col[e]] > x[i]) out[col[e]] = 3;",
    "few threads": "if (i >= n) return; if (col[i % m] % 5 == 0) { float s = 0; "
    "for (int e = 0; e < m; ++e) s += x[e % n] * (e ^ i); out[i] = s; }",
    "a test of what all load": "if (i < n) { float s = 0; if (x[i] > 0) for (int r = 0; r < 3; "
    f"r++) {{ float w = x[r]; if (w > 0) {{ {EDGES} s += x[col[e]] * w; }} }} out[i] = s; }}",
    "a test of what all have found": "if (i < n) { float s = 0, w = 1; if (x[i] > 0) for (int r "
    f"= 0; r < 3; r++) {{ if (w > 0) {{ {EDGES} s += x[col[e]] * w; }} w = x[r]; }} out[i] = s; }}",
    "its own elements": f"if (i < n) {{ {EDGES} out[e] = x[col[e]] * 2; float s = 0; "
    "if (start[i] < start[i + 1]) s = out[start[i + 1] - 1]; out[m + i] = s; }",
}


@pytest.mark.parametrize("name", sampled(BODIES, every=2))
def test_lanes_lend_each_other_their_rounds(name: str) -> None:
    before = ROWS % ("float", BODIES[name])
    number = 1 if name == "nested" or name.startswith("a test of what all") else 0
    arrays = {**ARRAYS, "out": Array("f4", ("m + 8 * n",), "zeros")}
    for alone in (0, 8, 128)[:: examples(2, 1)]:
        after = written(lent(kernel_of(before), number, alone))
        assert after.count("__ballot_sync") == 1
        sizes, others = {"n": 71, "m": 900}, {"n": 3, "m": 40}
        assert end_of(before, after, arrays, sizes, others, rounds=True) == "same"


def test_all_threads_of_a_plane_come_to_the_loop() -> None:
    before = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(n, 4)) block(16, 4)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n || j <= i) return;
    if (x[i * n + j] > 1.5f) {
        float s = 0;
        for (int k = 0; k < n; k++) s += x[i * n + k] * x[j * n + k];
        out[i * n + j] = s;
    }
}
"""
    after = written(lent(kernel_of(before), 0, 0))
    assert "const int lane = (threadIdx.y * 16 + threadIdx.x) % 32;" in after
    arrays = {"x": Array("f4", ("n", "n")), "out": Array("f4", ("n", "n"), "zeros")}
    assert end_of(before, after, arrays, {"n": 45}, {"n": 1}, rounds=True) == "same"


def test_vectors_are_handed_on_number_by_number() -> None:
    near = (
        "if (i >= n) return; float2 own = make_float2(x[i], x[start[i] % n]); int2 seen{i, 3}; "
        f"float s = 0; {EDGES} s += (own.x - x[col[e]]) * own.y + seen.x; out[i] = s + seen.y;"
    )
    before = ROWS % ("float", near)
    after = written(lent(kernel_of(before), 0, 0))
    assert "float2 own_lent = {__shfl_sync(~0u, own.x, lender), __shfl_sync(" in after
    arrays = {**ARRAYS, "out": Array("f4", ("n",), "zeros")}
    sizes, others = {"n": 71, "m": 900}, {"n": 3, "m": 40}
    assert end_of(before, after, arrays, sizes, others, rounds=True) == "same"


def test_what_other_lanes_store_is_waited_for() -> None:
    for name, waits in (("its own elements", 2), ("sum", 0), ("a mark", 0)):
        made = lent(kernel_of(ROWS % ("float", BODIES[name])), 0)
        assert written(made).count("__syncwarp();") == waits


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"float s = 0; {EDGES} {{ if (x[col[e]] > 1) break; s += 1; }} out[i] = s;",
         "the loop has another way out"),
        (f"float s = 0; {EDGES} s = s * x[col[e]] + 1; out[i] = s;", "goes from round to round"),
        (f"float s[2], t = 0; s[0] = x[i]; s[1] = t; {EDGES} t += s[e & 1]; out[i] = t;",
         "`s` is an array of its own thread"),
        (f"float s = 0; {EDGES} s += threadIdx.x; out[i] = s;", "ask for the place of their"),
        (f"{EDGES} out[col[e]] = e;", "two rounds may store to one element"),
        (f"{EDGES} {{ out[col[e]] = 1; if (x[e] > 1) out[col[e]] = 2; }}", "two rounds may store"),
        (f"{EDGES} if (out[col[e]] == 0) out[col[e]] = 1;", "two rounds may store"),
        (f"{EDGES} out[col[e]] = x[i];", "two rounds may store"),
        ("float s = 0; for (int e = i; e >= col[0]; e--) s += x[e]; out[i] = s;",
         "the loop does not count up by a number"),
        (f"bool b = i > 1; int s = 0; {EDGES} s += b + col[e]; out[i] = s;",
         "a shuffle does not carry"),
        (f"const float2* p = (const float2*)x; float s = 0; {EDGES} s += p[e].y; out[i] = s;",
         "a shuffle does not carry a pointer"),
        ("float s = 0; __syncthreads(); for (int e = 0; e < i; ++e) s += x[e]; out[i] = s;",
         "its threads wait for each other"),
        (f"float b = 0; int at = 0; {EDGES} if (x[e] > b) {{ b = x[e]; at = e; }} out[i] = at;",
         "what goes along with an extreme is not handed back"),
    ],
)  # fmt: skip
def test_rounds_that_stay_with_their_lane(body: str, reason: str) -> None:
    guarded = body if "__syncthreads" in body else f"if (i < n) {{ {body} }}"
    assert reason in refused(lent(kernel_of(ROWS % ("float", guarded)), 0))


def test_blocks_that_are_not_of_whole_warps_stay() -> None:
    text = (ROWS % ("float", BODIES["sum"])).replace("64", "48")
    assert refused(lent(kernel_of(text), 0)) == "its blocks are not of whole warps"
