"""Loops that count in how many rounds an element of a row is another than one of a column.

Whole numbers differ where their bits do. Floats do not: both zeros are equal, a NaN is not equal to
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

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
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction, Operand
from optiml_magic.kernels.primitives.tile_guards import guards
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Statement,
    TypeName,
    Variable,
    only_leaves,
)
from optiml_magic.kernels.types import CType, named

_SIZES = (1, 2, 4)  # bytes of an element, whose bits one register holds
_WORD = 4  # bytes of a sum, from which it has room for all rounds


@dataclass(frozen=True, eq=False)
class Differences:
    """Such a loop: it adds to ``sum`` where elements differ, or where they are ``alike``.

    Or takes away, where it counts ``down``.
    """

    parts: Contraction
    sum: Variable
    row: Operand
    column: Operand
    alike: bool
    down: bool

    @property
    def rounds(self) -> Polynomial:
        stop = self.parts.axis.stop
        assert stop is not None
        return stop

    @property
    def element(self) -> CType:
        return _kind(self.parts, self.row)

    @property
    def same(self) -> bool:
        """Whether rows and columns are the same elements, as far as these are there."""
        form = self.column.form.coefficient(COLUMN)
        if self.row.array != self.column.array or form is None:
            return False
        turned = self.column.form.without([COLUMN]) + form * Polynomial.symbol(ROW)
        extents = self.parts.outputs
        return turned == self.row.form and extents.rows == extents.columns


def differences(parts: Contraction) -> Differences:
    """What a loop counts. Raises NotLegal for one that does anything else."""
    line = parts.loop.line
    if len(parts.reductions) != 1 or parts.reductions[0].op != "+":
        raise NotLegal("the loop does more than to count", line)
    if not is_simple(parts.axis, parts.effects) or parts.axis.stop is None:
        raise NotLegal("the loop does not count from 0 by 1", line)
    if len(parts.operands) != 2 or any(o.deep for o in parts.others):
        raise NotLegal("a round compares more than two elements", line)
    (variable,) = parts.variables().values()
    kind = parts.reductions[0].type
    if not kind.integral or (kind.size or 0) < _WORD:
        raise NotLegal(f"`{variable.name}` is not a whole number of 4 bytes or more", line)
    compared = _Round(parts, variable)
    (one, other), alike = compared.test()
    row, column = (one, other) if one.side == ROW else (other, one)
    if {row.side, column.side} != {ROW, COLUMN}:
        raise NotLegal("it compares no row with a column", line)
    _check_elements(parts, row, column)
    return Differences(parts, variable, row, column, alike, compared.down)


def _check_elements(parts: Contraction, row: Operand, column: Operand) -> None:
    """Both have whole numbers of one type, of which all rows have all."""
    kinds = {_kind(parts, one) for one in (row, column)}
    line = parts.loop.line
    if len({(k.kind, k.size, k.signed) for k in kinds}) != 1:
        raise NotLegal("it compares numbers of two types", line)
    if any(k.floating for k in kinds):
        raise NotLegal("floats that are equal may have different bits", line)
    if any(k.kind != "int" or k.size not in _SIZES or k.lanes != 1 or k.depth for k in kinds):
        raise NotLegal("what it compares are not whole numbers of 1, 2 or 4 bytes", line)
    symbols = parts.kernel.reading.symbols.table
    given = {p.name: p for p in parts.kernel.function.parameters}
    for operand in (row, column):
        array = given.get(operand.array)
        if array is None or array.type.volatile or array.type.depth != 1:
            raise NotLegal(f"`{operand.array}` is not a plain array that the kernel is given", line)
        inside = operand.form.symbols - {operand.side, parts.axis.name}
        if any(name not in symbols or symbols[name].kind != "scalar" for name in inside):
            raise NotLegal("sizes alone do not say where an element is", line)
        for test in guards(parts, operand):
            plain = {operand.side, parts.axis.name, *given}
            if not isinstance(test, Compare) or not test.form.symbols <= plain:
                raise NotLegal("sizes alone do not say which elements there are", line)


def _kind(parts: Contraction, operand: Operand) -> CType:
    return named(operand.kind, parts.kernel.unit.aliases)


def _leads(kind: TypeName) -> bool:
    return kind.reference or bool(kind.depth)


class _Round:
    """What a round compares, and how."""

    def __init__(self, parts: Contraction, own: Variable) -> None:
        self.parts, self.own = parts, own
        self.lets = dict[Variable, Expr]()
        self.given = set[Variable]()
        self.loads = {a.own: o for o in parts.operands for a in o.accesses}
        self.line, self.down = parts.loop.line, False
        self._types = parts.kernel.reading.types

    def test(self) -> tuple[tuple[Operand, Operand], bool]:
        """The two elements, and whether the round counts where they are alike."""
        body, alike = self._statements(self.parts.loop.body), False
        match body:
            case [If(test=test, then=then, other=None, before=None), *rest]:
                if rest:
                    if not only_leaves(then, "continue"):
                        raise self._refused()
                    alike, counting = True, rest
                else:
                    counting = self._statements(then)
                if len(counting) != 1 or not self._counts(counting[0]):
                    raise self._refused()
            case [
                Evaluate(
                    expression=Assign(op="+=" | "-=" as op, target=Name(variable=own), value=test)
                )
            ] if own is self.own:
                self.down = op == "-="
            case _:
                raise self._refused()
        return self._compared(test, alike=alike)

    def _refused(self) -> NotLegal:
        return NotLegal("a round does more than to count a difference", self.line)

    def _statements(self, body: Statement) -> list[Statement]:
        """The statements of a body behind its locals."""
        while isinstance(body, Block) and len(body.body) == 1:
            (body,) = body.body
        found = [*body.body] if isinstance(body, Block) else [body]
        while found and isinstance(found[0], Declare):
            for variable in found[0].variables:
                if variable.value is None or variable.array or _leads(variable.type):
                    raise self._refused()
                self.lets[variable] = variable.value
            found = found[1:]
        return found

    def _counts(self, statement: Statement) -> bool:
        match statement:
            case Block(body=(only,)):
                return self._counts(only)
            case Evaluate(expression=Step(op=op, target=Name(variable=own))):
                self.down = op == "--"
                return own is self.own
            case Evaluate(
                expression=Assign(
                    op="+=" | "-=" as op, target=Name(variable=own), value=Literal(value=1)
                )
            ):
                self.down = op == "-="
                return own is self.own
        return False

    def _compared(self, test: Expr, *, alike: bool) -> tuple[tuple[Operand, Operand], bool]:
        match test:
            case Binary(op="!=" | "==" as op, left=left, right=right):
                (one, first), (other, second) = self._element(left), self._element(right)
                if first != second:
                    raise NotLegal("it compares numbers of two types", self.line)
                return (one, other), alike != (op == "==")
            case Unary(op="!", operand=operand):
                return self._compared(operand, alike=not alike)
            case Choice(test=inner, then=Literal(value=1), other=Literal(value=0)):
                return self._compared(inner, alike=alike)
            case Choice(test=inner, then=Literal(value=0), other=Literal(value=1)):
                return self._compared(inner, alike=not alike)
            case Cast(operand=operand) if self._types[test].integral:
                return self._compared(operand, alike=alike)
            case Name(variable=Variable() as variable) if self._lasts(variable):
                if variable.type.base == "auto" or self._type(variable).integral:
                    return self._compared(self.lets[variable], alike=alike)
            case Call():
                return self._compared(self._returned(test), alike=alike)
        raise self._refused()

    def _returned(self, call: Call) -> Expr:
        """What the text's own function returns, whose parameters are locals of the round then."""
        function = called_alone(self.parts.kernel, call)
        if function is None or function.template or function.result.depth:
            raise self._refused()
        if any(p in self.lets or p.array or _leads(p.type) for p in function.parameters):
            raise self._refused()
        match function.body.body:
            case [Leave(kind="return", value=Expr() as value)]:
                result = named(function.result.base, self.parts.kernel.unit.aliases)
                if result.integral and not function.result.reference:
                    self.lets |= zip(function.parameters, call.arguments, strict=True)
                    self.given |= {*function.parameters}
                    return value
        raise self._refused()

    def _element(self, expr: Expr) -> tuple[Operand, tuple[CType, ...]]:
        """An element, and as which types it is held on its way to the comparison."""
        if expr in self.loads:
            return self.loads[expr], ()
        match expr:
            case Name(variable=Variable() as variable) if self._lasts(variable):
                operand, kinds = self._element(self.lets[variable])
                if variable.type.base == "auto":
                    return operand, kinds
                return operand, (*kinds, self._wide(self._type(variable), operand))
            case Cast(operand=inner):
                operand, kinds = self._element(inner)
                return operand, (*kinds, self._wide(self._types[expr], operand))
        raise NotLegal("it compares more than elements", self.line)

    def _lasts(self, variable: Variable) -> bool:
        lasting = variable in self.given or variable in self.parts.effects.lasting
        return variable in self.lets and lasting

    def _type(self, variable: Variable) -> CType:
        return named(variable.type.base, self.parts.kernel.unit.aliases)

    def _wide(self, kind: CType, operand: Operand) -> CType:
        """A type, if it holds all numbers of an element apart from each other."""
        own = _kind(self.parts, operand).size or _WORD
        if kind.kind != "int" or kind.depth or kind.lanes != 1 or (kind.size or 0) < own:
            raise NotLegal("elements that differ may be equal in a smaller type", self.line)
        return kind
