"""Rounds that all elements of a row make alike, made once for all of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.shared_rounds import shared_rounds
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define D 4
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const float* v, float* out, float* more, int n, int w, int u) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BEFORE
    for (int d = 0; d < D; d++) {
        float acc = 0.0f, l = 0.0f;
        for (int j = 0; j < w; j++) {
            float p = x[i * 8 + j] * 2.0f;
            l += p;
            STEP
        }
        LAST
        out[i * D + d] = acc / (l + 0.5f);
    }
    AFTER
}
"""
STEP = "acc += p * v[j * D + d];"
EMPTY = {"BEFORE": "", "STEP": STEP, "LAST": "", "AFTER": ""}


def text_of(changes: dict[str, str]) -> str:
    text = TEXT
    for old, new in {**EMPTY, **changes}.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"STEP": "float q = v[j * D + d]; acc += p * q;"},
        {"STEP": "float q = v[j * D + d]; p = p + 1.0f; acc += p * q;"},
        {"STEP": "if (p > 1.0f) { float q = v[j * D + d]; l += 1.0f; acc += q; }"},
        {"STEP": "if (p > 1.0f) { acc += d; l += 1.0f; } else { acc -= d; l -= 1.0f; }"},
        {"STEP": "{ l += 1.0f; acc += d * p; }"},
        {"STEP": "l += 1.0f, acc += d;"},
        {"STEP": "if (v[j * D + d] > 1.0f) " + STEP},
        {"STEP": "if (d > 1) l += p; " + STEP},
        {"STEP": "if (p > 4.0f) { acc += d; break; } " + STEP},
        {"STEP": "if (p > 4.0f) continue; " + STEP},
        {"STEP": "for (int e = 0; e < d; e++) acc += p * v[e];"},
        {"STEP": "acc += p * q; q = v[j * D + d];", "float acc": "float q = 1.0f; float acc"},
        {"STEP": "acc += p * q;", "float acc": "const float q = d * 2.0f; float acc"},
        {"STEP": "const float* r = v + j * D; acc += p * r[d];"},
        {"BEFORE": "float acc = 7.0f; more[i] = acc;"},
        {"LAST": "for (int j = 0; j < w; j++) acc += x[i * 8 + j] * d;"},
        {"LAST": "more[i * D + d] = l; if (acc > 0)"},
        {"LAST": "more[i] = l;"},
        {"for (int j = 0; j < w; j++) {": "int j = -1; while (++j < w) {"},
    ],
)
def test_rounds_are_made_once(changes: dict[str, str]) -> None:
    before = text_of(changes)
    after = written(shared_rounds(kernel_of(before), 0))
    assert "acc_row[4];" in after
    arrays = {"x": Array("f4", ("n * 16",)), "v": Array("f4", ("64",)),
              "out": Array("f4", ("n * 8",)), "more": Array("f4", ("n * 8",))}  # fmt: skip
    sizes, small = {"n": 37, "w": 7, "u": 3}, {"n": 3, "w": 1, "u": 1}
    assert end_of(before, after, arrays, sizes, small) == "same"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"BEFORE": "float l = 0.0f;", ", l = 0.0f": ""}, "from element to element"),
        ({"BEFORE": "float z = 0.0f;", "LAST": "z += 1.0f;", "AFTER": "more[i] = z;"},
         "from element to element"),
        ({"BEFORE": "float z = 0.0f;", "acc = 0.0f": "acc = z", "LAST": "z = acc;"},
         "from element to element"),
        ({"STEP": STEP + " u += 1;"}, "from element to element"),
        ({"BEFORE": "float z[2] = {1.0f, 2.0f};", "LAST": "z[0] += 1.0f;"},
         "from element to element"),
        ({"float acc": "float z[2] = {1.0f}; float acc", "STEP": "z[d % 2] += p;" + STEP},
         "keeps an array"),
        ({"STEP": "float* q = &acc; *q += p * d;"}, "an address leads"),
        ({"STEP": STEP + " more[i] += p;"}, "more than one value"),
        ({"STEP": STEP + " more[i] = p;"}, "more than one value"),
        ({"LAST": "atomicAdd(&more[i], 1.0f);"}, "more than one value"),
        ({"* 2.0f;": "* out[i * D];"}, "more than one value"),
        ({"LAST": "out[i * D] = l;"}, "more than one value"),
        ({"STEP": "{ int d = 3; acc += d; } " + STEP}, "hides another one, `d`"),
        ({"BEFORE": "float l = 7.0f; more[i] = l;"}, "hides another one, `l`"),
        ({"STEP": "if (v[j * D + d] > 2.0f) break; " + STEP}, "leaves a round"),
        ({"STEP": "if (v[j] * d > 2.0f) continue; " + STEP}, "leaves a round"),
        ({"LAST": "if (u == 3) continue;"}, "ends before its rounds"),
        ({"LAST": "if (d == 2) return;"}, "small number"),
        ({"d < D; d++": "d < w; d++"}, "small number"),
        ({"float acc": "const float* r = v + d; float acc", "STEP": "acc += p * r[j * D];"},
         "not a plain local"),
        ({"j < w": "j < d + 2"}, "share no rounds"),
    ],
)  # fmt: skip
def test_other_rounds_stay(changes: dict[str, str], reason: str) -> None:
    assert reason in refused(shared_rounds(kernel_of(text_of(changes)), 0))
