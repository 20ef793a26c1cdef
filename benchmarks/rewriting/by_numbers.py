"""What the rules lose, or gain, where a kernel has its sizes as numbers and not by their names.

    python benchmarks/rewriting/by_numbers.py [TASK ...]

Each open task of the suite, at its small sizes, is asked about twice: as it is, and with every
whole number that it is given as a ``#define``, in the kernel's bodies and in its launches. Ideas by
title that only one of both has are printed, and refusals that only the numbers have.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.bench.entry import Entry  # noqa: E402
from optiml_magic.bench.suite import chosen  # noqa: E402
from optiml_magic.evaluation import Evaluator  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.evaluation import Step  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.model.view import View  # noqa: E402
from optiml_magic.optimize import prepared  # noqa: E402
from optiml_magic.proposers.rewrites import REWRITES  # noqa: E402
from optiml_magic.proposers.rules import RuleProposer  # noqa: E402
from optiml_magic.session import session  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402

_MOST = 99  # ideas that are asked for
_WORD = re.compile(r"(\b[A-Za-z_]\w*\b)")


@dataclass(frozen=True)
class Found:
    """Ideas and refusals of a kernel, each with its rule; numbers in titles are left out."""

    ideas: frozenset[tuple[str, str]]
    refused: frozenset[tuple[str, str]]


def by_numbers(text: str, values: Mapping[str, Any]) -> str:
    """A text with whole numbers as macros in bodies of functions, and as they are in directives."""
    known = {n: int(v) for n, v in values.items() if isinstance(v, int | np.integer)}
    made, depth, directive = [f"#define K_{n} {v}\n" for n, v in known.items()], 0, False
    for part in _WORD.split(text):
        if part in known and (directive or depth):
            made.append(str(known[part]) if directive else f"K_{part}")
            continue
        made.append(part)
        for char in part:
            depth += (char == "{") - (char == "}")
            directive = char == "#" or (directive and char != "\n")
    return "".join(made)


def found(entry: Entry, text: str, values: Mapping[str, Any]) -> Found | str:
    """What the rules find in a kernel; why it failed, where it did."""
    task = Task(
        text, reference=entry.reference, inputs=values, outputs=entry.outputs, name=entry.name
    )
    settings = resolve(
        {"device": "emulated:h200", "llm": "none", "experience": "none", "verify_seeds": 1}
    )
    problem = prepared(task, settings)
    with session(settings, task=task, extent="all") as members:
        members.begin(problem)
        evaluator = Evaluator(problem, members.tools)
        root = Candidate(0, None, Proposal(problem.program.text, "input", "user"))
        (evaluation,) = evaluator([root])
        if not evaluation.verdict.passed:
            return evaluation.verdict.summary
        step = Step(root, evaluation)
        view = View(step, step, find_facts=lambda: evaluator.facts(root))
        proposed = RuleProposer(REWRITES).propose(view, _MOST)
    ideas = ((idea.proposer, re.sub(r"\d+", "#", idea.title)) for idea in proposed.ideas)
    return Found(frozenset(ideas), frozenset((r.rule, r.reason) for r in proposed.refused))


def main(names: list[str]) -> None:
    for entry in chosen(names, "open"):
        values = entry.inputs(np.random.default_rng(0), **entry.small)
        text = entry.path.read_text()
        named = found(entry, text, values)
        numbered = found(entry, by_numbers(text, values), values)
        print(f"{entry.family}/{entry.name}", flush=True)
        if isinstance(named, str) or isinstance(numbered, str):
            print(f"  failed: {named if isinstance(named, str) else numbered}")
            continue
        for words, lines in (
            ("by names alone", named.ideas - numbered.ideas),
            ("by numbers alone", numbered.ideas - named.ideas),
            ("refused by numbers alone", numbered.refused - named.refused),
        ):
            for rule, said in sorted(lines):
                print(f"  {words}: {rule}, {said}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    main(parser.parse_args().tasks)
