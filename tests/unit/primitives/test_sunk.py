"""What both ways of a test store to one place is stored once behind them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.sunk import sunk

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "if (a[i] > 0.5f) o[i] = a[i]; else o[i] = 2.0f;",
        "if (a[i] > 0.5f) { float c = a[i]; o[i] = c * c; } else { o[i] = 2.0f; }",
        "if (a[i] > 0.5f) o[i] = 1; else if (a[i] > 0.0f) o[i] = 2.5; else o[i] = a[i];",
        "if (a[i] > 0.5f) { o[i] = a[i]; return; } float c = a[i] + 1.0f; o[i] = c;",
        "for (int k = 0; k < 2; ++k) { if (k > 0) o[i] = a[i]; else o[i] = -a[i]; }",
    ],
)
def test_a_test_chooses_what_is_stored(body: str) -> None:
    text = TEXT % body
    made = sunk(kernel(text))
    assert applied(made).program.text.count("o[i] = ") == 1
    same(text, made, {"a": ("n",), "o": ("n",)}, {"n": 100})


@pytest.mark.parametrize(
    "body",
    [
        "if (a[i] > 0.5f) o[i] = a[i];",
        "if (a[i] > 0.5f) o[i] = a[i]; else o[n - 1 - i] = 2.0f;",
        "if (a[i] > 0.5f) o[i] = a[i]; else o[i] += 2.0f;",
        "int j = i; if (a[i] > 0.5f) { j = n - 1 - i; o[j] = a[i]; } else o[i] = 2.0f;",
        "for (int k = 0; k < 2; ++k) { if (a[i] > 0.5f) { if (k > 0) break; o[i] = k; } else o[i] = 1; }",
    ],
)
def test_refused(body: str) -> None:
    assert "no test chooses" in refused(sunk(kernel(TEXT % body)))[0]
