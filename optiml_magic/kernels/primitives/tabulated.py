"""P13, hoist: what a short loop computes alike in every round of the loop around it, done before.

The weights of a filter along a row are the same in all of its rows, and so are the angles of a
transform. They go to a local array before the outer loop, and the short loop is unrolled, so that
its indices are constants and it lies in registers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.functions import COMBINING, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.primitives.loaded_always import in_all_rounds
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType
from optiml_magic.source.directives import RequireDirective

LONGEST = 64  # words that a thread holds
_WORD = 4
_CHEAP = frozenset(COMBINING) | {"abs", "fabs", "fabsf", "floor", "floorf", "ceil", "ceilf"}
READ = (Literal, Name, Member, Unary, Binary, Choice, Cast, Call)


@dataclass(frozen=True)
class Value:
    """``node`` in a loop along ``axis``, and the locals of a round of it that it is made of.

    Arrays have what it loads, also where the loop around makes no round, as is ``asked``.
    """

    node: Expr
    axis: Axis
    locals: tuple[Declare, ...]
    kind: str
    words: int
    hint: str
    asked: tuple[RequireDirective, ...] = ()

    @property
    def rounded(self) -> bool:
        """Whether it is a product, which a sum might have taken unrounded."""
        return isinstance(self.node, Binary) and self.node.op == "*"


def values(kernel: Kernel, loop: Loop, effects: Effects) -> tuple[Value, ...]:
    """What short loops within a loop compute that is the same in all of its rounds."""
    found = list[Value]()
    for inner in loops_in(loop.body):
        axis = kernel.axes().get(inner)
        if axis is not None and _short(axis, effects):
            found += _Round(kernel, loop, axis, effects).values()
    return tuple(found) if sum(value.words for value in found) <= LONGEST else ()


def _short(axis: Axis, effects: Effects) -> bool:
    step = axis.step.value if axis.step is not None else None
    begins = axis.start is not None and axis.start.value is not None
    return (
        axis.exact and begins and step == 1
        and 1 < (axis.trips or 0) <= LONGEST and is_counted(axis, effects)
    )  # fmt: skip


class Still:
    """What only computes, from what the rounds of a loop have in common.

    ``but`` is what may move all the same; ``locals`` are those of a round that are made of it. With
    ``loads``, it may load what nobody writes.
    """

    def __init__(
        self, kernel: Kernel, loop: Loop, effects: Effects, but: Variable | None = None,
        *, loads: bool = False,
    ) -> None:  # fmt: skip
        self.kernel, self.but = kernel, but
        # Variables of the module and functions that read memory are among these.
        self.touching = {access.own for access in kernel.reading.accesses}
        self.loads = {a.own for a in _steady_loads(kernel, effects)} if loads else set[Expr]()
        declared = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
        self.moving = {*declared, *effects.changed(loop)} - {but}
        self.locals: dict[Variable, Declare] = {}
        for one in walk(loop.body):
            if isinstance(one, Declare) and len(one.variables) == 1:
                (variable,) = one.variables
                plain = not (variable.array or variable.type.depth or variable.type.reference)
                lasts = variable in effects.lasting and variable.value is not None
                if plain and lasts and variable.value and self.steady(variable.value):
                    self.locals[variable] = one

    def steady(self, expr: Expr) -> bool:
        """Whether it is such an expression."""
        moving = self.moving - self.locals.keys()
        return not moving & names([expr]) and is_value(self.kernel, expr, self.touching, self.loads)

    def costly(self, expr: Expr) -> bool:
        """Whether it takes long: a function, or a quotient of floats."""
        types = self.kernel.reading.types
        return any(
            bare(part.function) not in _CHEAP if isinstance(part, Call)
            else isinstance(part, Binary) and part.op == "/" and _floating(types.get(part))
            for part in every(expr)
        )  # fmt: skip

    def made_of(self, node: Expr) -> tuple[Declare, ...]:
        """The locals of a round that a value is made of, in their order."""
        asked = {*names([node])}
        for one in reversed(self.locals.values()):
            (variable,) = one.variables
            if variable in asked and variable.value is not None:
                asked |= names([variable.value])
        return tuple(one for variable, one in self.locals.items() if variable in asked)

    def kind(self, node: Expr) -> CType | None:
        """The plain type of a value; None where it has another."""
        kind = self.kernel.reading.types.get(node)
        plain = kind and kind.name and not kind.depth and kind.kind in ("int", "float")
        return kind if plain else None


def _steady_loads(kernel: Kernel, effects: Effects) -> Iterator[Access]:
    """The loads of global memory that the kernel writes nothing of, each in its own text."""
    written = kernel.reading.written
    for access in kernel.reading.accesses:
        plain = access.mode == "load" and access.space == "global" and access.call is None
        if (
            plain
            and _element(access.own)
            and not any(effects.same(access.array, other) for other in written)
        ):
            yield access


def _element(expr: Expr) -> Index | None:
    """The element of an array by its name that an expression is, or is a member of."""
    while isinstance(expr, Member) and not expr.arrow:
        expr = expr.base
    return expr if isinstance(expr, Index) and isinstance(expr.base, Name) else None


def is_value(
    kernel: Kernel, expr: Expr, touching: Collection[Expr], loads: Collection[Expr] = ()
) -> bool:
    """Whether an expression only computes, from plain locals and numbers; none is ``touching``.

    It may load what is among ``loads``.
    """
    places = [place for load in loads if (place := _element(load)) is not None]
    allowed = {*loads, *places, *(place.base for place in places)}
    for part in every(expr):
        if part in allowed:
            continue
        if part in touching:
            return False
        match part:
            case Name(variable=Variable() as variable):
                if variable.array or variable.type.depth or variable.type.volatile:
                    return False
            case Call() if not only_computes(kernel, part):
                return False
            case Member(arrow=True) | Unary(op="*" | "&"):
                return False
            case _ if not isinstance(part, READ):
                return False
    return True


class _Round:
    """A round of a short loop, and what of it is the same in all rounds of the loop around."""

    def __init__(self, kernel: Kernel, loop: Loop, axis: Axis, effects: Effects) -> None:
        self.axis = axis
        self.still = Still(kernel, loop, effects, but=axis.variable, loads=True)

    def values(self) -> Iterator[Value]:
        within = {s for inner in loops_in(self.axis.node.body) for s in walk(inner)}
        for statement in walk(self.axis.node.body):
            if statement in within:
                continue
            for top in statement.expressions:
                for node in self._largest(top):
                    kind, known = self.still.kind(node), self.still.made_of(node)
                    asked = self._asked(node, known)
                    if kind is not None and asked is not None:
                        words = -(-(kind.size or _WORD) // _WORD) * (self.axis.trips or 0)
                        hint = named_after(statement, node)
                        yield Value(node, self.axis, known, kind.name, words, hint, tuple(asked))

    def _asked(self, node: Expr, known: Sequence[Declare]) -> list[RequireDirective] | None:
        """What arrays must have where a value loads from them; None where that is not certain."""
        made = [node, *(v.value for one in known for v in one.variables if v.value is not None)]
        loads = {e for top in made for e in every(top)} & self.still.loads
        return in_all_rounds(self.still.kernel, self.axis, loads)

    def _largest(self, expr: Expr) -> Iterator[Expr]:
        still = self.still
        known = {one.variables[0] for one in still.made_of(expr)}
        moves = self.axis.variable in names([expr]) or any(
            self.axis.variable in names([v.value]) for v in known if v.value is not None
        )
        if moves and still.steady(expr) and still.costly(expr):
            yield expr
        else:
            for part in expr.parts:
                yield from self._largest(part)


def _floating(kind: object) -> bool:
    return getattr(kind, "kind", "") == "float"


def named_after(statement: Statement, node: Expr) -> str:
    """After the local that begins as it, where there is one."""
    own = statement.variables if isinstance(statement, Declare) else ()
    return next((f"{v.name}_of" for v in own if v.value is node), "made")


def tabulating(kernel: Kernel) -> tuple[int, tuple[Value, ...]] | None:
    """The outermost loop with something to compute before it, by its number; None without one."""
    effects = Effects(kernel)
    for at, loop in enumerate(loops_in(kernel.function.body)):
        found = values(kernel, loop, effects)
        if found:
            return at, found
    return None


@primitive
def tabulated(kernel: Kernel, at: int) -> Kernel:
    """What is the same in all rounds of the loop with this number is computed before it."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    found = values(kernel, loop, effects)
    if not found:
        raise NotLegal("no short loop in it computes the same in each of its rounds", loop.line)
    asked = dict.fromkeys(one for value in found for one in value.asked)
    return kernel.rewritten(_computed(kernel, loop, found), directives=[*asked])


def _computed(kernel: Kernel, loop: Loop, found: Sequence[Value]) -> Block:
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    made, taken = list[str](), list[str]()
    for axis in dict.fromkeys(value.axis for value in found):
        own = [value for value in found if value.axis is axis]
        assert axis.variable is not None
        assert axis.start is not None
        first, counter = axis.start.value or 0, axis.variable.name
        place = counter if not first else f"{counter} {'-' if first > 0 else '+'} {abs(first)}"
        known = dict.fromkeys(one for value in own for one in value.locals)
        body = [kernel.show(one) for one in known]
        for value in own:
            taken.append(kernel.fresh(value.hint, *taken))
            shown = kernel.spelled(value.node)
            made.append(f"{value.kind} {taken[-1]}[{axis.trips}];")
            body.append(f"{taken[-1]}[{place}] = {shown};")
            swaps[value.node] = text(f"{taken[-1]}[{place}]")
        kind, end = axis.variable.type.base, first + (axis.trips or 0)
        head = f"for ({kind} {counter} = {first}; {counter} < {end}; ++{counter})"
        made += ["#pragma unroll", head + " {\n" + "\n".join(body) + "\n}"]
        swaps |= dict.fromkeys(hints_of(kernel, axis.node))
    for axis in dict.fromkeys(value.axis for value in found):
        swaps[axis.node] = (lines("#pragma unroll"), edited(axis.node, swaps))
    hints = hints_of(kernel, loop)
    told = [lines(kernel.show(hint).strip()) for hint in hints]
    whole: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    whole[loop] = (lines("\n".join(made)), *told, edited(loop, swaps))
    return edited(kernel.function.body, whole)
