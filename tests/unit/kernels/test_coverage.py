"""The record of how much is read, and the page that shows it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.reading import coverage
from benchmarks.reading.counting import Figures, cost, figures
from benchmarks.reading.subjects import others, own

RECORD = json.loads(coverage.RECORD.read_text())


def test_the_page_shows_the_record() -> None:
    page = coverage.PAGE.read_text()
    shown = page.partition(coverage.BEGIN)[2].partition(coverage.END)[0]
    assert shown == f"\n{coverage.table(RECORD)}\n"


def test_the_record_names_public_kernels_and_nothing_of_a_machine() -> None:
    public = RECORD["sets"][coverage.PUBLIC]["kernels"]
    assert len(public) == 141
    assert len({row["repository"] for row in public}) == 54
    assert all(len(row["commit"]) == 40 and row["path"] and row["kernel"] for row in public)
    assert RECORD["command"].startswith("python benchmarks/reading/coverage.py FOLDER")
    assert not [word for word in json.dumps(RECORD).split('"') if word.startswith("/")]


@pytest.mark.parametrize("name", [coverage.OURS, coverage.PUBLIC])
def test_shares_reach_what_is_aimed_at(name: str) -> None:
    counts = RECORD["sets"][name]["counts"]
    assert counts["kernels"] == len(RECORD["sets"][name]["kernels"])
    for told, part, whole, aim in coverage.SHARES:
        assert coverage.share(counts, part, whole) >= (aim or 0), told
    assert not [r for r in RECORD["sets"][name]["reasons"] if "raises" in r]
    assert all(times["lift"] < 20 for times in RECORD["milliseconds"].values())


def test_our_kernels_are_read_no_less_than_recorded() -> None:
    recorded: Counter[str] = Counter()
    for row in RECORD["sets"][coverage.OURS]["kernels"][::5]:
        recorded.update({key: value for key, value in row.items() if not isinstance(value, str)})
    total = Figures()
    for subject in list(own())[::5]:
        total = total + figures(subject)
    for told, part, whole, _ in coverage.SHARES:
        had, has = (coverage.share(counts, part, whole) for counts in (recorded, total.counts))
        assert has >= had - 1, told


def test_a_part_that_is_not_read_is_counted(tmp_path: Path) -> None:
    text = (
        "__global__ void f(float* a, const int* to, int n) {\n"
        "    int i = threadIdx.x;\n"
        "    if (i < n) a[i] = 1.0f;\n"
        '    asm volatile("membar.gl;");\n'
        "    for (int k = 0; k < n; ++k) a[to[a[k] > 0.0f]] = 0.0f;\n"
        "}\n"
    )
    row = {"file": "f.cu", "repository": "r", "path": "f.cu", "commit": "c", "kernel": "f"}
    (tmp_path / "index.json").write_text(json.dumps([row]))
    (tmp_path / "f.cu").write_text(text)
    (subject,) = others(tmp_path)
    found = figures(subject)
    # The counter's declaration and the branch are statements, and so is what they hold.
    assert (found.counts["statements"], found.counts["verbatim"]) == (7, 1)
    assert (found.counts["loops"], found.counts["bounded"]) == (1, 1)
    assert found.counts["accesses"] - found.counts["delinearised"] == 2  # to[?] and a[to[?]]
    assert {reason.partition(":")[0] for reason in found.reasons} == {"a statement", "an index"}
    lifting, reading = cost(text)
    assert lifting > 0
    assert reading > 0
