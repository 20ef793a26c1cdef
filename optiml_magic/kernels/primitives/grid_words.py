"""P17, sizes said: how many blocks a grid has, in the words that the kernel has for it.

``x + y * blockDim.x * gridDim.x`` of a launch of ``w / 16`` blocks is ``x + y * w`` where the width
is whole blocks, which the launch then asks for. Steps that look for rows see how long these are.
Scratch has rows of whole blocks at any width, so that nothing is asked for its sake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, builtin
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.places import bare, chain, own_text_only, tops
from optiml_magic.kernels.primitives.sizes import measured
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.symbols import UNKNOWN
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Binary as Quotient
from optiml_magic.source.expressions import Call, Expression, Number, parse_expression


@dataclass(frozen=True)
class _Words:
    """The blocks along an axis, their threads, and what the sizes must be that these are so."""

    blocks: str
    threads: str
    whole: str = ""


@primitive
def grid_in_words(kernel: Kernel) -> Kernel:
    """The kernel that asks for its own sizes in the place of its grid; it must ask for that."""
    own_text_only(kernel)
    every_place_read(kernel)
    stepped = {n for axis in kernel.axes().values() if axis.step for n in axis.step.symbols}
    found = {
        axis: words for at, axis in enumerate("xyz"[: len(kernel.launch.grid)])
        if f"gridDim.{axis}" not in stepped and (words := _words(kernel, at)) is not None
    }  # fmt: skip
    swaps = _swaps(kernel, found)
    if not swaps:
        raise NotLegal("it does not ask for its grid, or has no words for it")
    asked = dict.fromkeys(words.whole for words in found.values() if words.whole)
    requires = [RequireDirective(parse_expression(one)) for one in asked]
    return kernel.rewritten(edited(kernel.function.body, swaps), directives=requires)


def _words(kernel: Kernel, at: int) -> _Words | None:
    tree, width = kernel.launch.grid[at].tree, kernel.block[at]
    if width is None:
        return None
    by = [Number(width), *(extent.tree for extent in kernel.launch.block[at : at + 1])]
    match tree:
        case Quotient("/", left, right) if right in by:
            whole, divided = Expression(left, ""), width != 1
        case Call("cdiv", (left, right)) if right in by:
            whole, divided = Expression(left, ""), width != 1
        case _:
            whole, divided = Expression(tree, ""), False
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    names = whole.names
    if form_of(whole.tree) is None or not names or not names <= given:
        return None
    if not said_alike(kernel, names) or names & Effects(kernel).moved:
        return None
    words = str(whole) if whole.name is not None else f"({whole})"
    if not divided:
        return _Words(words, f"({words} * {width})" if width != 1 else words)
    if kernel.facts is None or measured(kernel, parse_expression(f"{words} % {width}")):
        return None
    if not _leads_to_data(kernel, "xyz"[at]):
        return None
    return _Words(f"({words} / {width})", words, f"{words} % {width} == 0")


def _leads_to_data(kernel: Kernel, axis: str) -> bool:
    """Whether elements of other arrays than scratch are found by how many blocks there are."""
    scratch = {s.name for s in kernel.program.scratch}
    return any(
        access.index is None
        or {f"gridDim.{axis}", UNKNOWN} & kernel.reading.symbols.depends(access.index)
        for access in kernel.reading.accesses
        if access.space == "global" and passed(kernel, access.array) not in scratch
    )


def _swaps(kernel: Kernel, words: Mapping[str, _Words]) -> dict[Node, Node]:
    """Where the kernel asks for its grid, alone or times the threads of a block."""
    found: dict[Node, Node] = {}
    types, stack = kernel.reading.types, [*tops(kernel.function.body)]
    while stack:
        expr = stack.pop()
        name, _, axis = builtin(expr).partition(".")
        if name == "gridDim" and axis in words:
            found[expr] = text(f"(unsigned int){words[axis].blocks}")
            continue
        factors = [*chain(expr, "*")]
        said = [builtin(bare(factor)) for factor in factors]
        both = [a for a in words if {f"gridDim.{a}", f"blockDim.{a}"} <= {*said}]
        kind = types.get(expr)
        if not both or kind is None or not kind.integral:
            stack += expr.parts
            continue
        gone = [n for a in both for n in (f"gridDim.{a}", f"blockDim.{a}")]
        left = [factor for n, factor in zip(said, factors, strict=True) if n not in gone]
        made: Expr = text(f"(unsigned int){words[both[0]].threads}")
        for a in both[1:]:
            made = Binary(None, "*", made, text(f"(unsigned int){words[a].threads}"))
        for factor in left:
            made = Binary(None, "*", factor, made)
        found[expr] = made
        stack += left
    return found
