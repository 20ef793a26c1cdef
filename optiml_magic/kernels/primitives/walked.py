"""P25, arrays walked as far as the data say: their loops are written out to the arrays' ends.

``for (j = 1; j <= n; ++j) row[j] = ...`` with ``int row[65]`` makes no round in which ``j`` is more
than 64. A loop of 64 rounds, each made where ``j <= n``, can be written out, all indices are
constants then, and the array lies in registers. One that begins where the data say, as in a band,
begins at the first place of all, and makes rounds from ``j >= begin`` on. What is asked for at a
place that the data say is chosen among all. What all rounds load alike is loaded before, since no
round is certain any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.searched import array_sizes, behind, certainly
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)

_MOST = 128  # places that are come to: more would not lie in registers


@dataclass(frozen=True, eq=False)
class Walk:
    """A loop that walks through local ``arrays``, and may come to so many ``places`` of them.

    ``begin`` is where it begins if that is no number.
    """

    loop: Loop
    counter: Variable
    places: range
    arrays: frozenset[str]
    begin: Expr | None = None


@primitive
def walked(kernel: Kernel) -> Kernel:
    """The kernel whose loops walk through local arrays with constant indices."""
    found, chosen = walks(kernel), _chosen(kernel)
    if not found:
        raise NotLegal("no loop walks through a local array to where the data say")
    swaps, taken = dict[Node, Node | tuple[Statement, ...] | None](), list[str]()
    through = {name for one in found for name in one.arrays}
    for statement, places in chosen.items():
        if all(isinstance(place.base, Name) and place.base.name in through for place in places):
            swaps[statement] = tuple(_choosing(kernel, statement, places, taken))
    for one in found:
        name, kind = one.counter.name, declared_type(kernel, one.counter)
        head = f"for ({kind} {name} = {one.places.start}; {name} < {one.places.stop}; ++{name})"
        test, first, begun = _test(kernel, one, {}), str(one.places.start), list[str]()
        if one.begin is not None:
            first = kernel.fresh(f"{name}_begin", *taken)
            taken.append(first)
            begun.append(f"const {kind} {first} = {kernel.spelled(one.begin)};")
            test = f"{name} >= {first} && {test}"
        before, alike = _before(kernel, one, first, taken)
        inside = kernel.show_inside(one.loop.body, {**swaps, **alike})
        swaps |= dict.fromkeys(hints_of(kernel, one.loop))
        words = f"#pragma unroll\n{head} {{\nif ({test}) {{\n{inside}\n}}\n}}"
        swaps[one.loop] = tuple(map(lines, (*begun, *before, words)))
    return kernel.rewritten(edited(kernel.function.body, swaps))


def walks(kernel: Kernel) -> list[Walk]:
    """The loops that keep local arrays from lying in registers, where nothing else does."""
    sizes = array_sizes(kernel)
    if not sizes:
        return []
    effects = Effects(kernel)
    found = [
        one for axis in kernel.axes().values()
        if (one := _walk(effects, axis, sizes)) is not None
    ]  # fmt: skip
    loops = {one.loop for one in found}
    found = [one for one in found if not loops & {*loops_in(one.loop.body)}]
    counters = {one.counter for one in found} | {
        axis.variable for axis in kernel.axes().values()
        if axis.trips is not None and axis.trips <= _MOST and is_counted(axis, effects)
    }  # fmt: skip
    told = {place for places in _chosen(kernel).values() for place in places}
    whole = effects.inside(kernel.function.body)
    if any(isinstance(e, Lambda) for e in whole) or kernel.reading.verbatim:
        return []
    bases = dict[Expr, Index]((e.base, e) for e in whole if isinstance(e, Index))
    open_ = {
        e.name for e in whole
        if isinstance(e, Name) and e.name in sizes
        and (e not in bases or not (bases[e] in told or _is_constant(bases[e].index, counters)))
    }  # fmt: skip
    return [one for one in found if not one.arrays & open_]


def _test(kernel: Kernel, one: Walk, swaps: Mapping[Node, Node]) -> str:
    assert one.loop.test is not None
    return kernel.spelled(one.loop.test, swaps)


def _before(
    kernel: Kernel, one: Walk, begin: str, taken: list[str]
) -> tuple[list[str], dict[Node, Node]]:
    """What every round loads from one place, loaded once where there is a round."""
    assert one.loop.test is not None
    effects, told, swaps = Effects(kernel), list[str](), dict[Node, Node]()
    declared = (v for s in walk(one.loop) if isinstance(s, Declare) for v in s.variables)
    moving = {*declared, *effects.changed(one.loop.body)}
    first: dict[Node, Node] = {
        e: text(begin) for e in every(one.loop.test)
        if isinstance(e, Name) and e.variable is one.counter
    }  # fmt: skip
    alike = {
        a.own: a for a in effects.accesses(one.loop.body)
        if a.mode == "load" and a.space == "global"
        and not any(effects.same(a.array, other) for other in kernel.reading.written)
    }  # fmt: skip
    for expr in _each_round(one.loop):
        parts = [*every(expr)]
        plain = all(isinstance(e, Name | Literal | Binary) or e is expr for e in parts)
        names = {e.variable for e in parts if isinstance(e, Name)}
        kind = kernel.reading.types.get(expr)
        if expr not in alike or not plain or kind is None or moving & names or None in names:
            continue
        name = kernel.fresh(f"{alike[expr].array}_alike", *taken)
        taken.append(name)
        place = kernel.show(Evaluate(None, 0, expr))
        told += [f"{kind.name} {name};", f"if ({_test(kernel, one, first)}) {name} = {place}"]
        swaps[expr] = text(name)
    return told, swaps


def _each_round(loop: Loop) -> Iterator[Index]:
    """The elements that each round certainly asks for."""
    for statement in loop.body.body if isinstance(loop.body, Block) else (loop.body,):
        if isinstance(statement, Evaluate | Declare | If):
            for top in statement.expressions:
                yield from certainly(top)


def _is_constant(index: Expr, counters: set[Variable | None]) -> bool:
    """Whether an index is a number where loops are written out."""
    names = [e for e in every(index) if isinstance(e, Name)]
    plain = all(isinstance(e, Name | Literal | Binary) for e in every(index))
    return plain and all(e.variable in counters for e in names)


def _walk(effects: Effects, axis: Axis, sizes: Mapping[str, int]) -> Walk | None:
    loop, counter = axis.node, axis.variable
    first = axis.start.value if axis.start is not None else None
    step = axis.step.value if axis.step is not None else None
    if counter is None or axis.trips is not None or step != 1 or not axis.exact:
        return None
    begin = None if first is not None else _begin(effects, axis, counter)
    if first is None and begin is None:
        return None
    if not is_counted(axis, effects) or not _is_steady(effects, axis, counter):
        return None
    if any(isinstance(s, Leave) for s in walk(loop.body)):
        return None
    asked = [
        (e.base.name, apart) for e in _each_round(loop)
        if isinstance(e.base, Name) and e.base.name in sizes
        and (apart := behind(e.index, counter)) is not None
    ]  # fmt: skip
    if not asked:
        return None
    stop = min(sizes[name] - apart for name, apart in asked)
    # A round before would ask for an element before the first.
    places = range(max(-apart for _, apart in asked) if first is None else first, stop)
    known = 1 < len(places) <= _MOST
    return Walk(loop, counter, places, frozenset(n for n, _ in asked), begin) if known else None


def _begin(effects: Effects, axis: Axis, counter: Variable) -> Expr | None:
    """Where the data say that rounds begin, if no more than whole numbers are computed for it."""
    value = counter.value
    if value is None or not axis.bounded or not effects.reading.types[value].integral:
        return None
    plain = all(_only_counts(e) or isinstance(e, Choice | Unary) for e in every(value))
    return value if plain and not effects.changed(Evaluate(None, 0, value)) else None


def _is_steady(effects: Effects, axis: Axis, counter: Variable) -> bool:
    """Whether a test that once fails does so in all rounds behind, and has no effects."""
    test, held = axis.node.test, axis.test
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
        return False
    by = held.form.coefficient(axis.name) if isinstance(held, Compare) else None
    if by is None or by.value is None or by.value >= 0:
        return False
    changed = effects.changed(axis.node.body).keys()
    return counter not in changed and all(
        _only_counts(e)
        and not (isinstance(e, Name) and e.variable is not counter and e.variable in changed)
        for e in every(test)
    )


def _only_counts(expr: Expr) -> bool:
    """Whether a part of an expression finds one number from others, wherever it stands."""
    chosen = isinstance(expr, Call) and expr.function in ("min", "max")
    return chosen or isinstance(expr, Name | Literal | Binary)


def _chosen(kernel: Kernel) -> dict[Statement, list[Index]]:
    """Statements that ask for elements of local arrays where the data say, with these."""
    sizes, found = array_sizes(kernel), dict[Statement, list[Index]]()
    counters = {axis.variable for axis in kernel.axes().values()}
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        for statement in block.body:
            match statement:
                case Evaluate(expression=Assign(op="=", target=target, value=value)):
                    parts = [*every(value), *(every(target) if isinstance(target, Index) else ())]
                    parts = [e for e in parts if e is not target]
                case Declare(variables=(Variable(value=Expr() as value),)):
                    parts = [*every(value)]
                case _:
                    continue
            if any(not isinstance(e, Name | Literal | Binary | Index) for e in parts):
                continue
            for e in parts:
                if not isinstance(e, Index) or not isinstance(e.base, Name):
                    continue
                names = [n for n in every(e.index) if isinstance(n, Name)]
                plain = all(isinstance(n, Name | Literal | Binary) for n in every(e.index))
                own = sizes.get(e.base.name, _MOST + 1) <= _MOST
                if own and plain and names and not any(n.variable in counters for n in names):
                    found.setdefault(statement, []).append(e)
    return found


def _choosing(
    kernel: Kernel, statement: Statement, places: list[Index], taken: list[str]
) -> Iterator[Statement]:  # fmt: skip
    """The statement behind what chooses the elements that it asks for."""
    sizes, swaps = array_sizes(kernel), dict[Node, Node]()
    for place in places:
        assert isinstance(place.base, Name)
        array = place.base.name
        name, at = (kernel.fresh(n, *taken) for n in (f"{array}_chosen", "at"))
        taken += [name, at]
        kind = kernel.reading.arrays[array].element.name
        where = kernel.spelled(place.index)
        yield lines(
            f"{kind} {name} = {array}[0];\n#pragma unroll\n"
            f"for (int {at} = 1; {at} < {sizes[array]}; ++{at}) "
            f"if ({at} == {where}) {name} = {array}[{at}];"
        )
        swaps[place] = text(name)
    yield lines(kernel.show(statement, swaps))
