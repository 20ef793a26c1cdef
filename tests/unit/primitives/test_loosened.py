"""Guards that tighten from round to round, where nobody asks for what they withhold."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.loosened import all_loosened, loosened
from optiml_magic.kernels.primitives.stored_back import stored_back
from optiml_magic.kernels.primitives.thread_loops import registers_for_shared
from tests.present import sampled

from .running import same
from .shapes import kernel, refused

LINE = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    __shared__ float s[66], q[64];
    int t = threadIdx.x;
    float u = b[blockIdx.x];
    s[t] = a[blockIdx.x * 64 + t];
    if (t == 0) s[64] = 0.5f;
    __syncthreads();
    %s
}
"""
SHAPES = {"a": ("n", "64"), "b": ("n",), "out": ("n",)}
FOLD = """\
for (int left = 64; left > 0; left--) {
        float next = 0.0f;
        if (t < left) next = u * s[t + 1] + 0.5f * s[t];
        __syncthreads();
        if (t < left) s[t] = next;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];"""
CHOICE = """\
for (int level = 63; level >= 1; --level) {
        float next = t < level ? s[t] + u * (s[t + 1] - s[t]) : s[t];
        __syncthreads();
        s[t] = next;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];"""
UPWARD = """\
for (int k = 1; k < 60; ++k) {
        float left = t >= k ? s[t - 1] : 0.0f;
        __syncthreads();
        if (t >= k) s[t] = fmaxf(s[t] * u, left);
        __syncthreads();
    }
    if (t > 60 && t < 62) out[blockIdx.x] = s[t];"""
BOTH = """\
for (int k = 1; k <= 20; ++k) {
        bool left = t >= k, right = t < 64 - k;
        if (left && right) q[t] = u * s[t] + 0.25f * (s[t - 1] + s[t + 1]);
        __syncthreads();
        if (t >= k && t < 64 - k) s[t] = q[t];
        __syncthreads();
    }
    if (t == 30) out[blockIdx.x] = s[30];"""
CASES = {"fold": FOLD, "choice": CHOICE, "upward": UPWARD, "both": BOTH}


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("case", sampled(sorted(CASES), 4))
def test_threads_beyond_the_bound_compute_in_vain(case: str, registers: bool) -> None:
    text = LINE % CASES[case]
    made = all_loosened(kernel(text))
    before, shown = text.partition("for (int")[2], made.program.text.partition("for (int")[2]
    assert shown
    assert before != shown
    moving = next(name for name in ("left", "level", "k") if f"int {name} = " in text)
    inner = shown.partition("{")[2].partition("\n    }\n")[0]
    if case != "both":
        assert f" {moving}" not in inner.replace(f"float {moving}", "")
    same(text, registers_for_shared(made) if registers else made, SHAPES, {"n": 3})


def test_a_bound_that_the_first_round_does_not_have_goes() -> None:
    made = all_loosened(kernel(LINE % FOLD)).program.text
    assert "if (t < left)" not in made
    assert "next = u * s[t + 1] + 0.5f * s[t];" in made
    made = all_loosened(kernel(LINE % CHOICE)).program.text
    assert made.count("if ((int)threadIdx.x <= 62)") == 2


WHOLE = "if (t == 0) out[blockIdx.x] = s[0];"
REFUSED = {
    "asked for": (FOLD.replace(WHOLE, "if (t == 1) out[blockIdx.x] = s[1];"), "no round made"),
    "no more": (FOLD.replace("s[t + 1]", "s[t + 2]"), "what the one before did not make"),
    "one barrier": (FOLD.replace("__syncthreads();", "", 1), "between the same barriers"),
    "elsewhere": (FOLD.replace("float next = 0.0f;", "float next = 0.0f; if (t == left) s[t] = u;"),
                  "stored elsewhere"),
    "other local": (FOLD.replace("= s[0]", "= s[0] + last").replace("for (", "float last = 0.0f; for (")
                    .replace(") next = u", ") next = last = u"), "`last` is asked for elsewhere"),
    "kept": (FOLD.replace("s[t] = next;", "s[t] = out[blockIdx.x * 0] = next;"), "stays"),
    "moves": (FOLD.replace("u * s[t + 1]", "a[t + left] * s[t + 1]"), "moves"),
    "may not end": (FOLD.replace(") next = u", ") while (next < 9.0f) next = 1.0f + u"), "may not end"),
    "early": (FOLD.replace("float next", "if (left == 4) break; float next"), "no guard tightens"),
    "steady": (FOLD.replace("t < left", "t < 60"), "no guard tightens"),
    "loosens": (FOLD.replace("t < left", "t < 64 - left"), "no guard tightens"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_bound_that_somebody_relies_on_stays(case: str) -> None:
    body, why = REFUSED[case]
    assert why in refused(loosened(kernel(LINE % body)))[0]


def test_what_is_stored_back_stays_where_it_may_be_another() -> None:
    for body in (
        CHOICE.replace("__syncthreads();", "__syncthreads(); s[t] = u;", 1),
        CHOICE.replace("s[t] = next", "s[t] = next; u += next"),
        CHOICE.replace("float next", "double next"),
    ):
        made = stored_back(kernel(LINE % body))
        assert isinstance(made, Kernel)
        assert made.program.text.count("if (t < level)") == 1
    reason, _ = refused(stored_back(kernel(LINE % FOLD)))
    assert reason == "no round stores what it has loaded from there"
