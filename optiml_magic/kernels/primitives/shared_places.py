"""Which element of shared memory an expression leads to, for each thread of a block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optiml_magic.kernels.expressions import Binary, Cast, Expr, Index, Name, Unary
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.shares import Known, Mask, Shared, Value
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType, named

if TYPE_CHECKING:
    from collections.abc import Mapping


class SharedPlaces(ABC):
    """What ``Lockstep`` knows of addresses. ``kinds`` are the types of elements, by their array."""

    count: int
    all: Mask
    env: dict[Variable, Value]
    kinds: dict[Variable, CType]
    types: Mapping[str, str]

    @abstractmethod
    def value(self, expr: Expr) -> Value:
        """What an expression is for the threads that are there."""

    @abstractmethod
    def of_name(self, expr: Name) -> Value:
        """What a name stands for."""

    def kind(self, variable: Variable) -> CType:
        """The type that a local is declared with, or the elements of an array."""
        found = named(variable.type.base, self.types)
        return replace(found, depth=found.depth + variable.type.depth)

    def place(self, expr: Expr) -> Shared | None:
        """Which element of a shared array an expression is, of each thread."""
        match expr:
            case Index(base=base, index=index):
                inner = self._address(base)
            case Unary(op="*", operand=operand):
                return self._address(operand)
            case Name(variable=Variable(storage="shared", extents=()) as variable):
                zero = np.zeros(self.count, np.int64)
                return Shared(expr, self.all, array=variable, kind=self.kind(variable), offset=zero)
            case _:
                return None
        if inner is None:
            return None
        at = self.value(index)
        if not isinstance(at, Known):
            raise NotLegal(f"which element of `{inner.array.name}` it takes is not followed")
        stride = self._stride(base, inner.array)
        return replace(inner, offset=inner.offset + at.numbers * stride)

    def _stride(self, base: Expr, array: Variable) -> int:
        """Elements from one to the next of what an index steps through."""
        depth = 0
        while isinstance(base, Index):
            base, depth = base.base, depth + 1
        if not isinstance(base, Name) or base.variable is not array or len(array.extents) < 2:
            return 1
        stride = 1
        for extent in array.extents[depth + 1 :]:
            found = self.value(extent) if extent is not None else None
            only = found.only(self.all) if isinstance(found, Known) else None
            if only is None:
                raise NotLegal(f"the extents of `{array.name}` are not numbers")
            stride *= only
        return stride

    def _address(self, expr: Expr) -> Shared | None:
        """Where in shared memory a pointer leads; None where it leads elsewhere."""
        match expr:
            case Name(variable=Variable() as variable):
                shared = variable.storage in ("shared", "dynamic") and variable.array
                found = self.of_name(expr) if shared else self.env.get(variable)
                return found if isinstance(found, Shared) else None
            case Index():
                return self.place(expr)
            case Unary(op="&", operand=operand):
                return self.place(operand)
            case Cast(operand=operand, type=type_):
                inner = self._address(operand)
                if inner is None:
                    return None
                return replace(inner, kind=named(type_, self.types).pointee)
            case Binary(op="+", left=left, right=right):
                inner = self._address(left)
                more = self.value(right) if inner is not None else None
                if inner is not None and not isinstance(more, Known):
                    raise NotLegal(f"where in `{inner.array.name}` it leads is not followed")
                if inner is not None and isinstance(more, Known):
                    return replace(inner, offset=inner.offset + more.numbers)
        return None

    def of_kind(self, place: Shared) -> CType:
        """The type of an array's elements, which is the same wherever it is touched."""
        kind = place.kind or self.kind(place.array)
        if self.kinds.setdefault(place.array, kind) != kind:
            raise NotLegal(f"`{place.array.name}` has elements of several types")
        return kind
