"""P9, items in a bunch: a thread takes several items a block apart, round by round.

Loops that make the same rounds for all items stand around these, so what a round loads alike for
all of them a compiler loads once, and each item has accumulators of its own. Items beyond the last
do what the last one does, and store nothing: no branch stands around the loops, and each thread
comes to them. Source of the shape: Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Expr,
    Literal,
    Name,
)
from optiml_magic.kernels.primitives.alike import Part, Rounds
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cornered import Corner, corner
from optiml_magic.kernels.primitives.effects import declared_in, loops_in
from optiml_magic.kernels.primitives.effects import names as names_in
from optiml_magic.kernels.primitives.naming import LocalSpeller, declared_type
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Number, parse_expression

_PURE_CALLS = ("min", "max", "abs")
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_NONE: Mapping[Node, Node] = {}


@dataclass(frozen=True)
class Bunch:
    """How many items a thread takes, and threads of a block of one axis: to begin with, and all.

    The items lie along ``axis``.
    """

    items: int = 4
    block: int = 128
    counts: tuple[int, ...] = (1, 2, 4, 8)
    blocks: tuple[int, ...] = (32, 64, 128, 256)
    axis: str = "x"


@primitive
def bunched(kernel: Kernel, how: Bunch) -> Kernel:
    """The kernel whose threads take several items along an axis."""
    return _Taking(Rounds(kernel.settled(), how.axis)).kernel(how)


def item_names(kernel: Kernel) -> tuple[str, str]:
    """What the items of a thread and the block's extent are called; empty where that stays."""
    launch = kernel.launch
    single = len(launch.block) == 1 and isinstance(launch.block[0].tree, Number)
    own = single and not kernel.function.launch_bounds
    return kernel.fresh("ITEMS"), kernel.fresh("BLOCK") if own else ""


class _Taking:
    """Makes the text of threads that take several items."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.old, self.effects, self.items = rounds.old, rounds.effects, rounds.items
        self.axis = rounds.items.axis

    def kernel(self, how: Bunch) -> Kernel:
        """Such threads, with names for the tuner."""
        old = self.old
        self.count, self.block = item_names(old)
        words = self.items.words
        far = any(w in words for w in ("long", "size_t", "64", "ptrdiff"))
        self.first = old.fresh(f"{self.items.name}_first")
        self.item = old.fresh("item")
        self.shared: list[str] = []  # names of what all items have alike
        self._expand()
        cast, kind = ("(size_t)", "size_t") if far else ("", "unsigned int")
        block, wide, thread = (f"{n}.{self.axis}" for n in ("blockIdx", "blockDim", "threadIdx"))
        at = f"{cast}{block} * ({wide} * {self.count}) + {thread}"
        made = [f"const {kind} {self.first} = {at};", *self._written(self.rounds.parts, top=True)]
        if self.items.tests:
            shown = (f"({self._shown(test)})" for test in self.items.tests)
            made = [f"if ({' && '.join(shown)}) {{", *made, "}"]
        body = replace(
            old.function.body, body=(*self.items.outside, lines("\n".join(made)))
        )  # fmt: skip
        return old.rewritten(body, launch=self._launch(), directives=self._tunes(how))

    def _expand(self) -> None:
        """The locals that are one for each item, as several parts ask for them."""
        self.expanded: set[Variable] = set()
        names = [v.name for s in walk(self.old.function.body) if isinstance(s, Declare)
                 for v in s.variables]  # fmt: skip
        if names.count(self.items.name) > 1:
            raise NotLegal(
                f"`{self.items.name}` is the name of several locals", self.old.function.line
            )
        for parts in self._lists(self.rounds.parts):
            asked = [self._asked(part) for part in parts]
            for part in parts:
                for variable in self._declared(part):
                    if variable not in self.rounds.varying:
                        continue
                    if sum(variable in found for found in asked) < 2:
                        continue
                    if variable.type.reference or not _empty(variable):
                        reason = f"`{variable.name}` cannot be one for each item"
                        raise NotLegal(reason, variable.line)
                    if names.count(variable.name) > 1:
                        raise NotLegal(
                            f"`{variable.name}` is the name of several locals", variable.line
                        )
                    self.expanded.add(variable)

    def _lists(self, parts: list[Part]) -> Iterator[list[Part]]:
        yield parts
        for part in parts:
            yield from self._lists(part.inner) if part.loop is not None else ()

    def _declared(self, part: Part) -> Iterator[Variable]:
        for statement in part.run:
            if isinstance(statement, Declare):
                yield from statement.variables

    def _asked(self, part: Part) -> set[Variable]:
        trees = [*part.trees]
        named = {e.variable for t in trees for e in expressions(t)
                 if isinstance(e, Name) and e.variable is not None}  # fmt: skip
        return named | {*self._declared(part)}

    def _written(self, parts: list[Part], *, top: bool = False) -> list[str]:
        made = [
            f"{declared_type(self.old, variable)} {variable.name}[{self.count}]"
            f"{self._extents(variable)};"
            for part in parts for variable in self._declared(part) if variable in self.expanded
        ]  # fmt: skip
        for at, part in enumerate(parts):
            if part.loop is None:
                made += self._each(part.run, stores=top and at >= self.rounds.last, inside=not top)
                continue
            own = corner(self.old, self.items, self.effects, part) if self.axis == "x" else None
            if own is not None:
                made += self._beside_the_diagonal(own)
                continue
            head = replace(part.loop, body=Block(None, 0, ()), span=None, head=None)
            shown = self.old.show(edited(head, self._swaps([head])))
            made += [
                *(self.old.show(hint).strip() for hint in part.hints),
                f"{shown.rstrip().removesuffix('}').rstrip()}",
                *self._written(part.inner),
                "}",
            ]
        return made

    def _beside_the_diagonal(self, own: Corner) -> list[str]:
        """Rounds that all items of a block make, and those of which some items make some."""
        counter, kind = own.counter.name, declared_type(self.old, own.counter)
        at = len(self.shared)
        for word in ("least", "all", "end"):
            self.shared.append(self.old.fresh(f"{counter}_{word}", *self.shared))
        least, most, end = self.shared[at:]
        first = f"(long long)blockIdx.x * (blockDim.x * {self.count})"
        offset = self._speller.form(own.offset)
        start, stop = self._shown(own.start), self._shown(own.stop)
        # Where items begin or end: the first one of the block, and the one behind the last.
        places = [f"{first} + {offset}", f"{first} + blockDim.x * {self.count} - 1 + {offset}"]
        least_, most_ = (f"({kind})min(max({place}, (long long)({start})), (long long)({end}))"
                         for place in places)  # fmt: skip
        bounds = [
            f"const {kind} {end} = {stop};",
            f"const {kind} {least} = {least_};",
            f"const {kind} {most} = {most_};",
        ]
        tested = [*own.lets, own.branch]
        alone = [*own.lets, *body_of(own.branch.then)]
        ranges = [(least, most, tested), (most, end, alone)]
        if own.ends:
            ranges = [(f"({kind})({start})", least, alone), (least, most, tested)]
        made = list[str]()
        for begin, behind, run in ranges:
            made += [
                f"for ({kind} {counter} = {begin}; {counter} < {behind}; ++{counter}) {{",
                *self._each(run, stores=False, inside=True),
                "}",
            ]
        return [*bounds, *made]

    def _each(self, run: Sequence[Statement], *, stores: bool, inside: bool) -> list[str]:
        """Statements for each item in turn; where they store, for those that there are."""
        once = [self.old.show(s, self._swaps([s])) for s in run if self._once(s)]
        rest = [s for s in run if not self._once(s) and not self._idle(s)]
        shared: dict[Node, Node] = {}
        if inside:
            once += self._loaded(rest, shared)
        whole = self.old.show(Block(None, 0, tuple(rest)), self._swaps(rest, shared))
        body = whole.strip().removeprefix("{").removesuffix("}").strip()
        if not body:
            return once
        return [*once, *self._for_items(body, stores=stores)]

    def _loaded(self, run: Sequence[Statement], swaps: dict[Node, Node]) -> Iterator[str]:
        """What all items load alike, into locals, which ``swaps`` has in its place.

        Not what loops within load, which may make no round, nor by what is declared within.
        """
        names: dict[str, str] = {}
        late = {e for s in run for loop in loops_in(s) for e in self.effects.inside(loop)}
        within = {v for s in run for v in declared_in(s)}
        for expr in (e for statement in run for e in expressions(statement)):
            access = self.rounds.sure.get(expr)
            if access is None or not self.rounds.same(expr):
                continue
            if expr in late or names_in([expr]) & within:
                continue
            shown = self._shown(expr)
            if shown not in names:
                array = re.sub(r"\W", "_", access.array)
                names[shown] = self.old.fresh(f"{array}_now", *self.shared)
                self.shared.append(names[shown])
                # A member function need not promise that it changes nothing.
                const = "" if access.element.kind == "record" else "const "
                yield f"{const}{access.element.name} {names[shown]} = {shown};"
            swaps[expr] = text(names[shown])

    def _once(self, statement: Statement) -> bool:
        """Whether this declares what all items have the same value of, from arithmetic alone."""
        return isinstance(statement, Declare) and not self.rounds.varying & {*statement.variables}

    def _for_items(self, body: str, *, stores: bool) -> list[str]:
        limit, name = self._limit, self.items.name
        own = f"{self.first} + {self.item} * blockDim.{self.axis}"
        index = f"const {self.items.words} {name} = "
        there = f"{index}{own} < {limit} ? {own} : {limit} - 1;"
        named = [f"{index}{own};" if stores else there] if _stands(name, body) else []
        head = [
            "#pragma unroll",
            f"for (int {self.item} = 0; {self.item} < {self.count}; ++{self.item}) {{",
        ]
        if stores:
            return [*head, f"if ({own} < {limit}) {{", *named, body, "}", "}"]
        return [*head, *named, body, "}"]

    def _idle(self, statement: Statement) -> bool:
        """Whether nothing is left of a declaration, whose locals begin with no value."""
        return isinstance(statement, Declare) and all(
            v in self.expanded and (v.value is None or v.array) for v in statement.variables
        )

    def _swaps(self, run: Sequence[Statement], shared: Mapping[Node, Node] = _NONE) -> _Swaps:
        found: _Swaps = {**self.items.swaps, **shared}
        for statement in run:
            for expr in expressions(statement):
                if isinstance(expr, Name) and expr.variable in self.expanded:
                    found[expr] = self._one(expr.name)
            for inner in walk(statement):
                if isinstance(inner, Leave) and inner.kind == "return":
                    found[inner] = lines("continue;")
        for statement in run:
            if isinstance(statement, Declare) and self.expanded & {*statement.variables}:
                found[statement] = tuple(self._begun(statement, found))
        return found

    def _begun(self, statement: Declare, swaps: _Swaps) -> Iterator[Statement]:
        for variable in statement.variables:
            value = edited(variable.value, swaps) if variable.value is not None else None
            if variable not in self.expanded:
                alone = replace(statement, variables=(variable,), span=None)
                yield edited(alone, swaps)
            elif value is not None and not variable.array:
                yield Evaluate(None, 0, Assign(None, "=", self._one(variable.name), value))

    def _one(self, name: str) -> Expr:
        return text(f"{name}[{self.item}]")

    def _extents(self, variable: Variable) -> str:
        """Those of a local array, which begins with zeros where it said so."""
        found = "".join(f"[{self._shown(e)}]" for e in variable.extents if e is not None)
        return f"{found} = {{}}" if variable.opening == "{" else found

    @property
    def _limit(self) -> str:
        return self.items.limit(self._speller)

    @property
    def _speller(self) -> LocalSpeller:
        reading = self.old.reading
        steady = frozenset(reading.arrays) - reading.written
        speller = LocalSpeller(reading.symbols, {}, steady=steady, moved=self.effects.moved)
        speller.kernel = self.old
        return speller

    def _shown(self, expr: Expr) -> str:
        return self.old.spelled(expr)

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        grid, extents, at = [*launch.grid], [*launch.block], "xyz".index(self.axis)
        block = self.block or f"({extents[at]})"
        grid[at] = parse_expression(f"cdiv({self.items.count}, {block} * {self.count})")
        extents[at] = parse_expression(block)
        return replace(launch, grid=tuple(grid), block=tuple(extents))

    def _tunes(self, how: Bunch) -> list[TuneDirective]:
        found = [TuneDirective(self.count, how.counts, how.items)]
        if self.block:
            found.append(TuneDirective(self.block, how.blocks, how.block))
        return found


def _empty(variable: Variable) -> bool:
    """Whether a local begins as one value, or as an array of none or of zeros."""
    if not variable.array:
        return not variable.initial
    begun = variable.initial if variable.value is None else (variable.value,)
    zeros = all(isinstance(e, Literal) and not e.value for e in begun)
    return zeros and None not in variable.extents


def _stands(name: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
