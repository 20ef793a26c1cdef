"""Elements of an operand that data may leave out, and that a tile loads all the same.

``if (mask[i * d + k]) sum += x[k * m + j];`` asks for some elements of ``x`` alone, by what another
load says. A tile has all of them, where the array has; whether they count is asked as before.
"""

from __future__ import annotations

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.pinned import room
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import UNKNOWN, Compare, Condition, Symbols
from optiml_magic.source.directives import RequireDirective

_ONE = Polynomial.constant(1)
_BY_DATA = frozenset({"[]", UNKNOWN})


def of_data(symbols: Symbols, part: Condition) -> bool:
    """Whether a condition is on what is loaded."""
    depends = symbols.depends(part.form) if isinstance(part, Compare) else part.depends
    return bool(depends & _BY_DATA)


def always(
    kernel: Kernel, axis: Axis, access: Access, form: Polynomial, ends: dict[str, Polynomial]
) -> RequireDirective | None:
    """What an array must have so that all rows, columns and rounds may ask for its elements.

    ``form`` is where an element is over the indices in ``ends``, which has how many there are of
    each. None where that is not certain.
    """
    if access.mode != "load" or access.space != "global" or access.call is not None:
        return None
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    rest = form.without([*ends])
    last = rest
    for name, count in ends.items():
        by = form.coefficient(name)
        if by is None:
            return None
        last += by * (count - _ONE)
        if not _grows(by, given):
            return None
    begins = axis.start.value if axis.start is not None else None
    counted = begins is not None and begins >= 0 and axis.step == _ONE
    if not counted or not _grows(rest, given) or not last.symbols <= given:
        return None
    return room(kernel, access, Speller(kernel.reading.symbols, {}).form(last + _ONE))


def _grows(form: Polynomial, sizes: set[str]) -> bool:
    """Whether a form is no less than 0, since sizes are not."""
    return form.symbols <= sizes and all(factor >= 0 for _, factor in form.terms)
