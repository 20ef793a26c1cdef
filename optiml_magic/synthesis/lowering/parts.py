"""Long reductions, searches and running totals of which there are few: in parts, by more threads.

What is made here are nodes as any other, but for three kinds that lie in memory: one element of
theirs is what one thread finds in a run of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.graph import (
    Best,
    Contract,
    Index,
    Map,
    Node,
    Place,
    Reduce,
    Scan,
    indexed,
)
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At, Body
from optiml_magic.synthesis.lowering.nodes import whole
from optiml_magic.synthesis.lowering.operations import combined, neutral
from optiml_magic.synthesis.sizes import Extents, axis, constant, quotient


@dataclass(frozen=True, eq=False)
class Parts(Node):
    """A reduction over axes in runs of ``length`` elements, which the last axis counts."""

    operation: str
    source: Node
    axes: tuple[int, ...]
    length: int


@dataclass(frozen=True, eq=False)
class BestParts(Node):
    """Where along an axis the best of each run lies; the last axis counts the runs."""

    operation: str
    source: Node
    axis: int
    length: int


@dataclass(frozen=True, eq=False)
class Runs(Node):
    """A running total; ``before`` has that at the end of each run of ``length`` elements."""

    operation: str
    source: Node
    before: Node
    axis: int
    length: int


def _runs(source: Node, axes: tuple[int, ...], length: int) -> Extents:
    kept = tuple(extent for k, extent in enumerate(source.shape) if k not in axes)
    total = indices.product(tuple(source.shape[k] for k in axes))
    return (*kept, quotient(total + constant(length - 1), constant(length)))


def reduced(node: Reduce, length: int) -> Node:
    """The reduction of what its runs come to."""
    shape = _runs(node.source, node.axes, length)
    parts = Parts(shape, node.dtype, node.operation, node.source, node.axes, length, line=node.line)
    return replace(node, source=parts, axes=(len(shape) - 1,))


def multiplied(node: Contract) -> Reduce:
    """Einstein's sum as the sum of products that it is."""
    extents: dict[int, Polynomial] = {}
    for operand, letters in zip(node.operands, node.letters, strict=True):
        extents |= dict(zip(letters, operand.shape, strict=True))
    order = [*node.kept, *(letter for letter in extents if letter not in node.kept)]
    shape = tuple(extents[letter] for letter in order)
    product: Node | None = None
    for operand, letters in zip(node.operands, node.letters, strict=True):
        at = tuple(axis(order.index(letter)) for letter in letters)
        factor = indexed(operand, at, shape)
        both = (factor,) if product is None else (product, factor)
        product = factor if product is None else Map(shape, node.dtype, "multiply", both)
    assert product is not None
    axes = tuple(range(len(node.kept), len(order)))
    return Reduce(node.shape, node.dtype, "add", product, axes, line=node.line)


def found(node: Best, length: int) -> Node:
    """The best of the best of all runs."""
    shape = _runs(node.source, (node.axis,), length)
    places = BestParts(
        shape, node.dtype, node.operation, node.source, node.axis, length, line=node.line
    )
    kept = tuple(axis(k) for k in range(len(shape) - 1))
    at: tuple[Place, ...] = (*kept[: node.axis], places, *kept[node.axis :])
    values = Index(shape, node.source.dtype, node.source, at, line=node.line)
    best = replace(node, source=values, axis=len(shape) - 1)
    return indexed(places, (*kept, best), node.shape)


def scanned(node: Scan, length: int, totalled: Callable[[Scan], Node]) -> Node:
    """The running total of each run, which begins where the one before ended.

    ``totalled`` makes the running total of what the runs come to, which may be long as well.
    """
    shape = _runs(node.source, (node.axis,), length)
    parts = Parts(
        shape, node.dtype, node.operation, node.source, (node.axis,), length, line=node.line
    )
    before = totalled(replace(node, shape=shape, source=parts, axis=len(shape) - 1))
    return Runs(
        node.shape, node.dtype, node.operation, node.source, before, node.axis, length,
        line=node.line,
    )  # fmt: skip


def _run(body: Body, at: Polynomial, length: int, total: Polynomial) -> tuple[str, Expr, Expr]:
    """Opens a loop over a run: its counter, where it begins and where it ends."""
    first, end = at * constant(length), at * constant(length) + constant(length)
    stop = body.local("stop", "int", c.call("min", body.index(end), body.index(total)))
    return body.counter(total, float(length)), body.index(first), stop


def write_parts(node: Parts, body: Body, at: At, array: str) -> None:
    kind = c.computed(node.dtype)
    extents = tuple(node.source.shape[k] for k in node.axes)
    part = body.local("part", kind, neutral(node.operation, kind))
    counter, first, stop = _run(body, at[-1], node.length, indices.product(extents))
    flat = Polynomial.symbol(counter)
    place = whole(at[:-1], list(indices.digits(flat, extents)), node.axes)
    combined(body, node.operation, part, body.value(node.source, place), kind)
    body.close(counter, first, stop)
    body.put(array, node, at, c.Value(part, kind))


def write_best(node: BestParts, body: Body, at: At, array: str) -> None:
    kind = c.computed(node.source.dtype)
    highest = node.operation == "argmax"
    best = body.local("best", kind, neutral("maximum" if highest else "minimum", kind))
    place = body.local("place", "int", body.index(at[-1] * constant(node.length)))
    counter, first, stop = _run(body, at[-1], node.length, node.source.shape[node.axis])
    there = whole(at[:-1], [Polynomial.symbol(counter)], (node.axis,))
    value = body.value(node.source, there)
    held = body.local("x", kind, c.converted(value, kind))
    better = c.binary(">" if highest else "<", held, best)
    body.emit(c.branch(better, [c.assign(best, held), c.assign(place, c.name(counter))]))
    body.close(counter, first, stop)
    body.put(array, node, at, c.Value(place, "int"))


def write_runs(node: Runs, body: Body, at: At, array: str) -> None:
    kind = c.computed(node.dtype)
    total = body.local("total", kind, neutral(node.operation, kind))
    last = (*at[:-1], at[-1] - constant(1))

    def begin() -> None:
        body.emit(c.assign(total, c.converted(body.value(node.before, last), kind)))

    body.guarded(c.binary(">", body.index(at[-1]), c.integer(0)), begin)
    counter, first, stop = _run(body, at[-1], node.length, node.shape[node.axis])
    place = whole(at[:-1], [Polynomial.symbol(counter)], (node.axis,))
    combined(body, node.operation, total, body.value(node.source, place), kind)
    body.put(array, node, place, c.Value(total, kind))
    body.close(counter, first, stop)
