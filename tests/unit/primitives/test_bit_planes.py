"""Loops that count differences as planes of bits, and those that nearly do."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.bit_planes import bit_planes
from optiml_magic.kernels.primitives.blocked import block_outputs
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.tile_layout import Tile
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, unchanged, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const {0}* a, const {0}* b, int* out, int n, int m, int d) {{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;
    {1}
    out[i * m + j] = c;
}}
"""
SELF = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const int* a, int* out, int n, int d) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (%s) return;
    int c = 0;
    for (int k = 0; k < d; k++) if (a[i * d + k] != a[j * d + k]) c++;
    out[i * n + j] = c;
}
"""
SIZES = {"n": 37, "m": 70, "d": 97}, {"n": 3, "m": 5, "d": 64}
LETTERS = {"int": "i4", "unsigned int": "u4", "short": "i2", "unsigned short": "u2",
           "signed char": "i1", "unsigned char": "u1", "float": "f4", "double": "f8",
           "long long": "i8", "bool": "u1"}  # fmt: skip
ROUND = "int c = 0; for (int k = 0; k < d; k++) "
COUNTS = [
    (ROUND + "if (a[i*d+k] != b[j*d+k]) c++;"),
    (ROUND + "c += a[i*d+k] == b[j*d+k];"),
    (ROUND + "c += b[j*d+k] == a[i*d+k] ? 0 : 1;"),
    (ROUND + "c += (int)!(a[i*d+k] == b[j*d+k]);"),
    (ROUND + "{ if (a[i*d+k] == b[j*d+k]) continue; c++; }"),
    (ROUND + "{ const bool same = a[i*d+k] == b[j*d+k]; if (same) { c += 1; } }"),
    (ROUND + "{ long long x = a[i*d+k], y = b[j*d+k]; if (x != y) ++c; }"),
    (ROUND + "{ auto x = a[i*d+k]; auto y = b[j*d+k]; c += x != y; }"),
    (ROUND + "c += __ldg(&a[i*d+k]) != __ldg(b + j*d+k);"),
    (ROUND + "c += a[k*n+i] != b[k*m+j];"),
    (ROUND + "c += a[(n-1-i)*d+k] != b[j*d+k];"),
    "int c = d; for (int k = 0; k < d; k++) c -= a[i*d+k] != b[j*d+k];",
    "int c = 3; for (int k = 0; k < d; k++) if (a[i*d+k] == b[j*d+k]) --c;",
    "unsigned c = 0; for (int k = 0; k < d - 3; k++) c += a[i*d+k+1] != b[j*d+k+2];",
    "int c = 0, k = 5; for (int k = 0; k < d / 2; k++) c += a[i*d+k] != b[j*d+k]; c += k;",
    "long long c = 0; if (j > i) for (int k = 0; k < d; k++) c += a[i*d+k] != b[j*d+k];",
    "if (i <= j) return; int c = 0; for (int k = 0; k < d; k++) c += a[i*d+k] != b[j*d+k];",
    "int c = 0, e = 0; for (int k = 0; k < d; k++) e += a[i*d+k] != b[j*d+k]; c = e * 100 / d;",
    "int c = 0;\n#pragma unroll 4\nfor (int k = 0; k < d; k++) c += a[i*d+k] == b[j*d+k];",
    "int c = 0; for (int k = 0; k < d - 70; k++) if (a[i*d+k] == b[j*d+k]) c++;",
    ("int row = i, first = 1, left = 2, a_planes = 3, k_bits = 4, bits_found = 5, c = 0;"
    "for (int k = 0; k < d; k++) c += a[row*d+k] != b[j*d+k];"
    "c += first + left + a_planes + k_bits + bits_found;"),
]  # fmt: skip
CONTENTS = ("below d", "bits", "zeros")


def arrays(kind: str, content: str) -> dict[str, Array]:
    letter = LETTERS[kind]
    return {
        "a": Array(letter, ("n", "d"), content), "b": Array(letter, ("m", "d"), content),
        "out": Array("i4", ("n", "m"), "zeros"),
    }  # fmt: skip


def result(text: str, tile: Tile | None = None) -> Kernel | Refused:
    """The first loop as planes of bits, in tiles."""
    try:
        planes = bit_planes(kernel_of(text), 0)
    except NotLegal as reason:
        return Refused(reason.reason, reason.line)
    tile = tile or Tile(32, 32, 32, 4, 4)
    return block_outputs(planes.kernel, 0, tile, words=planes.words)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("body", COUNTS)
def test_differences_are_counted_by_words(body: str, content: str) -> None:
    text = TEXT.format("int", body)
    after = written(result(text))
    assert "__ballot_sync" in after
    assert "|= a_planes" in after.replace("a_planes_2", "a_planes")
    assert unchanged(text, after, arrays("int", content), *SIZES) == "same"


FUNCTIONS = [
    "__device__ bool f(int x, int y) { return x != y; }",
    (
        "__device__ int g(int x, const int y) { return x == y ? 0 : 1; }\n"
        "__device__ __forceinline__ int f(int x, int y) { return g(y, x); }"
    ),
]
OTHER_FUNCTIONS = [
    ("bool f(float x, int y) { return x != y; }", "elements that differ may be equal in a smaller type"),
    ("bool f(short x, int y) { return x != y; }", "elements that differ may be equal in a smaller type"),
    ("float f(int x, int y) { return x != y; }", "`c` is not a sum of its rounds"),
    ("bool f(int x, int y) { x &= 7; return x != y; }", "a round does more than to count a difference"),
    ("bool f(int x, int y) { return x++ != y; }", "it compares more than elements"),
    ("bool f(int x, int y) { return x != x; }", "it compares no row with a column"),
    ("bool f(int x, int y) { return x == y || f(y, x); }", "a round does more than to count a difference"),
    ("bool f(int x, int y) { return !f(y, x); }", "a round does more than to count a difference"),
    ("template <class T> bool f(T x, T y) { return x != y; }", "a round does more than to count a difference"),
]  # fmt: skip


@pytest.mark.parametrize("above", FUNCTIONS)
def test_functions_may_compare(above: str) -> None:
    text = f"{above}\n{TEXT.format('int', ROUND + 'c += f(a[i*d+k], b[j*d+k]);')}"
    assert end_of(text, written(result(text)), arrays("int", "few bits"), *SIZES) == "same"


@pytest.mark.parametrize(("function", "reason"), OTHER_FUNCTIONS)
def test_functions_that_do_more_stay(function: str, reason: str) -> None:
    template, _, rest = function.rpartition("> ")
    above = f"{template}> __device__ {rest}" if template else f"__device__ {function}"
    text = f"{above}\n{TEXT.format('int', ROUND + 'c += f(a[i*d+k], b[j*d+k]);')}"
    assert refused(result(text)).startswith(reason)


@pytest.mark.parametrize("kind", ["unsigned int", "short", "unsigned short", "signed char",
                                  "unsigned char"])  # fmt: skip
@pytest.mark.parametrize("content", CONTENTS)
def test_elements_have_one_byte_or_more(kind: str, content: str) -> None:
    text = TEXT.format(kind, COUNTS[0])
    assert end_of(text, written(result(text)), arrays(kind, content), *SIZES) == "same"


@pytest.mark.parametrize(
    "tile", [Tile(16, 32, 32, 4, 4), Tile(64, 64, 32, 8, 4), Tile(32, 32, 32, 2, 2)]
)
def test_other_tiles(tile: Tile) -> None:
    text = TEXT.format("int", COUNTS[1])
    after = written(result(text, tile))
    assert end_of(text, after, arrays("int", "few bits"), *SIZES) == "same"


def test_a_tile_of_bytes_may_have_few_rounds() -> None:
    text = TEXT.format("unsigned char", COUNTS[0])
    after = written(result(text, Tile(32, 32, 8, 4, 4)))
    assert end_of(text, after, arrays("unsigned char", "bits"), *SIZES) == "same"


@pytest.mark.parametrize("test", ["i >= n || j >= n", "i >= n || j >= i"])
def test_rows_that_are_columns_have_planes_once(test: str) -> None:
    text = SELF % test
    after = written(result(text))
    assert after.count("__ballot_sync") == 1
    given = {"a": Array("i4", ("n", "d"), "below n"), "out": Array("i4", ("n", "n"), "zeros")}
    assert end_of(text, after, given, {"n": 37, "d": 97}, {"n": 1, "d": 1}) == "same"


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("content", CONTENTS)
def test_blocks_may_share_whole_words(parts: int, content: str) -> None:
    text = TEXT.format("int", COUNTS[1])
    planes = bit_planes(kernel_of(text), 0)
    shared = chunk(planes.kernel, 0, parts, (1, 2, 3), planes.words.planes)
    assert isinstance(shared, Kernel)
    made = block_outputs(front(shared), 0, Tile(32, 32, 32, 4, 4), words=planes.words)
    sizes = {**SIZES[0], "d": 297}, {**SIZES[1], "d": 1}
    assert unchanged(text, written(made), arrays("int", content), *sizes) == "same"


def test_rows_without_an_element_do_not_differ() -> None:
    text = TEXT.format("int", "int c = 0; for (int k = 0; k < e; k++) c += a[i*d+k] == b[j*d+k];")
    text = text.replace("int d)", "int d, int e)")
    none = [{**sizes, "e": 0} for sizes in SIZES]
    assert end_of(text, written(result(text)), arrays("int", "bits"), *none) == "same"


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("float", COUNTS[0], "floats that are equal may have different bits, line 5"),
        ("double", COUNTS[0], "floats that are equal may have different bits, line 5"),
        ("long long", COUNTS[0], "what it compares are not whole numbers of 1, 2 or 4 bytes, line 5"),
        ("bool", COUNTS[0], "what it compares are not whole numbers of 1, 2 or 4 bytes, line 5"),
        ("int", ROUND + "c += a[i*d+k] < b[j*d+k];", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "if (a[i*d+k] != b[j*d+k]) c += 2;", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "if (a[i*d+k] != b[j*d+k]) c += k;", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "if (k % 3) if (a[i*d+k] != b[j*d+k]) c++;", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "{ c += a[i*d+k] != b[j*d+k]; if (k == 5) c += i; }", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "if (a[i*d+k] != b[j*d+k] && k > 1) c++;", "a round does more than to count a difference, line 5"),
        ("int", ROUND + "c += a[i*d+k] + 1 != b[j*d+k];", "it compares more than elements, line 5"),
        ("int", ROUND + "c += (char)a[i*d+k] != (char)b[j*d+k];", "elements that differ may be equal in a smaller type, line 5"),
        ("int", ROUND + "c += (float)a[i*d+k] != (float)b[j*d+k];", "elements that differ may be equal in a smaller type, line 5"),
        ("unsigned char", ROUND + "{ bool x = a[i*d+k], y = b[j*d+k]; c += x != y; }", "elements that differ may be equal in a smaller type, line 5"),
        ("signed char", ROUND + "{ unsigned char x = a[i*d+k]; int y = b[j*d+k]; c += x != y; }", "it compares numbers of two types, line 5"),
        ("int", ROUND + "{ long long x = a[i*d+k]; unsigned y = b[j*d+k]; c += x != y; }", "it compares numbers of two types, line 5"),
        ("int", "float c = 0; for (int k = 0; k < d; k++) c += a[i*d+k] != b[j*d+k];", "`c` is not a whole number of 4 bytes or more, line 5"),
        ("int", "int c = 0; for (int k = 1; k < d; k++) c += a[i*d+k] != b[j*d+k];", "the loop does not count from 0 by 1, line 5"),
        ("int", "int c = 0; for (int k = d - 1; k >= 0; k--) c += a[i*d+k] != b[j*d+k];", "the loop does not count from 0 by 1, line 5"),
        ("int", ROUND + "c += a[i*d+k] != out[j*d+k];", "it reads what it writes, line 6"),
        ("int", "if (i == j) return; " + COUNTS[0], "a guard ties rows to columns, line 5"),
        ("int", "if (a[i*d] == 3) return; " + COUNTS[0], "an index is not a sum of its parts, line 5"),
        ("int", ROUND.replace("k < d", "k < a[0]") + "c += a[i*d+k] != b[j*d+k];", "sizes alone do not say how many elements there are, line 5"),
        ("int", "int c = 0, e = 0; for (int k = 0; k < d; k++) if (a[i*d+k] != b[j*d+k]) c++; else e++; c += 3 * e;", "the loop does more than to count, line 5"),
        ("int", ROUND + "{ if (a[i*d+k] != b[j*d+k]) c++; if (c > 9) break; }", "the loop is not read, line 5"),
    ],
)  # fmt: skip
def test_others_stay(kind: str, body: str, reason: str) -> None:
    assert refused(result(TEXT.format(kind, body))) == reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "const int* a",
            "const volatile int* a",
            "`a` is not a plain array that the kernel is given",
        ),
        ("const int* b", "const unsigned int* b", "it compares numbers of two types"),
        ("int d)", "unsigned int d)", "`d` is not an `int`"),
        ("int n, ", "long long n, ", "`n` is not an `int`"),
    ],
)
def test_other_parameters_refuse(old: str, new: str, reason: str) -> None:
    text = TEXT.format("int", COUNTS[0]).replace(old, new)
    assert refused(result(text)) == f"{reason}, line 5"
