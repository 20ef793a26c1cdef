"""What a front end asks beside the cells, of a shell that ran some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from optiml_magic.magics.questions import answered

CELL = """\
__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    monkeypatch.setenv("OPTIML_HOME", str(tmp_path))
    made = InteractiveShell()
    made.run_line_magic("load_ext", "optiml_magic")
    made.run_cell(
        "import numpy as np\nn = 256\nx = np.arange(n, dtype=np.float32)\n"
        "def double(x): return 2 * x"
    )
    return made


def ask(shell: InteractiveShell, **question: Any) -> Any:
    return json.loads(json.dumps(answered(shell, {"schema": 1, **question})))


def test_runs_are_listed_told_compared_and_inserted(shell: InteractiveShell) -> None:
    assert ask(shell, ask="runs") == {"runs": [], "total": 0, "searches": []}
    for _ in range(2):
        shell.run_cell_magic(
            "optiml", "optimize --ref double --budget 2 --llm none --view text", CELL
        )
    listed = ask(shell, ask="runs")
    assert listed["total"] == 2
    assert {run["task"] for run in listed["runs"]} == {"scale"}
    assert len(ask(shell, ask="runs", last=1)["runs"]) == 1
    one, two = (run["run"] for run in listed["runs"])
    compared = ask(shell, ask="compare", one=one, two=two)
    assert compared["names"] == [one, two]
    assert "speed-up" in {row[0] for row in compared["facts"]}
    saved = ask(shell, ask="run", run=one)["saved"]
    assert (saved["format"], saved["run"]) == ("optiml run", one)
    best = ask(shell, ask="best", run=one)
    assert "__global__ void scale" in best["program"]
    assert best["words"][:3] == ["optimize", "--ref", "double"]


def test_what_cannot_be_answered_is_an_error_in_words(shell: InteractiveShell) -> None:
    assert "does not know the question" in ask(shell, ask="nothing")["error"]
    assert "does not know the question" in ask(shell, ask="runs", schema=2)["error"]
    assert "no run called `gone`" in ask(shell, ask="run", run="gone")["error"]
    assert "no search of this cell" in ask(shell, ask="stop", cell=CELL)["error"]
    assert "KeyError" in ask(shell, ask="run")["error"]
