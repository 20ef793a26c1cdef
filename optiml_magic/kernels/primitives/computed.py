"""What loops over the same elements compute again: the first that does may keep it for the others.

An exponential of each element that a sum took is there already where the element is divided by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import Call, Expr, Name, every
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.primitives.again import Again
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.inlined import certain
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, Variable, walk


@dataclass(frozen=True)
class Computed:
    """``node`` in ``statement`` of a round of ``axis``, and where later loops have it again."""

    axis: Axis
    statement: Statement
    node: Expr
    later: tuple[Expr, ...]
    kind: str
    array: str


def computed(kernel: Kernel, found: Again, effects: Effects) -> Iterator[Computed]:
    """The calls of pure functions that a later loop makes again, of what is kept alone.

    What they are made of is asked for by no later loop but in them, so that they need no more room.
    """
    taken = set[Expr]()
    for at, axis in enumerate(found.axes):
        body = axis.node.body
        for statement in body.body if isinstance(body, Block) else (body,):
            if not isinstance(statement, Declare | Evaluate):
                continue
            tops = [e for top in statement.expressions for e in certain(top)]
            for node in sorted(tops, key=lambda e: -len([*every(e)])):
                one = _one(kernel, found, effects, at, statement, node)
                if one is not None and not taken & {node, *one.later}:
                    taken |= {part for e in (node, *one.later) for part in every(e)}
                    yield one


def _one(
    kernel: Kernel, found: Again, effects: Effects, at: int, statement: Statement, node: Expr
) -> Computed | None:
    kind = kernel.reading.types.get(node)
    if (
        not isinstance(node, Call)
        or not pure(node.function)
        or not (kind and kind.name)
        or kind.depth
    ):
        return None
    if kernel.unit.called(node.function, len(node.arguments)):
        return None
    own = {part: one for one in found.kept for a in one.accesses
           if (part := element(effects, a)) is not None}  # fmt: skip
    inside = [own[part] for part in every(node) if part in own]
    if len({id(one) for one in inside}) != 1 or not _steady(kernel, found, effects, at, node, own):
        return None
    kept = inside[0]
    after = [axis.node for axis in found.axes[at + 1 :]]
    others = {e for loop in after for e in effects.inside(loop.body)}
    again = [e for e in others if isinstance(e, Call) and _alike(node, e, own)]
    held = {part for e in again for part in every(e)}
    left = [a for a in kept.accesses if a.own in others and element(effects, a) not in held]
    stored = any(a.mode == "store" for a in kept.accesses)
    if not again or left or stored:
        return None
    return Computed(found.axes[at], statement, node, tuple(again), kind.name, kept.array)


def _steady(
    kernel: Kernel, found: Again, effects: Effects, at: int, node: Expr, own: Mapping[Expr, object]
) -> bool:
    """Whether all but the element is the same from this loop to the last."""
    free = {e for e in every(node) if e not in own and not _within(e, node, own)}
    if any(a.own in free for a in kernel.reading.accesses):
        return False
    block = next(s for s in walk(kernel.function.body)
                 if isinstance(s, Block) and found.axes[at].node in s.body)  # fmt: skip
    start, end = (block.body.index(axis.node) for axis in (found.axes[at], found.axes[-1]))
    passed = block.body[start : end + 1]
    inner = {v for s in passed for d in walk(s) if isinstance(d, Declare) for v in d.variables}
    changed: set[Variable] = {*effects.changed(*passed), *inner}
    return not any(isinstance(e, Name) and e.variable in changed for e in free)


def _within(part: Expr, node: Expr, own: Mapping[Expr, object]) -> bool:
    """Whether a part of an expression belongs to the element in it."""
    return any(part in {*every(e)} for e in every(node) if e in own)


def _alike(one: Expr, other: Expr, own: Mapping[Expr, object]) -> bool:
    """Whether two expressions are the same of the same element, whatever its index is called."""
    if one in own or other in own:
        return own.get(one) is own.get(other)
    if not one.parts or not other.parts:
        return same(one, other)
    if type(one) is not type(other) or len(one.parts) != len(other.parts):
        return False
    named = [getattr(e, name, None) for name in ("op", "function", "type", "field", "template")
             for e in (one, other)]  # fmt: skip
    alike = all(a == b for a, b in zip(named[::2], named[1::2], strict=True))
    return alike and all(_alike(a, b, own) for a, b in zip(one.parts, other.parts, strict=True))
