"""Windows that slide: what neighbours share, and what only looks like a window."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.slid import slid
from optiml_magic.kernels.primitives.slides import may_slide, window

from .running import same, same_of_many
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* f, float* out, int n, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
    for (int d = -r; d <= r; d++) {
        %s
    }
    out[i] = s;
}
"""
BEGIN, INSIDE = "float s = 0.0f;", "int j = i + d;"
ROUND = f"{INSIDE} if (j >= 0 && j < n) s += x[j];"
SUM = LINE % (BEGIN, ROUND)
PLANE = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    int count = 0;
    for (int dy = -r; dy <= r; dy++) {
        if (y + dy < 0 || y + dy >= h) continue;
        for (int dx = -r; dx <= r; dx++)
            if (x + dx >= 0 && x + dx < w) { s += a[(y + dy) * w + x + dx]; count++; }
    }
    out[y * w + x] = s - count;
}
"""
SHAPES = {"x": ("n",), "f": ("40",), "out": ("n",)}
TUNED = {"ITEMS": 5, "BLOCK": 32}


def counted(text: str, at: int = 0) -> Kernel:
    return applied(as_counted(kernel(text), at, is_simple))


def reason(text: str, at: int = 0) -> str:
    """Why a loop does not slide."""
    return refused(slid(counted(text, at), at))[0]


def test_places_are_computed_once_and_shared_by_neighbours() -> None:
    after = applied(slid(counted(SUM), 0)).program.text
    for now in (
        "#pragma optiml require (BLOCK * ITEMS + max(r * 2 + 1, 1) - 1) * 4 <= 49152\n",
        "grid(cdiv(n, BLOCK * ITEMS)) block(BLOCK) shared((BLOCK * ITEMS + max(r * 2 + 1, 1) - 1) * 4)",
        "        if (rounds > 0 && slot < own_items + rounds - 1) {\n",
        "            s_core += s_tile[slot];\n",
        "        s += s_tile[slot];\n        out[i] = s;\n",
    ):
        assert now in after


@pytest.mark.parametrize("sizes", [{"n": 700, "r": 9}, {"n": 33, "r": 40}, {"n": 9, "r": 1}])
@pytest.mark.parametrize(
    ("begin", "inside"),
    [
        (BEGIN, ROUND),
        ("float s = x[i];", "s = fmaxf(s, x[min(max(i + d, 0), n - 1)]);"),
        ("float s = -9.0f;", f"{INSIDE} if (j < 0 || n <= j) continue; if (x[j] > s) s = x[j];"),
        ("int s = 3;", f"{INSIDE} if (j < 0) j = 0; if (j >= n) j = n - 1; s += x[j] > 0.0f;"),
        ("double s = 0.0;", "long j = (long)i - d; if (j >= 0 && j < n) s -= 2.0 * x[j];"),
    ],
)
def test_a_window_on_a_line_stays_what_it_was(
    begin: str, inside: str, sizes: dict[str, int]
) -> None:
    text = LINE % (begin, inside)
    same_of_many(text, slid(counted(text), 0), SHAPES, sizes, TUNED, rounds="double" in begin)


BYTES = LINE.replace("float* x", "KIND* x").replace("float* out", "KIND* out")


@pytest.mark.parametrize(
    ("kind", "dtype", "begin", "inside"),
    [
        ("unsigned char", "u1", "unsigned char s = 255;", "s = min(s, x[min(max(i + d, 0), n - 1)]);"),
        ("signed char", "i1", "signed char s = 0;", f"{INSIDE} if (j >= 0 && j < n) if (x[j] > s) s = x[j];"),
        ("unsigned short", "u2", "unsigned short s = 0;", f"{INSIDE} if (j >= 0 && j < n) s = x[j] < s ? s : x[j];"),
        ("unsigned char", "u1", "unsigned char s = 9;", f"{INSIDE} if (j >= 0 && j < n) s += 3 * x[j];"),
    ],
)  # fmt: skip
def test_bytes_slide_as_numbers_do(kind: str, dtype: str, begin: str, inside: str) -> None:
    text = (BYTES % (begin, inside)).replace("KIND", kind)
    shapes = {"x": (dtype, "n"), "f": ("40",), "out": (dtype, "n")}
    for sizes in {"n": 700, "r": 9}, {"n": 1, "r": 1}:
        same(text, slid(counted(text), 0), shapes, sizes, TUNED)


def test_what_a_byte_cuts_off_is_no_extreme_of_it() -> None:
    text = BYTES % ("unsigned char s = 0;", f"{INSIDE} if (j >= 0 && j < n) s = max(s, x[j] - 9);")
    assert reason(text.replace("KIND", "unsigned char")) == "`s` cuts off what it is the extreme of"


OWN = "__device__ float own(float v) { float w = v * 2.0f; return w > 1.0f ? sqrtf(w) : %s; }\n"


def test_a_function_of_the_program_computes_of_a_place() -> None:
    text = OWN % "w" + SUM.replace("s += x[j]", "s += own(x[j])")
    same_of_many(text, slid(counted(text), 0), SHAPES, {"n": 700, "r": 9}, TUNED, rounds=True)


@pytest.mark.parametrize(
    ("more", "gives", "taken"),
    [
        ("", "threadIdx.x", "x[j]"),
        ("__constant__ float table[4] = {1, 2, 3, 4};\n", "table[(int)v & 3]", "x[j]"),
        ("", "v", "x[j] * i"),
    ],
)
def test_a_function_that_says_more_is_refused(more: str, gives: str, taken: str) -> None:
    text = more + OWN % gives + SUM.replace("s += x[j]", f"s += own({taken})")
    assert reason(text) in {
        "a round depends on more than where it stands", "its rounds do more than to load",
        "`own` reads where its thread stands",
    }  # fmt: skip


def test_a_window_that_ends_at_its_item_runs_backwards() -> None:
    text = SUM.replace("int d = -r; d <= r; d++", "int d = 0; d < r; d++").replace("i + d", "i - d")
    found = window(kernel(text), 0)
    assert found.sign == -1
    same(text, slid(kernel(text), 0), SHAPES, {"n": 300, "r": 30}, TUNED)


@pytest.mark.parametrize("values", [{"ITEMS": 5, "ROWS": 2}, {"ITEMS": 7, "ROWS": 1}])
def test_rows_of_a_plane_slide_warp_by_warp(values: dict[str, int]) -> None:
    made = counted(PLANE, 1)
    after = applied(slid(made, 1)).program.text
    assert "block(32, ROWS) shared((32 * ITEMS + max(r * 2 + 1, 1) - 1) * 8 * ROWS)" in after
    assert after.count("__syncwarp();") == 3
    assert "__syncthreads" not in after
    shapes = {"a": ("h", "w"), "out": ("h", "w")}
    same(PLANE, slid(made, 1), shapes, {"w": 190, "h": 5, "r": 4}, values)


def test_the_rows_of_a_plane_have_to_be_free() -> None:
    text = PLANE.replace(" || y >= h", "").replace("cdiv(h, 8)", "h / 8")
    assert reason(text, 1) == "its blocks have more than one row"


_PLACE = "a round depends on more than where it stands"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("s += x[j]", "s += x[j] * f[d + r]", _PLACE),
        ("s += x[j]", "s += x[j] - x[i]", _PLACE),
        ("s += x[j]", "s += d", _PLACE),
        ("i + d", "2 * i + d", _PLACE),
        ("i + d", "i + d * d", "`j` depends on more than its place"),
        ("j >= 0", "i + d >= 0 && i - d >= 0", _PLACE),
        ("s += x[j]", "s = 0.5f * s + x[j]", "`s` goes from round to round"),
        ("s += x[j]", "s += x[j], out[i] = s", "its rounds do more than to load"),
        ("d <= r", "d <= i % 9", "each item may have another number of rounds"),
        (BEGIN, "float s = 0.0f; out[i] = s;", "`out` is written as well"),
        ("out[i] = s;", "f[i] = s; out[i] = f[i];", ""),
        ("out[i] = s;", "x[i] = s;", "`x` is written as well"),
        ("s += x[j]", "s += x[j] * threadIdx.x", "a thread asks for more than its index along x"),
        ("s += x[j]", "s += x[j], s *= 2.0f", "its rounds do more than to combine"),
    ],
)
def test_what_only_looks_like_a_window_is_refused(old: str, new: str, why: str) -> None:
    text = SUM.replace("const float*", "float*").replace(old, new, 1)
    if why:
        assert reason(text) == why
    else:
        applied(slid(counted(text), 0))


def test_a_window_that_is_left_early_does_not_slide() -> None:
    text = SUM.replace("s += x[j];", "{ s += x[j]; if (x[j] > 1.0f) break; }")
    ready = applied(as_counted(kernel(text), 0, is_simple))
    assert "the loop has another way out" in refused(slid(ready, 0))[0]


def test_the_place_of_an_extreme_is_not_kept() -> None:
    text = SUM.replace("s += x[j];", "{ if (x[j] > s) { s = x[j]; last = j; } }")
    text = text.replace(BEGIN, f"int last = 0; {BEGIN}").replace("= s;", "= s + last;")
    assert reason(text) == "`s` goes from round to round"


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("unsigned", "size_t j = (i - r) + (size_t)(d + r);"),
        ("unsigned", "long long k = i - r; long long j = k + d + r;"),
        ("int", "short k = i - r; int j = k + d + r;"),
        ("int", "float k = i - r; int j = k + d + r;"),
    ],
)
def test_a_sum_that_wraps_around_is_no_place(kind: str, place: str) -> None:
    text = SUM.replace("int i =", f"{kind} i =").replace(INSIDE, place)
    with pytest.raises(NotLegal):
        window(counted(text), 0)


def test_pointers_go_along_by_their_own_elements() -> None:
    walked = SUM.replace(ROUND, f"{INSIDE} const float* p = x + i; if (j >= 0 && j < n) s += p[d];")
    same(walked, slid(counted(walked), 0), SHAPES, {"n": 90, "r": 9}, TUNED)
    cast = walked.replace("= x + i", "= (const float*)((const double*)x + i)")
    assert reason(cast) == "`p` depends on more than its place"


def test_loops_without_such_loads_are_not_looked_at() -> None:
    made = kernel(SUM.replace("x[j]", "f[d + r]"))
    loop = next(iter(made.axes()))
    assert not may_slide(made, loop)
    assert may_slide(kernel(SUM), next(iter(kernel(SUM).axes())))
