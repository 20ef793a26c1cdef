"""What a newcomer gets wrong: the message names the line of the cell and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optiml_magic import Task
from optiml_magic.errors import BindingError, OptimlError, OracleError, SourceError
from optiml_magic.optimize import evaluate_once, prepared
from optiml_magic.settings import resolve
from tests.present import sampled

from .suite import TASKS


def edited(name: str, old: str, new: str) -> Task:
    """The task with a slip in its text."""
    text = TASKS[name].text
    assert old in text
    return replace(TASKS[name], kernel=text.replace(old, new, 1))


def given(name: str, key: str, change: Callable[[Any], Any] | None) -> Task:
    """The task with one input changed, or left out."""
    made = TASKS[name].inputs
    assert callable(made)
    inputs = dict(made(np.random.default_rng(0)))
    value = inputs.pop(key)
    return replace(TASKS[name], inputs=inputs | ({key: change(value)} if change else {}))


def answered(name: str, reference: Callable[..., Any]) -> Task:
    return replace(TASKS[name], reference=reference)


CLOSE = np.dtype([("focal", "f4"), ("centre", "f4", 2), ("width", "i4"), ("height", "i4")])
SCAN, SUM = "scans/hillis_steele", "reductions/two_pass_sum"
REFUSED: dict[str, tuple[Task, type[OptimlError], int | None, str, str]] = {
    "a float64 array": (
        given("basics/vector_add", "a", lambda a: a.astype(float)),
        BindingError, 14, "`a` holds float64, and the kernel's pointer is to float32", "pass np.asarray(a, np.float32)",
    ),
    "a list": (
        given("basics/vector_add", "a", lambda a: a.tolist()),
        BindingError, 14, "`a` is a list", "pass np.asarray(a, np.float32)",
    ),
    "an array left out": (
        given("basics/vector_add", "a", None),
        BindingError, 14, "no array named `a`", "define `a` as a float32 array",
    ),
    "a view": (
        given("images/blur_box", "in", lambda a: a[:, ::2]),
        BindingError, 3, "is not contiguous", "np.ascontiguousarray(in)",
    ),
    "a scalar left out": (
        given("basics/grid_stride", "shift", None),
        BindingError, None, "no value for the parameter `shift`", "define `shift`",
    ),
    "a misspelt pragma": (
        edited(SCAN, "#pragma optiml", "#pragma optim"),
        SourceError, 2, "unknown pragma `optim`", "did you mean `#pragma optiml`?",
    ),
    "a misspelt directive": (
        edited(SCAN, "launch", "lunch"),
        SourceError, 2, "unknown directive `lunch`", "did you mean `launch`?",
    ),
    "a misspelt clause": (
        edited(SCAN, "shared(", "shmem("),
        SourceError, 2, "unknown clause `shmem`", "did you mean `shared`?",
    ),
    "a clause in the plural": (
        edited(SCAN, "block(256)", "blocks(256)"),
        SourceError, 2, "unknown clause `blocks`", "did you mean `block`?",
    ),
    "a misspelt kernel": (
        edited(SCAN, "hillis_steele", "hilis_steele"),
        SourceError, 2, "there is no kernel `hilis_steele`", "did you mean `hillis_steele`?",
    ),
    "a bracket left open": (
        edited(SCAN, "cdiv(n, 256))", "cdiv(n, 256)"),
        SourceError, 2, "`(` is never closed", "grid(BLOCKS)",
    ),
    "a floating grid": (
        edited(SCAN, "cdiv(n, 256)", "n / 256.0"),
        SourceError, 2, "unexpected `.`", "cdiv(n, 256)",
    ),
    "a template argument left out": (
        edited("matrices/matmul_ragged", "<double, 8>", "<double>"),
        SourceError, 21, "`matmul_tiled` lacks its template argument `TILE`", "matmul_tiled<scalar_t, TILE>",
    ),
    "__global__ left out": (
        edited("basics/vec3_rotate", "__global__ void", "void"),
        SourceError, 31, "there is no kernel here", "`__global__ void name(...)`",
    ),
    "scratch left out": (
        edited(SUM, "#pragma optiml scratch partial float[cdiv(n, 512)]\n", ""),
        OracleError, None, "returned 1 array; the kernel writes partial, out", "#pragma optiml scratch NAME",
    ),
    "one answer of two": (
        answered("reductions/mean_variance", lambda x: x.mean(1)),
        OracleError, None, "returned 1 array; the kernel writes mean, variance", "one array for each output",
    ),
    "an answer of another shape": (
        answered("basics/grid_stride", lambda x: x[:5]),
        OracleError, None, "returns `x` of shape (5,), and the kernel's has (2000,)", "make it (2000,)",
    ),
    "another name in the reference": (
        answered("matrices/gemv_column", lambda M, x: M @ x),  # noqa: N803
        OracleError, None, "the reference asks for `M`", "A, x, rows, cols",
    ),
}  # fmt: skip

FAILED: dict[str, tuple[Task, int, str, str]] = {
    "a semicolon left out": (
        edited("matrices/thomas", "c_star[before]);", "c_star[before])"),
        13, 'expected a ";" at the end of this line', "",
    ),
    "an undefined name": (
        edited("sorting/merge_path", "begin - i;", "begin - ii;"),
        23, 'identifier "ii" is undefined', "",
    ),
    "a brace left open": (
        edited("basics/grid_stride", "+ shift;\n}", "+ shift;\n"),
        4, 'expected a "}"', "",
    ),
    "__device__ left out": (
        edited("basics/launch_bounds", "__device__ float newton", "float newton"),
        15, 'identifier "newton_cbrt" is undefined', "`newton_cbrt` (line 3): mark it __device__",
    ),
    "an unknown name in the grid": (
        edited(SCAN, "cdiv(n, 256)", "cdiv(N, 256)"),
        2, "unknown name `N` in `cdiv(N, 256)`", "use one of ",
    ),
    "a fraction for an int": (
        given("images/blur_box", "w", lambda w: w + 0.5),
        3, "`w` is the float 43.5", "pass int(w)",
    ),
    "a vector in a struct where NumPy puts it": (
        given("basics/struct_argument", "camera", lambda c: np.array(c.tolist(), CLOSE)[()]),
        8, "it has 24 bytes for the compiler, and 20 in the array", '"offsets": [0, 8, 16, 20], "itemsize": 24',
    ),
    "too large a block": (
        edited("images/convolution_2d", "block(20, 20)", "block(40, 40)"),
        9, "a block of 40 x 40 x 1 threads", "1024",
    ),
    "an element left out": (
        edited("basics/vector_add", "i < n)", "i < n - 1)"),
        0, "first c[3000]", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_slip_is_refused_with_its_line_and_its_fix(mistake: str) -> None:
    task, kind, line, message, fix = REFUSED[mistake]
    with pytest.raises(kind) as error:
        prepared(task, resolve())
    assert message in error.value.message
    assert fix in error.value.fix
    assert error.value.line == line
    assert max(map(len, str(error.value.quoting(task.text)).splitlines())) < 180


@pytest.mark.parametrize("mistake", sampled(FAILED, 8))
def test_a_slip_ends_in_a_verdict_on_its_line(mistake: str) -> None:
    task, line, message, fix = FAILED[mistake]
    verdict = evaluate_once(task, resolve()).evaluation.verdict
    assert not verdict.passed
    assert message in verdict.summary
    assert fix in verdict.fix
    assert verdict.line == line
