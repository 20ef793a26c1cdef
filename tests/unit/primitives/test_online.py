"""Passes over the same keys for a maximum and for sums around it, as one pass."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.online import online
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#define D 4
#define N 64
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const float* v, float* out, float* more, int n, int w, float c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
"""
#: The scores are found anew in each pass, and a pass is made for each element.
ANEW = """\
    float m = -1e30f;
    for (int j = 0; j < w; j++) m = fmaxf(m, x[i * w + j]);
    BEFORE
    float l = 0.0f;
    for (int j = 0; j < w; j++) l += expf(x[i * w + j] - m);
    BETWEEN
    for (int d = 0; d < D; d++) {
        float acc = 0.0f;
        for (int j = 0; j < w; j++) acc += expf(x[i * w + j] - m) * v[j * D + d];
        out[i * D + d] = acc / l;
    }
    AFTER
}
"""
#: They are kept, and become weights there.
KEPT = """\
    float s[N], m = -INFINITY, l = 0.0f, acc[D];
    for (int d = 0; d < D; d++) acc[d] = 0.0f;
    for (int j = 0; j < w; j++) { float t = x[i * w + j] * 0.5f; s[j] = t; m = fmaxf(m, t); }
    for (int j = 0; j < w; j++) { s[j] = expf(s[j] - m); l += s[j]; }
    BETWEEN
    for (int j = 0; j < w; j++) {
        float p = s[j] / l;
        for (int d = 0; d < D; d++) acc[d] += p * v[j * D + d];
    }
    for (int d = 0; d < D; d++) out[i * D + d] = acc[d];
    AFTER
}
"""
#: A score is a sum itself.
SUMS = """\
    float q[D], m = -1e30f, l = 0.0f;
    for (int d = 0; d < D; d++) q[d] = x[i * D + d];
    for (int j = 0; j < w; j++) {
        float t = 0.0f;
        for (int d = 0; d < D; d++) t += q[d] * v[j * D + d];
        m = fmaxf(m, t);
    }
    BETWEEN
    for (int j = 0; j < w; j++) {
        float u = 0.0f;
        for (int d = 0; d < D; d++) u += q[d] * v[j * D + d];
        l += expf(u - m);
    }
    out[i] = l;
}
"""
SCORE = "x[i * w + j]"
#: Weights are divided at the end, in their array.
DIVIDED = KEPT.replace("float p = s[j] / l;", "float p = s[j];").replace(
    "    for (int d = 0; d < D; d++) out[i * D + d] = acc[d];",
    "    for (int d = 0; d < D; d++) acc[d] /= l;\n"
    "    for (int d = 0; d < D; d++) out[i * D + d] = acc[d] * 2.0f;",
)


def text_of(body: str, *changes: str) -> str:
    text = HEAD + body
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    for name in ("BEFORE", "BETWEEN", "AFTER"):
        text = text.replace(f"    {name}\n", "")
    return text


def ends(before: str, after: str, c: float = 0.5) -> str:
    arrays = {
        "x": Array("f4", ("n * 64",)), "v": Array("f4", ("64 * 4",)),
        "out": Array("f4", ("n * 4",), "zeros"), "more": Array("f4", ("n * 4",), "zeros"),
    }  # fmt: skip
    sizes, small = {"n": 37, "w": 13}, {"n": 3, "w": 1}
    return end_of(before, after, arrays, sizes, small, rounds=True, c=c)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (ANEW, ()),
        (ANEW, ("AFTER", "more[i] = m + logf(l);")),
        (ANEW, ("m = fmaxf(m, x[i * w + j])", "if (x[i * w + j] > m) m = x[i * w + j]")),
        (ANEW, ("m = fmaxf(m, x[i * w + j])", "m = m < x[i * w + j] ? x[i * w + j] : m")),
        (ANEW, ("expf(x[i * w + j] - m)", "exp2f((x[i * w + j] - m) * 1.44f)")),
        (ANEW, ("BETWEEN", "float inv = 1.0f / l;", "acc / l", "acc * inv")),
        (ANEW, ("BETWEEN", "float z = l * 0.5f;", "acc += expf", "acc += z * expf")),
        (ANEW, ("-1e30f", "-INFINITY", SCORE, "(j < i % 8 ? -INFINITY : x[i * w + j])")),
        (ANEW, ("-1e30f", "-INFINITY", SCORE, "(i < 9 ? -INFINITY : x[i * w + j])")),
        (ANEW, ("-1e30f", "0.0f", "j < w", "j <= i")),
        (ANEW, ("acc += expf", "acc += (j / 2) * expf")),
        (KEPT, ()),
        (KEPT, ("s[j] = expf(s[j] - m);", "s[j] -= m; s[j] = expf(s[j]);")),
        (KEPT, ("BETWEEN", "for (int j = 0; j < w; j++) s[j] /= l;", "s[j] / l", "s[j]")),
        (KEPT, (SCORE, "(i < 9 ? -INFINITY : x[i * w + j])")),
        (SUMS, ()),
    ],
)
def test_passes_are_one(body: str, changes: tuple[str, ...]) -> None:
    before = text_of(body, *changes)
    after = written(online(kernel_of(before)))
    assert after.count("j < w") + after.count("j <= i") == 1
    assert "m_next" in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    ("body", "changes", "reason"),
    [
        (ANEW, ("l = 0.0f", "l = 1.0f"), "does not begin with nothing"),
        (ANEW, ("acc = 0.0f", "acc = l"), "does not begin with nothing"),
        (ANEW, ("acc / l;", "acc / l; m = m * 0.5f;"), "changes what another one asks for"),
        (ANEW, ("acc / l;", "acc / l; l = l * 0.5f;"), "changes what another one asks for"),
        (ANEW, ("float acc", "float q = d; float acc", "acc += e", "acc += q * e"), "by more than"),
        (ANEW, ("BEFORE", "float& r = m;", "BETWEEN", "r = 2.0f;"), "address leads"),
        (ANEW, ("BETWEEN", "m = m + 1.0f;"), "known behind a pass"),
        (ANEW, ("BETWEEN", "if (l > 2.0f) return;"), "ends between its passes"),
        (ANEW, ("float l", "int l"), "not a sum of floats"),
        (ANEW, ("acc +=", "acc -="), "not summed up"),
        (ANEW, ("const float* x", "float* x", "BEFORE", "x[i * w] = 4.0f;"), "what it writes"),
        (ANEW, ("expf(x[i * w + j] - m)", "(int)expf(x[i * w + j] - m)"), "not a sum of floats"),
        (KEPT, ("int d = 0; d < D; d++) acc[d] = 0.0f", "int d = 1; d < D; d++) acc[d] = 0.0f"),
         "goes through"),
        (KEPT, ("acc[d];", "acc[d] + s[d];"), "goes through"),
        (KEPT, ("l += s[j];", "l += s[0];"), "goes through"),
        (KEPT, ("acc[d] += p", "acc[D - 1 - d] += p"), "do more than to sum up"),
        (SUMS, ("BETWEEN", "q[0] = 2.0f;"), "what a key is computed by changes"),
        (SUMS, ("BETWEEN", "float* p = q; p[1] = 2.0f;"), "what a key is computed by changes"),
    ],
)  # fmt: skip
def test_passes_stay(body: str, changes: tuple[str, ...], reason: str) -> None:
    text = text_of(body, *changes)
    found = refused(online(kernel_of(text)))
    assert reason in found or "goes through" in reason


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (ANEW, ("m = fmaxf(m, x[i * w + j]);", "if (v[j] > 0) m = fmaxf(m, x[i * w + j]);")),
        (ANEW, ("fmaxf(m", "fminf(m")),
        (ANEW, ("m = fmaxf(m,", "m = fmaxf(fabsf(m),")),
        (ANEW, ("expf(x[i * w + j] - m)", "expf((int)(x[i * w + j] - m))")),
        (ANEW, ("expf(x[i * w + j] - m)", "expf((x[i * w + j] - m) * c)")),
        (ANEW, ("-1e30f", "-INFINITY", "AFTER", "more[i] = l;")),
        (ANEW, ("-1e30f", "-INFINITY", "AFTER", "more[i] = m;")),
        (ANEW, ("-1e30f", "-INFINITY", "acc / l", "acc")),
        (ANEW, ("-1e30f", "-INFINITY", "acc / l", "acc / (l + 1e-6f)")),
        (ANEW, ("-1e30f", "x[i]")),
        (ANEW, ("float m", "int u = w; float m", "j < w", "j < u", "BEFORE", "u = u / 2 + 1;")),
        (ANEW, ("l += expf(x[i * w + j] - m)", "l += expf(x[i * w + j] - m) + 1.0f")),
        (ANEW, ("l += expf(x[i * w + j] - m)", "l += 1.0f / expf(x[i * w + j] - m)")),
        (ANEW, ("l += expf(x[i * w + j] - m)", "l += expf(x[i * w + j] - m - 1.0f)")),
        (ANEW, ("l += expf(x[i * w + j] - m)", "l += exp2f(x[i * w + j] - m)")),
        (ANEW, ("l += expf(x[i * w + j] - m)", "{ int p = expf(x[i * w + j] - m); l += p; }")),
        (KEPT, ("s[j] = t;", "s[j] = t * 2.0f;")),
        (KEPT, ("float s[N], m", "int s[N]; float m")),
        (SUMS, ("u += q[d]", "u += 2.0f * q[d]")),
    ],
)
def test_what_is_no_pass_like_that_has_no_maximum_in_one(
    body: str, changes: tuple[str, ...]
) -> None:
    """The sums behind a maximum may be one pass, and nothing else is."""
    before = text_of(body, *changes)
    found = online(kernel_of(before))
    if isinstance(found, Kernel):
        after = written(found)
        assert "m_next" not in after
        assert ends(before, after, -0.5) == "same"


OTHERS = ["j = 1; j < w; j++) l", "j = 0; j < w - 1; j++) l", "unsigned j = 0; j < w; j++) l"]


@pytest.mark.parametrize("other", OTHERS)
def test_a_loop_over_other_keys_stays_as_it_is(other: str) -> None:
    old = "int j = 0; j < w; j++) l" if "unsigned" in other else "j = 0; j < w; j++) l"
    before = text_of(ANEW, old, other)
    after = written(online(kernel_of(before)))
    assert other in after
    assert ends(before, after) == "same"


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("", "", True),
        ("acc[d] /= l;", "acc[d] *= 1.0f / l;", False),  # not seen to be one
        ("d < D; d++) acc[d] /= l;", "d < 3; d++) acc[d] /= l;", False),
        ("acc[d] /= l;", "acc[d] /= c;", False),
        ("BETWEEN", "", True),
        ("    for (int d = 0; d < D; d++) acc[d] /= l;",
         "    more[i] = acc[0];\n    for (int d = 0; d < D; d++) acc[d] /= l;", False),
    ],
)  # fmt: skip
def test_a_row_that_is_divided_where_it_is(old: str, new: str, fits: bool) -> None:
    text = text_of(DIVIDED.replace(old, new) if old else DIVIDED)
    found = online(kernel_of(text))
    assert isinstance(found, Kernel) == fits, found
    if isinstance(found, Kernel):
        arrays = {"x": Array("f4", ("n", "w")), "v": Array("f4", ("w", "4")),
                  "out": Array("f4", ("n", "4"), "zeros"), "more": Array("f4", ("n",), "zeros")}  # fmt: skip
        sizes, others = {"n": 37, "w": 11}, {"n": 2, "w": 1}
        assert end_of(text, written(found), arrays, sizes, others, rounds=True, c=0.5) == "same"


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ("const float* r = v + j * D; ", True),
        ("const float* r = v + j * D; ++r; --r; ", False),
        ("const float* r = v; r += j * D; ", False),
        ("const float* r = v + (int)(l * 0.0f) + j * D; ", False),  # which is known behind a pass
    ],
)
def test_a_key_has_its_row_by_a_pointer(row: str, fits: bool) -> None:
    body = ANEW.replace(
        "acc += expf(x[i * w + j] - m) * v[j * D + d];",
        f"{{ {row}acc += expf(x[i * w + j] - m) * r[d]; }}",
    )
    text = text_of(body)
    found = online(kernel_of(text))
    assert isinstance(found, Kernel) == fits, found
    if isinstance(found, Kernel):
        arrays = {"x": Array("f4", ("n", "w")), "v": Array("f4", ("w", "4")),
                  "out": Array("f4", ("n", "4"), "zeros"), "more": Array("f4", ("n",), "zeros")}  # fmt: skip
        sizes, others = {"n": 37, "w": 11}, {"n": 2, "w": 1}
        assert end_of(text, written(found), arrays, sizes, others, rounds=True, c=0.5) == "same"
