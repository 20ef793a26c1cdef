"""P25, bits: a loop that counts the bits of a number one by one becomes ``__popc``.

``while (x) { d += x & 1; x >>= 1; }``, ``for (; x; x &= x - 1) ++d;`` and, over all places,
``for (k = 0; k < 32; ++k) d += (x >> k) & 1;``. Source: CUDA Math API, "Integer Intrinsics".
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Literal, Name, Step
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named


@primitive
def bits_at_once(kernel: Kernel) -> Kernel:
    """The kernel with the bits of numbers counted by one instruction each."""
    swaps: dict[Node, Node] = {
        loop: lines(made) for loop in loops_in(kernel.function.body)
        if (made := _counted(kernel, loop))
    }  # fmt: skip
    if not swaps:
        raise NotLegal("no loop counts the bits of a number")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _counted(kernel: Kernel, loop: Loop) -> str:
    """What stands in the place of a loop that counts bits; nothing for any other."""
    body = [*(loop.body.body if isinstance(loop.body, Block) else (loop.body,))]
    if loop.kind == "do" or loop.test is None:
        return ""
    found = _by_places(kernel, loop, body) or _until_none(kernel, loop, body)
    if found is None:
        return ""
    number, sum_, ends = found
    kind, into = _kind(kernel, number), _kind(kernel, sum_)
    if kind is None or into is None or number is sum_:
        return ""
    function = "__popcll" if kind.size == 8 else "__popc"
    left = f"\n{number.name} = 0;" if ends and not _dropped(kernel, loop, number) else ""
    return f"{sum_.name} += {function}({number.name});{left}"


def _kind(kernel: Kernel, variable: Variable) -> CType | None:
    """The type of a local or a parameter that is one whole number of 4 or 8 bytes."""
    kind = named(variable.type.base, kernel.unit.aliases)
    plain = not (variable.type.depth or variable.type.reference or variable.array)
    own = plain and not variable.type.volatile and variable.storage in ("local", "parameter")
    return kind if own and kind.integral and kind.lanes == 1 and kind.size in (4, 8) else None


def _until_none(
    kernel: Kernel, loop: Loop, body: list[Statement]
) -> tuple[Variable, Variable, bool] | None:
    """``while (x)``, whose rounds count a bit and take it away: the number and the sum."""
    match loop.test:
        case Name(variable=Variable() as number):
            pass
        case Binary(op="!=" | ">" as op, left=Name(variable=Variable() as number),
                    right=Literal(value=0)):  # fmt: skip
            if op == ">" and named(number.type.base, kernel.unit.aliases).signed:
                return None
        case _:
            return None
    steps = [*body, *([Evaluate(None, 0, loop.update)] if loop.update is not None else [])]
    if loop.before is not None or len(steps) != 2:
        return None
    for counts, takes, first in ((steps[0], steps[1], True), (steps[1], steps[0], False)):
        each = _one(counts)
        if each is not None and _takes_lowest(takes, number):
            return number, each, True
        tested = _lowest(counts, number)
        if first and tested is not None and _shifts(kernel, takes, number):
            return number, tested, True
    return None


def _by_places(
    kernel: Kernel, loop: Loop, body: list[Statement]
) -> tuple[Variable, Variable, bool] | None:
    """A loop over all places of a number."""
    axis, effects = kernel.axes().get(loop), Effects(kernel)
    if axis is None or axis.stop is None or not axis.exact or not is_simple(axis, effects):
        return None
    place = axis.variable
    match _tested(body[0]) if len(body) == 1 else None:
        case Variable() as sum_, Binary(
            op="&", left=Binary(op=">>", left=Name(variable=Variable() as number),
                                right=Name(variable=shift)), right=Literal(value=1),
        ) if shift is place:  # fmt: skip
            kind = _kind(kernel, number)
            whole = kind is not None and axis.stop.value == 8 * (kind.size or 0)
            return (number, sum_, False) if whole and sum_ is not place else None
    return None


def _tested(statement: Statement) -> tuple[Variable, Expr] | None:
    """``d += bit`` or ``if (bit) ++d``: the sum and the bit."""
    match statement:
        case Evaluate(expression=Assign(op="+=", target=Name(variable=Variable() as sum_),
                                        value=bit)):  # fmt: skip
            return sum_, bit
        case If(before=None, constant=False, test=test, then=then, other=None):
            inner = then.body if isinstance(then, Block) else (then,)
            each = _one(inner[0]) if len(inner) == 1 else None
            match test:
                case Binary(op="!=", left=bit, right=Literal(value=0)):
                    test = bit
            return None if each is None else (each, test)
    return None


def _one(statement: Statement) -> Variable | None:
    """What a statement adds 1 to."""
    match statement:
        case Evaluate(expression=Step(op="++", target=Name(variable=variable))):
            return variable
        case Evaluate(expression=Assign(op="+=", target=Name(variable=variable),
                                        value=Literal(value=1))):  # fmt: skip
            return variable
    return None


def _lowest(statement: Statement, number: Variable) -> Variable | None:
    """What the lowest bit of a number is added to."""
    match _tested(statement):
        case Variable() as sum_, Binary(op="&", left=Name(variable=own), right=Literal(value=1)):
            return sum_ if own is number else None
    return None


def _shifts(kernel: Kernel, statement: Statement, number: Variable) -> bool:
    """Whether this drops the lowest bit; what never ends for less than 0 needs no answer there."""
    unsigned = not named(number.type.base, kernel.unit.aliases).signed
    match statement:
        case Evaluate(expression=Assign(op=">>=", target=Name(variable=own),
                                        value=Literal(value=1))):  # fmt: skip
            return own is number
        case Evaluate(expression=Assign(op="/=", target=Name(variable=own),
                                        value=Literal(value=2))):  # fmt: skip
            return own is number and unsigned
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=Binary(
            op=">>", left=Name(variable=old), right=Literal(value=1)))):  # fmt: skip
            return own is number and old is number
    return False


def _takes_lowest(statement: Statement, number: Variable) -> bool:
    """Whether this is ``x &= x - 1`` in one of its spellings."""
    match statement:
        case Evaluate(expression=Assign(op="&=", target=Name(variable=own), value=less)):
            return own is number and _less(less, number)
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=Binary(
            op="&", left=left, right=right))) if own is number:  # fmt: skip
            pairs = ((left, right), (right, left))
            return any(isinstance(a, Name) and a.variable is number and _less(b, number)
                       for a, b in pairs)  # fmt: skip
    return False


def _less(expr: Expr, number: Variable) -> bool:
    match expr:
        case Binary(op="-", left=Name(variable=own), right=Literal(value=1)):
            return own is number
    return False


def _dropped(kernel: Kernel, loop: Loop, number: Variable) -> bool:
    """Whether nobody asks for what is left of a number behind its loop."""
    effects = Effects(kernel)
    for block in walk(kernel.function.body):
        if isinstance(block, Block) and loop in block.body:
            declared = any(isinstance(s, Declare) and number in s.variables for s in block.body)
            behind = block.body[block.body.index(loop) + 1 :]
            return declared and not any(number in effects.mentions(s) for s in behind)
    return False
