"""What many threads compute alike: a launch for the scores, one for what rows need of them."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.compute_once import ComputeOnce
from optiml_magic.source.program import parse_program
from tests.ideas import asked

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
    (found,) = propose("compute_once", ATTENTION)
    launches = parse_program(found.text).launches
    assert [launch.kernel for launch in launches] == ["attend_s", "attend_top", "attend"]
    assert found.text.count("mine[e] * k[") == 1
    assert [str(s) for s in parse_program(found.text).scratch] == [
        "#pragma optiml scratch s_found f4[h * n * n]",
        "#pragma optiml scratch top_found f4[h * n]",
    ]
    compiles(found.text)
    (idea,), _ = asked(ComputeOnce(), ATTENTION)
    assert idea.arithmetic == ()


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
    (found,) = propose("compute_once", online)
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
