"""P11, appended: lanes look at several rounds at once, and append what these find in its order.

The first k neighbours within a radius, the elements of a row that pass a test: a round that finds
one stores it where the list ends, which is then longer by one. A vote says which lanes have found
one, and how many lanes before it did is how far behind the end of the list each stores its own. So
the list is the same, in the same order, and the lanes leave together when it is full. What comes
with its first element besides, such as to fill the list with it, is done before others are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.ahead import Ahead, ahead, branches, check_found, check_names
from optiml_magic.kernels.primitives.all_rounds import asked
from optiml_magic.kernels.primitives.appended_places import places_apart
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import noticed
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.full import Full, begun, full
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.mapped import split_test
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.rounds import counting
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    only_leaves,
    walk,
)

_MASK = "group_mask<{}>()"
_ALWAYS = "true"
_NONE = "no branch of a round appends to a list"
_WORD = 4  # bytes of a count to which all lanes may add at once


@dataclass(frozen=True)
class Appended(Ahead):
    """A loop whose rounds append to lists that have ``count`` elements, in ``branch`` alone.

    Of a round that is what comes behind ``looked``. Where ``found`` holds its lane does ``first``
    if the list had as many elements as when it was ``begun``, and then ``rest``, in which ``step``
    makes the list longer. It ends where the list is ``full``, where sizes are as ``asked``.
    """

    count: Variable
    looked: tuple[Statement, ...]
    found: tuple[Expr, ...]
    first: tuple[If, ...]
    rest: tuple[Statement, ...]
    step: Expr
    begun: int | None
    full: Full | None
    asked: tuple[str, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        return self.asked

    def _declared(self, variable: Variable, swaps: Mapping[Node, Node]) -> str:
        """A local of a round; of several members it begins with no value."""
        kind = type_of(self.kernel, variable)
        if variable.array or kind.integral or kind.floating or kind.kind == "bool":
            return super()._declared(variable, swaps)
        return f"{declared_type(self.kernel, variable)} {variable.name};"

    def text(
        self, lane: str, count: str, swaps: Mapping[Node, Node], fresh: Callable[[str], str]
    ) -> str:
        """The loop, of whose rounds ``count`` lanes make one each."""
        kernel, axis, loop = self.kernel, self.axis, self.axis.node
        assert axis.variable is not None
        heads = Heads(kernel, [loop], self.effects)
        name, kind = axis.variable.name, declared_type(kernel, axis.variable)
        length, number = self.count.name, declared_type(kernel, self.count)
        base, is_open, appends = fresh(f"{name}_base"), fresh("is_open"), fresh("appends")
        found, place, more = fresh("found"), fresh(f"{length}_own"), fresh("more")
        _, start = heads.start(loop, swaps)
        step = heads.step(axis)
        far = "" if step == "1" else f" * {step}"
        at_base = heads.test(loop, axis, {**swaps, **self._named(axis.variable, base)})
        mask, wait = _MASK.format(count), combine.waiting("warp", count)
        own: dict[Node, Node] = {**swaps, **self._named(self.count, place), self.step: text(place)}
        end = self._shown(self.full.end, swaps) if self.full is not None else ""
        end = end if self.full is None or isinstance(self.full.end, Name) else f"({end})"
        tests = [f"({self._shown(test, swaps)})" for test in self.found]
        at_base = f"({at_base}) && {length} < {end}" if end else at_base
        before = f"{found} & ((1u << threadIdx.x % 32) - 1)"
        made = [
            f"for ({kind} {base} = {start}; {at_base}; {base} += {count}{far}) {{",
            f"const {kind} {name} = {base} + {lane}{far};",
            f"bool {is_open} = {heads.test(loop, axis, swaps)};",
            *(self._declared(variable, swaps) for variable in self.own),
            f"if ({is_open}) {{",
            *self._looked(self.looked, is_open, swaps),
            "}",
            f"const bool {appends} = {' && '.join([is_open, *tests])};",
            f"const unsigned {found} = __ballot_sync({mask}, {appends});",
            f"if ({found} != 0) {{",
            f"const {number} {place} = {length} + __popc({before});",
        ]
        if self.first:
            made += [f"if ({length} == {self.begun}) {{",
                     f"if ({appends} && {place} == {self.begun}) {{",
                     *(kernel.show(s.then, own) for s in self.first), "}", wait, "}"]  # fmt: skip
        if self.rest:
            made += [f"if ({appends}{f' && {place} < {end}' if end else ''}) {{",
                     *(kernel.show(s, own) for s in self.rest), "}"]  # fmt: skip
        longer = f"{length} += {more};"
        if end:
            longer = f"{length} = {end} - {length} < {more} ? {end} : {length} + {more};"
        made += [f"const int {more} = __popc({found});", longer, "}", "}", wait]
        return "\n".join(made)


def looking(kernel: Kernel, loop: Loop, effects: Effects) -> Ahead | None:
    """How lanes look ahead in a loop, or append to its lists; None where they can share it.

    Raises NotLegal where they can do nothing of these, with the reason why they cannot look ahead.
    """
    try:
        return ahead(kernel, loop, effects)
    except NotLegal as reason:
        try:
            return appended(kernel, loop, effects)
        except NotLegal:
            raise reason from None


def appended(kernel: Kernel, loop: Loop, effects: Effects) -> Appended:
    """How lanes share a loop whose rounds append to lists. Raises NotLegal where they cannot."""
    lists = _Lists(kernel, counting(kernel, loop, effects, broken=True), effects)
    reason = NotLegal(_NONE, loop.line)
    for branch, own in branches(lists.body):
        try:
            return lists.found(branch, own)
        except NotLegal as other:
            reason = other
    raise reason


def _count(kernel: Kernel, loop: Loop, effects: Effects) -> Variable:
    """The only local that goes from round to round; it is changed in one place."""
    kept = effects.kept(loop.body)
    if kept:
        raise NotLegal(f"`{kept}` goes from round to round", loop.line)
    changed = {
        v: c for v, c in effects.changed(loop.body).items() if not effects.begun_anew(v, loop)
    }
    if len(changed) != 1:
        raise NotLegal("no list gets longer by its rounds", loop.line)
    ((count, changes),) = changed.items()
    kind = type_of(kernel, count)
    plain = count.storage == "local" and not count.array and not count.type.reference
    whole = kind.integral and not kind.depth and (kind.size or 0) >= _WORD
    if not plain or not whole or count in effects.lent or len(changes) != 1:
        raise NotLegal(f"`{count.name}` does not count", loop.line)
    return count


class _Lists:
    """A loop of whose locals ``count`` alone goes from round to round, and how its rounds end.

    ``body`` is a round without its ways out, which ends with a branch; ``limits`` are what these
    say of when a list is full.
    """

    def __init__(self, kernel: Kernel, axis: Axis, effects: Effects) -> None:
        self.kernel = kernel
        self.axis = axis
        self.effects = effects
        self.loop = axis.node
        self.count = _count(kernel, self.loop, effects)
        self.begun = begun(kernel, effects, self.loop, self.count)
        self.limits = list[Full]()
        self.body = self._ended(self._open())

    def _full(self, test: Expr, *, late: bool = False, going: bool = False) -> Full:
        return full(self.kernel, self.effects, self.loop, self.count, test, late=late, going=going)

    def _open(self) -> list[Statement]:
        """The statements of a round but for those that only leave the loop where a list is full."""
        found, late = list[Statement](), False
        for statement in flat(self.loop.body):
            left = _leaves(statement)
            if left is not None and _mentions(left, self.count):
                self.limits.append(self._full(left, late=late))
                continue
            late = late or self.count in self.effects.changed(statement)
            found.append(statement)
        return found

    def _ended(self, body: list[Statement]) -> tuple[Statement, ...]:
        """A round that ends with a branch; one that always does what it appends, if with none."""
        effects, loop = self.effects, self.loop
        last = body[-1] if body else None
        if isinstance(last, If) and not last.other and self.count in effects.changed(last):
            return (*body,)
        stored = {a.own for a in effects.accesses(loop) if a.mode != "load"}
        does = [self.count in effects.changed(s) or bool(stored & effects.inside(s)) for s in body]
        if True not in does:
            raise NotLegal(_NONE, loop.line)
        at = does.index(True)
        work = Block(None, loop.line, (*body[at:],))
        return (*body[:at], If(None, loop.line, Name(None, _ALWAYS), work))

    def found(self, branch: If, own: tuple[Variable, ...]) -> Appended:
        """How rounds append in this branch. Raises NotLegal where they do not."""
        kernel, effects, loop, count = self.kernel, self.effects, self.loop, self.count
        then, limits, step = flat(branch.then), [*self.limits], None
        if then and (left := _leaves(then[0])) is not None:
            then.pop(0)
            limits.append(self._full(left))
        if then and (left := _leaves(then[-1])) is not None:
            then.pop()
            step = _stepped(left, count)
            limits.append(self._full(left, late=True))
        leaves, tests = bool(limits), list[Expr]()
        for part in split_test(branch.test, "&&"):
            if _mentions(part, count):
                limits.append(self._full(part, going=True))
            elif not (isinstance(part, Name) and part.name == _ALWAYS):
                tests.append(part)
        check_found(kernel, effects, self.body, branch, {*own}, frozenset({count}))
        step = step or _step_of(effects, then, count)
        first = list[If]()
        while then and (one := _of_first(then[0], count, self.begun)) is not None:
            first.append(one)
            then.pop(0)
        _check_work(effects, loop, [*first, *then], count)
        check_names(effects, loop, own)
        if len({kernel.spelled(limit.end) for limit in limits}) > 1:
            raise NotLegal("the list is full at several lengths", loop.line)
        sizes = dict.fromkeys(size for limit in limits for size in limit.asked)
        sizes |= dict.fromkeys(places_apart(kernel, effects, self.axis, count, then))
        check_calls(kernel, effects, loop)
        if limits:
            asks = [*_asks(self.body, branch)] if leaves else [_asking(branch)]
            _check_beyond(kernel, effects, asks)
            sizes |= dict.fromkeys(asked(kernel, effects, self.axis, asks))
        return Appended(
            kernel, self.axis, effects, own, branch, count, self.body, (*tests,), (*first,),
            (*then,), step, self.begun, limits[0] if limits else None, (*sizes,),
        )  # fmt: skip


def _leaves(statement: Statement) -> Expr | None:
    """What a statement asks that does no more than to leave the loop."""
    match statement:
        case If(test=test, then=then, other=None, before=None, constant=False):
            return test if only_leaves(then, "break") else None
    return None


def _stepped(left: Expr, count: Variable) -> Expr | None:
    """The step of a count in what is asked behind it, ``++count == k``."""
    return next(
        (e for e in every(left)
         if isinstance(e, Step) and isinstance(e.target, Name) and e.target.variable is count),
        None,
    )  # fmt: skip


def _step_of(effects: Effects, then: list[Statement], count: Variable) -> Expr:
    """The step of a count by one, behind all that asks for it; a statement of its own goes."""
    match then[-1:]:
        case [
            Evaluate(
                expression=Step(op="++", target=Name(variable=own))
                | Assign(op="+=", target=Name(variable=own), value=Literal(value=1))
                | Assign(
                    op="=", target=Name(variable=own),
                    value=Binary(op="+", left=Name(variable=Variable()), right=Literal(value=1)),
                ) as step
            )
        ] if own is count and {*_named(step)} == {count}:  # fmt: skip
            then.pop()
            return step
    asking = [s for s in then if count in effects.mentions(s)]
    steps = [
        e for s in asking[-1:] if isinstance(s, Evaluate) for e in every(s.expression)
        if isinstance(e, Step) and e.op == "++" and not e.prefix and [*_named(e)] == [count]
    ]  # fmt: skip
    alone = len(steps) == 1 and [*_named(asking[-1].expressions[0])].count(count) == 1
    if not alone:
        raise NotLegal(f"where `{count.name}` grows is not followed", count.line)
    return steps[0]


def _of_first(statement: Statement, count: Variable, start: int | None) -> If | None:
    """A branch that the first element of a list alone takes."""
    if not isinstance(statement, If) or statement.other or statement.before or start is None:
        return None
    match statement.test:
        case Binary(op="==", left=Name(variable=own), right=Literal(value=int() as number)):
            asks = own is count and number == start
        case Unary(op="!", operand=Name(variable=own)):
            asks = own is count and start == 0
        case _:
            return None
    return statement if asks and not statement.constant else None


def _check_work(effects: Effects, loop: Loop, work: Sequence[Statement], count: Variable) -> None:
    """Raise NotLegal where what appends leaves more behind than stores that nobody loads."""
    inside = frozenset[Expr]().union(*(effects.inside(s) for s in work))
    own = {v for s in work for v in declared_in(s)}
    if any(isinstance(e, Lambda | Unread) for e in effects.inside(loop)):
        raise NotLegal("what a round does is not followed", loop.line)
    for statement in work:
        if any(True for _ in ends(statement)):
            raise NotLegal("a round ends in the middle of what it appends", statement.line)
        if {*effects.changed(statement)} - own - {count}:
            raise NotLegal("more than a list goes from round to round", statement.line)
    found = effects.accesses(loop)
    stored = {access.array for access in found if access.mode != "load"}
    for access in found:
        if access.mode != "load" and (access.own not in inside or access.call is not None):
            raise NotLegal("it stores before it appends", access.line)
        if access.mode == "atomic":
            raise NotLegal("an atomic operation comes with an element", access.line)
        if access.mode == "load" and any(effects.same(access.array, a) for a in stored):
            raise NotLegal("a round may meet what another has stored", access.line)


def check_calls(kernel: Kernel, effects: Effects, loop: Loop) -> None:
    """Raise NotLegal for functions that may do more than to compute, whose order would be seen."""
    for name in noticed(kernel, effects.inside(loop)):
        raise NotLegal(f"`{name}` may have side effects", loop.line)


def _check_beyond(kernel: Kernel, effects: Effects, asks: Sequence[Statement]) -> None:
    """Raise NotLegal where rounds behind the last would do what may not be done."""
    for e in (e for s in asks for e in effects.inside(s)):
        match e:
            case Binary(op="/" | "%", right=right) if not isinstance(right, Literal):
                kind = kernel.reading.types.get(right)
                if kind is None or kind.integral:
                    raise NotLegal("a round behind the end may divide by 0", asks[0].line)


def _asks(body: Sequence[Statement], branch: If) -> Iterator[Statement]:
    """What a round does to find out whether it appends."""
    for statement in body:
        leads = isinstance(statement, If) and any(s is branch for s in walk(statement))
        if not leads or not isinstance(statement, If):
            yield statement
            continue
        yield _asking(statement)
        if statement is not branch:
            yield from _asks(flat(statement.then), branch)


def _asking(branch: If) -> Statement:
    return Evaluate(None, branch.line, branch.test)


def _named(expr: Expr) -> Iterator[Variable]:
    return (e.variable for e in every(expr) if isinstance(e, Name) and e.variable is not None)


def _mentions(expr: Expr, variable: Variable) -> bool:
    return variable in {*_named(expr)}
