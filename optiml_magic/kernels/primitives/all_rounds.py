"""What a launch asks of the sizes of arrays, so that rounds behind a loop's end may load from them.

A loop that is left early has rounds that nobody makes. Lanes that look at several rounds at once
load for these as well what says whether they end the loop: it has to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from optiml_magic.errors import SourceError
from optiml_magic.kernels.expressions import Call, Expr, Index, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import form_of, needed, said_alike
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Speller, Unspelled
from optiml_magic.kernels.symbols import Compare, Symbols
from optiml_magic.kernels.tree import Statement
from optiml_magic.source.expressions import Expression, parse_expression

_ONE = Polynomial.constant(1)
_End = tuple[int, Polynomial]  # by what the second is divided, and rounded down
_STEADY = ("scalar", "builtin", "counter", "operation")


def asked(
    kernel: Kernel, effects: Effects, axis: Axis, statements: Sequence[Statement]
) -> Iterator[str]:
    """What sizes have to be so that all rounds may do this; NotLegal where no size says so."""
    inside = frozenset[Expr]().union(*(effects.inside(s) for s in statements))
    for call in (e for e in inside if isinstance(e, Call)):
        called = kernel.unit.called(call.function, len(call.arguments))
        if any(loops_in(function.body) for function in called):
            raise NotLegal(f"`{call.function}` has a loop", axis.line)
    written = {a.array for a in kernel.reading.accesses if a.mode != "load"}
    for access in (a for a in kernel.reading.accesses if a.own in inside and not _whole(a)):
        if access.space != "global" or access.mode != "load" or not is_plain(kernel, access):
            raise NotLegal("what it asks for is not in global memory", access.line)
        if any(effects.same(access.array, other) for other in written):
            raise NotLegal(f"`{access.array}` is written as well", access.line)
        if not _the_same(access, axis, kernel.reading.symbols):
            yield from _Reach(kernel, effects, access).conditions()


def _whole(access: Access) -> bool:
    """Whether it is a member of a local that is no array, which is there in any round."""
    return access.space == "local" and not any(isinstance(e, Index) for e in every(access.node))


def _the_same(access: Access, axis: Axis, symbols: Symbols) -> bool:
    """Whether each round loads what the first one does."""
    if access.index is None or not {*access.guard} <= {*axis.guard, *axis.test.conjuncts()}:
        return False
    inside = symbols.inside(access.index)
    return axis.name not in inside and all(symbols[name].kind in _STEADY for name in inside)


@dataclass(frozen=True)
class _Reach:
    """How far an access goes in any round of the loops that it is in, by any thread."""

    kernel: Kernel
    effects: Effects
    access: Access

    def conditions(self) -> Iterator[str]:
        """The conditions under which its array has all of these elements."""
        kernel, access = self.kernel, self.access
        symbols = kernel.reading.symbols
        if access.index is None:
            raise self._unknown()
        form, ends = self._whole(access.index), self._ends(access.index)
        greatest = self._extreme(form, ends, up=True)
        least = self._extreme(form, ends, up=False)
        ranges = Ranges((), symbols, sizes=True)
        facts, array = kernel.facts, passed(kernel, access.array)
        known = facts.arrays.get(access.array) if facts is not None else None
        size = access.element.size or 0
        given = known is not None and known.role != "scratch" and array is not None
        whole = known is not None and known.nbytes == prod(known.shape) * size
        if not ranges.nonnegative(least) or not (given and whole):
            raise NotLegal(f"how far `{access.array}` goes is not known", access.line)
        try:
            spelled = Speller(symbols, {}).form
            words = [f"size({array}) >= {spelled(greatest + _ONE)}"]
            words += [f"{spelled(least)} >= 0"] if least.value is None else []
            found = [parse_expression(one) for one in words]
            met = all(
                said_alike(kernel, {*one.names} - {array}) and measured(kernel, one)
                for one in found
            )
        except (SourceError, Unspelled):
            met = False
        if not met:
            raise NotLegal(f"`{access.array}` may end before the loop does", access.line)
        yield from map(str, found)

    def _unknown(self) -> NotLegal:
        access = self.access
        return NotLegal(f"where in `{access.array}` it loads is not known", access.line)

    def _whole(self, form: Polynomial) -> Polynomial:
        """A form over the threads' places in the grid."""
        found: Polynomial | None = form
        for way, width in zip("xyz", self.kernel.block, strict=False):
            if found is not None and width == 1 and f"threadIdx.{way}" not in found.symbols:
                found = _by_blocks(found, way)
            found = index(found, way, width) if found is not None and width else None
        if found is None:
            raise self._unknown()
        return found

    def _ends(self, form: Polynomial) -> dict[str, _End]:
        """The last rounds of the loops around, the innermost first, and the last threads."""
        kernel = self.kernel
        ends = dict[str, _End]()
        around = {axis.name: axis for axis in kernel.axes().values()}
        for name in reversed(self.access.loops):
            if name in form.symbols.union(*(end.symbols for _, end in ends.values())):
                if name not in around:
                    raise self._unknown()
                step, last = _last(around[name])
                ends[name] = step, self._whole(last)
        named = form.symbols.union(*(end.symbols for _, end in ends.values()))
        for way in "xyz":
            if {f"@{way}", f"threadIdx.{way}", f"blockIdx.{way}"} & named:
                count = self._count(way)
                if count is None:
                    raise NotLegal("how many threads work is not known", self.access.line)
                ends[f"@{way}"] = 1, count - _ONE
        return ends

    def _count(self, way: str) -> Polynomial | None:
        """How many threads work along an axis, of blocks of one thread all that there are."""
        kernel, at = self.kernel, "xyz".index(way)
        threads: Expression | None = needed(kernel, way, loads=True)
        if threads is None and kernel.block[at] == 1 and at < len(kernel.launch.grid):
            threads = kernel.launch.grid[at]
            if not said_alike(kernel, threads.names):
                return None
        return form_of(threads.tree, kernel.reading.symbols) if threads is not None else None

    def _extreme(self, form: Polynomial, ends: Mapping[str, _End], *, up: bool) -> Polynomial:
        """The most that a form is between the first and the last of each, or the least."""
        symbols, moved = self.kernel.reading.symbols, self.effects.moved
        ranges = Ranges((), symbols, sizes=True)
        for name, end in ends.items():
            by = form.coefficient(name)
            if by is None or by.symbols & {*ends}:
                raise self._unknown()
            grows = ranges.nonnegative(by)
            if not grows and not ranges.nonnegative(-by):
                raise self._unknown()
            if grows == up:
                step, rest = end
                whole = by.divided(step)
                if whole is None:
                    raise self._unknown()
                form = form.without([name]) + whole * rest
            else:
                form = form.without([name])
        scalars = {n for n in form.symbols if (s := symbols.table.get(n)) and s.kind == "scalar"}
        if scalars != form.symbols or scalars & moved:
            raise self._unknown()
        return form


def _by_blocks(form: Polynomial, way: str) -> Polynomial | None:
    """A form over threads' places in the grid, of blocks of one thread each."""
    block = f"blockIdx.{way}"
    by = form.coefficient(block)
    if by is None:
        return None
    return form.without([block]) + by * Polynomial.symbol(f"@{way}")


def _last(axis: Axis) -> _End:
    """The counter of the last round."""
    parts = [*axis.test.conjuncts()]
    test = parts[0] if len(parts) == 1 else None
    form = test.form if isinstance(test, Compare) and test.op == ">=" else None
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or by.value is None or by.value >= 0:
        raise NotLegal("the number of rounds is not known", axis.line)
    return -by.value, form.without([axis.name])
