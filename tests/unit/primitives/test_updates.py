"""Atomic operations that a block does once: in registers, or in copies in shared memory."""

from __future__ import annotations

from functools import partial

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.counters import counters, private
from optiml_magic.kernels.primitives.gathered import gathered
from optiml_magic.kernels.primitives.persistent import Stride, persistent
from optiml_magic.kernels.primitives.vectors import vectorise
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

FEW = Stride(2, 64, (1, 2, 3), (32, 64))
SEVERAL = Stride(2, 64, (1, 2, 3), (32, 64), 4, (4, 8))
TEXT = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* c, %s* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "c": Array("i4", ("n",), "positive")}


def text_of(body: str, kind: str = "int") -> str:
    return TEXT % (kind, body)


def same(before: str, after: Kernel | Refused, kind: str = "i4") -> None:
    """Fail where a result is wrong at 301 elements or at 1, with hazards and bounds looked for."""
    arrays = {**ARRAYS, "out": Array(kind, ("20",), "zeros")}
    assert end_of(before, written(after), arrays, {"n": 301}, {"n": 1}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "kind", "now"),
    sampled(
        [
            ("if (x[i] > 0) atomicAdd(&out[2], x[i]);", "float", "atomicAdd(&out[2], out_part);"),
            ("atomicMax(out, c[i] - 5);", "int", "int out_part = (-2147483647 - 1);"),
            ("atomicSub(out + 1, c[i]);", "int", "out_part += -c[i];"),
            ("atomicMin(out, c[i]); atomicMin(&out[1], -c[i]);", "int", "out_part_2 = min("),
            ("atomicAdd(out, 0.5 * x[i]);", "double", "out_part += 0.5 * x[i];"),
            ("atomicAdd(out, x[i]);", "int", "out_part += (int)x[i];"),
        ],
        2,
    ),
)
def test_a_block_updates_one_place_once(body: str, kind: str, now: str) -> None:
    before = text_of(body, kind)
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), gathered))
    assert now in written(after)
    assert "return;" not in written(after)
    same(before, after, {"float": "f4", "double": "f8"}.get(kind, "i4"))


def test_other_elements_may_be_asked_for_that_nobody_updates() -> None:
    body = "if (i == 3) out[5] = x[0]; atomicAdd(&out[1], x[i] - out[0]); atomicAdd(out + 2, x[i]);"
    before = text_of(body, "float")
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), gathered))
    assert "out_part += x[i] - out[0];" in written(after)
    same(before, after, "f4")


def test_what_the_guard_holds_asks_for_the_element_as_well() -> None:
    place = "blockIdx.x * blockDim.x + threadIdx.x"
    before = (
        text_of("if (c[i] < 4) return; atomicAdd(out, x[i]);", "float")
        .replace("    if (i >= n) return;\n", f"    if (({place}) < n) {{\n")
        .replace("    int i =", "    //")
        .replace("[i]", f"[{place}]")
        .replace("x]);", "x]); }")
    )
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), gathered))
    assert "x[(int)item]" in written(after)
    same(before, after, "f4")


def test_elements_that_lie_together_are_loaded_at_once() -> None:
    before = text_of("atomicAdd(out, x[i]);", "float")
    steps = (partial(persistent, stride=SEVERAL), partial(vectorise, at=1), gathered)
    after = in_turn(kernel_of(before), steps)
    assert "float4" in written(after)
    same(before, after, "f4")


def test_a_guard_that_holds_for_every_element_is_left_out() -> None:
    after = written(persistent(kernel_of(text_of("atomicAdd(out, 1);")), FEW))
    assert "unsigned item = blockIdx.x * BLOCK + threadIdx.x; item < n;" in after
    assert "if (" not in after
    wide = text_of("atomicAdd(out, 1);").replace("int n", "size_t n")
    found = written(persistent(kernel_of(wide), FEW))
    assert "unsigned long long item = (unsigned long long)blockIdx.x" in found
    assert "item < (long long)n;" in found


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[i] = atomicAdd(out, 1);", "`out` is touched in another way as well, line 6"),
        ("int old = atomicAdd(out, 1);", "what an atomic operation returns is used, line 6"),
        ("atomicExch(out, 1);", "the order of what is done to `out` matters, line 6"),
        ("atomicAdd(out, 1); atomicMax(out, 2);", "the order of what is done to `out`"),
        ("atomicAdd_system(out, 1);", "`atomicAdd_system` is seen beyond the device, line 6"),
        ("atomicAdd((unsigned*)out, 1u);", "`out` is updated as another type, line 6"),
        ("int k = 1; int* o = out + k; k = 2; atomicAdd(o, k);", "which element of `out` is"),
        ("atomicAdd(out, out[n - 1]);", "`out` is touched in another way as well"),
        ("atomicAdd(&out[i % 8], out[9]);", "`out` is touched in another way as well"),
        ("atomicAdd(&out[1], 1); out[1 + i] = 2;", "`out` is touched in another way as well"),
        ("atomicAdd(&out[1], *((char*)out));", "`out` is touched in another way as well"),
        ("int k = i; atomicAdd(out, k++);", "an update changes something else, too, line 6"),
        ("out += 1; atomicAdd(out, 1);", "`out` is not a parameter that stays"),
        ("atomicAdd(out, 1);", "threads leave before their block adds up, line 5"),
        ("if (threadIdx.x == 0) atomicAdd(out, 1);", "nothing is added to one place"),
        ("atomicAdd(&out[c[i]], 1);", "nothing is added to one place"),
    ],
)
def test_sums_that_stay(body: str, reason: str) -> None:
    assert reason in refused(gathered(kernel_of(text_of(body))))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (text_of("for (;;) { if (c[i]) return; }"), "the kernel is left within a loop, line 6"),
        (text_of("__syncthreads();"), "its threads wait for each other, line 6"),
        (text_of("n -= 1; atomicAdd(out, n);"), "`n` changes"),
        (
            text_of("while (out[i] == 0) out[i + 1] = 1;"),
            "a loop may wait for what another thread does, line 6",
        ),
        (
            text_of("for (int k = 0; k < 99 && out[3] == 0; ++k) ; atomicAdd(out, 1);"),
            "a loop may wait for what another thread does, line 6",
        ),
        (
            text_of("for (int k = 0; k < 99; ++k) if (atomicAdd(out, 1) > 3) break;"),
            "a loop may wait for what another thread does, line 6",
        ),
        (text_of('printf("%d", i);'), "`printf` tells how many threads there are"),
        (text_of("out[i] = gridDim.x;"), "it counts the blocks of its grid"),
        (text_of("out[i] = 1;").replace("block(64)", "block(64, 2)"), "is not certain"),
        (text_of("out[i] = 1;").replace("block(64)", "block(8, 2, 2)"), "is not certain"),
        (
            text_of("out[i] = 1;").replace("void k", "void __launch_bounds__(32) k"),
            "it is compiled for no more than 32 threads a block",
        ),
    ],
)
def test_threads_that_go_on_with_no_other_element(text: str, reason: str) -> None:
    assert reason in refused(persistent(kernel_of(text), FEW))


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 9; ++k) { if (c[i] == k) break; atomicAdd(&out[2], k); }",
        "int k = 0; while (k < 5 && c[i] > k) ++k; atomicAdd(out, k);",
        "int k = 0; do { if (c[i] == k) break; atomicAdd(&out[1], k); } while (++k < 4);",
        "unsigned s = c[i]; while (s) { atomicAdd(&out[1], (int)(s & 3)); s >>= 1; }",
        "bool on = true; int s = i; while (on) { atomicAdd(out, s); s = s * 5 + 1; on = s & 7; }",
    ],
)
def test_a_loop_that_asks_nothing_of_others_waits_for_nobody(body: str) -> None:
    before = text_of(body)
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), gathered))
    same(before, after, "i4")


def known(body: str, kind: str = "int") -> list[tuple[str, int, bool] | str]:
    return [
        c.reason if isinstance(c, Refused) else (c.whole.array, c.count, c.all)
        for c in counters(kernel_of(text_of(body, kind)))
    ]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("atomicAdd(&out[c[i] & 7], 1);", ("out", 8, True)),
        ("unsigned u = c[i]; atomicAdd(&out[u % 13], 1);", ("out", 13, True)),
        ("unsigned char b = c[i]; atomicAdd(out + b, 1);", ("out", 256, True)),
        ("int b = c[i]; if (b >= 0 && b < 11) atomicOr(&out[b], 1);", ("out", 11, True)),
        ("atomicAdd(&out[c[i]], 1);", "how many elements of `out` there are is not known"),
        ("atomicAdd(&out[c[i] & 65535], 1);", "65536 elements of `out` do not fit shared memory"),
    ],
)
def test_how_many_places_there_are(body: str, found: object) -> None:
    assert known(body) == [found]


@pytest.mark.parametrize(
    ("body", "kind", "count", "copies"),
    [
        ("atomicAdd(&out[c[i] & 7], 1);", "int", 8, 1),
        ("atomicAdd(&out[c[i]], x[i]);", "float", 20, 2),
        ("atomicAdd(&out[c[i]], 2);", "int", 5, 2),  # most are beyond the copies
        ("if (x[i] > 0) return; atomicMax(&out[c[i]], c[i]); atomicMax(&out[0], 3);", "int", 9, 1),
        ("for (int k = 0; k < 3; ++k) atomicXor(&out[(c[i] + k) & 3], 1);", "int", 4, 2),
        ("atomicAdd(out + c[i] % 3 * 2 + 1, 1);", "int", 6, 2),
        ("int* row = out + c[i] % 3; atomicAdd(&row[2], 1); atomicAdd(row + 1, 1);", "int", 5, 2),
    ],
)
def test_a_block_counts_in_copies_of_its_own(body: str, kind: str, count: int, copies: int) -> None:
    before = text_of(body, kind)
    keep = partial(private, arrays=[("out", count)], copies=copies)
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), keep))
    same(before, after, "f4" if kind == "float" else "i4")
    assert ("else atomic" in written(after)) == ("c[i]]" in body or "%" in body)
    assert "long long" not in written(after).split("}")[0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("atomicAdd(&out[c[i]], 1);", "threads leave before their block adds up, line 5"),
        ("atomicAdd(&out[c[i]], 1); __syncthreads();", "its threads wait for each other, line 6"),
        ("out[i] = 1;", "`out` is not only updated"),
    ],
)
def test_counters_that_stay(body: str, reason: str) -> None:
    assert reason in refused(private(kernel_of(text_of(body)), [("out", 20)]))


PLANE = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* x, int* out, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (%s) return;
    atomicAdd(&out[%s], 1);
}
"""


@pytest.mark.parametrize(
    ("guard", "index"),
    [("i >= w || j >= h", "0"), ("i >= w) return; if (j >= h", "(int)x[j * w + i] & 3")],
)
def test_rows_of_a_plane_are_taken_by_blocks_of_one_row(guard: str, index: str) -> None:
    before = PLANE % (guard, index)
    finish = gathered if index == "0" else partial(private, arrays=[("out", 4)])
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), finish))
    assert "grid(cdiv(w, BLOCK * 8), min(h, BLOCKS)) block(BLOCK)" in written(after)
    arrays = {"x": Array("f4", ("h", "w"), "positive"), "out": Array("i4", ("4",), "zeros")}
    assert end_of(before, written(after), arrays, {"w": 70, "h": 9}, {"w": 3, "h": 1}) == "same"


ROWS = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(w, 64), h) block(64)
__global__ void k(const int* c, int* out, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i < w) {
        %s
    }
}
"""


@pytest.mark.parametrize(
    ("body", "count", "loose"),
    [
        ("atomicAdd(&out[j * 32 + (c[j * w + i] & 31)], 1);", 32, False),
        ("size_t b = c[j * w + i] % 32u; atomicMax(&out[b + 32 * (size_t)j], i);", 32, False),
        ("atomicAdd(&out[c[j * w + i] % 40 + (h - 1 - j) * 24], 1);", 24, True),  # some beyond
        (
            "atomicAdd(&out[j * 8 + (c[j * w + i] & 7)], 1); atomicAdd(&out[j * 8 + 1], i);",
            8,
            False,
        ),
        ("atomicAdd(&out[j * 9 + 1 - (c[j * w + i] & 1)], 1);", 9, False),
    ],
)
def test_blocks_count_in_copies_of_a_row_of_their_own(body: str, count: int, loose: bool) -> None:
    before = ROWS % body
    keep = partial(private, arrays=[("out", count)], copies=2, rows=("out",))
    after = in_turn(kernel_of(before), (partial(persistent, stride=FEW), keep))
    assert "const " in written(after)
    assert "out_first = " in written(after)
    assert ("else atomic" in written(after)) == loose
    arrays = {"c": Array("i4", ("h", "w"), "positive"), "out": Array("i4", ("h", "64"), "zeros")}
    assert end_of(before, written(after), arrays, {"w": 130, "h": 5}, {"w": 3, "h": 1}) == "same"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("atomicAdd(&out[j * 256 + (c[i] & 255)], 1);", (256, True)),
        ("atomicAdd(&out[j * 300 + (c[i] & 255)], 1);", (256, True)),
        ("atomicAdd(&out[i / 32 * 256 + (c[i] & 255)], 1);", None),  # which row a thread says
        ("for (int l = 0; l < h; ++l) atomicAdd(&out[l * 8 + (c[i] & 7)], 1);", None),
        ("j = c[i]; atomicAdd(&out[j * 8 + (c[i] & 7)], 1);", None),
        ("atomicAdd(&out[j * 8], 1); atomicAdd(&out[(c[i] & 7)], 1);", None),  # rows, and no row
        ("atomicAdd(&out[c[i] & 0xfffff], 1);", None),
    ],
)
def test_what_of_an_index_is_a_block_s_own_row(body: str, found: tuple[int, bool] | None) -> None:
    (made,) = counters(kernel_of(ROWS % body))
    assert (None if isinstance(made, Refused) else (made.held, made.all)) == found
    if found is None:
        keep = private(kernel_of(ROWS % body), [("out", 256)], rows=("out",))
        assert isinstance(keep, Refused) or "else atomic" in written(keep)


@pytest.mark.parametrize(("rows", "stays"), [("h", False), ("cdiv(h, 1)", False), ("h + 1", True)])
def test_a_guard_of_the_other_axis_goes_where_the_launch_has_no_block_too_many(
    rows: str, stays: bool
) -> None:
    body = "if (j < h) atomicAdd(&out[j], c[j * w + i]);"
    before = (
        (ROWS % body).replace("if (i < w)", "if (i < w && j < h)").replace(", h)", f", {rows})")
    )
    after = written(persistent(kernel_of(before), FEW))
    assert ("if (i < w && j < h)" in after) == stays
    assert ("if (j < h)" in after) == stays
    arrays = {"c": Array("i4", ("h", "w"), "positive"), "out": Array("i4", ("h",), "zeros")}
    assert end_of(before, after, arrays, {"w": 130, "h": 5}, {"w": 3, "h": 1}) == "same"
