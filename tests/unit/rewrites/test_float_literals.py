"""Doubles that nobody asked for become floats, in a kernel and in what it calls."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.float_literals import FloatLiterals
from tests.ideas import asked

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ float half_of(float v) { return v * .5e0; }
__global__ void k(float* __restrict__ io, size_t n) {
    for (size_t t = threadIdx.x + blockIdx.x * blockDim.x; t < n; t += gridDim.x * blockDim.x) {
        const float z = io[t];
        io[t] = z < 0. ? 0.01 * z : 1 / (1.0 + ::exp(-z)) - half_of(z);
        io[t] *= 2.;
    }
}"""


def test_no_fp64_is_left(propose, compiles):
    (found,) = propose("float_literals", TEXT)
    assert ".f64" in compiles(TEXT)
    assert ".f64" not in compiles(found.text)
    assert found.prior == 0.6
    assert found.arithmetic == ("double constants to float",)
    assert found.title == "write .5e0, 0., 0.01 ... as float"


def test_a_double_that_somebody_wrote_is_a_choice_of_its_own(propose, compiles):
    text = TEXT.replace("io[t] *= 2.;", "").replace(".5e0", "0.5f")
    text = text[: text.index("z < 0.")] + "(float)((double)z * 2.0);\n    }\n}"
    ideas, refused = asked(FloatLiterals(), text)
    assert not refused
    assert [(idea.arithmetic, idea.prior) for idea in ideas] == [
        (("double temporaries to float",), 0.62)
    ]
    (found,) = propose("float_literals", text)
    assert "io[t] = (float)((float)z * 2.0f);" in found.text
    assert ".f64" not in compiles(found.text)
    both, _ = asked(FloatLiterals(), TEXT.replace("io[t] *= 2.;", "double s = 2.0;"))
    assert len(both) == 2


def test_a_function_of_the_text_may_be_named_after_double(propose, compiles):
    text = TEXT.replace("half_of", "half_of_double").replace("(float v)", "(double v)")
    text = text.replace("float half", "double half").replace("io[t] *= 2.;", "double s = io[t];")
    found = next(p for p in propose("float_literals", text) if "locals" in p.title)
    assert "float half_of_double(float v)" in found.text


def test_an_argument_that_is_double_stays():
    text = TEXT.replace("io, size_t n", "io, double by, size_t n").replace("0.01 * z", "by * z")
    text = text.replace("io[t] *= 2.;", "double s = by; io[t] *= s;")
    ideas, (refused,) = asked(FloatLiterals(), text)
    assert len(ideas) == 1
    assert refused.reason == "this line computes in double: an argument is double"
    assert refused.line == 8


def test_a_call_without_arguments_is_of_no_kind_that_is_known():
    text = TEXT.replace(
        "io[t] *= 2.;", "io[t] = std::min(io[t], std::numeric_limits<float>::max());"
    )
    ideas, _ = asked(FloatLiterals(), text)
    assert len(ideas) == 1


def test_sums_in_double_of_what_takes_long_there_are_worth_a_try() -> None:
    text = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double s = 0.0;
    for (int j = 0; j < n; j++) s += F(-0.5 * x[j]);
    y[i] = s;
}"""
    for function, prior in (("exp", 0.62), ("fabs", 0.35), ("sqrt", 0.62), ("", 0.35)):
        ideas, _ = asked(FloatLiterals(), text.replace("F", function))
        assert max(i.prior for i in ideas if "temporaries" in i.key) == prior
