"""P5, retiled: the extent of a tile that a text calls by a name, ``#define TILE 16``, is tuned.

A block brings a tile into shared memory and computes on it, of which the rim may be right no more
after some steps; a larger tile has less rim. Threads, arrays, steps of the grid and bounds come
from one number. The kernel is read with that number unknown: what it loads and stores then depends
on the place of an item in the grid alone, and tiles lie side by side whatever their extent. That
what a tile computes does not depend on where it ends is for the verification to see.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.errors import SourceError
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import check_unfixed
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import BLOCKS, THREADS, UNKNOWN, Compare, Condition
from optiml_magic.kernels.tree import Function
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Call, Expression, Number, parse_expression
from optiml_magic.source.macros import whole_numbers
from optiml_magic.source.program import parse_program

_LINE, _SIDES = (64, 128, 256, 512, 1024), (8, 16, 32)
_MOST_THREADS = 1024
_SMALL, _LANES = 4, (31, 32)  # numbers that mean themselves; ours
TUNED = "EXTENT"
_NUMBER = re.compile(r"(?<![\w.])(\d+)[uUlL]*(?![\w.])")
_DEFINED = (
    r"^[ \t]*(?P<whole>#[ \t]*define[ \t]+{0}[ \t]+{1}"
    r"|(?:static[ \t]+)?const(?:expr)?[ \t]+int[ \t]+{0}[ \t]*=[ \t]*{1}[ \t]*;)[ \t]*(?://[^\n]*)?$"
)


@dataclass(frozen=True)
class Tile:
    """How a text calls a tile's extent, how much it is, and the axes of the block that have it.

    It is ``tuned`` by another name.
    """

    name: str
    tuned: str
    extent: int
    axes: tuple[int, ...]
    values: tuple[int, ...] = ()


def tile(kernel: Kernel) -> Tile:
    """The tile of a kernel, with the extents that it may have. Raises NotLegal where there is none.

    They are no smaller than it is where its grid says more than that, such as how wide a rim is.
    """
    shared = [a for a in kernel.reading.arrays.values() if a.space == "shared"]
    if not shared or kernel.launch.shared is not None:
        raise NotLegal("its blocks share no tile")
    check_unfixed(kernel, alone=False)
    if kernel.function.launch_bounds or any(LANES.fullmatch(c) for c in kernel.reading.calls):
        raise NotLegal("how many threads its blocks have is said elsewhere as well")
    found = _named(kernel)
    made = _made(kernel, found, (found.extent,))
    _check_places(made, found)
    steps = [size.tree.arguments[1] for size in _grid(kernel, found) if isinstance(size.tree, Call)]
    plain = all(step == Number(found.extent) for step in steps)
    values = tuple(
        value for value in (_SIDES if len(found.axes) > 1 else _LINE)
        if (plain or value >= found.extent) and value ** len(found.axes) <= _MOST_THREADS
        and _bytes(made, {found.tuned: value}) <= SHARED
    )  # fmt: skip
    if not {*values} - {found.extent}:
        raise NotLegal("its tile can have no other extent")
    return replace(found, values=tuple(sorted({*values, found.extent})))


@primitive
def retiled(kernel: Kernel) -> Kernel:
    """The kernel whose tile has a tuned extent."""
    found = tile(kernel)
    return _made(kernel, found, found.values)


def _grid(kernel: Kernel, found: Tile) -> list[Expression]:
    return [kernel.launch.grid[at] for at in found.axes if at < len(kernel.launch.grid)]


def _named(kernel: Kernel) -> Tile:
    """The only name of the only extent that the block has."""
    launch = kernel.launch
    trees = [size.tree for size in launch.block]
    numbers = {tree.value for tree in trees if isinstance(tree, Number) and tree.value != 1}
    if len(numbers) != 1 or not all(isinstance(tree, Number) for tree in trees):
        raise NotLegal("its block has no single extent")
    (extent,) = numbers
    axes = tuple(at for at, tree in enumerate(trees) if tree == Number(extent))
    own = "\n".join(
        _written(kernel, f) for f in (kernel.function, *reached(kernel.unit, kernel.function))
    )
    text, known = kernel.program.text, whole_numbers(kernel.program.lexed)
    names = [n for n, value in known.items() if value == extent and _asks(own, n)]
    if (
        len(names) != 1
        or len(re.findall(_DEFINED.format(names[0], extent), text, re.MULTILINE)) != 1
    ):
        raise NotLegal("the extent of its tile has no single name")
    (name,) = names
    elsewhere = [k.name for k in kernel.unit.kernels if k is not kernel.function
                 and _asks(_written(kernel, k), name)]  # fmt: skip
    if elsewhere:
        raise NotLegal(f"`{elsewhere[0]}` asks for `{name}` as well")
    others = [value for n, value in known.items() if n != name and _asks(own, n)
              and not re.search(rf"\b{n}\b[^\n;]*\b{name}\b", text)]  # fmt: skip
    said = [int(n) for n in _NUMBER.findall(own)]
    said += [int(n) for line in kernel.program.lexed.lines if line.word == "define"
             and (line.rest.split("(")[0].split() or [""])[0] not in known
             for n in _NUMBER.findall(line.rest)]  # fmt: skip
    if any(_may_be(value, extent) for value in (*others, *said)):
        raise NotLegal("another number may come from the extent of its tile")
    found = Tile(name, kernel.fresh(TUNED), extent, axes)
    for size in _grid(kernel, found):
        steps = [int(n) for n in _NUMBER.findall(str(size))]
        if extent not in steps or any(_may_be(n, extent) and n != extent for n in steps):
            raise NotLegal("its grid does not step by the extent of its tile")
    return found


def _may_be(number: int, extent: int) -> bool:
    """Whether a number is so large that it may come of an extent, or of the lanes of a warp."""
    return number in _LANES or (number > _SMALL and 4 * number >= extent)


def _written(kernel: Kernel, function: Function) -> str:
    """The code of a function as it stands in the program, its macros by their names."""
    start, end = kernel.unit.origin.origin(*(function.whole or function.span))
    raw, code = kernel.program.text.encode(), kernel.program.lexed.code
    return code[len(raw[:start].decode()) : len(raw[:end].decode())]


def _asks(words: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", words) is not None


def _made(kernel: Kernel, found: Tile, values: Sequence[int]) -> Kernel:
    """The program with a tuned name in the place of a definition, and of numbers in the launch."""
    text, name = kernel.program.text, found.tuned
    old = re.search(_DEFINED.format(found.name, found.extent), text, re.MULTILINE)
    assert old is not None
    fits = None
    if len(found.axes) > 1:
        fits = parse_expression(f"{' * '.join([name] * len(found.axes))} <= {_MOST_THREADS}")
    tune = TuneDirective(name, tuple(values), found.extent, fits if len(values) > 1 else None)
    launch = _relaunched(kernel.launch, found)
    edits = [_edit(text, *old.span("whole"), f"#define {found.name} {name}"),
             _edit(text, kernel.launch.start, kernel.launch.end, f"{tune}\n{launch}")]  # fmt: skip
    try:
        program = parse_program(apply(text, edits))
        new = next(d for d in program.launches if str(d) == str(launch))
    except (SourceError, StopIteration) as reason:
        raise NotLegal("its launch cannot be written anew") from reason
    return replace(kernel, program=program, launch=new)


def _edit(text: str, start: int, end: int, words: str) -> Edit:
    return Edit(len(text[:start].encode()), len(text[:end].encode()), words)


def _relaunched(launch: LaunchDirective, found: Tile) -> LaunchDirective:
    grid, block = [*launch.grid], [*launch.block]
    for at in found.axes:
        block[at] = parse_expression(found.tuned)
        if at < len(grid):
            words = re.sub(rf"\b{found.extent}\b", found.tuned, str(grid[at]))
            grid[at] = parse_expression(words)
    return replace(launch, grid=tuple(grid), block=tuple(block))


def _bytes(kernel: Kernel, values: Mapping[str, int]) -> int:
    """What the arrays of a block take in shared memory."""
    total = 0
    for array in kernel.reading.arrays.values():
        if array.space == "shared":
            extents = [_value(form, values) for form in array.extents]
            total += (array.element.size or SHARED) * math.prod(extents)
    return total


def _value(form: Polynomial | None, values: Mapping[str, int]) -> int:
    if form is None or not form.symbols <= values.keys():
        raise NotLegal("how long its arrays are is not known")
    return sum(by * math.prod(values[name] for name in monomial) for monomial, by in form.terms)


# -- what it does, with the extent unknown


def _check_places(kernel: Kernel, found: Tile) -> None:
    """What it does depends on items' places in the grid, and each item is stored by one tile."""
    steps = {f"{'xyz'[at]}": _step(kernel, at) for at in found.axes}
    places = _Places(kernel, found.tuned, steps)
    for at in found.axes:
        tree = kernel.launch.grid[at].tree if at < len(kernel.launch.grid) else None
        if not isinstance(tree, Call) or tree.function != "cdiv":
            raise NotLegal("its grid does not say how far its tiles step")
        places.check_step("xyz"[at], Expression(tree.arguments[1], ""))
    for access in kernel.reading.accesses:
        if access.space == "shared":
            places.check_shared(access)
        elif access.space == "global":
            if access.index is None or not places.free(access.index):
                raise NotLegal("what it touches depends on where tiles end", access.line)
            if access.mode != "load":
                places.check_whole(access)


def _step(kernel: Kernel, at: int) -> Polynomial:
    """How far apart the items of neighbouring tiles are, from where it stores."""
    axis, found = "xyz"[at], set[Polynomial]()
    for access in kernel.reading.accesses:
        if access.space != "global" or access.mode == "load":
            continue
        index = access.index
        own = index.coefficient(f"threadIdx.{axis}") if index is not None else None
        far = index.coefficient(f"blockIdx.{axis}") if index is not None else None
        step = far.over(own) if own is not None and far is not None else None
        if step is None or not step.terms:
            raise NotLegal("where it stores does not say which item of its tile it is", access.line)
        found.add(step)
    if len(found) != 1:
        raise NotLegal("where it stores does not say how far its tiles step")
    return found.pop()


class _Places:
    """The forms of a kernel over the places of its items in the grid."""

    def __init__(self, kernel: Kernel, name: str, steps: Mapping[str, Polynomial]) -> None:
        self.kernel, self.name, self.steps = kernel, name, steps
        self.symbols = kernel.reading.symbols

    def check_step(self, axis: str, size: Expression) -> None:
        """A grid has as many tiles as steps fit what it covers."""
        said, step = self.steps[axis], size
        names = sorted({*said.symbols, *step.names})
        for seed in range(1, 5):  # two sums of products that agree so often are one
            values = {n: 1009 * seed + 257 * seed**2 * (at + 1) for at, n in enumerate(names)}
            try:
                number = step.evaluate(values)
            except SourceError:
                number = None
            if number is None or number != _value(said, values):
                raise NotLegal("its grid steps otherwise than its tiles")

    def free(self, form: Polynomial) -> bool:
        """Whether a form depends on the place of an item alone, not on its tile."""
        for axis, step in self.steps.items():
            own = form.coefficient(f"threadIdx.{axis}")
            if own is None:
                return False
            form = form - own * step * Polynomial.symbol(f"blockIdx.{axis}")
        inside = self.symbols.inside(form)
        of_place = {f"{kind}Idx.{axis}" for axis in self.steps for kind in ("thread", "block")}
        beside = inside - (form.symbols & THREADS)
        if self.name in inside or (self.symbols.depends(form) & {UNKNOWN}):
            return False
        return not of_place & beside

    def _says(self, condition: Condition) -> bool:
        """Whether a condition is one on the place of an item, or the same for all."""
        if isinstance(condition, Compare):
            return self.free(condition.form)
        return not condition.depends & (THREADS | BLOCKS | {UNKNOWN, self.name})

    def _parts(self, access: Access) -> Iterator[Condition]:
        """What is asked of an item where its place in the tile decides."""
        for part in (part for c in access.guard for part in c.conjuncts()):
            if not self._says(part):
                yield part

    def check_whole(self, access: Access) -> None:
        """The items of a tile that store are as many along each axis as tiles step."""
        for axis, step in self.steps.items():
            low, high = Polynomial(), Polynomial.symbol(self.name) - Polynomial.constant(1)
            own = Polynomial.symbol(f"threadIdx.{axis}")
            for part in self._parts(access):
                if not isinstance(part, Compare) or part.op != ">=":
                    raise NotLegal("which items of a tile are stored is not followed", access.line)
                by = part.form.coefficient(f"threadIdx.{axis}")
                if by is not None and by.value == 1:
                    low = own - part.form
                elif by is not None and by.value == -1:
                    high = own + part.form
            if high - low + Polynomial.constant(1) != step:
                raise NotLegal("its tiles do not lie side by side", access.line)

    def check_shared(self, access: Access) -> None:
        """Bounds within a tile tighten from round to round, as its rim grows."""
        stored = {a.guard for a in self.kernel.reading.accesses
                  if a.space == "global" and a.mode != "load"}  # fmt: skip
        if access.guard in stored:
            return
        for part in self._parts(access):
            by = None
            if isinstance(part, Compare) and part.op == ">=" and access.loops:
                by = part.form.coefficient(access.loops[-1])
            if by is None or by.value is None or by.value >= 0:
                raise NotLegal("what its threads share depends on where tiles end", access.line)
