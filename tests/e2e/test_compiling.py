"""Options and headers from the notebook and the command line down to the machine code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import KernelFailed, OptimlError, SourceError, UsageError
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, optimize, run_once
from optiml_magic.settings import resolve
from tests.e2e.test_cli import optiml
from tests.present import NVCC, SOAK, sampled

needs_nvcc = pytest.mark.skipif(not NVCC, reason="no nvcc with a host compiler on this machine")
SETUP = """\
import numpy as np
n = 3000
x = np.random.default_rng(0).random(n, dtype=np.float32)
def scaled(x): return 3 * x
"""
UTIL = "__device__ inline float scale(float v) { return 3.0f * v; }\n"
KERNEL = """\
#include "util.cuh"
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scale(x[i]);
}
"""
TILED = """\
#pragma optiml launch k grid(cdiv(n, TILE)) block(TILE)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * TILE + threadIdx.x;
    if (i < n) out[i] = FACTOR * x[i];
}
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("OPTIML_DEVICE", "emulated:h200")
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, line: str, body: str) -> Any:
    with capture_output():
        outcome = shell.run_cell(f"%%optiml {line}\n{body}")
    if outcome.error_in_exec is not None:
        raise outcome.error_in_exec
    assert outcome.error_before_exec is None
    return outcome.result


def task(**given: Any) -> Task:
    x = np.random.default_rng(0).random(3000, dtype=np.float32)
    values: dict[str, Any] = {"reference": lambda x: 3 * x, "inputs": {"x": x, "n": 3000}}
    return Task(**{**values, **given})


def test_a_header_cell_serves_every_command_and_can_be_replaced(shell: InteractiveShell) -> None:
    cell(shell, "header util.cuh", UTIL)
    for verb in ("check", "profile") if SOAK else ("check",):
        assert cell(shell, f"{verb} --ref scaled", KERNEL).passed
    assert np.allclose(cell(shell, "run --ref scaled", KERNEL), 3 * shell.user_ns["x"])
    result = cell(shell, "optimize --ref scaled --budget 2", KERNEL)
    assert result.summary.verdicts["passed"] >= 2  # the candidates go on using it
    cell(shell, "header util.cuh", UTIL.replace("3.0f", "4.0f"))
    assert not cell(shell, "check --ref scaled", KERNEL).passed
    # A result keeps the header that it was optimised with.
    assert np.allclose(result.best(shell.user_ns["x"]), 3 * shell.user_ns["x"])
    with capture_output() as captured:
        shell.run_line_magic("optiml", "header")
    assert captured.stdout.strip() == "util.cuh: 1 lines"


def test_an_error_in_a_header_stands_on_the_line_of_its_cell(shell: InteractiveShell) -> None:
    """Line 1 is the magic's own, as in every cell."""
    cell(shell, "header util.cuh", "// one\n__device__ inline float scale(float v) { return q; }\n")
    with pytest.raises(KernelFailed) as raised:
        cell(shell, "optimize --ref scaled", KERNEL)
    assert '"q" is undefined (in util.cuh:3)' in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 4


@pytest.mark.parametrize(
    ("line", "body", "message"),
    [
        ("header", UTIL, "a header is a cell with a name"),
        ("header ../util.cuh", UTIL, "is not a name for a header"),
        ("check --ref scaled -I nowhere", KERNEL, "there is no folder"),
        ("check --ref scaled --std c++99", KERNEL, "std is 'c"),
        ("check --ref scaled --compiler gcc", KERNEL, "compiler is 'gcc'"),
        ("check --ref scaled --nvcc-args -O1", KERNEL, "--nvcc-args works only with nvcc"),
        ("check --ref scaled -D 3=4", KERNEL, "a macro cannot be called that"),
    ],
)
def test_what_cannot_be_is_a_short_error(
    shell: InteractiveShell, line: str, body: str, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        cell(shell, line, body)
    assert message in str(raised.value)
    assert "fix:" in str(raised.value)
    assert len(str(raised.value).splitlines()) <= 4


def test_a_kernel_in_a_header_is_not_seen_and_the_error_says_so(shell: InteractiveShell) -> None:
    cell(shell, "header kernels.cuh", KERNEL.replace('#include "util.cuh"\n', UTIL))
    with pytest.raises(SourceError, match="there is no kernel here") as raised:
        cell(shell, "check --ref scaled", '#include "kernels.cuh"\n')
    assert "one in a header is not seen" in raised.value.fix


@pytest.mark.parametrize(
    "spelled", sampled(["-D TILE=64 -D FACTOR=3.0f", "-DTILE=0x40 -DFACTOR=3.0f"], 2)
)
def test_macros_are_known_to_launches(shell: InteractiveShell, spelled: str) -> None:
    assert cell(shell, f"check --ref scaled {spelled}", TILED).passed


def test_macros_are_known_to_inferred_launches() -> None:
    kernel = TILED.split("\n", 1)[1]
    checked = evaluate_once(
        task(kernel=kernel, defines={"TILE": "64", "FACTOR": "3.0f"}),
        resolve({"device": "emulated:h200"}),
        counters=False,
    )
    assert checked.evaluation.verdict.passed
    assert "block(64)" in checked.problem.program.text


def test_a_name_is_tuned_or_defined() -> None:
    kernel = "#pragma optiml tune TILE in {32, 64} = 32\n" + TILED
    with pytest.raises(UsageError, match="`TILE` is tuned, and defined"):
        run_once(task(kernel=kernel, defines={"TILE": "64", "FACTOR": "3"}), resolve({}))


@pytest.mark.slow
def test_the_folder_of_a_file_is_searched_first(shell: InteractiveShell, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "util.cuh").write_text(UTIL)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "util.cuh").write_text(UTIL.replace("3.0f", "4.0f"))
    assert cell(
        shell, f"check --ref scaled -I {tmp_path}/other --file {tmp_path}/k.cu", "\n"
    ).passed
    assert not cell(shell, f"check --ref scaled -I{tmp_path}/other", KERNEL).passed
    assert evaluate_once(
        task(kernel=tmp_path / "k.cu"), resolve({"device": "emulated:h200"}), counters=False
    ).evaluation.verdict.passed


@pytest.mark.slow
def test_the_command_line_takes_the_same_options(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "util.cuh").write_text(UTIL.replace("3.0f", "FACTOR"))
    (tmp_path / "task.py").write_text(
        SETUP + f"from optiml_magic import Task\nKERNEL = '''{KERNEL}'''\n"
        "task = Task(KERNEL, reference=scaled, inputs={'x': x, 'n': n})\n"
    )
    words = ("--device", "emulated:h200", "-I", "inc", "-DFACTOR=3.0f", "--std", "c++20")
    done = optiml("check", "task.py", *words, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["verdict"]["outcome"] == "passed"
    done = optiml("check", "task.py", *words, "--nvcc-args", "-O1", cwd=tmp_path)
    assert done.returncode == 2
    assert "fix: add --compiler nvcc" in done.stderr


@pytest.mark.parametrize("changed", sampled(["header", "define", "std"], 3))
def test_a_run_is_not_resumed_with_other_headers_or_options(tmp_path: Path, changed: str) -> None:
    (tmp_path / "util.cuh").write_text(UTIL)
    first = task(kernel=KERNEL, include=(tmp_path,))
    settings = {"device": "emulated:h200", "budget": 1}
    journal = optimize(first, resolve(settings)).summary.journal
    assert journal is not None
    again, more = first, dict(settings)
    if changed == "header":
        (tmp_path / "util.cuh").write_text(UTIL + "// edited\n")
    elif changed == "define":
        again = task(kernel=KERNEL, include=(tmp_path,), defines={"A": "1"})
    else:
        more["std"] = "c++20"
    with pytest.raises(UsageError, match="options_digest differ"):
        optimize(again, resolve(more), resume=journal)
    (tmp_path / "util.cuh").write_text(UTIL)
    assert optimize(first, resolve(settings), resume=journal).summary.journal == journal


def test_a_fault_in_a_typed_header_stands_on_the_line_that_called_it() -> None:
    launch = "#pragma optiml launch k grid(cdiv(n, 256)) block(256)\n"
    kernel = launch + KERNEL.replace("scale(x[i])", "\n        scale(x[i], x)")
    far = "__device__ inline float scale(float v, const float* p) { return p[1 << 30]; }\n"
    verdict = evaluate_once(
        task(kernel=kernel, headers={"util.cuh": far}),
        resolve({"device": "emulated:h200"}),
        counters=False,
    ).evaluation.verdict
    assert verdict.outcome == "out_of_bounds"
    assert verdict.line == 6


@needs_nvcc
def test_nvcc_gives_what_the_emulator_runs(shell: InteractiveShell) -> None:
    cell(shell, "header util.cuh", "#include <cstdio>\n#include <cmath>\n" + UTIL)
    result = cell(
        shell,
        'optimize --ref scaled --budget 2 --compiler nvcc --nvcc-args "-Xptxas -O1" --std c++20',
        KERNEL,
    )
    assert result.summary.verdicts["passed"] >= 2
    assert np.allclose(result.best(shell.user_ns["x"]), 3 * shell.user_ns["x"])


@needs_nvcc
def test_nvcc_refuses_an_argument_in_one_line(shell: InteractiveShell) -> None:
    with pytest.raises(OptimlError, match="Unknown option '--bogus'") as raised:
        cell(shell, "check --ref scaled --compiler nvcc --nvcc-args --bogus", KERNEL)
    assert len(str(raised.value).splitlines()) <= 3
