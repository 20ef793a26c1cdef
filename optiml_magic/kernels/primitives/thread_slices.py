"""P24, keep close: the part of scratch that a thread alone asks for, as a local array.

Rows of a table of its own that each thread has in global memory lie apart from those of its
neighbours, so that a warp asks for as many sectors as it has lanes. Local arrays lie interleaved,
and become registers where loops over them are written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, once, primitive
from optiml_magic.kernels.primitives.block_slices import (
    Numbers,
    element_size,
    launched_once,
    with_numbers,
)
from optiml_magic.kernels.primitives.block_walk import BlockWalk
from optiml_magic.kernels.primitives.lane_values import By, Lanes
from optiml_magic.kernels.primitives.touched import FAR, Touched
from optiml_magic.kernels.tree import Block, Variable, expressions

_MOST = 1024  # bytes of a thread: ours


@dataclass(frozen=True)
class Part:
    """``count`` elements of a thread, from ``least`` on, ``apart`` by threads and ``by`` blocks."""

    array: str
    by: By
    least: int
    apart: int
    count: int


@dataclass(frozen=True)
class Parts:
    found: tuple[Part, ...]
    refused: tuple[Refused, ...]
    way: BlockWalk


@once
def parts_at(kernel: Kernel, sizes: Numbers) -> Parts:
    """The parts of scratch that threads ask for alone, where these sizes are numbers."""
    if None in kernel.block or kernel.block[1:] != (1, 1) or kernel.facts is None:
        raise NotLegal("its blocks are not rows of threads", kernel.function.line)
    way, found, refused = BlockWalk(kernel, dict(sizes), alone=True), list[Part](), list[Refused]()
    for variable in _scratch(kernel):
        try:
            found.append(_part(kernel, variable, way))
        except NotLegal as reason:
            refused.append(Refused(reason.reason, reason.line))
    return Parts(tuple(found), tuple(refused), way)


def _scratch(kernel: Kernel) -> list[Variable]:
    """Arrays that nobody else asks for."""
    arrays = kernel.facts.arrays if kernel.facts is not None else {}
    if not launched_once(kernel):
        return []
    own = (p for p in kernel.function.parameters if p.name in arrays and p.type.depth == 1)
    return [p for p in own if arrays[p.name].role == "scratch" and not p.type.volatile]


def has_scratch(kernel: Kernel) -> bool:
    return bool(_scratch(kernel))


def _part(kernel: Kernel, variable: Variable, way: BlockWalk) -> Part:
    name, touched, facts = variable.name, way.touched[variable.name], kernel.facts
    if touched.refused is not None:
        reason, line = touched.refused
        raise NotLegal(f"of `{name}`: {reason}", line)
    if touched.firsts is None or touched.lasts is None or facts is None:
        raise NotLegal(f"`{name}` is not asked for", variable.line)
    if any(other != name and facts.aliased(name, other) for other in facts.arrays):
        raise NotLegal(f"`{name}` has another name", variable.line)
    if touched.begins:
        raise NotLegal(f"what was in `{name}` before is asked for", variable.line)
    asking = np.flatnonzero(touched.firsts < FAR)
    firsts, ranks = touched.firsts[asking], asking.astype(np.int64)
    count = int((touched.lasts[asking] - firsts).max()) + 1
    apart = _apart(firsts, ranks)
    if apart is None or apart < count or not way.blocks.apart(touched.place, touched.count):
        raise NotLegal(f"threads share parts of `{name}`", variable.line)
    size = element_size(kernel, variable)
    if size is None or size * count > _MOST:
        raise NotLegal(f"a thread asks for too much of `{name}`", variable.line)
    return Part(name, touched.place, int(firsts[0] - apart * ranks[0]), apart, count)


def _apart(firsts: Lanes, ranks: Lanes) -> int | None:
    """How far parts of neighbouring threads are apart, where all of them are as far."""
    if len(ranks) < 2:
        return None
    apart = int((firsts[1] - firsts[0]) // (ranks[1] - ranks[0]))
    same = firsts - firsts[0] == apart * (ranks - ranks[0])
    return apart if bool(same.all()) else None


@primitive
def in_local_arrays(kernel: Kernel) -> Kernel:
    """The kernel whose threads hold their parts of scratch."""
    kernel = with_numbers(kernel.settled(), parts_at)
    known = parts_at(kernel, ())
    if not known.found:
        raise NotLegal("no thread has a part of scratch by itself", kernel.function.line)
    own = {p: o for p in kernel.function.parameters for o in known.found if o.array == p.name}
    names, swaps = dict[str, str](), dict[Node, Node]()
    for one in own.values():
        _check(known.way.touched[one.array], one)
        names[one.array] = kernel.fresh(f"{one.array}_own", *names.values())
    for expr in [*expressions(kernel.function.body)][::-1]:
        match expr:
            case Index(base=Name(variable=Variable() as variable), index=by) if variable in own:
                one = own[variable]
                spelled = f"({kernel.spelled(by, swaps)}) - ({_begin(one)})"
                swaps[expr] = text(f"{names[one.array]}[{spelled}]")
            case (
                Binary(op="+", left=Name(variable=Variable() as variable))
                | Binary(op="+", right=Name(variable=Variable() as variable))
            ) if variable in own:
                one = own[variable]
                at = _leads(known.way, expr, one)
                swaps[expr] = text(f"({names[one.array]} + {at})" if at else names[one.array])
    begin = [
        f"{variable.type.base} {names[one.array]}[{one.count}];" for variable, one in own.items()
    ]
    body = kernel.function.body
    inner = edited(body, swaps)
    whole = Block(None, body.line, (lines("\n".join(begin)), *inner.body))
    return kernel.rewritten(whole, directives=known.way.blocks.asked())


def _check(touched: Touched, one: Part) -> None:
    """Raises NotLegal where a pointer is made of the bare name of an array."""
    if any(by != one.by for by, _, _ in touched.formed):
        raise NotLegal(f"a pointer leads beside a thread's part of `{one.array}`")


def _leads(way: BlockWalk, expr: Binary, one: Part) -> int:
    """The place of a thread's part where a pointer leads, the same for all of them."""
    led = way.leads.get(expr)
    if led is not None and led[0] == one.array:
        places = led[1] - one.least - one.apart * np.arange(len(led[1]))
        if (places == places[0]).all() and 0 <= places[0] <= one.count:
            return int(places[0])
    raise NotLegal(f"where a pointer into `{one.array}` leads is not followed")


def _begin(one: Part) -> str:
    """Where the part of a thread begins."""
    terms = [*one.by, ("threadIdx.x", one.apart)]
    spelled = [f"{name} * {factor}ull" for name, factor in terms]
    return " + ".join([*spelled, *([str(one.least)] if one.least else [])])
