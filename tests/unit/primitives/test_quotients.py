"""Items whose number the kernel computes itself, as those of a pooled image."""

from __future__ import annotations

from optiml_magic.kernels.primitives.grids import form_of, needed

from .alike import kernel_of

POOL = """\
#pragma optiml launch pool grid(cdiv(c * (h / 2) * (w / 2), 256)) block(256)
__global__ void pool(const float* a, float* out, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int rows = h / 2, cols = w / 2;
    if (i >= c * rows * cols) return;
    int x = i % cols, y = i / cols;
    out[i] = fmaxf(a[2 * y * w + 2 * x], a[2 * y * w + 2 * x + 1]);
}
"""


def test_the_guard_and_the_launch_say_the_same_quotients() -> None:
    kernel = kernel_of(POOL)
    count = needed(kernel, "x", loads=True)
    assert str(count) == "c * (h / 2) * (w / 2)"
    assert count is not None
    assert form_of(count.tree) is None
    form = form_of(count.tree, kernel.reading.symbols)
    assert form is not None
    assert "c" in form.symbols
