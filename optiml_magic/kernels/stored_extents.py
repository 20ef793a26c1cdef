"""How many elements an array has, by the furthest that the stores of a launch reach.

An index is bounded by adding guards, which are not negative, until nothing that moves is left:
``col * rows + row`` under ``cols - 1 - col`` and ``rows - 1 - row`` is below ``cols * rows``. What
is not bounded so is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.parallel import AXES, comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.ranges import holds
from optiml_magic.kernels.read import read
from optiml_magic.kernels.symbols import Compare, Untold
from optiml_magic.source.expressions import Expression, parse_expression

if TYPE_CHECKING:
    from optiml_magic.kernels.reading import Access, Reading
    from optiml_magic.kernels.tree import Function
    from optiml_magic.kernels.unit import Unit
    from optiml_magic.source.directives import LaunchDirective

_ONE = Polynomial.constant(1)
_DEEPEST = 6  # guards that are added; ours
_MOST_STEPS = 300  # of a search for them; ours
_GRID = {f"gridDim.{axis}": f"grid_extent_{axis}" for axis in AXES}


def stored_extent(
    unit: Unit, function: Function, template: Sequence[str], launch: LaunchDirective, array: str
) -> Expression | None:
    """The elements up to the last that a launch may store to ``array``, in its scalars.

    None where an index is not followed, nothing bounds it, or the first elements are left out. It
    may be more than what is written: whether every element is, a run tells.
    """
    blocks = [(f"blockDim.{a}", b.text) for a, b in zip(AXES, launch.block, strict=False)]
    fixed = {name: int(text) for name, text in blocks if text.isdigit()}
    fixed |= {f"blockDim.{axis}": 1 for axis in AXES[len(launch.block) :]}
    reading = read(unit, function, template, fixed=fixed)
    if array in reading.unclear:
        return None
    stores = [a for a in reading.of(array) if a.mode != "load"]
    if all(_is_past_the_first(store, reading) for store in stores):
        return None  # what nobody stores at the front, nobody stores at the end either: a border
    found = dict.fromkeys(_extent(store, reading, launch) for store in stores)
    if not found or None in found:
        return None
    texts = [str(e) for e in found if e is not None]
    varying = [text for text in texts if not text.isdigit()]
    whole = max((int(text) for text in texts if text.isdigit()), default=1)
    parts = [*varying, *([str(whole)] if whole > 1 or not varying else [])]
    text = parts[0]
    for part in parts[1:]:
        text = f"max({text}, {part})"
    return _parsed(text)


def is_no_index(unit: Unit, function: Function, template: Sequence[str], array: str) -> bool:
    """Whether what an array holds certainly decides no place in memory and no end of a loop."""
    reading = read(unit, function, template)
    if array in reading.unclear:
        return False
    forms = [a.index if a.index is not None else a.offset for a in reading.accesses]
    for axis in reading.axes:
        if any(isinstance(part, Untold) for part in axis.test.conjuncts()):
            return False
        forms += [form for form in (axis.start, axis.step) if form is not None]
        forms += [compare.form for compare in comparisons(axis.test)]
    symbols = reading.symbols
    return all(
        form is not None
        and symbols.known(form)
        and all(symbols[name].array != array for name in symbols.inside(form))
        for form in forms
    )


def _extent(store: Access, reading: Reading, launch: LaunchDirective) -> Expression | None:
    own = reading.arrays[store.array].element.size or 0
    taken = store.element.size or 0
    index, several = store.index, 1
    if taken != own or index is None:
        index = store.offset.divided(own) if store.offset is not None and own else None
        several = -(-taken // own) if own else 1
    if index is None or not reading.symbols.known(index):
        return None
    scalars = [
        p.name for p in reading.function.parameters
        if p.name in reading.symbols.table and reading.symbols[p.name].kind == "scalar"
    ]  # fmt: skip
    names = (*scalars, *_GRID.values())
    facts = [*_guards(store), *_of_the_launch(index, store, reading)]
    search = _Search(facts, reading, names)
    found = search.top(index + Polynomial.constant(several))
    return None if found is None else _with_grid(found, launch)


def _is_past_the_first(store: Access, reading: Reading) -> bool:
    index = store.index
    return index is not None and holds(index - _ONE, store.guard, reading.symbols)


def _guards(store: Access) -> Iterator[Polynomial]:
    for condition in store.guard:
        for part in condition.conjuncts():
            if isinstance(part, Compare) and part.op in (">=", "=="):
                yield part.form
                if part.op == "==":
                    yield -part.form


def _of_the_launch(index: Polynomial, store: Access, reading: Reading) -> Iterator[Polynomial]:
    """What holds of the symbols of a place by construction, where no guard says less."""
    names = {*index.symbols}.union(*(form.symbols for form in _guards(store)))
    for name in sorted(names):
        symbol = reading.symbols[name]
        own = Polynomial.symbol(name)
        if name.startswith("blockIdx"):
            extent = _GRID[f"gridDim{name[-2:]}"]
            yield Polynomial.symbol(extent) - own - _ONE
        elif symbol.high is not None:
            yield Polynomial.constant(symbol.high) - own
        if symbol.op == "%":
            yield symbol.arguments[1] - own - _ONE


class _Search:
    """What a form is at most, in ``names`` alone, where none of the facts is negative."""

    def __init__(self, facts: Sequence[Polynomial], reading: Reading, names: Sequence[str]) -> None:
        self.facts, self.symbols, self.names = facts, reading.symbols, names
        self.left = _MOST_STEPS

    def top(self, form: Polynomial) -> Expression | None:
        for depth in range(_DEEPEST + 1):
            found = self._top(form, depth)
            if found is not None:
                return found
        return None

    def _top(self, form: Polynomial, depth: int) -> Expression | None:
        found = expression(form, self.symbols, self.names)
        if found is not None or depth == 0 or self.left <= 0:
            return found
        self.left -= 1
        for fact in self.facts:
            for name in sorted(form.symbols & fact.symbols - set(self.names)):
                more, less = form.coefficient(name), fact.coefficient(name)
                times = more.over(-less) if more is not None and less is not None else None
                if times is not None and self._is_positive(times):
                    found = self._top(form + times * fact, depth - 1)
                    if found is not None:
                        return found
        return None

    def _is_positive(self, form: Polynomial) -> bool:
        """Whether it is made of sizes, which are not negative where there is anything to do."""
        inside = all(name in self.names for name in form.symbols)
        return bool(form.terms) and inside and all(factor > 0 for _, factor in form.terms)


def _with_grid(found: Expression, launch: LaunchDirective) -> Expression | None:
    """The extent with the launch's own grid in it; None where that asks for the array's size."""
    blocks: Mapping[str, str] = {
        name: str(extent) for name, extent in zip(_GRID.values(), launch.grid, strict=False)
    }
    text = re.sub(r"grid_extent_[xyz]", lambda m: f"({blocks.get(m[0], '1')})", str(found))
    return None if re.search(r"\b(?:size|shape)\(", text) else _parsed(text)


def _parsed(text: str) -> Expression | None:
    try:
        found = parse_expression(text)
        return found if found.names else parse_expression(str(found.evaluate({})))
    except SourceError:  # longer or deeper than a directive may be
        return None
