"""Words without a reference: written, shown, confirmed, kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.commands.tasks import examples_from, examples_in
from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.model.oracle import Example
from optiml_magic.model.task import Task
from optiml_magic.oracles import Shown, referenced
from optiml_magic.settings import Settings
from tests.unit.llms.endpoint import Endpoint, completed, failed, serving

WORDS = "the sum of each row"
SOURCE = """\
def reference(x):
    return x.sum(axis=1)

def inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols)).astype(np.float32)}
"""
RIGHT = Example('{"x": [[1, 2], [3, 4]]}', "[3, 7]")
OTHER = Example('{"x": [[0.5]]}', "[0.5]")
GIVEN = Example.of({"x": np.array([[1.0, 4.0]])}, np.array([5.0]))


def oracle(source: str = SOURCE, *examples: Example) -> str:
    told = [{"inputs": e.inputs, "output": e.output} for e in examples or (RIGHT, OTHER)]
    sizes = [{"name": "rows", "value": 4}, {"name": "cols", "value": 6}]
    return json.dumps({"source": source, "sizes": sizes, "examples": told})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path


def settings(home: Path, endpoint: Endpoint) -> Settings:
    return Settings(home=home, llm="toy", llm_url=endpoint.url)


def test_nothing_has_a_reference_until_somebody_confirms_it(home: Path) -> None:
    with serving(completed(oracle())) as endpoint:
        chosen = settings(home, endpoint)
        with pytest.raises(UsageError, match="nothing to accept"):
            referenced(Task(), chosen, WORDS, accept=True)
        shown = referenced(Task(), chosen, WORDS)
        assert shown.task is None
        for part in (
            "toy wrote this reference",
            SOURCE.splitlines()[1],
            RIGHT.inputs,
            RIGHT.output,
        ):
            assert part in repr(shown)
        assert "Nobody has confirmed" in repr(shown)
        accepted = referenced(Task(), chosen, WORDS, accept=True)
        later = referenced(Task(), chosen, WORDS)
    assert len(endpoint.bodies) == 1  # what was accepted is what was shown
    assert accepted.task is not None
    assert "Confirmed by 2 examples that the user accepted" in repr(accepted)
    told = "a reference that toy wrote, confirmed by 2 examples that the user accepted"
    assert accepted.task.oracle == told
    assert accepted.task.sizes == {"rows": 4, "cols": 6}
    assert callable(accepted.task.inputs)
    assert later.task is not None
    assert later.task.oracle == told


def test_somebody_who_can_be_asked_is_asked(home: Path) -> None:
    with serving(completed(oracle())) as endpoint:
        asked: list[Shown] = []

        def ask(shown: Shown) -> bool:
            asked.append(shown)
            return len(asked) > 1

        chosen = settings(home, endpoint)
        assert referenced(Task(), chosen, WORDS, ask=ask).task is None
        assert referenced(Task(), chosen, WORDS, ask=ask).task is not None
        assert len(asked) == 2


def test_examples_of_the_user_confirm_a_reference_that_agrees_with_them(home: Path) -> None:
    with serving(completed(oracle())) as endpoint:
        shown = referenced(Task(), settings(home, endpoint), WORDS, examples=[GIVEN])
    assert shown.task is not None
    assert shown.oracle.confirmed == "1 example that the user gave"
    assert GIVEN.inputs in endpoint.bodies[0]["messages"][1]["content"]


def test_a_kept_reference_that_other_examples_refute_is_asked_for_anew(home: Path) -> None:
    wrong = oracle(SOURCE.replace("sum", "max"), OTHER, Example('{"x": [[1, 1]]}', "[1]"))
    with serving(completed(wrong), completed(oracle())) as endpoint:
        chosen = settings(home, endpoint)
        assert referenced(Task(), chosen, WORDS).task is None
        assert referenced(Task(), chosen, WORDS, accept=True).task is not None
        again = referenced(Task(), chosen, WORDS, examples=[GIVEN])
    assert "sum" in again.oracle.source
    assert again.task is not None


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (oracle("import os\n" + SOURCE), "`Import` is not allowed"),
        (
            oracle(SOURCE.replace("axis=1", "axis=0")),
            "it gives [4, 6], and the example says [3, 7]",
        ),
        (oracle(SOURCE.replace("sum", "mean").replace("(axis=1)", "(axis=5)")), "it raises"),
        (oracle(SOURCE.split("def inputs", maxsplit=1)[0]), "no function `inputs`"),
        (oracle(SOURCE.replace("rows, cols)).", "rows)).")), "on its own inputs it raises"),
        (oracle(SOURCE, RIGHT), "fewer than 2 examples"),
        (oracle(SOURCE, RIGHT, Example("[1", "2")), "it raises JSONDecodeError"),
        (oracle(SOURCE, RIGHT, Example("{}", "1" * 3000)), "too long"),
        ("I cannot", "no JSON object"),
    ],
)
def test_what_cannot_be_used_is_mended_or_refused(reply: str, said: str, home: Path) -> None:
    with serving(completed(reply), completed(oracle())) as endpoint:
        assert referenced(Task(), settings(home, endpoint), WORDS).task is None
        assert said in endpoint.bodies[1]["messages"][1]["content"]
    with serving(completed(reply)) as endpoint:
        with pytest.raises(KernelFailed) as raised:
            referenced(Task(), settings(home, endpoint), WORDS + " again")
        assert said in raised.value.message
    assert len(endpoint.bodies) == 3


def test_given_inputs_are_told_and_kept(home: Path) -> None:
    task = Task(inputs={"x": np.ones((3, 4), np.float32), "scale": 2.0})
    source = "def reference(x, scale):\n    return scale * x.sum(axis=1)\n"
    examples = [
        Example('{"x": [[1, 2]], "scale": 3}', "[9]"),
        Example('{"x": [[1]], "scale": 1}', "[1]"),
    ]
    with serving(completed(oracle(source, *examples))) as endpoint:
        chosen = settings(home, endpoint)
        referenced(task, chosen, WORDS)
        shown = referenced(task, chosen, WORDS, accept=True)
        assert "`x`: float32, shape (3, 4)" in endpoint.bodies[0]["messages"][1]["content"]
    assert shown.task is not None
    assert shown.task.inputs == task.inputs
    assert not shown.task.sizes


def test_an_output_of_several_may_be_a_dict_or_a_tuple(home: Path) -> None:
    for answer in (
        '{"low": x.min(axis=1), "high": x.max(axis=1)}',
        "(x.min(axis=1), x.max(axis=1))",
    ):
        source = SOURCE.replace("x.sum(axis=1)", answer)
        wanted = '{"low": [1], "high": [2]}' if "low" in answer else "[[1], [2]]"
        both = [Example('{"x": [[1, 2]]}', wanted)] * 2
        with serving(completed(oracle(source, *both))) as endpoint:
            shown = referenced(Task(), settings(home, endpoint), answer, examples=both[:1])
        assert shown.task is not None


def test_words_need_a_model_and_a_model_words(home: Path) -> None:
    with pytest.raises(UsageError, match="neither a reference nor a description"):
        referenced(Task(), Settings(home=home, llm="none"), " ")
    with pytest.raises(UsageError, match="words alone need a model"):
        referenced(Task(), Settings(home=home, llm="none"), WORDS)
    with (
        serving(failed(500, "oh dear", retry=False)) as endpoint,
        pytest.raises(KernelFailed, match="fails with status 500"),
    ):
        referenced(Task(), settings(home, endpoint), WORDS)


def test_examples_come_from_a_list_or_a_file(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {
        "mine": [({"x": np.array([[1.0, 4.0]])}, np.array([5.0]))],
        "odd": 3,
    }
    assert examples_in("mine", namespace) == [GIVEN]
    assert examples_in(None, namespace) == []
    for name in ("odd", "nowhere"):
        with pytest.raises(UsageError, match="not a list of examples"):
            examples_in(name, namespace)
    path = tmp_path / "mine.json"
    path.write_text('[{"inputs": {"x": [[1.0, 4.0]]}, "output": [5.0]}]')
    assert examples_from(str(path)) == [GIVEN]
    path.write_text("[1]")
    with pytest.raises(UsageError, match="not a file of examples"):
        examples_from(str(path))
