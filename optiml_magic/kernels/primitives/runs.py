"""P24, runs: a thread takes neighbouring items, and adds up what they update at one element.

``atomicAdd(&y[row[i]], v)`` of items in a row, such as the elements of a sparse matrix by rows or
the edges of a graph by their ends, meets the same element many times over. All that the items load
is under way before the first of them is added up; where the next one updates another element, the
sum so far goes to its own by one atomic operation. Where the axis has no part in the element, as in
sums of columns, ``atomicAdd(&b[column], v)``, all that a thread takes is one run.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.collected import address
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.kernels.primitives.persistent import check_alone
from optiml_magic.kernels.primitives.places import Place, is_wide, placed
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.updates import Updated, converted, updated
from optiml_magic.kernels.tree import Block, Leave, walk
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

ITEMS = (2, 4, 8, 16, 32)
_LONG = (*ITEMS, 64, 128)  # where nothing is kept for each of them


@primitive
def in_runs(kernel: Kernel, axis: str, items: int = 8) -> Kernel:
    """Threads that take several items along an axis of the launch, and add up their updates."""
    kernel = kernel.settled()
    found = runs(kernel, axis)
    count, width = needed(kernel, axis), kernel.block["xyz".index(axis)]
    assert count is not None
    assert width is not None
    at, name = "xyz".index(axis), kernel.fresh("ITEMS")
    first, more = kernel.fresh("first"), kernel.fresh("more")
    wide = any(is_wide(kernel, e) for e in uses(kernel, axis).whole)
    kind = "long long" if wide else "unsigned int"
    swaps: dict[Node, Node] = dict(placed(kernel, {axis: Place(f"({first} + {more})", width)}))
    for statement in walk(kernel.function.body):
        if isinstance(statement, Leave) and statement.kind == "return":
            swaps[statement] = replace(statement, kind="continue", span=None)
    thread = f"({kind})blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
    begun = [
        f"const {kind} {first} = ({thread}) * {name};",
        f"if ({first} >= {count}) return;",
    ]
    each = f"#pragma unroll\nfor (int {more} = 0; {more} < {name}; ++{more})"
    merged, taken = list[str](), [name, first, more]
    for whole in found:
        for update in whole.updates:
            if _alike(kernel, update.access.index, axis):
                place, run = (kernel.fresh(f"{whole.array}_{w}", *taken) for w in ("place", "run"))
                taken += [place, run]
                begun += [
                    f"{whole.kind}* {place} = 0;",
                    f"{whole.kind} {run} = {whole.identity};",
                ]
                where = kernel.spelled(address(update), swaps)
                told = converted(kernel, whole, update, swaps)
                swaps[update.statement] = lines(
                    f"{{\n{place} = {where};\n{whole.combining(run, told)}\n}}"
                )
                merged.append(f"if ({place}) {whole.function}({place}, {run});")
                continue
            names = list[str]()
            for word in ("places", "values", "last", "run"):
                names.append(kernel.fresh(f"{whole.array}_{word}", *taken, *names))
            taken += names
            place, value, last, run = names
            where = kernel.spelled(address(update), swaps)
            told = converted(kernel, whole, update, swaps)
            swaps[update.statement] = lines(
                f"{{\n{place}[{more}] = {where};\n{value}[{more}] = {told};\n}}"
            )
            begun += [
                f"{whole.kind}* {place}[{name}] = {{}};",
                f"{whole.kind} {value}[{name}];",
            ]
            end = f"if ({last}) {whole.function}({last}, {run});"
            merged.append(
                f"{whole.kind}* {last} = 0;\n{whole.kind} {run} = {whole.identity};\n"
                f"{each} {{\nif (!{place}[{more}]) continue;\n"
                f"if ({place}[{more}] != {last}) {{\n{end}\n"
                f"{last} = {place}[{more}];\n{run} = {whole.identity};\n}}\n"
                f"{whole.combining(run, f'{value}[{more}]')}\n}}\n{end}"
            )
    body = kernel.show(edited(kernel.function.body, swaps))
    made = Block(None, 0, (lines("\n".join([*begun, f"{each} {body}", *merged])),))
    blocks = parse_expression(f"cdiv({count}, ({kernel.launch.block[at]}) * {name})")
    grid = tuple(blocks if n == at else b for n, b in enumerate(kernel.launch.grid))
    tune = TuneDirective(name, _LONG if one_run(kernel, axis) else ITEMS, items)
    return with_grid(
        kernel.rewritten(made, launch=replace(kernel.launch, grid=grid), directives=[tune])
    )


def runs(kernel: Kernel, axis: str) -> tuple[Updated, ...]:
    """What items update where the data say, or all alike, which are numbered along this axis.

    Raises NotLegal where a thread may not do the work of its neighbours.
    """
    check_alone(kernel)
    found = list[Updated]()
    for one in updated(kernel):
        if isinstance(one, Refused):
            raise NotLegal(one.reason, one.line)
        if any(u.access.loops for u in one.updates):
            raise NotLegal("an item updates more than once", one.updates[0].access.line)
        forms = [u.access.index for u in one.updates]
        if all(_by_data(kernel, form, axis) or _alike(kernel, form, axis) for form in forms):
            found.append(one)
    if not found:
        raise NotLegal("no data say which element an item updates")
    if needed(kernel, axis) is None:
        raise NotLegal("how many of its threads do something is not certain")
    return tuple(found)


def one_run(kernel: Kernel, axis: str) -> bool:
    """Whether all items along an axis update the same elements."""
    found = (u.access.index for one in runs(kernel, axis) for u in one.updates)
    return all(_alike(kernel, form, axis) for form in found)


def _by_data(kernel: Kernel, form: Polynomial | None, axis: str) -> bool:
    """Whether an index is made of what items along an axis load."""
    table, inside = kernel.reading.symbols.table, kernel.reading.symbols.inside
    loads = [n for n in inside(form) if table[n].kind == "load"] if form is not None else []
    thread = f"threadIdx.{axis}"
    return any(thread in inside(Polynomial.symbol(name)) for name in loads)


def _alike(kernel: Kernel, form: Polynomial | None, axis: str) -> bool:
    """Whether items along an axis update one element, and their neighbours along x another."""
    if form is None or axis == "x" or not kernel.reading.symbols.known(form):
        return False
    inside = kernel.reading.symbols.inside(form)
    return "threadIdx.x" in inside and not {f"threadIdx.{axis}", f"blockIdx.{axis}"} & {*inside}
