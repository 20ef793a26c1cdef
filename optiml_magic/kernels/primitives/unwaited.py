"""Barriers that nobody needs: no thread asks for what another one of its block leaves.

``s[t] = x[i]; __syncthreads(); y[i] = a * s[t];`` brings to shared memory what each thread alone
asks for. It is as well in a register, and then no thread has to wait. What stood under one test
on both sides of a barrier, ``if (i < n)``, stands under it together.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.belonging import together
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.own_registers import own_registers
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.tree import Block, Declare, If, Leave, Statement, walk


@primitive
def unwaited(kernel: Kernel) -> Kernel:
    """The kernel without its barriers, and without shared memory for what is a thread's own."""
    if not kernel.reading.barriers:
        raise NotLegal("its threads do not wait for each other")
    made = where_legal(own_registers, kernel)
    reading, effects = made.reading, Effects(made)
    if any(a.space == "shared" for a in reading.accesses):
        raise NotLegal("its threads share memory")
    effects.straightforward(alone=False)
    if any(name.startswith("__threadfence") or name in TOLD for name in reading.calls):
        raise NotLegal("it says in which order others see what it does")
    if any(p.type.volatile for p in made.function.parameters):
        raise NotLegal("its memory may change at any time")
    for store in (a for a in reading.accesses if a.space == "global" and a.mode != "load"):
        for other in (a for a in reading.accesses if a.space == "global"):
            if store.mode == other.mode == "atomic" or not effects.same(store.array, other.array):
                continue
            if store.array != other.array or not together(made, store, made, other):
                raise NotLegal(f"another thread may ask for what is stored to `{store.array}`")
    swaps: dict[Node, None] = {
        s: None for block in walk(made.function.body) if isinstance(block, Block)
        for s in block.body if is_barrier(s)
    }  # fmt: skip
    if len(swaps) != len(reading.barriers):
        raise NotLegal("its threads wait within another statement")
    made = made.rewritten(edited(made.function.body, swaps))
    return made.rewritten(_joined(made))


def _joined(kernel: Kernel) -> Block:
    """The kernel's own statements with neighbours under one test as one branch."""
    effects, found = Effects(kernel), list[Statement]()
    for statement in kernel.function.body.body:
        last = found[-1] if found else None
        if (
            isinstance(statement, If)
            and isinstance(last, If)
            and _are_one(effects, last, statement)
        ):
            inside = (*_inside(last.then), *_inside(statement.then))
            found[-1] = replace(last, span=None, then=Block(None, last.line, inside))
        else:
            found.append(statement)
    return replace(kernel.function.body, body=tuple(found))


def _are_one(effects: Effects, one: If, other: If) -> bool:
    """Whether what is under two tests may stand under the first, which still says the same."""
    plain = all(s.before is None and s.other is None for s in (one, other))
    leaves = any(isinstance(s, Leave) for s in walk(one))
    asked = names([one.test])
    loaded = {a.node for a in effects.reading.accesses} & {*every(one.test)}
    calls = any(isinstance(e, Assign | Call | Step) for e in every(one.test))
    moved = asked & {*effects.changed(one.then)} or asked & effects.lent
    return plain and same(one.test, other.test) and not (leaves or loaded or calls or moved)


def _inside(branch: Statement) -> tuple[Statement, ...]:
    """Its statements, in braces of their own where they declare something."""
    own = branch.body if isinstance(branch, Block) else (branch,)
    return (branch,) if any(isinstance(s, Declare) for s in own) else own
