"""Normal form: counts and sums that data choose among, ``n[g]++``, are a local for each of them.

What is indexed at run time lies in memory, and no step sees that such an element is a sum. Of a few
elements each asks whether it is meant, ``n_2 += g == 2``, and is then a sum as others are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, lent_in, loops_in
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.naming import numeral, speller_before, type_of
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_MOST = 8  # elements of such an array, since all are asked about: ours
_ONE = Polynomial.constant(1)
_WORD = 4  # bytes of a counter


@dataclass(frozen=True)
class _Bins:
    """A local array, where it is declared, and how many elements it has."""

    variable: Variable
    declared: Declare
    count: int


@primitive
def bins_apart(kernel: Kernel) -> Kernel:
    """The kernel with all such arrays as a local for each element; it has one."""
    made, why = kernel, NotLegal("no sums of a thread are chosen among by data")
    for name in [bins.variable.name for bins in _found(kernel)]:
        try:
            made = _apart(_written_out(made, name), name)
        except NotLegal as reason:
            why = reason
    if made is kernel:
        raise why
    return made


def _found(kernel: Kernel) -> Iterator[_Bins]:
    """Small local arrays of numbers of which a loop updates elements that data choose."""
    body = kernel.function.body
    declared = [(s, v) for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    given = [v.name for _, v in declared] + [p.name for p in kernel.function.parameters]
    counters = {axis.variable for axis in kernel.axes().values()}
    updated = {v for loop in loops_in(body) for s in walk(loop.body) for v, index in _updated(s)
               if _counter(index) not in counters}  # fmt: skip
    for statement, variable in declared:
        size = variable.extents[0] if len(variable.extents) == 1 else None
        known = kernel.reading.arrays.get(variable.name)
        count = known.extents[0] if size is not None and known is not None else None
        kind = named(variable.type.base, kernel.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and not variable.type.depth
        if variable not in updated or not plain or (kind.size or 0) < _WORD:
            continue
        if variable.storage != "local" or variable.type.volatile or variable.type.const:
            continue
        number = count.value if count is not None else None
        if given.count(variable.name) == 1 and number is not None and 1 < number <= _MOST:
            yield _Bins(variable, statement, number)


def _updated(statement: Statement) -> Iterator[tuple[Variable, Expr]]:
    """The array of which a statement updates an element whose place is not a number, and that."""
    match statement:
        case Evaluate(
            expression=Assign(op="+=" | "-=" | "|=" | "&=" | "^=", target=place)
            | Step(target=place)
        ):
            match place:
                case Index(base=Name(variable=Variable() as own), index=index) if not isinstance(
                    index, Literal
                ):
                    yield own, index


def _counter(index: Expr) -> Variable | None:
    """The one local that an index is, but for a number that is added."""
    match index:
        case Name(variable=own):
            return own
        case Binary(op="+" | "-", left=Name(variable=own), right=Literal()):
            return own
        case Binary(op="+", left=Literal(), right=Name(variable=own)):
            return own
    return None


def _named(kernel: Kernel, name: str) -> _Bins:
    for bins in _found(kernel):
        if bins.variable.name == name:
            return bins
    raise NotLegal(f"`{name}` is not an array of sums any more")


# -- loops over the elements


def _written_out(kernel: Kernel, name: str) -> Kernel:
    """The kernel with all loops whose counters index the array as their rounds."""
    within = _asked_always(kernel, _named(kernel, name))
    while True:
        bins = _named(kernel, name)
        loops = loops_in(kernel.function.body)
        loop = next((one for one in loops if _goes_over(kernel, one, bins)), None)
        if loop is None:
            return kernel
        rounds = tuple(_rounds(kernel, loop, bins, within))
        kernel = kernel.rewritten(edited(kernel.function.body, {loop: rounds}))


def _goes_over(kernel: Kernel, loop: Loop, bins: _Bins) -> bool:
    """Whether elements that its counter says are asked for in a loop and in no loop within."""
    axis = kernel.axes().get(loop)
    within = {s for inner in loops_in(loop.body) for s in walk(inner)}
    own = (e for s in walk(loop.body) if s not in within for top in s.expressions
           for e in every(top) if isinstance(e, Index) and _is_element(e, bins))  # fmt: skip
    known = axis.variable if axis is not None else None
    return known is not None and any(_counter(e.index) is known for e in own)


def _rounds(
    kernel: Kernel, loop: Loop, bins: _Bins, within: Polynomial | None
) -> Iterator[Statement]:
    """Each round of such a loop; one that sizes may end asks whether it is made."""
    axis, effects = kernel.axes()[loop], Effects(kernel)
    start = axis.start.value if axis.start is not None else None
    if not axis.exact or axis.step != _ONE or not is_counted(axis, effects) or start is None:
        raise NotLegal("a loop over them does not count up by one", loop.line)
    if loops_in(loop.body) or any(ends(loop.body)) or axis.stop is None or start < 0:
        raise NotLegal("a loop over them does more than to go over them", loop.line)
    stop, test = axis.stop.value, ""
    if stop is None:
        if axis.stop != within:
            raise NotLegal("a loop may go beyond them", loop.line)
        speller = speller_before(kernel, effects, loop)
        test = speller.form(speller.local(axis.stop))
        if not effects.stays(loop, test):
            raise NotLegal("where a loop over them ends may change", loop.line)
        stop = bins.count
    if stop > bins.count:
        raise NotLegal("a loop goes beyond them", loop.line)
    counter = [e for e in expressions(loop.body)
               if isinstance(e, Name) and e.variable is axis.variable]  # fmt: skip
    assert axis.variable is not None
    kind = type_of(kernel, axis.variable)
    for value in range(start, stop):
        swaps: dict[Node, Node] = dict.fromkeys(counter, numeral(value, kind))
        inner = "\n".join(kernel.show(s, swaps) for s in body_of(loop.body))
        head = f"if ({value} < {test}) " if test else ""
        yield lines(f"{head}{{\n{inner}\n}}")


def _asked_always(kernel: Kernel, bins: _Bins) -> Polynomial | None:
    """Where the first loop behind them ends, where each of its rounds has an element.

    Then there are no more rounds than elements.
    """
    blocks = (b for b in walk(kernel.function.body) if isinstance(b, Block))
    around = next(b for b in blocks if bins.declared in b.body)
    behind = around.body[around.body.index(bins.declared) + 1 :]
    loop = next((s for s in behind if isinstance(s, Loop)), None)
    axis = kernel.axes().get(loop) if loop is not None else None
    if loop is None or axis is None or not axis.exact:
        return None
    places = [getattr(s.expression, "target", None) for s in body_of(loop.body)
              if isinstance(s, Evaluate)]  # fmt: skip
    asks = any(
        isinstance(e, Index) and _is_element(e, bins) and isinstance(e.index, Name)
        and e.index.variable is axis.variable for e in places
    )  # fmt: skip
    return axis.stop if asks else None


# -- their elements


def _is_element(expr: Expr, bins: _Bins) -> bool:
    match expr:
        case Index(base=Name(variable=own)):
            return own is bins.variable
    return False


def _apart(kernel: Kernel, name: str) -> Kernel:
    bins, body = _named(kernel, name), kernel.function.body
    own = [e for e in expressions(body) if isinstance(e, Index) and _is_element(e, bins)]
    mentions = sum(isinstance(e, Name) and e.variable is bins.variable for e in expressions(body))
    if mentions != len(own) or bins.variable in lent_in(body):
        raise NotLegal(f"more is asked of `{name}` than elements", bins.variable.line)
    locals_ = [kernel.fresh(f"{name}_{at}") for at in range(bins.count)]
    swaps = dict[Node, Node | tuple[Statement, ...]]()
    updates = {s: place for s in walk(body) if (place := _chosen(s, bins)) is not None}
    for expr in own[::-1]:  # inner ones first
        if expr not in updates.values():
            swaps[expr] = text(_loaded(kernel, expr, locals_))
    shown = {n: s for n, s in swaps.items() if not isinstance(s, tuple)}
    for statement, place in updates.items():
        made = _stored(kernel, statement, place, locals_, shown)
        swaps[statement] = tuple(lines(line) for line in made)
    swaps[bins.declared] = tuple(_declared(kernel, bins, locals_))
    return kernel.rewritten(edited(body, swaps))


def _chosen(statement: Statement, bins: _Bins) -> Index | None:
    """The element at a place that is not a number, which a statement of its own gives a value."""
    match statement:
        case Evaluate(expression=Assign(target=Index() as place) | Step(target=Index() as place)):
            if _is_element(place, bins) and not isinstance(place.index, Literal):
                return place
    return None


def _loaded(kernel: Kernel, place: Index, locals_: list[str]) -> str:
    """The element, as a choice among all where its place is not a number."""
    if isinstance(place.index, Literal):
        at = place.index.value
        if not isinstance(at, int) or not 0 <= at < len(locals_):
            raise NotLegal("an element is not there", kernel.function.line)
        return locals_[at]
    if not all(map(_is_plain, every(place.index))):
        raise NotLegal("an element is asked for at a place that is found first")
    at_words = kernel.spelled(place.index)
    at_words = at_words if isinstance(place.index, Name) else f"({at_words})"
    words = locals_[-1]
    for at in range(len(locals_) - 2, -1, -1):
        words = f"{at_words} == {at} ? {locals_[at]} : {words}"
    return f"({words})"


def _is_plain(expr: Expr) -> bool:
    plain = isinstance(expr, Name | Literal | Binary | Unary | Cast) or bool(builtin(expr))
    return plain and not (isinstance(expr, Unary) and expr.op in "*&")


def _stored(
    kernel: Kernel, statement: Statement, place: Index, locals_: list[str], shown: dict[Node, Node]
) -> list[str]:
    """What each element asks in the place of such a statement, in braces behind locals."""
    assert isinstance(statement, Evaluate)
    made, at = list[str](), kernel.spelled(place.index, shown)
    if not isinstance(place.index, Name):
        chosen = kernel.fresh("chosen", *locals_)
        made.append(f"const auto {chosen} = {at};")
        at = chosen
    match statement.expression:
        case Step(op="++") if _is_whole(kernel, place):
            tests = [f"{x} += {at} == {n};" for n, x in enumerate(locals_)]
            return _braced(made, tests)
        case Step(op=op):
            change = op
        case Assign(op=op, value=Braces()):
            raise NotLegal("an element is given more than a number", statement.line)
        case Assign(op=op, value=Literal() as value):
            change = f" {op} {kernel.spelled(value, shown)}"
        case Assign(op=op, value=value):
            given = kernel.fresh("given", *locals_)
            # The value is computed before the place since C++17 ([expr.ass]).
            made.insert(0, f"const auto {given} = {kernel.spelled(value, shown)};")
            change = f" {op} {given}"
    tests = [f"if ({at} == {n}) {x}{change};" for n, x in enumerate(locals_)]
    return _braced(made, tests)


def _braced(begun: list[str], tests: list[str]) -> list[str]:
    return ["\n".join(["{", *begun, *tests, "}"])] if begun else tests


def _is_whole(kernel: Kernel, place: Index) -> bool:
    own = place.base.variable if isinstance(place.base, Name) else None
    return own is not None and named(own.type.base, kernel.unit.aliases).integral


def _declared(kernel: Kernel, bins: _Bins, locals_: list[str]) -> Iterator[Statement]:
    """All that was declared together, with a local for each element."""
    for variable in bins.declared.variables:
        words = bins.declared.words.rstrip()
        if variable is not bins.variable:
            alone = Declare(None, bins.declared.line, f"{words} ", (variable,))
            yield lines(kernel.show(alone))
            continue
        one = [variable.value] if variable.value is not None else []
        begun = [kernel.spelled(e) for e in (*one, *variable.initial)]
        if variable.opening == "{":
            begun += ["0"] * (len(locals_) - len(begun))
        if len(begun) not in (0, len(locals_)):
            raise NotLegal("how they begin is not read", variable.line)
        yield lines("\n".join(
            f"{words} {x} = {begun[n]};" if begun else f"{words} {x};"
            for n, x in enumerate(locals_)
        ))  # fmt: skip
