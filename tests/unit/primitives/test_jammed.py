"""Threads that take several items: what they share they load once, and the borders stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.jammed import Several, jam, shared

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const float* f, float* out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    %s
}
"""
SHAPES = {"a": ("h", "w"), "f": ("25",), "out": ("h", "w")}
FOUR = Several({"y": (4, 2)})
CROSS = "a[y * w + x - 1] + a[y * w + x + 1] + a[(y - 1) * w + x] + a[(y + 1) * w + x]"
LOOPS = """\
if (x < w && y < h) {
        float s = 0.0f;
        for (int dy = -r; dy <= r; dy++) {
            for (int dx = -r; dx <= r; ++dx) {
                %s
            }
        }
        out[y * w + x] = s;
    }"""


@pytest.mark.parametrize(
    ("body", "spelled"),
    [
        (
            (f"if (x >= w || y >= h) return; if (x == 0 || y == 0 || x == w - 1 || y == h - 1) "
            f"out[y * w + x] = a[y * w + x]; else out[y * w + x] = {CROSS};"),
            "a_at[(y_item - 1) * w]",
        ),
        (f"if (x > 0 && y > 0 && x < w - 1 && y < h - 1) out[y * w + x] = {CROSS};", "a_at"),
        (
            ("if (x < w && y < h) out[y * w + x] = a[(y + h - 1) % h * w + (x + 1) % w] "
            "+ a[(y + 1) % h * w + x];"),
            "a_at[(y_item - 1) * w + 1]",
        ),
        (
            ("if (x < w && y < h) out[y * w + x] = (y > 0 ? a[(y - 1) * w + x] : 0.0f) "
            "+ a[(y < h - 1 ? y + 1 : y) * w + x];"),
            "a_at[(y_item - 1) * w] + a_at[(y_item + 1) * w]",
        ),
        (
            "if (x < w && y < h && (x + y) % 2 == 0) { int at = y * w + x; out[at] = a[at]; }",
            "a_at[y_item * w]",
        ),
    ],
)  # fmt: skip
def test_borders_are_compared_once(body: str, spelled: str) -> None:
    text = PLANE % body
    made = jam(kernel(text), FOUR)
    assert spelled in applied(made).program.text
    same(text, made, SHAPES, {"w": 21, "h": 19, "r": 1})


@pytest.mark.parametrize(
    "inner",
    [
        (
            "int px = min(max(x + dx, 0), w - 1), py = min(max(y + dy, 0), h - 1);\n"
            "s += a[py * w + px] * f[(dy + r) * (2 * r + 1) + dx + r];"
        ),
        "if (x + dx >= 0 && x + dx < w && y + dy >= 0 && y + dy < h) s += a[(y + dy) * w + x + dx];",
        (
            "if (x + dx < 0 || x + dx >= w) continue; if (y + dy < 0 || y + dy >= h) continue;"
            " s += a[(y + dy) * w + x + dx];"
        ),
    ],
)
@pytest.mark.parametrize("r", [2, 1])
def test_a_radius_is_compared_with_a_number(inner: str, r: int) -> None:
    text = PLANE % (LOOPS % inner)
    made = jam(kernel(text), Several({"y": (4, 2)}, {"r": 2}))
    words = applied(made).program.text
    assert "if (r == 2 && " in words
    assert "a_at[(dy + y_item) * w + dx]" in words
    same(text, made, SHAPES, {"w": 21, "h": 19, "r": r})


LAYER = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), n * m) block(8, 4)
__global__ void k(const float* a, const float* f, float* out, int n, int m, int c, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int image = blockIdx.z / m, filter = blockIdx.z % m;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int q = 0; q < c; q++) {
        float t = 0.0f;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                t += a[((image * c + q) * (h + 2) + y + i) * (w + 2) + x + j]
                    * f[((filter * c + q) * 3 + i) * 3 + j];
            }
        }
        s += t;
    }
    out[((image * m + filter) * h + y) * w + x] = s;
}
"""


@pytest.mark.parametrize("m", [4, 3])
def test_a_loop_that_is_the_same_for_all_items_stands_around_them(m: int) -> None:
    made = jam(kernel(LAYER), Several({"z": (2,), "y": (2, 4)}))
    words = applied(made).program.text
    assert "m % ITEMS_Z == 0" in words
    assert words.index("for (int q = 0") < words.index("t += a_at[")
    assert "float s[ITEMS_Z][ITEMS_Y];" in words
    shapes = {
        "a": ("n", "c", "h + 2", "w + 2"),
        "f": ("m", "c", "9"),
        "out": ("n", "m", "h", "w"),
    }
    same(LAYER, made, shapes, {"n": 2, "m": m, "c": 3, "w": 11, "h": 9})


def test_planes_of_a_volume_are_written_as_a_thread_goes_through_them() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, float* out, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) return;
    for (int z = 1; z < d - 1; z++) {
        float s = a[(z * h + y) * w + x - 1] + a[(z * h + y) * w + x + 1];
        s += a[(z * h + y - 1) * w + x];
        s += a[(z * h + y + 1) * w + x];
        out[(z * h + y) * w + x] = s + a[((z - 1) * h + y) * w + x] + a[((z + 1) * h + y) * w + x];
    }
}
"""
    made = jam(kernel(text), FOUR)
    words = applied(made).program.text
    assert words.index("for (int z = 1") < words.index("for (int y_item")
    shape = ("d", "h", "w")
    same(text, made, {"a": shape, "out": shape}, {"w": 13, "h": 15, "d": 5})


def test_what_is_shared_is_counted() -> None:
    text = PLANE % f"if (x > 0 && y > 0 && x < w - 1 && y < h - 1) out[y * w + x] = {CROSS};"
    (saved,) = shared(kernel(text), FOUR).values()
    assert saved == pytest.approx(1 - 14 / 16)
    assert shared(kernel(LAYER), Several({"z": (4,)}))["z"] == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[y * w + x] = a[y * w + x];", "how many items there are along y"),
        ("if (x < w && y < h) atomicAdd(&out[x], a[y * w + x]);", "atomic operation"),
        ("if (x < w && y < h) out[y * w + x] = threadIdx.y;", "where in its block"),
        ("if (x < w && y < h) { w = 3; out[x] = a[y]; }", "parameter `w` changes"),
        ("if (x >= w || y >= h) return; if (a[x] > 0.0f) return; out[y * w + x] = a[x];",
         "whether an item ends"),
        (("if (x >= w || y >= h) return; for (int i = 0; i < 3; ++i) { if (a[i] > 1.0f) return; "
         "out[y * w + x] = i; }"), "left within a loop"),
    ],
)  # fmt: skip
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(jam(kernel(PLANE % body), FOUR))[0]
