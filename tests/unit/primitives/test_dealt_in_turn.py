"""Blocks whose threads have neighbouring rounds each, as a thread that makes all of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.dealt_in_turn import dealt_in_turn
from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(m) block(64)
__global__ void k(const int* a, int* out, int* others, int m, int n) {
    __shared__ int best[64];
    int t = threadIdx.x, row = blockIdx.x;
    PER
    int b = 0;
    LOOP
    best[t] = b;
    __syncthreads();
    if (t == 0) {
        for (int j = 1; j < 64; j++) best[0] += best[j];
        out[row] = best[0];
    }
}
"""
PER = "int per = (n + 63) / 64;"
LOOP = "for (int i = t * per; i < min((t + 1) * per, n); i++) b += a[row * n + i];"
ARRAYS = {
    "a": Array("i4", ("m", "n")), "out": Array("i4", ("m",)), "others": Array("i4", ("m * 64",)),
}  # fmt: skip


def text_of(loop: str, per: str = PER) -> str:
    return TEXT.replace("PER", per).replace("LOOP", loop)


@pytest.mark.parametrize(
    ("per", "loop"),
    [
        (PER, LOOP),
        (PER, LOOP.replace("min((t + 1) * per, n)", "t * per + per && i < n")),
        (PER, LOOP.replace("i++", "++i").replace("min((t + 1) * per, n)", "min(n, per * t + per)")),
        ("int per = (n + 100) / 64;", LOOP),
        (PER, LOOP.replace(", n)", ", n - 3)")),
        ("int per = 3;", LOOP.replace(", n)", ", 150)").replace("row * n + i", "i % n")),
        ("int per = 5;", "for (int i = t * 5; i < t * 5 + 5; i++) b += a[i % n] * i;"),
        (PER + " const int first = t * per, end = min(first + per, n);",
         "for (int i = first; i < end; ++i) { if (a[row * n + i] > 0) b += i; }"),
        ("int per = (n - 2 + 63) / 64;",
         "for (int i = 2 + t * per; i < min(2 + t * per + per, n); i++) b += a[row * n + i];"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 2, 64, 301])
def test_a_thread_makes_all_rounds(per: str, loop: str, n: int) -> None:
    before = text_of(loop, per)
    after = written(raised(kernel_of(before)))
    assert "__shared__" not in after
    assert end_of(before, after, ARRAYS, {"m": 5, "n": n}, {"m": 1, "n": 65}) == "same"


@pytest.mark.parametrize(
    ("per", "loop"),
    [
        ("int per = n / 64;", LOOP),
        ("int per = (n + 62) / 64;", LOOP),
        ("int per = (n + 63) / 32;", LOOP),
        ("int per = (n + 31) / 32;", LOOP),
        ("int per = 4;", LOOP),
        ("int per = (n + 63) / 64 + t / 32;", LOOP),
        (PER, LOOP.replace("min((t + 1) * per, n)", "min((t + 1) * per + 1, n)")),
        (PER, LOOP.replace("min((t + 1) * per, n)", "min((t + 2) * per, n)")),
        (PER, LOOP.replace("min((t + 1) * per, n)", "min((t + 1) * per - 1, n)")),
        (PER, LOOP.replace("min((t + 1) * per, n)", "max((t + 1) * per, n)")),
        (PER, LOOP.replace("min((t + 1) * per, n)", "n")),
        (PER, LOOP.replace(", n)", ", n - t)")),
        (PER, LOOP.replace("i++", "i += 2")),
        (PER, LOOP.replace("i++", "i++, b++")),
        (PER, LOOP.replace("i < min", "i++ < min").replace("i++)", ")")),
        (PER, LOOP.replace("min((t + 1) * per, n)", "t * per + per || i < n")),
        (PER, LOOP.replace(", n)", ", n) && b < 9")),
        (PER, LOOP.replace("b += a", "if (i == 7) break; b += a")),
        (
            PER,
            LOOP.replace("min((t + 1) * per, n)", "t * per + per && i < n").replace(
                "b += a", "if (i == 7) break; b += a"
            ),
        ),
        (PER, LOOP.replace("int i = t * per", "int i = t * per - 1")),
        (PER, LOOP.replace("b += a", "if (i == 7) return; b += a")),
        (PER, LOOP.replace("i++) b += a[row * n + i]", "i++) { b += a[row * n + i]; i += b; }")),
    ],
)
def test_not_where_threads_leave_some_out_or_meet(per: str, loop: str) -> None:
    kernel = kernel_of(text_of(loop, per))
    assert "neighbours of a thread's own" in refused(dealt_in_turn(kernel))


@pytest.mark.parametrize(
    "more",
    [
        "others[row * 64 + t] = b;",
        "if (t == 3) others[row] = b;",
        "if (t < 32) best[t] += 1;",
        "if (b > 5) best[t] = 0;",
        "if (t == 0) atomicAdd(&others[row], b);",
    ],
)
def test_what_a_thread_finds_by_itself_is_not_asked_for(more: str) -> None:
    before = text_of(LOOP).replace("__syncthreads();", f"{more} __syncthreads();", 1)
    made = raised(kernel_of(before))
    if hasattr(made, "program"):
        arrays, small = ARRAYS | {"others": Array("i4", ("m * 64",), "zeros")}, {"m": 1, "n": 65}
        assert end_of(before, written(made), arrays, {"m": 5, "n": 301}, small) == "same"


def test_one_thread_may_be_asked_for_where_blocks_add_up() -> None:
    before = text_of(LOOP).replace("out[row] = best[0];", "atomicAdd(&out[0], best[0]);")
    before = before.replace("best[t] = b;", "best[t] = b; if (t == 1) atomicAdd(&out[1], b);")
    before = "#pragma optiml zero(out)\n" + before
    made = raised(kernel_of(before))
    if hasattr(made, "program"):
        arrays = ARRAYS | {"out": Array("i4", ("m",), "zeros")}
        found = end_of(before, written(made), arrays, {"m": 5, "n": 301}, {"m": 2, "n": 65})
        assert found == "same"
