"""A thread that does what a block did, with what its threads shared as its own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.thread_for_block import thread_for_block
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from tests.ideas import asked
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

HEAD = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    __shared__ float s[66], q[64];
    %s
    int o = blockIdx.x;
    float u = b[o];
    s[t] = a[o * 64 + t];
    if (t == 0) { s[64] = 0.5f; s[65] = u; }
    __syncthreads();
    %s
}
"""
SIGNED, UNSIGNED = "int t = threadIdx.x;", "const unsigned int t = threadIdx.x;"
SHAPES = {"a": ("n", "64"), "b": ("n",), "out": ("n", "64")}
FOLD = """\
for (int left = 64; left > 0; left--) {
        float next = 0.0f;
        if (t < left) { float up = u * s[t + 1]; next = up + 0.5f * s[t]; }
        __syncthreads();
        if (t < left) s[t] = next;
        __syncthreads();
    }
    if (t == 0) out[o * 64] = s[0];"""
BELOW = FOLD.replace("left = 64; left > 0", "left = 63; left >= 0").replace("t < left", "t <= left")
CHOICE = """\
for (int level = 63; level >= 1; --level) {
        float next = t < level ? s[t] + u * (s[t + 1] - s[t]) : s[t];
        __syncthreads();
        s[t] = next;
        __syncthreads();
    }
    if (threadIdx.x == 2) out[o * 64] = s[t - 2] - s[t];"""
WEIGHTED = """\
q[t] = b[(t + o) % n];
    __syncthreads();
    for (int step = 0; step < 5; ++step) {
        float up = s[t + 1] * q[63 - t], far = s[t + 2];
        __syncthreads();
        s[t] = 0.5f * s[t] + up - u * far;
        __syncthreads();
    }
    out[o * 64 + t] = s[t] + s[(t + 1) % 64];"""
NAMED_AGAIN = FOLD.replace(
    "if (t < left) s[t]", "float up = s[t] + u; if (t < left && up > -9.0f) s[t]"
)
SUMMED = WEIGHTED.replace(
    "far = s[t + 2];", "far = 0.0f; for (int k = 0; k < 3; ++k) far += s[t + k];"
)
BY_WIDTH = f"const int width = blockDim.x; {FOLD}".replace("left = 64", "left = blockDim.x - 1").replace(
    "out[o * 64]", "out[o * width + blockDim.x / 2]")  # fmt: skip
CASES = {
    "width": BY_WIDTH,
    "summed": SUMMED,
    "fold": FOLD,
    "below": BELOW,
    "masked": FOLD.replace("t < left", "t < (left & 127)"),
    "choice": CHOICE,
    "weighted": WEIGHTED,
    "names": NAMED_AGAIN,
}


@pytest.mark.parametrize("place", [SIGNED, UNSIGNED])
@pytest.mark.parametrize("case", sampled([*CASES], 3))
def test_a_thread_does_the_same(case: str, place: str) -> None:
    text = HEAD % (place, CASES[case])
    made = thread_for_block(kernel(text))
    shown = applied(made).program.text
    assert "__sync" not in shown
    assert "__shared__" not in shown
    assert "grid(cdiv(n, 128)) block(128)" in shown
    same(text, made, SHAPES, {"n": 9})


def test_bounds_end_its_loops() -> None:
    shown = applied(thread_for_block(kernel(HEAD % (SIGNED, FOLD)))).program.text
    assert "for (int t = 0; t < left; ++t) {" in shown
    shown = applied(thread_for_block(kernel(HEAD % (SIGNED, BELOW)))).program.text
    assert "for (int t = 0; t < left + 1; ++t) {" in shown
    far = FOLD.replace("left = 64", "left = 70")  # more than there are threads
    shown = applied(thread_for_block(kernel(HEAD % (SIGNED, far)))).program.text
    assert "for (int t = 0; t < left" not in shown
    below = FOLD.replace("left > 0", "left > -3")  # all of them, as numbers without a sign
    text = HEAD % (UNSIGNED, below)
    made = thread_for_block(kernel(text))
    assert "< left; ++" not in applied(made).program.text
    same(text, made, SHAPES, {"n": 3})


LEFT = {
    "behind": (FOLD.replace("s[t + 1]", "(t > 0 ? s[t - 1] : u)"), "behind its own"),
    "ring": (WEIGHTED.replace("s[t + 1] *", "s[(t + 1) % 64] *"), "behind its own"),
    "a loop": (SUMMED.replace("s[t + k]", "(t > 1 ? s[t - k] : u)"), "behind its own"),
    "first": (WEIGHTED.replace("s[t + 1] *", "s[0] *"), "behind its own"),
    "others'": (FOLD.replace("s[t] = next", "s[63 - t] = next"), "neighbour's element"),
    "kept": (WEIGHTED.replace("q[t] = b", "float own = a[t]; q[t] = own + b").replace("- u *", "- own *"),
             "keep more than what they store next"),
    "stored": (WEIGHTED.replace("__syncthreads();\n        s[t] =", "q[t] = up; __syncthreads();\n        s[t] ="),
               "stores before all have loaded"),
    "written": (WEIGHTED.replace("s[t] = 0.5f", "out[o * 64 + t] = up; s[t] = 0.5f"), "stores to global memory"),
    "decides": (WEIGHTED.replace("step < 5", "step < t"), "what decides on a barrier"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_stays(case: str) -> None:
    body, why = LEFT[case]
    assert body not in CASES.values()
    assert why in refused(thread_for_block(kernel(HEAD % (SIGNED, body))))[0]


def test_its_sweeps_follow_each_other() -> None:
    text = (
        (HEAD % (SIGNED, FOLD)).replace("64", "128").replace("66]", "130]").replace("65]", "129]")
    )
    ideas, _ = asked(SkewSweeps(), text)
    assert [idea.move for idea in ideas] == ["skew_sweeps 0 sweeps 0"]


def test_blocks_of_a_plane_stay() -> None:
    text = (HEAD % (SIGNED, FOLD)).replace("block(64)", "block(32, 2)")
    assert "not rows of threads" in refused(thread_for_block(kernel(text)))[0]
