"""The few rounds of a block's threads, written out, and blocks with a thread for each item."""

from __future__ import annotations

import random

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.block_rounds import block_rounds
from optiml_magic.kernels.primitives.thread_loops import registers_for_shared
from optiml_magic.kernels.primitives.widened import widened
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

BLOCK = """\
#pragma optiml launch k grid(m) block(64)
__global__ void k(const float* a, float* out, int m) {
    __shared__ float s[200], next[200];
    int t = threadIdx.x;
    %s
}
"""
LATTICE = """\
    for (int i = t; i <= 128; i += 64) s[i] = a[blockIdx.x] * i;
    __syncthreads();
    for (int step = 128; step > 0; step -= 2) {
        for (int i = threadIdx.x; i < step; i += blockDim.x) next[i] = 0.5f * s[i] + 0.25f * s[i + 1];
        __syncthreads();
        for (int i = t; i < step - 1; i = i + 64) s[i] = 0.5f * next[i] + 0.25f * next[i + 1];
        __syncthreads();
    }
    if (!t) out[blockIdx.x] = s[0];
"""
SHAPES = {"a": ("m",), "out": ("m",)}


def in_block(body: str) -> Kernel:
    return kernel(BLOCK % body)


def drawn_body(seed: int) -> str:
    """Items of a block that are brought, changed and summed up, in loops of a few rounds."""
    draw = random.Random(seed)
    items, first = draw.choice([64, 65, 70, 128, 129, 150, 192]), draw.choice([0, 0, 1, 3])
    start = draw.choice(["t", "threadIdx.x", "(int)threadIdx.x"]) + (f" + {first}" if first else "")
    step = draw.choice(["i += 64", "i += blockDim.x", "i = i + 64"])
    test = draw.choice([f"i < {items}", f"i <= {items - 1}", f"{items} > i"])
    kind = draw.choice(["int", "unsigned"])
    head = f"for ({kind} i = {start}; {test}; {step})"
    change = draw.choice(["s[i] * 2.0f", "s[i + 1] - s[i]", "s[i] + (i % 3)"])
    lone = draw.choice(["if (t == 0)", "if (threadIdx.x == 0)", "if (!t)", "if (5 == t)"])
    return f"""\
    {head} s[i] = a[blockIdx.x] + i;
    __syncthreads();
    {lone} {{ s[0] = 1.0f; s[{items}] = -1.0f; s[1] = 2.0f; s[2] = 0.5f; }}
    __syncthreads();
    for (int round = 0; round < 3; ++round) {{
        {head} {{
            float v = {change};
            next[i] = v;
        }}
        __syncthreads();
        {head} s[i] = next[i];
        __syncthreads();
    }}
    {lone} {{
        float sum = 0.0f;
        for (int i = 0; i < {items}; ++i) sum += s[i];
        out[blockIdx.x] = sum;
    }}
"""


@pytest.mark.parametrize("seed", sampled(range(48), 8))
def test_drawn_blocks_do_the_same(seed: int) -> None:
    text = BLOCK % drawn_body(seed)
    same(text, block_rounds(kernel(text)), SHAPES, {"m": 3})
    wide = widened(kernel(text))
    if isinstance(wide, Kernel):
        same(text, wide, SHAPES, {"m": 3})
        same(text, block_rounds(wide), SHAPES, {"m": 3})


def test_a_lattice_has_a_thread_a_node_and_then_registers() -> None:
    wide = applied(widened(in_block(LATTICE)))
    assert "block(128)" in wide.program.text
    assert "i < step; i += 128)" in wide.program.text
    once = applied(block_rounds(wide))
    assert "if (threadIdx.x == 0) {\n        const int i = 128;" in once.program.text
    assert once.program.text.count("for (") == 1
    held = registers_for_shared(once)
    assert "float next_own[5];" in applied(held).program.text
    same(BLOCK % LATTICE, held, SHAPES, {"m": 3})


def test_a_round_that_all_threads_make_has_no_test() -> None:
    body = "for (int i = t; i < 128; i += 64) s[i] = a[i % m]; __syncthreads(); if (t == 0) out[blockIdx.x] = s[0];"
    made = applied(block_rounds(in_block(body))).program.text
    assert "{\n        const int i = t;\n        s[i]" in made
    assert "{\n        const int i = t + 64;\n        s[i]" in made


NO_ROUNDS = {
    "many": "for (int i = t; i < 321; i += 64) s[i % 200] = 0.0f;",
    "unknown": "for (int i = t; i < m; i += 64) s[i] = 0.0f;",
    "leaves": "for (int i = t; i < 128; i += 64) { if (a[i] > 0.0f) break; s[i] = 0.0f; }",
    "serial": "for (int i = 0; i < 128; ++i) s[t] += a[i];",
    "nested": "for (int i = t; i < 128; i += 64) for (int j = 0; j < 3; ++j) s[i] += a[j];",
}


@pytest.mark.parametrize("body", NO_ROUNDS.values(), ids=NO_ROUNDS)
def test_loops_that_stay(body: str) -> None:
    assert refused(block_rounds(in_block(body)))[0] == "no loop of its threads makes a few rounds"


FILL = "for (int i = t; i < 128; i += 64) s[i] = 0.0f; __syncthreads(); "
NO_THREADS = {
    "one round": ("for (int i = t; i < 64; i += 64) s[i] = 0.0f;", "makes more than a round"),
    "too many": ("for (int i = t; i < 1100; i += 64) s[i % 200] = 0.0f;", "makes more than a round"),
    "a thread's own": (FILL + "out[t] = s[t];", "ask for more than their items"),
    "its width": (FILL + "if (t == 0) out[0] = blockDim.x;", "ask for more than their items"),
    "each adds": (FILL + "atomicAdd(&out[0], 1.0f);", "each of its threads stores"),
    "rounds meet": ("for (int i = t; i < 128; i += 64) s[i] = i < 64 ? 1.0f : s[i - 64];",
                    "its rounds may meet"),
    "loops meet": (FILL + "for (int i = t; i < 64; i += 64) s[i] += s[i + 64];",
                   "its rounds may meet"),
    "a stride": ("for (int d = 64; d > 0; d /= 2) { " + FILL +
                 "for (int i = t; i < d; i += 64) s[i] += s[i + d]; }", "its rounds may meet"),
    "one asks": (FILL.replace("__syncthreads();", "") + "if (t == 0) out[0] = s[64];", "is another's then"),
    "goes on": ("float v = 0; for (int i = t; i < 128; i += 64) v += a[i]; if (!t) out[0] = v;", "goes from round to round"),
    "waits": ("for (int i = t; i < 128; i += 64) { s[i] = 0.0f; __syncthreads(); }",
              "wait within a round"),
    "prints": (FILL + 'if (t == 0) printf("x");', "it prints"),
    "lanes": (FILL + "out[0] = __shfl_sync(~0u, s[0], 1);", "its lanes exchange values"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), NO_THREADS.values(), ids=NO_THREADS)
def test_blocks_that_stay(body: str, reason: str) -> None:
    assert reason in refused(widened(in_block(body)))[0]


def test_what_barriers_part_does_not_meet() -> None:
    body = """\
    for (int i = t; i < 128; i += 64) s[i] = a[blockIdx.x] + i;
    __syncthreads();
    for (int i = t; i < 128; i += 64) next[i] = i < 64 ? s[i + 64] : s[127] - s[i - 64];
    __syncthreads();
    if (t == 0) out[blockIdx.x] = next[64] - next[3];
"""
    made = widened(in_block(body))
    assert "block(128)" in applied(made).program.text
    same(BLOCK % body, made, SHAPES, {"m": 5})
    once = body.replace("s[127]", "next[0]")
    assert "its rounds may meet" in refused(widened(in_block(once)))[0]


def test_items_of_rows_whose_length_is_a_number_are_apart() -> None:
    body = """\
    for (int i = t; i < 128; i += 64) s[i] = a[blockIdx.x] + i;
    __syncthreads();
    for (int i = t; i < 128; i += 64) out[blockIdx.x * 128 + i] = s[i] - s[127];
"""
    made = widened(in_block(body))
    same(BLOCK % body, made, {"a": ("m",), "out": ("m", "128")}, {"m": 5})
    again = body.replace("* 128 + i]", "* 128 + i / 2]")
    assert "its rounds may meet" in refused(widened(in_block(again)))[0]


def test_blocks_are_rows_of_threads() -> None:
    text = (BLOCK % FILL).replace("block(64)", "block(64, 2)")
    assert "not rows of threads" in refused(block_rounds(kernel(text)))[0]
