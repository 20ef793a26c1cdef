"""What rounds of a loop add to one place, added up before it is added there; and what stays."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.collected import collected
from optiml_magic.proposers.rewrites.accumulate_in_register import AccumulateInRegister
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.present import examples
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const int* c, %s* out, int n, int m) {
    __shared__ %s s, t[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x, w = threadIdx.x / 32;
    if (threadIdx.x == 0) { s = 1; for (int q = 0; q < 4; q++) t[q] = q; }
    __syncthreads();
    %s
    __syncthreads();
    if (i < n) atomicAdd(&out[i], s + t[threadIdx.x %% 4]);
}
"""
LOOP = "for (int k = 0; k < m; k++)"
NONE = "no rounds of a loop update one place"
WAITS = "threads wait for each other in the loop"
TELLS = "threads tell each other something in the loop"


def text_of(body: str, kind: str = "float") -> str:
    return TEXT % (kind, kind, body)


def ends(before: str, found: Kernel | Refused, kind: str = "float") -> str:
    after = written(found)
    assert after != before
    arrays = {
        "a": Array("f4", ("m",), "odd"), "c": Array("i4", ("n",), "below n"),
        "out": Array("i4" if kind == "int" else "f4", ("n",), "zeros"),
    }  # fmt: skip
    return end_of(before, after, arrays, {"n": 150, "m": 9}, {"n": 70, "m": 1}, rounds=True)


@pytest.mark.parametrize(
    ("body", "kind", "now"),
    [
        (f"{LOOP} atomicAdd(&s, a[k] * a[k]);", "float", "atomicAdd(&s, s_part);"),
        (f"{LOOP} if (a[k] > 1) atomicSub(&s, k);", "int", "s_part += -k;"),
        (f"{LOOP} atomicMax(&t[2], k * w);", "int", "t_part = max(t_part, "),
        (f"{LOOP} {{ atomicAdd(t, a[k]); atomicAdd(&t[w], 1.0f); }}", "float", "t_part_2 += 1.0f;"),
        (f"{LOOP} {{ atomicAdd(t + w, a[k]); if (k == 2) break; }}", "float", "if (t_part != 0.0f)"),
        (f"if (i < n) {LOOP} atomicAdd(&out[i], a[k]);", "float", "if (out_part != 0.0f) atomicAdd(&out[i]"),
        (f"if (i < n) {LOOP} atomicAdd(&out[c[i]], a[k]);", "float", "out_part += a[k];"),
        (f"#pragma unroll 2\n    {LOOP} atomicOr(&s, k << w);", "int", "#pragma unroll 2"),
        (f"for (int q = 0; q < 3; q++) {LOOP} atomicAdd(&s, a[k] * q);", "float", "float s_part"),
        (f"for (int q = 0; q < 3; q++) {LOOP} atomicAdd(&t[q], a[k]);", "float", "t_part += a[k];"),
        (f"for (int q = 0; q < 3; q++) {{ {LOOP} atomicAdd(&s, a[k]); __syncthreads(); }}", "float",
         "s_part += a[k];"),
        ("int k = 0; do { atomicMin(&t[3], k - i); } while (++k < m);", "int", "2147483647"),
        (f"{LOOP} {{ atomicAdd(&t[k % 4], 1); atomicAdd(&s, k); }}", "int", "s_part += k;"),
        (f"{LOOP} {{ (void)atomicXor(&s, k * 5); }}", "int", "s_part ^= k * 5;"),
    ],
)  # fmt: skip
def test_one_operation_stands_behind_the_rounds(body: str, kind: str, now: str) -> None:
    before = text_of(body, kind)
    found = collected(kernel_of(before))
    assert now in written(found)
    assert ends(before, found, kind) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"{LOOP} atomicAdd(&t[k % 4], 1);", NONE),
        (f"{LOOP} {{ int q = k % 4; atomicAdd(&t[q], 1); }}", NONE),
        (f"int q = 0; {LOOP} {{ atomicAdd(&t[q], 1); q = 3 - q; }}", NONE),
        (f"if (i < n) {LOOP} atomicAdd(&t[((int)out[i]) % 4], k);", NONE),
        ("atomicAdd(&s, 1);", NONE),
        (f"{LOOP} {{ atomicAdd(&s, 1); __syncthreads(); }}", WAITS),
        (f"{LOOP} {{ atomicAdd(&s, 1); __syncwarp(); }}", WAITS),
        (f"{LOOP} {{ atomicAdd(&s, 1); __threadfence_block(); }}", TELLS),
        (f"{LOOP} {{ int v = atomicAdd(&s, 1); if (v == 3) t[0] = 1; }}",
         "what an atomic operation returns is used"),
        (f"{LOOP} {{ atomicAdd(&s, 1); if (w == 9) t[1] = s; }}", "`s` is touched in another way as well"),
        (f"{LOOP} {{ atomicAdd(&t[0], 1); t[k % 2] = 2; }}", "`t` is touched in another way as well"),
        (f"{LOOP} {{ atomicAdd(&s, 1); atomicMax(&s, k); }}", "the order of what is done to `s` matters"),
        (f"{LOOP} atomicExch(&s, k);", "the order of what is done to `s` matters"),
        (f"{LOOP} {{ atomicAdd(&s, 1); if (k == 900) return; }}", "the kernel may end in the loop"),
        (f"{LOOP} {{ atomicAdd(&s, 1); while (atomicAdd(&t[0], 0) < 0) ; }}",
         "what an atomic operation returns is used"),
        (f"{LOOP} atomicAdd_block(&s, 1);", "`atomicAdd_block` is seen beyond the device"),
    ],
)  # fmt: skip
def test_others_stay(body: str, why: str) -> None:
    assert refused(collected(kernel_of(text_of(body, "int")))).partition(", line")[0] == why


SUMS = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    __shared__ float acc;
    if (threadIdx.x == 0) acc = 0.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x) {
        float v = a[blockIdx.x * m + i];
        atomicAdd(&acc, v * v);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(acc);
}
"""
ROWS = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")}


def test_places_of_several_loops_are_collected_each_in_its_own() -> None:
    before = text_of(
        f"for (int q = 0; q < 3; q++) {{ {LOOP} atomicAdd(&t[q], a[k]); atomicAdd(&s, a[q % m]); }}"
    )
    found = collected(kernel_of(before))
    assert "s_part += a[q % m];" in written(found)
    assert "t_part += a[k];" in written(found)
    assert ends(before, found) == "same"


def test_a_block_that_adds_to_one_place_is_a_sum() -> None:
    ideas, refusals = asked(RowToLanes(), SUMS)
    assert not refusals
    texts = [one.text for one in made(ideas) if one.text is not None]
    assert any("atomicAdd" not in text for text in texts)
    for text in texts:
        assert end_of(SUMS, text, ROWS, {"n": 9, "m": 301}, {"n": 3, "m": 5}, rounds=True) == "same"


def test_the_order_of_additions_is_said_to_change() -> None:
    ideas, _ = asked(AccumulateInRegister(), SUMS)
    assert [idea.arithmetic for idea in ideas] == [("the order of additions",)]
    whole = SUMS.replace("float acc", "int acc").replace("v * v", "(int)v")
    ideas, _ = asked(AccumulateInRegister(), whole)
    assert [idea.arithmetic for idea in ideas] == [()]


def drawn(rng: Random, kind: str) -> str:
    """Loops in one another that update places, of which some stay and some move."""
    place = rng.choice(
        ["&s", "&t[1]", "t + w", "&t[k % 4]", "&t[q]", "&out[i]", "&out[(i + k) % n]"]
    )
    ops = ["Add", "Add", "Max", "Or"] if kind == "int" and "out" not in place else ["Add"]
    op, value = rng.choice(ops), rng.choice(["k + q", "i - k", "(k * 7) % 5", "1", "q * w"])
    test = rng.choice(["", f"if ((k + i) % 3 == {rng.randrange(3)}) ", "if (w == 1) "])
    before = rng.choice(["", "", "if (k == 4) break; ", "if (k % 3 == i % 2) continue; "])
    behind = rng.choice(["", "", f" if (k > 2) atomic{op}({place}, 2);"])
    first = rng.choice(["0", "0", "threadIdx.x % 4", "m - 1"])
    around = rng.choice(["const int q = 1; ", "int q = 2; ", "for (int q = 0; q < 3; q++) "])
    round_ = f"{before}{test}atomic{op}({place}, {value});{behind}"
    loop = f"{around}for (int k = {first}; k < m; k++) {{ {round_} }}"
    return text_of(f"if (i < n) {{ {loop} }}", kind)


def test_what_is_drawn_stays_the_same() -> None:
    done = 0
    for seed in range(examples(40, 400)):
        rng = Random(seed)
        kind = rng.choice(["int", "float"])
        before = drawn(rng, kind)
        found = collected(kernel_of(before))
        if isinstance(found, Kernel) and done < examples(8, 200):
            done += 1
            assert ends(before, found, kind) == "same", before
    assert done
