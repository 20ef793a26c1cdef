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


def test_a_double_that_somebody_wrote_is_a_wish():
    text = TEXT.replace("io[t] *= 2.;", "")
    text = text[: text.index("z < 0.")] + "(double)z * 2.0;\n    }\n}"
    ideas, (refused,) = asked(FloatLiterals(), text.replace(".5e0", "0.5f"))
    assert not ideas
    assert (refused.reason, refused.line) == (
        "a declaration or a cast says double, which is taken for a wish", 7,
    )  # fmt: skip
    assert asked(FloatLiterals(), TEXT.replace("io[t] *= 2.;", "double s = 2.0;"))[0]
