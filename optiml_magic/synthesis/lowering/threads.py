"""How the index space of a launch lies on its threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.tree import Statement
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At
from optiml_magic.synthesis.sizes import Extents, Quotient, constant, valued

_LINE = 256  # threads of a block along one axis; ours
_SIDE = 16  # and along each of two
_MOST = 65535  # blocks along y and z: the CUDA programming guide, compute capabilities
_ROOM = 2  # by which sizes may grow at least before an axis no longer fits; ours
_NAMES = ("w", "v", "u", "z", "y", "x", "t", "h", "i", "j")  # of indices, the last ones first


@dataclass(frozen=True)
class Threads:
    """The axes of a launch from x on, by the names of a thread's indices, and its block.

    ``at`` is where in the index space a thread is; ``taken`` are indices that are taken apart: the
    names and extents of the digits of each.
    """

    axes: tuple[tuple[str, Polynomial], ...]
    at: At
    block: tuple[int, ...]
    taken: Mapping[str, tuple[tuple[str, Polynomial], ...]] = field(default_factory=dict)

    @property
    def ranges(self) -> dict[str, Polynomial]:
        """The extents of all indices by name."""
        digits = {name: extent for parts in self.taken.values() for name, extent in parts}
        return {**dict(reversed(self.axes)), **digits}

    @property
    def wholes(self) -> dict[Polynomial, Polynomial]:
        """What digits make together, and the index that it is."""
        found = {}
        for name, parts in self.taken.items():
            symbols = tuple(Polynomial.symbol(digit) for digit, _ in parts)
            whole = indices.linear(symbols, tuple(extent for _, extent in parts))
            found[whole] = Polynomial.symbol(name)
        return found

    @property
    def begun(self) -> list[Statement]:
        """A thread's indices, without their digits."""
        return [c.declare("int", name, _own(k)) for k, (name, _) in enumerate(self.axes)]

    @property
    def digits(self) -> list[tuple[str, Statement]]:
        """Each digit's name with its declaration."""
        found: list[tuple[str, Statement]] = []
        for name, parts in self.taken.items():
            for k, (digit, extent) in enumerate(parts):
                below = indices.product(tuple(e for _, e in parts[k + 1 :]))
                value = c.name(name)
                if below != constant(1):
                    value = c.binary("/", value, plain(below))
                if k:
                    value = c.binary("%", value, plain(extent))
                found.append((digit, c.declare("int", digit, value)))
        return found

    @property
    def guard(self) -> Expr | None:
        """Whether there is work for a thread; an axis with one thread a block has no others."""
        guard: Expr | None = None
        for symbol, extent in reversed(self.axes[: len(self.block)]):
            test = c.binary("<", c.name(symbol), plain(extent))
            guard = test if guard is None else c.binary("&&", guard, test)
        return guard


def _own(axis: int) -> Expr:
    along = "xyz"[axis]
    if axis == 2:
        return c.builtin("blockIdx", along)
    block = c.binary("*", c.builtin("blockIdx", along), c.builtin("blockDim", along))
    return c.binary("+", block, c.builtin("threadIdx", along))


def line(domain: Extents, taken: frozenset[str], *, apart: bool) -> Threads:
    """One after the other, in memory's order; ``apart`` with a name for each index."""
    names = [n for n in _NAMES if n not in taken]
    if not domain:
        return Threads(((names[-2], constant(1)),), (), (1,))
    own, total = names[-2], indices.product(domain)
    if not apart or len(domain) == 1:
        at = indices.digits(Polynomial.symbol(own), domain)
        return Threads(((own, total),), at, (_LINE,))
    others = [n for n in names if n != own][-len(domain) :]
    at = tuple(Polynomial.symbol(n) for n in others)
    return Threads(((own, total),), at, (_LINE,), {own: tuple(zip(others, domain, strict=True))})


def plane(domain: Extents, sizes: Mapping[str, int], taken: frozenset[str]) -> Threads | None:
    """The last axes along x and y, and all others along z; None where that does not fit."""
    if len(domain) < 2:
        return None
    *outer, rows, cols = domain
    depth = indices.product(tuple(outer))
    tall, wide, deep = (valued(extent, sizes) for extent in (rows, cols, depth))
    if wide < _SIDE / 2 or tall > _MOST * _SIDE / _ROOM or deep > _MOST / _ROOM:
        return None
    names = [n for n in _NAMES if n not in taken]
    i, j = names[-2:]
    last = (Polynomial.symbol(i), Polynomial.symbol(j))
    block = (_SIDE, _SIDE)
    if not outer:
        return Threads(((j, cols), (i, rows)), last, block)
    h, others = names[-3], names[-3 - len(outer) : -3]
    axes = ((j, cols), (i, rows), (h, depth))
    if len(outer) == 1:
        return Threads(axes, (Polynomial.symbol(h), *last), block)
    first = tuple(Polynomial.symbol(n) for n in others)
    return Threads(axes, (*first, *last), block, {h: tuple(zip(others, outer, strict=True))})


def plain(extent: Polynomial) -> Expr:
    """An extent of sizes alone; its quotients are divisions of what is not negative."""
    return indices.spelled(extent, _divided)


def _divided(quotient: Quotient) -> Expr:
    return c.binary("/", plain(quotient.dividend), plain(quotient.divisor))


def grid(threads: Threads) -> Sequence[tuple[Polynomial, int]]:
    """The extent along each axis of the launch, and how much of it a block covers."""
    blocks = (*threads.block, *[1] * (len(threads.axes) - len(threads.block)))
    return list(zip((extent for _, extent in threads.axes), blocks, strict=True))
