"""A program that a person wrote while a search runs, checked like the answer of a model."""

from __future__ import annotations

from collections.abc import Callable

from optiml_magic.model.evaluation import Step
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import HAND, Suggestion
from optiml_magic.proposers.drafts import Unusable, check, with_newlines_of
from optiml_magic.source.program import parse_program


def suggestion(
    find: Callable[[int | None], Step | None], number: int | None, program: str
) -> Suggestion | Refusal:
    """The program as an edit of a candidate, None: of the best; or why it cannot be one.

    ``find`` has the steps so far by their number, the input kernel as 0.
    """
    root, step = find(0), find(number)
    if root is None or step is None:
        which = "the input kernel" if not number else f"candidate {number}"
        return Refusal(HAND, f"{which} was not evaluated, or not yet")
    parent = step.candidate
    text = with_newlines_of(parent.text, program)
    try:
        check(text, parse_program(parent.text), parse_program(root.candidate.text), by_hand=True)
    except Unusable as why:
        return Refusal(HAND, str(why), why.line)
    return Suggestion(parent.number, text)
