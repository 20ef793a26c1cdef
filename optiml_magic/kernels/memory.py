"""Places and what they hold: loads, stores, and what is no longer known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from optiml_magic.kernels import types
from optiml_magic.kernels.expressions import (
    Expr,
    Name,
)
from optiml_magic.kernels.merging import Walker
from optiml_magic.kernels.operations import bounds
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Access, Array
from optiml_magic.kernels.symbols import (
    MEMORY,
    UNKNOWN,
    Symbol,
)
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType
from optiml_magic.kernels.values import (
    Alias,
    Elsewhere,
    Local,
    Memory,
    Place,
    Pointer,
    Value,
)

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_LANES = "xyzw"
_ZERO, _ONE = Polynomial(), Polynomial.constant(1)


@dataclass
class MemoryWalker(Walker):
    """Loads from places and stores to them."""

    def kind(self, place: Place) -> CType:
        if isinstance(place, Local):
            kind = self.declared(place.variable)
            for field_name in place.path:
                kind = self.member_type(kind, field_name)
            return kind
        return place.type

    def holds(self, place: Place) -> frozenset[str]:
        """The arrays that a place may be in."""
        if isinstance(place, Memory):
            return place.address.holds
        return place.holds if isinstance(place, Elsewhere) else frozenset()

    def element(self, base: Value, index: Value) -> Place:
        """``base[index]``; also where the two are swapped, as C allows."""
        if not base.type.depth and index.type.depth:
            base, index = index, base
        kind = base.type.pointee
        by = self.distance(index)
        if base.target is not None and not by.terms:
            return base.target
        if base.shape:
            step = kind.size
            row: Polynomial | None = Polynomial.constant(step) if step else None
            for extent in base.shape:
                row = row * extent if row is not None and extent is not None else None
            moved = self._moved(base, by, row)
            return Memory(replace(moved, shape=base.shape, digits=(*base.digits, by)), kind)
        moved = self._moved(base, by, self.stride(base.type))
        return Memory(replace(moved, digits=(*base.digits, by) if base.digits else ()), kind)

    def distance(self, value: Value) -> Polynomial:
        """How far an index moves: addresses wrap as 64-bit numbers do, and it need not."""
        if value.form is not None and value.type.size == 8:
            return value.form
        return self.integer(value)

    def stride(self, kind: CType) -> Polynomial | None:
        """Bytes from one element to the next; a size that is not known is a symbol."""
        size = kind.stride
        if size is not None:
            return Polynomial.constant(size)
        if not kind.name or kind.kind == "void":
            return _ONE if kind.kind == "void" else None
        name = f"sizeof({kind.name})"
        return self.operations.symbols.of(Symbol(name, "scalar", frozenset(), low=1))

    def _moved(self, base: Value, by: Polynomial, stride: Polynomial | None) -> Value:
        pointer = base.pointer
        if pointer is not None:
            offset = None
            if pointer.offset is not None and stride is not None:
                offset = pointer.offset + by * stride
            pointer = Pointer(pointer.array, offset)
        depends = base.depends | self.operations.symbols.depends(by)
        return replace(base, pointer=pointer, depends=depends)

    def load(self, place: Place, node: Expr) -> Value:
        """What a place holds."""
        if isinstance(place, Local):
            return self._load_local(place, node)
        if isinstance(place, Elsewhere):
            self.recorder.touch(place.holds, "load", place.type, self.state.path, node)
            return self.opaque(place.type, frozenset({MEMORY}), place.holds)
        if place.address.shape:  # a row of an array of arrays is an address, not a load
            return replace(place.address, type=place.type.pointer, shape=place.address.shape[1:])
        access = self.recorder.access(place, "load", self.state.path, node)
        kind = place.type
        depends = place.address.depends | {MEMORY}
        if kind.depth:
            return Value(kind, depends | {UNKNOWN}, holds=self._kept(place.address.holds))
        if kind.integral:
            return self._loaded(
                access, access.offset if access is not None else None, kind, depends
            )
        known = kind.kind not in ("record", "unknown") or self.numbers(kind)
        holds = frozenset[str]() if known else self._kept(place.address.holds)
        fields = {}
        for name in self.members(kind):
            inner, at = self.member_type(kind, name), self.member_offset(kind, name)
            if (
                inner.integral
                and not self.member_extents(kind, name)
                and access is not None
                and access.offset is not None
                and at is not None
            ):
                offset = access.offset + Polynomial.constant(at)
                fields[name] = self._loaded(access, offset, inner, depends)
        return Value(kind, depends, holds=holds, fields=fields or None)

    def numbers(self, kind: CType) -> bool:
        """Whether a structure is one of numbers alone, none of which may be an address."""
        members = [self.member_type(kind, name) for name in self.members(kind)]
        return bool(members) and all(
            m.depth == 0 and (
                m.floating or (m.integral and (m.size or 8) < 8)
                or (m.kind in ("record", "vector") and self.numbers(m))
            ) for m in members
        )  # fmt: skip

    def _loaded(
        self, access: Access | None, offset: Polynomial | None, kind: CType,
        depends: frozenset[str],
    ) -> Value:  # fmt: skip
        """A whole number from memory; it is the same each time where nobody writes there."""
        index = offset.divided(kind.size) if offset is not None and kind.size else None
        steady = access is not None and access.space == "global" and (
            access.array not in self.recorder.changing
        )  # fmt: skip
        if index is None or access is None or not steady:
            return self.opaque(kind, depends, frozenset())
        low, high = bounds(kind)
        self.recorder.trusted.add(access.array)
        known = self.recorder.arrays.get(access.array)
        seen = kind.name if known is not None and known.element != kind else ""
        symbol = Symbol(
            f"{access.array}[{index}]:{kind.name}", "load", depends, kind.name,
            (index,), array=access.array, width=kind.size or 0, low=low, high=high, seen=seen,
        )  # fmt: skip
        return Value(kind, depends, self.operations.symbols.of(symbol))

    def _kept(self, arrays: frozenset[str]) -> frozenset[str]:
        """Where the pointers in these arrays may lead: there, or to what was put there."""
        return arrays.union(*(self.recorder.ever(array) for array in arrays))

    @staticmethod
    def leading(value: Value) -> frozenset[str]:
        """The arrays that a value leads to, where it may be kept as an address."""
        held = value.type.depth or value.type.integral or value.fields
        return value.holds if held else frozenset()

    def _keep(self, arrays: frozenset[str], value: Value) -> None:
        """An address is stored: the reading finds it again in arrays of the kernel's own alone."""
        led = self.leading(value)
        known = [self.recorder.arrays.get(array) for array in arrays]
        if led and (not known or any(a is None or a.space == "global" for a in known)):
            self.recorder.unclear |= led
        for array in arrays if led else ():
            self.recorder.give(array, led)

    def _load_local(self, place: Local, node: Expr) -> Value:
        self.recorder.read((place.variable, *place.path), node)
        found: Value | Alias | None = self.state.env.get(place.variable)
        kind = self.kind(place)
        if place.path and (rank := self._rank(place)):
            # Where such an array is kept is the compiler's business: it is memory of its own.
            name = ".".join([place.variable.name, *place.path])
            outer = self.kind(Local(place.variable, place.path[:-1]))
            extents = tuple(map(Polynomial.constant, self.member_extents(outer, place.path[-1])))
            self.recorder.arrays.setdefault(name, Array(name, "local", kind, extents))
            shape = extents[1:] if len(extents) == rank else ()
            depth, offset = (1, _ZERO) if shape or rank == 1 else (rank, None)
            return Value(replace(kind, depth=kind.depth + depth), frozenset(), shape=shape,
                         pointer=Pointer(name, offset), holds=frozenset({name}))  # fmt: skip
        for name in place.path:
            if not isinstance(found, Value):
                return self.opaque(kind, frozenset(), frozenset())
            inner = found.fields.get(name) if found.fields is not None else None
            if inner is None:
                form = None
                if kind.integral:
                    form = self.operations.unknown(found.depends, kind)
                depends = found.depends if form is None else found.depends | {UNKNOWN}
                return Value(kind, depends, form, holds=found.holds)
            found = inner
        return found if isinstance(found, Value) else self.opaque(kind, frozenset(), frozenset())

    def _rank(self, place: Local) -> int:
        """How many dimensions a member of a local has: 0 of one that is no array."""
        struct = self.unit.structs.of(self.kind(Local(place.variable, place.path[:-1])).name)
        field = struct.field(place.path[-1]) if struct is not None else None
        return field.rank if field is not None else 0

    def store(self, place: Place, value: Value, node: Expr, written: Expr | None = None) -> None:
        """Put a value into a place; ``written`` is the expression of the value."""
        if isinstance(place, Local):
            self.written[place.variable] += 1
            self.state.env[place.variable] = self._with(
                self.state.env.get(place.variable), place.path, value, self.kind(place)
            )
            self.recorder.give(place.variable, value.holds)
        elif isinstance(place, Elsewhere):
            self._keep(place.holds, value)
            self.recorder.touch(place.holds, "store", place.type, self.state.path, node)
            self.forget_escaped()
        else:
            self._keep(place.address.holds, value)
            self.recorder.access(place, "store", self.state.path, node, written)
            if place.address.pointer is None:
                self.forget_escaped()

    def _with(
        self, old: Value | Alias | None, path: tuple[str, ...], value: Value, kind: CType
    ) -> Value:
        """A value with the member at the end of ``path`` replaced."""
        if not path:
            return self.convert(value, kind)
        base = old if isinstance(old, Value) else Value()
        fields = dict(base.fields or {})
        inner = fields.get(path[0])
        fields[path[0]] = self._with(inner, path[1:], value, kind)
        return replace(base, fields=fields, holds=base.holds | value.holds,
                       depends=base.depends | value.depends)  # fmt: skip

    def builtin(self, name: str) -> Value:
        fixed = self.constants.get(name)
        if fixed is not None:
            return fixed
        width = self.constants.get(name.replace("threadIdx", "blockDim"))
        most = width.form.value if width is not None and width.form is not None else None
        form = self.operations.symbols.builtin(name, most)
        return Value(types.UINT, frozenset({name}), form)

    def address(self, place: Place) -> Value:
        if isinstance(place, Memory):
            return replace(place.address, type=place.type.pointer, shape=(), digits=())
        if isinstance(place, Local):
            # Whoever has the address may change the local behind the back of this reading.
            self.recorder.escaped.add(place.variable)
            kind = self.kind(place)
            found = self.state.env.get(place.variable)
            held = found.holds if isinstance(found, Value) else frozenset[str]()
            return Value(kind.pointer, frozenset({UNKNOWN}), holds=held, target=place)
        return Value(place.type.pointer, frozenset({UNKNOWN}), holds=place.holds)

    def gathered(self, kind: CType, values: list[Value]) -> Value:
        """A vector or a struct made of its members."""
        depends = frozenset[str]().union(*(v.depends for v in values))
        holds = frozenset[str]().union(*(v.holds for v in values))
        names = self.members(kind)
        fields = dict(zip(names, values, strict=False))
        return Value(kind, depends, holds=holds, fields=fields)

    def disturb(self, mentions: tuple[Expr, ...], node: Expr | None = None) -> None:
        """Anything may have been done with what is mentioned."""
        for mention in mentions:
            if not isinstance(mention, Name):
                continue
            if mention.variable is None:
                if mention.name in self.recorder.arrays:
                    self.recorder.unclear.add(mention.name)
                continue
            self.forget(mention.variable, node or mention)

    def forget_escaped(self) -> None:
        """Somebody may have written to the locals whose addresses were taken."""
        for variable in self.recorder.escaped & self.state.env.keys():
            self.forget(variable, None)

    def forget(self, variable: Variable, node: Expr | None) -> None:
        """A local may have changed in a way that is not followed, and what it leads to as well."""
        found = self.state.env.get(variable)
        if isinstance(found, Alias):
            self.recorder.unclear |= self.holds(found.place)
            if isinstance(found.place, Local):
                self.forget(found.place.variable, node)
            return
        self.written[variable] += 1
        kind = self.declared(variable)
        holds = found.holds if isinstance(found, Value) else frozenset[str]()
        holds |= self.recorder.ever(variable)
        self.recorder.unclear |= holds
        if isinstance(found, Value) and found.closure is not None:  # it may be called
            self.state.env[variable] = replace(found, closure=None)
            self.disturb(found.closure.made.mentions, node)
        self.recorder.write((variable,), node)
        if variable.array or (isinstance(found, Value) and found.shape):
            return
        self.state.env[variable] = self.opaque(kind, frozenset(), holds)
