"""Atomic operations on few places: what the two rules offer, and what they leave alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.counters import Counters, counters, private
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from optiml_magic.proposers.rewrites.private_counters import PrivateCounters
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.source.program import parse_program
from tests.ideas import asked, made
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, written

DOT = """
#pragma optiml zero(out)
#pragma optiml launch dot grid(cdiv(n, 256)) block(256)
__global__ void dot(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i] * y[i]);
}"""
BYTES = """
#pragma optiml zero(bins)
#pragma optiml launch count grid(cdiv(n, 256)) block(256)
__global__ void count(const unsigned char* data, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i]], 1);
}"""
STRIDED = """
#pragma optiml zero(bins)
#pragma optiml launch count grid(64) block(256)
__global__ void count(const unsigned char* data, unsigned int* bins, int n) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&bins[data[i]], 1);
}"""
PAIRS = """
#pragma optiml zero(bins)
#pragma optiml launch pairs grid(cdiv(n, 256)) block(256)
__global__ void pairs(const float* x, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int j = i + 1; j < n; j++) {
        int b = (int)fabsf(x[i] - x[j]) & 63;
        atomicAdd(&bins[b], 2);
    }
}"""
WHOLE = DOT.replace("if (i < n) ", "").replace("cdiv(n, 256)", "n / 256")


def test_a_sum_of_floats_says_that_its_order_changes(compiles) -> None:
    ideas, refused = asked(BlockSum(), DOT)
    assert [idea.arithmetic for idea in ideas] == [("the order of additions",)] * 2
    assert not refused
    for text in {proposal.text for proposal in made(ideas)}:
        compiles(text)
        assert text.count("atomicAdd") == 1
    names = [set(parse_program(p.text).values) for p in made(ideas)]
    assert {"BLOCK", "BLOCKS", "ITEMS"} in names
    assert {"BLOCK", "BLOCKS"} in names
    ideas, _ = asked(BlockSum(), DOT.replace("float*", "int*"))
    assert {idea.arithmetic for idea in ideas} == {()}


SOLID = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(l, 8), cdiv(m, 4), cdiv(n, 2)) block(8, 4, 2)
__global__ void k(const int* a, int* out, int l, int m, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < l && y < m && z < n && a[(z * m + y) * l + x] > 0) atomicAdd(out, 1);
}
"""


@pytest.mark.parametrize(
    "sizes", [(5, 3, 2), (64, 9, 7), (300, 1, 1), (1, 70, 3), (2, 2, 90), (1, 1, 1)]
)
@pytest.mark.parametrize("block", ["block(8, 4, 2)", "block(32, 1, 2)"])
def test_blocks_of_planes_go_on_through_rows_and_planes(sizes: tuple[int, ...], block: str) -> None:
    text = SOLID.replace("block(8, 4, 2)", block)
    if "1, 2" in block:
        text = text.replace("cdiv(l, 8), cdiv(m, 4)", "cdiv(l, 32), m")
    first, *_ = made(asked(BlockSum(), text)[0])
    arrays = {"a": Array("i4", ("n", "m", "l")), "out": Array("i4", ("1",), "zeros")}
    extents = dict(zip("lmn", sizes, strict=True))
    for blocks in (132, 2112):
        program = parse_program(first.text).with_values({"BLOCKS": blocks, "BLOCK": 128})
        assert end_of(text, program.text, arrays, extents, extents) == "same"


def test_blocks_with_a_place_of_their_own_are_rows(compiles) -> None:
    text = WHOLE.replace("atomicAdd(out", "atomicAdd(&out[blockIdx.x]")
    assert not asked(BlockSum(), text)[0]
    lanes, *_ = made(asked(RowToLanes(), text)[0])
    assert "float4" in lanes.text
    assert "atomicAdd" not in lanes.text
    compiles(lanes.text)
    assert len(made(asked(BlockSum(), WHOLE)[0])) == 1  # its blocks stay as many as they are


@pytest.mark.parametrize("k", [0, 1, 3])
def test_threads_are_counted_where_a_guard_leaves_open_how_many_work(k: int) -> None:
    text = BYTES.replace("int n)", "int n, int k)").replace("i < n", "i <= n - k")
    text = text.replace("data[i]", "(data[i + k - 1] & 63)" if k else "(i & 63)")
    ideas, _ = asked(PrivateCounters(), text)
    found, *_ = made(ideas)
    arrays = {"data": Array("u1", ("n",)), "bins": Array("u4", ("64",), "zeros")}
    assert end_of(text, found.text, arrays, {"n": 700, "k": k}, {"n": 5, "k": k}) == "same"


@pytest.mark.parametrize("text", [BYTES, STRIDED])
def test_bytes_are_counted_in_copies(text, compiles) -> None:
    ideas, refused = asked(PrivateCounters(), text)
    assert not refused
    assert {idea.arithmetic for idea in ideas} == {()}
    for proposal in made(ideas):
        assert "bins_own[COPIES * 256]" in proposal.text
        compiles(proposal.text)
    assert len(ideas) == 2


def test_the_bytes_of_each_line_are_counted_in_copies_of_its_own_counters(compiles) -> None:
    text = BYTES.replace("int n)", "int n, int h)").replace(
        "cdiv(n, 256)", "cdiv(n, 32), cdiv(h, 8)"
    )
    text = text.replace("block(256)", "block(32, 8)").replace(
        "if (i < n) atomicAdd(&bins[data[i]], 1);",
        "int j = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (i < n && j < h) atomicAdd(&bins[j * 256 + data[j * n + i]], 1);",
    )
    ideas, refused = asked(PrivateCounters(), text)
    assert not refused
    for proposal in made(ideas):
        assert "bins_first = (int)blockIdx.y * 256;" in proposal.text
        assert "bins_own[COPIES * 256]" in proposal.text
        compiles(proposal.text)
    assert len(ideas) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            BYTES.replace("cdiv(n, 256)", "min(cdiv(n, 256), 9)"),
            "how many of its threads do something",
        ),
        (BYTES.replace("unsigned char", "unsigned short"), "65536 elements of `bins` do not fit"),
        (BYTES.replace("unsigned char", "int"), "how many elements of `bins` there are"),
    ],
)
def test_counters_that_are_refused(text, reason) -> None:
    ideas, refused = asked(PrivateCounters(), text)
    assert not ideas
    assert any(reason in one.reason for one in refused)


def test_what_a_warp_has_added_up_is_left_alone() -> None:
    text = DOT.replace("if (i < n)", "if (threadIdx.x % 32 == 0)")
    assert asked(BlockSum(), text) == ([], [])


def test_blocks_share_the_pairs_of_an_item(compiles) -> None:
    first, *_ = made(asked(PrivateCounters(), PAIRS)[0])
    assert set(parse_program(first.text).values) == {"PARTS", "COPIES"}
    assert "return;" not in first.text
    compiles(first.text)


def test_searches_that_leave_the_kernel_are_counted_by_blocks(compiles) -> None:
    text = DOT.replace(
        "if (i < n) ",
        "if (i >= n) return;\n    for (int k = 0; k < 8; ++k) if (x[i] == k) return;\n    ",
    )
    ideas, refused = asked(BlockSum(), text)
    assert not refused
    for proposal in made(ideas):
        assert "left" in proposal.text
        compiles(proposal.text)
    assert ideas


MANY = """
#pragma optiml launch count grid(cdiv(n, 256)) block(256)
__global__ void count(const int* data, float* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[abs(data[i]) % LIMIT], 1.0f);
}"""


def many(limit: int, chip: str = "h200", text: str = MANY) -> Kernel:
    program = parse_program(text.replace("LIMIT", str(limit)))
    return replace(kernels(program, None)[0], chip=chip)


def test_counters_that_no_kernel_can_declare_are_asked_for_at_the_launch(compiles) -> None:
    kernel = many(20_000)
    (own,) = counters(kernel)
    assert isinstance(own, Counters)
    after = written(private(kernel, [(own.array, own.held)]))
    assert "extern __shared__ float bins_own[];" in after
    assert "shared(COPIES * 80000)" in after
    assert "if COPIES * 80000 <= 232448" in after
    compiles(after)
    arrays = {"data": Array("i4", ("n",)), "bins": Array("f4", ("20000",), "zeros")}
    assert end_of(kernel.program.text, after, arrays, {"n": 300}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("kernel", "held"),
    [
        (many(20_000, ""), False),
        (many(20_000, "t4"), False),
        (many(60_000), False),
        (many(20_000, text=MANY.replace("block(256)", "block(256) shared(64)")), False),
        (many(20_000, text=MANY.replace("    int i", "    __shared__ int s[1]; s[0] = 1; int i")),
         False),
        (many(10_000, ""), True),
    ],
    ids=["no chip", "a chip with less", "too many", "asked for", "declared", "few"],
)  # fmt: skip
def test_where_they_may_live(kernel: Kernel, held: bool) -> None:
    (own,) = counters(kernel)
    assert isinstance(own, Counters) is held
    if isinstance(own, Counters):
        after = written(private(kernel, [(own.array, own.held)]))
        assert "extern" not in after
        assert "shared(" not in after


def test_a_thread_that_holds_much_takes_one_item(compiles) -> None:
    text = DOT.replace("if (i < n) atomicAdd(out, x[i] * y[i]);", """if (i >= n) return;
    float v[16];
    #pragma unroll
    for (int k = 0; k < 16; ++k) v[k] = x[k] * y[i];
    float s = 0.0f;
    #pragma unroll
    for (int k = 15; k >= 0; --k) s = fmaxf(0.5f * s, v[k]);
    atomicAdd(out, s);""")  # fmt: skip
    (idea,), _ = asked(BlockSum(), text)
    (one,) = {p.text for p in made([idea])}
    assert "for (unsigned" not in one
    assert "if (i < n) {" in one
    compiles(one)
    few = text.replace("16", "8").replace("15", "7")
    assert all("BLOCKS" in p.text for p in made(asked(BlockSum(), few)[0]))


IMAGE = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const unsigned char* c, int* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        BODY
    }
}
"""
TREE = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const unsigned char* c, int* out, int w, int h) {
    __shared__ int s[128];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    s[t] = x < w && y < h ? c[y * w + x] : 0;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, s[0]);
}
"""


@pytest.mark.parametrize("sizes", [{"w": 33, "h": 9}, {"w": 16, "h": 64}, {"w": 1, "h": 1}])
@pytest.mark.parametrize(
    ("rule", "text", "bytes_each"),
    [
        (PrivateCounters(), IMAGE.replace("BODY", "atomicAdd(&out[c[y * w + x]], 1);"), 1),
        (BlockSum(), IMAGE.replace("BODY", "atomicAdd(out, c[y * w + x]);"), 1),
        (BlockSum(), TREE, 1),
        (
            BlockSum(),
            IMAGE.replace(
                "BODY",
                "int v = c[y * w + x]; atomicMin(&out[0], v - 90); atomicMax(&out[1], v + 1);",
            ),
            1,
        ),
        (
            PrivateCounters(),
            IMAGE.replace(
                "BODY",
                "for (int f = 0; f < 3; f++) atomicAdd(&out[256 * f + c[(y * w + x) * 3 + f]], 1);",
            ),
            3,
        ),
        (
            PrivateCounters(),
            IMAGE.replace(
                "BODY",
                "int p = (y * w + x) * 3; atomicAdd(&out[c[p]], 1);"
                "atomicAdd(&out[256 + c[p + 1]], 1); atomicAdd(&out[512 + c[p + 2]], 1);",
            ),
            3,
        ),
    ],
)
def test_images_are_counted_by_vectors_along_all_their_rows(
    rule: BlockSum | PrivateCounters, text: str, bytes_each: int, sizes: dict[str, int]
) -> None:
    first, *_ = made(asked(rule, text)[0])
    assert "uint4" in first.text
    assert "grid(min(cdiv(h * w, BLOCK * ITEMS)" in first.text
    arrays = {
        "c": Array("u1", (f"w * h * {bytes_each}",)),
        "out": Array("i4", ("800",), "zeros"),
    }
    assert end_of(text, first.text, arrays, sizes, sizes) == "same"


def test_operations_on_elements_that_may_be_one_stay_in_order() -> None:
    body = "atomicMin(&out[0], c[x]); atomicMax(&out[PLACE], c[y]);"
    for place, found in (("1", 2), ("0", 0), ("w", 0), ("x", 0)):
        ideas, _ = asked(BlockSum(), IMAGE.replace("BODY", body.replace("PLACE", place)))
        assert bool(ideas) == bool(found)
