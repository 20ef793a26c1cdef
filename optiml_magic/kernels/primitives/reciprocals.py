"""P27, reciprocals: a loop that divides by one value multiplies by what one divided by it is.

An exact division is a dozen instructions and more, a product is one; the result may differ in its
last bits, and where the value is so small that its reciprocal is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.deciding import REASON, line_decided
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.staged import hints_before
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, walk

_ONE = {"float": "1.0f", "double": "1.0"}


@primitive
def by_reciprocals(kernel: Kernel) -> Kernel:
    """The kernel without divisions of floats by what does not change in an innermost loop."""
    effects, taken = Effects(kernel), list[str]()
    loops = loops_in(kernel.function.body)
    line = line_decided(kernel, (e for loop in loops for e in divisions(kernel, loop, effects)))
    if line:
        raise NotLegal(REASON, line)
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    for loop in loops:
        known: dict[tuple[str, str], str] = {}
        inner: dict[Node, Node] = {}
        for division in divisions(kernel, loop, effects):
            one = kernel.spelled(division.right), kind_of(kernel, division)
            if one not in known:
                taken.append(kernel.fresh("reciprocal", *taken))
                known[one] = taken[-1]
            right = text(known[one])
            inner[division] = Binary(None, "*", division.left, right)
        if not known:
            continue
        over = {w: w if w.isidentifier() else f"({w})" for w, _ in known}
        before = lines("\n".join(
            f"const {kind} {n} = {_ONE[kind]} / {over[w]};" for (w, kind), n in known.items()
        ))  # fmt: skip
        around = next((b for b in walk(kernel.function.body)
                       if isinstance(b, Block) and loop in b.body), None)  # fmt: skip
        hints = hints_before(around, loop) if around is not None else ()
        changed = edited(loop, inner)
        if hints:
            swaps[hints[0]] = (before, hints[0])
            swaps[loop] = changed
        else:
            swaps[loop] = (before, changed)
    if not swaps:
        raise NotLegal("no loop divides floats by one value")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def kind_of(kernel: Kernel, division: Binary) -> str:
    """The type of a division of floats or of doubles; nothing of others."""
    kinds = [kernel.reading.types.get(e) for e in (division.left, division.right)]
    names_ = {kind.name if kind is not None and not kind.depth else "" for kind in kinds}
    return ("double" if "double" in names_ else "float") if names_ <= {*_ONE} else ""


def divisions(kernel: Kernel, loop: Loop, effects: Effects) -> Iterator[Binary]:
    """The outermost divisions of floats in an innermost loop by locals that it leaves alone."""
    if loops_in(loop.body):
        return
    own = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    moving = {*effects.changed(loop), *own}
    found = set[Expr]()
    for expr in sorted(effects.inside(loop.body), key=lambda e: -len([*every(e)])):
        if not isinstance(expr, Binary) or expr.op != "/" or expr in found:
            continue
        plain = all(isinstance(e, Name | Literal | Binary) for e in every(expr.right))
        some = names([expr.right])
        if plain and some and kind_of(kernel, expr) and not some & moving:
            found |= {*every(expr.left)}
            yield expr
