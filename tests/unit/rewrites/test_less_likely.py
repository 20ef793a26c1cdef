"""Ideas that a kernel's shape speaks for and its sizes or its data speak against."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.coalescing import apart
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from optiml_magic.proposers.rewrites.coalesce_mapping import CoalesceMapping
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.load_ahead import LoadAhead
from optiml_magic.proposers.rewrites.look_up import LookUp
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.unit.primitives.alike import kernel_of

BUTTERFLY = """\
#pragma optiml launch k grid(cdiv(n / 2, 256), m) block(256)
__global__ void k(float* a, const float* w, int n, int m, int h) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n / 2) return;
    int at = blockIdx.y * n + i / h * 2 * h + i % h;
    float u = a[at], v = a[at + h] * w[h + i % h];
    a[at] = u + v;
    a[at + h] = u - v;
}
"""
BISECTION = """\
#pragma optiml launch k grid(cdiv(m, 64)) block(64)
__global__ void k(const float* a, float* out, int m, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m) return;
    float low = 0.0f, high = 1.0f;
    for (int step = 0; step < 16; ++step) {
        float mid = 0.5f * (low + high);
        int c = 0;
        for (int i = 0; i < n; ++i) c += a[(size_t)r * n + i] >= mid;
        if (c >= 50) low = mid; else high = mid;
    }
    out[r] = low;
}
"""
RESIZED = """\
#pragma optiml launch k grid(cdiv(w, 256), h) block(256)
__global__ void k(const float* a, const int* first, const float* by, float* out, int w, int h, int wide, int taps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    float s = 0.0f;
    for (int k = 0; k < taps; ++k) s += a[y * wide + min(first[x] + k, wide - 1)] * by[x * taps + k];
    out[y * w + x] = s;
}
"""  # fmt: skip


BYTES = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__device__ float e4m3(unsigned char b) {
    int e = (b >> 3) & 15, m = b & 7;
    float v;
    if (e == 0) v = ldexpf((float)m, -9);
    else v = ldexpf((float)(m + 8), e - 10);
    return b >> 7 ? -v : v;
}
__global__ void k(const unsigned char* w, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = e4m3(w[i]);
}
"""


FILTER = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const int* when, const int* what, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (%s) atomicAdd(out, what[i] + when[i]);
}
"""


LOSS = """\
#pragma optiml launch k grid(m) block(256)
__global__ void k(float* a, int n) {
    __shared__ float s[256];
    float* x = a + (long long)blockIdx.x * n;
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = t; i < n; i += 256) sum += x[i];
    s[t] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    for (int i = t; i < n; i += 256) x[i] = x[i] / s[0];
}
"""
SCAN = """\
#pragma optiml launch k grid(cdiv(m, 32)) block(32)
__global__ void k(float* a, int m, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m) return;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) { sum += a[i * m + r]; a[i * m + r] = sum; }
}
"""


GAMMA = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const unsigned char* w, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = %s;
}
"""
FIRST_OF_ALL = """\
#pragma optiml launch k grid(cdiv(m, 256)) block(256)
__global__ void k(const float* a, int* out, int m, int n, int some, float r) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= m) return;
    for (int i = 0, count = 0; i < n && count < some; ++i) {
        if (%s) {
            if (count == 0) for (int l = 0; l < some; ++l) out[j * some + l] = i;
            out[j * some + count++] = i;
        }
    }
}
"""
CIPHER = """\
__constant__ int order[8] = {3, 1, 4, 0, 5, 7, 2, 6};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* q, int* y, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    int v[8], s = 0;
    for (int i = 0; i < 8; ++i) v[i] = q[r * 8 + i];
    for (int round = 0; round < %d; ++round)
        for (int i = 0; i < 8; ++i) s = s * 3 + v[order[i]];
    for (int i = 0; i < 8; ++i) y[r * 8 + i] = s ^ v[i];
}
"""


POINTS = """\
struct Quat { float x, y, z, w; };
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const %s* p, const float* by, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { auto one = p[i]; out[i] = (one.x + one.y + one.z) * by[i]; }
}
"""


WINDOW = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* a, const float* by, float* out, int n, int d, int c, int b, int e) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 8) return;
    float s = 0.0f;
    for (int k = 0; k < (d + c) / (b + e); ++k) s += a[i + k] * by[k];
    out[i] = s;
}
"""


def known(text: str, grid: tuple[int, int, int], block: int, **sizes: int) -> Kernel:
    launch = LaunchFacts("k", 1, grid, (block, 1, 1), {}, sizes)
    return kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200"))


def chances(rule: KernelRule, kernel: Kernel) -> dict[str, float]:
    """The chance of each site of a rule by its key."""
    found = (s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site))
    return {site.key: site.prior for site in found}


def test_vectors_that_leave_stores_apart() -> None:
    kernel = known(BUTTERFLY, (16, 4096, 1), 256, n=8192, m=4096, h=64)
    found = chances(VectoriseMap(), kernel)
    assert found
    assert all(chance < 0.1 for chance in found.values())


@pytest.mark.parametrize(("rows", "likely"), [(512, False), (1 << 20, True)])
def test_strips_of_long_rows_that_are_few(rows: int, likely: bool) -> None:
    found = chances(RowToLanes(), known(BISECTION, (rows // 64, 1, 1), 64, m=rows, n=32000))
    strips = [chance for key, chance in found.items() if key.startswith("strips")]
    assert strips
    assert all((chance > 0.5) == likely for chance in strips)
    assert any(key.startswith("block") for key in found)


@pytest.mark.parametrize(("rows", "first"), [(100, 1024), (512, 256)])
def test_threads_of_rows_that_are_gone_through_again(rows: int, first: int) -> None:
    rule, kernel = RowToLanes(), known(BISECTION, (-(-rows // 64), 1, 1), 64, m=rows, n=32000)
    sites = [s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    (site,) = (s for s in sites if s.key.startswith("block"))
    assert site.points[0] == {"THREADS": first}


@pytest.mark.parametrize(("row", "first"), [("r * n", 256), ("(step * m + r) * n", 1024)])
def test_threads_of_rows_that_others_follow(row: str, first: int) -> None:
    rule, text = RowToLanes(), BISECTION.replace("r * n", row).replace("(size_t)", "")
    kernel = known(text, (8, 1, 1), 64, m=512, n=32000)
    sites = [s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    (site,) = (s for s in sites if s.key.startswith("block"))
    assert site.points[0] == {"THREADS": first}


def test_rows_that_a_table_begins_may_be_neighbours() -> None:
    kernel = known(RESIZED, (8, 4320, 1), 256, w=1920, h=4320, wide=3840, taps=12)
    assert apart(kernel, "threadIdx.x") > apart(kernel, "blockIdx.y")
    assert apart(kernel, "threadIdx.x", data=False) < apart(kernel, "blockIdx.y")
    assert all(chance < 0.2 for chance in chances(CoalesceMapping(), kernel).values())


@pytest.mark.parametrize(("taps", "likely"), [(12, False), (40, True)])
def test_lanes_share_short_rows_less_likely_where_data_begin_them(taps: int, likely: bool) -> None:
    sizes = {"w": 1920, "h": 4320, "wide": 3840, "taps": taps}
    found = chances(RowToLanes(), known(RESIZED, (8, 4320, 1), 256, **sizes))
    warp = [chance for key, chance in found.items() if key.startswith("warp")]
    assert warp
    assert all((chance > 0.8) == likely for chance in warp)


@pytest.mark.parametrize(("test", "likely"), [("i < n", True), ("when[i] < 9", False)])
def test_vectors_bring_what_data_leave_out(test: str, likely: bool) -> None:
    found = chances(BlockSum(), known(FILTER % test, (4096, 1, 1), 256, n=1 << 20))
    assert (found["vectors"] > 0.8) == likely
    assert max(found.values()) > 0.8


def test_a_float_of_a_byte_by_its_exponent_is_looked_up() -> None:
    """``ldexp`` is some forty instructions, and either way of the branch calls it."""
    assert chances(LookUp(), known(BYTES, (1 << 16, 1, 1), 256, n=1 << 24))


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        (BYTES, False),
        (GAMMA % "powf(w[i] / 255.0f, 2.2f)", True),
    ],
)
def test_what_takes_no_longer_than_its_bytes_is_less_worth_a_table(text: str, likely: bool) -> None:
    (chance,) = chances(LookUp(), known(text, (1 << 16, 1, 1), 256, n=1 << 24)).values()
    assert (chance > 0.8) == likely


@pytest.mark.parametrize(
    ("test", "seldom"), [("a[i] + j < r", True), ("i % 8 < 4", False), ("i >= 0", False)]
)
def test_rows_that_data_choose_among_the_rounds(test: str, seldom: bool) -> None:
    sizes = {"m": 1 << 15, "n": 8192, "some": 16}
    found = chances(RowToLanes(), known(FIRST_OF_ALL % test, (128, 1, 1), 256, **sizes))
    assert found
    assert all((chance < 0.5) == seldom for chance in found.values())


@pytest.mark.parametrize(("rounds", "first"), [(1, False), (64, True)])
def test_places_of_tables_behind_rows_that_take_more(rounds: int, first: bool) -> None:
    found = chances(ScalariseArray(), known(CIPHER % rounds, (1 << 14, 1, 1), 64, n=1 << 20))
    rows = max(chance for key, chance in found.items() if key.startswith("rows"))
    assert (found["tables"] > rows) == first


@pytest.mark.parametrize(
    ("record", "likely"), [("float3", True), ("float4", False), ("Quat", False)]
)
def test_vectors_of_several_records_that_are_vectors(record: str, likely: bool) -> None:
    found = chances(VectoriseMap(), known(POINTS % record, (1 << 16, 1, 1), 256, n=1 << 24))
    assert (found["map 4"] >= 0.7) == likely


def test_sizes_that_are_numbers_come_by_name() -> None:
    """Titles and keys of sites are the same in each run, whatever the order of a set is."""
    rule, sizes = ShareLoads(), {"d": 6, "c": 4, "b": 1, "e": 1}
    kernel = known(WINDOW, (1 << 16, 1, 1), 256, n=1 << 24, **sizes)
    titles = [s.title for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site)]
    assert titles
    assert all(", where b is 1, where c is 4, where d is 6, where e is 1" in t for t in titles)


def test_one_thread_does_not_load_ahead_for_a_block() -> None:
    kernel = known(LOSS, (1024, 1, 1), 256, n=32000)
    assert all(chance <= 0.1 for chance in chances(LoadAhead(), kernel).values())
    alone = known(SCAN, (32, 1, 1), 32, m=1024, n=32000)
    assert all(chance > 0.8 for chance in chances(LoadAhead(), alone).values())
    assert chances(LoadAhead(), kernel)
    assert chances(LoadAhead(), alone)


def test_rows_in_registers_of_a_grid_of_two_axes() -> None:
    """Its blocks are given as many axes, so that the name of their extent says which one it is."""
    rule = ScalariseArray()
    kernel = known(RESIZED, (8, 4320, 1), 256, w=1920, h=4320, wide=3840, taps=12)
    sites = (s for s in rule.sites(rule.shaped(kernel)) if isinstance(s, Site))
    found = [site for site in sites if "together" in site.title]
    for site in found:
        made = site.apply()
        assert isinstance(made, Kernel)
        assert site.points[0].keys() <= made.program.values.keys()
    assert found
