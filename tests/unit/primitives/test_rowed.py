"""A block for each row, as threads of a plane."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.rowed import rowed
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
        ("64", f"int r = blockIdx.x; {SUM.replace('a[', 'out[')} {STEPS} out[r * n + c] = s;", "read before"),
        ("64", f"{STEPS} {{ out[blockIdx.x * n + c] = out[blockIdx.x * n + c + 64]; }}", "meet"),
    ],
)  # fmt: skip
def test_refused(width: str, body: str, reason: str) -> None:
    assert reason in refused(rowed(kernel(ROWS % (width, body))))[0]


def test_launch_bounds() -> None:
    text = ROWS % ("n", "out[threadIdx.x * m + blockIdx.x] = a[0];")
    text = text.replace("void k", "void __launch_bounds__(64) k")
    assert "launch bounds" in refused(rowed(kernel(text)))[0]
