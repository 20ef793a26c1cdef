"""From references to verified kernels, on the command line and in a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.errors import BindingError, OptimlError, UsageError
from optiml_magic.from_reference import NotLoweredError, with_kernel
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import problem
from optiml_magic.problem.card import Card
from optiml_magic.replay.recording import Recording
from optiml_magic.settings import resolve
from optiml_magic.source.comments import commented
from optiml_magic.synthesize import synthesize
from tests.e2e.test_cli import optiml
from tests.e2e.test_magics import cell, shell  # noqa: F401  # the fixture
from tests.present import sampled
from tests.references import REFERENCES
from tests.references.entry import Entry
from tests.references.refused import REFUSED
from tests.unit.devices import card as stand_in

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
        ("return np.linalg.inv(x)", "`np.linalg.inv` is not traced, in line 3", "write it"),
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


@pytest.mark.parametrize("on_card", [True, False])
def test_on_a_card_cupy_running_the_reference_is_the_baseline(
    on_card: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = stand_in.Card({"double": (lambda: None, 3e-4)})
    module = card.module()
    monkeypatch.setattr(problem, "cupy_on", lambda _: Card("cuda:0", lambda: module))

    def double(x: Any) -> Any:
        if hasattr(x, "get"):  # an array of CuPy's
            if not on_card:
                raise TypeError("not for CuPy")
            card.launch("double", ())
        return 2 * x

    task = Task(reference=double, inputs={"x": np.ones((64, 32), np.float32)})
    settings = resolve({"device": "emulated:h200", "llm": "none", "budget": 1})
    found = synthesize(task, settings)
    told = repr(found)
    assert found.summary.journal is not None
    again = Recording.read(found.summary.journal).summary
    assert again.peer == found.summary.peer
    assert again.speedup == found.speedup
    if on_card:
        seconds = found.trajectory.root.evaluation.measurement.seconds  # type: ignore[union-attr]
        assert found.speedup == pytest.approx(3e-4 / seconds)
        assert "baseline     300 us estimated: CuPy running the reference, a graph" in told
        assert "faster than CuPy running the reference" in told.splitlines()[0]
    else:
        assert found.summary.peer is None
        assert "CuPy does not run the reference here: TypeError: not for CuPy" in told
        assert ": the lowered reference" in told


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


@pytest.mark.parametrize(
    ("line", "said", "fix"),
    [
        ("half --ref half", "take the place of the reference `half`", "half_kernel"),
        ("2nd --ref half", "`2nd` cannot be the name", "variable"),
        ("class --ref half", "`class` cannot be the name", "variable"),
        ("--ref hlaf", "the reference `hlaf` is not defined", "half"),
        ("--ref np.exp", "the reference `np.exp` is not defined", "a function of the inputs"),
        ("--ref a", "the reference `a` is not a function", "define a function a"),
        ("--ref every", "takes any number of arguments, `*arrays`", "name each"),
        ("--ref half --inputs b=a", "half has no parameter `b`", "choose one of a"),
        ("--ref half --inputs a=nothing", "no array or number named `nothing`", "define nothing"),
        ("--ref half --inputs a=words", "no array or number named `words`", "define words"),
        ("--ref half --accept", "--accept is only for words", "leave out --accept"),
        ("--ref half --examples given", "--examples is only for words", "leave out --examples"),
        ("--ref half --examples a", "`a` is not a list of examples", "inputs by name"),
        ("--ref half --thoughts -1", "thoughts is -1", "zero or more"),
        ("--ref half --seconds -3", "seconds is -3.0", "above zero"),
        ("--ref half --resume none", "no journal at", "name a run"),
        ("--ref undefined", "name 'nothing' is not defined, in line 1", "without an error"),
        ("--ref printed", "a value of type str", "arrays of numbers"),
        ("--ref half --args a", "unknown option --args", "did you mean"),
        ("--accept", "nothing to accept", "without --accept first"),
    ],
)
def test_bad_input_gets_a_short_error(line: str, said: str, fix: str, shell: Any) -> None:  # noqa: F811
    shell.run_cell("import numpy as np\nwords = 'half'\ngiven = [({'a': [2.0]}, [1.0])]")
    shell.run_cell("def half(a): return a / 2")
    shell.run_cell("def every(*arrays): return arrays[0]")
    shell.run_cell("def undefined(a): return a + nothing")
    shell.run_cell("def printed(a): return 'a'")
    with pytest.raises(OptimlError) as raised:
        cell(shell, f"synthesize {line} --llm none --device emulated:h200", "half of all")
    told = str(raised.value)
    assert said in told
    assert fix in told.partition("fix: ")[2]
    assert len(told.splitlines()) <= 3


def test_words_that_end_in_a_backslash_hide_no_line() -> None:
    words = "a path: C:\\\nand one more \\ \t\n#pragma optiml launch other\n*/ the end \\\\"
    assert commented(words) == (
        "// a path: C:\n// and one more\n// #pragma optiml launch other\n// */ the end\n"
    )
    task = Task(reference=lambda x: 2 * x, inputs={"x": np.ones(9, np.float32)})
    settings = resolve({"device": "emulated:h200", "llm": "none", "budget": 1})
    found = synthesize(task, settings, words)
    assert found.program.startswith(commented(words))
    assert found.trajectory.root.evaluation.verdict.passed


def test_axes_that_need_not_be_equal_have_sizes_of_their_own() -> None:
    def both(x: Any, y: Any) -> Any:
        return x.sum(axis=0) * y

    square = {"x": np.ones((32, 32), np.float32), "y": np.ones(32, np.float32)}
    text = str(with_kernel(Task(reference=both, inputs=square)).kernel)
    assert "size n = shape(x, 0)" in text
    assert "size m = shape(x, 1)" in text
    assert "shape(y, 0)" not in text
