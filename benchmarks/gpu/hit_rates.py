"""Does the advice come true? For each finding, its top action that a rule can do, applied.

    python benchmarks/gpu/hit_rates.py OUT.jsonl [DEVICE] [SECONDS] [NAME ...]
    python benchmarks/gpu/hit_rates.py --table OUT.jsonl [OUT.jsonl ...] [docs/hit-rates.md]

The second form prints the tables, and puts them into the page where one is named.

Each kernel of workloads.py is verified, measured and diagnosed. For each finding the first action
that a rewrite rule can do is applied, in all variants that the rule gives; of those that are right,
the fastest stands for the action. Did the metric that the action names move the way it says, beyond
noise, and is the kernel at least 10 % faster? The facts of a task are lines of OUT.jsonl, written
when it is done. After SECONDS (240) it stops; the same command goes on where it stopped. On an
emulated device times are estimates, and say so.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from benchmarks.gpu.workloads import NAMES, task
from optiml_magic.devices.choice import choose
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.finding import Action, Finding
from optiml_magic.model.hit_rates import GAIN
from optiml_magic.model.idea import Idea
from optiml_magic.model.view import View
from optiml_magic.problem import prepare
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.session import session
from optiml_magic.settings import Settings, resolve
from optiml_magic.source.program import parse_program

MOST_VARIANTS = 6  # of one action, those of the highest prior
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
Row = dict[str, Any]


@dataclass
class Advice:
    """A finding, its first action that a rule can do, and the edits that do it."""

    finding: Finding
    action: Action | None = None
    proposals: list[Proposal] = field(default_factory=list)


def run(out: Path, device: str, seconds: float, names: Sequence[str]) -> None:
    until = time.monotonic() + seconds
    settings = resolve({"device": device, "verify_seeds": 1, "llm": "none", "experience": "none"})
    done = {row["task"] for row in read([out]) if row["what"] == "task"}
    for name in names:
        if name in done:
            continue
        if time.monotonic() > until:
            print("time is up: run it again to go on")
            return
        try:
            rows = facts(name, settings)
        except Exception as why:  # noqa: BLE001  # one task that breaks is a fact; the others go on
            failed = f"{type(why).__name__}: {why}"
            here = choose(settings.device).name
            rows = [{"what": "task", "task": name, "device": here, "failed": failed}]
        with out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(rows[-1], flush=True)
    print(table(read([out])))


def facts(name: str, settings: Settings) -> list[Row]:
    """One row for each finding, then one for the task."""
    began = time.monotonic()
    asked = task(name, emulated=choose(settings.device).is_emulated)
    problem = prepare(asked, seeds=settings.verify_seeds)
    [instance.case for instance in problem.instances]
    rows: list[Row] = []
    with session(settings, task=asked, counted=True) as members:
        members.begin(problem)
        evaluator = Evaluator(problem, members.tools)
        root = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
        (before,) = evaluator([root])
        device = members.choice.name
        if before.measurement is None or not before.verdict.passed:
            failed = {"task": name, "device": device, "failed": before.verdict.summary}
            return [{"what": "task", **failed}]
        advices = [advised(Step(root, before), finding) for finding in before.findings]
        candidates = [
            Candidate(number, 0, proposal)
            for number, proposal in enumerate((p for a in advices for p in a.proposals), start=1)
        ]
        evaluations = evaluator(candidates) if candidates else []
        after = iter(evaluations)
        for advice in advices:
            tried = [(proposal, next(after)) for proposal in advice.proposals]
            rows.append({"what": "finding", "task": name, "device": device,
                         **outcome(advice, tried, before)})  # fmt: skip
        measured = before.measurement
        rows.append({
            "what": "task", "task": name, "device": device, "chip": measured.chip,
            "source": measured.source, "seconds": measured.seconds, "roofline": before.roofline,
            "findings": len(advices), "candidates": len(candidates),
            "verdicts": sorted(str(e.verdict.outcome) for e in evaluations),
            "notes": list(evaluator.notes), "wall": round(time.monotonic() - began, 2),
            "gpu": gpu() if device.startswith("cuda") else "", "versions": versions(),
            "date": time.strftime("%Y-%m-%d"),
        })  # fmt: skip
    return rows


def advised(step: Step, finding: Finding) -> Advice:
    """The rules see this finding alone, so that what they promise is what it says."""
    alone = replace(step, evaluation=replace(step.evaluation, findings=(finding,)))
    told = View(alone, alone)
    for action in finding.actions:
        for rule in REWRITES:
            if rule.name != action.rewrite:
                continue
            found = RuleProposer([rule]).propose(told, MOST_VARIANTS).ideas
            made = [(idea, idea.make()) for idea in found[:MOST_VARIANTS]]
            edits = [
                idea.proposal(point)
                for idea, text in made
                if isinstance(text, str)
                for point in beginnings(idea, text)
            ][:MOST_VARIANTS]
            if edits:
                return Advice(finding, action, edits)
    return Advice(finding)


def beginnings(idea: Idea, text: str) -> list[str]:
    """The program that an idea became, at every point that its numbers begin with."""
    program = parse_program(text)
    return [text, *(program.with_values(start).text for start in idea.starts)]


def outcome(advice: Advice, tried: Sequence[tuple[Proposal, Evaluation]], root: Evaluation) -> Row:
    finding, action = advice.finding, advice.action
    first = finding.evidence[0] if finding.evidence else None
    row: Row = {
        "tool": finding.tool, "severity": finding.severity, "cause": finding.cause,
        "evidence": [first.metric, first.value, first.threshold, first.line] if first else None,
        "expected_gain": list(finding.gain),
        "rewrite": action.rewrite if action else "",
        "asked_for": [a.rewrite for a in finding.actions if a.rewrite],
        "variants": len(tried),
    }  # fmt: skip
    right = [(p, e) for p, e in tried if e.verdict.passed and e.measurement]
    row["right"] = len(right)
    if not right:
        return row
    assert root.measurement is not None
    proposal, best = min(right, key=lambda pair: pair[1].measurement.seconds)  # type: ignore[union-attr]
    assert best.measurement is not None
    assert best.test is not None
    speedup = root.measurement.seconds / best.measurement.seconds
    return {
        **row,
        "title": proposal.title,
        "expected": str(proposal.hypothesis),
        "state": best.test.state,
        "came": str(best.test),
        "any_confirmed": any(e.test and e.test.state == "confirmed" for _, e in right),
        "speedup": speedup,
        "source": best.measurement.source,
        "gained": speedup >= GAIN,
    }


def read(paths: Iterable[Path]) -> list[Row]:
    found = [json.loads(line) for p in paths if p.exists() for line in p.read_text().splitlines()]
    complete = {(row["device"], row["task"]) for row in found if row["what"] == "task"}
    return [row for row in found if (row["device"], row["task"]) in complete]


def table(rows: Sequence[Row]) -> str:
    """Markdown: one row a tool for each device; shares are of the findings that were acted on."""
    parts = []
    for device in dict.fromkeys(row["device"] for row in rows):
        mine = [row for row in rows if row["device"] == device]
        tasks = [row for row in mine if row["what"] == "task" and "failed" not in row]
        findings = [row for row in mine if row["what"] == "finding"]
        failed = [row["task"] for row in mine if "failed" in row]
        broken = f" (failed: {', '.join(failed)})" if failed else ""
        sources = ", ".join(sorted({row["source"] for row in tasks})) or "none"
        cards = sorted({row["gpu"].split(",")[0] for row in tasks if row["gpu"]})
        dates = sorted({row["date"] for row in tasks})
        parts.append(
            f"On `{device}`{''.join(f' ({card})' for card in cards)}, {', '.join(dates)}, "
            f"{len(tasks)} tasks{broken}, times by source `{sources}`:\n\n"
            "| tool | findings | acted on | moved | not measurable | gained 10 % | mean gain |\n"
            "|---|---|---|---|---|---|---|"
        )
        tools = sorted({row["tool"] for row in findings})
        lines = [line(f"`{t}`", [row for row in findings if row["tool"] == t]) for t in tools]
        parts[-1] += "".join(f"\n{text}" for text in [*lines, line("**all**", findings)])
    return "\n\n".join(parts)


def line(name: str, findings: Sequence[Row]) -> str:
    acted = [row for row in findings if row["right"]]
    moved = sum(row["state"] == "confirmed" for row in acted)
    unknown = sum(row["state"] == "not_measurable" for row in acted)
    gained = sum(row["gained"] for row in acted)
    mean = math.exp(sum(math.log(r["speedup"]) for r in acted) / len(acted)) if acted else None
    cells = [
        name, str(len(findings)), str(len(acted)), share(moved, acted), str(unknown),
        share(gained, acted), f"{mean:.2f}x" if mean else "-",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def share(number: int, of: Sequence[Row]) -> str:
    return f"{number} ({100 * number / len(of):.0f} %)" if of else "-"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("more", nargs="*", help="DEVICE, SECONDS and NAME ...; with --table files")
    parser.add_argument("--table", action="store_true", help="of what is there; nothing is run")
    options = parser.parse_args(arguments)
    more: list[str] = options.more
    if options.table:
        show([options.out, *map(Path, more)])
        return
    device, seconds, *names = [*more, *["auto", "240"][len(more) :]]
    run(options.out, device, float(seconds), names or NAMES)


def show(paths: Sequence[Path]) -> None:
    """The table of all records among the files, put into the pages among them as well."""
    found = table(read(path for path in paths if path.suffix == ".jsonl"))
    print(found)
    for page in (path for path in paths if path.suffix == ".md"):
        head, _, rest = page.read_text().partition(BEGIN)
        page.write_text(f"{head}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main(sys.argv[1:])
