"""P19, specialise: sizes that a kernel is given as numbers, where its launch asks for these.

Loops whose rounds they bound can then be written out, and what such loops index lies in registers.
What the numbers require of the sizes is said, so that others are left to the program as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import BLOCKS, THREADS, Compare
from optiml_magic.kernels.tree import expressions
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Call, Expression, Number, parse_expression
from optiml_magic.source.folding import folded

_TILE = 256  # a radius or a stride of a tile, at most: ours
_PLAIN = ("int", "signed", "signed int")


def divisors(
    kernel: Kernel, most: int, least: int = 2, of: AbstractSet[str] = frozenset()
) -> dict[str, int]:
    """Scalars by which rounds of loops divide, with their values, ``least`` to ``most``.

    Or by which what comes ``of`` something else, such as a thread's place, is divided.
    """
    given = kernel.facts.scalars if kernel.facts is not None else {}
    divided = of or {axis.name for axis in kernel.reading.axes}
    found = dict[str, int]()
    for symbol in kernel.reading.symbols.table.values():
        by = symbol.arguments[1].symbols if symbol.op in ("/", "%") else ()
        name = next(iter(by), "")
        whole = name in given and symbol.arguments[1] == Polynomial.symbol(name)
        if whole and symbol.depends & divided and name not in kernel.program.values:
            found[name] = int(given[name])
    return {name: size for name, size in found.items() if least <= size <= most}


def multipliers(kernel: Kernel, most: int, mode: str = "load") -> dict[str, int]:
    """Scalars that multiply a place of a thread or a round in what is loaded, 1 to ``most``.

    Such as the stride and the dilation of a window; or in what is stored, as the channels are.
    """
    given = kernel.facts.scalars if kernel.facts is not None else {}
    moving = {axis.name for axis in kernel.reading.axes} | THREADS | BLOCKS
    found = dict[str, int]()
    for access in kernel.reading.accesses:
        loads = access.mode == mode and access.space == "global" and access.index is not None
        for monomial, _ in access.index.terms if loads and access.index is not None else ():
            names = {n for n in monomial if n in given and n not in kernel.program.values}
            if len(names) == 1 and moving & {*monomial}:
                (name,) = names
                found[name] = int(given[name])
    return {name: size for name, size in found.items() if 1 <= size <= most}


def bounding(
    kernel: Kernel, most: int, wanted: Callable[[Axis], bool] = lambda _: True
) -> dict[str, int]:
    """The scalars that bound the few rounds of loops, ``most`` at most, with their values."""
    sizes = dict[str, int]()
    given = kernel.facts.scalars if kernel.facts is not None else {}
    for axis in kernel.axes().values():
        named_ = {name for form in (axis.start, axis.stop) if form is not None
                  for name in form.symbols}  # fmt: skip
        few = axis.trips is None and 1 < (rounds(kernel, axis) or 0) <= most
        if few and named_ <= given.keys() and wanted(axis):
            sizes |= {name: int(given[name]) for name in sorted(named_)}
    return {name: size for name, size in sizes.items() if name not in kernel.program.values}


def tile_sizes(kernel: Kernel) -> dict[str, int]:
    """Scalars that say how a block's tiles lie in shared memory, 0 to ``_TILE``.

    They stand in the index of an element there, beside places of threads and rounds, in how many
    rounds these are, or in what tells threads which elements are theirs to bring.
    """
    given = kernel.facts.scalars if kernel.facts is not None else {}
    asked = [a for a in kernel.reading.accesses if a.space == "shared"]
    axes = {axis.name: axis for axis in kernel.reading.axes}
    said, symbols = set[str](), kernel.reading.symbols
    for access in asked:
        own = access.offset.symbols if access.offset is not None else frozenset[str]()
        said |= own
        for axis in (axes[name] for name in own & axes.keys()):
            said |= {n for end in (axis.start, axis.stop) if end is not None for n in end.symbols}
        for part in (p for c in access.guard for p in c.conjuncts()):
            roots = symbols.inside(part.form) if isinstance(part, Compare) else frozenset[str]()
            if roots & THREADS and not roots & BLOCKS:
                said |= roots
    found = {n: int(v) for n in sorted(said - kernel.program.values.keys())
             if isinstance(v := given.get(n), int)}  # fmt: skip
    return {name: size for name, size in found.items() if 0 <= size <= _TILE}


@primitive
def block_sized(kernel: Kernel) -> Kernel:
    """The kernel whose launch says in numbers how many threads a block has: it did not.

    Sizes that say so are numbers then, and so is ``WARPS * 32``. Of ``min(n, 1024)`` it is the
    number that holds where ``n`` is no less, which the launch then asks for.
    """
    launch = kernel.launch
    block, grid = (tuple(map(folded, extents)) for extents in (launch.block, launch.grid))
    if block != launch.block:
        launch = replace(launch, block=block, grid=grid)
        said = kernel.rewritten(kernel.function.body, launch=launch, tidy=False)
        return where_legal(block_sized, said)
    if None not in kernel.block or kernel.facts is None:
        raise NotLegal("the extents of its blocks are numbers already, or are not known")
    least = {at: found for at, extent in enumerate(kernel.launch.block)
             if (found := _number(kernel, extent)) is not None}  # fmt: skip
    if least:
        extents = [least[n][0] if n in least else e for n, e in enumerate(kernel.launch.block)]
        asked = [RequireDirective(condition) for _, condition in least.values()]
        launch = replace(kernel.launch, block=tuple(extents))
        said = kernel.rewritten(kernel.function.body, launch=launch, directives=asked, tidy=False)
        return where_legal(block_sized, said)
    names = {name for extent in kernel.launch.block for name in extent.names}
    values = {n: v for n in sorted(names - kernel.program.values.keys())
              if isinstance(v := kernel.facts.scalars.get(n), int)}  # fmt: skip
    if not values:
        raise NotLegal("what says how many threads its blocks have is not known")
    made = sized(kernel, values)
    if not isinstance(made, Kernel):
        raise NotLegal(made.reason, made.line)
    return made


def _number(kernel: Kernel, extent: Expression) -> tuple[Expression, Expression] | None:
    """The number of ``min(n, number)``, and where it is that, if the measured sizes are."""
    scalars = kernel.facts.scalars if kernel.facts is not None else {}
    given = {n: v for n, v in scalars.items() if isinstance(v, int)}
    match extent.tree:
        case Call("min", (Number() as most, other)) | Call("min", (other, Number() as most)):
            whole, number = Expression(other, str(Expression(other, ""))), str(most.value)
            if whole.names and whole.names <= given.keys() and whole.evaluate(given) >= most.value:
                asked = parse_expression(f"({whole}) >= {number}")
                return parse_expression(number), asked
    return None


@primitive
def sized(kernel: Kernel, values: Mapping[str, int]) -> Kernel:
    """The kernel where the parameters of these names have these values."""
    effects, swaps = Effects(kernel), dict[Node, Node]()
    known = {parameter.name: parameter for parameter in kernel.function.parameters}
    for name, value in values.items():
        parameter = known.get(name)
        kind = named(parameter.type.base, kernel.unit.aliases) if parameter is not None else None
        if parameter is None or kind is None or parameter.type.depth or not kind.integral:
            raise NotLegal(f"`{name}` is not a size that it is given", kernel.function.line)
        if name in effects.moved or parameter.type.reference or kind.lanes != 1:
            raise NotLegal(f"the parameter `{name}` changes", kernel.function.line)
        if not said_alike(kernel, [name]):
            raise NotLegal(f"the launch passes another expression for `{name}`")
        words = str(value) if kind.name in _PLAIN else f"({parameter.type.base}){value}"
        swaps |= {
            e: text(words) for e in expressions(kernel.function.body)
            if isinstance(e, Name) and e.variable is parameter
        }  # fmt: skip
    asked = [RequireDirective(parse_expression(f"{n} == {v}")) for n, v in values.items()]
    # Guards bound threads by the numbers from now on, so what is launched says them as well.
    launch = replace(
        kernel.launch,
        grid=tuple(extent.substituted(values) for extent in kernel.launch.grid),
        block=tuple(folded(extent.substituted(values)) for extent in kernel.launch.block),
    )
    return kernel.rewritten(edited(kernel.function.body, swaps), launch=launch, directives=asked)
