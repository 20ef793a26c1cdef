"""P1, group: rounds that read the parts of one word are a loop of their own within one of words.

Packed weights and masks are asked for as ``word[k / 8] >> (k % 8 * 4)``: eight rounds in a row load
the same word. In a loop over words, it is loaded once, and what the round asks of ``k`` by division
is a counter. The rounds of the last word, where it is not whole, follow in a loop as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, names
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Leave, Variable, walk

_MOST = 8  # rounds of a word; more of them lanes read side by side: ours


@primitive
def grouped(kernel: Kernel) -> Kernel:
    """The kernel where each loop over parts of words is two, one in the other."""
    swaps: dict[Node, Node] = {}
    effects, axes = Effects(kernel), kernel.axes()
    taken: list[str] = []
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if axis is None or loops_in(loop.body) or not is_simple(axis, effects):
            continue
        size = _size(effects, axis)
        if size is not None:
            swaps[loop] = lines(_made(kernel, effects, axis, size, taken))
    if not swaps:
        raise NotLegal("no loop walks along the parts of words")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _size(effects: Effects, axis: Axis) -> int | None:
    """How many rounds in a row read one word, and ask which part of it is theirs."""
    loop, counter = axis.node, axis.variable
    heads = [e for e in (loop.test, loop.update) if e is not None]
    if counter is None or effects.changed(loop.body).keys() & (names(heads) | {counter}):
        return None
    if any(isinstance(s, Leave) and s.kind == "break" for s in walk(loop.body)):
        return None
    inside = effects.inside(loop.body)
    sizes = {size for e in inside if (size := _divided(e, counter, "%"))}
    for size in sorted(sizes):
        words = {e for e in inside if _divided(e, counter, "/") == size}
        for access in effects.accesses(loop):
            place = access.node.index if isinstance(access.node, Index) else None
            if place is None or access.mode != "load" or access.space != "global":
                continue
            if _asked(place, counter, words) and 1 < size <= _MOST:
                return size
    return None


def _asked(place: Expr, counter: Variable, words: set[Expr]) -> bool:
    """Whether an index asks for a word of the counter, and for nothing else of it."""
    parts = [*_outside(place, words)]
    return any(e in words for e in parts) and not any(
        isinstance(e, Name) and e.variable is counter for e in parts
    )


def _outside(expr: Expr, words: set[Expr]) -> Iterator[Expr]:
    yield expr
    if expr not in words:
        for part in expr.parts:
            yield from _outside(part, words)


def _divided(expr: Expr, counter: Variable, op: str) -> int | None:
    """By what an expression divides the counter, or of what it is the rest."""
    match expr:
        case Binary(op=own, left=Name(variable=variable), right=Literal(value=int() as by)):
            if variable is counter and by > 0:
                if own == op:
                    return by
                if own == ">>" and op == "/" and by < _MOST:
                    return 1 << by
                if own == "&" and op == "%" and by & (by + 1) == 0:
                    return by + 1
    return None


def _made(kernel: Kernel, effects: Effects, axis: Axis, size: int, taken: list[str]) -> str:
    loop, counter = axis.node, axis.variable
    assert counter is not None
    name, kind = counter.name, counter.type.base
    word, part = (kernel.fresh(f"{name}_{what}", *taken) for what in ("word", "part"))
    taken += [word, part]
    count = count_of(axis, speller_before(kernel, effects, loop), effects)
    swaps: dict[Node, Node] = {}
    for expr in effects.inside(loop.body):
        for op, new in (("/", word), ("%", part)):
            if _divided(expr, counter, op) == size:
                swaps[expr] = text(new)
    return "\n".join([
        f"for ({kind} {word} = 0; {word} < {count} / {size}; ++{word}) {{",
        f"for ({kind} {part} = 0; {part} < {size}; ++{part}) {{",
        f"const {kind} {name} = {word} * {size} + {part};",
        kernel.show_inside(loop.body, swaps), "}", "}",
        f"for ({kind} {name} = {count} / {size} * {size}; {name} < {count}; ++{name}) {{",
        kernel.show_inside(loop.body), "}",
    ])  # fmt: skip
