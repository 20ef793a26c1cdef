"""Which tools fire on the known kernels and on the tutorials': a JSON line for each, resumable.

python benchmarks/findings/survey.py out.jsonl [--device emulated:h200] [--seconds 600]
python benchmarks/findings/survey.py out.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.evaluation import Evaluator  # noqa: E402
from optiml_magic.findings import TOOLS, Tool  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.finding import RooflineClass  # noqa: E402
from optiml_magic.optimize import prepared  # noqa: E402
from optiml_magic.session import session  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402
from optiml_magic.testing.kernels import NAMES, known_task  # noqa: E402
from tests.tutorials.suite import TASKS  # noqa: E402


class Always:
    """A tool that runs for every class."""

    classes: frozenset[RooflineClass] = frozenset(get_args(RooflineClass))

    def __init__(self, tool: Tool) -> None:
        self.name, self.metrics, self.diagnose = tool.name, tool.metrics, tool.diagnose


def survey(out: Path, device: str, seconds: float, *, every: bool) -> None:
    """Evaluate what ``out`` does not hold yet, until the time is over."""
    tasks = {f"known/{name}": known_task(name) for name in NAMES} | TASKS
    done = (
        {json.loads(line)["name"] for line in out.read_text().splitlines()} if out.exists() else ()
    )
    settings = resolve({"device": device, "verify_seeds": 1})
    until = time.monotonic() + seconds
    with session(settings, machine=True) as members, out.open("a") as file:
        tools = members.tools
        if every:
            tools = replace(tools, findings=tuple(Always(tool) for tool in tools.findings))
        for name, task in tasks.items():
            if name in done or time.monotonic() > until:
                continue
            row: dict[str, object] = {"name": name}
            try:
                problem = prepared(task, settings)
                root = Candidate(0, None, Proposal(problem.program.text, "", "user"))
                (found,) = Evaluator(problem, tools)([root])
                row["outcome"], row["class"] = str(found.verdict.outcome), found.roofline
                row["findings"] = [
                    [f.tool, f.severity, f.line, round(f.gain[1], 2), f.cause]
                    for f in found.findings
                ]
            except Exception as refused:  # noqa: BLE001  # the rest goes on
                row["outcome"] = f"{type(refused).__name__}: {refused}"
            print(json.dumps(row), file=file, flush=True)


def table(out: Path) -> None:
    """For each tool: on how many kernels it fires, by severity."""
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    kernels: dict[str, set[str]] = defaultdict(set)
    severities: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for tool, severity, *_ in row.get("findings", ()):
            kernels[tool].add(row["name"])
            severities[tool][severity] += 1
    silent = sum(1 for row in rows if not row.get("findings"))
    print(f"{len(rows)} kernels, {silent} without a finding")
    print("| tool | kernels | critical | warning | note |\n|---|---|---|---|---|")
    for tool in TOOLS:
        found = severities[tool.name]
        numbers = " | ".join(str(found[s]) for s in ("critical", "warning", "note"))
        print(f"| {tool.name} | {len(kernels[tool.name])} | {numbers} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="emulated:h200")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        survey(given.out, given.device, given.seconds, every=given.every)
    table(given.out)


if __name__ == "__main__":
    main()
