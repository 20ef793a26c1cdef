"""A run as one JSON file: ``docs/notebook.md`` has its schema.

``view`` is what somebody shows who computes nothing, ``summary`` all the evidence, ``call`` what
calling its programs needs. Text and figures only: to read a file runs nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optiml_magic import files
from optiml_magic.calling import Kernels
from optiml_magic.errors import UsageError
from optiml_magic.model.called import Called
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Step
from optiml_magic.replay.past import recalled
from optiml_magic.reports import text
from optiml_magic.reports.diff import between
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.result import Result
from optiml_magic.version import package_version

FORMAT = "optiml run"
SCHEMA = 1
SUFFIX = ".json"


@dataclass(frozen=True)
class Node:
    """A candidate in the tree; ``summary.trajectory.steps`` has its evidence, in the same order."""

    number: int
    parent: int | None
    title: str
    outcome: str
    duplicate_of: int | None
    speedup: float | None  # over the input kernel
    seconds: float | None
    reward: float
    on_path: bool  # from the input kernel to the winner
    diff: str  # from its parent


@dataclass(frozen=True)
class View:
    """What a viewer shows that computes nothing."""

    headline: str
    task: str
    device: str
    source: str
    speedup: float
    interval: tuple[float, float]
    winner: int
    diff: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Saved:
    """The file. ``run`` is the name of the run's journal; "" where there is none."""

    format: str
    schema: int
    release: str
    run: str
    view: View
    summary: Summary
    call: Called | None


def save(result: Result, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a result as one JSON file. Raises UsageError where it cannot go to ``path``."""
    place = Path(path).expanduser()
    if place.suffix != SUFFIX:
        raise UsageError(f"{path} does not end in {SUFFIX}", fix=f"name it like result{SUFFIX}")
    if not place.absolute().parent.is_dir():
        raise UsageError(f"there is no folder for {path}", fix="make the folder first")
    if place.is_dir() or (place.exists() and not overwrite):
        raise UsageError(f"{path} exists", fix="choose another name, or pass --force")
    files.write(place, to_json(Saved, saved(result)) + "\n")
    return place


def load(path: str | Path) -> Result:
    """The result that ``save`` wrote. Raises UsageError for any other file."""
    place = Path(path).expanduser()
    try:
        raw = place.read_bytes()
    except OSError as cause:
        why = cause.strerror or "it cannot be read"
        raise UsageError(f"{path}: {why}", fix="name a file that optiml saved") from None
    _require_schema(raw, place)
    try:
        found = from_json(Saved, raw)
    except ValueError as cause:
        first = str(cause).splitlines()[1:2] or ["its content"]
        raise UsageError(
            f"{place.name} is damaged, at {first[0].strip()}", fix="save the result again"
        ) from None
    return recalled(found.summary, found.call)


def saved(result: Result) -> Saved:
    """A result as the data of its file; of the journal the name alone, and no setting's path."""
    summary = result.summary
    journal = Path(summary.journal.name) if summary.journal else None
    return Saved(
        FORMAT,
        SCHEMA,
        package_version(),
        summary.journal.stem if summary.journal else "",
        _view(summary),
        replace(summary, journal=journal),
        result.kernels.data if isinstance(result.kernels, Kernels) else None,
    )


def _view(summary: Summary) -> View:
    steps = {step.candidate.number: step for step in summary.trajectory.steps}
    path = {step.candidate.number for step in summary.trajectory.lineage(summary.winner)}
    return View(
        text.headline(summary),
        summary.task,
        summary.device,
        summary.source,
        summary.speedup,
        summary.interval,
        summary.winner.candidate.number,
        summary.diff(),
        tuple(_node(summary, step, steps, path) for step in steps.values()),
    )


def _node(summary: Summary, step: Step, steps: dict[int, Step], path: set[int]) -> Node:
    candidate, evaluation = step.candidate, step.evaluation
    parent = steps.get(candidate.parent) if candidate.parent is not None else None
    before = parent.candidate.text if parent else candidate.text
    return Node(
        candidate.number,
        candidate.parent,
        candidate.proposal.title,
        str(evaluation.verdict.outcome),
        evaluation.duplicate_of,
        step_speedup(summary, step),
        evaluation.measurement.seconds if evaluation.measurement else None,
        evaluation.reward,
        candidate.number in path,
        between(before, candidate.text, f"#{candidate.parent}", f"#{candidate.number}"),
    )


def _require_schema(raw: bytes, place: Path) -> None:
    """UsageError for what is no file of ours, or one that this release does not read."""
    try:
        found: Any = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UsageError(
            f"{place.name} is not a saved run", fix="name a file that %optiml save wrote"
        )
    if found.get("schema") != SCHEMA:
        raise UsageError(
            f"{place.name} has schema {found.get('schema')}, and this release reads {SCHEMA}",
            fix=f"read it with release {found.get('release')} of optiml-magic",
        )
