"""What a kernel does: its accesses, loops, guards, reductions and barriers, read from its tree.

All forms are over the symbols of ``symbols``; lines are those of the text as written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from optiml_magic.kernels.expressions import Assign, Expr, Step
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.subscripts import Subscript, as_written, delinearised
from optiml_magic.kernels.symbols import VARYING, Condition, Symbols, every
from optiml_magic.kernels.tree import Function, Loop, Statement, Variable, Verbatim
from optiml_magic.kernels.types import CType

Space = Literal["global", "shared", "local"]
Mode = Literal["load", "store", "atomic"]


@dataclass(frozen=True, eq=False)
class Axis:
    """A serial loop. Its counter ``name`` counts the rounds from 0.

    ``variable`` begins at ``start`` and grows by ``step`` a round, or where it is ``scaled`` is
    multiplied or divided by it; a round runs where ``test`` holds, in a ``do`` loop the first one
    anyway. Where ``exact`` is false there are other ways out, and ``reason`` says which; one that
    is ``broken`` has none but a ``break`` in its rounds.
    """

    name: str
    node: Loop
    line: int
    variable: Variable | None
    start: Polynomial | None
    step: Polynomial | None
    stop: Polynomial | None
    test: Condition
    exact: bool
    reason: str
    guard: tuple[Condition, ...]
    scaled: bool = False
    broken: bool = False

    @property
    def bounded(self) -> bool:
        """Whether where it begins, how it steps and where it ends are known."""
        return self.start is not None and self.step is not None and self.stop is not None

    @property
    def trips(self) -> int | None:
        """How many rounds there are, where that is a number."""
        if self.start is None or self.step is None or self.stop is None or not self.exact:
            return None
        if self.scaled:
            return None
        apart, step = (self.stop - self.start).value, self.step.value
        if apart is None or not step:
            return None
        return max(-(-apart // step), int(self.first))

    @property
    def held(self) -> frozenset[Condition]:
        """What holds in every round, each part by itself."""
        return frozenset(part for c in (*self.guard, self.test) for part in c.conjuncts())

    @property
    def first(self) -> bool:
        """Whether the first round runs whatever ``test`` says."""
        return self.node.kind == "do"


@dataclass(frozen=True, eq=False)
class Access:
    """One load, store or atomic operation on an element of an array.

    ``offset`` counts bytes from the start of the array, ``index`` elements of ``element``; each is
    None where it is not followed. ``guard`` has all that holds where it runs, the tests of its
    loops included; ``loops`` are the counters of those, outermost first. ``call`` is the one in the
    kernel's own text by which a function makes it; None where it stands there itself.
    """

    array: str
    space: Space
    mode: Mode
    element: CType
    index: Polynomial | None
    guard: tuple[Condition, ...]
    loops: tuple[str, ...]
    line: int
    node: Expr
    value: Expr | None = None
    op: str = ""
    verbatim: bool = False
    offset: Polynomial | None = None
    digits: tuple[Polynomial, ...] = ()
    call: Expr | None = None

    @property
    def place(self) -> Expr:
        """The element as it is written: what is assigned to, where it is stored to."""
        return self.node.target if isinstance(self.node, Assign | Step) else self.node

    @property
    def own(self) -> Expr:
        """What makes it in the kernel's own text: itself, or a call."""
        return self.node if self.call is None else self.call


@dataclass(frozen=True, eq=False)
class Reduction:
    """A place that a loop combines values into, and nothing else in that loop reads or writes it.

    ``axes`` are the counters of the loops, innermost first; ``start`` what the place holds before
    them, where one assignment gives it. ``op`` is ``+ * & | ^ && ||``, ``min`` or ``max`` for
    functions, which drop a NaN, and ``<`` or ``>`` for a comparison that selects, which may keep
    one. ``carried`` are assigned along with a value that is selected, such as its place; ``tests``
    are how such a value must compare with the place: ``>``, or ``!<=`` where it may be a NaN.
    An extreme ``fits`` where each value, as it is compared, is one that the place may hold.
    What ``counts`` goes up or down by one somewhere, ``n++``, which is none of its values.
    """

    place: str
    op: str
    axes: tuple[str, ...]
    start: Expr | None
    values: tuple[Expr, ...]
    type: CType
    line: int
    carried: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    fits: bool = True
    counts: bool = False

    @property
    def exact(self) -> bool:
        """Whether any order gives the same result: whole numbers, and the least or greatest."""
        return self.op not in "+*" or self.type.integral


@dataclass(frozen=True, eq=False)
class Barrier:
    """A point where the threads of a block or a warp wait for each other."""

    scope: Literal["block", "warp", "other"]
    guard: tuple[Condition, ...]
    loops: tuple[str, ...]
    line: int


@dataclass(frozen=True, eq=False)
class Guard:
    """The condition of a branch; ``exits`` where its threads leave the kernel or the round.

    ``test`` is what the branch has as its condition, which may be the opposite.
    """

    condition: Condition
    exits: bool
    line: int
    loops: tuple[str, ...]
    test: Expr


@dataclass(frozen=True, eq=False)
class Rest:
    """``left % right`` of two whole numbers, and what holds where it is computed."""

    left: Polynomial
    right: Polynomial
    guard: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Array:
    """Something that is indexed: a parameter's, a variable's, a shared or a local one."""

    name: str
    space: Space
    element: CType
    extents: tuple[Polynomial | None, ...] = ()
    const: bool = False
    restrict: bool = False
    dynamic: bool = False


@dataclass(frozen=True, eq=False)
class Reading:
    """All that was read of one kernel, as one launch instantiates it."""

    function: Function
    symbols: Symbols
    arrays: Mapping[str, Array]
    accesses: tuple[Access, ...]
    axes: tuple[Axis, ...]
    guards: tuple[Guard, ...]
    reductions: tuple[Reduction, ...]
    barriers: tuple[Barrier, ...]
    verbatim: tuple[Verbatim, ...]
    types: Mapping[Expr, CType] = field(repr=False)
    unclear: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    #: Rests by where they stand, each time that they are computed, where both sides are followed.
    rests: Mapping[Expr, tuple[Rest, ...]] = field(default_factory=dict, repr=False)

    def uniform(self, form: Polynomial | Condition) -> bool:
        """Whether all threads of a block certainly get the same value."""
        depends = form.depends if isinstance(form, Condition) else self.symbols.depends(form)
        return not depends & VARYING

    def subscript(self, access: Access) -> Subscript | None:
        """The index of an access as one digit a dimension; None where it is not followed.

        It counts elements of the array where several are taken at once.
        """
        index = access.index
        array = self.arrays.get(access.array)
        if index is None and access.offset is not None and array is not None:
            # Several elements at once, from an element that need not begin such a group.
            index = access.offset.divided(array.element.size) if array.element.size else None
        if index is None or not self.symbols.known(index):
            return None
        found = self._subscripts.get(access)
        if found is None:
            inner = (
                tuple(e for e in array.extents[1:] if e is not None) if array is not None else ()
            )
            if access.digits and len(access.digits) == len(inner) + 1:
                found = as_written(access.digits, inner, access.guard, self.symbols)
            else:
                found = delinearised(index, access.guard, self.symbols)
            self._subscripts[access] = found
        return found

    @cached_property
    def _subscripts(self) -> dict[Access, Subscript]:
        return {}

    @cached_property
    def written(self) -> frozenset[str]:
        """The arrays that some store or atomic operation may change."""
        return frozenset(a.array for a in self.accesses if a.mode != "load") | self.unclear

    def loops(self, access: Access) -> tuple[Axis, ...]:
        """The loops around an access, outermost first."""
        return tuple(self.axis(name) for name in access.loops)

    def axis(self, name: str) -> Axis:
        """The loop of a counter: ``k0`` is the first."""
        return self.axes[int(name[1:])]

    def of(self, array: str) -> Iterator[Access]:
        return (access for access in self.accesses if access.array == array)

    def guard(self, access: Access) -> Condition:
        """All that holds where an access runs, as one condition."""
        return every(access.guard)

    def innermost(self, statement: Statement) -> tuple[Axis, ...]:
        """The loops whose node this statement is: more than one where a helper is called twice."""
        return tuple(axis for axis in self.axes if axis.node is statement)
