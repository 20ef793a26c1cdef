"""Long rows sorted: short runs by counting, and then pairs of runs merged until one is left.

What lies in memory are the places of elements, so equal ones keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.graph import Index, Node, Sort, ordered
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At, Body
from optiml_magic.synthesis.sizes import Assumption, axis, constant, quotient

_INT64 = np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class Ranked(Node):
    """The places of elements, each run of ``run`` of them along an axis in ascending order."""

    source: Node
    axis: int
    run: int


@dataclass(frozen=True, eq=False)
class Merged(Node):
    """The same where every two runs of ``before`` have become one."""

    source: Node
    before: Node
    axis: int
    run: int


def merged(node: Sort, run: int, length: float) -> Node:
    """A sort of rows that are about as long."""
    places: Node = Ranked(node.shape, _INT64, node.source, node.axis, run, line=node.line)
    while run < length:
        places = Merged(node.shape, _INT64, node.source, places, node.axis, run, line=node.line)
        run *= 2
    if node.places:
        return places
    rank = len(node.shape)
    at = tuple(places if k == node.axis else axis(k) for k in range(rank))
    return Index(node.shape, node.dtype, node.source, at, line=node.line)


def assumed(nodes: Sequence[Node]) -> Iterator[Assumption]:
    """How long rows may be, after so many merges."""
    every = list(ordered(iter(nodes)))
    inner = {node.before for node in every if isinstance(node, Merged)}
    for node in every:
        if isinstance(node, (Ranked, Merged)) and node not in inner:
            run = node.run * (2 if isinstance(node, Merged) else 1)
            yield Assumption(node.shape[node.axis], "<=", constant(run))


def _moved(at: At, along: int, place: Polynomial) -> At:
    return tuple(place if k == along else p for k, p in enumerate(at))


def write_ranked(node: Ranked, body: Body, at: At, array: str) -> None:
    own, extent = at[node.axis], node.shape[node.axis]
    first = quotient(own, constant(node.run)) * constant(node.run)
    mine = body.value(node.source, at)
    held = body.local("mine", mine.type, mine.expression)
    rank = body.local("rank", "int", body.index(first))
    end = body.index(first + constant(node.run))
    stop = body.local("stop", "int", c.call("min", end, body.index(extent)))
    counter = body.counter(extent, float(node.run))
    there = Polynomial.symbol(counter)
    other = body.value(node.source, _moved(at, node.axis, there))
    theirs = body.local("other", mine.type, other.expression)
    tie = c.binary("<", body.index(there), body.index(own))
    tie = c.binary("&&", c.binary("==", theirs, held), tie)
    body.spend(3)
    body.emit(c.assign(rank, c.binary("||", c.binary("<", theirs, held), tie), "+="))
    body.close(counter, body.index(first), stop)
    target = Polynomial.symbol(body.named(rank))
    body.put(array, node, _moved(at, node.axis, target), c.Value(body.index(own), "int"))


def write_merged(node: Merged, body: Body, at: At, array: str) -> None:
    """An element goes behind those of its own run and those of the other that come before it."""
    own, extent, run = at[node.axis], node.shape[node.axis], c.integer(node.run)
    which = body.local("which", "int", c.binary("/", body.index(own), run))
    other = c.binary("*", c.binary("^", which, c.integer(1)), run)
    last = body.index(extent)
    first = body.local("first", "int", c.call("min", other, last))
    low = body.local("low", "int", first)
    high = body.local("high", "int", c.call("min", c.binary("+", first, run), last))
    place = body.place(node.before, at, extent)
    value = body.value(node.source, _moved(at, node.axis, place))
    mine = body.local("mine", value.type, value.expression)
    with body.repeated(c.binary("<", low, high), float(np.log2(node.run) + 1)):
        half = c.binary("/", c.binary("+", low, high), c.integer(2))
        middle = body.local("middle", "int", half)
        there = _moved(at, node.axis, Polynomial.symbol(body.named(middle)))
        found = body.place(node.before, there, extent)
        theirs = body.value(node.source, _moved(at, node.axis, found))
        held = body.local("other", value.type, theirs.expression)
        second = c.binary("==", c.binary("%", which, c.integer(2)), c.integer(1))
        tie = c.binary("&&", c.binary("==", held, mine), second)
        body.spend(4)
        body.emit(
            c.branch(
                c.binary("||", c.binary("<", held, mine), tie),
                [c.assign(low, c.binary("+", middle, c.integer(1)))],
                [c.assign(high, middle)],
            )
        )
    pairs = c.binary("*", c.binary("/", which, c.integer(2)), c.integer(2 * node.run))
    within = c.binary("-", body.index(own), c.binary("*", which, run))
    behind = c.binary("+", within, c.binary("-", low, first))
    rank = body.local("rank", "int", c.binary("+", pairs, behind))
    target = Polynomial.symbol(body.named(rank))
    body.put(array, node, _moved(at, node.axis, target), c.Value(body.index(place), "int"))
