"""Whether a kernel knows its threads only by their place in the grid, however it is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.proposers.rewrites.affine import INTEGRAL, Affine, uncast
from optiml_magic.proposers.rewrites.kernel import Kernel, builtin
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_COOPERATION = ("__syncthreads", "__syncwarp", "__shfl", "__ballot", "__any", "__all", "__match",
                "__reduce_", "__activemask", "cooperative_groups", "__shared__", "warpSize",
                "this_thread_block", "asm", "__threadfence")  # fmt: skip


def cooperative(kernel: Kernel) -> bool:
    """Whether the threads of a block or a warp work together, so that their grouping matters."""
    code = _code(kernel)
    return any(word in code for word in _COOPERATION)


def helpers_see_threads(kernel: Kernel) -> bool:
    """Whether a macro or a device function outside of the kernel reads thread indices."""
    outside = (
        kernel.syntax.text[: kernel.function.start_byte]
        + kernel.syntax.text[kernel.function.end_byte :]
    )
    others = [
        node
        for node in walk(kernel.syntax.root)
        if node.type == "function_definition" and any(c.type == "__global__" for c in node.children)
    ]
    for other in others:
        outside = outside.replace(kernel.syntax.text[other.start_byte : other.end_byte], b"")
    return any(word in outside for word in (b"threadIdx", b"blockIdx", b"blockDim", b"gridDim"))


def only_global(affine: Affine, axis: str, extent: int) -> bool:
    """Whether ``axis`` is only ``blockIdx * blockDim + threadIdx``, or a stride of the grid.

    ``extent`` is the block's: a literal of that value may stand for ``blockDim``.
    """
    block, thread = f"blockIdx.{axis}", f"threadIdx.{axis}"
    size, grid = f"blockDim.{axis}", f"gridDim.{axis}"
    for sink in sinks(affine):
        form = affine.form(sink)
        per_block, per_thread = form.coefficient(block), form.coefficient(thread)
        if per_block is None or per_thread is None:
            return False
        if per_block not in (
            per_thread * Polynomial.symbol(size),
            per_thread * Polynomial.constant(extent),
        ):
            return False
        for monomial, _ in form.terms:
            if (size in monomial) != (block in monomial or grid in monomial) and (
                size in monomial or grid in monomial
            ):
                return False
    return True


def sinks(affine: Affine) -> Iterator[Node]:
    """The largest sums of products, apart from those that only define a steady local."""
    yield from _sinks(affine, affine.kernel.body)


def _sinks(affine: Affine, node: Node) -> Iterator[Node]:
    if node.type == "init_declarator":
        variable = next((v for v in affine.kernel.variables if v.value == _value(node)), None)
        if variable is not None and affine.kernel.steady(variable) and not variable.pointer and (
            not variable.array and INTEGRAL.fullmatch(variable.type)
        ):  # fmt: skip
            value = _value(node)
            assert value is not None
            yield from _below(affine, value)
            return
    if _arithmetic(node):
        yield node
        yield from _below(affine, node)
        return
    for child in node.named_children:
        yield from _sinks(affine, child)


def _below(affine: Affine, node: Node) -> Iterator[Node]:
    """The sinks inside the opaque parts of a sum of products."""
    if builtin(node) or node.type in ("identifier", "number_literal"):
        return
    if _arithmetic(node):
        for child in node.children if uncast(node) is None else [uncast(node)]:
            if child is not None:
                yield from _below(affine, child)
        return
    for child in node.named_children:
        yield from _sinks(affine, child)


def _arithmetic(node: Node) -> bool:
    if builtin(node) or node.type in ("identifier", "number_literal") or uncast(node) is not None:
        return True
    return (node.type == "binary_expression" and node.children[1].type in ("+", "-", "*")) or (
        node.type == "unary_expression" and node.children[0].type in ("+", "-")
    )


def _value(node: Node) -> Node | None:
    return node.child_by_field_name("value")


def _code(kernel: Kernel) -> str:
    return "".join(
        kernel.text(node) + " "
        for node in walk(kernel.body)
        if node.child_count == 0 and node.type not in ("comment", "string_content")
    )
