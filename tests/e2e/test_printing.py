"""printf of a kernel reaches the user, once, also when the kernel fails."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.errors import KernelFailed
from optiml_magic.model.task import Task
from optiml_magic.optimize import run_once
from optiml_magic.settings import resolve

KERNEL = """\
#include <cstdio>
#include <cassert>
#pragma optiml launch speak grid(2) block(64)
__global__ void speak(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 50 == 0) printf("x[%d] = %.1f\\n", i, x[i]);
    assert(x[i] >= 0);
    if (i > 3) out[i] = x[i];
}
"""


def task(x: np.ndarray) -> Task:
    return Task(kernel=KERNEL, reference=lambda x: x, inputs={"x": x, "n": x.size})


def test_output_is_shown_once(capsys):
    with pytest.warns(UserWarning, match="left 4 of 128"):  # asked for by a second run
        run_once(task(np.arange(128, dtype=np.float32)), resolve({"device": "emulated"}))
    assert capsys.readouterr().out == (
        "printed by the kernel:\n  | x[0] = 0.0\n  | x[50] = 50.0\n  | x[100] = 100.0\n"
    )


def test_an_assertion_names_its_text_and_line(capsys):
    x = np.arange(128, dtype=np.float32)
    x[70] = -1
    with pytest.raises(KernelFailed, match="x\\[i\\] >= 0") as caught:
        run_once(task(x), resolve({"device": "emulated"}))
    assert caught.value.line == 7
    assert "x[50] = 50.0\n" in capsys.readouterr().out
