"""Mutation testing of the verification: faults planted in correct kernels, and how many it catches.

    python benchmarks/mutations.py [--write] [--most N] [--jobs N] [KERNEL ...]

Each mutant is evaluated on the emulated device as if it were to win a search: every size, scale and
seed, and the hazards. What has the machine code and the launches of the original, or of a mutant
before it, is not counted; what is argued in ``tests/mutations/equivalent.py`` is counted apart; all
others are faults, caught or missed. The record is ``benchmarks/results/mutations.json``. What was
judged is kept beside it until it is complete, so that a run that is stopped goes on with the rest.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutations.equivalent import EQUIVALENT  # noqa: E402
from tests.mutations.subjects import SUBJECTS  # noqa: E402
from tests.mutations.trial import Judged, trial  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "mutations.json"
WANTED = 0.98
Rows = dict[str, list[Judged]]


def judged(job: tuple[str, int]) -> tuple[str, list[Judged], float]:
    kernel, most = job
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        return kernel, list(trial(kernel, Path(home), most=most)), time.monotonic() - began


def collect(kernels: list[str], most: int, jobs: int, partial: Path) -> tuple[Rows, float]:
    """What was judged, and the seconds that it took in all, one kernel after another."""
    rows: Rows = {}
    spent: dict[str, float] = {}
    if partial.exists():
        for line in partial.read_text().splitlines():
            kernel, seconds, found = json.loads(line)
            rows[kernel] = [Judged(**row) for row in found]
            spent[kernel] = seconds
    left = [(kernel, most) for kernel in kernels if kernel not in rows]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool, partial.open("a") as kept:
        for kernel, found, seconds in pool.imap_unordered(judged, left):
            rows[kernel] = found
            spent[kernel] = seconds
            kept.write(json.dumps([kernel, seconds, [asdict(row) for row in found]]) + "\n")
            kept.flush()
            ends = Counter(row.end for row in found)
            told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
            print(f"{kernel:<34} {seconds:6.1f} s  {told}", flush=True)
            for row in found:
                if row.end == "missed" and row.name not in EQUIVALENT.get(kernel, {}):
                    print(f"    missed {row.name}", flush=True)
    return {kernel: rows[kernel] for kernel in kernels}, sum(spent.values())


def summary(rows: Rows) -> dict[str, Any]:
    """The counts. A mutant argued to be no fault that is rejected is a contradiction."""
    every = [row for found in rows.values() for row in found]
    faults, argued, contradictions = [], [], []
    for row in every:
        reason = EQUIVALENT.get(row.kernel, {}).get(row.name)
        if row.end == "missed" and reason:
            argued.append(row)
        elif row.end in ("caught", "missed"):
            faults.append(row)
            contradictions += [f"{row.kernel} {row.name}"] if reason else []
    caught = [row for row in faults if row.end == "caught"]
    ends = Counter(row.end for row in every)
    operators = {row.operator: [0, 0] for row in faults}
    for row in faults:
        operators[row.operator][0] += 1
        operators[row.operator][1] += row.end == "caught"
    return {
        "mutants": len(every),
        "faults": len(faults),
        "caught": len(caught),
        "share": round(len(caught) / len(faults), 4) if faults else 0.0,
        "missed": [f"{r.kernel} {r.name}" for r in faults if r.end == "missed"],
        "argued_to_be_no_fault": len(argued),
        "same_code_as_the_original": ends["same"],
        "same_code_as_another_mutant": ends["twin"],
        "do_not_compile": ends["stillborn"],
        "contradictions": contradictions,
        "caught_as": dict(Counter(row.outcome for row in caught).most_common()),
        "by_operator": {
            name: {"faults": total, "caught": found}
            for name, (total, found) in sorted(operators.items())
        },
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=list(SUBJECTS))
    parser.add_argument("--most", type=int, default=1, help="mutants of an operator in a kernel")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    partial = RECORD.with_suffix(".partial") if given.write else Path(tempfile.mkstemp()[1])
    rows, seconds = collect(given.kernels, given.most, given.jobs, partial)
    found = summary(rows)
    print(json.dumps({k: v for k, v in found.items() if k != "by_operator"}, indent=1))
    for name, counts in found["by_operator"].items():
        print(f"{name:<28} {counts['caught']:4} of {counts['faults']:4}")
    if given.write:
        record = {
            "command": " ".join(["python benchmarks/mutations.py", *arguments]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "versions": {
                name: version(name)
                for name in ("optiml-magic", "nvidia-cuda-nvrtc", "llvmlite", "tree-sitter-cuda")
            },
            "seconds": round(seconds),
            **found,
            "argued": {
                kernel: {
                    n: why for n, why in reasons.items() if n in {r.name for r in rows[kernel]}
                }
                for kernel, reasons in EQUIVALENT.items()
                if kernel in rows
            },
            "ends": {
                kernel: {
                    row.name: row.outcome if row.end == "caught" else row.end for row in judged_
                }
                for kernel, judged_ in rows.items()
            },
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    partial.unlink()
    return 0 if found["share"] >= WANTED and not found["contradictions"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
