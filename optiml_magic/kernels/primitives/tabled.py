"""P10, a table in shared memory: a block brings all of an array that the data ask for in any order.

Lanes that ask for elements anywhere in a table meet in the lines of a cache, and take turns; banks
of shared memory give each lane a word of its own. The block copies the elements that there are, so
the table may have fewer at other sizes; that it has no more than fit is asked of its size.
Source: CUDA C++ Programming Guide, "Shared Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Call, Expr, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Statement, Variable, walk
from optiml_magic.source.directives import Directive, LaunchDirective, RequireDirective
from optiml_magic.source.expressions import Expression, parse_expression


@dataclass(frozen=True)
class Table:
    """An array that is only read, at places that data say, and how many elements it has at hand.

    ``loads`` are those whose places data say; ``looped`` whether one of them is in a loop.
    """

    array: str
    kind: str
    count: int
    bytes: int
    line: int
    looped: bool


def tables(kernel: Kernel) -> Iterator[Table | Refused]:
    """The small arrays in which the data say what is loaded, and why others are not taken."""
    effects, facts = Effects(kernel), kernel.facts
    asked: dict[str, list[Access]] = {}
    for access in kernel.reading.accesses:
        if access.space == "global" and access.mode == "load" and by_data(kernel, access):
            asked.setdefault(access.array, []).append(access)
    for array, loads in asked.items():
        known = facts.arrays.get(array) if facts is not None else None
        if known is None or known.nbytes > SHARED:
            continue
        size = loads[0].element.size or 0
        try:
            check_table(kernel, effects, array)
        except NotLegal as reason:
            yield Refused(reason.reason, reason.line)
            continue
        yield Table(
            array, loads[0].element.name, known.nbytes // size, known.nbytes, loads[0].line,
            any(load.loops for load in loads),
        )  # fmt: skip


@primitive
def tabled(kernel: Kernel, arrays: Sequence[tuple[str, int]]) -> Kernel:
    """The kernel whose blocks hold these arrays, each with room for so many elements."""
    effects = Effects(kernel)
    if kernel.block[0] is None or kernel.block[1:] != (1, 1):
        raise NotLegal("its blocks have more than one row")
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    for array, _ in arrays:
        check_table(kernel, effects, array)
    return _Tabling(kernel, arrays).kernel()


def by_data(kernel: Kernel, access: Access) -> bool:
    """Whether data say which element an access takes."""
    form, symbols = access.index, kernel.reading.symbols
    if form is None or not symbols.known(form):
        return True
    return any(symbols[name].kind == "load" for name in symbols.inside(form))


def check_table(kernel: Kernel, effects: Effects, array: str) -> None:
    """Raise NotLegal where an array is not plain, or not left alone by everybody."""
    reading = kernel.reading
    effects.straightforward()
    held, name = reading.arrays.get(array), _parameter(kernel, array)
    loads = [a for a in reading.accesses if a.array == array]
    line = loads[0].line if loads else 0
    if name is None or held is None or array in effects.moved:
        raise NotLegal(f"`{array}` does not stay what it is", line)
    plain = held.element.size in (1, 2, 4, 8) and held.element.lanes == 1
    if not plain or any(a.element != held.element for a in loads):
        raise NotLegal(f"`{array}` is not an array of numbers", line)
    if any(effects.same(array, other) for other in reading.written):
        raise NotLegal(f"`{array}` is written as well", line)
    for called in sorted(reading.calls):
        if called.startswith(("__ld", "__st", "__cvta", "__is")):
            raise NotLegal(f"`{called}` asks for an address in global memory")
    for part in _all(kernel):
        if isinstance(part, Call) and part.function == "sizeof" and name in names(part.parts):
            raise NotLegal(f"it asks how large `{array}` is", line)
    if passed(kernel, array) is None:
        raise NotLegal(f"what its launch passes as `{array}` has no name")


def _all(kernel: Kernel) -> Iterator[Expr]:
    return (e for s in walk(kernel.function.body) for top in s.expressions for e in every(top))


def _parameter(kernel: Kernel, array: str) -> Variable | None:
    return next((p for p in kernel.function.parameters if p.name == array), None)


def passed(kernel: Kernel, array: str) -> str | None:
    """What the launch calls what it passes as an array."""
    given = kernel.launch.args
    if given is None:
        return array
    names = zip((p.name for p in kernel.function.parameters), given, strict=False)
    return next((a.name for p, a in names if p == array), None)


class _Tabling:
    def __init__(self, kernel: Kernel, arrays: Sequence[tuple[str, int]]) -> None:
        self.old = kernel
        self.arrays = arrays
        self.taken = list[str]()

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        old, body = self.old, self.old.function.body
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        opening, counts, asked = list[str](), list[str](), list[Directive]()
        sizes, at = list[Expression](), self._fresh("place")
        for array, room in self.arrays:
            variable = _parameter(old, array)
            held = old.reading.arrays[array].element
            own, count = self._fresh(f"{array}_table"), self._fresh(f"{array}_count")
            size = f"size({passed(old, array)})"
            asked.append(RequireDirective(parse_expression(f"{size} <= {room}")))
            sizes.append(parse_expression(size))
            counts.append(count)
            opening.append(f"__shared__ __align__(16) {held.name} {own}[{room}];")
            opening.append(
                f"for (int {at} = threadIdx.x; {at} < {count}; {at} += blockDim.x) "
                f"{own}[{at}] = {array}[{at}];"
            )
            for part in _all(old):
                if isinstance(part, Name) and part.variable is variable:
                    swaps[part] = text(own)
        inside = edited(body, swaps).body
        brought = tuple(map(lines, [*opening, "__syncthreads();"]))
        made = old.rewritten(
            replace(body, body=(*brought, *inside)),
            launch=self._launch(sizes), directives=asked,
        )  # fmt: skip
        return self._told(made, counts)

    def _launch(self, sizes: Sequence[Expression]) -> LaunchDirective:
        """Its launch, which passes how many elements each table has as well."""
        launch = self.old.launch
        given = launch.args
        if given is None:
            given = tuple(parse_expression(p.name) for p in self.old.function.parameters)
        return replace(launch, args=(*given, *sizes))

    def _told(self, made: Kernel, counts: Sequence[str]) -> Kernel:
        """The kernel with the parameters that say how many elements there are."""
        return with_parameters(made, (f"int {name}" for name in counts))
