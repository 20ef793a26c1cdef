"""Loops that go on to a thread's next item at the end of a round."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.headed import headed
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

STRIDED = """\
#pragma optiml launch k grid(3) block(64)
__global__ void k(const float* a, float* out, int n) {
    %s
}
"""
SHAPES = {"a": ("n",), "out": ("n",)}
FIRST = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
NEXT = "i += blockDim.x * gridDim.x;"


@pytest.mark.parametrize(
    "body",
    sampled([
        f"{FIRST} while (i < n) {{ out[i] = a[i] + 1; {NEXT} }}",
        f"{FIRST} float s = a[0]; while (i < n) {{ if (a[i] > s) out[i] = s; {NEXT} }}",
        f"int d = 2, t = threadIdx.x, i = t + blockIdx.x * 64, e = 3; while (i < n) {{ out[i] = d + e; {NEXT} }}",
        f"{FIRST} for (; i < n; {NEXT[:-1]}) {{ if (a[i] < 0) continue; out[i] = a[i]; }}",
        f"for (int r = 0; r < 2; ++r) {{ {FIRST} while (i < n) {{ out[i] = a[i] + r; i = i + 192; }} }}",
    ], 3),
)  # fmt: skip
def test_the_counter_moves_in_the_head(body: str) -> None:
    text = STRIDED % body
    made = headed(kernel(text))
    assert "while" not in applied(made).program.text
    assert "for (;" not in applied(made).program.text
    for n in (1, 70, 500):
        same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    [
        f"{FIRST} while (i < n) {{ out[i] = a[i]; {NEXT} }} if (i == n) out[0] = 1;",
        f"{FIRST} while (i < n) {{ if (a[i] < 0) {{ {NEXT} continue; }} out[i] = a[i]; {NEXT} }}",
        f"{FIRST} while (i < n) {{ {NEXT} if (i < n) out[i] = a[i]; }}",
        f"{FIRST} int j = i; while (i < n) {{ out[i] = a[j]; {NEXT} }}",
        "int k = threadIdx.x, i = k; k = 0; while (i < n) { out[i] = a[k]; i += 192; }",
        f"{FIRST} i *= 2; while (i < n) {{ out[i] = a[i]; {NEXT} }}",
        f"{FIRST} while (i < n) {{ out[i] = a[i]; i++; }}",
        "int i = 0; while (i < n) { out[i] = a[i]; i += 2; }",
    ],
)
def test_refused(body: str) -> None:
    assert "no loop goes on" in refused(headed(kernel(STRIDED % body)))[0]
