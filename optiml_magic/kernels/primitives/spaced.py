"""P17, bounds of items that are several elements apart: ``x = 2 * i`` and ``if (x >= w) return;``.

A thread that takes two columns has half as many items as there are columns. The guard then compares
the thread's index with that number, so that rules find how many items there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.reading import Guard
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import If, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Binary, Call, Number, parse_expression

_AXES = "xyz"


@dataclass(frozen=True)
class _Bound:
    """``size - beyond - by * index`` is not negative for the threads that go on."""

    axis: str
    size: Polynomial
    beyond: int
    by: int


@primitive
def spaced(kernel: Kernel) -> Kernel:
    """The kernel with guards of how many items there are, where these are elements apart."""
    if kernel.reading.barriers or kernel.launch.shared is not None:
        raise NotLegal("its threads wait for each other")
    grid, asked = list(kernel.launch.grid), dict[str, None]()
    speller, swaps = Speller(kernel.reading.symbols, {}), dict[Node, Node]()
    for guard, bounds in _guards(kernel):
        tests = []
        for bound in bounds:
            at, words = _AXES.index(bound.axis), speller.form(bound.size)
            alike = said_alike(kernel, parse_expression(words).names)
            if not alike or not _launched(kernel, bound):
                raise NotLegal("its launch does not say how many threads it has")
            block = kernel.launch.block[at]
            if bound.by > 1:
                words = words if words.isidentifier() else f"({words})"
                asked[f"{words} % {bound.by} == 0"] = None  # then there are as many threads
                words = f"{words} / {bound.by}"
                grid[at] = parse_expression(f"cdiv({words}, {block})")
            place = f"blockIdx.{bound.axis} * {block} + threadIdx.{bound.axis}"
            tests.append(f"{place} {'>=' if guard.exits else '<'} {words}")
        swaps[guard.test] = text((" || " if guard.exits else " && ").join(tests))
    if not swaps:
        raise NotLegal("no guard is of items that are elements apart")
    without_warps(kernel)
    every_place_read(kernel)
    return kernel.rewritten(
        edited(kernel.function.body, swaps),
        launch=replace(kernel.launch, grid=tuple(grid)),
        directives=[RequireDirective(parse_expression(one)) for one in asked],
    )


def _guards(kernel: Kernel) -> Iterator[tuple[Guard, list[_Bound]]]:
    """The guards that bound nothing but indices, one of them several elements apart."""
    moved = Effects(kernel).moved
    own = {s.test for s in walk(kernel.function.body) if isinstance(s, If)}
    for guard in kernel.reading.guards:
        if guard.loops or guard.test not in own:
            continue
        bounds = [_bound(kernel, part, moved) for part in guard.condition.conjuncts()]
        known = [bound for bound in bounds if bound is not None]
        apart = any(bound.by > 1 for bound in known) and len(known) == len(bounds)
        if apart and len({bound.axis for bound in known}) == len(known):
            yield guard, known


def _bound(kernel: Kernel, part: Condition, moved: frozenset[str]) -> _Bound | None:
    if not isinstance(part, Compare) or part.op != ">=":
        return None
    table = kernel.reading.symbols.table
    for axis, width in zip(_AXES, kernel.block, strict=True):
        form = index(part.form, axis, width) if width is not None else None
        by = form.coefficient(f"@{axis}") if form is not None else None
        if form is None or by is None or by.value is None or by.value >= 0:
            continue
        rest = form.without([f"@{axis}"])
        beyond = -dict(rest.terms).get((), 0)
        size = rest + Polynomial.constant(beyond)
        scalars = size.symbols and all(
            name not in moved and (symbol := table.get(name)) is not None
            and symbol.kind == "scalar" for name in size.symbols
        )  # fmt: skip
        # Of whole items it is the same whether the first or the last element of one is there.
        if scalars and 1 <= beyond <= -by.value:
            return _Bound(axis, size, beyond, -by.value)
    return None


def _launched(kernel: Kernel, bound: _Bound) -> bool:
    """Whether there is a thread for each of the items at least."""
    at, symbols = _AXES.index(bound.axis), kernel.reading.symbols
    width = kernel.block[at]
    if width is None or at >= min(len(kernel.launch.grid), len(kernel.launch.block)):
        return False
    tree, whole = kernel.launch.grid[at].tree, width * bound.by
    if (items := rounded_up(tree, Number(whole), whole)) is not None:
        return form_of(items, symbols) == bound.size
    if width > 1:
        tree = rounded_up(tree, kernel.launch.block[at].tree, width) or tree
    match tree:
        case Binary("/", size, Number(by)) | Call("cdiv", (size, Number(by))) if by == bound.by:
            return form_of(size, symbols) == bound.size
    return False
