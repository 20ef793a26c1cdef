"""Lists of the best: what is offered where lanes can look ahead, and what is left to others."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.look_ahead import LookAhead
from tests.ideas import asked

NEAREST = """\
#define K 4
#pragma optiml launch nearest grid(cdiv(n, 128)) block(128)
__global__ void nearest(const float2* p, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best[K];
    int where[K];
    for (int l = 0; l < K; ++l) { best[l] = 1e30f; where[l] = -1; }
    for (int j = 0; j < n; ++j) {
        if (i == j) continue;
        float dx = p[i].x - p[j].x, dy = p[i].y - p[j].y;
        float d = dx * dx + dy * dy;
        if (d < best[K - 1]) {
            int l = K - 1;
            for (; l > 0 && best[l - 1] > d; --l) {
                best[l] = best[l - 1];
                where[l] = where[l - 1];
            }
            best[l] = d;
            where[l] = j;
        }
    }
    for (int l = 0; l < K; ++l) out[i * K + l] = where[l];
}
"""


def test_the_nearest_of_all_are_looked_for_by_lanes(propose, compiles):
    first, *_ = propose("look_ahead", NEAREST)
    assert "__ballot_sync(group_mask<LANES>(), is_open && (d < best[K - 1]))" in first.text
    compiles(first.text)
    (idea,), _ = asked(LookAhead(), NEAREST)
    assert idea.arithmetic == ()


def test_a_list_that_is_changed_under_tests_alone_is_looked_for_by_lanes(propose, compiles):
    end = NEAREST.index("        if (d < best")
    walked = (
        NEAREST[:end]
        + """\
        for (int l = 0; l < K; ++l) {
            if (d < best[l]) {
                for (int q = K - 1; q > l; --q) {
                    best[q] = best[q - 1];
                    where[q] = where[q - 1];
                }
                best[l] = d;
                where[l] = j;
                break;
            }
        }
    }
    for (int l = 0; l < K; ++l) out[i * K + l] = where[l];
}
"""
    )
    first, *_ = propose("look_ahead", walked)
    assert "__ballot_sync(group_mask<LANES>(), is_open && (d < best[4 - 1]))" in first.text
    assert "is_looking = false;" in first.text
    compiles(first.text)


def test_what_lanes_can_share_is_not_looked_ahead_in():
    sums = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = 0;
    for (int j = 0; j < n; ++j) if (p[j] * p[i] > best) best = p[j] * p[i];
    out[i] = best;
}
"""
    assert asked(LookAhead(), sums) == ([], [])
    assert asked(LookAhead(), NEAREST.replace("j < n", "j < 16")) == ([], [])


def test_a_loop_that_those_around_it_make_short_is_not_looked_ahead_in():
    sort = """\
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* p, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[5];
    for (int j = 0; j < 5; ++j) v[j] = p[i * 5 + j];
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4 - a; ++b)
            if (v[b] > v[b + 1]) { float t = v[b]; v[b] = v[b + 1]; v[b + 1] = t; }
    out[i] = v[2];
}
"""
    assert asked(LookAhead(), sort)[0] == []


BALLS = """\
#pragma optiml launch ball grid(cdiv(m, 128)) block(128)
__global__ void ball(const float* x, const float* y, int* near, int m, int n, int k, float r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    float own = y[i];
    for (int j = 0, count = 0; j < n && count < k; ++j) {
        float d = x[j] - own;
        if (d * d < r) {
            if (count == 0)
                for (int l = 0; l < k; ++l) near[i * k + l] = j;
            near[i * k + count] = j;
            ++count;
        }
    }
}
"""


def test_the_first_that_pass_a_test_are_put_in_order_by_lanes(propose, compiles):
    unknown, _ = asked(LookAhead(), BALLS)
    assert not unknown  # since nobody says that rounds behind the last may load
    all_of_them = BALLS.replace(" && count < k", "").replace("if (count == 0)", "if (count >= 0)")
    assert not asked(LookAhead(), all_of_them)[0]
    (idea,), _ = asked(LookAhead(), BALLS.replace(" && count < k", ""))
    assert "put what they find in order in the loop over j" in idea.title
    assert idea.arithmetic == ()
    first, *_ = propose("look_ahead", BALLS.replace(" && count < k", ""))
    assert "const int more = __popc(found);" in first.text
    compiles(first.text)
