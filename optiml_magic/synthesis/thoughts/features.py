"""What of a traced reference speaks for one strategy or another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.graph import (
    Best,
    Contract,
    Graph,
    Index,
    Node,
    Reduce,
    Scan,
    Scatter,
    Sort,
    parts,
)
from optiml_magic.synthesis.sizes import axes_of, valued

N = TypeVar("N", bound=Node)
_LONG = 1024  # elements of an axis that one warp would take long for; ours
_SHORT = 32
_FEW = 4096  # places that fit into the shared memory of a block as counters; ours


def features(graph: Graph) -> tuple[str, ...]:
    """The names of those that a graph has, in the order of ``FEATURES``."""
    return tuple(name for name, has in FEATURES.items() if has(graph))


def _elementwise(graph: Graph) -> bool:
    gathers = any(not _affine(node) for node in _all(graph, Index))
    return not gathers and not any(_all(graph, Reduce, Best, Contract, Scan, Sort, Scatter))


def _reduces_rows(graph: Graph) -> bool:
    return any(
        len(node.source.shape) - 1 in axes and len(axes) < len(node.source.shape)
        for node, axes in _reductions(graph)
    )


def _reduces_columns(graph: Graph) -> bool:
    return any(len(node.source.shape) - 1 not in axes for node, axes in _reductions(graph))


def _reduces_all(graph: Graph) -> bool:
    return any(len(axes) == len(node.source.shape) for node, axes in _reductions(graph))


def _reduces_twice(graph: Graph) -> bool:
    """One reduction needs what another gave, as a variance needs the mean."""
    above: set[Node] = set()  # nodes that need a reduction
    for node in graph.nodes:
        if any(part in above or isinstance(part, (Reduce, Best)) for part in parts(node)):
            above.add(node)
    return any(node in above for node, _ in _reductions(graph))


def _long(graph: Graph) -> bool:
    return any(extent >= _LONG for extent in _reduced(graph))


def _short(graph: Graph) -> bool:
    return any(extent <= _SHORT for extent in _reduced(graph))


def _multiplies(graph: Graph) -> bool:
    """A product of matrices: both operands have an axis of the result that the other lacks."""
    return any(len(_own(node)) > 1 for node in _contracts(graph))


def _multiplies_vector(graph: Graph) -> bool:
    return any(len(_own(node)) == 1 for node in _contracts(graph))


def _batched(graph: Graph) -> bool:
    return any(
        set(node.kept).intersection(*node.letters)
        for node in _contracts(graph)
        if len(node.letters) > 1
    )


def _narrow(graph: Graph) -> bool:
    return any(node.dtype.kind == "f" and node.dtype.itemsize == 2 for node in graph.inputs)


def _neighbours(graph: Graph) -> bool:
    """One array is read at several constant distances from the place of the result."""
    seen: dict[Node, set[tuple[int, ...]]] = {}
    for node in _all(graph, Index):
        if _affine(node):
            places = seen.setdefault(node.source, set())
            places.add(
                tuple(_constant(place) for place in node.at if isinstance(place, Polynomial))
            )
    return any(len(places) > 2 for places in seen.values())


def _transposes(graph: Graph) -> bool:
    """Along the last axis of a result an array is read along another than its own last one."""
    for node in _all(graph, Index):
        along = [axes_of(p) if isinstance(p, Polynomial) else frozenset[int]() for p in node.at]
        last = len(node.shape) - 1
        if along and last not in along[-1] and any(last in axes for axes in along[:-1]):
            return True
    return False


def _gathers(graph: Graph) -> bool:
    return any(not _affine(node) for node in _all(graph, Index))


def _scatters(graph: Graph) -> bool:
    return any(node.operation != "set" for node in _all(graph, Scatter))


def _few_places(graph: Graph) -> bool:
    """It adds to places so few that a block could keep them all."""
    return any(
        node.operation != "set" and _elements(graph, node.base) <= _FEW
        for node in _all(graph, Scatter)
    )


FEATURES: Mapping[str, Callable[[Graph], bool]] = MappingProxyType({
    "elementwise": _elementwise,
    "reduces rows": _reduces_rows,
    "reduces columns": _reduces_columns,
    "reduces all": _reduces_all,
    "reduces twice": _reduces_twice,
    "long reductions": _long,
    "short reductions": _short,
    "multiplies matrices": _multiplies,
    "multiplies a vector": _multiplies_vector,
    "batched products": _batched,
    "half precision": _narrow,
    "reads neighbours": _neighbours,
    "transposes": _transposes,
    "gathers": _gathers,
    "scatters": _scatters,
    "few places": _few_places,
    "scans": lambda graph: any(_all(graph, Scan)),
    "sorts": lambda graph: any(_all(graph, Sort)),
})  # fmt: skip


def _all(graph: Graph, *kinds: type[N]) -> Iterator[N]:
    return (node for node in graph.nodes if isinstance(node, kinds))


def _affine(node: Index) -> bool:
    return not any(isinstance(place, Node) for place in node.at)


def _constant(place: Polynomial) -> int:
    return dict(place.terms).get((), 0)


def _reductions(graph: Graph) -> Iterator[tuple[Reduce | Best, tuple[int, ...]]]:
    for node in graph.nodes:
        if isinstance(node, Reduce):
            yield node, node.axes
        elif isinstance(node, Best):
            yield node, (node.axis,)


def _reduced(graph: Graph) -> Iterator[int]:
    """How many elements each reduction takes for one of its result, at the sizes of the trace."""
    for node, axes in _reductions(graph):
        extents: Sequence[Polynomial] = [node.source.shape[axis] for axis in axes]
        number = 1
        for extent in extents:
            number *= int(valued(extent, graph.sizes))
        yield number


def _contracts(graph: Graph) -> Iterator[Contract]:
    return (node for node in _all(graph, Contract) if len(node.operands) > 1)


def _own(node: Contract) -> list[int]:
    """For each operand that has axes of the result which no other has, one of them."""
    found = []
    for k, letters in enumerate(node.letters):
        others = {letter for j, more in enumerate(node.letters) if j != k for letter in more}
        found += [letter for letter in letters if letter in node.kept and letter not in others][:1]
    return found


def _elements(graph: Graph, node: Node) -> int:
    number = 1
    for extent in node.shape:
        number *= int(valued(extent, graph.sizes))
    return number
