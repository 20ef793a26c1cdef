"""When an element of an operand is there: what guards say of its row or column, and its round."""

from __future__ import annotations

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.operands import (
    COLUMN,
    ROW,
    Contraction,
    Operand,
    symbols_inside,
)
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.projected import projected
from optiml_magic.kernels.symbols import Compare, Condition

_ONE = Polynomial.constant(1)


def guards(contraction: Contraction, operand: Operand) -> list[Condition]:
    """What must hold for an element to be there, the end of its rows or columns first."""
    axis, line = contraction.axis, contraction.loop.line
    others = {ROW, COLUMN} - {operand.side}
    test = {*axis.test.conjuncts(), axis.test}
    test |= contraction.idle.get(operand.accesses[0].own, frozenset())
    found: list[Condition] = []
    tying: list[Polynomial] = []
    for part in (p for c in operand.accesses[0].guard for p in c.conjuncts()):
        if part in test or _holds(contraction, part):
            continue
        if not isinstance(part, Compare):
            raise NotLegal("a guard is not a comparison of whole numbers", line)
        if contraction.outputs.flat is not None and _whole(contraction, part):
            continue
        form = contraction.placed(part.form)
        names = form.symbols | symbols_inside(contraction, form)
        if not others & names:
            found.append(Compare(part.op, form, part.roots))
        elif part.op == ">=":
            tying.append(form)
        elif names & {operand.side, axis.name}:
            raise NotLegal("a guard ties rows to columns", line)
    if any({operand.side, axis.name} & form.symbols for form in tying):
        if any(others & symbols_inside(contraction, form) for form in tying):
            raise NotLegal("a guard ties rows to columns", line)
        left = projected(tying, {side: contraction.extent(side) for side in sorted(others)})
        projections = [Compare(">=", f, frozenset()) for f in left if not _above(contraction, f)]
        found += [c for c in projections if c not in test]
    if not operand.side:
        return found
    own = contraction.extent(operand.side) - Polynomial.symbol(operand.side) - _ONE
    limit = Compare(">=", own, frozenset())
    rest = [c for c in found if c != limit]
    return [limit, *(() if _between(contraction, operand, rest) else rest)]


def _above(contraction: Contraction, form: Polynomial) -> bool:
    """Whether a form is never negative, as a sum of indices."""
    indices = {ROW, COLUMN, contraction.axis.name}
    return form.symbols <= indices and all(factor >= 0 for _, factor in form.terms)


def _between(contraction: Contraction, operand: Operand, tests: list[Condition]) -> bool:
    """Whether all elements lie between two that the kernel loads, the first and the last of all.

    Then they are there, though the kernel may leave them out. That is so where the tests hold for
    the first row in the first round, and for the last row in the last one.
    """
    axis, rows = contraction.axis, contraction.extent(operand.side)
    if not is_simple(axis, contraction.effects) or axis.stop is None:
        return False
    sizes = rows.symbols | axis.stop.symbols
    rest = operand.form.without([operand.side, axis.name])
    if {operand.side, axis.name} & symbols_inside(contraction, rest):
        return False
    for name in (operand.side, axis.name):
        by = operand.form.coefficient(name)
        plain = by is not None and by.symbols <= sizes and all(f > 0 for _, f in by.terms)
        if not plain:
            return False
    for test in tests:
        if not isinstance(test, Compare) or test.op != ">=":
            return False
        across, along = (test.form.coefficient(name) for name in (operand.side, axis.name))
        if across is None or along is None or across.symbols or along.symbols:
            return False
        first = test.form.without([operand.side, axis.name])
        last = first + across * (rows - _ONE) + along * (axis.stop - _ONE)
        if any(form.value is None or form.value < 0 for form in (first, last)):
            return False
    return True


def is_bound(contraction: Contraction, part: Condition) -> bool:
    """Whether a condition is no more than the end of rows or of columns."""
    if not isinstance(part, Compare):
        return False
    if _holds(contraction, part):
        return True
    if contraction.outputs.flat is not None:
        return _whole(contraction, part)
    ends = [contraction.extent(side) - Polynomial.symbol(side) - _ONE for side in (ROW, COLUMN)]
    return part.op == ">=" and contraction.placed(part.form) in ends


def _holds(contraction: Contraction, part: Condition) -> bool:
    """Whether a condition holds for all threads: a rest by a size of the launch is less than it."""
    if not isinstance(part, Compare) or part.op != ">=":
        return False
    table = contraction.kernel.reading.symbols.table
    sized = {name for size in contraction.kernel.launch.grid for name in size.names}
    rests = (table[name] for name in part.form.symbols if table[name].op == "%")
    return any(
        part.form == rest.arguments[1] - Polynomial.symbol(rest.name) - _ONE
        and rest.low == 0 and rest.arguments[1].symbols <= sized
        for rest in rests
    )  # fmt: skip


def _whole(contraction: Contraction, part: Compare) -> bool:
    """Whether a guard bounds the one index of a thread: by the product of rows and columns."""
    out = contraction.outputs
    form = index(part.form, "x", contraction.kernel.block[0] or 1)
    assert out.flat is not None
    bound = out.rows * out.columns - Polynomial.symbol("@x") - _ONE
    return part.op == ">=" and form == bound
