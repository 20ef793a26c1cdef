"""The loops of a kernel's graph, by what dominates what."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.ptx.cfg import Block, Graph


def innermost(graph: Graph) -> tuple[tuple[Block, ...], ...]:
    """The loops that hold no other, each as its blocks in the order of the text."""
    every = {frozenset(body) for body in _natural(graph.blocks)}
    inner = [body for body in every if not any(other < body for other in every)]
    return tuple(tuple(graph.blocks[at] for at in sorted(body)) for body in sorted(inner, key=min))


def _natural(blocks: list[Block]) -> Iterator[set[int]]:
    """The bodies of the natural loops (Aho, Sethi, Ullman): a jump back to what dominates it."""
    before: list[set[int]] = [set() for _ in blocks]
    for block in blocks:
        for successor in block.successors:
            before[successor].add(block.index)
    above = _dominators(blocks, before)
    for block in blocks:
        for head in block.successors:
            if head in above[block.index]:
                body, todo = {head}, [block.index]
                while todo:
                    at = todo.pop()
                    if at not in body:
                        body.add(at)
                        todo += before[at]
                yield body


def _dominators(blocks: list[Block], before: list[set[int]]) -> list[set[int]]:
    every = set(range(len(blocks)))
    above = [{0}, *(set(every) for _ in blocks[1:])]
    changed = True
    while changed:
        changed = False
        for at in range(1, len(blocks)):
            met = [above[b] for b in before[at]]
            found = {at} | (set.intersection(*met) if met else set())
            if found != above[at]:
                above[at], changed = found, True
    return above
