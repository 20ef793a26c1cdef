"""P7, several accumulators: a sum whose rounds wait for each other becomes four sums side by side.

Each addition waits for the one before, four cycles and more, which other warps fill where there
are enough of them. Four sums, of every fourth round each, wait for nothing but themselves, and are
added up behind the loop. The loop is written out, so that each sum lies in a register. Source:
Volkov, "Better Performance at Lower Occupancy", GTC 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in, names
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Evaluate, Loop, Statement, Variable

SUMS = 4  # side by side; ours
_LEAST, _MOST = 4 * SUMS, 128  # rounds of a loop that is written out; ours


@dataclass(frozen=True, eq=False)
class Chain:
    """A loop, and the sums that each of its rounds adds to."""

    axis: Axis
    sums: tuple[tuple[Variable, Evaluate], ...]


@primitive
def split_chains(kernel: Kernel) -> Kernel:
    """The kernel with such sums of all short loops in parts; there must be one."""
    swaps = dict[Node, Node | tuple[Statement, ...] | None]()
    taken = list[str]()
    for chain in chains(kernel):
        swaps |= _split(kernel, chain, taken)
    if not swaps:
        raise NotLegal("no short loop sums up")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def chains(kernel: Kernel) -> Iterator[Chain]:
    """The innermost loops of constant rounds that do nothing that lasts but to sum up floats."""
    effects = Effects(kernel)
    for loop in loops_in(kernel.function.body):
        axis = kernel.axes().get(loop)
        if (
            axis is None
            or not axis.exact
            or not is_simple(axis, effects)
            or len(loops_in(loop)) > 1
        ):
            continue
        if not _LEAST <= (axis.trips or 0) <= _MOST or (axis.trips or 0) % SUMS:
            continue
        body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
        found = [one for s in body if (one := _summed(kernel, s)) is not None]
        sums = {variable for variable, _ in found}
        once = all(_mentions(effects, loop, variable) == 1 for variable in sums)
        if (
            found
            and effects.changed(loop.body).keys() <= sums
            and once
            and not effects.kept(loop.body)
        ):
            yield Chain(axis, tuple(found))


def _summed(kernel: Kernel, statement: Statement) -> tuple[Variable, Evaluate] | None:
    """The local of a float that a statement adds to, with the statement."""
    match statement:
        case Evaluate(expression=Assign(op="+=", target=Name(variable=Variable() as own))):
            kind = kernel.reading.types.get(statement.expression)
            plain = own.storage == "local" and not own.array and not own.type.reference
            value = statement.expression
            assert isinstance(value, Assign)
            alone = own not in names([value.value])
            if plain and alone and kind is not None and kind.floating:
                return own, statement
    return None


def _mentions(effects: Effects, loop: Loop, variable: Variable) -> int:
    inside = effects.inside(loop)
    return sum(isinstance(e, Name) and e.variable is variable for e in inside)


def _split(
    kernel: Kernel, chain: Chain, taken: list[str]
) -> dict[Node, Node | tuple[Statement, ...] | None]:
    loop, counter = chain.axis.node, chain.axis.variable
    assert counter is not None
    inner, before, behind = dict[Node, Node](), list[str](), list[str]()
    for variable, statement in chain.sums:
        parts = kernel.fresh(f"{variable.name}_parts", *taken)
        taken.append(parts)
        before.append(f"{declared_type(kernel, variable)} {parts}[{SUMS}] = {{}};")
        added = " + ".join(f"({parts}[{n}] + {parts}[{n + 1}])" for n in range(0, SUMS, 2))
        behind.append(f"{variable.name} += {added};")
        assert isinstance(statement.expression, Assign)
        target: Expr = statement.expression.target
        inner[target] = text(f"{parts}[{counter.name} % {SUMS}]")
    hints = hints_of(kernel, loop)
    said = "".join(kernel.show(hint).strip() for hint in hints) or "#pragma unroll"
    words = [*before, said, kernel.show(loop, inner).strip(), *behind]
    made = dict[Node, Node | tuple[Statement, ...] | None]({loop: (lines("\n".join(words)),)})
    return made | dict.fromkeys(hints)
