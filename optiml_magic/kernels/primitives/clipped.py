"""Rounds that a comparison turns away are not made: ``for (j ...) if (x + j >= 0 && x + j < w)``.

A loop begins with the first round that does something and ends behind the last one; the tests are
gone, and what they ask of other loops stands around it, where the next one takes it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Lambda,
    Name,
    Step,
    Unread,
    every,
)  # fmt: skip
from optiml_magic.kernels.functions import LANES, pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.naming import (
    LocalSpeller,
    bracketed,
    speller_before,
    type_of,
)
from optiml_magic.kernels.primitives.sizes import middle, value
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Statement,
    only_leaves,
    walk,
)
from optiml_magic.kernels.types import named

_ONE = Polynomial.constant(1)
_WORD_BYTES = 4  # of numbers that no comparison promotes
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, eq=False)
class _Clip:
    """Of a loop the rounds from the greatest of ``firsts`` to before the least of ``ends`` do all.

    ``around`` are conditions on all rounds alike, ``tests`` the branches that ask for nothing else.
    """

    axis: Axis
    firsts: tuple[Polynomial, ...]
    ends: tuple[Polynomial, ...]
    around: tuple[Compare, ...]
    tests: tuple[If, ...]


@primitive
def clipped(kernel: Kernel) -> Kernel:
    """The kernel without the rounds that comparisons turn away; there must be such a loop."""
    found = clips(kernel)
    if not found.names:
        raise NotLegal("no comparison turns rounds away")
    return found.kernel


@dataclass(frozen=True)
class Clipped:
    """A kernel without the rounds that comparisons turn away, and the counters of their loops.

    ``left`` is the share of the rounds that are left where the kernel is measured: that of the
    thread in the middle of the launch, as far as sizes and places tell, else None.
    """

    kernel: Kernel
    names: tuple[str, ...] = ()
    left: float | None = None


@once
def clips(kernel: Kernel) -> Clipped:
    """The kernel without the rounds that comparisons turn away, if there are any."""
    names, shares = dict[str, None](), list[float | None]()
    while (found := _once(_nested(kernel))) is not None:
        kernel, name, share = found
        names[name] = None
        shares.append(share)
    known = [share for share in shares if share is not None]
    return Clipped(kernel, tuple(names), math.prod(known) if known else None)


def _once(kernel: Kernel) -> tuple[Kernel, str, float | None] | None:
    axes, effects = kernel.axes(), Effects(kernel)
    for loop in reversed(loops_in(kernel.function.body)):
        axis = axes.get(loop)
        if (
            axis is None
            or not _is_plain(kernel, axis, effects)
            or _exchanges(kernel, effects, axis)
        ):
            continue
        found = _clip(kernel, axis)
        if found is not None:
            assert axis.variable is not None
            try:
                made = kernel.rewritten(_written(kernel, effects, found))
            except (NotLegal, Unspelled):
                continue
            return made, axis.variable.name, _left(kernel, found)
    return None


def _left(kernel: Kernel, clip: _Clip) -> float | None:
    """The share of a loop's rounds that are left to the thread in the middle of the launch."""
    start, stop = clip.axis.start, clip.axis.stop
    assert start is not None
    assert stop is not None
    at = middle(kernel)
    begun, ended = value(kernel, start, at), value(kernel, stop, at)
    if begun is None or ended is None or ended <= begun:
        return None
    firsts = [begun, *(value(kernel, form, at) for form in clip.firsts)]
    ends = [ended, *(value(kernel, form, at) for form in clip.ends)]
    first = max(n for n in firsts if n is not None)
    end = min(n for n in ends if n is not None)
    return max(1, end - first) / (ended - begun)


def _is_plain(kernel: Kernel, axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts up by one, in a signed counter of its own that nothing else changes."""
    up = axis.exact and by_ones(axis, effects) and axis.step == _ONE and axis.stop is not None
    if not up or axis.variable is None or axis.variable in effects.changed(axis.node.body):
        return False
    kind = type_of(kernel, axis.variable)
    return kind.integral and kind.signed and kind.size in (4, 8) and _counts_up(kernel, axis)


def _counts_up(kernel: Kernel, axis: Axis) -> bool:
    """Whether a loop's test compares numbers with a sign, or its counter is never below zero.

    ``i < n`` does not hold for an ``i`` below zero where ``n`` has no sign.
    """
    sides = axis.node.test.parts if axis.node.test is not None else ()
    kinds = [kernel.reading.types.get(side) for side in sides]
    signed = all(
        k is not None and (k.signed or (k.size or _WORD_BYTES) < _WORD_BYTES) for k in kinds
    )
    value = axis.variable.value if axis.variable is not None else None
    first = kernel.reading.types.get(value) if value is not None else None
    if signed or axis.start is None or first is None or not first.signed:
        return signed
    return Ranges(axis.guard, kernel.reading.symbols).nonnegative(axis.start)


def _exchanges(kernel: Kernel, effects: Effects, axis: Axis) -> bool:
    """Whether lanes may exchange values in a round, for which all of them have to make it."""
    calls = [e for e in effects.inside(axis.node) if isinstance(e, Call)]
    own = any(kernel.unit.called(e.function, len(e.arguments)) for e in calls)
    return any(LANES.fullmatch(e.function) for e in calls) or (
        own and any(map(LANES.fullmatch, kernel.reading.calls))
    )


def _clip(kernel: Kernel, axis: Axis) -> _Clip | None:
    tests, firsts, ends, around = list[If](), dict[Polynomial, None](), dict[Polynomial, None](), []
    start = axis.start
    assert start is not None
    outer = {a.name for a in kernel.axes().values() if axis.node in set(walk(a.node.body))}
    for test in _chain(axis.node.body):
        parts = _asked(kernel, axis, test)
        if parts is None:
            continue
        tests.append(test)
        for part in parts:
            by, rest = _by(part, axis), part.form.without([axis.name])
            if by == 0:
                around.append(part)
            if by == 1 or (by and part.op == "=="):
                firsts[start - (rest if by == 1 else -rest)] = None
            if by == -1 or (by and part.op == "=="):
                ends[start + (rest if by == -1 else -rest) + _ONE] = None
    useful = firsts or ends or any(kernel.reading.symbols.inside(c.form) & outer for c in around)
    return _Clip(axis, tuple(firsts), tuple(ends), tuple(around), tuple(tests)) if useful else None


def _asked(kernel: Kernel, axis: Axis, test: If) -> tuple[Compare, ...] | None:
    """What a branch asks for, where that is known before the loop but for its counter."""
    guards = [g for g in kernel.reading.guards if g.test is test.test]
    if len(guards) != 1 or guards[0].exits or guards[0].loops[-1:] != (axis.name,):
        return None
    parts = [*guards[0].condition.conjuncts()]
    symbols = kernel.reading.symbols
    compared = [c for c in parts if isinstance(c, Compare) and c.op in (">=", "==")]
    within = {a.name for a in kernel.axes().values() if a.node in set(walk(axis.node.body))}
    for part in compared:
        rest = part.form.without([axis.name])
        if _by(part, axis) is None or not symbols.known(rest):
            return None
        if {axis.name, *within} & symbols.inside(rest):
            return None
    return tuple(compared) if parts and len(compared) == len(parts) else None


def _by(part: Compare, axis: Axis) -> int | None:
    """How a sum grows with the rounds: by one, down by one or not at all; None for other ways."""
    by = part.form.coefficient(axis.name)
    return by.value if by is not None and by.value in (-1, 0, 1) else None


def _chain(body: Statement) -> Iterator[If]:
    """The branches that are all that a round does, each in the one before it."""
    statements = body.body if isinstance(body, Block) else (body,)
    if not statements or not isinstance(statements[-1], If) or not all(map(_idle, statements[:-1])):
        return
    last = statements[-1]
    if last.other is not None or last.before is not None or last.constant or _acts(last.test):
        return
    yield last
    yield from _chain(last.then)


def _idle(statement: Statement) -> bool:
    declares = isinstance(statement, Declare) and not any(map(_acts, statement.expressions))
    return declares or isinstance(statement, Blank)


def _acts(expr: Expr) -> bool:
    """Whether an expression may do more than to compute."""
    return any(
        not pure(e.function) if isinstance(e, Call)
        else isinstance(e, Assign | Step | Lambda | Unread)
        for e in every(expr)
    )  # fmt: skip


def _nested(kernel: Kernel) -> Kernel:
    """Each part of a test that a loop's rounds begin with as a branch of its own."""
    axes, effects = kernel.axes(), Effects(kernel)
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if axis is None or not _is_plain(kernel, axis, effects):
            continue
        made = _nest(kernel, loop.body)
        if made is not None:
            return _nested(kernel.rewritten(edited(kernel.function.body, {loop.body: made})))
    return kernel


def _nest(kernel: Kernel, body: Statement) -> Statement | None:
    statements = body.body if isinstance(body, Block) else (body,)
    opening = next((n for n, s in enumerate(statements) if not _idle(s)), None)
    first = statements[opening] if opening is not None else None
    if opening is None or not isinstance(first, If) or first.other is not None:
        return None
    if first.before is not None or first.constant or _acts(first.test):
        return None
    rest = statements[opening + 1 :]
    parts = _parts(first.test, "||" if rest else "&&")
    if rest:
        if not only_leaves(first.then, "continue"):
            return None
        tests = [denied(kernel, part) for part in parts]
        inner: Statement = Block(None, rest[0].line, rest)
    elif len(parts) > 1:
        tests, inner = parts, first.then
    else:
        then = _nest(kernel, first.then)
        made = replace(first, span=None, then=then) if then is not None else None
        return _with(body, (*statements[:opening], made)) if made is not None else None
    for test in reversed(tests):
        branch = If(None, first.line, test, inner)
        inner = Block(None, first.line, (branch,))
    return _with(body, (*statements[:opening], branch))


def _with(body: Statement, statements: tuple[Statement, ...]) -> Statement:
    if isinstance(body, Block):
        return replace(body, span=None, body=statements, tail=None)
    return Block(None, body.line, statements)


def _parts(test: Expr, op: str) -> list[Expr]:
    if isinstance(test, Binary) and test.op == op:
        return [*_parts(test.left, op), *_parts(test.right, op)]
    return [test]


def _written(kernel: Kernel, effects: Effects, clip: _Clip) -> Block:
    """The loop over the rounds that are left."""
    loop, variable = clip.axis.node, clip.axis.variable
    assert isinstance(loop.before, Declare)
    assert variable is not None
    speller, name = speller_before(kernel, effects, loop), variable.name
    own = _bounds(kernel, clip.axis, speller)
    first, end = (
        [words, *(speller.form(speller.local(form)) for form in forms)]
        for words, forms in zip(own, (clip.firsts, clip.ends), strict=True)
    )
    told = {word for words in (*first, *end) for word in _WORD.findall(words)}
    sizes = _sizes(kernel)
    wide = sizes.get(name) == 8 or "long" in told or any(sizes.get(word) == 8 for word in told)
    kind, head = "long long" if wide else "int", list[str]()
    cast = wide or any(word not in sizes or word in speller.unsigned for word in told)
    for function, words in ("max", first), ("min", end):
        if len(words) > 1:
            each = [f"({kind})({word})" if cast else word for word in dict.fromkeys(words)]
            words[:] = [reduce(f"{function}({{}}, {{}})".format, each)]
    if not effects.stays(loop, end[0]):
        head.append(f"const {kind} {(last := kernel.fresh(f'{name}_end'))} = {end[0]};")
        end = [last]
    hints = hints_of(kernel, loop)
    turns = f"for ({loop.before.words}{name} = {first[0]}; {name} < {end[0]}; ++{name})"
    inside = kernel.show_inside(_without(kernel, loop.body, clip.tests))
    made = [*head, *(kernel.show(h).strip() for h in hints), f"{turns} {{\n{inside}\n}}"]
    if clip.around:
        tests = " && ".join(_condition(speller, c) for c in dict.fromkeys(clip.around))
        made = ["\n".join([f"if ({tests}) {{", *made, "}"])]
    changes: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    changes[loop] = tuple(map(lines, made))
    return edited(kernel.function.body, changes)


def _bounds(kernel: Kernel, axis: Axis, speller: LocalSpeller) -> tuple[str, str]:
    """Where a loop begins and ends, in its own words if it says so."""
    assert axis.variable is not None
    assert axis.stop is not None
    value, end = axis.variable.value, ""
    assert value is not None
    match axis.node.test:
        case Binary(op="<" | "<=" as op, left=Name(variable=own), right=bound):
            if own is axis.variable:
                end = bracketed(kernel, bound)
                end += " + 1" if op == "<=" else ""
    start = kernel.spelled(value)
    return start, end or speller.form(speller.local(axis.stop))


def _without(kernel: Kernel, body: Statement, tests: Sequence[If]) -> Statement:
    """What a round does without some branches, each of which is in the one before it."""
    every_name = Counter(v.name for s in walk(kernel.function.body) if isinstance(s, Declare)
                         for v in s.variables)  # fmt: skip
    body = body if isinstance(body, Block) else Block(None, body.line, (body,))
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    for test in reversed(tests):
        whole = test.then if isinstance(test.then, Block) else Block(None, 0, (test.then,))
        then = edited(whole, swaps)
        own = {v.name for s in then.body if isinstance(s, Declare) for v in s.variables}
        swaps[test] = then.body if all(every_name[name] == 1 for name in own) else then
    return edited(body, swaps)


def _condition(speller: LocalSpeller, part: Compare) -> str:
    return speller.condition(replace(part, form=speller.local(part.form)))


def _sizes(kernel: Kernel) -> dict[str, int]:
    """The sizes of the whole numbers that have names."""
    locals_ = [s.variables for s in walk(kernel.function.body) if isinstance(s, Declare)]
    kinds = {v.name: named(v.type.base, kernel.unit.aliases)
             for v in chain(kernel.function.parameters, *locals_)}  # fmt: skip
    return {n: kind.size or 0 for n, kind in kinds.items() if kind.kind == "int"}
