"""Sums that a thread looks for in all rounds, by a thread for each round."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.enclosed import enclosed
from optiml_magic.kernels.primitives.one_block import one_block
from optiml_magic.kernels.primitives.scattered import scattered

from .running import same
from .shapes import applied, kernel

GROUPS = """\
#pragma optiml launch k grid(cdiv(g, 64)) block(64)
__global__ void k(const int* key, const float* x, const float* w, float* z, int n, int g) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= g) return;
    float s = 0.0f;
    int c = 0;
    for (int i = 0; i < n; ++i) {
        if (key[i] == j) { s += x[i]; c++; }
    }
    z[j] = s * 2.0f + c;
}
"""
COLUMNS = """\
#pragma optiml launch k grid(cdiv(d, 32), cdiv(g, 4)) block(32, 4)
__global__ void k(const int* key, const float* x, float* z, int n, int d, int g) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (j >= d || m >= g) return;
    float s = 0.0f;
    for (int i = 0; i < n; ++i) {
        if (key[i] != m) continue;
        s += x[i * d + j];
    }
    z[m * d + j] = s;
}
"""
TEST = "if (key[i] == j) { s += x[i]; c++; }"
INDEX = "int j = blockIdx.x * blockDim.x + threadIdx.x;"
SHAPES = {"key": ("i4", "n"), "x": ("n",), "w": ("n",), "z": ("g",)}


def made(text: str) -> Kernel | Refused:
    found = kernel(text)
    for step in (one_block, enclosed):
        after = step(found)
        found = after if isinstance(after, Kernel) else found
    return scattered(found, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (TEST, "if (j == key[i]) { s = s + x[i]; c += 2; }"),
        (TEST, "s += key[i] == j ? x[i] * w[i] : 0.0f; c += key[i] == j;"),
        (TEST, "if (key[i] == j && x[i] > 0.5f) { float v = x[i] * w[i]; s += v; c--; }"),
        (TEST, "if (x[i] > 0.5f && key[i] == j) { s -= x[i]; c -= 1; }"),
        (TEST, "if (key[i] == j) { if (w[j % n] > 0.0f) s += x[i]; c += key[i]; }"),
        (TEST, "int e = key[i]; if (e == j) { s += x[i] * (j + 1); c += i < e; }"),
        (TEST, "if (!(key[i] != j || x[i] < 0.0f)) { c++; s += w[i]; }"),
        (TEST, "if (key[i] / 2 == j) { s += x[i]; } if (key[i] / 2 == j) c++;"),
        (TEST, "if ((int)x[i] == j) { s += w[i]; c++; }"),
        ("float s = 0.0f;", "float s = 3.0f;"),
        ("int i = 0; i < n;", "char i = 0; i < n % 100;"),
        (INDEX, "unsigned j = threadIdx.x + blockIdx.x * blockDim.x;"),
        ("int c = 0;", "unsigned int c = 7;"),
        ("int c = 0;", "double c = 0.25;"),
        ("int c = 0;", "int c = 0; const float* from = x + (n - n);"),
        ("if (j >= g) return;", "if (j < g) {"),
        ("grid(cdiv(g, 64))", "grid(g)"),
        ("if (j >= g) return;", "if (j >= g || n < 3) return;"),
    ],
)
def test_a_round_adds_to_the_sum_of_its_key(old: str, new: str) -> None:
    text = GROUPS.replace(old, new) if old else GROUPS
    if new.endswith("{"):
        text = text.rstrip().removesuffix("}") + "} }\n"
    if "from" in new:
        text = text.replace("s += x[i]", "s += from[i]")
    if new == "grid(g)":
        text = text.replace("block(64)", "block(1)").replace(INDEX, "int j = blockIdx.x;")
    found = applied(made(text))
    assert [d.kernel for d in found.program.launches] == ["k_rounds", "k"]
    for n, g in (1, 1), (70, 3), (131, 17):
        same(text, found, SHAPES, {"n": n, "g": g}, rounds=True)


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i8", "u4"])
def test_keys_of_other_types_are_those_of_threads_that_there_are(kind: str) -> None:
    names = {"u1": "unsigned char", "i1": "signed char", "u2": "unsigned short",
             "i8": "long long", "u4": "unsigned int"}  # fmt: skip
    text = GROUPS.replace("const int* key", f"const {names[kind]}* key")
    if kind in ("i8", "u4"):
        text = GROUPS.replace("key[i] ==", f"({names[kind]})key[i] * 1073741824 ==")
    found = applied(made(text))
    shapes = SHAPES if kind in ("i8", "u4") else {**SHAPES, "key": (kind, "n")}
    same(text, found, shapes, {"n": 131, "g": 11}, rounds=True)


def test_the_columns_of_a_row_have_threads_as_well() -> None:
    found = applied(made(COLUMNS))
    shapes = {"key": ("i4", "n"), "x": ("n", "d"), "z": ("g", "d")}
    for n, d, g in (1, 1, 1), (67, 35, 5), (40, 3, 17):
        same(COLUMNS, found, shapes, {"n": n, "d": d, "g": g}, rounds=True)


def test_threads_of_one_block_have_their_place_in_it_as_a_key() -> None:
    text = GROUPS.replace("grid(cdiv(g, 64))", "grid(1)").replace(INDEX, "int j = threadIdx.x;")
    found = applied(made(text))
    same(text, found, SHAPES, {"n": 131, "g": 64}, rounds=True)


def test_the_launch_asks_that_there_are_rounds() -> None:
    text = applied(made(GROUPS)).program.text
    assert "#pragma optiml require n >= 1\n" in text, text


def test_extreme_values_reach_their_sums_alone() -> None:
    text = GROUPS.replace("key[i] ==", "i * 7 % 5 ==").replace("const int* key, ", "")
    text = text.replace("z[j] = s * 2.0f + c;", "z[j] = s == s ? s : 99.0f;")  # any NaN is one
    shapes = {name: shape for name, shape in SHAPES.items() if name != "key"}
    same(text, made(text), shapes, {"n": 131, "g": 17}, rounds=True, given="odd")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEST, "if (key[i] == j) s += x[i]; else c++;"),
        (TEST, "if (key[i] == j) s += x[i]; c++;"),
        (TEST, "if (key[i] >= j) { s += x[i]; c++; }"),
        (TEST, "if (key[i] == j) { s += x[i]; c++; } if (key[i] == j + 1) c++;"),
        (TEST, "if (key[i] == j) { s += x[i]; c++; break; }"),
        (TEST, "if (key[i] == j) { s += x[i]; z[j] = 1.0f; }"),
        (TEST, "if (key[i] == j) { s += x[i]; z[j] += 1.0f; }"),
        (TEST, "if (key[i] == j) { s += x[i] * s; c++; }"),
        (TEST, "if (key[i] == j) { s += c; c++; }"),
        (TEST, "if (key[i] == j && c < 3) { s += x[i]; c++; }"),
        (TEST, "if (key[i] == j) { s = fmaxf(s, x[i]); c++; }"),
        (TEST, "if (key[i] == j) { s = x[i]; c++; }"),
        (TEST, "if (key[i] == j) { s *= x[i]; c++; }"),
        (TEST, "if (key[i] == j) { c += x[i]; }"),
        (TEST, "if (key[i] == j) { s += x[i] * 0.1; }"),
        (TEST, "if (key[i] == j) { s += x[i] * (c = i); }"),
        (TEST, "if (key[i] + j == j) { s += x[i]; c++; }"),
        (TEST, "if (x[i] == j) { s += x[i]; c++; }"),
        (TEST, "if (j > 3 && key[i] == j) { s += x[i]; c++; }"),
        (TEST, "if (key[j] == j) { s += x[i]; c++; }"),
        (TEST, "if (key[c] == j) { s += x[i]; c++; }"),
        (TEST, "if (z[i % g] == 0.0f && key[i] == j) { s += x[i]; c++; }"),
        (TEST, "if (key[i] == j) { atomicAdd(&z[0], 1.0f); }"),
        (TEST, "s += (key[i] == j) * x[i]; c += key[i] == j;"),
        (TEST, "s += key[i] == j ? x[i] : 1.0f;"),
        ("int i = 0; i < n; ++i", "int i = 0; i < n && c < 4; ++i"),
        ("int i = 0; i < n; ++i", "int i = j; i < n; ++i"),
        ("int i = 0; i < n; ++i", "int i = 0; i < n - j; ++i"),
        ("int i = 0; i < n; ++i", "int i = 0; i < n; i += 2"),
        ("if (j >= g) return;", "if (j >= g || j < 2) return;"),
        ("if (j >= g) return;", "if (j >= g) return; j += 1;"),
        ("if (j >= g) return;", "if (j >= g) return; if (w[0] > 0.0f) z[j] = 1.0f, n--;"),
        (INDEX, "unsigned char j = blockIdx.x * blockDim.x + threadIdx.x;"),
        (INDEX, "float j = blockIdx.x * blockDim.x + threadIdx.x;"),
        (INDEX, "int j = threadIdx.x;"),
        ("int c = 0;", "long long c = 0;"),
        ("int c = 0;", "short c = 0;"),
        ("int c = 0;", "int c = 0; for (int r = 0; r < 2; ++r)"),
        ("const int* key", "const int* __restrict__ u, const volatile int* key"),
    ],
)  # fmt: skip
def test_what_another_thread_may_look_for_stays(old: str, new: str) -> None:
    found = made(GROUPS.replace(old, new))
    assert isinstance(found, Refused), found.program.text
