"""P13, online: loops for a maximum and for sums around it become one pass.

A thread finds ``m = max(x[k])``, then sums of ``exp(x[k] - m)``, of such powers times a row of each
key, and divides. In one pass what was summed up so far is scaled as a greater value comes:
``n = max(m, x)``, ``sum = sum * exp(m - n) + exp(x - n)``. So no value need be kept from one loop
to the next, or computed again, and it does not matter when a pass divides.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Name
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, loops_in, names, parted
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.online_begun import (
    INFINITE,
    check_lost,
    is_finite,
    leaves,
)
from optiml_magic.kernels.primitives.online_terms import Factors, Terms, product
from optiml_magic.kernels.primitives.passes import Passes, Sum, is_zero
from optiml_magic.kernels.primitives.passes_values import given_in
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)

ROUNDING = ("the order of additions", "the rounding of products")
_MAX = {"float": "fmaxf", "double": "fmax"}
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@primitive
def online(kernel: Kernel) -> Kernel:
    """The kernel whose first passes over the same keys are one."""
    effects = Effects(kernel)
    why = NotLegal("no loops go through the same keys for a maximum and around it")
    blocks = [s for s in walk(kernel.function.body) if isinstance(s, Block)]
    for block in blocks:
        many = [at for at, s in enumerate(block.body) if loops_in(s)]
        for at in many[:-1]:
            if not isinstance(block.body[at], Loop):
                continue
            try:
                effects.straightforward()
                passes = Passes(kernel, effects, block.body[:at], block.body[at:])
                passes.follow()
                body = _Online(passes).body()
            except NotLegal as found:
                why = NotLegal(found.reason, found.line or block.body[at].line)
                continue
            made = replace(block, body=(*body.before, *body.own), span=None)
            gone = {*passes.kept}
            arrays: _Swaps = {s: _without(s, gone) for s in walk(kernel.function.body)
                              if isinstance(s, Declare) and {*s.variables} & gone}  # fmt: skip
            swaps: _Swaps = {block: edited(made, arrays)}
            return kernel.rewritten(edited(edited(kernel.function.body, swaps), arrays))
    raise why


def _without(statement: Declare, gone: set[Variable]) -> tuple[Statement, ...]:
    left = tuple(v for v in statement.variables if v not in gone)
    return (replace(statement, variables=left, span=None),) if left else ()


@dataclass
class _Body:
    before: list[Statement]
    own: list[Statement]


class _Online:
    """The one pass that does what passes do."""

    def __init__(self, passes: Passes) -> None:
        self.passes, self.kernel, self.effects = passes, passes.kernel, passes.effects
        self.taken: list[str] = []
        self.begun: list[Statement] = []
        self.got: dict[Loop, list[str]] = {}  # what the elements of rows become, by their loop
        self.swaps: dict[Statement, tuple[Statement, ...]] = {
            passes.own[at]: () for at in passes.passes
        }
        between = [s for s in passes.own[: passes.last] if s not in self.swaps]
        self.late = {v for s in between for v in given_in(self.effects, s)}
        self.late |= {one.target for one in passes.sums}
        if passes.most is not None:
            self.late.add(passes.most)
        self.terms = Terms(passes, frozenset(self.late))
        self.kind = "float"
        self.lates: dict[Variable, Factors] = {}

    def body(self) -> _Body:
        passes, swaps = self.passes, self.swaps
        self._check()
        for one in passes.sums:
            if one.within is None:
                self._begin(one)
        steps = [*self._steps()]
        if passes.most is not None:
            self._begin_maximum(passes.most)
        for loop, got in self.got.items():
            within = passes.inner(loop)
            assert within is not None
            swaps[loop] = (edited(loop, {within: tuple(map(lines, got))}),)
        inner = Block(None, passes.first.line, (*passes.prefix, *map(lines, steps)))
        whole = replace(passes.first, span=None, body=inner, head=None, foot=None)
        rest = [new for s in passes.own for new in swaps.get(s, (s,))]
        return _Body([*passes.before, *self.begun], [whole, *rest])

    def _fresh(self, name: str) -> str:
        found = self.kernel.fresh(name, *self.taken)
        self.taken.append(found)
        return found

    # -- what makes it legal

    def _check(self) -> None:
        """Raise NotLegal where what stands between the passes has a say in them."""
        passes = self.passes
        score = [passes.score] if passes.score is not None else []
        asked = {v for s in passes.prefix for v in self.effects.mentions(s)} | names(score)
        if asked & self.late:
            raise NotLegal("what a key is computed by changes", passes.first.line)
        self._check_names()
        for at, statement in enumerate(passes.own[: passes.last]):
            if at in passes.passes:
                continue
            if any(isinstance(s, Leave) for s in walk(statement)):
                raise NotLegal("it ends between its passes", statement.line)
            known = [(one.target, one.at) for one in passes.sums if one.within is None]
            if passes.most is not None:
                known.append((passes.most, passes.found))
            for variable, place in known:
                touched = self.effects.mentions(statement) | self.effects.given(statement)
                if variable not in touched:
                    continue
                if at < place and not self._begins(statement, variable):
                    raise NotLegal(f"`{variable.name}` is asked for before it is known")
                if at > place and variable in self.effects.given(statement):
                    raise NotLegal(f"`{variable.name}` changes behind its loop", statement.line)

    def _check_names(self) -> None:
        """Raise NotLegal where a name would mean something else in the first pass."""
        passes, axes = self.passes, self.kernel.axes()
        steps = [s for s in parted(passes.first.body) if isinstance(s, Declare)]
        own = {passes.counter, *(v for s in steps for v in s.variables)}
        rows = {axes[o.elements].variable for o in passes.sums if o.elements is not None}
        inner = {one.target for one in passes.sums if one.within is not None}
        asked = {v for one in passes.sums for v in names([one.value])} | self.late - inner
        hidden = {v.name for v in asked - own - rows} & {v.name for v in own}
        hidden |= {v.name for v in asked - rows} & {v.name for v in rows if v is not None}
        if hidden:
            raise NotLegal(f"a local hides another one, `{min(hidden)}`", passes.first.line)

    def _begins(self, statement: Statement, target: Variable) -> str:
        """How a statement begins what a pass goes on with: as nothing, or without a value."""
        match statement:
            case Declare(variables=variables) if target in variables:
                if target.array:
                    zeros = [*map(is_zero, target.initial)]
                    return "" if not all(zeros) or len(zeros) > 1 else "zero" if zeros else "bare"
                return "bare" if target.value is None else self._nothing(target.value, target)
            case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
                return self._nothing(value, target) if own is target else ""
            case Loop():
                return "zero" if self._zeroes(statement, target) else ""
        return ""

    def _nothing(self, value: Expr, target: Variable) -> str:
        if target is self.passes.most:
            return "zero" if all(map(key_of, leaves(self.kernel, value))) else ""
        return "zero" if is_zero(value) else ""

    def _zeroes(self, loop: Loop, target: Variable) -> bool:
        """Whether a loop gives all elements of an array nothing but 0."""
        steps, axis = [*parted(loop.body)], self.kernel.axes().get(loop)
        if not self.passes.is_elements(loop) or axis is None or len(steps) != 1:
            return False
        match steps[0]:
            case Evaluate(expression=Assign(op="=", target=Index(
                base=Name(variable=own), index=Name(variable=counter)
            ), value=value)):  # fmt: skip
                rounds = [self.kernel.axes()[o.elements].trips for o in self.passes.sums
                          if o.target is target and o.elements is not None]  # fmt: skip
                enough = all((axis.trips or 0) >= (many or 0) for many in rounds)
                return own is target and counter is axis.variable and is_zero(value) and enough
        return False

    # -- how it begins

    def _begin(self, one: Sum) -> None:
        self._earlier(one.target, one.at)

    def _earlier(self, target: Variable, at: int) -> Statement:
        """The statement that begins something as nothing; those between passes move before."""
        passes = self.passes
        used = [passes.own[at] for at in passes.passes]
        earlier = [*passes.before, *(s for s in passes.own[:at] if s not in used)]
        given = [s for s in earlier if target in self.effects.given(s)
                 or (target.array and self.effects.kept(s) == target.name)]  # fmt: skip
        if not given or self._begins(given[-1], target) != "zero":
            raise NotLegal(f"`{target.name}` does not begin with nothing", target.line)
        behind = earlier[earlier.index(given[-1]) + 1 :]
        if any(target in self.effects.mentions(s) for s in behind):
            raise NotLegal(f"`{target.name}` does not begin with nothing", target.line)
        for statement in (s for s in given if s in passes.own):
            if isinstance(statement, Declare) and not all(
                v.value is None or all(map(key_of, leaves(self.kernel, v.value)))
                for v in statement.variables
            ):
                raise NotLegal(f"`{target.name}` is declared with others", statement.line)
            moved = (
                {v.name for v in declared_in(statement)} if isinstance(statement, Declare) else {}
            )
            asked = {v for s in (*earlier, *passes.own) for v in self.effects.mentions(s)}
            if any(v.name in moved for v in asked - declared_in(statement)):
                raise NotLegal(f"`{target.name}` hides another local", statement.line)
            if statement not in self.begun:
                self.swaps[statement] = ()
                self.begun.append(statement)
        return given[-1]

    def _begin_maximum(self, most: Variable) -> None:
        """A maximum begins below all numbers, and not with minus infinity."""
        begin: Expr | None = None
        match self._earlier(most, self.passes.found):
            case Declare():
                begin = most.value
            case Evaluate(expression=Assign(value=value)):
                begin = value
        if begin is None:
            return
        least = text(combine.finite(type_of(self.kernel, most), "max"))
        swaps: dict[Node, Node] = {}
        for one in leaves(self.kernel, begin):
            if key_of(one) in INFINITE:
                swaps[one] = least
            elif not is_finite(one, self.kind):
                raise NotLegal(f"`{most.name}` may begin with an infinity", most.line)
        if not swaps:
            return
        check_lost(self.passes, self.lates)
        self.begun.append(lines(f"{most.name} = {self.kernel.spelled(begin, swaps)};"))

    # -- what a round does

    def _steps(self) -> Iterator[str]:
        passes, most = self.passes, self.passes.most
        parts = [(one, *self.terms.parts(one)) for one in passes.sums]
        self.lates = {one.target: late for one, _, late in parts}
        scale = power = ""
        if most is not None:
            assert passes.score is not None
            self.kind = type_of(self.kernel, most).name
            if self.kind not in _MAX or self.terms.raising is None:
                raise NotLegal("no power is taken of what lies below the maximum", most.line)
            name, by = self.terms.raising
            score, more = self._fresh("score"), self._fresh(f"{most.name}_next")
            scale, power = self._fresh("scale"), self._fresh("power")
            yield f"const {self.kind} {score} = {self.kernel.spelled(passes.score)};"
            yield f"const {self.kind} {more} = {_MAX[self.kind]}({most.name}, {score});"
            yield f"const {self.kind} {scale} = {name}({by.format(f'{most.name} - {more}')});"
            yield f"const {self.kind} {power} = {name}({by.format(f'{score} - {more}')});"
            yield f"{most.name} = {more};"
        for one, own, late in parts:
            place = one.target.name if one.within is None else self._row(one, late)
            if one.within is None and any(late):
                self._divide(one, late)
            counter = self.kernel.axes()[one.elements].variable if one.elements else None
            place = f"{place}[{counter.name}]" if counter is not None else place
            first = f"{place} * {scale}" if scale else place
            step = f"{place} = {first} + {product(self.kernel, own, power)};"
            if one.elements is None:
                yield step
                continue
            inner = Block(None, one.elements.line, (lines(step),))
            row = replace(one.elements, span=None, body=inner, head=None, foot=None)
            yield self.kernel.show(row)

    def _row(self, one: Sum, late: Factors) -> str:
        """The array in the place of a sum that was begun anew for each element."""
        loop = one.elements
        assert loop is not None
        axis, body = self.kernel.axes()[loop], [*parted(loop.body)]
        at = next(n for n, s in enumerate(body) if isinstance(s, Loop))
        given = [s for s in body[:at] if one.target in self.effects.given(s)]
        asked = [s for s in body[:at] if one.target in self.effects.mentions(s) and s not in given]
        if not given or self._begins(given[-1], one.target) != "zero" or asked:
            raise NotLegal(f"`{one.target.name}` does not begin with nothing", loop.line)
        kind = type_of(self.kernel, one.target).name
        if kind not in _MAX or one.target.name not in {v.name for v in declared_in(loop)}:
            raise NotLegal(f"`{one.target.name}` is not a sum of floats", loop.line)
        name = self._fresh(f"{one.target.name}_row")
        assert axis.variable is not None
        place = f"{name}[{axis.variable.name}]"
        self.got.setdefault(loop, []).append(
            f"{one.target.name} = {product(self.kernel, late, place)};"
        )
        zero = Block(None, loop.line, (lines(f"{place} = 0.0f;"),))
        self.begun.append(lines(f"{kind} {name}[{axis.trips}];"))
        self.begun.append(replace(loop, span=None, body=zero, head=None, foot=None))
        return name

    def _divide(self, one: Sum, late: Factors) -> None:
        """What a pass multiplies by that is known behind the others, once for each element."""
        loop = one.elements
        if loop is None:
            raise NotLegal(f"`{one.target.name}` is summed up twice", one.target.line)
        axis = self.kernel.axes()[loop]
        assert axis.variable is not None
        place = f"{one.target.name}[{axis.variable.name}]"
        inner = Block(None, loop.line, (lines(f"{place} = {product(self.kernel, late, place)};"),))
        again = replace(loop, span=None, body=inner, head=None, foot=None)
        statement = self.passes.own[one.at]
        self.swaps[statement] = (*self.swaps[statement], again)
