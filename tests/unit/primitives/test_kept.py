"""What several loops touch, kept in registers: which loops, which arrays, and why not."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.again import again
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.kept import keep

from .running import same
from .shapes import applied, kernel, refused

COLUMNS = """\
#pragma optiml launch k grid(cdiv(w, 32)) block(32)
__global__ void k(float* a, const float* b, float* out, int w, int h) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= w) return;
    float m = 0.0f;
    %s
}
"""
LARGEST = "for (int r = 0; r < h; ++r) m = fmaxf(m, a[r * w + c]);"
LESS = "for (int r = 0; r < h; r++) { out[r * w + c] = a[r * w + c] - m; }"
BLOCKS = """\
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* a, float* out, int w, int h) {
    __shared__ float most[64];
    float m = 0.0f;
    for (int c = threadIdx.x; c < w; c += blockDim.x) { out[blockIdx.x * w + c] = a[blockIdx.x * w + c] * 2; m = fmaxf(m, out[blockIdx.x * w + c]); }
    most[threadIdx.x] = m;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (threadIdx.x < s) most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + s]);
        __syncthreads();
    }
    for (int c = threadIdx.x; c < w; c += blockDim.x) out[blockIdx.x * w + c] -= most[0];
}
"""  # fmt: skip
VECTORS = """\
#pragma optiml launch k grid(cdiv(n, 4)) block(4)
__global__ void k(const float* a, float* out, int n, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = 0.0f;
    for (int r = h; r > 0; --r) m = fmaxf(m, reinterpret_cast<const float2*>(a)[(r - 1) * n + i].x);
    for (int r = h; r > 0; --r) out[(r - 1) * n + i] = reinterpret_cast<const float2*>(a)[(r - 1) * n + i].x - m;
}
"""  # fmt: skip


def kept(text: str, counts: tuple[int, ...] = (1, 3, 8)) -> Kernel | Refused:
    one = kernel(text)
    (found,) = again(one)
    return keep(one, found.numbers, counts[::-1])


def names(text: str) -> list[list[str]]:
    return [sorted(one.array for one in found.kept) for found in again(kernel(text))]


@pytest.mark.parametrize("h", [1, 3, 7, 11])
def test_rounds_that_are_kept_and_the_others_do_the_same(h: int) -> None:
    made = kept(COLUMNS % f"{LARGEST}\n{LESS}")
    shapes = {"a": ("h", "w"), "b": ("h",), "out": ("h", "w")}
    same(COLUMNS % f"{LARGEST}\n{LESS}", made, shapes, {"w": 37, "h": h}, {"KEEP": 3})


@pytest.mark.parametrize("w", [5, 64, 200])
def test_what_a_block_has_written_stays_with_its_threads(w: int) -> None:
    made = kept(BLOCKS)
    same(BLOCKS, made, {"a": ("h", "w"), "out": ("h", "w")}, {"w": w, "h": 3}, {"KEEP": 3})


def test_parts_of_elements_and_loops_that_count_down() -> None:
    shapes = {"a": ("h", "n", "2"), "out": ("h", "n")}
    same(VECTORS, kept(VECTORS), shapes, {"n": 9, "h": 5}, {"KEEP": 3})


def test_what_a_later_loop_stores_again_is_stored_once() -> None:
    text = applied(kept(BLOCKS)).program.text
    first = text.index("out_kept[turn] = a[")
    assert text[first:].split("\n")[0].startswith("out_kept[turn] = a[blockIdx.x * w + c] * 2; m =")
    assert "out[blockIdx.x * w + c] = out_kept[turn];" in text


def test_nothing_is_kept_where_threads_leave_between_two_loops() -> None:
    first = "for (int r = 0; r < h; ++r) { a[r * w + c] *= 2; m += a[r * w + c]; }"
    text = COLUMNS % f"{first}\nif (h > 3) {{ if (w > 4) return; }}\n{LARGEST}"
    assert names(text) == []
    assert names(text.replace("4) return;", "4) m = 3;")) == [["a"]]


def test_all_loads_come_before_the_first_loop() -> None:
    text = applied(kept(COLUMNS % f"{LARGEST}\n{LESS}")).program.text
    head = text[: text.index("fmaxf")]
    assert "a_kept[turn] = a[r * w + c];" in head
    assert "#pragma optiml tune KEEP in {8, 3, 1} = 8" in head
    assert text.count("for (int r = KEEP; r < h;") == 2


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        (f"{LARGEST}\n{LESS}", [["a"]]),
        (f"{LARGEST}\n{LESS.replace('r < h', 'r < h - 1')}", []),
        (f"{LARGEST}\n{LESS.replace('a[r * w + c] -', 'a[r * w + 1] -')}", []),
        (f"{LARGEST}\nif (w > 3) {LESS}", []),
        (f"{LARGEST}\n{LESS.replace('{', '{ b[r];').replace('a[r', 'b[r]; a[r')}", [["a"]]),
        (f"{LARGEST}\na[c] = m;\n{LESS}", []),
        (f"{LARGEST}\n{LESS.replace('{', '{ if (m > 1.0f) a[r * w + c] = m;')}", []),
        (f"{LARGEST}\n{LESS.replace('{', '{ a[r * w + c] = m;')}", [["a"]]),
        (LARGEST.replace("m =", "if (b[r] > 0) m =") + LESS, []),
        (LARGEST.replace("a[r * w + c]", "a[(int)b[r] * w + c]") * 2, [["b"]]),
    ],
)
def test_which_arrays_are_kept(body: str, arrays: list[list[str]]) -> None:
    assert names(COLUMNS % body) == arrays


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("{ __syncthreads(); m = fmaxf(m, a[r * w + c]); }", "its threads wait in the loop"),
        ("m += __shfl_xor_sync(~0u, a[r * w + c], 1);", "lanes exchange values in the loop"),
        ("{ __shared__ float b; b = a[r * w + c]; }", "it declares more than locals in the loop"),
    ],
)
def test_rounds_that_do_not_stand_apart(first: str, reason: str) -> None:
    found = kept(COLUMNS % f"for (int r = 0; r < h; ++r) {first}\n{LESS}")
    assert refused(found) == (reason, 6)


def test_a_counter_holds_longer_steps() -> None:
    found = kept((COLUMNS % f"{LARGEST}\n{LESS}").replace("int r", "short r"))
    assert refused(found) == ("its counter may not hold a longer step", 6)


def test_loops_are_counted_in_their_heads() -> None:
    again_ = "int r = 0; while (r < h) { out[r * w + c] = a[r * w + c] - m; ++r; }"
    found = kept(COLUMNS % f"{LARGEST}\n{again_}")
    assert refused(found) == ("the loop does not count in its head", 7)


def test_memory_that_may_change_at_any_time_is_read_again() -> None:
    text = (COLUMNS % f"{LARGEST}\n{LESS}").replace("float* a", "volatile float* a")
    with pytest.raises(NotLegal, match="its memory may change at any time"):
        again(kernel(text))
