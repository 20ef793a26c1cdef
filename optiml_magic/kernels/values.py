"""What an expression is worth at a point of a kernel, as far as it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import Lambda
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import UNKNOWN, CType

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pointer:
    """``offset`` is in bytes from the start of ``array``; None where it is not followed."""

    array: str
    offset: Polynomial | None


@dataclass(frozen=True, slots=True)
class Value:
    """``form`` is that of an integer, ``truth`` of a condition, ``pointer`` of an address.

    ``holds`` are the arrays that a pointer in it may lead into; ``depends`` what it comes from;
    ``shape`` the extents of what it points to, where that is a row of an array of arrays, and
    ``digits`` how it was indexed so far; ``target`` is the local whose address it is, ``closure``
    the lambda that it is.
    """

    type: CType = UNKNOWN
    depends: frozenset[str] = NOTHING
    form: Polynomial | None = None
    truth: Condition | None = None
    pointer: Pointer | None = None
    holds: frozenset[str] = NOTHING
    fields: Mapping[str, Value] | None = field(default=None, compare=False)
    shape: tuple[Polynomial | None, ...] = ()
    digits: tuple[Polynomial, ...] = ()
    target: Local | None = None
    closure: Closure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A lambda with the values that its captures had where it was made, if it copies them."""

    made: Lambda
    captured: Mapping[Variable, Value | Alias]


@dataclass(frozen=True, slots=True)
class Local:
    """The place of a local, or of a member of one."""

    variable: Variable
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """The place of an element in memory: where its address leads, and its type."""

    address: Value
    type: CType


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A place that is not followed; it may be in any of ``holds``."""

    type: CType
    holds: frozenset[str]


Place = Local | Memory | Elsewhere


@dataclass(frozen=True, slots=True)
class Alias:
    """What a reference is bound to."""

    place: Place
