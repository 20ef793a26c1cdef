"""Locals that are never negative, whatever is not followed of their values.

A local that begins at nothing or more, and to which no statement gives anything that may be less,
such as a place that a search moves on by the lengths that it finds. All of them are looked at
together: each holds as long as the others do, and whichever fails is left out, until none does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    Unary,
    builtin,
    conjuncts,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, once
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Compare, Symbol, Symbols
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Loop,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_PLACES = ("__ffs", "__ffsll")  # of a bit, from 1 on; 0 where there is none
_GROWING = ("+", "*", "/", "%", ">>")


@once
def never_negative(kernel: Kernel) -> frozenset[Variable]:
    """The signed locals and the sizes of a kernel that never hold less than 0."""
    effects = Effects(kernel)
    found = {
        p for p in kernel.function.parameters if _is_number(kernel, p) and p not in effects.changing
    }  # sizes, as for the reading
    given, held = dict[Variable, list[Expr]](), dict(_begun(kernel, effects))
    for statement in walk(kernel.function.body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if _is_number(kernel, variable) and variable not in effects.addressed:
                begins = [*variable.initial] if variable.value is None else [variable.value]
                given[variable] = begins
    for variable, value in _changes(kernel):
        if variable not in given:
            continue
        if value is None:
            del given[variable]
        else:
            given[variable].append(value)
    found |= given.keys()

    def stays(variable: Variable) -> bool:
        return all(_fits(kernel, variable, x, found, held.get(x, ())) for x in given[variable])

    while lost := {v for v in given if v in found and not stays(v)}:
        found -= lost
    return frozenset(found)


def _begun(kernel: Kernel, effects: Effects) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """What is given to locals before a body changes any, and what held when it was come to."""
    for statement in walk(kernel.function.body):
        match statement:
            case Loop(kind="for" | "while", test=Expr() as test, body=Block(body=body)):
                pass
            case If(test=test, then=Block(body=body)):
                pass
            case _:
                continue
        asked = tuple(conjuncts(test))
        if any(isinstance(e, Name) and e.variable in effects.addressed for e in every(test)):
            continue
        for first in body:
            match first:
                case Evaluate(expression=Assign(value=value)) if not any(map(_acts, every(value))):
                    yield value, asked
            if not isinstance(first, Declare) or any(map(_acts, expressions(first))):
                break
            yield from ((value, asked) for value in first.expressions)


def _acts(expr: Expr) -> bool:
    """Whether an expression may change a local."""
    pure = ("min", "max", *_PLACES)
    return isinstance(expr, Assign | Step) or (isinstance(expr, Call) and expr.function not in pure)


def is_above(kernel: Kernel, expr: Expr, given: Iterable[Expr]) -> bool:
    """Whether an expression is not negative where all of these comparisons hold."""
    return _is_above(kernel, expr, given, never_negative(kernel))


def _is_above(
    kernel: Kernel, expr: Expr, given: Iterable[Expr], known: Collection[Variable]
) -> bool:
    if is_nonnegative(kernel, expr, known):
        return True
    match expr:
        case Call(function="min", arguments=arguments):
            return all(_is_above(kernel, one, given, known) for one in arguments)
        case Binary(op="/", left=left, right=right) if is_nonnegative(kernel, right, known):
            return _is_above(kernel, left, given, known)
        case Binary(
            op="-",
            left=Call(function=name, arguments=(Name(variable=asked),)),
            right=Literal(value=1),
        ) if name in _PLACES:
            return any(isinstance(test, Name) and test.variable is asked for test in given)
    symbols = Symbols()
    facts = list[Compare]()
    for test in given:
        if isinstance(test, Binary) and test.op in ("<", "<=", ">", ">="):
            sides = [test.left, test.right] if test.op[0] == "<" else [test.right, test.left]
            if all((k := kernel.reading.types.get(e)) and k.signed for e in sides):
                low, high = (_form(kernel, side, symbols, known) for side in sides)
                apart = high - low - Polynomial.constant(len(test.op) == 1)
                facts.append(Compare(">=", apart, frozenset()))
    ranges, form = Ranges(facts, symbols), _form(kernel, expr, symbols, known)
    return any(map(ranges.nonnegative, (form, *(form - fact.form for fact in facts))))


def _form(
    kernel: Kernel, expr: Expr, symbols: Symbols, known: Collection[Variable]
) -> Polynomial:  # fmt: skip
    """A signed expression as a form over its locals, and over what else it is made of."""
    match expr:
        case Literal(value=int() as value):
            return Polynomial.constant(value)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            ours, theirs = (_form(kernel, side, symbols, known) for side in (left, right))
            return ours + theirs if op == "+" else ours - theirs if op == "-" else ours * theirs
        case Unary(op="-", operand=operand):
            return -_form(kernel, operand, symbols, known)
    own = isinstance(expr, Name) and expr.variable is not None
    name = f"v{id(expr.variable if isinstance(expr, Name) and own else expr)}"
    low = 0 if is_nonnegative(kernel, expr, known) else None
    return symbols.of(Symbol(name, "unknown", frozenset(), low=low))


def _fits(
    kernel: Kernel,
    variable: Variable,
    value: Expr,
    known: Collection[Variable],
    held: tuple[Expr, ...],
) -> bool:
    """Whether what a local is given is nothing or more in its own type as well."""
    kind, own = kernel.reading.types.get(value), named(variable.type.base, kernel.unit.aliases)
    if kind is None or not kind.integral or (kind.size or 8) > (own.size or 0):
        return False
    return (kind.signed or kind.size != own.size) and _is_above(kernel, value, held, known)


def is_nonnegative(kernel: Kernel, expr: Expr, known: Collection[Variable]) -> bool:
    """Whether an expression is not negative where the locals ``known`` are not."""

    def inner(part: Expr) -> bool:
        return is_nonnegative(kernel, part, known)

    kind = kernel.reading.types.get(expr)
    if kind is not None and kind.integral and not kind.signed:
        return True
    match expr:
        case Literal(value=int() as value):
            return value >= 0
        case Name(variable=Variable() as variable):
            own = named(variable.type.base, kernel.unit.aliases)
            return variable in known or (
                own.integral and not own.signed and not variable.type.depth and not variable.array
            )
        case Binary(op="&", left=left, right=right):
            return inner(left) or inner(right)
        case Binary(op=op, left=left, right=right) if op in _GROWING:
            return inner(left) and inner(right)
        case Binary(op="<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"):
            return True
        case Choice(then=then, other=other):
            return inner(then) and inner(other)
        case Call(function=name) if name in _PLACES:
            return True
        case Call(function="max", arguments=(left, right)):
            return inner(left) or inner(right)
        case Call(function="min", arguments=(left, right)):
            return inner(left) and inner(right)
        case Cast(operand=operand, type=spelled):
            to, old = named(spelled, kernel.unit.aliases), kernel.reading.types.get(operand)
            wide = old is not None and old.integral and (old.size or 8) <= (to.size or 0)
            return (
                wide and old is not None and (old.signed or old.size != to.size) and inner(operand)
            )
    return bool(builtin(expr))


def _changes(kernel: Kernel) -> Iterator[tuple[Variable, Expr | None]]:
    """What statements give to locals; None where nothing says that it is not negative."""
    for e in expressions(kernel.function.body):
        match e:
            case Assign(op="=" | "+=" | "*=" | "/=" | ">>=" | "%=",
                        target=Name(variable=Variable() as own), value=value):  # fmt: skip
                yield own, value
            case (
                Assign(target=Name(variable=Variable() as own))
                | Step(op="--", target=Name(variable=Variable() as own))
            ):
                yield own, None
            case Call(function=name, arguments=arguments):
                referred = {
                    at for function in kernel.unit.called(name, len(arguments))
                    for at, parameter in enumerate(function.parameters) if parameter.type.reference
                }  # fmt: skip
                for at, argument in enumerate(arguments):
                    if at in referred and isinstance(argument, Name) and argument.variable:
                        yield argument.variable, None


def _is_number(kernel: Kernel, variable: Variable) -> bool:
    """Whether it is one signed whole number that does not wrap before it is below nothing."""
    kind = named(variable.type.base, kernel.unit.aliases)
    plain = not (variable.type.depth or variable.type.reference or variable.array)
    return plain and kind.integral and kind.signed and kind.lanes == 1 and (kind.size or 0) >= 4
