"""Programs by thoughts, without a device: what is asked, what is mended, what becomes of it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from optiml_magic.errors import MachineError
from optiml_magic.llms.base import LlmFailure, Reply, Request
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Step
from optiml_magic.model.thought import Attempt, Wanted, Wave, fates
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.proposers.asking import Asker, Room
from optiml_magic.proposers.thinking import Thinker

from .views import RIGHT, SCALE, step

WANTED = Wanted(
    "twice each\nelement", "def f(a): return 2 * a", "- `a`: float32, shape (12,)", ("elementwise",)
)
AT_ONCE = Room(pause=lambda _: None)
WRONG = Verdict(Outcome.WRONG, "3 of 12 wrong", line=6)


class Model:
    """Answers by what it is asked; all at once, or the barrier breaks."""

    name = "toy"

    def __init__(self, answer: Callable[[Request], str | LlmFailure], together: int = 0) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._barrier = threading.Barrier(together, timeout=20) if together else None
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Reply | LlmFailure:
        if self._barrier is not None and "# Your last program" not in request.user:
            self._barrier.wait()
        with self._lock:
            self.requests.append(request)
        answer = self._answer(request)
        return Reply(answer, 10, 5) if isinstance(answer, str) else answer


def program(text: str) -> str:
    return json.dumps({"program": text, "rationale": "so", "arithmetic": None})


def numbered(request: Request) -> str:
    """Another program each time that is asked."""
    return program(SCALE.replace("2.0f", f"{2 + request.temperature + request.seed:g}0f"))


def told(waves: Sequence[Wave], verdict: Callable[[Attempt], Verdict]) -> list[Step]:
    """The baseline, and the steps that the attempts became."""
    steps = [step()]
    for wave in waves:
        for one in wave.attempts:
            if one.proposal is not None:
                found = step(number=len(steps), verdict=verdict(one))
                candidate = Candidate(len(steps), None, one.proposal)
                steps.append(replace(found, candidate=candidate))
    return steps


def test_the_best_thoughts_are_asked_side_by_side_at_each_temperature() -> None:
    model = Model(numbered, together=6)
    wave = Thinker(Asker(model, AT_ONCE), WANTED, budget=24)((), [step()])
    assert sum(thought.weight for thought in wave.gate) == pytest.approx(1.0)
    best = [thought.name for thought in wave.gate[:3]]
    assert best[0] == "vector_map"
    assert [(a.thought, a.temperature) for a in wave.attempts] == [
        (name, temperature) for temperature in (0.3, 0.9) for name in best
    ]
    assert len({request.seed for request in model.requests}) == 6
    for proposal in wave.proposals:
        assert proposal.text.startswith("// twice each\n// element\n#pragma optiml tune")
        assert proposal.proposer == "llm:toy"
    asked = next(r for r in model.requests if wave.gate[0].title in r.user).user
    for part in (WANTED.words, WANTED.reference, WANTED.sizes, SCALE, "NVIDIA H200", "16 bytes"):
        assert part in asked
    assert "`args(a, b, ...)`" not in model.requests[0].system
    assert "#pragma optiml launch KERNEL" in model.requests[0].system


@pytest.mark.parametrize(("budget", "attempts"), [(1, 1), (4, 2), (24, 6), (400, 6)])
def test_the_first_attempts_take_half_of_the_budget_at_most(budget: int, attempts: int) -> None:
    wave = Thinker(Asker(Model(numbered), AT_ONCE), WANTED, budget=budget)((), [step()])
    assert len(wave.attempts) == attempts


def test_one_thought_alone_may_be_developed() -> None:
    wave = Thinker(Asker(Model(numbered), AT_ONCE), WANTED, budget=24, most=1)((), [step()])
    assert {one.thought for one in wave.attempts} == {wave.gate[0].name}
    assert len(wave.attempts) == 2


def test_what_is_wrong_is_mended_twice_unless_its_thought_is_right() -> None:
    model = Model(numbered)
    thinker = Thinker(Asker(model, AT_ONCE), WANTED, budget=24)
    waves = [thinker((), [step()])]
    right, *others = [thought.name for thought in waves[0].gate[:3]]

    def verdict(attempt: Attempt) -> Verdict:
        return RIGHT if attempt.thought == right and attempt.temperature == 0.3 else WRONG

    while (wave := thinker(waves, told(waves, verdict))).attempts:
        waves.append(wave)
    mended = [[(a.thought, a.repairs) for a in wave.attempts] for wave in waves[1:]]
    assert mended == [[(name, n) for _ in range(2) for name in others] for n in (1, 2)]
    asked = model.requests[-1].user
    assert "It failed (wrong) at line 6" in asked
    assert "3 of 12 wrong" in asked
    assert f"{waves[1].attempts[-1].proposal.text.rstrip()}\n```" in asked  # type: ignore[union-attr]
    ends = {fate.thought.name: fate for fate in fates(waves, told(waves, verdict))}
    assert ends[right].outcome == "right"
    assert {ends[name].outcome for name in others} == {"wrong"}
    assert len(ends[others[0]].attempts) == 6
    assert {f.outcome for n, f in ends.items() if n not in (right, *others)} == {"not asked for"}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("a library does it better", "no JSON object"),
        ('{"program": 3}', "`program`"),
        (
            program("__global__ void scale(const float* a, float* out, int n) {}"),
            "launch directive",
        ),
        (program(SCALE.replace("out", "elsewhere")), "no buffer `elsewhere`"),
        (program('#include "/etc/passwd"\n' + SCALE), "not allowed"),
        (program(SCALE), "does not change"),
    ],
)
def test_what_is_no_program_is_not_tried_and_may_be_mended(reply: str, said: str) -> None:
    wanted = replace(WANTED, words="")
    model = Model(lambda request: reply if request.seed < 100 else numbered(request))
    thinker = Thinker(Asker(model, AT_ONCE), wanted, budget=2)
    first = thinker((), [step()])
    (attempt,) = first.attempts
    assert attempt.proposal is None
    assert said in attempt.said
    (again,) = thinker([first], [step()]).attempts
    assert again.repairs == 1
    assert again.proposal is not None
    assert "repaired once" in again.proposal.title
    assert said in model.requests[-1].user


def test_what_failed_before_there_was_a_baseline_is_no_baseline() -> None:
    model = Model(numbered)
    thinker = Thinker(Asker(model, AT_ONCE), replace(WANTED, interface=SCALE), budget=2)
    first = thinker((), ())
    (proposal,) = first.proposals
    failed = replace(step(verdict=WRONG), candidate=Candidate(0, None, proposal))
    (again,) = thinker([first], [failed]).attempts
    assert again.repairs == 1
    assert "The interface" in model.requests[-1].user
    assert "A straightforward program" not in model.requests[-1].user


def test_nothing_is_mended_when_it_is_late() -> None:
    late: list[bool] = []
    thinker = Thinker(Asker(Model(numbered), AT_ONCE), WANTED, budget=24, late=lambda: bool(late))
    first = thinker((), [step()])
    late.append(True)
    assert thinker([first], told([first], lambda _: WRONG)).attempts == ()


def test_an_endpoint_that_is_down_ends_it_and_is_noted_once() -> None:
    model = Model(lambda _: LlmFailure("unreachable", "nobody there"))
    thinker = Thinker(Asker(model, AT_ONCE), WANTED, budget=24)
    first = thinker((), [step()])
    assert not first.proposals
    assert thinker([first], [step()]).attempts == ()
    off = "llm:toy: 3 failures in a row: the model is not asked again"
    assert thinker.notes == ("llm:toy: nobody there", off)
    assert thinker.requests == 6
    assert len(model.requests) <= 6
    assert {fate.outcome for fate in fates([first], [step()])[:3]} <= {"no program"}


def test_a_failure_that_passes_costs_no_thought() -> None:
    waited: list[float] = []
    turns: list[Request] = []

    def act(request: Request) -> str | LlmFailure:
        turns.append(request)
        return LlmFailure("rate_limited", "slowly") if len(turns) == 1 else numbered(request)

    thinker = Thinker(Asker(Model(act), Room(pause=waited.append)), WANTED, budget=24)
    assert len(thinker((), [step()]).proposals) == 6
    assert waited == [1.0]
    assert thinker.notes == ("llm:toy: slowly",)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler, whatever a test before left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_does_not_wait_for_an_endpoint_that_is_silent() -> None:
    asked, answered = threading.Event(), threading.Event()

    def silent(_: Request) -> LlmFailure:
        asked.set()
        answered.wait(20)
        return LlmFailure("timeout", "at last")

    def interrupt() -> None:
        asked.wait(20)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Thinker(Asker(Model(silent), AT_ONCE), WANTED, budget=24)((), [step()])
    assert time.monotonic() - began < 10
    answered.set()


def test_a_wrong_key_is_the_users_matter() -> None:
    def refuse(_: Request) -> str:
        raise MachineError("it does not accept the key")

    with pytest.raises(MachineError, match="accept the key"):
        Thinker(Asker(Model(refuse), AT_ONCE), WANTED, budget=24)((), [step()])


def test_a_program_that_another_thought_wrote_too_is_not_mended() -> None:
    wave = Wave((Attempt("vector_map", 0.3, 0, step(SCALE + "\n").candidate.proposal),))
    assert (
        Thinker(Asker(Model(numbered), AT_ONCE), WANTED, budget=24)([wave], [step()]).attempts == ()
    )


def test_without_a_baseline_the_interface_is_shown_and_attempts_made_before_are_kept() -> None:
    skeleton = "#pragma optiml launch f grid(1) block(1)\n__global__ void f(const float* a, float* out) {}\n"
    model = Model(numbered)
    wanted = Wanted("twice", interface=skeleton, note="it is not traced")
    first = Thinker(Asker(model, AT_ONCE), wanted, budget=4)((), ())
    assert skeleton in model.requests[0].user
    assert "computes nothing" in model.requests[0].user
    assert first.proposals
    again = Thinker(Asker(model, AT_ONCE), replace(wanted, first=first), budget=4)
    assert again((), [step()]) is first
    assert again.notes == ("it is not traced",)
