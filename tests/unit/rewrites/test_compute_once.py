"""What many threads compute alike: a launch for the scores, one for what rows need of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.compute_once import ComputeOnce
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.ideas import asked, view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made
from tests.unit.primitives.alike import end_of

ATTENTION = """\
#pragma optiml launch attend grid(cdiv(h * n * d, 256)) block(256) args(q, k, v, out, h, n, d)
__global__ void attend(const float* q, const float* k, const float* v, float* out, int h, int n,
                       int d) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= h * n * d) return;
    int c = at % d, i = at / d % n, head = at / (d * n);
    const float* mine = q + (head * n + i) * d;
    float top = -1e30f, sum = 0.0f, all = 0.0f;
    for (int j = 0; j <= i; ++j) {
        float s = 0.0f;
        for (int e = 0; e < d; ++e) s += mine[e] * k[(head * n + j) * d + e];
        top = fmaxf(top, s * 0.125f);
    }
    for (int j = 0; j <= i; ++j) {
        float s = 0.0f;
        for (int e = 0; e < d; ++e) s += mine[e] * k[(head * n + j) * d + e];
        float p = expf(s * 0.125f - top);
        sum += p;
        all += p * v[(head * n + j) * d + c];
    }
    out[at] = all / sum;
}
"""


def test_scores_are_computed_once_for_all_channels(propose, compiles):
    tiles, *_, found = propose("compute_once", ATTENTION)
    launches = parse_program(found.text).launches
    assert [launch.kernel for launch in launches] == ["attend_s", "attend_top", "attend"]
    assert found.text.count("mine[e] * k[") == 1
    assert [str(s) for s in parse_program(found.text).scratch] == [
        "#pragma optiml scratch s_found f4[h * n * n]",
        "#pragma optiml scratch top_found f4[h * n]",
    ]
    compiles(found.text)
    (product, idea), _ = asked(ComputeOnce(), ATTENTION)
    assert idea.arithmetic == ()
    assert product.title.startswith(f"{idea.title}, then tiles in shared memory")
    assert "all_tile[own_row][own_col] +=" in tiles.text
    compiles(tiles.text)


def test_sums_that_are_scaled_anew_are_taken_apart_first(propose, compiles):
    online = """\
#pragma optiml launch attend grid(cdiv(d, 32), cdiv(n, 8)) block(32, 8)
__global__ void attend(const float* q, const float* k, const float* v, float* out, int n, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || c >= d) return;
    float top = -1e30f, sum = 0.0f, all = 0.0f;
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int e = 0; e < d; ++e) s += q[i * d + e] * k[j * d + e];
        float now = fmaxf(top, s), scale = expf(top - now), p = expf(s - now);
        sum = sum * scale + p;
        all = all * scale + p * v[j * d + c];
        top = now;
    }
    out[i * d + c] = all / sum;
}
"""
    *_, found = propose("compute_once", online)
    assert found.text.count("q[i * d + e] * k[") == 1
    compiles(found.text)


def test_rows_that_one_thread_may_do_are_left_to_others():
    softmax = """\
#pragma optiml launch k grid(cdiv(m, 32), cdiv(n, 4)) block(32, 4)
__global__ void k(const float* a, float* out, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= m || r >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < m; ++i) sum += a[r * m + i];
    out[r * m + c] = a[r * m + c] / sum;
}
"""
    assert asked(ComputeOnce(), softmax) == ([], [])


def test_sums_of_a_group_are_those_of_all_its_channels(compiles):
    """Each element found them anew: a group is several rows, so that no row's threads share it."""
    norm = """\
#pragma optiml launch k grid(cdiv(n * c * s, 256)) block(256)
__global__ void k(const float* x, float* y, int n, int c, int s, int groups) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * c * s) return;
    int each = c / groups, channel = i / s % c, image = i / (c * s);
    const float* own = x + (image * c + channel / each * each) * s;
    float mean = 0.0f;
    for (int j = 0; j < each * s; j++) mean += own[j];
    y[i] = x[i] - mean / (each * s);
}
"""
    (idea,), _ = asked(ComputeOnce(), norm)
    made = idea.make()
    assert isinstance(made, str)
    compiles(made)
    assert [str(s.count) for s in parse_program(made).scratch] == ["groups * n"]
    arrays = {"x": Array("f4", ("n", "c", "s")), "y": Array("f4", ("n", "c", "s"))}
    sizes, others = {"n": 2, "c": 6, "s": 35, "groups": 3}, {"n": 1, "c": 2, "s": 1, "groups": 1}
    assert end_of(norm, made, arrays, sizes, others) == "same"


COLUMNS = """\
#pragma optiml launch k grid(cdiv(n * c * s, 256)) block(256)
__global__ void k(const float* x, float* y, int n, int c, int s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * c * s) return;
    int at = i % s, channel = i / s % c, image = i / (c * s);
    float sum = 0.0f;
    for (int j = 0; j < c; j++) sum += x[(image * c + j) * s + at];
    y[i] = x[(image * c + channel) * s + at] / sum;
}
"""
BY_BLOCKS = """\
#pragma optiml launch k grid(cdiv(s, 128), c, n) block(128)
__global__ void k(const float* x, float* y, int n, int c, int s) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y, image = blockIdx.z;
    if (at < s) {
        float sum = 0.0f;
        for (int j = 0; j < c; j++) sum += x[(image * c + j) * s + at];
        y[(image * c + channel) * s + at] = x[(image * c + channel) * s + at] / sum;
    }
}
"""


@pytest.mark.parametrize("text", [COLUMNS, BY_BLOCKS])
def test_a_thread_goes_down_a_column_behind_what_its_elements_have_alike(text, compiles):
    ideas, _ = asked(ComputeOnce(), text)
    column, once = ideas
    assert column.title == "a thread for each column, which computes sum once"
    assert once.title.startswith("compute sum in a launch before")
    made = column.make()
    assert isinstance(made, str)
    compiles(made)
    assert next(str(launch.grid[0]) for launch in parse_program(made).launches) == "cdiv(s, 128)"
    arrays = {"x": Array("f4", ("n", "c", "s")), "y": Array("f4", ("n", "c", "s"))}
    sizes, others = {"n": 2, "c": 6, "s": 135}, {"n": 1, "c": 1, "s": 1}
    assert end_of(text, made, arrays, sizes, others) == "same"


@pytest.mark.parametrize(("n", "s", "first"), [(64, 4096, "column"), (1, 1024, "once")])
def test_few_columns_come_behind_what_a_launch_finds(n: int, s: int, first: str) -> None:
    (kernel,) = kernels(parse_program(BY_BLOCKS), None)
    facts = LaunchFacts("k", 1, (s // 128, 512, n), (128, 1, 1), {}, {"n": n, "c": 512, "s": s})
    shaped = ComputeOnce().shaped(replace(kernel, facts=facts, chip="h200"))
    sites = [site for site in ComputeOnce().sites(shaped) if isinstance(site, Site)]
    assert max(sites, key=lambda site: site.prior).key == first


def test_a_thread_whose_loops_are_its_own_is_left_alone():
    product = """\
#pragma optiml launch k grid(cdiv(m, 32), cdiv(n, 4)) block(32, 4)
__global__ void k(const float* a, const float* b, float* out, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= m || r >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < m; ++i) sum += a[r * m + i] * b[i * m + c];
    out[r * m + c] = sum;
}
"""
    assert asked(ComputeOnce(), product) == ([], [])


RESAMPLED = """\
__device__ float sinc(float x) {
    if (x == 0.0f) return 1.0f;
    return sinf(3.14159265f * x) / (3.14159265f * x);
}
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void k(const float* a, float* out, int w, int h, float by) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sx = x * by, sy = y * by;
    int x0 = (int)sx, y0 = (int)sy;
    float sum = 0.0f;
    for (int j = y0 - 1; j <= y0 + 2; ++j)
        for (int i = x0 - 1; i <= x0 + 2; ++i)
            sum += a[min(max(j, 0), h - 1) * w + min(max(i, 0), w - 1)] * (sinc(sx - i) * sinc(sy - j));
    out[y * w + x] = sum;
}
"""


def test_weights_of_rows_and_of_columns_are_tables(propose, compiles):
    (found,) = propose("compute_once", RESAMPLED)
    program = parse_program(found.text)
    assert sorted(str(s.count) for s in program.scratch) == ["4 * w", "h * 4"]
    assert found.text.partition("__global__ void k(")[2].count("sinc(") == 0
    compiles(found.text)


def test_a_transform_becomes_a_product_with_its_table(propose, compiles):
    transform = """\
#pragma optiml launch k grid(cdiv(n, 128), rows) block(128)
__global__ void k(const float* a, float* out, int rows, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += a[r * n + i] * cosf(3.14159265f * c * i / n);
    out[r * n + c] = sum;
}
"""
    tiles, *_, table = propose("compute_once", transform)
    assert "cosf" not in table.text.partition("__global__ void k(")[2]
    assert "sum_tile" in tiles.text
    compiles(tiles.text)


def test_short_functions_and_those_of_all_indices_stay():
    for weight in ("fabsf(x - i) * 0.5f", "sinf(x * (float)y)", "sinf(a[x])"):
        text = RESAMPLED.replace("(sinc(sx - i) * sinc(sy - j))", weight)
        assert asked(ComputeOnce(), text) == ([], []), weight


def test_what_all_threads_have_alike_is_computed_by_one(compiles):
    text = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const int* a, const float* x, float* out, int w, int h, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    int first = 0;
    for (int l = 0; l < n; ++l) {
        if (a[l] != 0) { first = a[l]; break; }
    }
    out[j * w + i] = x[j * w + i] - first;
}
"""
    (idea, *_), _ = asked(ComputeOnce(), text)
    made = idea.make()
    assert isinstance(made, str)
    compiles(made)
    assert [launch.kernel for launch in parse_program(made).launches] == ["k_first", "k"]
    arrays = {
        "a": Array("i4", ("n",)), "x": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w")),
    }  # fmt: skip
    assert (
        end_of(text, made, arrays, {"w": 33, "h": 5, "n": 20}, {"w": 1, "h": 1, "n": 1}) == "same"
    )


def test_a_handful_of_rounds_that_all_threads_have_alike_stays():
    text = """\
#pragma optiml launch k grid(cdiv(w, 256)) block(256)
__global__ void k(const int* shape, const float* x, float* out, int w, int rank) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w) return;
    int stride = 1;
    for (int l = rank - 1; l > 0; --l) stride *= shape[l];
    out[i] = x[i] * stride;
}
"""
    (kernel,) = kernels(parse_program(text), None)
    for rank, sites in ((1, 0), (9, 0), (65, 1)):
        facts = LaunchFacts("k", 1, (40, 1, 1), (256, 1, 1), {}, {"w": 10240, "rank": rank})
        shaped = ComputeOnce().shaped(replace(kernel, facts=facts))
        assert len([*ComputeOnce().sites(shaped)]) == sites, rank


WIPED = """\
#pragma optiml launch k grid(cdiv(n, 64), m) block(64)
__global__ void k(const float* x, const float* code, const float* rate, float* out, int m, int n) {
    int lag = blockIdx.x * blockDim.x + threadIdx.x, bin = blockIdx.y;
    if (lag >= n) return;
    float sum = 0.0f, w = rate[bin];
    for (int i = 0; i < n; i++) {
        float s, c;
        sincosf(w * i, &s, &c);
        float v = x[i];
        float re = v * c + s, im = v * s;
        sum += re * code[(i + lag) % n] - im;
    }
    out[bin * n + lag] = sum;
}
"""
WIPED_ARRAYS = {
    "x": Array("f4", ("n",)),
    "code": Array("f4", ("n",)),
    "rate": Array("f4", ("m",)),
    "out": Array("f4", ("m", "n"), "zeros"),
}


def test_what_sines_alone_are_for_is_computed_with_them(propose):
    for made in propose("compute_once", WIPED):
        assert "re_found[" in made.text
        assert "s_found" not in made.text
        assert end_of(WIPED, made.text, WIPED_ARRAYS, {"m": 3, "n": 70}, {"m": 2, "n": 33},
                      rounds=True) == "same"  # fmt: skip


def test_as_many_results_as_before_are_kept(propose):
    wider = WIPED.replace("- im;", "- im * s;")
    for made in propose("compute_once", wider):
        assert "s_found[" in made.text
        assert "re_found" not in made.text
        assert end_of(wider, made.text, WIPED_ARRAYS, {"m": 3, "n": 70}, {"m": 2, "n": 33},
                      rounds=True) == "same"  # fmt: skip


CHUNKS = """\
#define C 8
#define D 8
#pragma optiml launch chunks grid(n / C, h) block(D)
__global__ void chunks(const float* q, const float* k, const float* v, float* out, int h, int n) {
    __shared__ float qs[C][D], ks[C][D];
    int c = blockIdx.x, head = blockIdx.y, j = threadIdx.x;
    for (int t = 0; t < C; t++) {
        qs[t][j] = q[((size_t)head * n + c * C + t) * D + j];
        ks[t][j] = k[((size_t)head * n + c * C + t) * D + j];
    }
    __syncthreads();
    for (int t = 0; t < C; t++) {
        float acc = 0.0f;
        for (int s = 0; s <= t; s++) {
            float dot = 0.0f;
            for (int i = 0; i < D; i++) dot += qs[t][i] * ks[s][i];
            acc += dot * v[((size_t)head * n + c * C + s) * D + j];
        }
        out[((size_t)head * n + c * C + t) * D + j] = acc;
    }
}
"""
HEADS = """\
#pragma optiml launch heads grid(n, h, b) block(16)
__global__ void heads(const float* q, const float* k, const float* v, float* out, int b, int h, int n) {
    int t = blockIdx.x, head = blockIdx.y, image = blockIdx.z, j = threadIdx.x;
    const float* own = q + ((image * h + head) * n + t) * 16;
    float acc = 0.0f;
    for (int s = 0; s < n; s++) {
        float dot = 0.0f;
        for (int i = 0; i < 16; i++) dot += own[i] * k[((image * h + head) * n + s) * 16 + i];
        acc += fmaxf(dot, 0.0f) * v[((image * h + head) * n + s) * 16 + j];
    }
    out[((image * h + head) * n + t) * 16 + j] = acc;
}
"""


@pytest.mark.parametrize(
    ("text", "shape", "sizes"),
    [
        (CHUNKS, ("h", "n", "8"), {"h": 3, "n": 40}),
        (HEADS, ("b", "h", "n", "16"), {"b": 2, "h": 3, "n": 19}),
    ],
)
def test_results_of_four_indices_have_two_of_them_along_z(
    text: str, shape: tuple[str, ...], sizes: dict[str, int]
) -> None:
    others = dict.fromkeys(sizes, 1) | {"n": 16}
    arrays = {name: Array("f4", shape) for name in ("q", "k", "v")}
    arrays["out"] = Array("f4", shape, "zeros")
    stand = Stand(Made("one", text, arrays, sizes, others, exact=False))
    view = replace(view_of(text), find_facts=lambda: stand.facts(text))
    found = [*ComputeOnce().propose(parse_program(text), view)]
    ideas = [one for one in found if isinstance(one, Idea)]
    assert [idea.title[:11] for idea in ideas] == ["compute dot"] * 2
    for idea in ideas:
        made = idea.make()
        assert isinstance(made, str)
        assert "blockIdx.z / " in made
        after = stand.applied(Offer("compute_once", "", made, rounds=True), text)
        assert after.sound, f"{after.end}: {after.detail}"
