"""What stands for the elements of a scan where a thread asks for them, once these are in a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Assign, Choice, Expr, Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.prefixes import Mask, Parts, Prefixes
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Statement, Variable, walk


def is_shared(expr: Expr) -> bool:
    """Whether this is an array in shared memory, or an element of one."""
    while isinstance(expr, Index):
        expr = expr.base
    return isinstance(expr, Name) and expr.variable is not None and (
        expr.variable.storage in ("shared", "dynamic"))  # fmt: skip


class Asking(Prefixes):
    """Prefixes by name: ``before`` a thread's own elements, ``after`` each, ``parts`` they alone.

    ``dropped`` are locals that change while the threads combine, which nobody may ask for.
    """

    def __init__(
        self, kernel: Kernel, count: int, before: str, parts: Sequence[str], after: Sequence[str]
    ) -> None:
        super().__init__(kernel, count, count * len(parts))
        self.before, self.parts, self.after = before, parts, after
        self.each = len(parts)
        self.used = set[str]()
        self.dropped = set[Variable]()

    def asked_in(self, statement: Statement, mask: Mask) -> dict[Node, Node]:
        """What stands for what is combined, in a branch as well."""
        swaps: dict[Node, Node] = {}
        match statement:
            case Block(body=body):
                for inner in body:
                    swaps |= self.asked_in(inner, mask)
            case If(before=None, test=test, then=then, other=other):
                swaps |= self.asked(test, mask)
                true, false = self._ways(test, mask)
                swaps |= self.asked_in(then, true)
                swaps |= self.asked_in(other, false) if other is not None else {}
            case Evaluate() | Declare():
                for top in statement.expressions:
                    swaps |= self.asked(top, mask)
            case _:
                if any(self.asked(top, mask) for s in walk(statement) for top in s.expressions):
                    raise NotLegal("a loop asks for what is combined", statement.line)
        return swaps

    def asked(self, expr: Expr, mask: Mask) -> dict[Node, Node]:
        """What stands for what is combined in an expression."""
        if isinstance(expr, Assign):
            inner = expr.target.index if isinstance(expr.target, Index) else None
            found = self.asked(inner, mask) if inner is not None else {}
            return found | self.asked(expr.value, mask)
        if isinstance(expr, Index) and is_shared(expr):
            return {expr: text(self._called(self.value(expr, mask), mask))}
        if isinstance(expr, Name) and expr.variable is not None:
            value = self.env.get(expr.variable)
            if isinstance(value, Parts):
                return {expr: text(self._called(value, mask))}
            if expr.variable in self.dropped:
                raise NotLegal(f"`{expr.name}` changes while threads combine")
            return {}
        if isinstance(expr, Choice):
            true, false = self._ways(expr.test, mask)
            return {**self.asked(expr.test, mask), **self.asked(expr.then, true),
                    **self.asked(expr.other, false)}  # fmt: skip
        swaps: dict[Node, Node] = {}
        for part in expr.parts:
            swaps |= self.asked(part, mask)
        return swaps

    def _ways(self, test: Expr, mask: Mask) -> tuple[Mask, Mask]:
        """Which threads may go which way."""
        found = self.value(test, mask)
        if not isinstance(found, np.ndarray):
            return mask, mask
        return mask & (found != 0), mask & (found == 0)

    def _called(self, found: object, mask: Mask) -> str:
        """The name of what has the elements that threads ask for."""
        if not isinstance(found, Parts):
            raise NotLegal("a thread asks for what is not combined")
        bits, order = found.bits[mask], np.arange(self.elements)
        threads = np.arange(self.count)[mask][:, None]
        for at in range(self.each):
            if bool((bits == (order[None, :] <= threads * self.each + at)).all()):
                return self.after[at]
            if bool((bits == (order[None, :] == threads * self.each + at)).all()):
                return self.parts[at]
        if bool((bits == (order[None, :] < threads * self.each)).all()):
            self.used.add(self.before)
            return self.before
        raise NotLegal("a thread asks for more than the elements up to its own")
