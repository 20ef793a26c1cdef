"""P16, recomputed: a row that a thread keeps in a local array is computed where it is asked for.

``for (i) y[i] = a[row * n + i] * s; ... for (i) var += (y[i] - mean) * (y[i] - mean);`` asks
memory again, which has what the row was made of. So do a block's rows in shared memory, once the
block is a thread (``raised``), and no row is left that would fit neither registers nor a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import (
    Effects,
    by_ones,
    declared_in,
    lent_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.scoped import fills_whole
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


def found_again(kernel: Kernel) -> Kernel:
    """The kernel without all such rows."""
    while isinstance(made := recomputed(kernel), Kernel):
        kernel = made
    return kernel


@primitive
def recomputed(kernel: Kernel) -> Kernel:
    """The kernel without the rows that it can find again, of which there must be one."""
    return _Rows(kernel).kernel_()


@dataclass(frozen=True, eq=False)
class _Held:
    """What the element of a row with this counter is, as long as nothing of it changes."""

    counter: Variable
    value: Expr
    loads: frozenset[str]


@dataclass(frozen=True, eq=False)
class _Rounds:
    """Which elements a loop gave values, as long as nothing that tells of its rounds changes."""

    axis: Axis
    asked: frozenset[Variable]

    def are(self, other: _Rounds) -> bool:
        """Whether another loop has the same ones."""
        one, two = self.axis, other.axis
        same = (one.start, one.stop, one.step) == (two.start, two.stop, two.step)
        return one.bounded and same and self.asked == other.asked


class _Rows:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        self.effects.straightforward()
        self.accesses = {a.node: a for a in kernel.reading.accesses}
        body = kernel.function.body
        declared = {v: s for s in walk(body) if isinstance(s, Declare) for v in s.variables}
        stored = {a.array for a in kernel.reading.accesses
                  if a.space == "local" and a.mode == "store"}  # fmt: skip
        self.rows = {v: s for v, s in declared.items() if v.array and v.storage == "local"
                     and len(v.extents) == 1 and not v.initial
                     and (v.value is None or isinstance(v.value, Literal))
                     and v.name in stored}  # fmt: skip
        self.loads: set[str] = set()  # the arrays that what a row is made of is loaded from

    def kernel_(self) -> Kernel:
        body = self.kernel.function.body
        why = NotLegal("no thread keeps a row")
        for array in self.rows:
            try:
                return self.kernel.rewritten(self._without(array))
            except NotLegal as found:
                why = NotLegal(found.reason, found.line or array.line)
        raise why if body.body else NotLegal("the kernel is empty")

    def _without(self, array: Variable) -> Block:
        """The body without one row."""
        body = self.kernel.function.body
        block = next(b for b in walk(body) if isinstance(b, Block) and self.rows[array] in b.body)
        held: _Held | None = None
        rounds: _Rounds | None = None
        stored = False
        swaps: _Swaps = {}
        first = next((s for s in block.body if array in self.effects.mentions(s)
                      and s is not self.rows[array]), None)  # fmt: skip
        begun = array.value is not None or array.opening == "{"
        if begun and not (isinstance(first, Loop) and fills_whole(self.effects, first, array)):
            raise NotLegal(f"`{array.name}` begins with values that are asked for", array.line)
        for statement in block.body:
            mine = self._mine(statement, array)
            given = self.effects.given(statement)
            if any(isinstance(self._place_in(e), Index) for e in mine):
                own = self._rounds(statement, array)
                if stored and (rounds is None or not rounds.are(own)):
                    raise NotLegal(f"some of `{array.name}` gets other values", statement.line)
                held = self._stores(statement, own.axis, array, held, swaps)
                rounds, stored = own, True
                continue
            rounds = None if rounds is not None and rounds.asked & given else rounds
            if mine and held is None:
                raise NotLegal(f"`{array.name}` is asked for before it has values", statement.line)
            moved = held is not None and self._changes(statement, held)
            if mine and moved:
                raise NotLegal(f"what `{array.name}` is made of changes", statement.line)
            for expr in mine:
                assert held is not None
                self._load(statement, array, expr, held, swaps)
            held = None if moved else held
        left = tuple(v for v in self.rows[array].variables if v is not array)
        rest = replace(self.rows[array], variables=left, span=None) if left else None
        swaps[self.rows[array]] = rest
        return edited(body, swaps)

    def _mine(self, statement: Statement, array: Variable) -> list[Expr]:
        """How a statement asks for a row; raises NotLegal where it keeps an address of it."""
        bases = {e.base: e for e in expressions(statement) if isinstance(e, Index)}
        own = [e for e in expressions(statement)
               if isinstance(e, Name) and e.variable is array]  # fmt: skip
        lent = {v for e in expressions(statement) if isinstance(e, Unary) and e.op == "&"
                for v in names([e])} | lent_in(statement)  # fmt: skip
        if any(e not in bases for e in own) or array in lent:
            raise NotLegal(f"an address in `{array.name}` is kept", statement.line)
        given = {e.target: e for e in expressions(statement) if isinstance(e, Assign | Step)}
        return [given.get(bases[e], bases[e]) for e in own]

    @staticmethod
    def _place_in(expr: Expr) -> Expr | None:
        return expr.target if isinstance(expr, Assign | Step) else None

    # -- a loop that gives the row its values

    def _rounds(self, statement: Statement, array: Variable) -> _Rounds:
        """Those of a loop that counts by ones and makes each of its rounds whole."""
        axis = self.kernel.axes().get(statement) if isinstance(statement, Loop) else None
        plain = axis is not None and axis.exact and by_ones(axis, self.effects)
        if axis is None or not plain or any(isinstance(s, Leave) for s in walk(statement)):
            raise NotLegal(
                f"`{array.name}` gets its values elsewhere than in a plain loop", statement.line
            )
        heads = [e for e in (axis.node.test,) if e is not None]
        heads += expressions(axis.node.before) if axis.node.before is not None else ()
        asked = names(heads) - {axis.variable}
        loaded = any(e in self.accesses for head in heads for e in every(head))
        if loaded or asked & {*self.effects.changed(axis.node.body)}:
            raise NotLegal("how many rounds a loop has may change", statement.line)
        return _Rounds(axis, asked)

    def _stores(
        self, statement: Statement, axis: Axis, array: Variable, held: _Held | None,
        swaps: _Swaps,
    ) -> _Held:  # fmt: skip
        assert axis.variable is not None
        assert isinstance(statement, Loop)
        counter, known = axis.variable, dict[Variable, Expr]()
        self.loads = set()
        made: _Held | None = None
        for step in parted(statement.body):
            mine = self._mine(step, array)
            match step:
                case Evaluate(expression=Assign(target=Index(
                    base=Name(variable=own), index=Name(variable=at)
                ) as place) as given) if own is array and at is counter:  # fmt: skip
                    if made is not None or sum(place is self._place_in(e) for e in mine) != 1:
                        raise NotLegal(f"`{array.name}` gets several values", step.line)
                    made = self._held(array, given, axis, known, held)
                    swaps[step] = ()
                    continue
            if any(self._place_in(e) is not None for e in mine):
                raise NotLegal(
                    f"`{array.name}` gets its values elsewhere than in a plain loop", step.line
                )
            now = made or held
            for expr in mine:
                same = isinstance(expr, Index) and isinstance(expr.index, Name)
                if now is None or not same or expr.index.variable is not counter:  # type: ignore[attr-defined]
                    raise NotLegal(f"`{array.name}` is asked for as it changes", step.line)
                if now is held and self._changes(statement, now, but=counter):
                    raise NotLegal(f"what `{array.name}` is made of changes", step.line)
                self._load(statement, array, expr, now, swaps)
            for variable in {*self.effects.given(step)}:
                known.pop(variable, None)
            match step:
                case Declare(variables=(variable,)) if variable.value is not None:
                    if variable in self.effects.lasting and not variable.array:
                        value = self._put(variable.value, known, array, held, counter)
                        known[variable] = self._as(variable.value, value, variable)
        if made is None:
            raise NotLegal(
                f"`{array.name}` gets its values elsewhere than in a plain loop", statement.line
            )
        if self._changes(statement, made, but=counter):
            raise NotLegal(f"what `{array.name}` is made of changes", statement.line)
        if all(step in swaps for step in parted(statement.body)):
            swaps |= dict.fromkeys((statement, *hints_of(self.kernel, statement)), ())
        return made

    def _held(
        self, array: Variable, given: Assign, axis: Axis, known: dict[Variable, Expr],
        held: _Held | None,
    ) -> _Held:  # fmt: skip
        counter, value = axis.variable, given.value
        assert counter is not None
        if given.op != "=":
            value = Binary(None, given.op[:-1], given.target, given.value)
        put = self._as(value, self._put(value, known, array, held, counter), array)
        if names([put]) & declared_in(axis.node.body):
            raise NotLegal(f"what `{array.name}` keeps takes more than an expression", array.line)
        return _Held(counter, put, frozenset(self.loads))

    def _as(self, value: Expr, put: Expr, variable: Variable) -> Expr:
        """What stands for a value, as a local or an element holds it."""
        kind = self.kernel.reading.types.get(value)
        if kind is not None and kind == type_of(self.kernel, variable):
            return put
        if variable.type.depth or variable.type.base == "auto":
            raise NotLegal(f"what `{variable.name}` holds is of another type", variable.line)
        return Cast(None, variable.type.base, put)

    def _put(
        self, expr: Expr, known: dict[Variable, Expr], array: Variable, held: _Held | None,
        counter: Variable,
    ) -> Expr:  # fmt: skip
        """An expression with what locals and the row's own element were in their places."""
        swaps: dict[Node, Node] = {}
        for part in every(expr):
            if isinstance(part, Assign | Step | Lambda | Unread):
                raise NotLegal(f"what `{array.name}` keeps is not followed")
            called = isinstance(part, Call) and part not in self.accesses
            if called and not only_computes(self.kernel, part):  # type: ignore[arg-type]
                raise NotLegal(f"what `{array.name}` keeps is not followed")
            if isinstance(part, Name) and part.variable in known:
                swaps[part] = known[part.variable]
            match part:
                case Index(base=Name(variable=own), index=at) if own is array:
                    same = isinstance(at, Name) and at.variable is counter
                    if held is None or not same:
                        raise NotLegal(f"`{array.name}` is asked for as it changes")
                    swaps[part] = self._at(held, at)
                    self.loads |= held.loads
                    continue
            if (access := self.accesses.get(part)) is not None:
                self.loads.add(access.array)
        return edited(expr, swaps)

    # -- who asks for it

    def _load(
        self, statement: Statement, array: Variable, expr: Expr, held: _Held, swaps: _Swaps
    ) -> None:
        if not isinstance(expr, Index):
            raise NotLegal(
                f"`{array.name}` gets its values elsewhere than in a plain loop", statement.line
            )
        own = {v.name for s in walk(statement) if isinstance(s, Declare) for v in s.variables}
        hidden = own & {v.name for v in names([held.value]) - {held.counter}}
        if hidden:
            raise NotLegal(f"a local hides another one, `{min(hidden)}`", statement.line)
        for part in every(expr.index):
            called = isinstance(part, Call) and not only_computes(self.kernel, part)
            if called or isinstance(part, Assign | Step | Lambda | Unread):
                raise NotLegal(f"which element of `{array.name}` it takes changes", statement.line)
        swaps[expr] = self._at(held, expr.index)

    def _changes(self, statement: Statement, held: _Held, but: Variable | None = None) -> bool:
        """Whether what a row is made of is other behind a statement, or in it."""
        asked = names([held.value]) - {held.counter}
        given = {*self.effects.given(statement)} - {but}
        hidden = statement.variables if isinstance(statement, Declare) else ()
        if asked & given or {v.name for v in asked} & {v.name for v in hidden}:
            return True
        inside = self.effects.inside(statement)
        return any(
            a.mode != "load" and a.own in inside
            and any(self.effects.same(a.array, one) for one in held.loads)
            for a in self.kernel.reading.accesses
        )  # fmt: skip

    def _at(self, held: _Held, index: Expr) -> Expr:
        """The element of a row at a place, which is of the counter's type."""
        counter, types = held.counter, self.kernel.reading.types
        found = types.get(index)
        literal = isinstance(index, Literal) and isinstance(index.value, int)
        kind = type_of(self.kernel, counter)
        if found != kind and not (literal and kind.name == "int"):
            index = Cast(None, declared_type(self.kernel, counter), index)
        swaps: dict[Node, Node] = {e: index for e in every(held.value)
                                   if isinstance(e, Name) and e.variable is counter}  # fmt: skip
        return edited(held.value, swaps)
