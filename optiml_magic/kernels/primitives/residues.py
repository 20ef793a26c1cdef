"""P4, residues: threads of one remainder are neighbours, and the remainder a digit of their blocks.

``if ((x + 1 - k) % 2) continue;`` of a transposed convolution lets each second output make other
rounds than its neighbours. With ``x = 2 * q + r`` the outputs of one ``r`` make the same rounds:
``q`` is the index of a thread, and ``r`` the lowest digit of ``blockIdx.z``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name, builtin, every
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    in_turn,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.evenly import in_multiples
from optiml_magic.kernels.primitives.grids import needed_form, room
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.places import Place, axis_of, bare, placed
from optiml_magic.kernels.primitives.sieved import sieved, sieves
from optiml_magic.kernels.primitives.sized import divisors, sized
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Variable
from optiml_magic.source.expressions import Expression, parse_expression

_SMALL = 16  # a divisor, a border or rounds for which there is a number in the text: ours
_COMPARED = frozenset({"<", ">", "<=", ">="})


@dataclass(frozen=True)
class _Axis:
    """An axis of the launch whose index tells by its remainder which rounds are made."""

    axis: str
    by: int
    width: int
    count: Expression  # of the threads of one remainder
    index: str  # the name of a thread's place among them
    tests: tuple[tuple[Expr, bool], ...]  # of the whole index, and whether it is below


@primitive
def by_residue(kernel: Kernel) -> Kernel:
    """The kernel with such axes, along x and y, as one of threads and a digit of blocks each."""
    kernel = _in_multiples(kernel.settled())
    effects = Effects(kernel)
    effects.straightforward()
    if kernel.block[2] != 1 or kernel.block[1] is None or kernel.block[0] is None:
        raise NotLegal("its blocks are not of two dimensions at most")
    axes = [*_axes(kernel, effects)]
    if not axes:
        raise NotLegal("no remainder of an index tells which rounds are made")
    below, digits = "", dict[str, str]()
    for one in axes:
        digits[one.axis] = f"(blockIdx.z{below} % {one.by})"
        below += f" / {one.by}"
    places = {
        one.axis: Place(f"((unsigned int){one.index} * {one.by} + {digits[one.axis]})", one.width)
        for one in axes
    }
    places["z"] = Place(f"(blockIdx.z{below})", 1, "0", f"(blockIdx.z{below})")
    swaps: dict[Node, Node] = placed(kernel, places)
    for one in axes:
        for test, so in one.tests:
            swaps[test] = text(f"({one.index} {'<' if so else '>='} {one.count})")
    first = lines("\n".join([
        *(f"const int {one.index} = blockIdx.{one.axis} * {one.width} + threadIdx.{one.axis};"
          for one in axes),
        f"if ({' || '.join(f'{one.index} >= {one.count}' for one in axes)}) return;",
    ]))  # fmt: skip
    body = edited(kernel.function.body, swaps)
    grid = [*kernel.launch.grid, parse_expression("1"), parse_expression("1")][:3]
    for one in axes:
        grid["xyz".index(one.axis)] = parse_expression(f"cdiv({one.count}, {one.width})")
        grid[2] = parse_expression(f"({grid[2]}) * {one.by}")
    launch = replace(kernel.launch, grid=tuple(grid))
    made = kernel.rewritten(
        replace(body, body=(first, *(replace(s, lead=None) for s in body.body))),
        launch=launch, directives=with_limits(kernel, launch, lambda _: []),
    )  # fmt: skip
    return with_grid(made)


@primitive
def sieved_by_residue(kernel: Kernel) -> Kernel:
    """The same, without the rounds that remainders turn away.

    Small sizes are numbers where these are not seen otherwise. An index along x that is taken apart
    in two is so along two axes then.
    """
    numbers = sieving(kernel)
    kernel = where_legal(sized, kernel, numbers) if numbers else kernel
    if numbers and not sieves(kernel):
        return kernel
    made = in_turn(kernel, (by_residue, sieved))
    if isinstance(made, Refused):
        planes = in_turn(kernel, (unravelled_planes, by_residue, sieved))
        made = planes if isinstance(planes, Kernel) else made
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def sieving(kernel: Kernel) -> dict[str, int]:
    """Small sizes by which remainders turn rounds away that as numbers alone are seen to do so.

    With those that say how many rounds there are, and of what the remainder is taken. A stride of
    one turns none away, which is seen of it as a number as well.
    """
    found = divisors(kernel, _SMALL, least=1) if not sieves(kernel) else {}
    known = sized(kernel, found) if found else None
    if not isinstance(known, Kernel):
        return {}
    turning = sieves(known)
    if not turning:
        return {name: size for name, size in found.items() if size == 1}
    forms = [form for one in turning for form in (one.axis.stop, one.rest) if form is not None]
    names = {name for form in forms for name in known.reading.symbols.made_of(form)}
    given = known.facts.scalars if known.facts is not None else {}
    more = {name: int(given[name]) for name in sorted(names & given.keys())}
    return found | {name: size for name, size in more.items() if 0 <= size <= _SMALL}


def _numbers(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """The axes whose index tells by its remainder which rounds are made, and the divisors."""
    found = sieves(kernel)
    for axis in "xy":
        numbers = {one.by for one in found if f"threadIdx.{axis}" in one.rest.symbols}
        if len(numbers) == 1:
            yield axis, numbers.pop()


def _in_multiples(kernel: Kernel) -> Kernel:
    """The kernel whose launch asks that sizes along these axes are multiples of the divisors."""
    for axis, by in _numbers(kernel):
        whole = needed_form(kernel, axis)
        size = next(iter(whole.symbols), "") if whole is not None else ""
        if whole is not None and whole == Polynomial.symbol(size):
            kernel = in_multiples(kernel, size, str(by))
    return kernel


def _axes(kernel: Kernel, effects: Effects) -> Iterator[_Axis]:
    for axis, by in _numbers(kernel):
        width = kernel.block["xyz".index(axis)]
        if width is None:
            continue
        whole = needed_form(kernel, axis)
        part = whole.divided(by) if whole is not None else None
        names = [p.name for p in kernel.function.parameters]
        words = expression(part, kernel.reading.symbols, names) if part is not None else None
        if whole is None or words is None:
            raise NotLegal(f"how many there are along {axis} is not a multiple of {by}")
        tests = tuple(_tests(kernel, effects, axis, room(axis, width, whole)))
        yield _Axis(axis, by, width, words, kernel.fresh(f"place_{axis}"), tests)


def _tests(
    kernel: Kernel, effects: Effects, axis: str, left: Polynomial
) -> Iterator[tuple[Expr, bool]]:
    """The comparisons of the whole index with how many there are, and whether it is below.

    Of a test all parts are comparisons, of which one alone is made of the index.
    """
    thread = f"threadIdx.{axis}"
    for guard in kernel.reading.guards:
        leaves = [e for e in every(guard.test) if isinstance(e, Binary) and e.op in _COMPARED]
        asked = [e for e in leaves if thread in _places(effects, e)]
        for told in (guard.condition, ~guard.condition):
            parts = [*told.conjuncts()]
            own = [p for p in parts if thread in kernel.reading.symbols.inside(_form(p))]
            if guard.loops or len(leaves) != len(parts) or len(asked) != 1 or len(own) != 1:
                continue
            same = isinstance(own[0], Compare) and own[0].op == ">=" and own[0].form == left
            sides = [_is_index(kernel, effects, e, axis) for e in (asked[0].left, asked[0].right)]
            if same and sides[0] != sides[1]:
                yield asked[0], (asked[0].op in ("<", "<=")) == sides[0]


def _is_index(kernel: Kernel, effects: Effects, expr: Expr, axis: str) -> bool:
    """Whether an expression is the index of a thread along an axis, or a local that holds it."""
    plain = bare(expr)
    while isinstance(plain, Name) and plain.variable in effects.lasting:
        assert plain.variable is not None
        assert plain.variable.value is not None
        plain = bare(plain.variable.value)
    return axis_of(kernel, plain) == axis


def _form(part: Condition) -> Polynomial:
    return part.form if isinstance(part, Compare) else Polynomial()


def _places(effects: Effects, expr: Expr) -> frozenset[str]:
    """What a value asks for of where a thread is, through locals that never change."""
    found, todo, seen = set[str](), [expr], set[Variable]()
    while todo:
        for part in every(todo.pop()):
            found |= {builtin(part)} - {""}
            variable = part.variable if isinstance(part, Name) else None
            if variable in effects.lasting and variable not in seen:
                assert variable is not None
                seen.add(variable)
                todo += [variable.value] if variable.value is not None else []
    return frozenset(found)
