"""What of a graph lies in memory, which launch writes it, and over which threads.

Nothing is stored that can be computed where it is asked for, unless that costs more than a launch:
each choice is tried by writing the kernel down and counting what its threads would do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.dtypes import kind
from optiml_magic.synthesis.graph import (
    Best,
    Contract,
    Index,
    Input,
    Map,
    Node,
    Position,
    Reduce,
    Scan,
    Sort,
    ordered,
)
from optiml_magic.synthesis.graph import Constant as Numbers
from optiml_magic.synthesis.lowering import parts, sorting
from optiml_magic.synthesis.lowering.body import At, Body, TooMuchError, Visit
from optiml_magic.synthesis.lowering.choices import Choices
from optiml_magic.synthesis.lowering.writing import Write, is_stored, writes
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents, symbols_of

# All ours; times and costs are counted at the sizes at hand, correctness hangs on none of it.
_AGAIN = 1.5  # times that an element is computed, from which on it is done again
_WORTH = 24.0  # operations for each element written, that a launch more may save
_SHARE = 0.4  # of what a launch does
_ROWS = 64  # rows that lie side by side: threads from which on each takes one
_THREADS = 8192  # of other rows
_FEW, _LONG = 1024, 8192  # results, and elements of each, that are summed up in parts
_SORTED = (64, 1024)  # elements that are sorted by counting: of a long row, and a whole row
_APART = 256  # rows that a thread goes down, from which on others could help it
_RUNS = (256, 4096)  # elements of a part, at least and at most
_MOST_VISITS = 4000  # of nodes at places, in one write
_VISITED = 8  # visits of a node, from which on it is stored where a kernel has too many


@dataclass(frozen=True)
class Stored:
    """A node in memory: its writes, and what they read that other launches have written."""

    node: Node
    writes: tuple[Write, ...]
    reads: tuple[Node, ...]  # in the order in which they are met: it decides that of the launches
    parallel: tuple[int, ...]


def planned(outputs: Sequence[Node], choices: Choices) -> list[Stored]:
    """All outputs and whatever they need in memory, each after what it reads.

    Raises RefusalError for what no kernel can do.
    """
    return _Planner(choices).all(outputs)


def parted(node: Node, choices: Choices) -> Node:
    """What goes through many elements for few results, in parts; any other node as it is."""
    match node:
        case Reduce(source=source, axes=axes):
            rank = len(source.shape)
            if axes != tuple(range(rank - len(axes), rank)):
                return node
            length = _count(tuple(source.shape[k] for k in axes), choices)
            if not _is_long(node, length, choices):
                return node
            return parts.reduced(node, _run_of(length))
        case Contract() if node.operands and kind(node.dtype) in "iuf":
            total = parts.multiplied(node)
            made = parted(total, choices)
            return node if made is total else made
        case Best():
            length = _count((node.source.shape[node.axis],), choices)
            if not _is_long(node, length, choices):
                return node
            return parts.found(node, _run_of(length))
        case Scan():
            length = _count((node.shape[node.axis],), choices)
            if length < _LONG or _count(node.shape, choices) / length > _FEW:
                return node
            return parts.scanned(node, _RUNS[0], lambda totals: parted(totals, choices))
        case Sort():
            length = _count((node.shape[node.axis],), choices)
            return sorting.merged(node, _SORTED[0], length) if length > _SORTED[1] else node
    return node


def _run_of(length: float) -> int:
    """About as many elements of a part as there are parts, a power of two."""
    least, most = _RUNS
    return int(max(least, min(most, 2 ** round(math.log2(length) / 2))))


def _is_long(node: Node, length: float, choices: Choices) -> bool:
    return _count(node.shape, choices) <= _FEW and length >= _LONG


def _count(extents: Extents, choices: Choices) -> float:
    sizes = Body(choices, {})
    return float(np.prod([sizes.extent(e) for e in extents] or [1.0]))


class _Planner:
    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._found: dict[Node, Stored] = {}
        self._order: Mapping[Node, int] = {}

    def all(self, outputs: Sequence[Node]) -> list[Stored]:
        wanted = dict.fromkeys(outputs)
        self._order = {node: k for k, node in enumerate(ordered(iter(wanted)))}
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in self._found:
                continue
            self._found[node] = self._decided(node)
            pending += self._sorted(self._found[node].reads)
        for node in list(self._found):
            self._found[node] = self._shared(self._found[node])
        return self._in_order(wanted)

    def _in_order(self, wanted: Iterable[Node]) -> list[Stored]:
        done: dict[Node, Stored] = {}
        stack = [(node, False) for node in wanted]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if ready:
                done[node] = self._found[node]
            else:
                stack.append((node, True))
                stack += [(read, False) for read in self._sorted(self._found[node].reads)]
        return list(done.values())

    def _sorted(self, nodes: Iterable[Node]) -> list[Node]:
        """In the order of the graph: sets have none, and a program is the same each time."""
        return sorted(nodes, key=self._order.__getitem__)

    def _decided(self, node: Node) -> Stored:
        everywhere = tuple(range(len(node.shape)))
        if is_stored(node):
            return self._settled(node, everywhere)
        tried = self._try(node, everywhere, frozenset())
        again = self._again(tried, node)
        rows = self._rows(node, tried, _topmost(again)) if again else ()
        if rows and not self._again(self._try(node, rows, frozenset()), node) & _topmost(again):
            return self._settled(node, rows)
        return self._settled(node, everywhere)

    def _settled(self, node: Node, parallel: tuple[int, ...]) -> Stored:
        """With all in memory that is better not computed anew."""
        reads: frozenset[Node] = frozenset()
        while True:
            tried = self._try(node, parallel, reads)
            more = self._worth(node, parallel, reads, self._again(tried, node))
            if tried.too_much and not more:
                raise _too_much(node)
            if not more:
                return Stored(node, writes(node, parallel), tried.read, parallel)
            reads |= more

    def _worth(
        self, node: Node, parallel: tuple[int, ...], reads: frozenset[Node], again: frozenset[Node]
    ) -> frozenset[Node]:
        """Of what is computed again, that which would be even if what it needs lay in memory."""
        found: set[Node] = set()
        pending = list(_topmost(again))
        while pending:
            one = pending.pop()
            needed = again & _below(one)
            if needed and one not in self._again(self._try(node, parallel, reads | needed), node):
                pending += _topmost(needed)
            else:
                found.add(one)
        return _topmost(frozenset(found))

    def _shared(self, stored: Stored) -> Stored:
        """What another launch of other threads computes anyway, and dearly, is read as well."""
        tried = self._try(stored.node, stored.parallel, frozenset(stored.reads))
        own = stored.writes[-1].domain
        read = {
            node
            for node, visits in tried.visits.items()
            if node in self._found
            and node is not stored.node
            and self._found[node].writes[-1].domain != own
            and sum(v.cost for v in visits) / max(sum(v.times for v in visits), 1) > _WORTH
        }
        if not read:
            return stored
        tried = self._try(stored.node, stored.parallel, frozenset(stored.reads) | read)
        return replace(stored, reads=tried.read)

    def _try(self, node: Node, parallel: tuple[int, ...], reads: frozenset[Node]) -> _Tried:
        """The writes of a node written down, at the sizes at hand."""
        names = {**self._choices.arrays, **dict.fromkeys(reads, "stored")}
        choices = replace(self._choices, arrays=_Memory(names, node))
        visits: dict[Node, list[Visit]] = {}
        read: dict[Node, None] = {}
        cost, too_much, elements, threads = 0.0, False, 1.0, math.inf
        for write in writes(node, parallel):
            symbols = [f"t{k}" for k in range(len(write.domain))]
            extents = dict(zip(symbols, write.domain, strict=True))
            body = Body(choices, extents, most=_MOST_VISITS)
            at: At = tuple(Polynomial.symbol(s) for s in symbols)
            try:
                write.work(body, at, "stored")
            except (TooMuchError, RecursionError):
                too_much = True
            except RefusalError as error:
                error.line = error.line or write.node.line
                raise
            for one, several in body.visits.items():
                visits.setdefault(one, []).extend(several)
            read |= {one: None for one in body.read if not isinstance(one, Input)}
            cost += body.cost
            elements = max(_count(node.shape, choices), _count(write.domain, choices))
            threads = min(threads, _count(write.domain, choices))
        return _Tried(visits, tuple(read), cost, elements, threads, too_much)

    def _again(self, tried: _Tried, root: Node) -> frozenset[Node]:
        """Nodes that are computed so often that a launch of their own is worth it."""
        found = set()
        for node, visits in tried.visits.items():
            if node is root or isinstance(node, (Input, Numbers, Position, Index)):
                continue
            if isinstance(node, Map) and node.operation in ("cast", "narrowed"):
                continue
            if node in self._choices.arrays or is_stored(node) or node in tried.read:
                continue
            if tried.too_much:
                if len(visits) >= _VISITED:
                    found.add(node)
                continue
            if _splits(node, tried, self._choices):
                found.add(node)
                continue
            times, cost = (sum(getattr(v, f) for v in visits) for f in ("times", "cost"))
            often = times / _count(node.shape, self._choices)
            more = cost * (1 - 1 / max(often, 1.0))
            if often > _AGAIN and more > _WORTH * tried.elements and more > _SHARE * tried.cost:
                found.add(node)
        return frozenset(found)

    def _rows(self, node: Node, tried: _Tried, again: frozenset[Node]) -> tuple[int, ...]:
        """The axes along which all that is computed again differs; none where they are too few."""
        axes = set(range(len(node.shape)))
        for one in again:
            seen = {s for v in tried.visits[one] for p in v.at for s in symbols_of(p)}
            axes &= {k for k in axes if f"t{k}" in seen}
        chosen = tuple(sorted(axes))
        threads = _count(tuple(node.shape[k] for k in chosen), self._choices)
        side_by_side = chosen == tuple(range(len(chosen)))
        enough = threads >= (_ROWS if side_by_side else _THREADS)
        return chosen if chosen and len(chosen) < len(node.shape) and enough else ()


@dataclass(frozen=True)
class _Tried:
    """What a write would do: values by node, what it reads, its cost, elements and threads."""

    visits: Mapping[Node, list[Visit]]
    read: tuple[Node, ...]
    cost: float
    elements: float
    threads: float
    too_much: bool


class _Memory(dict[Node, str]):
    """Names of arrays; of what has to lie in memory as well, but for what is being written."""

    def __init__(self, names: Mapping[Node, str], own: Node) -> None:
        super().__init__(names)
        self._own = None if isinstance(own, Input) else own  # an input that is returned is read
        if self._own is not None:
            self.pop(self._own, None)

    def get(self, node: Node, default: str | None = None) -> str | None:  # type: ignore[override]
        if node is self._own:
            return default
        return super().get(node) or ("stored" if is_stored(node) else default)


def _too_much(node: Node) -> RefusalError:
    error = RefusalError(
        "one element depends on more intermediate values than one kernel can spell out",
        "put similar values into one array, and reduce, index or repeat that array",
    )
    error.line = node.line
    return error


def _splits(node: Node, tried: _Tried, choices: Choices) -> bool:
    """Whether few threads go through many elements for a result that they need for another such.

    Each of the two loops alone can be shared by more threads.
    """
    if not isinstance(node, Reduce) or len(node.source.shape) - 1 in node.axes:
        return False
    length = _count(node.source.shape, choices) / _count(node.shape, choices)
    if length < _APART or tried.threads >= _THREADS:
        return False
    return any(isinstance(n, Reduce) and node in _below(n) for n in tried.visits)


def _topmost(nodes: frozenset[Node]) -> frozenset[Node]:
    """Those that no other of them needs."""
    return frozenset(n for n in nodes if not any(n in _below(m) for m in nodes if m is not n))


def _below(node: Node) -> set[Node]:
    return set(ordered(iter((node,)))) - {node}
