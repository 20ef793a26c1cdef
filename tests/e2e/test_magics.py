"""The magics in a real IPython shell."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.reports import marks
from optiml_magic.result import Result
from tests.present import sampled

TRANSPOSE = """\
__global__ void transpose(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) out[col * rows + row] = a[row * cols + col];
}
"""
SETUP = """\
import numpy as np
rows, cols = 1024, 512
a = np.random.default_rng(0).random((rows, cols), dtype=np.float32)
def transpose_ref(a): return a.T
"""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, line: str, body: str) -> Any:
    """Run a cell as a user would; returns its value or raises its error."""
    with capture_output():
        outcome = shell.run_cell(f"%%optiml {line}\n{body}")
    if outcome.error_in_exec is not None:
        raise outcome.error_in_exec
    assert outcome.error_before_exec is None
    return outcome.result


def test_optimize_binds_a_callable_result_to_the_kernels_name_and_to_underscore(
    shell: InteractiveShell,
) -> None:
    result = cell(shell, "optimize --ref transpose_ref --budget 6", TRANSPOSE)
    assert isinstance(result, Result)
    assert shell.user_ns["transpose"] is result
    assert shell.user_ns["_"] is result
    assert result.speedup > 1.3
    a = shell.user_ns["a"]
    assert np.array_equal(result.best(a), a.T)
    other = np.arange(60, dtype=np.float32).reshape(12, 5)
    assert np.array_equal(result.best(other), other.T)
    bundle = result._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html", marks.MIME}
    for part in ("estimated", "Findings", "Diff", "The tree of all", "inferred"):
        assert part in bundle["text/html"]


@pytest.mark.slow
def test_running_a_cell_again_after_calling_its_result_changes_nothing(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTIML_EXPERIENCE", "none")  # or the second search begins where it paid off
    first = cell(shell, "optimize --ref transpose_ref --budget 4", TRANSPOSE)
    shell.run_cell("out = transpose(a)")
    assert np.array_equal(shell.user_ns["out"], shell.user_ns["a"].T)
    second = cell(shell, "optimize --ref transpose_ref --budget 4", TRANSPOSE)
    assert second.program == first.program
    steps = [[s.candidate for s in r.trajectory.steps] for r in (first, second)]
    assert steps[0] == steps[1]


def test_a_check_says_what_it_is_at_in_one_output(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook, whose shell has a kernel; the output is there before anything is read."""
    shown: list[str] = []

    class Output:
        def __init__(self, thing: object, *, display_id: bool) -> None:
            assert display_id
            self.update(thing)

        def update(self, thing: object) -> None:
            shown.append(repr(thing))

    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr("optiml_magic.magics.optiml.display", Output)
    assert cell(shell, "check --ref transpose_ref", TRANSPOSE).passed
    assert shown[0] == "check: preparing"
    assert shown.index("check: compiling") < shown.index("check: verifying")
    assert re.fullmatch(r"check: [0-9.]+ s", shown[-1])


def test_check_profile_and_run(shell: InteractiveShell) -> None:
    assert cell(shell, "check --ref transpose_ref", TRANSPOSE).passed
    profile = cell(shell, "profile --ref transpose_ref", TRANSPOSE)
    assert "sector/request" in repr(profile)
    assert "uncoalesced_access" in repr(profile)
    out = cell(shell, "run --ref transpose_ref", TRANSPOSE)
    assert np.array_equal(out, shell.user_ns["a"].T)


def test_a_wrong_kernel_is_a_verdict_of_check_and_an_error_of_optimize(
    shell: InteractiveShell,
) -> None:
    wrong = TRANSPOSE.replace("= a[", "= 2 * a[")
    assert not cell(shell, "check --ref transpose_ref", wrong).passed
    with pytest.raises(UsageError, match="the input kernel failed, wrong"):
        cell(shell, "optimize --ref transpose_ref", wrong)


@pytest.mark.slow
def test_without_a_reference_the_kernel_is_its_own_oracle(shell: InteractiveShell) -> None:
    result = cell(shell, "optimize --out out:f4[cols,rows] --budget 4", TRANSPOSE)
    assert "the input kernel itself" in repr(result)
    assert result.summary.verdicts["passed"] >= 2


def test_braces_quotes_and_percents_in_a_cell_do_no_harm(shell: InteractiveShell) -> None:
    body = (
        '// it\'s {not} "a" %format {0} %s $HOME\n'
        "__global__ void k(const float* a, float* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) { float v[2] = {a[i], 1.0f}; out[i] = v[i % 2 ? 0 : 0]; }\n"
        "}\n"
    )
    shell.run_cell("n = rows * cols\ndef flat(a): return a.ravel()")
    assert cell(shell, "check --ref flat", body).passed


BAD = {
    "unknown flag": ("optimize --bugdet 3", TRANSPOSE, "did you mean `--budget`?", None),
    "missing variable": ("check --ref transpose_ref", TRANSPOSE.replace("const float* a", "const float* b").replace("a[row", "b[row"), "no array named `b`", 2),
    "float64 array": ("check --ref transpose_ref --inputs a=wide", TRANSPOSE, "`a` holds float64", 2),
    "wrong argument count": ("check --ref transpose_ref --args a,out,rows", TRANSPOSE, "takes 4 arguments, the launch gives 3", None),
    "unbalanced brace": ("optimize --ref transpose_ref", TRANSPOSE.rstrip()[:-1], "the input kernel failed, compile_error", 2),
    "no kernel": ("optimize", "int x;\n", "there is no kernel here, only declarations", None),
    "semicolon": ("check --ref transpose_ref", TRANSPOSE.replace("a[row * cols + col];", "a[row * cols + col]"), 'expected a ";" at the end of this line', None),
    "Python": ("check --ref transpose_ref", "import numpy\n", "there is no kernel here", None),
    "misspelt type": ("check --ref transpose_ref", TRANSPOSE.replace("float* out", "flaot* out"), "did you mean `float`", 2),
    "misspelt scratch": ("check --ref transpose_ref", "#pragma optiml scratch t flot[n]\n" + TRANSPOSE, "did you mean `float`", 2),
    "array as reference": ("check --ref a", TRANSPOSE, "not a function but of type ndarray", None),
    "words as numbers": ("check --ref worded", TRANSPOSE, "return an array of numbers", None),
    "empty cell": ("optimize", "\n", "there is no kernel in this cell", None),
    "no reference": ("check --ref transpose_rf", TRANSPOSE, "did you mean", None),
    "unknown device": ("check --ref transpose_ref --device emulated:h20", TRANSPOSE, "did you mean `h200`?", None),
    "no launch": ("check --ref transpose_ref", TRANSPOSE.replace("if (row < rows && col < cols) ", ""), "#pragma optiml launch", None),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(BAD, 3))
def test_bad_input_is_a_short_error_that_names_the_line_and_the_fix(
    shell: InteractiveShell, name: str
) -> None:
    line, body, message, at = BAD[name]
    shell.run_cell("wide = a.astype('f8')\ndef worded(a): return 'numbers'")
    with pytest.raises(OptimlError) as raised:
        cell(shell, line, body)
    shown = "\n".join(raised.value._render_traceback_())
    assert message.lower() in shown.lower()
    assert "fix:" in shown
    assert len(shown.splitlines()) <= 6
    assert "Traceback" not in shown
    if at is not None:
        assert raised.value.line == at
        assert f"{at} | " in shown
    # Nothing is lost: the next cell works.
    assert cell(shell, "check --ref transpose_ref", TRANSPOSE).passed


@pytest.mark.slow
def test_experience_is_shown_as_tables(shell: InteractiveShell) -> None:
    cell(shell, "optimize --ref transpose_ref --budget 2", TRANSPOSE)
    with capture_output():
        shown = shell.run_line_magic("optiml", "experience")._repr_mimebundle_()
    assert "transpose_tile" in shown["text/plain"]
    assert "<table" in shown["text/html"]
    assert "uncoalesced_access &gt; transpose_tile" in shown["text/html"]


@pytest.mark.parametrize(
    "line", ["help", pytest.param("doctor", marks=pytest.mark.slow), "best -h", "optimize -h"]
)
def test_line_magics_print(shell: InteractiveShell, line: str) -> None:
    with capture_output() as captured:
        shell.run_line_magic("optiml", line)
    assert captured.stdout.strip()


@pytest.mark.slow
def test_best_prints_the_last_program(shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="nothing was optimised yet"):
        shell.run_line_magic("optiml", "best")
    result = cell(shell, "optimize --ref transpose_ref --budget 3", TRANSPOSE)
    with capture_output() as captured:
        shell.run_line_magic("optiml", "best transpose")
    assert captured.stdout.strip() == result.program.strip()


def test_export_writes_the_best_program_once(shell: InteractiveShell, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing was optimised yet"):
        shell.run_line_magic("optiml", f"export {tmp_path}/k.cu")
    result = cell(shell, "optimize --ref transpose_ref --budget 6", TRANSPOSE)
    with capture_output() as captured:
        shell.run_line_magic("optiml", f"export {tmp_path}/k.cu")
        shell.run_line_magic("optiml", f"export transpose {tmp_path}/k.py")
    assert captured.stdout.split() == [
        "written:",
        f"{tmp_path}/k.cu",
        "written:",
        f"{tmp_path}/k.py",
    ]
    source, module = ((tmp_path / name).read_text() for name in ("k.cu", "k.py"))
    for text in (source, module):
        assert "faster, estimated" in text
        assert "estimated on h200; the input kernel" in text
        assert "Checked against transpose_ref in float64: passed" in text
        assert str(tmp_path) not in text
    assert "cudaError_t transpose_launch(const float* a, float* out, int rows, int cols" in source
    assert "def transpose(a, rows=None, cols=None, *, out=None):" in module
    with pytest.raises(UsageError, match="exists") as raised:
        shell.run_line_magic("optiml", f"export {tmp_path}/k.cu")
    assert "--force" in raised.value.fix
    (tmp_path / "k.cu").write_text("mine")
    shell.run_line_magic("optiml", f"export transpose {tmp_path}/k.cu --force")
    assert (tmp_path / "k.cu").read_text() == source
    with pytest.raises(UsageError, match="is not a format") as raised:
        result.export(tmp_path / "k.txt")
    assert ".cu" in raised.value.fix
    assert ".py" in raised.value.fix


@pytest.mark.slow
def test_a_result_is_rows_and_a_tree(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = cell(shell, "optimize --ref transpose_ref --budget 6", TRANSPOSE)
    rows = result.rows()
    assert [row["number"] for row in rows] == [s.candidate.number for s in result.trajectory.steps]
    assert {(row["source"], row["chip"]) for row in rows if row["seconds"]} == {
        ("estimated", "h200")
    }
    assert max(row["speedup"] or 0 for row in rows) == pytest.approx(result.speedup)
    assert {row["number"]: row["parent"] for row in rows if row["parent"] is not None} == {
        child: parent for parent, children in result.tree.items() for child in children
    }
    with pytest.raises(TypeError):
        result.tree[0] = ()
    frame = result.to_frame()
    assert list(frame.columns) == list(rows[0])
    assert frame["number"].tolist() == [row["number"] for row in rows]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MachineError, match="pandas is not installed"):
        result.to_frame()


def test_a_search_beside_the_cells_returns_a_handle_at_once(shell: InteractiveShell) -> None:
    handle = cell(shell, "optimize --ref transpose_ref --budget 500 --background", TRANSPOSE)
    assert handle.state == "running"
    while handle.evaluations < 2:
        time.sleep(0.05)
    handle.stop()
    result = handle.result(timeout=60)
    assert handle.state == "done"
    assert result.trajectory.stopped == "stopped"
    assert 2 <= len(result.trajectory.steps) < 500
    assert shell.user_ns["transpose"] is result


def test_a_mark_at_the_start_of_a_pasted_file_does_no_harm(shell: InteractiveShell) -> None:
    assert cell(shell, "check --ref transpose_ref", "\ufeff" + TRANSPOSE).passed


@pytest.mark.slow
def test_a_result_shows_itself_again_in_any_later_cell(shell: InteractiveShell) -> None:
    result = cell(shell, "optimize --ref transpose_ref --budget 3", TRANSPOSE)
    for line in ("transpose", "_"):
        with capture_output() as captured:
            shell.run_cell(line)
        assert repr(result) in captured.stdout
    with capture_output() as captured:
        shell.run_cell("from IPython.display import display\ndisplay(transpose)")
    assert ">transpose</h3>" in captured.outputs[0].data["text/html"]


def test_annotate_shows_every_line_with_inputs_or_without(shell: InteractiveShell) -> None:
    view = cell(shell, "annotate --device emulated:h200 --ref transpose_ref", TRANSPOSE)
    shown = repr(view)
    # Lines are counted as in the cell, whose first is the magic's own.
    assert re.search(r"^ *5 .* 18 of 4 +if \(row < rows && col < cols\) out", shown, re.MULTILINE)
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", marks.MIME}
    assert "st.global.f32" in bundle["text/html"]
    bare = cell(shell, "annotate", TRANSPOSE.replace("cols", "width"))
    assert "nothing was counted, since nothing can be run" in repr(bare)
    assert "st.global.f32" in bare._repr_mimebundle_()["text/html"]
