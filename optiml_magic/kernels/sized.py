"""How many blocks an axis without a guard has, by the size of the array that they store to.

A row a block, a head a block: nothing in such a kernel bounds ``blockIdx``, but each block has a
part of an output of its own, and the parts make up the whole array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.parallel import AXES, Names, comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.source.expressions import parse_expression


def blocks_by_size(
    axis: int, accesses: Sequence[Access], symbols: Symbols, names: Names
) -> str | None:
    """The number of blocks along an axis as a directive says it; None where it is not certain.

    Every store must move with the block. Of ``out[(b * rows + r) * cols + c]`` the outermost index
    has ``size(out) / (rows * cols)`` values, the one inside it ``rows``.
    """
    stores = [a for a in accesses if a.mode != "load" and a.space == "global"]
    if not stores or any(_stride(store, axis) is None for store in stores):
        return None
    if any(_counts_threads(access, axis) for access in accesses):
        return None  # how many blocks there are follows from how many threads each has
    store = stores[0]
    index, own = store.index, _stride(store, axis)
    if index is None or own is None or not set(own.symbols) <= set(names.all):
        return None
    block, outer = f"blockIdx.{AXES[axis]}", list[Polynomial]()
    for monomial, factor in index.terms:
        scalars = tuple(name for name in monomial if name in names.all)
        if block in monomial or len(scalars) == len(monomial):
            continue  # itself, or what is the same for all
        beside = Polynomial.of({scalars: abs(factor)})
        if (larger := _is_larger(beside, own)) is None:
            return None
        outer += [beside] if larger else []
    text = expression(own, symbols, names.all)
    if text is None:
        return None
    if not outer:
        whole = f"size({store.array})"
        return whole if str(text) == "1" else str(parse_expression(f"{whole} / ({text})"))
    nearest = min(outer, key=lambda form: (len(form.terms[0][0]), form.terms[0][1]))
    quotient = _quotient(nearest, own)
    inner = expression(quotient, symbols, names.all) if quotient is not None else None
    return str(inner) if inner is not None else None


def _stride(store: Access, axis: int) -> Polynomial | None:
    """By how many elements it moves from one block to the next, one product; or None."""
    if store.index is None:
        return None
    found = store.index.coefficient(f"blockIdx.{AXES[axis]}")
    one_product = found is not None and len(found.terms) == 1 and found.terms[0][1] > 0
    return found if one_product else None


def _counts_threads(access: Access, axis: int) -> bool:
    """Whether its place, or what it stands under, multiplies the block with its threads."""
    forms = [access.index] if access.index is not None else []
    for condition in access.guard:
        forms += [part.form for part in comparisons(condition)]
    block = f"blockIdx.{AXES[axis]}"
    return any(
        block in monomial and any(name.startswith("blockDim") for name in monomial)
        for form in forms
        for monomial, _ in form.terms
    )


def _is_larger(beside: Polynomial, own: Polynomial) -> bool | None:
    """Whether a stride is a multiple of our own; None where neither is of the other."""
    (names, factor), (ours, our_factor) = beside.terms[0], own.terms[0]
    theirs, mine = Counter(names), Counter(ours)
    if theirs == mine:
        return None if factor == our_factor else factor > our_factor
    if mine <= theirs:
        return True
    return False if theirs <= mine else None


def _quotient(form: Polynomial, by: Polynomial) -> Polynomial | None:
    (names, factor), (divisor, number) = form.terms[0], by.terms[0]
    if factor % number:
        return None
    left = Counter(names) - Counter(divisor)
    return Polynomial.of({tuple(sorted(left.elements())): factor // number})
