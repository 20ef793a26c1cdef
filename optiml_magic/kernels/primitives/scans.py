"""Locals that each round of a loop combines something into and asks for: what a scan is made of.

``s += x[k]; y[k] = s;`` is one. What a round combines, its *part*, must not depend on what the
rounds before left in the same local. Then the parts of neighbouring rounds may be found side by
side, combined by lanes in their order, and each round goes on from what is before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from optiml_magic.kernels.combining import Combination, combination, selection
from optiml_magic.kernels.expressions import Assign, Expr, Name, Step, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.recurrences import Factors, factors
from optiml_magic.kernels.primitives.rounds import combined_in, moves
from optiml_magic.kernels.primitives.scan_order import Scan, groups, ordered
from optiml_magic.kernels.primitives.systems import system
from optiml_magic.kernels.reading import Access, Reduction
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
    walk,
)
from optiml_magic.kernels.tree import (
    expressions as expressions_in,
)
from optiml_magic.kernels.types import CType, named


@dataclass(frozen=True, eq=False)
class _Unit:
    """A statement that changes one local alone: ``changing`` it, or by ``found`` selecting."""

    variable: Variable
    changing: Assign | Step | None
    found: Combination | None


@dataclass(frozen=True, eq=False)
class Scans:
    """The scans of a loop, each behind those that it needs.

    The statements of ``first`` ask for none of them, those of ``rest`` do. ``given`` are what
    stands for statements by which a local goes on as another one, ``s = t`` after ``t = s + x``.
    """

    found: tuple[Scan, ...]
    first: tuple[Statement, ...]
    rest: tuple[Statement, ...]
    given: dict[Statement, Statement] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether every order of combining gives the same."""
        return all(scan.reduction.exact for scan in self.found)


def scanned(
    kernel: Kernel, loop: Loop, effects: Effects, *, together: bool = False
) -> Scans | None:
    """How a loop scans into what goes from round to round; None where nothing does.

    All that does so is one system where it is to be ``together``. Raises NotLegal where something
    goes from round to round in another way.
    """
    axis = kernel.axes().get(loop)
    passed = combined_in(kernel, axis, effects, loop)[1] if axis is not None else []
    finding = _Finding(kernel, loop, effects, frozenset(passed))
    return finding.scans(together=together) if passed else None


def mixes(kernel: Kernel, loops: Iterable[Loop]) -> bool:
    """Whether one of these loops hands on several states at once."""
    effects = Effects(kernel)
    with suppress(NotLegal):
        found = [scanned(kernel, loop, effects) for loop in loops]
        return any(scan.system is not None for scans in found if scans for scan in scans.found)
    return False


class _Finding:
    def __init__(
        self, kernel: Kernel, loop: Loop, effects: Effects, carried: frozenset[Variable]
    ) -> None:
        self.kernel = kernel
        self.loop = loop
        self.effects = effects
        self.carried = carried
        self.body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
        self.units: dict[Statement, _Unit] = {}
        self.inner: set[Statement] = set()  # statements within units
        self.given: dict[Statement, Statement] = {}

    def scans(self, *, together: bool) -> Scans:
        for statement in walk(self.loop.body):
            if isinstance(statement, Leave):
                raise NotLegal("a round of the scan may end early", statement.line)
            if isinstance(statement, If) and statement.before is not None:
                raise NotLegal("a branch of the scan declares what it asks", statement.line)
        for variable in sorted(self.carried, key=lambda v: v.name):
            self._plain(variable)
        if self.carried & names(e for e in (self.loop.test, self.loop.update) if e is not None):
            raise NotLegal("what goes from round to round says when it ends", self.loop.line)
        self._units()
        at = next(n for n, s in enumerate(self.body) if self.effects.mentions(s) & self.carried)
        while at and isinstance(self.body[at - 1], Blank):  # a pragma belongs to what follows it
            at -= 1
        self.rest = self.body[at:]
        order = sorted(self.carried, key=lambda v: (v.line, v.name))
        own = [order] if together else groups({v: self._kept(v)[1] for v in order})
        found = [scan for group in own for scan in self._found(group, together=together)]
        return Scans(ordered(found), self.body[:at], self.rest, self.given)

    def _found(self, group: Sequence[Variable], *, together: bool) -> list[Scan]:
        """The scans of locals that need each other, or of one."""
        if not together and len(group) == 1 and not self._winds(group[0]):
            return [self._scan(group[0], *self._changes(group[0]))]
        for statement, unit in self.units.items():
            if unit.variable in group:
                self.given.pop(statement, None)
        kept = set[Statement]().union(*(self._kept(v)[0] for v in group))
        needs = set[Variable]().union(*(self._kept(v)[1] for v in group)) - {*group}
        own = {v: self._kind(v, [u for u in self.units.values() if u.variable is v]) for v in group}
        kind = own[group[0]]
        if any(other != kind for other in own.values()):
            raise NotLegal("states of several types go from round to round", self.loop.line)
        found = system(self.kernel, self.loop, self.effects, group, kind, kept)
        self._check(kept)
        by = (self._axis,)
        return [
            Scan(v, Reduction(v.name, "*", by, None, (), kind, self.loop.line),
                 frozenset(kept), tuple(needs), system=found)
            for v in group
        ]  # fmt: skip

    def _winds(self, variable: Variable) -> bool:
        """Whether a float goes into itself by way of locals of the round, and by no other local."""
        kept, asked = self._kept(variable)
        own = {s for s, unit in self.units.items() if unit.variable is variable}
        return any(
            variable in names(s.expressions) for s in kept - own
            if isinstance(s, Declare) and asked <= {variable}
        )  # fmt: skip

    def _plain(self, variable: Variable) -> None:
        """A number of the thread's own, which nothing else leads to."""
        kind = variable.type
        if (
            variable.storage != "local"
            or variable.array
            or kind.depth
            or (kind.reference or kind.volatile)
        ):
            raise NotLegal(f"`{variable.name}` goes from round to round", self.loop.line)
        for statement in walk(self.kernel.function.body):
            for own in statement.variables if isinstance(statement, Declare) else ():
                if own.type.reference and own.value and variable in names([own.value]):
                    raise NotLegal(f"`{own.name}` may be `{variable.name}`", statement.line)

    def _units(self) -> None:
        """The statements that combine something into one of the locals; no other changes one."""
        for statement in walk(self.loop.body):
            if statement in self.inner:
                continue
            unit = self._unit(statement)
            if unit is not None:
                self.units[statement] = unit
                self.inner |= {s for s in walk(statement) if s is not statement}
                continue
            if statement.statements:  # of a branch or a loop the head alone
                heads = [Evaluate(None, statement.line, e) for e in statement.expressions]
                changed = self.effects.changed(*heads) if heads else {}
            else:
                changed = self.effects.changed(statement)
            lost = next((v for v in changed if v in self.carried), None)
            if lost is not None:
                raise NotLegal(f"`{lost.name}` goes from round to round", statement.line)

    def _unit(self, statement: Statement) -> _Unit | None:
        found: Combination | None = None
        changing: Assign | Step | None = None
        match statement:
            case If():
                found = selection(statement)
                inside = statement.then
                if isinstance(inside, Block) and len(inside.body) != 1:
                    found = None
                target = found.target if found is not None else None
            case Evaluate(expression=Assign() | Step() as own):
                changing = self._going_on(statement, own) if isinstance(own, Assign) else own
                found, target = combination(changing), changing.target
            case _:
                target = None
        if found is not None and (found.carried or found.named):
            found = None
        if not isinstance(target, Name) or target.variable not in self.carried:
            return None
        if found is None and changing is None:
            return None
        value = changing.value if isinstance(changing, Assign) else None
        if value is not None and self.effects.changed(Evaluate(None, statement.line, value)):
            return None
        assert target.variable is not None
        return _Unit(target.variable, changing, found)

    def _going_on(self, statement: Evaluate, assign: Assign) -> Assign:
        """For ``s = t``, where ``t`` was declared as what is made of ``s``, that in its place."""
        target, value = assign.target, assign.value
        if assign.op != "=" or not isinstance(target, Name) or not isinstance(value, Name):
            return assign
        block = next((s.body for s in walk(self.loop.body)
                      if isinstance(s, Block) and statement in s.body), ())  # fmt: skip
        declared = next((s for s in block if isinstance(s, Declare)
                         and s.variables == (value.variable,)), None)  # fmt: skip
        if declared is None or value.variable not in self.effects.lasting:
            return assign
        before = value.variable
        if before is None or before.value is None or target.variable is None:
            return assign
        types = self.kernel.reading.types
        if types.get(target) is None or types.get(target) != types.get(value):
            return assign
        whole = Assign(None, "=", target, before.value)
        between = block[block.index(declared) : block.index(statement)]
        asked = names([before.value])
        if target.variable not in asked or asked & self.effects.changed(*between).keys():
            return assign
        self.given[statement] = replace(statement, expression=whole, span=None)
        return whole

    def _changes(self, variable: Variable) -> tuple[Reduction, Factors | None]:
        """How its parts are combined."""
        own = [u for u in self.units.values() if u.variable is variable]
        found = [u.found for u in own if u.found is not None]
        kind = self._kind(variable, own)
        combine.carries(kind, self.loop.line)
        whole = {"<": "min", ">": "max"} if kind.integral else {}
        ops = {whole.get(c.op, c.op) for c in found}
        if len(ops) == 1 and len(found) == len(own):
            return self._reduction(variable, kind, ops.pop(), found), None
        changes = [u.changing for u in own if u.changing is not None]
        if len(changes) < len(own):
            raise NotLegal(f"`{variable.name}` is combined in more than one way", self.loop.line)
        by = factors(self.kernel, variable, kind, changes, self.loop.line)
        made = Reduction(variable.name, "*", (self._axis,), None, (), kind, self.loop.line)
        combine.supported(made)
        return made, by

    def _kind(self, variable: Variable, own: Sequence[_Unit]) -> CType:
        """The local's type; where it is a template's, as it was read, which no step says."""
        types = self.kernel.reading.types
        targets = [part.target for u in own for part in (u.found, u.changing) if part is not None]
        read = (types.get(target) for target in targets)
        declared = named(variable.type.base, self.kernel.unit.aliases)
        return next((kind for kind in read if kind is not None), declared)

    @property
    def _axis(self) -> str:
        return self.kernel.axes()[self.loop].name

    def _reduction(
        self, variable: Variable, kind: CType, op: str, own: Sequence[Combination]
    ) -> Reduction:
        types = self.kernel.reading.types
        tests = tuple(dict.fromkeys(c.test for c in own))
        if len(tests) != 1 and not kind.integral:
            raise NotLegal(f"`{variable.name}` is combined in more than one way", self.loop.line)
        values = tuple(value for c in own for value in c.values)
        made = Reduction(
            variable.name, op, (self._axis,), None, values, kind, self.loop.line, (), tests,
        )  # fmt: skip
        combine.supported(made)
        combine.nothing(made)
        for value in values:
            its = types.get(value)
            if its is None or its.depth or its.kind not in ("int", "float", "bool"):
                raise NotLegal(f"what `{variable.name}` takes is not read", self.loop.line)
            if kind.integral and not its.integral and its.kind != "bool":
                raise NotLegal(f"`{variable.name}` is rounded in each round", self.loop.line)
            narrow = (its.size or 9) < 4 and its.integral
            if op in ("min", "max", "<", ">") and its != kind and not (narrow and kind.integral):
                raise NotLegal(f"`{variable.name}` is compared as another type", self.loop.line)
        return made

    def _scan(self, variable: Variable, reduction: Reduction, by: Factors | None) -> Scan:
        kept, asked = self._kept(variable)
        own = {s for s in self.units if s in kept and self.units[s].variable is variable}
        for statement in kept:
            if statement in own or (statement.statements and statement not in self.units):
                heads = statement.expressions if statement not in own else ()
                if variable in names(heads):
                    raise NotLegal("what it combines depends on the rounds before", statement.line)
            elif variable in self.effects.mentions(statement):
                raise NotLegal("what it combines depends on the rounds before", statement.line)
        self._check(kept)
        changes = {
            s: u.changing for s, u in self.units.items()
            if by is not None and u.variable is variable and u.changing is not None
        }  # fmt: skip
        needs = tuple(asked - {variable})
        plain = all(isinstance(c, Assign) and c.op == "=" and variable not in names([c.value])
                    for c in changes.values())  # fmt: skip
        anew = by is not None and plain and self._always(own)
        return Scan(variable, reduction, frozenset(kept), needs, changes, by, delayed=anew)

    def _always(self, own: set[Statement]) -> bool:
        """Whether one of the statements is certain to be made in each round, and is the last."""
        axes = self.kernel.axes()
        around = [s for top in self.rest for s in walk(top) if s.statements and own & {*walk(s)}]
        return len(own) == 1 and all(
            isinstance(s, Block) or (isinstance(s, Loop) and s in axes and (axes[s].trips or 0) > 0)
            for s in around
        )  # fmt: skip

    def _kept(self, variable: Variable) -> tuple[set[Statement], set[Variable]]:
        """The statements of the rest that a part is found by, and the scans that they ask for."""
        needed: set[Variable] = {variable}
        kept: set[Statement] = set()
        within = {s for top in self.rest for s in walk(top)} - self.inner
        before = -1
        while before != len(kept):
            before = len(kept)
            for statement in within - kept:
                if not self._gives(statement, needed) and not self._around(statement, kept):
                    continue
                kept.add(statement)
                if isinstance(statement, Loop) and statement.before is not None:
                    kept.add(statement.before)
                    needed |= names(statement.before.expressions)
                shown = self.given.get(statement, statement)
                whole = statement in self.units
                needed |= names(expressions_in(shown) if whole else shown.expressions)
        return kept, needed & self.carried

    def _gives(self, statement: Statement, needed: set[Variable]) -> bool:
        if statement in self.units:
            return self.units[statement].variable in needed
        if statement.statements:
            return False
        if isinstance(statement, Declare) and needed & {*statement.variables}:
            return True
        return bool(self.effects.changed(statement).keys() & needed)

    def _around(self, statement: Statement, kept: set[Statement]) -> bool:
        return statement not in self.units and not kept.isdisjoint(statement.statements)

    def _check(self, kept: set[Statement]) -> None:
        """What is done once to find parts is done again behind, and must be the same both times."""
        inside = {e for s in kept if s in self.units or not s.statements
                  for e in self.effects.inside(s)}  # fmt: skip
        inside |= {e for s in kept for top in s.expressions for e in every(top)}
        inside |= {e for s in kept if s in self.given for e in expressions_in(self.given[s])}
        reading = self.kernel.reading
        own = [a for a in reading.accesses if a.own in inside]
        for access in own:
            if access.mode != "load" and access.space != "local":
                raise NotLegal("what it combines is stored by the way", access.line)
        stores = [a for s in self.rest for e in (self.effects.inside(s),)
                  for a in reading.accesses if a.own in e and a.mode != "load"]  # fmt: skip
        for load in own:
            for store in stores:
                self._check_order(load, store)

    def _check_order(self, load: Access, store: Access) -> None:
        """What a round stores and loads, it loads before, in loops within it as well."""
        if load.mode != "load" or not self.effects.same(load.array, store.array):
            return
        places = [self._places.get(a.own) for a in (load, store)]
        before = None not in places and places[0] < places[1]  # type: ignore[operator]
        around = [loop for loop in self._loops
                  if {load.own, store.own} <= self.effects.inside(loop.body)]  # fmt: skip
        axes = self.kernel.axes()
        one = load.index is not None and (load.array, load.index) == (store.array, store.index)
        apart = all(one and loop in axes and moves(self.kernel, axes[loop], store, loop)
                    for loop in around)  # fmt: skip
        if not before or not apart:
            raise NotLegal("it combines what it has stored", load.line)

    @cached_property
    def _places(self) -> dict[Expr, int]:
        """Where the expressions of the rest stand, in the order of the text."""
        order = (s for top in self.rest for s in walk(top))
        return {e: n for n, s in enumerate(order) for top in s.expressions for e in every(top)}

    @cached_property
    def _loops(self) -> list[Loop]:
        return [s for top in self.rest for s in walk(top) if isinstance(s, Loop)]
