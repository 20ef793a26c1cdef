"""Kernels whose threads along an axis do the same for one item each, as guards say how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Name, Unary, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.cutting import TOLD, uses
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import each, form_of, needed, raised
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import as_wide, axis_of, is_wide, own_text_only
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Declare, If, Leave, Statement, Variable, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.expressions import Expression

_ONE = Polynomial.constant(1)
_WORD = 4  # bytes of an index


@dataclass(frozen=True)
class Mapped:
    """What a thread does for the item of its index along an axis.

    Attributes:
        count: how many items there are, in the words of the launch; ``bound`` in the reading's.
        name: what the index is called, and ``words`` its type; ``swaps`` are its places.
        holding: the local that it is called as; None where it has no name.
        outside: what is done before, and says nothing of the item.
        leaves: whether the guard that bounds the items returns, so that nothing is beyond it.
        tests: all hold wherever something is done for an item, and say nothing of it.
        inside: what is done for each item.
        held: the conditions that hold there for every item.
    """

    count: Expression
    bound: Polynomial
    index: Polynomial
    name: str
    words: str
    outside: tuple[Statement, ...]
    leaves: bool
    tests: tuple[Expr, ...]
    inside: tuple[Statement, ...]
    held: frozenset[Condition]
    swaps: Mapping[Node, Node]
    holding: Variable | None
    axis: str = "x"

    def limit(self, speller: LocalSpeller) -> str:
        """How many items there are, in the words of the kernel."""
        return speller.count(self.bound)


def mapped(kernel: Kernel, effects: Effects, axis: str = "x") -> Mapped:
    """The items along an axis. Raises NotLegal where its threads do not have one each."""
    check_own_work(kernel, effects, axis)
    found = uses(kernel, axis)
    count = needed(kernel, axis, loads=True)
    bound = form_of(count.tree, kernel.reading.symbols) if count is not None else None
    if count is None or bound is None or not found.whole:
        raise NotLegal("how many items there are its guards do not say as its launch does")
    return _Parting(kernel, effects, found.whole, axis).mapped(count, bound)


def check_own_work(kernel: Kernel, effects: Effects, axis: str = "x") -> None:
    """Raise NotLegal where a thread asks for more than its index along it, or meets others."""
    effects.straightforward()
    without_warps(kernel)
    own_text_only(kernel)
    every_place_read(kernel)
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    for name in TOLD:
        if name in kernel.reading.calls:
            raise NotLegal(f"`{name}` tells which thread comes when")
    for name in sorted(effects.moved):
        raise NotLegal(f"the parameter `{name}` changes")
    found = uses(kernel, axis)
    for part in (*found.parts, *found.strides):
        line = kernel.unit.line(*(part.span or kernel.function.span))
        raise NotLegal(f"a thread asks for more than its index along {axis}", line)


class _Parting:
    """Cuts a body where its items begin: behind its guards."""

    def __init__(self, kernel: Kernel, effects: Effects, places: list[Expr], axis: str) -> None:
        self.kernel = kernel
        self.axis = axis
        self.ours = (f"threadIdx.{axis}", f"blockIdx.{axis}")
        self.effects = effects
        self.outside: list[Statement] = []
        self.tests: list[Expr] = []
        self.inside: list[Statement] = []
        self.held: set[Condition] = set()
        self.own: set[Variable] = set()  # the locals that say something of the item
        self.name, self.words = "", "int"
        self.holding: Variable | None = None
        for statement in kernel.function.body.body:
            if isinstance(statement, Declare):
                self._named(statement)
        self.name = self.name or kernel.fresh("i")
        wide = next((e for e in places if is_wide(kernel, e)), None)
        if self.holding is None and wide is not None:
            self.words = kernel.reading.types[wide].name
        long = (named(self.words, kernel.unit.aliases).size or 0) > _WORD
        self.swaps: dict[Node, Node] = {
            e: text(self.name if long else as_wide(kernel, e, self.name)) for e in places
        }
        thread, block = map(Polynomial.symbol, self.ours)
        self.index = thread + Polynomial.constant(kernel.block["xyz".index(axis)] or 1) * block

    def mapped(self, count: Expression, bound: Polynomial) -> Mapped:
        leaves = self._part(bound - self.index - _ONE)
        self._check()
        return Mapped(
            count, bound, self.index, self.name, self.words, tuple(self.outside), leaves,
            tuple(self.tests), tuple(self.inside), frozenset(self.held), self.swaps,
            self.holding, self.axis,
        )  # fmt: skip

    def _named(self, statement: Declare) -> None:
        """What the index is called: as the first local that holds it, where one does."""
        for variable in statement.variables:
            value = variable.value
            if value is None or self.name or variable.type.depth:
                continue
            if axis_of(self.kernel, value) != self.axis or variable not in self.effects.lasting:
                continue
            kind = self.kernel.reading.types.get(value)
            words = statement.words.replace("auto", kind.name if kind else "int")
            self.name, self.words = variable.name, " ".join(words.replace("const", " ").split())
            self.own.add(variable)
            self.holding = variable

    def _part(self, left: Polynomial) -> bool:
        """Until the first statement that is neither a guard nor declares something.

        Whether what bounds the items returns.
        """
        bound: bool | None = None
        todo = list(self.kernel.function.body.body)
        while todo:
            statement = todo.pop(0)
            if isinstance(statement, Declare):
                self._declared(statement)
            elif isinstance(statement, Block) and not todo:
                todo = list(statement.body)
            elif isinstance(statement, If) and self._is_guard(statement, last=not todo):
                leaves = _leaves(statement.then)
                parts = [*split_test(statement.test, "||" if leaves else "&&")]
                varying = [part for part in parts if self._varies(part)]
                held = self._held(statement, len(parts), left if varying else None)
                if held is None or len(varying) > 1 or (varying and bound is not None):
                    self.inside.append(statement)
                    break
                bound = leaves if varying else bound
                self.held |= held
                others = [part for part in parts if part not in varying]
                if leaves and others:
                    test = joined_test(others, "||")
                    self.outside.append(replace(statement, test=test, span=None, head=None))
                if not leaves:
                    self.tests += others
                    inner = statement.then
                    todo = [*inner.body] if isinstance(inner, Block) else [inner]
            else:
                self.inside.append(statement)
                break
        self.inside += [own for statement in todo for own in self._unnamed(statement)]
        return bound is not False  # without such a guard, what is inside does nothing beyond

    def _unnamed(self, statement: Statement) -> Iterator[Statement]:
        """A statement without the local that holds the index, which whoever takes items names."""
        if not isinstance(statement, Declare) or self.holding not in statement.variables:
            yield statement
            return
        for variable in statement.variables:
            if variable is not self.holding:
                yield replace(statement, variables=(variable,), span=None)

    def _is_guard(self, statement: If, *, last: bool) -> bool:
        """Whether all that follows is done under a test alone."""
        if statement.other is not None or statement.before is not None:
            return False
        return not self.tests if _leaves(statement.then) else last

    def _declared(self, statement: Declare) -> None:
        """Each local where it belongs: outside if it says nothing of the item and lasts."""
        for variable in statement.variables:
            if variable.name == self.name and variable in self.own:
                continue
            alone = replace(statement, variables=(variable,), span=None)
            plain = variable in self.effects.lasting and not variable.array and not self.tests
            if plain and not any(self._varies(e) for e in alone.expressions):
                self.outside.append(alone)
            else:
                self.own.add(variable)
                self.inside.append(alone)

    def _varies(self, expr: Expr) -> bool:
        """Whether an expression may depend on the item."""
        return any(
            builtin(e) in self.ours or e in self.swaps
            or (isinstance(e, Name) and e.variable in self.own)
            for e in every(expr)
        )  # fmt: skip

    def _held(self, statement: If, count: int, left: Polynomial | None) -> set[Condition] | None:
        """What holds behind a guard of so many parts.

        None where that is not certain, or where it should bound the items by ``left`` and says
        something else of them.
        """
        reading = self.kernel.reading
        guards = [g for g in reading.guards if g.test is statement.test]
        if len(guards) != 1:
            return None
        for condition in (guards[0].condition, ~guards[0].condition):
            parts = {*condition.conjuncts()}
            if left is None:
                if any(parts <= _parts(a.guard) for a in reading.accesses):
                    return parts
                continue
            bounds = {
                p for p in parts if isinstance(p, Compare) and p.op == ">="
                and left in (
                    p.form, raised(p.form, reading.symbols), each(p.form, left, reading.symbols)
                )
            }  # fmt: skip
            free = not any({*self.ours} & p.depends for p in parts - bounds)
            if bounds and free and len(parts) == count:
                return parts
        return None

    def _check(self) -> None:
        """Raise NotLegal where an item leaves something behind for the next, or ends the kernel."""
        for statement in self.inside:
            for variable in self.effects.changed(statement):
                if variable not in self.own and not self._own(variable):
                    raise NotLegal(f"`{variable.name}` goes from item to item", statement.line)
            for loop in loops_in(statement):
                if any(isinstance(s, Leave) and s.kind == "return" for s in walk(loop)):
                    raise NotLegal("the kernel is left within a loop", loop.line)
            for inner in walk(statement):
                for variable in inner.variables if isinstance(inner, Declare) else ():
                    if variable.storage != "local":
                        raise NotLegal(f"`{variable.name}` is not the item's own", inner.line)

    def _own(self, variable: Variable) -> bool:
        return any(isinstance(s, Declare) and variable in s.variables for s in self.inside)


def _parts(guard: tuple[Condition, ...]) -> set[Condition]:
    return {part for condition in guard for part in condition.conjuncts()}


def _leaves(statement: Statement) -> bool:
    own = statement.body if isinstance(statement, Block) else (statement,)
    return len(own) == 1 and isinstance(own[0], Leave) and own[0].kind == "return"


def joined_test(parts: list[Expr], op: str) -> Expr:
    """Parts of a test as one again."""
    test = parts[0]
    for part in parts[1:]:
        test = Binary(None, op, test, part)
    return test


def split_test(expr: Expr, op: str) -> Iterator[Expr]:
    """The parts of a test, in order: of ``!(a && b)`` those are ``!a`` and ``!b``."""
    opposite = "&&" if op == "||" else "||"
    match expr:
        case Binary(op=own, left=left, right=right) if own == op:
            yield from split_test(left, op)
            yield from split_test(right, op)
        case Unary(op="!", operand=Binary(op=own, left=left, right=right)) if own == opposite:
            for side in (left, right):
                yield from split_test(Unary(None, "!", side), op)
        case Cast(operand=operand, type="bool"):
            yield from split_test(operand, op)
        case _:
            yield expr
