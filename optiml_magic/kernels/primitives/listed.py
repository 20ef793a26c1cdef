"""P15, lists in parts: blocks share the rounds of a loop that keeps the best of what it comes to.

``if (d < best[K - 1]) { ... }`` puts what a round finds where it belongs in a short sorted list.
Blocks do so for neighbouring rounds each, and leave their lists in scratch; the second launch puts
what these hold into one, part by part, by the same statements. Of equals the first is kept still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import lines
from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.chunks import Chunks
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.inserting import inserts
from optiml_magic.kernels.primitives.parts import Sharing
from optiml_magic.kernels.primitives.pieces import Piece
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.searched import array_sizes
from optiml_magic.kernels.primitives.sorted_lists import begun_alike
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Block, Declare, If, Loop, Statement, Variable
from optiml_magic.source.directives import Directive, ScratchDirective
from optiml_magic.source.expressions import parse_expression

_MOST = 32  # elements of a list: ours


@dataclass(frozen=True)
class Insertion:
    """The ``statements`` of a round that put into lists of ``count`` elements what is ``given``."""

    statements: tuple[Statement, ...]
    count: int
    given: Mapping[Variable, Variable]


@primitive
def listed(kernel: Kernel, at: int, parts: int, counts: tuple[int, ...]) -> Kernel:
    """The loop with this number, which counts from 0 by 1, in parts of neighbouring rounds."""
    return _Listing(kernel.settled(), at, Sharing(1, parts, (1,), counts)).kernel()


def insertion(kernel: Kernel, loop: Loop, effects: Effects) -> Insertion:
    """What a loop inserts into lists. Raises NotLegal where it does not, or does more with them."""
    sizes = array_sizes(kernel)
    lists = {v for v in effects.mentions(loop.body) if v.name in sizes and v.array
             and v not in declared_in(loop.body)}  # fmt: skip
    lists = {v for v in lists if _is_changed(effects, loop, v)}
    counts = {sizes[v.name] for v in lists}
    if len(counts) != 1 or not lists or max(counts) > _MOST or lists & effects.addressed:
        raise NotLegal("its rounds keep no list", loop.line)
    (count,) = counts
    statements = _asking(effects, loop.body, lists)
    own = {v for s in statements for v in declared_in(s)}
    given = _given(effects, statements, lists)
    asked = {v for s in statements for v in effects.mentions(s)} - own - lists
    inside = {e for s in statements for e in effects.inside(s)}
    if any(isinstance(e, Call) for e in inside) or any(a.own in inside for s in statements
                                                       for a in effects.accesses(s)):  # fmt: skip
        raise NotLegal("what it does with its list is not followed", loop.line)
    if asked != {*given.values()} or len(asked) != len(given):
        raise NotLegal("what it puts into its list is not followed", loop.line)
    if any(v.type.base != array.type.base for array, v in given.items()):
        raise NotLegal("what it puts into its list is converted", loop.line)
    if any(v.type.reference or v.type.depth or v.type.volatile for v in (*given.values(), *lists)):
        raise NotLegal("what it puts into its list is elsewhere as well", loop.line)
    if not any(inserts(statements, count, key, given) for key in lists):
        raise NotLegal("it does not put each where it belongs in a sorted list", loop.line)
    for array in lists:
        if not begun_alike(kernel, effects, loop, array, Literal(None, str(count), count)):
            raise NotLegal(f"`{array.name}` does not begin with one number", array.line)
    return Insertion(statements, count, given)


def _is_changed(effects: Effects, loop: Loop, array: Variable) -> bool:
    return any(
        isinstance(e, Assign) and isinstance(e.target, Index) and isinstance(e.target.base, Name)
        and e.target.base.variable is array
        for e in effects.inside(loop.body)
    )  # fmt: skip


def _asking(effects: Effects, body: Statement, lists: set[Variable]) -> tuple[Statement, ...]:
    """The statements of a round that ask for lists, with the locals that they count with."""
    parts = body.body if isinstance(body, Block) else (body,)
    own = [n for n, s in enumerate(parts) if effects.mentions(s) & lists]
    match [parts[n] for n in own]:
        case [Block() as inner]:
            return _asking(effects, inner, lists)
        case [If(before=None, other=None, test=test, then=then)] if not names([test]) & lists:
            return _asking(effects, then, lists)
    found = [*parts[own[0] : own[-1] + 1]]
    for statement in reversed(parts[: own[0]]):
        asked = {v for s in found for v in effects.mentions(s)}
        match statement:
            case Declare(variables=(Variable(value=Expr() as value) as only,)) if only in asked:
                if not names([value]):
                    found.insert(0, statement)
    return tuple(found)


def _given(
    effects: Effects, statements: Sequence[Statement], lists: set[Variable]
) -> dict[Variable, Variable]:  # fmt: skip
    """Which local of the round each list is given."""
    own = {v for s in statements for v in declared_in(s)}
    found: dict[Variable, Variable] = {}
    for e in (e for s in statements for e in effects.inside(s)):
        match e:
            case Assign(op="=", target=Index(base=Name(variable=Variable() as array)),
                        value=Name(variable=Variable() as value)):  # fmt: skip
                if array in lists and value not in own:
                    found[array] = value
    return found


class _Listing(Chunks):
    """A loop whose rounds put something into lists, and do nothing else."""

    def _combining(self) -> tuple[Reduction, ...]:
        self.insertion = insertion(self.old, self.loop, self.effects)
        names_ = [array.name for array in self.insertion.given]
        if shareable(self.old, self.loop, self.effects, divided=names_):
            raise NotLegal("its rounds add up as well", self.loop.line)
        return ()

    def _check_reductions(self) -> None:
        """Lists are put together in the order of their parts."""

    def _pieces(self) -> Iterator[Piece]:
        for array in self.insertion.given:
            kind = self.old.reading.arrays[array.name].element
            yield Piece(array.name, kind, array.name, self._fresh(f"{array.name}_parts"))

    def _begun(self) -> list[str]:
        return []  # the lists that the kernel begins with

    def _shared(self) -> tuple[Statement, ...]:
        return *self._own_rounds({}), *self._left()

    def _left(self) -> tuple[Statement, ...]:
        place, count = self._fresh("place"), self.insertion.count
        at = self._at(self.turn, place)
        stored = [f"{p.scratch}[{at}] = {p.local}[{place}];" for p in self.pieces]
        over = f"for (int {place} = 0; {place} < {count}; ++{place}) {{"
        return tuple(map(lines, [*self._places(), "\n".join([over, *stored, "}"])]))

    def _at(self, part: str, place: str) -> str:
        return f"({part} * {self.insertion.count} + {place}) * {self.threads} + {self.thread}"

    def _combined(self) -> tuple[Statement, ...]:
        part, place, count = self._fresh("part"), self._fresh("place"), self.insertion.count
        made = [
            f"for (int {part} = 0; {part} < {self.parts}; ++{part})",
            f"for (int {place} = 0; {place} < {count}; ++{place}) {{",
        ]
        pairs = zip(self.pieces, self.insertion.given.values(), strict=True)
        at = self._at(part, place)
        made += [f"{p.type.name} {value.name} = {p.scratch}[{at}];" for p, value in pairs]
        made += [self.old.show(s) for s in self.insertion.statements]
        return (*map(lines, self._places()), lines("\n".join([*made, "}"])))

    def _directives(self) -> list[Directive]:
        return [
            replace(one, count=parse_expression(f"{one.count} * {self.insertion.count}"))
            if isinstance(one, ScratchDirective) else one
            for one in super()._directives()
        ]  # fmt: skip
