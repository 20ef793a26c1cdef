"""Whole programs for hypothesis: a kernel of some family in some spellings."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from tests.twins.forms import FORMS

from .families import FAMILIES
from .writing import Made

#: Rows and planes are what most rules are about.
_SHARES = ("rows", "rows", "rows", "planes", "planes", "planes", "maps", "tiles")


def made(rng: Random) -> Made:
    """A program, spelled in up to four of the twins' forms."""
    drawn = rng.choice(FAMILIES[rng.choice(_SHARES)])(rng)
    for _ in range(rng.choice([0, 0, 1, 2, 3, 4])):
        drawn = spelled(drawn, rng.randrange(len(FORMS)))
    return drawn


def spelled(one: Made, form: int) -> Made:
    """The program in one more form, or as it is where that does not fit."""
    chosen = FORMS[form]
    text = chosen.apply(one.text)
    if text is None or text == one.text:
        return one
    again = chosen.renaming(one.text)
    renamed = (
        {old: again.get(new, new) for old, new in one.renamed.items()} if one.renamed else again
    )
    return replace(one, text=text, renamed=renamed, forms=(*one.forms, chosen.name))


def programs() -> st.SearchStrategy[Made]:
    """Programs that shrink: to the first of each choice."""
    return st.randoms(use_true_random=False).map(made)
