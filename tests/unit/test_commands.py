from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optiml_magic.commands import parsers, tasks
from optiml_magic.errors import BindingError, UsageError
from optiml_magic.settings import resolve

CELL = "__global__ void k(const float* x, float* out, int n) { out[n] = x[n]; }"


def cell(line: str):  # type: ignore[no-untyped-def]
    return parsers.parse(parsers.cell_parser(), parsers.split(line))


@pytest.mark.parametrize("words", ["-h", "optimize -h", "check --help"])
def test_help_is_shown_and_nothing_exits(words: str) -> None:
    with pytest.raises(parsers.HelpShown) as shown:
        cell(words)
    assert "optiml" in str(shown.value)


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("optimize --bugdet 3", "unknown option --bugdet", "did you mean `--budget`?"),
        ("optimise", "`optimise` is not a command", "did you mean `optimize`?"),
        ("frobnicate", "`frobnicate` is not a command", "choose one of optimize, "),
        ("optimize --view wigdet", "`wigdet` is not a value of --view", "did you mean `widget`?"),
        ("optimize --view 3d", "`3d` is not a value of --view", "choose one of auto, widget, text"),
        ("--ref f", "`--ref` comes before any command", "%optiml optimize --ref f"),
        ("help optmize", "`optmize` is not a command", "did you mean `optimize`?"),
        ("optimize --budget many", "is not a whole number", "-h"),
        ("optimize --budget 0", "0 is less than 1", "-h"),
        ("explain --ref f", "`explain` is not a command", "did you mean `annotate`?"),
        ("benchmark --ref f", "`benchmark` is not a command", "did you mean `profile`?"),
        ("check 'open", "No closing quotation", "close the quote"),
        ("run --llm none", "unknown option --llm", "-h"),
    ],
)
def test_wrong_words_are_short_errors(line: str, message: str, fix: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        cell(line)
    assert fix in raised.value.fix


def test_the_namespace_gives_arrays_and_numbers_and_nothing_else() -> None:
    x = np.ones(3, np.float32)
    namespace = {"x": x, "n": 3, "out": print, "other": 4, "ref": lambda x: x}
    task = tasks.from_cell(CELL, cell("optimize --ref ref"), namespace)
    assert dict(task.inputs) == {"x": x, "n": 3}  # type: ignore[arg-type]


def test_names_may_differ() -> None:
    y = np.ones(3, np.float32)
    task = tasks.from_cell(CELL, cell("check --inputs x=y,n=m"), {"y": y, "m": 3, "x": 1})
    assert task.inputs["x"] is y  # type: ignore[index]
    with pytest.raises(UsageError, match="no variable named `m`"):
        tasks.from_cell(CELL, cell("check --inputs n=m"), {})


def test_a_variable_that_is_called_like_a_scratch_buffer_is_not_an_input() -> None:
    text = "#pragma optiml scratch part f4[64]\n" + CELL.replace(
        "float* x", "float* x, float* part"
    )
    assert "float* part" in text
    found = tasks.from_cell(text, cell("check"), {"x": [1.0], "n": 1, "part": np.ones(3)})
    assert set(found.inputs) == {"x", "n"}
    named = tasks.from_cell(text, cell("check --inputs part"), {"part": np.ones(3)})
    assert set(named.inputs) == {"part"}


def test_an_input_that_nobody_takes_is_named() -> None:
    known = {"y": np.ones(3), "ref": lambda x, alpha: x}
    with pytest.raises(BindingError, match="`xx`, which neither the kernel nor the reference"):
        tasks.from_cell(CELL, cell("check --ref ref --inputs xx=y"), known)
    task = tasks.from_cell(CELL, cell("check --ref ref --inputs x=y,alpha=y"), known)
    assert task.inputs["alpha"] is known["y"]


@pytest.mark.parametrize(
    ("namespace", "message"),
    [({}, "`ref` is not defined"), ({"ref": 3}, "`ref` is not a function but of type int")],
)
def test_a_missing_reference_is_named(namespace: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        tasks.from_cell(CELL, cell("check --ref ref"), namespace)
    assert "def ref(...)" in raised.value.fix
    with pytest.raises(UsageError) as raised:
        tasks.from_cell(CELL, cell("check --ref ref"), {**namespace, "reference": resolve})
    assert raised.value.fix == "did you mean `reference`?"
    with pytest.raises(UsageError) as raised:
        tasks.from_cell(CELL, cell("check --ref ref"), {**namespace, "half": resolve})
    assert raised.value.fix == "functions here: half; or define a function ref"


@pytest.mark.parametrize(
    ("text", "found", "fix"),
    [
        ("int x;", "declarations", "__global__"),
        ("// __device__\n/* int f() { } */", "comments", "__global__"),
        ("import numpy as np\nx = np.ones(3)", "what looks like Python", "without %%optiml"),
        ("def f(a):\n    return a", "what looks like Python", "without %%optiml"),
        ("void add(float* a) { a[0] = 1; }", "the function `add` without", "underscores"),
        ("global void add(float* a) {\n}", "the function `add` without", "underscores"),
        (
            "float f(float x) { if (x) { return x; } return 0; }\nint main() { }",
            "the functions `f`, `main` without", "underscores",
        ),
        ("row-wise softmax of x", "words (`row-wise softmax of x`)", "%%optiml synthesize"),
    ],
)  # fmt: skip
def test_a_cell_without_a_kernel_says_what_is_in_it(text: str, found: str, fix: str) -> None:
    with pytest.raises(UsageError) as raised:
        tasks.from_cell("\n" + text, cell("check"), {})
    assert f"there is no kernel here, only {found}" in raised.value.message
    assert fix in raised.value.fix


def test_a_wrong_value_of_a_setting_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="policy is 'mct'") as raised:
        resolve({"policy": "mct"})
    assert raised.value.fix == "did you mean `mcts`?"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("task = 3", "neither `task` nor `tasks`"),
        ("tasks = []", "neither `task` nor `tasks`"),
        ("import math\n1 / 0", "t.py, line 2: ZeroDivisionError: division by zero"),
        ("task = Task(", "t.py, line 1: SyntaxError: '\\(' was never closed"),
        ("from optiml_magic import Task\n\ntask = Task(grid=3)", "line 3: TypeError: .*'grid'"),
    ],
)
def test_a_file_without_a_task_says_what_to_write(
    tmp_path: Path, source: str, message: str
) -> None:
    path = tmp_path / "t.py"
    path.write_text(source)
    with pytest.raises(UsageError, match=message):
        tasks.from_file(path)


@pytest.mark.parametrize(("launches", "name"), [(1, ""), (2, "chain")])
def test_a_task_of_several_launches_is_called_by_its_file(
    tmp_path: Path, launches: int, name: str
) -> None:
    text = "#pragma optiml launch k grid(1) block(32)\n" * launches + "__global__ void k() {}"
    path = tmp_path / "chain.py"
    path.write_text(f"from optiml_magic import Task\ntask = Task({text!r}, None, {{}})")
    (task,) = tasks.from_file(path)
    assert task.name == name


def test_settings_come_from_the_flag_then_the_environment_then_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert resolve().budget == 24
    monkeypatch.setenv("OPTIML_BUDGET", "7")
    assert resolve().budget == 7
    assert resolve({"budget": 9, "seed": None}).budget == 9
    monkeypatch.setenv("OPTIML_BUDGET", "lots")
    with pytest.raises(UsageError, match="OPTIML_BUDGET='lots' is not an int"):
        resolve()


def test_caches_may_lie_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPTIML_CACHE", str(tmp_path / "caches"))
    found = resolve({"home": tmp_path / "home"})
    kept = (found.compiled, found.disassembled, found.objects)
    assert {folder.parent for folder in kept} == {tmp_path / "caches"}
    assert {found.runs.parent, found.experience_file.parent} == {tmp_path / "home"}
    monkeypatch.delenv("OPTIML_CACHE")
    assert resolve({"home": tmp_path}).compiled == tmp_path / "compiled"
