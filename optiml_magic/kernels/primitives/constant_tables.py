"""P10, tables in constant memory, which lanes ask for different places of, in shared memory.

A constant is one word for a whole warp: lanes that ask for several take turns, one word at a time,
where banks of shared memory give each lane its own. The functions of the kernel ask the copy that
its blocks bring. Source: CUDA C++ Best Practices Guide, "Constant Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.combine import THREAD
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import functions_of, reached
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.tabled import Table, by_data
from optiml_magic.kernels.tree import Block, Declare, Function, expressions, walk
from optiml_magic.kernels.variables import device_variables

_STEP = "blockDim.x * blockDim.y * blockDim.z"


def constant_tables(kernel: Kernel) -> Iterator[Table | Refused]:
    """The tables in constant memory of which lanes take elements as data say."""
    reading = kernel.reading
    for array, held in reading.arrays.items():
        loads = [a for a in reading.accesses if a.array == array]
        count = held.extents[0].value if len(held.extents) == 1 and held.extents[0] else None
        size = held.element.size or 0
        if held.space != "global" or not held.const or not count or not loads:
            continue
        if array in {p.name for p in kernel.function.parameters} or not _is_constant(kernel, array):
            continue
        if count * size > SHARED or any(a.mode != "load" for a in loads):
            continue
        apart = [a for a in loads if by_data(kernel, a) and _differs(kernel, a.index)]
        if apart:
            looped = any(load.loops for load in apart)
            yield Table(array, held.element.name, count, count * size, apart[0].line, looped)


def _differs(kernel: Kernel, form: Polynomial | None) -> bool:
    return form is None or not kernel.reading.uniform(form)


@primitive
def constants_tabled(kernel: Kernel, arrays: Sequence[tuple[str, int]]) -> Kernel:
    """The kernel, and the functions that it calls, with these tables in shared memory."""
    Effects(kernel).straightforward()
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    functions = [*functions_of(kernel)]
    names = dict[str, str]()
    for array, _ in arrays:
        names[array] = kernel.fresh(f"{array}_table", *names.values())
    bodies, helpers, opening = dict[Function, Block](), list[str](), list[str]()
    for function in functions:
        swaps: dict[Node, Node] = {
            e: text(names[e.name]) for e in expressions(function.body)
            if isinstance(e, Name) and e.name in names and e.variable is None
        }  # fmt: skip
        if swaps or function is kernel.function:
            bodies[function] = edited(function.body, swaps) if swaps else function.body
    _check_alone(kernel, {*bodies} - {kernel.function}, {*names})
    at = kernel.fresh("place", *names.values())
    for array, count in arrays:
        kind = kernel.reading.arrays[array].element.name
        helpers.append(f"__shared__ __align__(16) {kind} {names[array]}[{count}];\n")
        copy = f"{names[array]}[{at}] = {array}[{at}];"
        opening.append(f"for (int {at} = {THREAD}; {at} < {count}; {at} += {_STEP}) {copy}")
    body = bodies[kernel.function]
    brought = lines("\n".join([*opening, "__syncthreads();"]))
    bodies[kernel.function] = replace(body, body=(brought, *body.body))
    return kernel.with_bodies(bodies, helpers)


def _is_constant(kernel: Kernel, array: str) -> bool:
    """Whether a name is that of a variable in constant memory."""
    variables = device_variables(kernel.unit)
    return any(v.space == "constant" and v.bare_name == array for v in variables)


def _check_alone(kernel: Kernel, changed: set[Function], names: set[str]) -> None:
    """Raise NotLegal where another kernel calls what asks for the copy, which it does not bring."""
    for other in kernel.unit.kernels:
        if other is not kernel.function and changed & {*reached(kernel.unit, other)}:
            raise NotLegal("another kernel calls a function that asks for the table")
    for function in reached(kernel.unit, kernel.function):
        asked = {e.name for e in expressions(function.body) if isinstance(e, Name)}
        if function.template and asked & names:
            raise NotLegal("a template asks for the table", function.line)
    for function in (kernel.function, *changed):
        declared = (s for s in walk(function.body) if isinstance(s, Declare))
        bound = (v.value for s in declared for v in s.variables if v.type.reference)
        if any(isinstance(value, Name) and value.name in names for value in bound):
            raise NotLegal("a reference stands for the whole table", function.line)
