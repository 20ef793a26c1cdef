"""P8, one pass: a sum of squares around what an earlier loop finds, from sums of that loop.

    sum (e - m)^2 = sum (e - c)^2 - 2 (m - c) sum (e - c) + n (m - c)^2

for any ``c``, here the first element, which lies where the others do, so that little cancels.
Source: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Call, Cast, Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.beside import Beside, beside
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, Variable
from optiml_magic.kernels.types import named

_POWERS = ("pow", "powf")


@dataclass(frozen=True)
class Square:
    """``place`` sums up the squares of ``element - middle`` in the second of two loops."""

    pair: Beside
    reduction: Reduction
    element: Expr
    middle: Expr


@primitive
def one_pass(kernel: Kernel) -> Kernel:
    """The first loop that sums up squares around what a loop before it finds, within that loop."""
    why = NotLegal("no loop sums up squares around what one before it finds")
    for pair in beside(kernel):
        try:
            return _made(_square(pair))
        except NotLegal as reason:
            why = reason if reason.line else why
    raise why


def _square(pair: Beside) -> Square:
    """What the second loop sums up; raises NotLegal where this is anything else."""
    line, leaf = pair.second[0].line, pair.leaves[1]
    *given, last = leaf
    meant: dict[Variable, Expr] = {}
    for statement in given:
        match statement:
            case Declare(variables=(Variable(value=Expr() as value) as only,)):
                meant[only] = value
            case _:
                raise NotLegal("its rounds do more than to sum up", statement.line)
    axes = {axis.name for axis in pair.second}
    found = [r for r in pair.kernel.reading.reductions if axes <= {*r.axes}]
    own = [r for r in found if r.op == "+" and r.type.floating and not r.type.depth]
    if len(found) != 1 or len(own) != 1 or len(own[0].values) != 1:
        raise NotLegal("its rounds do more than to sum up", line)
    if not isinstance(last, Evaluate) or not isinstance(last.expression, Assign):
        raise NotLegal("its rounds do more than to sum up", line)
    changed = pair.effects.changed(*leaf)
    if {v.name for v in changed} != {own[0].place} or {*meant} & {*changed}:
        raise NotLegal("its rounds do more than to sum up", line)
    root = _root(pair, own[0].values[0], meant)
    if not isinstance(root, Binary) or root.op != "-":
        raise NotLegal("what it sums up are no squares of differences", line)
    kind = pair.kernel.reading.types.get(root)
    if kind is None or not (kind.floating or kind.signed):
        raise NotLegal("a difference without a sign wraps around", line)
    sides = [_whole(pair, side, meant) for side in (root.left, root.right)]
    moving = [bool(names([side]) & {*pair.counters}) for side in sides]
    if moving == [True, False]:
        return Square(pair, own[0], sides[0], sides[1])
    if moving == [False, True]:
        return Square(pair, own[0], sides[1], sides[0])
    raise NotLegal("what it sums up are no squares around one value", line)


def _root(pair: Beside, value: Expr, meant: dict[Variable, Expr]) -> Expr | None:
    """What is squared, spelled out one level deep."""
    value = _plain(pair, value, meant)
    match value:
        case Binary(op="*", left=left, right=right) if same(left, right, meant):
            return _plain(pair, left, meant)
        case Call(function=function, arguments=(base, Literal(value=power))):
            return _plain(pair, base, meant) if function in _POWERS and power == 2 else None
    return None


def _plain(pair: Beside, value: Expr, meant: dict[Variable, Expr]) -> Expr:
    """What a local of the round stands for, or what is converted to another float."""
    match value:
        case Name(variable=Variable(type=kind) as variable) if variable in meant:
            inner, to = meant[variable], kind.base
        case Cast(operand=inner, type=to):
            pass
        case _:
            return value
    kept = named(to, pair.kernel.unit.aliases)
    if not kept.floating and to != "auto" and pair.kernel.reading.types.get(inner) != kept:
        raise NotLegal("a difference becomes a whole number", pair.second[0].line)
    return _plain(pair, inner, meant)


def _whole(pair: Beside, value: Expr, meant: dict[Variable, Expr]) -> Expr:
    """An expression without the locals of the round."""
    swaps: dict[Node, Node] = {}
    for part in every(value):
        if not isinstance(part, Name) or part.variable not in meant:
            continue
        variable = part.variable
        kind = named(variable.type.base, pair.kernel.unit.aliases)
        if variable.type.depth or variable.type.reference or not (kind.floating or kind.integral):
            raise NotLegal(f"`{variable.name}` is not a number", variable.line)
        inner = _whole(pair, meant[variable], meant)
        converted = pair.kernel.reading.types.get(meant[variable]) != kind
        swaps[part] = Cast(None, kind.name, inner) if converted else inner
    return edited(value, swaps)


def _made(square: Square) -> Kernel:
    pair, reduction = square.pair, square.reduction
    kernel = pair.kernel
    pair.check()
    pair.check_early([square.element])
    pair.check_names([square.element])
    for part in (square.element, square.middle):
        if any(isinstance(e, Assign) for e in every(part)):
            raise NotLegal("it changes something on the way", pair.second[0].line)
    if any(v.name == reduction.place for v in names([square.element, square.middle])):
        raise NotLegal("what it sums up depends on the sum", pair.second[0].line)
    kind, taken = reduction.type.name, list[str]()

    def fresh(name: str) -> str:
        taken.append(kernel.fresh(name, *taken))
        return taken[-1]

    near, apart, off = fresh("near"), fresh("apart"), fresh("off")
    first, second = fresh("apart_sum"), fresh("apart_squares")
    some, start = pair.some, pair.at_start(square.element)
    before = lines(
        f"const {kind} {near} = {some} ? ({kind})({start}) : ({kind})0;\n"
        f"{kind} {first} = 0, {second} = 0;"
    )
    added = lines(
        f"const {kind} {apart} = ({kind})({pair.spelled(square.element)}) - {near};\n"
        f"{first} += {apart};\n{second} += {apart} * {apart};"
    )
    middle = kernel.spelled(square.middle)
    whole = lines(
        f"if ({some}) {{\nconst {kind} {off} = ({kind})({middle}) - {near};\n"
        f"{reduction.place} += {second} - {off} * (2 * {first} - {pair.count(kind)} * {off});\n}}"
    )
    loop = pair.first[0].node
    inner = pair.first[-1].node
    body = inner.body
    old = body.body if isinstance(body, Block) else (body,)
    longer: Statement = Block(None, body.line, (*old, added))
    grown = edited(loop, {body: longer}) if inner is not loop else replace(
        loop, span=None, body=longer, head=None, foot=None
    )  # fmt: skip
    swaps: dict[Node, tuple[Statement, ...]] = {
        loop: (before, grown),
        pair.second[0].node: (whole,),
    }
    return kernel.rewritten(edited(kernel.function.body, swaps))
