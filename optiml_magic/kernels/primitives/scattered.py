"""P20 over launches: a thread that adds up the rounds of its own key, by a thread for each round.

``for (i) if (key[i] == k) sum += x[i]`` goes through all rounds for each ``k``, though a round says
by itself whose it is. A launch before has a thread for each round, which adds to the sum of its key
by an atomic operation; the kernel then takes that sum in the place of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Expr,
    Literal,
    Name,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import parted
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.keyed_rounds import WORD, Rounds, Share, added_to, by_key
from optiml_magic.kernels.primitives.mapped import joined_test
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.parameters import kernel_beside, with_parameters
from optiml_magic.kernels.primitives.toward import Way
from optiml_magic.kernels.primitives.works import Common, Finder, One
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Statement,
    Variable,
    walk,
)
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    ScratchDirective,
    ZeroDirective,
)
from optiml_magic.source.expressions import parse_expression

_BLOCK = 256
_MOST = 2**31 - 1  # threads that an `int` numbers


@primitive
def scattered(kernel: Kernel, at: int) -> Kernel:
    """The kernel behind a launch that has a thread for each round of the loop with this number."""
    kernel = kernel.settled()
    finder, found = by_key(kernel, at)
    return _Scattering(kernel, finder, found).kernel()


class _Toward(Way):
    """What leads to a round, whose thread along one axis is known by its key alone."""

    def __init__(
        self, kernel: Kernel, finder: Finder, found: Rounds, work: Common, speller: Speller,
        own: str,
    ) -> None:  # fmt: skip
        self.key_axis, self.key_name = found.axis, own
        super().__init__(kernel, finder, work, speller)

    def _stand(self, axis: str, words: str) -> None:
        super()._stand(axis, self.key_name if axis == self.key_axis else words)

    def held(self, axis: str) -> str:
        """How the kernel calls an index in front of the loop."""
        for statement in self._declared():
            (variable,) = statement.variables
            if variable.value is not None and self.finder.whole.get(variable.value) == axis:
                return variable.name
        return self._whole(axis)

    def leading(self) -> list[Statement]:
        """What a thread does on its way to the round."""
        return [s for block, child in self._blocks() for s in self._through(block, child)]


class _Scattering:
    """Both launches. Raises NotLegal where the rounds cannot have threads of their own."""

    def __init__(self, kernel: Kernel, finder: Finder, found: Rounds) -> None:
        self.old, self.finder, self.found = kernel, finder, found
        self.taken: list[str] = []
        self.speller = Speller(kernel.reading.symbols, {}, moved=finder.effects.moved)
        self.held = self._held()
        self.own = self.held.name if self.held is not None else self._fresh("own")
        others: list[One] = [a for a in finder.launched if a != found.axis]
        kept = sorted((*others, found.loop), key=lambda one: one == "x")
        body = found.path[-1]
        assert isinstance(body, Block)
        statements = tuple(parted(body))
        work = Common(
            found.path, body, statements, tuple(range(len(statements))), tuple(found.sums),
            tuple(kept), (found.axis,),
        )  # fmt: skip
        self.way = _Toward(kernel, finder, found, work, self.speller, self.own)
        self.way.holding |= {self.held} if self.held is not None else set()
        self.extents = {a: finder.extent(a) for a in finder.launched}
        self.scratch = {v: self._fresh(f"{v.name}_found") for v in found.sums}
        plain, _, _ = (kernel.launch.kernel or kernel.function.name).partition("<")
        self.name = self._fresh(f"{plain.rpartition('::')[2]}_rounds")

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def _held(self) -> Variable | None:
        """The local that the key is compared with, where it may hold the key itself."""
        share = self.found.shares[0]
        index = share.index
        if not isinstance(index, Name) or index.variable is None:
            return None
        kind = type_of(self.old, index.variable)
        return index.variable if kind.name == self._kind() else None

    def _place(self, called: dict[str, str]) -> str:
        """Where the sum of a thread lies, whose indices are called so."""
        found = ""
        for axis in self.finder.launched:
            if not found:
                found = f"(size_t){called[axis]}" if len(called) > 1 else called[axis]
            else:
                found = f"({found})" if "+" in found else found
                found += f" * {self.speller.factor(self.extents[axis])} + {called[axis]}"
        return found

    @property
    def _count(self) -> str:
        return self.speller.form(self.extents[self.found.axis])

    # -- the launch before

    def _round(self) -> str:
        """The body of the kernel that has a thread for each round."""
        old, way, found, finder = self.old, self.way, self.found, self.finder
        named = dict(zip(way.work.kept, way.own, strict=True))
        way.bounds = [
            f"{name} >= {self.speller.form(finder.extent(one))}" for one, name in named.items()
        ]
        opening = self._opening()
        way.bounds.append(f"{self.own} >= {self._count}")
        led: dict[bool, list[Statement]] = {False: [], True: []}
        for statement in (*way.leading(), *found.locals):
            led[found.axis in self._of(statement)].append(statement)
        self._check_names([*named.values(), self.own], [*led[False], *led[True]])
        first = [self._leave(test) for test in found.shares[0].first]
        called = {str(one): name for one, name in named.items() if isinstance(one, str)}
        place = self._place({**called, found.axis: self.own})
        shares = [self._share(share, place) for share in found.shares]
        shown = [self._shown(s) for s in (*led[False], *first)]
        inside = [*map(self._shown, led[True]), *shares]
        key = old.spelled(found.key, way.swaps)
        return "\n".join([
            *opening, *shown,
            f"const {self._kind()} {self.own} = {key};",
            f"if ({self._outside()}) return;",
            *inside,
        ])  # fmt: skip

    def _opening(self) -> list[str]:
        """The index of a thread's round, and those that its kernel had along other axes.

        All are digits of one, since there may be more rounds than a grid has blocks along y.
        """
        way, sizes = self.way, self._sizes
        if len(sizes) == 1:
            return [*way.opening, f"if ({way.bounds[0]}) return;"]
        item, place = self._fresh("item"), "blockIdx.x * blockDim.x + threadIdx.x"
        found = [f"const int {item} = {place};"]
        found.append(f"if ({item} >= {self.speller.form(self._items)}) return;")
        behind = Polynomial.constant(1)
        digits = list[str]()
        # The last is along x, and the opening has them in the order of the axes.
        for number, (size, opening) in enumerate(zip(reversed(sizes), way.opening, strict=True)):
            digit = f"{item} / {self.speller.factor(behind)}" if number else item
            if number + 1 < len(sizes):
                digit += f" % {self.speller.factor(size)}"
            behind = behind * size
            begin, equal, _ = opening.partition("= ")
            digits.append(f"{begin}{equal}{digit};")
        return [*found, *digits]

    @property
    def _sizes(self) -> list[Polynomial]:
        return [self.finder.extent(one) for one in self.way.work.kept]

    @property
    def _items(self) -> Polynomial:
        """How many threads the launch of the rounds has."""
        return _product(self._sizes)

    def _kind(self) -> str:
        kind = self.old.reading.types[self.found.key]
        if kind.signed or (kind.size or 0) < WORD:
            return "int" if (kind.size or 0) <= WORD else "long long"
        return "unsigned int" if kind.size == WORD else "unsigned long long"

    def _outside(self) -> str:
        above = f"{self.own} >= {self._count}"
        return above if self._kind().startswith("unsigned") else f"{self.own} < 0 || {above}"

    def _of(self, statement: Statement) -> frozenset[One]:
        if isinstance(statement, Declare):
            return self.finder.depends(statement.variables[0])
        assert isinstance(statement, If)
        return self.finder.of(statement.test)

    def _check_names(self, known: Sequence[str], led: Sequence[Statement]) -> None:
        """Raise NotLegal where a local would hide another."""
        told = [v.name for s in led if isinstance(s, Declare) for v in s.variables]
        told += [
            v.name for share in self.found.shares for one in share.statements for s in walk(one)
            if isinstance(s, Declare) for v in s.variables
        ]  # fmt: skip
        every = [*known, *told]
        if len(set(every)) < len(every):
            raise NotLegal("a local hides another", self.found.loop.line)

    def _leave(self, test: Expr) -> Statement:
        return If(None, 0, denied(self.old, test), Block(None, 0, (Leave(None, 0, "return"),)))

    def _share(self, share: Share, place: str) -> str:
        """What a round adds to the sums of its key."""
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {**self.way.swaps}
        inner = [s for one in share.statements for s in walk(one) if isinstance(s, Evaluate)]
        for statement in inner:
            added = added_to(statement.expression)
            assert added is not None
            swaps[statement] = lines(self._added(*added, place))
        body = "\n".join(self.old.show(edited(s, swaps)) for s in share.statements)
        if not share.then:
            return body
        test = self.old.spelled(joined_test([*share.then], "&&"), self.way.swaps)
        return f"if ({test}) {{\n{body}\n}}"

    def _added(self, variable: Variable, value: Expr | None, negated: bool, place: str) -> str:
        kind = self.found.sums[variable]
        words = "1" if value is None else self.old.spelled(value, self.way.swaps)
        own = self.old.reading.types.get(value) if value is not None else None
        if own != kind and not (isinstance(value, Literal | None) and kind.name == "int"):
            words = f"({kind.name})({words})" if value is not None else f"({kind.name}){words}"
        words = f"-({words})" if negated else words
        return f"atomicAdd(&{self.scratch[variable]}[{place}], {words});"

    def _shown(self, statement: Statement) -> str:
        return self.old.show(edited(statement, self.way.swaps))

    # -- the kernel behind it

    def _taken(self) -> tuple[Statement, ...]:
        """What stands in the place of the loop."""
        called = {axis: self.way.held(axis) for axis in self.finder.launched}
        place = self._place(called)
        given = "\n".join(f"{v.name} += {self.scratch[v]}[{place}];" for v in self.found.sums)
        test = f"{called[self.found.axis]} < {self._count}"
        return (lines(f"if ({test}) {{\n{given}\n}}"),)

    def kernel(self) -> Kernel:
        old, launch, found = self.old, self.old.launch, self.found
        body = self._round()
        count = parse_expression(self.speller.form(_product([*self.extents.values()])))
        items = parse_expression(self.speller.form(self._items))
        if not said_alike(old, count.names | items.names):
            raise NotLegal("its launch has other names for the sizes")
        asked = list[RequireDirective]()
        if self._items.value is None:  # a launch without threads is an error
            asked.append(RequireDirective(parse_expression(f"{items} >= 1")))
        if len(self._sizes) > 1:
            asked.append(RequireDirective(parse_expression(f"{items} <= {_MOST}")))
        grid = (parse_expression(f"cdiv({items}, {_BLOCK})"),)
        block = (parse_expression(str(_BLOCK)),)
        given = [p for p in old.function.parameters if _mentions(body, p.name)]
        further = (f"{found.sums[v].name}* {one}" for v, one in self.scratch.items())
        made = kernel_beside(old, self.name, body, further, given)
        passed = launch.kernel or old.function.name
        plain, opening, template = passed.partition("<")
        scope, colons, _ = plain.rpartition("::")
        args = first = None
        scratch = [parse_expression(one) for one in self.scratch.values()]
        if launch.args is not None:
            by = dict(zip(old.function.parameters, launch.args, strict=True))
            args, first = (*launch.args, *scratch), (*(by[p] for p in given), *scratch)
        before = LaunchDirective(
            f"{scope}{colons}{self.name}{opening}{template}", grid, block, args=first
        )
        directives: list[Directive] = [
            *(ScratchDirective(one, found.sums[v].dtype, count)
              for v, one in self.scratch.items()),
            *(ZeroDirective(one) for one in self.scratch.values()),
            *asked,
            before,
        ]  # fmt: skip
        rewritten = old.rewritten(
            edited(old.function.body, {found.loop: self._taken()}),
            launch=replace(launch, kernel=passed, args=args),
            directives=directives,
            helpers=[made],
        )
        return with_parameters(
            rewritten, (f"const {found.sums[v].name}* {one}" for v, one in self.scratch.items())
        )


def _product(sizes: Sequence[Polynomial]) -> Polynomial:
    whole = Polynomial.constant(1)
    for size in sizes:
        whole = whole * size
    return whole


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None
