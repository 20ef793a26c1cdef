"""P6 undone: threads that take items a grid apart become one thread an item.

Steps that look for one item a thread then see these kernels, too; few blocks with many items each
can be made of the result again (``persistent``, ``coarsened``).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Expr, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.cutting import TOLD, cut, uses
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.firsts import stores_first
from optiml_magic.kernels.primitives.grids import said, said_alike, sizes_of
from optiml_magic.kernels.primitives.gridwide import gridwide
from optiml_magic.kernels.primitives.headed import headed
from optiml_magic.kernels.primitives.numbered import numbered, room
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.range_forms import words_of
from optiml_magic.kernels.primitives.rounds import check_updates
from optiml_magic.kernels.primitives.sizes import measured, value, with_grid
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.subscripts import delinearised
from optiml_magic.kernels.symbols import THREADS, Symbols
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    expressions,
    only_leaves,
    walk,
)
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_DOING = Call | Assign | Step
_THREAD, _BLOCK, _GRID = "threadIdx.x", "blockIdx.x", "gridDim.x"
_WIDE = 256  # threads of a block for the items of blocks of one; ours


@primitive
def unstrided(kernel: Kernel) -> Kernel:
    """A kernel that is one loop over items a grid apart, as a launch of a thread for each.

    One block, or one thread, that takes all items is a grid as well.
    """
    kernel = where_legal(headed, kernel)
    found = uses(kernel, "x")
    if found.parts:  # such as a local that a thread's number in its block has
        kernel = where_legal(in_full, kernel)
        found = uses(kernel, "x")
    if not found.strides:
        kernel = gridwide(kernel)
        found = uses(kernel, "x")
    if found.parts or kernel.launch.condition is not None or kernel.launch.otherwise:
        raise NotLegal("a thread asks for more than its index and the grid")
    effects = Effects(kernel)
    effects.straightforward()
    without_warps(kernel)
    own_text_only(kernel)
    if kernel.launch.shared is not None or kernel.reading.calls & set(TOLD):
        raise NotLegal("it has dynamic shared memory, or prints")
    *before, loop = kernel.function.body.body
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or axis is None or loop.kind != "for" or loop.test is None:
        raise NotLegal("its last statement is not a loop over its items")
    count = _count(kernel, axis, loop)
    asked = check_rounds(kernel, effects, axis, loop)
    kept = kept_before(kernel, before, loop, {*found.whole, *found.strides})
    swaps: dict[Node, Node] = {s: replace(s, kind="return", span=None) for s in going_on(loop.body)}
    body = edited(loop.body, swaps) if swaps else loop.body
    first = () if loop.before is None else (_alone(loop.before),)
    inside = If(None, loop.line, loop.test, body)
    own = set(expressions(body))
    if own & {*found.strides}:
        raise NotLegal("it asks for the threads of its grid", loop.line)
    if own & {*found.whole}:
        raise NotLegal("its items ask for a thread's first one", loop.line)
    width, words = str(kernel.launch.block[0]), said(kernel, count)
    blocks = f"cdiv({words}, {width})" if width != "1" else words
    if (
        sizes_of(kernel, count) != count.symbols
    ):  # a part of a size may be nothing, and a grid has a block at least
        asked.append(RequireDirective(parse_expression(f"{words} >= 1")))
    grid = (parse_expression(blocks), *kernel.launch.grid[1:])
    made = kernel.rewritten(
        replace(kernel.function.body, body=(*kept, *first, inside)),
        launch=replace(kernel.launch, grid=grid),
        directives=asked,
    )
    made = replace(made, facts=_facts(kernel, count))
    wide = cut(made, {"x": _WIDE}) if kernel.block == (1, 1, 1) else made
    return with_grid(wide) if isinstance(wide, Kernel) else made


def _alone(head: Statement) -> Statement:
    """What stood in the head of a loop, by itself: an expression had no semicolon of its own."""
    return replace(head, lead=None, span=None if isinstance(head, Evaluate) else head.span)


def _facts(kernel: Kernel, count: Polynomial) -> LaunchFacts | None:
    """What is known of the launch, with as many blocks as it has now."""
    facts, items = kernel.facts, value(kernel, count)
    if facts is None or items is None:
        return facts
    return replace(facts, grid=(max(1, -(-items // facts.block[0])), *facts.grid[1:]))


def _count(kernel: Kernel, axis: Axis, loop: Loop) -> Polynomial:
    """How many items there are: every one from the first is taken once."""
    width = kernel.block[0]
    if width is None or not axis.exact or axis.scaled or axis.stop is None:
        raise NotLegal("how many rounds its loop makes is not known", loop.line)
    start = Polynomial.constant(width) * Polynomial.symbol(_BLOCK)
    if width != 1 or axis.start != start:  # of the one thread of a block nothing else is asked
        start += Polynomial.symbol(_THREAD)
    step = Polynomial.constant(width) * Polynomial.symbol(_GRID)
    if axis.start != start or axis.step != step:
        raise NotLegal("its loop does not go from a thread's index in steps of the grid", loop.line)
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    stop = axis.stop
    sizes = sizes_of(kernel, stop)
    if not sizes <= given | kernel.program.values.keys() or stop.value is not None:
        raise NotLegal("how many items there are its launch cannot say", loop.line)
    if not said_alike(kernel, sizes) or sizes & Effects(kernel).moved:
        raise NotLegal("how many items there are its launch cannot say", loop.line)
    return stop


def check_rounds(
    kernel: Kernel, effects: Effects, axis: Axis, loop: Loop
) -> list[RequireDirective]:
    """Raise NotLegal where a round may ask for what another one left, or ends the others.

    What it comes with is asked of the sizes: that the rows have room for all parts of an item.
    """
    asked = dict[str, RequireDirective]()
    for statement in walk(loop.body):
        if isinstance(statement, Leave) and statement.kind == "return":
            raise NotLegal("the kernel is left within its loop", statement.line)
    own = {v for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
    for variable in effects.changed(loop.body):
        if variable not in own:
            raise NotLegal(f"`{variable.name}` goes from round to round", loop.line)
    kept = effects.kept(loop.body)
    if kept:
        raise NotLegal(f"`{kept}` goes from round to round", loop.line)
    accesses = effects.accesses(loop)
    for store in (a for a in accesses if a.mode != "load"):
        for other in (a for a in accesses if effects.same(a.array, store.array)):
            if store.mode == other.mode == "atomic":
                continue
            if _own(kernel, axis, store, other):
                continue
            for one in _roomy(kernel, effects, axis, store, other):
                asked[str(one)] = one
    check_updates(kernel, effects, loop)
    return [*asked.values()]


def _own(kernel: Kernel, axis: Axis, one: Access, other: Access) -> bool:
    """Whether no two items touch an element that both accesses do."""
    symbols, item = kernel.reading.symbols, _item(axis)
    same = one.index is not None and one.index == other.index and one.element == other.element
    form, stop = one.index or Polynomial(), axis.stop or Polynomial()
    told = numbered(form, item, stop, symbols) or _moves_with(form, item, symbols)
    if same and told and _steady(kernel, axis, form):
        return True
    if _in_one_record(kernel, item, one, other):
        return True
    places = [kernel.reading.subscript(a) for a in (one, other)]
    if one.index is not None and one.index == other.index:
        both = [condition for condition in one.guard if condition in other.guard]
        places = [delinearised(one.index, both, kernel.reading.symbols)] * 2
    first, second = places
    if first is None or second is None or one.element != other.element:
        return False
    if not (first.proved and second.proved) or first.extents != second.extents:
        return False
    for digit, alike in zip(first.digits, second.digits, strict=False):
        by = digit.coefficient(_THREAD if _THREAD in item.symbols else _BLOCK)
        if digit != alike or by is None or not by.value:
            continue
        rest = digit - by * item
        if symbols.known(rest) and all(symbols[n].kind == "scalar" for n in symbols.inside(rest)):
            return len(first.digits) == len(second.digits)
    return False


def _moves_with(form: Polynomial, item: Polynomial, symbols: Symbols) -> bool:
    """Whether a form is an item some times over, and something that all items have alike."""
    by = form.coefficient(_THREAD if _THREAD in item.symbols else _BLOCK)
    if by is None or not by.value:
        return False
    return not symbols.inside(form - by * item) & (item.symbols | THREADS)


def _item(axis: Axis) -> Polynomial:
    return (axis.start or Polynomial()) + (axis.step or Polynomial()) * Polynomial.symbol(axis.name)


def _steady(kernel: Kernel, axis: Axis, form: Polynomial) -> bool:
    """Whether all items have the same for what is not theirs in a form: no round of their own."""
    symbols, written = kernel.reading.symbols, kernel.reading.written
    others = [symbols[name] for name in symbols.inside(form) - {axis.name}]
    return all(s.kind not in ("counter", "unknown") and s.array not in written for s in others)


def _roomy(
    kernel: Kernel, effects: Effects, axis: Axis, one: Access, other: Access
) -> list[RequireDirective]:
    """What the sizes must be for no two items to meet in parts of a row, such as its halves.

    Raises NotLegal where they may meet.
    """
    symbols, need = kernel.reading.symbols, None
    if (
        one.index is not None
        and other.index is not None
        and one.element == other.element
        and _steady(kernel, axis, one.index)
    ):
        need = room(one.index, other.index, _item(axis), axis.stop or Polynomial(), symbols)
    if need is None:
        raise NotLegal("its rounds may meet in memory", one.line)
    if Ranges((), symbols, sizes=True).nonnegative(need):
        return []
    for name in need.symbols:  # no part of a size is more than the size over how many there are
        symbol, by = symbols[name], need.coefficient(name)
        times = by.value if by is not None else None
        parts = symbol.arguments[1].value if symbol.op == "/" else None
        if times and parts and -parts <= times < 0:
            need += Polynomial.constant(-times) * Polynomial.symbol(name) - symbol.arguments[0]
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    known = need.symbols <= given and not need.symbols & effects.moved
    asked = parse_expression(f"{words_of(need)} >= 0") if known else None
    if asked is None or not said_alike(kernel, need.symbols):
        raise NotLegal("its rounds may meet in memory", one.line)
    if kernel.facts is None or not measured(kernel, asked):
        raise NotLegal("its rounds may meet in memory", one.line)
    return [RequireDirective(asked)]


def _in_one_record(kernel: Kernel, item: Polynomial, one: Access, other: Access) -> bool:
    """Whether both take parts of a record of an item's own, as members of a structure are."""
    symbols = kernel.reading.symbols
    if one.offset is None or other.offset is None:
        return False
    by = one.offset.coefficient(_THREAD if _THREAD in item.symbols else _BLOCK)
    between = (one.offset - other.offset).value
    if by is None or by.value is None or between is None:
        return False
    rest = one.offset - by * item
    steady = all(symbols[n].kind == "scalar" for n in symbols.inside(rest))
    apart = abs(by.value)
    sizes = [a.element.size or apart + 1 for a in (one, other)]
    clear = apart - between >= sizes[0] and apart + between >= sizes[1]
    return clear and symbols.known(rest) and steady


def kept_before(
    kernel: Kernel,
    before: Sequence[Statement],
    loop: Loop,
    places: AbstractSet[Expr],
    *,
    computed: bool = False,
) -> list[Statement]:
    """What stands before a loop over a thread's items, as each item has it for itself.

    It must be the same for all of them: nothing that the items ask for may come from ``places``,
    where a thread asks for its first item, or from memory that the items change. What only says
    how far the loop steps is left out. Statements that compute, ways out, and what the first thread
    stores may be among it where somebody sees to it that they are not done once an item
    (``computed``): whose number in its row then says which thread is the first.
    """
    effects = Effects(kernel)
    inside: list[Expr] = [e for s in walk(loop.body) for e in s.expressions]
    inside += [loop.test] if loop.test is not None else []
    head = loop.before.expressions if loop.before is not None else ()
    counter = kernel.axes()[loop].variable
    asked = [*inside, *head]
    found: list[Statement] = []
    filled = {v.name for s in before if isinstance(s, Declare) for v in s.variables if v.array}
    for statement in reversed(before):
        own = [*expressions(statement)]
        if not isinstance(statement, Declare) or any(isinstance(e, _DOING) for e in own):
            if computed and stores_first(kernel, effects, statement, _THREAD):
                assert isinstance(statement, If)
                own = [*expressions(statement.then)]
            elif not computed or not (
                _leaves(statement) or effects.computes(statement, (), filled)
            ):
                raise NotLegal("more than declarations stands before its loop", statement.line)
            if not effects.computes(statement, ()) or effects.given(statement) & names(asked):
                if not places.isdisjoint(own):
                    raise NotLegal("it computes with a thread's first item", statement.line)
                inside += own
                asked += own
                found.insert(0, replace(statement, lead=None))
            _check_unchanged(effects, statement, loop)
            continue
        for variable in reversed(statement.variables):
            if variable not in names(asked):
                continue
            alone = replace(statement, variables=(variable,), span=None)
            if variable in names(inside) and variable is not counter:
                inside += alone.expressions
                if any(e in places for top in alone.expressions for e in every(top)):
                    raise NotLegal(f"`{variable.name}` is of a thread's first item", statement.line)
            found.insert(0, alone)
            asked += alone.expressions
        _check_unchanged(effects, statement, loop)
    return found


def _leaves(statement: Statement) -> bool:
    """Whether a statement does nothing but to leave the kernel, on a condition."""
    return (
        isinstance(statement, If)
        and statement.other is None
        and only_leaves(statement.then, "return")
        and not any(isinstance(e, _DOING) for e in every(statement.test))
    )


def _check_unchanged(effects: Effects, statement: Statement, loop: Loop) -> None:
    """Raise NotLegal where a statement loads what a loop stores."""
    stores = [a for a in effects.accesses(loop) if a.mode != "load"]
    for load in effects.accesses(statement):
        if any(effects.same(load.array, store.array) for store in stores):
            raise NotLegal(f"its items store to `{load.array}`, which is read before", load.line)


def going_on(body: Statement) -> list[Leave]:
    """The ``continue`` of this loop, not of those in it."""
    found: list[Leave] = []
    stack = [body]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Loop):
            continue
        if isinstance(statement, Leave) and statement.kind == "continue":
            found.append(statement)
        stack.extend(statement.statements)
    return found
