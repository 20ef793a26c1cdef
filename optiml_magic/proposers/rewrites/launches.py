"""A launch directive changed along with its kernel: block extents, and grids cut by them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.kernel import Kernel, kernels
from optiml_magic.source.edits import Edit
from optiml_magic.source.expressions import (
    Binary,
    Call,
    Choice,
    Expression,
    Name,
    Node,
    Number,
    Unary,
)
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optiml_magic.source.directives import Directive, LaunchDirective
    from optiml_magic.source.program import Program

AXES = ("x", "y", "z")


def launched(program: Program) -> list[tuple[Kernel, LaunchDirective]]:
    """Each kernel that exactly one directive launches, with that directive."""
    found = []
    all_kernels = kernels(program.text)
    for kernel in all_kernels:
        same_name = [k for k in all_kernels if k.name == kernel.name]
        launches = [
            launch
            for launch in program.launches
            if (launch.kernel or kernel.name).split("<")[0].strip() == kernel.name
        ]
        if len(launches) == 1 and len(same_name) == 1 and not _broken(kernel):
            found.append((kernel, launches[0]))
    return found


def extents(program: Program, launch: LaunchDirective) -> tuple[int, ...] | None:
    """Threads of a block along each axis, where the tuned values decide them."""
    values = program.values
    if any(size.names - values.keys() or size.arrays for size in launch.block):
        return None
    sizes = tuple(size.evaluate(values) for size in launch.block)
    return sizes if min(sizes) > 0 and math.prod(sizes) <= 1024 else None


def relaunch(
    program: Program,
    old: LaunchDirective,
    new: LaunchDirective,
    before: Sequence[Directive | str] = (),
) -> Edit:
    """The edit that puts ``new`` in the place of ``old``, on lines below ``before``."""
    text = program.text
    start = text.rfind("\n", 0, old.start) + 1
    blanks = text[start : old.start] if text[start : old.start].isspace() else ""
    lines = ("\n" + blanks).join(map(str, (*before, new)))
    return Edit(len(text[: old.start].encode()), len(text[: old.end].encode()), lines)


def expression(tree: Node) -> Expression:
    """An expression made of a tree, printed canonically."""
    return Expression(tree, str(Expression(tree, "")))


@dataclass
class Recut:
    """Rewrites a grid extent from blocks of ``old`` threads to blocks of ``new`` threads.

    ``count`` says how many rounded-up divisions by ``old`` there were.
    """

    old: Node
    new: Node
    count: int = 0

    def __call__(self, node: Node) -> Node:
        whole = self._rounded_up(node)
        if whole is not None:
            self.count += 1
            return Call("cdiv", (whole, self.new))
        match node:
            case Binary(op, left, right):
                return Binary(op, self(left), self(right))
            case Call(function, (first, second)) if function in ("min", "max"):
                return Call(function, (self(first), self(second)))
            case _:
                return node

    def _rounded_up(self, node: Node) -> Node | None:
        """``E`` of ``cdiv(E, b)``, ``(E + b - 1) / b`` and ``(E - 1) / b + 1``."""
        less = Number(self.old.value - 1) if isinstance(self.old, Number) else None
        one = Number(1)
        match node:
            case Call("cdiv", (whole, by)) if by == self.old:
                return whole
            case Binary("/", Binary("-", Binary("+", whole, by), last), by2) if (
                by == by2 == self.old and last == one
            ):
                return whole
            case Binary("/", Binary("+", whole, Binary("-", by, last)), by2) if (
                by == by2 == self.old and last == one
            ):
                return whole
            case Binary("/", Binary("+", whole, rest), by) if by == self.old and rest == less:
                return whole
            case Binary("+", Binary("/", Binary("-", whole, last), by), last2) if (
                by == self.old and last == last2 == one
            ):
                return whole
            case _:
                return None


def recut(grid: Expression, old: Node, new: Node) -> Expression | None:
    """``grid`` for blocks of ``new`` threads; None where it is not certainly cut by ``old``."""
    cut = Recut(old, new)
    tree = cut(grid.tree)
    if not cut.count or (isinstance(old, Number) and old.value > 1 and _mentions(tree, old)):
        return None
    return expression(tree)


def _mentions(node: Node, wanted: Node) -> bool:
    if node == wanted:
        return True
    match node:
        case Unary(_, operand):
            return _mentions(operand, wanted)
        case Binary(_, left, right):
            return _mentions(left, wanted) or _mentions(right, wanted)
        case Call(_, parts):
            return any(_mentions(part, wanted) for part in parts)
        case Choice(condition, then, otherwise):
            return any(_mentions(part, wanted) for part in (condition, then, otherwise))
        case Number() | Name():
            return False


def _broken(kernel: Kernel) -> bool:
    """Whether the grammar lost its way in the kernel, or the preprocessor cuts it.

    It reads ``i < n && j > -1`` as a template ``i<n && j>``, minus 1.
    """
    names = {variable.name for variable in kernel.variables}
    for node in walk(kernel.body):
        if node.type in ("preproc_if", "preproc_ifdef", "preproc_def", "preproc_include"):
            return True
        if node.type in ("template_function", "template_type"):
            name = node.child_by_field_name("name")
            if name is None or kernel.text(name) in names:
                return True
    return kernel.function.has_error
