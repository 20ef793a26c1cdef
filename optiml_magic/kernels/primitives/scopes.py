"""Tests that stand around all items of a thread: what these have alike decides for all at once.

That is whether a row is there, near a border, or what memory says, such as whether there is a
neighbour at all: ``if (row >= 0) sum += weight * x[row * n + i]``.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.moving import Moving
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import If, Leave, Loop, Variable, walk


class Scopes:
    """The branches around all items of a kernel: ``around``, which grow as they are found."""

    def __init__(self, effects: Effects, moving: Moving) -> None:
        self.effects = effects
        self.moving = moving
        self.around: set[If] = set()
        self._loads = {a.own: a for a in effects.kernel.reading.accesses if a.mode == "load"}
        self._counters = {axis.variable for axis in effects.kernel.axes().values()}

    def inside(self, loop: Loop) -> bool:
        """Whether such a branch is in a loop."""
        return any(statement in self.around for statement in walk(loop.body))

    def of(self, expr: Expr) -> Iterator[If]:
        """The branches that an expression is in."""
        return (branch for branch in self.around if expr in self.effects.inside(branch))

    def tells(self, branch: If) -> bool:
        """Whether memory says for all items alike whether they take a branch that loads."""
        return (
            self.loads_alone(branch) and asks(self.effects, branch.test) and self.alike(branch.test)
        )

    def loads_alone(self, branch: If) -> bool:
        """Whether a branch without ``else`` does nothing but load and compute."""
        accesses = self.effects.accesses(branch)
        stores = any(access.mode != "load" for access in accesses)
        leaves = any(isinstance(s, Leave) for s in walk(branch))
        plain = branch.other is None and branch.before is None and not branch.constant
        return plain and not stores and not leaves and bool(accesses)

    def alike(self, expr: Expr) -> bool:
        """Whether all items compute the same, where they make the same rounds."""
        if name := builtin(expr):
            return name not in self.moving.coarse
        if expr in self._loads:
            return self._steady(self._loads[expr])
        match expr:
            case Name(variable=Variable(storage="parameter") as variable):
                return not variable.type.depth and variable.name not in self.effects.moved
            case Name(variable=variable):
                value = variable.value if variable in self.effects.lasting else None
                return variable in self._counters or (value is not None and self.alike(value))
            case Call(function=name) if name not in OF_ALL_NUMBERS:
                return False
            case Unary(op=op) if op not in "+-!~":
                return False
        plain = isinstance(expr, Literal | Unary | Binary | Cast | Choice | Call)
        return plain and all(map(self.alike, expr.parts))

    def _steady(self, load: Access) -> bool:
        """Whether nothing writes what is loaded, and it is the same for all items."""
        form, moving = load.index, self.moving
        return form is not None and load.array in moving.steady and moving.alike(
            n for n in moving.symbols.inside(form) if not moving.is_counter(n)
        )  # fmt: skip


def asks(effects: Effects, test: Expr) -> bool:
    """Whether a test asks for memory, itself or by what locals hold."""
    loads = {a.own for a in effects.kernel.reading.accesses if a.mode == "load"}
    found = [*every(test)]
    for expr in found:
        variable = expr.variable if isinstance(expr, Name) else None
        if variable in effects.lasting and variable is not None and variable.value is not None:
            found += every(variable.value)
    return any(expr in loads for expr in found)
