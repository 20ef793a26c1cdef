"""From references to verified kernels, on the command line and in a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.errors import BindingError, UsageError
from optiml_magic.from_reference import NotLoweredError, with_kernel
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from tests.e2e.test_cli import optiml
from tests.e2e.test_magics import cell, shell  # noqa: F401  # the fixture
from tests.present import sampled
from tests.references import REFERENCES
from tests.references.entry import Entry
from tests.references.refused import REFUSED

TASK = """\
import numpy as np
from optiml_magic import Task

def scaled(x, weight, gain):
    return gain * x / x.sum(axis=1, keepdims=True) + weight

rng = np.random.default_rng(0)
task = Task(
    reference=scaled,
    inputs={
        "x": rng.random((96, 70), dtype=np.float32), "weight": rng.random(70, dtype=np.float32),
        "gain": 2.5,
    },
)
"""


@pytest.mark.parametrize("entry", sampled(REFERENCES, 17), ids=lambda entry: entry.name)
def test_references_become_verified_kernels(entry: Entry) -> None:
    """At the sizes of the task, at three sets of inputs, and at three other sizes at least."""
    made = with_kernel(entry.task)
    settings = resolve({"device": "emulated:h200"})
    checked = evaluate_once(made, settings, counters=False)
    verdict = checked.evaluation.verdict
    assert verdict.passed, (verdict, made.kernel)
    (sizes,) = (note for note in checked.notes if note.startswith("other sizes"))
    assert int(sizes.split()[2]) >= 3, sizes


@pytest.mark.parametrize(("entry", "said"), REFUSED, ids=lambda part: getattr(part, "name", ""))
def test_what_no_kernel_is_made_of_is_refused_with_its_line(entry: Entry, said: str) -> None:
    with pytest.raises(NotLoweredError, match=r"in line \d+ of the reference") as refused:
        with_kernel(entry.task)
    assert said in str(refused.value)
    assert "fix:" in str(refused.value)


def test_the_command_searches_from_the_reference(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    done = optiml(
        "synthesize", "task.py", "--device", "emulated:h200", "--llm", "none", "--budget", "3",
        "--words", "rows scaled\nto one", "--json", "out.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["origin"] == "reference"
    assert ": the lowered reference" in done.stdout
    (candidate,) = found["candidates"]
    assert candidate["verdict"] == "passed"
    assert candidate["program"].startswith("// rows scaled\n// to one\n")
    assert "#pragma optiml size n = shape(x, 0)" in candidate["program"]
    assert found["evaluations"] == 3
    assert found["best"]["speedup"] > 1


@pytest.mark.parametrize(
    ("line", "said", "fix"),
    [
        ("return np.linalg.inv(x)", "`np.linalg.inv` is not traced, in line 3", "Write it"),
        ("return x if x[0, 0] > 0 else -x", "a branch on the values", "np.where"),
        ("return x + np.random.rand()", "others each time, in line 3", "input"),
        ("return x * 1j", "in line 3 of the reference: return x * 1j", "real"),
    ],
)
def test_refusals_have_a_line_and_a_fix(tmp_path: Path, line: str, said: str, fix: str) -> None:
    (tmp_path / "task.py").write_text(
        f"import numpy as np\ndef f(x):\n    {line}\n"
        "from optiml_magic import Task\n"
        "task = Task(reference=f, inputs={'x': np.ones((4, 4), np.float32)})\n"
    )
    done = optiml("synthesize", "task.py", "--llm", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert fix in done.stderr


def test_a_task_of_neither_kernel_nor_reference(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("from optiml_magic import Task\ntask = Task()\n")
    for verb in ("synthesize", "check"):
        done = optiml(verb, "task.py", cwd=tmp_path)
        assert done.returncode == 2
        assert "fix:" in done.stderr


def test_a_cell_of_words(shell: Any) -> None:  # noqa: F811
    shell.run_cell("def half(a, by):\n    return a / by")
    shell.run_cell("divisor = 2.0")
    line = "synthesize --ref half --inputs by=divisor --budget 1 --device emulated:h200 --llm none"
    result = cell(shell, line, "Half of\nall")
    assert shell.user_ns["half_kernel"] is result
    assert result.program.startswith("// Half of\n// all\n")
    a = shell.user_ns["a"]
    np.testing.assert_allclose(result(a, 2.0), a / 2, rtol=1e-6)
    with pytest.raises(UsageError, match="words alone"):
        cell(shell, "synthesize", "make it fast")
    with pytest.raises(BindingError, match="by"):
        cell(shell, "synthesize --ref half", "Half")


def test_axes_that_need_not_be_equal_have_sizes_of_their_own() -> None:
    def both(x: Any, y: Any) -> Any:
        return x.sum(axis=0) * y

    square = {"x": np.ones((32, 32), np.float32), "y": np.ones(32, np.float32)}
    text = str(with_kernel(Task(reference=both, inputs=square)).kernel)
    assert "size n = shape(x, 0)" in text
    assert "size m = shape(x, 1)" in text
    assert "shape(y, 0)" not in text
