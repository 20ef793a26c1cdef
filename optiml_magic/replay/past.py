"""What a replay shows: the steps as they came, and the result that they came to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Never

from optiml_magic.calling import Kernels
from optiml_magic.errors import UsageError
from optiml_magic.model.called import Called
from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import NOTHING, Refused
from optiml_magic.replay.pool import Pool
from optiml_magic.replay.recording import Recording
from optiml_magic.reports.provenance import provenance
from optiml_magic.reports.quantities import number_of
from optiml_magic.reports.summary import Summary
from optiml_magic.result import Result
from optiml_magic.settings import Settings


@dataclass(frozen=True)
class Replayed:
    """A search that is over. ``result`` is as it was, and can be called."""

    steps: Sequence[tuple[Step, Refused]]
    result: Result


def replayed(recording: Recording) -> Replayed:
    """A search as it was."""
    return Replayed(list(recording.steps()), recalled(recording.summary, recording.about.call))


def searched(recordings: Sequence[Recording], settings: Settings) -> Replayed:
    """How the policy of the settings would have gone over what some runs of a task evaluated."""
    began = time.monotonic()
    pool = Pool.of(recordings)
    found = pool.search(settings.policy, budget=settings.budget, seed=settings.seed)
    first = recordings[0].summary
    programs = number_of(len(pool.programs), "program")
    told = (
        f"{settings.policy} over the {programs} that {number_of(len(recordings), 'run')} "
        "evaluated: nothing ran, times are theirs"
    )
    spent = time.monotonic() - began
    summary = replace(
        first,
        trajectory=replace(found, objective=recordings[0].header.objective),
        notes=(told,),
        wall_seconds=spent,
        timings={},
        journal=None,
        model="",
        thoughts=(),
    )
    return Replayed(
        [(step, NOTHING) for step in found.steps], recalled(summary, recordings[0].about.call)
    )


def recalled(summary: Summary, called: Called | None) -> Result:
    """A result from what was written down of it."""
    if called is None:
        return Result(summary, _no_kernel)
    root = summary.root.candidate.text
    return Result(summary, Kernels.again(called, root, provenance(summary)))


def _no_kernel(_: str) -> Never:
    raise UsageError(
        "how to call the kernels of this run is not known",
        fix="use its .program, or optimise with --resume and the journal",
    )
