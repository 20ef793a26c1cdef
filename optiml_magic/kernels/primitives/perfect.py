"""P3, a perfect nest: what rounds do around the loop in them, each round of that loop does.

Weights that are packed by groups are summed up by a loop in a loop: what a group begins with, its
rounds, and their sum times a scale. With all of it in the rounds, both loops can be one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Literal, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names, parted
from optiml_magic.kernels.tree import Declare, Evaluate, Leave, Loop, Statement, Variable, walk

ROUNDING = "the rounding of products"
_ADDED = ("+=", "-=")


@primitive
def perfect(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number does nothing but the loop in it.

    A sum that each round begins anew, and adds to another times what does not depend on the inner
    rounds, is added by these.
    """
    return _Nest(kernel, loops_in(kernel.function.body)[at]).kernel()


class _Nest:
    def __init__(self, kernel: Kernel, outer: Loop) -> None:
        self.old, self.effects, self.outer = kernel, Effects(kernel), outer
        own = [*parted(outer.body)]
        loops = [s for s in own if isinstance(s, Loop)]
        if len(loops) != 1 or len(own) == 1:
            raise NotLegal("the loop does not hold one loop and something around it", outer.line)
        self.inner = loops[0]
        place = own.index(self.inner)
        self.before, after = own[:place], own[place + 1 :]
        self.changed = {*self.effects.changed(self.inner)}
        self.swaps: dict[Node, Node] = {}
        self.rounds = bool(after)
        if after:
            self._add_within(after)
        self._check()

    def kernel(self) -> Kernel:
        kernel = self.old
        first = "\n".join(kernel.show(statement) for statement in self.before)
        body = lines(f"{{\n{first}\n{kernel.show_inside(self.inner.body, self.swaps)}\n}}")
        inner = replace(self.inner, body=body, span=None)
        made = replace(self.outer, body=lines(f"{{\n{kernel.show(inner)}\n}}"), span=None)
        found = kernel.rewritten(edited(kernel.function.body, {self.outer: made}))
        said = dict.fromkeys((*kernel.arithmetic, *((ROUNDING,) if self.rounds else ())))
        return replace(found, arithmetic=tuple(said))

    def _add_within(self, after: Sequence[Statement]) -> None:
        """Each round adds its own part, times what the sum of all was multiplied with."""
        (part,) = self.changed if len(self.changed) == 1 else (None,)
        last = after[0].expression if isinstance(after[0], Evaluate) else None
        if part is None or len(after) > 1 or not isinstance(last, Assign) or last.op not in _ADDED:
            raise NotLegal(
                "more follows the inner loop than one sum added to another", self.outer.line
            )
        total = last.target.variable if isinstance(last.target, Name) else None
        begun = [s for s in self.before if isinstance(s, Declare) and part in s.variables]
        nothing = isinstance(part.value, Literal) and part.value.value == 0
        types = self.old.reading.types
        if total is None or len(begun) != 1 or not nothing or types.get(last.target) is None:
            raise NotLegal(f"`{part.name}` is not begun anew by each round", self.outer.line)
        if not _is_linear(last.value, part) or total in names([last.value]):
            raise NotLegal(f"`{total.name}` is not increased by a multiple of it", after[0].line)
        self.before.remove(begun[0])
        added = [*self._added(part)]
        if len(added) != len([e for e in self.effects.inside(self.inner) if _is(e, part)]):
            raise NotLegal(f"a round asks for `{part.name}`", self.inner.line)
        kind, whole = types.get(last.target), types.get(last.value)
        for assign in added:
            if not (kind == whole == types.get(assign.target) == types.get(assign.value)):
                raise NotLegal("its numbers are of several types", self.outer.line)
            if kind is None or not kind.floating:
                raise NotLegal("it is not a sum of floats", self.outer.line)
            value = Unary(None, "-", assign.value) if assign.op == "-=" else assign.value
            once: dict[Node, Node] = {e: value for e in every(last.value) if _is(e, part)}
            self.swaps[assign] = Assign(None, last.op, last.target, edited(last.value, once))
        self.changed = {total}

    def _added(self, part: Variable) -> Iterator[Assign]:
        for statement in walk(self.inner.body):
            expr = statement.expression if isinstance(statement, Evaluate) else None
            if isinstance(expr, Assign) and expr.op in _ADDED and _is(expr.target, part):
                yield expr

    def _check(self) -> None:
        """Raise NotLegal where what stands before might not be done in each round as well."""
        effects, written = self.effects, self.old.reading.written
        if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(self.outer)):
            raise NotLegal("a round may be the last", self.outer.line)
        heads = names(self.inner.expressions)
        inside = {v.name for s in walk(self.inner) if isinstance(s, Declare) for v in s.variables}
        for statement in self.before:
            if not isinstance(statement, Declare) or not effects.computes(statement, written):
                raise NotLegal("more than locals comes before the inner loop", statement.line)
            for variable in statement.variables:
                steady = variable in effects.lasting and not variable.array
                if not steady or variable in heads or variable.name in inside:
                    raise NotLegal(
                        f"`{variable.name}` is not a local of each round", statement.line
                    )
            if {*names(statement.expressions)} & self.changed:
                raise NotLegal("it asks for what rounds change", statement.line)


def _is(expr: Expr, variable: Variable) -> bool:
    return isinstance(expr, Name) and expr.variable is variable


def _is_linear(expr: Expr, part: Variable) -> bool:
    """Whether this is the part, or a multiple of it."""
    match expr:
        case Name(variable=variable):
            return variable is part
        case Binary(op="*", left=left, right=right):
            sides = [part in names([side]) for side in (left, right)]
            own = left if sides[0] else right
            return sides[0] != sides[1] and _is_linear(own, part)
        case Binary(op="/", left=left, right=right):
            return isinstance(right, Literal) and right.value != 0 and _is_linear(left, part)
    return False
