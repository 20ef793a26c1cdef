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
        known: dict[str, str] = {}
        inner: dict[Node, Node] = {}
        for division in divisions(kernel, loop, effects):
            words = kernel.spelled(division.right)
            if words not in known:
                taken.append(kernel.fresh("reciprocal", *taken))
                known[words] = taken[-1]
            right = text(known[words])
            inner[division] = Binary(None, "*", division.left, right)
        if not known:
            continue
        over = {w: w if w.isidentifier() else f"({w})" for w in known}
        before = lines("\n".join(f"const float {n} = 1.0f / {over[w]};" for w, n in known.items()))
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
        kinds = [kernel.reading.types.get(e) for e in (expr.left, expr.right)]
        plain = all(isinstance(e, Name | Literal | Binary) for e in every(expr.right))
        some = names([expr.right])
        float_ = kinds[1] is not None and kinds[1].name == "float" and not kinds[1].depth
        whole = kinds[0] is not None and kinds[0].name == "float" and not kinds[0].depth
        if plain and some and float_ and whole and not some & moving:
            found |= {*every(expr.left)}
            yield expr
