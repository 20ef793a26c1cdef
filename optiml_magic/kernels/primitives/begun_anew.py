"""Locals that each round of a loop begins anew, and that a nest of loops in it combines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Expr, Index, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.moving_ends import is_constant
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.stepwise import plain
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

ORDER = "the order of additions"
_OPS = ("+", "*", "&", "|", "^", "&&", "||", "min", "max", "<", ">")


@dataclass(frozen=True, eq=False)
class Kept:
    """A local that each round begins with ``value`` in ``begin``, and that its ranges combine."""

    local: Variable
    begin: Declare | Evaluate
    value: Expr
    reduction: Reduction | None  # None for one that counts


@dataclass(frozen=True, eq=False)
class BegunAnew:
    """The locals that a ``nest`` of loops, one of the statements of a ``body``, combines into.

    What they begin with is made of nothing ``unsteady``; ``hidden`` is a local whose name is that
    of another one as well.
    """

    kernel: Kernel
    body: tuple[Statement, ...]
    nest: Loop
    unsteady: frozenset[Variable]
    hidden: Callable[[Variable], bool]

    @property
    def effects(self) -> Effects:
        return Effects(self.kernel)

    def found(self) -> Iterator[Kept]:
        """Them all; raises NotLegal where the nest changes anything else."""
        for local in self.effects.changed(self.nest):
            kind = local.type
            odd = kind.reference or kind.depth or kind.volatile or local.array
            odd = odd or local in self.effects.lent or self.hidden(local)
            if odd or local.storage != "local":
                raise NotLegal(f"`{local.name}` has more than one name", self.nest.line)
            one = self._combined(local)
            if one is None and not self._counts(local):
                raise NotLegal(f"`{local.name}` is not only combined", self.nest.line)
            begin = self._begin(local)
            value = local.value if isinstance(begin, Declare) else _given(begin)
            if value is None or not self._steady(value, begin):
                reason = f"`{local.name}` does not begin with the same in each round"
                raise NotLegal(reason, begin.line)
            yield Kept(local, begin, value, one)

    def _steady(self, value: Expr, begin: Statement) -> bool:
        """Whether each round begins with the same, such as the first element of a row."""
        loads: dict[Node, Node] = {
            e: Literal(None, "0", 0) for e in every(value) if isinstance(e, Index)
        }
        if not is_steady(self.kernel, edited(value, loads), self.unsteady):
            return False
        ahead = self.body[: self.body.index(begin)]
        if loads and any(way for s in ahead for way in ends(s)):
            return False  # a first round may end before it asks for them
        own = [a for a in self.kernel.reading.accesses if a.node in loads]
        written = self.kernel.reading.written
        places = (e.index for e in loads if isinstance(e, Index))
        bases = names(e.base for e in loads if isinstance(e, Index))
        return (
            {a.node for a in own} == {*loads}
            and all(a.mode == "load" and a.space == "global" for a in own)
            and not any(self.effects.same(a.array, w) for a in own for w in written)
            and all(is_steady(self.kernel, place, self.unsteady) for place in places)
            and not bases & self.unsteady
        )

    def _combined(self, local: Variable) -> Reduction | None:
        """What says how all loops of the nest combine a local, and do nothing else with it."""
        axes = self.kernel.axes()
        around = [one for one in loops_in(self.nest) if local in self.effects.changed(one.body)]
        own = {axes[one].name for one in around if one in axes}
        found = [r for r in self.kernel.reading.reductions if r.place == local.name
                 and own & {*r.axes}]  # fmt: skip
        covered = {name for r in found for name in r.axes}
        if not found or len(own) < len(around) or not own <= covered:
            return None
        for one in found:
            late = one.carried or one.op not in _OPS or any(t[:1] == "!" for t in one.tests)
            if late or one.op != found[0].op:
                raise NotLegal(f"the order decides what `{local.name}` becomes", one.line)
        return found[0]

    def _counts(self, local: Variable) -> bool:
        """Whether all that is done with a local in the nest is to add what stays to it."""
        found = self.effects.changed(self.nest)[local]
        asked = [e for e in self.effects.inside(self.nest)
                 if isinstance(e, Name) and e.variable is local]  # fmt: skip
        by = [c.value for c in found if c.value is not None]
        whole = type_of(self.kernel, local).integral and all(c.op in ("+", "-") for c in found)
        return whole and len(asked) == len(found) and all(isinstance(v, Literal) for v in by)

    def _begin(self, local: Variable) -> Declare | Evaluate:
        """The statement right before the nest that gives a local its value."""
        for statement in reversed(self.body[: self.body.index(self.nest)]):
            if isinstance(statement, Declare) and local in statement.variables:
                others = (v.value for v in statement.variables if v.value is not None)
                if local.value is not None and local.opening == "=" and local not in names(others):
                    return statement
                break
            if local in self.effects.mentions(statement):
                if isinstance(statement, Evaluate) and _gives(statement, local):
                    return statement
                break
        raise NotLegal(f"`{local.name}` is not begun anew right before the loops", self.nest.line)


def is_steady(kernel: Kernel, expr: Expr, unsteady: Collection[Variable]) -> bool:
    """Whether an expression asks for nothing but numbers, constants and locals that stay."""
    named = (e for e in every(expr) if isinstance(e, Name) and e.variable is None)
    zero = Literal(None, "0", 0)
    alone = edited(expr, {e: zero for e in named if is_constant(kernel, e.name)})
    return plain(alone, Effects(kernel)) and not names([expr]) & {*unsteady}


def given_before(kernel: Kernel, outer: Loop, local: Variable) -> Expr | None:
    """What a local is declared with beside a loop, where it still has that as the loop begins."""
    for block in walk(kernel.function.body):
        if not isinstance(block, Block) or outer not in block.body:
            continue
        ahead = block.body[: block.body.index(outer)]
        for at, statement in enumerate(ahead):
            if isinstance(statement, Declare) and local in statement.variables:
                head = [] if outer.before is None else [outer.before]
                moved = Effects(kernel).changed(*ahead[at + 1 :], *head).keys()
                asked = {local, *(names([local.value]) if local.value is not None else ())}
                return local.value if local.opening == "=" and not asked & moved else None
    return None


def named_once(kernel: Kernel, local: Variable) -> bool:
    """Whether a name is that of one variable in all of a kernel."""
    declared = [p.name for p in kernel.function.parameters]
    for statement in walk(kernel.function.body):
        declared += [v.name for v in statement.variables] if isinstance(statement, Declare) else []
    others = any(
        isinstance(e, Name) and e.name == local.name and e.variable is not local
        for e in expressions(kernel.function.body)
    )
    return Counter(declared)[local.name] == 1 and not others


def _given(begin: Declare | Evaluate) -> Expr | None:
    expression = begin.expressions[0]
    return expression.value if isinstance(expression, Assign) else None


def _gives(statement: Evaluate, local: Variable) -> bool:
    match statement.expression:
        case Assign(op="=", target=Name(variable=own), value=value):
            return own is local and local not in names([value])
    return False
