"""P9, own registers: what a thread stores in shared memory for itself it has in a register.

Where only the thread itself stores an element, ``next[ty][tx]``, a local holds it as well, and is
what the thread loads. An array of which nobody asks for another thread's element goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Name, Step
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.domains import Domain, parted
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.items import is_plain
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import THREADS
from optiml_magic.kernels.tree import Declare, Evaluate, Statement, Variable, expressions, walk

_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_Place = tuple[Polynomial, ...]


@dataclass(frozen=True, eq=False)
class Own:
    """A shared array whose elements only their threads store; they are loaded by ``loads``.

    It is ``alone`` where no thread asks for another's.
    """

    variable: Variable
    kind: str
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    alone: bool


def own_arrays(kernel: Kernel) -> tuple[Own, ...]:
    """The shared arrays that threads need not ask for what they have stored there."""
    Effects(kernel).straightforward(alone=False)
    declared = [v for s in kernel.function.body.body if isinstance(s, Declare) for v in s.variables
                if v.storage == "shared" and v.array and not v.type.volatile]  # fmt: skip
    found = [_own(kernel, variable) for variable in declared]
    return tuple(own for own in found if own is not None)


@primitive
def own_registers(kernel: Kernel) -> Kernel:
    """The kernel whose threads have their own elements of shared arrays in registers."""
    found = {own.variable: own for own in own_arrays(kernel)}
    if not found:
        raise NotLegal("no thread loads what it alone has stored in shared memory")
    names, swaps = dict[Variable, str](), _Swaps()
    for variable, own in found.items():
        names[variable] = kernel.fresh(f"{variable.name}_own", *names.values())
        swaps |= {access.node: text(names[variable]) for access in own.loads}
    for statement in walk(kernel.function.body):
        if isinstance(statement, Declare):
            swaps |= _declared(statement, found, names)
    swaps |= _stored(kernel, found.values(), names, swaps)
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _declared(statement: Declare, found: dict[Variable, Own], names: dict[Variable, str]) -> _Swaps:
    """A declaration without what goes, and the locals that come."""
    mine = [found[v] for v in statement.variables if v in found]
    if not mine:
        return {}
    made = [lines(f"{own.kind} {names[own.variable]};") for own in mine]
    left = tuple(v for v in statement.variables if v not in found or not found[v].alone)
    whole = len(left) == len(statement.variables)
    kept = statement if whole else replace(statement, variables=left, span=None)
    return {statement: (kept, *made) if left else tuple(made)}


def _stored(
    kernel: Kernel, found: Iterable[Own], names: dict[Variable, str], swaps: _Swaps
) -> _Swaps:
    made = _Swaps()
    inner = {node: new for node, new in swaps.items() if isinstance(new, Expr)}
    statements = {s.expression: s for s in walk(kernel.function.body) if isinstance(s, Evaluate)}
    for own in found:
        name = names[own.variable]
        for access in own.stores:
            assert isinstance(access.node, Assign | Step)
            target = access.node.target
            if own.alone:
                made[target] = text(name)
                continue
            beside = kernel.spelled(target)
            own_swaps: dict[Node, Node] = {**inner, target: text(name)}
            words = kernel.show(Evaluate(None, 0, access.node), own_swaps).strip()
            made[statements[access.node]] = lines(f"{{\n{words}\n{beside} = {name};\n}}")
    return made


def _own(kernel: Kernel, variable: Variable) -> Own | None:
    """The array as one of threads' own elements; None where they store others' as well."""
    accesses = [*kernel.reading.of(variable.name)]
    named = [e for e in expressions(kernel.function.body)
             if isinstance(e, Name) and e.variable is variable]  # fmt: skip
    places = [_place(access) for access in accesses]
    plain = all(a.call is None and not a.verbatim and is_plain(kernel, a) for a in accesses)
    bases = {id(base) for place in places if place is not None and (base := _base(place))}
    if not plain or None in places or bases != {id(e) for e in named}:
        return None
    stores = tuple(a for a in accesses if a.mode != "load" and isinstance(a.node, Assign | Step))
    others = any(a.mode != "load" and a not in stores for a in accesses)
    found = {_form(a) for a in stores}
    if others or len(found) != 1 or any(a.mode == "atomic" for a in accesses):
        return None
    (form,) = found
    if form is None or not _apart(kernel, variable.name, form):
        return None
    # what is stored in its place, `s[t] += x`, is loaded there as well
    updated = {a.node for a in stores}
    asked = [a for a in accesses if a.mode == "load" and a.node not in updated]
    loads = tuple(a for a in asked if _form(a) == form)
    alone = len(loads) == len(asked)
    plain_stores = {s.expression for s in walk(kernel.function.body) if isinstance(s, Evaluate)}
    if not loads or (not alone and not updated <= plain_stores):
        return None
    return Own(variable, accesses[0].element.name, loads, stores, alone)


def _place(access: Access) -> Index | None:
    return access.place if isinstance(access.place, Index) else None


def _base(place: Expr) -> Name | None:
    while isinstance(place, Index):
        place = place.base
    return place if isinstance(place, Name) else None


def _form(access: Access) -> _Place | None:
    """Which element it is."""
    return access.digits or ((access.index,) if access.index is not None else None)


def _apart(kernel: Kernel, array: str, form: _Place) -> bool:
    """Whether each thread of a block has an element of its own, the same all the time."""
    symbols, found = kernel.reading.symbols, parted(kernel, (), ())
    if found is None or not all(symbols.inside(part) <= THREADS for part in form):
        return False
    threads, _ = found
    known = {n: np.full(threads.count, value) for n, value in kernel.program.values.items()}
    domain = Domain(kernel, {**known, **threads.at}, threads.count)
    place = np.zeros(threads.count, np.int64)
    extents = kernel.reading.arrays[array].extents[1:] if len(form) > 1 else ()
    for part, extent in zip(form, (Polynomial.constant(1), *extents), strict=True):
        numbers, by = domain.numbers(part), domain.numbers(extent) if extent is not None else None
        if numbers is None or by is None:
            return False
        place = place * by + numbers
    return len(np.unique(place)) == threads.count
