"""Kernels from words and thoughts, in whole runs: recorded completions over a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.cli import main
from optiml_magic.errors import KernelFailed
from tests.e2e.test_magics import cell, shell  # noqa: F401
from tests.present import sampled
from tests.recorded import TASKS, WORDS, Recording
from tests.unit.llms.endpoint import serving

FATES = {
    "softmax": {
        "block_per_row": ["compile_error", "no program", "passed", "no program"],
        "warp_per_row": ["passed", "out_of_bounds"],
        "one_read_statistics": ["wrong", "timeout", "passed", "no program"],
    },
    "histogram": {
        "privatised_counters": ["passed", "timeout"],
        "scatter_atomics": ["wrong", "no program", "wrong", "no program", "passed", "no program"],
    },
    "lookup": {"thread_per_output": ["wrong", "passed"]},
    "normalise": {
        "warp_per_row": ["passed", "no program"],
        "block_per_row": ["wrong", *["no program"] * 5],
    },
}


@contextmanager
def answering(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recording]:
    recording = Recording(name)
    with serving(recording) as endpoint:
        endpoint.models = ["recorded"]
        settings = {
            "OPENAI_API_KEY": "sk-secret-of-the-test",
            "OPTIML_LLM_URL": endpoint.url,
            "OPTIML_HOME": str(tmp_path / "home"),
            "OPTIML_DEVICE": "emulated:h200",
            "OPTIML_INSTRUCTIONS": "3000000",
        }
        for variable, value in settings.items():
            monkeypatch.setenv(variable, value)
        (tmp_path / "task.py").write_text(TASKS[name])
        yield recording


def synthesized(tmp_path: Path, name: str, *words: object) -> dict[str, Any]:
    out = tmp_path / "out.json"
    given = ["synthesize", tmp_path / "task.py", "--words", WORDS[name], "--json", out]
    given += ["--budget", 20, "--verify-seeds", 1, *words]
    assert main([str(word) for word in given]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("name", sampled(sorted(TASKS), every=4))
def test_what_is_wrong_cheats_or_hangs_does_no_harm(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(name, monkeypatch, tmp_path) as recording:
        if name == "normalise":
            words = ["synthesize", tmp_path / "task.py", "--words", WORDS[name]]
            assert main([str(word) for word in words]) == 1
            assert "Nobody has confirmed" in capsys.readouterr().out
            found = synthesized(tmp_path, name, "--accept")
        else:
            found = synthesized(tmp_path, name)
        asked = list(recording.asked)
        again = synthesized(tmp_path, name, "--resume", found["journal"])
    said = capsys.readouterr().out
    assert recording.asked == asked  # nothing was asked a second time
    told = {t["name"]: [a["outcome"] for a in t["attempts"]] for t in found["thoughts"]}
    for thought, outcomes in FATES[name].items():
        assert told[thought] == outcomes
    assert sum(t["weight"] for t in found["thoughts"]) == pytest.approx(1.0)
    origin = "model" if name == "lookup" else "reference"
    assert found["origin"] == origin
    passed = [c["origin"] for c in found["candidates"] if c["verdict"] == "passed"]
    assert passed[0] == origin
    assert "model" in passed
    assert found["baseline"]["verdict"] == "passed"
    steps = {step["title"]: step for step in found["steps"]}
    edits = [title for e in recording.edited for title in e]
    assert all(steps[title]["verdict"] == "passed" for title in edits)
    assert found["best"]["program"].startswith(f"// {WORDS[name]}\n")
    for key in ("thoughts", "candidates", "best", "origin", "evaluations"):
        assert again[key] == found[key]
    if name == "normalise":
        assert "a reference that recorded wrote, confirmed by 2 examples that the user" in said
    main(["replay", found["journal"], "--json", str(tmp_path / "replayed.json")])
    replayed = json.loads((tmp_path / "replayed.json").read_text())
    assert replayed["thoughts"] == found["thoughts"]
    assert replayed["candidates"] == found["candidates"]
    assert "sk-secret" not in Path(found["journal"]).read_text() + said


def test_a_reference_that_nobody_can_lower_needs_a_program_that_is_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["synthesize", str(tmp_path / "task.py"), "--words", "nothing that is recorded"]
    with answering("lookup", monkeypatch, tmp_path):
        monkeypatch.setattr(Recording, "_thought", lambda *_: "I would rather not.")
        assert main(words) == 1
    said = capsys.readouterr().err
    assert "the model wrote no correct program: there is no JSON object" in said
    assert main([*words, "--llm", "none"]) == 2
    assert "a loop of 500 steps, in line 4 of the reference" in capsys.readouterr().err


def test_words_alone_take_two_cells_or_examples(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shell: InteractiveShell,  # noqa: F811
) -> None:
    words = WORDS["normalise"]
    with answering("normalise", monkeypatch, tmp_path) as recording:
        with capture_output() as seen:
            outcome = shell.run_cell(f"%%optiml synthesize unit\n{words}")
        assert outcome.result is None
        told = "".join(str(one.data) for one in seen.outputs)
        assert "recorded wrote this reference" in told
        assert "Nobody has confirmed" in told
        assert "unit" not in shell.user_ns
        result = cell(shell, "synthesize unit --accept --budget 1", words)
        assert shell.user_ns["unit"] is result
        assert result.summary.oracle.startswith("a reference that recorded wrote, confirmed by 2")
        np.testing.assert_allclose(result(np.array([[3.0, 4.0]], np.float32)), [[0.6, 0.8]])
        shell.run_cell("odd = [({'x': [[2.0]]}, 2)]")
        with pytest.raises(KernelFailed, match="wrote no reference for these words"):
            cell(shell, "synthesize other --examples odd", "the same, but otherwise")
    assert recording.asked.count("oracle") == 4
