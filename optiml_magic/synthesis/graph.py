"""What a reference computes, as an expression graph.

Twelve kinds of node. Every argument of a ``Map`` has the shape of its result and the dtype that the
operation computes in: broadcasting is an ``Index``, a conversion is a ``Map`` named ``cast``. Index
and Position with polynomials alone compose by substitution, so that there is never an ``Index`` of
such an ``Index``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.sizes import Assumption, Extents, axis, substituted, within

DType = np.dtype[Any]


@dataclass(frozen=True, eq=False)
class Node:
    """An array; equal to itself alone. ``shape`` holds expressions of sizes.

    ``line`` is that of the reference's own file which asked for it, 0 where that is not known.
    """

    shape: Extents
    dtype: DType
    line: int = field(default=0, kw_only=True)


Place = Polynomial | Node  # of the result's indices, or values of the result's shape


@dataclass(frozen=True, eq=False)
class Input(Node):
    """What the reference is given under a name."""

    name: str


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Numbers that the reference brings along."""

    value: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Position(Node):
    """An expression of the indices and of sizes, int64; without indices, a size as a number."""

    expression: Polynomial


@dataclass(frozen=True, eq=False)
class Map(Node):
    """``operation`` at each index: a NumPy ufunc's name, ``where``, ``cast``, or ``narrowed``.

    The last is a conversion to a float of fewer bits that the reference asks for by itself.

    The arguments of a ufunc have the dtypes of one of its loops.
    """

    operation: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Index(Node):
    """``result[i] = source[at_0(i), at_1(i), ...]``, a place for each axis of the source.

    A place that is a node is whole numbers of the result's shape. All lie within the source.
    """

    source: Node
    at: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    """A ufunc of two arguments over some axes, which the result lacks; in the result's dtype."""

    operation: str
    source: Node
    axes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Best(Node):
    """``argmin`` or ``argmax`` along an axis, which the result lacks: the first of equal ones."""

    operation: str
    source: Node
    axis: int


@dataclass(frozen=True, eq=False)
class Contract(Node):
    """Einstein's sum: each operand names its axes by letters, numbered; those not kept are summed.

    The operands have the result's dtype, and axes of one letter one extent.
    """

    operands: tuple[Node, ...]
    letters: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scan(Node):
    """A ufunc of two arguments of all elements so far along an axis, this one included."""

    operation: str
    source: Node
    axis: int


@dataclass(frozen=True, eq=False)
class Sort(Node):
    """The elements in ascending order along an axis, equal ones as they were.

    With ``places`` where each came from, int64, instead of what it is.
    """

    source: Node
    axis: int
    places: bool


@dataclass(frozen=True, eq=False)
class Scatter(Node):
    """``base``, and then for each index i of values ``result[at_0(i), ...] op= values[i]``.

    The operation is ``set``, where no two places are the same, or a ufunc's name, where any number
    may be. A place that is a node has the shape of the values.
    """

    base: Node
    at: tuple[Place, ...]
    values: Node
    operation: str


@dataclass(frozen=True)
class Graph:
    """A traced reference.

    Attributes:
        inputs: in the order of the reference's arguments, those that are no sizes.
        outputs: by the names it returns them under; ``0 1 ...`` for a tuple, ``""`` for one alone.
        sizes: what it was traced at.
        assumptions: without which another graph would have come out, in the order they were met.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, Node], ...]
    sizes: Mapping[str, int]
    assumptions: tuple[Assumption, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All that the outputs need, each after what it needs itself."""
        return tuple(ordered(node for _, node in self.outputs))

    def unmet(self, sizes: Mapping[str, int]) -> tuple[Assumption, ...]:
        """What does not hold at other sizes: there the reference has to be traced again."""
        return tuple(a for a in self.assumptions if not a.holds(sizes))


def parts(node: Node) -> tuple[Node, ...]:
    """The nodes that a node computes with."""
    found: list[Node] = []
    for one in fields(node):
        held = getattr(node, one.name)
        several = held if isinstance(held, tuple) else (held,)
        found += [part for part in several if isinstance(part, Node)]
    return tuple(found)


def ordered(roots: Iterator[Node]) -> Iterator[Node]:
    """Every node once, parts first."""
    seen: set[Node] = set()
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(part, False) for part in reversed(parts(node)) if part not in seen]


def indexed(source: Node, at: tuple[Place, ...], shape: Extents) -> Node:
    """An ``Index``, or less where the maps compose."""
    assert len(at) == len(source.shape)
    at = tuple(p if isinstance(p, Node) else within(p, shape) for p in at)
    if shape == source.shape and at == identity(len(shape)):
        return source
    affine = tuple(p for p in at if isinstance(p, Polynomial))
    if len(affine) == len(at):
        given = {f"${k}": p for k, p in enumerate(affine)}
        if isinstance(source, Position):
            moved = within(substituted(source.expression, given), shape)
            return Position(shape, source.dtype, moved)
        if isinstance(source, Index):
            inner = tuple(
                substituted(p, given) if isinstance(p, Polynomial) else indexed(p, affine, shape)
                for p in source.at
            )
            return indexed(source.source, inner, shape)
    return Index(shape, source.dtype, source, at)


def identity(rank: int) -> tuple[Polynomial, ...]:
    """Each axis as it is."""
    return tuple(axis(k) for k in range(rank))
