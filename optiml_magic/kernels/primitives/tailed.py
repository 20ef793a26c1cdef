"""P4 over launches, fission: what does not go from round to round, a launch behind computes.

A filter along time has a few additions that each round hands on to the next, and often a logarithm
or a power of what came out, which only its own element asks for. An item a thread does all of it in
a row. What each round found waits in scratch, and a launch with a thread for each round computes
what is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.two_launches import Asking, TwoLaunches, first_loop, items_of
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, Variable, walk


@dataclass(frozen=True)
class Tail:
    """What rounds of a loop do beside what they hand on.

    ``kept`` hands on, ``done`` is done behind, with the ``inner`` locals found again in each round,
    and those of the item that are as soon found ``again``. Those ``saved`` are of each round, those
    ``held`` of each item. Of those saved, those ``before`` are as the round found them.
    """

    loop: Loop
    kept: tuple[Statement, ...]
    done: tuple[Statement, ...]
    inner: tuple[Declare, ...]
    again: tuple[Variable, ...]
    held: tuple[Variable, ...]
    saved: tuple[Variable, ...]
    before: frozenset[Variable]

    def is_long(self, kernel: Kernel) -> bool:
        """Whether a hundred instructions and more are done behind."""
        inside = (one for s in (*self.done, *self.inner) for one in walk(s))
        return is_long(kernel, *(top for one in inside for top in one.expressions))


@primitive
def tailed(kernel: Kernel) -> Kernel:
    """The launch that does the rest of all rounds, behind one for what they hand on."""
    kernel = kernel.settled()
    found, finder, tail = tail_of(kernel)
    return _Making(kernel, found, finder, tail).kernel()


def tail_of(kernel: Kernel) -> tuple[Mapped, Finder, Tail]:
    """The first loop of which a launch behind may do a part. Raises NotLegal without one."""
    found, finder = items_of(kernel)
    refused = NotLegal("no round hands something on, and does more with it")
    return (
        found,
        finder,
        first_loop(found, lambda loop: _Parting(kernel, finder, found, loop).tail(), refused),
    )


class _Parting(Asking):
    """Which statements of a round hand something on, and which the others are."""

    def __init__(self, kernel: Kernel, finder: Finder, found: Mapped, loop: Loop) -> None:
        super().__init__(kernel, finder, found, loop)
        self.held: list[Variable] = []
        self.before: set[Variable] = set()
        self.inner: set[int] = set()

    def tail(self) -> Tail:
        loop, own, axis = self.loop, self.own, self.counted()
        self.kept = self._handing_on()
        if not self.kept:
            raise NotLegal("its rounds hand nothing on", loop.line)
        lets = {n for n, s in enumerate(own) if n not in self.kept and self._is_let(s)}
        done = [n for n in range(len(own)) if n not in self.kept | lets]
        if not done:
            raise NotLegal("its rounds do nothing but hand on", loop.line)
        self.lets = lets
        self._check(axis.name, [own[n] for n in done])
        self.seen |= {axis.variable} if axis.variable is not None else set()
        for n in done:
            self._ask(n, self.effects.mentions(own[n]))
        return Tail(
            loop,
            tuple(own[n] for n in sorted(self.kept)),
            tuple(own[n] for n in done),
            tuple(s for n in sorted(self.inner) if isinstance(s := own[n], Declare)),
            tuple(self.again), tuple(self.held), tuple(self.saved), frozenset(self.before),
        )  # fmt: skip

    def _handing_on(self) -> set[int]:
        """The statements that change what is declared outside, and what these ask for."""
        carried = {*self.effects.changed(self.loop)}
        kept = {n for n, s in enumerate(self.own) if self.effects.given(s) & carried}
        while True:
            asked = {v for n in kept for v in self.effects.mentions(self.own[n])}
            more = {n for n, s in enumerate(self.own) if self.effects.given(s) & asked} - kept
            if not more:
                return kept
            kept |= more

    def _is_let(self, statement: Statement) -> bool:
        """Whether it declares a local of the round, and does nothing else."""
        if not isinstance(statement, Declare):
            return False
        try:
            self.finder.check_pure(statement)
        except NotLegal:
            return False
        return {*statement.variables} <= self.effects.lasting

    def _check(self, counter: str, done: Sequence[Statement]) -> None:
        """Raise NotLegal where it matters in which order these are done, or who else is."""
        accesses = {a: s for s in done for a in self.effects.accesses(s)}
        stores = [a for a in accesses if a.mode != "load"]
        if not stores:
            raise NotLegal("its rounds do nothing with what they hand on", self.loop.line)
        for access in stores:
            form = access.index
            by = form.coefficient(counter) if form is not None else None
            places = {a.index for a in stores if self.effects.same(a.array, access.array)}
            others = [
                a for a in self.kernel.reading.accesses
                if a not in accesses and self.effects.same(a.array, access.array)
            ]  # fmt: skip
            if access.mode != "store" or by is None or not by.terms or access.call is not None:
                raise NotLegal("a round does not have elements of its own", access.line)
            if len(places) > 1 or others:
                raise NotLegal(f"`{access.array}` is touched elsewhere, too", access.line)
        self.check_loads(accesses)
        for statement in done:
            if self.effects.kept(statement):
                raise NotLegal("it keeps something in a local array", statement.line)

    def _ask(self, place: int, asked: Iterable[Variable]) -> None:
        """What a statement of the round asks for that it does not declare itself.

        Those of the item have no place in the round: a negative one.
        """
        for variable in sorted(asked, key=lambda v: (v.line, v.name)):
            own = {v for s in walk(self.own[place]) if isinstance(s, Declare) for v in s.variables}
            if variable in own or variable is self.found.holding:
                continue
            every_giver = [n for n, s in enumerate(self.own) if variable in self.effects.given(s)]
            givers = [n for n in every_giver if n in self.kept | self.lets]
            early = bool(givers) and place >= 0 and all(n > place for n in givers)
            if not early and any(n >= place for n in givers):
                raise NotLegal(f"`{variable.name}` is handed on behind it", variable.line)
            if every_giver and not givers:
                continue  # what is done behind has it for itself
            if givers and variable in self.seen and (variable in self.before) != early:
                raise NotLegal(f"`{variable.name}` is asked for before and after", variable.line)
            if variable in self.seen or variable.storage == "parameter":
                continue
            self.seen.add(variable)
            self.before |= {variable} if early else set()
            if givers and (givers[0] in self.lets or self._is_found_again(givers[0])):
                self.inner.add(givers[0])
                self._ask(givers[0], names(self.own[givers[0]].expressions))
            elif givers:
                self.saved.append(variable)
            elif self.is_cheap(variable):
                self._ask(-1, names([variable.value] if variable.value is not None else []))
                self.again.append(variable)
            elif variable in self.effects.lent:
                raise NotLegal(f"`{variable.name}` is lent", variable.line)
            else:
                self.held.append(variable)

    def _is_found_again(self, place: int) -> bool:
        """Whether a local of the round, which is handed on as well, has nothing of what was."""
        statement = self.own[place]
        if not self._is_let(statement):
            return False
        carried = self.effects.changed(self.loop)
        for variable in names(statement.expressions):
            givers = [n for n, s in enumerate(self.own) if variable in self.effects.given(s)]
            if variable in carried or any(not self._is_found_again(n) for n in givers):
                return False
        return True


class _Making(TwoLaunches):
    def __init__(self, kernel: Kernel, found: Mapped, finder: Finder, tail: Tail) -> None:
        kept = {**dict.fromkeys(tail.held, False), **dict.fromkeys(tail.saved, True)}
        super().__init__(kernel, found, finder, tail.loop, kept)
        self.tail = tail

    def kernel(self) -> Kernel:
        return self.two("1")

    def left(self) -> Statement:
        """The items with what rounds hand on; each of these leaves what is asked for behind."""
        tail = self.tail
        found, told = (
            [
                lines(f"{self.at(v, self.place)} = {v.name};")
                for v in tail.saved if (v in tail.before) == early
            ]
            for early in (True, False)
        )  # fmt: skip
        body = Block(None, tail.loop.line, (*found, *tail.kept, *told))
        held = [lines(f"{self.at(v, self.place)} = {v.name};") for v in tail.held]
        loop = edited(tail.loop, {tail.loop.body: body})
        swaps: dict[Node, tuple[Statement, ...]] = {tail.loop: (*held, loop)}
        return edited(self.old.function.body, swaps)

    def behind(self) -> str:
        old, found, tail, counter = self.old, self.found, self.tail, self.counter
        swaps: dict[Node, Node] = dict(found.swaps)
        known = [self.declared(v, swaps) for v in tail.again]
        known += [f"{self.types[v]} {v.name} = {self.at(v, found.name)};" for v in self.scratch]
        return "\n".join([
            (f"{declared_type(old, counter)} {counter.name} = "
             "blockIdx.x * blockDim.x + threadIdx.x;"),
            f"const {found.words} {found.name} = blockIdx.y * blockDim.y + threadIdx.y;",
            f"if ({counter.name} >= {self.columns} || {found.name} >= {self.items}) return;",
            *known,
            "{",  # a local of the round may have the name of one outside
            *(old.show(s, swaps) for s in (*tail.inner, *tail.done)),
            "}",
        ])  # fmt: skip
