"""What random kernels are made of: a program, its arrays as descriptions, its threads."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from optiml_magic import Task
from optiml_magic.source.expressions import parse_expression

#: One, primes, powers of two and their neighbours, multiples of four.
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 20, 31, 32, 33, 37, 47)
LONG_EXTENTS = (*EXTENTS, 64, 65, 96, 100, 127, 128)
#: Of one axis alone: blocks whose threads take several vectors each are full at the greater ones.
LINE_EXTENTS = (*LONG_EXTENTS, 255, 256, 384, 500, 512, 514, 516, 768, 1030)


@dataclass(frozen=True)
class Array:
    """What an array holds before the launch.

    Attributes:
        dtype: as NumPy names it; the fields of a struct as ``x:f4 y:f4``.
        shape: extents, each an expression of the sizes.
        content: ``numbers``, of which sums are exact in any order; ``positive`` ones; ``zeros``;
            ``odd`` ones, with NaN, infinities and both zeros;
            ``below N`` and ``order``, indices in any order, the latter each once; ``rising N``,
            those of the last axis in order; ``starts N``, the rising bounds of segments of N
            elements in all, some empty; ``bits``, words of which each bit is as often set as not,
            and ``few bits``, of which one in 32 is.
    """

    dtype: str
    shape: tuple[str, ...]
    content: str = "numbers"

    def filled(self, name: str, sizes: Mapping[str, int]) -> Any:
        """The array at these sizes; the same each time."""
        seed = zlib.crc32(f"{name} {sorted(sizes.items())}".encode())
        rng = np.random.default_rng(seed)
        shape = tuple(parse_expression(e).evaluate(dict(sizes)) for e in self.shape)
        kind, _, of = self.content.partition(" ")
        if ":" in self.dtype:
            fields = [part.split(":") for part in self.dtype.split()]
            made = np.zeros(shape, np.dtype([(n, d) for n, d in fields]))
            for n, d in fields:
                made[n] = _numbers(rng, shape, d, kind)
            return made
        if kind == "below":
            return rng.integers(0, max(1, sizes[of]), shape).astype(self.dtype)
        if kind == "rising":
            return np.sort(rng.integers(0, max(1, sizes[of]), shape), axis=-1).astype(self.dtype)
        if kind == "order":
            return rng.permutation(int(np.prod(shape))).reshape(shape).astype(self.dtype)
        if kind == "starts":
            inner = np.sort(rng.integers(0, sizes[of] + 1, shape[0] - 2))
            return np.concatenate([[0], inner, [sizes[of]]]).astype(self.dtype)
        if self.content in ("bits", "few bits"):
            return _bits(rng, shape, self.dtype, often=self.content == "bits")
        return _numbers(rng, shape, self.dtype, kind)


def _bits(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, *, often: bool) -> Any:
    size = np.dtype(dtype).itemsize
    words = [rng.integers(0, 256, (*shape, size), "u1") for _ in range(1 if often else 5)]
    return np.ascontiguousarray(np.bitwise_and.reduce(words)).view(dtype).reshape(shape)


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, kind: str) -> Any:
    """Eighths between -2 and 2: some thousand products of them add up without rounding."""
    if kind == "zeros":
        return np.zeros(shape, dtype)
    least = 1 if kind == "positive" else 0 if np.dtype(dtype).kind == "u" else -16
    numbers = rng.integers(least, 17, shape)
    if kind == "odd":
        odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
        return np.where(rng.integers(0, 3, shape) == 0, odd, numbers / 8).astype(dtype)
    return (numbers / 8 if np.dtype(dtype).kind == "f" else numbers).astype(dtype)


@dataclass(frozen=True)
class Made:
    """A program that is race-free and well defined at all sizes, and two sets of sizes to run it.

    Attributes:
        family: what kind of kernel it is.
        sizes: integers by the names of the parameters that hold them, or of extents alone.
        others: other values of them.
        scalars: further arguments.
        inout: the arrays that are read and written.
        args: the values of the parameters in order, where one array is given twice.
        exact: whether its arithmetic is exact whatever the order of its sums.
        hidden: sizes that are no parameters.
        forms: the spellings that were given to it.
        renamed: the names that these changed, from the one used here to the text's.
    """

    family: str
    text: str
    arrays: Mapping[str, Array]
    sizes: Mapping[str, int]
    others: Mapping[str, int]
    scalars: Mapping[str, float] = field(default_factory=dict)
    inout: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    exact: bool = True
    hidden: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def task(self, sizes: Mapping[str, int]) -> Task:
        """The program with the inputs of these sizes."""
        inout = tuple(self.renamed.get(name, name) for name in self.inout)
        return Task(self.text, inputs=self.values(sizes), inout=inout, args=self.args)

    def values(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Every argument at ``sizes``, by its name in the text."""
        arrays = {name: array.filled(name, sizes) for name, array in self.arrays.items()}
        plain = {n: v for n, v in sizes.items() if n not in self.hidden}
        given = {**arrays, **plain, **{n: np.float32(v) for n, v in self.scalars.items()}}
        return {self.renamed.get(name, name): value for name, value in given.items()}

    def aliased(self, given: str, *others: str) -> Made:
        """The program with the array ``given`` for the parameters ``others`` as well."""
        names = re.search(r"__global__ void \w+\((.*?)\)", self.text)[1].split(",")
        last = [name.split("*")[-1].split()[-1] for name in names]
        return replace(
            self,
            family=f"{self.family}_aliased",
            arrays={name: array for name, array in self.arrays.items() if name not in others},
            args=tuple(given if name in others else name for name in last),
            inout=(given,),
        )


def sizes_of(
    rng: Random, names: Sequence[str], extents: Sequence[int] = EXTENTS
) -> tuple[dict[str, int], dict[str, int]]:
    """Two sets of sizes: those that a rule is told, and others that it has to be right at too.

    Those that it is told are larger more often than not: rules leave small ones alone.
    """
    told = rng.choice([extents, extents[len(extents) // 2 :], extents[len(extents) // 2 :]])
    first = {name: rng.choice(told) for name in names}
    second = {name: rng.choice(extents) for name in names}
    return first, second


@dataclass(frozen=True)
class Axis:
    """A number that each thread has along one axis of the grid."""

    name: str
    extent: str
    letter: str
    width: int


_PLACES = (
    "blockIdx.{0} * blockDim.{0} + threadIdx.{0}",
    "blockIdx.{0} * blockDim.{0} + threadIdx.{0}",
    "blockDim.{0} * blockIdx.{0} + threadIdx.{0}",
    "threadIdx.{0} + blockIdx.{0} * blockDim.{0}",
    "blockIdx.{0} * {1} + threadIdx.{0}",
)
_BLOCKS = {1: ((32,), (64,), (128,), (48,)), 2: ((16, 4), (8, 8), (32, 2), (16, 16)), 3: ((8, 4, 2), (16, 2, 2), (4, 4, 4))}  # fmt: skip


def axes(rng: Random, *wanted: tuple[str, str]) -> tuple[Axis, ...]:
    """Axes of the grid for names and their extents, x first, or in any order."""
    order = list(wanted)
    if len(order) > 1 and rng.choice([0, 0, 0, 1]):
        order.reverse()
    widths = rng.choice(_BLOCKS[len(order)])
    letters = "xyz"
    return tuple(
        Axis(name, extent, letters[at], widths[at]) for at, (name, extent) in enumerate(order)
    )


def program(
    rng: Random,
    name: str,
    parameters: str,
    over: Sequence[Axis],
    body: str,
    *,
    above: str = "",
    directives: str = "",
) -> str:
    """A kernel whose threads each do ``body`` for one place of all axes, and its launch.

    Two axes may be numbered as one, which the kernel takes apart, or be a block for each row; the
    threads of a block of one axis may be numbered by hand along two, and the other way round.
    """
    if len(over) == 2 and "return" not in body and rng.choice([0] * 9 + [1]):
        return _block_a_row(rng, name, parameters, over, body, above + directives)
    if len(over) == 2 and rng.choice([0, 0, 0, 0, 1]):
        over, found = _as_one(rng, *rng.choice([over, over[::-1]]))
        body = f"{found}\n{body}"
    grid = ", ".join(_cover(rng, axis) for axis in over)
    block, places = ", ".join(str(axis.width) for axis in over), _places(rng, over)
    striding = len(over) == 1 and "return" not in body and rng.choice([0, 0, 0, 0, 0, 1])
    if striding:
        grid = "2"
    elif len(over) < 3 and rng.choice([0] * 9 + [1]):
        block, places = _by_hand(rng, over)
    launch = f"#pragma optiml launch {name} grid({grid}) block({block})\n"
    lines: list[str] = []
    kind = rng.choice(["int", "int", "int", "const int", "unsigned int", "unsigned"])
    if striding:
        (axis,), (place,) = over, places
        step = rng.choice(["blockDim.x * gridDim.x", "gridDim.x * blockDim.x"])
        lines += [
            f"for (int {axis.name} = {place}; {axis.name} < {axis.extent}; {axis.name} += {step}) {{",
            body,
            "}",
        ]
    else:
        lines += [f"{kind} {a.name} = {place};" for a, place in zip(over, places, strict=True)]
        lines += _guarded(rng, over, body)
    return (
        f"{above}{directives}{launch}__global__ void {name}({parameters}) {{\n"
        f"{indented(chr(10).join(lines))}\n}}\n"
    )


def _block_a_row(
    rng: Random, name: str, parameters: str, over: Sequence[Axis], body: str, above: str
) -> str:
    """The same with elements of a row a block apart."""
    along, rows = over
    width = rng.choice([16, 32, 48])
    step = rng.choice(["blockDim.x", str(width)])
    row = rng.choice(["int", "const int", "unsigned"])
    lines = [
        f"{row} {rows.name} = blockIdx.x;",
        f"for (int {along.name} = threadIdx.x; {along.name} < {along.extent}; {along.name} += {step}) {{",
        body,
        "}",
    ]  # fmt: skip
    return (
        f"{above}#pragma optiml launch {name} grid({rows.extent}) block({width})\n"
        f"__global__ void {name}({parameters}) {{\n{indented(chr(10).join(lines))}\n}}\n"
    )


def _places(rng: Random, over: Sequence[Axis]) -> list[str]:
    return [rng.choice(_PLACES).format(axis.letter, axis.width) for axis in over]


def _by_hand(rng: Random, over: Sequence[Axis]) -> tuple[str, list[str]]:
    """Another shape of the same blocks, and the places of their threads."""
    if len(over) == 1:
        count, wide = over[0].width, rng.choice([8, 16])
        thread = rng.choice([f"threadIdx.y * {wide} + threadIdx.x", "threadIdx.x + blockDim.x * threadIdx.y"])  # fmt: skip
        first = rng.choice([f"blockIdx.x * {count}", "blockIdx.x * (blockDim.x * blockDim.y)"])
        return f"{wide}, {count // wide}", [rng.choice([f"{first} + {thread}", f"{first} + ({thread})"])]  # fmt: skip
    wide, high = (axis.width for axis in over)
    places = [f"blockIdx.x * {wide} + threadIdx.x % {wide}", f"blockIdx.y * {high} + threadIdx.x / {wide}"]  # fmt: skip
    return str(wide * high), places


def _as_one(rng: Random, inner: Axis, outer: Axis) -> tuple[tuple[Axis], str]:
    """One axis for every pair of two, and the lines that find the two again."""
    ours, theirs = (f"({e})" if " " in e else e for e in (inner.extent, outer.extent))
    count = rng.choice(["{0} * {1}", "{1} * {0}"]).format(ours, theirs)
    rest = rng.choice(["t % {1}", "t % {1}", "t - {0} * {1}"]).format(outer.name, ours)
    found = f"int {outer.name} = t / {ours};\nint {inner.name} = {rest};"
    return (Axis("t", count, "x", inner.width * outer.width),), found


def _cover(rng: Random, axis: Axis) -> str:
    w = axis.width
    return rng.choice(
        [
            f"cdiv({axis.extent}, {w})",
            f"({axis.extent} + {w - 1}) / {w}",
            f"cdiv({axis.extent}, {w})",
        ]
    )


def _guarded(rng: Random, over: Sequence[Axis], body: str) -> list[str]:
    outside = [f"{axis.name} >= {axis.extent}" for axis in over]
    inside = [f"{axis.name} < {axis.extent}" for axis in over]
    match rng.randrange(4):
        case 0:
            return [f"if ({' && '.join(inside)}) {{", body, "}"]
        case 1:
            return [*(f"if ({test}) return;" for test in outside), body]
        case 2 if len(over) > 1:
            return [*(f"if ({test}) {{" for test in inside), body, "}" * len(over)]
        case _:
            return [f"if ({' || '.join(outside)}) return;", body]


def indented(text: str) -> str:
    """Lines moved in by their braces."""
    depth, lines = 1, []
    for line in text.splitlines():
        closing = len(re.match(r"\}*", line.strip())[0])
        lines.append("    " * max(depth - closing, 0) + line.strip())
        depth += line.count("{") - line.count("}")
    return "\n".join(lines)


def flat(rng: Random, row: str, width: str, column: str) -> str:
    """The place of (row, column) in rows of ``width``."""
    row = f"({row})" if re.search(r"[-+ ]", row) else row
    return rng.choice(
        [
            f"{row} * {width} + {column}",
            f"{row} * {width} + {column}",
            f"{column} + {row} * {width}",
            f"{width} * {row} + {column}",
        ]
    )
