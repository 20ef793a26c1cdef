"""Functions of one byte as tables of all of its values."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import where_legal
from optiml_magic.kernels.primitives.looked_up import looked_up, lookups
from optiml_magic.kernels.primitives.single import each_value
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

TEXT = """\
__device__ int code(char c) {
    switch (c) { case 'A': return 0; case 'C': return 1; case 'G': return 2; default: return -1; }
}
__device__ float gamma(float v, float by) { return v > 0.5f ? powf(v, by) : v / 2.0f; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64) args(x, z, out, n, p)
__global__ void k(const char* x, const uchar3* z, float* out, int n, float p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = DOES;
}
"""
ARRAYS = {
    "x": Array("i1", ("n",), "bits"), "z": Array("u1", ("n * 3",), "bits"),
    "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip


def text_of(does: str) -> str:
    return TEXT.replace("DOES", does)


@pytest.mark.parametrize(
    ("does", "tables"),
    [
        ("code(x[i])", 1),
        ("code(x[i]) * 4 + code(x[n - 1 - i])", 1),
        ("gamma(z[i].x / 255.0f, 2.0f) + gamma(z[i].y / 255.0f, 2.0f)", 1),
        ("gamma(z[i].x / 255.0f, 2.0f) + code(x[i])", 2),
        ("gamma(z[i].z / 255.0f, n / 300.0f)", 1),
        ("powf(fabsf((float)x[i]), 3.0f) * n", 1),
    ],
)
def test_they_are_looked_up(does: str, tables: int) -> None:
    text = text_of(does).replace(", p)", ")", 1).replace(", float p", "")
    made = written(looked_up(kernel_of(text)))
    assert made.count("threadIdx.x] =") == tables
    assert end_of(text, made, ARRAYS, {"n": 300}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    "does",
    [
        "x[i] * 2.0f", "code(x[i] + i)", "gamma(out[i], 2.0f)", "gamma(x[i] * out[i], 2.0f)",
        "powf(x[i] + x[n - 1 - i], 2.0f)", "code(threadIdx.x)",
    ],
)  # fmt: skip
def test_others_stay(does: str) -> None:
    assert not lookups(kernel_of(text_of(does)))


@pytest.mark.parametrize("steps", [6, 60])
def test_what_locals_stand_for_is_not_written_out_without_end(steps: int) -> None:
    """Each asks for the one before it three times."""
    chain = "".join(
        f"    float v{at + 1} = v{at} > 0.{at}f ? v{at} / 2.0f : powf(v{at}, 2.2f);\n"
        for at in range(steps)
    )
    text = text_of(f"v{steps}").replace(
        "    out[", f"    float v0 = z[i].x / 255.0f;\n{chain}    out["
    )
    text = text.replace(", p)", ")", 1).replace(", float p", "")
    made = written(looked_up(kernel_of(text)))
    assert "threadIdx.x] =" in made
    assert end_of(text, made, ARRAYS, {"n": 300}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    "own",
    [
        "__device__ int seen; __device__ int f(char c) { seen = c; return c > 3 ? c < 9 ? 1 : 2 : c == 7 ? 3 : 4; }",
        "__device__ int f(char c) { int v = 0; while (v < c) v += 3; return v > 3 ? v < 9 ? 1 : 2 : 4; }",
        "__device__ int f(char c) { return c > 3 ? clock() : c < 1 ? 2 : c == 2 ? 3 : 4; }",
        "__device__ int f(char c) { return threadIdx.x > 3 ? 1 : c < 1 ? 2 : c == 2 ? 3 : 4; }",
    ],
)
def test_functions_that_do_more_stay(own: str) -> None:
    assert not lookups(kernel_of(own + "\n" + text_of("f(x[i])")))


def test_a_launch_of_several_rounds_stays() -> None:
    assert "rounds" in refused(
        looked_up(kernel_of(text_of("code(x[i])").replace("args(", "repeat(3) args(", 1)))
    )


STEPS = """\
__device__ float gamma(float v, float by) { return v > 0.5f ? powf(v, by) : v / 2.0f; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const unsigned char* x, const int* lut, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    STEPS
}
"""
MORE = ARRAYS | {"x": Array("u1", ("n",)), "lut": Array("i4", ("300",))}


@pytest.mark.parametrize(
    "steps",
    [
        "float v = x[i] / 255.0f; out[i] = powf(v, 2.2f);",
        "int v = x[i]; float f = v / 255.0; out[i] = powf(f, 2.2f) * v;",
        "unsigned char v = x[i]; out[i] = gamma(v / 255.0f, 1.5f);",
        "float v = x[i] / 255.0f; v = powf(v, 2.2f); out[i] = v * 255 + 0.5;",
        "for (int j = i; j < n; j += 7) { float v = x[j] / 255.0f; out[i] = powf(v, 2.2f) + j; }",
        "long long v = lut[x[i]] - lut[3], all = m; out[i] = v * 255 / (all - lut[3] + 4);",
        "int b = x[i]; out[i] = (long long)lut[b] * 3 / (m + 1);",
        "short v = x[i] * 129; out[i] = powf(v / 32767.0f + 2.0f, 2.2f);",  # beyond a short
    ],
)
def test_what_locals_stand_for_and_tables_are_looked_up(steps: str) -> None:
    before = STEPS.replace("STEPS", steps)
    made = written(looked_up(where_legal(each_value, kernel_of(before))))
    assert made.count("threadIdx.x] =") == 1
    assert ("size(lut) >= 256" in made) == ("lut" in steps)
    large, small = {"n": 300, "m": 7}, {"n": 5, "m": 1}
    assert end_of(before, made, MORE, large, small, rounds=True) == "same"


@pytest.mark.parametrize(
    "steps",
    [
        "float v = x[i] / 255.0f; if (m) v = 2.0f; out[i] = powf(v, 2.2f);",
        "int j = i; float v = x[j] / 255.0f; j++; out[j] = powf(v, 2.2f) + x[j] + j * (v = 0);",
        "float v = out[i] / 255.0f; out[i] = powf(v, 2.2f);",
        "long long v = lut[x[i] + 1]; out[i] = v * 3 / (m + 1);",
        "long long v = lut[i]; out[i] = v * x[i] / (m + 1);",
        "int v = x[i]; float* p = out; out[i] = (long long)v * i / (m + 1);",
        "volatile int v = x[i]; out[i] = (long long)v / (m + 1);",
        "signed char v = x[i]; out[i] = (long long)lut[v + 200] / (m + 1);",
        "float v = x[i] / 255.0f; for (int i = 0; i < 3; i++) out[0] += powf(v, 2.2f) * i;",
        "unsigned char b = x[i]; float v = b / 255.0f; { int b = 3; out[i] = powf(v, 2.2f) + b; }",
        "int v = m ? x[i] : 7; out[i] = powf(v, 2.2f);",
        "out[i] = powf(m ? x[i] : 7, 2.2f);",
        "out[i] = m == 1 ? x[i] + 1 : m == 2 ? x[i] * 2 : m == 3 ? x[i] * 3 : 0;",
        "typedef float T; T v = x[i]; out[i] = powf(v, 2.2f);",
        "out[i] = powf(x[atomicAdd((int*)out, 1)], 2.2f);",
    ],
)
def test_what_may_change_or_lie_beyond_stays(steps: str) -> None:
    assert not lookups(where_legal(each_value, kernel_of(STEPS.replace("STEPS", steps))))


def test_functions_that_may_not_end_stay() -> None:
    own = "__device__ int f(unsigned char c) { int s = 0; for (int k = 1; k < 100; k *= c) s++; return s + (c > 1 ? 2 : c > 0 ? 1 : 0); }"
    assert not lookups(
        kernel_of(f"{own}\n{STEPS}".replace("STEPS", "if (x[i] > 1) out[i] = f(x[i]);"))
    )


def test_nothing_stands_behind_a_default() -> None:
    text = STEPS.replace("int m)", "int m = 3)").replace("STEPS", "out[i] = powf(x[i] + m, 2.0f);")
    assert "default value" in refused(looked_up(kernel_of(text)))


def test_a_table_or_a_byte_that_the_kernel_stores_stays() -> None:
    text = STEPS.replace("const unsigned char*", "unsigned char*").replace("const int*", "int*")
    for steps in (
        "int v = x[i]; x[i] = 0; out[i] = powf(v / 255.0f, 2.2f);",
        "int v = x[i]; lut[i % 9] = 0; out[i] = (long long)lut[v] / (m + 1);",
    ):
        assert not lookups(kernel_of(text.replace("STEPS", steps)))


def test_scratch_that_is_large_enough_is_not_asked_about() -> None:
    text = STEPS.replace("STEPS", "out[i] = (long long)lut[x[i]] * 3 / (m + 1);")
    for count, asked in (("256", False), ("300", False), ("255", True), ("n", True)):
        made = looked_up(kernel_of(f"#pragma optiml scratch lut i4[{count}]\n{text}"))
        assert ("size(lut)" in written(made)) == asked
