"""Who is asked before the first request that may cost money."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from optiml_magic.commands import consent
from optiml_magic.llms.choice import ModelChoice
from optiml_magic.settings import Settings
from tests.present import sampled

HERE = Settings(llm_url="http://localhost:1/v1")
THERE = Settings(llm_url="https://models.example.org/v1")


@pytest.fixture(autouse=True)
def nobody_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consent, "_AGREED", set())
    for name in ("OPTIML_LLM", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


class Person:
    def __init__(self, *, agrees: bool) -> None:
        self.agrees = agrees
        self.questions: list[str] = []

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.agrees


def toy(_asked: str, _url: str) -> ModelChoice:
    return ModelChoice("toy", "toy: auto took the endpoint's only model")


def test_it_is_asked_once_and_told_what_goes_where() -> None:
    person = Person(agrees=True)
    for _ in range(3):
        assert consent.agreed(THERE, None, person, toy) == "auto"
    (question,) = person.questions
    assert question.startswith("toy at models.example.org/v1 is sent the kernel, the text of its")
    assert "may cost money" in question


def test_who_refuses_is_asked_again_and_no_model_is() -> None:
    person = Person(agrees=False)
    assert [consent.agreed(THERE, None, person, toy) for _ in range(2)] == ["none", "none"]
    assert len(person.questions) == 2


@pytest.mark.parametrize(
    ("settings", "given", "variable"),
    [
        (HERE, None, ""),
        (THERE, "auto", ""),
        (THERE, None, "auto"),
        (replace(THERE, llm="gpt-x"), "gpt-x", ""),
        (replace(THERE, llm="none"), None, ""),
    ],
)
def test_who_has_chosen_is_not_asked(
    settings: Settings, given: str | None, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("OPTIML_LLM", variable)
    person = Person(agrees=False)
    assert consent.agreed(settings, given, person, toy) == settings.llm
    assert not person.questions


def test_where_there_is_no_model_nobody_is_asked() -> None:
    person = Person(agrees=False)
    assert consent.agreed(Settings(), None, person) == "auto"
    assert not person.questions


CELL = """%%optiml optimize --device emulated --budget 2 --ref f --llm-url https://127.0.0.2.invalid/v1
__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
twice<<<(n + 255) / 256, 256>>>(x, out, n);
"""
SETUP = """
import numpy as np
from optiml_magic.commands import consent
from optiml_magic.llms.choice import ModelChoice
consent.agreed.__defaults__ = (lambda *_: ModelChoice("toy", "there is one"),)
x, out, n = np.ones(64, np.float32), np.zeros(64, np.float32), 64
def f(x): return 2 * x
%load_ext optiml_magic
"""


@pytest.mark.parametrize("stdin", sampled([True, False], 2))
def test_a_cell_asks_where_it_can_and_goes_on_without_where_nobody_answers(
    home: Path, *, stdin: bool
) -> None:
    manager, client = start_new_kernel(env={**os.environ, "OPTIML_HOME": str(home)})
    asked: list[str] = []

    def answer(message: dict[str, dict[str, str]]) -> None:
        asked.append(message["content"]["prompt"])
        client.input("n")

    said: list[str] = []
    try:
        client.execute_interactive(SETUP, timeout=60, output_hook=lambda _: None)
        reply = client.execute_interactive(
            CELL,
            timeout=60,
            allow_stdin=stdin,
            stdin_hook=answer,
            output_hook=lambda m: said.append(str(m["content"])),
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    assert len(asked) == stdin
    assert ("no model is asked, since nobody can answer here" in "".join(said)) == (not stdin)
    assert "none, as requested" in "".join(said)
