"""How each kind of node is computed at a place: one function each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.graph import (
    Best,
    Constant,
    Contract,
    Index,
    Input,
    Map,
    Node,
    Position,
    Reduce,
    Scatter,
)  # fmt: skip
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At, Body
from optiml_magic.synthesis.lowering.operations import combined, computed, neutral
from optiml_magic.synthesis.lowering.spelling import Value
from optiml_magic.synthesis.sizes import axes_of, constant

_DECIDED = frozenset({"less", "less_equal", "greater", "greater_equal", "maximum", "minimum"})
_MOST = 2**31  # beyond the numbers of an int
_NARROW = frozenset({"add", "subtract", "multiply"})


def _input(body: Body, node: Node, at: At) -> Value:
    """A number by its name; arrays lie in memory."""
    assert isinstance(node, Input), at
    given = body.choices.scalars[node.name]
    if given in ("__half", "__nv_bfloat16"):
        return Value(c.cast("float", c.name(node.name)), "float")
    return Value(c.name(node.name), given)


def _constant(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Constant)
    kind = c.computed(node.dtype)
    flat = node.value.reshape(-1)
    if kind == "long long" and flat.size and np.abs(flat).max() < _MOST:
        kind = "int"
    if flat.size == 1 or (flat.size and np.all(flat == flat[0])):
        return Value(c.number(flat[0], kind), kind)
    if all(place.value is not None for place in at):
        chosen = node.value[tuple(int(place.value or 0) for place in at)]
        return Value(c.number(chosen, kind), kind)
    kind = c.computed(node.dtype)
    place = body.subscript(at, node.shape)
    return Value(c.element(body.table(node), place), kind)


def _position(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Position)
    return Value(body.index(body.moved(node.expression, at)), "int")


def _map(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Map)
    if (known := _of_indices(body, node, at)) is not None:
        return known
    values = [body.value(argument, at) for argument in node.arguments]
    return computed(body, node, values)


def _of_indices(body: Body, node: Map, at: At) -> Value | None:
    """A comparison or an extreme of two indices, where their ranges decide it."""
    if node.operation not in _DECIDED:
        return None
    one, two = (_affine(body, x, at) for x in node.arguments)
    if one is None or two is None:
        return None
    if node.operation in ("maximum", "minimum"):
        if node.operation == "minimum":
            one, two = -one, -two
        for here, there in ((one, two), (two, one)):
            if indices.not_negative(here - there, body.ranges):
                return Value(body.index(here if node.operation == "maximum" else -here), "int")
        return None
    if node.operation.startswith("greater"):
        one, two = two, one
    least = constant(0 if node.operation.endswith("equal") else 1)
    if indices.not_negative(two - one - least, body.ranges):
        return Value(c.number(True, "bool"), "bool")
    if indices.not_negative(one - two + least - constant(1), body.ranges):
        return Value(c.number(False, "bool"), "bool")
    return None


def _affine(body: Body, node: Node, at: At) -> Polynomial | None:
    """An index, or a whole number, as a sum."""
    if isinstance(node, Position):
        return body.moved(node.expression, at)
    inner = node.source if isinstance(node, Index) else node
    if isinstance(inner, Constant) and inner.value.size == 1 and inner.dtype.kind in "iu":
        return constant(inner.value.item())
    if isinstance(inner, Position) and not inner.shape:
        return inner.expression
    return None


def _index(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Index)
    extents = node.source.shape
    places = (body.place(p, at, e) for p, e in zip(node.at, extents, strict=True))
    return body.value(node.source, tuple(places))


def whole(kept: At, counters: list[Polynomial], axes: tuple[int, ...]) -> At:
    """The index of a source, of which some axes are counted."""
    left, counted = iter(kept), iter(counters)
    rank = len(kept) + len(counters)
    return tuple(next(counted) if k in axes else next(left) for k in range(rank))


def _reduce(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Reduce)
    kind = c.computed(node.dtype)
    name = body.fresh(_TOTALS.get(node.operation, "total"))
    total, begun = c.name(name), c.declare(kind, name, neutral(node.operation, kind))
    with body.loops([node.source.shape[k] for k in node.axes], [begun]) as counters:
        value = body.value(node.source, whole(at, counters, node.axes))
        combined(body, node.operation, total, value, kind)
    return Value(total, kind)


_TOTALS = MappingProxyType({
    "add": "sum", "multiply": "product", "maximum": "top", "fmax": "top", "minimum": "least",
    "fmin": "least",
})  # fmt: skip


def _best(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Best)
    kind = c.computed(node.source.dtype)
    operation, sign = ("maximum", ">") if node.operation == "argmax" else ("minimum", "<")
    names = body.fresh("best"), body.fresh("found")
    best, found = map(c.name, names)
    begun = [
        c.declare(kind, names[0], neutral(operation, kind)),
        c.declare("int", names[1], c.integer(0)),
    ]
    with body.loops([node.source.shape[node.axis]], begun) as counters:
        value = body.value(node.source, whole(at, counters, (node.axis,)))
        body.spend(1)
        held = body.local("x", kind, c.converted(value, kind))
        better = c.binary(sign, held, best)
        (counter,) = counters
        body.emit(c.branch(better, [c.assign(best, held), c.assign(found, body.index(counter))]))
    return Value(found, "int")


def _contract(body: Body, node: Node, at: At) -> Value:
    assert isinstance(node, Contract)
    kind = c.computed(node.dtype)
    of = dict(zip(node.kept, at, strict=True))
    extents: dict[int, Polynomial] = {}
    for operand, letters in zip(node.operands, node.letters, strict=True):
        extents |= dict(zip(letters, operand.shape, strict=True))
    summed = [letter for letter in extents if letter not in of]
    name = body.fresh("sum")
    total, begun = c.name(name), c.declare(kind, name, neutral("add", kind))
    with body.loops([extents[letter] for letter in summed], [begun]) as counters:
        of |= dict(zip(summed, counters, strict=True))
        product: Expr | None = None
        for operand, letters in zip(node.operands, node.letters, strict=True):
            value = body.value(operand, tuple(of[letter] for letter in letters))
            factor = c.converted(value, kind)
            product = factor if product is None else c.binary("*", product, factor)
        assert product is not None
        body.spend(len(node.operands))
        combined(body, "add", total, Value(product, kind), kind)
    return Value(total, kind)


def _scatter(body: Body, node: Node, at: At) -> Value:
    """The values where they lie, else what was there."""
    assert isinstance(node, Scatter)
    kind = c.computed(node.dtype)
    found = inverse(node)
    assert found is not None, "a scatter without an inverse is stored"
    tests: list[Expr] = []
    places: dict[int, Polynomial] = {}
    body.spend(len(found))
    for (along, start, step), place, extent in zip(found, at, node.base.shape, strict=True):
        apart = place - start if step > 0 else start - place
        if along is None:
            if extent != constant(1):
                tests.append(c.binary("==", body.index(place), body.index(start)))
            continue
        count = node.values.shape[along]
        size = abs(step)
        last = start + (count - constant(1)) * constant(step)
        low, high = (start, last) if step > 0 else (last, start)
        if low != constant(0):
            tests.append(c.binary(">=", body.index(place), body.index(low)))
        if high != extent - constant(1):
            tests.append(c.binary("<=", body.index(place), body.index(high)))
        if size > 1:
            rest = c.binary("%", body.index(apart), c.integer(size))
            tests.append(c.binary("==", rest, c.integer(0)))
        places[along] = _exactly(body, apart, size)
    rank = len(node.values.shape)
    inside = tuple(places.get(k, constant(0)) for k in range(rank))

    def there() -> Value:
        value = body.value(node.values, inside)
        if node.operation == "set":
            return value
        before = c.converted(body.value(node.base, at), kind)
        total = body.local("total", kind, before)
        combined(body, node.operation, total, value, kind)
        return Value(total, kind)

    if not tests:
        return Value(c.converted(there(), kind), kind)
    test = tests[0]
    for other in tests[1:]:
        test = c.binary("&&", test, other)
    return body.chosen(test, there, lambda: body.value(node.base, at), kind)


def _exactly(body: Body, apart: Polynomial, size: int) -> Polynomial:
    """A quotient that leaves no rest, where it is asked for."""
    if size == 1:
        return apart
    local = body.local("at", "int", c.binary("/", body.index(apart), c.integer(size)))
    name = body.named(local)
    return Polynomial.symbol(name)


def inverse(node: Scatter) -> tuple[tuple[int | None, Polynomial, int], ...] | None:
    """For each axis of the base the axis of the values along it, where it begins and its step.

    None where an element's own place does not say which value belongs there.
    """
    found: list[tuple[int | None, Polynomial, int]] = []
    for place in node.at:
        if not isinstance(place, Polynomial):
            return None
        read = axes_of(place)
        if not read:
            found.append((None, place, 1))
            continue
        if len(read) > 1:
            return None
        (along,) = read
        symbol = f"${along}"
        step = place.coefficient(symbol)
        if step is None or not step.value or axes_of(place.without((symbol,))):
            return None
        found.append((along, place.without((symbol,)), step.value))
    used = [along for along, _, _ in found if along is not None]
    free = [k for k, extent in enumerate(node.values.shape) if extent != constant(1)]
    if len(used) != len(set(used)) or not set(free) <= set(used):
        return None
    return tuple(found)


def narrow(body: Body, node: Node, at: At) -> Value:
    """A place in an array: its last 32 bits, which is all of it, computed in 32 bits."""
    if isinstance(node, Index) and node not in body.choices.arrays:
        extents = node.source.shape
        places = (body.place(p, at, e) for p, e in zip(node.at, extents, strict=True))
        return narrow(body, node.source, tuple(places))
    if isinstance(node, Map) and node not in body.choices.arrays and node.dtype.kind in "iu":
        if node.operation == "cast":
            inner = node.arguments[0]
            if inner.dtype.kind in "iu":
                return narrow(body, inner, at)
        elif node.operation == "where":
            test = c.converted(body.value(node.arguments[0], at), "bool")
            sides = [c.converted(narrow(body, x, at), "int") for x in node.arguments[1:]]
            body.spend(1)
            return Value(c.choice(test, *sides), "int")
        elif node.operation in _NARROW:
            sides = [c.converted(narrow(body, x, at), "int") for x in node.arguments]
            body.spend(1)
            sign = {"add": "+", "subtract": "-", "multiply": "*"}[node.operation]
            return Value(c.binary(sign, *sides), "int")
    return body.value(node, at)


LOWERINGS: Mapping[type[Node], Callable[[Body, Any, At], Value]] = MappingProxyType({
    Input: _input, Constant: _constant, Position: _position, Map: _map, Index: _index,
    Reduce: _reduce, Best: _best, Contract: _contract, Scatter: _scatter,
})  # fmt: skip
