"""Sums that a loop around adds up: lanes keep their parts of these until that loop has ended.

``acc += partial * scale[g]`` is linear in ``partial``, a sum that each round begins at 0. So each
lane adds what it has of it, times the same factor, to a part of its own of ``acc``, and the parts
are combined once, behind the loop, in the place of once a round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import CType

_WORD = 4  # bytes of a float, and of what may stand for one


@dataclass(frozen=True)
class Outward:
    """What adds parts up: a sum, its reduction, the outermost such loop, where it is named."""

    place: Variable
    reduction: Reduction
    around: Loop
    mentions: tuple[Name, ...]


def outward(
    kernel: Kernel,
    effects: Effects,
    sums: Mapping[Variable, Reduction],
    shared: Collection[Loop],
    scope: Statement,
) -> dict[Variable, tuple[Outward, ...]]:
    """The ``sums`` of shared loops whose parts may go on, each with what these are added to.

    All of them together, or each by itself where some may not.
    """
    for chosen in ([*sums], *([v] for v in sums)):
        found = _Following(kernel, effects, chosen, shared, scope).found(sums)
        if chosen and found:
            return dict.fromkeys(chosen, found)
    return {}


class _Following:
    """Where some parts go: through locals that are linear in them, into sums around."""

    def __init__(
        self, kernel: Kernel, effects: Effects, parts: Collection[Variable],
        shared: Collection[Loop], scope: Statement,
    ) -> None:  # fmt: skip
        self.effects = effects
        self.types = kernel.reading.types
        self.reductions = kernel.reading.reductions
        self.axes = kernel.axes()
        self.scope = scope
        self.loops = shared
        self.parts = set(parts)

    def found(self, sums: Mapping[Variable, Reduction]) -> tuple[Outward, ...]:
        """The sums that take all of the parts; none where some of these go elsewhere."""
        if not self.parts or not all(self._begins_at_nothing(sums[v]) for v in self.parts):
            return ()
        first, added = frozenset(self.parts), dict[Variable, list[Evaluate]]()
        within = {s for loop in self.loops for s in walk(loop)}
        for statement in walk(self.effects.kernel.function.body):
            if statement in within:
                continue
            match statement:
                case _ if not names(statement.expressions) & self.parts:
                    continue
                case Declare(variables=variables):
                    if not all(map(self._linear_local, variables)):
                        return ()
                case Evaluate(
                    expression=Assign(
                        op="+=" | "-=", target=Name(variable=Variable() as place)
                    ) as to
                ) if place not in self.parts and self._linear(to.value):
                    added.setdefault(place, []).append(statement)
                case _:
                    return ()
        if self.parts & self.effects.lent or not self._made_by_loops(sums):
            return ()
        made = [self._around(place, own, first) for place, own in added.items()]
        return tuple(m for m in made if m is not None) if None not in made else ()

    def _linear_local(self, local: Variable) -> bool:
        """Whether a local has nothing of the parts, or is a multiple of them, and so is one."""
        if local.value is None or not names([local.value]) & self.parts:
            return True
        self.parts.add(local)
        lasts = local in self.effects.lasting and not local.type.depth
        return lasts and self._linear(local.value)

    def _made_by_loops(self, sums: Mapping[Variable, Reduction]) -> bool:
        """Whether no shared loop names a part but to add to it."""
        for loop in self.loops:
            name = self.axes[loop].name
            for part in self.parts & self.effects.mentions(loop):
                if part not in sums or name not in sums[part].axes:
                    return False
        return True

    def _begins_at_nothing(self, sum_: Reduction) -> bool:
        start = sum_.start
        zero = isinstance(start, Literal) and start.value == 0
        return zero and sum_.op == "+" and not sum_.carried and _number(sum_.type)

    def _around(
        self, place: Variable, own: list[Evaluate], parts: frozenset[Variable]
    ) -> Outward | None:
        """The outermost loop that does no more with a sum than to add these parts to it."""
        known = [r for r in self.reductions if r.place == place.name]
        if len(known) != 1 or known[0].op != "+" or not _number(known[0].type):
            return None
        plain = place.storage == "local" and not place.array and not place.type.reference
        if not plain or place in self.effects.lent:
            return None
        said = {e for s in own for e in every(s.expression)}
        targets = [e for s in own for e in every(s.expression)
                   if isinstance(e, Name) and e.variable is place]  # fmt: skip
        if len(targets) != len(own):
            return None
        makers = [loop for loop in self.loops if parts & self.effects.mentions(loop)]
        for loop in loops_in(self.scope):
            axis, inside = self.axes.get(loop), self.effects.inside(loop.body)
            if axis is None or loop in self.loops or axis.name not in known[0].axes:
                continue
            begun = {v for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
            alone = place not in names(self.effects.inside(loop) - said)
            made = all(self.effects.inside(one) <= inside for one in makers)
            if said <= inside and made and parts <= begun and alone:
                return Outward(place, known[0], loop, tuple(targets))
        return None

    def _linear(self, expr: Expr) -> bool:
        """Whether all of it is a multiple of parts, by what is the same for all lanes."""
        kind = self.types.get(expr)
        if kind is None or not _number(kind):
            return False
        match expr:
            case Name(variable=variable):
                return variable in self.parts
            case Unary(op="-" | "+", operand=operand) | Cast(operand=operand):
                return self._linear(operand)
            case Binary(op="+" | "-", left=left, right=right):
                return self._linear(left) and self._linear(right)
            case Binary(op="*", left=left, right=right):
                return (self._linear(left) and self._alike(right)) or (
                    self._linear(right) and self._alike(left)
                )
            case Binary(op="/", left=left, right=right):
                return self._linear(left) and _certain(right)
        return False

    def _alike(self, expr: Expr) -> bool:
        acts = any(isinstance(e, Assign | Call | Step) for e in every(expr))
        return not acts and not names([expr]) & self.parts


def _certain(expr: Expr) -> bool:
    """A number, or a size: not 0, by which nothing divided is no number, and the whole may be."""
    match expr:
        case Literal(value=value):
            return value != 0
        case Cast(operand=operand):
            return _certain(operand)
        case Name(variable=Variable(storage="parameter", type=kind)):
            return not kind.depth and kind.base in ("int", "unsigned int", "unsigned", "size_t")
    return False


def _number(kind: CType) -> bool:
    return kind.floating and kind.lanes == 1 and (kind.size or 0) >= _WORD
