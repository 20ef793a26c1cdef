"""Primitives applied to a text, and the result run beside it on the emulated device."""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.model.facts import Facts
from optiml_magic.source.program import parse_program
from tests.present import drawn
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made


def kernel_of(text: str, facts: Facts | None = None) -> Kernel:
    """The only kernel of a text."""
    (found,) = kernels(parse_program(text), facts)
    return found


def written(found: Kernel | Refused) -> str:
    """The text that a primitive made; an AssertionError with its reason where it refused."""
    assert isinstance(found, Kernel), found
    return found.program.text


def refused(found: Kernel | Refused) -> str:
    """Why a primitive refused, and where."""
    assert isinstance(found, Refused), found.program.text
    return f"{found.reason}, line {found.line}" if found.line else found.reason


def unchanged(
    before: str, after: str, arrays: Mapping[str, Array], sizes: Mapping[str, int],
    others: Mapping[str, int], *, rounds: bool = False, **scalars: float,
) -> str:  # fmt: skip
    """The same of one in four of many cases that are alike, told by their text; all for soak."""
    if not drawn(f"{before} {sorted(sizes.items())}", 4):
        return "same"
    return end_of(before, after, arrays, sizes, others, rounds=rounds, **scalars)


def end_of(
    before: str, after: str, arrays: Mapping[str, Array], sizes: Mapping[str, int],
    others: Mapping[str, int], *, rounds: bool = False, **scalars: float,
) -> str:  # fmt: skip
    """What became of the result at two sets of sizes: ``same``, ``narrowed`` or what is wrong."""
    made = Made("one", before, dict(arrays), dict(sizes), dict(others), scalars, exact=not rounds)
    found = Stand(made).applied(Offer("rule", "", after, rounds), before)
    return found.end if found.sound else f"{found.end}: {found.detail}\n{after}"
