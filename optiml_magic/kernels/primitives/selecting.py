"""Selection sort of a local array: each place gets the least of all from there on.

``least = i; for (j = i + 1 ...) if (v[j] < v[least]) least = j; swap(v[i], v[least]);`` for each i,
where the least may be kept beside its place. The rounds may end before the last element, at the
middle for a median: the places that they came to then have what a full sort would put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import Assign, Binary, Call, Choice, Expr, Index, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Loop, Statement, Variable
from optiml_magic.kernels.types import CType, named

OTHER = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, eq=False)
class Selection:
    """Of ``count`` elements those that compare by ``op`` with all others, as many as ``rounds``."""

    array: Variable
    kind: CType
    count: int
    rounds: int
    op: str

    def by_places(self, kernel: Kernel) -> str:
        """The same rounds, with indices that are constants once loops are written out."""
        array = self.array.name
        names = list[str]()
        for name in ("at", "next", "kept", "place"):
            names.append(kernel.fresh(name, *names))
        at, after, kept, place = names
        others = f"#pragma unroll\nfor (int {after} = {at} + 1; {after} < {self.count}; ++{after})"
        return "\n".join((
            f"#pragma unroll\nfor (int {at} = 0; {at} < {self.rounds}; ++{at}) {{",
            f"{self.kind.name} {kept} = {array}[{at}];\nint {place} = {at};", f"{others} {{",
            f"if ({array}[{after}] {self.op} {kept}) {{",
            f"{kept} = {array}[{after}];\n{place} = {after};\n}}\n}}",
            f"{others} {{\nif ({after} == {place}) {array}[{after}] = {array}[{at}];\n}}",
            f"{array}[{at}] = {kept};\n}}",
        ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Best:
    """What a round has found so far: its place, and its value where that is kept beside it."""

    place: Variable
    value: Variable | None


def selection(kernel: Kernel, loop: Loop) -> Selection | None:
    """What a loop selects, where it does that and nothing else."""
    axis, effects, body = kernel.axes().get(loop), Effects(kernel), plain(loop.body)
    inner = next((s for s in body if isinstance(s, Loop)), None)
    within = kernel.axes().get(inner) if inner is not None else None
    if axis is None or inner is None or within is None:
        return None
    if not (is_counted(axis, effects) and is_counted(within, effects)):
        return None
    own, other, count = axis.variable, within.variable, _count(axis, within)
    best = _begun(kernel, own, body[: body.index(inner)])
    if own is None or other is None or best is None or count is None:
        return None
    op, element = _compared(plain(inner.body), best, other) or ("", None)
    if element is None or not isinstance(element.base, Name) or element.base.variable is None:
        return None
    array, kind = element.base.variable, kernel.reading.types.get(element)
    if kind is None or array.storage != "local" or len(array.extents) != 1 or array.type.volatile:
        return None
    here, there = _at(array, own), _at(array, best.place)
    if best.value is not None and not _holds(kernel, best.value, kind, here):
        return None
    if not _puts(kernel, body[body.index(inner) + 1 :], best, kind, here, there):
        return None
    return Selection(array, kind, count, axis.trips or 0, op)


def plain(statement: Statement) -> tuple[Statement, ...]:
    """The statements in a body, but for what does not run."""
    inside = statement.body if isinstance(statement, Block) else (statement,)
    return tuple(s for s in inside if not isinstance(s, Blank))


def exchanged_by(
    kernel: Kernel, then: Sequence[Statement], left: Expr, right: Expr
) -> Variable | None:  # fmt: skip
    """The local by which statements exchange two elements; None where they do anything else.

    It may be that of a function of the text, ``swap(v[i], v[j])`` or ``swap(&v[i], &v[j])``.
    """
    match then:
        case (Declare(variables=(Variable(value=Expr() as held) as kept,)),
              Evaluate(expression=Assign(op="=", target=first, value=moved)),
              Evaluate(expression=Assign(op="=", target=second, value=Name() as put))):  # fmt: skip
            for a, b in ((left, right), (right, left)):
                swapped = same(held, a) and same(first, a) and same(moved, b) and same(second, b)
                if swapped and put.variable is kept:
                    return kept
        case (Evaluate(expression=Call(arguments=(one, other)) as call),):
            function = called_alone(kernel, call)
            if function is None or function.result.base != "void" or function.result.depth:
                return None
            given = {p.type.depth for p in function.parameters}
            if given == {1} and isinstance(one, Unary) and isinstance(other, Unary):
                ends: list[Expr] = [a.operand for a in (one, other) if a.op == "&"]
                own: list[Expr] = [Unary(None, "*", _name(p)) for p in function.parameters]
            else:
                ends = [one, other]
                own = [_name(p) for p in function.parameters if p.type.reference]
            swaps = len(ends) == len(own) == 2 and (
                (same(ends[0], left) and same(ends[1], right))
                or (same(ends[0], right) and same(ends[1], left))
            )
            return exchanged_by(kernel, plain(function.body), *own) if swaps else None
    return None


def _count(axis: Axis, within: Axis) -> int | None:
    """How many elements there are, of which each round looks at those behind its own."""
    own, one = Polynomial.symbol(axis.name), Polynomial.constant(1)
    if axis.start is None or axis.start.terms or axis.step != one or within.step != one:
        return None
    if within.start not in (own, own + one) or not within.exact or within.first or axis.first:
        return None
    count = within.stop.value if within.stop is not None else None
    return count if count is not None and 0 < (axis.trips or 0) <= count else None


def _begun(kernel: Kernel, own: Variable | None, before: Sequence[Statement]) -> _Best | None:
    """What a round begins with: its own place as that of the best, and maybe its element."""
    place, value = None, None
    for statement in before:
        match statement:
            case Declare(variables=(Variable(value=Name(variable=given)) as one,)) if given is own:
                place = one if place is None else None
            case Declare(variables=(Variable(value=Index()) as one,)) if value is None:
                value = one
            case _:
                return None
    if place is None or len(before) != 1 + (value is not None):
        return None
    kind = named(place.type.base, kernel.unit.aliases)
    counts = kind.integral and kind.lanes == 1 and kind.name != "bool"
    simple = not (place.type.depth or place.type.reference or place.array)
    return _Best(place, value) if counts and simple else None


def _compared(
    body: Sequence[Statement], best: _Best, other: Variable
) -> tuple[str, Index] | None:  # fmt: skip
    """How an element must compare with the best so far to take its place, and the element."""
    match body:
        case (If(before=None, constant=False, other=None, test=test, then=then),):
            taken = [s.expression for s in plain(then) if isinstance(s, Evaluate)]
            if len(taken) != len(plain(then)):
                return None
        case (Evaluate(expression=Assign(op="=", target=target,
                       value=Choice(test=test, then=then_, other=rest))),):  # fmt: skip
            if not same(target, rest):
                return None
            taken = [Assign(None, "=", target, then_)]
        case _:
            return None
    if not isinstance(test, Binary) or test.op not in OTHER:
        return None
    for element, least, op in ((test.left, test.right, test.op),
                               (test.right, test.left, OTHER[test.op])):  # fmt: skip
        match element:
            case Index(base=Name(variable=Variable() as array), index=Name(variable=at)):
                if at is other and _takes(taken, best, other, element, least, array):
                    return op, element
    return None


def _takes(
    taken: Sequence[Expr], best: _Best, other: Variable, element: Index, least: Expr,
    array: Variable,
) -> bool:  # fmt: skip
    """Whether a round compares with the best, and makes its own element that and does no more."""
    if best.value is None:
        compares = same(least, _at(array, best.place))
        expected: list[tuple[Expr, Expr]] = [(_name(best.place), _name(other))]
    else:
        compares = same(least, _name(best.value))
        expected = [(_name(best.place), _name(other)), (_name(best.value), element)]
    if not compares or len(taken) != len(expected):
        return False
    return all(
        any(isinstance(e, Assign) and e.op == "=" and same(e.target, target)
            and same(e.value, value) for e in taken)
        for target, value in expected
    )  # fmt: skip


def _puts(
    kernel: Kernel, rest: Sequence[Statement], best: _Best, kind: CType, here: Index, there: Index
) -> bool:
    """Whether the end of a round exchanges the best and its own element, and does no more."""
    match rest:
        case (If(before=None, constant=False, other=None,
                 test=Binary(op="!=", left=Name() as left, right=Name() as right),
                 then=then),):  # fmt: skip
            places = {left.variable, right.variable}
            own = here.index.variable if isinstance(here.index, Name) else None
            return places == {own, best.place} and _puts(
                kernel, plain(then), best, kind, here, there
            )
    held = exchanged_by(kernel, rest, here, there)
    if held is not None:
        return _holds(kernel, held, kind, None)
    match rest:
        case (Evaluate(expression=Assign(op="=", target=first, value=moved)),
              Evaluate(expression=Assign(op="=", target=last,
                                         value=Name(variable=put)))):  # fmt: skip
            moves = same(first, there) and same(moved, here) and same(last, here)
            return moves and put is best.value is not None
    return False


def _holds(kernel: Kernel, local: Variable, kind: CType, value: Expr | None) -> bool:
    """Whether a local is of a type, and begins with a value where one is given."""
    simple = not (local.type.depth or local.type.reference or local.array)
    begins = value is None or (local.value is not None and same(local.value, value))
    return simple and begins and named(local.type.base, kernel.unit.aliases) == kind


def _name(variable: Variable) -> Name:
    return Name(None, variable.name, variable)


def _at(array: Variable, place: Variable) -> Index:
    return Index(None, _name(array), _name(place))
