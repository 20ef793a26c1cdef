"""Ideas in the light of what won on kernels of the same kind: chances, and the numbers to begin.

Nothing is taken on trust: a move that won elsewhere is an idea of a rule that finds it legal here,
and becomes a candidate like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from optiml_magic.errors import SourceError
from optiml_magic.model.experience import Known
from optiml_magic.model.idea import Idea, Make
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point
from optiml_magic.model.view import View
from optiml_magic.proposers.spaces import promise_of
from optiml_magic.source.program import parse_program

_SURE = 0.95  # of what is left to certainty, for a move that won on a kernel like this; ours
_VAIN = 0.5  # of its chance that a move loses which brought nothing there; ours
_OTHER = 0.5  # and one beside which another won; ours


@dataclass
class _Told:
    """What entries say of one move: the doubt that they leave, and its numbers, the best first.

    ``exact`` are those of kernels of the very same kind, ``near`` those of other sizes.
    """

    doubt: float = 1.0
    lost: float = 0.0
    exact: list[Point] = field(default_factory=list)
    near: list[Point] = field(default_factory=list)


def remembered(ideas: Sequence[Idea], view: View, known: Known) -> list[Idea]:
    """The ideas, those first that went on from here to the best programs for kernels of this kind.

    Their texts begin with the numbers of kernels of the same sizes, where these fit; those of other
    sizes come right after the rule's own. The other ideas lose of their chances, most of all those
    that brought nothing. Nothing is known of kernels like those of another root than the baseline.
    """
    if view.begun.candidate.number != view.root.candidate.number:
        return list(ideas)
    told, sure = _told(view, known)
    offered = {idea.move for idea in ideas}
    sure = {move: weight for move, weight in sure.items() if move in offered}
    if not told:
        return list(ideas)
    most = max(sure.values(), default=0.0)
    return [_weighed(idea, told.get(idea.move) if idea.move else None, most) for idea in ideas]


def _told(view: View, known: Known) -> tuple[dict[str, _Told], dict[str, float]]:
    """By move what is known of it here, and of those that won how much the nearest entry counts."""
    path = tuple(step.candidate.proposal.move for step in view.path[1:])
    told: dict[str, _Told] = {}
    sure: dict[str, float] = {}
    for weight, entry in known.weighed(view.root.evaluation.roofline or ""):
        at = len(path)
        if entry.path[:at] == path and len(entry.moves) > at:
            move = entry.moves[at]
            here = told.setdefault(move.name, _Told())
            here.doubt *= 1 - _SURE * weight
            sure[move.name] = max(weight, sure.get(move.name, 0.0))
            points = here.exact if entry.kind == known.kind else here.near
            if move.point and move.point not in points:
                points.append(move.point)
        for vain in entry.vain:
            if vain[:-1] == path:
                here = told.setdefault(vain[-1], _Told())
                here.lost = max(here.lost, weight)
    return told, sure


def _weighed(idea: Idea, told: _Told | None, most: float) -> Idea:
    if told is None or told.doubt == 1.0:
        lost = _VAIN * told.lost if told is not None else 0.0
        return replace(idea, prior=idea.prior * (1 - lost) * (1 - _OTHER * most))
    prior = 1 - (1 - idea.prior) * told.doubt
    starts = (*told.exact[1:], *told.near, *idea.starts)
    make = partial(_made_at, idea.make, told.exact[0]) if told.exact else idea.make
    return replace(idea, prior=prior, make=make, starts=starts)


def _made_at(make: Make, point: Point) -> str | Refusal:
    """The text of an idea with those of these numbers that it has, where they can run."""
    made = make()
    if isinstance(made, Refusal):
        return made
    try:
        program = parse_program(made)
        fitting = {
            tune.name: point[tune.name]
            for tune in program.tunes
            if point.get(tune.name) in tune.values
        }
        chosen = {**program.values, **fitting}
        if not fitting or promise_of(program, None, chosen) <= 0:
            return made
        return program.with_values(fitting).text
    except SourceError:
        return made
