"""Which block extents a kernel is certainly right for, and a launch rewritten to tune them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.accesses import accesses
from optiml_magic.proposers.rewrites.indices import cooperative, only_global
from optiml_magic.proposers.rewrites.kernel import builtin
from optiml_magic.proposers.rewrites.launches import AXES, expression, extents, recut
from optiml_magic.proposers.rewrites.layout import fresh
from optiml_magic.source.directives import Directive, LaunchDirective, TuneDirective
from optiml_magic.source.edits import Edit
from optiml_magic.source.expressions import Name, Number, parse_expression
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.affine import Affine
    from optiml_magic.source.program import Program

_LINE = (64, 128, 256, 512, 1024)
_PLANE = ((8, 16, 32, 64, 128), (1, 2, 4, 8, 16, 32), ())


@dataclass(frozen=True)
class TunedBlock:
    """A launch whose block extents are tuned names; ``names`` has one C expression per axis."""

    launch: LaunchDirective
    tunes: tuple[Directive, ...]
    edits: tuple[Edit, ...]  # literals of the kernel that stood for an extent
    names: tuple[str, ...]
    extents: tuple[int, ...]


def tuned_block(program: Program, affine: Affine, launch: LaunchDirective) -> TunedBlock | None:
    """The launch with every extent that may certainly vary turned into a tuned name.

    None where the extents are not known. What may not vary, and what is tuned already, stays.
    """
    sizes = extents(program, launch)
    if sizes is None:
        return None
    free = [axis for axis in range(len(sizes)) if len(_values(affine, launch, sizes, axis)) > 1]
    grid, block = list(launch.grid), list(launch.block)
    names, edits, chosen = [str(size) for size in launch.block], [], []
    for axis in free:
        wanted = "BLOCK" if len(sizes) == 1 else f"BLOCK_{AXES[axis].upper()}"
        name = fresh(wanted, program.text)
        cut = recut(grid[axis], block[axis].tree, Name(name)) if axis < len(grid) else None
        grid[axis : axis + 1] = [cut or grid[axis]] if axis < len(grid) else []
        block[axis] = expression(Name(name))
        chosen.append((name, axis))
        names[axis] = name
        edits += [
            Edit(n.start_byte, n.end_byte, name) for n in tied_literals(affine, sizes[axis], axis)
        ]
    tunes = tuple(_tunes(affine, launch, sizes, chosen))
    new = replace(launch, grid=tuple(grid), block=tuple(block))
    return TunedBlock(new, tunes, tuple(edits), tuple(names), sizes)


def _tunes(
    affine: Affine,
    launch: LaunchDirective,
    sizes: tuple[int, ...],
    chosen: list[tuple[str, int]],
) -> Iterator[TuneDirective]:
    varying = [name for name, _ in chosen]
    fixed = [str(s) for axis, s in enumerate(launch.block)
             if axis not in {a for _, a in chosen} and sizes[axis] > 1]  # fmt: skip
    threads = " * ".join(varying + [f"({f})" for f in fixed])
    for name, axis in chosen:
        last = name == varying[-1]
        condition = parse_expression(f"{threads} <= 1024") if last and "*" in threads else None
        yield TuneDirective(name, _values(affine, launch, sizes, axis), sizes[axis], condition)


def _values(
    affine: Affine, launch: LaunchDirective, sizes: tuple[int, ...], axis: int
) -> tuple[int, ...]:
    """Extents along ``axis`` for which the kernel certainly computes the same."""
    own, old = sizes[axis], launch.block[axis].tree
    if not isinstance(old, Number) or "__launch_bounds__" in affine.kernel.text(
        affine.kernel.function
    ):
        return (own,)
    wanted = {*(_LINE if len(sizes) == 1 else _PLANE[axis])}
    wanted = {value for value in wanted if value <= 1024}
    cut = axis < len(launch.grid) and recut(launch.grid[axis], old, Name("B")) is not None
    other_axes = (g for a, g in enumerate(launch.grid) if a != axis)
    if cooperative(affine.kernel):
        wanted = (
            _cooperative_values(affine, sizes, wanted) if not cut or _strided(affine) else set()
        )
    elif not (cut and only_global(affine, AXES[axis], own)):
        wanted = set()
    if any(recut(grid, old, Name("B")) is not None for grid in other_axes) and len(set(sizes)) > 1:
        wanted = set()
    if not guarded(affine, axis):
        wanted = {value for value in wanted if own % value == 0}
    if not _uses_extent(affine, own, axis):
        wanted = set()
    return tuple(sorted(wanted | {own}))


def _cooperative_values(affine: Affine, sizes: tuple[int, ...], wanted: set[int]) -> set[int]:
    """Powers of two for a one-dimensional block that strides by ``blockDim`` and names no size."""
    own = sizes[0]
    derived = {own - 1, own // 2, own * 2, own // 32, own} - {0, 1}
    if len(sizes) != 1 or own & (own - 1) or "extern" in affine.kernel.text(affine.kernel.body):
        return set()
    tied = {node.start_byte for node in tied_literals(affine, own, 0)}
    for node in walk(affine.kernel.body):
        if node.type != "number_literal" or node.start_byte in tied or _array_size(node):
            continue
        if affine.form(node).value in derived:
            return set()
    most = 1024
    for node in walk(affine.kernel.body):
        size = affine.form(node).value if _array_size(node) else None
        if size is not None and node.start_byte not in tied:
            most = min(most, size if size >= own else 32 * size)
    return {value for value in wanted if value <= most} if _strided(affine) else set()


def _strided(affine: Affine) -> bool:
    """Whether what a thread reaches of global memory is reached by steps of ``blockDim.x``."""
    for access in accesses(affine):
        for symbol in access.index.symbols:
            depends = affine.symbol_depends(symbol)
            if symbol != "threadIdx.x" and "?" in depends:
                return False
        if "threadIdx.x" not in affine.form_depends(access.index):
            continue
        strides = [
            variable
            for variable in affine.kernel.variables
            if variable.symbol in access.index.symbols
            and (loop := affine.kernel.loop_of(variable)) is not None
            and b"blockDim.x" in ((loop.child_by_field_name("update") or loop).text or b"")
        ]
        if not strides:
            return False
    return True


def _uses_extent(affine: Affine, own: int, axis: int) -> bool:
    name = f"blockDim.{AXES[axis]}"
    return any(builtin(n) == name for n in affine.kernel.builtins()) or bool(
        tied_literals(affine, own, axis)
    )


def tied_literals(affine: Affine, own: int, axis: int) -> list[Node]:
    """The literals that certainly mean the block's extent.

    ``blockIdx.x * 256``, and ``__shared__ T s[256]`` where every index of ``s`` has
    ``threadIdx.x`` in it.
    """
    found = []
    for node in walk(affine.kernel.body):
        if node.type != "number_literal" or affine.form(node).value != own:
            continue
        parent = node.parent
        if (parent is not None and parent.type == "binary_expression" and (
            parent.children[1].type == "*"
            and any(builtin(c) == f"blockIdx.{AXES[axis]}" for c in parent.children)
        )) or (_array_size(node) and axis == 0 and _per_thread(affine, node)):  # fmt: skip
            found.append(node)
    return found


def _array_size(node: Node) -> bool:
    return (
        node.type == "number_literal"
        and node.parent is not None
        and node.parent.type == "array_declarator"
    )


def _per_thread(affine: Affine, size: Node) -> bool:
    array = next(
        (v for v in affine.kernel.variables
         if v.array and size.parent is not None and v.start == size.parent.start_byte), None,
    )  # fmt: skip
    if array is None or "__shared__" not in array.type:
        return False
    for node in walk(affine.kernel.body):
        if node.type == "subscript_expression" and node.start_byte != array.start:
            argument = node.child_by_field_name("argument")
            indices = node.child_by_field_name("indices")
            if argument is None or indices is None or affine.kernel.resolve(argument) != array:
                continue
            form = affine.form(indices.named_children[0])
            stride = form.coefficient("threadIdx.x")
            first = form.value == 0
            if not first and (stride is None or stride.value != 1):
                return False
            if any("@" in s and _own_stride(affine, s) for s in form.symbols):
                return False  # a loop over the array's own extent, such as the bins of a histogram
    return True


def _own_stride(affine: Affine, symbol: str) -> bool:
    variable = next((v for v in affine.kernel.variables if v.symbol == symbol), None)
    return (
        variable is not None
        and variable.value is not None
        and ("threadIdx.x" in affine.depends(variable.value))
    )


def guarded(affine: Affine, axis: int) -> bool:
    """Whether some condition compares an index of ``axis`` with a size."""
    sizes = {v.symbol for v in affine.kernel.variables if v.parameter}
    for node in walk(affine.kernel.body):
        condition = node.child_by_field_name("condition")
        if condition is None:
            continue
        depends = affine.depends(condition) | _at_first(affine, condition)
        if f"threadIdx.{AXES[axis]}" in depends and depends & sizes:
            return True
    return False


def _at_first(affine: Affine, condition: Node) -> frozenset[str]:
    """What the variables of a condition depend on when they are defined."""
    found: frozenset[str] = frozenset()
    for node in walk(condition):
        variable = affine.kernel.resolve(node) if node.type == "identifier" else None
        if variable is not None and variable.value is not None:
            found |= affine.depends(variable.value)
    return found
