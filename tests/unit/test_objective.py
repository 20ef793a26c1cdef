"""Energy as the objective: joules choose among what is about as fast, and nothing stands in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.errors import UsageError
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.measurement import Measurement, Metric
from optiml_magic.model.objective import ENERGY, SLOWER
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import prepare
from optiml_magic.reports import contract, text
from optiml_magic.reports.summary import Summary
from optiml_magic.rewards import reward
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

SOME = st.floats(1e-3, 1e3)


def measured(seconds: float, joules: float | None) -> Measurement:
    metrics = () if joules is None else (Metric(ENERGY, joules, "J", "nvml"),)
    return Measurement("h200", "events", seconds, 1.01, metrics, (), ())


def step(number: int, seconds: float, joules: float | None) -> Step:
    candidate = Candidate(number, 0 if number else None, Proposal(f"k{number}", "t", "rules"))
    verdict = Verdict(Outcome.PASSED, "fine")
    return Step(candidate, Evaluation(number, str(number), verdict, measured(seconds, joules)))


def summary(*figures: tuple[float, float | None]) -> Summary:
    steps = tuple(step(number, *both) for number, both in enumerate(figures))
    trajectory = Trajectory(steps, "done", objective="energy")
    return Summary("t", "cuda:0", "asked", "ref", "given", (), trajectory, 1.0, None)


@pytest.mark.parametrize(
    ("figures", "winner"),
    [
        ([(1.0, 1.0), (0.5, 0.8), (0.52, 0.4)], 2),  # about as fast, and half the joules
        ([(1.0, 1.0), (0.5, 0.8), (0.53, 0.1)], 1),  # more than the bound slower: speed first
        ([(1.0, 1.0), (1.04, 0.5)], 1),  # a saving alone wins
        ([(1.0, 1.0), (1.0, 0.97)], 0),  # a saving within the error does not
        ([(1.0, 1.0), (0.3, 1.5)], 1),  # the input kernel is far behind
        ([(1.0, 1.0), (0.5, None), (0.51, 0.9)], 2),  # what is unknown saves nothing
        ([(1.0, 1.0), (0.5, None), (0.6, 0.2)], 1),
    ],
)
def test_the_fewest_joules_among_the_about_fastest_win(
    figures: list[tuple[float, float | None]], winner: int
) -> None:
    found = summary(*figures)
    assert found.winner.candidate.number == winner
    by_speed = replace(found, trajectory=replace(found.trajectory, objective="speed"))
    fastest = min(range(len(figures)), key=lambda at: figures[at][0])
    assert by_speed.winner.candidate.number == fastest
    leading = [one.candidate.number for one in found.trajectory.leading(3)]
    assert not winner or leading[0] == winner


@given(st.lists(st.tuples(SOME, st.none() | SOME), min_size=1, max_size=6))
def test_whatever_wins_is_about_as_fast_as_the_fastest(
    figures: list[tuple[float, float | None]],
) -> None:
    best = summary(*figures).trajectory.best.evaluation.measurement
    assert best is not None
    assert best.seconds <= SLOWER * min(seconds for seconds, _ in figures)


@given(before=SOME, after=SOME, saved=SOME)
def test_the_reward_is_of_joules_where_a_program_is_not_slower(
    before: float, after: float, saved: float
) -> None:
    root, found = measured(before, 1.0), measured(after, 1 / saved)
    got = reward(root, found, objective="energy")
    wanted = math.log(saved)
    if after > SLOWER * before:
        wanted = min(wanted, math.log(before / after))
    assert got == pytest.approx(max(-1.0, min(1.0, wanted / math.log(65536))))
    unknown = reward(root, measured(after, None), objective="energy")
    assert unknown == pytest.approx(min(0.0, reward(root, measured(after, None))))


def test_reports_tell_the_joules() -> None:
    told = summary((1.0, 1.0), (1.0, 0.5))
    assert text.headline(told).startswith(
        "t: 2x fewer joules at 1x the speed, events (between 1.9x and 2.1x)"
    )
    assert "1 J a run before, 0.5 J after" in text.render(told)
    outcome = contract.optimized(told)
    assert (outcome["objective"], outcome["best"]["joules"]) == ("energy", 0.5)


def test_a_device_without_joules_is_no_place_to_search_for_them() -> None:
    task = known_task("saxpy", n=1000)
    problem, settings = prepare(task, seeds=1), resolve({"device": "emulated:h200"})
    with session(settings, task=task) as members:
        evaluator = Evaluator(problem, members.tools, objective="energy")
        with pytest.raises(UsageError, match="an emulated device draws no power"):
            evaluator([Candidate(0, None, Proposal(problem.program.text, "input", "user"))])
