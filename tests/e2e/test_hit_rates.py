"""The benchmark of the advice, on one small kernel of the emulated device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu" / "hit_rates.py"


def run(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_facts_are_lines_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    out, page = tmp_path / "out.jsonl", tmp_path / "page.md"
    first = run(out, "emulated:h200", 60, "potential")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = {row["tool"]: row for row in rows if row["what"] == "finding"}
    fp64 = found["accidental_fp64"]
    assert (fp64["rewrite"], fp64["state"], fp64["source"]) == (
        "float_literals",
        "confirmed",
        "estimated",
    )
    assert fp64["gained"] == (fp64["speedup"] >= 1.1)
    assert "times by source `estimated`" in first
    before = out.read_text()
    run(out, "emulated:h200", 60, "potential")
    assert out.read_text() == before
    page.write_text("above\n<!-- tables -->\nold\n<!-- end of tables -->\nbelow\n")
    shown = run("--table", out, page)
    assert shown.strip() in page.read_text()
    assert page.read_text().startswith("above\n<!-- tables -->\n")
    assert page.read_text().endswith("<!-- end of tables -->\nbelow\n")
    assert "old" not in page.read_text()


def test_out_of_time_it_says_how_to_go_on(tmp_path: Path) -> None:
    assert "run it again to go on" in run(tmp_path / "out.jsonl", "emulated:h200", 0, "potential")
