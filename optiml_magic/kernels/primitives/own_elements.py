"""Elements of shared arrays that belong to a thread each, in registers of the lane that takes it.

Only a thread stores its own element, and threads ask for those of near neighbours. A lane that
takes neighbours then has most of what they ask for; the elements at its ends stand in shared memory
as well, where the lanes beside it look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Step, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Evaluate, Statement, walk

_THREAD = Polynomial.symbol("threadIdx.x")
_NEAR = 4  # elements to either side; ours


@dataclass(frozen=True)
class _Own:
    """An array of which each thread owns an element; ``near`` is how far others' are asked for."""

    array: str
    name: str
    near: int


class Held:
    """The shared arrays of a kernel whose blocks are rows of threads, ``each`` of them a lane."""

    def __init__(self, kernel: Kernel, each: int, item: str = "item") -> None:
        """Raises NotLegal where an array is touched in another way, or where there is none."""
        self.kernel = kernel
        self.each = each
        self.item = item
        width, height, depth = kernel.block
        if width is None or width != each * 32 or (height, depth) != (1, 1):
            raise NotLegal("its blocks are no rows of whole warps")
        self.width = width
        reading = kernel.reading
        shared = [a for a in reading.arrays.values() if a.space == "shared"]
        self.own = {a.name: self._owned(a.name) for a in shared}
        if not any(one.near for one in self.own.values()):
            raise NotLegal("its threads ask for no element of a neighbour's")
        touched = [a for a in reading.accesses if a.space == "shared"]
        self._loads = {a.node: a for a in touched if isinstance(a.node, Index)}
        self._stores = {a.node: a for a in touched if a.mode == "store"}

    def _owned(self, array: str) -> _Own:
        near = 0
        found = self.kernel.reading.arrays[array]
        if len(found.extents) != 1 or found.dynamic:
            raise NotLegal(f"`{array}` is no plain row of elements")
        for access in self.kernel.reading.of(array):
            node = access.node
            place = node.target if isinstance(node, Assign | Step) else node
            plain = access.call is None and not access.verbatim and isinstance(place, Index)
            if not plain or access.mode == "atomic" or access.element != found.element:
                raise NotLegal(f"what is done with `{array}` is not followed", access.line)
            apart = self._apart(access)
            if apart is not None:
                if access.mode == "store" and apart:
                    raise NotLegal("a thread stores a neighbour's element", access.line)
                if abs(apart) > _NEAR:
                    raise NotLegal("a thread asks for a far element", access.line)
                near = max(near, abs(apart))
            else:
                self._check_fixed(access)
        if near > self.each:
            raise NotLegal("a lane has too few elements")
        return _Own(array, self.kernel.fresh(f"{array}_own"), near)

    def _apart(self, access: Access) -> int | None:
        """How far an element is from the thread's own; None where it is not one of near ones."""
        return None if access.index is None else (access.index - _THREAD).value

    def _check_fixed(self, access: Access) -> None:
        """An element that has the same number for all: none of a thread's own, or one at an end."""
        at = access.index.value if access.index is not None else None
        if at is not None and at >= self.width:
            return
        ends = at is not None and at % self.each in (0, self.each - 1)
        if access.mode != "load" or not ends:
            raise NotLegal("which element it is, is not known", access.line)

    def declared(self, statement: Declare) -> Iterator[str]:
        """The registers beside the declaration of a shared array."""
        for variable in statement.variables:
            if variable.name in self.own and variable.storage == "shared":
                kind = self.kernel.reading.arrays[variable.name].element.name
                yield f"{kind} {self.own[variable.name].name}[{self.each}];"

    def loads(self, given: Iterable[Expr], swaps: dict[Node, Node]) -> dict[Node, Node]:
        """Loads of near elements: of the lane's own where it has them."""
        found: dict[Node, Node] = {}
        for part in (part for expr in given for part in every(expr)):
            access = self._loads.get(part) if isinstance(part, Index) else None
            apart = self._apart(access) if access is not None else None
            if access is None or apart is None:
                continue
            own = self.own[access.array].name
            if apart == 0:
                found[part] = text(f"{own}[{self.item}]")
                continue
            at = f"{self.item} {'+' if apart > 0 else '-'} {abs(apart)}"
            test = f"{at} < {self.each}" if apart > 0 else f"{at} >= 0"
            beside = self.kernel.show(Evaluate(None, 0, part), swaps).strip().removesuffix(";")
            found[part] = text(f"({test} ? {own}[{at}] : {beside})")
        return found

    def stores(self, statement: Statement, swaps: dict[Node, Node]) -> dict[Node, Node]:
        """Stores of a thread's own element: to shared memory as well, near the lane's ends."""
        found: dict[Node, Node] = {}
        for inner in walk(statement):
            for expr in inner.expressions:
                for part in every(expr):
                    if not isinstance(part, Assign | Step):
                        continue
                    access = self._stores.get(part)
                    if access is None or self._apart(access) is None:
                        continue
                    if not isinstance(inner, Evaluate) or part is not expr:
                        raise NotLegal("a store is part of something else", inner.line)
                    found[inner] = lines(self._stored(part, access, swaps))
        return found

    def _stored(self, expr: Assign | Step, access: Access, swaps: dict[Node, Node]) -> str:
        own = self.own[access.array]
        other = {node: new for node, new in swaps.items() if node is not expr.target}
        beside = self.kernel.show(Evaluate(None, 0, expr.target), other).strip()
        mine = f"{own.name}[{self.item}]"
        words = self.kernel.show(Evaluate(None, 0, expr), other | {expr.target: text(mine)}).strip()
        near = max(own.near, 1)
        low, high = f"{self.item} < {near}", f"{self.item} >= {self.each - near}"
        return f"{{\n{words}\nif ({low} || {high}) {beside.removesuffix(';')} = {mine};\n}}"
