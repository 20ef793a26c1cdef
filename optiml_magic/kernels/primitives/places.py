"""Where a thread stands in its grid, given another meaning: the first step of every remapping.

A thread's index along an axis is ``blockIdx * blockDim + threadIdx``. Where a kernel reads that
sum, in whatever spelling, another expression can stand for it; where it reads the parts alone, they
are the quotient and the rest of that expression by the width that the blocks had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.assembly import but_in_registers
from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Span,
    builtin,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.spelling import is_one
from optiml_magic.kernels.tree import Function, Leave, Statement, expressions
from optiml_magic.kernels.types import named
from optiml_magic.kernels.unit import Unit

_WORD = 4  # bytes that hold an index
_LONG = 8  # bytes that hold any
_WIDE = re.compile(r"\((?:unsigned )?(?:long(?: long)?|size_t)\)")
_SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


@dataclass(frozen=True)
class Place:
    """What stands for the index of a thread along one axis, whose blocks had ``width`` threads.

    ``whole`` is the index in the grid, ``thread`` in the block; ``block`` is that of the block.
    ``wide`` is the first where it stands for one of 64 bits, if that is not it converted.
    """

    whole: str
    width: int
    thread: str = ""
    block: str = ""
    wide: str = ""

    def part(self, name: str) -> str:
        """What stands for ``threadIdx``, ``blockIdx`` or ``blockDim`` along this axis."""
        if name == "blockDim":
            return str(self.width)
        if name == "threadIdx":
            return self.thread or f"({self.whole} % {self.width})"
        if name == "blockIdx":
            return self.block or f"({self.whole} / {self.width})"
        raise NotLegal("it counts the blocks of its grid")


def placed(kernel: Kernel, places: Mapping[str, Place]) -> dict[Node, Node]:
    """What to exchange in a kernel, so that these places stand for its axes."""
    own_text_only(kernel)
    swaps: dict[Node, Node] = {}
    for top in tops(kernel.function.body):
        _place(kernel, top, places, swaps)
    return swaps


def is_wide(kernel: Kernel, expr: Expr) -> bool:
    """Whether an expression has 64 bits."""
    kind = kernel.reading.types.get(expr)
    return kind is not None and kind.integral and kind.size == _LONG


def as_wide(kernel: Kernel, expr: Expr, words: str) -> str:
    """Words for an index, with 64 bits where the expression has them that they stand for.

    Else what is computed of it, the place of a row, would have no more bits than they have.
    """
    if not is_wide(kernel, expr) or _WIDE.search(words):
        return words
    name = kernel.reading.types[expr].name
    return f"(({name}){words})" if is_one(words) else f"(({name})({words}))"


def index(form: Polynomial, axis: str, width: int) -> Polynomial | None:
    """A form over ``@x``, the index of a thread in the grid; None where it tells more of it."""
    thread, block = f"threadIdx.{axis}", f"blockIdx.{axis}"
    if thread in form.symbols:
        by = form.coefficient(thread)
        if by is None:
            return None
        start = Polynomial.symbol(block) * Polynomial.constant(width)
        whole = Polynomial.symbol(f"@{axis}")
        form = form - by * Polynomial.symbol(thread) + by * (whole - start)
    return None if {thread, block} & form.symbols else form


def axis_of(kernel: Kernel, expr: Expr) -> str:
    """The axis whose index in the grid an expression is; empty for any other."""
    expr = _whole(kernel, expr)
    if isinstance(expr, Call) and not expr.arguments:
        inner = returned(kernel.unit, expr)
        return axis_of(kernel, inner) if inner is not None else ""
    if not isinstance(expr, Binary) or expr.op != "+":
        return ""
    for first, second in ((expr.left, expr.right), (expr.right, expr.left)):
        name, _, axis = builtin(_whole(kernel, second)).partition(".")
        if name == "threadIdx" and _starts(kernel, _whole(kernel, first), axis):
            return axis
    return ""


def _whole(kernel: Kernel, expr: Expr) -> Expr:
    """An expression without the conversions around it that hold any index."""
    while isinstance(expr, Cast):
        kind = named(expr.type, kernel.unit.aliases)
        if not kind.integral or (kind.size or 0) < _WORD:  # it is another number then
            return expr
        expr = expr.operand
    return expr


def _starts(kernel: Kernel, expr: Expr, axis: str) -> bool:
    """Whether this is ``blockIdx * blockDim``, the index of a block's first thread."""
    sides: tuple[Expr, Expr]
    if isinstance(expr, Binary) and expr.op == "*":
        sides = _whole(kernel, expr.left), _whole(kernel, expr.right)
    elif isinstance(expr, Call) and expr.function.strip("_") in ("umul24", "mul24"):
        sides = _whole(kernel, expr.arguments[0]), _whole(kernel, expr.arguments[1])
    else:
        return False
    width = kernel.block["xyz".index(axis)]
    for block, by in (sides, sides[::-1]):
        if builtin(block) != f"blockIdx.{axis}":
            continue
        if builtin(by) == f"blockDim.{axis}":
            return True
        if width is not None and number(kernel, by) == width:
            return True
    return False


def number(kernel: Kernel, expr: Expr) -> int | float | None:
    """A literal, or what a tuned name, a constant of the text or of a template stands for."""
    if isinstance(expr, Literal):
        return expr.value
    if not isinstance(expr, Name) or expr.variable is not None:
        return None
    if expr.name in kernel.program.values:
        return kernel.program.values[expr.name]
    _, given = split_name(kernel.launch.kernel or "")
    for parameter, words in zip(kernel.function.template, given, strict=False):
        if parameter.name == expr.name:
            return int(words) if words.isdigit() else None
    constant = (v for d in kernel.unit.declarations for v in d.variables
                if v.name == expr.name and v.type.const and not v.array)  # fmt: skip
    found = next(constant, None)
    return found.value.value if found and isinstance(found.value, Literal) else None


def bare(expr: Expr) -> Expr:
    """An expression without the conversions around it."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr


def chain(expr: Expr, op: str) -> Iterator[Expr]:
    """The terms of a sum, or the factors of a product, in their order."""
    match expr:
        case Binary(op=own, left=left, right=right) if own == op:
            yield from chain(left, op)
            yield from chain(right, op)
        case _:
            yield expr


def returned(unit: Unit, call: Call) -> Expr | None:
    """What a function without parameters returns, where it does nothing else."""
    found = unit.called(call.function, 0)
    if len(found) != 1 or len(found[0].body.body) != 1:
        return None
    (only,) = found[0].body.body
    return only.value if isinstance(only, Leave) else None


def _place(
    kernel: Kernel, expr: Expr, places: Mapping[str, Place], swaps: dict[Node, Node]
) -> None:
    axis = axis_of(kernel, expr)
    if axis in places:
        place = places[axis]
        words = place.wide if place.wide and is_wide(kernel, expr) else place.whole
        swaps[expr] = text(as_wide(kernel, expr, words))
        return
    name, _, axis = builtin(expr).partition(".")
    if axis in places:
        swaps[expr] = text(places[axis].part(name))
        return
    for part in expr.parts:
        _place(kernel, part, places, swaps)


def tops(statement: Statement) -> Iterator[Expr]:
    """The expressions in a statement that are in no other."""
    yield from statement.expressions
    for inner in statement.statements:
        yield from tops(inner)


def outermost(statement: Statement, made: Callable[[Expr], Expr | None]) -> dict[Node, Node]:
    """What is ``made`` of the expressions in a statement, not of what is within these."""
    swaps: dict[Node, Node] = {}
    stack = [*tops(statement)]
    while stack:
        expr = stack.pop()
        if (new := made(expr)) is None:
            stack += expr.parts
        else:
            swaps[expr] = new
    return swaps


def code(unit: Unit, span: Span) -> str:
    """A part of the preprocessed text without its comments and strings."""
    return _SILENT.sub(" ", unit.syntax.text[slice(*span)].decode())


def code_but_in_registers(unit: Unit, span: Span) -> str:
    """As ``code``, without the assembly that is known to do no more than compute."""
    return _SILENT.sub(" ", but_in_registers(unit.syntax.text[slice(*span)].decode()))


def reached(unit: Unit, function: Function) -> Iterator[Function]:
    """The functions of the text that a function may come to."""
    seen: set[Function] = set()
    todo = [function]
    while todo:
        for expr in expressions(todo.pop().body):
            if isinstance(expr, Call):
                for found in unit.called(expr.function, len(expr.arguments)):
                    if found not in seen:
                        seen.add(found)
                        todo.append(found)
                        yield found


def functions_of(kernel: Kernel) -> Iterator[Function]:
    """The kernel, and what it calls but for templates, which others may call with other types."""
    yield kernel.function
    yield from (f for f in reached(kernel.unit, kernel.function) if not f.template)


def own_text_only(kernel: Kernel) -> None:
    """Functions that read built-in variables for themselves see what the hardware says."""
    seen: set[Function] = set()
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Call) and not axis_of(kernel, expr):
            _check_called(kernel, expr, seen)


def _check_called(kernel: Kernel, call: Call, seen: set[Function]) -> None:
    for function in kernel.unit.called(call.function, len(call.arguments)):
        if function in seen:
            continue
        seen.add(function)
        for expr in expressions(function.body):
            if builtin(expr):
                raise NotLegal(f"`{function.name}` reads where its thread stands", function.line)
            if isinstance(expr, Call):
                _check_called(kernel, expr, seen)
