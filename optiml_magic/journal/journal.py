"""An open journal: what it read is its memory, what is new it appends."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

from optiml_magic.errors import UsageError
from optiml_magic.files import writing
from optiml_magic.journal.lines import (
    NOT_TOLD,
    About,
    Ended,
    Evaluated,
    Expansion,
    Line,
    Made,
    Noted,
    RunHeader,
    Taken,
    headed,
    left_by_hand,
    read_whole,
    said_of_left,
)
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.codec import to_json
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.experience import NOTHING_KNOWN, Known
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.idea import Idea, Ideas, Make
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.model.thought import Wave
from optiml_magic.model.verdict import Verdict
from optiml_magic.model.view import View

_LOOK_SECONDS = 0.5  # longer than anybody who lists runs holds the lock of a journal


class Journal:
    """An open journal: remembers what it read, appends what is new."""

    def __init__(self, path: Path, file: BinaryIO, lines: Sequence[Line]) -> None:
        self.path = path
        self._file = file
        self._lock = threading.Lock()  # of the file: suggestions come from other threads
        self.run = next((x.header.run for x in lines if x.header), "")
        self.proposers = next((x.header.proposers for x in lines if x.header), ())
        self.hit_rates = next((x.hit_rates for x in lines if x.hit_rates), NO_EXPERIENCE)
        self._expansions = {(e.candidate, e.call): e for e in (x.expansion for x in lines) if e}
        self._made = {(m.candidate, m.key): m.made for m in (x.made for x in lines) if m}
        self._evaluations = {
            (e.candidate.number, e.candidate.digest): e.evaluation
            for e in (x.evaluated for x in lines)
            if e
        }
        self._suggested = deque(x.suggested for x in lines if x.suggested)
        self._taken = deque((x.taken.number, x.taken.told) for x in lines if x.taken)
        self._left_by_hand = left_by_hand(lines)
        self._waves = [x.wave for x in lines if x.wave]
        self._known = next((x.known for x in lines if x.known), None)
        self._calls: dict[int, int] = {}
        self.had_ended = any(x.ended for x in lines)
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
        with writing(path, fix="set OPTIML_HOME to a folder with room that you may write to"):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise UsageError(f"{path} exists already", fix="resume it, or name another journal")
            file = path.open("xb", buffering=0)
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
            lines, good = read_whole(path)
            differing = headed(lines, path).differences(header)
            if differing:
                raise UsageError(
                    f"{path.name} is of another run: {', '.join(differing)} differ",
                    fix="resume with the same inputs and settings, or start a new run",
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
                told = Expansion(number, call, noted, found.refused, found.more)
                self._append(Line(expansion=told))
                ideas = tuple(self._lasting(number, idea) for idea in found.ideas)
                return Ideas(ideas, found.refused, found.more)
            makes = cache(lambda: {i.key: i.make for i in again(view, count).ideas})
            ideas = tuple(self._lasting(number, _restored(one, makes)) for one in known.ideas)
            return Ideas(ideas, known.refused, known.more)

        return remembered

    def remember_known(self, find: Callable[[View], Known]) -> Callable[[View], Known]:
        """What is known of kernels like the run's: found once, and the same when it is resumed."""

        def remembered(view: View) -> Known:
            if self._known is None:
                self._known = find(view)
                self._append(Line(known=self._known))
            return self._known

        return remembered

    def remember_waves(
        self, think: Callable[[Sequence[Wave], Sequence[Step]], Wave]
    ) -> Callable[[Sequence[Step]], Sequence[Proposal]]:
        """Programs to begin from: ``think`` is given the waves so far, and asked once for each."""
        told: list[Wave] = []

        def remembered(steps: Sequence[Step]) -> Sequence[Proposal]:
            while True:
                if len(told) == len(self._waves):
                    self._waves.append(think(tuple(told), steps))
                    self._append(Line(wave=self._waves[-1]))
                wave = self._waves[len(told)]
                told.append(wave)
                if wave.proposals or not wave.attempts:
                    return wave.proposals

        return remembered

    def suggest(self, suggestion: Suggestion) -> None:
        """Write down a program that somebody wrote by hand; from any thread."""
        self._append(Line(suggested=suggestion))

    def remember_suggestions(
        self, take: Callable[[], Suggestion | None]
    ) -> Callable[[int, int], Suggestion | None]:
        """What was written by hand and becomes the next candidate, by its number and those told.

        Each suggestion of the journal comes when it came then; those that nobody took before the
        run ended come once all that was evaluated has, and then what ``take`` gives.
        """
        last = max((number for number, _ in self._evaluations), default=-1)

        def remembered(number: int, told: int) -> Suggestion | None:
            if self._taken:
                if (number, told) < self._taken[0]:
                    return None
                self._taken.popleft()
                return self._suggested.popleft()
            if number <= last:
                return None
            suggestion = self._suggested.popleft() if self._suggested else take()
            if suggestion is not None:
                self._append(Line(taken=Taken(number, told)))
            return suggestion

        return remembered

    @property
    def left(self) -> tuple[str, ...]:
        """What a report says of programs that were written by hand and not evaluated so far."""
        return said_of_left(self._left_by_hand)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """What a model wrote for the search to begin from, as far as it was asked."""
        return tuple(self._waves)

    @property
    def known(self) -> Known:
        """What the run knew of kernels like its own; nothing where it did not get so far."""
        return self._known or NOTHING_KNOWN

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
                for candidate, evaluation in zip(fresh, begun(), strict=False):
                    self.record(candidate, evaluation)
                    known[candidate.number] = evaluation
                return [known[c.number] for c in candidates if c.number in known]

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
        raw = to_json(Line, line).encode() + b"\n"
        with self._lock:
            self._left_by_hand += left_by_hand([line])
            with writing(self.path, fix="make room, then resume the run"):
                self._file.write(raw)
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


def in_use(path: Path) -> bool:
    """Whether a run writes to the journal at ``path`` now, in this process or another.

    To look takes a lock for an instant, so a run that would write then tries for longer than that.
    """
    if sys.platform == "win32":
        return False
    import fcntl

    with path.open("rb") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # a file system without locks
    return False


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs off this journal until it is closed, or this process ends in any way."""
    if sys.platform == "win32":
        return
    import fcntl

    until = time.monotonic() + _LOOK_SECONDS
    while True:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(_LOOK_SECONDS / 50)
                continue
            file.close()
            raise UsageError(
                f"another run writes to the journal {path.name}",
                fix="wait until it ends, stop it, or start a new run",
            ) from None
        except OSError:
            pass  # a file system without locks
        return
