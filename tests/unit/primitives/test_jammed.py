"""Threads that take several items: what they share they load once, and the borders stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.jammed import Several, jam, shared

from .running import same_of_many as same
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
SIDES = "out[y * w + x] = a[y * w + x - 1] + a[y * w + x + 1];"
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
            ("if (x < w && y < h) { int q = y - 1, p = y + 1; if (q < 0) q = -q; "
            "if (q >= h) q = 2 * h - 2 - q; if (p < 0) p = -p; if (p >= h) p = 2 * h - 2 - p; "
            "out[y * w + x] = a[q * w + x] + a[p * w + x]; }"),
            "a_at[(y_item - 1) * w] + a_at[(y_item + 1) * w]",
        ),
        (f"if (x > 0 && x < w - 1) if (y > 0) if (y < h - 1) out[y * w + x] = {CROSS};", "a_at"),
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
    "places",
    [
        "int x = X, y = Y, band = (Y) % 3;",
        "int band = (Y) / 2, y = (Y), x = X;",
        "int y = Y, first = threadIdx.x, x = X, band = first + y;",
    ],
)
def test_places_and_what_comes_of_them_may_be_one_declaration(places: str) -> None:
    body = "if (x < w && y < h) out[y * w + x] = (y > 0 ? a[(y - 1) * w + x] : band) * band;"
    own = [line for line in PLANE.splitlines(keepends=True) if "int x =" not in line]
    text = "".join(line for line in own if "int y =" not in line) % (places + body)
    for axis in "XY":
        low = axis.lower()
        text = text.replace(axis, f"blockIdx.{low} * blockDim.{low} + threadIdx.{low}")
    same(text, jam(kernel(text), FOUR), SHAPES, {"w": 21, "h": 19, "r": 1})


@pytest.mark.parametrize(
    ("inner", "r"),
    [
        (("int px = min(max(x + dx, 0), w - 1), py = min(max(y + dy, 0), h - 1);\n"
         "s += a[py * w + px] * f[(dy + r) * (2 * r + 1) + dx + r];"), 2),
        (("if (x + dx >= 0 && x + dx < w && y + dy >= 0 && y + dy < h)"
         " s += a[(y + dy) * w + x + dx];"), 1),
        (("if (x + dx < 0 || x + dx >= w) continue; if (y + dy < 0 || y + dy >= h) continue;"
         " s += a[(y + dy) * w + x + dx];"), 2),
    ],
)  # fmt: skip
def test_a_radius_is_compared_with_a_number(inner: str, r: int) -> None:
    text = PLANE % (LOOPS % inner)
    made = jam(kernel(text), Several({"y": (4, 2)}, {"r": 2}))
    words = applied(made).program.text
    assert "inside = r == 2 && " in words
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


GROUPS = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), n * m) block(8, 4)
__global__ void k(const float* a, const float* f, float* out, int n, int m, int g, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int image = blockIdx.z / m, filter = blockIdx.z % m;
    if (x >= w || y >= h) return;
    int group = filter / (m / g);
    float s = 0.0f;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++)
            if (x + j >= 0 && x + j < w && y + i >= 0 && y + i < h)
                s += a[((image * g + group) * h + y + i) * w + x + j] * f[filter * 9 + i * 3 + j + 4];
    out[((image * m + filter) * h + y) * w + x] = s;
}
"""


@pytest.mark.parametrize("several", [{"x": (4,)}, {"y": (4, 2)}, {"y": (2,), "x": (4,)}])
def test_groups_of_filters_are_the_same_for_all_items_of_a_plane(
    several: dict[str, tuple[int, ...]],
) -> None:
    made = jam(kernel(GROUPS), Several(several))
    assert "z_index % m) / (m / g)" in applied(made).program.text
    shapes = {"a": ("n", "g", "h", "w"), "f": ("9 * m",), "out": ("n", "m", "h", "w")}
    same(GROUPS, made, shapes, {"w": 24, "h": 10, "n": 2, "m": 6, "g": 3})


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


@pytest.mark.parametrize("r", [2, 3])
def test_windows_that_a_scalar_widens_have_no_tests_within(r: int) -> None:
    text = (
        PLANE
        % """if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            int p = y + (i - 1) * r, q = x + (j - 1) * (r / 2);
            if (p >= 0 && p < h && q >= 0 && q < w) s += a[p * w + q] * f[i * 3 + j];
        }
    out[y * w + x] = s;"""
    )
    made = jam(kernel(text), Several({"y": (4, 2)}, {"r": 2}))
    inside, _, edges = applied(made).program.text.partition("#pragma unroll 1")
    assert "if (p >= 0" not in inside
    assert "if (p >= 0" in edges
    same(text, made, SHAPES, {"w": 21, "h": 19, "r": r})


ROWS = Several({"y": (2, 4), "x": (4, 8)})


@pytest.mark.parametrize(
    ("body", "window", "w"),
    [
        (f"if (x > 0 && y > 0 && x < w - 1 && y < h - 1) out[y * w + x] = {CROSS};",
         "float a_row[ITEMS_Y + 2][ITEMS_X + 8];", 32),
        ("if (x < w && y < h - 3) out[y * w + x] = a[(y + 3) * w + x] + a[(y + 1) * w + x] * f[x];",
         "float a_row[ITEMS_Y + 2][ITEMS_X];", 30),
        ("if (x < w - 5 && y < h) out[y * w + x] = a[y * w + x + 5] + a[y * w + x + 1];",
         "float a_row[ITEMS_Y][ITEMS_X + 8];", 32),
        ("if (x >= 3 && x < w && y < h) out[y * w + x] = a[y * w + x - 3] + f[y] + f[5];",
         "float a_row[ITEMS_Y][ITEMS_X + 4];", 32),
    ],
)  # fmt: skip
def test_rows_are_windows_of_vectors(body: str, window: str, w: int) -> None:
    text = PLANE % body
    made = jam(kernel(text), ROWS)
    assert window in applied(made).program.text
    assert "w % 4 == 0" in applied(made).program.text
    same(text, made, {**SHAPES, "f": ("w + h",)}, {"w": w, "h": 19, "r": 1})


BOTH = "if (x < w && y < h) { float c = a[y * w + x]; %s }"


@pytest.mark.parametrize(
    ("ways", "whole"),
    [
        (("if (c > 0.5f) out[y * w + x] = c; else if (c > 0.0f) out[y * w + x] = 1.0f; "
          "else out[y * w + x] = 0.0f;"), True),
        ("if (c > 0.5f) { out[y * w + x] = c; } else { c *= 2.0f; out[y * w + x] = c; }", True),
        ("if (c > 0.5f) out[y * w + x] = c; else if (c > 0.0f) out[y * w + x] = 1.0f;", False),
    ],
)  # fmt: skip
def test_what_both_ways_of_a_test_store_is_a_vector(ways: str, whole: bool) -> None:
    text = PLANE % (BOTH % ways)
    made = jam(kernel(text), ROWS)
    assert ("&out_at[y_item * " in applied(made).program.text) == whole
    same(text, made, SHAPES, {"w": 32, "h": 19, "r": 1})


def test_a_window_of_a_filter_has_rows_of_rounds() -> None:
    inner = "s += a[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)] * f[dx * dx];"
    text = PLANE % (LOOPS % inner)
    made = jam(kernel(text), Several({"y": (2,), "x": (4,)}, {"r": 2}))
    assert "float a_row[ITEMS_Y + 4][ITEMS_X + 8];" in applied(made).program.text
    same(text, made, SHAPES, {"w": 28, "h": 19, "r": 2})


@pytest.mark.parametrize("kind", ["u1"])
def test_a_line_of_any_type(kind: str) -> None:
    word = {"u1": "unsigned char", "f4": "float", "f8": "double"}[kind]
    text = f"""\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const {word}* a, {word}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{
        {word} s = 0;
        for (int k = -3; k <= 3; k++) if (i + k >= 0 && i + k < n) s += a[i + k];
        out[i] = s;
    }}
}}
"""
    made = jam(kernel(text), Several({"x": (16,)}))
    assert "a_row[" in applied(made).program.text
    same(
        text,
        made,
        dict.fromkeys(("a", "out"), ("n",) if kind == "f4" else (kind, "n")),
        {"n": 1101},
    )


def test_products_of_rows_and_columns() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 8), cdiv(m, 4)) block(8, 4)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int p = 0; p < d; p++) s += a[i * d + p] * b[p * n + j];
    c[i * n + j] = s;
}
"""
    made = jam(kernel(text), ROWS)
    assert "for (int p = 0; p < d; p++) {" in applied(made).program.text
    shapes = {"a": ("m", "d"), "b": ("d", "n"), "c": ("m", "n")}
    same(text, made, shapes, {"m": 13, "n": 36, "d": 7})


def test_items_near_a_border_are_dealt_out_among_the_threads_of_a_block() -> None:
    made = applied(jam(kernel(PLANE % f"if (x > 0 && x < w - 1 && y < h) {{ {SIDES} }}"), ROWS))
    words = made.program.text
    assert "edge_threads[BLOCK_X * BLOCK_Y];" in words
    assert "!inside && x_first >= 0 && y_first < h && x_first < w" in words
    assert "edge_thread / BLOCK_X) * ITEMS_Y + edge_item / ITEMS_X % ITEMS_Y" in words


def test_a_place_in_the_block_is_that_of_the_thread_whose_item_it_is() -> None:
    text = PLANE % "if (x < w && y < h) out[y * w + x] = a[y * w + x] + threadIdx.x;"
    made = jam(kernel(text), FOUR)
    assert "+ (edge_thread % 8)" in applied(made).program.text
    same(text, made, SHAPES, {"w": 21, "h": 19, "r": 1})


def test_no_access_that_a_compiler_makes_whole_reaches_beyond_the_last_row() -> None:
    text = PLANE % (
        "if (x >= w || y >= h) return; float s = 0.0f; for (int d = -3; d <= 3; ++d)"
        " if (x + d >= 0 && x + d < w) s += a[y * w + x + d]; out[y * w + x] = s;"
    )
    made = jam(kernel(text), Several({"x": (4,)}))
    assert "4 <= x_first && ITEMS_X + (long long)x_first + 4 <= w" in applied(made).program.text
    same(text, made, {**SHAPES, "f": ("1",)}, {"w": 32, "h": 3, "r": 1})


def test_locals_of_one_name_stay_in_their_blocks() -> None:
    text = PLANE % (
        "if (x >= w || y >= h) return; float s = 0.0f; { int j; for (j = 0; j < 2; ++j)"
        " s += a[j * w + x]; } { int j; for (j = 0; j < 3; ++j) s += f[j]; } out[y * w + x] = s;"
    )
    same(text, jam(kernel(text), FOUR), SHAPES, {"w": 9, "h": 19, "r": 1})


def test_what_is_shared_is_counted() -> None:
    text = PLANE % f"if (x > 0 && y > 0 && x < w - 1 && y < h - 1) out[y * w + x] = {CROSS};"
    (saved,) = shared(kernel(text), FOUR).saved.values()
    assert (saved.share, saved.words) == (1 - 14 / 16, {"a": 1})
    assert saved.more == {"a": pytest.approx(10 / 3)}
    assert shared(kernel(LAYER), Several({"z": (4,)})).saved["z"].share == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[y * w + x] = a[y * w + x];", "how many items there are along y"),
        ("if (x < w && y < h) atomicExch(&out[x], a[y * w + x]);", "atomic operation"),
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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if (x < w && y < h) out[y * w + x] = a[(y * w + x) * 5];", "not neighbours in `a`"),
        ("if (x < w && y < h) out[x * h + y] = a[y * w + x];", "not neighbours in `out`"),
        ("if (x < w && y < h) out[y * w + x] = f[3] > 0.0f ? a[y * w + x] : 1.0f;",
         "not every item loads"),
        ("if (x < w && y < h) out[(y * w + x) * 2] = a[y * w + x];", "does not fill a vector"),
        ("if (x < w && y < h) if (f[x] > 0.0f) out[y * w + x] += a[y * w + x];",
         "not every item loads"),
        ("if (x < w && y < h) out[y * w + x] += a[y * w + x] * out[0];", "not every item loads"),
    ],
)  # fmt: skip
def test_what_does_not_lie_along_rows_is_refused(body: str, reason: str) -> None:
    assert reason in refused(jam(kernel(PLANE % body), ROWS))[0]
