"""Double literals and functions in float code, which make a chip's few fp64 units do the work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.functions import bare, is_long, is_middling
from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.deciding import REASON, line_decided
from optiml_magic.kernels.primitives.own_functions import own_functions
from optiml_magic.kernels.primitives.precision import demotions, in_float, rounded, wished
from optiml_magic.kernels.primitives.steady import steadied
from optiml_magic.kernels.primitives.temporaries import in_single
from optiml_magic.kernels.tree import expressions
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_MOST_NAMED = 3
#: Functions that are short in float and long in double, where no unit helps.
_SERIES = frozenset({"exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "hypot"})
_FEWER = Hypothesis(
    "smsp__inst_executed_pipe_fp64.sum", "lower", "the arithmetic stays in float", (2.0, 100.0)
)


class FloatLiterals(KernelRule):
    """``0.5`` becomes ``0.5f``, and ``pow(x, 2)`` ``powf(x, 2)``, where all else is float."""

    name = "float_literals"
    teaches = (
        "A literal without f is a double: the operation around it is done in double precision, of "
        "which most chips do a fraction per clock, and converted back to float."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = demotions(kernel)
        literals = (e for demotion in found.values() for e in demotion.literals)
        names = list(dict.fromkeys(e.text for e in sorted(literals, key=lambda e: e.span or ())))
        more = " ..." if len(names) > _MOST_NAMED else ""
        title = f"write {', '.join(names[:_MOST_NAMED])}{more} as float"
        line = wished(kernel)
        single = in_single(kernel) if line else None
        if isinstance(single, Refused):
            yield Refused(f"this line computes in double: {single.reason}", line)
        elif single is not None:
            sums = any(r.type.floating and r.type.size == 8 for r in kernel.reading.reductions)
            sums = sums and not _calls_long(kernel)
            yield Site(
                "temporaries", "compute in float what the locals say double of",
                partial(in_single, kernel), 0.35 if sums else 0.62, _FEWER,
                arithmetic=("double temporaries to float",),
            )  # fmt: skip
        at = line_decided(kernel, rounded(kernel)) if found else 0
        if at:
            yield Refused(f"constants in float: {REASON}", at)
        elif found:
            yield Site(
                "float",
                title if names else "call the float versions of functions",
                partial(_in_float, kernel),
                0.6,
                _FEWER,
                arithmetic=("double constants to float",),
            )  # fmt: skip


def _in_float(kernel: Kernel) -> Kernel | Refused:
    """In float, and what is then a float that scalars alone decide computed once."""
    own = partial(where_legal, own_functions)
    return in_turn(kernel, (own, in_float, partial(where_legal, steadied)))


def _calls_long(kernel: Kernel) -> bool:
    """Whether it calls functions in double that take several times as long as those in float."""
    types = kernel.reading.types
    return any(
        isinstance(e, Call) and (kind := types.get(e)) is not None and kind.name == "double"
        and (bare(e.function) in _SERIES or is_long(e.function) or is_middling(e.function))
        for e in expressions(kernel.function.body)
    )  # fmt: skip
