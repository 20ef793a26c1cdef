"""P17, let on: rounds that a comparison ends are rounds that a test leaves out.

``for (k = 0; k < 8 && base + k < n; k++)``, ``if (base + k >= n) break;`` and
``for (i = base; i < min(base + 8, n); i++)`` end a row of a few elements where the array does. Once
the comparison fails it fails in all rounds that follow, so they may be made and do nothing: the
loop then has a number of rounds, and vectors, registers or lanes take these at once wherever the
array goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.counted import counted
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.ended import asking
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    walk,
)

_FEW = 64  # rounds that may do nothing, at most: ours
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STEADY = ("scalar", "builtin", "counter", "operation")


@primitive
def let_on(kernel: Kernel) -> Kernel:
    """The kernel with its first such loop as one of a number of rounds."""
    effects, body = Effects(kernel), kernel.function.body
    for number, loop in enumerate(loops_in(body)):
        if not _counts_alone(kernel, effects, loop) or _declares_types(kernel, loop):
            continue
        for made in (*_asking(kernel, effects, loop), *_leaving(kernel, loop)):
            plain = kernel.rewritten(edited(body, {loop: (made,)}))
            plain = plain if loop.kind == "for" else where_legal(counted, plain, number)
            if (after := _asked(plain, number)) is not None:
                return after
    raise NotLegal("no comparison ends a loop of a few rounds")


def _counts_alone(kernel: Kernel, effects: Effects, loop: Loop) -> bool:
    """Whether a loop counts by one local, which nothing outside of it names or leads to."""
    ways = [s for s in flat(loop.body)[-1:] if _counts(s)]
    if loop.update is not None:
        ways = [Evaluate(None, loop.line, loop.update)]
    counters, own = {*effects.changed(*ways)}, {*walk(loop)}
    others = (e for s in walk(kernel.function.body) if s not in own for top in s.expressions
              for e in every(top))  # fmt: skip
    return (
        all(map(_counts, ways))
        and not any(v.type.reference or v in effects.lent for v in counters)
        and not any(isinstance(e, Name) and e.variable in counters for e in others)
    )


def _declares_types(kernel: Kernel, loop: Loop) -> bool:
    """Whether a loop's body has more than statements: a type of its own, say."""
    parts = loop.body.body if isinstance(loop.body, Block) else ()
    blanks = [s for s in parts if isinstance(s, Blank)]
    return any(_COMMENT.sub("", kernel.show(s)).strip() for s in blanks)


def _asking(kernel: Kernel, effects: Effects, loop: Loop) -> Iterator[Loop]:
    """A loop whose test asks for more than the end of its counter."""
    if loop.test is None or not _only_computes([loop.test]):
        return
    for bound, rest in asking(kernel, effects, loop):
        yield from _guarded(kernel, loop, rest, (), replace(loop, test=bound, span=None, head=None))
    yield from _least_of_two(kernel, effects, loop)


def _least_of_two(kernel: Kernel, effects: Effects, loop: Loop) -> Iterator[Loop]:
    """A loop to ``min(base + 8, n)`` from ``base`` on."""
    axis, table = kernel.axes().get(loop), kernel.reading.symbols.table
    if axis is None or axis.start is None or axis.stop is None or axis.variable is None:
        return
    found = [table[name] for name in axis.stop.symbols if axis.stop == Polynomial.symbol(name)]
    for symbol in (one for one in found if one.op == "min" and len(one.arguments) == 2):
        speller = speller_before(kernel, effects, loop)
        for at, end in enumerate(symbol.arguments):
            if 0 < ((end - axis.start).value or 0) <= _FEW:
                own = Name(None, axis.variable.name, axis.variable)
                bound, rest = (
                    speller.form(speller.local(e)) for e in (end, symbol.arguments[1 - at])
                )
                test = Binary(None, "<", own, text(bound))
                whole = replace(loop, test=test, span=None, head=None)
                yield from _guarded(kernel, loop, f"{own.name} < {rest}", (), whole)


def _leaving(kernel: Kernel, loop: Loop) -> Iterator[Loop]:
    """A loop that a branch leaves which no more than numbers stand before."""
    before = list[Statement]()
    for statement in flat(loop.body):
        match statement:
            case Declare() if _only_computes(statement.expressions):
                before.append(statement)
            case If(test=test, then=then, other=None, before=None) if _only_computes([test]):
                ways = flat(then)
                if len(ways) == 1 and isinstance(ways[0], Leave) and ways[0].kind == "break":
                    left, whole = (*before, statement), replace(loop, span=None, head=None)
                    yield from _guarded(kernel, loop, f"!({kernel.spelled(test)})", left, whole)
                return
            case _:
                return


def _only_computes(found: Iterable[Expr]) -> bool:
    """Whether these change nothing, load nothing and divide by numbers alone, in any round."""
    for expr in (e for top in found for e in every(top)):
        match expr:
            case Call(function=name) if bare(name) in ("min", "max"):
                pass
            case Assign() | Call() | Index() | Step() | Lambda() | Unread() | Member(arrow=True):
                return False
            case Unary(op="*" | "&"):
                return False
            case Binary(op="/" | "%", right=right) if not isinstance(right, Literal):
                return False
    return True


def _guarded(
    kernel: Kernel, loop: Loop, test: str, left: tuple[Statement, ...], whole: Loop
) -> Iterator[Loop]:
    """The ``whole`` of a loop where its rounds ask a test behind those statements of it.

    Those that are ``left`` stand before, but for the branch, and what a loop counts by behind.
    """
    own = flat(loop.body)
    counts = tuple(own[-1:]) if loop.update is None else ()
    if not all(map(_counts, counts)):
        return
    own = own[: len(own) - len(counts)]
    rest = "\n".join(kernel.show(s) for s in own if s not in left)
    before = tuple(s for s in left if not isinstance(s, If))
    body = Block(None, loop.line, (*before, lines(f"if ({test}) {{\n{rest}\n}}"), *counts))
    yield replace(whole, body=body)


def _counts(statement: Statement) -> bool:
    match statement:
        case Evaluate(expression=Step(target=Name()) | Assign(target=Name(), value=Literal())):
            return True
    return False


def _asked(kernel: Kernel, number: int) -> Kernel | None:
    """The kernel whose loop of this number has none of its rounds behind one that it leaves out.

    They ask in 64 bits, where no sum of a round that was not made before leaves its type.
    """
    loop = loops_in(kernel.function.body)[number]
    axis, effects = kernel.axes().get(loop), Effects(kernel)
    branch = next((s for s in flat(loop.body) if isinstance(s, If)), None)
    if axis is None or branch is None or not 0 < (axis.trips or 0) <= _FEW:
        return None
    inside = effects.inside(branch.then)
    known = [{p for c in a.guard for p in c.conjuncts()}
             for a in kernel.reading.accesses if a.own in inside]  # fmt: skip
    common = set[Condition]().union(*known[:1]).intersection(*known)
    ways = [[*c.conjuncts()] for g in kernel.reading.guards if g.test is branch.test
            for c in (g.condition, ~g.condition)]  # fmt: skip
    taken = next((way for way in ways if {*way} <= common), None)
    if taken is None or not all(_falls(kernel, axis, part) for part in taken):
        return None
    speller = speller_before(kernel, effects, branch)
    try:
        words = [_wide(speller, part.form) for part in taken if isinstance(part, Compare)]
    except Unspelled:
        return None
    return kernel.rewritten(edited(kernel.function.body, {branch.test: text(" && ".join(words))}))


def _wide(speller: LocalSpeller, form: Polynomial) -> str:
    """That a form is not negative, in 64 bits."""
    sides: tuple[list[str], list[str]] = [], []
    for monomial, factor in speller.local(form).terms:
        word = f"(long long){speller.form(Polynomial.of({monomial: 1}))}" if monomial else ""
        times = str(abs(factor)) if abs(factor) != 1 or not word else ""
        sides[factor > 0].append(" * ".join(filter(None, (word, times))))
    less, more = (" + ".join(side) or "0" for side in sides)
    return f"{less} <= {more}"


def _falls(kernel: Kernel, axis: Axis, part: Condition) -> bool:
    """Whether a comparison that fails in a round fails in all that follow."""
    if not isinstance(part, Compare) or part.op != ">=":
        return False
    by, rest = part.form.coefficient(axis.name), part.form.without([axis.name])
    symbols = kernel.reading.symbols
    inside = symbols.inside(rest)
    step = axis.step.value if axis.step is not None else None
    return (
        by is not None and by.value is not None and by.value <= 0 and step is not None
        and axis.name not in inside and all(symbols[n].kind in _STEADY for n in inside)
    )  # fmt: skip
