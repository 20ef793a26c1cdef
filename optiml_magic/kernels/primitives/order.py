"""P4, order: threads numbered along the columns of a grid of outputs, in the place of its rows.

A kernel that takes one index apart, ``i / n`` and ``i % n``, below ``m * n`` has a thread for each
pair; the pairs of ``i % m`` and ``i / m`` are the same ones, and others are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, Name
from optiml_magic.kernels.parallel import comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import axis_of, bare, index, own_text_only, tops
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition, Symbol, every
from optiml_magic.kernels.tree import Declare, If, Variable, walk

_PLACE = Polynomial.symbol("@x")
_ONE = Polynomial.constant(1)
_ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Pairs:
    """An index as a quotient and a rest: by ``columns``, and there are ``rows`` quotients."""

    quotient: Symbol
    rest: Symbol
    columns: Polynomial
    rows: Polynomial


@primitive
def reordered(kernel: Kernel) -> Kernel:
    """The kernel with the quotient of its threads' index as what neighbours differ in."""
    found = pairs(kernel)
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    without_warps(kernel)
    _check_names(kernel, effects, found.rows)
    _check_tests(kernel, found.rows * found.columns)
    spelled = Speller(kernel.reading.symbols, {}).factor(found.rows)
    swaps: dict[Node, Node] = {}
    holding = _holding(kernel, effects)
    for top, test in _tops(kernel):
        _swap(kernel, top, holding, swaps, spelled, test=test)
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def pairs(kernel: Kernel) -> Pairs:
    """How a kernel takes its one index apart; raises NotLegal where it does not."""
    width = kernel.block[0]
    if kernel.block[1:] != (1, 1) or width is None:
        raise NotLegal("its blocks are not one-dimensional")
    table = kernel.reading.symbols.table.values()
    known = {"threadIdx.x", "blockIdx.x"} <= kernel.reading.symbols.table.keys()
    parts = [
        s for s in table
        if known and s.op in ("/", "%") and index(s.arguments[0], "x", width) == _PLACE
    ]  # fmt: skip
    if {s.op for s in parts} != {"/", "%"} or len(parts) != 2:
        raise NotLegal("its index is not one quotient and one rest")
    rest, quotient = sorted(parts, key=lambda s: s.op)
    columns = rest.arguments[1]
    if quotient.arguments[1] != columns:
        raise NotLegal("its index is divided by two sizes")
    counts = {_bound(a.guard, width) for a in kernel.reading.accesses}
    if len(counts) != 1 or None in counts:
        raise NotLegal("how many outputs there are is not said")
    (count,) = counts
    rows = count.over(columns) if count is not None else None
    if rows is None or not rows.terms:
        raise NotLegal("how many outputs there are is not a product of two sizes")
    return Pairs(quotient, rest, columns, rows)


def _bound(guard: tuple[Condition, ...], width: int) -> Polynomial | None:
    """The number that all indices are below."""
    found = set[Polynomial]()
    for part in every(guard).conjuncts():
        form = index(part.form, "x", width) if isinstance(part, Compare) else None
        if form is not None and form.coefficient("@x") == -_ONE:
            found.add(form + _PLACE + _ONE)
    return found.pop() if len(found) == 1 else None


def _check_names(kernel: Kernel, effects: Effects, form: Polynomial) -> None:
    """Raise NotLegal where the names of a form may mean something else in the kernel."""
    body = kernel.function.body
    changed = {v.name for v in effects.changed(body)}
    declared = {v.name for s in walk(body) if isinstance(s, Declare) for v in s.variables}
    for name in form.symbols:
        if name in changed | declared:
            raise NotLegal(f"`{name}` changes in the kernel")


def _check_tests(kernel: Kernel, count: Polynomial) -> None:
    """Raise NotLegal where a test of the index is not whether it is below the number of pairs."""
    inside = count - _PLACE - _ONE
    for guard in kernel.reading.guards:
        for part in comparisons(guard.condition):
            form = index(part.form, "x", kernel.block[0] or 1)
            if form is None or ("@x" in form.symbols and form not in (inside, -inside - _ONE)):
                raise NotLegal(
                    "some of its threads are treated differently from the others", guard.line
                )


def _holding(kernel: Kernel, effects: Effects) -> frozenset[Variable]:
    """The locals that hold the index all along."""
    return frozenset(
        v for v in effects.lasting if v.value is not None and axis_of(kernel, v.value) == "x"
    )


def _tops(kernel: Kernel) -> Iterator[tuple[Expr, bool]]:
    """The outermost expressions, and whether each is the test of a branch."""
    tests = {s.test for s in walk(kernel.function.body) if isinstance(s, If)}
    for top in tops(kernel.function.body):
        yield top, top in tests


def _swap(
    kernel: Kernel, expr: Expr, holding: frozenset[Variable], swaps: dict[Node, Node], rows: str,
    *, test: bool,
) -> None:  # fmt: skip
    """Exchange quotients and rests below an expression; raises NotLegal for other uses."""
    if isinstance(expr, Binary):
        if expr.op in ("/", "%") and _is_index(kernel, expr.left, holding):
            swaps[expr] = Binary(None, "%" if expr.op == "/" else "/", expr.left, text(rows))
            return
        sides = [_is_index(kernel, side, holding) for side in (expr.left, expr.right)]
        if test and expr.op in _ORDERS and sum(sides) == 1:
            return
        test = test and expr.op in ("&&", "||")
    elif test and not expr.parts:
        test = False
    if _is_index(kernel, expr, holding):
        declared = any(expr is v.value for v in holding)
        if not declared:
            raise NotLegal("its index is used as it is", kernel.function.line)
        return
    for part in expr.parts:
        _swap(kernel, part, holding, swaps, rows, test=test)


def _is_index(kernel: Kernel, expr: Expr, holding: frozenset[Variable]) -> bool:
    plain = bare(expr)
    held = isinstance(plain, Name) and plain.variable in holding
    return held or axis_of(kernel, expr) == "x"
