"""The open numbers of a program, with what arithmetic says of each point before any is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.filling import filling
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Step
from optiml_magic.model.facts import Facts
from optiml_magic.model.space import Point, Space
from optiml_magic.source.program import Program, parse_program


def space_of(facts: Callable[[Candidate], Facts | None], step: Step) -> Space | None:
    """The space of a step's ``tune`` directives; None where no number of it is open.

    A point of which a condition does not hold promises nothing, nor does one whose launch cannot
    run or leaves the chip empty.
    """
    try:
        program = parse_program(step.candidate.text)
    except SourceError:
        return None
    present = program.values
    open_ = {t.name: t.values for t in program.tunes if len(t.values) > 1}
    if not open_ or len(present) < len(program.tunes) or not program.launches:
        return None
    known = facts(step.candidate)
    return Space(open_, present, partial(promise_of, program, known), partial(_text, program))


def promise_of(program: Program, facts: Facts | None, point: Point) -> float:
    """How well a point fills the chip, in [0, 1]; 0 where it cannot run or a condition fails."""
    conditions = (tune.condition for tune in program.tunes if tune.condition is not None)
    if not all(condition.evaluate(point) for condition in conditions):
        return 0.0
    return min(filling(launch, point, facts) for launch in program.launches)


def _text(program: Program, point: Point) -> str:
    return program.with_values(point).text
