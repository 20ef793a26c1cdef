"""P4, what one thread of a block does alone, and the first lane of each of its warps."""

from __future__ import annotations

from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.halving import flat
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.roles import Role, key_of
from optiml_magic.kernels.primitives.shuffles import alike
from optiml_magic.kernels.primitives.warps import WARP, Warps
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Statement,
    Variable,
)


class Singles(Warps):
    """Goes through statements that are not for all threads of a block."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.effects = Effects(kernel)
        self.told: set[Expr] = set()  # the stores that the proof has been through
        self.across = False  # whether the blocks of the grid share the rounds of a loop

    def one(self, statement: Statement) -> None:
        """What the first thread of the block does alone."""
        self.alone = True
        self._one(statement)
        self.alone = False

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
                self.plain(value)
                array = self.shared(target)
                if array is not None:
                    if assign.op != "=" or key_of(bare(target.index)) != "0":
                        raise NotLegal("where it stores is not followed", statement.line)
                    self.roles[array] = Role("whole")
                else:
                    self.of_global(target)
                    self.plain(target.index)
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
        """Of the parts of several blocks, or warps: in any order, and so in any number."""
        found = [
            a
            for a in self.kernel.reading.accesses
            if a.mode == "atomic" and a.line == statement.line
        ]
        if len(found) != 1 or call.function != "atomicAdd":
            raise NotLegal(f"`{call.function}` is not followed", statement.line)
        self.plain(place)
        element = found[0].element
        array = self.shared(value)
        role = self.roles.get(array) if array is not None else self.role(value)
        of_first = array is not None and role == Role("whole", "+", across=True)
        of_first = of_first and isinstance(value, Index) and key_of(bare(value.index)) == "0"
        by_all = role == Role("first", "+", across=True) and self.alone
        by_warps = role is not None and role.kind == "lead" and role.op == "+" and not self.alone
        if role is not None and role.across and found[0].space == "shared":
            raise NotLegal("what blocks have parts of is added up in one of them", statement.line)
        if of_first or by_all or by_warps:
            kind = self.kernel.reading.types.get(value)
            if kind is None or not alike(kind, element):
                raise NotLegal("what it combines is rounded on the way", statement.line)
            self.found.rounds |= not element.integral
        elif self.alone:
            self.plain(value)
        else:
            raise NotLegal("what the first lanes of its warps do is not followed", statement.line)
        self.told.add(call)

    def leads(self, statement: Statement) -> None:
        """What the first lane of each warp does with what its warp combined."""
        for inner in flat(statement):
            match inner:
                case Evaluate(expression=Assign(op="=", target=Index()) as assign):
                    self._leads(assign, inner)
                case Evaluate(expression=Call(arguments=(place, value), receiver=None) as call):
                    self._atomic(call, place, value, inner)
                case _:
                    reason = "what the first lanes of its warps do is not followed"
                    raise NotLegal(reason, inner.line)

    def _leads(self, assign: Assign, statement: Statement) -> None:
        target, value = assign.target, assign.value
        array, role = self.shared(target), self.role(value)
        at_warp = isinstance(target, Index) and self.is_warp(target.index)
        if array is None or role.kind != "lead" or not at_warp:
            raise NotLegal("what the first lanes of its warps do is not followed", statement.line)
        self.copies(array, value)
        self.sized(array, self.width // WARP)
        self.told.add(assign)
        self.roles[array] = Role("leads", role.op, role.across, role.begun)

    def sized(self, variable: Variable, count: int) -> None:
        """Raise NotLegal where an array has fewer elements than threads, or warps, store to it."""
        array = self.kernel.reading.arrays.get(variable.name)
        extent = array.extents[0] if array is not None and len(array.extents) == 1 else None
        size = extent.value if extent is not None else None
        each = "a thread" if count == self.width else "a warp"
        if size is None or size < count or variable.extents[0] is None:
            raise NotLegal(f"`{variable.name}` has not an element {each}", variable.line)
        if size == count:
            exact = self.found.extents if count == self.width else self.found.leads
            exact.append(variable.extents[0])
        else:
            self.found.most = min(self.found.most, int(size) * (self.width // count))

    def takes(self, then: Statement) -> bool:
        """Whether lanes take the leads of warps in a branch."""
        match flat(then):
            case [Evaluate(expression=Assign(op="=", target=Name(), value=Index() as value))]:
                array = self.shared(value)
                return array is not None and self.roles.get(array, Role("mixed")).kind == "leads"
        return False

    def taken(self, test: Expr, then: Statement) -> None:
        """What lanes have after such a branch, who had what adds nothing before."""
        (only,) = flat(then)
        assert isinstance(only, Evaluate)
        assert isinstance(only.expression, Assign)
        target, value = only.expression.target, only.expression.value
        assert isinstance(value, Index)
        array = self.shared(value)
        variable = target.variable if isinstance(target, Name) else None
        if array is None or variable is None or not self.alike(variable, array):
            raise NotLegal("what it combines is rounded on the way")
        role, held = self.roles[array], self.role(target)
        nothing = held.kind == "number" and self.adds_nothing(role, held.begun, array)
        taken = self.taking(role, test, value.index) if nothing else None
        if taken is None:
            raise NotLegal("what lanes have who take no part is not certain to add nothing")
        self.roles[variable] = taken

    def leaves(self, statement: Statement) -> bool:
        """Whether all warps but the first leave."""
        match statement:
            case If(test=test, then=then, other=None, before=None):
                match flat(then):
                    case [Leave(kind="return", value=None)]:
                        return self.other_warps(test)
        return False
