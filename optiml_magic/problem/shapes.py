"""What most likely happened to an answer whose shape is not that of its output."""

from __future__ import annotations

import math
from itertools import permutations

Shape = tuple[int, ...]
_MOST_AXES = 5  # permutations of more are not looked through


def advice(got: Shape, wanted: Shape) -> str:
    """One sentence: what the shape ``got`` looks like, and what to return instead."""
    order = _order(got, wanted)
    if order == tuple(range(len(got)))[::-1]:
        return "it looks transposed: return its .T"
    if order is not None:
        return f"its axes look exchanged: return np.transpose(answer, {order})"
    if tuple(n for n in got if n != 1) == tuple(n for n in wanted if n != 1):
        what = "squeezed" if len(got) < len(wanted) else "given an axis of one element"
        return f"it looks {what}: return answer.reshape({wanted})"
    missing = [at for at in range(len(wanted)) if wanted[:at] + wanted[at + 1 :] == got]
    if missing:
        return (
            f"axis {missing[0]}, of {wanted[missing[0]]}, is missing: was it reduced, or is the "
            "output declared with an axis too many?"
        )
    extra = [at for at in range(len(got)) if got[:at] + got[at + 1 :] == wanted]
    if extra:
        return f"axis {extra[0]}, of {got[extra[0]]}, is too many: was a reduction left out?"
    if math.prod(got) == math.prod(wanted):
        return f"it has as many elements: return answer.reshape({wanted})"
    return f"make it {wanted}, or declare the output with the shape {got}"


def _order(got: Shape, wanted: Shape) -> Shape | None:
    """The axes of ``got`` in the order of ``wanted``, the reverse preferred."""
    if got == wanted or sorted(got) != sorted(wanted) or not 1 < len(got) <= _MOST_AXES:
        return None
    axes = tuple(range(len(got)))
    orders = [axes[::-1], *permutations(axes)]
    return next(order for order in orders if tuple(got[at] for at in order) == wanted)
