"""Rounds that a remainder turns away are not made: ``if ((y + 1 - k) % 2 != 0) continue;``.

The rounds that go on lie as far apart as the divisor says, from a first one that the rest of the
sum and the remainder that is wanted tell. Lanes that go on in different rounds do so in step then,
since each counts its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.naming import LocalSpeller, declared_type, speller_before
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    only_leaves,
)


@dataclass(frozen=True, eq=False)
class Sieve:
    """Of a loop only the rounds run in which ``rest`` and ``sign`` rounds leave one remainder.

    It is that of ``wanted`` by ``by``. The two are apart, since their difference may have no sign.
    ``part`` of a test asks nothing else, and is ``leaves`` where it turns the others away; where
    there is none the test stays, since a remainder may have a sign.
    """

    loop: Loop
    axis: Axis
    rest: Polynomial
    sign: int
    by: int
    wanted: Polynomial
    part: Expr | None
    leaves: bool


@primitive
def sieved(kernel: Kernel) -> Kernel:
    """The kernel without the rounds that remainders turn away; there must be such a loop."""
    found = sieves(kernel)
    for one in found:
        try:
            made = kernel.rewritten(_stepped(kernel, one))
        except (NotLegal, Unspelled):
            continue
        more = sieved(made)
        return more if isinstance(more, Kernel) else made
    raise NotLegal("no remainder turns rounds away")


def sieves(kernel: Kernel) -> list[Sieve]:
    """The loops of which a remainder turns rounds away, outermost first."""
    axes, effects = kernel.axes(), Effects(kernel)
    loops = (loop for loop in loops_in(kernel.function.body) if loop in axes)
    found = (_sieve(kernel, axes[loop]) for loop in loops if is_simple(axes[loop], effects))
    return [one for one in found if one is not None]


def uncounted(kernel: Kernel) -> list[int]:
    """The loops, by number, that have to count from 0 by 1 before they may be such."""
    axes, effects = kernel.axes(), Effects(kernel)
    return [
        number for number, loop in enumerate(loops_in(kernel.function.body))
        if loop in axes and not is_simple(axes[loop], effects)
        and _sieve(kernel, axes[loop]) is not None
    ]  # fmt: skip


def _sieve(kernel: Kernel, axis: Axis) -> Sieve | None:
    found = _first_test(kernel, axis)
    variable = axis.variable
    if found is None or variable is None or not axis.exact:
        return None
    test, last, inner = found
    loops = (axis.name, *inner)
    guard = next((g for g in kernel.reading.guards
                  if g.test is test.test and g.loops[-len(loops) :] == loops), None)  # fmt: skip
    if guard is None or not (only_leaves(test.then, "continue") if guard.exits else last):
        return None
    part = _remainder(test.test, variable, denied=guard.exits)
    symbols = kernel.reading.symbols
    asked = [c for c in guard.condition.conjuncts()
             if isinstance(c, Compare) and axis.name in symbols.inside(c.form)
             and any(symbols[n].op == "%" and axis.name in symbols.inside(Polynomial.symbol(n))
                     for n in c.form.symbols)]  # fmt: skip
    forms = [f for c in asked if (f := _remaining(kernel, axis, c)) is not None]
    if len(forms) != 1 or len(asked) != 1:
        return None
    rest, sign, by, wanted = forms[0]
    if any(name in symbols.inside(rest) | symbols.inside(wanted) for name in inner):
        return None
    return Sieve(axis.node, axis, rest, sign, by, wanted, part, guard.exits)


def _first_test(kernel: Kernel, axis: Axis) -> tuple[If, bool, tuple[str, ...]] | None:
    """The test that a round begins with, whether it is all of the round, and loops around it.

    What stands before it, in the loop and in loops that are all that a round does, has no effect.
    """
    axes, effects, inner = kernel.axes(), Effects(kernel), list[str]()
    body = _body(axis.node)
    while True:
        opening = next((n for n, s in enumerate(body) if not _idle(s)), None)
        if opening is None:
            return None
        first, asked = body[opening], [e for s in body[:opening] for e in s.expressions]
        if not isinstance(first, Loop):
            break
        own = axes.get(first)
        head = [e for e in (first.test, *_values(first)) if e is not None]
        if own is None or first is not body[-1] or not own.exact or not is_simple(own, effects):
            return None
        if any(map(_acts, [*asked, *head])):
            return None
        inner.append(own.name)
        body = _body(first)
    if not isinstance(first, If) or first.other is not None or first.before is not None:
        return None
    if any(map(_acts, [*asked, first.test])):
        return None
    return first, first is body[-1], tuple(inner)


def _body(loop: Loop) -> tuple[Statement, ...]:
    return loop.body.body if isinstance(loop.body, Block) else (loop.body,)


def _idle(statement: Statement) -> bool:
    """Whether a statement declares, or turns rounds away that no remainder decides on."""
    if isinstance(statement, If) and statement.other is None and statement.before is None:
        asks = any(isinstance(e, Binary) and e.op == "%" for e in every(statement.test))
        return only_leaves(statement.then, "continue") and not asks
    return isinstance(statement, Declare | Blank)


def _values(loop: Loop) -> tuple[Expr, ...]:
    return loop.before.expressions if loop.before is not None else ()


def _acts(expr: Expr) -> bool:
    """Whether an expression may do more than to compute."""
    return any(isinstance(e, Assign | Step | Call | Lambda | Unread) for e in every(expr))


def _remainder(test: Expr, counter: Variable, *, denied: bool) -> Expr | None:
    """The one part of a test that asks for a remainder of 0, or for another where it is denied.

    Of the remainders of a test just one is made of the counter.
    """
    asked = [part for part in _parts(test, "||" if denied else "&&")
             if any(isinstance(e, Binary) and e.op == "%" for e in every(part))
             and _made_of(part, counter)]  # fmt: skip
    if len(asked) != 1 or sum(isinstance(e, Binary) and e.op == "%" for e in every(asked[0])) != 1:
        return None
    match asked[0]:
        case Binary(op="!=" | "==" as op, left=Binary(op="%"), right=Literal(value=0)) as part:
            return part if (op == "!=") == denied else None
        case Binary(op="%") as part:
            return part if denied else None
        case Unary(op="!", operand=Binary(op="%")) as part:
            return None if denied else part
    return None


def _made_of(expr: Expr, counter: Variable) -> bool:
    """Whether a counter may have a say in a value, through locals as well."""
    todo, seen = [expr], set[Variable]()
    while todo:
        for part in every(todo.pop()):
            variable = part.variable if isinstance(part, Name) else None
            if variable is counter:
                return True
            if variable is not None and variable not in seen:
                seen.add(variable)
                todo += [e for e in (variable.value, *variable.initial) if e is not None]
    return False


def _parts(test: Expr, op: str) -> list[Expr]:
    if isinstance(test, Binary) and test.op == op:
        return [*_parts(test.left, op), *_parts(test.right, op)]
    return [test]


def _remaining(
    kernel: Kernel, axis: Axis, held: object
) -> tuple[Polynomial, int, int, Polynomial] | None:
    """What a round is added to or taken from, and which remainder of the sum a condition wants."""
    symbols = kernel.reading.symbols
    if not isinstance(held, Compare):
        return None
    named = [(m[0], factor) for m, factor in held.form.terms
             if len(m) == 1 and axis.name in symbols.inside(Polynomial.symbol(m[0]))]  # fmt: skip
    if len(named) != 1:
        return None
    ((name, factor),) = named
    symbol, wanted = symbols.table.get(name), held.form.without([name])
    if symbol is None or symbol.op != "%" or abs(factor) != 1 or len(symbol.arguments) != 2:
        return None
    whole, by = symbol.arguments[0], symbol.arguments[1].value
    sign, rest = whole.coefficient(axis.name), whole.without([axis.name])
    if sign is None or sign.value not in (1, -1) or by is None or by < 2:
        return None
    if held.op == "!=" and by == 2 and not wanted.terms:
        wanted = Polynomial.constant(1)  # what is not even is odd
    elif held.op == "==":
        wanted = wanted * Polynomial.constant(-factor)
    else:
        return None
    still = all(symbols.known(f) and axis.name not in symbols.inside(f) for f in (rest, wanted))
    return (rest, sign.value, by, wanted) if still else None


def _reduced(kernel: Kernel, speller: LocalSpeller, one: Sieve) -> str:
    """The first round by what of the sum is no multiple of the divisor, as ``r - r / 2 * 2``.

    So what is divided in a round, the sum without it, is seen to be a multiple. Empty where nothing
    of the sum is one, or what is left may be negative.
    """
    whole = (one.rest - one.wanted) * Polynomial.constant(-one.sign)
    left = Polynomial.of({m: factor % one.by for m, factor in whole.terms})
    gone = len([m for m, factor in whole.terms if m and factor % one.by == 0])
    if not gone or not kernel.reading_operations().nonnegative(left, ()):
        return ""
    if left.value is not None:
        return str(left.value % one.by)
    words = speller.factor(speller.local(left))
    return f"{words} - {words} / {one.by} * {one.by}"


def _stepped(kernel: Kernel, one: Sieve) -> Block:
    """The loop over the rounds that are left, counted from 0."""
    effects, axis, by = Effects(kernel), one.axis, one.by
    assert axis.variable is not None
    speller, name = speller_before(kernel, effects, one.loop), axis.variable.name
    rest, kind = speller.factor(speller.local(one.rest)), declared_type(kernel, axis.variable)
    first, turn = kernel.fresh(f"{name}_first"), kernel.fresh("turn")
    wanted, far = one.wanted.value, by if one.wanted.terms else 0
    left = f"{speller.factor(speller.local(one.wanted))} % {by}" if wanted is None else wanted % by
    more = f" {'+' if one.sign > 0 else '-'} {left}" if far else ""
    start = f"({rest} % {by} + {by + far}{more}) % {by}"
    if one.sign > 0:
        start = f"({by + far} - {rest} % {by}{more}) % {by}"
    start = _reduced(kernel, speller, one) or start
    stop = axis.stop.value if axis.stop is not None else None
    count = count_of(axis, speller, effects)
    rounds = str(-(-stop // by)) if stop is not None else f"({count} + {by - 1}) / {by}"
    swaps: dict[Node, Node] = {}
    if one.part is not None:
        swaps[one.part] = text("false" if one.leaves else "true")
    inside = one.loop.body.body if isinstance(one.loop.body, Block) else (one.loop.body,)
    body = [kernel.show(s, swaps).rstrip() for s in inside]
    if stop is None or stop % by:
        body = [f"if ({name} < {count}) {{", *body, "}"]
    hints = hints_of(kernel, one.loop)
    made = "\n".join([
        "{", f"const {kind} {first} = {start};", *(kernel.show(h).strip() for h in hints),
        f"for ({kind} {turn} = 0; {turn} < {rounds}; ++{turn}) {{",
        f"const {kind} {name} = {first} + {by} * {turn};", *body, "}", "}",
    ])  # fmt: skip
    changes: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    changes[one.loop] = (lines(made),)
    return edited(kernel.function.body, changes)
