"""P9, localise: scratch of which each thread asks for elements of its own alone, as a local array.

What a thread leaves for itself, the steps of its path, the rows of its elimination, goes to memory
and comes back where it lies in scratch. Once the loops that walk through it are written out, a
local array of a known number of elements lies in registers, and the scratch is gone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Index, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.belonging import (
    axes_of,
    axis_of,
    digits_in,
    extents_of,
    together,
)
from optiml_magic.kernels.primitives.called import called_alike
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, by_ones, loops_in
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.primitives.paired import alone, done, touching
from optiml_magic.kernels.primitives.passed import without_parameters
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, expressions, walk
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program

WORDS = 128  # registers of all such arrays of a thread: ours
_WORD = 4  # bytes
_WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Local:
    """A thread's own elements of ``array``: a place below ``extents`` for each access.

    Without extents there is one, of the thread or of each round of a loop.
    """

    array: str
    kind: str
    size: int
    extents: tuple[int, ...]
    places: tuple[tuple[Access, Expr, Polynomial], ...]

    @property
    def count(self) -> int:
        return math.prod(self.extents)

    @property
    def words(self) -> int:
        """The registers that hold it."""
        return -(-self.count * self.size // _WORD)


@primitive
def localised(kernel: Kernel, *, single: bool = False) -> Kernel:
    """The kernel with all such scratch as local arrays.

    Or with that alone that is a ``single`` local, of a thread or of each round of a loop.
    """
    kernel = done(called_alike(kernel))
    found = [one for one in own_scratch(kernel) if not (single and one.extents)]
    if not found:
        raise NotLegal("each thread has several elements of its scratch", kernel.function.line)
    if sum(one.words for one in found) > WORDS:
        raise NotLegal("a thread has no room for what it asks for", kernel.function.line)
    kernel = _counted(kernel, {one.array for one in found})
    for one in found:
        kernel = _without(_held(kernel, one.array), one.array)
    return kernel


def _counted(kernel: Kernel, arrays: set[str]) -> Kernel:
    """The kernel with counters that places are spelled by, in the loops that ask for these."""
    for number in range(len(loops_in(kernel.function.body))):
        loop = loops_in(kernel.function.body)[number]
        if any(a.array in arrays for a in Effects(kernel).accesses(loop)):
            kernel = where_legal(as_counted, kernel, number, by_ones)
    return kernel


def own_scratch(kernel: Kernel) -> list[Local]:
    """Such arrays of a kernel; raises NotLegal with the reason where there are none."""
    effects = Effects(kernel)
    effects.straightforward(lanes=True, alone=False)
    function = kernel.function
    if kernel.launch.repeat is not None:
        raise NotLegal("its launches are of several rounds", function.line)
    if "volatile" in code(kernel.unit, function.span):
        raise NotLegal("its memory may change at any time", function.line)
    names = [s.name for s in kernel.program.scratch if touching(kernel, s.name)]
    if not names:
        raise NotLegal("it has no scratch", function.line)
    found, reasons = list[Local](), list[NotLegal]()
    for name in names:
        try:
            found.append(_local(kernel, name, effects))
        except NotLegal as reason:
            reasons.append(reason)
    if not found:
        raise reasons[0]
    return found


def _local(kernel: Kernel, array: str, effects: Effects) -> Local:
    accesses, line = touching(kernel, array), kernel.function.line
    if not alone(kernel, array) or array in effects.moved:
        raise NotLegal(f"others ask for `{array}` as well", line)
    if all(a.mode != "store" for a in accesses):
        raise NotLegal(f"nobody stores to `{array}`", line)
    there = [_element(kernel, effects, access, array) for access in accesses]
    for one, other in combinations_with_replacement(accesses, 2):
        if not together(kernel, one, kernel, other):
            raise NotLegal(f"another thread may ask for the same of `{array}`", other.line)
    digits = _digits(kernel, accesses)
    if _of_a_round(accesses, digits):
        digits = [() for _ in digits]
    extents = tuple(
        max(_extent(kernel, a, d) for a, d in zip(accesses, column, strict=True))
        for column in zip(*digits, strict=True)
    )
    places = [_flat(own, extents) for own in digits]
    kind = accesses[0].element
    return Local(array, kind.name, kind.size or 0, extents,
                 tuple(zip(accesses, there, places, strict=True)))  # fmt: skip


def _of_a_round(accesses: Sequence[Access], digits: Sequence[tuple[Polynomial, ...]]) -> bool:
    """Whether each round has an element of its own, or there is one and no loop."""
    loops = accesses[0].loops
    if len({a.loops for a in accesses}) > 1 or len({*digits}) > 1 or len(loops) > 1:
        return False
    steps = [digit.coefficient(name) for name in loops for digit in digits[0]]
    return not loops or any(step is not None and step.value for step in steps)


def _element(kernel: Kernel, effects: Effects, access: Access, array: str) -> Expr:
    """What stands for an element in the text."""
    place = element(effects, access)
    plain = is_plain(kernel, access) and access.call is None and access.mode != "atomic"
    if not plain or not isinstance(place, Index):
        raise NotLegal(f"not all that is done with `{array}` is followed", access.line)
    return place


def _digits(kernel: Kernel, accesses: Sequence[Access]) -> list[tuple[Polynomial, ...]]:
    """Where each access is among the thread's own elements: the digits that say no thread."""
    for extents in extents_of(accesses[0].array, kernel):
        found = [digits_in(kernel, access, extents) for access in accesses]
        known = [digits for digits in found if digits is not None]
        if len(known) < len(found):
            continue
        own = [
            len({*column}) == 1 and axis_of(kernel, column[0])
            for column in zip(*known, strict=True)
        ]
        if {*axes_of(kernel)} <= {*own}:
            return [tuple(d for d, at in zip(k, own, strict=True) if not at) for k in known]
    raise NotLegal("which elements are a thread's own is not certain", accesses[0].line)


def _extent(kernel: Kernel, access: Access, digit: Polynomial) -> int:
    """The least number that a digit certainly is below; one more than ``WORDS`` is none."""
    ranges = Ranges(access.guard, kernel.reading.symbols)
    low, high = 1, WORDS
    if not ranges.within(digit, Polynomial.constant(high)):
        raise NotLegal(
            f"how many elements of `{access.array}` a thread has is not known", access.line
        )
    while low < high:
        middle = (low + high) // 2
        if ranges.within(digit, Polynomial.constant(middle)):
            high = middle
        else:
            low = middle + 1
    return high


def _flat(digits: Sequence[Polynomial], extents: Sequence[int]) -> Polynomial:
    place = Polynomial()
    for digit, extent in zip(digits, extents, strict=True):
        place = place * Polynomial.constant(extent) + digit
    return place


def _held(kernel: Kernel, array: str) -> Kernel:
    """The kernel with a local array in the place of one, which it does not ask for any longer."""
    effects, body = Effects(kernel), kernel.function.body
    one = _local(kernel, array, effects)
    name = kernel.fresh(f"{array}_own")
    nodes = {there for _, there, _ in one.places}
    first = _declaring(body, nodes, effects, rounds=not one.extents)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for access, there, place in one.places:
        innermost = [s for s in walk(body) if access.own in effects.inside(s)][-1]
        speller = speller_before(kernel, effects, innermost)
        words = speller.form(speller.local(place))
        _check_means(kernel, access, words)
        swaps[there] = text(f"{name}[{words}]" if one.extents else name)
    declared = f"{name}[{one.count}]" if one.extents else name
    swaps[first] = (lines(f"{one.kind} {declared};"), edited(first, swaps))
    made = kernel.rewritten(edited(body, swaps))
    if _named(made, array):
        made = where_legal(pruned, made)  # pointers that led to it
    if _named(made, array):
        raise NotLegal(f"not all that is done with `{array}` is followed", kernel.function.line)
    return made


def _named(kernel: Kernel, array: str) -> bool:
    body = kernel.function.body
    return any(isinstance(e, Name) and e.name == array for e in expressions(body))


def _check_means(kernel: Kernel, access: Access, words: str) -> None:
    """Raise NotLegal where a local hides the counter of a loop that a place is spelled by."""
    for axis in kernel.reading.axes:
        if axis.name in access.loops:
            inner = (s for s in walk(axis.node.body) if isinstance(s, Declare))
            hidden = {v.name for s in inner for v in s.variables} & {*_WORDS.findall(words)}
            if hidden and axis.variable is not None and axis.variable.name in hidden:
                raise NotLegal(f"a local is called `{axis.variable.name}` as well", access.line)


def _declaring(
    body: Block, nodes: set[Expr], effects: Effects, *, rounds: bool = False
) -> Statement:
    """The statement in front of which the array stands that all of these are in.

    It is in no loop but for one of which each of the ``rounds`` has its own, and in branches as
    all of them are.
    """
    inner: Statement = body
    first = body.body[0]
    while True:
        holding = [s for s in inner.statements if nodes & effects.inside(s)]
        if len(holding) != 1 or not nodes <= effects.inside(holding[0]):
            return first if not isinstance(inner, Block) else holding[0]
        if isinstance(inner, Block):
            first = holding[0]
        if (isinstance(holding[0], Loop) and not rounds) or not holding[0].statements:
            return first
        inner = holding[0]


def _without(kernel: Kernel, array: str) -> Kernel:
    """The kernel without a parameter that nothing asks for, in a program without the scratch."""
    unasked = [p for p in kernel.function.parameters if p.name == array]
    program, launch = kernel.program, kernel.launch
    new = launch
    if launch.args is not None:
        new = replace(launch, args=tuple(a for a in launch.args if a.name != array))
    start, end = (len(program.text[:at].encode()) for at in (launch.start, launch.end))
    edits = [*without_parameters(kernel, unasked), Edit(start, end, str(new))]
    program = parse_program(apply(program.text, edits))
    program = program.without(next(s for s in program.scratch if s.name == array))
    found = next(d for d in program.launches if str(d) == str(new))
    return replace(kernel, program=program, launch=found)
