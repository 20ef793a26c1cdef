"""Recorded completions as the reactions of a server (README.md says what the files are)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from optiml_magic.synthesis.thoughts import strategies
from tests.unit.llms.endpoint import Answer, completed

_NAMES = {one.title: one.name for one in strategies()}
_NOTHING = "I have no program for this."
_HEAD = """\
import numpy as np
from optiml_magic import Task
"""
TASKS = {
    "softmax": _HEAD
    + """\
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
def inputs(rng, rows, cols):
    return {"x": (4 * rng.standard_normal((rows, cols))).astype(np.float32)}
task = Task(reference=softmax, inputs=inputs, sizes={"rows": 8, "cols": 100})
""",
    "histogram": _HEAD
    + """\
def histogram(x):
    return np.bincount(x, minlength=64).astype(np.int32)
def inputs(rng, n):
    return {"x": rng.integers(0, 64, n).astype(np.int32)}
task = Task(reference=histogram, inputs=inputs, sizes={"n": 3000})
""",
    "lookup": _HEAD
    + """\
def lookup(x, xs, ys):
    return np.array([np.interp(v, xs, ys) for v in x])  # beyond what is traced
def inputs(rng, n):
    xs = np.sort(rng.uniform(-2, 2, 17)).astype(np.float32)
    ys = rng.standard_normal(17).astype(np.float32)
    return {"x": (2 * rng.standard_normal(n)).astype(np.float32), "xs": xs, "ys": ys}
task = Task(reference=lookup, inputs=inputs, sizes={"n": 500}, rtol=1e-3)
""",
    "normalise": _HEAD + 'task = Task(name="normalise")\n',
}
WORDS = {
    "softmax": "the softmax of each row",
    "histogram": "how often each of 64 values is there",
    "lookup": "linear interpolation of each x in a table of 17 points",
    "normalise": "each row divided by its length; rows of length zero stay zero",
}


class Recording:
    """Answers as the files of a folder say; ``asked`` has what was asked for, by file.

    ``edited`` has the titles of the edits that were answered.
    """

    def __init__(self, name: str) -> None:
        self.folder = Path(__file__).parent / name
        self.asked: list[str] = []
        self.edited: list[list[str]] = []  # titles
        edits = self.folder / "edits.json"
        self._edits = json.loads(edits.read_text()) if edits.exists() else []

    def __call__(self, body: dict[str, Any]) -> Answer:
        question = body["messages"][1]["content"]
        found = re.search(r"^# The strategy: (.*)$", question, re.MULTILINE)
        if found:
            return completed(self._thought(_NAMES[found[1]], body))
        if "# Write the oracle" in question:
            self.asked.append("oracle")
            return completed((self.folder / "oracle.json").read_text())
        return completed(self._edit(question))

    def _thought(self, name: str, body: dict[str, Any]) -> str:
        stem = f"{name}.{body['temperature']}.{body['seed'] // 100}"
        self.asked.append(stem)
        program, reply = self.folder / f"{stem}.cu", self.folder / f"{stem}.txt"
        if program.exists():
            return json.dumps({"program": program.read_text(), "rationale": "", "arithmetic": []})
        return reply.read_text() if reply.exists() else _NOTHING

    def _edit(self, question: str) -> str:
        asked = question.split("# What became of it", maxsplit=1)[0]
        for edit in self._edits:
            if edit["when"] in asked:
                self._edits.remove(edit)
                self.asked.append("edits")
                self.edited.append([one["title"] for one in edit["proposals"]])
                return json.dumps({"proposals": edit["proposals"]})
        return json.dumps({"proposals": []})
