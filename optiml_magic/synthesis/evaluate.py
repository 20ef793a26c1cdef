"""A graph computed by NumPy, node by node, at any sizes: what a node means, as a program.

Every place of an ``Index`` is computed for every index: slow, and without any of the shortcuts that
the reference took.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.dtypes import kind
from optiml_magic.synthesis.graph import (
    Best,
    Constant,
    Contract,
    Graph,
    Index,
    Input,
    Map,
    Node,
    Place,
    Position,
    Reduce,
    Scan,
    Scatter,
    Sort,
    ordered,
)  # fmt: skip
from optiml_magic.synthesis.sizes import Assumption, Extents, symbols_of, valued

Array = np.ndarray[Any, Any]


def evaluated(
    graph: Graph, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> dict[str, Array] | tuple[Assumption, ...]:
    """The outputs by name, or the assumptions that these sizes break.

    Raises:
        ValueError: an input has another shape than the graph says.
        IndexError: a place lies outside of its array.
    """
    if unmet := graph.unmet(sizes):
        return unmet
    found: dict[Node, Array] = {}
    for node in graph.nodes:
        with np.errstate(all="ignore"):
            array = _computed(node, found, values, sizes)
        assert array.shape == _shape(node.shape, sizes), (node, array.shape)
        assert array.dtype == node.dtype, (node, array.dtype)
        found[node] = array
    return {name: found[node] for name, node in graph.outputs}


def known(node: Node, sizes: Mapping[str, int] = MappingProxyType({})) -> Array | None:
    """The numbers of a node that is made of constants, and sizes at hand; None for any other."""
    needed = tuple(ordered(iter((node,))))
    if any(isinstance(part, Input) for part in needed):
        return None
    found: dict[Node, Array] = {}
    try:
        for part in needed:
            found[part] = _computed(part, found, {}, sizes)
    except KeyError:  # a size
        return None
    return found[node]


def sizes_of(node: Node) -> frozenset[str]:
    """The names of the sizes that its numbers depend on."""
    found: frozenset[str] = frozenset()
    for part in ordered(iter((node,))):
        own = [*part.shape, *(p for p in getattr(part, "at", ()) if isinstance(p, Polynomial))]
        own += [part.expression] if isinstance(part, Position) else []
        found = found.union(*map(symbols_of, own))
    return frozenset(name for name in found if not name.startswith("$"))


def _shape(extents: Extents, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(valued(extent, sizes)) for extent in extents)


def _computed(
    node: Node, of: Mapping[Node, Array], values: Mapping[str, Any], sizes: Mapping[str, int]
) -> Array:
    shape = _shape(node.shape, sizes)
    match node:
        case Input():
            given = np.asarray(values[node.name])
            if given.shape != shape:
                raise ValueError(f"`{node.name}` has the shape {given.shape}, not {shape}")
            return given.astype(node.dtype)
        case Constant():
            return node.value
        case Position():
            return _placed(node.expression, shape, of, sizes)
        case Map():
            return _mapped(node, [of[x] for x in node.arguments])
        case Index():
            at = tuple(_placed(place, shape, of, sizes) for place in node.at)
            return np.broadcast_to(_read(of[node.source], at), shape)
        case Reduce():
            ufunc = getattr(np, node.operation)
            done = ufunc.reduce(of[node.source], axis=node.axes, dtype=node.dtype)
            return np.asarray(done, node.dtype)
        case Best():
            chosen = getattr(np, node.operation)(of[node.source], axis=node.axis)
            return np.asarray(chosen, node.dtype)
        case Contract():
            # NumPy's einsum has no bfloat16 and adds halves as halves.
            inner = np.float32 if node.dtype.itemsize == 2 and kind(node.dtype) == "f" else None
            arguments: list[Any] = []
            for x, letters in zip(node.operands, node.letters, strict=True):
                arguments += [of[x].astype(inner or node.dtype), list(letters)]
            return np.asarray(np.einsum(*arguments, list(node.kept)), node.dtype)
        case Scan():
            ufunc = getattr(np, node.operation)
            return np.asarray(ufunc.accumulate(of[node.source], node.axis, node.dtype))
        case Sort():
            order = np.argsort(of[node.source], axis=node.axis, kind="stable")
            if node.places:
                return order
            return np.take_along_axis(of[node.source], order, node.axis)
        case Scatter():
            return _written(node, of, sizes)
    raise AssertionError(node)


def _mapped(node: Map, arguments: list[Array]) -> Array:
    if node.operation in ("cast", "narrowed"):
        return arguments[0].astype(node.dtype)
    if node.operation == "where":
        return np.where(*arguments)
    ufunc = getattr(np, node.operation)
    loop = (*(x.dtype for x in arguments), node.dtype)
    return np.asarray(ufunc(*arguments, signature=loop))


def _placed(
    place: Place, shape: tuple[int, ...], of: Mapping[Node, Array], sizes: Mapping[str, int]
) -> Array:
    if isinstance(place, Node):
        return of[place]
    grids = np.indices(shape, dtype=np.int64, sparse=True)
    at: dict[str, Any] = {**sizes, **{f"${k}": grid for k, grid in enumerate(grids)}}
    return np.broadcast_to(np.asarray(valued(place, at), np.int64), shape)


def _read(source: Array, at: tuple[Array, ...]) -> Array:
    for places, extent in zip(at, source.shape, strict=True):
        if places.size and (places.min() < 0 or places.max() >= extent):
            raise IndexError(f"a place outside of {extent}: {places.min()} to {places.max()}")
    return np.asarray(source[at])


def _written(node: Scatter, of: Mapping[Node, Array], sizes: Mapping[str, int]) -> Array:
    result, values = of[node.base].copy(), of[node.values]
    at = tuple(_placed(place, values.shape, of, sizes) for place in node.at)
    _read(result, at)
    if node.operation == "set":
        result[at] = values
    else:
        getattr(np, node.operation).at(result, at, values)
    return result
