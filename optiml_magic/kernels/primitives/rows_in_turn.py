"""P5, rows in turn: several rows at once of those that each ask for all rows before them.

``for (i) { s = b[i]; for (j < i) s -= l[i][j] * x[j]; x[i] = s / l[i][i]; }``, as a triangular
system is solved, loads all of ``x`` for each row. A block of rows asks for what stands before the
block together, so that each element is loaded once for all of them, then for its own rows in turn.
Each sum has its terms in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Choice,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.appended import check_calls
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_simple, loops_in, names
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.rounds import moves
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Blank, Declare, Evaluate, Loop, Statement, Variable
from optiml_magic.source.directives import TuneDirective

ROWS = (2, 4, 8, 16)
_VECTORS = {"float": ("float4", 4), "double": ("double2", 2)}


@dataclass(frozen=True)
class Rows:
    """A loop over rows: each does ``before``, ``inner`` over all rows before it, and ``behind``.

    ``sums`` are the locals that go from one of these to the next; ``end`` says how many rows.
    """

    outer: Axis
    inner: Axis
    before: tuple[Statement, ...]
    behind: tuple[Statement, ...]
    sums: tuple[Variable, ...]
    end: Expr

    @property
    def row(self) -> Variable:
        assert self.outer.variable is not None
        return self.outer.variable


@primitive
def rows_in_turn(kernel: Kernel, rows: int) -> Kernel:
    """The kernel with as many rows at once in its first such loop."""
    effects = Effects(kernel)
    effects.straightforward()
    one = found_in(kernel)
    made = _Blocks(kernel, effects, one)
    body = edited(kernel.function.body, {one.outer.node: tuple(map(lines, made.texts()))})
    tune = TuneDirective(made.rows, ROWS, rows)
    return kernel.rewritten(body, directives=[tune])


def found_in(kernel: Kernel) -> Rows:
    """The first loop over such rows. Raises NotLegal where there is none."""
    effects, reason = Effects(kernel), NotLegal("no rows ask for all rows before them")
    for loop in loops_in(kernel.function.body):
        axis = kernel.axes().get(loop)
        inner = [s for s in flat(loop.body) if isinstance(s, Loop)]
        if axis is None or len(loops_in(loop.body)) != 1 or len(inner) != 1:
            continue
        within = kernel.axes().get(inner[0])
        if within is None or not _before_it(axis, within, effects):
            continue
        try:
            return _rows(kernel, effects, axis, within)
        except NotLegal as other:
            reason = other
    raise reason


def _before_it(outer: Axis, inner: Axis, effects: Effects) -> bool:
    """Whether the inner loop counts all rows before that of the outer one."""
    if not (
        outer.exact and inner.exact and is_simple(outer, effects) and is_simple(inner, effects)
    ):
        return False
    match outer.node.test, inner.node.test:
        case (
            Binary(op="<", left=Name(variable=row)),
            Binary(op="<", left=Name(variable=before), right=Name(variable=end)),
        ):
            rows = outer.node.test.right
            plain = all(isinstance(e, Name | Literal | Binary) for e in every(rows))
            return plain and row is outer.variable is end and before is inner.variable
    return False


def _rows(kernel: Kernel, effects: Effects, outer: Axis, inner: Axis) -> Rows:
    body, test = flat(outer.node.body), outer.node.test
    at = body.index(inner.node)
    before, behind = (*body[:at],), (*body[at + 1 :],)
    assert isinstance(test, Binary)
    line = outer.line
    if any(isinstance(e, Lambda | Unread) for e in effects.inside(outer.node)):
        raise NotLegal("what a row does is not followed", line)
    check_calls(kernel, effects, outer.node)
    if any(True for _ in ends(outer.node.body)):
        raise NotLegal("a row is left early", line)
    if any(not isinstance(s, Declare) for s in before):
        raise NotLegal("a row does more than to declare before it asks for others", line)
    if effects.changed(outer.node.body) or effects.kept(outer.node.body):
        raise NotLegal("more than memory goes from row to row", line)
    own = [v for s in before if isinstance(s, Declare) for v in s.variables]
    changed = effects.changed(inner.node.body, *behind)
    for variable in own:
        plain = variable.value is not None and variable.opening == "=" and not variable.array
        if not plain or variable.type.reference or variable in effects.lent:
            raise NotLegal(f"`{variable.name}` is not a value of its row", variable.line)
    sums = tuple(v for v in own if v in changed)
    if not sums:
        raise NotLegal("rows before add nothing up", line)
    if any(v not in sums and v.value is not None and names([v.value]) & {*sums} for v in own):
        raise NotLegal("what a row has depends on what it adds up", line)
    for variable in sums:
        kind = type_of(kernel, variable)
        if kind.depth or not (kind.integral or kind.floating):
            raise NotLegal(f"`{variable.name}` is not a number", variable.line)
    called = [v.name for v in declared_in(outer.node.body)]
    called += [v.name for v in (outer.variable,) if v is not None]
    if len({*called}) < len(called):
        raise NotLegal("a name stands for several locals of a row", line)
    if any(v.type.reference for v in effects.mentions(outer.node)):
        raise NotLegal("a row asks by a reference", line)
    _check_memory(kernel, effects, outer, inner, behind)
    return Rows(outer, inner, before, behind, sums, test.right)


def _check_memory(
    kernel: Kernel, effects: Effects, outer: Axis, inner: Axis, behind: Sequence[Statement]
) -> None:
    """Raise NotLegal where a row would ask for what a row of its block has yet to store."""
    late = frozenset[Expr]().union(*(effects.inside(s) for s in behind))
    found = effects.accesses(outer.node)
    stores = [a for a in found if a.mode != "load"]
    for store in stores:
        plain = store.mode == "store" and store.call is None and store.own in late
        if not plain or store.offset is None or not moves(kernel, outer, store, outer.node):
            raise NotLegal("where a row stores is not its own", store.line)
        by = store.offset.coefficient(outer.name)
        if by is None or outer.name in kernel.reading.symbols.inside(
            store.offset.without([outer.name])
        ):
            raise NotLegal("where a row stores is not its own", store.line)
        for load in (a for a in found if a.mode == "load" and a.own not in late):
            if effects.same(load.array, store.array) and not _in_turn(load, store, outer, inner):
                raise NotLegal("a row asks for what may not be stored yet", load.line)


def _in_turn(load: Access, store: Access, outer: Axis, inner: Axis) -> bool:
    """Whether what is loaded is of the row itself, or of the row before it that asks."""
    if load.array != store.array or load.offset is None or store.offset is None:
        return False
    if load.element != store.element:
        return False
    by = store.offset.coefficient(outer.name)
    assert by is not None
    of_inner = store.offset.without([outer.name]) + by * Polynomial.symbol(inner.name)
    return load.offset in (store.offset, of_inner) and (
        load.offset == of_inner or inner.name not in load.loops
    )


def _walked(kernel: Kernel, effects: Effects, one: Rows) -> Iterator[Access]:
    """The elements that rounds take one behind the other, of floats that nobody stores."""
    loop, inside = one.inner.node, effects.inside(one.inner.node.body)
    plain = all(isinstance(s, Declare | Evaluate | Blank) for s in flat(loop.body))
    if not plain or any(
        isinstance(e, Choice) or (isinstance(e, Binary) and e.op in ("&&", "||")) for e in inside
    ):  # fmt: skip
        return
    for access in effects.accesses(loop):
        by = access.offset.coefficient(one.inner.name) if access.offset is not None else None
        alone = not any(effects.same(access.array, a) for a in kernel.reading.written)
        vector = access.element.name in _VECTORS and by == Polynomial.constant(
            access.element.size or 0
        )
        steady = isinstance(access.node, Index) and not names([access.node]) & declared_in(
            loop.body
        )
        if vector and alone and steady and access.offset is not None:
            rest = access.offset.without([one.inner.name])
            if access.call is None and one.inner.name not in kernel.reading.symbols.inside(rest):
                yield access


class _Blocks:
    """The text of a loop over rows in blocks, and over the rows that are left."""

    def __init__(self, kernel: Kernel, effects: Effects, one: Rows) -> None:
        self.kernel = kernel
        self.effects = effects
        self.one = one
        self.rows = kernel.fresh("ROWS")
        self.first = kernel.fresh(f"{one.row.name}_first")
        self.at = kernel.fresh(f"{one.row.name}_at")
        self.below = kernel.fresh(f"{self._inner.name}_at")
        self.past = kernel.fresh(f"{self._inner.name}_past")
        self.wide = kernel.fresh("wide")
        self.kind = declared_type(kernel, one.row)

    @property
    def _inner(self) -> Variable:
        assert self.one.inner.variable is not None
        return self.one.inner.variable

    def texts(self) -> Iterator[str]:
        """The statements that stand for the loop."""
        one, kernel, first, row = self.one, self.kernel, self.first, self.one.row.name
        end = kernel.spelled(one.end)
        end = end if isinstance(one.end, Name) else f"({end})"
        inner, kind = self._inner.name, declared_type(kernel, self._inner)
        work = [kernel.show(s, self._swaps()) for s in flat(one.inner.node.body)]
        sums = [f"{declared_type(kernel, v)} {v.name}[{self.rows}];" for v in one.sums]
        begun = [f"{v.name}[{self.at}] = {self._value(v)};" if v in one.sums else self._again(v)
                 for v in self._own()]  # fmt: skip
        again = [self._again(v) for v in self._own() if v not in one.sums]
        yield f"{self.kind} {first} = 0;"
        yield "\n".join([
            f"for (; {end} - {first} >= {self.rows}; {first} += {self.rows}) {{",
            *sums,
            *self._each([*begun]),
            f"{kind} {self.past} = 0;",
            *self._by_vectors(again),
            f"for ({kind} {inner} = {self.past}; {inner} < {first}; ++{inner}) {{",
            *self._each([*again, *work]),
            "}",
            *self._each([
                *again, "#pragma unroll",
                f"for (int {self.below} = 0; {self.below} < {self.at}; ++{self.below}) {{",
                f"const {kind} {inner} = {first} + {self.below};", *work, "}",
                *(kernel.show(s, self._swaps()) for s in one.behind),
            ]),
            "}",
        ])  # fmt: skip
        left = kernel.show(one.outer.node.body)
        yield f"for ({self.kind} {row} = {first}; {row} < {end}; ++{row}) {left}"

    def _by_vectors(self, again: Sequence[str]) -> list[str]:
        """The rounds that take elements of a row by 16 bytes, where rows begin with whole ones."""
        walked = [*_walked(self.kernel, self.effects, self.one)]
        if not walked:
            return []
        element = walked[0].element.name
        vector, count = _VECTORS[element]
        found = [access.node for access in walked if access.element.name == element]
        kernel, past, inner = self.kernel, self.past, self._inner.name
        kind, loads = declared_type(kernel, self._inner), dict[str, str]()
        swaps = dict(self._swaps())
        at_past: dict[Node, Node] = {
            e: text(past)
            for e in self.effects.inside(self.one.inner.node)
            if isinstance(e, Name) and e.variable is self._inner
        }
        for node in found:
            place = kernel.spelled(node, at_past)
            name = loads.setdefault(place, kernel.fresh("several", *loads.values()))
            swaps[node] = text(f"{name}[{self.below}]")
        work = [kernel.show(s, swaps) for s in flat(self.one.inner.node.body)]
        aligned = [f"{self.wide} = {self.wide} && (size_t)&{place} % 16 == 0;" for place in loads]
        members = ", ".join(f"{{0}}_vector.{x}" for x in "xyzw"[:count])
        fetched = list[str]()
        for place, name in loads.items():
            fetched += [
                f"const {vector} {name}_vector = *(const {vector}*)&{place};",
                f"const {element} {name}[] = {{{members.format(name)}}};",
            ]
        return [
            f"bool {self.wide} = true;",
            *self._each([*again, *aligned]),
            f"for (; {self.wide} && {self.first} - {past} >= {count}; {past} += {count}) {{",
            *self._each([
                *again, *fetched, "#pragma unroll",
                f"for (int {self.below} = 0; {self.below} < {count}; ++{self.below}) {{",
                f"const {kind} {inner} = {past} + {self.below};", *work, "}",
            ]),
            "}",
        ]  # fmt: skip

    def _each(self, work: Sequence[str]) -> list[str]:
        """Something for each row of a block, written out."""
        head = f"for (int {self.at} = 0; {self.at} < {self.rows}; ++{self.at}) {{"
        row = f"const {self.kind} {self.one.row.name} = {self.first} + {self.at};"
        return ["#pragma unroll", head, row, *work, "}"]

    def _own(self) -> list[Variable]:
        return [v for s in self.one.before if isinstance(s, Declare) for v in s.variables]

    def _again(self, variable: Variable) -> str:
        """A local of a row that no part of it changes, found where it is asked for."""
        kind = declared_type(self.kernel, variable)
        return f"{kind} {variable.name} = {self._value(variable)};"

    def _value(self, variable: Variable) -> str:
        assert variable.value is not None
        return self.kernel.spelled(variable.value, self._swaps())

    def _swaps(self) -> Mapping[Node, Node]:
        return {
            e: text(f"{e.name}[{self.at}]")
            for e in self.effects.inside(self.one.outer.node)
            if isinstance(e, Name) and e.variable in self.one.sums
        }
