"""P6 undone for blocks that work together: rounds a grid apart are a block each.

``for (int t = blockIdx.x; t < tiles; t += gridDim.x)`` around barriers, and the same from
``blockIdx.x * 256`` in steps of ``gridDim.x * 256``, keeps few blocks busy for long. With a block
for each round, others see the tile, and a chip has as many blocks as it has room for. Warps that
each have a row, ``blockIdx.x * 4 + threadIdx.x / 32``, and wait for no other are under a test then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.expressions import Expr, builtin, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.grids import said, said_alike, sizes_of
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import THREADS, Compare, Condition, Every, Some
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_BLOCK, _GRID = "blockIdx.x", "gridDim.x"


@primitive
def round_a_block(kernel: Kernel) -> Kernel:
    """The kernel with a block for each round of the loop that its blocks go through."""
    lanes = any(LANES.fullmatch(name) for name in kernel.reading.calls)
    if not kernel.reading.barriers and not lanes:
        raise NotLegal("its threads do not wait for each other")
    if kernel.launch.condition is not None or kernel.launch.otherwise:
        raise NotLegal("its launch is one of several")
    effects = Effects(kernel)
    effects.straightforward(lanes=True, alone=False)
    every_place_read(kernel)
    own_text_only(kernel)
    if kernel.reading.calls & set(TOLD):
        raise NotLegal("it prints")
    before, loop = _parts(kernel.function.body)
    axis = kernel.axes().get(loop)
    if axis is None or loop.kind != "for" or loop.before is None:
        raise NotLegal("its last statement is not a loop of its blocks", loop.line)
    width, stop = _count(kernel, effects, axis)
    rounds = _Rounds(kernel, effects, axis, width, before)
    kept = rounds.kept()
    words = said(kernel, stop)
    blocks = words if width == 1 else f"cdiv({words}, {width})"
    asked = [RequireDirective(parse_expression(f"{words} >= 1"))]
    grid = (parse_expression(blocks), *kernel.launch.grid[1:])
    head = replace(loop.before, lead=None) if isinstance(loop.before, Declare) else None
    if head is None:
        raise NotLegal("its counter is declared elsewhere", loop.line)
    own = rounds.round_()
    _check_names(kernel, kept, [head, *own])
    if axis.start != Polynomial.constant(width) * Polynomial.symbol(_BLOCK):
        assert loop.test is not None
        own = [If(None, loop.line, loop.test, Block(None, loop.line, tuple(own)))]
    made = kernel.rewritten(
        replace(kernel.function.body, body=(*kept, head, *own)),
        launch=replace(kernel.launch, grid=grid),
        directives=[] if sizes_of(kernel, stop) == stop.symbols else asked,
    )
    return with_grid(made)


def _check_names(kernel: Kernel, kept: Sequence[Statement], own: Sequence[Statement]) -> None:
    """Raise NotLegal where a round's own locals would stand beside others of their names."""
    first, inner = (
        [v.name for s in statements if isinstance(s, Declare) for v in s.variables]
        for statements in (kept, own)
    )
    known = {*first, *(p.name for p in kernel.function.parameters)}
    if not known.isdisjoint(inner) or len({*inner}) < len(inner):
        raise NotLegal("a name means another thing within its rounds", kernel.function.line)


def _parts(body: Block) -> tuple[list[Statement], Loop]:
    """What stands before the loop that is a kernel's last statement, and that loop."""
    *before, last = body.body or (None,)
    while isinstance(last, Blank) and before:
        *before, last = before
    if not isinstance(last, Loop):
        raise NotLegal("its last statement is not a loop of its blocks")
    return [s for s in before if s is not None], last


def _count(kernel: Kernel, effects: Effects, axis: Axis) -> tuple[int, Polynomial]:
    """How far from each other rounds begin, and where they end."""
    line, start, step, stop = axis.line, axis.start, axis.step, axis.stop
    if not axis.exact or axis.scaled or start is None or step is None or stop is None:
        raise NotLegal("how many rounds its loop makes is not known", line)
    by = start.coefficient(_BLOCK)
    width = by.value if by is not None else None
    if not width or width < 1 or step != Polynomial.constant(width) * Polynomial.symbol(_GRID):
        raise NotLegal("its loop does not go from a block's place in steps of the grid", line)
    symbols = kernel.reading.symbols
    part = start - Polynomial.constant(width) * Polynomial.symbol(_BLOCK)
    if part.terms and (
        kernel.reading.barriers
        or symbols.inside(part) & {_BLOCK, _GRID}
        or not Ranges((), symbols).within(part, Polynomial.constant(width))
    ):
        raise NotLegal("its loop does not go from a block's place in steps of the grid", line)
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    sizes = sizes_of(kernel, stop)
    known = sizes and sizes <= given | kernel.program.values.keys()
    if not known or not said_alike(kernel, sizes) or sizes & effects.moved:
        raise NotLegal("how many rounds there are its launch cannot say", line)
    return width, stop


class _Rounds:
    """The rounds of a loop, ``width`` places apart, and what stands ``before`` it."""

    def __init__(
        self, kernel: Kernel, effects: Effects, axis: Axis, width: int, before: Sequence[Statement]
    ) -> None:
        self.kernel, self.effects, self.axis = kernel, effects, axis
        self.width, self.before = width, before
        self.loop = axis.node
        self.accesses = self._within(self.loop)
        self.item = frozenset({_BLOCK, _GRID, axis.name})
        self.filled = {
            a.array for s in before for a in self._within(s)
            if a.space == "shared" and a.mode != "load"
        }  # fmt: skip
        self._check_apart()
        self._check_memory()
        self._check_shared()

    def _within(self, statement: Statement) -> list[Access]:
        """What a statement asks of memory, shared memory too."""
        inside = self.effects.inside(statement)
        return [a for a in self.kernel.reading.accesses if a.own in inside]

    def round_(self) -> list[Statement]:
        """What a round does, without barriers that nothing of it needs."""
        body = self.loop.body.body if isinstance(self.loop.body, Block) else (self.loop.body,)
        own = list(body)
        while own and (is_barrier(own[-1]) or isinstance(own[-1], Blank)):
            own.pop()
        for statement in own:
            if self._within(statement) or self.filled:
                break
            if is_barrier(statement):
                return [s for s in own if s is not statement]
        return own

    def kept(self) -> list[Statement]:
        """What stands before the loop, which each block does; it must be the same for all."""
        asked = names(expressions(self.loop.body)) - {self.axis.variable}
        if self.loop.test is not None:
            asked |= names([self.loop.test]) - {self.axis.variable}
        head = names(self.loop.before.expressions) if self.loop.before is not None else frozenset()
        first, found = set[Variable](), list[Statement]()
        for statement in self.before:
            own = [*expressions(statement)]
            if not isinstance(statement, Declare):
                of_block = any(map(self._is_of_block, own)) or bool(first & names(own))
                if of_block or any(isinstance(s, Leave) for s in walk(statement)):
                    raise NotLegal("what is done before its loop is a block's own", statement.line)
                self._check_before(statement)
                found.append(statement)
                continue
            left = list[Variable]()
            for variable in statement.variables:
                alone = [*expressions(replace(statement, variables=(variable,)))]
                if any(map(self._is_of_block, alone)) or first & names(alone):
                    first.add(variable)
                    if variable in asked:
                        raise NotLegal("its rounds ask for a block's first one", statement.line)
                    if variable not in head:
                        continue  # which says no more than how far the loop steps
                left.append(variable)
            if len(left) == len(statement.variables):
                found.append(statement)
            elif left:
                found.append(replace(statement, variables=tuple(left), span=None))
        return found

    # -- what makes it legal

    @staticmethod
    def _is_of_block(e: Expr) -> bool:
        return builtin(e) in (_BLOCK, _GRID)

    def _check_before(self, statement: Statement) -> None:
        stores = {a.array for a in self.accesses if a.mode != "load"}
        for access in self._within(statement):
            if access.space == "global" and access.mode != "load":
                raise NotLegal("it stores before its loop", access.line)
            if any(self.effects.same(access.array, own) for own in stores):
                raise NotLegal(f"its rounds store to `{access.array}`", access.line)

    def _check_apart(self) -> None:
        """Raise NotLegal where a round is left, or hands something on in a local."""
        loop, effects = self.loop, self.effects
        if any(self._is_of_block(e) for top in expressions(loop.body) for e in every(top)):
            raise NotLegal("its rounds ask for a block's place", loop.line)
        stack: list[Statement] = [loop.body]
        while stack:
            statement = stack.pop()
            if isinstance(statement, Leave):
                raise NotLegal("a round is left", statement.line)
            if isinstance(statement, Loop):
                if any(isinstance(s, Leave) and s.kind == "return" for s in walk(statement)):
                    raise NotLegal("a round is left", statement.line)
                continue
            stack.extend(statement.statements)
        own = {v for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
        for variable in effects.changed(loop.body):
            if variable not in own and variable.storage != "shared":
                raise NotLegal(f"`{variable.name}` goes from round to round", loop.line)
        if kept := effects.kept(loop.body):
            raise NotLegal(f"`{kept}` goes from round to round", loop.line)

    def _check_memory(self) -> None:
        """Raise NotLegal where a round may ask for what another one stores."""
        found = [a for a in self.accesses if a.space == "global"]
        for store in (a for a in found if a.mode != "load"):
            for other in found:
                if store.mode == other.mode == "atomic":
                    continue
                if self.effects.same(store.array, other.array) and not self._own(store, other):
                    raise NotLegal("its rounds may meet in memory", store.line)

    def _own(self, one: Access, other: Access) -> bool:
        """Whether both ask for elements of a stretch that a round has for itself."""
        each = [self._stretch(access) for access in (one, other)]
        alike = one.array == other.array and one.element == other.element
        return alike and each[0] is not None and each[0] == each[1]

    def _stretch(self, access: Access) -> Polynomial | None:
        """How long the stretch of a round is that an access stays in; None where it may not."""
        form, symbols = access.index, self.kernel.reading.symbols
        each = form.coefficient(_BLOCK) if form is not None else None
        start, step = self.axis.start, self.axis.step
        if form is None or each is None or not each.terms or not symbols.known(form):
            return None
        assert start is not None
        assert step is not None
        round_ = Polynomial.symbol(self.axis.name)
        block = Polynomial.symbol(_BLOCK) + Polynomial.symbol(_GRID) * round_
        for by, place in ((each, block), (each.divided(self.width), start + step * round_)):
            rest = form - by * place if by is not None else None
            if by is None or rest is None or self.item & (symbols.inside(rest) | by.symbols):
                continue
            if Ranges(access.guard, symbols).within(rest, by):
                return by
        return None

    def _check_shared(self) -> None:
        """Raise NotLegal where a round may ask for what an earlier one brought.

        It stores to what is shared before it loads from there; a place, or a block, may be without
        an element, and no round is another than the others.
        """
        begun = set[str]()
        for access in (a for a in self.accesses if a.space == "shared"):
            if access.mode == "load" and access.array in self.filled:
                continue
            if access.mode != "store" and access.array not in begun:
                raise NotLegal(f"`{access.array}` goes from round to round", access.line)
            begun.add(access.array)
            if access.array in self.filled:
                raise NotLegal(f"`{access.array}` goes from round to round", access.line)
            if access.mode == "store" and not all(map(self._alike, access.guard)):
                raise NotLegal(f"not all rounds store to `{access.array}`", access.line)

    def _alike(self, condition: Condition) -> bool:
        """Whether a test is none, or of a place among others, for one round as for another."""
        if condition in self.axis.test.conjuncts() or not condition.depends & self.item:
            return True
        match condition:
            case Compare(op=">=", roots=roots):
                return bool(roots & THREADS)
            case Some(parts=parts):
                return any(not part.depends & self.item for part in parts)
            case Every(parts=parts):
                return all(map(self._alike, parts))
        return False
