"""Dynamic shared memory that pointers part, ``float* red = row + n``, as an array for each.

What has a number of elements is declared with it, also where it is the whole; one that has a size
of them stays dynamic, of just that many bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Expr,
    Index,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of
from optiml_magic.kernels.primitives.pinned import Scalars
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)
_STATIC = 48 << 10  # bytes of shared memory that a kernel may declare


@dataclass(frozen=True, eq=False)
class _Part:
    """A pointer to ``size`` bytes an element, so many bytes behind the beginning of all."""

    variable: Variable
    size: int
    base: Polynomial


@primitive
def carved(kernel: Kernel, *, rows: bool = False) -> Kernel:
    """The kernel with an array for each part of its dynamic shared memory.

    Where ``rows`` may be left, all that are as long as sizes say are declared so, which whoever
    asks takes away.
    """
    return _Carving(kernel).kernel_(rows=rows)


class _Carving:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        self.scalars = Scalars(self.effects.moved)
        others = [f.body for f in kernel.unit.functions if not f.kernel]
        if any(v.storage == "dynamic" for body in others for s in walk(body)
               if isinstance(s, Declare) for v in s.variables):  # fmt: skip
            raise NotLegal("a function has the same shared memory")
        top = [s for s in kernel.function.body.body if isinstance(s, Declare)]
        found = [(s, v) for s in top for v in s.variables if v.storage == "dynamic"]
        if len(found) != 1 or kernel.launch.shared is None:
            raise NotLegal("it has no dynamic shared memory to part")
        self.home, self.whole = found[0]
        self.parts: dict[Variable, _Part] = {}
        self.swaps: dict[Node, tuple[Statement, ...]] = {}
        for statement in top:
            self._declared(statement)

    def kernel_(self, *, rows: bool) -> Kernel:
        self._check()
        apart = self.parts.keys() - {self.whole}
        if not apart and (not self.parts or rows or self._bytes().value is None):
            raise NotLegal("no pointers part its shared memory", self.home.line)
        parts = sorted(self.parts.values(), key=self._order)
        if self.whole not in self.parts and parts[0].base != Polynomial():
            raise NotLegal("what lies before its parts is not followed", self.home.line)
        made, shared, static = list[Statement](), None, 0
        size = self._bytes()
        for part, behind in pairwise([*parts, None]):
            assert part is not None
            end = behind.base if behind is not None else size
            extent = (end - part.base).divided(part.size)
            if extent is None:
                raise NotLegal("a part has no whole elements", part.variable.line)
            words = f"{part.variable.type.base} {part.variable.name}"
            if rows:
                made.append(lines(f"__shared__ {words}[{extent}];"))
                continue
            if extent.value is not None:
                static += extent.value * part.size
                if extent.value < 1 or static > _STATIC:
                    raise NotLegal("a part is none that may be declared", part.variable.line)
                made.append(lines(f"__shared__ {words}[{extent.value}];"))
                continue
            if shared is not None:
                raise NotLegal("several parts are as long as sizes say", part.variable.line)
            shared = parse_expression(f"({extent}) * {part.size}")
            made.append(lines(f"extern __shared__ {words}[];"))
        self.swaps[self.home] = (*self.swaps.get(self.home, ()), *made)
        body = edited(self.kernel.function.body, self.swaps)
        return self.kernel.rewritten(body, launch=replace(self.kernel.launch, shared=shared))

    def _order(self, part: _Part) -> int:
        """How many parts certainly do not lie behind one."""
        ranges = Ranges((), self.kernel.reading.symbols, sizes=True)
        behind = [p for p in self.parts.values() if ranges.nonnegative(part.base - p.base)]
        before = [p for p in self.parts.values() if ranges.nonnegative(p.base - part.base)]
        if len(behind) + len(before) != len(self.parts) + 1:
            raise NotLegal("which part lies before which is not certain", part.variable.line)
        return len(behind)

    def _bytes(self) -> Polynomial:
        """The bytes of a launch, ``(n + 128) * sizeof(float)``."""
        assert self.kernel.launch.shared is not None
        words = str(self.kernel.launch.shared)
        for name in ("float", "int", "double", "unsigned", "char"):
            words = words.replace(f"sizeof({name})", str(named(name, {}).size))
        found = form_of(parse_expression(words).tree)
        if found is None:
            raise NotLegal("how much shared memory it has is not followed", self.home.line)
        return found

    # -- the pointers

    def _declared(self, statement: Declare) -> None:
        left, found = [], False
        for variable in statement.variables:
            at = self._base(variable.value) if variable.value is not None else None
            if at is None or variable.type.depth != 1 or variable.array:
                if variable is not self.whole:
                    left.append(variable)
                continue
            if variable not in self.effects.lasting or variable.type.volatile:
                raise NotLegal(f"`{variable.name}` leads elsewhere later", statement.line)
            self.parts[variable] = self._part(variable, at)
            found = True
        if found or statement is self.home:
            rest = replace(statement, variables=tuple(left), span=None) if left else None
            self.swaps[statement] = (rest,) if rest is not None else ()

    def _part(self, variable: Variable, at: Polynomial) -> _Part:
        kind = named(variable.type.base, self.kernel.unit.aliases)
        if not kind.size or kind.lanes != 1 or kind.size not in (4, 8):
            raise NotLegal(f"`{variable.name}` has no plain elements", variable.line)
        return _Part(variable, kind.size, at)

    def _base(self, expr: Expr | None) -> Polynomial | None:
        """The bytes before where an expression leads in that memory; None where it does not."""
        match expr:
            case Name(variable=Variable() as variable):
                if variable is self.whole:
                    return Polynomial()
                part = self.parts.get(variable)
                return part.base if part is not None else None
            case Cast(operand=operand):
                return self._base(operand)
            case Binary(op="+", left=left, right=right):
                return self._further(left, right)
            case Unary(op="&", operand=Index(base=left, index=right)):
                return self._further(left, right)
        return None

    def _further(self, base: Expr, more: Expr) -> Polynomial | None:
        at, far = self._base(base), self.scalars.form(more)
        kind = self.kernel.reading.types.get(base)
        size = kind.pointee.size if kind is not None and kind.depth else None
        if at is None:
            return None
        if isinstance(base, Name) and base.variable is self.whole:
            size = named(self.whole.type.base, self.kernel.unit.aliases).size
        if far is None or not size:
            raise NotLegal("where a part begins is not followed", self.home.line)
        return at + far * Polynomial.constant(size)

    # -- what makes it legal

    def _check(self) -> None:
        """Raise NotLegal where a part is asked for beyond its end."""
        kernel, body = self.kernel, self.kernel.function.body
        own = {e for s in self.swaps if isinstance(s, Declare) for top in s.expressions
               for e in every(top)}  # fmt: skip
        bases = {e.base for e in expressions(body) if isinstance(e, Index)}
        for expr in expressions(body):
            named_ = isinstance(expr, Name) and (
                expr.variable in self.parts or expr.variable is self.whole)  # fmt: skip
            if not named_ or expr in own:
                continue
            if expr not in bases:
                raise NotLegal("an address in its shared memory is kept", self.home.line)
            if isinstance(expr, Name) and expr.variable is self.whole:
                self.parts.setdefault(self.whole, self._part(self.whole, Polynomial()))
        names = [v.name for s in walk(body) if isinstance(s, Declare) for v in s.variables]
        names += [v.name for v in kernel.function.parameters]
        if any(names.count(part.name) > 1 for part in self.parts):
            raise NotLegal("a pointer's name means something else elsewhere", self.home.line)
        for access in kernel.reading.accesses:
            if access.array == self.whole.name:
                self._check_access(access)

    def _check_access(self, access: Access) -> None:
        node = access.node
        match node.target if isinstance(node, Assign | Step) else node:
            case Index(base=Name(variable=Variable() as variable)) if variable in self.parts:
                part = self.parts[variable]
            case _:
                raise NotLegal("where it asks its shared memory is not followed", access.line)
        if access.element.size != part.size or access.index is None or access.call is not None:
            raise NotLegal("where it asks its shared memory is not followed", access.line)
        at = access.index * Polynomial.constant(part.size) - part.base
        ranges = Ranges(access.guard, self.kernel.reading.symbols, sizes=True)
        for other in self.parts.values():
            if other is part or other.base == part.base:
                continue
            behind = ranges.nonnegative(other.base - part.base)
            apart = other.base - part.base - at - _ONE if behind else at
            if not ranges.nonnegative(apart):
                raise NotLegal(f"`{variable.name}` may reach into another part", access.line)
