"""P24, keep close: a slice of an array that a block alone asks for, in its shared memory.

A block that sorts, eliminates or relaxes a part of its own reads and writes it in global memory
from barrier to barrier. It brings that part once, works on it in shared memory, and takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Protocol

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Index, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, once, primitive
from optiml_magic.kernels.primitives.block_walk import BlockWalk
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.lane_values import By
from optiml_magic.kernels.primitives.launch_blocks import LaunchBlocks
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import whole_number
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.primitives.touched import WARP, Touched
from optiml_magic.kernels.tree import Block, Declare, Variable, expressions, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import RequireDirective

_WORTH = 2  # times that an element is asked for, for each time it is brought or taken back: ours
_LOADED = 8  # the same where it is loaded alone, by lanes whose elements lie apart: ours
_APART = 8  # sectors of a request, from which they do: ours


@dataclass(frozen=True)
class Slice:
    """``count`` elements from ``least`` on, and ``by`` times the place of the block.

    It is ``brought`` where what was there before counts, and taken ``back`` where others ask for
    it. Where not all blocks are ``certain`` to come to its ends, the launch asks that it is there.
    """

    array: str
    by: By
    least: int
    count: int
    bytes: int
    brought: bool
    back: bool
    certain: bool = field(compare=False)
    times: int = field(compare=False)
    passes: tuple[int, int] = field(compare=False)

    @property
    def copies(self) -> int:
        return self.brought + self.back


@dataclass(frozen=True)
class Slices:
    """What is held of a kernel, which was followed this way, and why other arrays are not."""

    found: tuple[Slice, ...]
    refused: tuple[Refused, ...]
    way: BlockWalk


def slices(kernel: Kernel) -> Slices:
    """The slices of a kernel's blocks, with all of its sizes as numbers."""
    if None in kernel.block or kernel.facts is None:
        raise NotLegal("the extents of its blocks are not known", kernel.function.line)
    return slices_at(kernel, numbers(kernel))


def held(kernel: Kernel, *, spread: bool = False) -> Kernel | Refused:
    """The kernel that holds them, where no more of its sizes are numbers than has to be."""
    try:
        return _held(with_numbers(kernel.settled(), slices_at), spread=spread)
    except NotLegal as reason:
        return Refused(reason.reason, reason.line)


Numbers = tuple[tuple[str, int], ...]  # names and values of sizes


class Found(Protocol):
    @property
    def found(self) -> tuple[object, ...]: ...


@once
def with_numbers(kernel: Kernel, find: Callable[[Kernel, Numbers], Found]) -> Kernel:
    """The kernel with as few of its sizes as numbers as finding the same in it takes."""
    known, sizes = find(kernel, whole := numbers(kernel)), whole
    for name, _ in whole:
        less = tuple(one for one in sizes if one[0] != name)
        with suppress(NotLegal):
            sizes = less if find(kernel, less).found == known.found else sizes
    made = sized(kernel, dict(sizes)) if sizes else kernel
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def numbers(kernel: Kernel) -> Numbers:
    """The whole numbers that the kernel is given, as its launch names them."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    names = [p.name for p in kernel.function.parameters if isinstance(given.get(p.name), int)]
    own = (n for n in names if n not in kernel.program.values and said_alike(kernel, [n]))
    return tuple((name, int(given[name])) for name in own)


@once
def slices_at(kernel: Kernel, sizes: Numbers) -> Slices:
    """The same with these sizes as numbers."""
    walk_ = BlockWalk(kernel, dict(sizes))
    if walk_.returned.any():
        raise NotLegal("threads leave before others have done", kernel.function.line)
    found, refused, left = list[Slice](), list[Refused](), SHARED - _taken(kernel)
    for variable in kernel.function.parameters:
        touched = walk_.touched.get(variable.name)
        apart = touched is not None and touched.sectors >= _APART * touched.requests
        if touched is None or not (touched.stores or (touched.by and apart)):
            continue
        try:
            one = _slice(kernel, variable, touched, walk_.blocks)
        except NotLegal as reason:
            refused.append(Refused(reason.reason, reason.line))
            continue
        if one.bytes > left:
            refused.append(Refused(f"`{one.array}` does not fit shared memory", variable.line))
        elif one.times >= (_WORTH if touched.stores else _LOADED) * one.count * one.copies:
            found.append(one)
            left -= one.bytes
    return Slices(tuple(found), tuple(refused), walk_)


def _taken(kernel: Kernel) -> int:
    """Bytes of shared memory that a block has already."""
    if kernel.launch.shared is not None or kernel.unit.uses_dynamic_shared(kernel.function):
        raise NotLegal("its launch says how much shared memory it has", kernel.function.line)
    total = 0
    for function in kernel.unit.functions:
        for statement in walk(function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.storage == "shared":
                    size = named(variable.type.base, kernel.unit.aliases).size
                    counts = [whole_number(kernel, extent) for extent in variable.extents]
                    if size is None or None in counts:
                        raise NotLegal(
                            f"how large `{variable.name}` is is not known", variable.line
                        )
                    total += size * prod(n or 0 for n in counts)
    return total


def launched_once(kernel: Kernel) -> bool:
    """Whether nobody finds what it leaves in scratch, neither another launch nor its own again."""
    return len(kernel.program.launches) == 1 and kernel.launch.repeat is None


def element_size(kernel: Kernel, variable: Variable) -> int | None:
    """Bytes of an element that may lie in an array of its own; None where that is not certain."""
    structs = kernel.unit.structs
    kind = structs.type(variable.type.base, kernel.unit.aliases)
    return kind.size if kind.kind != "record" or structs.is_plain(kind.name) else None


def _slice(kernel: Kernel, variable: Variable, touched: Touched, blocks: LaunchBlocks) -> Slice:
    name, facts = variable.name, kernel.facts
    size = element_size(kernel, variable)
    if touched.refused is not None:
        reason, line = touched.refused
        raise NotLegal(f"of `{name}`: {reason}", line)
    if facts is None or name not in facts.arrays or size is None:
        raise NotLegal(f"nothing is known of `{name}`", variable.line)
    touched.reach()
    if any(other != name and facts.aliased(name, other) for other in facts.arrays):
        raise NotLegal(f"`{name}` has another name", variable.line)
    if variable.type.volatile:
        raise NotLegal(f"`{name}` is volatile", variable.line)
    if not touched.at_ends() and touched.least < 0:
        raise NotLegal(f"not all blocks are certain to ask for all of `{name}`", variable.line)
    if touched.stores and not blocks.apart(touched.place, touched.count):
        raise NotLegal(f"blocks share parts of `{name}`", variable.line)
    for by, least, most in touched.formed:
        if by != touched.by or least < touched.least or most > touched.most + 1:
            raise NotLegal(f"a pointer leads beside the block's part of `{name}`", variable.line)
    alone = facts.arrays[name].role == "scratch" and launched_once(kernel)
    return Slice(
        name, touched.place, touched.least, touched.count, touched.count * size,
        not touched.whole(), bool(touched.stores) and not alone, touched.at_ends(),
        touched.loads + touched.stores, touched.passes,
    )  # fmt: skip


@primitive
def _held(kernel: Kernel, *, spread: bool) -> Kernel:
    """The kernel with the slices that it has as it stands."""
    known = _as_it_stands(kernel)
    if not known.found:
        raise NotLegal("no block has a part of an array by itself", kernel.function.line)
    return _Holding(kernel, known, spread=spread).kernel()


@once
def _as_it_stands(kernel: Kernel) -> Slices:
    return slices_at(kernel, ())


class _Holding:
    """``spread`` leaves out one word of 33, so that lanes a row apart have other banks."""

    def __init__(self, kernel: Kernel, known: Slices, *, spread: bool) -> None:
        self.old, self.found, self.way = kernel, known.found, known.way
        self.names = dict[str, str]()
        for one in known.found:
            self.names[one.array] = kernel.fresh(f"{one.array}_own", *self.names.values())
        self.spread = kernel.fresh("spread") if spread else ""
        self.own = {
            p: o for p in kernel.function.parameters for o in known.found if o.array == p.name
        }
        self.swaps: dict[Node, Node | None] = {}

    def kernel(self) -> Kernel:
        old, found = self.old, self.found
        body = old.function.body
        (self._spread if self.spread else self._swap)(body)
        kinds = {p.name: p.type.base for p in old.function.parameters}
        begin = [
            f"__shared__ {kinds[one.array]} {self.names[one.array]}[{self._room(one)}];"
            for one in found
        ]
        brought, back = ([o for o in found if o.brought], [o for o in found if o.back])
        begin += [self._copy(one, back=False) for one in brought]
        begin += ["__syncthreads();"] * bool(brought)
        end = ["__syncthreads();"] * bool(back) + [self._copy(one, back=True) for one in back]
        inner = edited(body, self.swaps)
        closing = [lines("\n".join(end))] if end else []
        whole = Block(None, body.line, (lines("\n".join(begin)), *inner.body, *closing))
        helper = f"__device__ __forceinline__ unsigned {self.spread}(unsigned at) {{\n"
        helper += f"    return at + at / {WARP};\n}}\n"
        helpers = [helper] if self.spread else []
        return old.rewritten(whole, directives=[*self._asked()], helpers=helpers)

    def _room(self, one: Slice) -> int:
        return one.count + (one.count - 1) // WARP if self.spread else one.count

    def _asked(self) -> Iterator[RequireDirective]:
        """That no place of a block is beyond 31 bits, and that slices are there."""
        yield from self.way.blocks.asked()
        for one in self.found:
            if not one.certain:
                size = f"size({passed(self.old, one.array)})"
                yield self.way.blocks.there(one.by, one.least + one.count - 1, size)

    def _swap(self, body: Block) -> None:
        """What is asked of the arrays, asked of the slices; inner parts come first."""
        for expr in [*expressions(body)][::-1]:
            match expr:
                case Index(base=Name(variable=Variable() as variable), index=index) if (
                    variable in self.own
                ):
                    self.swaps[expr] = text(f"{self._name(variable)}[{self._at(variable, index)}]")
                case (
                    Binary(op="+", left=Name(variable=Variable() as variable), right=by)
                    | Binary(op="+", left=by, right=Name(variable=Variable() as variable))
                ) if variable in self.own:
                    self.swaps[expr] = text(self._pointer(variable, expr, by))
                case Name(variable=Variable() as variable) if variable in self.own:
                    self.swaps[expr] = text(self._name(variable))

    def _name(self, variable: Variable) -> str:
        return self.names[variable.name]

    def _at(self, variable: Variable, by: Expr) -> str:
        """An index of the array as one of the slice."""
        kind = self.way.types.get(by)
        begin = _begin(self.own[variable], "ull" if kind is not None and kind.size == 8 else "u")
        spelled = self.old.spelled(by, self.swaps)
        if not begin:
            return spelled
        simple = isinstance(by, Name) or (isinstance(by, Binary) and by.op in ("+", "-", "*"))
        return f"{spelled if simple else f'({spelled})'} - ({begin})"

    def _pointer(self, variable: Variable, expr: Expr, by: Expr) -> str:
        at, name = self._led(expr, variable), self._name(variable)
        if at is None:
            return f"({name} + ({self._at(variable, by)}))"
        return f"({name} + {at})" if at else name

    def _led(self, where: Expr | Variable, array: Variable) -> int | None:
        """The one place of the slice where a pointer leads, for all threads."""
        led = self.way.leads.get(where)
        if led is None or led[0] != array.name or (led[1] != led[1][0]).any():
            return None
        return int(led[1][0]) - self.own[array].least

    def _spread(self, body: Block) -> None:
        """The same where each element has its place; pointers that lead to one place are gone."""
        pointers = {
            variable: (self.own[root], at) for variable, (root, at) in self._pointers(body).items()
        }
        for statement in walk(body):
            if isinstance(statement, Declare) and any(v in pointers for v in statement.variables):
                left = tuple(v for v in statement.variables if v not in pointers)
                whole = replace(statement, variables=left, span=None)
                self.swaps[statement] = whole if left else None
        for expr in [*expressions(body)][::-1]:
            match expr:
                case Index(base=Name(variable=Variable() as variable), index=index):
                    if variable in self.own:
                        name, at = self._name(variable), self._at(variable, index)
                    elif variable in pointers:
                        one, by = pointers[variable]
                        name, at = self.names[one.array], self.old.spelled(index, self.swaps)
                        at = f"({at}) + {by}" if by else at
                    else:
                        continue
                    self.swaps[expr] = text(f"{name}[{self.spread}({at})]")

    def _pointers(self, body: Block) -> dict[Variable, tuple[Variable, int]]:
        """Pointers that lead to one place of a slice all along, which indices alone ask for."""
        own, inits = {v.name: v for v in self.own}, set[Expr]()
        found = dict[Variable, tuple[Variable, int]]()
        inner = [s for b in walk(body) if isinstance(b, Block) for s in b.body]
        for variable in (v for s in inner if isinstance(s, Declare) for v in s.variables):
            led = self.way.leads.get(variable)
            free = variable not in self.way.changed | self.way.lent and not variable.type.volatile
            root = own.get(led[0]) if led is not None else None
            at = self._led(variable, root) if root is not None else None
            if root is not None and at is not None and free and variable.value is not None:
                found[variable] = root, at
                inits |= {*every(variable.value)}
        for expr in expressions(body):
            if isinstance(expr, Index):
                inits.add(expr.base)
            beside = isinstance(expr, Name) and expr not in inits and expr.variable
            if beside and (beside in found or beside in self.own):
                raise NotLegal("a pointer leads into what is spread", body.line)
        return found

    def _copy(self, one: Slice, *, back: bool) -> str:
        """The threads of a block copy its slice, one behind the other."""
        width, height, depth = (n or 1 for n in self.old.block)
        threads, rank = width * height * depth, "threadIdx.x"
        if height * depth > 1:
            rank = f"threadIdx.y * {width} + threadIdx.x"
            rank = f"threadIdx.z * {width * height} + {rank}" if depth > 1 else rank
        at = self.old.fresh("element")
        place = " + ".join([*filter(None, [_begin(one, "ull")]), at])
        within = f"{self.spread}({at})" if self.spread else at
        outer, own = f"{one.array}[{place}]", f"{self.names[one.array]}[{within}]"
        copied = f"{outer} = {own};" if back else f"{own} = {outer};"
        return f"for (int {at} = {rank}; {at} < {one.count}; {at} += {threads})\n    {copied}"


def _begin(one: Slice, suffix: str) -> str:
    """Where the slice of a block begins."""
    parts = [name + (f" * {factor}{suffix}" if factor != 1 else "") for name, factor in one.by]
    return " + ".join([*parts, *([f"{one.least}"] if one.least else [])])
