"""What it costs to ask all rules for their sites at a node of the search.

    python benchmarks/rewriting/cost.py [--write]

Every program of this repository that has its launches is asked as a node would be: the ideas of
all rules, no text made. The processor time of the reading, which is kept by text, is told apart
from that of the rules. Beside them stands a program with seven tuned names of five values each. The
record is ``benchmarks/results/rewriting-cost.json``.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.errors import SourceError  # noqa: E402
from optiml_magic.kernels.prepared import with_launches  # noqa: E402
from optiml_magic.kernels.primitives.base import NotLegal, kernels  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.evaluation import Evaluation, Step  # noqa: E402
from optiml_magic.model.verdict import Outcome, Verdict  # noqa: E402
from optiml_magic.model.view import View  # noqa: E402
from optiml_magic.proposers.rules import RuleProposer  # noqa: E402
from optiml_magic.source.program import parse_program  # noqa: E402
from optiml_magic.testing.findings import NAMES, pair  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "rewriting-cost.json"
FOLDERS = ("optiml_magic/testing/kernels", "tests/tutorials")
_VERSIONS = ("optiml-magic", "tree-sitter-cuda")
_TIMES = 3  # the least of so many
_AIM = 50.0  # milliseconds of a node
_TUNED = 7
TUNED = (
    "".join(f"#pragma optiml tune T{at} in {{1, 2, 4, 8, 16}} = 4\n" for at in range(_TUNED))
    + "#pragma optiml launch scale grid(cdiv(n, 64 * T0)) block(64 * T0)\n"
    "__global__ void scale(const float* a, float* out, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    f"    if (i < n) out[i] = a[i] * ({' + '.join(f'T{at}' for at in range(_TUNED))});\n"
    "}\n"
)
Row = dict[str, Any]


def programs() -> Iterator[tuple[str, str]]:
    """The programs of this repository whose launches are given or certain, by where they are."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cu")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for name in NAMES:
        yield f"findings/{name} faulty", pair(name).faulty
        yield f"findings/{name} sound", pair(name).sound


def asked(name: str, text: str) -> Row | None:
    """Milliseconds for a program, read for the first time and read before."""
    try:
        whole = with_launches(text).program.text
    except SourceError:
        return None
    step = Step(
        Candidate(0, None, Proposal(whole, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    gc.collect()  # what earlier programs left is none of this one's cost
    began = time.process_time()
    try:
        for kernel in kernels(parse_program(whole), None):
            _ = kernel.reading
    except NotLegal:
        return None
    read = time.process_time() - began
    spent = []
    for _ in range(_TIMES):
        began = time.process_time()
        found = RuleProposer().propose(View(step, step), 1)
        spent.append(time.process_time() - began)
    return {
        "program": name,
        "reading_ms": round(1e3 * read, 2),
        "first_ms": round(1e3 * spent[0], 2),
        "again_ms": round(1e3 * min(spent), 2),
        "ideas": len(found.ideas),
        "refused": len(found.refused),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median, what 95 % are below, and the worst."""
    ranked = sorted(values)
    last = len(ranked) - 1
    return {"median": ranked[last // 2], "95 %": ranked[round(0.95 * last)], "worst": ranked[-1]}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    asked("warm", TUNED.replace("T0", "U0"))  # what is loaded with the first
    tuned = asked(f"{_TUNED} tuned names of five values", TUNED)
    rows = [row for name, text in programs() if (row := asked(name, text)) is not None]
    kinds = ("reading_ms", "first_ms", "again_ms")
    found = {kind: spread([row[kind] for row in rows]) for kind in kinds}
    for kind, values in found.items():
        print(kind, *(f"{name} {value:.1f}" for name, value in values.items()))
    slow = [row for row in rows if row["first_ms"] > _AIM]
    print(f"{len(rows)} programs, {len(slow)} above {_AIM:g} ms; tuned: {tuned}")
    for row in slow:
        print(row)
    if options.write:
        record = {
            "what": "processor time of the sites of all rules at a node, no text made",
            "command": " ".join(["python benchmarks/rewriting/cost.py", *arguments]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in _VERSIONS},
            "programs": len(rows),
            "milliseconds": found,
            "tuned": tuned,
            "rows": rows,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
