"""Blocks of fewer threads, which take several of those there were in turn."""

from __future__ import annotations

from functools import partial

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.thread_loops import (
    fewer_threads,
    registers_for_shared,
    warp_for_block,
)
from tests.present import sampled

from .running import same, same_of_many
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float s[66];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    %s
}
"""
SCAN = """\
    s[t] = i < n ? a[i] : 0.0f;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        float left = 0.0f;
        if (t >= d) left = s[t - d];
        __syncthreads();
        s[t] += left;
        __syncthreads();
    }
    if (i >= n) return;
    out[i] = s[t];
"""
STEPS = """\
    s[t] = i < n ? a[i] : 0.0f;
    if (t == 0) { s[64] = 1.5f; s[65] = -2.0f; }
    __syncthreads();
    for (int step = 0; step < 5; ++step) {
        float next = 0.25f * (t > 0 ? s[t - 1] : 0.5f) + 0.5f * s[t] + 0.25f * s[t + 1] + 0.1f * s[t + 2];
        __syncthreads();
        s[t] = next;
        __syncthreads();
    }
    if (i < n) out[i] = s[t] + s[0];
"""  # fmt: skip
PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 16)) block(8, 16)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float s[16][9];
    const int x = blockIdx.x * 8 + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    bool inside = x < w && y < h;
    float best[2] = {}, least{};
    s[threadIdx.y][threadIdx.x] = inside ? a[y * w + x] : 0.0f;
    __syncthreads();
    for (int half = 8, round = 0; half > 0; half /= 2, ++round) {
        if (threadIdx.y < half) s[threadIdx.y][threadIdx.x] += s[threadIdx.y + half][threadIdx.x];
        best[round % 2] += s[threadIdx.y][threadIdx.x] > 1.0f;
        least = fminf(least, s[threadIdx.y][threadIdx.x]);
        __syncthreads();
    }
    if (!inside) return;
    out[y * w + x] = s[0][threadIdx.x] + best[0] + 2.0f * best[1] + least;
}
"""
ONE, BOTH = {"a": ("n",), "out": ("n",)}, {"a": ("h", "w"), "out": ("h", "w")}
WAYS = {
    "warp": warp_for_block,
    "registers": registers_for_shared,
    "fewer": partial(fewer_threads, extents=(32,)),
}


@pytest.mark.parametrize("n", sampled([64, 190, 1], 2))
@pytest.mark.parametrize(("way", "body"), [("warp", SCAN), ("fewer", SCAN), ("warp", STEPS),
                                           ("registers", STEPS), ("fewer", STEPS)])  # fmt: skip
def test_fewer_threads_do_the_same(way: str, body: str, n: int) -> None:
    text = LINE % body
    same_of_many(text, WAYS[way](kernel(text)), ONE, {"n": n})


@pytest.mark.parametrize("way", sampled(["warp", "fewer"], 2))
def test_rows_of_a_plane_are_taken_in_turn(way: str) -> None:
    made = warp_for_block(kernel(PLANE))
    if way == "fewer":
        made = fewer_threads(kernel(PLANE), (4, 8))
    same(PLANE, made, BOTH, {"w": 19, "h": 35})


def test_a_warp_waits_as_one_and_keeps_what_lives_beyond_a_barrier() -> None:
    made = applied(warp_for_block(kernel(LINE % SCAN))).program.text
    assert "block(32)" in made
    assert "__syncthreads" not in made
    assert made.count("__syncwarp();") == 3
    assert "float left[2];" in made
    assert "d < 64u" in made  # of all threads there were
    assert "if (i >= n) continue;" in made


def test_lanes_get_what_others_have_by_shuffles() -> None:
    made = applied(registers_for_shared(kernel(LINE % STEPS))).program.text
    assert "float s_own[5];" in made
    assert "const unsigned thread = threadIdx.x * 2 + item;" in made
    assert "s_own[0] = __shfl_up_sync(0xffffffffu, s_own[2], 1);" in made
    assert "s_own[4] = __shfl_down_sync(0xffffffffu, s_own[2], 1);" in made
    assert "(item + 1 < 2 || threadIdx.x < 31 ? s_own[item + 2] : s[t + 1])" in made
    inner = made.partition("for (int step")[2].partition("\n    }\n")[0]
    assert "__syncwarp" not in inner  # nothing that it stores is in memory


def test_one_element_that_all_ask_for_comes_from_its_lane() -> None:
    body = """\
    s[t] = i < n ? a[i] : 0.25f;
    __syncthreads();
    for (int step = 0; step < 4; ++step) {
        float first = s[5];
        float next = t < 63 ? s[t + 1] * s[0] : first;
        __syncthreads();
        s[t] = next * 0.5f + first;
        if (t == 7) s[t] += s[7];
        __syncthreads();
    }
    if (i < n) out[i] = s[t];
"""
    text = LINE % body
    made = registers_for_shared(kernel(text))
    shown = applied(made).program.text
    assert "float first = __shfl_sync(0xffffffffu, s_own[1], 2);" in shown
    assert "const float s_at_0 = __shfl_sync(0xffffffffu, s_own[0], 0);" in shown
    assert "s_own[item] += (threadIdx.x * 2 + item == 7 ? s_own[item] : s_at_7);" in shown
    same(text, made, ONE, {"n": 128})


ROUNDS = """\
    BEGIN
    __syncthreads();
    for (int step = 0; step < 5; ++step) {
        float next = 0.5f * s[t + FIRST] + 0.25f * LEFT + 0.125f * RIGHT;
        __syncthreads();
        s[t + FIRST] = next;
        MORE
        __syncthreads();
    }
    if (i < n) out[i] = s[t + FIRST];
"""
PLAIN, HALO = "s[t] = i < n ? a[i] : 0.0f;", "s[t + 1] = i < n ? a[i] : 0.5f;"
ENDS = {
    "ring": (PLAIN, "0", "s[(t + 63) % 64]", "s[(t + 1) % 64]", ""),
    "ring by a choice": (PLAIN, "0", "s[t == 0 ? 63 : t - 1]", "s[t == 63 ? 0 : t + 1]", ""),
    "ring of two": (PLAIN, "0", "s[(t + 62) % 64]", "s[(t + 2) & 63]", ""),
    "cut off": (PLAIN, "0", "s[max(t - 1, 0)]", "s[min(t + 1, 63)]", "if (t == 63) s[63] = 0.5f;"),
    "mirrored": (PLAIN, "0", "s[t > 0 ? t - 1 : 1]", "s[t < 63 ? t + 1 : 62]", ""),
    "borders": (PLAIN, "0", "s[t > 0 ? t - 1 : 0]", "(t < 63 ? s[t + 1] : 0.5f)", "if (t == 0) s[0] = 2.0f;"),
    "halo": (f"{HALO} if (t == 0) {{ s[0] = 1.5f; s[65] = -2.0f; }}", "1", "s[t]", "s[t + 2]", ""),
    "a radius": (f"{HALO} if (t == 0) {{ s[0] = 1.5f; s[65] = -2.0f; }}", "1", ("0.5f; for (int k = -1; k <= 1; ++k)"
                 " next += 0.25f * s[t + 1 + k]; next += 0.5f"), "0.5f", ""),
    "a radius within": (PLAIN, "0", ("0.5f; for (int k = 0; k < 2; k++) for (int m = 0; m < 2; ++m)"
                        " if (t + k - 2 * m >= 0 && t + k < 64) next += 0.25f * s[t + k - 2 * m]; next += 0.5f"), "0.5f", ""),
    "halo of two": ("s[t + 2] = i < n ? a[i] : 0.5f; if (t < 2) s[t] = 0.25f * t;", "2", "s[t]", "s[t + 1]",
                    "if (t > 61) s[t - 62] += 0.5f;"),
    "halo by threads": (f"{HALO} if (t < 1) s[0] = 1.5f; if (t > 62) s[65] = 3.0f;", "1", "s[t]", "s[t + 2]",
                        "if (t == 5) s[0] += 0.5f;"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_threads_at_the_ends_have_other_neighbours(case: str) -> None:
    begin, first, left, right, more = ENDS[case]
    body = ROUNDS.replace("BEGIN", begin).replace(" + FIRST", f" + {first}" if first > "0" else "")
    text = LINE % body.replace("LEFT", left).replace("RIGHT", right).replace("MORE", more)
    made = registers_for_shared(kernel(text))
    shown = applied(made).program.text
    assert "float s_own[" in shown
    for n in (128, 100):
        same(text, made, ONE, {"n": n})


def test_what_all_threads_do_alike_is_done_once() -> None:
    body = """\
    a += 2 * blockIdx.x;
    int at = 3, stride = 1;
    s[t] = a[t % 4];
    do {
        __syncthreads();
        float first = s[at %% 64];
        s[t] = s[t] * 0.5f;
        at += stride;
        stride *= 2;
        __syncthreads();
        s[t] += first;
    } while (stride < 9);
    if (i < n) out[i] = s[t] + at;
"""
    text = LINE % body.replace("%%", "%").replace("s[t] = s[t] * 0.5f;\n        ", "")
    made = warp_for_block(kernel(text))
    shown = applied(made).program.text
    assert "a += 2 * blockIdx.x;\n    int at = 3;\n    int stride = 1;\n    #pragma" in shown
    assert "float first = s[at % 64];\n        at += stride;\n        stride *= 2;\n" in shown
    same(text, made, {"a": ("m",), "out": ("n",)}, {"m": 20, "n": 128})


def test_launch_bounds_follow_the_block() -> None:
    text = (LINE % SCAN).replace("void k", "void __launch_bounds__(64, 4) k")
    made = applied(fewer_threads(kernel(text), (32,))).program.text
    assert "__launch_bounds__(THREADS)" in made


REFUSED = {
    "volatile": ("volatile float v = 1.0f; s[t] = v; __syncthreads(); out[i] = s[t];", "`v` is volatile"),
    "another": ("s[t] = __syncthreads_or(t > n); out[i] = s[t];", "in another way"),
    "lanes": ("s[t] = __shfl_xor_sync(~0u, a[t], 1); __syncthreads(); out[i] = s[t];",
              "its lanes exchange values"),
    "none": ("out[i] = a[i];", "do not wait for each other"),
    "own": ("s[t] = 0.0f; if (t < n) __syncthreads(); out[i] = s[t];",
            "what decides on a barrier is a thread's own"),
    "left": (("s[t] = 0.0f; __syncthreads(); for (int j = 0; j < n; ++j) { if (a[j] > t) return; }"
             " out[i] = s[t];"), "the kernel is left within a loop"),
    "begun": ("float v[2] = {1.0f, 2.0f}; s[t] = a[t]; __syncthreads(); out[i] = v[t % 2] + s[t];",
              "what `v` begins with is not zero"),
    "closure": (("s[t] = a[t]; __syncthreads(); for (int j = 0; j < 3; ++j) { [&] { float v = s[63 - t]; "
                "__syncthreads(); s[t] = v; __syncthreads(); }(); } out[i] = s[t];"), "it has a lambda"),
    "parameter": ("n += t; s[t] = a[t]; __syncthreads(); out[i] = s[t] + n;",
                  "`n` becomes a thread's own"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_left_alone(case: str) -> None:
    body, why = REFUSED[case]
    assert why in refused(warp_for_block(kernel(LINE % body)))[0]


FAR = {
    "beside": ("s[t + 1] = a[t]; if (t < 2) s[t] = 0; __syncthreads(); out[i] = s[t];", "neighbour's element"),
    "several": ("s[t + 1] = a[t]; __syncthreads(); out[i] = s[t]; s[t] = 0;", "stores several elements of `s`"),
    "elsewhere": ("s[t] = a[t]; __syncthreads(); out[i] = s[(t + 30) % 64] + s[t + 1];", "asks for a far element"),
    "mixed": ("s[t] = a[t]; __syncthreads(); out[i] = s[(t + 1) % 64] + s[t == 63 ? 60 : t + 1];",
              "what threads at the ends ask for is not followed"),
    "as far as data say": ("s[t] = a[t]; __syncthreads(); for (int j = 0; j < n % 3; ++j) out[i] += s[t + j];",
               "which element"),
    "far in turn": ("s[t] = a[t]; __syncthreads(); for (int j = 0; j < 9; ++j) out[i] += s[t + j];", "a far element"),
    "moving": ("s[t] = a[t]; __syncthreads(); for (int j = 0; j < 3; ++j) out[i] += s[(t + j) % 64] + s[t + 1];",
               "which element it is"),
    "another's": (
        "s[t] = a[t]; __syncthreads(); if (t < 2) s[0] = 1; __syncthreads(); out[i] = s[t + 1];",
        "stores a neighbour's element",
    ),
    "far": ("s[t] = a[t]; __syncthreads(); out[i] = s[t + 7 < 64 ? t : 0] + s[t + 7];", "which element"),
    "unknown": ("s[t] = a[t]; __syncthreads(); out[i] = s[n % 64] + s[t + 1];", "which element"),
    "own": ("s[t] = a[t]; __syncthreads(); out[i] = s[t];", "ask for no element of a neighbour's"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAR)
def test_what_stays_in_shared_memory(case: str) -> None:
    body, why = FAR[case]
    found = registers_for_shared(kernel(LINE % body))
    assert isinstance(found, Refused)
    assert why in found.reason


def test_blocks_that_are_no_whole_warps_keep_their_threads() -> None:
    text = (LINE % SCAN).replace("block(64)", "block(48)")
    assert "do not become whole warps" in refused(warp_for_block(kernel(text)))[0]
