"""P13 over launches: what several threads compute alike, a launch before computes once.

It has a thread for each item of the axes and loops that the work depends on, and leaves what it
finds in scratch, where the kernel then loads it. Each value is found by the same steps as before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, Swaps, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Call, Cast, Choice, Expr, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import check_unfixed
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.limits import limits, some
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.parameters import kernel_beside, with_parameters
from optiml_magic.kernels.primitives.pinned import asked_of, pins
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.toward import Way
from optiml_magic.kernels.primitives.works import Common, Finder
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    ScratchDirective,
)
from optiml_magic.source.expressions import parse_expression

_BLOCKS = ((1,), (128,), (32, 8), (32, 8, 1))
_SIZES = (4, 8)
_MOST = 5  # indices of a result, of which those behind the second are blocks along z; ours


@primitive
def beforehand(kernel: Kernel, at: int, pin: int | None = None, *, apart: bool = False) -> Kernel:
    """The kernel behind a launch that does the work with this number, of ``works``."""
    kernel = kernel.settled()
    finder, found = works(kernel, pin, apart=apart)
    return _Moving(kernel, finder, found[at], found).kernel()


def works(
    kernel: Kernel, pin: int | None = None, *, apart: bool = False
) -> tuple[Finder, list[Common]]:
    """What threads compute alike, innermost first. Raises NotLegal where nothing may be moved.

    And what rounds compute for their thread alone, where these may be threads ``apart``. Of a
    ``pin``, by its number, the works that depend on it, whichever way threads come to it.
    """
    if pin is None:
        finder = _ready(kernel, apart=apart)
        return finder, [*finder.all()]
    one = pins(kernel)[pin]
    finder = _ready(kernel, {one.variable: one.count})
    own = [w for w in finder.all() if one.variable in w.kept]
    return finder, [w for w in own if one.guard is None or _taken(w, one.guard)]


def _taken(work: Common, guard: If) -> bool:
    """Whether a work is done where a branch is taken alone."""
    return any(part is guard and work.path[at + 1] is guard.then
               for at, part in enumerate(work.path[:-1]))  # fmt: skip


def _ready(
    kernel: Kernel, pinned: Mapping[Variable, Polynomial] | None = None, *, apart: bool = False
) -> Finder:
    launch, function = kernel.launch, kernel.function
    if launch.condition is not None or launch.otherwise or launch.repeat is not None:
        raise NotLegal("its launch is one of a dispatch or of several rounds")
    if None in kernel.block:
        raise NotLegal("how many threads its blocks have is not known")
    if not function.parameters or not kernel.unit.origin.whole(*(function.whole or function.span)):
        raise NotLegal("it has no parameters, or a macro makes it")
    check_unfixed(kernel, alone=True)
    without_warps(kernel)
    every_place_read(kernel)
    return Finder(kernel, pinned, apart=apart)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Where a result lies in scratch."""

    variable: Variable
    type: str
    dtype: str
    scratch: str


class _Moving:
    """One such work, and all others that are the same. Raises NotLegal where it cannot move."""

    def __init__(
        self, kernel: Kernel, finder: Finder, work: Common, others: Sequence[Common]
    ) -> None:
        self.old, self.finder, self.effects = kernel, finder, finder.effects
        self.work = work
        self.taken: list[str] = []
        self.speller = Speller(kernel.reading.symbols, {}, moved=self.effects.moved)
        if len(work.kept) > _MOST:
            raise NotLegal("it depends on more axes than a launch has", work.own[0].line)
        self.results = tuple(self._kept(v) for v in work.results)
        plain, _, _ = (kernel.launch.kernel or kernel.function.name).partition("<")
        self.name = self._fresh(f"{plain.rpartition('::')[2]}_{work.results[0].name}")
        self.extents = [finder.extent(one) for one in work.kept]
        self.free = False
        self.same = [work]
        own = self._canonical(work)
        for other in others:
            sizes = [(len(w.results), len(w.kept)) for w in (work, other)]
            if other is not work and sizes[0] == sizes[1]:
                try:
                    alike = self._canonical(other) == own
                except NotLegal:
                    continue
                self.same += [other] if alike else []

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _kept(self, variable: Variable) -> _Kept:
        words = declared_type(self.old, variable)
        kind = named(words, self.old.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and kind.size in _SIZES
        if not plain or kind.depth or variable.array:
            raise NotLegal(f"`{variable.name}` is not a plain number", variable.line)
        scratch = self._fresh(f"{variable.name}_found")
        return _Kept(variable, words, kind.dtype, scratch)

    # -- the launch before

    def _canonical(self, work: Common) -> tuple[str, list[Polynomial]]:
        """What a launch before would do, whatever its locals are called."""
        way = Way(self.old, self.finder, work, self.speller)
        words = way.text([v.name for v in work.results])
        for number, name in enumerate(way.names):
            words = re.sub(rf"\b{name}\b", f"${number}", words)
        return words, [self.finder.extent(one) for one in work.kept]

    def _first(self, name: str) -> tuple[str, list[Variable]]:
        """The text of the kernel that is launched before, and what it is given."""
        way = Way(self.old, self.finder, self.work, self.speller)
        body = way.text([kept.scratch for kept in self.results])
        self.free = way.free
        words = set(re.findall(r"[A-Za-z_]\w*", body))
        given = [p for p in self.old.function.parameters if p.name in words]
        further = (f"{kept.type}* {kept.scratch}" for kept in self.results)
        return kernel_beside(self.old, name, body, further, given), given

    # -- both

    def kernel(self) -> Kernel:
        made = self._kernel(())
        if not self.finder.pinned:
            return made
        asked = asked_of(self.old, made, self.name, self.extents, free=self.free)
        return self._kernel(asked) if asked else made

    def _kernel(self, asked: Sequence[RequireDirective]) -> Kernel:
        old, launch = self.old, self.old.launch
        sizes = [parse_expression(self.speller.form(size)) for size in self.extents]
        if not said_alike(old, frozenset[str]().union(*(size.names for size in sizes))):
            raise NotLegal("its launch has other names for the sizes")
        spelled = launch.kernel or old.function.name
        plain, opening, given = spelled.partition("<")
        scope, colons, _ = plain.rpartition("::")
        made, passed = self._first(self.name)
        counts = [str(size) for size in reversed(sizes)] or ["1"]
        blocks = _BLOCKS[min(len(sizes), len(_BLOCKS) - 1)]
        if more := counts[len(blocks) :]:
            counts[len(blocks) - 1 :] = [
                " * ".join(f"({c})" for c in (counts[len(blocks) - 1], *more))
            ]
        grid = tuple(
            parse_expression(f"cdiv({count}, {width})" if width > 1 else count)
            for count, width in zip(counts, blocks, strict=True)
        )
        block = tuple(parse_expression(str(width)) for width in blocks)
        scratch = [parse_expression(kept.scratch) for kept in self.results]
        args = first = None
        if launch.args is not None:
            args = (*launch.args, *scratch)
            by = dict(zip(old.function.parameters, launch.args, strict=True))
            first = (*(by[p] for p in passed), *scratch)
        name = f"{scope}{colons}{self.name}{opening}{given}"
        before = LaunchDirective(name, grid, block, args=first)
        elements = " * ".join(f"({size})" for size in sizes) or "1"
        asked = (*asked, *some(sizes))
        count = parse_expression(f"max(1, {elements})" if some(sizes) else elements)
        directives: list[Directive] = [
            *(ScratchDirective(kept.scratch, kept.dtype, count) for kept in self.results),
            *limits(old, before),
            *asked,
            before,
        ]
        swaps: dict[Node, Node] = {}
        for body in dict.fromkeys(work.body for work in sorted(self.same, key=_depth)):
            swaps[body] = self._left([work for work in self.same if work.body is body], swaps)
        found = old.rewritten(
            edited(old.function.body, swaps),
            launch=replace(launch, kernel=spelled, args=args),
            directives=directives,
            helpers=[made],
        )
        return with_parameters(
            found, (f"const {kept.type}* {kept.scratch}" for kept in self.results)
        )

    def _left(self, works_: Sequence[Common], swaps: Swaps) -> Block:
        """A body that loads what works of its own have found."""
        left: list[Statement] = []
        for number, statement in enumerate(works_[0].own):
            for work in works_:
                if number == work.chosen[0]:
                    way = Way(self.old, self.finder, work, self.speller)
                    at = way.index(way.called)
                    left += [
                        lines(f"{kept.type} {variable.name} = {kept.scratch}[{at}];")
                        for kept, variable in zip(self.results, work.results, strict=True)
                    ]
            if not any(number in work.chosen for work in works_):
                hints = hints_of(self.old, statement) if isinstance(statement, Loop) else ()
                left += [*hints, edited(statement, swaps)]
        return Block(None, works_[0].body.line, tuple(left))


def _depth(work: Common) -> int:
    return -len(work.path)


def rounding(kernel: Kernel, work: Common) -> bool:
    """Whether a result may be a product, which a compiler rounds with what is added to it.

    Source: CUDA C++ Programming Guide, "Floating-Point Standard": contraction to ``fma``.
    """
    return any(gives_product(kernel, s, work.results) for s in work.statements)


def gives_product(kernel: Kernel, statement: Statement, results: Sequence[Variable]) -> bool:
    """Whether a statement may give one of these a product."""
    given = [v.value for s in walk(statement) if isinstance(s, Declare) for v in s.variables
             if v in results]  # fmt: skip
    for expr in expressions(statement):
        match expr:
            case Assign(op="*=", target=Name(variable=own)) if own in results:
                return True
            case Assign(op="=", target=Name(variable=own), value=value) if own in results:
                given.append(value)
    once = not isinstance(statement, Loop)  # what a loop hands on is rounded by itself
    return any(_may_be(kernel, value, once) for value in given if value is not None)


def _may_be(kernel: Kernel, value: Expr, once: bool) -> bool:
    match value:
        case Binary(op=op):
            return op == "*"
        case Choice(then=then, other=other):
            return any(_may_be(kernel, e, once) for e in (then, other))
        case Cast(operand=operand) | Unary(operand=operand):
            return _may_be(kernel, operand, once)
        case Call(function=function, arguments=given):
            return bool(kernel.unit.called(function, len(given)))
        case Name(variable=variable):
            return once and variable is not None and variable.storage != "parameter"
    return False
