"""P11, squares of differences multiplied out: their sum is that of three products.

    sum (a - b)^2 = sum a^2 + sum b^2 - 2 sum a b

In a product of tiles the first two are sums of a row and of a column, so that one multiply-add is
left for each pair instead of a subtraction and a multiply-add. Where what is left of the sums is
small beside them, digits have cancelled: there the loop runs as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.combining import adds, same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Cast, Expr, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Statement, Variable, body_of
from optiml_magic.kernels.types import CType, keeps, named

_LEAST = 16  # times more than what is left the squares may be; four of their bits cancel: ours


@primitive
def multiplied(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, which sums up squares of differences, as three sums."""
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    reduction = the_sum(kernel, loop)
    if not reduction.type.floating or reduction.type.depth:
        raise NotLegal("it sums up whole numbers", loop.line)
    *given, last = body_of(loop.body)
    meant = meant_in(given, loop)
    if not isinstance(last, Evaluate) or {v.name for v in effects.changed(loop.body)} != {
        reduction.place
    }:
        raise NotLegal("its rounds do more than to sum up", loop.line)
    left, right = _difference(kernel, reduction.values[0], meant, loop)
    pure = all(not isinstance(e, Assign | Step) for v in meant.values() for e in every(v))
    if not pure or any(isinstance(e, Assign | Step) for e in (*every(left), *every(right))):
        raise NotLegal("it changes something on the way", loop.line)
    kind, place, taken = reduction.type.name, reduction.place, list[str]()

    def fresh(name: str) -> str:
        taken.append(kernel.fresh(name, *taken))
        return taken[-1]

    lefts, rights, products = (fresh(n) for n in ("left_squares", "right_squares", "products"))
    one, other, squares, rest = (fresh(n) for n in ("left", "right", "squares", "rest"))
    before = lines(f"{kind} {lefts} = 0, {rights} = 0, {products} = 0;")
    added = lines(
        f"const {kind} {one} = {kernel.spelled(left)};\n"
        f"const {kind} {other} = {kernel.spelled(right)};\n"
        f"{lefts} += {one} * {one};\n{rights} += {other} * {other};\n{products} += {one} * {other};"
    )
    round_ = Block(None, loop.body.line, (*given, added))
    after = lines(
        f"const {kind} {squares} = {lefts} + {rights};\n"
        f"const {kind} {rest} = {squares} - 2 * {products};"
    )
    again = lines(
        f"if ({_LEAST} * {rest} > {squares}) {place} += {rest};\n"
        f"else {{\n#pragma unroll 1\n{kernel.show(loop)}\n}}"
    )
    swaps: dict[Node, Node | tuple[Statement, ...]] = {
        loop: (before, edited(loop, {loop.body: round_}), after, again)
    }
    return kernel.rewritten(edited(kernel.function.body, swaps))


def the_sum(kernel: Kernel, loop: Loop) -> Reduction:
    """The one sum of a loop, of one value in each round."""
    axis = kernel.axes().get(loop)
    found = [r for r in kernel.reading.reductions if axis is not None and axis.name in r.axes]
    if len(found) != 1 or found[0].op != "+" or found[0].carried or len(found[0].values) != 1:
        raise NotLegal("its rounds do more than to sum up", loop.line)
    *_, last = body_of(loop.body) or (None,)
    if isinstance(last, Evaluate) and not adds(last.expression):
        raise NotLegal("a round subtracts from its sum", last.line)
    return found[0]


def meant_in(given: Sequence[Statement], loop: Loop) -> dict[Variable, Expr]:
    """What the locals of a round are."""
    meant: dict[Variable, Expr] = {}
    for statement in given:
        variables = statement.variables if isinstance(statement, Declare) else ()
        if not variables or any(v.value is None or v.type.reference for v in variables):
            raise NotLegal("its rounds do more than to sum up", loop.line)
        meant |= {v: v.value for v in variables if v.value is not None}
    return meant


def _difference(
    kernel: Kernel, value: Expr, meant: dict[Variable, Expr], loop: Loop
) -> tuple[Expr, Expr]:
    """Both sides of the difference whose square a value is."""
    match _plain(kernel, value, meant):
        case Binary(op="*", left=left, right=right):
            match _plain(kernel, left, meant), _plain(kernel, right, meant):
                case Binary(op="-", left=one, right=other) as found, again:
                    kind = kernel.reading.types.get(found)
                    wraps = kind is None or not (kind.floating or kind.signed)
                    if not wraps and same(found, again):
                        return one, other
    raise NotLegal("what it sums up are no squares of differences", loop.line)


def _plain(kernel: Kernel, value: Expr, meant: dict[Variable, Expr]) -> Expr:
    """What a local of the round stands for, where none is converted to less than it was."""
    match value:
        case Name(variable=Variable() as variable) if variable in meant:
            inner, kind = meant[variable], type_of(kernel, variable)
        case Cast(type=to, operand=operand):
            inner, kind = operand, named(to, kernel.unit.aliases)
        case _:
            return value
    return _plain(kernel, inner, meant) if _keeps(kernel.reading.types.get(inner), kind) else value


def _keeps(one: CType | None, other: CType) -> bool:
    """Whether a number of one type is the same as another, but for its last bits."""
    if one is None or one.lanes != 1 or other.lanes != 1:
        return False
    return (other.floating and (one.floating or one.integral)) or keeps(other, one)
