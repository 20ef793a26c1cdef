"""Loops whose rounds threads share, or make together; and trees, whose rounds are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Name,
    Step,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES, WARP_BARRIERS
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.grid_rounds import Strided, from_nothing, nested
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.shares import (
    IDEMPOTENT,
    IDENTITIES,
    Kept,
    Known,
    Made,
    Same,
    Share,
    Shared,
    Source,
    State,
    Value,
    Worded,
    declared,
    number,
)
from optiml_magic.kernels.primitives.striding import bound, stride
from optiml_magic.kernels.primitives.ways import NORMAL, Ways, alike
from optiml_magic.kernels.reading import Reduction
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

_MOST_ROUNDS = 2048  # of a tree, and of what one thread adds up
_MOST_LOADED = 8  # rounds that ask global memory alone and are one expression: ours


class Unshared(Ways):
    """Loops of a block."""

    def _loop(self, loop: Loop) -> Made:
        shaped = _counting(loop)
        if shaped is not loop and loop in self.axes:
            self.axes[shaped] = self.axes[loop]
        start = self._start(shaped)
        if start is not None:
            return self._strided(shaped, start)
        state, pending, sources, mask = self._state(), [*self.pending], {**self.sources}, self.mask
        quiet, had = self.quiet, len(self.tests)
        reason: NotLegal | None = None
        try:
            if self._tree(loop):
                return ()
        except NotLegal as found:
            reason = found
        self._restore(state)
        self.pending, self.sources, self.mask, self.quiet = pending, sources, mask, quiet
        del self.tests[had:]
        if self.quiet:
            raise reason or NotLegal("a loop is not read", loop.line)
        try:
            return self._uniform(loop)
        except NotLegal as found:
            raise reason or found from None

    def _tree(self, loop: Loop) -> bool:
        """A loop whose rounds are known, and leave nothing in the program; False for others."""
        axis = self.axes.get(loop)
        if axis is not None and (axis.trips or 0) > _MOST_LOADED:
            inside = self.effects.inside(loop)
            spaces = {a.space for a in self.kernel.reading.accesses if a.own in inside}
            if "global" in spaces and "shared" not in spaces:
                return False
        self.quiet += 1
        before, rounds, had = self.mask, 0, len(self.tests)
        if loop.before is not None and self._step(loop.before):
            return False
        if loop.kind == "do":
            return False
        while True:
            test = self.plain(loop.test) if loop.test is not None else None
            if not isinstance(test, Known):
                return False
            some = test.only(self.mask) is None  # of the threads that come to it
            self.mask = self.mask & (test.numbers != 0)
            if not bool(self.mask.any()):
                break
            if some:
                self.tests.append(test.form)
            if rounds == _MOST_ROUNDS or self._inner(loop.body):
                return False
            if loop.update is not None and self._step(Evaluate(None, loop.line, loop.update)):
                return False
            rounds += 1
        self.mask = before
        del self.tests[had:]
        if loop.before is not None:
            self._left((loop.before,))
        self.quiet -= 1
        return True

    def _uniform(self, loop: Loop) -> Made:
        """A loop whose rounds all threads make together."""
        if self.conditions or any(isinstance(s, Leave) for s in walk(loop.body)):
            raise NotLegal("a loop is left early", loop.line)
        if np.count_nonzero(self.mask) == 1 < self.count:
            self.combines = True
        own = declared(loop.before)
        for variable in (*self.effects.changed(loop), *own):
            known = isinstance(self.env.get(variable), Known) or variable in own
            if known and variable not in self.kept:
                raise Kept(variable)
        head = self._step(loop.before) if loop.before is not None else ()
        for variable in self.effects.changed(loop):
            held = self.env.get(variable)
            if isinstance(held, Same):
                accumulated = any(r.place == variable.name for r in self.kernel.reading.reductions)
                self.env[variable] = held if accumulated and held.key else replace(held, key="")
        for _ in range(4):
            start = self._state()
            test = self.same(loop.test) if loop.test is not None else None
            body = self._inner(loop.body)
            update = (
                self._step(Evaluate(None, loop.line, loop.update))
                if loop.update is not None
                else ()
            )
            self._meet(start)
            if not self._differs(start):
                break
        else:
            raise NotLegal("what goes from round to round is not followed", loop.line)
        self._left([loop.before] if loop.before is not None else [])
        if len(head) > 1 or len(update) > 1:
            raise NotLegal("a loop is not read", loop.line)
        turn = update[0].expression if update and isinstance(update[0], Evaluate) else None
        inner = (
            body[0]
            if len(body) == 1 and isinstance(body[0], Block)
            else Block(None, loop.line, body)
        )
        return (replace(loop, span=None, head=None, before=head[0] if head else None, test=test,
                        update=loop.update if turn is None else turn, body=inner),)  # fmt: skip

    def _differs(self, start: State) -> bool:
        """Whether a round begins otherwise than the one before did."""
        return any(
            key not in held or not alike(held[key], old)
            for held, before in ((self.env, start.env), (self.cells, start.cells))
            for key, old in before.items()
        )

    def _start(self, loop: Loop) -> Strided | None:
        """A loop whose rounds threads share."""
        head = declared(loop.before)
        first: Expr | None = None
        variable: Variable | None = None
        match loop.before:
            case Declare() if len(head) == 1:
                variable, first = head[0], head[0].value
            case Evaluate(
                expression=Assign(op="=", target=Name(variable=Variable() as v), value=given)
            ):
                variable, first = v, given
        if loop.kind != "for" or variable is None or first is None or self.quiet:
            return None
        value = self.plain(first)
        if isinstance(value, Same | Shared | Share) or (
            isinstance(value, Known) and value.only(self.mask) is not None
        ):
            return None
        step, end = stride(loop, variable), bound(loop, variable)
        if step is None or end is None:
            return None
        by = self.plain(step)
        if self.apart:
            if not isinstance(by, Same | Known):
                raise NotLegal("the rounds that its threads share are not read", loop.line)
            return Strided(variable, value.form)
        if isinstance(by, Same) and not self.worded and "gridDim" in self.kernel.words:
            raise Worded
        far = by.only(self.mask) if isinstance(by, Known) else None
        if not isinstance(by, Same) and (far is None or far < self.count):
            return None
        further = None if far == self.count else by.form
        if isinstance(value, Known):
            start = int(value.numbers[0])
            if not bool((value.numbers - start == np.arange(self.count)).all()):
                return None
            return Strided(variable, number(start), further)
        axis = self.axes.get(loop)
        form = axis.start if axis is not None else None
        one = form.coefficient("threadIdx.x") if form is not None else None
        alone = self.extents[1:] == [1, 1]
        if axis is None or form is None or one is None or one.value != 1 or not alone:
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        inside = self.kernel.reading.symbols.inside(form.without(["threadIdx.x"]))
        if any(name.startswith("threadIdx") for name in inside):
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        none: dict[Node, Node] = {
            e: number(0) for e in every(value.form) if isinstance(e, Name) and e.name == self.thread
        }
        if value.locals:
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        together = from_nothing(axis, self.count)
        return Strided(variable, edited(value.form, none), further, together)

    def _strided(self, loop: Loop, strided: Strided) -> Made:
        variable = strided.variable
        if self.conditions or not bool((self.mask == self.all).all()):
            raise NotLegal("some threads alone share the rounds of a loop", loop.line)
        axis = self.axes.get(loop)
        if axis is None or not axis.exact:
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        if variable in self.effects.changed(loop.body):
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        for inner in walk(loop.body):
            if isinstance(inner, Leave) and inner.kind == "return":
                raise NotLegal("the kernel may end in rounds that its threads share", inner.line)
        own = {v for s in walk(loop) for v in declared(s)}
        changed = {v for v in self.effects.changed(loop) if v not in own and v is not variable}
        found = {r.place: r for r in self.kernel.reading.reductions if axis.name in r.axes}
        swaps: dict[Node, Node] = {}
        self.env[variable] = Same(Name(None, variable.name, variable), self.all)
        old = {v: self.env.get(v) for v in changed}
        for v in own:
            self.env.setdefault(v, Same(Name(None, v.name, v), self.all))
        for v in changed:
            self.env[v] = Same(Name(None, v.name, v), self.all)
        for top in _tops(loop.body):
            self._round(top, swaps)
        end = bound(loop, variable)
        if end is not None:
            shown = self.same(end)
            if shown is not end:
                swaps[end] = shown
        if self.effects.kept(loop):
            raise NotLegal("its rounds keep an array", loop.line)
        for v in changed:
            if v.name in found:
                self._gathered(v, found[v.name], old[v], loop)
        for r in found.values():
            if r.carried:
                changed -= {*self.gathered_along(axis, loop, r, old)}
        for v in changed:
            if v.name not in found:
                raise NotLegal(f"`{v.name}` goes from round to round", loop.line)
        for access in self.effects.accesses(loop):
            if access.mode != "load":
                self.stored(access.array)
                self.stores = True
        for v in own | {variable}:
            self.env.pop(v, None)
        body = edited(loop.body, swaps)
        if self.apart:
            head = edited(loop.before, {}) if loop.before is not None else None
            return (replace(loop, span=None, head=None, before=head, body=body),)
        if strided.by is not None:
            first = self.kernel.fresh("first", *self.taken)
            self.taken.append(first)
            return (nested(self.kernel, loop, strided, swaps, first, self.thread, self.count),)
        kept = variable in declared(loop.before)
        words = (
            loop.before.words
            if kept and isinstance(loop.before, Declare)
            else f"{variable.type.base} "
        )
        before = Declare(
            None, loop.line, words, (replace(variable, span=None, value=strided.start),)
        )
        test = edited(loop.test, swaps) if loop.test is not None else None
        update = Step(None, "++", Name(None, variable.name, variable), True)
        return (replace(loop, span=None, head=None, before=before, test=test, update=update,
                        body=body),)  # fmt: skip

    def _gathered(
        self, variable: Variable, found: Reduction | None, old: Value | None, loop: Loop
    ) -> None:
        if found is None or variable.array or variable.storage != "local":
            raise NotLegal(f"`{variable.name}` goes from round to round", loop.line)
        op = NORMAL.get(found.op, found.op)
        if any(t.startswith("!") for t in found.tests) or op not in (*IDENTITIES, "min", "max"):
            raise NotLegal(f"`{variable.name}` is not followed", loop.line)
        kind = found.type
        types = [self.kernel.reading.types.get(v) for v in found.values]
        if kind.integral and any(t is None or not t.integral for t in types):
            raise NotLegal(f"`{variable.name}` is rounded in each round", loop.line)
        if (
            kind.integral
            and op in IDEMPOTENT
            and any(
                t is None or (t.size or 9) > (kind.size or 0) or t.signed != kind.signed
                for t in types
            )
        ):
            raise NotLegal(f"`{variable.name}` is compared as another type", loop.line)
        if isinstance(old, Known):
            raise Kept(variable)
        key = old.key if isinstance(old, Same) else ""
        begun = isinstance(old, Same) and bool(old.where.all())
        if isinstance(old, Share) and old.source.variable is variable and old.source.op == op:
            if not bool(old.where.all()) or old.parts != tuple(1 << t for t in range(self.count)):
                raise NotLegal(f"`{variable.name}` does not begin with nothing", loop.line)
            key = old.source.begun
        elif not begun or not (op in IDEMPOTENT or key == IDENTITIES.get(op, "?")):
            raise NotLegal(f"`{variable.name}` does not begin with nothing", loop.line)
        place = (variable, op, key)
        source = self.sources.get(place)
        if source is None:
            source = Source(variable.name, kind, self.count, op, key, variable)
            self.sources[place] = source
        self.changed(variable)
        parts = tuple(1 << t for t in range(self.count))
        self.env[variable] = Share(
            Name(None, variable.name, variable), self.all, source=source, parts=parts
        )

    def _round(self, expr: Expr, swaps: dict[Node, Node]) -> None:
        """What a round asks for is the same whichever thread makes it."""
        match expr:
            case Assign(target=target) | Step(target=target) | Unary(op="&", operand=target):
                if self.place(target) is not None:
                    raise NotLegal("its rounds change shared memory")
        if isinstance(expr, Name) and expr.variable is None:
            return
        shared = isinstance(expr, Index | Unary) and self.place(expr) is not None
        if builtin(expr) or shared or isinstance(expr, Name):
            if self.apart and builtin(expr):
                return
            form = self.same(expr)
            if form is not expr and not (
                isinstance(form, Name) and isinstance(expr, Name) and form.name == expr.name
            ):
                swaps[expr] = form
            return
        if isinstance(expr, Call):
            name = bare_name(expr.function)
            called = self.kernel.unit.called(expr.function, len(expr.arguments))
            if (
                expr.callee is not None
                or name in BLOCK_BARRIERS | WARP_BARRIERS
                or LANES.fullmatch(name)
            ):
                raise NotLegal("its threads wait in rounds that they share")
            if any(self.together(f, expr) for f in called) or name.startswith("__threadfence"):
                raise NotLegal(f"what `{expr.function}` does is not looked into")
        for part in expr.parts:
            self._round(part, swaps)


def _tops(statement: Statement) -> Iterable[Expr]:
    yield from statement.expressions
    for inner in statement.statements:
        yield from _tops(inner)


def _counting(loop: Loop) -> Loop:
    """A loop that ends its rounds by the next of them, with that in its head."""
    own = flat(loop.body)
    last = own[-1] if own else None
    if loop.kind != "while" or not isinstance(last, Evaluate) or len(own) < 2:
        return loop
    match last.expression:
        case Assign(target=Name() as name) if name.variable is not None:
            pass
        case _:
            return loop
    if any(isinstance(s, Leave) for s in walk(loop.body)):
        return loop
    before = Evaluate(None, loop.line, Assign(None, "=", name, name))
    body = Block(None, loop.line, tuple(own[:-1]))
    return Loop(None, loop.line, "for", before, loop.test, last.expression, body)
