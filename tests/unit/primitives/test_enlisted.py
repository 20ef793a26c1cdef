"""Results in a local each, as elements of an array: the same steps in the same order."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.dispersed import item_a_thread
from optiml_magic.kernels.primitives.enlisted import enlisted
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(n / 32) block(16)
__global__ void k(const float* a, const float* b, float* o, int n, int m) {
    int c = blockIdx.x * 32 + threadIdx.x;
    float s0 = 0, s1 = 0;
    for (int i = 0; i < m; ++i) {
        s0 += a[i] * b[i * n + c];
        s1 += a[i] * b[i * n + c + 16];
    }
    o[c] = s0;
    o[c + 16] = s1;
}
"""
ARRAYS = {
    "a": Array("f4", ("m + 64",)),
    "b": Array("f4", ("m + 6", "n")),
    "o": Array("f4", ("3 * n + 64",)),
}
ADDED = "        s1 += a[i] * b[i * n + c + 16];\n"
STORED = "    o[c + 16] = s1;\n"
THREE = (
    ("s1 = 0", "s1 = 0, s2 = 0"),
    (ADDED, f"{ADDED}        s2 += a[i] * b[i * n + c + 32];\n"),
    (STORED, f"{STORED}    o[c + 32] = s2;\n"),
)
Changes = tuple[tuple[str, str], ...]
ALIKE: dict[str, Changes] = {
    "as it is": (),
    "declared apart": (("float s0 = 0, s1 = 0;", "float s0 = 0;\n    int d = c * 2;\n    float s1 = 0;"), ("b[i * n + c]", "b[i * n + d - c]")),
    "beside others": (("s1 = 0;", "x = 3.0f, s1 = 0;"), ("o[c] = s0", "o[c] = s0 * x"), ("+ 16] = s1", "+ 16] = s1 * x")),
    "begun later": (("s0 = 0, s1 = 0;", "s0, s1;\n    s0 = 1.5f;\n    s1 = 1.5f;"),),
    "spelled otherwise": (("i * n + c + 16", "16 + (c + i * n)"), ("o[c + 16]", "o[(int)(blockIdx.x * 32 + threadIdx.x) + 16]")),
    "three": THREE,
    "one after the other": (("    o[c] = s0;\n", "    s0 = sqrtf(fabsf(s0)) + s0;\n    s1 = sqrtf(fabsf(s1)) + s1;\n    o[c] = s0;\n"),),
    "added in memory": (("o[c] = s0", "o[c] += s0"), ("+ 16] = s1", "+ 16] += s1")),
    "one element": (("o[c + 16] = s1", "o[c] = s1"),),
    "from above": (("b[i * n + c]", "b[i * n + c + 16]"), ("c + 16];\n    }", "c];\n    }")),
    "doubles": (("float s0", "double s0"),),
    "in a branch": (("    for", "    if (n > 3) for"),),
    "memory that meets": (("o[c] = s0;", "o[3 * c + 1] = s0 + o[3 * c];"), ("o[c + 16] = s1;", "o[3 * c + 2] = s1 + o[3 * c + 1];")),
    "rows apart": (("o[c + 16]", "o[c + 2 * n]"), ("b[i * n + c + 16]", "b[(i + 3) * n + c]")),
    "rows apart, three": (
        *THREE[:2], ("o[c + 16]", "o[n * 1 + c]"), ("    o[n * 1 + c] = s1;\n", "    o[n * 1 + c] = s1;\n    o[c + 2 * n] = s2;\n"),
    ),
    "a name that is taken": (("int m)", "int m, int turn, int s0_all)"), ("o[c] = s0", "o[c] = s0 * turn + s0_all"), ("+ 16] = s1", "+ 16] = s1 * turn + s0_all")),
}  # fmt: skip
#: Statements that are alike but for something that an array of results would not keep.
OTHERS: dict[str, Changes] = {
    "one alone": ((", s1 = 0", ""), (ADDED, ""), (STORED, "")),
    "a step more": (("+ 16] = s1", "+ 16] = s1 * 2"),),
    "begun otherwise": (("s1 = 0", "s1 = 1"),),
    "of another type": (("float s0 = 0, s1 = 0;", "float s0 = 0; double s1 = 0;"),),
    "of data": (("s0 = 0, s1 = 0", "s0 = a[0], s1 = a[0]"),),
    "asked for elsewhere": ((STORED, f"{STORED}    if (s1 > 0) o[c + 48] = 1;\n"),),
    "in another order": (("o[c] = s0;\n    o[c + 16] = s1;", "o[c + 16] = s1;\n    o[c] = s0;"),),
    "something between": ((ADDED, f"        c += 0;\n{ADDED}"),),
    "a counter that moves": (("a[i] * b[i * n + c];", "a[i] * b[c++];"), ("b[i * n + c + 16]", "b[c++]")),
    "a counter by a comma": (("s0 += ", "c += 4, s0 += "), ("s1 += ", "c += 4, s1 += ")),
    "a counter that one moves": (("o[c] = s0", "o[c += 0] = s0"), ("o[c + 16] =", "o[c += 16] =")),
    "places of data": (("a[i] * b[i * n + c]", "b[(int)a[i]]"), ("a[i] * b[i * n + c + 16]", "b[(int)a[i] + 16]")),
    "no even steps": (*THREE[:2], (STORED, f"{STORED}    o[c + 40] = s2;\n")),
    "a sum of sizes": (("c + 16]", "c + 2 * (n - m)]"),),
    "a size that moves": (("c + 16]", "c + m]"), ("    for", "    if (m < 0) m = 1;\n    for")),
    "a size in another type": (("c + 16]", "c + m]"), ("int m", "unsigned m")),
    "a size of a local's name": (("c + 16]", "c + m]"), ("    o[c]", "    { int m = 3; if (m > c) o[c] = 0; }\n    o[c]")),
    "a size behind a pointer": (("o[c + 16]", "p[c + m]"), ("o[c]", "p[c]"), ("    int c", "    float* p = o + 1;\n    int c")),
    "a size in long numbers": (("o[c + 16]", "o[(size_t)c + m]"), ("o[c]", "o[(size_t)c]")),
    "an address": ((STORED, f"{STORED}    float* p = &s0;\n    o[c + 48] = *p;\n"),),
    "two arrays": (("a[i] * b[i * n + c + 16]", "a[i] * a[i * n + c + 16]"),),
    "another operation": (("s1 +=", "s1 -="),),
    "each other": (("s1 += a[i]", "s1 += s0"), ("s0 += a[i]", "s0 += s1")),
    "long indices": (("b[i * n + c + 16]", "b[(long long)i * n + c + 16]"),),
    "atomics": (("o[c] = s0", "atomicAdd(&o[c], s0)"), ("o[c + 16] = s1", "atomicAdd(&o[c + 16], s1)")),
    "more of one": ((ADDED, f"{ADDED}        s1 += 1.0f;\n"),),
    "constants": (("float s0 = 0, s1 = 0;", "const float s0 = 0, s1 = 0;"), ("s0 +=", "o[i] ="), ("s1 +=", "o[i] =")),
}  # fmt: skip


def _text(changes: Changes) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", ALIKE)
def test_results_are_elements_of_an_array(name: str) -> None:
    text = _text(ALIKE[name])
    after = written(enlisted(kernel_of(text)))
    assert "s1" not in after
    sizes = {"n": 64, "m": 5, "turn": 3, "s0_all": 2}
    sizes = {n: v for n, v in sizes.items() if n in "nm" or name == "a name that is taken"}
    assert end_of(text, after, ARRAYS, sizes, sizes | {"n": 32, "m": 0}) == "same"


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    assert refused(enlisted(kernel_of(_text(OTHERS[name]))))


PRODUCT = """\
#pragma optiml launch k grid(n / 32, m / 16) block(16, 16)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int p) {
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    float s0 = 0, s1 = 0;
    for (int i = 0; i < p; ++i) { s0 += a[r * p + i] * b[i * n + c]; s1 += a[r * p + i] * b[i * n + c + 16]; }
    o[r * n + c] = s0;
    o[r * n + c + 16] = s1;
}
"""  # fmt: skip
ROWS = (
    PRODUCT.replace("n / 32, m / 16", "n / 16, m / 32")
    .replace("y * 16", "y * 32").replace("x * 32", "x * 16")
    .replace("s1 += a[r * p + i] * b[i * n + c + 16]", "s1 += a[(r + 16) * p + i] * b[i * n + c]")
    .replace("o[r * n + c + 16]", "o[(r + 16) * n + c]")
)  # fmt: skip


@pytest.mark.parametrize("text", [PRODUCT, ROWS], ids=["columns", "rows"])
def test_each_result_has_a_thread_then(text: str) -> None:
    after = written(item_a_thread(kernel_of(text)))
    assert "s1" not in after
    arrays = {
        "a": Array("f4", ("m", "p")),
        "b": Array("f4", ("p", "n")),
        "o": Array("f4", ("m", "n")),
    }
    for m, n, p in ((32, 64, 5), (47, 79, 3), (64, 32, 0)):
        assert (
            end_of(text, after, arrays, {"m": m, "n": n, "p": p}, {"m": 32, "n": 32, "p": 1})
            == "same"
        )
