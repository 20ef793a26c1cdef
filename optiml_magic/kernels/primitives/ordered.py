"""P25, order: a local array that is sorted in some way, sorted by a network of exchanges.

A network (``networks``) takes some n log^2 n exchanges in place of n^2 / 2 rounds of which each
waits for the one before, and fewer where nobody asks for more than the middle. Floats of which one
is a NaN have no order, so that they are sorted as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Index, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.following import number, touches
from optiml_magic.kernels.primitives.lending import indexed_alone
from optiml_magic.kernels.primitives.networks import exchanges, middle
from optiml_magic.kernels.primitives.searched import Search, behind, by_places, searches
from optiml_magic.kernels.primitives.selecting import (
    OTHER,
    Selection,
    exchanged_by,
    plain,
    selection,
)
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType, named

_FEWEST, _MOST = 3, 64  # elements that are sorted so
_ROW = 4  # exchanges a line


@dataclass(frozen=True, eq=False)
class Sorting:
    """A loop that brings the first ``count`` elements of an array into order.

    By ``search`` it inserts each among those before it, by ``chosen`` it selects the least of the
    rest for each place; with neither it exchanges them.
    """

    loop: Loop
    array: Variable
    kind: CType
    count: int
    rising: bool
    search: Search | None = None
    chosen: Selection | None = None


@primitive
def ordered(kernel: Kernel) -> Kernel:
    """The kernel with local arrays sorted by networks; there must be one that is sorted."""
    found = [*sortings(kernel)]
    if not found:
        raise NotLegal("no loop sorts a local array")
    swaps, helpers = dict[Node, Node | tuple[Statement, ...] | None](), list[str]()
    around = [*walk(kernel.function.body)]
    for one in found:
        known = _helper("in_order", one.kind) in kernel.program.text
        name = "in_order" if known else kernel.fresh("in_order")
        helpers.append(_helper(name, one.kind))
        swaps |= dict.fromkeys(h for block in around for h in hints_before(block, one.loop))
        swaps[one.loop] = (lines(_sorted(kernel, one, name)),)
    return kernel.rewritten(edited(kernel.function.body, swaps), helpers=dict.fromkeys(helpers))


def sortings(kernel: Kernel) -> Iterator[Sorting]:
    """The loops of a kernel that sort the first elements of a local array."""
    if not any(array.space == "local" for array in kernel.reading.arrays.values()):
        return
    found = [*searches(kernel)]
    for loop in loops_in(kernel.function.body):
        inner = [one for one in found if one.block is loop.body]
        one = _inserting(kernel, loop, inner[0]) if len(inner) == 1 else None
        one = one or _selecting(kernel, loop) or _exchanging(kernel, loop)
        if one is not None:
            yield one


def _selecting(kernel: Kernel, loop: Loop) -> Sorting | None:
    """The least of the rest, for each place in turn or for the first ones."""
    one = selection(kernel, loop)
    if one is None or not _has_order(one.kind) or not _FEWEST <= one.count <= _MOST:
        return None
    placed = range(one.count if one.rounds >= one.count - 1 else one.rounds)
    if not _suffices(kernel, loop, one.array, placed, one.count):
        return None
    rising = one.op[0] == "<"
    return Sorting(loop, one.array, one.kind, one.count, rising, chosen=one)


def _exchanging(kernel: Kernel, loop: Loop) -> Sorting | None:
    """``for (i) for (j) if (v[j] < v[i]) swap(v[i], v[j]);``, and neighbours in turn as well."""
    axis = kernel.axes().get(loop)
    match _only(loop.body):
        case Loop(body=body) if axis is not None and axis.trips is not None:
            statement = _only(body)
        case _:
            return None
    match statement:
        case If(before=None, constant=False, other=None, then=then,
                test=Binary(op=op, left=Index(base=Name(variable=Variable() as array)) as left,
                            right=Index() as right)) if op in OTHER:  # fmt: skip
            held = exchanged_by(kernel, plain(then), left, right)
        case _:
            return None
    kind, axes = kernel.reading.types.get(left), kernel.axes()
    counted = all(o in axes and is_counted(axes[o], Effects(kernel)) for o in loops_in(loop))
    if held is None or kind is None or not _has_order(kind) or not same(left.base, right.base):
        return None
    if array.storage != "local" or not array.array or array.type.volatile:
        return None
    if not counted or held.type.depth or named(held.type.base, kernel.unit.aliases) != kind:
        return None
    try:
        rounds = [t for t in touches(kernel, axis) if t.access.node in (left, right)]
    except NotLegal:
        return None
    places = [number(t.access.index, t.rounds) if t.access.index else None for t in rounds]
    pairs = [(a, b) for a, b in zip(places[::2], places[1::2], strict=False)
             if a is not None and b is not None]  # fmt: skip
    count = max((max(pair) for pair in pairs), default=0) + 1
    rising = (op[0] == ">") == (pairs[0][0] < pairs[0][1]) if pairs else False
    turns = all(t.access.node is (left, right)[n % 2] and not t.open for n, t in enumerate(rounds))
    whole = turns and len(places) == 2 * len(pairs) and _MOST >= count >= _FEWEST
    upward = [(min(pair), max(pair)) for pair in pairs]
    if not whole or len({a < b for a, b in pairs}) != 1:
        return None
    if not _suffices(kernel, loop, array, _placed(upward, count), count):
        return None
    return Sorting(loop, array, kind, count, rising)


def _only(statement: Statement) -> Statement | None:
    """The one statement that a block consists of, or what is none."""
    inside = plain(statement)
    return inside[0] if len(inside) == 1 else None


def _placed(pairs: list[tuple[int, int]], count: int) -> range:
    """Which elements are in order after exchanges that bring the lesser forward.

    Exchanges of neighbours sort where they sort what is in falling order (Knuth 3, 5.3.4). Each
    way through all that are not placed yet brings the greatest of them to the end, or the least to
    the beginning.
    """
    if all(b == a + 1 for a, b in pairs):
        values = [*range(count, 0, -1)]
        for a, b in pairs:
            values[a], values[b] = min(values[a], values[b]), max(values[a], values[b])
        if values == sorted(values):
            return range(count)
        upward = _ways(pairs, count)
        downward = _ways([(count - 1 - b, count - 1 - a) for a, b in pairs], count)
        return range(count - upward, count) if upward else range(downward)
    first = pairs[-1][0] + 1
    all_ = pairs == [(a, b) for a in range(first) for b in range(a + 1, count)]
    return range((count if first == count - 1 else first) if all_ else 0)


def _ways(pairs: list[tuple[int, int]], count: int) -> int:
    """How many ways go through all neighbours from the first on, but for what is placed."""
    ways, at = 0, 0
    while at < len(pairs):
        end = at
        while end < len(pairs) and pairs[end] == (end - at, end - at + 1):
            end += 1
        if end - at < count - 1 - ways:
            return 0
        ways, at = ways + 1, end
    return ways


def _suffices(kernel: Kernel, loop: Loop, array: Variable, placed: range, count: int) -> bool:
    """Whether nobody asks behind a loop for others of its elements than those it puts in order."""
    return len(placed) == count or _asked_within(kernel, loop, array, placed)


def _asked_within(kernel: Kernel, loop: Loop, array: Variable, placed: range) -> bool:
    """Whether who asks for elements behind a loop certainly asks for some of these."""
    around = [o for o in loops_in(kernel.function.body) if loop in loops_in(o.body)]
    given = [s for s in walk(around[-1].body if around else kernel.function.body)
             if isinstance(s, Declare) and array in s.variables]  # fmt: skip
    if not placed or not given or not indexed_alone(kernel, kernel.function, array):
        return False
    inside = Effects(kernel).inside(loop)
    accesses = [a for a in kernel.reading.accesses if a.array == array.name]
    last = max((n for n, a in enumerate(accesses) if a.own in inside), default=-1)
    return all(_within(kernel, a, placed) for a in accesses[last + 1 :])


def _within(kernel: Kernel, access: Access, places: range) -> bool:
    """Whether an element certainly is at one of these places."""
    if access.index is None or access.call is not None:
        return False
    known = Ranges(access.guard, kernel.reading.symbols)
    first, last = (Polynomial.constant(places[at]) for at in (0, -1))
    return known.nonnegative(access.index - first) and known.nonnegative(last - access.index)


def _has_order(kind: CType) -> bool:
    """Whether values of a type have an order, but for what is a NaN."""
    plain = kind.lanes == 1 and not kind.depth
    return plain and (kind.integral or kind.name in ("float", "double"))


def _inserting(kernel: Kernel, loop: Loop, search: Search) -> Sorting | None:
    axis, inner, found = kernel.axes().get(loop), kernel.axes()[search.loop], _inserted(search)
    if axis is None or axis.trips is None or not is_counted(axis, Effects(kernel)) or not found:
        return None
    array, key, own = found
    apart, kind = _shift(search, array, key), kernel.reading.types.get(key.value or Name(None, ""))
    if apart is None or kind is None or own is not axis.variable or inner.start is None:
        return None
    rising, count = _rising(search, array, key, apart), axis.stop.value if axis.stop else None
    if rising is None or count is None or count < _FEWEST:
        return None
    plain = not key.type.depth and not array.type.volatile
    alike = plain and named(key.type.base, kernel.unit.aliases) == kind
    if not alike or not _has_order(kind):
        return None
    hole, one = Polynomial.constant(apart + 1), Polynomial.constant(1)
    begins = axis.start == one and inner.start + hole == one + Polynomial.symbol(axis.name)
    ends = search.places.step == -1 and search.places.stop + apart + 1 == 0
    if not begins or not ends or axis.step != one:
        return None
    return Sorting(loop, array, kind, count, rising, search)


def _inserted(search: Search) -> tuple[Variable, Variable, Variable] | None:
    """The array of which a round inserts an element, the local that has it, and its place."""
    body = [s for s in search.block.body if s is not search.loop and s not in search.tail]
    for statement in body[1:]:
        match statement:
            case Declare(variables=(only,)) if only is search.counter:
                pass
            case Evaluate(expression=Assign(op="=", target=Name(variable=given))):
                if given is not search.counter:
                    return None
            case _:
                return None
    match body[0] if body else None:
        case Declare(variables=(Variable(value=Index(base=Name(variable=Variable() as array),
                                                     index=Name(variable=Variable() as own)))
                                as key,)):  # fmt: skip
            return array, key, own
    return None


def _shift(search: Search, array: Variable, key: Variable) -> int | None:
    """How far behind the counter the element is that a round moves on by one, to let the key in."""
    match [s.expression for s in (*search.body, *search.tail) if isinstance(s, Evaluate)]:
        case [Assign(op="=", target=hole, value=moved),
              Assign(op="=", target=last, value=Name(variable=put))]:  # fmt: skip
            apart, *others = (_place(e, search, array) for e in (moved, hole, last))
            alone = len(search.body) == len(search.tail) == 1 and put is key
            return apart if apart is not None and alone and others == [apart + 1] * 2 else None
    return None


def _place(e: Expr, search: Search, array: Variable) -> int | None:
    match e:
        case Index(base=Name(variable=own), index=index) if own is array:
            return behind(index, search.counter)
    return None


def _rising(search: Search, array: Variable, key: Variable, apart: int) -> bool | None:
    """Whether lesser elements come first; None where more than their order decides."""
    tests = [(test, False) for test in search.going]
    tests += [(search.left, True)] if search.left is not None else []
    match tests:
        case [(Binary(op=">" | ">=", left=Name(variable=counter), right=Literal()), False),
              (Binary(op=op, left=left, right=right), denied)]:  # fmt: skip
            if isinstance(left, Name):
                left, right, op = right, left, OTHER.get(op, "")
            compared = isinstance(right, Name) and right.variable is key
            if counter is search.counter and compared and _place(left, search, array) == apart:
                return (op[0] == ">") != denied if op in OTHER else None
    return None


def _sorted(kernel: Kernel, one: Sorting, name: str) -> str:
    """The exchanges of a network, for floats where none of them is a NaN."""
    array, half = one.array.name, one.count // 2
    alone = _asked_within(kernel, one.loop, one.array, range(half, half + 1))
    network = (middle(one.count) if alone else None) or exchanges(one.count)
    pairs = [(a, b) if one.rising else (b, a) for a, b in network]
    calls = [f"{name}({array}[{a}], {array}[{b}]);" for a, b in pairs]
    exchanged = "\n".join(" ".join(calls[at : at + _ROW]) for at in range(0, len(calls), _ROW))
    if one.kind.integral:
        return exchanged
    numbers, at = kernel.fresh("numbers"), kernel.fresh("at")
    each = f"for (int {at} = 0; {at} < {one.count}; ++{at})"
    test = f"{numbers} &= {array}[{at}] == {array}[{at}];"
    otherwise = (
        one.chosen.by_places(kernel) if one.chosen is not None
        else kernel.show(one.loop, by_places(kernel, one.search) if one.search else None)
    )  # fmt: skip
    return "\n".join((
        "{", f"bool {numbers} = true;", "#pragma unroll", f"{each} {test}",
        f"if ({numbers}) {{", exchanged, "} else {", otherwise, "}", "}",
    ))  # fmt: skip


def _helper(name: str, kind: CType) -> str:
    least, most = ("min", "max") if kind.integral else ("fmin", "fmax")
    return (
        f"// Exchanges two values that are out of order.\n"
        f"__device__ __forceinline__ void {name}({kind.name}& first, {kind.name}& second) {{\n"
        f"    const {kind.name} least = {least}(first, second);\n"
        f"    second = {most}(first, second);\n"
        f"    first = least;\n"
        f"}}"
    )
