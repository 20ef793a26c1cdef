"""P4, fields of an item that a launch has along z, such as the channels of a pixel, as a loop.

Threads for one channel each touch every third byte of a line. One for all of them has neighbours,
which vectors bring, and finds its place and asks for its bounds once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Lambda,
    Step,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS, bare
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.places import own_text_only, tops
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Leave,
    Statement,
    Variable,
    body_of,
    only_leaves,
    walk,
)
from optiml_magic.source.expressions import Number

_MOST = 4  # fields: ours
_THREAD = "threadIdx.x"


@primitive
def fields_in_turn(kernel: Kernel) -> Kernel:
    """The kernel whose threads take all fields of their item, one after the other."""
    name, count = _along_z(kernel)
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    every_place_read(kernel)
    without_warps(kernel)
    if kernel.launch.shared is not None or kernel.reading.calls & {*TOLD}:
        raise NotLegal("it has dynamic shared memory, or tells which thread comes when")
    if not _lie_together(kernel, name, count):
        raise NotLegal("its threads along z do not take fields of one item")
    body = kernel.function.body
    places = {e for top in tops(body) for e in every(top) if builtin(e)[-2:] == ".z"}
    if any(builtin(e) != name for e in places):
        raise NotLegal("it asks for more than its index along z")
    counter = kernel.fresh("field")
    swaps: dict[Node, Node] = {e: text(counter) for e in places}
    made = _Turns(
        kernel,
        effects,
        places,
        swaps,
        f"unsigned int {counter} = 0; {counter} < {count}; ++{counter}",
    )
    launch = replace(kernel.launch, grid=kernel.launch.grid[:2], block=kernel.launch.block[:2])
    return with_grid(kernel.rewritten(replace(body, body=made.of(body.body)), launch=launch))


def _along_z(kernel: Kernel) -> tuple[str, int]:
    """What a thread asks for as its index along z, and how many there are."""
    grid, threads = kernel.launch.grid, kernel.block[2]
    blocks = grid[2].tree.value if len(grid) > 2 and isinstance(grid[2].tree, Number) else None
    blocks = 1 if len(grid) < 3 else blocks
    if threads == 1 and blocks is not None and 1 < blocks <= _MOST:
        return "blockIdx.z", blocks
    if blocks == 1 and threads is not None and 1 < threads <= _MOST:
        return "threadIdx.z", threads
    raise NotLegal("its launch does not have a few threads along z")


def _lie_together(kernel: Kernel, name: str, count: int) -> bool:
    """Whether the fields that an item stores are neighbours, the next item's behind them."""
    for access in kernel.reading.accesses:
        size, form = access.element.size, access.offset
        if access.space != "global" or access.mode == "load" or form is None or not size:
            continue
        by, item = form.coefficient(name), form.coefficient(_THREAD)
        if by is not None and item is not None and (by.value, item.value) == (size, count * size):
            return True
    return False


class _Turns:
    """The statements of a kernel with a loop around those that depend on a field."""

    def __init__(
        self,
        kernel: Kernel,
        effects: Effects,
        places: set[Expr],
        swaps: dict[Node, Node],
        head: str,
    ) -> None:
        self.kernel, self.effects, self.places = kernel, effects, places
        self.swaps, self.head = swaps, head
        self.own = set[Variable]()  # locals that say something of the field

    def of(
        self, statements: Sequence[Statement], begun: Sequence[Statement] = ()
    ) -> tuple[Statement, ...]:
        """What is the same for all fields stands before the loop: guards, and what lasts.

        Locals that have ``begun`` to say something of a field wait for the loop.
        """
        before, inside = list[Statement](), [*begun]
        for at, statement in enumerate(statements):
            rest = statements[at + 1 :]
            computes = not any(map(_does, statement.expressions))
            lasts = (
                isinstance(statement, Declare) and {*statement.variables} <= self.effects.lasting
            )
            if isinstance(statement, Declare) and lasts and computes:
                self._declared(statement, before, inside)
                continue
            if isinstance(statement, If) and computes and not self._varies(statement.test):
                if only_leaves(statement.then, "return") and statement.other is None:
                    before.append(statement)
                    continue
                if not rest and statement.other is None and statement.before is None:
                    then = Block(None, statement.line, self.of(body_of(statement.then), inside))
                    return (*before, replace(statement, then=then, span=None, head=None))
            return (*before, self._loop([*inside, statement, *rest]))
        return (*before, self._loop(inside))

    def _declared(
        self, statement: Declare, before: list[Statement], inside: list[Statement]
    ) -> None:
        for variable in statement.variables:
            alone = replace(statement, variables=(variable,), span=None)
            if any(self._varies(e) for e in alone.expressions):
                self.own.add(variable)
                inside.append(alone)
            else:
                before.append(alone)

    def _varies(self, expr: Expr) -> bool:
        """Whether it says something of a field."""
        return bool(self.places & {*every(expr)} or self.own & names([expr]))

    def _loop(self, inside: Sequence[Statement]) -> Statement:
        within = {s for one in inside for loop in loops_in(one) for s in walk(loop.body)}
        leaves = [
            s for one in inside for s in walk(one) if isinstance(s, Leave) and s.kind == "return"
        ]
        if within & {*leaves}:
            raise NotLegal("the kernel is left within a loop", leaves[0].line)
        swaps: dict[Node, Node] = {s: lines("continue;") for s in leaves}
        shown = [self.kernel.show(one, {**self.swaps, **swaps}) for one in inside]
        return lines("\n".join([f"for ({self.head}) {{", *shown, "}"]))


def _does(expr: Expr) -> bool:
    """Whether it may do more than to compute and to load."""
    return any(
        isinstance(e, Assign | Step | Lambda | Unread)
        or (isinstance(e, Call) and bare(e.function) not in OF_ALL_NUMBERS)
        for e in every(expr)
    )
