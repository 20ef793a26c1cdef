from __future__ import annotations

from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.measurement import Bound, Measurement
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict
from optiml_magic.reports import contract, html, text
from optiml_magic.reports.quantities import ratio, seconds
from optiml_magic.reports.summary import Summary

EVIL = "<script>alert(1)</script> & \"quotes\" 'and' {braces} %s"


def measured(duration: float) -> Measurement:
    return Measurement("h200", "estimated", duration, 1.3, (), (Bound("dram", duration),), ())


def step(number: int, parent: int | None, duration: float | None, program: str = EVIL) -> Step:
    finding = Finding(
        "tool", "critical", EVIL, (Evidence("m", 1, 2, "u", "emulated"),), (Action(EVIL),), (1, 2)
    )
    passed = duration is not None
    verdict = Verdict(Outcome.PASSED if passed else Outcome.WRONG, EVIL)
    evaluation = Evaluation(
        number,
        str(number),
        verdict,
        measured(duration) if duration is not None else None,
        findings=(finding,),
    )
    return Step(
        Candidate(number, parent, Proposal(f"{program} {number}", EVIL, "rules")), evaluation
    )


def summary(*durations: float | None) -> Summary:
    steps = tuple(step(n, 0 if n else None, d) for n, d in enumerate(durations))
    return Summary(
        EVIL, "emulated:h200", EVIL, EVIL, "given", (EVIL,), Trajectory(steps, EVIL), 1.0, None
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("href", "xlink:href")}
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("durations", [(4.0, 1.0, None), (1.0, 0.95), (None,)])
def test_html_is_whole_static_and_escaped(durations: tuple[float | None, ...]) -> None:
    reader = _Reader()
    reader.feed(html.page([summary(*durations)], EVIL))
    assert reader.open == []
    assert not {"script", "style", "link", "svg", "iframe"} & set(reader.tags)
    assert not {name for name in reader.attributes if name.startswith("on")}
    assert not {"srcset", "action", "class"} & reader.attributes
    assert all(target.startswith("#") for target in reader.targets)
    assert EVIL in reader.text


def test_html_of_one_stage_is_whole_static_and_escaped() -> None:
    wrong = Verdict(Outcome.WRONG, EVIL, 3, EVIL)
    facts = [("device", EVIL)]
    for page in (
        html.verdict(EVIL, wrong, facts),
        html.profile(EVIL, measured(1.0), step(0, None, 1.0).evaluation.findings, facts),
    ):
        reader = _Reader()
        reader.feed(page)
        assert reader.open == []
        assert "script" not in reader.tags
        assert reader.attributes <= {"style", "open", "scope"}
        assert EVIL in reader.text
    assert "line 3: " in html.verdict("k", wrong, facts)
    assert "1 s estimated on h200" in html.profile("k", measured(1.0), (), facts)


def test_a_significant_gain_wins_and_is_called_estimated() -> None:
    found = summary(4.0, 1.0, 2.0)
    assert found.speedup == 4.0
    assert found.interval == pytest.approx((4 / 1.3, 5.2))
    assert "4x faster, estimated" in text.headline(found)
    assert found.winner.candidate.number == 1
    assert "+" in found.diff()


def test_a_gain_inside_the_interval_is_no_change_and_the_input_is_kept() -> None:
    found = summary(1.0, 0.9)
    assert found.winner is found.root
    assert found.speedup == 1.0
    assert "no significant change" in text.headline(found)
    assert found.diff() == ""


def narrowed(*durations: float, where: dict[int, tuple[str, ...]]) -> Summary:
    """``where`` has what a step requires of the sizes, by its number."""
    found = summary(*durations)
    steps = tuple(
        replace(
            step,
            evaluation=replace(step.evaluation, only_where=where.get(step.candidate.number, ())),
        )
        for step in found.trajectory.steps
    )
    return replace(found, trajectory=replace(found.trajectory, steps=steps))


def test_a_gain_that_narrows_the_kernel_is_named_in_the_headline() -> None:
    found = narrowed(4.0, 1.0, where={1: ("cols % 4 == 0", "rows > 1")})
    assert found.winner.candidate.number == 1
    wanted = "verified; only where cols % 4 == 0 and rows > 1"
    assert text.headline(found).endswith(wanted)
    assert escape("only where cols % 4 == 0 and rows > 1") in html.fragment(found)
    assert contract.optimized(found)["best"]["only_where"] == ["cols % 4 == 0", "rows > 1"]
    assert "only where" not in text.headline(narrowed(4.0, 1.0, 0.9, where={2: ("n > 1",)}))


@pytest.mark.parametrize(
    ("durations", "winner"),
    [((4.0, 1.0, 1.2), 2), ((4.0, 1.0, 1.4), 1), ((1.0, 0.7), 1), ((1.0, 0.9), 0)],
)
def test_within_the_noise_the_general_one_wins(durations: tuple[float, ...], winner: int) -> None:
    found = narrowed(*durations, where={1: ("n % 4 == 0",)})
    assert found.winner.candidate.number == winner


def test_the_fastest_general_one_is_among_the_finalists() -> None:
    trajectory = narrowed(9.0, 1.0, 2.0, 3.0, 4.0, where={1: ("a",), 2: ("b",)}).trajectory
    assert [step.candidate.number for step in trajectory.leading(2)] == [1, 2, 3]
    assert [step.candidate.number for step in trajectory.leading(3)] == [1, 2, 3]


def test_every_estimated_figure_says_so() -> None:
    for line in text.render(summary(4.0, 1.0)).splitlines():
        if " us" in line or "x faster" in line or " s estimated" in line:
            assert "estimated" in line


def test_the_contract_has_the_promised_keys() -> None:
    outcome = contract.optimized(summary(4.0, 1.0, None))
    assert outcome.keys() >= {
        "task", "device", "source", "launch", "baseline", "best", "evaluations", "verdicts",
        "wall_seconds", "steps",
    }  # fmt: skip
    assert outcome["baseline"] == {
        "what": "the input kernel", "seconds": 4.0, "joules": None, "verdict": "passed",
    }  # fmt: skip
    assert outcome["best"].keys() == {
        "seconds", "joules", "speedup", "interval", "title", "only_where", "program",
        "arithmetic", "largest_error",
    }  # fmt: skip
    assert outcome["verdicts"] == {"passed": 2, "wrong": 1}
    assert outcome["steps"][2]["seconds"] is None
    assert outcome["steps"][1].keys() >= {
        "id", "parent", "title", "proposer", "verdict", "seconds", "reward", "findings",
        "hypothesis", "arithmetic", "refused",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"), [(1.5, "1.5 s"), (0.00123, "1.23 ms"), (2.5e-6, "2.5 us"), (4e-9, "4 ns")]
)
def test_durations(value: float, shown: str) -> None:
    assert seconds(value) == shown


def test_ratios() -> None:
    assert (ratio(2.345), ratio(123.4)) == ("2.35x", "123x")


def test_what_changed_of_the_arithmetic_is_said_with_the_error_and_the_allowed_one() -> None:
    found = summary(4.0, 1.0)
    root, step = found.trajectory.steps
    check = OutputCheck("out", 9, 0, 0, 0, 3e-7, 1e-6, 2e-5, 1e-6)
    near = OutputCheck("near", 9, 0, 0, 0, 2e-7, 1e-6, 1e-6, 1e-6)
    changed = replace(step.candidate.proposal, arithmetic=("the order of additions",))
    verdict = replace(step.evaluation.verdict, checks=(check, near))
    step = Step(
        replace(step.candidate, proposal=changed), replace(step.evaluation, verdict=verdict)
    )
    told = replace(found, trajectory=Trajectory((root, step), ""))
    line = "changes the order of additions; largest error 2e-07, of `near`, 1e-06 allowed"
    assert f"  arithmetic   {line}" in text.render(told)
    assert line in html.fragment(told)
    assert contract.optimized(told)["best"]["largest_error"] == {
        "output": "near", "error": 2e-7, "allowed": 1e-6,
    }  # fmt: skip
    for atol, told_too in ((3.0, "3 allowed for each element"), (0.0, "none allowed")):
        alone = replace(verdict, checks=(replace(near, rtol=0.0, atol=atol),))
        whole = replace(step, evaluation=replace(step.evaluation, verdict=alone))
        shown = text.render(replace(found, trajectory=Trajectory((root, whole), "")))
        assert f"largest error 2e-07, of `near`, {told_too}" in shown
    assert "no edit says that it changes any" in text.render(found)
    exact = replace(told, exact=True)
    assert "every bit as the input kernel has it, as --exact asks" in text.render(exact)


def test_what_was_not_tried_is_told_of_the_best_and_of_the_input_each_once() -> None:
    found = summary(4.0, 1.0)
    refused = [Refusal("tile", f"{EVIL} {number}", number) for number in range(20)]
    told = found.trajectory.told({0: tuple(refused), 1: (*refused[:2], Refusal("swap", "no axis"))})
    shown = text.render(replace(found, trajectory=told))
    assert "not tried on the best program:" in shown
    assert "not tried on the input kernel:" in shown
    assert shown.count("  tile: ") == 2 + 12
    assert "  swap: no axis" in shown
    page = html.fragment(replace(found, trajectory=told))
    assert "Not tried" in page
    assert EVIL not in page
    steps = contract.optimized(replace(found, trajectory=told))["steps"]
    assert len(steps[0]["refused"]) == 20
    assert steps[1]["refused"][2] == {"rule": "swap", "reason": "no axis", "line": 0}


def test_a_rule_that_broke_is_told_of_whatever_program_that_was() -> None:
    found = summary(1.0, 4.0)
    refused = (Refusal("swap", "no axis"), Refusal.failed("tile", "KeyError in tile.py, line 7: p"))
    shown = text.render(replace(found, trajectory=found.trajectory.told({1: refused})))
    assert "not tried on other programs:" in shown
    assert "  tile: the rule failed: KeyError in tile.py, line 7: p" in shown
    assert "swap" not in shown
