"""Whole programs: a kernel of some family in some spellings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from tests.twins.forms import FORMS

from .families import FAMILIES
from .writing import Made

#: Rows and planes are what most rules are about.
_SHARES = (*["rows"] * 7, *["planes"] * 6, *["maps"] * 3, *["tiles"] * 2, *["columns"] * 2, *["stencils"] * 2, "several", "counts", "accumulated", "owned", "tables", "gathers", *["chains"] * 2, *["pairs"] * 2, "moments", *["triangles"] * 2, *["brought"] * 2, "scans", "alike", "states", *["longs"] * 2, "filters", *["apart"] * 2, "turns", "inplace", "parts", "slices", "pushed", "bytewise", "dealt", "distant", "waits", "sections", "bounds", "places", "searches")  # fmt: skip
#: What may not be said of arrays that are the same.
_UNALIASED = ("restricted", "ldg_loads")
Maker = Callable[[Random], Made]


def made(rng: Random) -> Made:
    """A program, spelled in up to four of the twins' forms."""
    return _dressed(rng, rng.choice(FAMILIES[rng.choice(_SHARES)]))


def _dressed(rng: Random, maker: Maker) -> Made:
    drawn = maker(rng)
    for _ in range(rng.choice([0, 0, 1, 2, 3, 4])):
        drawn = spelled(drawn, rng.randrange(len(FORMS)))
    return drawn


def spelled(one: Made, form: int) -> Made:
    """The program in one more form, or as it is where that does not fit or was done before."""
    chosen = FORMS[form]
    if chosen.name in one.forms or (one.args and chosen.name in _UNALIASED):
        return one
    text = chosen.apply(one.text)
    if text is None or text == one.text:
        return one
    again = chosen.renaming(one.text)
    if one.args and again:  # the launch is said in the names of the values
        return one
    renamed = (
        {old: again.get(new, new) for old, new in one.renamed.items()} if one.renamed else again
    )
    return replace(one, text=text, renamed=renamed, forms=(*one.forms, chosen.name))


def programs() -> st.SearchStrategy[Made]:
    """Programs that shrink: to the first of each choice."""
    return st.randoms(use_true_random=False).map(made)


def drawn_again(seed: int) -> st.SearchStrategy[Made]:
    """Programs of the maker that the program of this seed is from, in spellings that it has."""
    rng = Random(seed)
    maker = rng.choice(FAMILIES[rng.choice(_SHARES)])
    worn = _dressed(rng, maker).forms
    named = {form.name: at for at, form in enumerate(FORMS)}

    def draw(chosen: Random) -> Made:
        drawn = maker(chosen)
        for form in worn:
            if chosen.choice([0, 1]):
                drawn = spelled(drawn, named[form])
        return drawn

    return st.randoms(use_true_random=False).map(draw)


def smallest(kernels: st.SearchStrategy[Made], fails: Callable[[Made], object]) -> Made:
    """The smallest of these kernels that fails; raises NoSuchExample where none of 300 does."""
    quiet = settings(
        max_examples=300,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    return find(kernels, lambda one: bool(fails(one)), settings=quiet)
