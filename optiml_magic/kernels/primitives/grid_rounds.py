"""Loops whose rounds the threads of all blocks share: how a block alone makes those of its own.

``for (i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x)`` becomes a loop over what
all blocks take at once, and one in it over the threads there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Loop, Statement, Variable
from optiml_magic.source.expressions import Number

#: How a thread says which it is in a grid of blocks of one, and how many there are.
COUNTED = {
    "gridDim.x": "blockDim.x * gridDim.x",
    "blockIdx.x": "blockIdx.x * blockDim.x + threadIdx.x",
}


@dataclass(frozen=True)
class Strided:
    """A loop that each thread begins at a place of its own: its counter, and where the first does.

    ``by`` is how far a round goes, where that is further than to the next threads of this block;
    in the rounds of all blocks ``together`` neighbours are taken, from the first element on.
    """

    variable: Variable
    start: Expr
    by: Expr | None = None
    together: bool = False


def blocks_in_words(kernel: Kernel, at: int) -> Expr:
    """How many blocks the grid has along an axis, as a number or in the kernel's own sizes."""
    launch = kernel.launch
    tree = launch.grid[at].tree if at < len(launch.grid) else Number(1)
    if isinstance(tree, Number):
        return Literal(None, str(tree.value), tree.value)
    form, names = form_of(tree), launch.grid[at].names
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    known = form is not None and names <= given | {*kernel.program.values}
    if not known or not said_alike(kernel, names) or names & Effects(kernel).moved:
        raise NotLegal("blocks share the rounds of a loop")
    return text(f"(unsigned int)({launch.grid[at]})")


def from_nothing(axis: Axis, count: int) -> bool:
    """Whether all blocks together begin with the first elements, and take neighbouring ones.

    A round of any of them is then within that round of all of them, which begins at a multiple of
    what they go on by.
    """
    if axis.start is None or axis.step is None:
        return False
    across = axis.start.coefficient("blockIdx.x")
    width = across.value if across is not None else None
    if width is None or width < count or axis.start.coefficient("threadIdx.x") is None:
        return False
    rest = axis.start.without(["blockIdx.x", "threadIdx.x"])
    return rest.value == 0 and axis.step == Polynomial.constant(width) * Polynomial.symbol(
        "gridDim.x"
    )


def nested(
    kernel: Kernel, loop: Loop, strided: Strided, swaps: Mapping[Node, Node],
    first: str, thread: str, count: int,
) -> Statement:  # fmt: skip
    """The loop over all rounds, and in it over the threads."""
    variable, by = strided.variable, strided.by
    assert loop.test is not None
    assert by is not None
    begun: Expr = Literal(None, "0", 0) if strided.together else _plain(strided.start)
    at: Expr = Name(None, first)
    if strided.together:
        at = Binary(None, "+", at, _plain(strided.start))
    at = Binary(None, "+", at, Name(None, thread))
    own: dict[Node, Node] = {e: Name(None, first) for e in every(loop.test)
           if isinstance(e, Name) and e.variable is variable}  # fmt: skip
    all_rounds = _shown(kernel, edited(loop.test, {**swaps, **own}))
    own_rounds = _shown(kernel, edited(loop.test, swaps))
    kind, further = variable.type.base, _shown(kernel, by)
    return lines("\n".join([
        f"for ({kind} {first} = {_shown(kernel, begun)}; {all_rounds}; {first} += {further})",
        f"for (int {thread} = 0; {thread} < {count}; ++{thread}) {{",
        f"const {kind} {variable.name} = {_shown(kernel, at)};",
        f"if ({own_rounds}) {kernel.show(edited(loop.body, swaps))}",
        "}",
    ]))  # fmt: skip


def _plain(expr: Expr) -> Expr:
    """A sum without the zeros that stand where its thread stood."""
    match expr:
        case Binary(op="+", left=Literal(value=0), right=other):
            return _plain(other)
        case Binary(op="+", left=other, right=Literal(value=0)):
            return _plain(other)
    return expr


def _shown(kernel: Kernel, expr: Expr) -> str:
    return kernel.spelled(expr)
