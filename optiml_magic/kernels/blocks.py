"""The number of threads that a kernel's indices, loops and shared arrays ask for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from optiml_magic.errors import SourceError
from optiml_magic.kernels.independence import dependence, part_of_block, unmet
from optiml_magic.kernels.parallel import AXES, Bound, Names, comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Reading
from optiml_magic.kernels.sharing import SharedArrays
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.kernels.unit import Unit
from optiml_magic.kernels.widths import width_text, widths
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.values import constants

DEFAULTS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}
_MAX_THREADS = 1024


class BlockSizes:
    """``fixed`` has the sizes that the code fixes, as text; the others are free to choose."""

    def __init__(
        self, unit: Unit, reading: Reading, names: Names, used: Collection[int],
        error: Callable[[str], SourceError],
    ) -> None:  # fmt: skip
        self.unit = unit
        self.reading = reading
        self.symbols: Symbols = reading.symbols
        self.names = names
        self.used = frozenset(used)
        self.error = error
        self.fixed: dict[int, str] = {}
        self._narrowed: set[int] = set()

    # -- what the code fixes

    def fix(self) -> None:
        """The sizes that strides ask for, and one thread where no thread knows its place."""
        known = {n for n in self.symbols.table if n.startswith(("threadIdx", "blockDim"))}
        for axis in self.used - {AXES.index(name[-1]) for name in known}:
            self.fixed[axis] = "1"  # more threads would only repeat what one does
        blocks = [f"blockIdx.{axis}" for axis in AXES]
        for form in self._forms():
            self._agree(widths(form, blocks, self.symbols, self.names))
        for loop in self.reading.axes:
            if loop.start is None or loop.step is None:
                continue
            form = loop.start + loop.step * Polynomial.symbol(loop.name)
            if not any(name.startswith("blockIdx") for name in form.symbols):
                self._agree(widths(form, [loop.name], self.symbols, self.names))

    def _forms(self) -> Iterator[Polynomial]:
        for access in self.reading.accesses:
            single = any(part_of_block(access, axis) for axis in range(3))
            for condition in access.guard:
                for compare in comparisons(condition):
                    yield compare.form
            if access.index is not None and access.space == "global" and not single:
                yield access.index

    def _agree(self, found: Mapping[int, tuple[Polynomial, bool]]) -> None:
        for axis, (width, narrowed) in found.items():
            text = width_text(width)
            known = self.fixed.setdefault(axis, text)
            if known == text:
                continue
            # A loop over a part of each tile says more than the tile does.
            sizes = [int(t) for t in (known, text) if t.isdigit()]
            whole = len(sizes) == 2 and max(sizes) % min(sizes) == 0
            if whole and (axis in self._narrowed or narrowed):
                self.fixed[axis] = str(min(sizes))
                self._narrowed.add(axis)
                continue
            raise self.error(
                f"its strides ask for {known} and for {text} threads along {AXES[axis]}"
            )

    # -- what is chosen

    def chosen(self, leading: Mapping[int, Bound]) -> tuple[Expression, ...]:
        """Fixed sizes as they are, the others by default, within the kernel's launch bounds."""
        rank = max(self.used) + 1
        self._fit_shared()
        for axis in sorted(self.used - self.fixed.keys()):
            self._refuse(dependence(self.reading, axis, leading.values()))
        texts = [self.fixed.get(axis, str(DEFAULTS[rank][axis])) for axis in range(rank)]
        limit, count = self._limit(), 1
        for text in texts:
            try:
                count *= parse_expression(text).evaluate({})
            except SourceError:  # a tuned name: what its values make of it is checked at launch
                if limit < _MAX_THREADS:
                    raise self.error("its launch bounds and its tuned block may differ") from None
                count = 1
                break
        if count > limit and not self.fixed and rank == 1 and limit >= 32:
            texts = [str(limit // 32 * 32)]
        elif not 1 <= count <= limit:
            raise self.error(f"a block of {' x '.join(texts)} is beyond its {limit} threads")
        self._refuse(unmet(self.reading, texts))
        return tuple(map(parse_expression, texts))

    def _fit_shared(self) -> None:
        """Shared arrays that threads index directly fix the block; others must fit it."""
        wanted = SharedArrays(self.reading, self.names, self.error).wanted(self.fixed)
        self.fixed |= wanted
        sizes = {f"blockDim.{AXES[axis]}": int(t) for axis, t in self.fixed.items() if t.isdigit()}
        function = self.reading.function
        reading = read(self.unit, function, tuned=self.names.tuned, fixed=sizes)
        SharedArrays(reading, self.names, self.error).check(self.fixed, wanted, self.used)

    def _refuse(self, reason: str) -> None:
        if reason:
            raise self.error(reason)

    def _limit(self) -> int:
        bounds = self.reading.function.launch_bounds
        if bounds is None:
            return _MAX_THREADS
        try:
            limit = parse_expression(bounds).evaluate(constants(self.unit.syntax))
        except SourceError:
            raise self.error("its launch bounds are not a number") from None
        return min(limit, _MAX_THREADS)

    def stride(self, form: Polynomial, block: list[str]) -> str:
        """What a product of block sizes is where these are chosen."""
        monomial, factor = form.terms[0]
        parts = []
        for name in monomial:
            symbol = self.symbols[name]
            if name.startswith("blockDim"):
                parts.append(block[AXES.index(name[-1])])
            elif symbol.op == "/":
                above, below = symbol.arguments
                parts.append(f"({self.stride(above, block)}) / ({self.stride(below, block)})")
            else:
                parts.append(name)
        numbers = [p for p in parts if p.isdigit()]
        for number in numbers:
            factor *= int(number)
        rest = [f"({p})" for p in parts if not p.isdigit()]
        first = [str(factor)] if factor != 1 or not rest else []
        text = " * ".join([*rest, *first])
        try:
            return str(parse_expression(text).evaluate({}))
        except SourceError:
            return str(parse_expression(text))
