"""Two launches as one kernel: what stays in a register, what is written still, what is refused."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.paired import rounds
from optiml_magic.source.program import parse_program
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .running import same_of_many as same
from .shapes import applied, refused

CHAIN = """\
#pragma optiml scratch t f4[n]
#pragma optiml launch one grid(cdiv(n, 32)) block(32)
#pragma optiml launch two grid(cdiv(n, 64)) block(64)
__device__ float twice(float v) { return v + v; }
__global__ void one(const float* a, float* t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) %s
}

__global__ void two(const float* t, const float* b, float* out, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    %s
}
"""
SHAPES = {"a": ("n",), "b": ("n + 1",), "out": ("n + 1",)}


def _first(text: str) -> Kernel:
    return kernels(parse_program(text), None)[0]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("t[i] = a[i] + 1.0f;", "out[i] = t[i] * b[i] + t[i];"),
        ("t[i] = a[i] * 3.0f;", "float a = b[i]; out[i] = a + t[i];"),
        ("{ float b = twice(a[i]); t[i] = b; }", "out[i] = t[i] * b[i];"),
        ("{ float v = twice(a[i]); t[i] = v; }", "float v = t[i]; if (v > 0.0f) out[i] = v;"),
        ("{ float s = 0.0f; for (int k = 0; k < n; k++) s += a[k]; t[i] = s; }",
         "out[i] = b[i]; for (int k = 0; k < 3; k++) out[i] += t[i];"),
    ],
)  # fmt: skip
def test_what_passes_between_them_stays_in_a_register(one: str, two: str) -> None:
    text = CHAIN % (one, two)
    made = fused(_first(text))
    program = applied(made).program
    assert "scratch" not in program.text
    assert "t_item" in program.text
    assert len(program.launches) == 1
    assert not re.search(r"\bt\[", program.text)
    same(text, made, SHAPES, {"n": 100})


def test_what_is_asked_for_is_written_still() -> None:
    text = (CHAIN % ("t[i] = a[i];", "out[i] = t[i];")).replace(
        "#pragma optiml scratch t f4[n]\n", ""
    )
    made = fused(_first(text))
    assert "t[i] = t_item;" in applied(made).program.text
    same(text, made, {"a": ("n",), "b": ("n",), "t": ("n",), "out": ("n",)}, {"n": 100})


@pytest.mark.parametrize(
    ("one", "two", "stores"),
    [
        ("x[i] = x[i] + a[i];", "x[i] = x[i] > 0.0f ? x[i] : 0.0f;", 1),
        ("x[i] = x[i] + a[i];", "{ x[i] = x[i] * 2.0f; a[i] = x[i]; }", 2),
        ("{ x[i] = a[i]; a[i] = x[i]; }", "a[i] = x[i] + a[i];", 1),
        ("x[i] = x[i] + a[i];", "{ if (a[i] > 0.0f) return; x[i] = 2.0f * x[i]; }", 2),
        ("x[i] = x[i] + a[i];", "if (x[i] > 0.0f) x[i] = 0.0f;", 2),
        ("x[i] += a[i];", "x[i] *= 2.0f;", 1),
        ("{ x[i] += a[i]; a[i] = x[i]; }", "x[i] /= 2.0f;", 2),
    ],
)
def test_in_place_the_last_store_is_the_one_that_stays(one: str, two: str, stores: int) -> None:
    text = f"""\
#pragma optiml launch one grid(cdiv(n, 32)) block(32)
#pragma optiml launch two grid(cdiv(n, 32)) block(32)
__global__ void one(float* a, float* x, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {one}
}}
__global__ void two(float* x, float* a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {two}
}}
"""
    made = fused(_first(text))
    shown = applied(made).program.text
    assert len(re.findall(r"x\[i\] [+*]?= ", shown)) == stores
    arrays = {"a": Array("f4", ("n",)), "x": Array("f4", ("n",))}
    stand = Stand(Made("one", text, arrays, {"n": 70}, {"n": 33}, {}, ("a", "x")))
    found = stand.applied(Offer("one", "", shown), text)
    assert found.sound, f"{found.end}: {found.detail}"


def test_what_is_not_always_written_passes_through_memory() -> None:
    text = CHAIN % ("{ if (a[i] > 0.0f) t[i] = a[i]; else t[i] = 1.0f; }", "out[i] = t[i];")
    made = fused(_first(text))
    assert "scratch t" in applied(made).program.text
    same(text, made, SHAPES, {"n": 100})


def test_what_is_referred_to_passes_through_memory() -> None:
    text = CHAIN % ("{ float& r = t[i]; r = a[i]; }", "const float* p = t; out[i] = p[i];")
    made = fused(_first(text))
    assert "scratch t" in applied(made).program.text
    same(text, made, SHAPES, {"n": 100})


def test_an_index_of_the_same_name_is_another_number() -> None:
    text = (CHAIN % ("t[i] = a[i] + (i - 200 < 0);", "out[i] = t[i];")).replace(
        "int i = threadIdx", "unsigned i = threadIdx"
    )
    made = fused(_first(text))
    assert "int i_one = i;" in applied(made).program.text
    same(text, made, SHAPES, {"n": 100})


def test_parameters_are_called_as_what_is_passed() -> None:
    text = """\
#pragma optiml scratch t f4[n]
#pragma optiml launch half grid(cdiv(n, 32)) block(32) args(a, t, n)
#pragma optiml launch one_more grid(cdiv(n, 32)) block(32) args(t, out, n)
__global__ void half(const float* x, float* y, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) y[i] = 0.5f * x[i];
}
__global__ void one_more(const float* x, float* y, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) y[i] = 1.0f + x[i];
}
"""
    first = _first(text)
    assert rounds(first)
    made = fused(first)
    assert "float t_item = 0.5f * a[i];" in applied(made).program.text
    assert "(const float* a, int n, float* out)" in applied(made).program.text
    same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70})


def test_planes_and_tuned_blocks() -> None:
    text = """\
#pragma optiml tune BX in {8, 16} = 8
#pragma optiml launch one grid(cdiv(w, BX), cdiv(h, 4)) block(BX, 4)
#pragma optiml launch two grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__global__ void one(float* a, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) a[y * w + x] = a[y * w + x] + 1.0f;
}
__global__ void two(const float* a, float* out, int w, int h) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    out[r * w + c] = a[r * w + c] * 2.0f;
}
"""
    program = applied(fused(_first(text))).program
    assert "tune BX" not in program.text
    assert len(program.launches) == 1


PLANE = """\
#pragma optiml launch one grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
#pragma optiml launch two grid(cdiv(h * w, 64)) block(64)
__global__ void one(const float* a, float* o, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int k = 0; k < h; k++) s += a[y * h + k] * a[k * w + x];
    o[y * w + x] = s;
}
__global__ void two(float* o, const float* b, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) o[i] = o[i] * 0.5f + b[i % w];
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h * w", "w * h"),
        ("+ b[i % w]", "- 1.0f"),
        ("b[i % w]", "b[i / w] - i"),
        ("if (i < h * w) o[i]", "if (i >= w * h) return; o[i]"),
        ("i < h * w", "i < h * w - 1"),
        ("o[i] * 0.5f", "(i % w > 2 ? o[i] : 3.0f)"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_one_index_behind_rows_and_columns(old: str, new: str, *, turned: bool) -> None:
    text, grid = PLANE.replace(old, new), "grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)"
    if turned:
        text = text.replace("int x = b", "int y = b").replace("y = blockIdx.y", "x = blockIdx.y")
        text = text.replace(grid, grid := "grid(cdiv(h, 8), cdiv(w, 4)) block(8, 4)")
    made = applied(fused(_first(text)))
    assert len(made.program.launches) == 1
    assert grid in made.program.text
    assert "%" not in made.program.text.split("__global__")[1]
    shapes = {"a": ("(h + w) * (h + w)",), "b": ("h + w",), "o": ("h * w",)}
    for sizes in ({"w": 13, "h": 6}, {"w": 3, "h": 33}):
        same(text, made, shapes, sizes)


def test_one_index_behind_layers_of_rows_and_columns() -> None:
    text = PLANE.replace("cdiv(h, 4))", "cdiv(h, 4), d)").replace("int h)", "int h, int d)")
    text = text.replace("h * w", "d * h * w").replace("o[y *", "o[(blockIdx.z * h + y) *")
    made = applied(fused(_first(text.replace("b[i % w]", "b[i / (h * w)]"))))
    assert "grid(cdiv(w, 8), cdiv(h, 4), d) block(8, 4)" in made.program.text
    assert "/" not in made.program.text.split("__global__")[1]
    shapes = {"a": ("(h + w) * (h + w)",), "b": ("d",), "o": ("d * h * w",)}
    same(text.replace("b[i % w]", "b[i / (h * w)]"), made, shapes, {"w": 13, "h": 6, "d": 3})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("o[i] * 0.5f", "o[h * w - 1 - i]", "another thread"),
        ("i % w", "i % h", "other axes"),
        ("x >= w ||", "x >= w - 1 ||", "guards are not the same"),
        ("o[y * w + x]", "o[x * h + y]", "other axes"),
    ],
)
def test_other_rows_and_columns_are_refused(old: str, new: str, reason: str) -> None:
    assert reason in refused(fused(_first(PLANE.replace(old, new))))[0]


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        ("t[i] = a[i];", "out[i] = t[n - 1 - i];", "another thread"),
        ("t[i] = a[i];", "out[i] = t[i] + t[0];", "another thread"),
        ("t[(i + 1) % n] = a[i];", "out[i] = t[i];", "another thread"),
        ("{ t[i] = a[i]; atomicAdd(&t[0], 1.0f); }", "out[i] = t[i];", "another thread"),
        ("{ if (a[i] > 0.0f) return; t[i] = a[i]; }", "out[i] = t[i];", "left before its end"),
        ("t[i] = a[i];", "out[i] = t[i]; __syncthreads();", "wait"),
        ("t[i] = a[i];", "if (i >= 9) return; out[i] = t[i] + b[0];", ""),
        ("t[i] = a[i];", "out[i + 1] = t[i] + b[blockDim.x];", "more than its index"),
    ],
)
def test_refused(one: str, two: str, reason: str) -> None:
    text = CHAIN % (one, two)
    if reason:
        found, line = refused(fused(_first(text)))
        assert reason in found
        assert line or reason != "another thread"
    else:
        same(text, fused(_first(text)), SHAPES, {"n": 100})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("if (i < n)", "if (i < n - 1)", "their guards are not the same"),
        ("block(64)", "block(64) if (n > 9)", ""),
        ("const float* t,", "const double* t,", "types"),
        ("void two(const float* t, const float* b", "__launch_bounds__(64) void two(const float* t, const float* b", "not a plain kernel"),
    ],
)  # fmt: skip
def test_other_launches_are_refused(old: str, new: str, reason: str) -> None:
    text = (CHAIN % ("t[i] = a[i];", "out[i] = b[i];")).replace(old, new)
    if not reason:
        text = text.replace(
            "__device__", "#pragma optiml launch two grid(1) block(64) else\n__device__"
        )
        assert not [k for k in kernels(parse_program(text), None) if k.behind]
        return
    assert reason in refused(fused(_first(text)))[0]


def test_one_array_twice_is_refused() -> None:
    text = (CHAIN % ("t[i] = a[i];", "out[i] = t[i] + b[i];")).replace(
        "launch two grid(cdiv(n, 64)) block(64)", "launch two grid(cdiv(n, 64)) block(64) args(t, out, out, n)"
    )  # fmt: skip
    assert "two names" in refused(fused(_first(text)))[0]


STEPS = """\
#pragma optiml scratch t f4[m * n]
#pragma optiml launch one grid(cdiv(n, 32)) block(32)
#pragma optiml launch two grid(cdiv(n, 32)) block(32)
__global__ void one(const float* a, float* t, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    t[FIRST] = a[i];
    for (int k = 1; k < m; k++) t[AT] = a[i] - 0.5f * t[BEFORE];
}
__global__ void two(const float* t, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = t[LAST];
    for (int k = m - 2; k >= 0; k--) s = fmaxf(0.5f * s, t[AT]);
    out[i] = s;
}
"""
ACROSS = {"FIRST": "i", "AT": "k * n + i", "BEFORE": "(k - 1) * n + i", "LAST": "(m - 1) * n + i"}
ALONG = {
    "FIRST": "i * m", "AT": "i * m + k", "BEFORE": "i * m + k - 1", "LAST": "i * m + m - 1",
}  # fmt: skip


def _steps(places: dict[str, str], old: str = "", new: str = "") -> str:
    text = STEPS
    for word, place in places.items():
        text = text.replace(word, place)
    return text.replace(old, new) if old else text


@pytest.mark.parametrize("places", [ACROSS, ALONG])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("const float* t", "const float* __restrict__ t"),
        ("m - 2", "m - 1"),
        ("t[i * m + k]);", "t[i * m + k + 1]);"),
        ("t[k * n + i]);", "t[(k + 1) * n + i]);"),
    ],
)
def test_what_a_thread_leaves_in_its_steps_is_its_own(
    places: dict[str, str], old: str, new: str
) -> None:
    text = _steps(places, old, new)
    made = fused(_first(text))
    program = applied(made).program
    assert len(program.launches) == 1
    assert "__restrict__" not in program.text
    same(text, made, {"a": ("n",), "out": ("n",)}, {"n": 70, "m": 9})


@pytest.mark.parametrize(
    ("places", "old", "new"),
    [
        (ACROSS, "t[k * n + i]);", "t[k * n + (i + 1) % n]);"),
        (ACROSS, "t[k * n + i]);", "t[k * m + i]);"),
        (ACROSS, "float s = t[(m - 1) * n + i]", "float s = t[(m - 1) * n]"),
        (ALONG, "t[i * m + k]);", "t[i + m * k]);"),
        (ALONG, "float s = t[i * m + m - 1]", "float s = t[i * m + m]"),
        (ALONG, "k = m - 2", "k = m + 2"),
        (ALONG, "k < m; k++", "k < 2 * m; k++"),
    ],
)
def test_steps_of_another_thread_are_refused(places: dict[str, str], old: str, new: str) -> None:
    text = _steps(places, old, new)
    assert text != _steps(places)
    assert "another thread" in refused(fused(_first(text)))[0]


def test_loads_that_say_nobody_writes_are_plain() -> None:
    text = CHAIN % ("if (a[i] > 0.0f) t[i] = a[i]; else t[i] = 1.0f;", "out[i] = __ldg(&t[i]) + __ldg(b + i) + __ldg(t + i);")  # fmt: skip
    made = fused(_first(text.replace("if (i < n) if", "if (i < n) { if").replace("1.0f;\n}", "1.0f; }\n}")))  # fmt: skip
    shown = applied(made).program.text
    assert "__ldg(b + i)" in shown
    assert shown.count("__ldg") == 1
    assert "scratch t" in shown


def test_a_function_that_says_nobody_writes_is_refused() -> None:
    text = (CHAIN % ("t[i] = a[i];", "out[i] = at(t, i);")).replace(
        "__device__", "__device__ float at(const float* t, int i) { return __ldg(&t[i]); }\n__device__"
    )  # fmt: skip
    assert "as if nobody wrote" in refused(fused(_first(text)))[0]
