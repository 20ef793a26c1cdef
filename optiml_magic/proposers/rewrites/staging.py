"""What a loop reads of global memory again and again, and how a block could bring it in once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optiml_magic.proposers.rewrites.accesses import Access, accesses, pattern
from optiml_magic.proposers.rewrites.affine import MEMORY, THREADS, UNKNOWN, Affine
from optiml_magic.proposers.rewrites.guards import Condition, bare, leaves
from optiml_magic.source.operators import SIZES
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.polynomial import Polynomial
    from optiml_magic.proposers.rewrites.kernel import Variable

Reason = Literal["strided", "reused", "uniform", "none"]
_CONDITIONAL = ("if_statement", "switch_statement", "conditional_expression", "lambda_expression",
                "for_statement", "while_statement", "do_statement", "try_statement")  # fmt: skip


@dataclass(frozen=True)
class UnitLoop:
    """``for (T i = first; i < last; ++i)`` whose bounds are the same for all threads of a block."""

    node: Node
    counter: Variable
    first: Node
    compare: str  # < or <=
    last: Node
    body: Node


@dataclass(frozen=True)
class Operand:
    """An element that each round of the loop reads: where in the text, and along which thread axis.

    ``axis`` is empty where all threads read one element. ``along_loop`` says that neighbours in
    memory are neighbours in the loop, so that a tile has one row per thread.
    """

    reads: tuple[Access, ...]
    axis: str
    along_loop: bool
    reason: Reason

    @property
    def array(self) -> Variable:
        return self.reads[0].array

    @property
    def bytes(self) -> int:
        return element_bytes(self.array)


def element_bytes(array: Variable) -> int:
    """Bytes of an array's element; 8 for a type that is not known, such as a template's."""
    return SIZES.get(array.element, 8)


def unit_loops(affine: Affine) -> Iterator[UnitLoop]:
    """The loops of a kernel that may be cut into tiles of rounds, with barriers in between."""
    for node in walk(affine.kernel.body):
        loop = _unit_loop(affine, node) if node.type == "for_statement" else None
        if loop is not None and not leaves(node) and not _waits(affine, loop.body):
            yield loop


def operands(affine: Affine, loop: UnitLoop, sizes: Sequence[int]) -> list[Operand]:
    """What the loop reads in every round, once per array and index."""
    found = accesses(affine)
    stored = {a.array.start for a in found if a.store} | escaped(affine, found)
    groups: dict[tuple[int, Polynomial], list[Access]] = {}
    for access in found:
        reads = access.load and not access.store and access.loops[:1] == (loop.node,)
        inside = access.node.start_byte >= loop.body.start_byte
        if reads and inside and access.array.start not in stored and always(access.node, loop.body):
            groups.setdefault((access.array.start, access.index), []).append(access)
    made = (_operand(affine, loop, tuple(group), sizes) for group in groups.values())
    return [operand for operand in made if operand is not None]


def loads_under(
    affine: Affine, loop: UnitLoop, operand: Operand, conditions: Sequence[Condition]
) -> list[Condition] | None:
    """The guards that a tile's loads have to ask; None where they are not certainly enough.

    A guard over other thread axes is left out: what is loaded does not depend on them, and some
    block of the grid whose threads pass that guard loads the same elements.
    """
    asked = []
    depends = affine.form_depends(operand.reads[0].index)
    bounds = affine.depends(loop.first) | affine.depends(loop.last)
    for condition in conditions:
        for part in condition.conjuncts(affine.kernel):
            needs = affine.depends(part.node)
            threads = needs & set(THREADS)
            if needs & {UNKNOWN, MEMORY}:
                return None
            if threads <= {operand.axis}:
                asked.append(part)
            elif operand.axis in threads:
                return None
            else:
                blocks = {"blockIdx." + name[-1] for name in threads}
                if blocks & (depends | bounds) or not _first_thread_passes(affine, part):
                    return None
    return asked


def reduces_products(affine: Affine, loop: UnitLoop, staged: Sequence[Operand]) -> bool:
    """Whether the body only adds products of staged elements: zeros then change nothing."""
    spans = {(r.node.start_byte, r.node.end_byte) for o in staged for r in o.reads}
    body = loop.body
    steps = body.named_children if body.type == "compound_statement" else [body]
    steps = [step for step in steps if step.type != "comment"]
    return bool(steps) and all(_adds_zero(affine, step, spans) for step in steps)


def _unit_loop(affine: Affine, node: Node) -> UnitLoop | None:
    kernel = affine.kernel
    counters = [v for v in kernel.variables if v.scope == node]
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    update = node.child_by_field_name("update")
    if len(counters) != 1 or condition is None or body is None or update is None:
        return None
    counter, condition = counters[0], bare(condition)
    if kernel.loop_of(counter) != node or counter.value is None or counter.pointer:
        return None
    step = "".join(kernel.text(update).split()).replace(counter.name, "i")
    if step not in ("++i", "i++", "i+=1", "i=i+1") or condition.type != "binary_expression":
        return None
    left, op, right = condition.children
    if op.type not in ("<", "<=") or bare(left).type != "identifier":
        return None
    for bound in (counter.value, right):
        if not affine.uniform(bound) or MEMORY in affine.depends(bound):
            return None
    if kernel.resolve(bare(left)) != counter or counter.symbol in affine.depends(right):
        return None
    rounds = (affine.form(right) - affine.form(counter.value)).value
    if rounds is not None and rounds < 8:
        return None
    return UnitLoop(node, counter, counter.value, op.type, right, body)


def _operand(
    affine: Affine, loop: UnitLoop, reads: tuple[Access, ...], sizes: Sequence[int]
) -> Operand | None:
    index = reads[0].index
    depends = affine.form_depends(index)
    per_round = affine.coefficient(index, loop.counter.symbol)
    threads = [name for name in THREADS if name in depends]
    if per_round is None or not per_round.terms or depends & {UNKNOWN, MEMORY} or len(threads) > 1:
        return None
    if not threads:
        return Operand(reads, "", along_loop=True, reason="uniform")
    axis = threads[0]
    per_thread = affine.coefficient(index, axis)
    if per_thread is None:
        return None
    along_loop, along_threads = (c.value in (1, -1) for c in (per_round, per_thread))
    if along_loop == along_threads:  # a sliding window, or no neighbours at all
        return None
    place = THREADS.index(axis)
    if place >= len(sizes):
        return None
    shared_by = math.prod(sizes) // sizes[place]
    far = pattern(affine, reads[0], "threadIdx.x") == "strided" and sizes[0] > 1
    reason: Reason = "strided" if far else "reused" if shared_by > 1 else "none"
    return Operand(reads, axis, along_loop, reason)


def _first_thread_passes(affine: Affine, part: Condition) -> bool:
    """Whether a guard bounds a growing index, so that the first thread of a grid passes it."""
    if part.node.type != "binary_expression":
        return False
    left, op, right = part.node.children
    upper = ("<", "<=") if not part.negated else (">=", ">")
    if op.type not in (*upper, *((">", ">=") if not part.negated else ("<=", "<"))):
        return False
    low, high = (left, right) if op.type in upper else (right, left)
    form, bound = affine.form(low), affine.depends(high)
    grows = all(
        c > 0 and any(name.startswith(("threadIdx", "blockIdx")) for name in m)
        and all(name.split(".")[0] in ("threadIdx", "blockIdx", "blockDim") for name in m)
        for m, c in form.terms
    )  # fmt: skip
    return grows and not any(name.startswith(("threadIdx", "blockIdx")) for name in bound)


def always(node: Node, body: Node, *, guards: bool = False) -> bool:
    """Whether ``node`` runs whenever ``body`` does; with ``guards``, an ``if`` may decide."""
    while node != body:
        parent = node.parent
        assert parent is not None
        guard = guards and parent.type == "if_statement"
        if parent.type in _CONDITIONAL and not guard:
            return False
        if parent.type == "binary_expression" and parent.children[1].type in ("&&", "||"):
            return False
        node = parent
    return True


def _waits(affine: Affine, body: Node) -> bool:
    text = affine.kernel.text(body)
    return any(word in text for word in ("__sync", "_sync(", "__shared__", "asm", "__ballot"))


def escaped(affine: Affine, found: Sequence[Access]) -> set[int]:
    """Arrays that are not const and used in another way than by the accesses that were found."""
    seen = [(a.node.start_byte, a.node.end_byte) for a in found]
    escaped = set()
    for node in walk(affine.kernel.body):
        if node.type != "identifier":
            continue
        variable = affine.kernel.resolve(node)
        if variable is None or not variable.parameter or not variable.pointer:
            continue
        inside = any(start <= node.start_byte < end for start, end in seen)
        if "const" not in variable.type and not inside:
            escaped.add(variable.start)
    return escaped


def _adds_zero(affine: Affine, step: Node, spans: set[tuple[int, int]]) -> bool:
    if step.type != "expression_statement" or not step.named_children:
        return False
    node = step.named_children[0]
    if node.type != "assignment_expression":
        return False
    left, op, right = node.children
    total = affine.kernel.resolve(left) if left.type == "identifier" else None
    if total is None or total.pointer or total.array or op.type not in ("=", "+=", "-="):
        return False
    if op.type != "=":
        return _zero(affine, right, spans)
    right = bare(right)
    name = affine.kernel.text(left)
    if right.type == "binary_expression" and right.children[1].type == "+":
        first, second = right.children[0], right.children[2]
        if affine.kernel.text(first) == name:
            return _zero(affine, second, spans)
        return affine.kernel.text(second) == name and _zero(affine, first, spans)
    return _fused(affine, right, spans, name)


def _zero(affine: Affine, node: Node, spans: set[tuple[int, int]]) -> bool:
    """Whether an expression is zero once every staged element in it is."""
    node = bare(node)
    if (node.start_byte, node.end_byte) in spans:
        return True
    if node.type == "binary_expression":
        left, op, right = node.children
        sides = [_zero(affine, side, spans) for side in (left, right)]
        literal = any(bare(side).type == "number_literal" for side in (left, right))
        return all(sides) if op.type in "+-" else op.type == "*" and (
            all(sides) or (any(sides) and literal)
        )  # fmt: skip
    if node.type == "cast_expression":
        value = node.child_by_field_name("value")
        return value is not None and _zero(affine, value, spans)
    if node.type == "call_expression" and len(node.named_children) == 2:
        called, arguments = node.named_children
        converts = called.type == "primitive_type" or affine.kernel.text(called).startswith(
            ("static_cast", "__half2float")
        )
        inside = arguments.named_children
        return converts and len(inside) == 1 and _zero(affine, inside[0], spans)
    return False


def _fused(affine: Affine, node: Node, spans: set[tuple[int, int]], name: str) -> bool:
    """``fma(p, q, total)`` with both factors staged."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    arguments = node.child_by_field_name("arguments")
    if called is None or arguments is None or affine.kernel.text(called) not in (
        "fma", "fmaf", "__fmaf_rn", "__fma_rn"
    ):  # fmt: skip
        return False
    inside = arguments.named_children
    return len(inside) == 3 and affine.kernel.text(inside[2]) == name and all(
        _zero(affine, factor, spans) for factor in inside[:2]
    )  # fmt: skip
