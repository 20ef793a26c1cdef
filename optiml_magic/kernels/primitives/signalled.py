"""A flag that rounds of a loop set becomes what they combine: ``if (c) ok = 0;``.

Whether any round has met its condition is a union of bits, ``met |= 1``, which rounds may find in
any order and lanes may share; the flag gets its value behind the loop, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Lambda,
    Literal,
    Name,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import named


@dataclass(frozen=True, eq=False)
class _Signal:
    """``flag`` gets one value in some rounds of a loop, by ``given``; nobody asks for it there."""

    loop: Loop
    flag: Variable
    given: tuple[Statement, ...]


@primitive
def signalled(kernel: Kernel) -> Kernel:
    """The kernel with the flags that its loops set as what their rounds combine."""
    found, taken = [*_signals(kernel, Effects(kernel))], list[str]()
    if not found:
        raise NotLegal("no loop sets a flag that nobody asks for in it")
    changes: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for loop in dict.fromkeys(one.loop for one in found):
        begun, behind, swaps = list[str](), list[str](), dict[Node, Node]()
        for one in (one for one in found if one.loop is loop):
            name = kernel.fresh("met", *taken)
            taken.append(name)
            begun.append(f"unsigned int {name} = 0;")
            swaps |= {statement: lines(f"{name} |= 1;") for statement in one.given}
            behind.append(f"if ({name}) {kernel.show(one.given[0]).strip()}")
        hints = hints_of(kernel, loop)
        told = [lines(kernel.show(hint).strip()) for hint in hints]
        changes |= dict.fromkeys(hints)
        changes[loop] = (*map(lines, begun), *told, edited(loop, swaps), *map(lines, behind))
    return kernel.rewritten(edited(kernel.function.body, changes))


def _signals(kernel: Kernel, effects: Effects) -> Iterator[_Signal]:
    """Each flag with the outermost loop that only sets it."""
    done, axes = dict[Variable, list[Loop]](), kernel.axes()
    if kernel.reading.verbatim:
        return
    for loop in loops_in(kernel.function.body):
        if loop not in axes or not axes[loop].exact:
            continue
        for flag, own in _set_in(loop).items():
            around = any(loop in loops_in(outer.body) for outer in done.get(flag, ()))
            if (
                not around
                and _is_flag(kernel, effects, flag)
                and _only_set(effects, loop, flag, own)
            ):
                done.setdefault(flag, []).append(loop)
                yield _Signal(loop, flag, tuple(own))


def _set_in(loop: Loop) -> dict[Variable, list[Evaluate]]:
    """The locals that branches of a loop set, where they do nothing else."""
    found = dict[Variable, list[Evaluate]]()
    for statement in walk(loop.body):
        ways = (statement.then, statement.other) if isinstance(statement, If) else ()
        for way in ways:
            match way.body if isinstance(way, Block) else (way,):
                case (Evaluate(expression=Assign(op="=", target=Name(variable=flag))) as given,):
                    if flag is not None:
                        found.setdefault(flag, []).append(given)
    return found


def _is_flag(kernel: Kernel, effects: Effects, flag: Variable) -> bool:
    """Whether a local is one whole number, that has no other name."""
    kind = named(flag.type.base, kernel.unit.aliases)
    plain = not (flag.type.depth or flag.type.reference or flag.type.volatile or flag.array)
    if flag.storage != "local" or not plain or not (kind.integral or kind.kind == "bool"):
        return False
    whole = effects.inside(kernel.function.body)
    led = [e.operand for e in whole if isinstance(e, Unary) and e.op == "&"]
    led += [v.value for s in walk(kernel.function.body) if isinstance(s, Declare)
            for v in s.variables if v.type.reference and v.value is not None]  # fmt: skip
    return flag not in names(led) and not any(isinstance(e, Lambda | Unread) for e in whole)


def _only_set(effects: Effects, loop: Loop, flag: Variable, own: list[Evaluate]) -> bool:
    """Whether a loop does no more with a flag than to give it one value, in some rounds."""
    asked = sum(isinstance(e, Name) and e.variable is flag for e in effects.inside(loop))
    given = [s.expression.value for s in own if isinstance(s.expression, Assign)]
    parts, said = [*every(given[0])], names(given)
    constant = all(
        isinstance(e, Literal | Name) or (isinstance(e, Unary) and e.op in "+-!~") for e in parts
    )
    inner = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    moving = {*inner, *effects.changed(loop)}
    alike = all(same(given[0], other) for other in given)
    return asked == len(own) and constant and alike and not said & moving and flag not in inner
