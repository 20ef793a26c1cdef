"""How many threads a launch starts along an axis, as its directive or the kernel's guard says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.block_counts import covered, rounded_up
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import VARYING, Compare, Condition, Symbols
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import (
    Binary,
    Expression,
    Name,
    Node,
    Number,
    parse_expression,
)

_MOST_THREADS = 1024  # of a block, on every chip
_WIDEST = 32  # rows that a border leaves out; ours


def needed(kernel: Kernel, axis: str, *, loads: bool = False) -> Expression | None:
    """The threads along an axis that do something: ``n`` of ``cdiv(n, 256)``.

    None where it is not certain that the kernel's guards keep all beyond from having an effect, or
    where ``loads`` of these count, too, from reading global memory.
    """
    at = "xyz".index(axis)
    width = kernel.block[at]
    if at >= min(len(kernel.launch.grid), len(kernel.launch.block)) or width is None:
        return None
    guards = {
        access.guard: None
        for access in kernel.reading.accesses
        if access.mode != "load" or (loads and access.space == "global")
    }
    for tree in _meant(kernel, axis, at, width):
        form = form_of(tree, kernel.reading.symbols)
        if form is None or not said_alike(kernel, Expression(tree, "").names):
            continue
        if all(below(kernel, guard, axis, width, form) for guard in guards):
            return Expression(tree, str(Expression(tree, "")))
    return None


def _meant(kernel: Kernel, axis: str, at: int, width: int) -> Iterator[Node]:
    """What the blocks along an axis may be meant for: no more than they have threads for."""
    size, block = kernel.launch.grid[at], kernel.launch.block[at].tree
    tree = size.tree
    if width == 1:
        yield tree
        yield from covered(tree, block, width)  # cdiv(n, 1)
        return
    whole = rounded_up(tree, block, width)
    few = [each for each in covered(tree, block, width) if each != whole]
    yield from [*few[:1], *([whole] if whole is not None else []), *few[1:]]
    if not size.names and not size.arrays:
        found = _counted(kernel, axis, width, size.evaluate({}))
        yield from [found] if found is not None else []


def _counted(kernel: Kernel, axis: str, width: int, blocks: int) -> Number | None:
    """The number that a guard keeps threads below, of a launch of so many blocks for just that."""
    for access in kernel.reading.accesses:
        for part in (p for c in access.guard if access.mode != "load" for p in c.conjuncts()):
            left = room(axis, width, Polynomial.constant(0))
            bound = (part.form - left).value if isinstance(part, Compare) else None
            if bound is not None and (bound + width - 1) // width == blocks:
                return Number(bound)
    return None


def launched(kernel: Kernel, axis: str) -> Expression | None:
    """All threads along an axis, also those that do nothing: ``(n + 255) / 256 * 256``."""
    at = "xyz".index(axis)
    width = kernel.block[at]
    if at >= min(len(kernel.launch.grid), len(kernel.launch.block)) or width is None:
        return None
    tree = rounded_up(kernel.launch.grid[at].tree, kernel.launch.block[at].tree, width)
    if tree is None or form_of(tree) is None:
        return None
    whole = Expression(tree, "")
    if not said_alike(kernel, whole.names):
        return None
    return parse_expression(f"({whole} + {width - 1}) / {width} * {width}")


def said_alike(kernel: Kernel, names: Iterable[str]) -> bool:
    """Whether these mean the same in the launch and in the kernel."""
    given, parameters = kernel.launch.args, [p.name for p in kernel.function.parameters]
    if given is None:
        return True
    passed = {p: a.name for p, a in zip(parameters, given, strict=False)}
    return all(name in kernel.program.values or passed.get(name) == name for name in names)


def sizes_of(kernel: Kernel, count: Polynomial) -> frozenset[str]:
    """The names in how many there are of something, also of what a part of a size is made of."""
    table = kernel.reading.symbols.table
    known = [name for name in count.symbols if name in table]
    inside = kernel.reading.symbols.inside(Polynomial.of({(name,): 1 for name in known}))
    parts = {name for name in inside if table[name].op in ("/", ">>")}
    return (count.symbols | inside) - parts


def said(kernel: Kernel, count: Polynomial) -> str:
    """How many there are of something, in words for the kernel and for its launch."""
    if count.symbols.isdisjoint(kernel.reading.symbols.table):
        return str(count)
    return Speller(kernel.reading.symbols, {}).form(count)


def filled(kernel: Kernel, guards: Iterable[tuple[Condition, ...]], width: str) -> RequireDirective:
    """Ask for as many threads along x as fill blocks of ``width`` threads, a text.

    Raises NotLegal where threads of such blocks could part, by what guards one of these places.
    """
    whole = needed(kernel, "x")
    bound = form_of(whole.tree, kernel.reading.symbols) if whole is not None else None
    if whole is None or bound is None or kernel.block[1:] != (1, 1):
        raise NotLegal("how many threads work is not known", kernel.function.line)
    within = room("x", kernel.block[0] or 1, bound)
    for condition in (part for guard in guards for one in guard for part in one.conjuncts()):
        own = isinstance(condition, Compare) and condition.op == ">=" and condition.form == within
        # Along y and z the block has one thread.
        if not own and (condition.depends - {"threadIdx.y", "threadIdx.z"}) & VARYING:
            raise NotLegal("threads of a block part before they wait", kernel.function.line)
    number = str(whole) if str(whole).isidentifier() else f"({whole})"
    return RequireDirective(parse_expression(f"{number} % ({width}) == 0"))


def needed_form(kernel: Kernel, axis: str) -> Polynomial | None:
    """The same as a form over the kernel's parameters."""
    found = needed(kernel, axis)
    return form_of(found.tree, kernel.reading.symbols) if found is not None else None


def below(
    kernel: Kernel, guard: tuple[Condition, ...], axis: str, width: int, bound: Polynomial
) -> bool:
    """Whether a guard keeps the index of a thread along an axis below a bound."""
    known = kernel.reading.symbols.table
    if f"threadIdx.{axis}" not in known or f"blockIdx.{axis}" not in known:
        return False
    if any(name not in known for name in bound.symbols):
        return False
    left = room(axis, width, bound)
    symbols = kernel.reading.symbols
    plain = any(
        isinstance(part, Compare) and part.op == ">=" and _tells(part.form, left, symbols)
        for condition in guard for part in condition.conjuncts()
    )  # fmt: skip
    return plain or Ranges(guard, kernel.reading.symbols).nonnegative(left)


def _tells(form: Polynomial, left: Polynomial, symbols: Symbols) -> bool:
    """Whether what is not negative within a guard says that ``left`` is not negative.

    Of rows, whole ones may be missing: ``h - 2 - i / w`` says so of ``h * w - 1 - i``.
    """
    whole = raised(form, symbols)
    if left in (form, whole, each(form, left, symbols)):
        return True
    sizes = [s.arguments[1] for n in form.symbols if (s := symbols.table.get(n)) and s.op == "/"]
    return any(
        left - whole == size * Polynomial.constant(rows)
        for size in sizes for rows in range(1, _WIDEST + 1)
    )  # fmt: skip


def each(form: Polynomial, left: Polynomial, symbols: Symbols) -> Polynomial:
    """``n - 1 - 3 * i`` as ``(n + 2) / 3 - 1 - i``, where ``left`` has such a quotient."""
    for name in left.symbols & symbols.table.keys():
        symbol = symbols[name]
        by = symbol.arguments[1] if symbol.op == "/" else Polynomial()
        if by.value and by.value > 0 and left.coefficient(name) == Polynomial.constant(1):
            items = left.without([name])  # -1 - i
            if symbol.arguments[0] + by * items == form:
                return left
    return form


def raised(form: Polynomial, symbols: Symbols) -> Polynomial:
    """``h - 1 - i / w`` as ``h * w - 1 - i``: neither is negative where the other is not.

    That is so for indices that are not negative, divided by sizes of at least 1.
    """
    for name in form.symbols:
        symbol = symbols.table.get(name)
        by = form.coefficient(name)
        if symbol is not None and symbol.op == "/" and by is not None and by.value == -1:
            top, size = symbol.arguments
            return (
                size * (form.without([name]) + Polynomial.constant(1))
                - Polynomial.constant(1)
                - top
            )
    return form


def room(axis: str, width: int, bound: Polynomial) -> Polynomial:
    """How many are left behind a thread's index along an axis: not negative within the bound."""
    thread = Polynomial.symbol(f"threadIdx.{axis}")
    block = Polynomial.symbol(f"blockIdx.{axis}") * Polynomial.constant(width)
    return bound - thread - block - Polynomial.constant(1)


def most_threads(kernel: Kernel) -> int:
    """The threads that a block may have, as far as the kernel itself says."""
    bounds = kernel.function.launch_bounds
    if bounds is None:
        return _MOST_THREADS
    if not bounds.isdigit():
        raise NotLegal("for how many threads a block it is compiled is not a number")
    return int(bounds)


def form_of(node: Node, symbols: Symbols | None = None) -> Polynomial | None:
    """Sums and products of names as a form; quotients too, of what ``symbols`` has."""
    match node:
        case Number(value=value):
            return Polynomial.constant(value)
        case Name(name=name):
            return Polynomial.symbol(name)
        case Binary(op=op, left=left, right=right) if op in "+-*":
            sides = form_of(left, symbols), form_of(right, symbols)
            if sides[0] is None or sides[1] is None:
                return None
            if op == "*":
                return sides[0] * sides[1]
            return sides[0] + sides[1] if op == "+" else sides[0] - sides[1]
        case Binary(op="/" | ">>" as op, left=left, right=right) if symbols is not None:
            above, below = form_of(left, symbols), form_of(right, symbols)
            if (
                above is None
                or below is None
                or not above.symbols | below.symbols <= {*symbols.table}
            ):
                return None
            exact = above.divided(below.value) if below.value and op == "/" else None
            return exact if exact is not None else Operations(symbols).operation(
                op, (above, below)
            )  # fmt: skip
    return None
