"""Locals that hide others get names of their own, and the kernel does what it did."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.unshadowed import unshadowed
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.source.program import parse_program
from tests.ideas import asked, made
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

HIDING = """\
#pragma optiml launch k grid(cdiv(n * m, 256)) block(256)
__global__ void k(const float* a, const float* x, float* out, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n * m) {
        int row = t / m, col = t % m;
        float s = 0.0f, t = s + 1.0f;
        for (int j = 0; j < m; ++j) {
            float s = a[row * m + j], n = s * 2.0f;
            t += s * x[j] + n;
        }
        for (int s = 0; s < 2; ++s) t += s;
        out[row * m + col] = a[row * m + col] - t + s;
    }
}
"""
ARRAYS = {
    "a": Array("f4", ("n", "m")), "x": Array("f4", ("m",)), "out": Array("f4", ("n", "m"), "zeros"),
}  # fmt: skip


def named(text: str) -> Kernel | Refused:
    (kernel,) = kernels(parse_program(text), None)
    return unshadowed(kernel)


def test_each_local_has_a_name_of_its_own() -> None:
    found = named(HIDING)
    assert isinstance(found, Kernel)
    text = found.program.text
    assert "float s = 0.0f, t_2 = s + 1.0f;" in text
    assert "float s_2 = a[row * m + j], n_2 = s_2 * 2.0f;" in text
    assert "t_2 += s_2 * x[j] + n_2;" in text
    assert "for (int s_3 = 0; s_3 < 2; ++s_3) t_2 += s_3;" in text
    assert end_of(HIDING, text, ARRAYS, {"n": 5, "m": 40}, {"n": 3, "m": 1}) == "same"
    assert isinstance(named(text), Refused)


def test_names_beside_each_other_hide_nothing() -> None:
    text = HIDING.replace("t = s + 1.0f", "u = s + 1.0f").replace("t +=", "u +=")
    text = text.replace(
        "float s = a[row * m + j], n = s * 2.0f;", "float v = a[row * m + j], n2 = v;"
    )
    text = text.replace("u += s * x[j] + n;", "u += v * x[j] + n2;").replace("- t + s", "- u + s")
    text = text.replace(
        "for (int s = 0; s < 2; ++s) u += s;", "for (int j = 0; j < 2; ++j) u += j;"
    )
    assert isinstance(named(text), Refused)


@pytest.mark.parametrize("at", [0, -1])
def test_rules_lift_what_hid_another(at: int) -> None:
    ideas, _ = asked(ShareLoads(), HIDING)
    after = made(ideas)[at].text
    assert end_of(HIDING, after, ARRAYS, {"n": 33, "m": 40}, {"n": 3, "m": 1}) == "same"


@pytest.mark.parametrize(
    "inner",
    [
        "{ int t = row; auto f = [e = t + 1](int k) { return e * k; }; s += f(3); }",
        '{ int t = row; asm("add.s32 %0, %0, 7;" : "+r"(t)); s += t; }',
        "{ int t = row; if (t > 2) goto done; s += t; done: s += t * 2; }",
    ],
)
def test_what_is_not_read_asks_for_a_local_by_its_name(inner: str) -> None:
    text = HIDING.replace("t = s + 1.0f", "u = s + 1.0f").replace("t +=", "u +=")
    text = text.replace("- t + s", f"- u + s; {inner}")
    assert isinstance(named(text), Refused)
