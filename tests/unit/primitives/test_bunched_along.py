"""Several items a thread along y or z, where these have more in common than those along x."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.bunched import Bunch, bunched
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.reuse_broadcast import ReuseBroadcast
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

VOLUME = """\
#define CUBE(v) ((v) * (v) * (v))
__constant__ float table[4] = {1.0f, 2.0f, -3.0f, 0.5f};
__device__ float far(float a, float b, float c) { float d = a - b; return d * d + c; }
__device__ float looked(int q) { return table[q & 3]; }
__device__ int own() { return threadIdx.y; }
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), cdiv(d, 2)) block(8, 4, 2)
__global__ void k(const float* a, const float* p, float* out, int w, int h, int d, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= w || y >= h || z >= d) return;
    float s = 0;
    BODY
    out[(z * h + y) * w + x] = s;
}
"""
SHAPES = {"a": ("d", "h", "w"), "p": ("m",), "out": ("d", "h", "w")}
SIZES = {"w": 11, "h": 7, "d": 9, "m": 10}
LOOP = "for (int j = 0; j < m; ++j) "
BODIES = (
    LOOP + "s += far(p[j], x, y) > z ? 1 : 0;",
    LOOP + "{ float e = far(p[j], x, y); if (e > 3) continue; s += e * z; }",
    LOOP + "{ float e = far(p[j], y, z), f = far(p[j], x, 0); s = s * 0.5f + e - f; }",
    LOOP + "{ if (j == z) continue; s += p[j] * (x + 1); }",
    LOOP + "{ if (j % 3 == x % 3) continue; s += p[j] * (z + 1); }",
    LOOP + "for (int i = 0; i < z % 3; ++i) s += p[j] * (y + i);",
    LOOP + "for (int i = 0; i < x % 3; ++i) s += p[j] * (z + i);",
    LOOP + "s += a[(z * h + y) * w + x] * p[j];",
    LOOP + "s += a[(y % d * h + y) * w + x] * p[j] + looked(j + z);",
    "float t[2] = {0}; " + LOOP + "t[j & 1] += p[j] * z - y; s = t[0] - t[1];",
    "float best = -1e30f; int at = 0; "
    + LOOP
    + "{ float e = far(p[j], x, -y) - z; if (e > best) { best = e; at = j; } } s = at;",
    LOOP + "s += CUBE(p[j] - y) + CUBE(x - z);",
    "unsigned v = y; " + LOOP + "{ v = v * 1664525u + j; s += (v >> 20) * p[j]; }",
    LOOP + "{ int y = j; s += p[y] * x; } s += y;",
    "if (z == 0) s = 3; " + LOOP + "s += p[j] / (1 + x) - sqrtf(z);",
    LOOP + "s = fmaxf(s, p[j] * (z - 1.5f)); if (s > 1) { out[(z * h + y) * w + x] = -s; return; }",
    "const float q = 1.0f / (z - 3); " + LOOP + "s += p[j] * q;",
    LOOP + "{ const float* r = p + j; s += *r * z + r[0] * y; }",
    "long long c = (long long)z << 40; " + LOOP + "{ c += j; s += (c >> 38) * p[j]; }",
    "const int first = z > 4 ? 1 : 0; for (int j = first; j < m; ++j) s += p[j] * y;",
    "for (int j = 0; j < m - (y > 3); ++j) s += p[j] * z;",
)


@pytest.mark.parametrize("body", sampled([*BODIES], 5))
def test_items_along_any_axis_are_the_same(body: str) -> None:
    text, made = VOLUME.replace("BODY", body), 0
    for axis in "yz":
        found = bunched(kernel(text), Bunch(axis=axis))
        if isinstance(found, Kernel):
            made += 1
            same(text, found, SHAPES, SIZES, {"ITEMS": 4}, rounds=True)
    assert made


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (LOOP + "s += p[j] * threadIdx.y;", "more than its index along y"),
        (LOOP + "s += p[j] * gridDim.y;", "more than its index along y"),
        ("int t = 0; " + LOOP + "{ __syncthreads(); s += p[j]; }", "wait for each other"),
        (LOOP + "{ s += p[j]; out[(z * h + y) * w + x] = s; }", "stores before its last loop"),
        (LOOP + "{ if (p[j] > y) return; s += p[j]; }", "is left"),
        (LOOP + "{ if (p[j] > y) break; s += p[j]; }", ""),
        (LOOP + "s += p[j] * own();", ""),
        ("for (int j = y; j < m; ++j) s += p[j];", "no loop makes the same rounds"),
        (LOOP + "{ float y = p[j]; s += y * x; } s += y;", "`y` is the name of several locals"),
        (LOOP + "s += __shfl_down_sync(~0u, p[j], 1);", ""),
        ("h -= 1; " + LOOP + "s += p[j];", "`h`"),
        (LOOP + "s += atomicAdd(&out[j], p[j]);", ""),
        ("__shared__ float v[8]; v[x % 8] = x; " + LOOP + "s += v[j % 8] * p[j];", ""),
    ],
)
def test_what_is_refused(body: str, reason: str) -> None:
    found = bunched(kernel(VOLUME.replace("BODY", body)), Bunch(axis="y"))
    assert reason in refused(found)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y >= h || ", ""),
        ("y >= h", "y > h"),
        ("cdiv(h, 4)", "5"),
        (
            "int y = blockIdx.y * blockDim.y + threadIdx.y",
            "int y = blockIdx.y * 4 + threadIdx.x / 2",
        ),
    ],
)
def test_a_guard_says_how_many_items_there_are(old: str, new: str) -> None:
    text = VOLUME.replace("BODY", LOOP + "s += p[j];").replace(", y =", "; int y =")
    assert old in text
    refused(bunched(kernel(text.replace(old, new)), Bunch(axis="y")))


@pytest.mark.parametrize(
    ("body", "along"),
    [
        (LOOP + "s += far(p[j], x, y) > z ? 1 : 0;", " along z"),
        (LOOP + "s += far(p[j], x, z) > y ? 1 : 0;", " along y"),
        (LOOP + "s += far(p[j], y, z) > x ? 1 : 0;", ""),
        (LOOP + "s += far(p[j], x, 0) + far(p[j], y, 0);", " along z"),
    ],
)
def test_items_lie_where_they_have_most_in_common(body: str, along: str) -> None:
    facts = LaunchFacts(
        "k", 1, (64, 64, 64), (8, 4, 2), {}, {"w": 512, "h": 256, "d": 128, "m": 999}
    )
    known = replace(kernel(VOLUME.replace("BODY", body)), facts=facts, chip="h200")
    (site,) = (s for s in ReuseBroadcast().sites(known) if isinstance(s, Site))
    assert site.title.startswith(f"take several items{along} at once, which meet")
    made = applied(site.apply())
    same(VOLUME.replace("BODY", body), made, SHAPES, SIZES, {"ITEMS": 2}, rounds=True)
