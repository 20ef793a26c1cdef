"""What one search is worth to later ones: the moves that won, and those that brought nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.errors import SourceError
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.experience import Entry, Evidence, Kind, Move, Origin
from optiml_magic.model.hit_rates import GAIN
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.space import TUNER, Point
from optiml_magic.source.program import parse_program

_MOST_VAIN = 12  # paths of an entry that brought nothing; ours


def entry_of(trajectory: Trajectory, kind: Kind, origin: Origin) -> Entry | None:
    """What a search found; None where nothing was measured.

    The winner is the fastest program that passed and that rules alone made: what a model wrote
    cannot be made again. It has to be faster than the input kernel by 10 %, and where finalists
    were timed once more it is one of them: the fastest of many is lucky as well.
    """
    paths = _Paths(trajectory)
    root = trajectory.root
    before = root.evaluation.measurement
    best, after = root, before
    for step in trajectory.leading(len(trajectory.steps)):
        settled = not trajectory.finalists or step.candidate.number in trajectory.finalists
        if settled and paths.of(step) is not None:
            best, after = step, step.evaluation.measurement
            break
    if before is None or after is None:
        return None
    if before.seconds < GAIN * after.seconds:
        best, after = root, before
    moves = paths.of(best) or ()
    evidence = Evidence(
        origin=origin, chip=before.chip, source=before.source, program=root.candidate.digest,
        input_seconds=before.seconds, best_seconds=after.seconds,
        error=max(before.ratio_error, after.ratio_error),
    )  # fmt: skip
    vain = tuple(paths.vain(tuple(move.name for move in moves)))[:_MOST_VAIN]
    return Entry(kind, root.evaluation.roofline or "", moves, vain, evidence)


def path_of(trajectory: Trajectory, step: Step) -> tuple[str, ...] | None:
    """The names of the moves to a step; None where a part of it is not a rule's."""
    moves = _Paths(trajectory).of(step)
    return None if moves is None else tuple(move.name for move in moves)


class _Paths:
    """The moves that led to the steps of a trajectory."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._own = point_of(trajectory.root.candidate)

    def of(self, step: Step) -> tuple[Move, ...] | None:
        """From the input kernel to a step; None where a part of it is not a rule's."""
        moves: list[Move] = []
        first, *edits = (one.candidate for one in self._trajectory.lineage(step))
        if first.number != self._trajectory.root.candidate.number:
            return None
        for candidate in edits:
            name = candidate.proposal.move
            if candidate.proposal.proposer != TUNER:
                if not name:
                    return None
                moves.append(Move(name, {}))
            if moves:
                moves[-1] = Move(moves[-1].name, self._point(candidate))
        return tuple(moves)

    def vain(self, won: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Moves from a program on the winning path, none of whose points gained anything."""
        gains: dict[tuple[str, ...], float] = {}
        seconds: dict[tuple[str, ...], float] = {}
        for step in self._trajectory.steps:
            moves = self.of(step)
            if moves is None:
                continue
            path = tuple(move.name for move in moves)
            measured = step.evaluation.measurement if step.evaluation.verdict.passed else None
            seconds[path] = min(seconds.get(path, float("inf")), _seconds(measured))
            gains[path] = 0.0
        for path in gains:
            if path and list(path[:-1]) == list(won[: len(path) - 1]) and path != won[: len(path)]:
                parent = seconds.get(path[:-1], float("inf"))
                if seconds[path] >= parent:
                    yield path

    def _point(self, candidate: Candidate) -> dict[str, int]:
        """Numbers that rules left open; those of the input kernel's own names are its author's."""
        values = point_of(candidate)
        return {name: value for name, value in values.items() if name not in self._own}


def point_of(candidate: Candidate) -> Point:
    """The values of a program's tuned names; none where it cannot be read."""
    try:
        return parse_program(candidate.text).values
    except SourceError:
        return {}


def _seconds(measured: Measurement | None) -> float:
    return measured.seconds if measured is not None else float("inf")
