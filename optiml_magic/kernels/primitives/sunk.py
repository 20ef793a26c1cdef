"""P1, sink: what both ways of a test store to one place is a local, stored once behind them.

``if (border) o[i] = a[i]; else o[i] = f(a, i);`` is then one store of each item, which steps that
compute it where it is asked for look for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.endings import ended
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Leave, Statement, walk


@primitive
def sunk(kernel: Kernel) -> Kernel:
    """The kernel whose tests choose what is stored, where both of their ways end with that."""
    kernel = where_legal(ended, kernel)
    effects = Effects(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for branch in _outermost(kernel.function.body):
        made = _Sinking(kernel, effects, branch)
        if made.stores:
            swaps[branch] = made.statements()
    if not swaps:
        raise NotLegal("no test chooses what is stored to one place")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _outermost(statement: Statement) -> Iterator[If]:
    """The tests with two ways in the blocks of a statement, none within another that is one."""
    for inner in statement.statements:
        whole = isinstance(inner, If) and inner.other is not None and inner.before is None
        if whole and isinstance(statement, Block):
            assert isinstance(inner, If)
            yield inner
        else:
            yield from _outermost(inner)


class _Sinking:
    def __init__(self, kernel: Kernel, effects: Effects, branch: If) -> None:
        self.kernel, self.effects, self.branch = kernel, effects, branch
        self.places = {
            access.own: access for access in kernel.reading.accesses
            if access.space == "global" and access.mode == "store"
        }  # fmt: skip
        found = self._ends(branch)
        self.stores = found if found is not None and self._is_one(found) else []

    def statements(self) -> tuple[Statement, ...]:
        first = self.stores[0]
        access = self.places[first]
        name = self.kernel.fresh(f"{access.array}_item")
        swaps: dict[Node, Node] = {
            store: Assign(None, "=", text(name), store.value) for store in self.stores
        }
        declared = lines(f"{access.element.name} {name};")
        stored = Evaluate(None, self.branch.line, replace(first, span=None, value=text(name)))
        return (declared, edited(self.branch, swaps), stored)

    def _ends(self, statement: Statement | None) -> list[Assign] | None:
        """The last thing that each way does, where that is to store; else None."""
        match statement:
            case Block(body=(*_, last)):
                return self._ends(last)
            case If(before=None, then=then, other=other):
                both = self._ends(then), self._ends(other)
                return None if both[0] is None or both[1] is None else [*both[0], *both[1]]
            case Evaluate(expression=Assign(op="=") as assign) if assign in self.places:
                return [assign]
        return None

    def _is_one(self, stores: list[Assign]) -> bool:
        """Whether all of them store a plain element to the place that is also the one behind."""
        accesses = [self.places[store] for store in stores]
        first, target = accesses[0], stores[0].target
        if any(isinstance(s, Leave) for s in walk(self.branch)) or first.index is None:
            return False
        if any((a.array, a.index, a.element) != (first.array, first.index, first.element)
               for a in accesses):  # fmt: skip
            return False
        inside = {v for s in walk(self.branch) if isinstance(s, Declare) for v in s.variables}
        asked = names([target])
        steady = not asked & (inside | {*self.effects.changed(self.branch)})
        return steady and not any(isinstance(e, Assign | Call | Step) for e in every(target))
