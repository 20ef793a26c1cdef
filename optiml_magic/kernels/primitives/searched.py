"""P25, search: a loop that looks for a place in a local array comes to all places in turn.

``while (j >= 0 && v[j] > key) { v[j + 1] = v[j]; --j; } v[j + 1] = key;`` inserts a value where it
belongs. Where it stops is not known before, so the array is indexed at run time. Here each round is
made or passed over, and what follows the loop is done in the round that it ends in, so that all
indices are constants once the loops are written out, and the array lies in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
    conjuncts,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    only_leaves,
    walk,
)
from optiml_magic.kernels.types import named

_MOST = 64  # places that are come to
_OTHER = str.maketrans("<>", "><")


@dataclass(frozen=True, eq=False)
class Search:
    """``loop`` looks for a place with ``counter``, and ``tail`` behind it asks where that is.

    A round does ``body`` where all of ``going`` holds and ``left`` does not; else the search ends.
    ``places`` are all that the counter may be in a round, in their order. Where it is ``begun``
    with a number it begins with the first of them; ``arrays`` are those that it walks through.
    """

    block: Block
    loop: Loop
    counter: Variable
    going: tuple[Expr, ...]
    left: Expr | None
    body: tuple[Statement, ...]
    tail: tuple[Statement, ...]
    places: range
    begun: bool
    arrays: frozenset[str]

    @property
    def own(self) -> tuple[Statement, ...]:
        """What asks for the counter."""
        return (self.loop, *self.tail)


@primitive
def searched(kernel: Kernel) -> Kernel:
    """The kernel with all its searches of local arrays place by place; there must be one."""
    found = [*searches(kernel)]
    if not found:
        raise NotLegal("no loop looks for a place in a local array")
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for one in found:
        swaps |= by_places(kernel, one)
    return kernel.rewritten(edited(kernel.function.body, swaps))


def by_places(
    kernel: Kernel, one: Search
) -> dict[Node, Node | tuple[Statement, ...] | None]:  # fmt: skip
    """What stands for a search, and for what belongs to it."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    swaps |= dict.fromkeys((*hints_before(one.block, one.loop), *one.tail))
    swaps[one.loop] = (lines(_in_turn(kernel, one)),)
    return swaps


def searches(kernel: Kernel) -> Iterator[Search]:
    """The loops of a kernel that look for a place in a local array, of which none is in another."""
    if not array_sizes(kernel):
        return
    axes, effects = kernel.axes(), Effects(kernel)
    found = [
        one
        for block in walk(kernel.function.body) if isinstance(block, Block)
        for loop, behind in _with_rest(block) if loop in axes
        if (one := _search(kernel, effects, block, axes[loop], behind)) is not None
    ]  # fmt: skip
    inner = {loop for one in found for s in (*one.body, *one.tail) for loop in loops_in(s)}
    found = [one for one in found if one.loop not in inner]
    asking = [e for one in found for s in one.own for e in expressions(s)]
    for one in found:
        if _asked_alone(kernel, effects, one, frozenset(asking)):
            yield one


def _with_rest(block: Block) -> Iterator[tuple[Loop, tuple[Statement, ...]]]:
    for at, statement in enumerate(block.body):
        if isinstance(statement, Loop):
            yield statement, block.body[at + 1 :]


def _search(
    kernel: Kernel, effects: Effects, block: Block, axis: Axis, behind: tuple[Statement, ...]
) -> Search | None:
    loop, counter, steps = axis.node, axis.variable, _steps_of(kernel, axis)
    if counter is None or steps is None or not _only_begins(loop.before, counter):
        return None
    parts = _parts(loop, counter)
    if parts is None:
        return None
    going, left, body = parts
    asked = (*going, left) if left is not None else going
    tail = () if isinstance(loop.before, Declare) else _tail(effects, counter, behind)
    whole = [s for o in (*body, *tail) for s in walk(o)]
    given = {v.name for s in whole if isinstance(s, Declare) for v in s.variables}
    if counter.name in given or counter in effects.changed(*body, *tail):
        return None
    if any(isinstance(s, Leave) for s in whole) or not _plain(tail, asked, counter):
        return None
    walked = _Walked(counter, array_sizes(kernel))
    inside = (e for s in (*body, *tail) for e in expressions(s))
    arrays = frozenset(
        e.base.name for e in (*inside, *(e for part in asked for e in every(part)))
        if isinstance(e, Index) and isinstance(e.base, Name) and walked.apart(e) is not None
    )  # fmt: skip
    first, begun, (stop, step) = axis.start.value if axis.start else None, True, steps
    if first is None and len(asked) == 2 and walked.ends(tail, stop, step):
        first, begun = walked.first(asked, body, tail, stop, step), False
    if not arrays or first is None or not 0 < len(range(first, stop, step)) <= _MOST:
        return None
    places = range(first, stop, step)
    return Search(block, loop, counter, going, left, body, tail, places, begun, arrays)


def _steps_of(kernel: Kernel, axis: Axis) -> tuple[int, int] | None:
    """Where a counter is behind all places, and whether it goes up or down by one."""
    counter, start = axis.variable, axis.start
    if axis.exact or axis.scaled or counter is None or start is None:
        return None
    kind = named(counter.type.base, kernel.unit.aliases)
    plain = not counter.type.depth and not counter.type.reference
    if not plain or not kind.integral or not kind.signed or not kernel.reading.symbols.known(start):
        return None
    stop, step = (form.value if form is not None else None for form in (axis.stop, axis.step))
    return (stop, step) if stop is not None and step in (1, -1) else None


def _plain(tail: tuple[Statement, ...], asked: tuple[Expr, ...], counter: Variable) -> bool:
    """Whether what stands behind a search may be said several times, and its tests in others.

    A loop that goes as far as the place, as one that moves all from there on, is short.
    """
    does = Assign | Step | Call | Lambda | Unread
    return all(isinstance(s, Evaluate | If) or _reaches(s, counter) for s in tail) and not any(
        isinstance(e, does) for part in asked for e in every(part)
    )


def _reaches(statement: Statement, counter: Variable) -> bool:
    """Whether a statement is a loop without others in it whose test asks for the place."""
    if not isinstance(statement, Loop) or statement.test is None or loops_in(statement.body):
        return False
    return any(isinstance(e, Name) and e.variable is counter for e in every(statement.test))


def _tail(
    effects: Effects, counter: Variable, behind: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """What stands behind a loop, to the last that asks for the counter before it begins anew."""
    own = list[Statement]()
    for statement in behind:
        match statement:
            case Evaluate(expression=Assign(op="=", target=Name(variable=given), value=value)):
                if given is counter and not any(
                    isinstance(e, Name) and e.variable is counter for e in every(value)
                ):
                    break
        own.append(statement)
    while own and counter not in effects.mentions(own[-1]):
        own.pop()
    return tuple(own)


def _parts(
    loop: Loop, counter: Variable
) -> tuple[tuple[Expr, ...], Expr | None, tuple[Statement, ...]] | None:
    """What a loop tests, on what else it is left, and what a round does but to step."""
    body = [*(loop.body.body if isinstance(loop.body, Block) else (loop.body,))]
    if loop.kind == "do" or loop.test is None:
        return None
    if loop.update is None:
        if not body or not _steps(body.pop(), counter):
            return None
    elif not _steps(Evaluate(None, loop.line, loop.update), counter):
        return None
    going, left = (*conjuncts(loop.test),), None
    match body:
        case [If(before=None, constant=False, test=test, then=then, other=None), *rest]:
            if only_leaves(then, "break"):
                left, body = test, rest
        case [If(before=None, constant=False, test=test, then=then, other=Statement() as other)]:
            if only_leaves(other, "break"):
                going, body = (*going, test), [then]
    return (going, left, tuple(body)) if len(going) + (left is not None) > 1 else None


def _steps(statement: Statement, counter: Variable) -> bool:
    """Whether a statement changes the counter, and does nothing else."""
    match statement:
        case Evaluate(expression=Step(target=Name(variable=own))):
            return own is counter
        case Evaluate(expression=Assign(target=Name(variable=own), value=value)):
            return own is counter and not any(
                isinstance(e, Assign | Step | Call | Index) for e in every(value)
            )
    return False


def _only_begins(before: Statement | None, counter: Variable) -> bool:
    """Whether the head of a loop gives its counter a value, if anything, and does no more."""
    match before:
        case None:
            return True
        case Declare(variables=(only,)):
            return only is counter
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
            return own is counter and not any(
                isinstance(e, Assign | Step | Call | Lambda) for e in every(value)
            )
    return False


def _asked_alone(
    kernel: Kernel, effects: Effects, one: Search, asking: frozenset[Expr]
) -> bool:  # fmt: skip
    """Whether nobody but searches asks for the counter, and each array is indexed and no more."""
    whole = effects.inside(kernel.function.body)
    given = {
        e.target for e in whole
        if isinstance(e, Assign) and e.op == "=" and isinstance(e.target, Name)
    }  # fmt: skip
    if any(isinstance(e, Name) and e.variable is one.counter and e not in asking
           and e not in given for e in whole):  # fmt: skip
        return False
    if any(isinstance(e, Lambda | Unread) for e in whole) or kernel.reading.verbatim:
        return False
    bases = {e.base for e in whole if isinstance(e, Index)}
    return not any(
        isinstance(e, Name) and e.variable is not None and e.name in one.arrays
        and e.variable.array and e not in bases for e in whole
    )  # fmt: skip


def array_sizes(kernel: Kernel) -> Mapping[str, int]:
    """How many elements the local arrays of one dimension have, whose names mean them alone."""
    given = [v.name for s in walk(kernel.function.body) if isinstance(s, Declare)
             for v in s.variables] + [p.name for p in kernel.function.parameters]  # fmt: skip
    sizes = {
        array.name: array.extents[0].value for array in kernel.reading.arrays.values()
        if array.space == "local" and len(array.extents) == 1 and array.extents[0] is not None
    }  # fmt: skip
    return {n: size for n, size in sizes.items() if size is not None and given.count(n) == 1}


@dataclass(frozen=True)
class _Walked:
    """Where a counter walks through local arrays of these sizes."""

    counter: Variable
    sizes: Mapping[str, int]

    def apart(self, expr: Index) -> int | None:
        """How far behind the counter this element of a local array is; None for any other."""
        if not isinstance(expr.base, Name) or expr.base.name not in self.sizes:
            return None
        return behind(expr.index, self.counter)

    def first(
        self, asked: Sequence[Expr], body: Sequence[Statement], tail: Sequence[Statement],
        stop: int, step: int,
    ) -> int | None:  # fmt: skip
        """The first place that a search may begin at: others would lie outside of an array."""
        tested = [e for part in asked for e in certainly(part)]
        ways = [[e for s in part if isinstance(s, Evaluate) for e in certainly(s.expression)]
                for part in (body, tail)]  # fmt: skip
        near = takewhile(
            lambda at: self._fits(tested, at), (stop - step * n for n in range(1, _MOST + 2))
        )
        return max(
            (at for at in near if any(self._fits(way, at) for way in ways)),
            key=lambda at: -step * at, default=None,
        )  # fmt: skip

    def ends(self, tail: Sequence[Statement], stop: int, step: int) -> bool:
        """Whether no search begins behind its end, since the tail would leave an array."""
        return not tail or not self._fits(
            [e for s in tail if isinstance(s, Evaluate) for e in certainly(s.expression)],
            stop + step,
        )

    def _fits(self, certain: Sequence[Index], at: int) -> bool:
        places = ((self.apart(e), e.base) for e in certain)
        return all(
            apart is None or (isinstance(base, Name) and 0 <= at + apart < self.sizes[base.name])
            for apart, base in places
        )


def behind(index: Expr, counter: Variable) -> int | None:
    """How far behind a counter an index is; None for any other."""
    match index:
        case Name(variable=own):
            return 0 if own is counter else None
        case Binary(op="+" | "-" as op, left=Name(variable=own), right=Literal(value=by)):
            if own is counter and isinstance(by, int):
                return by if op == "+" else -by
    return None


def certainly(expr: Expr) -> Iterator[Index]:
    """The elements that an expression certainly asks for."""
    if isinstance(expr, Index):
        yield expr
    parts = expr.parts
    if isinstance(expr, Choice) or (isinstance(expr, Binary) and expr.op in ("&&", "||")):
        parts = parts[:1]
    for part in parts:
        yield from certainly(part)


def _in_turn(kernel: Kernel, one: Search) -> str:
    """The search as a loop over all places, in each of which it goes on, ends or has ended."""
    at, open_ = kernel.fresh("at"), kernel.fresh("open")
    swaps: dict[Node, Node] = {
        e: text(at) for s in one.own for e in expressions(s)
        if isinstance(e, Name) and e.variable is one.counter
    }  # fmt: skip

    def shown(part: Expr) -> str:
        return kernel.spelled(part, swaps)

    kind, step = declared_type(kernel, one.counter), one.places.step
    body, tail = ("\n".join(kernel.show(s, swaps) for s in part) for part in (one.body, one.tail))
    going = [f"({shown(part)})" for part in one.going]
    going += [f"!({shown(one.left)})"] if one.left is not None else []
    less, by = ("<", "++") if step > 0 else (">", "--")
    head = one.loop.before
    before = f"{kernel.show(head).rstrip(';')};" if head is not None and not one.begun else ""
    reached = "" if one.begun else f" && {at} {less.translate(_OTHER)}= {one.counter.name}"
    end = f"if ({open_}) {{\nconst {kind} {at} = {one.places.stop};\n{tail}\n}}" if tail else ""
    places = f"for ({kind} {at} = {one.places.start}; {at} {less} {one.places.stop}; {by}{at})"
    return "\n".join(part for part in (
        "{", before, f"bool {open_} = true;", "#pragma unroll", f"{places} {{",
        f"if ({open_}{reached}) {{", f"if ({' && '.join(going)}) {{", body, "} else {", tail,
        f"{open_} = false;", "}", "}", "}", end, "}",
    ) if part)  # fmt: skip
