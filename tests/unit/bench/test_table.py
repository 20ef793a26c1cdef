from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optiml_magic.bench.picture import suite_picture
from optiml_magic.bench.row import Row, Setup, append, read
from optiml_magic.bench.suite import SUITE
from optiml_magic.bench.table import geometric_mean, table, totals
from optiml_magic.errors import UsageError

SETUP = Setup("cuda:0", "h200", "full", 48, 60.0, "a card", {}, "optiml bench", "2026-01-01")
FAST = Row(
    "gelu", "maps", "open", SETUP, {"n": 1}, source="events",
    seconds={"input": 8.0, "best": 2.0, "torch eager": 4.0, "CuPy": 3.0}, floor=1.0,
    claimed=4.0, progress=(1.0, 3.0, 3.9, 4.0),
)  # fmt: skip
EVEN = replace(
    FAST, task="transpose", seconds={"input": 2.0, "best": 2.0}, claimed=1.0, progress=(1.01,)
)


def test_means_are_geometric_and_peers_count_where_there_are_any() -> None:
    found = totals([FAST, EVEN, replace(FAST, task="grey", error="it failed")], "open")
    assert (found.tasks, found.compared) == (2, 1)
    assert found.speedup == pytest.approx(2.0)
    assert found.share == pytest.approx(0.5)
    assert found.ahead == pytest.approx(1.5)
    assert found.peers == pytest.approx(8 / 3)
    assert found.peers_share == pytest.approx(1 / 3)
    assert totals([FAST], "held-out").speedup is None
    assert geometric_mean([]) is None


def test_evaluations_are_counted_to_nearly_all_of_the_gain() -> None:
    assert FAST.best_peer == "CuPy"
    assert FAST.evaluations == 3  # 1 + 0.95 * 3 = 3.85
    assert EVEN.evaluations is None


def test_what_was_not_run_is_listed_and_in_no_mean() -> None:
    text = table([FAST, replace(FAST, task="grey", error="it failed")], SUITE[:9])
    assert "| open | 1 | 4x | 50 % | 1.5x (1 tasks) | 3 |" in text
    assert "- grey: it failed" in text
    assert "- permute: not run" in text
    assert "- gelu" not in text


def test_rows_survive_a_line_that_was_left_unfinished(tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    assert read(file) == []
    append(file, FAST)
    append(file, replace(FAST, claimed=5.0))
    with file.open("a") as end:
        end.write('{"task": "tr')
    assert read(file) == [replace(FAST, claimed=5.0)]
    append(file, EVEN)
    assert [row.task for row in read(file)] == ["gelu", "transpose"]
    with file.open("a") as end:
        end.write("no row\n")
    with pytest.raises(UsageError, match="not a row of this version"):
        read(file)


def test_the_picture_names_every_task_with_figures() -> None:
    picture = suite_picture([FAST, replace(EVEN, part="held-out"), replace(FAST, error="no")])
    assert "transpose (held out)" in picture.svg
    assert "2 tasks, events" in picture.description


def test_rows_of_two_cards_of_a_machine_are_of_one_table() -> None:
    one = Setup("cuda:0", "h200", "full", 48, 60.0, "NVIDIA H200", {}, "optiml bench", "2026-11-30")
    assert one.key == replace(one, device="cuda:1", command="again", date="2026-12-01").key
    others = replace(one, chip="h100"), replace(one, device="emulated:h200"), replace(one, budget=8)
    assert all(one.key != other.key for other in others)
