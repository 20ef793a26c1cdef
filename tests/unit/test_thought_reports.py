"""Several roots and their thoughts in the reports."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.peer import Peer
from optiml_magic.model.thought import Attempt, Thought, Wave, fates
from optiml_magic.reports import contract, html, text, tree
from optiml_magic.reports.summary import Summary
from tests.unit.test_reports import EVIL, step, summary


def root(number: int, duration: float | None) -> Step:
    found = step(number, None, duration)
    proposal = replace(found.candidate.proposal, title=f"thought {number}")
    return replace(found, candidate=Candidate(number, None, proposal))


def thoughtful() -> Summary:
    """A baseline, a wrong root, a right one that is faster, an edit of it, and one not asked for."""
    wrong, right = root(1, None), root(2, 2e-6)
    edit = step(3, 2, 1e-6)
    steps = (step(0, None, 4e-6), wrong, right, edit)
    gate = (
        Thought("rows", "a warp a row", 0.5, ("+2 reduces rows",)),
        Thought("tiles", "tiles <b>", 0.3),
        Thought("scan", "a scan", 0.2),
    )
    first = Wave(
        (
            Attempt("rows", 0.3, 0, wrong.candidate.proposal),
            Attempt("tiles", 0.3, 0, None, EVIL, "text"),
        ),
        gate,
    )
    second = Wave((Attempt("rows", 0.3, 1, right.candidate.proposal),))
    found = replace(summary(4e-6), trajectory=Trajectory(steps, "spent"), author="reference")
    return replace(found, thoughts=fates([first, second], steps))


def test_each_thought_stands_with_its_weight_and_its_fate() -> None:
    told = text.render(thoughtful())
    assert "0.50 a warp a row: right, #2, 2x estimated" in told
    assert "+2 reduces rows" in told
    assert "#1 at temperature 0.3: wrong" in told
    assert "#2 at temperature 0.3, repaired: passed, 2 us" in told
    assert "0.30 tiles <b>: no program" in told
    assert "not asked for: 0.20 a scan" in told
    page = html.page([thoughtful()], "page")
    assert "tiles &lt;b&gt;" in page
    assert "<script>" not in page
    assert "Thoughts" in page


def test_the_winner_is_told_from_its_own_root_and_the_baseline_by_who_wrote_it() -> None:
    found = thoughtful()
    assert found.recipe == f"thought 2, then {EVIL}"
    assert [one.candidate.number for one in found.trajectory.roots] == [0, 1, 2]
    assert "4 us estimated: the lowered reference" in text.render(found)
    lines = tree.lines(found)
    assert [line.startswith("#") for line in lines] == [True, True, True, False]
    assert text.render(replace(found, author=None)).count("the lowered reference") == 0


def test_a_peer_on_the_card_is_the_baseline_and_the_lowered_reference_where_it_began() -> None:
    def beside(seconds: float) -> Summary:
        return replace(
            thoughtful(), peer=Peer("CuPy running the reference", seconds, 1.01, "a graph")
        )

    found = beside(8e-6)
    assert found.speedup == 8.0
    assert found.interval[0] < 8.0 < found.interval[1]
    told = text.render(found)
    assert told.startswith(
        f"{EVIL}: 8x faster than CuPy running the reference, estimated (between "
    )
    assert "baseline     8 us estimated: CuPy running the reference, a graph\n" in told
    assert "begun from   4 us estimated: the lowered reference\n" in told
    assert "#0       1x estimated" not in told.split("how it got there")[0]
    assert "begun from" in html.page([found], "page")
    plain = contract.optimized(found)
    assert plain["baseline"]["what"] == "CuPy running the reference"
    assert plain["baseline"]["seconds"] / plain["best"]["seconds"] == plain["best"]["speedup"]
    assert f"{EVIL}: slower than CuPy" in text.render(beside(0.1e-6))
    assert f"{EVIL}: about as fast as CuPy" in text.render(beside(1e-6))
    assert contract.optimized(thoughtful())["baseline"]["what"] == "the lowered reference"


def test_json_has_the_roots_as_candidates_and_the_thoughts() -> None:
    found = contract.optimized(thoughtful())
    assert found["origin"] == "reference"
    assert [c["origin"] for c in found["candidates"]] == ["reference", "model", "model"]
    assert [c["verdict"] for c in found["candidates"]] == ["passed", "wrong", "passed"]
    rows, tiles, scan = found["thoughts"]
    assert (rows["fate"], rows["best"], rows["weight"]) == ("right", 2, 0.5)
    assert [a["id"] for a in rows["attempts"]] == [1, 2]
    assert (tiles["fate"], tiles["attempts"][0]["said"]) == ("no program", EVIL)
    assert scan["attempts"] == []
    plain = contract.optimized(summary(4e-6))
    assert not {"origin", "candidates", "thoughts"} & plain.keys()
