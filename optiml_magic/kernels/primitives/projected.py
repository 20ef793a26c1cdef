"""What conditions on several indices leave for some of them: for which of these there are others.

By elimination, which is exact over whole numbers where factors are 1: Fourier and Motzkin, as in
Schrijver, "Theory of Linear and Integer Programming" (1986), section 12.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal

_ONE = Polynomial.constant(1)


def projected(
    forms: Sequence[Polynomial], extents: Mapping[str, Polynomial]
) -> tuple[Polynomial, ...]:
    """What must not be negative without the indices of ``extents``, which are below these.

    Raises NotLegal where an index has a factor.
    """
    left = [*forms]
    for name, extent in extents.items():
        own = Polynomial.symbol(name)
        ends = own, extent - own - _ONE
        more, less, rest = list[Polynomial](), list[Polynomial](), list[Polynomial]()
        for form in dict.fromkeys((*left, *ends)):
            by = form.coefficient(name)
            value = by.value if by is not None else None
            if value not in (-1, 0, 1):
                raise NotLegal("a guard ties rows to columns")
            (more if value == 1 else less if value == -1 else rest).append(form)
        pairs = (a + b for a in more for b in less if {a, b} != {*ends})
        left = [*rest, *pairs]
    return tuple(f for f in dict.fromkeys(left) if f.value is None or f.value < 0)


def extreme(form: Polynomial, ends: Mapping[str, tuple[str, str]], greatest: bool) -> Polynomial:
    """A form where each index of ``ends`` is the name of its first or its last value.

    Raises NotLegal where an index has a factor that is not a number.
    """
    for name, (first, last) in ends.items():
        by = form.coefficient(name)
        value = by.value if by is not None else None
        if value is None:
            raise NotLegal("a test is not a sum of indices")
        end = last if (value > 0) == greatest else first
        form = form.without([name]) + Polynomial.constant(value) * Polynomial.symbol(end)
    return form
