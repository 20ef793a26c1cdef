"""Two rows in shared memory, of which each round of a block fills one from the other, as one."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_buffer import one_buffer
from optiml_magic.kernels.primitives.thread_loops import registers_for_shared
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

HEAD = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int t = threadIdx.x, o = blockIdx.x;
    float u = b[o];
    %s
}
"""
SHAPES = {"a": ("n", "64"), "b": ("n",), "out": ("n", "64")}
TREE = """\
__shared__ float s[2][65];
    int cur = 0;
    s[cur][t] = a[o * 64 + t];
    if (t == 0) s[cur][64] = 0.5f;
    __syncthreads();
    for (int left = 63; left >= 0; --left) {
        if (t <= left) s[1 - cur][t] = u * s[cur][t + 1] + 0.5f * s[cur][t];
        __syncthreads();
        cur = 1 - cur;
    }
    if (t == 0) out[o * 64] = s[cur][0];"""
NAMED = """\
__shared__ float s[2][65];
    int cur = 1;
    s[1][t] = a[o * 64 + t];
    if (t == 63) { s[1][64] = 0.5f; s[0][64] = 0.5f; }
    __syncthreads();
    for (int step = 0; step < 7; ++step) {
        int next = cur ^ 1;
        float left = t > 0 ? s[cur][t - 1] : 1.0f;
        if (t % 2 == 0) s[next][t] = left - u * s[cur][t + 1];
        else { float right = s[cur][t + 1]; s[next][t] = fmaxf(left, right); }
        cur = next;
        __syncthreads();
    }
    out[o * 64 + t] = s[cur][t];"""
POINTERS = """\
__shared__ float p[66], q[66];
    float *old = p, *now = q;
    old[t + 1] = a[o * 64 + t];
    if (t == 0) { old[0] = 0.25f; now[0] = 0.25f; p[65] = u; q[65] = u; }
    __syncthreads();
    int rounds = o % 5;
    while (rounds-- > 0) {
        now[t + 1] = 0.5f * old[t + 1] + 0.25f * (old[t] + old[t + 2]);
        __syncthreads();
        float* kept = old; old = now; now = kept;
    }
    out[o * 64 + t] = old[t + 1] + old[0];"""
INSIDE = """\
__shared__ float p[64], q[64];
    float *old = p, *now = q;
    float first = a[o * 64 + t];
    old[t] = first;
    now[t] = first;
    for (int step = 0; step < 6; ++step) {
        __syncthreads();
        if (t > 0 && t < 63) now[t] = old[t] + u * (old[t - 1] - 2 * old[t] + old[t + 1]);
        float* kept = now; now = old; old = kept;
    }
    __syncthreads();
    out[o * 64 + t] = old[t];"""
STRIDED = """\
__shared__ float p[128], q[128];
    float *old = p, *now = q;
    for (int i = threadIdx.x; i < 128; i += blockDim.x) old[i] = u + a[o * 64 + i / 2];
    __syncthreads();
    for (int step = 0; step < 6; ++step) {
        for (int i = threadIdx.x; i < 128; i += blockDim.x) {
            float left = i == 0 ? old[0] : old[i - 1], right = i == 127 ? old[127] : old[i + 1];
            if (i > 0) now[i] = 0.5f * old[i] + u * left - 0.25f * right;
            else now[i] = left;
        }
        __syncthreads();
        float* kept = now; now = old; old = kept;
    }
    for (int i = threadIdx.x; i < 64; i += blockDim.x) out[o * 64 + i] = old[i] - old[i + 1];"""
CASES = {"strided": STRIDED, "tree": TREE, "named": NAMED, "pointers": POINTERS, "inside": INSIDE}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_one(case: str) -> None:
    text = HEAD % CASES[case]
    made = one_buffer(kernel(text))
    shown = applied(made).program.text
    assert "cur" not in shown
    assert "*old" not in shown
    assert shown.count("__shared__ float") == 1
    same(text, made, SHAPES, {"n": 7})


@pytest.mark.parametrize("case", sampled([*CASES], 2))
def test_lanes_may_hold_them_then(case: str) -> None:
    text = HEAD % CASES[case]
    made = registers_for_shared(applied(one_buffer(kernel(text))))
    assert "_own[" in applied(made).program.text
    same(text, made, SHAPES, {"n": 5})


LEFT = {
    "a later round stores more": TREE.replace("t <= left", "t >= left"),
    "asks too far": TREE.replace("--left", "left -= 1").replace("s[cur][t + 1]", "s[cur][t + 2]"),
    "asks for what is stale": TREE.replace("s[cur][0]", "s[cur][5]"),
    "data decide": TREE.replace("t <= left", "s[cur][t] > u"),
    "unlike": INSIDE.replace("now[t] = first;", "now[t] = 0.0f;"),
    "computed": INSIDE.replace("now[t] = first;", "now[t] = first; first += u;").replace(
        "old[t] = first;\n    now", "old[t] = first;\n    first *= u;\n    now"),
    "filled twice": NAMED.replace("cur = next;", "if (t == 5) s[next][t] = u; cur = next;"),
    "another's": NAMED.replace("cur = next;", "if (t == 5) s[next][6] = u; cur = next;"),
    "read back": NAMED.replace("cur = next;", "out[o * 64 + t] = s[next][t]; cur = next;"),
    "behind": NAMED.replace("= s[cur][t];", "= s[1 - cur][t];"),
    "by name": POINTERS.replace("= old[t + 1] + old[0];", "= p[t + 1] + old[0];"),
    "moving": POINTERS.replace("now[t + 1] =", "now[(t + rounds) % 64 + 1] ="),
    "in place": POINTERS.replace("now[t + 1] = ", "old[0] = u; now[t + 1] = "),
    "strided, and waits at the beginning": STRIDED.replace("step < 6; ++step) {", "step < 6; ++step) { __syncthreads();")
    .replace("        __syncthreads();\n        float* kept", "        float* kept"),
    "barriers": NAMED.replace("cur = next;", "__syncthreads(); out[o * 64 + t] = left; cur = next;"),
    "left": NAMED.replace("cur = next;", "if (step > o) break; cur = next;"),
    "stays": NAMED.replace("cur = next;", "if (step > 2) cur = next;"),
    "again": NAMED.replace("for (int step", "for (int more = 0; more < 2; ++more) for (int step"),
    "anew": NAMED.replace("if (t % 2 == 0)", "if (t % (step + 1) == 0)").replace("else {", "if (0) {"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_stays(case: str) -> None:
    assert LEFT[case] not in CASES.values()
    assert "no round of a block" in refused(one_buffer(kernel(HEAD % LEFT[case])))[0]
