"""Counters that a block keeps in shared memory, as updates of the array itself."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.released import released
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(3, 2) block(64)
__global__ void k(const int* c, int* out, int n, int w) {
    ZERO
    __syncthreads();
    UPDATE
    __syncthreads();
    ADD
}
"""
PARTS = {
    "ZERO": "__shared__ int own[64]; own[threadIdx.x] = 0;",
    "UPDATE": "for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 192) "
    "atomicAdd(&own[c[i] % 64], 1);",
    "ADD": "atomicAdd(&out[threadIdx.x], own[threadIdx.x]);",
}
WIDE = {
    "ZERO": "__shared__ int own[100], *p; "
    "for (int b = threadIdx.x; b < 100; b += blockDim.x) own[b] = 0;",
    "UPDATE": PARTS["UPDATE"].replace("% 64", "% 100"),
    "ADD": "for (int b = threadIdx.x; b < 100; b += 64) if (own[b] != 0) "
    "atomicAdd(&out[b], own[b]);",
}


def text_of(parts: dict[str, str]) -> str:
    text = TEXT
    for name, words in {**PARTS, **parts}.items():
        text = text.replace(name, words)
    return text


@pytest.mark.parametrize(
    "parts",
    [
        {},
        WIDE,
        {"ADD": "int v = own[threadIdx.x]; if (v > 0) atomicAdd(out + threadIdx.x, v);"},
        {"ADD": "atomicAdd(&out[100 * blockIdx.y + threadIdx.x], own[threadIdx.x]);"},
        {
            "ZERO": "__shared__ int own[40]; int t = threadIdx.x; if (t < 40) own[t] = 0;",
            "UPDATE": "int i = blockIdx.x * blockDim.x + t; "
            "if (i < n) { atomicAdd(own + (c[i] & 7), c[i]); atomicSub(&own[39], 2); }",
            "ADD": "if (t < 40) { int v = own[t]; if (v) atomicAdd(&out[t], v); }",
        },
    ],
)
def test_updates_go_to_the_array(parts: dict[str, str]) -> None:
    before = text_of(parts)
    if "int v" in parts.get("ADD", "") and "ZERO" not in parts:
        before = before.replace("int v = own[threadIdx.x]; if", "{ int v = own[threadIdx.x]; if")
        before = before.replace("threadIdx.x, v);", "threadIdx.x, v); }")
    after = released(kernel_of(before))
    assert "__syncthreads" not in written(after)
    assert "own" not in written(after)
    arrays = {"c": Array("i4", ("n",), "positive"), "out": Array("i4", ("200",), "zeros")}
    assert end_of(before, written(after), arrays, {"n": 301, "w": 5}, {"n": 1, "w": 1}) == "same"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"ZERO": "__shared__ int own[64]; own[threadIdx.x] = 1;"}, "not begin with zeros"),
        ({"ZERO": "__shared__ int own[64]; own[threadIdx.x] = c[threadIdx.x];"}, "begin with zer"),
        ({"ZERO": "__shared__ int own[64];"}, "not added to an array once"),
        ({"ZERO": PARTS["ZERO"].replace("64", "65")}, "not each element"),
        ({"ADD": "if (threadIdx.x < 63) " + PARTS["ADD"]}, "not each element"),
        ({"ADD": "if (threadIdx.x < w) " + PARTS["ADD"]}, "not each element"),
        ({"ADD": "if (own[threadIdx.x] > 1) " + PARTS["ADD"]}, "more than its elements"),
        ({"ADD": "if (own[threadIdx.x] && w) " + PARTS["ADD"]}, "more than its elements"),
        ({"ADD": "if (out[threadIdx.x] < 7) " + PARTS["ADD"]}, "to one array"),
        ({"ADD": "{ int v = own[threadIdx.x]; if (w) atomicAdd(&out[threadIdx.x], v); }"},
         "more than its elements"),
        ({"ADD": "{ float v = own[threadIdx.x]; atomicAdd(&out[threadIdx.x], (int)v); }"}, ""),
        ({"ADD": "atomicAdd(&out[threadIdx.x], own[threadIdx.x] + 1);"}, "more than its elements"),
        ({"ADD": "atomicAdd(&out[threadIdx.x * 2], own[threadIdx.x]);"}, "in a row"),
        ({"ADD": "atomicAdd(&out[63 - threadIdx.x], own[threadIdx.x]);"}, "in a row"),
        ({"ADD": "atomicAdd(&out[threadIdx.x], own[0]);"}, ""),
        ({"ADD": "atomicMax(&out[threadIdx.x], own[threadIdx.x]);"}, "not added to one array"),
        ({"ADD": "atomicSub(&out[threadIdx.x], own[threadIdx.x]);"}, "not alike"),
        ({"ADD": "out[threadIdx.x] = own[threadIdx.x];"}, "not added to one array"),
        ({"ADD": PARTS["ADD"] + " " + PARTS["ADD"]}, "not added to an array once"),
        ({"ADD": PARTS["ADD"] + " if (own[0] == 3) out[70] = 1;"}, "not added to an array once"),
        ({"UPDATE": PARTS["UPDATE"] + " out[99] = 5;"}, "touched in another way"),
        ({"UPDATE": "atomicMax(&own[c[threadIdx.x] % 64], 1);"}, "not added to one array"),
        ({"UPDATE": "atomicAdd_block(&own[c[threadIdx.x] % 64], 1);"}, "beyond the device"),
        ({"UPDATE": "if (own[1] < 5) atomicAdd(&own[c[threadIdx.x] % 64], 1);"}, "another way"),
        ({"UPDATE": "if (c[0]) return; atomicAdd(&own[c[threadIdx.x] % 64], 1);"}, "leave"),
        ({"UPDATE": PARTS["UPDATE"] + " __syncthreads(); atomicAdd(&own[3], 1);"}, "wait twice"),
        ({"UPDATE": "__syncthreads(); " + PARTS["UPDATE"]}, "wait twice"),
        ({**WIDE, "ADD": WIDE["ADD"].replace("< 100", "< 99")}, "not each element"),
        ({**WIDE, "ADD": "if (threadIdx.x < w) " + WIDE["ADD"]}, "not each element"),
        ({**WIDE, "ADD": "if (w > 3) " + WIDE["ADD"]}, "not each element"),
        ({**WIDE, "ADD": WIDE["ADD"].replace("+= 64", "+= 32")}, "not each element"),
        ({**WIDE, "ADD": WIDE["ADD"].replace("= threadIdx.x", "= 1 + threadIdx.x")},
         "not each element"),
    ],
)  # fmt: skip
def test_refused(parts: dict[str, str], reason: str) -> None:
    assert reason in refused(released(kernel_of(text_of(parts))))


def test_what_others_wrote_to_global_memory_is_waited_for() -> None:
    text = text_of({
        "ZERO": PARTS["ZERO"] + " d[threadIdx.x] = 1;",
        "UPDATE": "atomicAdd(&own[0], d[63 - threadIdx.x]);",
    }).replace("int n,", "int* d, int n,")  # fmt: skip
    assert "around a barrier" in refused(released(kernel_of(text)))


PLANE = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(w, 16), cdiv(n, 8)) block(16, 8)
__global__ void k(const int* c, int* out, int n, int w) {
    ZERO
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < n) {
        UPDATE
    }
    __syncthreads();
    ADD
}
"""
BINS = {
    "ZERO": "__shared__ int own[128]; int t = threadIdx.y * blockDim.x + threadIdx.x; own[t] = 0;",
    "UPDATE": "atomicAdd(&own[c[y * w + x] % 128], 1);",
    "ADD": "atomicAdd(&out[t], own[t]);",
}
RANGE = {
    "ZERO": "__shared__ int lo, hi; if (threadIdx.x == 0 && threadIdx.y == 0) { lo = 40; hi = 3; }",
    "UPDATE": "int v = c[y * w + x]; atomicMin(&lo, v); atomicMax(&hi, v);",
    "ADD": "if (threadIdx.x == 0 && threadIdx.y == 0) "
    "{ atomicMin(&out[0], lo); atomicMax(&out[1], hi); }",
}
ONE = "if (threadIdx.x + threadIdx.y * 16 == 0) for (int b = 0; b < 128; b++) "
STEP = "for (int b = t; b < 200; b += blockDim.x * blockDim.y) "


def plane_of(parts: dict[str, str]) -> str:
    text = PLANE
    for name, words in parts.items():
        text = text.replace(name, words)
    return text


@pytest.mark.parametrize(
    "parts",
    [
        BINS,
        RANGE,
        {**BINS, "ZERO": "__shared__ int own[128]; " + ONE + "own[b] = 0;",
         "ADD": ONE + "atomicAdd(&out[b], own[b]);"},
        {**BINS, "ZERO": BINS["ZERO"].replace("[128]", "[200]").replace("own[t]", STEP + "own[b]"),
         "ADD": STEP + "{ if (own[b]) atomicAdd(&out[b], own[b]); }"},
        {"ZERO": BINS["ZERO"].replace("own[128];", "own[128], two[128];") + " two[t] = 0;",
         "UPDATE": BINS["UPDATE"] + " atomicAdd(&two[x & 7], 2);",
         "ADD": "for (int b = t; b < 128; b += 128) "
         "{ atomicAdd(&out[b], own[b]); atomicAdd(out + 64 + b, two[b]); }"},
        {**RANGE, "ZERO": RANGE["ZERO"].replace("lo = 40;", "lo = w - 60;")},
        {**RANGE, "UPDATE": "if (x & 1) atomicMax(&hi, c[y * w + x]); atomicMin(&lo, x - 5);"},
    ],
)  # fmt: skip
def test_threads_of_two_axes_and_what_copies_begin_with(parts: dict[str, str]) -> None:
    before = plane_of(parts)
    after = released(kernel_of(before))
    assert "__syncthreads" not in written(after)
    assert "own" not in written(after)
    arrays = {"c": Array("i4", ("n", "w"), "positive"), "out": Array("i4", ("300",), "zeros")}
    large, small = {"n": 21, "w": 35}, {"n": 1, "w": 1}
    assert end_of(before, written(after), arrays, large, small) == "same"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({**BINS, "ADD": "if (threadIdx.y == 0) " + BINS["ADD"]}, "not each element"),
        ({**BINS, "ADD": "atomicAdd(&out[threadIdx.x], own[threadIdx.x]);"}, "not each element"),
        (
            {
                **BINS,
                "ADD": ONE.replace("x + threadIdx.y * 16", "x") + "atomicAdd(&out[b], own[b]);",
            },
            "not each element",
        ),
        (
            {**BINS, "ADD": ONE.replace("== 0", "== 1") + "atomicAdd(&out[b], own[b]);"},
            "not each element",
        ),
        (
            {**BINS, "ADD": "if (blockIdx.x == 0) " + ONE + "atomicAdd(&out[b], own[b]);"},
            "not each element",
        ),
        ({**RANGE, "ADD": RANGE["ADD"].replace("{ ", "{ if (lo) ")}, "more than its elements"),
        ({**RANGE, "ADD": RANGE["ADD"].replace("{ ", "{ out[7] = 1; ")}, "not added to an array"),
        ({**RANGE, "ADD": RANGE["ADD"].replace("out[1]", "out[0]")}, "two copies"),
        ({**RANGE, "ZERO": RANGE["ZERO"].replace("40", "c[0]")}, "what is given"),
        ({**RANGE, "ZERO": RANGE["ZERO"].replace("40", "blockIdx.x")}, "what is given"),
        ({**RANGE, "ZERO": RANGE["ZERO"].replace("hi = 3;", "hi = 3; lo = 2;")}, "begin with"),
        ({**BINS, "ZERO": BINS["ZERO"].replace("= 0", "= 5")}, "not begin with zeros"),
        ({**BINS, "ADD": "{ int v = ++own[t]; atomicAdd(&out[t], v); }"}, "more than its elements"),
        (
            {
                **BINS,
                "UPDATE": BINS["UPDATE"].replace("1)", "3000000000)"),
                "ADD": "if (own[t] > 0) " + BINS["ADD"],
            },
            "more than its elements",
        ),
        (
            {
                **BINS,
                "ZERO": BINS["ZERO"].replace("own[t] = 0", "int z = (own[t] = 0)"),
                "UPDATE": BINS["UPDATE"].replace("1)", "z + 1)"),
            },
            "declares something",
        ),
        ({**BINS, "UPDATE": BINS["UPDATE"].replace("% 128", "% (sizeof(own) / 4)")}, "as a whole"),
        ({**BINS, "UPDATE": BINS["UPDATE"].replace("1)", "own ? 1 : 2)")}, "as a whole"),
    ],
)
def test_refused_of_two_axes(parts: dict[str, str], reason: str) -> None:
    assert reason in refused(released(kernel_of(plane_of(parts))))


MEAN = {
    "ZERO": "__shared__ float own; if (threadIdx.x == 0 && threadIdx.y == 0) own = 0.0f;",
    "UPDATE": "float v = c[y * w + x]; atomicAdd(&own, v > 3 ? v : 2 * v);",
    "ADD": "if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(out, SUM);",
}


@pytest.mark.parametrize("added", ["own / 64", "own * 0.25f / (w * 2)", "2.0f * own", "own / n"])
def test_a_block_s_sum_times_a_number_is_each_part_times_it(added: str) -> None:
    before = plane_of({**MEAN, "ADD": MEAN["ADD"].replace("SUM", added)}).replace(
        "int* out", "float* out"
    )
    made = released(kernel_of(before))
    assert "__syncthreads" not in written(made)
    assert "the rounding of products" in made.arithmetic
    arrays = {"c": Array("i4", ("n", "w"), "positive"), "out": Array("f4", ("1",), "zeros")}
    large, small = {"n": 21, "w": 32}, {"n": 1, "w": 1}
    assert end_of(before, written(made), arrays, large, small, rounds=True) == "same"


@pytest.mark.parametrize(
    "added",
    ["own + 1", "1 / own", "own * own", "sqrtf(own)", "own * c[0]", "own / blockIdx.x", "-own"],
)
def test_other_functions_of_a_block_s_sum_stay(added: str) -> None:
    before = plane_of({**MEAN, "ADD": MEAN["ADD"].replace("SUM", added)}).replace(
        "int* out", "float* out"
    )
    assert refused(released(kernel_of(before)))
    whole = plane_of({**BINS, "ADD": "atomicAdd(&out[t], own[t] / 2);"})
    assert "more than its elements" in refused(released(kernel_of(whole)))


def test_what_a_block_begins_with_is_lost_nowhere() -> None:
    """Not behind another store, nor where a launch has a block without work."""
    one = """\
#pragma optiml launch k grid(GRID) block(64)
__global__ void k(const int* c, int* out, int* d, int n) {
    __shared__ int hi;
    if (threadIdx.x == 0) hi = 3;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    FIRST
    if (i < n) { if (c[i] > 100) atomicMax(&hi, c[i]); }
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(&out[0], hi);
}
"""
    arrays = {"c": Array("i4", ("n",), "positive"), "out": Array("i4", ("1",), "zeros"),
              "d": Array("i4", ("n + 1",), "zeros")}  # fmt: skip
    for grid, first in (
        ("cdiv(n, 64)", "if (i < n) d[i] = 1;"), ("cdiv(n, 64)", "if (i < n) atomicAdd(&d[3], 1);"),
        ("cdiv(n, 64) + 1", ""), ("n / 64 + 1", ""), ("max(1, cdiv(n, 64))", ""),
    ):  # fmt: skip
        before = one.replace("GRID", grid).replace("FIRST", first)
        after = written(released(kernel_of(before)))
        assert end_of(before, after, arrays, {"n": 70}, {"n": 5}) == "same"
        ahead = after.index("atomicMax(&out[0], (int)(3))") < after.index("if (i < n) {")
        assert ahead == (grid != "cdiv(n, 64)")


ROWS = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(3) block(64)
__global__ void k(const int* c, KIND* out, int n) {
    __shared__ int own[6][4];
    ZERO own[PLACE] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 192)
        atomicAdd(&own[c[i] % 6][c[i] & 3], 1);
    __syncthreads();
    ZERO ADD
}
"""
PLAIN = {"KIND": "int", "ADD": "atomicAdd(&out[WHOLE], own[PLACE]);"}
BY_THREAD = {**PLAIN, "ZERO": "if (threadIdx.x < 6) for (int p = 0; p < 4; p++)",
             "WHOLE": "threadIdx.x * 4 + p", "PLACE": "threadIdx.x][p"}  # fmt: skip
BY_ONE = {**PLAIN, "ZERO": "if (!threadIdx.x) for (int a = 0; a < 6; a++) for (int b = 0; b < 4; b++)",
          "WHOLE": "a * 4 + b", "PLACE": "a][b"}  # fmt: skip
IN_TURN = {**PLAIN, "ZERO": "for (int i = threadIdx.x; i < 24; i += blockDim.x)",
           "WHOLE": "i", "PLACE": "i / 4][i % 4"}  # fmt: skip


def rows_of(parts: dict[str, str]) -> str:
    text = ROWS
    for name in ("ZERO", "ADD", "KIND", "WHOLE", "PLACE"):
        text = text.replace(name, parts[name])
    return text


@pytest.mark.parametrize(
    "parts",
    [
        BY_THREAD,
        BY_ONE,
        IN_TURN,
        {**IN_TURN, "ZERO": "if (threadIdx.x < 24)", "WHOLE": "threadIdx.x",
         "PLACE": "threadIdx.x / 4][threadIdx.x % 4"},
        {**BY_THREAD, "KIND": "unsigned long long",
         "ADD": "atomicAdd(&out[WHOLE], (unsigned long long)own[PLACE]);"},
    ],
)  # fmt: skip
def test_copies_of_rows(parts: dict[str, str]) -> None:
    before = rows_of(parts)
    after = released(kernel_of(before))
    assert "own" not in written(after)
    kind = "u8" if parts["KIND"] == "unsigned long long" else "i4"
    arrays = {"c": Array("i4", ("n",), "positive"), "out": Array(kind, ("24",), "zeros")}
    assert end_of(before, written(after), arrays, {"n": 301}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({**BY_THREAD, "ZERO": BY_THREAD["ZERO"].replace("p < 4", "p < 3")}, "not each element"),
        ({**BY_THREAD, "ZERO": BY_THREAD["ZERO"].replace("p++", "p += 2")}, "not each element"),
        ({**BY_THREAD, "ZERO": BY_THREAD["ZERO"].replace("p = 0", "p = 1")}, "not each element"),
        ({**BY_THREAD, "ZERO": BY_THREAD["ZERO"].replace("x < 6", "x < 5")}, "not each element"),
        ({**BY_THREAD, "WHOLE": "p * 6 + threadIdx.x"}, "in a row"),
        ({**BY_THREAD, "ADD": "if (p != 2) " + PLAIN["ADD"]}, "not each element"),
        ({**BY_ONE, "ZERO": BY_ONE["ZERO"].replace("a < 6", "a < 5")}, "not each element"),
        ({**IN_TURN, "PLACE": "i / 6][i % 4"}, ""),
        ({**IN_TURN, "PLACE": "i % 6][i / 6"}, ""),
        ({**BY_THREAD, "KIND": "unsigned long long",
          "ADD": "atomicAdd(&out[WHOLE], (unsigned char)own[PLACE]);"}, "more than its elements"),
        ({**BY_THREAD, "KIND": "float", "ADD": "atomicAdd(&out[WHOLE], (float)own[PLACE]);"},
         "not alike"),
    ],
)  # fmt: skip
def test_copies_of_rows_refused(parts: dict[str, str], reason: str) -> None:
    assert reason in refused(released(kernel_of(rows_of(parts))))


def test_sums_that_may_wrap_are_not_widened() -> None:
    parts = {**BY_THREAD, "KIND": "unsigned long long"}
    text = rows_of({**parts, "ADD": "atomicAdd(&out[WHOLE], (unsigned long long)own[PLACE]);"})
    found = released(kernel_of(text.replace("& 3], 1)", "& 3], c[i])")))
    assert "not alike" in refused(found)
