"""P7, strip mining: a loop in strips of a constant number of rounds, and the rounds left over.

What the rounds of a strip load can then lie in registers (``jammed``), however many there are.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.tree import Declare, Leave, Statement, walk


@primitive
def strip_mined(kernel: Kernel, at: int, count: int) -> Kernel:
    """The loop with this number, which counts from 0 by 1, in strips of ``count`` rounds."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    axis = kernel.axes().get(loop)
    if axis is None or axis.variable is None or not axis.exact or not is_simple(axis, effects):
        raise NotLegal("the loop does not count from 0 by 1", loop.line)
    if axis.variable in effects.changed(loop.body):
        raise NotLegal("its counter changes in its body", loop.line)
    for statement in walk(loop.body):
        if isinstance(statement, Leave) and statement.kind != "continue":
            raise NotLegal("a round may be the last", statement.line)
        held = statement.variables if isinstance(statement, Declare) else ()
        if any(variable.storage != "local" for variable in held):
            raise NotLegal("what it declares outlives a round", statement.line)
    kind, name = axis.variable.type.base, axis.variable.name
    first, turn = kernel.fresh(f"{name}_first"), kernel.fresh(f"{name}_turn")
    end, whole = kernel.fresh(f"{name}_end"), kernel.fresh(f"{name}_whole")
    words = count_of(axis, speller_before(kernel, effects, loop), effects)
    body = kernel.show(loop.body).strip()
    inner = body[1:].lstrip() if body.startswith("{") else f"{body}\n}}"
    head, rest = [f"const {kind} {end} = {words}, {whole} = {end} / {count} * {count};"], True
    if axis.trips is not None:
        whole, end, head = str(axis.trips // count * count), str(axis.trips), []
        rest = axis.trips % count != 0
    made = [
        *head,
        f"for ({kind} {first} = 0; {first} < {whole}; {first} += {count})",
        f"for ({kind} {turn} = 0; {turn} < {count}; ++{turn}) {{",
        f"const {kind} {name} = {first} + {turn};\n{inner}",
        *([f"for ({kind} {name} = {whole}; {name} < {end}; ++{name}) {body}"] if rest else []),
    ]
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    swaps |= dict.fromkeys(hints_of(kernel, loop))
    swaps[loop] = lines("\n".join(["{", *made, "}"] if head else made))
    return kernel.rewritten(edited(kernel.function.body, swaps))
