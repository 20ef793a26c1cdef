"""What one thread did with a loop, a warp does: its lanes share the rounds.

All lanes do the same outside of the shared loops, with the same values; a reduction ends with a
butterfly of shuffles, after which every lane holds the whole. Source: CUDA C++ Programming Guide,
"Warp Shuffle Functions".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.accesses import Access, accesses, pattern
from optiml_magic.proposers.rewrites.affine import INTEGRAL, Affine
from optiml_magic.proposers.rewrites.indices import cooperative, helpers_see_threads, only_global
from optiml_magic.proposers.rewrites.kernel import Kernel, Variable, builtin
from optiml_magic.proposers.rewrites.launches import extents, launched, recut, relaunch
from optiml_magic.proposers.rewrites.layout import indentation
from optiml_magic.proposers.rewrites.shared_loops import SharedLoop, place, shared_loop
from optiml_magic.proposers.rewrites.surgery import NotCertainError, Surgery
from optiml_magic.source.edits import apply
from optiml_magic.source.expressions import Binary, Name, Number
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from optiml_magic.model.view import View
    from optiml_magic.source.directives import LaunchDirective
    from optiml_magic.source.program import Program

_LANES = 32
_LOOPS = ("for_statement", "while_statement", "do_statement")
_ORDERS = {"+": "the order of additions", "*": "the order of multiplications"}
_MEMORY = ("subscript_expression", "pointer_expression")


class WarpPerItem:
    """One-dimensional kernels whose threads each walk along a row of their own."""

    name = "warp_per_item"

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """One idea for each kernel with a loop that reads consecutive elements."""
        del view
        for kernel, launch in launched(program):
            try:
                text, shared = _rewritten(program, kernel, launch)
            except NotCertainError as why:
                yield Refusal(self.name, f"`{kernel.name}`: {why}")
                continue
            counters = dict.fromkeys(loop.counter.name for loop in shared)
            yield Idea.of(
                Proposal(
                    text,
                    f"a warp per item: 32 lanes share the loop over {', '.join(counters)}",
                    self.name,
                    "Each thread walked along a row of its own, so the lanes of a warp read "
                    "elements that lie a row apart. With a warp per row, neighbouring lanes read "
                    "neighbouring elements, 32 times as many threads hide the latency, and "
                    "shuffles add up.",
                    Hypothesis(
                        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                        "lower",
                        "a warp reads 32 consecutive elements of one row",
                        (1.5, 8.0),
                    ),
                    prior=0.78,
                    arithmetic=_arithmetic(shared),
                )
            )


def _rewritten(
    program: Program, kernel: Kernel, launch: LaunchDirective
) -> tuple[str, tuple[SharedLoop, ...]]:
    new = _relaunched(program, launch)
    affine = Affine(kernel)
    (size,) = extents(program, launch) or (0,)
    if cooperative(kernel) or helpers_see_threads(kernel) or not only_global(affine, "x", size):
        raise NotCertainError("threads that know their place")
    if any(v.array and not v.parameter for v in kernel.variables):
        raise NotCertainError("an array of each thread's own")
    items = list(_items(affine, size))
    loops = [_shared(affine, node) for node in _outermost(kernel.body)]
    shared = [loop for loop in loops if isinstance(loop, SharedLoop)]
    if not items or not any(_consecutive(affine, loop) for loop in shared):
        raise NotCertainError("nothing to gain")
    outside = _guarded_stores(affine, shared)
    surgery = Surgery(kernel)
    lane = surgery.fresh("lane")
    opening = kernel.body.children[0].end_byte
    blanks = indentation(kernel, kernel.body.named_children[0].start_byte)
    surgery.replace(opening, opening, f"\n{blanks}const int {lane} = threadIdx.x % {_LANES};")
    for value in items:
        surgery.replace(value.start_byte, value.end_byte, f"({kernel.text(value)}) / {_LANES}")
    for statement in outside:
        alone = statement.parent is not None and statement.parent.type != "compound_statement"
        head, tail = ("{ ", " }") if alone else ("", "")  # an else must not change its if
        surgery.replace(statement.start_byte, statement.start_byte, f"{head}if ({lane} == 0) ")
        surgery.replace(statement.end_byte, statement.end_byte, tail)
    offset = surgery.fresh("offset")
    for loop in shared:
        _share(surgery, loop, lane, offset)
    text = apply(program.text, [relaunch(program, launch, new), *surgery.edits()])
    return text, tuple(shared)


def _arithmetic(shared: Sequence[SharedLoop]) -> tuple[str, ...]:
    """Sums and products of integers come to the same in any order, and so does what is chosen."""
    inexact = {
        reduction.operation
        for loop in shared
        for reduction in loop.reductions
        if not INTEGRAL.fullmatch(reduction.variable.type + " ")
    }
    return tuple(words for operation, words in _ORDERS.items() if operation in inexact)


def _relaunched(program: Program, launch: LaunchDirective) -> LaunchDirective:
    """The launch with 32 times as many threads, in blocks of the same size."""
    sizes = extents(program, launch)
    if sizes is None or len(sizes) != 1 or len(launch.grid) != 1:
        raise NotCertainError("a block of several axes")
    names = launch.block[0].names
    possible = {v for tune in program.tunes if tune.name in names for v in tune.values} | {*sizes}
    if any(value % _LANES for value in possible):
        raise NotCertainError("a block that is no multiple of a warp")
    block = launch.block[0].tree
    match block:
        case Number(value):
            warps: Number | Binary = Number(value // _LANES)
        case Name():
            warps = Binary("/", block, Number(_LANES))
        case _:
            raise NotCertainError("a block that is an expression")
    grid = recut(launch.grid[0], block, warps)
    if grid is None:
        raise NotCertainError("a grid that is not cut by the block")
    return replace(launch, grid=(grid,))


def _items(affine: Affine, size: int) -> Iterator[Node]:
    """The values of the locals that are the thread's number in the grid; no other index may be."""
    thread, block = Polynomial.symbol("threadIdx.x"), Polynomial.symbol("blockIdx.x")
    numbers = [
        block * extent + thread
        for extent in (Polynomial.symbol("blockDim.x"), Polynomial.constant(size))
    ]
    found: list[Variable] = []
    for variable in affine.kernel.variables:
        integral = INTEGRAL.fullmatch(variable.type + " ") and not variable.pointer
        if variable.value is not None and integral and affine.kernel.steady(variable):
            own = [n for n in walk(variable.value) if builtin(n)]
            if own and affine.form(variable.value) in numbers:
                found.append(variable)
    spans = [(v.value.start_byte, v.value.end_byte) for v in found if v.value is not None]
    for node in affine.kernel.builtins():
        if not any(start <= node.start_byte < end for start, end in spans):
            raise NotCertainError("an index that is no local's value")
    yield from (v.value for v in found if v.value is not None)


def _outermost(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in _LOOPS:
            yield child
        else:
            yield from _outermost(child)


def _shared(affine: Affine, node: Node) -> SharedLoop | None:
    """The loop as a shared one; None where every lane may just as well run all of it."""
    try:
        return shared_loop(affine, node)
    except NotCertainError:
        writes = any(
            a.store
            for a in accesses(affine)
            if node.start_byte <= a.node.start_byte < node.end_byte
        )
        if writes or any(n.type == "call_expression" for n in walk(node)):
            raise
        return None


def _consecutive(affine: Affine, loop: SharedLoop) -> bool:
    """Whether the rounds read consecutive elements where neighbouring threads read far apart."""
    for access in loop.touched:
        stride = affine.coefficient(access.index, loop.counter.symbol)
        along = access.load and stride is not None and stride.value == 1
        if along and pattern(affine, access, "threadIdx.x") == "strided":
            return True
    return False


def _guarded_stores(affine: Affine, shared: Sequence[SharedLoop]) -> list[Node]:
    """The statements that store outside of the shared loops: for one lane alone.

    Refuses arrays that one lane writes and another one reads.
    """
    found = accesses(affine)
    inside = {a.node.start_byte: loop for loop in shared for a in loop.touched}
    statements: dict[int, Node] = {}
    written: list[Access] = []
    for store in (a for a in found if a.store):
        loop = inside.get(store.node.start_byte)
        same = [a for a in found if a.array == store.array]
        if loop is None:
            statement = _statement(store.node)
            statements[statement.start_byte] = statement
            written += same
        elif not all(_same_lane(affine, a, store, loop, inside) for a in same):
            raise NotCertainError("an element that another lane wrote")
    for name, call in affine.kernel.calls():
        if name.startswith("atomic"):
            statement = _statement(call)
            if any(_within(call, loop.node) for loop in shared) or statement.type not in (
                "expression_statement"
            ):
                raise NotCertainError("an atomic operation in a loop")
            statements[statement.start_byte] = statement
    for access in written:
        if not any(_within(access.node, statement) for statement in statements.values()):
            raise NotCertainError("an array that is written by one lane and used by all")
    return list(statements.values())


def _same_lane(
    affine: Affine, one: Access, store: Access, loop: SharedLoop, inside: dict[int, SharedLoop]
) -> bool:
    """Whether two accesses in shared loops of one beginning name one element in one round."""
    other = inside.get(one.node.start_byte)
    if other is None or other.counter.value is None or loop.counter.value is None:
        return False
    begins = affine.form(other.counter.value) == affine.form(loop.counter.value)
    return begins and place(one, other.counter) == place(store, loop.counter)


def _statement(node: Node) -> Node:
    """The expression statement around a node."""
    parent: Node | None = node
    while parent is not None and not parent.type.endswith("statement"):
        parent = parent.parent
    if parent is None or parent.type != "expression_statement":
        raise NotCertainError("a store that is no statement")
    if parent.parent is not None and parent.parent.type in _LOOPS:
        raise NotCertainError("a store in a loop")
    return parent


def _share(surgery: Surgery, loop: SharedLoop, lane: str, offset: str) -> None:
    kernel, node = surgery.kernel, loop.node
    value, update = loop.counter.value, node.child_by_field_name("update")
    assert value is not None
    assert update is not None
    first = kernel.text(value)
    surgery.replace(value.start_byte, value.end_byte, lane if first == "0" else f"{first} + {lane}")
    surgery.replace(update.start_byte, update.end_byte, f"{loop.counter.name} += {_LANES}")
    blanks = surgery.blanks(node)
    before = node
    while (
        before.prev_named_sibling is not None and before.prev_named_sibling.type == "preproc_call"
    ):
        before = before.prev_named_sibling
    resets = [
        f"if ({lane} != 0) {r.variable.name} = {r.neutral};\n{blanks}"
        for r in loop.reductions
        if r.neutral is not None
    ]
    surgery.replace(before.start_byte, before.start_byte, "".join(resets))
    after = [
        f"\n{blanks}for (int {offset} = {_LANES // 2}; {offset} > 0; {offset} /= 2) "
        + r.combined(f"__shfl_xor_sync(0xffffffffu, {r.variable.name}, {offset})")
        for r in loop.reductions
    ]
    if loop.stores:
        after.append(f"\n{blanks}__syncwarp();")
    surgery.replace(node.end_byte, node.end_byte, "".join(after))


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte
