"""P16, alongside: two loops that make the same rounds, one behind the other, as one.

``for (t) walk[t] = ...; for (t) sum += walk[t];`` becomes one loop that does both, so that what a
round of the first leaves for that of the second need not go to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.beside import Beside, beside
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.operands import combining
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Blank, Block, Declare, Leave, Statement, Variable, walk


@primitive
def alongside(kernel: Kernel, worth: Callable[[Beside], bool] = lambda _: True) -> Kernel:
    """The kernel with the first two such loops as one that are ``worth`` it."""
    reason = NotLegal("no two loops make the same rounds", kernel.function.line)
    for pair in filter(worth, beside(kernel)):
        try:
            _check(pair)
        except NotLegal as found:
            reason = found
            continue
        return _joined(pair)
    raise reason


def products_alongside(kernel: Kernel) -> Kernel | Refused:
    """The kernel with its products of one row with several columns as one loop each."""
    if sum(combining(kernel, loop) for loop in loops_in(kernel.function.body)) < 2:
        return kernel
    made = alongside(all_simple(kernel), _of_one_row)
    while isinstance(made, Kernel):
        kernel, made = made, alongside(made, _of_one_row)
    return kernel


def all_simple(kernel: Kernel) -> Kernel:
    """The kernel as ``beside`` reads it: without braces that nothing has, its loops counted."""
    kernel = where_legal(opened, kernel)
    for number in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(as_counted, kernel, number, is_simple)
    return kernel


def _of_one_row(pair: Beside) -> bool:
    """Whether two loops sum up products, of which the same elements are a side."""
    loops = pair.first[-1].node, pair.second[-1].node
    if not all(combining(pair.kernel, loop) for loop in loops):
        return False
    one, other = ({a.array for a in pair.effects.accesses(loop)} for loop in loops)
    return bool(one & other)


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
    lets, rest = _between(pair)
    own = frozenset(v for s in lets for v in s.variables)
    if early := [v for s in lets for v in effects.changed(s)]:
        raise NotLegal(f"`{min(v.name for v in early)}` changes between the loops", other.line)
    pair.check_early([e for s in lets for e in s.expressions], own)
    _check_between(pair, rest, own)
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


def _between(pair: Beside) -> tuple[list[Declare], list[Statement]]:
    """What stands between the loops: what the second one asks for, and what may stay behind it."""
    asked = {*pair.effects.mentions(pair.second[0].node)}
    lets, rest = list[Declare](), list[Statement]()
    for statement in reversed(pair.between):
        if isinstance(statement, Declare) and asked & {*statement.variables}:
            lets.append(statement)
            asked |= pair.effects.mentions(statement)
        elif not isinstance(statement, Blank):
            rest.append(statement)
    return lets[::-1], rest[::-1]


def _check_between(pair: Beside, rest: Sequence[Statement], own: AbstractSet[Variable]) -> None:
    """Raise NotLegal where it would matter that the second loop comes before these."""
    effects, other = pair.effects, pair.second[0].node
    touched = [a for a in effects.accesses(other) if rest]
    for statement in rest:
        if any(ends(statement)):
            raise NotLegal("the kernel is left between the loops", statement.line)
        given = effects.changed(statement).keys()
        if given & (own | effects.mentions(other)) or effects.changed(other).keys() & (
            effects.mentions(statement)
        ):
            raise NotLegal("what is done between the loops is asked for", statement.line)
        shared = effects.mentions(statement) & (effects.mentions(other) | own)
        if any(v.array for v in shared):
            raise NotLegal("an array of its own is asked for between the loops", statement.line)
        asked = {e for e in effects.inside(statement) if isinstance(e, Name)}
        if {e.name for e in asked if e.variable not in own} & {v.name for v in own}:
            raise NotLegal("a name means something else between the loops", statement.line)
        for before, after in product(effects.accesses(statement), touched):
            loads = before.mode == after.mode == "load"
            known = before.array and after.array
            if not loads and not (known and not effects.same(before.array, after.array)):
                raise NotLegal(f"`{after.array}` is touched between the loops", after.line)


def _check_names(pair: Beside, lets: AbstractSet[str]) -> None:
    """Raise NotLegal where a name would mean something else in the loop that does both."""
    one, other, counter = pair.first[0].node, pair.second[0].node, pair.first[0].variable
    asked = {e.name for e in pair.effects.inside(one) if isinstance(e, Name)}
    assert counter is not None
    counters = {counter, pair.second[0].variable}
    theirs = {e.name for e in pair.effects.inside(other.body)
              if isinstance(e, Name) and e.variable not in counters}  # fmt: skip
    for name in sorted(
        (lets & (asked | _declared(one))) | ({counter.name} & (theirs | _declared(other.body)))
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
    early, _ = _between(pair)
    bodies = [
        kernel.show_inside(one.body),
        kernel.show_inside(other.body, pair.swaps(effects.inside(other.body))),
    ]
    asked = {e.name for e in effects.inside(other.body) if isinstance(e, Name)}
    if _declared(one.body) & (asked | _declared(other.body)):
        bodies = [f"{{\n{body}\n}}" for body in bodies]
    whole = replace(one, body=Block(None, 0, (lines("\n".join(bodies)),)), span=None, head=None)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(
        (*hints_of(kernel, one), *early, *hints_of(kernel, other), other)
    )
    lets = [kernel.show(s).strip() for s in early]
    swaps[one] = (lines("\n".join([*lets, kernel.show(whole)])),)
    return kernel.rewritten(edited(kernel.function.body, swaps))
