"""Every point that rules begin with on tasks of the suite, beside the input kernel and its floor.

    python benchmarks/gpu/points.py FOLDER TASK ... [--rules RULE ...] [--device DEVICE]
        [--size full|small] [--more NAME=VALUE,NAME=VALUE ...]

Rules are applied to the input kernel; each program is verified
and timed as the candidate of a search is. ``--more`` adds points to those of the rules, as far as a
program has such names. A line of ``FOLDER/points.jsonl`` is one program; those that stand there are
not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from optiml_magic.bench.entry import Entry, Size
from optiml_magic.bench.suite import chosen
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.errors import SourceError
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.facts import Facts
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.preparation import Bound, compiled
from optiml_magic.problem import Problem, prepare
from optiml_magic.problem.facts import FactFinder
from optiml_magic.profilers.roofs import published
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.source.program import Program, parse_program

_CHIP = chip("h200")
Point = dict[str, int]


def facts(problem: Problem) -> Facts:
    """Those of the input kernel at the measured sizes."""
    compiler = CachedCompiler(NvrtcCompiler(), resolve().compiled)
    bound = compiled(problem.program, problem.interface, compiler, CompileOptions(), _CHIP)
    assert isinstance(bound, Bound), bound
    first = problem.instances[0]
    plan = bound.plan(first.values, first.shapes)
    return FactFinder(problem, _CHIP)(bound.program, plan)


def programs(
    problem: Problem, rules: Sequence[str], more: Sequence[Point]
) -> Iterator[tuple[str, Program]]:
    """What the rules make of the input kernel, with its title."""
    text = problem.program.text
    passed = Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    step, known = Step(Candidate(0, None, Proposal(text, "", "")), passed), facts(problem)
    for rule in (r for r in REWRITES if r.name in rules):
        for idea in rule.propose(problem.program, View(step, step, find_facts=lambda: known)):
            made = idea if isinstance(idea, Refusal) else idea.make()
            if isinstance(idea, Refusal) or isinstance(made, Refusal):
                print(f"{rule.name}: {made}", file=sys.stderr)
                continue
            program = parse_program(made)
            asked = [{n: v for n, v in p.items() if n in program.values} for p in more]
            for point in [*idea.starts, *(p for p in asked if p)]:
                try:
                    yield f"{idea.key} {point}", program.with_values(point)
                except SourceError as unfit:
                    print(f"{rule.name} {point}: {unfit}", file=sys.stderr)


def rows(
    entry: Entry, size: Size, device: str, rules: Sequence[str], more: Sequence[Point],
    done: set[tuple[str, str]],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The lines of a task that are not there yet."""
    task = entry.task(size)
    problem = prepare(task, seeds=1)
    texts = {"input": problem.program, **dict(programs(problem, rules, more))}
    left = [title for title in texts if (entry.name, title) not in done]
    terms = entry.floor(**entry.sizes(size)).terms(_CHIP, published(_CHIP))
    with session(resolve({"device": device}), task=task) as members:
        evaluator = Evaluator(problem, members.tools)
        for number, (title, program) in enumerate(texts.items() if left else ()):
            if number and title not in left:
                continue
            proposal = Proposal(program.text, title, "benchmark")
            (found,) = evaluator([Candidate(number, 0 if number else None, proposal)])
            took = found.measurement
            if title not in left:
                continue
            yield {
                "task": entry.name, "title": title, "us": took and round(took.seconds * 1e6, 2),
                "floor": round(max(terms.values()) * 1e6, 2),
                "verdict": found.verdict.outcome.value, "said": found.verdict.summary[:200],
                "program": program.text,
            }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--rules", nargs="+", default=[rule.name for rule in REWRITES])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", choices=("full", "small"), default="full")
    parser.add_argument("--more", nargs="+", default=[], metavar="NAME=VALUE,...")
    options = parser.parse_args(arguments)
    pairs = [[part.split("=") for part in point.split(",")] for point in options.more]
    more = [{name: int(value) for name, value in point} for point in pairs]
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "points.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    done = {(row["task"], row["title"]) for row in map(json.loads, lines)}
    with file.open("a") as out:
        for entry in chosen(options.tasks, "open"):
            for row in rows(entry, options.size, options.device, options.rules, more, done):
                print(json.dumps(row), file=out, flush=True)
                print(row["task"], row["title"], row["us"], row["floor"], row["verdict"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
