"""P12, atomic operations on floats beside each other, one after the other, as one of them.

``atomicAdd(&p->x, a); atomicAdd(&p->y, b);`` are two requests to one sector of the L2. Where the
first address is a multiple of what all of them are, which is asked as the kernel runs, one request
adds them all; nobody sees them between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Lambda,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.adding import AT_ONCE, adds
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.updates import commuting
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Block, Evaluate, Statement, walk

_FLOAT = 4  # bytes
_COUNTS = (4, 2)  # floats of one operation
_Run = list[tuple[Evaluate, Call, Access]]


@primitive
def added_together(kernel: Kernel) -> Kernel:
    """The kernel with neighbouring floats added at once, two or four of them; it adds some."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    names = list[str]()
    for run in together(kernel):
        name = kernel.fresh("sums", *names)
        names.append(name)
        values = ", ".join(_value(kernel, call.arguments[1]) for _, call, _ in run)
        address = kernel.spelled(run[0][1].arguments[0])
        swaps |= dict.fromkeys(statement for statement, _, _ in run)
        swaps[min((s for s, _, _ in run), key=lambda s: s.line)] = lines(
            f"alignas(16) const float {name}[{len(run)}] = {{{values}}};\n"
            f"add_at_once<{len(run)}>({address}, {name});"
        )
    if not swaps:
        raise NotLegal("it adds no neighbouring floats, one after the other")
    return kernel.rewritten(edited(kernel.function.body, swaps), helpers=[AT_ONCE])


def together(kernel: Kernel) -> Iterator[_Run]:
    """The runs of statements that add to neighbouring floats, by ascending places."""
    effects, commute = Effects(kernel), commuting(kernel)
    found = {}
    for access in commute:
        own = [a for a in kernel.reading.accesses if a.node is access.node]
        if len(own) == 1 and access.offset is not None and adds(kernel, effects, access):
            found[access.node] = access
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        run: _Run = []
        for statement in (*block.body, None):
            call = statement.expression if isinstance(statement, Evaluate) else None
            known = isinstance(call, Call) and call in found
            plain = known and all(_is_plain(kernel, a) for a in call.arguments)  # type: ignore[union-attr]
            if isinstance(statement, Evaluate) and isinstance(call, Call) and plain:
                run.append((statement, call, found[call]))
                continue
            yield from _neighbours(run)
            run = []


def _neighbours(run: _Run) -> Iterator[_Run]:
    """Those of a run that are beside each other, four or two at a time."""
    rest = run
    while rest:
        first = rest[0][2]
        near = [one for one in rest if _apart(one[2], first) is not None]
        rest = [one for one in rest[1:] if one not in near]
        left = sorted(near, key=lambda one: _apart(one[2], first) or 0)
        while left:
            count = next((n for n in _COUNTS if _beside(left[:n], n)), 1)
            if count > 1:
                yield left[:count]
            left = left[count:]


def _apart(access: Access, first: Access) -> int | None:
    """How many bytes an access is behind another one of its array, where that is known."""
    if access.array != first.array or access.offset is None or first.offset is None:
        return None
    return (access.offset - first.offset).value


def _beside(run: _Run, count: int) -> bool:
    """Whether so many floats follow each other, and may begin at a multiple of all of them."""
    offsets = [access.offset for _, _, access in run if access.offset is not None]
    steps = ((after - before).value for before, after in pairwise(offsets))
    whole = count * _FLOAT
    aligned = all(factor % whole == 0 for _, factor in offsets[0].terms)
    return len(offsets) == count and all(by == _FLOAT for by in steps) and aligned


def _is_plain(kernel: Kernel, expr: Expr) -> bool:
    """Whether an expression changes nothing as it is found, so that others may be found before."""
    return not any(
        isinstance(e, Assign | Step | Lambda | Unread)
        or (isinstance(e, Call) and kernel.unit.called(e.function, len(e.arguments)))
        for e in every(expr)
    )


def _value(kernel: Kernel, value: Expr) -> str:
    kind, shown = kernel.reading.types.get(value), kernel.spelled(value)
    return shown if kind is not None and kind.name == "float" else f"(float)({shown})"
