"""Normal form: an element whose members a round asks for one by one is loaded as a whole.

``s += in[i].re * c - in[i].im * d`` becomes ``const cplx item = in[i]; s += item.re * c - ...``, so
that a loop is seen to load one element, of the type of its array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    every,
    is_logical,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.counted import upward
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    loops_in,
    names,
)
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    body_of,
    expressions,
    walk,
)

_WIDEST = 16  # bytes that one instruction loads
_LEAST = 2  # a part of an element that is worth all of it, which comes in one sector: ours


@primitive
def whole_elements(kernel: Kernel) -> Kernel:
    """The kernel whose loops load such elements once a round; there must be one.

    Rounds that a pointer to them moves through are counted first.
    """
    for number, loop in enumerate(loops_in(kernel.function.body)):
        if _is_walked(Effects(kernel), loop):
            kernel = upward(kernel, number)
    body, effects, taken = kernel.function.body, Effects(kernel), list[str]()
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    items: dict[Statement, list[str]] = {}
    for loop in loops_in(body):
        blocks = () if loops_in(loop.body) else _blocks(loop)
        for item, first, uses in (e for b in blocks for e in _elements(kernel, effects, b)):
            if any(use.base in swaps for use in uses):
                continue
            array = item.base
            assert isinstance(array, Name)
            assert array.variable is not None
            taken.append(kernel.fresh(f"{array.name}_item", *taken))
            words = f"const {array.variable.type.base} {taken[-1]} = {kernel.spelled(item)};"
            items.setdefault(first, []).append(words)
            swaps |= {use.base: Name(None, taken[-1]) for use in uses}
    if not swaps:
        raise NotLegal("no round asks for members of one element alone")
    for first, made in items.items():
        swaps[first] = (*map(lines, made), edited(first, swaps))
    return kernel.rewritten(_in_braces(body, swaps))


def _is_walked(effects: Effects, loop: Loop) -> bool:
    """Whether rounds ask for members by pointers that they move."""
    if loops_in(loop.body):
        return False
    moved = {v for v in effects.changed(loop) if v.type.depth == 1}
    bases = (e.base for e in expressions(loop.body) if isinstance(e, Member))
    return any(isinstance(e, Name) and e.variable in moved for base in bases for e in every(base))


def _in_braces(body: Block, swaps: dict[Node, Node | tuple[Statement, ...]]) -> Block:
    """The body with the changes, where a loop's only statement becomes several in braces."""
    for loop in loops_in(body):
        made = swaps.get(loop.body)
        if isinstance(made, tuple):
            swaps[loop.body] = Block(None, loop.line, made)
    return edited(body, swaps)


def _blocks(loop: Loop) -> Iterator[Sequence[Statement]]:
    """The statements of a round, and those of each block within."""
    if not isinstance(loop.body, Block):
        yield body_of(loop.body)
    for statement in walk(loop.body):
        if isinstance(statement, Block):
            yield statement.body


def _elements(
    kernel: Kernel, effects: Effects, statements: Sequence[Statement]
) -> Iterator[tuple[Index, Statement, list[Member]]]:
    """The elements that a block is certain to ask for, where it first does, and all who do."""
    loads = {a.node: a for a in kernel.reading.accesses if a.mode == "load" and a.call is None}
    order = {e: at for at, s in enumerate(statements) for e in expressions(s)}
    left = [e for e in order if isinstance(e, Member) and _is_part(kernel, effects, e, loads)]
    while left:
        item, at = left[0].base, order[left[0]]
        uses = [e for e in left if same(e.base, item)]
        left = [e for e in left if e not in uses]
        parts = {e.field: loads[e].element.size or 0 for e in uses}
        whole = kernel.reading.arrays[loads[uses[0]].array].element.size or 0
        certain = _is_certain(statements[at], uses[0]) and _stays(effects, statements[at:], uses)
        if isinstance(item, Index) and certain and _LEAST * sum(parts.values()) >= whole:
            yield item, statements[at], uses


def _is_part(kernel: Kernel, effects: Effects, expr: Member, loads: dict[Expr, Access]) -> bool:
    """Whether it is a member of an element that nobody writes, of an array of short elements."""
    access = loads.get(expr)
    match expr:
        case Member(base=Index(base=Name(variable=array), index=index), arrow=False):
            pass
        case _:
            return False
    if access is None or array is None or access.array not in kernel.reading.arrays:
        return False
    kind = kernel.reading.arrays[access.array].element
    plain = all(isinstance(e, Name | Literal | Binary | Cast) for e in every(index))
    return (
        plain
        and access.space == "global"
        and kind.kind in ("record", "vector")
        and 0 < (kind.size or 0) <= _WIDEST
        and array.type.depth == 1
        and not array.type.volatile
        and array.type.base != "auto"
        and not any(effects.same(access.array, w) for w in kernel.reading.written)
    )


def _is_certain(statement: Statement, use: Member) -> bool:
    """Whether a statement asks for it whatever is true."""
    if not isinstance(statement, Evaluate | Declare):
        return False
    unsure = (e for e in expressions(statement) if isinstance(e, Choice) or is_logical(e))
    return not any(use in set(every(e)) for e in unsure)


def _stays(effects: Effects, statements: Sequence[Statement], uses: Sequence[Member]) -> bool:
    """Whether nothing that says which element it is changes, or begins, in these statements."""
    own = names(every(uses[0].base))
    changed = {v for s in statements for v in effects.changed(s)}
    return not own & (changed | declared_in(statements[0]))
