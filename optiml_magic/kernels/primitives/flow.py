"""Whether all threads of a block come to a place together: the proof that a barrier needs."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.tree import Blank, Block, If, Leave, Loop, Statement, walk


class Flow:
    """The branches and loops of one kernel that the threads of a block take together."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.axes = kernel.axes()

    def uniform(self, branch: If) -> bool:
        """Whether all threads of a block decide alike."""
        reading = self.kernel.reading
        told = [g.condition for g in reading.guards if g.test is branch.test]
        return branch.before is None and bool(told) and all(map(reading.uniform, told))

    def together(self, loop: Loop) -> None:
        """Raise NotLegal where threads of a block may make different numbers of rounds."""
        axis = self.axes.get(loop)
        if axis is None:
            raise NotLegal("a loop is not read", loop.line)
        if not axis.exact:
            raise NotLegal(axis.reason or "the loop has another way out", loop.line)
        if not self.kernel.reading.uniform(axis.test):
            raise NotLegal("threads of a block make different numbers of rounds", loop.line)

    def around(self, target: Statement) -> tuple[Statement, ...]:
        """The statements that a statement is in, outermost first."""
        return _path(self.kernel.function.body, target) or ()

    def flag(self, target: Loop) -> If | None:
        """The branch on a lone flag that is directly around a loop, where there is one.

        Raises NotLegal where not all threads of a block come to it, or to the loop itself.
        """
        path = [s for s in self.around(target) if s is not target]
        flag = None
        for at, outer in enumerate(path):
            if isinstance(outer, Loop):
                self.together(outer)
            elif isinstance(outer, If) and not outer.constant and not self.uniform(outer):
                inner = path[at + 1 :]
                if not (_alone(outer, target, inner) and isinstance(outer.test, Name)):
                    raise NotLegal("not all threads of a block come to the loop", outer.line)
                flag = outer
        self._left(path, target)
        self.together(target)
        return flag

    def _left(self, path: list[Statement], target: Loop) -> None:
        """Nobody has left alone before the loop, or leaves what is around it between two rounds."""
        order = {s: at for at, s in enumerate(walk(self.kernel.function.body))}
        loops = [s for s in path if isinstance(s, Loop)]
        for statement, place in order.items():
            if not isinstance(statement, Leave):
                continue
            around = self.around(statement)
            if target in around and statement.kind == "return":
                raise NotLegal("the kernel is left within the loop", statement.line)
            own = next((s for s in reversed(around) if isinstance(s, Loop)), None)
            before = place < order[target]
            if statement.kind == "return":
                matters = before or bool(loops)
            else:
                matters = own in loops and (before or statement.kind == "break")
            if matters and not self._alike(around, own if own in loops else None):
                raise NotLegal("threads of a block diverge before the loop", statement.line)

    def _alike(self, around: tuple[Statement, ...], own: Loop | None) -> bool:
        start = around.index(own) if own is not None else 0
        inner = around[start:]
        loops = [s for s in inner if isinstance(s, Loop) and s is not own]
        return not loops and all(self.uniform(s) for s in inner if isinstance(s, If))


def ends(statement: Statement, *kinds: str) -> Iterator[Leave]:
    """The ways out of a statement: returns, and what ends a round of a loop around it."""
    if isinstance(statement, Leave):
        if statement.kind in kinds or not kinds:
            yield statement
        return
    for inner in statement.statements:
        found = ends(inner, *kinds)
        yield from (f for f in found if f.kind == "return" or not isinstance(statement, Loop))


def _alone(branch: If, target: Loop, inner: list[Statement]) -> bool:
    """Whether a branch holds a loop and nothing else that runs."""
    blocks = [branch.then, *inner]
    return branch.other is None and all(
        s is target or isinstance(s, Blank) or s in blocks
        for block in blocks
        for s in (block.body if isinstance(block, Block) else (block,))
    )


def _path(root: Statement, target: Statement) -> tuple[Statement, ...] | None:
    if root is target:
        return (root,)
    for inner in root.statements:
        found = _path(inner, target)
        if found is not None:
            return (root, *found)
    return None
