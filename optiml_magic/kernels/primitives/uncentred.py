"""P11, products of bytes less their zero points, as products of the bytes themselves.

    sum (a - p) (b - q) = sum a b - q sum a - p sum (b - q)

In a product of tiles the last two are sums of a row and of a column, and the first is one of bytes,
four of which are one instruction. In unsigned numbers that holds whatever overflows on the way.
Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference" (2018), 2.3.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.multiplied import meant_in, the_sum
from optiml_magic.kernels.tree import Block, Evaluate, Loop, Statement, Variable, body_of
from optiml_magic.kernels.types import CType, named

_WORD = 4


@primitive
def uncentred(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, which sums up such products of whole numbers, as three sums."""
    loop = loops_in(kernel.function.body)[at]
    effects, reduction = Effects(kernel), the_sum(kernel, loop)
    if reduction.type.kind != "int" or reduction.type.size != _WORD:
        raise NotLegal("its sum is not a 32-bit integer", loop.line)
    *given, last = body_of(loop.body)
    meant = meant_in(given, loop)
    changed = {v.name for v in effects.changed(loop.body)}
    if not isinstance(last, Evaluate) or changed != {reduction.place}:
        raise NotLegal("its rounds do more than to sum up", loop.line)
    if any(isinstance(e, Assign | Step) for v in meant.values() for e in every(v)):
        raise NotLegal("it changes something on the way", loop.line)
    product = _bare(kernel, reduction.values[0], meant, loop)
    if not isinstance(product, Binary) or product.op != "*":
        raise NotLegal("it does not sum products", loop.line)
    (one, p, kind), (other, q, also) = (
        _parted(kernel, effects, side, meant, loop) for side in (product.left, product.right)
    )
    if kind.signed != also.signed:
        raise NotLegal("one factor is signed and the other is not", loop.line)
    if p == q == "0":
        raise NotLegal("its bytes have no zero point to take out", loop.line)
    taken = list[str]()

    def fresh(name: str) -> str:
        taken.append(kernel.fresh(name, *taken))
        return taken[-1]

    products, lefts, rights = (fresh(n) for n in ("products", "lefts", "rights"))
    sums = [f"{products} = 0", *[f"{lefts} = 0"] * (q != "0"), *[f"{rights} = 0"] * (p != "0")]
    before = lines(f"unsigned int {', '.join(sums)};")
    less = f"{other} - {q}" if q != "0" else other
    added = [f"{products} += {one} * {other};"]
    added += [f"{lefts} += {one};"] * (q != "0") + [f"{rights} += {less};"] * (p != "0")
    rest = f" - (unsigned int){q} * {lefts}" * (q != "0")
    rest += f" - (unsigned int){p} * {rights}" * (p != "0")
    round_ = Block(None, loop.body.line, (*given, lines("\n".join(added))))
    after = lines(f"{reduction.place} += ({reduction.type.name})({products}{rest});")
    swaps: dict[Node, Node | tuple[Statement, ...]] = {
        loop: (before, edited(loop, {loop.body: round_}), after)
    }
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _bare(kernel: Kernel, value: Expr, meant: dict[Variable, Expr], loop: Loop) -> Expr:
    """What a value is without locals of a round and conversions to whole numbers of 32 bits."""
    aliases = kernel.unit.aliases
    while True:
        match value:
            case Name(variable=Variable(type=kind) as own) if own in meant:
                held, spelled = meant[own], kind.base
            case Cast(type=spelled, operand=held):
                pass
            case _:
                return value
        found = named(spelled, aliases)
        if found.kind != "int" or found.size != _WORD:
            raise NotLegal("a factor is not a 32-bit integer", loop.line)
        value = held


def _parted(
    kernel: Kernel, effects: Effects, value: Expr, meant: dict[Variable, Expr], loop: Loop
) -> tuple[str, str, CType]:
    """A byte that is loaded and what is taken from it, in words, zero for nothing; and its type."""
    value = _bare(kernel, value, meant, loop)
    kind = _loaded(effects, value, loop)
    if kind is not None:
        return f"(int){kernel.spelled(value)}", "0", kind
    match value:
        case Binary(op="-" | "+" as op, left=left, right=right):
            byte, point = _bare(kernel, left, meant, loop), kernel.spelled(right)
            whole, kind = kernel.reading.types[right], _loaded(effects, byte, loop)
            steady = _steady(effects, right, meant) and effects.stays(loop, point)
            if kind is not None and steady and whole.kind == "int" and whole.size == _WORD:
                point = f"({point})" if op == "-" else f"(-({point}))"
                return f"(int){kernel.spelled(byte)}", point, kind
    raise NotLegal("a factor is not a byte minus a value that all rounds share", loop.line)


def _steady(effects: Effects, value: Expr, meant: dict[Variable, Expr]) -> bool:
    """Whether a value is made of literals, parameters and locals of before the loop, that stay."""
    lasting = effects.lasting - meant.keys()
    return all(
        isinstance(e, Literal | Binary | Cast)
        or (isinstance(e, Unary) and e.op in ("-", "+", "~"))
        or (isinstance(e, Name) and e.variable is not None
            and (e.variable.storage == "parameter" or e.variable in lasting))
        for e in every(value)
    )  # fmt: skip


def _loaded(effects: Effects, value: Expr, loop: Loop) -> CType | None:
    """The type of a byte, where a value is one that is loaded."""
    return next((
        a.element for a in effects.accesses(loop)
        if a.own is value and a.mode == "load" and a.element.kind == "int" and a.element.size == 1
    ), None)  # fmt: skip
