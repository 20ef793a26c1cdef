"""Scratch that is a thread's own becomes a local array, in every layout and spelling, or stays."""

from __future__ import annotations

from functools import partial

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, kernels
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.localised import localised
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.source.program import parse_program

from .running import same_of_many as same
from .shapes import applied, refused

TEXT = """\
#pragma optiml scratch kept f4[n * m]
#pragma optiml launch onward grid(cdiv(n, 32)) block(32)
#pragma optiml launch back grid(cdiv(n, 32)) block(32)
__global__ void onward(const float* x, float* kept, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    float s = 0.0f;
    for (int t = 0; t < m; t++) {
        s += x[AT];
        kept[AT] = s;
    }
}
__global__ void back(const float* x, const float* kept, float* out, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    float s = kept[LAST];
    for (int t = m - 1; t >= 0; t--) {
        s = kept[AT] - s;
        out[AT] = s;
    }
}
"""
LAYOUTS = (("t * n + c", "(m - 1) * n + c"), ("c * m + t", "c * m + m - 1"))
SHAPES = {"x": ("n", "m"), "out": ("n", "m")}


def _joined(text: str, m: int = 6) -> Kernel | Refused:
    first = kernels(parse_program(text), None)[0]
    return in_turn(first, (fused, partial(sized, values={"m": m}), localised))


@pytest.mark.parametrize(("at", "last"), LAYOUTS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("for (int t = m - 1; t >= 0; t--) {", "for (int k = 0; k < m; k++) {\nint t = m - 1 - k;"),
        ("for (int t = m - 1; t >= 0; t--) {", "int t = m; while (t > 0) {\nt--;"),
        ("s = kept[AT] - s;", "float v = __ldg(&kept[AT]); s = v - s;"),
        ("const float* kept", "const float* __restrict__ kept"),
        ("kept[AT] = s;", "kept[AT] = x[AT]; kept[AT] += s;"),
        ("if (c >= n) return;\n    float s = kept", "if (c < n) { float s = kept"),
    ],
)
def test_what_a_thread_keeps_for_itself_is_a_local_array(
    at: str, last: str, old: str, new: str
) -> None:
    text = TEXT.replace(old, new) if old else TEXT
    text = text.replace("LAST", last).replace("AT", at)
    if new.startswith("if (c < n) {"):
        text = text.rstrip().removesuffix("}") + "}}\n"
    made = _joined(text)
    program = applied(made).program
    assert "scratch" not in program.text
    assert "float kept_own[6];" in program.text
    assert "* kept" not in program.text
    same(text, made, SHAPES, {"n": 50, "m": 6})


def test_pointers_into_it_are_gone_as_well() -> None:
    text = TEXT.replace("LAST", "c * m + m - 1").replace("AT", "c * m + t")
    text = text.replace("float s = 0.0f;", "float s = 0.0f; float* own = kept + c * m;")
    text = text.replace("kept[c * m + t] = s;", "own[t] = s;")
    made = _joined(text)
    assert "own =" not in applied(made).program.text
    same(text, made, SHAPES, {"n": 50, "m": 6})


def test_a_matrix_of_each_thread_is_one_row() -> None:
    text = """\
#pragma optiml scratch kept f4[12 * n]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* kept, float* out, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) kept[(i * 4 + j) * n + c] = x[c * 3 + i] * x[c * 3 + j % 3];
    float s = 0.0f;
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 3; i++) s = 0.5f * s + kept[(i * 4 + j) * n + c];
    out[c] = s;
}
"""
    made = localised(kernels(parse_program(text), None)[0])
    assert "kept_own[j + i * 4]" in applied(made).program.text
    same(text, made, {"x": ("n", "3"), "out": ("n",)}, {"n": 50}, rounds=True)


def test_planes_keep_their_axes() -> None:
    text = """\
#pragma optiml scratch kept f4[5 * h * w]
#pragma optiml launch one grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
#pragma optiml launch two grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__global__ void one(const float* x, float* kept, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    float s = 0.0f;
    for (int t = 0; t < 5; t++) { s += x[r * w + c] - t; kept[(t * h + r) * w + c] = s; }
}
__global__ void two(const float* kept, float* out, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    float s = 0.0f;
    for (int t = 4; t >= 0; --t) s = fmaxf(s, kept[(t * h + r) * w + c]);
    out[r * w + c] = s;
}
"""
    made = in_turn(kernels(parse_program(text), None)[0], (fused, localised))
    assert "kept_own[t]" in applied(made).program.text
    same(text, made, {"x": ("h", "w"), "out": ("h", "w")}, {"h": 7, "w": 21})


ONE = """\
#pragma optiml scratch kept f4[8 * n]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* kept, float* out, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    for (int t = 0; t < 8; t++) kept[t * n + c] = x[c] - t;
    out[c] = kept[3 * n + c];
}
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("kept[3 * n + c]", "kept[3 * n + (c + 1) % n]", "another thread"),
        ("kept[3 * n + c]", "kept[3 * n]", "another thread"),
        ("kept[3 * n + c]", "kept[c]; atomicAdd(&kept[n + c], 1.0f)", "is followed"),
        ("kept[3 * n + c]", "((int*)kept)[3 * n + c]", "is followed"),
        ("f4[8 * n]", "f4[8 * n]\n#pragma optiml zero(kept)", "others ask"),
        ("t < 8", "t < x[c]", "how many elements"),
        ("t < 8", "t < n", "how many elements"),
        ("8", "200", "how many elements"),
        ("float* kept", "volatile float* kept", "any time"),
        ("t < 8; t++)", "t < 8; t++) for (int c = 0; c < 1; c++)", "another thread"),
        ("scratch kept f4[8 * n]", "zero(out)", "no scratch"),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    found = localised(kernels(parse_program(ONE.replace(old, new)), None)[0])
    assert reason in refused(found)[0]


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("out[c] = kept", "float* p = kept; p += n; out[c] = p[c]; out[c] += kept", 2),
        ("out[c] = kept", "if (kept[c] > 0.0f) out[c] = kept[n + c]; else out[c] = kept", 3),
        ("out[c] = kept", "if (x[c] > 0.0f) return; out[c] = kept", 1),
    ],
)
def test_other_ways_to_ask(old: str, new: str, count: int) -> None:
    text = ONE.replace(old, new).replace("3 * n + c", "2 * n + c")
    text = text.replace("kept[n + c]", "kept[6 * n + c]").replace("p += n", "p += 4 * n")
    made = localised(kernels(parse_program(text), None)[0])
    assert applied(made).program.text.count("kept_own[") == count + 2
    same(text, made, {"x": ("n",), "out": ("n",)}, {"n": 50})
