"""P11, ahead: lanes look ahead for the rounds that change something, which all of them then make.

The nearest k, a list of the greatest so far: a round compares what it finds with what all rounds
before have left, and seldom changes that. Each lane finds what its own round compares. As long as
one of these rounds would change something, all lanes make the first of them with the values of its
lane, and look again. So those that change something are made one after the other, as one thread
makes them, with the same bits; all others at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.rounds import counting, shareable
from optiml_magic.kernels.primitives.scans import scanned
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    body_of,
    only_leaves,
    walk,
)

_MASK = "group_mask<{}>()"


@dataclass(frozen=True)
class Ahead:
    """A loop whose rounds find the ``own`` locals, and change what lasts in ``branch`` alone."""

    kernel: Kernel
    axis: Axis
    effects: Effects
    own: tuple[Variable, ...]
    branch: If

    @property
    def sizes(self) -> tuple[str, ...]:
        """What the launch has to ask of the sizes."""
        return ()

    def text(
        self, lane: str, count: str, swaps: Mapping[Node, Node], fresh: Callable[[str], str]
    ) -> str:
        """The loop, of whose rounds ``count`` lanes look at one each."""
        kernel, axis, loop = self.kernel, self.axis, self.axis.node
        assert axis.variable is not None
        heads = Heads(kernel, [loop], self.effects)
        name, kind = axis.variable.name, declared_type(kernel, axis.variable)
        base, is_open = fresh(f"{name}_base"), fresh("is_open")
        found, first = fresh("found"), fresh("first")
        _, start = heads.start(loop, swaps)
        step = heads.step(axis)
        far = "" if step == "1" else f" * {step}"
        at_base = heads.test(loop, axis, {**swaps, **self._named(axis.variable, base)})
        mask = _MASK.format(count)
        handed: dict[Node, Node] = {}
        made = list[str]()
        for variable in (axis.variable, *self.own):
            if variable in self.effects.mentions(self.branch.then):
                mine = fresh(f"{variable.name}_first")
                made.append(f"const {declared_type(kernel, variable)} {mine} = "
                            f"__shfl_sync({mask}, {variable.name}, {first});")  # fmt: skip
                handed |= self._named(variable, mine)
        test = kernel.spelled(self.branch.test, swaps)
        body = kernel.show(self.branch.then, {**swaps, **handed}).strip()
        return "\n".join([
            f"for ({kind} {base} = {start}; {at_base}; {base} += {count}{far}) {{",
            f"const {kind} {name} = {base} + {lane}{far};",
            f"bool {is_open} = {heads.test(loop, axis, swaps)};",
            *(self._declared(variable, swaps) for variable in self.own),
            f"if ({is_open}) {{",
            *self._looked(body_of(loop.body), is_open, swaps),
            "}",
            "// All lanes make the first round that changes something, and look again.",
            "for (;;) {",
            f"const unsigned {found} = __ballot_sync({mask}, {is_open} && ({test}));",
            f"if ({found} == 0) break;",
            f"const int {first} = __ffs({found}) - 1;",
            *made,
            body,
            f"{is_open} = {is_open} && threadIdx.x % 32 > {first};",
            "}",
            "}",
        ])  # fmt: skip

    def _declared(self, variable: Variable, swaps: Mapping[Node, Node]) -> str:
        kind = declared_type(self.kernel, variable)
        if not variable.array:
            return f"{kind} {variable.name} = 0;"
        shown = [self.kernel.spelled(e, swaps)
                 for e in variable.extents if e is not None]  # fmt: skip
        return f"{kind} {variable.name}{''.join(f'[{e}]' for e in shown)};"

    def _looked(
        self, body: Sequence[Statement], is_open: str, swaps: Mapping[Node, Node]
    ) -> list[str]:
        """What a lane finds in its own round; it is closed where the round ends early."""
        made = list[str]()
        for at, statement in enumerate(body):
            match statement:
                case If(test=test) if statement is self.branch:
                    return made
                case If(test=test, then=then) if _leads(statement, self.branch):
                    shown = self._shown(test, swaps)
                    inner = self._looked(body_of(then), is_open, swaps)
                    return [*made, f"{is_open} = {shown};", f"if ({is_open}) {{", *inner, "}"]
                case If(test=test) if _skips(statement):
                    shown = self._shown(test, swaps)
                    inner = self._looked(body[at + 1 :], is_open, swaps)
                    return [*made, f"{is_open} = !({shown});", f"if ({is_open}) {{", *inner, "}"]
                case Declare(variables=variables):
                    made += [f"{v.name} = {self._shown(v.value, swaps)};"
                             for v in variables if v.value is not None]  # fmt: skip
                case _:
                    made.append(self.kernel.show(statement, swaps))
        return made

    def _shown(self, expr: Expr, swaps: Mapping[Node, Node]) -> str:
        return self.kernel.spelled(expr, swaps)

    def _named(self, variable: Variable, name: str) -> dict[Node, Node]:
        return {
            e: text(name)
            for e in self.effects.inside(self.axis.node)
            if isinstance(e, Name) and e.variable is variable
        }


def ahead(kernel: Kernel, loop: Loop, effects: Effects) -> Ahead | None:
    """How lanes look ahead in a loop whose rounds they cannot share; None where they can.

    Raises NotLegal where they can do neither, with the reason why they cannot share.
    """
    try:
        shareable(kernel, loop, effects, scanning=True)
        scanned(kernel, loop, effects)
    except NotLegal as reason:
        try:
            axis = counting(kernel, loop, effects)
            for branch, own in branches(body_of(loop.body)):
                with suppress(NotLegal):
                    return _found(kernel, axis, effects, branch, own)
        except NotLegal:
            raise reason from None
        raise
    return None


def _found(
    kernel: Kernel, axis: Axis, effects: Effects, branch: If, own: tuple[Variable, ...]
) -> Ahead:
    loop = axis.node
    for access in effects.accesses(loop):
        if access.mode != "load":
            raise NotLegal("it stores in the loop", access.line)
    lasting = _lasting(kernel, effects, branch)
    before = {*effects.changed(loop.body)} - {*effects.changed(branch.then)}
    if before - {*own} or _stored(kernel, effects, loop, own) - {v.name for v in lasting}:
        raise NotLegal("a round changes what lasts before it asks", loop.line)
    if not effects.mentions(_asking(branch)) & lasting:
        raise NotLegal("it does not ask for what it changes", branch.line)
    check_found(kernel, effects, body_of(loop.body), branch, {*own}, lasting)
    handed = effects.mentions(branch.then) & {*own}
    if any(v.array for v in handed) or handed & {*effects.changed(branch.then)}:
        raise NotLegal("a lane's own array is asked for by all", branch.line)
    check_names(effects, loop, own)
    _check_types(kernel, own)
    return Ahead(kernel, axis, effects, own, branch)


def _check_types(kernel: Kernel, own: Sequence[Variable]) -> None:
    """Raise NotLegal for what a shuffle does not carry."""
    for variable in own:
        if not variable.array:
            combine.carries(type_of(kernel, variable), variable.line)


def check_names(effects: Effects, loop: Loop, own: Sequence[Variable]) -> None:
    """Raise NotLegal for what may be another name of a local of a round."""
    mentioned = effects.mentions(loop)
    for variable in own:
        alone = len([v for v in own if v.name == variable.name]) == 1
        if not variable.array and (variable not in mentioned or not alone):
            raise NotLegal(f"what `{variable.name}` is, is not known", variable.line)
    names = {v.name for v in own}
    for variable in mentioned:
        if variable.type.reference:
            raise NotLegal(f"`{variable.name}` is a reference", variable.line)
        if variable.name in names and variable not in own:
            raise NotLegal(f"`{variable.name}` is the name of several locals", variable.line)


def branches(body: Sequence[Statement]) -> Iterator[tuple[If, tuple[Variable, ...]]]:
    """The branches that a round may end with, and the locals that it declares before each.

    One in another comes first, since less is left to it.
    """
    own = tuple(v for s in body[:-1] if isinstance(s, Declare) for v in s.variables)
    last = body[-1] if body else None
    if not isinstance(last, If) or last.other or last.before or last.constant:
        return
    for branch, more in branches(body_of(last.then)):
        yield branch, (*own, *more)
    yield last, own


def _lasting(kernel: Kernel, effects: Effects, branch: If) -> frozenset[Variable]:
    """What a branch changes that is there before it: locals and arrays of the thread."""
    if any(True for _ in ends(branch.then)):
        raise NotLegal("the branch leaves the round", branch.line)
    declared = {v.name for s in walk(branch.then) if isinstance(s, Declare) for v in s.variables}
    stored = {a.array for a in kernel.reading.accesses if a.space == "local" and a.mode != "load"
              and a.own in effects.inside(branch.then)} - declared  # fmt: skip
    arrays = {v for v in effects.mentions(branch.then) if v.name in stored}
    if {v.name for v in arrays} != stored:
        raise NotLegal("what it stores to is not followed", branch.line)
    return frozenset(arrays | {*effects.changed(branch.then)})


def _stored(kernel: Kernel, effects: Effects, loop: Loop, own: Sequence[Variable]) -> set[str]:
    """The arrays of the thread that a loop stores to, but for those of a round."""
    inner = {v.name for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    return {a.array for a in kernel.reading.accesses if a.space == "local" and a.mode != "load"
            and a.own in effects.inside(loop)} - inner - {v.name for v in own}  # fmt: skip


def _asking(branch: If) -> Statement:
    return Evaluate(None, branch.line, branch.test)


def check_found(
    kernel: Kernel, effects: Effects, body: Sequence[Statement], branch: If,
    own: set[Variable], lasting: frozenset[Variable],
) -> None:  # fmt: skip
    """Raise NotLegal where what a round finds depends on what lasts, or is more than its own.

    What the branch itself asks may depend on what lasts.
    """
    for statement in body:
        if statement is branch:
            if effects.changed(_asking(branch)):
                raise NotLegal("a condition changes something", branch.line)
            return
        leads = _leads(statement, branch)
        skips = isinstance(statement, If) and (leads or _skips(statement))
        told: Statement = statement
        if skips and isinstance(statement, If):
            told = _asking(statement)
        names = {v.name for v in lasting}
        local = {a.array for a in kernel.reading.accesses
                 if a.space == "local" and a.own in effects.inside(told)}  # fmt: skip
        if effects.mentions(told) & lasting or local & names:
            raise NotLegal("what a round finds depends on rounds before", statement.line)
        if {*effects.changed(told)} - own or any(True for _ in ends(told)):
            raise NotLegal("a round changes what lasts before it asks", statement.line)
        for variable in statement.variables if isinstance(statement, Declare) else ():
            plain = not variable.type.depth and not variable.type.reference and not variable.initial
            if not plain or variable.storage != "local" or variable.opening != "=":
                raise NotLegal(f"`{variable.name}` is not a number of its round", variable.line)
        if leads and isinstance(statement, If):
            check_found(kernel, effects, body_of(statement.then), branch, own, lasting)
            return


def _skips(branch: If) -> bool:
    """Whether a branch does nothing but end the round."""
    plain = branch.other is None and branch.before is None and not branch.constant
    return plain and only_leaves(branch.then, "continue")


def _leads(statement: Statement, branch: If) -> bool:
    return statement is not branch and any(s is branch for s in walk(statement))
