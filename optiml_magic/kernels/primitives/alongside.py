"""P16, alongside: two loops that make the same rounds, one behind the other, as one.

``for (t) walk[t] = ...; for (t) sum += walk[t];`` becomes one loop that does both, so that what a
round of the first leaves for that of the second need not go to memory.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.beside import Beside, beside
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Blank, Block, Declare, Leave, Statement, walk


@primitive
def alongside(kernel: Kernel) -> Kernel:
    """The kernel with the first two such loops as one, of which the second needs the first."""
    reason = NotLegal("no two loops make the same rounds", kernel.function.line)
    for pair in beside(kernel):
        try:
            _check(pair)
        except NotLegal as found:
            reason = found
            continue
        return _joined(pair)
    raise reason


def _check(pair: Beside) -> None:
    """Raise NotLegal where it would matter that a round of the second comes before the last."""
    kernel, effects = pair.kernel, pair.effects
    if len(pair.first) > 1 or len(pair.second) > 1:
        raise NotLegal("there are loops in it", pair.first[0].line)
    one, other = pair.first[0], pair.second[0]
    assert one.variable is not None
    assert other.variable is not None
    effects.straightforward()
    for name in (*TOLD, "printf"):
        if name in kernel.reading.calls:
            raise NotLegal(f"`{name}` tells which round comes when", one.line)
    for statement in (*walk(one.node.body), *walk(other.node.body)):
        if isinstance(statement, Leave):
            raise NotLegal("a round is left before its end", statement.line)
    if one.variable.type.base != other.variable.type.base:
        raise NotLegal("the loops do not count alike", other.line)
    lets = [s for s in pair.between if not isinstance(s, Blank)]
    own = frozenset(v for s in lets if isinstance(s, Declare) for v in s.variables)
    if not all(isinstance(s, Declare) for s in lets):
        raise NotLegal("something is done between the loops", other.line)
    pair.check_early([e for s in lets for e in s.expressions], own)
    loops = one.node, other.node
    for loop, beyond in (loops, loops[::-1]):
        for variable in effects.changed(loop).keys() & effects.mentions(beyond):
            raise NotLegal(f"`{variable.name}` is what the whole loop leaves", other.line)
    _check_names(pair, {v.name for v in own})
    touched = [
        [a for a in kernel.reading.accesses if a.own in effects.inside(loop)] for loop in loops
    ]
    for before, after in product(*touched):
        if not _of_a_round(pair, before, after):
            raise NotLegal(f"a later round touches `{after.array}` as well", after.line)


def _check_names(pair: Beside, lets: AbstractSet[str]) -> None:
    """Raise NotLegal where a name would mean something else in the loop that does both."""
    one, other, counter = pair.first[0].node, pair.second[0].node, pair.first[0].variable
    asked = {e.name for e in pair.effects.inside(one) if isinstance(e, Name)}
    assert counter is not None
    for name in sorted(
        (lets & (asked | _declared(one))) | ({counter.name} & _declared(other.body))
    ):
        raise NotLegal(f"both loops call something `{name}`", other.line)


def _declared(part: Statement) -> set[str]:
    return {v.name for s in walk(part) if isinstance(s, Declare) for v in s.variables}


def _of_a_round(pair: Beside, before: Access, after: Access) -> bool:
    """Whether two accesses, of either loop, touch an element in the same round or not at all."""
    if before.mode == after.mode == "load":
        return True
    if before.array and after.array and not pair.effects.same(before.array, after.array):
        return True
    if "atomic" in (before.mode, after.mode) or before.array != after.array:
        return False
    index, other = before.index, after.index
    if index is None or other is None or before.element != after.element:
        return False
    symbols, name = pair.kernel.reading.symbols, pair.first[0].name
    by, theirs = index.coefficient(name), other.coefficient(pair.second[0].name)
    if by is None or theirs is None or by != theirs or len(by.terms) != 1:
        return False
    rest = index - by * Polynomial.symbol(name)
    same = rest == other - theirs * Polynomial.symbol(pair.second[0].name)
    kinds = {symbols[n].kind for n in symbols.inside(rest)}
    steady = all(symbols[n].kind == "scalar" for n in by.symbols)
    return same and steady and kinds <= {"scalar", "builtin", "operation"}


def _joined(pair: Beside) -> Kernel:
    kernel, effects = pair.kernel, pair.effects
    one, other = pair.first[0].node, pair.second[0].node
    bodies = [
        kernel.show_inside(one.body),
        kernel.show_inside(other.body, pair.swaps(effects.inside(other.body))),
    ]
    if _declared(one.body) & _declared(other.body):
        bodies = [f"{{\n{body}\n}}" for body in bodies]
    whole = replace(one, body=Block(None, 0, (lines("\n".join(bodies)),)), span=None, head=None)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(
        (*hints_of(kernel, one), *pair.between, other)
    )
    lets = [kernel.show(s).strip() for s in pair.between if not isinstance(s, Blank)]
    swaps[one] = (lines("\n".join([*lets, kernel.show(whole)])),)
    return kernel.rewritten(edited(kernel.function.body, swaps))
