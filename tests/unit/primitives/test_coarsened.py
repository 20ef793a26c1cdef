"""Items of neighbouring elements, several a thread: what is made, and what is refused."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from tests.present import sampled
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of
from .running import same_of_many as same
from .shapes import applied, kernel, refused

MAP = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) %s
}
"""
SHAPES = {"a": ("4 * n + 1",), "b": ("n",), "out": ("4 * n",)}
ONE = Coarse(0, 2, 32)


@pytest.mark.parametrize(
    ("body", "vector"),
    [
        ("out[i] = a[i] + b[i];", "reinterpret_cast<const float4*>(&a[i_first])"),
        ("out[i] = a[4 * i] + a[4 * i + 3];", "&a[i_first * 4 + 12]"),
        ("{ out[2 * i] = a[i]; out[2 * i + 1] = b[i]; }", "float out_items[ITEMS * 8]"),
        ("{ if (b[i] > 1.0f) out[i] = a[i]; else out[i] = 2.0f * b[i]; }", "const float4*>(&b["),
        (
            (
                "{ float v = b[i]; if (v < 0.0f) out[i] = -v; else if (v < 1.0f && i > 5) "
                "out[i] = v; else out[i] = i > 9 ? a[i] : 3.0f; }"
            ),
            "float4*>(&out[i_first])",
        ),
        ("{ float v = a[i]; if (v < 0.0f) return; out[i] = b[i / 3]; }", ""),
        ("{ int& j = i; out[j] = a[j]; }", "&out[i_first]"),
        ("out[i] = a[i + 1];", "(size_t)&a[1] % 16 == 0"),
        ("out[i] = a[i] + a[i + 512];", "reinterpret_cast<const float4*>(&a[i_first + 512])"),
    ],
)
def test_elements_of_several_items_come_and_go_at_once(body: str, vector: str) -> None:
    text = MAP % body
    made = coarsen(kernel(text), ONE)
    if not vector:  # the store is not made for every item
        assert "`out`" in refused(made)[0]
        return
    assert vector in applied(made).program.text
    assert "grid(cdiv(n, BLOCK * ITEMS * 4)) block(BLOCK)" in applied(made).program.text
    same(text, made, SHAPES, {"n": 531})


def test_bytes_and_a_way_out_of_one_item() -> None:
    text = MAP.replace("float", "unsigned char") % (
        "{ out[i] = 7 + a[i]; if (b[i] > 9) return; out[i] = out[i] - b[i]; }"
    )
    made = coarsen(kernel(text), Coarse(0, 1, 32))
    assert "uint4" in applied(made).program.text
    assert "continue;" in applied(made).program.text
    same(text, made, {n: ("u1", *s) for n, s in SHAPES.items()}, {"n": 1100})


RECORDS = """\
struct Pixel { unsigned char r, g, b, a; };  // of four
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const Pixel* a, Pixel* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Pixel p = a[i], q;
    q.a = q.r = p.b;
    q.g = p.a > 9 ? p.g : 0;
    q.b = p.r;
    out[i] = q;
}
"""


@pytest.mark.parametrize("members", ["r, g, b, a", "r, g, b, a, m, s", "r, g, b, a, m, s, t"])
def test_whole_structures_come_and_go_as_vectors_of_their_bytes(members: str) -> None:
    text = RECORDS.replace("r, g, b, a;", f"{members};").replace("a[i], q", "a[i], q = p")
    made = coarsen(kernel(text), ONE)
    assert ") Pixel a_items[" in applied(made).program.text
    shape = ("u1", "n", str(members.count(",") + 1))
    same(text, made, {"a": shape, "out": shape}, {"n": 531})


@pytest.mark.parametrize(
    "members",
    [
        "unsigned char r, g, b, a; Pixel() {}", "unsigned char r = 1, g, b, a;",
        "unsigned char r : 8, g : 8, b : 8, a : 8;", "volatile unsigned char r, g, b, a;",
        "union { unsigned char r, g; }; unsigned char b, a;",
    ],
)  # fmt: skip
def test_structures_with_more_to_them_than_members_are_left(members: str) -> None:
    text = RECORDS.replace("unsigned char r, g, b, a;", members)
    assert "neighbouring elements alone" in refused(coarsen(kernel(text), ONE))[0]


def test_the_elements_of_one_item_are_a_vector_as_well() -> None:
    text = MAP % "{ out[2 * i] = a[i]; out[2 * i + 1] = b[i]; }"
    made = coarsen(kernel(text), Coarse(1, 1, 32))
    assert "float2*>(&out[i_first * 2])" in applied(made).program.text
    same(text, made, SHAPES, {"n": 101})


def test_a_byte_is_one_beside_elements_that_are_a_vector() -> None:
    text = MAP.replace("float* out", "unsigned char* out") % "out[i] = a[4 * i] > a[4 * i + 3];"
    made = coarsen(kernel(text), Coarse(1, 2, 32))
    assert "*reinterpret_cast<unsigned char*>(&out[i_first])" in applied(made).program.text
    same(text, made, SHAPES | {"out": ("u1", "n")}, {"n": 131})


@pytest.mark.parametrize("n", [512, 514, 522])
def test_a_quotient_of_sizes_is_part_of_where_vectors_begin(n: int) -> None:
    text = MAP.replace("cdiv(n,", "cdiv(n / 2,").replace("i < n", "i < n / 2")
    text %= "out[i] = a[i] + a[i + n / 2];"
    made = coarsen(kernel(text), ONE)
    assert "(size_t)&a[(n / 2)] % 16 == 0" in applied(made).program.text
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize("w", [16, 30])
def test_rows_hold_whole_vectors_or_none_is_taken(w: int) -> None:
    text = """\
#pragma optiml launch k grid(cdiv(h * w, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int h, int w) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * w) return;
    int row = i / w, col = i % w;
    out[i] = a[row * 2 * w + col] * a[row * 2 * w + w + col] + b[col];
}
"""
    made = coarsen(kernel(text), ONE)
    assert "w % 4 == 0" in applied(made).program.text
    same(text, made, {"a": ("h", "2 * w"), "b": ("w",), "out": ("h", "w")}, {"h": 35, "w": w})


@pytest.mark.parametrize("w", [3, 4, 9, 64])
@pytest.mark.parametrize("kind", ["int", "unsigned int"])
def test_an_index_is_taken_apart_once_a_vector(w: int, kind: str) -> None:
    text = f"""\
#pragma optiml launch k grid(cdiv(h * w, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int h, int w) {{
    {kind} i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * w) return;
    out[i] = a[i] * b[i / w] + (i % w) + (i / w == 3 ? (i + 1) % w : 0);
}}
"""
    made = coarsen(kernel(text), ONE)
    shown = applied(made).program.text
    assert "w >= 4" in shown
    assert "i_column + i_item >= w" in shown
    same(text, made, {"a": ("h", "w"), "b": ("h",), "out": ("h", "w")}, {"h": 1400 // w, "w": w})


def test_rows_of_a_plane_begin_where_they_do() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = 2.0f * a[y * w + x];
}
"""
    made = coarsen(kernel(text), ONE)
    assert "(size_t)&a[" in applied(made).program.text
    assert "if (y < h) {" in applied(made).program.text
    same(text, made, {"a": ("h", "w"), "out": ("h", "w")}, {"w": 67, "h": 9})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[i] = a[i] + a[i + 1];", "items share elements of `a`"),
        ("out[i] = a[i] + a[i + 510];", "items share elements of `a`"),
        ("if (b[i] > 0.0f) out[i] = a[i];", "`out` is stored for some items alone"),
        ("{ if (b[i] > 0.0f) out[i] = a[i]; if (b[i] <= 0.0f) out[i] = 1.0f; }", "stored for some"),
        ("{ out[i] = 0.0f; if (b[i] > 0.0f) out[i + n] = 1.0f; }", "stored for some items alone"),
        ("{ for (int j = 0; j < n; ++j) out[i] = a[i] * b[j]; }", "for some items alone"),
        ("out[i] = a[i] + (i > 0 ? a[i - 1] : 0.0f);", "items share elements of `a`"),
        ("for (int j = 0; j < n; ++j) out[i] += a[j * n + i];", "for some items alone"),
        ("out[i] = a[i] + threadIdx.x;", "more than its index"),
        ("{ out[i] = a[i]; __syncthreads(); }", "wait for each other"),
        ("out[i] = __shfl_xor_sync(~0u, a[i], 1);", "exchange"),
        ("out[i] = atomicAdd(&out[n], a[i]);", "atomic"),
        ("{ n = n - 1; out[i] = a[i]; }", "`n`"),
        ("for (int j = 0; j < 9; ++j) { if (b[j] > 1.0f) return; out[i] = a[i]; }", "left within"),
        ("out[5] = b[7];", "neighbouring"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(coarsen(kernel(MAP % body), ONE))[0]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("if (i < n) ", "", "how many items there are"),
        ("cdiv(n, 32)", "cdiv(n, 16)", "how many items there are"),
        ("if (i < n)", "float v = b[0]; if (v > 1.0f || i < n)", "how many items there are"),
        ("if (i < n)", "float v = 2.0f; v += 1.0f; if (i < n)", "for some items alone"),
    ],
)
def test_a_guard_that_does_not_bound_the_items_is_refused(old: str, new: str, reason: str) -> None:
    text = MAP % "out[i] = a[i];"
    assert reason in refused(coarsen(kernel(text.replace(old, new)), ONE))[0]


SOME = """\
#pragma optiml launch k grid(cdiv(w, 32), h) block(32)
__global__ void k(const float* a, const float* b, const float* c, float* out, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = blockIdx.y * w + i;
    if (i < w) out[at] = c[at] > 0.0f ? a[at] : (at & 1 ? b[2 * i] : b[2 * i + 1]);
}
"""


@pytest.mark.parametrize("w", [64, 131])
@pytest.mark.parametrize("h", ["h", "h + 1"])
def test_what_some_items_load_comes_by_vectors_where_sizes_say_that_it_is_there(
    w: int, h: str
) -> None:
    arrays = {
        "a": Array("f4", (h, "w")), "b": Array("f4", ("2 * w",)),
        "c": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    sizes, others = {"h": 3, "w": w}, {"h": 2, "w": w // 2}
    facts = Stand(Made("one", SOME, arrays, sizes, others)).facts(SOME)
    found = applied(coarsen(kernel_of(SOME, facts), ONE)).program.text
    assert {"float4*>(&a[", "float4*>(&b["} <= {*re.findall(r"float4\*>\(&\w\[", found)}
    assert "require size(a) >= size(c)" in found
    assert "require size(b) >= w * 2" in found
    assert end_of(SOME, found, arrays, sizes, others) == "same"


def test_what_some_items_load_stays_with_each_of_them_where_nobody_says_so() -> None:
    arrays = {
        "a": Array("f4", ("h", "w")), "b": Array("f4", ("w",)),
        "c": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    text = SOME.replace("at & 1 ? b[2 * i] : b[2 * i + 1]", "i < w / 2 ? b[2 * i] : b[0]")
    sizes, others = {"h": 3, "w": 64}, {"h": 2, "w": 30}
    facts = Stand(Made("one", text, arrays, sizes, others)).facts(text)
    found = applied(coarsen(kernel_of(text, facts), ONE)).program.text
    assert "&b[" not in found
    assert end_of(text, found, arrays, sizes, others) == "same"


GATHER = """\
#pragma optiml launch k grid(cdiv(n * w, 32)) block(32)
__global__ void k(const int* at, const float* table, float* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * w) return;
    int row = i / w, col = i % w;
    BODY
}
"""


@pytest.mark.parametrize("w", [16, 30])
def test_rows_that_memory_chooses_are_vectors_too(w: int) -> None:
    text = GATHER.replace("BODY", "out[i] = table[at[row] * w + col];")
    found = applied(coarsen(kernel(text), ONE)).program.text
    assert "&table[at[(i_first / w)] * w + i_first - (i_first / w) * w]" in found
    assert "w % 4 == 0" in found
    arrays = {
        "at": Array("i4", ("n",), "below n"),
        "table": Array("f4", ("n", "w")),
        "out": Array("f4", ("n", "w"), "zeros"),
    }
    assert end_of(text, found, arrays, {"n": 35, "w": w}, {"n": 3, "w": 5}) == "same"


ROWS = """\
#pragma optiml launch k grid(cdiv(w, 32), n) block(32)
__global__ void k(const int* at, const float* table, float* out, int n, int w) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (col < w) {
        BODY
    }
}
"""


@pytest.mark.parametrize("w", sampled([16, 30], 2))
@pytest.mark.parametrize(
    "chosen",
    ["q < 0 ? q + n : q", "q < 0 || q >= n ? n - 1 : q", "q < 0 ? (q < -n ? 0 : q + n) : q"],
)
def test_rows_counted_from_the_end_are_vectors_too(w: int, chosen: str) -> None:
    body = f"int q = at[row] - 2; int there = {chosen}; out[i] = table[there * w + col];"
    text = ROWS.replace("BODY", body.replace("[i]", "[row * w + col]"))
    found = applied(coarsen(kernel(text), ONE)).program.text
    assert "table_items" in found
    arrays = {
        "at": Array("i4", ("n",), "below n"),
        "table": Array("f4", ("n", "w")),
        "out": Array("f4", ("n", "w"), "zeros"),
    }
    assert end_of(text, found, arrays, {"n": 35, "w": w}, {"n": 3, "w": 5}) == "same"


def test_a_choice_by_a_number_that_is_not_whole_is_refused() -> None:
    body = "float f = table[row]; int q = f < 0.5f ? at[row] : 0; out[i] = table[q * w + col];"
    assert (
        "cannot be written anew" in refused(coarsen(kernel(GATHER.replace("BODY", body)), ONE))[0]
    )


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = table[at[row] + col];",
        "out[i] = table[at[i] * w + col];",
        "out[i] = table[at[row * w + col] * w];",
    ],
)
def test_elements_that_memory_chooses_are_none(body: str) -> None:
    made = coarsen(kernel(GATHER.replace("BODY", body)), ONE)
    assert "table_items" not in applied(made).program.text


def test_rows_whose_place_changes_are_refused() -> None:
    body = "out[i] = table[at[row] * w + col]; if (col == 0) at[row] = 0;"
    text = GATHER.replace("BODY", body).replace("const int* at", "int* at")
    assert "cannot be written anew" in refused(coarsen(kernel(text), ONE))[0]


PLANES = """\
#pragma optiml launch k grid(cdiv(n * w, 32)) block(32)
__global__ void k(const unsigned char* a, float* out, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * w) {
        const unsigned char* p = a + (size_t)i * 3;
        float* to = out + (size_t)(i / w) * 3 * w + i % w;
        BODY
    }
}
"""


@pytest.mark.parametrize("w", [16, 18])
def test_planes_that_nobody_reads_are_vectors_each(w: int) -> None:
    text = PLANES.replace("BODY", "to[0] = p[0]; to[w] = p[1]; to[2 * w] = p[2];")
    made = coarsen(kernel(text), ONE)
    assert applied(made).program.text.count("reinterpret_cast<float4*>") == 3
    sizes = {"n": 9, "w": w}
    same(text, made, {"a": ("u1", "n", "w", "3"), "out": ("n", "3", "w")}, sizes, {"ITEMS": 2})


@pytest.mark.parametrize(
    "body",
    [
        "to[0] = p[0]; to[w] = p[1]; to[0] += p[2];",
        "to[0] = p[0]; to[w] = to[0];",
        "to[0] = p[0]; to[w] = p[1]; to[0] = p[2];",  # one of them may be the other
    ],
)
def test_planes_that_are_read_or_mixed_are_not(body: str) -> None:
    made = coarsen(kernel(PLANES.replace("BODY", body)), ONE)
    assert "out_items_2" not in (made.program.text if hasattr(made, "program") else "")
