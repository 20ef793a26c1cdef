"""A block for each row, as threads of a plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.rowed import rowed
from optiml_magic.model.facts import LaunchFacts
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

ROWS = """\
#pragma optiml launch k grid(m) block(%s)
__global__ void k(const float* a, float* b, float* out, int n, int m) {
    %s
}
"""
SHAPES = {"a": ("n", "m"), "b": ("m",), "out": ("n", "m")}
SUM = "float s = 0.0f; for (int c = 0; c < n; c++) s += a[r * n + c];"
MOST = "float most = 0; for (int c = 0; c < n; c++) most = fmaxf(most, a[r * n + c] - s);"
STEPS = "for (int c = threadIdx.x; c < n; c += blockDim.x)"


@pytest.mark.parametrize(
    ("width", "body"),
    sampled([
        ("n", "out[blockIdx.x * n + threadIdx.x] = a[blockIdx.x * n + threadIdx.x];"),
        ("n", "int r = blockIdx.x, c = threadIdx.x; out[r * blockDim.x + c] = a[c * m + r];"),
        ("n", "out[threadIdx.x * m + blockIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];"),
        ("64", "int r = blockIdx.x, c = threadIdx.x; if (c < n) out[r * n + c] = b[r];"),
        ("64", f"int r = blockIdx.x; float s = b[r]; {STEPS} out[r * n + c] = s * a[r * n + c];"),
        ("16", f"const float* row = a + blockIdx.x * n; {STEPS} {{ if (row[c] < 0) continue; out[blockIdx.x * n + c] = row[c]; }}"),
        ("n", "out[threadIdx.x * m + blockIdx.x] = blockDim.x / 3;"),
        ("n / 2", f"{STEPS} out[blockIdx.x * n + c] = a[c];"),
        ("64", f"int r = blockIdx.x; if (b[r] < 0) return; {SUM} s *= sqrtf(n); {STEPS} out[r * n + c] = s;"),
        ("64", f"int r = blockIdx.x; {SUM} {MOST} {STEPS} out[r * n + c] = a[r * n + c] * most;"),
        ("64", f"int r = blockIdx.x; {SUM} if (threadIdx.x == 0) b[r] = s; {STEPS} out[r * n + c] = s;"),
        ("64", f"int r = blockIdx.x; float w[2]; for (int k = 0; k < 2; k++) w[k] = b[r] + k; {STEPS} out[r * n + c] = w[c % 2];"),
        ("64", f"int r = blockIdx.x; {SUM} {STEPS} out[r * n + c] = s; if (!threadIdx.x) {{ b[r] = s; }}"),
    ], 3),
)  # fmt: skip
def test_rows_and_columns(width: str, body: str) -> None:
    text = ROWS % (width, body)
    made = rowed(kernel(text))
    launch = str(applied(made).launch)
    assert "grid(cdiv(" in launch
    assert "cdiv(m, 8)) block(32, 8)" in launch
    same(text, made, SHAPES, {"n": 70, "m": 9})


def test_a_border_tells_rows_that_are_as_wide_as_their_blocks() -> None:
    """Every place in memory is made of the thread's one index, and the test is not."""
    body = "int r = blockIdx.x, c = threadIdx.x; "
    body += "if (c > 0 && c < 63) out[r * 64 + c] = a[r * 64 + c - 1] + a[r * 64 + c + 1];"
    text = ROWS % ("64", body)
    made = rowed(kernel(text))
    assert "cdiv(m, 8)) block(32, 8)" in str(applied(made).launch)
    same(text, made, {"a": ("64", "m"), "b": ("m",), "out": ("64", "m")}, {"n": 64, "m": 9})
    everywhere = text.replace("if (c > 0 && c < 63) ", "").replace(" - 1", "").replace(" + 1", "")
    assert "more than its row and column" in refused(rowed(kernel(everywhere)))[0]


PLANES = """\
#pragma optiml launch k grid(m, h, d) block(n)
__global__ void k(const float* a, float* out, int n, int m, int h) {
    %s
}
"""
PLACES = "int c = threadIdx.x, r = blockIdx.x, y = blockIdx.y, z = blockIdx.z; "
EVERY = "((blockIdx.z * gridDim.y + blockIdx.y) * m + blockIdx.x) * n + threadIdx.x"


@pytest.mark.parametrize(
    "body",
    [
        f"{PLACES} out[((z * h + y) * m + r) * n + c] = a[((z * h + y) * m + r) * n + c] + y;",
        PLACES
        + "float s = 0; for (int i = max(y - 1, 0); i < min(y + 2, h); ++i) s += "
        + "a[((z * h + i) * m + r) * n + c]; out[((z * h + y) * m + r) * n + c] = s;",
        f"out[{EVERY}] = gridDim.y * gridDim.z - blockIdx.z;",
    ],
)
def test_a_block_for_each_pixel_of_several_images(body: str) -> None:
    text = PLANES % body
    made = rowed(kernel(text))
    assert "grid(cdiv(n, 32), cdiv(m, 8), h * d)" in str(applied(made).launch)
    shapes = {"a": ("d", "h", "m", "n"), "out": ("d", "h", "m", "n")}
    same(text, made, shapes, {"n": 35, "m": 9, "h": 3, "d": 4})


def test_how_many_blocks_lie_along_y_is_known() -> None:
    text = (PLANES % f"out[{EVERY}] = 1;").replace("int m, int h)", "int m)")
    assert "along y" in refused(rowed(kernel(text)))[0]


def test_rows_that_the_kernel_has_no_name_for() -> None:
    text = ROWS.replace("grid(m)", "grid(size(out) / n)").replace(", int m)", ")")
    text %= (64, f"{STEPS} out[blockIdx.x * n + c] = a[blockIdx.x * n + c];")
    made = rowed(kernel(text))
    assert "grid(cdiv(n, 32), size(out) / n) block(32)" in str(applied(made).launch)
    same(text, made, SHAPES, {"n": 70, "m": 9})


@pytest.mark.parametrize(
    ("width", "body", "reason"),
    [
        ("64", "int i = blockIdx.x * 64 + threadIdx.x; if (i < n) out[i] = a[i];", "asks for its index"),
        ("64", "out[blockIdx.x] = a[0];", "do not ask"),
        ("n", "out[gridDim.x * threadIdx.x + blockIdx.x] = a[0];", "do not ask"),
        ("n", "__shared__ float s[1]; s[0] = 1.0f; out[threadIdx.x * m + blockIdx.x] = s[0];",
         "share memory"),
        ("n", "__syncthreads(); out[threadIdx.x * m + blockIdx.x] = a[0];", "wait"),
        ("64", f"float s = 0.0f; {STEPS} {{ s += a[c]; out[blockIdx.x * n + c] = s; }}",
         "goes from round to round"),
        ("64", f"float s = b[threadIdx.x]; {STEPS} out[blockIdx.x * n + c] = s;",
         "`s` is of a thread's first item"),
        ("64", f"{STEPS} out[blockIdx.x * n + c] = threadIdx.x;", "asks for its thread"),
        ("64", f"int at = blockIdx.x * blockDim.x; {STEPS} out[blockIdx.x * n + c] = at;",
         "`at` is of a thread's first item"),
        ("64", f"int r = threadIdx.x % 4; {SUM} {STEPS} out[blockIdx.x * n + c] = s;",
         "`r` is of a thread's first item"),
        ("64", f"float s = 0.0f; for (int c = threadIdx.x; c < n; c++) s += a[c]; {STEPS} out[blockIdx.x * n + c] = s;",
         "computes with a thread's first item"),
        ("64", f"int r = blockIdx.x; float s = b[r]; if (threadIdx.x == 0) b[r] = s; {STEPS} out[r * n + c] = s;",
         "more than declarations"),
        ("64", f"int r = blockIdx.x; {SUM} if (threadIdx.x == 1) b[r] = s; {STEPS} out[r * n + c] = s;",
         "more than declarations"),
        ("64", f"int r = blockIdx.x; {SUM} out[r] = s; {STEPS} out[r * n + c] = s;", "more than declarations"),
        ("64", f"float w[2]; for (int k = 0; k < 2; k++) w[k] = k; {STEPS} {{ w[0] += c; out[blockIdx.x * n + c] = w[0]; }}",
         "goes from round to round"),
        ("64", f"float w[2]; for (int k = 0; k < 2; k++) w[k] = threadIdx.x; {STEPS} out[blockIdx.x * n + c] = w[0];",
         "computes with a thread's first item"),
        ("64", f"int r = blockIdx.x; {SUM.replace('a[', 'out[')} {STEPS} out[r * n + c] = s;", "read before"),
        ("64", f"{STEPS} {{ out[blockIdx.x * n + c] = out[blockIdx.x * n + c + 64]; }}", "meet"),
    ],
)  # fmt: skip
def test_refused(width: str, body: str, reason: str) -> None:
    assert reason in refused(rowed(kernel(ROWS % (width, body))))[0]


@pytest.mark.parametrize(
    ("rows", "shape"), [(9, "32, 8"), (8, "32, 8"), (4, "64, 4"), (1, "256"), (0, "32, 8")]
)
def test_few_rows_lie_in_wider_blocks(rows: int, shape: str) -> None:
    text = ROWS % (64, f"{STEPS} out[blockIdx.x * n + c] = a[blockIdx.x * n + c];")
    facts = LaunchFacts("k", 1, (rows, 1, 1), (64, 1, 1), {}, {"n": 400, "m": rows})
    made = rowed(replace(kernel(text), facts=facts if rows else None))
    assert f"block({shape})" in str(applied(made).launch)
    same(text, made, SHAPES, {"n": 70, "m": max(rows, 1)})


def test_rows_without_a_name_lie_in_blocks_of_their_own() -> None:
    text = ROWS.replace("grid(m)", "grid(size(out) / n)").replace(", int m)", ")")
    text %= (64, f"{STEPS} out[blockIdx.x * n + c] = a[blockIdx.x * n + c];")
    facts = LaunchFacts("k", 1, (900, 1, 1), (64, 1, 1), {}, {"n": 400})
    made = rowed(replace(kernel(text), facts=facts))
    assert "grid(cdiv(n, 256), size(out) / n) block(256)" in str(applied(made).launch)
    same(text, made, SHAPES, {"n": 70, "m": 9})


HALVES = """\
#pragma optiml launch k grid(t) block(64)
__global__ void k(const float* f, float* q, int heads, int dim, int rest) {
    const int half = %s;
    for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
        const int h = i / half, d = i %% half;
        float* x = q + (blockIdx.x * heads + h) * dim;
        float a = x[d], b = x[d + half];
        x[d] = a * f[d] - b;
        x[%s] = b * f[d] + a;
    }
}
"""


@pytest.mark.parametrize("half", ["dim / 2", "dim >> 1"])
def test_an_item_may_have_both_halves_of_a_row(half: str) -> None:
    text = HALVES % (half, "d + half")
    made = rowed(kernel(text))
    assert "require " in applied(made).program.text  # of a row of one element there is no half
    for dim in (16, 9):
        sizes = {"t": 5, "heads": 3, "dim": dim, "rest": 1}
        same(text, made, {"f": ("dim",), "q": ("t", "heads", "dim")}, sizes)


@pytest.mark.parametrize("half", ["dim / 2", "dim >> 1"])
def test_how_long_rows_of_halves_are_is_known(half: str) -> None:
    facts = LaunchFacts("k", 1, (5, 1, 1), (64, 1, 1), {}, {"heads": 4, "dim": 128, "rest": 1})
    made = rowed(replace(kernel(HALVES % (half, "d + half")), facts=facts))
    assert "block(256)" in str(applied(made).launch)


def test_whether_a_row_holds_both_halves_the_launch_asks() -> None:
    text = HALVES % ("rest / 2", "d + half")

    def halved(rest: int) -> Kernel | Refused:
        sizes = {"heads": 3, "dim": 16, "rest": rest}
        facts = LaunchFacts("k", 1, (5, 1, 1), (64, 1, 1), {}, sizes)
        return rowed(replace(kernel(text), facts=facts))

    made = halved(8)
    assert "require dim - rest >= 0" in applied(made).program.text
    sizes = {"t": 5, "heads": 3, "dim": 16, "rest": 8}
    same(text, made, {"f": ("dim",), "q": ("t", "heads", "dim")}, sizes)
    assert "meet" in refused(halved(24))[0]


def test_rounds_of_an_item_may_reach_into_the_next() -> None:
    text = (HALVES % ("dim / 2", "d + half")).replace(
        "x[d] =", "for (int e = 0; e < 2; ++e) x[d + e] ="
    )
    assert "meet" in refused(rowed(kernel(text)))[0]


@pytest.mark.parametrize(
    ("half", "at"),
    [
        ("dim - dim / 2", "d + half"),  # of a row of 9 that is 10
        ("dim / 2", "d + 2 * half"),  # the next row begins there
        ("dim / 2", "d + 1"),
        ("rest", "d + half"),
        ("dim / 2", "d + half - 1"),
    ],
)
def test_parts_of_items_that_may_be_in_one_place(half: str, at: str) -> None:
    assert "meet" in refused(rowed(kernel(HALVES % (half, at))))[0]


def test_launch_bounds() -> None:
    text = ROWS % ("n", "out[threadIdx.x * m + blockIdx.x] = a[0];")
    text = text.replace("void k", "void __launch_bounds__(64) k")
    assert "launch bounds" in refused(rowed(kernel(text)))[0]
