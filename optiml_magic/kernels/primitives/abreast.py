"""P9, items abreast: a thread takes several items a block apart, round by round.

Loops that make the same rounds for all items stand around these, so what a round loads alike for
all of them a compiler loads once, and each item has accumulators of its own. Items beyond the last
do what the last one does, and store nothing: no branch stands around the loops, and each thread
comes to them. Source of the shape: Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Lambda,
    Literal,
    Name,
    Unary,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Number, parse_expression

_PURE_CALLS = ("min", "max", "abs")
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_NONE: Mapping[Node, Node] = {}
_OURS = ("threadIdx.x", "blockIdx.x")


@dataclass(frozen=True)
class Abreast:
    """How many items a thread takes, and threads of a block of one axis: to begin with, and all."""

    items: int = 4
    block: int = 128
    counts: tuple[int, ...] = (1, 2, 4, 8)
    blocks: tuple[int, ...] = (32, 64, 128, 256)


@dataclass(eq=False)
class _Part:
    """Statements that each item does in turn; or a loop around parts."""

    run: list[Statement] = field(default_factory=list)
    loop: Loop | None = None
    inner: list[_Part] = field(default_factory=list)

    @property
    def trees(self) -> Iterator[Statement]:
        yield from self.run
        if self.loop is not None:
            yield self.loop


@primitive
def abreast(kernel: Kernel, how: Abreast) -> Kernel:
    """The kernel whose threads take several items along x."""
    return Rounds(kernel.settled()).kernel(how)


def item_names(kernel: Kernel) -> tuple[str, str]:
    """What the items of a thread and the block's extent are called; empty where that stays."""
    launch = kernel.launch
    single = len(launch.block) == 1 and isinstance(launch.block[0].tree, Number)
    own = single and not kernel.function.launch_bounds
    return kernel.fresh("ITEMS"), kernel.fresh("BLOCK") if own else ""


class Rounds:
    """The items of a kernel, and the loops whose rounds are the same for all of them.

    Raises NotLegal where there are none.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.items: Mapped = mapped(kernel, self.effects)
        self.written = kernel.reading.written
        self.kept: set[Loop] = set()
        self._counters: set[Variable] = set()  # of these
        self._varying: set[Variable] = set()
        self._sure = self._surely()
        self._sort()
        self.parts = self._parts(self.items.inside)
        ends = [at for at, part in enumerate(self.parts) if part.loop is not None]
        if not ends:
            raise NotLegal("no loop makes the same rounds for all items", kernel.function.line)
        self.last = ends[-1] + 1  # of the parts, the first that stands behind all loops
        self._check()

    # What is the same for all items.

    def loops(self) -> Iterator[Loop]:
        """The loops that stand around the items."""
        todo = [*self.parts]
        while todo:
            part = todo.pop(0)
            todo = [*part.inner, *todo]
            if part.loop is not None:
                yield part.loop

    def alike(self, access: Access) -> bool:
        """Whether a load takes the same element for all items."""
        known = self.old.reading.symbols
        return access.offset is not None and not {*_OURS} & known.depends(access.offset)

    def _sort(self) -> None:
        """Loops with the same rounds for all items, and locals that may differ between these."""
        for statement in self.items.inside:
            for inner in walk(statement):
                if isinstance(inner, Loop) and self._is_kept(inner):
                    self.kept.add(inner)
                for variable in inner.variables if isinstance(inner, Declare) else ():
                    if variable not in self._counters and not self._lasts(variable):
                        self._varying.add(variable)

    def _lasts(self, variable: Variable) -> bool:
        """Whether a local keeps what all items agree on."""
        lasts = variable in self.effects.lasting and not variable.array
        return lasts and variable.value is not None and self._same(variable.value)

    def _same(self, expr: Expr) -> bool:
        """Whether all items have the same value of it, for which nothing is loaded in vain."""
        if expr in self.items.swaps or builtin(expr) in _OURS:
            return False
        if expr in self._sure:
            return all(map(self._same, expr.parts))
        match expr:
            case Name(variable=Variable() as variable):
                return variable not in self._varying and variable is not self.items.holding
            case Unary(op=op) if op not in "+-!~":
                return False
            case Call(function=name) if name not in _PURE_CALLS:
                return False
        plain = Literal | Name | Binary | Cast | Choice | Unary | Call
        known = bool(builtin(expr)) or isinstance(expr, plain)
        return known and (bool(builtin(expr)) or all(map(self._same, expr.parts)))

    def _surely(self) -> dict[Expr, Access]:
        """Loads that every item makes in each round, of the same element, which nobody writes."""
        found = dict[Expr, Access]()
        reading = self.old.reading
        guards = {axis.name: {part for c in (*axis.guard, axis.test) for part in c.conjuncts()}
                  for axis in reading.axes}  # fmt: skip
        for access in reading.accesses:
            held = guards[access.loops[-1]] if access.loops else self.items.held
            sure = {part for c in access.guard for part in c.conjuncts()} <= held
            steady = not any(self.effects.same(access.array, other) for other in self.written)
            load = access.mode == "load" and access.space == "global" and access.call is None
            if load and sure and steady and not access.verbatim and self.alike(access):
                found[access.node] = access
        return found

    def _is_kept(self, loop: Loop) -> bool:
        axis = self.old.axes().get(loop)
        if axis is None or not axis.exact or not is_counted(axis, self.effects):
            return False
        own = axis.variable
        assert own is not None
        self._counters.add(own)
        head = (loop.test, *(loop.before.expressions if loop.before else ()))
        if all(self._same(e) for e in head if e is not None):
            return True
        self._counters.discard(own)
        return False

    # Parts of the body.

    def _parts(self, body: Sequence[Statement]) -> list[_Part]:
        found: list[_Part] = []
        for statement in self._flat(body):
            if isinstance(statement, Loop) and statement in self.kept:
                while found and found[-1].run and isinstance(found[-1].run[-1], Blank):
                    found[-1].run.pop()  # it is said of the loop
                inner = statement.body
                own = inner.body if isinstance(inner, Block) else (inner,)
                found.append(_Part(loop=statement, inner=self._parts(own)))
            else:
                if not found or found[-1].loop is not None:
                    found.append(_Part())
                found[-1].run.append(statement)
        return [part for part in found if part.run or part.loop]

    def _flat(self, body: Sequence[Statement]) -> Iterator[Statement]:
        for statement in body:
            if isinstance(statement, Block) and self.kept & {*loops_in(statement)}:
                yield from self._flat(statement.body)
            else:
                yield statement

    def _check(self) -> None:
        kernel = self.old
        for access in kernel.reading.accesses:
            if access.mode == "atomic":
                raise NotLegal("threads may wait for what an atomic operation says", access.line)
        if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
            raise NotLegal("it has a function within itself")
        before = [tree for part in self.parts[: self.last] for tree in part.trees]
        for tree in before:
            for access in self.effects.accesses(tree):
                if access.mode != "load":
                    raise NotLegal("it stores before its last loop ends", access.line)
                if any(self.effects.same(access.array, other) for other in self.written):
                    raise NotLegal(f"`{access.array}` is written as well", access.line)
            for statement in walk(tree):
                if isinstance(statement, Leave) and statement.kind == "return":
                    raise NotLegal("the kernel is left before its last loop ends", statement.line)
        for loop in self.loops():
            own = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
            left = [leave for statement in own for leave in _leaves(statement)]
            if left and (len(self._parts(own)) > 1 or any(s.kind == "break" for s in left)):
                raise NotLegal("an item may end a round before the others", left[0].line)

    # Text.

    def kernel(self, how: Abreast) -> Kernel:
        """Such threads, with names for the tuner."""
        old = self.old
        self.count, self.block = item_names(old)
        words = self.items.words
        wide = any(w in words for w in ("long", "size_t", "64", "ptrdiff"))
        self.first = old.fresh(f"{self.items.name}_first")
        self.item = old.fresh("item")
        self.shared: list[str] = []  # names of what all items load
        self._expand()
        cast, kind = ("(size_t)", "size_t") if wide else ("", "unsigned int")
        at = f"{cast}blockIdx.x * (blockDim.x * {self.count}) + threadIdx.x"
        made = [f"const {kind} {self.first} = {at};", *self._written(self.parts, top=True)]
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
        for parts in self._lists(self.parts):
            asked = [self._asked(part) for part in parts]
            for part in parts:
                for variable in self._declared(part):
                    if variable not in self._varying:
                        continue
                    if sum(variable in found for found in asked) < 2:
                        continue
                    if variable.type.reference or variable.array or variable.initial:
                        reason = f"`{variable.name}` cannot be one for each item"
                        raise NotLegal(reason, variable.line)
                    if names.count(variable.name) > 1:
                        raise NotLegal(f"`{variable.name}` are several locals", variable.line)
                    self.expanded.add(variable)

    def _lists(self, parts: list[_Part]) -> Iterator[list[_Part]]:
        yield parts
        for part in parts:
            yield from self._lists(part.inner) if part.loop is not None else ()

    def _declared(self, part: _Part) -> Iterator[Variable]:
        for statement in part.run:
            if isinstance(statement, Declare):
                yield from statement.variables

    def _asked(self, part: _Part) -> set[Variable]:
        trees = [*part.trees]
        named = {e.variable for t in trees for e in expressions(t)
                 if isinstance(e, Name) and e.variable is not None}  # fmt: skip
        return named | {*self._declared(part)}

    def _written(self, parts: list[_Part], *, top: bool = False) -> list[str]:
        made = [
            f"{self._type(variable)} {variable.name}[{self.count}];"
            for part in parts for variable in self._declared(part) if variable in self.expanded
        ]  # fmt: skip
        for at, part in enumerate(parts):
            if part.loop is None:
                made += self._each(part.run, stores=top and at >= self.last, inside=not top)
                continue
            head = replace(part.loop, body=Block(None, 0, ()), span=None, head=None)
            shown = self.old.show(edited(head, self._swaps([head])))
            made += [
                f"{shown.rstrip().removesuffix('}').rstrip()}",
                *self._written(part.inner),
                "}",
            ]
        return made

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
        """What all items load alike, into locals, which ``swaps`` has in its place."""
        names: dict[str, str] = {}
        for expr in (e for statement in run for e in expressions(statement)):
            access = self._sure.get(expr)
            if access is None or not self._same(expr):
                continue
            shown = self._shown(expr)
            if shown not in names:
                array = re.sub(r"\W", "_", access.array)
                names[shown] = self.old.fresh(f"{array}_now", *self.shared)
                self.shared.append(names[shown])
                yield f"const {access.element.name} {names[shown]} = {shown};"
            swaps[expr] = text(names[shown])

    def _once(self, statement: Statement) -> bool:
        """Whether this declares what all items have the same value of, from arithmetic alone."""
        return isinstance(statement, Declare) and not self._varying & {*statement.variables}

    def _for_items(self, body: str, *, stores: bool) -> list[str]:
        limit, name = self._limit, self.items.name
        own = f"{self.first} + {self.item} * blockDim.x"
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
            v in self.expanded and v.value is None for v in statement.variables
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
            elif value is not None:
                yield Evaluate(None, 0, Assign(None, "=", self._one(variable.name), value))

    def _one(self, name: str) -> Expr:
        return text(f"{name}[{self.item}]")

    def _type(self, variable: Variable) -> str:
        kind = self.old.reading.types.get(variable.value) if variable.value else None
        if variable.type.base == "auto":
            if kind is None or kind.depth:
                raise NotLegal(f"the type of `{variable.name}` is not known", variable.line)
            return kind.name
        const = "const " if variable.type.const and variable.type.depth else ""
        return f"{const}{variable.type.base}{'*' * variable.type.depth}"

    @property
    def _limit(self) -> str:
        reading = self.old.reading
        steady = frozenset(reading.arrays) - reading.written
        speller = LocalSpeller(reading.symbols, {}, steady=steady, moved=self.effects.moved)
        speller.kernel = self.old
        return self.items.limit(speller)

    def _shown(self, expr: Expr) -> str:
        return self.old.show(Evaluate(None, 0, expr)).removesuffix(";")

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        block = self.block or f"({launch.block[0]})"
        blocks = parse_expression(f"cdiv({self.items.count}, {block} * {self.count})")
        extents = (parse_expression(block), *launch.block[1:])
        return replace(launch, grid=(blocks, *launch.grid[1:]), block=extents)

    def _tunes(self, how: Abreast) -> list[TuneDirective]:
        found = [TuneDirective(self.count, how.counts, how.items)]
        if self.block:
            found.append(TuneDirective(self.block, how.blocks, how.block))
        return found


def _leaves(statement: Statement) -> Iterator[Leave]:
    """The ways out of a round that lie in a statement, not those of loops within it."""
    if isinstance(statement, Leave):
        yield statement
    elif not isinstance(statement, Loop):
        for inner in statement.statements:
            yield from _leaves(inner)


def _stands(name: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", words) is not None
