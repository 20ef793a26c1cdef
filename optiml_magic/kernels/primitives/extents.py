"""What a launch asks of the sizes of arrays, for vectors to load what items may leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from optiml_magic.errors import SourceError
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.grids import below, needed_form
from optiml_magic.kernels.primitives.items import Items
from optiml_magic.kernels.primitives.pinned import room
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller, Unspelled
from optiml_magic.source.expressions import Expression, parse_expression


def existing(
    kernel: Kernel, group: Items, count: Expression | None, sure: Sequence[Items]
) -> str | None:
    """The condition under which an array has the elements of ``count`` items, as a launch says it.

    Without a ``count`` others alone can say so. It has them as well where ``sure`` ones, which
    every item takes, lie at the same places of an array that is no larger. None where nothing says
    so, or where it is not so at the measured sizes.
    """
    own, first = _size(kernel, group), group.index.value
    if own is None:
        return None
    if first is not None and first >= 0 and count is not None and not group.backward:
        asked = [f"{own} >= {_end(count, group.apart, first)}"]
    else:
        place = (group.index, group.apart, group.backward)
        alike = [g for g in sure if (g.index, g.apart, g.backward) == place]
        asked = [f"{own} >= {size}" for g in alike if (size := _size(kernel, g)) is not None]
    for condition in asked:
        try:
            if measured(kernel, parse_expression(condition)):
                return condition
        except SourceError:  # it reads what another launch is given
            continue
    return None


def of_rows(kernel: Kernel, access: Access, axis: Axis) -> str | None:
    """The same for what rounds take of a row of a thread's own, of which they ask for all.

    Each thread that goes through the loop has a row, as long as this has rounds, behind that of
    the thread before.
    """
    index, width, many = access.index, kernel.block[0], needed_form(kernel, "x")
    if index is None or width is None or many is None or axis.start is None or axis.stop is None:
        return None
    row, step = axis.stop, axis.step.value if axis.step is not None else None
    thread = Polynomial.symbol("threadIdx.x")
    thread += Polynomial.constant(width) * Polynomial.symbol("blockIdx.x")
    if step != 1 or axis.start.value != 0 or index != row * thread + Polynomial.symbol(axis.name):
        return None
    if access.mode != "load" or not below(kernel, axis.guard, "x", width, many):
        return None
    try:
        words = Speller(kernel.reading.symbols, {}).form(many * row)
        asked = room(kernel, access, words)
    except (Unspelled, SourceError):
        return None
    return str(asked.condition) if asked is not None else None


def _end(count: Expression, apart: int, first: int) -> str:
    words = str(count)
    if apart > 1:
        words = f"{words} * {apart}" if words.isidentifier() else f"({words}) * {apart}"
    return f"{words} + {first}" if first else words


def _size(kernel: Kernel, group: Items) -> str | None:
    """How many elements an array has, in the words of the launch; None where these are others."""
    facts, name = kernel.facts, passed(kernel, group.array)
    known = facts.arrays.get(group.array) if facts is not None else None
    if known is None or name is None or known.role == "scratch":
        return None
    return f"size({name})" if known.nbytes == prod(known.shape) * group.size else None
