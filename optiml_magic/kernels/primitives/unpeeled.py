"""A loop that begins at its second element, begun at the first: for extremes, once more is as good.

``m = a[0]; for (i = 1; ...) m = max(m, a[i]);`` takes the first element out of the loop, and with
it what makes the loop's accesses aligned.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import edited, text
from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.reading import Access, Axis, Reduction
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Variable, walk


@primitive
def unpeeled(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number takes in the element that its extremes begin with."""
    loop = loops_in(kernel.function.body)[at]
    effects, axis = Effects(kernel), kernel.axes().get(loop)
    before = loop.before
    step = axis.step.value if axis is not None and axis.step is not None else None
    start = axis.start.value if axis is not None and axis.start is not None else None
    if axis is None or not axis.exact or step != 1 or start != 1 or loop.kind != "for":
        raise NotLegal("the loop does not begin at the second element", loop.line)
    if not isinstance(before, Declare) or len(before.variables) != 1:
        raise NotLegal("where the loop begins is not in its head", loop.line)
    _check(kernel, axis, loop, effects)
    value = before.variables[0].value
    assert value is not None
    return kernel.rewritten(edited(kernel.function.body, {value: text("0")}))


def _check(kernel: Kernel, axis: Axis, loop: Loop, effects: Effects) -> None:
    reading = kernel.reading
    places = {variable.name for variable in effects.changed(loop.body)}
    found = [r for r in reading.reductions if axis.name in r.axes and r.place in places]
    places -= {name for r in found for name in r.carried if _strict(r)}
    inside = effects.inside(loop)
    accesses = [a for a in reading.accesses if a.own in inside]
    loads = {effects.taken(a): a for a in reading.accesses if a.mode == "load"}
    if not found or {r.place for r in found} != places:
        raise NotLegal("the loop does more than to seek an extreme", loop.line)
    for reduction in found:
        first = loads.get(reduction.start) if reduction.start is not None else None
        if not combine.idempotent(reduction) or first is None:
            raise NotLegal(f"`{reduction.place}` does not begin with an element", loop.line)
        values = [v for v in reduction.values if v in loads or _meant(v, loop, effects) in loads]
        if not values or not all(_first(axis, a) == first.offset for a in accesses):
            raise NotLegal(f"`{reduction.place}` does not begin with the first", loop.line)
        if any(a.array != first.array or a.mode != "load" for a in accesses):
            raise NotLegal("the loop does more than to seek an extreme", loop.line)
        if not _stays(kernel, effects, loop, first):
            raise NotLegal(f"`{first.array}` may change in front of the loop", loop.line)


def _stays(kernel: Kernel, effects: Effects, loop: Loop, first: Access) -> bool:
    """Whether an element is still the same as the loop begins."""
    changes = [a for a in kernel.reading.accesses
               if a.mode != "load" and effects.same(a.array, first.array)]  # fmt: skip
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block) and loop in s.body):
        before = block.body[: block.body.index(loop)]
        found = [n for n, s in enumerate(before) if first.own in effects.inside(s)]
        between = [effects.inside(s) for s in before[found[-1] :]] if found else []
        if found and not any(a.own in inside for a in changes for inside in between):
            return True
    return not changes


def _first(axis: Axis, access: Access) -> Polynomial | None:
    """What the access leads to in the round before the first."""
    form = access.offset
    by = form.coefficient(axis.name) if form is not None else None
    return form.without([axis.name]) - by if form is not None and by is not None else None


def _strict(reduction: Reduction) -> bool:
    """Whether what equals the place is never taken, and nothing assigned along with it."""
    return reduction.tests in ((">",), ("<",))


def _meant(value: Expr, loop: Loop, effects: Effects) -> Expr | None:
    """What a local of the round was given, if nothing else was."""
    match value:
        case Name(variable=Variable(value=given) as variable) if given is not None:
            own = any(isinstance(s, Declare) and variable in s.variables for s in walk(loop.body))
            inside = [s for s in walk(loop.body) if isinstance(s, Evaluate)]
            return given if own and variable not in effects.changed(*inside) else None
    return None
