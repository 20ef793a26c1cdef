"""As many elements as stores reach, or nothing where that is not certain."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.stored_extents import is_no_index, stored_extent
from optiml_magic.kernels.unit import lift
from optiml_magic.source.program import parse_program

HEAD = (
    "__global__ void k(float* out, const float* a, const int* ids, int n, int w, int h,"
    " unsigned u, size_t total)"
)
LINE = "grid(cdiv(n, 256)) block(256)"
PLANE = "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)"
AT = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
XY = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"


def extent(body: str, launch: str) -> str | None:
    text = f"#pragma optiml launch k {launch}\n{HEAD} {{ {body} }}"
    unit = lift(text, None, foreign=True)
    (directive,) = parse_program(text).launches
    found = stored_extent(unit, unit.kernels[0], (), directive, "out")
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("body", "launch", "wanted"),
    [
        (f"{AT} if (i < n) out[i] = 1;", LINE, "n"),
        (f"{AT} if (i >= n) return; out[i] = 1;", LINE, "n"),
        (f"{AT} if (i < u) out[i] = 1;", "grid(cdiv(u, 256)) block(256)", "u"),
        (f"{AT} if (i < n - 1) out[i] = a[i + 1] - a[i];", LINE, "n - 1"),
        (f"{AT} for (; i < n; i += gridDim.x * blockDim.x) out[i] = 1;", "grid(80) block(256)", "n"),
        (f"{AT} if (i < n) {{ out[2 * i] = 1; out[2 * i + 1] = 2; }}", LINE, "max(2 * n - 1, 2 * n)"),
        (f"{AT} if (i < n) out[i] = 1; if (i == 0) out[0] = 2;", LINE, "n"),
        (f"{AT} if (i < n / 4) ((float4*)out)[i] = ((const float4*)a)[i];", LINE, "4 * (n / 4)"),
        (f"{XY} if (x < w && y < h) out[y * w + x] = 1;", PLANE, "w * h"),
        (f"{XY} if (x < w && y < h) out[x * h + y] = 1;", PLANE, "w * h"),
        (f"{AT} int r = i / w, c = i % w; if (r < h) out[c * h + r] = 1;", LINE, "w * h"),
        ("if (threadIdx.x == 0) out[blockIdx.x] = 1;", "grid(h) block(128)", "h"),
        ("out[blockIdx.x * blockDim.x + threadIdx.x] = 1;", "grid(7) block(64)", "448"),
        (("for (int c = threadIdx.x; c < w; c += blockDim.x) out[blockIdx.x * w + c] = 1;"),
         "grid(h) block(128)", "w * h"),
        ("if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = a[0];", "grid(1) block(32)", "1"),
    ],
)  # fmt: skip
def test_an_output_has_as_many_elements_as_stores_reach(
    body: str, launch: str, wanted: str
) -> None:
    assert extent(body, launch) == wanted


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        (f"{AT} if (i < n) out[ids[i]] = 1;", LINE),
        (f"{AT} if (i < n) atomicAdd(&out[ids[i]], 1.f);", LINE),
        (f"{XY} if (x > 0 && y > 0 && x < w - 1 && y < h - 1) out[y * w + x] = 1;", PLANE),
        (f"{AT} if (i < n) out[i + 1] = 1;", LINE),
        (f"{AT} if (i < n) out[i * i] = 1;", LINE),
        (f"{AT} if (i < n) {{ out[i] = 1; out[ids[i]] = 2; }}", LINE),
        ("if (threadIdx.x == 0) out[blockIdx.x] = 1;", "grid(size(out)) block(128)"),
        (f"{AT} float* p = i < w ? out : (float*)a; if (i < n) p[i] = 1;", LINE),
    ],
)
def test_what_no_guard_bounds_is_not_known(body: str, launch: str) -> None:
    assert extent(body, launch) is None


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"{AT} if (i < n) out[i] = ids[i];", True),
        (f"{AT} if (i < n && ids[i] > 3) out[i] = 1;", True),
        (f"{AT} int s = 0; for (int k = 0; k < w; ++k) s += ids[k]; out[i] = s;", True),
        (f"{AT} if (i < n) out[ids[i]] = 1;", False),
        (f"{AT} if (i < n) out[i] = a[ids[i] + 1];", False),
        (f"{AT} int j = ids[i]; j *= 2; if (i < n) out[i] = a[j % w];", False),
        (f"{AT} float s = 0; for (int k = 0; k < ids[i]; ++k) s += a[k]; out[i] = s;", False),
        (f"{AT} float s = 0; for (int k = ids[i]; k < w; ++k) s += 1; out[i] = s;", False),
        (f"{AT} int m = ids[0], k = 0; while (k < m) ++k; out[i] = k;", False),
        (f"{AT} const int* p = ids; out[i] = a[p[i]];", False),
        (f"{AT} const float* p = a + ids[i]; out[i] = *p;", False),
        ((f"{AT} int best = 0; for (int k = 0; k < w; ++k) if (ids[k] > ids[best]) best = k;"
         " out[i] = a[best];"), False),
    ],
)  # fmt: skip
def test_whole_numbers_that_are_no_indices(body: str, wanted: bool) -> None:
    unit = lift(f"{HEAD} {{ {body} }}", None, foreign=True)
    assert is_no_index(unit, unit.kernels[0], (), "ids") == wanted
