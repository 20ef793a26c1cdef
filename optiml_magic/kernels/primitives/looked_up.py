"""P13 over values: what depends on one byte alone is computed for each of the 256, and looked up.

``gamma(image[i] / 255.0)`` is a power for every pixel, of which there are 256 different ones, and
``code(text[i])``, a switch, sends the lanes of a warp different ways. A launch before computes all
of them into scratch, where the kernel loads its own: from a cache that 256 values fit into.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Cast, Expr, Index
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.byte_values import HOLE, VALUES, Finder, Lookup
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.places import tops
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.source.directives import LaunchDirective, RequireDirective, ScratchDirective
from optiml_magic.source.expressions import parse_expression


def lookups(kernel: Kernel) -> list[Lookup]:
    """What of a kernel is worth a table, those that share one together."""
    finder, found = Finder(kernel), dict[str, list[tuple[Expr, Expr]]]()
    for top in tops(kernel.function.body):
        for expr, source in finder.within(top):
            found.setdefault(finder.words(expr, source), []).append((expr, source))
    return [finder.lookup(words, pairs) for words, pairs in found.items()]


@primitive
def looked_up(kernel: Kernel) -> Kernel:
    """The kernel behind a launch for each such function, with loads in their places."""
    every_place_read(kernel)
    launch = kernel.launch
    if launch.condition is not None or launch.otherwise or launch.repeat is not None:
        raise NotLegal("its launch is one of a dispatch or of several rounds")
    if not kernel.function.parameters or kernel.function.template:
        raise NotLegal("it has no parameters, or is a template")
    found = lookups(kernel)
    if not found:
        raise NotLegal("nothing that it computes depends on one byte alone")
    for _ in found:  # each is looked for anew in what was made of the one before
        kernel = _made(kernel, lookups(kernel)[0])
    return kernel


def _made(kernel: Kernel, one: Lookup) -> Kernel:
    launch, plain = kernel.launch, (kernel.launch.kernel or kernel.function.name).partition("<")[0]
    bare = plain.rpartition("::")[2]
    table = kernel.fresh("of_byte")
    name = kernel.fresh(f"{bare}_values", table)
    scratch = parse_expression(table)
    args = first = None
    if launch.args is not None:
        first = (*(a for p, a in zip(kernel.function.parameters, launch.args, strict=True)
                   if p in one.given), scratch)  # fmt: skip
        args = (*launch.args, scratch)
    raw, kind = kernel.unit.syntax.text, "signed" if one.signed else "unsigned"
    given = [raw[slice(*p.span)].decode() for p in kernel.function.parameters
             if p in one.given and p.span is not None]  # fmt: skip
    value = kernel.fresh("value")
    made = (
        f"__global__ void {name}({', '.join([*given, f'{one.type.name}* {table}'])}) {{\n"
        f"    const {kind} char {value} = ({kind} char)threadIdx.x;\n"
        f"    {table}[threadIdx.x] = {one.words.replace(HOLE, value)};\n}}"
    )
    swaps: dict[Node, Node] = {
        expr: Index(None, text(table), Cast(None, "unsigned char", source))
        for expr, source in zip(one.expressions, one.sources, strict=True)
    }
    width = parse_expression(str(VALUES))
    before = LaunchDirective(name, (parse_expression("1"),), (width,), args=first)
    sizes = list[RequireDirective]()
    for array, least in one.sizes.items():
        there = passed(kernel, array)
        if there is None:
            raise NotLegal(f"how many elements `{array}` has cannot be asked")
        if not _is_large(kernel, there, least):
            sizes.append(RequireDirective(parse_expression(f"size({there}) >= {least}")))
    found = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=replace(launch, args=args), helpers=[made],
        directives=[*sizes, ScratchDirective(table, one.type.dtype, width), before],
    )  # fmt: skip
    return with_parameters(found, [f"const {one.type.name}* {table}"])


def _is_large(kernel: Kernel, name: str, count: int) -> bool:
    """Whether it is scratch of a number of elements, and of as many."""
    return any(
        own.name == name and not own.count.names and not own.count.arrays
        and own.count.evaluate({}) >= count
        for own in kernel.program.scratch
    )  # fmt: skip
