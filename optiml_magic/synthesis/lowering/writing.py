"""What is written to memory: the index space of each write, and what its threads do there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.graph import DType, Node, Scan, Scatter, Sort
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At, Body
from optiml_magic.synthesis.lowering.nodes import inverse, whole
from optiml_magic.synthesis.lowering.operations import combined, neutral
from optiml_magic.synthesis.lowering.parts import (
    BestParts,
    Parts,
    Runs,
    write_best,
    write_parts,
    write_runs,
)
from optiml_magic.synthesis.lowering.sorting import Merged, Ranked, write_merged, write_ranked
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents


@dataclass(frozen=True)
class Write:
    """Each thread of ``domain`` does ``work`` at its index; all of it makes ``node``.

    A node may need several writes, one after the other. ``cleared`` where memory begins as zeros.
    """

    node: Node
    domain: Extents
    work: Callable[[Body, At, str], None]
    cleared: bool = False


def is_stored(node: Node) -> bool:
    """Whether a node has to lie in memory, since no element of it is computed alone."""
    if isinstance(node, Scatter):
        return inverse(node) is None
    return isinstance(node, (Parts, BestParts, Runs, Ranked, Merged, Scan, Sort))


def writes(node: Node, parallel: tuple[int, ...]) -> tuple[Write, ...]:
    """What makes a node; one that need not be stored by a thread for each index along axes."""
    match node:
        case Parts():
            return (Write(node, node.shape, partial(write_parts, node)),)
        case BestParts():
            return (Write(node, node.shape, partial(write_best, node)),)
        case Runs():
            return (Write(node, node.before.shape, partial(write_runs, node)),)
        case Ranked():
            return (Write(node, node.shape, partial(write_ranked, node)),)
        case Merged():
            return (Write(node, node.shape, partial(write_merged, node)),)
        case Scan():
            domain = tuple(e for k, e in enumerate(node.shape) if k != node.axis)
            return (Write(node, domain, partial(_scan, node)),)
        case Sort():
            return (Write(node, node.shape, partial(_sort, node)),)
        case Scatter() if is_stored(node):
            second = Write(node, node.values.shape, partial(_scatter, node))
            if _is_zero(node.base):
                return (replace(second, cleared=True),)
            everywhere = partial(_rows, node.base, tuple(range(len(node.shape))))
            return (Write(node, node.shape, everywhere), second)
    domain = tuple(node.shape[k] for k in parallel)
    return (Write(node, domain, partial(_rows, node, parallel)),)


def _rows(node: Node, parallel: tuple[int, ...], body: Body, at: At, array: str) -> None:
    """Each element, those along the other axes one after the other."""
    serial = tuple(k for k in range(len(node.shape)) if k not in parallel)
    with body.loops([node.shape[k] for k in serial]) as counters:
        place = whole(at, counters, serial)
        body.put(array, node, place, body.value(node, place))


def _scan(node: Scan, body: Body, at: At, array: str) -> None:
    kind = c.computed(node.dtype)
    total = body.local("total", kind, neutral(node.operation, kind))
    with body.loops([node.shape[node.axis]]) as counters:
        place = whole(at, counters, (node.axis,))
        combined(body, node.operation, total, body.value(node.source, place), kind)
        body.put(array, node, place, c.Value(total, kind))


def _sort(node: Sort, body: Body, at: At, array: str) -> None:
    """Each element goes behind those that are smaller, and behind equal ones before it."""
    mine = body.value(node.source, at)
    held = body.local("mine", mine.type, mine.expression)
    rank = body.local("rank", "int", c.integer(0))
    own = at[node.axis]
    with body.loops([node.shape[node.axis]]) as (counter,):
        there = tuple(counter if k == node.axis else p for k, p in enumerate(at))
        other = body.value(node.source, there)
        theirs = body.local("other", mine.type, other.expression)
        before = c.binary("<", body.index(counter), body.index(own))
        tie = c.binary("&&", c.binary("==", theirs, held), before)
        body.spend(3)
        body.emit(c.assign(rank, c.binary("||", c.binary("<", theirs, held), tie), "+="))
    target = Polynomial.symbol(body.named(rank))
    place = tuple(target if k == node.axis else p for k, p in enumerate(at))
    value = c.Value(body.index(own), "int") if node.places else c.Value(held, mine.type)
    body.put(array, node, place, value)


def _is_zero(node: Node) -> bool:
    from optiml_magic.synthesis.evaluate import known
    from optiml_magic.synthesis.graph import Index

    inner = node.source if isinstance(node, Index) else node
    numbers = known(inner)
    return numbers is not None and not numbers.any()


def _scatter(node: Scatter, body: Body, at: At, array: str) -> None:
    places = (body.place(p, at, e) for p, e in zip(node.at, node.base.shape, strict=True))
    place = tuple(places)
    value = body.value(node.values, at)
    if node.operation == "set":
        body.put(array, node, place, value)
        return
    body.spend(8)
    target = c.element(array, body.subscript(place, node.shape))
    given = c.stored(value, node.dtype)
    body.emit(c.evaluate(_atomic(body, node.operation, node.dtype, target, given)))


_ADDED = ("int", "unsigned", "unsigned long long", "float", "double")


def _atomic(body: Body, operation: str, dtype: DType, target: Expr, value: Expr) -> Expr:
    """One that is not torn apart by other threads."""
    kind, address = c.type_of(dtype), c.unary("&", target)
    if operation == "subtract" and kind not in ("__half", "__nv_bfloat16"):
        operation, value = "add", c.unary("-", value)
    if operation == "add" and kind == "long long":
        wide = "unsigned long long"
        return c.call("atomicAdd", c.cast(f"{wide}*", address), c.cast(wide, value))
    if operation == "add" and kind in _ADDED:
        return c.call("atomicAdd", address, value)
    if operation in ("maximum", "minimum", "fmax", "fmin"):
        most = operation in ("maximum", "fmax")
        if kind in ("int", "unsigned", "long long", "unsigned long long"):
            return c.call("atomicMax" if most else "atomicMin", address, value)
        if kind == "float":
            return body.function(f"atomic_{'max' if most else 'min'}_{kind}", address, value)
    raise RefusalError(
        f"`np.{operation}.at` of {dtype.name}: a GPU does not do that to one place at a time",
        "collect in int32 or float32, by a sum or an extreme",
    )
