"""A map computed where the next launch asks for its elements."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.inlined import inlined
from optiml_magic.source.program import parse_program

from .running import same
from .shapes import applied, refused

CHAIN = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch one grid(cdiv(h * w, 32)) block(32)
#pragma optiml launch two grid(cdiv(h, 32)) block(32)
__global__ void one(const float* a, float* t, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) %s
}

__global__ void two(const float* t, const float* b, float* out, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    %s
}
"""
SHAPES = {"a": ("h", "w"), "b": ("h",), "out": ("h",)}
SUM = "float s = 0.0f;\nfor (int j = 0; j < w; j++) s += t[r * w + j];\nout[r] = s;"


def _first(text: str) -> Kernel:
    return kernels(parse_program(text), None)[0]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("t[i] = a[i] + 1.0f;", SUM),
        ("{ float s = a[i]; if (s < 0.0f) s = -s; t[i] = s; }", SUM),
        ("{ if (a[i] > 0.0f) t[i] = a[i]; else t[i] = 0.0f; }", SUM),
        ("t[i] = a[i] + a[i / w * w];", SUM.replace("t[r * w + j]", "t[r * w + j] * t[r * w + j]")),
        ("{ int& k = i; t[k] = a[k]; }", SUM),
        ("t[i] = a[i];", "float a = b[r];\nout[r] = a + t[r];"),
        ("t[i] = a[i];", "float r0 = t[r * w] + t[r * w + w - 1];\nout[r] = r0;"),
        ("t[i] = a[i];", "if (t[r] > 0.0f) { out[r] = t[r]; } else if (t[r * w] > 0.0f) out[r] = 1.0f; else out[r] = b[r];"),
        ("t[i] = a[i];", "__shared__ float v[32];\nv[threadIdx.x] = t[r];\nout[r] = v[threadIdx.x];"),
    ],
)  # fmt: skip
def test_an_element_is_computed_where_it_is_asked_for(one: str, two: str) -> None:
    text = CHAIN % (one, two)
    made = inlined(_first(text))
    program = applied(made).program
    assert "scratch" not in program.text
    assert len(program.launches) == 1
    same(text, made, SHAPES, {"h": 37, "w": 9})


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        ("t[i] = a[i];", SUM.replace("out[r] = s", "out[r] = s > 0 ? t[r] : s"), "only sometimes"),
        ("t[i] = a[i];", SUM.replace("s += t", "s += b[r] > 0 && t"), "only sometimes"),
        ("t[i] = a[i];", SUM.replace("j < w;", "j < w && t[j] > 0.0f;"), "in its head"),
        ("t[i] = a[i];", "int j = r; out[r] = t[j++] + t[j];", "may change before"),
        ("t[i] = a[i];", "const float* p = t; out[r] = p[r];", "not only read"),
        ("t[i] = a[i] * w;", "w = 1; out[r] = w + t[r];", "call something `w`"),
        ("t[h * w - 1 - i] = a[i];", SUM, "of its item's index"),
        (
            "{ if (a[i] > 0.0f) t[i] = a[i]; else { t[i] = 0.0f; t[i] += a[i]; } }",
            SUM,
            "more than one",
        ),
        ("t[i] = a[i] + b[i / w];", SUM, "written before it is read again"),
    ],
)
def test_refused(one: str, two: str, reason: str) -> None:
    text = CHAIN % (one, two)
    if "b[" in one:
        text = text.replace("one(const float* a", "one(const float* b, const float* a")
        text = text.replace("const float* b, float* out", "float* b, float* out").replace(
            "out[r] = s;", "b[r] = s;"
        )
    assert reason in refused(inlined(_first(text)))[0]


@pytest.mark.parametrize("count", ["h * w + 1", "size(a)"])
def test_more_of_the_array_than_is_stored_is_refused(count: str) -> None:
    text = (CHAIN % ("t[i] = a[i];", SUM)).replace("f4[h * w]", f"f4[{count}]")
    assert "not all of `t`" in refused(inlined(_first(text)))[0]


def test_an_output_is_refused() -> None:
    text = (CHAIN % ("t[i] = a[i];", SUM)).replace("#pragma optiml scratch t f4[h * w]\n", "")
    assert "asked for elsewhere" in refused(inlined(_first(text)))[0]


IN_PLACE = """\
#pragma optiml scratch t f4[h * w]
#pragma optiml launch zero grid(cdiv(h * w, 32)) block(32)
#pragma optiml launch one grid(cdiv(h * w, 32)) block(32)
#pragma optiml launch two grid(cdiv(h, 32)) block(32)
__global__ void zero(const float* a, float* t, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) t[i] = a[i];
}

__global__ void one(float* t, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) %s
}

__global__ void two(const float* t, float* out, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    %s
}
"""


@pytest.mark.parametrize(
    "one",
    [
        "t[i] = t[i] > 0.0f ? t[i] : 0.0f;",
        "{ float v = t[i]; v = v / (1.0f + fabsf(v)); t[i] = v; }",
        "{ float* p = t; t[i] = 2.0f * p[i]; }",
        "t[i] *= 2.0f;",
        "t[i] -= 0.5f;",
    ],
)
def test_an_element_that_is_changed_in_place_is_changed_as_it_is_asked_for(one: str) -> None:
    text = IN_PLACE % (one, SUM)
    made = inlined(kernels(parse_program(text), None)[1])
    program = applied(made).program
    assert [launch.kernel for launch in program.launches] == ["zero", "one_two"]
    same(text, made, {"a": ("h", "w"), "out": ("h",)}, {"h": 37, "w": 9})


@pytest.mark.parametrize(
    ("one", "two", "reason"),
    [
        ("t[i] = i > 0 ? t[i - 1] : 0.0f;", SUM, "what it stores elsewhere"),
        ("{ t[i] = t[i] + 1.0f; float again = t[i]; }", SUM, "what it stores elsewhere"),
        ("t[i] += 1.0f;", SUM + "\nt[r] = 0.0f;", "written before it is read again"),
    ],
)
def test_what_is_changed_in_place_is_refused(one: str, two: str, reason: str) -> None:
    text = (IN_PLACE % (one, two)).replace("two(const float* t", "two(float* t")
    assert reason in refused(inlined(kernels(parse_program(text), None)[1]))[0]


def test_what_is_changed_in_place_and_asked_for_behind_is_refused() -> None:
    more = "#pragma optiml launch three grid(1) block(1) args(t, more)\n"
    text = IN_PLACE % ("t[i] += 1.0f;", SUM)
    text = text.replace("__global__ void zero", more + "__global__ void zero")
    text += "__global__ void three(const float* t, float* more) { more[0] = t[0]; }\n"
    assert "asked for elsewhere" in refused(inlined(kernels(parse_program(text), None)[1]))[0]
