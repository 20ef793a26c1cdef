"""What a walk through a kernel notes down: accesses, barriers, guards, loops, uses of places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from optiml_magic.kernels.combining import Combination, combination
from optiml_magic.kernels.expressions import Assign, Binary, Cast, Choice, Expr, Step
from optiml_magic.kernels.reading import Access, Array, Axis, Barrier, Guard, Mode, Rest
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Variable, Verbatim
from optiml_magic.kernels.types import CType
from optiml_magic.kernels.values import Local, Memory, Place

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a place. An ``update`` combines a value into it; a ``carried`` goes with one.

    ``value`` is what is written, or the expression that reads; ``path`` what holds where it is.
    """

    key: Key
    kind: Literal["read", "write", "update", "carried"]
    loops: tuple[str, ...]
    line: int
    type: CType
    combination: Combination | None = None
    value: Expr | None = None
    path: tuple[Condition, ...] = ()


_Own = tuple[Expr, Key | None, Combination | None, CType, tuple[Condition, ...]]


@dataclass
class Recorder:
    """Notes in the order of execution; ``line_of`` gives the line of an expression."""

    line_of: Callable[[Expr | None], int]
    arrays: dict[str, Array]
    changing: frozenset[str] = frozenset()
    accesses: list[Access] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    verbatim: list[Verbatim] = field(default_factory=list)
    rests: dict[Expr, list[Rest | None]] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    trusted: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    escaped: set[Variable] = field(default_factory=set)
    loops: tuple[str, ...] = ()
    calling: Expr | None = None
    stores: int = 0
    stepping: set[tuple[str, Variable]] = field(default_factory=set)
    inside_verbatim: int = 0
    unasked: set[Expr] = field(default_factory=set)  # assignments that are statements
    given: dict[Variable | str, frozenset[str]] = field(default_factory=dict)
    asked: dict[Variable | str, frozenset[str]] = field(default_factory=dict)
    _own: list[_Own] = field(default_factory=list)
    _selected: dict[Key, Combination] = field(default_factory=dict)
    _carried: set[Key] = field(default_factory=set)

    def access(
        self, place: Memory, mode: Mode, path: tuple[Condition, ...], node: Expr,
        value: Expr | None = None, op: str = "",
    ) -> Access | None:  # fmt: skip
        """Note an access; the one that is noted where its array is followed."""
        pointer = place.address.pointer
        if pointer is None:
            self.touch(place.address.holds, mode, place.type, path, node)
            return None
        size = place.type.stride if not place.type.depth else 8
        index = None
        if pointer.offset is not None:
            if size:
                index = pointer.offset.divided(size)
            else:
                unit = f"sizeof({place.type.name})"
                index = pointer.offset.coefficient(unit) if not pointer.offset.without(
                    [unit]).terms else None  # fmt: skip
        noted = replace(
            self._plain(pointer.array, mode, place.type, path, node),
            index=index, value=value, op=op, offset=pointer.offset, digits=place.address.digits,
        )  # fmt: skip
        self.accesses.append(noted)
        if mode == "load":
            self.read(_memory_key(place), node)
        return noted

    def touch(
        self, arrays: frozenset[str], mode: Mode, kind: CType, path: tuple[Condition, ...],
        node: Expr,
    ) -> None:  # fmt: skip
        """Note an access that may be to any of these, or to one of no name where it is nowhere."""
        for array in sorted(arrays) or ("",):
            self.accesses.append(self._plain(array, mode, kind, path, node))

    def _plain(
        self, array: str, mode: Mode, kind: CType, path: tuple[Condition, ...], node: Expr
    ) -> Access:
        known = self.arrays.get(array)
        self.stores += mode != "load"
        return Access(
            array=array, space=known.space if known is not None else "global", mode=mode,
            element=kind, index=None, guard=path, loops=self.loops, line=self.line_of(node),
            node=node, verbatim=bool(self.inside_verbatim), call=self.calling,
        )  # fmt: skip

    @property
    def memory(self) -> tuple[int, int]:
        """A count of what may have changed what is in memory so far."""
        return self.stores, len(self.barriers)

    def give(self, keeper: Variable | str, arrays: frozenset[str]) -> None:
        """A local or an array takes a value that leads to these arrays."""
        if arrays:
            self.given[keeper] = self.given.get(keeper, frozenset()) | arrays

    def ever(self, keeper: Variable | str) -> frozenset[str]:
        """The arrays that what a local or an array holds may lead to, at any time."""
        found = self.given.get(keeper, frozenset())
        self.asked.setdefault(keeper, found)
        return found

    @property
    def outgrown(self) -> bool:
        """Whether something was given after it was asked for, as loops do."""
        return any(
            self.given.get(keeper, frozenset()) - told for keeper, told in self.asked.items()
        )

    def read(self, key: Key, node: Expr | None) -> None:
        if any(own == key for _, own, found, _, _ in self._own if found is not None):
            return
        if key in self._selected:
            return
        self.uses.append(Use(key, "read", self.loops, self.line_of(node), _NONE, None, node))

    def write(
        self, key: Key, node: Expr | None, value: Expr | None = None,
        path: tuple[Condition, ...] = (),
    ) -> None:  # fmt: skip
        line = self.line_of(node)
        self.uses.append(Use(key, "write", self.loops, line, _NONE, None, value, path))

    def update(self, place: Place, node: Assign | Step, evaluator: Any) -> None:
        """An assignment begins; reads of its own place until ``done`` are part of it."""
        found = combination(node, evaluator.meanings())
        kind, path = evaluator.kind(place), evaluator.state.path
        self._own.append((node, key_of(place), found, kind, path))

    def done(self, node: Assign | Step) -> None:
        _, key, found, kind, path = self._own.pop()
        if key is None:
            return
        self._updated(key, node, found, kind, path)
        if node not in self.unasked:
            self.uses.append(Use(key, "read", self.loops, self.line_of(node), _NONE, None, node))

    def _updated(
        self, key: Key, node: Assign | Step, found: Combination | None, kind: CType,
        path: tuple[Condition, ...],
    ) -> None:  # fmt: skip
        line = self.line_of(node)
        selected = self._selected.get(key)
        if selected is not None and isinstance(node, Assign) and node.value in selected.values:
            self.uses.append(Use(key, "update", self.loops, line, kind, selected, path=path))
        elif key in self._carried:
            self.uses.append(Use(key, "carried", self.loops, line, kind))
        elif found is not None:
            self.uses.append(Use(key, "update", self.loops, line, kind, found, path=path))
        else:
            value = node.value if isinstance(node, Assign) and node.op == "=" else None
            self.uses.append(Use(key, "write", self.loops, line, kind, None, value, path))

    @contextmanager
    def selecting(
        self, found: Combination | None, keys: Mapping[Expr, Key | None]
    ) -> Iterator[None]:
        """A branch that takes a value because of how it compares with the place it goes to."""
        if found is None or keys.get(found.target) is None:
            yield
            return
        key = keys[found.target]
        assert key is not None
        before = dict(self._selected), set(self._carried)
        self._selected[key] = found
        self._carried |= {k for e in found.carried if (k := keys.get(e)) is not None}
        yield
        self._selected, self._carried = before


def unasked(expr: Expr) -> Iterator[Expr]:
    """The assignments in a statement's expression whose values nobody asks for."""
    match expr:
        case Assign() | Step():
            yield expr
        case Binary(op=",", left=left, right=right) | Choice(then=left, other=right):
            yield from unasked(left)
            yield from unasked(right)
        case Binary(op="&&" | "||", right=right):
            yield from unasked(right)
        case Cast(operand=operand, type="void"):
            yield from unasked(operand)


def key_of(place: Place) -> Key | None:
    """What tells places apart: a local with the way to a member, or an array with its offset."""
    if isinstance(place, Local):
        return (place.variable, *place.path)
    return _memory_key(place) if isinstance(place, Memory) else None


def _memory_key(place: Memory) -> Key:
    pointer = place.address.pointer
    if pointer is None or pointer.offset is None:
        return ("memory", "", id(place))
    return ("memory", pointer.array, pointer.offset)


_NONE = CType("", "unknown")
