"""Products of which guards leave a part out: triangles, masks, mirrored stores, loops in threads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.exchanged import as_blocks, folded
from optiml_magic.kernels.primitives.inward import inward, joined
from optiml_magic.kernels.primitives.rectangular import rectangular
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from tests.present import sampled

from .running import same
from .shapes import PLANE, applied, kernel, refused

TILE = {"BM": 16, "BN": 32, "BK": 8, "TM": 4, "TN": 4, "BLOCKS": 1}

ROWS = """\
#pragma optiml launch one grid(cdiv(m, 64)) block(64)
__global__ void one(const float* a, float* out, int m, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) {
        %s
    }
}
"""
TO_HERE = "for (int j = 0; j <= i; j++) { %s }"
FROM_HERE = "for (int j = i; j < m; j++) { %s }"
SUM = "float s = 0.0f; for (int k = 0; k < d; k++) s += a[i * d + k] * a[j * d + k];"
BOTH = "out[i * m + j] = s; out[j * m + i] = s;"
PLANES = """\
#pragma optiml launch one grid(cdiv(m, 16), cdiv(m, 16)) block(16, 16)
__global__ void one(const float* a, float* out, int m, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= m) return;
    %s
}
"""


def tiled(text: str) -> Kernel | Refused:
    """What the rule makes of the first product in a kernel."""
    rule = BlockedProduct()
    found = list(rule.sites(rule.shaped(kernel(text))))
    first = next((site for site in found if isinstance(site, Site)), found[0])
    return first.apply() if isinstance(first, Site) else first


MIRRORED = (
    ROWS % (TO_HERE % (SUM + BOTH)),
    ROWS % (FROM_HERE % (SUM + BOTH)),
    ROWS % ("int j, k; " + (FROM_HERE % (
        "out[i * m + j] = 0.0f; for (k = 0; k < d; k++) out[i * m + j] += a[i * d + k] * "
        "a[j * d + k]; out[j * m + i] = out[i * m + j];")).replace("int j = ", "j = ")),
    (ROWS % ("out[i * m + i] = 1.0f; for (int j = i + 1; j < m; j++) {" + SUM + BOTH + "}")
     ).replace("i < m)", "i < m - 1)"),
    ROWS % (TO_HERE % (SUM + "out[i * m + j] = s; if (i != j) out[j * m + i] = -s;")),
    ROWS % ("for (int j = 0; j < i; ++j) {" + SUM + "out[j * m + i] = expf(s); }"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "m", "d"), sampled(
    [(text, m, d) for text in MIRRORED for m, d in ((37, 9), (36, 12))], 5))  # fmt: skip
def test_each_thread_of_a_triangle_shares_its_row(text: str, m: int, d: int) -> None:
    same(text, tiled(text), {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": d}, TILE,
         rounds="expf" in text)  # fmt: skip


MASKED = (
    PLANES % ("if (j > i) { out[i * m + j] = -INFINITY; return; } " + SUM
              + "out[i * m + j] = s * 0.5f;"),
    PLANES % ("if (j <= i) { " + SUM + "out[i * m + j] = s; } else { out[i * m + j] = 0.0f; }"),
    PLANES % ("if (j < i) return; " + SUM + "out[i * m + j] = s;"),
    PLANES % ("if (j > i || j <= i - 9) return; " + SUM + "out[i * m + j] = s;"),
    PLANES % ("if (i + j < m) { " + SUM + "out[i * m + j] = s; }"),
    PLANES % ("if (i > 5 && j <= i) { " + SUM + "out[i * m + j] = s; }"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "m", "d"), sampled(
    [(text, m, d) for text in MASKED for m, d in ((37, 9), (36, 12))], 5))  # fmt: skip
def test_tiles_without_an_output_have_no_rounds(text: str, m: int, d: int) -> None:
    made = applied(tiled(text))
    assert "if (tile_" in made.program.text.replace("if ((tile", "if (tile")
    same(text, made, {"a": ("m", "d"), "out": ("m", "m")}, {"m": m, "d": d}, TILE)


TRIANGLES = (
    "for (int k = 0; k <= i; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = i; k < d; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = i + 1; k < d; k++) s += a[k * m + i] * b[k * n + j];",
    "for (int k = j; k <= i; ++k) s += a[i * d + k] * b[k * n + j];",
    "for (int k = 0; k < d; ++k) { if (k > i) continue; s += a[i * d + k] * b[k * n + j]; }",
    "for (int k = 0; k < d; ++k) if (k <= i && k >= i - 5) s += a[i * d + k] * b[k * n + j];",
    "for (int k = 0; k < i; ++k) s += fabsf(a[i * d + k] - b[k * n + j]) + 1.0f;",
)
_SQUARE = "if (i < m && j < n && m == d && n == d) {"


@pytest.mark.parametrize(("inside", "d"), sampled(
    [(inside, d) for inside in TRIANGLES for d in (20, 37, 64)], 8))  # fmt: skip
def test_rounds_of_a_triangle_are_those_of_its_tiles(inside: str, d: int) -> None:
    text = PLANE.replace("int j = ", "if (m > d || n > d) return; int j = ", 1) % inside
    shapes = {"a": ("m", "d") if "a[i" in inside else ("d", "m"), "b": ("d", "n"),
              "out": ("m", "n")}  # fmt: skip
    same(text, tiled(text), shapes, {"m": d, "n": d, "d": d}, TILE)


LOOPED = ROWS.replace("float* out", "const int* at, float* out")


@pytest.mark.parametrize(
    ("loop", "made"),
    [
        ("for (int j = i; j < m; j++) out[i * m + j] = j;", "if (j >= i) out[i * m + j] = j;"),
        ("for (int j = 0; j <= i; ++j) out[i * m + j] = j;", "if (j <= i) out[i * m + j] = j;"),
        ("int j; for (j = i + 1; m > j; ++j) out[i * m + j] = j;", "if (j >= (i + 1))"),
        ("for (int j = 0; j < m - i; ++j) out[i * m + j] = j;", "if (j < (m - i))"),
        ("for (int j = max(0, i - 3); j < min(i + 2, m); ++j) out[i * m + j] = j;",
         "if (j >= (i - 3) && j < (i + 2) && j < m)"),
    ],
)  # fmt: skip
def test_a_loop_of_a_triangle_makes_the_rounds_of_a_square(loop: str, made: str) -> None:
    text = ROWS % loop
    found = applied(rectangular(kernel(text), 0)).program.text
    assert made in found
    assert "j = 0; j < m; ++j)" in found
    same(text, rectangular(kernel(text), 0), {"a": ("m", "d"), "out": ("m", "m")},
         {"m": 37, "d": 2})  # fmt: skip


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int j = 0; j < m; ++j) out[i * m + j] = j;", "all threads make the same rounds"),
        ("for (int j = i; j < m; j += 2) out[i * m + j] = j;", "the loop does not count up by one"),
        ("for (int j = i - 1; j < m; ++j) out[i * m + j] = j;", "the loop may begin below 0"),
        ("for (int j = 0; j <= i * i; ++j) out[j] = j;", "no size bounds the end"),
        ("for (int j = at[i]; j < m; ++j) out[i * m + j] = j;", ""),
        ("int e = i; for (int j = 0; j < e; ++j) { e = 3; out[i * m + j] = j; }", ""),
        ("int j; for (j = i; j < m; ++j) out[i * m + j] = j; out[i] = j;",
         "`j` is asked for behind the loop"),
        ("for (int j = i; j < m; ++j) { if (out[j] > 1.0f) break; out[i * m + j] = j; }", ""),
    ],
)  # fmt: skip
def test_loops_whose_bounds_are_not_certain_stay(loop: str, reason: str) -> None:
    assert refused(rectangular(kernel(LOOPED % loop), 0))[0].startswith(reason)


ADDED = """\
#pragma optiml launch k grid(cdiv(m, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int m, int n, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    for (int l = 0; l < n; ++l) out[i * n + l] = 0.0f;
    for (int k = 0; k < d; ++k) {
        float v = a[i * d + k];
        for (int j = 0; j < n; ++j) out[i * n + j] += v * b[k * n + j];
    }
}
"""
OF_ADDED = {"a": ("m", "d"), "b": ("d", "n"), "out": ("m", "n")}


def test_elements_that_are_added_to_in_turn_have_a_sum_each() -> None:
    turned = applied(inward(kernel(ADDED), 1))
    one = applied(joined(turned, 0))
    assert one.program.text.count("for (") == 2
    assert "const int j = l;" in one.program.text
    sizes = {"m": 19, "n": 34, "d": 9}
    same(ADDED, one, OF_ADDED, sizes)
    same(ADDED, tiled(ADDED), OF_ADDED, sizes, TILE)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("j < n; ++j) out", "j < n - k; ++j) out", "how often the inner loop runs"),
        ("out[i * n + j] +=", "out[i * n + (j + k) % n] +=", "two rounds may store"),
        ("v * b[k * n + j]", "v * out[i * n]", "a round may meet what another has stored"),
        ("float v = a[i * d + k];", "float v = out[i * n];", "a round may meet what another has"),
        ("float v = a[i * d + k];", "float v = a[i * d + k]; out[i * n] = v;",
         "the loop does more than the one in it"),
        ("float v = a[i * d + k];", "float v = a[i * d + k]; if (v > 2.0f) break;", ""),
    ],
)  # fmt: skip
def test_loops_that_meet_stay_as_they_are(old: str, new: str, reason: str) -> None:
    assert refused(inward(kernel(ADDED.replace(old, new)), 1))[0].startswith(reason)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("l < n", "l < n - 1", "the loops do not make the same rounds"),
        ("out[i * n + l]", "out[i * n + n - 1 - l]", "the loops meet in memory"),
        ("out[i * n + l] = 0.0f", "out[i * n + l] = out[i * n]", "a round may meet"),
    ],
)  # fmt: skip
def test_loops_whose_rounds_differ_stay_apart(old: str, new: str, reason: str) -> None:
    turned = applied(inward(kernel(ADDED.replace(old, new)), 1))
    assert refused(joined(turned, 0))[0].startswith(reason)


EINSUM = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* out, int m, int n, int d, int c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    for (int l = 0; l < c; ++l) {
        float s = 0.0f;
        for (int k = 0; k < d; ++k) s += a[(i * n + j) * d + k] * b[k * c + l];
        out[(i * n + j) * c + l] = s;
    }
}
"""


@pytest.mark.parametrize(
    "text", [EINSUM, EINSUM.replace("(i * n + j) * c + l", "(l * m + i) * n + j")]
)
def test_any_two_axes_may_be_rows_and_columns(text: str) -> None:
    shapes = {"a": ("m", "n", "d"), "b": ("d", "c"), "out": ("m", "n", "c")}
    same(text, tiled(text), shapes, {"m": 3, "n": 21, "d": 9, "c": 18}, TILE)


def test_threads_beside_blocks_are_counted_by_these() -> None:
    text = EINSUM.replace("cdiv(m, 16))", "cdiv(m, 16), 2)").replace("s = 0.0f", "s = blockIdx.z")
    one = applied(folded(kernel(text)))
    assert "grid(1, cdiv(m, 16), 2 * n) block(1, 16" in one.program.text
    assert "blockIdx.z / (n)" in one.program.text
    assert refused(folded(kernel(EINSUM)))[0] == "its blocks are not numbered along three axes"
    assert refused(as_blocks(kernel(EINSUM), "y"))[0].startswith("its blocks are not numbered")


def test_sums_of_a_row_alone_are_one_for_each_row() -> None:
    text = (PLANE % ("float u = 0.0f, v = 1.0f; for (int k = 0; k < d; ++k) { float x = a[i * d + "
                     "k], y = b[j * d + k]; s += x * y; u += x * x; v = fmaxf(v, y); }")
            ).replace("= s;", "= s / (1.0f + u) + v;")  # fmt: skip
    made = applied(tiled(text))
    assert "u_part[part] += x * x;" in made.program.text
    assert "v_part[part] = fmaxf(v_part[part], y);" in made.program.text
    same(text, made, {"a": ("m", "d"), "b": ("n", "d"), "out": ("m", "n")},
         {"m": 19, "n": 34, "d": 9}, TILE, rounds=True)  # fmt: skip


def test_what_stands_around_a_loop_the_first_blocks_store() -> None:
    text = (ROWS % ("out[i * m + i] = 1.0f; for (int j = 0; j < m; ++j) if (j > i) out[i * m + j]"
                    " = j;")).replace("i < m)", "i < m - 1)")  # fmt: skip
    one = applied(spread_rounds(kernel(text), 0))
    assert "if (blockIdx.y == 0)" in one.program.text
    same(text, one, {"a": ("m", "d"), "out": ("m", "m")}, {"m": 37, "d": 2})
    none = text.replace("j < m; ++j", "j < d; ++j").replace("j > i)", "j > i && j < m)")
    some = applied(spread_rounds(kernel(none), 0))
    assert "grid(cdiv(m, 64), max(d, 1))" in some.program.text
    for rounds in (5, 0):
        same(none, some, {"a": ("m",), "out": ("m", "m")}, {"m": 37, "d": rounds})
    several = applied(spread_rounds(kernel(none), 0, (2, 4)))
    assert "max(cdiv(d, ROUNDS), 1)" in several.program.text
    for rounds in (5, 0):
        same(none, several, {"a": ("m",), "out": ("m", "m")}, {"m": 37, "d": rounds})
    assert "meets" in refused(spread_rounds(kernel(text.replace("j > i)", "j >= i)")), 0))[0]


WINDOW = """\
#pragma optiml launch k grid(cdiv(m, 64), c) block(64)
__global__ void k(const float* a, const float* b, float* out, int m, int n, int w, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, l = blockIdx.y;
    if (i >= m) return;
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int k = max(0, i - w + 1); k <= i; ++k)
            s += a[(l * m + i) * m + k] * b[(l * m + k) * n + j];
        out[(l * m + i) * n + j] = s;
    }
}
"""
BLOCK_ROWS = """\
#pragma optiml launch k grid(m, c) block(64)
__global__ void k(const float* a, float* out, int m, int d, int c) {
    int i = blockIdx.x, l = blockIdx.y;
    for (int j = threadIdx.x; j < m; j += blockDim.x) {
        if (j > i) { out[(l * m + i) * m + j] = -1e9f; continue; }
        float s = 0.0f;
        for (int k = 0; k < d; k++) s += a[(l * m + i) * d + k] * a[(l * m + j) * d + k];
        out[(l * m + i) * m + j] = s;
    }
}
"""


def test_what_a_row_attends_to_may_be_a_window_or_a_block() -> None:
    shapes = {"a": ("c", "m", "m"), "b": ("c", "m", "n"), "out": ("c", "m", "n")}
    same(WINDOW, tiled(WINDOW), shapes, {"m": 37, "n": 20, "w": 9, "c": 3}, TILE)
    rows = {"a": ("c", "m", "d"), "out": ("c", "m", "m")}
    same(BLOCK_ROWS, tiled(BLOCK_ROWS), rows, {"m": 37, "d": 9, "c": 3}, TILE)


@pytest.mark.parametrize(
    ("loop", "stays"),
    [
        ("for (int j = max(0, i - 8); j <= i; j++)", True),
        ("for (int j = i; j < min(i + 9, m); j++)", True),
        ("for (int j = i / 2; j <= i; j++)", False),
    ],
)
def test_windows_are_not_made_loops_over_everything(loop: str, stays: bool) -> None:
    text = ROWS % f"float s = 0; {loop} s += a[j]; out[i] = s;"
    facts = LaunchFacts("one", 1, (16, 1, 1), (64, 1, 1), {}, {"m": 1024, "d": 3})
    found = rectangular(replace(kernel(text), facts=facts), 0)
    assert ("few of all rounds" in refused(found)[0]) if stays else applied(found)
