"""P9, grown: a sum over a range that grows keeps what the round before had, and adds the rim.

``for (q ...) { s = 0; for (i = -q; i <= q; i++) s += x[i]; }`` becomes ``s = 0; for (q ...)`` with
the two elements of a round that are new. In two directions a row that the round before had gets
the columns at its ends, any other one all of its columns. The counter tells where the round before
was, so that nothing else is kept; the first round has none before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Literal, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import first_test
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.begun_anew import ORDER, Kept, given_before, named_once
from optiml_magic.kernels.primitives.effects import Effects, declared_in, loops_in, names
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.growing import Growing, growing
from optiml_magic.kernels.primitives.moving_ends import Range, spelled
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, body_of

_Swaps = dict[Node, Node | tuple[Statement, ...] | None]
_OUT = "#pragma unroll"
_ONE = Polynomial.constant(1)


@primitive
def grown(kernel: Kernel, *, out: bool = False) -> Kernel:
    """The kernel with all such sums kept from round to round; there must be one.

    The compiler is told to write the rounds ``out``, where nothing else tells it about them.
    """
    found = growing(kernel)
    made = _Writer(found[0], out).written()
    more = grown(made, out=out) if len(found) > 1 else made
    return more if isinstance(more, Kernel) else made


@dataclass
class _Writer:
    found: Growing
    out: bool
    ahead: list[str] = field(default_factory=list)  # what comes before the outer loop
    behind: list[str] = field(default_factory=list)  # and right behind the nest
    renamed: dict[Node, Node] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        return self.found.kernel

    def written(self) -> Kernel:
        found, kernel = self.found, self.kernel
        for kept in found.kept:
            self._keep(kept)
        swaps, ranges = self._begins(), _Swaps(self.renamed)
        for one in found.innermost:
            ranges |= dict.fromkeys(hints_of(kernel, one.loop))
            ranges[one.loop] = (lines(self._range(one)),)
        swaps |= {node: new for node, new in ranges.items() if new is None}
        nest = self._outer_ranges(edited(Block(None, 0, (found.nest,)), ranges)).body
        swaps[found.nest] = (*nest, *map(lines, self.behind))
        hints = hints_of(kernel, found.outer)
        said = hints or ((lines(_OUT),) if self.out else ())
        outer = (*map(lines, self.ahead), *said, edited(found.outer, swaps))
        whole = edited(kernel.function.body, {**dict.fromkeys(hints), found.outer: outer})
        made = kernel.rewritten(whole)
        exact = all(kept.reduction is None or kept.reduction.exact for kept in found.kept)
        if exact or found.in_order:
            return made
        return replace(made, arithmetic=(*made.arithmetic, ORDER))

    def _outer_ranges(self, nest: Block) -> Block:
        """A nest where the compiler is told to write out the ranges that others are in."""
        told = {
            one.counter.name for one in self.found.ranges
            if self.out and not hints_of(self.kernel, one.loop)
        }  # fmt: skip
        for at in range(len(loops_in(nest))):
            loop = loops_in(nest)[at]  # of a tree that has changed
            before = loop.before
            if isinstance(before, Declare) and told & {v.name for v in before.variables}:
                nest = edited(nest, {loop: (lines(_OUT), loop)})
        return nest

    def _begins(self) -> _Swaps:
        """The statements that began a local anew, without it."""
        gone, swaps = {kept.local for kept in self.found.kept}, _Swaps()
        for begin in (kept.begin for kept in self.found.kept):
            swaps[begin] = None
            if isinstance(begin, Declare):
                left = tuple(v for v in begin.variables if v not in gone)
                swaps[begin] = replace(begin, variables=left, span=None) if left else None
        return swaps

    def _keep(self, kept: Kept) -> None:
        """A local that is kept itself, or another one where it changes in other places as well."""
        found, local = self.found, kept.local
        kind, value = declared_type(self.kernel, local), self._begun(kept.value)
        declared = isinstance(kept.begin, Declare)
        if self._alone(kept):
            self.ahead += [f"{kind} {local.name} = {value};"] if declared else []
            return
        name = self.kernel.fresh(f"{local.name}_kept")
        self.ahead.append(f"{kind} {name} = {value};")
        self.behind.append(f"{f'{kind} ' if declared else ''}{local.name} = {name};")
        inside = Effects(self.kernel).inside(found.nest)
        named = (e for e in inside if isinstance(e, Name) and e.variable is local)
        self.renamed |= dict.fromkeys(named, text(name))

    def _begun(self, value: Expr) -> str:
        """What a local begins with, in front of the outer loop; memory is asked for a round."""
        words, outer = self.kernel.spelled(value), self.found.outer
        if not any(isinstance(e, Index) for e in every(value)):
            return words
        axis = self.kernel.axes().get(outer)
        if axis is None:
            raise NotLegal("whether there is a first round is not known", outer.line)
        if axis.first or axis.trips:
            return words
        return f"{first_test(self.kernel, Effects(self.kernel), axis)} ? {words} : 0"

    def _alone(self, kept: Kept) -> bool:
        """Whether nothing but the nest changes a local, and it has its first value before."""
        found, effects = self.found, Effects(self.kernel)
        others = [s for s in body_of(found.outer.body) if s not in (found.nest, kept.begin)]
        head = (e for e in (found.outer.test, found.outer.update) if e is not None)
        others += [Evaluate(None, found.outer.line, e) for e in head]
        if kept.local in effects.changed(*others):
            return False
        if isinstance(kept.begin, Declare):
            return named_once(self.kernel, kept.local)
        given = given_before(self.kernel, found.outer, kept.local)
        return given is not None and not names([given]) and _alike(given, kept.value)

    @cached_property
    def at(self) -> Polynomial:
        return Polynomial.symbol(self.found.counter.name)

    @cached_property
    def first(self) -> Polynomial:
        """The counter as the first round comes to the nest."""
        found, begin = self.found, None
        counter, before = found.counter, found.outer.before
        more = Polynomial.constant(found.step if found.moved_ahead else 0)
        match before:
            case Declare(variables=variables) if counter in variables:
                begin = counter.value
            case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
                begin = value if own is counter else None
            case None:
                begin = given_before(self.kernel, found.outer, counter)
        inside = {v.name for v in declared_in(found.outer)}
        if begin is not None and any(v.name in inside for v in names([begin])):
            raise NotLegal(
                "what the counter begins with shares its name with another local", found.outer.line
            )
        if begin is not None and found.steady(begin):
            return found.ends.form(begin, self.at) + more
        if before is not None:
            raise NotLegal("what the counter begins with is not known", found.outer.line)
        name = self.kernel.fresh(f"{counter.name}_first")
        self.ahead.append(f"const {declared_type(self.kernel, counter)} {name} = {counter.name};")
        return Polynomial.symbol(name) + more

    def _range(self, one: Range) -> str:
        """The rounds of an innermost range that are new."""
        found, step = self.found, Polynomial.constant(self.found.step)
        around, none = found.around(one), self.first - step
        lengths = [found.length(outer, none) for outer in around]
        own = found.length(one, none)
        # What would be before the first round is nothing already, or it is asked for.
        known = own == 0 or any(length is not None and length <= 0 for length in lengths)
        later = f"{spelled(self.at)} {'>' if found.step > 0 else '<'} {spelled(self.first)}"
        tests = [] if known else [later]
        old = self.at - step
        for outer in around:
            name = outer.counter.name
            low, high = found.ends.low(outer, old), found.ends.high(outer, old)
            if low != found.ends.low(outer, self.at):
                tests.append(f"{name} >= {spelled(low)}")
            if high != found.ends.high(outer, self.at):
                tests.append(f"{name} < {spelled(high)}")
        rim = "\n".join(self._rim(one, old))
        if not tests:
            return rim
        begun = found.length(one, self.first)
        if not around and begun is not None and begun <= 0:
            return f"if ({later}) {{\n{rim}\n}}"
        hints = [self.kernel.show(hint).strip() for hint in hints_of(self.kernel, one.loop)]
        hints = hints or [_OUT] * self.out
        whole = "\n".join([*hints, self.kernel.show(one.loop, self.renamed).strip()])
        return f"if ({' && '.join(tests)}) {{\n{rim}\n}} else {{\n{whole}\n}}"

    def _is_ordered(self, one: Range) -> bool:
        """Whether a range is certain to end no earlier than it begins."""
        least = self.found.length(one, self.first)
        if least is not None:
            return least >= 0
        axis = self.kernel.axes()[one.loop]
        assert axis.start is not None
        assert axis.stop is not None
        length = axis.start - axis.stop if one.down else axis.stop - axis.start
        return Ranges(axis.guard, self.kernel.reading.symbols).nonnegative(length)

    def _rim(self, one: Range, old: Polynomial) -> list[str]:
        """Loops over what lies below and above the range of the round before."""
        ends_ = self.found.ends
        low, high = ends_.low(one, self.at), ends_.high(one, self.at)
        old_low, old_high = ends_.low(one, old), ends_.high(one, old)
        ordered = self._is_ordered(one)
        below, above = spelled(old_low), spelled(old_high)
        if not ordered:  # where the round before had nothing, any place parts what is new
            kinds = {self.kernel.reading.types.get(e) for e in (one.first, one.end)}
            if len(kinds) > 1:
                raise NotLegal("the ends of a loop are of two types", one.loop.line)
            below = f"min({below}, {spelled(high)})"
            above = f"max({above}, {spelled(old_low)})"
        parts = list[str]()
        if low != old_low:
            lone = ordered and old_low - low == _ONE
            parts.append(self._rounds(one, _said(one.first, one.more, low), below, lone=lone))
        if high != old_high:
            lone = ordered and high - old_high == _ONE
            parts.append(self._rounds(one, above, _said(one.end, one.beyond, high), lone=lone))
        return parts[::-1] if one.down else parts

    def _rounds(self, one: Range, low: str, high: str, *, lone: bool) -> str:
        loop, name = one.loop, one.counter.name
        assert isinstance(loop.before, Declare)
        words, body = loop.before.words, self.kernel.show_inside(loop.body, self.renamed)
        if lone and not any(ends(loop.body, "continue")):
            return f"{{\nconst {words}{name} = {low};\n{body}\n}}"
        head = f"{words}{name} = {low}; {name} < {high}; ++{name}"
        if one.down:
            head = f"{words}{name} = {high} - 1; {name} >= {low}; --{name}"
        return f"{_OUT if self.out else ''}\nfor ({head}) {{\n{body}\n}}".strip()


def _said(end: Expr, more: int, form: Polynomial) -> str:
    """An end as the loop says it, where that is a local for more than a sum."""
    if not isinstance(end, Name) or form.value is not None:
        return spelled(form)
    return f"{end.name} + {more}" if more else end.name


def _alike(one: Expr, other: Expr) -> bool:
    """Whether two constants are the same number, ``0`` and ``0.0f`` too."""
    match one, other:
        case Literal(value=int() | float() as first), Literal(value=int() | float() as second):
            return first == second == int(first) or same(one, other)
    return same(one, other)
