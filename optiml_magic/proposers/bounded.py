"""Rules that refuse what would hold up a search, instead of reading text without end."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from optiml_magic.kernels.allowance import Allowance, TooMuch, check_length
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optiml_magic.model.view import View
    from optiml_magic.proposers.rewrites.base import Rewrite
    from optiml_magic.source.program import Program


class Bounded:
    """A rule with one allowance of text to find its ideas, and one for each program it makes.

    What it makes has to be short enough for rules to go on from there.
    """

    def __init__(self, rule: Rewrite) -> None:
        self.name = rule.name
        self._rule = rule

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        allowance, rest = Allowance(), iter(self._rule.propose(program, view))
        while True:
            try:
                with allowance.spent():
                    found = next(rest, None)
                if isinstance(found, Idea) and found.text is not None:
                    check_length(found.text)
            except TooMuch as much:
                found = Refusal(self.name, str(much))
            if found is None:
                return
            if isinstance(found, Idea) and found.text is None:
                found = replace(found, make=partial(self._made, found))
            yield found

    def _made(self, idea: Idea) -> str | Refusal:
        try:
            with Allowance().spent():
                made = idea.make()
            if isinstance(made, str):
                check_length(made)
        except TooMuch as much:
            return Refusal(self.name, str(much))
        return made
