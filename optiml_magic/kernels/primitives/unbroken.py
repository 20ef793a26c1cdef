"""A loop that ends with the first round that finds something makes all of its rounds.

``for (...) if (x[j] > t) { at = j; break; }`` becomes the least counter of all rounds that find
something, a reduction whose rounds lanes and blocks may share; what the branch does for that round
follows behind the loop. Lanes of a warp wait for the last of them anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from optiml_magic.errors import SourceError
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Call, Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.ended import ended
from optiml_magic.kernels.primitives.grids import form_of, needed, said_alike
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.spelled_names import stands
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller, Unspelled
from optiml_magic.kernels.symbols import Compare, Symbols
from optiml_magic.kernels.tree import Blank, Declare, Evaluate, If, Leave, Statement, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)
_STEADY = ("scalar", "builtin", "counter", "operation")
#: A number that the counter of no round is, by the size and the sign of its type.
_NONE = {(4, True): "0x7fffffff", (4, False): "0xffffffffu", (8, True): "0x7fffffffffffffffll"}


@dataclass(frozen=True, eq=False)
class _Search:
    """A loop whose rounds do ``asks`` and end it where the ``branch`` behind is taken."""

    axis: Axis
    asks: tuple[Statement, ...]
    branch: If


@primitive
def unbroken(kernel: Kernel) -> Kernel:
    """The kernel with its first such loop as one that finds the least counter."""
    kernel = where_legal(ended, kernel)
    effects = Effects(kernel)
    found = [s for axis in kernel.axes().values() if (s := _search(axis, effects)) is not None]
    if not found:
        raise NotLegal("no loop ends with the first round that finds something")
    effects.straightforward()
    if kernel.reading.verbatim:
        raise NotLegal("a part of the kernel is not read")
    (search, *_) = found
    asked = [*_asked(kernel, effects, search)]
    loop, counter = search.axis.node, search.axis.variable
    assert counter is not None
    kind = type_of(kernel, counter)
    none = _NONE.get((kind.size or 0, kind.signed)) if kind.integral else None
    if none is None:
        raise NotLegal(f"`{counter.name}` is not a plain number", loop.line)
    name, words = kernel.fresh("first"), counter.type.base
    own = counter.name if words == "int" else f"({words}){counter.name}"  # whatever stands for it
    least = lines(f"{name} = min({name}, {own});")
    then = flat(search.branch.then)
    done = [kernel.show(s).strip() for s in (*search.asks, *then[:-1])]
    if any(stands(counter.name, line) for line in done):
        done.insert(0, f"const {words} {counter.name} = {name};")
    behind = [f"if ({name} != {none}) {{", *done, "}"]
    hints = hints_of(kernel, loop)
    told = [lines(kernel.show(hint).strip()) for hint in hints]
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    swaps[loop] = (
        lines(f"{words} {name} = {none};"), *told, edited(loop, {search.branch.then: least}),
        lines("\n".join(behind)),
    )  # fmt: skip
    directives = [RequireDirective(parse_expression(words)) for words in dict.fromkeys(asked)]
    return kernel.rewritten(edited(kernel.function.body, swaps), directives=directives)


def _search(axis: Axis, effects: Effects) -> _Search | None:
    """A loop that counts up by one, asks in each round, and does more in its last one alone."""
    loop = axis.node
    leaves = [s for s in walk(loop.body) if isinstance(s, Leave)]
    own = [s for s in flat(loop.body) if not isinstance(s, Blank)]
    if len(leaves) != 1 or not own or loops_in(loop.body) or not by_ones(axis, effects):
        return None
    *asks, last = own
    if axis.step != _ONE or not isinstance(last, If) or last.other is not None or last.before:
        return None
    then = flat(last.then)
    if not then or then[-1] is not leaves[0] or leaves[0].kind != "break":
        return None
    plain = all(
        isinstance(s, Declare)
        and not any(v.type.reference or v.array or v.storage != "local" for v in s.variables)
        for s in asks
    )
    test = Evaluate(None, last.line, last.test)
    if not plain or effects.changed(*asks, test):
        return None
    return _Search(axis, tuple(asks), last)


def _asked(kernel: Kernel, effects: Effects, search: _Search) -> Iterator[str]:
    """What sizes have to be so that all rounds may ask; NotLegal where no size says so."""
    test = Evaluate(None, search.branch.line, search.branch.test)
    inside = frozenset[Expr]().union(*(effects.inside(s) for s in (*search.asks, test)))
    for call in (e for e in inside if isinstance(e, Call)):
        called = kernel.unit.called(call.function, len(call.arguments))
        if any(loops_in(function.body) for function in called):
            raise NotLegal(f"`{call.function}` has a loop", search.axis.line)
    written = {a.array for a in kernel.reading.accesses if a.mode != "load"}
    for access in (a for a in kernel.reading.accesses if a.own in inside):
        if access.space != "global" or access.mode != "load" or not is_plain(kernel, access):
            raise NotLegal("what it asks for is not in global memory", access.line)
        if any(effects.same(access.array, other) for other in written):
            raise NotLegal(f"`{access.array}` is written as well", access.line)
        if not _the_same(access, search.axis, kernel.reading.symbols):
            yield from _there(kernel, search.axis, access, effects.moved)


def _the_same(access: Access, axis: Axis, symbols: Symbols) -> bool:
    """Whether each round loads what the first one does."""
    if access.index is None or not {*access.guard} <= {*axis.guard, *axis.test.conjuncts()}:
        return False
    inside = symbols.inside(access.index)
    return axis.name not in inside and all(symbols[name].kind in _STEADY for name in inside)


def _there(kernel: Kernel, axis: Axis, access: Access, moved: frozenset[str]) -> Iterator[str]:
    """The conditions under which an array has what any round of any thread loads from it."""
    symbols, form = kernel.reading.symbols, access.index
    ends = {axis.name: _last(axis)}
    for way, width in zip("xyz", kernel.block, strict=False):
        form = index(form, way, width) if form is not None and width else None
        if form is not None and f"@{way}" in form.symbols:
            threads = needed(kernel, way, loads=True)
            count = form_of(threads.tree, symbols) if threads is not None else None
            if count is None:
                raise NotLegal("how many threads work is not known", access.line)
            ends[f"@{way}"] = count - _ONE
    if form is None:
        raise NotLegal(f"where in `{access.array}` it loads is not known", access.line)
    rest = form.symbols.union(*(end.symbols for end in ends.values())) - {*ends}
    scalars = [name for name in rest if (s := symbols.table.get(name)) and s.kind == "scalar"]
    if len(scalars) < len(rest) or rest & moved:
        raise NotLegal(f"where in `{access.array}` it loads is not known", access.line)
    ranges = Ranges((), symbols, sizes=True)
    greatest = least = form
    for name, end in ends.items():
        by = form.coefficient(name)
        if by is None or by.symbols & {*ends} or not ranges.nonnegative(by):
            raise NotLegal(f"where in `{access.array}` it loads is not known", access.line)
        greatest, least = greatest.without([name]) + by * end, least.without([name])
    facts, array = kernel.facts, passed(kernel, access.array)
    known = facts.arrays.get(access.array) if facts is not None else None
    size = access.element.size or 0
    given = known is not None and known.role != "scratch" and array is not None
    whole = known is not None and known.nbytes == prod(known.shape) * size
    if not ranges.nonnegative(least) or not (given and whole):
        raise NotLegal(f"how far `{access.array}` goes is not known", access.line)
    try:
        spelled = Speller(symbols, {}).form
        asked = [f"size({array}) >= {spelled(greatest + _ONE)}"]
        asked += [f"{spelled(least)} >= 0"] if least.value is None else []
        conditions = [parse_expression(words) for words in asked]
        met = all(
            said_alike(kernel, {*condition.names} - {array}) and measured(kernel, condition)
            for condition in conditions
        )
    except (SourceError, Unspelled):
        met = False
    if not met:
        raise NotLegal(f"`{access.array}` may end before the loop does", access.line)
    yield from map(str, conditions)


def _last(axis: Axis) -> Polynomial:
    """The counter of the last round."""
    parts = [*axis.test.conjuncts()]
    test = parts[0] if len(parts) == 1 else None
    form = test.form if isinstance(test, Compare) and test.op == ">=" else None
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or by.value != -1:
        raise NotLegal("the number of rounds is not known", axis.line)
    return form.without([axis.name])
