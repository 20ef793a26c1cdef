"""P19, hoisted: what a loop tests alike in all of its rounds stands around it.

``for (j) if (row is inside && column is inside) ...`` tests the row as often as the column. With
the test of the row around the loop over columns, a row is left out at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    only_leaves,
    walk,
)

_DIVIDING = ("/", "%")  # by what may be zero where no round asks for it


@dataclass(frozen=True)
class _Tested:
    """All that a round does: locals of its own, and what stands under ``tests`` that all hold."""

    lets: tuple[Declare, ...]
    tests: tuple[Expr, ...]
    then: Statement


@primitive
def hoisted(kernel: Kernel) -> Kernel:
    """The kernel whose loops have around them what they test alike in all of their rounds."""
    made = kernel
    while (found := _once(made)) is not None:
        made = found
    if made is kernel:
        raise NotLegal("no loop tests the same in all of its rounds")
    return made


def _once(kernel: Kernel) -> Kernel | None:
    effects, axes = Effects(kernel), kernel.axes()
    for loop in loops_in(kernel.function.body):
        axis, tested = axes.get(loop), _tested(kernel, loop.body)
        if axis is None or tested is None or not is_counted(axis, effects):
            continue
        if loop.kind != "for" or not isinstance(loop.before, Declare):
            continue
        same = _Same(effects, loop, tested.lets)
        around = [test for test in tested.tests if same.is_same(test)]
        if around:
            made = _around(loop, tested, around, same.asked)
            return kernel.rewritten(edited(kernel.function.body, {loop: made}))
    return None


def _tested(kernel: Kernel, body: Statement) -> _Tested | None:
    """A body as what it does under a test; None where it does anything else."""
    while isinstance(body, Block) and len(body.body) == 1:
        (body,) = body.body
    statements = body.body if isinstance(body, Block) else (body,)
    lets = list[Declare]()
    for at, statement in enumerate(statements):
        rest = statements[at + 1 :]
        match statement:
            case Declare(variables=variables) if all(map(_is_plain, variables)):
                lets.append(statement)
            case If(before=None, other=None, constant=False, test=test, then=then) if not rest:
                return _Tested(tuple(lets), tuple(conjuncts(kernel, test)), then)
            case If(before=None, other=None, constant=False, test=test, then=then):
                if not only_leaves(then, "continue"):
                    return None
                tests = conjuncts(kernel, Unary(None, "!", test))
                return _Tested(tuple(lets), tuple(tests), Block(None, rest[0].line, rest))
            case _:
                return None
    return None


def conjuncts(kernel: Kernel, test: Expr) -> list[Expr]:
    """The parts of a test that all hold where it does."""
    match test:
        case Binary(op="&&", left=left, right=right):
            return [*conjuncts(kernel, left), *conjuncts(kernel, right)]
        case Unary(op="!", operand=Binary(op="||", left=left, right=right)):
            sides = (Unary(None, "!", side) for side in (left, right))
            return [part for side in sides for part in conjuncts(kernel, side)]
        case Unary(op="!", operand=operand):
            return [denied(kernel, operand)]
    return [test]


def _around(
    loop: Loop, tested: _Tested, around: Sequence[Expr], asked: Sequence[Variable]
) -> Statement:
    """The loop behind tests that are the same in all rounds, and the locals that these ask for."""
    outside, inside = list[Statement](), list[Statement]()
    for let in tested.lets:
        for found, own in ((outside, True), (inside, False)):
            some = tuple(v for v in let.variables if (v in asked) is own)
            if some:
                found.append(replace(let, variables=some, span=None, lead=None))
    rest = [test for test in tested.tests if test not in around]
    then = If(None, loop.line, _all(rest), tested.then) if rest else tested.then
    alone = replace(loop, body=Block(None, loop.line, (*inside, then)), span=None, lead=None)
    branch = If(None, loop.line, _all(around), Block(None, loop.line, (alone,)))
    return Block(None, loop.line, (*outside, branch)) if outside else branch


def _all(tests: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: Binary(None, "&&", left, right), tests)


def _is_plain(variable: Variable) -> bool:
    """Whether a local begins as what is only computed."""
    value = variable.value
    known = variable.storage == "local" and not variable.array and not variable.type.reference
    return known and value is not None and all(map(_is_pure, every(value)))


def _is_pure(expr: Expr) -> bool:
    match expr:
        case Unary(op=op):
            return op in "+-!~"
        case Call(function=name):
            return name in OF_ALL_NUMBERS
        case Binary(op=op, right=right) if op in _DIVIDING:
            return isinstance(right, Literal) and bool(right.value)
    return isinstance(expr, Literal | Name | Binary | Cast | Choice) or bool(builtin(expr))


class _Same:
    """What is the same in all rounds of a loop; ``asked`` are the locals of a round among it."""

    def __init__(self, effects: Effects, loop: Loop, lets: Sequence[Declare]) -> None:
        self.effects = effects
        self.lets = {v for let in lets for v in let.variables}
        inside = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
        self.changing = inside - self.lets | effects.changed(loop).keys()
        self.asked: list[Variable] = []

    def is_same(self, test: Expr) -> bool:
        """Whether a test is, which asks for locals of a round then."""
        asked = list[Variable]()
        if not self._holds(test, asked):
            return False
        self.asked += asked
        return True

    def _holds(self, expr: Expr, asked: list[Variable]) -> bool:
        if builtin(expr):
            return True
        if not _is_pure(expr):
            return False
        variable = expr.variable if isinstance(expr, Name) else None
        if isinstance(expr, Name) and variable is None:
            return False
        if variable in self.lets:
            if variable not in self.effects.lasting or variable.value is None:
                return False
            asked.append(variable)
            return self._holds(variable.value, asked)
        if variable is not None and variable in self.changing:
            return False
        return all(self._holds(part, asked) for part in expr.parts)
