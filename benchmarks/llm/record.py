"""Answers to the questions of a search, written down one at a time.

    python benchmarks/llm/record.py FOLDER TASK --variant both --author NAME [--wait SECONDS]

The search is run with the answers that are recorded. At the first question without one the whole
question is written to FOLDER, and the command says where its answer goes and ends, or waits so long
for it. Run again it takes the answer into the record, ``tests/golden/answers/VARIANT.jsonl.gz``,
and goes on: compilations are cached. One record is written by one command at a time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.llm.tasks import KERNELS, task  # noqa: E402
from benchmarks.llm.variants import (  # noqa: E402
    VARIANTS,
    answers_of,
    recorded,
    searched,
    seconds_of,
    slug,
)
from optiml_magic.llms.recorded import Answered, Topic, packed, read  # noqa: E402
from optiml_magic.proposers import prompt  # noqa: E402

_STEP = 0.5  # seconds between two looks


class UnansweredError(Exception):
    """The files that questions were written to and that have no answer beside them."""


class Recorder:
    """Takes answers from files of a folder into the record of a variant."""

    def __init__(self, folder: Path, name: str, variant: str, author: str, wait: float) -> None:
        self._folder = folder
        self._name = name
        self._path = answers_of(variant)
        self._author = author
        self._wait = wait
        self._lock = Lock()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "system.md").write_text(prompt.system(), encoding="utf-8")

    def __call__(self, topic: Topic, before: int, question: str) -> str:
        """The answer to a question; raises UnansweredError where it is not there in time."""
        place = self._folder / slug(self._name, topic, before)
        answer = place.with_name(f"{place.name}.answer.json")
        place.with_name(f"{place.name}.question.md").write_text(question, encoding="utf-8")
        until = time.monotonic() + self._wait
        if not answer.exists():
            print(f"asked: {place}.question.md; the answer goes to {answer}", flush=True)
        while not answer.exists():
            if time.monotonic() > until:
                raise UnansweredError(answer)
            time.sleep(_STEP)
        reply = answer.read_text(encoding="utf-8").strip()
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            found = Answered(question, reply, self._author, time.strftime("%Y-%m-%d"))
            known = read(self._path) if self._path.exists() else []
            self._path.write_bytes(packed([*known, found]))
        return reply


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("task", choices=KERNELS)
    parser.add_argument("--variant", choices=[n for n, v in VARIANTS.items() if v.model])
    parser.add_argument("--budget", type=int, default=12, help="evaluations")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds for an answer")
    parser.add_argument("--author", required=True, help="who writes the answers")
    options = parser.parse_args(arguments)
    name = options.variant or "both"
    recorder = Recorder(options.folder, options.task, name, options.author, options.wait)
    llm = recorded(name, missing=recorder)
    try:
        found = searched(task(options.task), VARIANTS[name], llm, budget=options.budget)
    except UnansweredError:
        print("run this again once the answers are there")
        return 1
    for step in found.steps:
        told, speedup = step.candidate.proposal, seconds_of(found.steps[0]) / seconds_of(step)
        print(f"#{step.candidate.number} {told.proposer}: {told.title}: {speedup:.2f}x")
    print(f"the best so far: {', '.join(f'{best:.2f}x' for best in found.curve)}")
    print(f"{options.task}: done, {llm.given} answers from the record, {llm.unanswered} new")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
