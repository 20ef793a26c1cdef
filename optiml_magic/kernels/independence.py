"""Whether what a kernel does depends on how many threads a block has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from optiml_magic.kernels.expressions import Expr, Index, Name, builtin
from optiml_magic.kernels.parallel import AXES, Bound, comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.symbols import Compare, Condition, Symbol, Symbols

_DEEPEST = 20
_WARP = 32


def dependence(reading: Reading, axis: int, leading: Iterable[Bound]) -> str:
    """Why a free number of threads along an axis changes what is done; empty where it does not.

    ``leading`` are what bounds the grid.
    """
    thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
    symbols = reading.symbols
    beginning = [b for b in leading if size in symbols.inside(b.stride)]
    blocks = frozenset(f"blockIdx.{AXES[bound.axis]}" for bound in beginning)
    counted = any(axis in bound.threads for bound in beginning)
    for access in reading.accesses:
        if access.space != "global":
            continue
        store = access.mode != "load"
        index = access.index
        inside = symbols.inside(index) if index is not None else frozenset[str]()
        if _by_some(access, axis, inside) and not inside & blocks:
            continue
        stepped = any(
            isinstance(part, Compare)
            and thread in part.form.symbols
            and block_free(part.form, axis, blocks, symbols)
            for condition in access.guard
            for part in condition.conjuncts()
        )
        free = index is None or block_free(index, axis, blocks, symbols)
        if not free or (store and not counted and not stepped):
            return (
                f"the number of threads along {AXES[axis]} that the "
                f"{'store' if store else 'load'} on line {access.line} asks for is not known"
            )
        mentioned = _mentioned(access.value) if access.value is not None else frozenset[str]()
        mentioned &= {thread, size, *blocks}
        if blocks and mentioned and mentioned != {thread, size, *blocks}:
            return f"what line {access.line} stores depends on how many threads a block has"
    if counted and any(a.space == "shared" and a.mode == "atomic" for a in reading.accesses):
        return "what the threads of a block share depends on how many there are"
    return ""


def block_free(form: Polynomial, axis: int, blocks: Collection[str], symbols: Symbols) -> bool:
    """Whether a form says the same however many whole warps a block has along an axis.

    ``blocks`` are those that begin where the threads of that axis end: they, too, must count in
    whole blocks.
    """
    thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
    roles = {thread: "thread", size: "size", **dict.fromkeys(blocks, "block")}
    for name in form.symbols - roles.keys():
        symbol = symbols[name]
        role = _of_warps(symbol, thread, size) if axis == 0 else ""
        if role:
            roles[name] = role
            continue
        arguments = [*symbol.arguments]
        if symbol.condition is not None:
            arguments += [c.form for c in comparisons(symbol.condition)]
        if any(not block_free(argument, axis, blocks, symbols) for argument in arguments):
            return False
    played = {roles.get(name) for name in form.symbols} - {None, "lane"}
    if not played:
        return True
    counted = False
    for monomial, _ in form.terms:
        own = {roles.get(name) for name in monomial}
        if "size" in own:
            if not own & {"thread", "block"} and not any(
                symbols[n].kind == "counter" or n.startswith("threadIdx") for n in monomial
            ):
                return False
            counted = counted or "thread" not in own
        elif "block" in own:
            return False
    return counted and "thread" in played


def _of_warps(symbol: Symbol, thread: str, size: str) -> str:
    """What ``threadIdx.x % 32``, ``threadIdx.x / 32`` and ``blockDim.x / 32`` are."""
    if symbol.op not in ("/", "%"):
        return ""
    above, below = symbol.arguments
    if below.value is None or below.value < 1 or _WARP % below.value:
        return ""
    if above == Polynomial.symbol(thread):
        return "lane" if symbol.op == "%" else "thread"
    return "size" if above == Polynomial.symbol(size) and symbol.op == "/" else ""


def _by_some(access: Access, axis: int, inside: frozenset[str]) -> bool:
    """Whether certain threads along an axis make an access, whatever a block has beside them."""
    thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
    parts = [part for condition in access.guard for part in condition.conjuncts()]
    compares = [p for p in parts if isinstance(p, Compare) and thread in p.form.symbols]
    return any(
        (compare.op == "==" and compare.form.symbols <= {thread, size})
        or (compare.op == ">=" and threshold(compare, axis) is not None and size not in inside)
        for compare in compares
    )


def threshold(compare: Compare, axis: int) -> int | None:
    """The number of the first thread on the other side of a comparison with a number."""
    thread = f"threadIdx.{AXES[axis]}"
    if compare.form.symbols != {thread}:
        return None
    slope, rest = compare.form.coefficient(thread), compare.form.without([thread]).value
    if slope is None or not slope.value or rest is None:
        return None
    if compare.op == ">=":
        return rest // -slope.value + 1 if slope.value < 0 else -(rest // slope.value)
    return -rest // slope.value + 1


def part_of_block(access: Access, axis: int) -> bool:
    """Whether an access is made by a part of the threads along an axis that is a number."""
    return any(
        threshold(compare, axis) is not None
        for condition in access.guard
        for compare in comparisons(condition)
    )


def unmet(reading: Reading, block: Sequence[str]) -> str:
    """The comparison that asks for more threads than ``block`` has; empty where none does.

    A kernel that asks whether a thread is below 14 has more than 14 of them.
    """
    for condition in _conditions(reading):
        for compare in comparisons(condition):
            for axis, text in enumerate(block):
                least = threshold(compare, axis) if text.isdigit() else None
                spare = compare.op == ">="  # there are threads on both sides
                if least is not None and least > 0 and int(text) < least + spare:
                    return (
                        f"it compares threadIdx.{AXES[axis]} with {least}, which asks for more "
                        f"threads than {text}"
                    )
    return ""


def _conditions(reading: Reading) -> Iterator[Condition]:
    for guard in reading.guards:
        yield guard.condition
    for access in reading.accesses:
        yield from access.guard


def _mentioned(expression: Expr, depth: int = 0) -> frozenset[str]:
    """The built-in variables that a value is computed from, those in subscripts aside."""
    name = builtin(expression)
    if name or depth > _DEEPEST or isinstance(expression, Index):
        return frozenset({name} if name else ())
    parts = list(expression.parts)
    if isinstance(expression, Name) and expression.variable is not None:
        value = expression.variable.value
        parts += [value] if value is not None and not expression.variable.array else []
    return frozenset[str]().union(*(_mentioned(part, depth + 1) for part in parts))
