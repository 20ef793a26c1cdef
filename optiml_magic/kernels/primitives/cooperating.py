"""P4, blocks whose threads combine what they found: is it the same for another number of threads?

The proof goes through the kernel statement by statement, as all threads of a block do together.
They may share the rounds of a loop, thread by thread with the block's width as the stride; each
combines into a local of its own, from what adds nothing; these go to shared memory, and a tree of
halves combines them, or each warp combines its own by shuffles and one warp what all of these have.
What one thread then writes, or all of them read, does not depend on how many there were, as long as
these are a power of two. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    builtin,
)
from optiml_magic.kernels.primitives.axes import GROUPS, telling
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.halving import Tree, tree_of
from optiml_magic.kernels.primitives.meetings import check_meetings, first_base
from optiml_magic.kernels.primitives.places import axis_of, bare, code, own_text_only, reached
from optiml_magic.kernels.primitives.roles import Role, RoleOf, at_line, key_of, merged
from optiml_magic.kernels.primitives.singles import Singles
from optiml_magic.kernels.primitives.striding import bound, stride
from optiml_magic.kernels.primitives.warps import EXTREMES, IDENTITIES, Cooperation, followed
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_CONVERTING = {"umax", "umin", "llmax", "llmin", "ullmax", "ullmin"}


def cooperation(kernel: Kernel) -> Cooperation:
    """How a kernel depends on the width of its blocks; raises NotLegal where that is not plain."""
    return _Proof(kernel).made()


class _Proof(Singles):
    """Goes through the statements, and gives a role to what differs from thread to thread."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.axes = kernel.axes()
        self.each: dict[Expr, str] = {}  # accesses in shared rounds, with the counter

    def made(self) -> Cooperation:
        kernel = self.kernel
        self.effects.straightforward(lanes=True, alone=False)
        own_text_only(kernel)
        if kernel.block[1:] != (1, 1) or self.width < 2 or self.width & (self.width - 1):
            raise NotLegal("the threads of a block are not a power of two along one axis")
        if {*telling(kernel)} - {"warpSize"}:
            raise NotLegal("it may tell which threads are one warp")
        for name in sorted(kernel.reading.calls & (GROUPS | _CONVERTING)):
            does = "asks which threads are one group" if name in GROUPS else "converts numbers"
            raise NotLegal(f"`{name}` {does}")
        for barrier in kernel.reading.barriers:
            if barrier.scope != "block":
                raise NotLegal("the threads of a warp wait for each other", barrier.line)
        for function in reached(kernel.unit, kernel.function):
            changing = any(p.type.depth or p.type.reference for p in function.parameters)
            if changing or "__sync" in code(kernel.unit, function.span):
                raise NotLegal(f"what `{function.name}` does is not looked into", function.line)
        self._all(kernel.function.body)
        if self.exchanging:
            followed(kernel, self.exchanging, self.exchanged)
        check_meetings(kernel, self.told, self.each)
        if self.across and self.blocks:
            raise NotLegal("a block tells which one it is")
        return self.found

    # -- statements that all threads of a block come to

    def _all(self, statement: Statement) -> None:
        with at_line(statement.line):
            self._together(statement)

    def _together(self, statement: Statement) -> None:
        match statement:
            case Block() | Loop() | Evaluate() if self.exchange(statement):
                pass
            case Block(body=body):
                for at, inner in enumerate(body):
                    if statement is self.kernel.function.body and self.leaves(inner):
                        self._of_first_warp(*body[at + 1 :])
                        return
                    self._all(inner)
            case Declare(variables=variables):
                for variable in variables:
                    self._declared(variable, statement)
            case Evaluate(expression=Call(function="__syncthreads", arguments=())) | Blank():
                pass
            case Evaluate(expression=Assign() as assign):
                self._assigned(assign, statement)
            case Leave(kind="return", value=None):
                pass
            case If(before=None) if self._some(statement):
                pass
            case If(test=test, before=None):
                self.plain(test)
                branches = [b for b in (statement.then, statement.other) if b is not None]
                self._apart(branches, left_out=len(branches) == 1)
            case Loop():
                self._loop(statement)
            case _:
                raise NotLegal("what its threads do together is not followed", statement.line)

    def _apart(self, branches: Iterable[Statement], *, left_out: bool) -> None:
        """Branches that start alike; ``left_out`` where it may be that none of them runs."""
        before = dict(self.roles)
        ends = [before] if left_out else []
        for branch in branches:
            self.roles = dict(before)
            self._all(branch)
            ends.append(self.roles)
        self.roles = reduce(merged, ends)

    def _declared(self, variable: Variable, statement: Statement) -> None:
        if variable.storage == "shared":
            return
        if variable.storage != "local" or variable.array or variable.type.reference:
            raise NotLegal(f"`{variable.name}` is not followed", statement.line)
        if variable.value is not None:
            self._gives(variable, variable.value)
        else:
            for part in variable.initial:
                self.plain(part)

    def _gives(self, variable: Variable, value: Expr) -> None:
        """A local that from now on holds this."""
        if self.call(value, variable):
            return
        role = self.second(variable, value)
        if role is None and (role := self.place(value)) is not None:
            self._only_once(variable)
            kind = self.declared(variable)
            if not kind.integral or (kind.size or 0) < 2:
                raise NotLegal(f"`{variable.name}` may be too narrow", variable.line)
        if role is None and self.role(value).kind in ("part", "lead", "first"):
            self.copies(variable, value)
            role = self.role(value)
        if role is None:
            self.plain(value)
            whole = key_of(bare(value))
            role = Role("number", begun=whole if whole in ("0", "1") else key_of(value))
        self.roles[variable] = role

    def _only_once(self, variable: Variable) -> None:
        if variable in self.effects.changed(self.kernel.function.body):
            raise NotLegal(f"`{variable.name}` changes", variable.line)

    def _assigned(self, assign: Assign, statement: Statement) -> None:
        target = assign.target
        if isinstance(target, Name) and target.variable is not None and assign.op == "=":
            if target.variable.storage != "local" or target.variable.array:
                raise NotLegal("all threads store to one place", statement.line)
            self._gives(target.variable, assign.value)
            return
        array, value = self.shared(target), bare(assign.value)
        role = self.role(value)
        filled = isinstance(target, Index) and self.is_thread(bare(target.index))
        part = role.kind == "part" and not role.apart
        self.without_exchanges(assign)
        if array is None or assign.op != "=" or not filled or not part:
            raise NotLegal("what its threads do together is not followed", statement.line)
        if self._may_round(array, value):
            raise NotLegal("what it combines is rounded on the way", statement.line)
        self.sized(array, self.width)
        self.told.add(assign)
        self.roles[array] = Role("parts", role.op, role.across)

    def _may_round(self, array: Variable, value: Expr) -> bool:
        kind = self.kernel.reading.types.get(value)
        held = self.kernel.reading.arrays.get(array.name)
        return kind is None or held is None or held.element != kind

    # -- the first warp of a block

    def _of_first_warp(self, *statements: Statement) -> None:
        """What the first warp does while the others do not."""
        before = dict(self.roles)
        self.first = True
        for statement in statements:
            with at_line(statement.line):
                self._by_warp(statement)
        self.first = False
        changed = {v for v in self.roles if self.roles[v] != before.get(v)}
        for variable in changed | self.effects.changed(*statements).keys():
            role = self.roles.get(variable, Role("mixed"))
            if variable.storage != "shared" and role.kind != "first":
                self.roles[variable] = Role("mixed")

    def _by_warp(self, statement: Statement) -> None:
        match statement:
            case Block() | Loop() | Evaluate() if self.exchange(statement):
                pass
            case Block(body=body):
                for inner in body:
                    with at_line(inner.line):
                        self._by_warp(inner)
            case Blank():
                pass
            case Declare(variables=variables) if all(v.storage == "local" for v in variables):
                for variable in variables:
                    self._declared(variable, statement)
            case Evaluate(expression=Assign(op="=", target=Name() as target) as assign) if (
                target.variable is not None
            ):
                self._assigned(assign, statement)
            case If(before=None) if self._some(statement):
                pass
            case _:
                raise NotLegal("what one warp does is not followed", statement.line)

    def _some(self, statement: If) -> bool:
        """Whether not all threads do what a branch says, in a way that is followed."""
        test, then = statement.test, statement.then
        follow: Callable[[Statement], None] | None = None
        if self.first_thread(test) or (self.first and self.first_lane(test)):
            follow = self.one
        elif self.first_lane(test):
            follow = self.leads
        elif self.first_warp(test) and not self.first:
            follow = self._of_first_warp
        elif self.takes(then):
            follow = partial(self.taken, test)
        if follow is None:
            return False
        if statement.other is not None:
            raise NotLegal("one thread goes another way", statement.line)
        with at_line(then.line):
            follow(then)
        return True

    # -- loops

    def _loop(self, loop: Loop) -> None:
        tree = tree_of(loop, self.width, self.is_thread, self.is_width)
        if tree is not None:
            self._combined(tree, loop)
            return
        axis = self.axes.get(loop)
        if axis is None or not axis.exact:
            raise NotLegal((axis.reason if axis else "") or "a loop is not read", loop.line)
        variable = axis.variable
        head = loop.before.variables if isinstance(loop.before, Declare) else ()
        start = head[0].value if len(head) == 1 else None
        whole = start is not None and axis_of(self.kernel, start) == "x"
        if variable is None or start is None or not (whole or self.is_thread(bare(start))):
            self._repeated(loop)
            return
        step, end = stride(loop, variable), bound(loop, variable)
        counts = variable is head[0] and variable not in self.effects.changed(loop.body)
        if not counts or step is None or end is None:
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        self.plain(end)
        sides = [bare(s) for s in (step.left, step.right)] if isinstance(step, Binary) else []
        if whole:
            names = {builtin(side) for side in sides}
            if not (isinstance(step, Binary) and step.op == "*" and "gridDim.x" in names
                    and any(self.is_width(side) for side in sides)):  # fmt: skip
                raise NotLegal("the rounds that blocks share are not read", loop.line)
            self.across = True
        elif not self.is_width(step):
            raise NotLegal("the rounds that its threads share are not read", loop.line)
        elif isinstance(step, Literal):
            self.found.widths.append(step)
        self._shared_rounds(loop, variable, axis.name, across=whole)

    def _shared_rounds(self, loop: Loop, variable: Variable, name: str, *, across: bool) -> None:
        """Rounds that do not know which thread makes them, whatever thread that is."""
        changing = self.effects.changed(loop).keys() - {variable}
        for expr in expressions(loop.body):
            self.known(expr, parts=changing)
        if any(name in barrier.loops for barrier in self.kernel.reading.barriers):
            raise NotLegal("its threads wait in rounds that they share", loop.line)
        found = {
            r.place: r for r in self.kernel.reading.reductions if name in r.axes and not r.carried
        }
        for changed in self.effects.changed(loop):
            if changed is variable:
                continue
            reduction, role = found.get(changed.name), self.roles.get(changed, Role("number"))
            if reduction is None or changed.storage != "local" or changed.array:
                raise NotLegal(f"`{changed.name}` goes from round to round", loop.line)
            self._without_rounding(reduction, loop)
            part = Role("part", reduction.op, across, role.begun)
            number = role.kind == "number"
            begins = number and role.begun == IDENTITIES.get(reduction.op, "?")
            if role != part and not begins and not (number and reduction.op in EXTREMES):
                raise NotLegal(f"`{changed.name}` does not begin with nothing", loop.line)
            self.found.rounds |= not reduction.exact
            self.roles[changed] = part
        if self.effects.kept(loop):
            raise NotLegal("its rounds keep an array", loop.line)
        inner = {v for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
        for expr in expressions(loop.body):
            if isinstance(expr, Assign) and isinstance(expr.target, Index):
                base = first_base(expr.target)
                if not (isinstance(base, Name) and base.variable in inner):
                    self.of_global(expr.target)
                self.told.add(expr)
        for access in self.effects.accesses(loop):
            self.each[access.node] = name

    def _without_rounding(self, reduction: Reduction, loop: Loop) -> None:
        kind = reduction.type
        types = [self.kernel.reading.types.get(value) for value in reduction.values]
        whole = [t for t in types if t is not None and t.integral]
        if kind.integral and len(whole) < len(types):
            raise NotLegal(f"`{reduction.place}` is rounded in each round", loop.line)
        if kind.integral and reduction.op in EXTREMES:
            size = kind.size or 0
            kept = ((t.size or 9) < size or (t.size == size and t.signed == kind.signed)
                    for t in whole)  # fmt: skip
            if not all(kept):
                raise NotLegal(f"`{reduction.place}` is compared as another type", loop.line)

    def _repeated(self, loop: Loop) -> None:
        """A loop whose rounds all threads of a block make together."""
        if loop.before is not None:
            self._all(loop.before)
        if loop.test is not None:
            self.plain(loop.test)
        match loop.update:
            case Assign(target=Name(), value=value):
                self.plain(value)
            case None | Step(target=Name()):
                pass
            case other:
                self.plain(other)
        head = loop.before.variables if isinstance(loop.before, Declare) else ()
        for variable in (*head, *self.effects.changed(loop)):
            if self.roles.get(variable, Role("mixed")).kind == "number":
                del self.roles[variable]
        before: RoleOf = {}
        while before != self.roles:  # a later round begins with what an earlier one left
            before = dict(self.roles)
            self._apart([loop.body], left_out=True)

    def _combined(self, tree: Tree, loop: Loop) -> None:
        role = self.roles.get(tree.array, Role("mixed"))
        if role.kind != "parts" or role.op != tree.op:
            raise NotLegal("what it combines in halves is not all of it", loop.line)
        self.roles[tree.array] = replace(role, kind="whole")
        self.found.halves += tree.halves
        self.told.add(tree.store)
