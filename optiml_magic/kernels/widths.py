"""How many threads along each axis of a block an index counts on.

An index such as ``blockIdx.x * 256 + threadIdx.x`` is a number in mixed radix: a thread's digit
counts up to the next larger stride.
"""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.kernels.parallel import AXES, Names
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)


def widths(
    form: Polynomial, anchors: Collection[str], symbols: Symbols, names: Names
) -> dict[int, tuple[Polynomial, bool]]:
    """How many threads along each axis of the block an index counts on, where it says so.

    ``anchors`` are the symbols that begin where the threads end: blocks, or rounds of a loop. With
    each comes whether a loop in between narrowed it down.
    """
    found: dict[int, tuple[Polynomial, bool]] = {}
    larger = [(name, c) for name in form.symbols if (c := form.coefficient(name)) and c.terms]
    for name, own in larger:
        axis, over = _thread(name, symbols)
        if axis is None or len(own.terms) != 1:
            continue
        ratios = []
        for other, stride in larger:
            moves = other in anchors or symbols[other].kind == "counter" or (
                _thread(other, symbols)[0] not in (None, axis))  # fmt: skip
            ratio = _ratio(stride, own) if moves and other != name else None
            if ratio is not None and ratio != _ONE and ratio.symbols <= set(names.tuned):
                ratios.append((ratio, other not in anchors))
        if not any(not narrowed for _, narrowed in ratios):
            continue
        for ratio, inner in ratios:
            if all(_ratio(r, ratio) is not None for r, _ in ratios):
                narrowed = inner and any(r != ratio for r, _ in ratios)
                found[axis] = (ratio * Polynomial.constant(over), narrowed)
                break
    return found


def _thread(name: str, symbols: Symbols) -> tuple[int | None, int]:
    """The axis of ``threadIdx.x`` and of ``threadIdx.x / 32``, and by what it is divided."""
    if name.startswith("threadIdx"):
        return AXES.index(name[-1]), 1
    symbol = symbols[name]
    if symbol.op == "/":
        above, below = symbol.arguments
        if len(above.symbols) == 1 and below.value is not None:
            (inner,) = above.symbols
            if inner.startswith("threadIdx") and above == Polynomial.symbol(inner):
                return AXES.index(inner[-1]), below.value
    return None, 1


def _ratio(large: Polynomial, small: Polynomial) -> Polynomial | None:
    """The quotient of a product by another, where none of it is left over."""
    if len(large.terms) != 1 or len(small.terms) != 1:
        return None
    (above, times), (below, by) = large.terms[0], small.terms[0]
    rest = list(above)
    for name in below:
        if name not in rest:
            return None
        rest.remove(name)
    quotient, left = divmod(times, by)
    return None if left or quotient < 1 else Polynomial.of({tuple(rest): quotient})


def width_text(width: Polynomial) -> str:
    """A number of threads, one product, in the grammar of directives."""
    monomial, factor = width.terms[0] if width.terms else ((), 0)
    parts = [str(factor)] if factor != 1 or not monomial else []
    return str(parse_expression(" * ".join([*monomial, *parts])))
