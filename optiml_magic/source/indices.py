"""What the index expressions of a kernel say of its launch.

An ``Index`` is a local (or an expression) that runs over blocks, threads or both:
``blockIdx.A * stride + threadIdx.B``, ``blockIdx.A`` alone, or ``threadIdx.B`` stepping through a
loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from optiml_magic.source.values import Values

AXES = "xyz"
BUILTINS = ("blockIdx", "threadIdx", "blockDim", "gridDim")
_MAX_DEPTH = 30


@dataclass(frozen=True)
class Index:
    """``grid`` and ``thread`` are axes 0 to 2 or None.

    ``stride`` is the text of the number of threads of a block on ``thread``, where the code fixes
    it; None where it reads ``blockDim``.
    """

    grid: int | None
    thread: int | None
    stride: str | None = None
    steps: bool = False


class Indices:
    """The index variables of one kernel body."""

    def __init__(self, body: Node, values: Values) -> None:
        self.values = values
        self.steps = _steps(body)
        self.found: dict[str, Index] = {}
        for node in walk(body):
            if node.type == "init_declarator":
                name = declared(node).name
                if (index := self._variable(name, node)) is not None:
                    self.found[name] = index

    def of(self, node: Node, depth: int = 0) -> Index | None:
        """The index that an expression is, through parentheses, casts and locals."""
        node = bare(node)
        if depth > _MAX_DEPTH:
            return None
        if node.type == "identifier":
            return self.found.get(text_of(node))
        if (axis := _builtin(node, "blockIdx")) is not None:
            return Index(axis, None)
        if (axis := _builtin(node, "threadIdx")) is not None:
            return Index(None, axis)
        if node.type == "binary_expression" and _operator(node) == "+":
            sides = [node.child_by_field_name(side) for side in ("left", "right")]
            for one, other in (sides, sides[::-1]):
                if one is not None and other is not None:
                    found = self._sum(one, other, depth)
                    if found is not None:
                        return found
        return None

    def _sum(self, start: Node, offset: Node, depth: int) -> Index | None:
        """``start`` as the first item of a block and ``offset`` as ``threadIdx``."""
        thread = self.of(offset, depth + 1)
        if thread is None or thread.thread is None or thread.grid is not None or thread.steps:
            return None
        start = self._followed(start)
        if start.type != "binary_expression" or _operator(start) != "*":
            return None
        factors = [start.child_by_field_name(side) for side in ("left", "right")]
        for block, width in (factors, factors[::-1]):
            if block is None or width is None:
                continue
            axis = _builtin(self._followed(block), "blockIdx")
            if axis is None:
                continue
            if _builtin(self._followed(width), "blockDim") == axis == thread.thread:
                return Index(axis, thread.thread)
            if (text := self.values.text(width)) is not None:
                return Index(axis, thread.thread, text)
        return None

    def _followed(self, node: Node) -> Node:
        """An expression with unchanging locals replaced by what they are."""
        for _ in range(_MAX_DEPTH):
            node = bare(node)
            local = self.values.definition(text_of(node)) if node.type == "identifier" else None
            if local is None:
                return node
            node = local
        return node

    def _variable(self, name: str, node: Node) -> Index | None:
        """The index a local is: never changed, or stepped by all the threads that count it."""
        value = node.child_by_field_name("value")
        index = self.of(value) if value is not None else None
        if index is None or self.values.declared.get(name) != 1:
            return self._same_everywhere(name, node) if index is not None else None
        if name not in self.values.changed:
            return index
        return self._stepped(index, self.steps.get(name))

    def _same_everywhere(self, name: str, node: Node) -> Index | None:
        """A loop variable declared in several loops counts if each of them is the same index."""
        value = node.child_by_field_name("value")
        index = self.of(value) if value is not None else None
        if index is None:
            return None
        stepped = self._stepped(index, self.steps.get(name))
        return stepped if self.found.get(name, stepped) == stepped else None

    def _stepped(self, index: Index, steps: list[Node | None] | None) -> Index | None:
        results = {self._step(index, step) for step in steps or [None]}
        return results.pop() if len(results) == 1 else None

    def _step(self, index: Index, step: Node | None) -> Index | None:
        if step is None:
            return None
        factors = self._factors(step)
        grids = [axis for f in factors if (axis := _builtin(f, "gridDim")) is not None]
        blocks = [axis for f in factors if (axis := _builtin(f, "blockDim")) is not None]
        rest = [f for f in factors if _builtin(f, "gridDim") is None
                and _builtin(f, "blockDim") is None]  # fmt: skip
        if grids != ([index.grid] if index.grid is not None else []):
            return None
        if index.thread is None:
            return Index(index.grid, None, None, steps=True) if not blocks + rest else None
        if blocks == [index.thread] and not rest:
            return Index(index.grid, index.thread, index.stride, steps=True)
        if blocks or len(rest) != 1 or (text := self.values.text(rest[0])) is None:
            return None
        if index.grid is not None and index.stride != text:
            return None
        return Index(index.grid, index.thread, text, steps=True)

    def _factors(self, node: Node) -> list[Node]:
        found: list[Node] = []
        stack = [node]
        while stack and len(found) < 8:
            current = self._followed(stack.pop())
            if current.type == "binary_expression" and _operator(current) == "*":
                sides = [current.child_by_field_name(side) for side in ("left", "right")]
                stack += [side for side in sides if side is not None]
            else:
                found.append(current)
        return found


def bare(node: Node) -> Node:
    """An expression without the parentheses and casts around it."""
    while True:
        inner = None
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            inner = node.named_child(0)
        elif node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "call_expression":
            function = text_of(node.child_by_field_name("function"))
            listed = node.child_by_field_name("arguments")
            if function.startswith("static_cast<") and listed is not None:
                inner = listed.named_child(0)
        if inner is None:
            return node
        node = inner


def axes_used(body: Node, builtins: tuple[str, ...] = BUILTINS) -> frozenset[int]:
    """The axes of any of these built-in variables that a body reads."""
    return frozenset(
        axis
        for node in walk(body)
        for builtin in builtins
        if (axis := _builtin(node, builtin)) is not None
    )


def _builtin(node: Node, name: str) -> int | None:
    """The axis of ``name.x``, ``name.y`` or ``name.z``."""
    if node.type != "field_expression":
        return None
    spelled = "".join(text_of(node).split())
    return AXES.index(spelled[-1]) if spelled in (f"{name}.{axis}" for axis in AXES) else None


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator"))


def _steps(body: Node) -> dict[str, list[Node | None]]:
    """By name what each change adds; None for a change that is no ``+=``."""
    found: dict[str, list[Node | None]] = {}
    for node in walk(body):
        if node.type == "assignment_expression":
            target, value = (node.child_by_field_name(side) for side in ("left", "right"))
            step = value if _operator(node) == "+=" else None
        elif node.type == "update_expression":
            target, step = node.child_by_field_name("argument"), None
        else:
            continue
        if target is not None and target.type == "identifier":
            found.setdefault(text_of(target), []).append(step)
    return found
