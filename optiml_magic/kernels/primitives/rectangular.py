"""P1, rectangular: a loop that begins or ends where its thread says makes the same rounds for all.

``for (j = i; j < n; ++j) f(j)`` becomes ``for (j = 0; j < n; ++j) if (j >= i) f(j)``. That alone
gains nothing: it is the shape of loops whose rounds others than this thread may have.
"""

from __future__ import annotations

from itertools import product

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Literal, Name, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.naming import declared_type, speller_before
from optiml_magic.kernels.primitives.sizes import middle, rounds, value
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Variable
from optiml_magic.kernels.types import named

_NONE, _ONE = Polynomial(), Polynomial.constant(1)
_WORD = 4  # bytes of a counter that holds any number of rounds
_FEW = 4  # times as many rounds as a thread makes, which are too many to ask about: ours
_UP = {"<": "<", "<=": "<=", ">": "<", ">=": "<="}


def all_rectangular(kernel: Kernel) -> Kernel:
    """The kernel with each loop so that may be."""
    for number in range(len(loops_in(kernel.function.body))):
        kernel = where_legal(rectangular, kernel, number)
    return kernel


@primitive
def rectangular(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number counts from 0 to a size, and a test lets its own rounds be."""
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or axis.start is None or axis.stop is None:
        raise NotLegal("the loop is not read", loop.line)
    variable, first = _begun(kernel, loop, axis, effects)
    test = _ordered(loop, variable)
    width = named(variable.type.base, kernel.unit.aliases).size or 0
    if width < _WORD and variable.type.base != "auto":
        raise NotLegal("its counter may not come to the end of all rounds", loop.line)
    if axis.step != _ONE or variable in effects.changed(loop.body):
        raise NotLegal("the loop does not count up by one", loop.line)
    starts, ends = (
        _parts(first, "max"),
        _parts(test.left if test.op[0] == ">" else test.right, "min"),
    )
    _lasting(kernel, loop, effects, (*starts, *ends))
    moves = [not _still(kernel, form) for form in (axis.start, axis.stop)]
    if not any(moves):
        raise NotLegal("all threads make the same rounds", loop.line)
    given = Ranges((*axis.guard, axis.test), kernel.reading.symbols)
    if not given.nonnegative(axis.start):
        raise NotLegal("the loop may begin below 0", loop.line)
    speller = speller_before(kernel, effects, loop)
    size = _size(kernel, axis, given) if moves[1] else axis.stop
    if all(moves) and _is_window(kernel, axis, size):
        raise NotLegal("the loop makes few of all rounds that there are", loop.line)
    bound = speller.form(size)
    counter, kind = variable.name, declared_type(kernel, variable)
    tests = [(f"{counter} >=", e) for e in starts] if axis.start.value != 0 else []
    op = _UP[test.op]
    tests += [(f"{counter} {op}", e) for e in ends] if moves[1] else []
    spelled = [
        f"{words} {_shown(kernel, e)}" for words, e in tests
        if not (isinstance(e, Literal) and e.value == 0)
    ]  # fmt: skip
    inside = kernel.show(loop.body)
    made = lines(
        f"for ({kind} {counter} = 0; {counter} < {bound}; ++{counter}) {{\n"
        f"if ({' && '.join(spelled)}) {inside}\n}}"
    )
    return kernel.rewritten(edited(kernel.function.body, {loop: made}))


def _begun(kernel: Kernel, loop: Loop, axis: Axis, effects: Effects) -> tuple[Variable, Expr]:
    """The counter and what it begins with; one of outside is asked for in such loops alone."""
    match loop.before:
        case Declare(variables=(variable,)) if variable.value is not None:
            found = variable, variable.value
        case Evaluate(expression=Assign(op="=", target=Name(variable=given), value=value)) if given:
            found = given, value
            inside = effects.inside(loop)
            for other in loops_in(kernel.function.body):
                match other.before:
                    case Evaluate(expression=Assign(op="=", target=Name(variable=own))) if (
                        own is given and loop not in loops_in(other.body)
                    ):
                        inside |= effects.inside(other)
            if any(
                isinstance(e, Name) and e.variable is given and e not in inside
                for e in effects.inside(kernel.function.body)
            ):
                raise NotLegal(f"`{given.name}` is asked for behind the loop", loop.line)
        case _:
            raise NotLegal("the loop does not begin in its head", loop.line)
    if loop.kind != "for" or axis.variable is not found[0] or axis.scaled:
        raise NotLegal("the loop does not count in its head", loop.line)
    if found[0].type.depth or found[0].type.reference:
        raise NotLegal("a pointer counts its rounds", loop.line)
    return found


def _ordered(loop: Loop, variable: Variable) -> Binary:
    """The test of a loop, which says that its counter is less than something."""
    match loop.test:
        case Binary(op="<" | "<=", left=Name(variable=own)) as test if own is variable:
            return test
        case Binary(op=">" | ">=", right=Name(variable=own)) as test if own is variable:
            return test
    raise NotLegal("the test of the loop is not that its counter is less", loop.line)


def _lasting(kernel: Kernel, loop: Loop, effects: Effects, asked: tuple[Expr, ...]) -> None:
    """Raise NotLegal where the bounds of a loop may change in it, or do something."""
    inside = {e for expr in asked for e in every(expr)}
    if any(isinstance(e, Assign | Step | Call) for e in inside):
        raise NotLegal("the bounds of the loop do something", loop.line)
    if any(access.own in inside for access in kernel.reading.accesses):
        raise NotLegal("memory says where the loop begins or ends", loop.line)
    if names(asked) & effects.changed(loop.body).keys():
        raise NotLegal("the bounds of the loop change in it", loop.line)


def _still(kernel: Kernel, form: Polynomial) -> bool:
    """Whether a form is made of sizes alone."""
    symbols = kernel.reading.symbols
    return all(symbols[name].kind in ("scalar", "operation") for name in symbols.inside(form))


def _is_window(kernel: Kernel, axis: Axis, size: Polynomial) -> bool:
    """Whether threads make few rounds of those up to a size, as far as is known.

    They are asked at the corners of the launch and between: of a triangle some make them all.
    """
    whole, facts = value(kernel, size, middle(kernel)), kernel.facts
    found = list[int]()
    launched = {"blockIdx": facts.grid, "threadIdx": facts.block} if facts is not None else {}
    for x, y in product(range(3), repeat=2):
        at = {
            f"{name}.{way}": (0, extents[n] // 2, extents[n] - 1)[where]
            for name, extents in launched.items()
            for n, (way, where) in enumerate(zip("xyz", (x, y, 1), strict=True))
        }  # fmt: skip
        made = rounds(kernel, axis, at)
        found += [made] if made is not None else []
    if not found or whole is None:
        return axis.start is not None and axis.stop is not None and (
            _still(kernel, axis.stop - axis.start)
        )  # fmt: skip
    return max(found) * _FEW < whole


def _parts(expr: Expr, name: str) -> tuple[Expr, ...]:
    """What an expression is the greatest or the least of."""
    match expr:
        case Call(function=function, arguments=(left, right), template=()) if function == name:
            return (*_parts(left, name), *_parts(right, name))
    return (expr,)


def _shown(kernel: Kernel, expr: Expr) -> str:
    words = kernel.spelled(expr)
    return f"({words})" if " " in words else words


def _size(kernel: Kernel, axis: Axis, given: Ranges) -> Polynomial:
    """A size that the end of a loop never passes, as the guards around the loop say."""
    assert axis.stop is not None
    symbols = [kernel.reading.symbols[name] for name in axis.stop.symbols]
    least = [a for s in symbols if s.op == "min" for a in s.arguments]
    facts = Ranges(axis.guard, kernel.reading.symbols).facts
    moving = [name for name in axis.stop.symbols if not _still(kernel, Polynomial.symbol(name))]
    guarded = (axis.stop + fact + more for fact in facts for more in (_NONE, _ONE))
    for size in (*least, *guarded, axis.stop.without(moving)):
        if size.terms and _still(kernel, size) and given.nonnegative(size - axis.stop):
            return size
    raise NotLegal("no size bounds the end of the loop", axis.line)
