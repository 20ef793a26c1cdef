"""Large sets of inputs stay on a card that has room, and are drawn while it has other work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator
from optiml_magic.evaluation.beside import beside
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.verifiers import scrutiny
from optiml_magic.verifiers.learning import FINAL, Learner

TEXT = """#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i];
}
"""
CLAMPS = TEXT.replace("3.0f * x[i]", "3.0f * fminf(x[i], 2.5f)")
N = 2000


class Watched:
    """An evaluator on a device that is taken for a card, with what was drawn and sent."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.sent: list[str] = []
        self.drawn: list[str] = []
        self._count = 0

    @property
    def trials(self) -> scrutiny.Trials:
        return self.evaluator._context.scrutiny.trials

    def outcome(self, text: str) -> Outcome:
        one = Candidate(self._count, 0 if self._count else None, Proposal(text, "", "test"))
        self._count += 1
        self.sent.clear()
        self.drawn.clear()
        return self.evaluator([one])[0].verdict.outcome

    @property
    def large(self) -> list[str]:
        return [key for key in self.sent if key.startswith(FINAL)]


@pytest.fixture(params=[1 << 30, 0])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    x = np.random.default_rng(0).uniform(1, 2, N).astype(np.float32)
    problem = prepare(Task(TEXT, lambda x: 3 * x, {"x": x, "n": N}), seeds=1)
    monkeypatch.setattr(scrutiny, "is_emulated", lambda _: False)
    with session(resolve({"device": "emulated:h200"}), task=problem.task) as members:
        chip = replace(members.tools.chip, memory_bytes=request.param)
        tools = replace(members.tools, chip=chip)
        found = Watched(Evaluator(problem, tools, thorough=True))
        put, drawn = HostedDevice._put, Learner.drawn

        def sent(self: HostedDevice, *given: object) -> None:
            found.sent.append(given[1].key)  # type: ignore[attr-defined]
            put(self, *given)  # type: ignore[arg-type]

        def asked(self: Learner, *given: object) -> object:
            found.drawn.append(given[0].name)  # type: ignore[attr-defined]
            return drawn(self, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(HostedDevice, "_put", sent)
        monkeypatch.setattr(Learner, "drawn", asked)
        yield found


def test_what_fits_is_sent_once_and_nothing_is_drawn_twice(watched: Watched) -> None:
    room = watched.evaluator._tools.chip.memory_bytes
    assert watched.outcome(TEXT) is Outcome.PASSED
    learned = len(watched.drawn)
    assert learned
    while watched.trials.ahead():
        pass
    ahead = watched.drawn[learned:]
    assert bool(ahead) is bool(room)
    assert watched.outcome(TEXT.replace("256", "128")) is Outcome.PASSED
    assert not set(ahead) & set(watched.drawn)
    assert len(set(watched.large)) == (len(watched.large) if room else 1)
    assert watched.outcome(TEXT.replace("256", "64")) is Outcome.PASSED
    assert watched.drawn == []
    assert bool(watched.large) is not bool(room)
    assert watched.outcome(CLAMPS) is Outcome.WRONG


def test_something_is_done_until_the_other_is_there() -> None:
    ended, done = threading.Event(), []

    def meanwhile() -> bool:
        done.append(len(done))
        if len(done) == 3:
            ended.set()
        return len(done) < 3

    assert beside(lambda: ended.wait(10.0), meanwhile) is True
    assert done == [0, 1, 2]


def test_what_goes_wrong_beside_is_told_here() -> None:
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 / 0, lambda: False)
