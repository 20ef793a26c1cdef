"""The run's journal: one JSON line a fact, appended and flushed before the search sees it.

The first line says what run it is, and what earlier runs had taught when it began; an ``expansion``
line keeps what the proposers said of a node, a ``made`` line the text that an idea became, an
``evaluated`` line what became of a candidate, an ``ended`` line how the search ended and what its
finalists came to. A run that is resumed may have several of the last. To resume is to run the same
search again with this memory: what stands in the journal is not asked, made or evaluated a second
time, so only what was in flight at the end is repeated. Texts, digests and figures only; never
pickles.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

from optiml_magic.errors import UsageError
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.idea import Idea, Ideas, Make
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import Objective
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Verdict
from optiml_magic.model.view import View

SCHEMA = 6


@dataclass(frozen=True)
class RunHeader:
    """What makes two runs the same run. Digests are SHA-256, 16 hex digits."""

    schema: int
    run: str
    task: str
    program: str  # the input kernel's text
    inputs_digest: str
    reference: str  # qualified name
    reference_digest: str  # of its source text; "" where there is none
    device: str
    compiler: str
    seed: int
    policy: str  # of the search
    batch: int
    proposers: tuple[str, ...]
    plugins: tuple[str, ...]  # of other packages, with their versions
    exact: bool  # whether every bit of the outputs must stay
    options_digest: str  # of how it is compiled: flags, and the headers that the program reaches
    objective: Objective = "speed"

    def differences(self, other: RunHeader) -> tuple[str, ...]:
        """Names of the fields that differ, the run's own name left out."""
        return tuple(
            name
            for name in self.__dataclass_fields__
            if name != "run" and getattr(self, name) != getattr(other, name)
        )


@dataclass(frozen=True)
class About:
    """What a report says of a run beside its steps, known when it began."""

    device_reason: str = ""
    oracle: str = ""
    launch: str = ""
    notes: tuple[str, ...] = ()
    model: str = ""


@dataclass(frozen=True)
class Noted:
    """An idea as it was given; the text of its proposal is "" where it was still to be made."""

    key: str
    proposal: Proposal
    starts: tuple[dict[str, int], ...] = ()
    paid: bool = False


@dataclass(frozen=True)
class Expansion:
    """What the proposers answered, the ``call``-th time they were asked about a candidate."""

    candidate: int
    call: int
    ideas: tuple[Noted, ...]
    refused: tuple[Refusal, ...]


@dataclass(frozen=True)
class Made:
    """What an idea for a candidate became when the search came to it."""

    candidate: int
    key: str
    made: str | Refusal


@dataclass(frozen=True)
class Evaluated:
    """A candidate and what became of it."""

    candidate: Candidate
    evaluation: Evaluation


@dataclass(frozen=True)
class Ended:
    """How a run ended; ``settled`` has what the finalists came to, by number, 0 among them."""

    stopped: str
    notes: tuple[str, ...]
    settled: dict[int, Measurement | Verdict]
    timings: dict[str, float]  # seconds by stage, together those of the command


@dataclass(frozen=True)
class Line:
    """One line: one of these is there, and of a first line the first three."""

    header: RunHeader | None = None
    hit_rates: HitRates | None = None
    about: About | None = None
    expansion: Expansion | None = None
    made: Made | None = None
    evaluated: Evaluated | None = None
    ended: Ended | None = None


NOT_TOLD = About()


class Journal:
    """An open journal: remembers what it read, appends what is new."""

    def __init__(self, path: Path, file: BinaryIO, lines: Sequence[Line]) -> None:
        self.path = path
        self._file = file
        self.run = next((x.header.run for x in lines if x.header), "")
        self.hit_rates = next((x.hit_rates for x in lines if x.hit_rates), NO_EXPERIENCE)
        self._expansions = {(e.candidate, e.call): e for e in (x.expansion for x in lines) if e}
        self._made = {(m.candidate, m.key): m.made for m in (x.made for x in lines) if m}
        self._evaluations = {
            (e.candidate.number, e.candidate.digest): e.evaluation
            for e in (x.evaluated for x in lines)
            if e
        }
        self._calls: dict[int, int] = {}
        self.replayed = 0

    @classmethod
    def create(
        cls,
        path: Path,
        header: RunHeader,
        hit_rates: HitRates = NO_EXPERIENCE,
        about: About = NOT_TOLD,
    ) -> Journal:
        """A new journal at ``path``; UsageError where one exists already."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("xb", buffering=0)
        except FileExistsError:
            raise UsageError(
                f"{path} exists already", fix="resume it, or name another journal"
            ) from None
        _lock(file, path)
        first = Line(header, hit_rates, about)
        journal = cls(path, file, (first,))
        journal._append(first)
        return journal

    @classmethod
    def resume(cls, path: Path, header: RunHeader) -> Journal:
        """The journal at ``path``, to go on with; UsageError where it is of another run."""
        with ExitStack() as undo:
            file = undo.enter_context(_opened(path))
            _lock(file, path)  # before it is read: the other run may be writing
            lines, good = _read(path)
            differing = _headed(lines, path).differences(header)
            if differing:
                raise UsageError(
                    f"{path.name} is of another run: {', '.join(differing)} differ",
                    fix="resume with what was the same then, or start a new run",
                )
            file.truncate(good)  # a line cut short by a kill is evaluated again
            file.seek(good)
            undo.pop_all()
        return cls(path, file, lines)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remember_expand(
        self,
        expand: Callable[[View, int], Ideas],
        again: Callable[[View, int], Ideas],
    ) -> Callable[[View, int], Ideas]:
        """``expand`` that answers from the journal where it can, and writes what is new.

        ``again`` is asked of a node whose answer stands in the journal, once an idea's turn comes
        whose text does not: it leaves out proposers whose texts are always there.
        """

        def remembered(view: View, count: int) -> Ideas:
            number = view.step.candidate.number
            call = self._calls[number] = self._calls.get(number, -1) + 1
            known = self._expansions.get((number, call))
            if known is None:
                found = expand(view, count)
                noted = tuple(map(_noted, found.ideas))
                self._append(Line(expansion=Expansion(number, call, noted, found.refused)))
                ideas = tuple(self._lasting(number, idea) for idea in found.ideas)
                return Ideas(ideas, found.refused)
            makes = cache(lambda: {i.key: i.make for i in again(view, count).ideas})
            ideas = tuple(self._lasting(number, _restored(one, makes)) for one in known.ideas)
            return Ideas(ideas, known.refused)

        return remembered

    def _lasting(self, number: int, idea: Idea) -> Idea:
        """The idea, whose text is written down when it is made and never made again."""
        if idea.text is not None:
            return idea
        return replace(idea, make=partial(self._make, number, idea.key, idea.make))

    def _make(self, number: int, key: str, make: Make) -> str | Refusal:
        known = self._made.get((number, key))
        if known is None:
            known = self._made[number, key] = make()
            self._append(Line(made=Made(number, key, known)))
        return known

    def remember_evaluate(
        self,
        begin: Callable[[Sequence[Candidate]], Callable[[], Sequence[Evaluation]]],
        replay: Callable[[Candidate, Evaluation], None] = lambda _c, _e: None,
    ) -> Callable[[Sequence[Candidate]], Callable[[], Sequence[Evaluation]]]:
        """``begin`` that skips what the journal holds; ``replay`` hears of each one skipped."""

        def remembered(candidates: Sequence[Candidate]) -> Callable[[], Sequence[Evaluation]]:
            known = {
                candidate.number: evaluation
                for candidate in candidates
                if (evaluation := self._evaluations.get((candidate.number, candidate.digest)))
            }
            self.replayed += len(known)
            for candidate in candidates:
                if candidate.number in known:
                    replay(candidate, known[candidate.number])
            fresh = [candidate for candidate in candidates if candidate.number not in known]
            begun = begin(fresh) if fresh else tuple

            def collected() -> Sequence[Evaluation]:
                for candidate, evaluation in zip(fresh, begun(), strict=True):
                    self.record(candidate, evaluation)
                    known[candidate.number] = evaluation
                return [known[candidate.number] for candidate in candidates]

            return collected

        return remembered

    def record(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Write down what became of a candidate."""
        self._append(Line(evaluated=Evaluated(candidate, evaluation)))

    def end(
        self, trajectory: Trajectory, notes: tuple[str, ...], timings: Mapping[str, float]
    ) -> None:
        """Write down how the run ended, and what the finalists of its trajectory came to."""
        again = {0, *trajectory.finalists} if trajectory.finalists else set()
        settled: dict[int, Measurement | Verdict] = {}
        for step in trajectory.steps:
            verdict, measurement = step.evaluation.verdict, step.evaluation.measurement
            if step.candidate.number in again and measurement is not None:
                settled[step.candidate.number] = measurement if verdict.passed else verdict
        self._append(Line(ended=Ended(trajectory.stopped, notes, settled, dict(timings))))

    def _append(self, line: Line) -> None:
        self._file.write(to_json(Line, line).encode() + b"\n")
        with contextlib.suppress(OSError):  # not every file system can
            os.fsync(self._file.fileno())


def _noted(idea: Idea) -> Noted:
    starts = tuple(map(dict, idea.starts))
    return Noted(idea.key, idea.proposal(idea.text or ""), starts, idea.paid)


def _restored(noted: Noted, makes: Callable[[], Mapping[str, Make]]) -> Idea:
    told = noted.proposal

    def make() -> str | Refusal:
        found = makes().get(noted.key)
        return found() if found else Refusal(told.proposer, "it no longer has this idea")

    idea = replace(Idea.of(told), key=noted.key, starts=noted.starts, paid=noted.paid)
    return idea if told.text else replace(idea, make=make)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("r+b", buffering=0)
    except FileNotFoundError as cause:
        raise UsageError(f"no journal at {path}", fix="name a journal of an earlier run") from cause
    except OSError as cause:
        raise UsageError(
            f"the journal {path} cannot be written: {cause.strerror}",
            fix="name a journal that is yours",
        ) from cause


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs off this journal until it is closed, or this process ends in any way."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another run writes to the journal {path.name}",
            fix="wait until it ends, stop it, or start a new run",
        ) from None
    except OSError:
        pass  # a file system without locks


def read_lines(path: Path) -> tuple[RunHeader, Sequence[Line]]:
    """A journal that another run may still be writing; UsageError if it is none.

    A last line that was cut short is left out.
    """
    lines, _ = _read(path)
    return _headed(lines, path), lines


def _headed(lines: Sequence[Line], path: Path) -> RunHeader:
    if not lines or lines[0].header is None:
        raise UsageError(f"{path} is not a journal", fix="name a journal of an earlier run")
    return lines[0].header


def _read(path: Path) -> tuple[list[Line], int]:
    """The whole lines of a journal and the offset behind the last good one."""
    try:
        raw = path.read_bytes()
    except OSError as cause:
        raise UsageError(f"no journal at {path}", fix="name a journal of an earlier run") from cause
    lines: list[Line] = []
    good = 0
    while (end := raw.find(b"\n", good)) >= 0:
        if not lines:
            _require_schema(raw[:end], path)
        try:
            lines.append(from_json(Line, raw[good:end]))
        except ValueError:
            if lines:
                raise UsageError(
                    f"line {len(lines) + 1} of {path.name} cannot be read",
                    fix="mend or remove that line by hand; nothing was changed",
                ) from None
            break
        good = end + 1
    return lines, good


def _require_schema(first: bytes, path: Path) -> None:
    """UsageError for the journal of a release that wrote other lines; anything else passes."""
    try:
        schema = json.loads(first)["header"]["schema"]
    except (ValueError, KeyError, TypeError):
        return
    if schema != SCHEMA:
        release = "an earlier" if isinstance(schema, int) and schema < SCHEMA else "a later"
        raise UsageError(
            f"{release} release of optiml-magic wrote {path.name}: its lines are of schema "
            f"{schema}, and this release reads {SCHEMA}",
            fix="read it with that release, or run the search again",
        )
