"""What scalars alone decide, computed once."""

from __future__ import annotations

from optiml_magic.kernels.primitives.steady import steadied
from optiml_magic.proposers.rewrites.float_literals import FloatLiterals
from tests.ideas import asked, made

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, float b, int d) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        float s = a[i];
        %s
        out[i] = s;
    }
}
"""
ONE = {"a": ("n",), "out": ("n",)}


def test_functions_and_quotients_of_scalars_stand_at_the_beginning() -> None:
    text = (
        LINE
        % "s *= 1.0f / sqrtf(d);\n        s += 2.0f / d + expf((float)d) * s - 1.0f / sqrtf(d);"
    )
    text = text.replace(", float b", "")
    made = steadied(kernel(text))
    shown = applied(made).program.text
    assert "const float factor = 1.0f / sqrtf(d);\n" in shown
    assert "s *= factor;" in shown
    assert "s += factor_2 + factor_3 * s - factor;" in shown
    assert "expf((float)d)" in shown.partition("int i")[0]
    same(text, made, ONE, {"n": 70, "d": 3})


def test_what_was_lifted_is_taken_further_once_it_is_float() -> None:
    text = LINE % "s *= 1.0 / sqrtf(d);"
    first = applied(steadied(kernel(text))).program.text
    assert "const float factor = sqrtf(d);" in first
    assert "1.0 / factor" in first
    (one,) = made(asked(FloatLiterals(), first)[0])
    assert "const float factor_2 = 1.0f / factor;" in one.text
    assert "s *= factor_2;" in one.text
    assert "nothing" not in one.title


def test_what_changes_or_is_a_threads_own_stays() -> None:
    for body in (
        "b += 1.0f;\n        s += sqrtf(b);",
        "s += sqrtf(a[i]) / s;",
        "s += b + 2.0f * d;",
    ):
        reason = refused(steadied(kernel(LINE % body)))[0]
        assert reason == "no function or quotient is one of scalars alone"
