"""A block that scans in shared memory becomes one thread, which adds up its elements in a row.

``s[t] = x[i]; for (d = 1; d < 256; d *= 2) {...} y[i] = s[t];`` is ``run += x[i]; y[i] = run;`` for
one ``t`` after the other, whatever steps the block took (``prefixes``). Other rules share the
rounds of that among lanes, several elements each, by shuffles instead of barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    builtin,
    every,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES, bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.carved import carved
from optiml_magic.kernels.primitives.cutting import TOLD, cut
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.first_rounds import FIRST
from optiml_magic.kernels.primitives.prefixes import Parts
from optiml_magic.kernels.primitives.raised import with_facts
from optiml_magic.kernels.primitives.scan_reads import Asking, is_shared
from optiml_magic.kernels.primitives.threaded import threaded
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType
from optiml_magic.source.expressions import Number, parse_expression

_WIDTH = 256  # threads of a block that has become as many rows
_ALIKE = ("blockIdx", "blockDim", "gridDim")  # for all threads of a block
_MOST = 2  # elements that a thread stores: ours


@primitive
def unscanned(kernel: Kernel) -> Kernel:
    """A kernel whose blocks scan a row of elements each, as one with a thread for each row."""
    if not kernel.reading.barriers:
        raise NotLegal("its threads do not wait for each other")
    return _Unscanned(_chosen(where_legal(carved, kernel.settled()))).kernel()


def _chosen(kernel: Kernel) -> Kernel:
    """With ``if (i < n) s[t] = x[i]; else s[t] = 0;`` as a choice of what is stored."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for statement in kernel.function.body.body:
        if not isinstance(statement, If) or statement.before or statement.constant:
            continue
        match _only(statement.then), _only(statement.other):
            case Assign(op="=", target=target, value=value), Assign(
                op="=", target=other, value=Literal() as rest
            ) if is_shared(target) and kernel.spelled(target) == kernel.spelled(other):
                shown = (kernel.spelled(e) for e in (target, statement.test, value, rest))
                place, test, then, nothing = shown
                swaps[statement] = lines(f"{place} = ({test}) ? ({then}) : {nothing};")
    return kernel.rewritten(edited(kernel.function.body, swaps)) if swaps else kernel


def _only(statement: Statement | None) -> Expr | None:
    """The only expression of a way through a branch."""
    match statement:
        case Block(body=(Evaluate(expression=only),)) | Evaluate(expression=only):
            return only
    return None


class _Unscanned:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.effects = Effects(kernel)
        self.effects.straightforward(alone=False)
        count, *others = kernel.block
        if count is None or others != [1, 1] or not 32 <= count <= 1024:
            raise NotLegal("its blocks are not rows of threads")
        for name in sorted(kernel.reading.calls):
            if LANES.fullmatch(name):
                raise NotLegal("its lanes exchange values")
            if name in TOLD or name.startswith(("__threadfence", "__syncwarp")):
                raise NotLegal(f"`{name}` is not followed")
        self.count = count
        self._check_names()
        self.begun = [s for s in kernel.function.body.body if self._begins(s)]
        if not 1 <= len(self.begun) <= _MOST:
            raise NotLegal("its threads share no elements of a scan")
        self.each = len(self.begun)
        self.taken: list[str] = []
        self.item, self.run = self._fresh("item"), self._fresh("run")
        self.before = self._fresh("before")
        self.parts = [self._fresh("part") for _ in self.begun]
        self.after = [*(self._fresh("after") for _ in self.begun[1:]), self.run]
        self.prefixes = Asking(kernel, count, self.before, self.parts, self.after)
        self.all = self.prefixes.all
        self.kind: CType | None = None

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        ahead, inside, behind = list[str](), list[Statement](), list[Statement]()
        for statement in self.old.function.body.body:
            if self._leaves(statement):
                ahead.append(self.old.show(statement))
            elif self._for_last(statement):
                behind.append(statement)
            else:
                inside += self._taken(statement)
        if len(self.prefixes.ops) != 1 or self.kind is None:
            raise NotLegal("its threads combine nothing")
        self._check_stores()
        (op,) = self.prefixes.ops
        made = Reduction(self.run, op, (), None, (), self.kind, self.old.function.line)
        combine.supported(made)
        if self.prefixes.empty and op != "+":
            raise NotLegal("a maximum or minimum would begin with zero")
        return self._written(made, ahead, inside, self._last(behind))

    def _written(
        self, made: Reduction, ahead: list[str], inside: list[Statement], behind: list[str]
    ) -> Kernel:
        kind = self.kind.name if self.kind is not None else ""
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for at, begun in enumerate(self.begun):
            value = begun.expression.value  # type: ignore[attr-defined]
            shown = self.old.spelled(value, self._placed(value))
            names = {self.before: self.prefixes.used & {self.before} and at == 0,
                     self.after[at]: at < self.each - 1}  # fmt: skip
            first, last = ([f"const {kind} {name} = {self.run};"] * bool(said)
                           for name, said in names.items())  # fmt: skip
            own = [f"const {kind} {self.parts[at]} = {shown};",
                   combine.joining(made, self.run, self.parts[at])]  # fmt: skip
            swaps[begun] = (lines("\n".join([*first, *own, *last])),)
        shown = self.old.show_inside(edited(Block(None, 0, tuple(inside)), swaps))
        item = self.item
        body = [
            *ahead, f"{kind} {self.run} = {combine.nothing(made)};",
            f"for (int {item} = 0; {item} < {self.count}; ++{item}) {{", shown, "}", *behind,
        ]  # fmt: skip
        whole = replace(self.old.function.body, body=(lines("\n".join(body)),))
        launch = replace(self.old.launch, block=(parse_expression("1"),), shared=None)
        bounds = str(_WIDTH) if self.old.function.launch_bounds else ""
        alone = with_facts(self.old.rewritten(whole, launch=launch, bounds=bounds),
                           self.old.facts, 1)  # fmt: skip
        if alone.reading.barriers or any(a.space == "shared" for a in alone.reading.accesses):
            raise NotLegal("a function that it calls waits, or shares memory")
        told = () if made.type.integral else (
            ("the order of additions",) if made.op == "+" else (FIRST,))  # fmt: skip
        alone = replace(alone, arithmetic=tuple(dict.fromkeys((*self.old.arithmetic, *told))))
        wide = cut(alone, {"x": _WIDTH})
        if isinstance(wide, Kernel):
            return with_facts(wide, alone.facts, _WIDTH)
        one = all(size.tree == Number(1) for size in alone.launch.grid)
        return alone if one else where_legal(threaded, alone)

    # -- what becomes of statements

    def _begins(self, statement: Statement) -> bool:
        """Whether each thread stores an element of its own, of what no other thread has."""
        match statement:
            case Evaluate(expression=Assign(op="=", target=Index() as target, value=value)):
                shared = is_shared(target)
                literal = not any(isinstance(e, Index | Name) for e in every(value))
                before = not any(isinstance(e, Index) and is_shared(e) for e in every(value))
                earlier = not any(
                    isinstance(s, Loop) or self._waits(s)
                    for s in self._up_to(statement)
                )  # fmt: skip
                return shared and before and earlier and not literal
        return False

    def _up_to(self, statement: Statement) -> list[Statement]:
        body = self.old.function.body.body
        return [*body[: body.index(statement)]]

    def _waits(self, statement: Statement) -> bool:
        return any(isinstance(e, Call) and bare(e.function) in BLOCK_BARRIERS
                   for e in expressions(statement))  # fmt: skip

    def _leaves(self, statement: Statement) -> bool:
        """Whether whole blocks leave, before any thread does anything."""
        if not any(isinstance(s, Leave) for s in walk(statement)):
            return False
        asked = [e for s in walk(statement) for e in expressions(s)]
        given = self.old.function.parameters
        names = [e for e in asked if isinstance(e, Name)]
        plain = all(e.variable in given or e.name in _ALIKE for e in names)
        loads = any(isinstance(e, Index | Call | Assign) for e in asked)
        if loads or not plain or any(not self._leaves(s) and not isinstance(s, Declare)
                                     for s in self._up_to(statement)):  # fmt: skip
            raise NotLegal("some threads leave and others go on", statement.line)
        return True

    def _taken(self, statement: Statement) -> tuple[Statement, ...]:
        """What is left of a statement that each thread takes."""
        if isinstance(statement, Declare) and all(
            v.storage in ("shared", "dynamic") for v in statement.variables
        ):  # fmt: skip
            for variable in statement.variables:
                self.prefixes.shelf(variable)
            return ()
        if statement in self.begun:
            self._begin(self.begun.index(statement), statement)
            return (statement,)
        if self._combines(statement):
            changed = {*self.effects.changed(statement)}
            self.prefixes.step(statement, self.all)
            self.prefixes.dropped |= changed
            return ()
        swaps: dict[Node, Node] = {}
        for top in statement.expressions if not statement.statements else ():
            swaps |= self.prefixes.asked(top, self.all)
        if statement.statements:
            swaps |= self.prefixes.asked_in(statement, self.all)
        if isinstance(statement, Declare):
            self._declared(statement)
        elif any(v in self.prefixes.env for v in self.effects.changed(statement)):
            for variable in self.effects.changed(statement):
                self.prefixes.env[variable] = None
        return (edited(statement, {**self._placed(statement), **swaps}),)

    def _begin(self, at: int, statement: Statement) -> None:
        match statement:
            case Evaluate(expression=Assign(target=Index() as target, value=value)):
                place = self.prefixes.place(target, self.all)
                if place is None:
                    raise NotLegal("where a scan begins is not known", statement.line)
                shelf, index = place
                if bool((index != np.arange(self.count) * self.each + at).any()):
                    raise NotLegal("threads begin a scan out of their order", statement.line)
                if self.kind not in (None, shelf.type):
                    raise NotLegal("a scan goes through several types", statement.line)
                self.prefixes.asked(value, self.all)
                self.kind = shelf.type
                at_index = np.arange(self.count * self.each)[None, :] == index[:, None]
                own = Parts(at_index, shelf.type)
                self.prefixes.store(shelf, index, own, self.all)
                types = self.old.reading.types
                if isinstance(value, Name) and value.variable is not None and (
                    types.get(value) == shelf.type
                ):  # fmt: skip
                    self.prefixes.env[value.variable] = own

    def _declared(self, statement: Declare) -> None:
        for variable in statement.variables:
            if variable.array or variable.type.reference or variable.initial:
                self.prefixes.env.pop(variable, None)
                continue
            self.prefixes.env[variable] = None
            if variable.value is not None:
                self.prefixes.step(replace(statement, variables=(variable,)), self.all)

    def _combines(self, statement: Statement) -> bool:
        """Whether all that a statement does is a step of the scan."""
        if self._waits(statement):
            return True
        parts = {v for v, found in self.prefixes.env.items() if isinstance(found, Parts)}
        stores = any(is_shared(e.target) for e in expressions(statement)
                     if isinstance(e, Assign | Step))  # fmt: skip
        changed = {*self.effects.changed(statement)}
        known = {v for v in changed if isinstance(self.prefixes.env.get(v), np.ndarray)}
        between = bool(self.prefixes.ops) or bool(parts)
        return stores or bool(changed & parts) or (between and bool(known) and changed == known)

    def _placed(self, node: Statement | Expr) -> dict[Node, Node]:
        """What stands for a thread's place, in the type that it has."""
        found = expressions(node) if isinstance(node, Statement) else every(node)
        swaps: dict[Node, Node] = {}
        for e in found:
            if builtin(e) == "threadIdx.x":
                swaps[e] = text(f"(unsigned){self.item}")
            elif builtin(e) == "blockDim.x":
                swaps[e] = text(f"{self.count}u")
            elif builtin(e).startswith(("threadIdx", "blockDim")):
                swaps[e] = text("0u" if builtin(e).startswith("t") else "1u")
        if isinstance(node, Declare):
            for variable in node.variables:
                value = variable.value
                if value is not None and builtin(value) == "threadIdx.x" and (
                    variable.type.base == "int"
                ):  # fmt: skip
                    swaps[value] = text(self.item)
        return swaps

    # -- what the last thread does

    def _for_last(self, statement: Statement) -> bool:
        """Whether the last thread of a block alone does something with what all have combined."""
        if not self.prefixes.ops or not isinstance(statement, If) or statement.other is not None:
            return False
        if statement.before is not None or self._combines(statement):
            return False
        found = self.prefixes.value(statement.test, self.all)
        only = isinstance(found, np.ndarray) and [*np.flatnonzero(found)] == [self.count - 1]
        return only and all(isinstance(s, If | Block | Evaluate) for s in walk(statement))

    def _last(self, statements: list[Statement]) -> list[str]:
        """These behind the loop, where everything is combined."""
        made = list[str]()
        mask = np.arange(self.count) == self.count - 1
        for statement in statements:
            assert isinstance(statement, If)
            swaps = self.prefixes.asked_in(statement.then, mask)
            if any(one.text != self.after[-1] for one in swaps.values() if hasattr(one, "text")):
                raise NotLegal("the last thread asks for more than what all combine")
            swaps = {e: text(self.run) for e in swaps}
            needed, declared = [*self._asked(statement.then, swaps)], list[str]()
            for own in needed:
                declared.append(self.old.show(own, self._at_last(own)))
            then = edited(statement.then, {**self._at_last(statement.then), **swaps})
            made.append("\n".join(["{", *declared, self.old.show(then), "}"]))
        return made

    def _at_last(self, node: Statement) -> dict[Node, Node]:
        placed = self._placed(node)
        own = (f"(unsigned){self.item}", self.item)
        return {e: text(f"{self.count - 1}u") if getattr(n, "text", "") in own
                or getattr(n, "name", "") in own else n for e, n in placed.items()}  # fmt: skip

    def _asked(self, statement: Statement, swaps: dict[Node, Node]) -> Iterator[Declare]:
        """The declarations that a statement needs, which only compute and stay what they are."""
        home = {v: s for s in self.old.function.body.body if isinstance(s, Declare)
                for v in s.variables}  # fmt: skip
        left, found = [statement], list[Declare]()
        while left:
            node = left.pop()
            gone = {e for one in swaps if isinstance(one, Expr) for e in every(one)}
            for e in expressions(node):
                if not isinstance(e, Name) or e.variable not in home or e in gone:
                    continue
                own = home[e.variable]
                loads = any(isinstance(p, Index | Call | Assign) for p in expressions(own))
                if len(own.variables) > 1 or loads or e.variable not in self.effects.lasting:
                    raise NotLegal("what the last thread asks for is not computed anew", own.line)
                if own not in found:
                    found.append(own)
                    left.append(own)
        yield from sorted(found, key=lambda s: s.line)

    # -- what makes it legal

    def _check_names(self) -> None:
        """Raise NotLegal where something else than an element leads to shared memory."""
        every_one = [*expressions(self.old.function.body)]
        based = {e.base for e in every_one if isinstance(e, Index)}
        for e in every_one:
            if isinstance(e, Name) and e not in based and is_shared(e):
                raise NotLegal(f"`{e.name}` goes beyond the block's own elements")

    def _check_stores(self) -> None:
        """One thread's stores come before the loads of those behind it now."""
        every_one = [a for a in self.effects.accesses(self.old.function.body)
                     if a.space == "global"]  # fmt: skip
        for store in (a for a in every_one if a.mode != "load"):
            if store.mode == "atomic":
                raise NotLegal("its threads add to one place", store.line)
            for load in every_one:
                if load.mode != "load" or not self.effects.same(load.array, store.array):
                    continue
                by = store.index.coefficient("threadIdx.x") if store.index is not None else None
                one = load.index == store.index and load.array == store.array
                if by is None or by == Polynomial() or by.value is None or not one:
                    raise NotLegal("its threads load what others store", load.line)
