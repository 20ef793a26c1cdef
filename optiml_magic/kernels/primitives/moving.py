"""What of an index moves with a thread's place, with its items, or from round to round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.indices import Along, Undecided
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.symbols import Condition, Symbol
from optiml_magic.kernels.tree import Loop

_PLACES = ("threadIdx", "blockIdx")


class Moving:
    """For a kernel whose threads have items ``along`` some axes.

    Nothing writes the ``steady`` parameters; ``builtins`` say where a thread stands along the axes,
    of which those in ``coarse`` say which of its items it takes.
    """

    def __init__(self, kernel: Kernel, effects: Effects, along: Sequence[Along]) -> None:
        reading = kernel.reading
        self.kernel, self.effects = kernel, effects
        self.along = along
        self.symbols = reading.symbols
        self.steady = frozenset(
            p.name for p in kernel.function.parameters
            if p.type.depth and not any(effects.same(p.name, w) for w in reading.written)
        )  # fmt: skip
        self.builtins = {f"{p}.{a.axis}" for a in along for p in _PLACES}
        self.coarse = {f"{p}.{a.axis}" for a in along if a.several for p in _PLACES}

    def gathered(self, form: Polynomial) -> frozenset[str]:
        """What is in a form of memory that nothing writes, and is the same for all items."""
        return frozenset(
            name for name in form.symbols
            if name[0] != "@" and self.symbols[name].kind == "load"
            and self.alike(
                n for n in self.symbols.inside(Polynomial.symbol(name)) if not self.is_counter(n)
            )
        )  # fmt: skip

    def gathers(self, loop: Loop) -> bool:
        """Whether memory says in each round where a row is that items walk along."""
        axis = self.kernel.axes().get(loop)
        return axis is not None and any(
            axis.name in self.symbols.inside(Polynomial.symbol(name))
            for access in self.effects.accesses(loop) if access.index is not None
            for name in self.gathered(access.index)
            if access.index.coefficient("threadIdx.x") is not None
        )  # fmt: skip

    def alike(self, names: Iterable[str]) -> bool:
        """Whether these are the same for all items, sizes or in memory that nothing writes."""
        found = [self.symbols[name] for name in names]
        return all(
            s.array in self.steady if s.kind == "load"
            else s.kind in ("scalar", "operation", "builtin") and s.name not in self.coarse
            for s in found
        )  # fmt: skip

    def check_settled(self, form: Polynomial, gathered: Collection[str] = ()) -> None:
        """Raise Undecided where something is left that is another for each item, or in a round.

        What is ``gathered`` from memory may be another in each round.
        """
        for name in form.symbols:
            if name[0] == "@" or name in gathered:
                continue
            symbol = self.symbols[name]
            if symbol.kind == "scalar":
                continue
            if symbol.kind != "operation":
                raise Undecided(f"`{name}` is not a size")
            inside = self.symbols.inside(Polynomial.symbol(name))
            kinds = {self.symbols[n].kind for n in inside}
            if not kinds <= {"scalar", "operation", "builtin"}:
                raise Undecided(f"`{name}` may be another in each round")
            if inside & self.coarse and self.digit(symbol) is None:
                raise Undecided(f"`{name}` may be another for each item")

    def is_size(self, name: str) -> bool:
        """Whether it is a size, or what a number of them are of one, such as ``pitch / 4``."""
        symbol = self.symbols[name] if name[0] != "@" else None
        if symbol is not None and symbol.op == "/":
            return all(map(self.of_sizes, symbol.arguments))
        return symbol is not None and symbol.kind == "scalar"

    def is_placed(self, form: Polynomial) -> bool:
        """Whether a form asks where a thread stands."""
        return bool(self.symbols.inside(form) & self.builtins)

    def of_sizes(self, form: Polynomial) -> bool:
        return all(map(self.is_size, form.symbols))

    def is_counter(self, name: str) -> bool:
        return name in self.symbols.table and self.symbols[name].kind == "counter"

    def moves(self, form: Polynomial) -> bool:
        inside = self.symbols.inside(form)
        return bool(inside & self.builtins) or any(self.is_counter(n) for n in inside)

    def same(self, form: Polynomial) -> bool:
        """Whether a number is the same for all items of a thread, and in all rounds."""
        inside = self.symbols.inside(form)
        return not inside & self.coarse and not any(map(self.is_counter, inside))

    def varies(self, symbol: Symbol) -> bool:
        return self.moves(Polynomial.symbol(symbol.name))

    def settled(self, symbol: Symbol, known: Sequence[Condition]) -> bool:
        """Whether a digit of another digit, of a group say, is the same for all items."""
        if symbol.op not in ("/", "%") or not self.same(Polynomial.symbol(symbol.name)):
            return False
        top, by = symbol.arguments
        if symbol.op == "%" and top.symbols & self.builtins:  # it goes around at a border
            return False
        least = Ranges(known, self.symbols).nonnegative(top)
        return least and self.symbols.known(by) and not self.moves(by)

    def digit(self, symbol: Symbol) -> Along | None:
        """The axis whose index alone an operation takes apart, by what is the same for all."""
        if symbol.op not in ("/", "%") or len(symbol.arguments) != 2:
            return None
        top, by = symbol.arguments
        if self.moves(by) or not self.symbols.known(by):
            return None
        for along in self.along:
            thread, block = (Polynomial.symbol(f"{p}.{along.axis}") for p in _PLACES)
            whole = thread + Polynomial.constant(along.width) * block
            if top == whole or (along.width == 1 and top == block):
                return None if along.bound == by else along
        return None
