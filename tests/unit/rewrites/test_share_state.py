"""States of scans and of linear attention, which lanes hold together."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.share_state import ShareState
from tests.ideas import asked

LINEAR = """\
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* q, const float* k, const float* v, float* out, int h, int n, int d) {
    int c = threadIdx.x, head = blockIdx.x;
    if (c >= d) return;
    float state[32] = {0.0f};
    for (int t = 0; t < n; ++t) {
        float o = 0.0f;
        for (int e = 0; e < 32; ++e) {
            state[e] += k[(head * n + t) * 32 + e] * v[(head * n + t) * d + c];
            o += q[(head * n + t) * 32 + e] * state[e];
        }
        out[(head * n + t) * d + c] = o;
    }
}
"""


def test_lanes_hold_a_state_together(propose, compiles):
    first, *_ = propose("share_state", LINEAR)
    assert "float state[(32 / LANES)]{0.0f};" in first.text
    assert "o = lanes_sum<LANES>(o);" in first.text
    compiles(first.text)
    (idea,), _ = asked(ShareState(), LINEAR)
    assert idea.arithmetic == ("the order of additions",)


def test_what_is_no_state_is_left_alone():
    short = LINEAR.replace("for (int t = 0; t < n; ++t) {", "{ int t = 0;")
    assert asked(ShareState(), short) == ([], [])
    placed = LINEAR.replace("* state[e];", "* state[31 - e];")
    assert asked(ShareState(), placed) == ([], [])
