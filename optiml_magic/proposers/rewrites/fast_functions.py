"""Exact functions and divisions in float code, in the short forms that chips have units for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.deciding import (
    REASON,
    TURNED,
    line_decided,
    line_magnified,
    line_turned,
)
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.fast import angles, fast, kinds_in, of_kind, repeated
from optiml_magic.kernels.primitives.fast_kinds import Kind
from optiml_magic.kernels.primitives.own_functions import own_functions
from optiml_magic.kernels.primitives.reciprocals import by_reciprocals, divisions, kind_of
from optiml_magic.kernels.primitives.sines import has_pairs, sines_at_once
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

SAID: dict[Kind, str] = {
    "functions": "fast exponentials and logarithms",
    "tanh": "hyperbolic tangents by a fast exponential",
    "roots": "roots of one instruction",
    "divisions": "divisions by approximate reciprocals",
    "powers": "powers as products",
    "turns": "sines and cosines of half turns",
    "sums": "sums of products by fused multiply-adds alone",
}


Form = Kind | Literal["pairs"]
_AT_ONCE = "sines and cosines of an angle at once"

_IN_DOUBLE = 0.55  # the chance of products in the place of divisions: ours
_MAGNIFIED = 0.12  # the chance where what is off by a little may become much: ours


class FastFunctions(KernelRule):
    """``expf`` becomes a power of two, ``a / b`` a product, ``powf(x, 2)`` ``x * x``."""

    name = "fast_functions"
    teaches = (
        "A division, a logarithm or a power that is right to the last bits takes ten to forty "
        "instructions, some of them for numbers that hardly ever occur. The special function unit "
        "has a reciprocal, a root, an exponential and a logarithm of one instruction each, whose "
        "last bits may differ. Whether the results still agree is for the tolerance to say. A sine "
        "and a cosine of one angle share most of their work, and each stays what it was. Doubles "
        "have no such unit: what a loop divides by in all rounds is divided by once, before it."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        once: tuple[Kind, ...] = () if repeated(kernel, "roots") else ("roots",)
        kinds_here = [kind for kind in kinds_in(kernel) if kind not in once]
        wrong = {kind: inexact(kernel, kind) for kind in kinds_here}
        found = tuple(kind for kind in kinds_here if not wrong[kind])
        risky = {kind for kind in found if line_magnified(kernel, of_kind(kernel, kind))}
        pairs: tuple[Form, ...] = ("pairs",) if has_pairs(kernel) else ()
        steady: tuple[Form, ...] = (*(kind for kind in found if kind not in risky), *pairs)
        for kinds in dict.fromkeys((*_choices(steady), *_choices((*found, *pairs)))):
            said = ", ".join(_AT_ONCE if kind == "pairs" else SAID[kind] for kind in kinds)
            chance = 0.62 if kinds == steady else 0.4
            yield Site(
                " ".join(kinds), f"use {said}", partial(_fast, kernel, kinds),
                _MAGNIFIED if risky & {*kinds} else chance,
                Hypothesis(
                    "smsp__inst_executed.sum", "lower", "the short forms are a few instructions",
                    (1.05, 3.0),
                ),
                arithmetic=tuple(SAID[kind] for kind in kinds if kind != "pairs"),
            )  # fmt: skip
        yield from _in_double(kernel)
        for kind, why in wrong.items():
            if why and kind != "sums":
                yield Refused(f"{SAID[kind]}: {why.reason}", why.line)
        line = angles(kernel)
        if line:
            yield Refused("a sine is fast near zero alone, and its argument may be anything", line)


def _in_double(kernel: Kernel) -> Iterator[Site]:
    """Divisions of doubles by what stays the same in a loop, which have no short form."""
    effects, loops = Effects(kernel), loops_in(kernel.function.body)
    found = [e for loop in loops for e in divisions(kernel, loop, effects)]
    double = [e for e in found if kind_of(kernel, e) == "double"]
    made = by_reciprocals(kernel) if double else None
    if isinstance(made, Kernel):
        yield Site(
            "reciprocals", "multiply by reciprocals of what a loop divides by",
            lambda: made, _IN_DOUBLE,
            Hypothesis(TIME, "lower", "a product of doubles is one instruction", (1.05, 3.0)),
            arithmetic=("divisions by approximate reciprocals",),
        )  # fmt: skip


def _choices(every: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
    """All together, and each alone but an instruction less, which is worth no trial of its own."""
    alone: list[tuple[Form, ...]] = [(kind,) for kind in every if kind != "sums"]
    yield from [every, *alone] if alone and len(every) > 1 else alone


def inexact(kernel: Kernel, kind: Kind) -> Refused | None:
    """Why what is of a kind in a kernel must not be short; None where it may."""
    changed = of_kind(kernel, kind)
    line = line_decided(kernel, changed)
    if line:
        return Refused(REASON, line)
    turned = line_turned(kernel, changed) if kind == "functions" else 0
    return Refused(TURNED, turned) if turned else None


def _fast(kernel: Kernel, kinds: Sequence[Form]) -> Kernel | Refused:
    own = where_legal(own_functions, kernel)
    short = [kind for kind in kinds if kind != "pairs"]
    made = fast(own, short) if short else own
    if "pairs" not in kinds or isinstance(made, Refused):
        return made
    return where_legal(sines_at_once, made) if short else sines_at_once(made)
