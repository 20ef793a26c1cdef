"""P5 undone: what a thread adds up side by side in a local array, it adds up one after the other.

``for (c) acc[c] = 0; for (k) for (c) acc[c] += f(k, c); for (c) out[c] = acc[c];`` is one loop over
``c``, in each round of which a single local is begun, added to by all ``k``, and stored. Its rounds
may then be done by as many threads (``uncoarsened``). Of results along two axes, ``acc[r][c]``, a
round of the first has a row, whose results the next step tells apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_simple, loops_in
from optiml_magic.kernels.primitives.innermost import says
from optiml_magic.kernels.primitives.led import under_names
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_MOST = 64  # results of a thread in registers: ours
_WORD = re.compile(r"[A-Za-z_]\w*")
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@primitive
def unjammed(kernel: Kernel) -> Kernel:
    """The kernel whose threads make each of their results in a round of a loop."""
    effects = Effects(kernel)
    effects.straightforward()
    without_warps(kernel)
    refused = NotLegal("no thread adds up several results side by side")
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        for at, statement in enumerate(block.body):
            match statement:
                case Declare(variables=(variable,)) if is_results(kernel, variable):
                    try:
                        found = _Results(kernel, effects, statement, block.body[at + 1 :])
                        return found.made()
                    except NotLegal as reason:
                        refused = reason
    raise refused


def is_results(kernel: Kernel, variable: Variable) -> bool:
    """Whether this is a local array of numbers that begins with nothing, or with zeros."""
    kind = named(variable.type.base, kernel.unit.aliases)
    plain = (kind.floating or kind.integral) and kind.lanes == 1 and not variable.type.depth
    begun = variable.value is None or (
        isinstance(variable.value, Literal) and variable.value.value == 0
    )
    one = variable.storage == "local" and len(variable.extents) in (1, 2)
    return one and plain and begun and not variable.initial and not variable.type.reference


@dataclass(frozen=True, eq=False)
class _Part:
    """A statement that asks for results by the counters of ``loops``."""

    statement: Statement
    loops: tuple[Loop, ...]


class _Results:
    def __init__(
        self, kernel: Kernel, effects: Effects, declared: Declare, rest: tuple[Statement, ...]
    ) -> None:
        self.kernel, self.effects, self.declared = kernel, effects, declared
        (self.variable,) = declared.variables
        self.axes = kernel.axes()
        asking = [n for n, s in enumerate(rest) if self.variable in effects.mentions(s)]
        if len(asking) < 2:
            raise NotLegal("a thread has no results side by side", declared.line)
        between = [rest[n] for n in range(asking[0], asking[-1]) if n not in asking]
        self.parts = [self._part(rest[n]) for n in asking]
        *self.before, self.last = self.parts
        for statement in between:
            self._check_declares(statement)
        self._check()

    # -- what makes it legal

    def _part(self, statement: Statement) -> _Part:
        """The loops of a statement over the results, by whose counters alone it asks for these."""
        inside = [*expressions(statement)]
        places = {
            e.base: e for e in inside
            if isinstance(e, Index) and isinstance(e.base, Name)
            and e.base.variable is self.variable and isinstance(e.index, Name)
        }  # fmt: skip
        found = dict[Loop, None]()
        for e in inside:
            if isinstance(e, Lambda):
                raise NotLegal("a function within it may ask for a result", statement.line)
            if not isinstance(e, Name) or e.variable is not self.variable:
                continue
            index = places[e].index if e in places else None
            counter = index.variable if isinstance(index, Name) else None
            loop = next((s for s in loops_in(statement) if self._counter(s) is counter), None)
            if counter is None or loop is None or e not in self.effects.inside(loop.body):
                raise NotLegal("a result is asked for by another number", statement.line)
            found[loop] = None
        for loop in found:
            if any(inner in found for inner in loops_in(loop.body)):
                raise NotLegal("a loop over results is in another", loop.line)
        return _Part(statement, tuple(found))

    def _counter(self, loop: Loop) -> Variable | None:
        axis = self.axes.get(loop)
        if axis is None or not axis.exact or axis.trips is None:
            return None
        return axis.variable if is_simple(axis, self.effects) else None

    def _check(self) -> None:
        line = self.declared.line
        loops = [loop for part in self.parts for loop in part.loops]
        counts = {self.axes[loop].trips for loop in loops}
        kinds = {v.type.base for loop in loops if (v := self._counter(loop)) is not None}
        if len(counts) != 1 or len(kinds) != 1:
            raise NotLegal("its results are not asked for alike", line)
        (count,) = counts
        fixed = fixed_numbers(self.kernel)
        size, *more = (
            number_of(e, fixed) if e is not None else None for e in self.variable.extents
        )
        if more and (None in more or not 1 < (count or 0) * (more[0] or 0) <= _MOST):
            raise NotLegal("how many results a thread has is not known", line)
        if count is None or size is None or not 1 < count <= min(size, _MOST):
            raise NotLegal("how many results a thread has is not known", line)
        if self.last.loops != (self.last.statement,):
            raise NotLegal("its results are not stored by one loop", self.last.statement.line)
        several = under_names(self.kernel.function.body)
        asked = {v for part in self.parts for v in self.effects.mentions(part.statement)}
        if self.variable in several or asked & several:
            raise NotLegal("what results are made of may change by another name", line)
        for part in self.before:
            self._check_sums(part)
            for loop in part.loops:
                self._check_results_apart(loop)
        self._check_apart()
        if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(self.last.statement)):
            raise NotLegal("the loop that stores its results is left", self.last.statement.line)

    def _check_sums(self, part: _Part) -> None:
        """Raise NotLegal where a statement does more than to compute results."""
        effects, statement = self.effects, part.statement
        if effects.changed(statement) or effects.kept(statement, (self.variable.name,)):
            raise NotLegal("something else goes from round to round", statement.line)
        for inner in walk(statement):
            if not isinstance(inner, Blank | Block | Declare | Evaluate | If | Loop):
                raise NotLegal("a round is left", inner.line)
        if any(a.mode != "load" or not a.array for a in effects.accesses(statement)):
            raise NotLegal("it stores before its results are there", statement.line)
        for e in effects.inside(statement):
            if isinstance(e, Call) and (e.callee is not None or not pure(bare(e.function))):
                raise NotLegal(f"`{e.function}` may do more than to compute", statement.line)

    def _check_results_apart(self, loop: Loop) -> None:
        """Raise NotLegal where a result changes more than itself for those that follow it."""
        own = declared_in(loop.body) | {self.variable}
        for e in self.effects.inside(loop.body):
            place = e.target if isinstance(e, Assign | Step) else None
            while isinstance(place, Index | Member | Unary | Cast):
                place = place.base if isinstance(place, Index | Member) else place.operand
            if place is not None and not (isinstance(place, Name) and place.variable in own):
                raise NotLegal("something goes from result to result", loop.line)
        kept = self.effects.kept(loop.body, (self.variable.name,))
        if kept or self.effects.changed(loop.body):
            raise NotLegal("something goes from result to result", loop.line)

    def _check_apart(self) -> None:
        """Raise NotLegal where what a result's end does is asked for by those that follow."""
        effects, end = self.effects, self.last.statement
        asked = {v for part in self.before for v in effects.mentions(part.statement)}
        if effects.changed(end).keys() & asked or effects.kept(end, (self.variable.name,)):
            raise NotLegal("a result's end changes what another is made of", end.line)
        loaded = [a.array for part in self.before for a in effects.accesses(part.statement)]
        for store in (a for a in effects.accesses(end) if a.mode != "load"):
            if not store.array or any(effects.same(store.array, other) for other in loaded):
                raise NotLegal("a result is stored where others are made from", store.line)

    def _check_declares(self, statement: Statement) -> None:
        """Raise NotLegal where a statement between others does more than to declare."""
        plain = isinstance(statement, Declare | Blank)
        if isinstance(statement, Blank) and says(self.kernel, statement):
            plain = False
        for e in self.effects.inside(statement):
            impure = isinstance(e, Call) and (e.callee is not None or not pure(bare(e.function)))
            if isinstance(e, Assign | Step | Lambda) or impure:
                plain = False
        own = statement.variables if isinstance(statement, Declare) else ()
        for s in (part.statement for part in self.before):
            if s.span is None or statement.span is None:
                plain = False
            elif s.span < statement.span:  # a local that follows it, and so is none of its names
                said = {*_WORD.findall(code(self.kernel.unit, s.span))}
                plain = plain and not said & {v.name for v in own}
        if not plain:
            raise NotLegal("something is done between its results", statement.line)

    # -- what is made

    def made(self) -> Kernel:
        kernel, end = self.kernel, self.last.statement
        assert isinstance(end, Loop)
        name = kernel.fresh(f"{self.variable.name}_one")
        counter = self._counter(end)
        assert counter is not None
        at = kernel.fresh(counter.name)
        body = list[str]()
        first, value = self.before[0], self.variable.value
        begun = self._begun(first)
        if begun is not None:
            words = f" = {kernel.spelled(begun, self._swaps(first, name, at))}"
            rest = self.before[1:]
        else:
            words = f" = {kernel.spelled(value)}" if value is not None else ""
            rest = self.before
        if row := self.variable.extents[1:]:
            each = "".join(f"[{kernel.spelled(e)}]" for e in row if e is not None)
            words = f"{each} = {{}}" if value is not None else each
        body.append(f"{self.variable.type.base} {name}{words};")
        swaps: _Swaps = {self.declared: None}
        for part in self.before:
            swaps[part.statement] = None
            if isinstance(part.statement, Loop):
                swaps |= dict.fromkeys(hints_of(kernel, part.statement))
        swaps |= dict.fromkeys(hints_of(kernel, end))
        body += [kernel.show(self._alone(part, name, at)) for part in rest]
        stored = edited(end.body, {**self._swaps(self.last, name, at)})
        inner = stored.body if isinstance(stored, Block) else (stored,)
        body += [kernel.show(statement) for statement in inner]
        inside = "\n".join(body)
        head = f"for ({counter.type.base} {at} = 0; {at} < {self.axes[end].trips}; ++{at})"
        swaps[end] = lines(f"{head} {{\n{inside}\n}}")
        return kernel.rewritten(edited(kernel.function.body, swaps))

    def _begun(self, part: _Part) -> Expr | None:
        """What a loop that does no more gives each result to begin with."""
        loop = part.statement
        if part.loops != (loop,) or not isinstance(loop, Loop):
            return None
        body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
        match tuple(s for s in body if not isinstance(s, Blank)):
            case (Evaluate(expression=Assign(op="=", target=Index(base=Name(variable=v)),
                                             value=value)),):  # fmt: skip
                names = {e.variable for e in every(value) if isinstance(e, Name)}
                return value if v is self.variable and v not in names else None
        return None

    def _swaps(self, part: _Part, name: str, at: str) -> dict[Node, Node]:
        """A result and its number, where they stand in the loops over results."""
        counters = {self._counter(loop) for loop in part.loops}
        found: dict[Node, Node] = {}
        for e in self._inside(part):
            match e:
                case Index(base=Name(variable=v)) if v is self.variable:
                    found[e] = text(name)
                case Name(variable=v) if v in counters:
                    found[e] = text(at)
        return found

    def _inside(self, part: _Part) -> Iterator[Expr]:
        for loop in part.loops:
            yield from self.effects.inside(loop.body)

    def _alone(self, part: _Part, name: str, at: str) -> Statement:
        """A statement for one result: what was done for each in a loop is done for that alone."""
        swaps: _Swaps = {**self._swaps(part, name, at)}
        for loop in part.loops:
            swaps |= dict.fromkeys(hints_of(self.kernel, loop))
        bodies: _Swaps = {}
        for loop in part.loops:
            made = _braced(edited(loop.body, swaps))
            inside = any(loop in s.body for s in walk(part.statement) if isinstance(s, Block))
            plain = inside and not any(isinstance(s, Declare) for s in made.body)
            bodies[loop] = made.body if plain else made
        if part.loops == (part.statement,):
            made = _braced(edited(part.loops[0].body, swaps))
            own = [s for s in made.body if not isinstance(s, Blank)]
            alone = len(own) == 1 and not isinstance(own[0], Declare)
            return own[0] if alone else made
        return edited(part.statement, {**swaps, **bodies})


def _braced(body: Statement) -> Block:
    return body if isinstance(body, Block) else Block(None, body.line, (body,))
