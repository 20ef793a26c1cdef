"""P29, loaded ahead: a loop loads what several rounds need before the first of them stores.

``for (i) x[i * w] = x[i * w] + last`` keeps one load on its way, since a compiler cannot know that
no store of a round is what the next one loads: ``w`` might be 0. The reading knows where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Lambda, Name, Step, Unread
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import check_quiet
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Leave, Loop, Verbatim, walk
from optiml_magic.source.directives import TuneDirective

COUNTS = (4, 8, 16, 32)
_ONE = Polynomial.constant(1)


@dataclass(frozen=True, eq=False)
class _Ahead:
    """A loop, what it can load ahead, and up to where it goes on in words."""

    loop: Loop
    axis: Axis
    loads: tuple[Access, ...]
    end: str


@primitive
def loaded_ahead(kernel: Kernel, count: int) -> Kernel:
    """The kernel whose loops that load what they store load ``count`` rounds ahead, if tuned so."""
    made, taken = kernel, 0
    for number in range(len(loops_in(kernel.function.body))):
        at = number + taken  # each leaves a loop behind it, and has two in it
        if not _stores_where_it_loads(made, at):
            continue
        counted = as_counted(made, at, is_simple)
        if not isinstance(counted, Kernel):
            continue
        try:
            found = _found(counted, at)
        except NotLegal:
            continue
        made = _Loading(counted, found, count).kernel()
        taken += 3
    if not taken:
        raise NotLegal("no loop stores to where it loads what later rounds need")
    return made


def _stores_where_it_loads(kernel: Kernel, at: int) -> bool:
    """Whether an innermost loop has stores to an array that it loads from: cheap, and few do."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    if loops_in(loop.body):
        return False
    accesses = effects.accesses(loop)
    stored = [a.array for a in accesses if a.mode == "store"]
    loaded = [a.array for a in accesses if a.mode == "load"]
    return any(effects.same(one, other) for one in stored for other in loaded)


def _found(kernel: Kernel, at: int) -> _Ahead:
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or loops_in(loop.body):
        raise NotLegal("the loop is no plain innermost one", loop.line)
    check_quiet(kernel, effects, loop)
    for statement in walk(loop.body):
        if isinstance(statement, Leave | Verbatim):
            raise NotLegal("its rounds go on in several ways", statement.line)
    accesses = effects.accesses(loop)
    loading = {a.node for a in accesses if a.mode == "load"}
    for expr in effects.inside(loop):
        acts = isinstance(expr, Call) and expr not in loading and not only_computes(kernel, expr)
        counts = isinstance(expr, Step) and not isinstance(expr.target, Name)
        if acts or counts or isinstance(expr, Lambda | Unread):
            raise NotLegal("a function that it calls does more than compute", loop.line)
    stores = [a for a in accesses if a.mode != "load"]
    if any(a.mode == "atomic" or a.index is None or a.call is not None for a in stores):
        raise NotLegal("where it stores is not followed", loop.line)
    loads = [a for a in accesses if _is_free(kernel, effects, axis, a, stores)]
    if not any(effects.same(a.array, store.array) for a in loads for store in stores):
        raise NotLegal("it loads nothing of where it stores", loop.line)
    if axis.stop is None:
        raise NotLegal("where the loop ends is not followed", loop.line)
    speller = speller_before(kernel, effects, loop)
    return _Ahead(loop, axis, tuple(loads), speller.form(speller.local(axis.stop)))


def _is_free(
    kernel: Kernel, effects: Effects, axis: Axis, load: Access, stores: list[Access]
) -> bool:
    """Whether no store of an earlier round, or of this one before it, is where this loads."""
    form, symbols = load.index, kernel.reading.symbols
    if load.mode != "load" or form is None or load.call is not None or not symbols.known(form):
        return False
    whole = is_plain(kernel, load) and element(effects, load) is not None
    every = {part for c in load.guard for part in c.conjuncts()} <= axis.held
    if not whole or not every or axis.name not in symbols.inside(form):
        return False
    rest = form.without([axis.name])
    if axis.name in symbols.inside(rest) or any(n[:1] == "@" for n in form.symbols):
        return False
    ranges = Ranges((*axis.guard, *load.guard), symbols)
    for store in stores:
        if not effects.same(store.array, load.array):
            continue
        by, own = form.coefficient(axis.name), store.index
        if by is None or own is None or own.coefficient(axis.name) != by:
            return False
        apart = form - own  # of one round; later rounds are by more of ``by`` away
        steady = axis.name not in symbols.inside(apart)
        up = ranges.nonnegative(by - _ONE) and ranges.nonnegative(apart)
        down = ranges.nonnegative(-by - _ONE) and ranges.nonnegative(-apart)
        if not steady or not (up or down) or not _comes_first(effects, axis, load, store):
            return False
    return True


def _comes_first(effects: Effects, axis: Axis, load: Access, store: Access) -> bool:
    """Whether a load of what its round stores stands before the store, or is part of it."""
    if load.index != store.index:
        return True
    body = axis.node.body
    steps = body.statements or (body,)
    at = [n for n, s in enumerate(steps) if load.own in effects.inside(s)]
    to = [n for n, s in enumerate(steps) if store.own in effects.inside(s)]
    return (
        bool(at) and bool(to) and (max(at) < min(to) or (at == to and not steps[to[0]].statements))
    )


class _Loading:
    def __init__(self, kernel: Kernel, found: _Ahead, count: int) -> None:
        self.old, self.found, self.count = kernel, found, count
        self.effects = Effects(kernel)
        self.name = kernel.fresh("AHEAD")
        self.first, self.turn = kernel.fresh("first_of_rounds"), kernel.fresh("turn")
        self.locals: dict[Access, str] = {}
        for load in found.loads:
            plain = load.array.replace(".", "_")
            self.locals[load] = kernel.fresh(f"{plain}_ahead", *self.locals.values())

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node] = {self.found.loop: lines("\n".join(self._loops()))}
        return self.old.rewritten(
            edited(self.old.function.body, swaps),
            directives=[TuneDirective(self.name, COUNTS, self.count)],
        )

    def _loops(self) -> Iterator[str]:
        axis, loop = self.found.axis, self.found.loop
        assert axis.variable is not None
        key, first, turn, name = axis.variable.name, self.first, self.turn, self.name
        end = self.found.end
        each = f"#pragma unroll\nfor (int {turn} = 0; {turn} < {name}; ++{turn})"
        yield "{"
        yield f"int {first} = 0;"
        yield f"for (; {first} + {name} <= {end}; {first} += {name}) {{"
        for load, own in self.locals.items():
            yield f"{load.element.name} {own}[{name}];"
        yield f"{each} {{"
        for load, own in self.locals.items():
            yield f"{own}[{turn}] = {load.array}[{self._place(load)}];"
        yield "}"
        yield f"{each} {{"
        yield f"const int {key} = {first} + {turn};"
        swaps = dict[Node, Node]()
        updates = list[tuple[Assign, str]]()
        inside = self.effects.inside(loop.body)
        adding = {e.target: e for e in inside if isinstance(e, Assign) and e.op != "="}
        for load, own in self.locals.items():
            place, now = element(self.effects, load) or load.node, f"{own}[{turn}]"
            if place in adding:
                updates.append((adding[place], now))
            else:
                swaps[place] = text(now)
        for node, now in updates:  # x += y is a load as well
            target, value = (self._shown(e, swaps) for e in (node.target, node.value))
            swaps[node] = text(f"{target} = {now} {node.op[:-1]} ({value})")
        yield self.old.show_inside(loop.body, swaps)
        yield "}"
        yield "}"
        yield "#pragma unroll 1"
        yield f"for (int {key} = {first}; {key} < {end}; ++{key}) {{"
        yield self.old.show_inside(loop.body)
        yield "}"
        yield "}"

    def _shown(self, expr: Expr, swaps: dict[Node, Node]) -> str:
        return self.old.spelled(expr, swaps)

    def _place(self, load: Access) -> str:
        symbols, axis = self.old.reading.symbols, self.found.axis
        called = {axis.name: f"({self.first} + {self.turn})"}
        speller = LocalSpeller(symbols, called, moved=self.effects.moved)
        speller.kernel, speller.around = self.old, ()
        assert load.index is not None
        return speller.address(speller.local(load.index))
