"""P4, blocks whose threads combine what they found: is it the same for another number of threads?

The proof goes through the kernel statement by statement, as all threads of a block do together.
They may share the rounds of a loop, thread by thread with the block's width as the stride; each
combines into a local of its own, from what adds nothing; these go to shared memory, and a tree of
halves combines them. What one thread then writes, or all of them read, does not depend on how many
there were, as long as these are a power of two. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

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
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives.axes import GROUPS, WARPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.halving import Tree, tree_of
from optiml_magic.kernels.primitives.meetings import check_meetings, first_base
from optiml_magic.kernels.primitives.places import axis_of, bare, code, own_text_only, reached
from optiml_magic.kernels.primitives.roles import RoleOf, Roles, at_line, merged
from optiml_magic.kernels.primitives.striding import bound, stride
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

_IDENTITIES = {"+": 0, "*": 1, "|": 0, "^": 0, "&": -1}
_EXTREMES = ("min", "max")


@dataclass
class Cooperation:
    """What is to be exchanged for another number of threads.

    ``widths`` stand for it, ``halves`` for its half, ``extents`` for it as a constant. There may be
    no more than ``most`` threads; ``rounds`` where the order changes in which floats are added.
    """

    widths: list[Expr] = field(default_factory=list)
    halves: list[Expr] = field(default_factory=list)
    extents: list[Expr] = field(default_factory=list)
    most: int = 1024
    rounds: bool = False


def cooperation(kernel: Kernel) -> Cooperation:
    """How a kernel depends on the width of its blocks; raises NotLegal where that is not plain."""
    return _Proof(kernel).made()


class _Proof(Roles):
    """Goes through the statements, and gives a role to what differs from thread to thread."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.block[0] or 0)
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.axes = kernel.axes()
        self.found = Cooperation()
        self.told: set[Expr] = set()  # the stores that the proof has been through
        self.each: dict[Expr, str] = {}  # accesses in shared rounds, with the counter
        self.across = False  # whether the blocks of the grid share the rounds of a loop

    def made(self) -> Cooperation:
        kernel = self.kernel
        self.effects.straightforward(alone=False)
        own_text_only(kernel)
        if kernel.block[1:] != (1, 1) or self.width < 2 or self.width & (self.width - 1):
            raise NotLegal("the threads of a block are not a power of two along one axis")
        if WARPS.search(code(kernel.unit, kernel.function.span)):
            raise NotLegal("it may tell which threads are one warp")
        for name in sorted(kernel.reading.calls):
            if LANES.fullmatch(name) or name in GROUPS:
                raise NotLegal(f"`{name}` asks which threads are one group")
        for barrier in kernel.reading.barriers:
            if barrier.scope != "block":
                raise NotLegal("the threads of a warp wait for each other", barrier.line)
        for function in reached(kernel.unit, kernel.function):
            changing = any(p.type.depth or p.type.reference for p in function.parameters)
            if changing or "__sync" in code(kernel.unit, function.span):
                raise NotLegal(f"what `{function.name}` does is not looked into", function.line)
        self._all(kernel.function.body)
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
            case Block(body=body):
                for inner in body:
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
            case If(test=test, before=None) if self.first_thread(test):
                if statement.other is not None:
                    raise NotLegal("one thread goes another way", statement.line)
                with at_line(statement.then.line):
                    self._one(statement.then)
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
            if variable.array:
                self._sized(variable)
            return
        if variable.storage != "local" or variable.array or variable.type.reference:
            raise NotLegal(f"`{variable.name}` is not followed", statement.line)
        if variable.value is not None:
            self._gives(variable, variable.value)
        else:
            for part in variable.initial:
                self.plain(part)

    def _sized(self, variable: Variable) -> None:
        array = self.kernel.reading.arrays.get(variable.name)
        extent = array.extents[0] if array is not None and len(array.extents) == 1 else None
        size = extent.value if extent is not None else None
        if size is None or size < self.width or variable.extents[0] is None:
            raise NotLegal(f"`{variable.name}` has not an element a thread", variable.line)
        if size == self.width:
            self.found.extents.append(variable.extents[0])
        else:
            self.found.most = min(self.found.most, size)

    def _gives(self, variable: Variable, value: Expr) -> None:
        """A local that from now on holds this."""
        told = bare(value)
        self.roles.pop(variable, None)
        if self.is_thread(told):
            self._only_once(variable)
            self.roles[variable] = "thread"
        elif builtin(told) == "blockDim.x":
            self._only_once(variable)
            self.roles[variable] = "width"
        else:
            self.plain(value)
            if isinstance(told, Literal):
                self.roles[variable] = f"= {told.value:g}" if told.value is not None else "= ?"

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
        array = self.shared(target)
        value = bare(assign.value)
        part = (
            self.roles.get(value.variable, "") if isinstance(value, Name) and value.variable else ""
        )
        filled = isinstance(target, Index) and self.is_thread(bare(target.index))
        if array is None or assign.op != "=" or not filled or not part.startswith("part "):
            raise NotLegal("what its threads do together is not followed", statement.line)
        if self._may_round(array, value):
            raise NotLegal("what it combines is rounded on the way", statement.line)
        self.told.add(assign)
        self.roles[array] = f"parts {part[5:]}"

    def _may_round(self, array: Variable, value: Expr) -> bool:
        kind = self.kernel.reading.types.get(value)
        held = self.kernel.reading.arrays.get(array.name)
        return kind is None or held is None or held.element != kind

    # -- one thread of a block

    def _one(self, statement: Statement) -> None:
        match statement:
            case Block(body=body):
                for inner in body:
                    self._one(inner)
            case Blank():
                pass
            case Declare(variables=variables):
                for variable in variables:
                    if variable.storage != "local" or variable.array or variable.type.reference:
                        raise NotLegal(f"`{variable.name}` is not followed", statement.line)
                    for given in (variable.value, *variable.initial):
                        if given is not None:
                            self.plain(given)
            case Evaluate(expression=Assign(target=Index() as target, value=value) as assign):
                self.of_global(target)
                self.plain(target.index)
                self.plain(value)
                self.told.add(assign)
            case Evaluate(expression=Assign(target=Name() as target, value=value) as assign):
                if target.variable is None or target.variable.storage != "shared":
                    raise NotLegal(f"`{target.name}` differs from thread to thread", statement.line)
                self.plain(value)
                self.told.add(assign)
            case Evaluate(expression=Call(arguments=(place, value), receiver=None) as call):
                self._atomic(call, place, value, statement)
            case _:
                raise NotLegal("what one thread does is not followed", statement.line)

    def _atomic(self, call: Call, place: Expr, value: Expr, statement: Statement) -> None:
        """Of the parts of several blocks: in any order, and so in any number."""
        found = [
            a
            for a in self.kernel.reading.accesses
            if a.mode == "atomic" and a.line == statement.line
        ]
        if len(found) != 1 or call.function != "atomicAdd":
            raise NotLegal(f"`{call.function}` is not followed", statement.line)
        self.plain(place)
        array = self.shared(value)
        if self.across and array is not None and self.roles.get(array) == "whole + across":
            self.found.rounds |= not found[0].element.integral
        else:
            self.plain(value)
        self.told.add(call)

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
        for expr in expressions(loop.body):
            self.known(expr, parts=True)
        if any(name in barrier.loops for barrier in self.kernel.reading.barriers):
            raise NotLegal("its threads wait in rounds that they share", loop.line)
        found = {
            r.place: r for r in self.kernel.reading.reductions if name in r.axes and not r.carried
        }
        for changed in self.effects.changed(loop):
            if changed is variable:
                continue
            reduction, role = found.get(changed.name), self.roles.get(changed, "")
            if reduction is None or changed.storage != "local" or changed.array:
                raise NotLegal(f"`{changed.name}` goes from round to round", loop.line)
            types = [self.kernel.reading.types.get(value) for value in reduction.values]
            if reduction.type.integral and not all(t is not None and t.integral for t in types):
                raise NotLegal(f"`{changed.name}` is rounded in each round", loop.line)
            kind = f"part {reduction.op}{' across' if across else ''}"
            begun = f"= {_IDENTITIES.get(reduction.op, '?')}"
            plain = reduction.op in _EXTREMES and (not role or role.startswith("="))
            if role not in (kind, begun) and not plain:
                raise NotLegal(f"`{changed.name}` does not begin with nothing", loop.line)
            self.found.rounds |= not reduction.exact
            self.roles[changed] = kind
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
        for variable in self.effects.changed(loop):
            if self.roles.get(variable, "").startswith("="):
                del self.roles[variable]
        before: RoleOf = {}
        while before != self.roles:  # a later round begins with what an earlier one left
            before = dict(self.roles)
            self._apart([loop.body], left_out=True)

    def _combined(self, tree: Tree, loop: Loop) -> None:
        role = self.roles.get(tree.array, "")
        name, _, across = role.removeprefix("parts ").partition(" ")
        if not role.startswith("parts ") or name != tree.op:
            raise NotLegal("what it combines in halves is not all of it", loop.line)
        self.roles[tree.array] = f"whole {name} across" if across else "whole"
        self.found.halves += tree.halves
        self.told.add(tree.store)
