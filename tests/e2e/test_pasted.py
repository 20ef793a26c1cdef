"""Cells as people paste them, in a real IPython shell: whole files, and kernels without a note."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import OptimlError

SETUP = """\
import numpy as np
rng = np.random.default_rng(0)
"""
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def checked(shell: InteractiveShell, body: str, given: str = "", line: str = "check") -> Any:
    """What a cell gives after the Python line ``given``, or its error."""
    with capture_output():
        assert shell.run_cell(given).success
        outcome = shell.run_cell(f"%%optiml {line}\n{body}")
    if outcome.error_in_exec is not None:
        raise outcome.error_in_exec
    assert outcome.error_before_exec is None
    return outcome.result


def test_an_output_gets_the_shape_that_its_stores_tell(shell: InteractiveShell) -> None:
    body = (
        "__global__ void mirror(const float* a, float* out, int rows, int cols) {\n"
        "    int col = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    int row = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (row < rows && col < cols) out[col * rows + row] = a[row * cols + col];\n}\n"
    )
    given = "rows, cols = 33, 47; a = rng.random((rows, cols), dtype=np.float32)"
    found = checked(shell, body, given)
    assert found.passed, found
    assert "`out` has rows * cols elements, by its stores" in repr(found)


def test_an_output_with_a_border_has_no_shape_of_its_own(shell: InteractiveShell) -> None:
    body = (
        "__global__ void step(const float* a, float* out, int n) {\n"
        f"    {INDEX}\n    if (i > 0 && i < n - 1) out[i] = a[i - 1] + a[i + 1];\n}}\n"
    )
    with pytest.raises(OptimlError, match="the shape of the output `out` is not known"):
        checked(shell, body, "n = 100; a = rng.random(n, dtype=np.float32)")
