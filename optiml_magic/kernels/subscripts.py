"""A linear index as one digit a dimension: ``(y * w + x) * 3 + c`` as ``[y][x][c]``.

The index is divided by its strides, largest first. A digit that some condition keeps below its
extent is proved; then equal digits mean equal elements, and rows and columns are known at once.
Source of the idea: Grosser et al., "Optimistic Delinearization of Parametrically Sized Arrays",
ICS 2015.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise

from optiml_magic.kernels.polynomial import Monomial, Polynomial
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Compare, Condition, Symbols

_ONE = Polynomial.constant(1)
_Stride = tuple[Monomial, int]


@dataclass(frozen=True)
class Subscript:
    """``digits`` from the outermost dimension; ``extents`` of all but that one.

    ``proved`` says that every digit but the first is certainly within its extent; ``bounded`` that
    it is not negative and below something that does not move, such as the ``k`` of a row that is
    ``lda`` apart from the next; ``written`` that the text has these digits.
    """

    digits: tuple[Polynomial, ...]
    extents: tuple[Polynomial, ...]
    proved: bool
    written: bool = False
    bounded: bool = True

    @property
    def linear(self) -> Polynomial:
        """The index that the digits make."""
        index = self.digits[0]
        for digit, extent in zip(self.digits[1:], self.extents, strict=True):
            index = index * extent + digit
        return index

    def __str__(self) -> str:
        return "".join(f"[{digit}]" for digit in self.digits)


def delinearised(index: Polynomial, given: Iterable[Condition], symbols: Symbols) -> Subscript:
    """The digits of ``index``; a single one where nothing proves that there are more."""
    given = tuple(given)
    ranges = Ranges(given, symbols)
    best = Subscript((index,), (), proved=True)
    strides, possible = _strides(index, symbols)
    # The finest cut first: what it does not prove, fewer strides may.
    for chain in [*_chains(possible), *(_chains(strides) if strides != possible else [])]:
        found = _cut(index, chain)
        if found is None:
            continue
        digits, extents = found
        pairs = zip(digits[1:], extents, strict=True)
        # The first of a row is in it: where a row has no elements, nothing is accessed.
        if all(not digit.terms or ranges.within(digit, extent) for digit, extent in pairs):
            return Subscript(digits, extents, proved=True)
    if strides and strides[0][0]:  # sizes tell of rows where numbers alone do not
        found = _cut(index, _chains(strides)[0])
        if found is not None:
            sized = Ranges(given, symbols, sizes=True)
            bounded = all(sized.bounded(digit) for digit in found[0][1:])
            return Subscript(*found, proved=False, bounded=bounded)
    return _numbered(index, given, ranges) or best


def _numbered(index: Polynomial, given: Iterable[Condition], ranges: Ranges) -> Subscript | None:
    """Row and column of a matrix that a number says the width of: ``49 * i + k`` as ``[i][i + k]``.

    It is as wide as a condition keeps the column below.
    """
    forms = (part.form for c in given for part in c.conjuncts() if isinstance(part, Compare))
    widths = {form.number + 1 for form in forms if form.number > 0 and len(form.terms) > 1}
    for width in sorted(widths, reverse=True):
        found, extent = _cut_by_number(index, width), _whole(width)
        parts = found is not None and all(digit.terms for digit in found)
        if found is not None and parts and ranges.within(found[1], extent):
            return Subscript(found, (extent,), proved=True)
    return None


def _cut_by_number(index: Polynomial, width: int) -> tuple[Polynomial, Polynomial] | None:
    """The nearest number of rows in what each symbol moves an index by, and what is left."""
    terms = dict(index.terms)
    rows, left = dict[Monomial, int](), dict[Monomial, int]()
    for monomial, factor in terms.items():
        own = tuple(name for name in monomial if not name.startswith("blockDim"))
        if len(own) > 1:
            return None
        many, each = 1, factor
        thread = terms.get(tuple(name.replace("blockIdx", "threadIdx") for name in own), 0)
        if thread and factor % thread == 0:  # a block moves it by as much as all of its threads
            many, each = factor // thread, thread
        rows[monomial] = (each + (width - 1) // 2) // width
        left[monomial] = many * (each - rows[monomial] * width)
        rows[monomial] *= many
    return Polynomial.of(rows), Polynomial.of(left)


def as_written(
    digits: tuple[Polynomial, ...], extents: tuple[Polynomial, ...], given: Iterable[Condition],
    symbols: Symbols,
) -> Subscript:  # fmt: skip
    """The digits that the text itself gives, of an array of arrays."""
    ranges = Ranges(given, symbols)
    pairs = zip(digits[1:], extents, strict=True)
    proved = all(ranges.within(digit, extent) for digit, extent in pairs)
    return Subscript(digits, extents, proved, written=True)


def in_extents(
    index: Polynomial, extents: tuple[Polynomial, ...], given: Iterable[Condition],
    symbols: Symbols,
) -> tuple[Polynomial, ...] | None:  # fmt: skip
    """The digits of an index in an array of these inner extents; None where they are not certain.

    One that counts from the end of its row, ``(row + 1) * w - 1``, borrows from the one before it.
    """
    strides = [*accumulate(reversed(extents), operator.mul)]
    if any(len(stride.terms) != 1 for stride in strides):
        return None
    found = _cut(index, [stride.terms[0] for stride in reversed(strides)])
    if found is None:
        return None
    digits = [*found[0]]
    # Where a row has no elements, nothing is accessed.
    rows = [Compare(">=", extent - _ONE, frozenset()) for extent in extents]
    ranges = Ranges((*given, *rows), symbols)
    for at in range(len(extents), 0, -1):
        extent, digit = extents[at - 1], digits[at]
        over = next(
            (n for n in (0, 1, -1) if ranges.within(digit + extent * _whole(n), extent)), None
        )
        if over is None:
            return None
        digits[at], digits[at - 1] = digit + extent * _whole(over), digits[at - 1] - _whole(over)
    return tuple(digits)


def _whole(number: int) -> Polynomial:
    return Polynomial.constant(number)


def _strides(index: Polynomial, symbols: Symbols) -> tuple[list[_Stride], list[_Stride]]:
    """What moves are multiplied with, largest first: sizes, and the integers before them.

    The second list has those as well that may be the width of a block, or that of a row.
    """
    found: set[_Stride] = set()
    blocks: list[tuple[str, Monomial]] = []
    threads: set[tuple[str, Monomial]] = set()
    for monomial, factor in index.terms:
        sizes = tuple(name for name in monomial if symbols[name].kind in ("scalar", "final"))
        moves = [name for name in monomial if name not in sizes]
        widths = [n for n in moves if n.startswith("blockDim")]
        if not moves or (len(moves) > len(widths) + 1 and not widths):
            continue
        block = next((n[-1] for n in moves if n.startswith("blockIdx")), "")
        if block:
            blocks.append((block, sizes))
        elif all(name.startswith("threadIdx") for name in moves):
            if sizes:  # the threads of a block are one index, in however many directions
                found.add((sizes, 1))
        elif sizes or abs(factor) > 1:
            found.add((sizes, abs(factor)))
        threads |= {(n[-1], sizes) for n in moves if n.startswith("threadIdx")}
    doubtful: set[_Stride] = set()
    for axis, sizes in blocks:
        # A block begins its threads: with theirs it is one index, whatever a block's width is.
        apart = {s for at, s in threads if at == axis and len(s) == len(sizes) - 1}
        if not sizes or (sizes, 1) in found:
            continue
        if () in apart:
            doubtful.add((sizes, 1))
        elif not any(set(s) < set(sizes) for s in apart):
            found.add((sizes, 1))
    return sorted(found, key=_largest_first), sorted(found | doubtful, key=_largest_first)


def _largest_first(stride: _Stride) -> tuple[int, int, Monomial]:
    return -len(stride[0]), -stride[1], stride[0]


def _chains(strides: list[_Stride]) -> list[list[_Stride]]:
    """Sets of strides to try, of which each divides the one before."""
    chain: list[_Stride] = []
    for stride in strides:
        if not chain or _divides(stride, chain[-1]):
            chain.append(stride)
    found = [chain] if chain else []
    sized = [s for s in chain if s[0]]
    if sized and sized != chain:
        found.append(sized)
    found += [[s] for s in chain if len(chain) > 1]
    return found


def _divides(small: _Stride, large: _Stride) -> bool:
    rest = list(large[0])
    for name in small[0]:
        if name not in rest:
            return False
        rest.remove(name)
    return large[1] % small[1] == 0 and small != large


def _cut(
    index: Polynomial, chain: list[_Stride]
) -> tuple[tuple[Polynomial, ...], tuple[Polynomial, ...]] | None:
    """The quotients by each stride in turn, and how many of each make one of the larger."""
    digits: list[Polynomial] = []
    rest = index
    for sizes, factor in chain:
        digit: dict[Monomial, int] = {}
        for monomial, times in rest.terms:
            over = list(monomial)
            inside = all(name in over and not over.remove(name) for name in sizes)  # type: ignore[func-returns-value]
            if inside and times % factor == 0:
                digit[tuple(over)] = times // factor
        quotient = Polynomial.of(digit)
        stride = Polynomial.of({sizes: factor})
        rest = rest - quotient * stride
        digits.append(quotient)
    digits.append(rest)
    sizes_of = [*chain, ((), 1)]
    extents = []
    for large, small in pairwise(sizes_of):
        over = list(large[0])
        for name in small[0]:
            over.remove(name)
        extents.append(Polynomial.of({tuple(over): large[1] // small[1]}))
    return tuple(digits), tuple(extents)
