"""Exact functions and divisions in their fast forms, and what has none."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.fast import fast, kinds_in
from optiml_magic.kernels.primitives.fast_kinds import KINDS
from optiml_magic.kernels.tree import expressions
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ float share(float v) { return 1.0f / (1.0f + expf(-v)); }
__global__ void k(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i] / b[i];
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a[i] / b[i]", "a[i] * fast_inverse(b[i])"),
        ("a[i] / 3.0f", "a[i] * (1.0f / 3.0f)"),
        ("(a[i] + b[i]) / n", "(a[i] + b[i]) * fast_inverse(n)"),
        ("a[i] / sqrtf(b[i] + 1.0f)", "a[i] * fast_rsqrt(b[i] + 1.0f)"),
        ("1.0f / sqrt(b[i])", "fast_rsqrt(b[i])"),
        ("expf(logf(b[i]) / a[i])", "fast_exp2(__logf(b[i]) * (1.44269504f * fast_inverse(a[i])))"),
        ("powf(a[i] - b[i], 2)", "(a[i] - b[i]) * (a[i] - b[i])"),
        ("powf(b[i], 3.0f)", "b[i] * b[i] * b[i]"),
        ("pow(expf(b[i]), 6.0f)", "whole_power<6>(fast_exp2(b[i] * 1.44269504f))"),
        ("powf(b[i], 1.5f)", "b[i] * sqrtf(b[i])"),
        ("pow((double)a[i], 2.0)", "(double)a[i] * (double)a[i]"),
        ("powf(a[i], b[i] / 3)", "fast_pow(a[i], b[i] * (1.0f / 3))"),
        ("pow(a[i], 0.75f)", "fast_pow(a[i], 0.75f)"),
        ("cosf(6.2831853f * a[i])", "cospif(2.0f * a[i])"),
        ("sinf(-2.0f * 3.14159265f * i / n)", "sinpif(-2.0f * i / n)"),
        ("cos(a[i] * (3.14159265f * 0.5f) * expf(b[i]))", "cospif(0.5f * a[i] * fast_exp2(b[i] * 1.44269504f))"),
        ("tanhf(a[i])", "1.0f - 2.0f * fast_inverse(1.0f + fast_exp2(a[i] * 2.88539008f))"),
        ("0.5f * (1.0f + tanh(a[i]))",
         "0.5f * (1.0f + (1.0f - 2.0f * fast_inverse(1.0f + fast_exp2(a[i] * 2.88539008f))))"),
    ],
)  # fmt: skip
def test_forms(old: str, new: str) -> None:
    after = written(fast(kernel_of(TEXT.replace("a[i] / b[i]", old)), KINDS))
    assert f"o[i] = {new};" in after


@pytest.mark.parametrize(
    ("power", "two"),
    [
        ("expf(-0.5f * a[i] * a[i])", "-0.72134752f * a[i] * a[i]"),
        ("expf(-(a[i] * a[i]) / (2 * b[0] * b[0]))",
         "-(a[i] * a[i]) * (1.44269504f * fast_inverse(2 * b[0] * b[0]))"),
        ("expf(-1.0f / b[i])", "-1.44269504f * fast_inverse(b[i])"),
        ("expf(a[i] / sqrtf(b[i]))", "a[i] * (1.44269504f * fast_rsqrt(b[i]))"),
        ("expf(-i / 4.0f)", "-i * 0.36067376f"),
        ("expf(a[i] * (i / 3))", "a[i] * (i / 3) * 1.44269504f"),
        ("expf(2 * i * b[i])", "2 * i * b[i] * 1.44269504f"),
        ("exp2f(a[i] * b[i])", "a[i] * b[i]"),
        ("exp10f(a[i])", "a[i] * 3.32192809f"),
        ("__expf(2 * a[i])", "2.88539008f * a[i]"),
        ("expf(3e30f * (a[i] - a[i]))", "3e30f * (a[i] - a[i]) * 1.44269504f"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", ["numbers", "odd"])
def test_exponentials(power: str, two: str, content: str) -> None:
    text = TEXT.replace("a[i] / b[i]", power)
    after = written(fast(kernel_of(text), KINDS))
    assert f"o[i] = fast_exp2({two});" in after
    arrays = {"a": Array("f4", ("n",), content), "b": Array("f4", ("n",), "positive"),
              "o": Array("f4", ("n",), "zeros")}  # fmt: skip
    assert end_of(text, after, arrays, {"n": 9}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize("angle", ["6.28f * a[i]", "a[i]", "6.2831853f", "6.2831853f + a[i]"])
def test_no_half_turns(angle: str) -> None:
    assert not kinds_in(kernel_of(TEXT.replace("a[i] / b[i]", f"cosf({angle})")))[2:]


def test_half_turns_are_right_and_constants_are_not_divided() -> None:
    text = TEXT.replace("a[i] / b[i]", "cosf(6.2831853f * a[i]) + sinf(3.14159265f * b[i] / 8)")
    after = written(fast(kernel_of(text), ("turns",)))
    assert "cosf(" not in after
    arrays = {name: Array("f4", ("n",)) for name in ("a", "b")} | {
        "o": Array("f4", ("n",), "zeros")
    }
    assert end_of(text, after, arrays, {"n": 99}, {"n": 5}, rounds=True) == "same"
    assert "divisions" not in kinds_in(kernel_of(TEXT.replace("a[i] / b[i]", "a[i] + 1.0f / 3.0f")
                                                 .replace("1.0f / (1.0f +", "(1.0f +")))  # fmt: skip


def test_what_it_computes_and_in_what_it_calls() -> None:
    text = TEXT.replace("a[i] / b[i]", "share(a[i]) / powf(b[i], 2) + tanhf(a[i])")
    text = text.replace("o[i] =", "{ float s = a[i]; s /= b[i]; o[i] = s +").replace("]);", "]); }")
    kernel = kernel_of(text)
    assert kinds_in(kernel) == ("functions", "tanh", "divisions", "powers")
    after = written(fast(kernel, KINDS))
    assert "return fast_inverse(1.0f + fast_exp2(v * -1.44269504f));" in after
    assert "s = s * fast_inverse(b[i]);" in after
    arrays = {"a": Array("f4", ("n",)), "b": Array("f4", ("n",), "positive"),
              "o": Array("f4", ("n",), "zeros")}  # fmt: skip
    assert end_of(text, after, arrays, {"n": 99}, {"n": 5}, rounds=True) == "same"


def test_powers_are_right_below_zero_too_and_stay_what_they_became() -> None:
    text = TEXT.replace("a[i] / b[i]", "powf(a[i], (float)(i % 5 - 2)) + powf(b[i], 0.3f)")
    after = written(fast(kernel_of(text), KINDS))
    arrays = {"a": Array("f4", ("n",)), "b": Array("f4", ("n",), "positive"),
              "o": Array("f4", ("n",), "zeros")}  # fmt: skip
    assert end_of(text, after, arrays, {"n": 99}, {"n": 5}, rounds=True) == "same"
    assert refused(fast(kernel_of(after), ("functions",))) == "nothing has a fast form"
    assert not kinds_in(kernel_of(TEXT.replace("a[i] / b[i]", "pow(a[i], 0.75)")))[1:]  # double


@pytest.mark.parametrize("power", [4, 5, 7, 12, 16])
def test_whole_powers_are_products(power: int) -> None:
    text = TEXT.replace("a[i] / b[i]", f"powf(a[i] + b[i], {power}.0f)")
    after = written(fast(kernel_of(text), ("powers",)))
    assert f"whole_power<{power}>(a[i] + b[i])" in after
    assert "powf" not in after
    arrays = {name: Array("f4", ("n",)) for name in ("a", "b")} | {
        "o": Array("f4", ("n",), "zeros")
    }
    assert end_of(text, after, arrays, {"n": 99}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a[i] * b[i] + b[i] * b[i] + 0.5f", "0.5f + a[i] * b[i] + b[i] * b[i]"),
        ("a[i] * b[i] - b[i] * b[i] - a[i]", "-a[i] + a[i] * b[i] - b[i] * b[i]"),
        ("a[i] * b[i] + a[i] * a[i] + i + 1.0f", "i + a[i] * b[i] + a[i] * a[i] + 1.0f"),
        ("a[i] * b[i] + a[i] * a[i] - 2", "-2 + a[i] * b[i] + a[i] * a[i]"),
        ("a[i] * (a[i] * b[i] + a[i] * a[i] + b[i])", "a[i] * (b[i] + a[i] * b[i] + a[i] * a[i])"),
        ("expf(a[i] * a[i] + b[i] * b[i] + 1.0f)",
         "fast_exp2((1.0f + a[i] * a[i] + b[i] * b[i]) * 1.44269504f)"),
    ],
)  # fmt: skip
def test_sums_of_products(old: str, new: str) -> None:
    text = TEXT.replace("a[i] / b[i]", old)
    after = written(fast(kernel_of(text), KINDS))
    assert f"o[i] = {new};" in after
    arrays = {name: Array("f4", ("n",)) for name in ("a", "b")} | {
        "o": Array("f4", ("n",), "zeros")
    }
    assert end_of(text, after, arrays, {"n": 9}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    "value",
    [
        "a[i] * b[i] + a[i]",  # one instruction already
        "a[i] + a[i] * b[i] + b[i] * b[i]",
        "a[i] * b[i] + b[i] * b[i] + 0.5",  # in double
        "a[i] * b[i] + b[i] * b[i] - (unsigned)n",  # whose negative is no number below zero
        "a[i] * b[i] + (b[i] + 1.0f)",
        "i * n + i * n + 3",
    ],
)
def test_other_sums_stay(value: str) -> None:
    assert "sums" not in kinds_in(kernel_of(TEXT.replace("a[i] / b[i]", value)))


@pytest.mark.parametrize("quotient", ["a[i] / b[i]", "1.0f / b[i]", "expf(a[i] / b[i])"])
def test_quotients_of_odd_numbers_are_what_they_were(quotient: str) -> None:
    text = TEXT.replace("a[i] / b[i]", quotient)
    after = written(fast(kernel_of(text), KINDS))
    arrays = {name: Array("f4", ("n",), "odd") for name in ("a", "b")} | {
        "o": Array("f4", ("n",), "zeros")
    }
    assert end_of(text, after, arrays, {"n": 99}, {"n": 5}, rounds=True) == "same"


def test_one_kind_alone() -> None:
    text = TEXT.replace("a[i] / b[i]", "expf(a[i]) / b[i]")
    assert "o[i] = fast_exp2(a[i] * 1.44269504f) / b[i];" in written(
        fast(kernel_of(text), ("functions",))
    )


@pytest.mark.parametrize(
    "value",
    [
        "a[i] / 4.0f",  # a product already
        "(double)a[i] / b[i]",
        "a[i] * (n / 3)",
        "sinf(a[i])",
        "powf(a[i], b[i])",  # right for a base below zero
        "powf(a[i]++, 2)",
        "powf(expf(a[i]), 17)",
        "powf(a[i] = 2.0f, 9)",
        "own(a[i])",
    ],
)
def test_refused(value: str) -> None:
    text = TEXT.replace("a[i] / b[i]", value).replace("1.0f / (1.0f + expf(-v))", "v")
    kernel = kernel_of(text)
    found = [k for k in kinds_in(kernel) if k != "functions"]
    assert not found
    assert "nothing has a fast form" in refused(fast(kernel, ("divisions", "powers", "tanh")))


@pytest.mark.parametrize(
    "value", ["a[i] / b[i]", "sqrtf(a[i] * b[i])", "expf(a[i])", "share(a[i])"]
)
def test_what_decides_a_whole_number_stays_exact(value: str) -> None:
    """Whoever asks: a rule that did not is told so as well."""
    text = TEXT.replace("float* o", "int* o").replace(
        "o[i] = a[i] / b[i]", f"o[i] = {value} > 0.5f"
    )
    found = refused(fast(kernel_of(text), KINDS))
    assert found == "a whole number that must be exact depends on its last bits, line 5"
    assert "fast_inverse" in written(fast(kernel_of(TEXT), KINDS))


def test_what_was_made_short_is_read_by_all_other_steps() -> None:
    """The instructions of the special function unit only compute."""
    text = TEXT.replace("a[i] / b[i]", "share(a[i] / b[i]) + rsqrtf(b[i])")
    kernel = kernel_of(text)
    after = fast(kernel, KINDS)
    assert isinstance(after, Kernel)
    without_warps(after)
    calls = [e for e in expressions(after.function.body) if isinstance(e, Call)]
    assert {c.function for c in calls} == {"share", "fast_inverse", "fast_rsqrt"}
    assert all(only_computes(after, call) for call in calls)


@pytest.mark.parametrize(
    "assembly",
    [
        'asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));',
        'asm("mov.u32 %0, %laneid;" : "=r"(n) : );',
    ],
)
def test_other_assembly_may_tell_which_threads_are_one_warp(assembly: str) -> None:
    text = TEXT.replace("if (i < n)", f"float r = 0.0f, x = 2.0f; {assembly} if (i < n)")
    with pytest.raises(NotLegal, match=r"one (?:warp|group)|not read"):
        without_warps(kernel_of(text))
