"""The ways through a round over keys, and what each makes of the scalars that it changes.

A way is what its locals are in the end, by what they were before; ``NOW`` stands wherever the one
extreme is found, by a function, a choice or a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    Step,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.weighted import Pass
from optiml_magic.kernels.primitives.weighted_sides import ONE
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
)

#: What stands for the extreme with the keys of a tile.
NOW = Name(None, "now")
_EXTREMES = {"fmaxf": ">", "fmax": ">", "max": ">", "fminf": "<", "fmin": "<", "min": "<"}
_MOST = 16  # ways through a round: ours


@dataclass
class Way:
    """One way through a round: what its locals are in the end, by what they were before it."""

    known: dict[Variable, Expr] = field(default_factory=dict)
    tests: list[tuple[Expr, bool]] = field(default_factory=list)
    better: bool | None = None  # what a test says of the key
    scale: Expr = ONE
    weight: Expr | None = None
    updated: bool = False

    def copy(self) -> Way:
        return replace(self, known={**self.known}, tests=[*self.tests])


class Ways:
    """Follows the statements of a round that touch such scalars, ``states``."""

    def __init__(self, kernel: Kernel, effects: Effects, part: Pass) -> None:
        self.kernel, self.effects, self.part = kernel, effects, part
        self.loop = part.axis.node
        self.updates = {u.axis.node for u in part.updates}
        body = effects.changed(self.loop.body)
        self.states = frozenset(body) - {part.axis.variable}
        self.states -= {v for v in self.states if v.array}
        self.extreme: Variable | None = None
        self.op = ""
        self.by: Expr | None = None

    def _no(self, reason: str) -> NotLegal:
        return NotLegal(reason, self.loop.line)

    def run(self, statements: Sequence[Statement], path: Way) -> list[Way]:
        for at, statement in enumerate(statements):
            rest = statements[at + 1 :]
            match statement:
                case Blank():
                    continue
                case Block(body=body):
                    return self.run([*body, *rest], path)
                case Leave(kind="continue"):
                    return [path]
                case If(before=None, constant=False):
                    return self._branch(statement, rest, path)
                case Declare(variables=variables):
                    for variable in variables:
                        self._declare(path, variable)
                case Loop() if statement in self.updates:
                    self._update(path, statement)
                case Evaluate(expression=Assign(target=Name(variable=Variable() as own)) as e):
                    value = e.value
                    if e.op != "=":
                        value = Binary(None, e.op[:-1], Name(None, own.name, own), value)
                    self._assign(path, own, value, e.value)
                case Evaluate(expression=Step(target=Name(variable=Variable() as own), op=op)):
                    more = Binary(None, op[0], Name(None, own.name, own), Literal(None, "1", 1))
                    self._assign(path, own, more, None)
                case _:
                    raise self._no("what it does with its scalars is not followed")
        return [path]

    def _branch(self, branch: If, rest: Sequence[Statement], path: Way) -> list[Way]:
        test = self._value(path, branch.test)
        found = list[Way]()
        for held, way in ((True, branch.then), (False, branch.other)):
            own = path.copy()
            if self._of_states(test):
                own.better = self._better(own, test, branch) == held
            else:
                own.tests.append((test, held))
            found += self.run([*([way] if way is not None else []), *rest], own)
            if len(found) > _MOST:
                raise self._no("there are too many ways through a round")
        return found

    def _better(self, path: Way, test: Expr, branch: If) -> bool:
        """Whether a comparison with the extreme holds for a better key, or for all others."""
        match test:
            case Binary(op=">" | ">=" | "<" | "<=" as op, left=left, right=right):
                way = op if self._state(right) else MIRRORED[op]
                left, right = (left, right) if self._state(right) else (right, left)
                state = self._state(right)
                if state is not None and not self._of_states(left) and path.better is None:
                    better = state in self.effects.changed(branch.then) or branch.other is None
                    self._note(state, way[0] if better else MIRRORED[way][0], left)
                    return better
        raise self._no("a test of its scalars is not followed")

    def _note(self, state: Variable, op: str, by: Expr) -> None:
        """Raise NotLegal where this is not the one extreme of the round."""
        if self.extreme is None or self.by is None:
            self.extreme, self.op, self.by = state, op, by
        if (self.extreme, self.op) != (state, op) or self._shown(self.by) != self._shown(by):
            raise self._no("it keeps more than one extreme")

    def _declare(self, path: Way, variable: Variable) -> None:
        if variable.array or variable.type.reference or variable.initial:
            raise self._no(f"`{variable.name}` is not a plain local")
        if variable.value is not None:
            self._assign(path, variable, variable.value, variable.value)

    def _assign(self, path: Way, variable: Variable, expr: Expr, given: Expr | None) -> None:
        """A local becomes ``expr``, whose type is that of ``given`` where this is of another."""
        own, types = type_of(self.kernel, variable), self.kernel.reading.types
        kind = types.get(given) if given is not None else own
        value = self._value(path, expr)
        if kind is None or kind.depth or (own.integral and not kind.integral):
            raise self._no(f"what `{variable.name}` becomes is not followed")
        if variable is self.extreme and path.better and self.by is not None and (
            self._shown(value) == self._shown(self.by)
        ):  # fmt: skip
            value = NOW
        path.known[variable] = value if kind.name == own.name else Cast(None, own.name, value)

    def _update(self, path: Way, loop: Loop) -> None:
        for update in (u for u in self.part.updates if u.axis.node is loop):
            path.updated = True
            if update.factor is not None:
                by = self._value(path, update.factor)
                path.scale = by if path.scale is ONE else Binary(None, "*", path.scale, by)
                if path.weight is not None:
                    path.weight = Binary(None, "*", path.weight, by)
            if update.weight is not None:
                own = self._value(path, update.weight)
                path.weight = own if path.weight is None else Binary(None, "+", path.weight, own)

    def _now(self, path: Way, variable: Variable) -> Expr:
        return path.known.get(variable) or Name(None, variable.name, variable)

    def _value(self, path: Way, expr: Expr) -> Expr:
        """An expression by what its round began with."""
        swaps: dict[Node, Node] = {}
        for part in every(expr):
            if isinstance(part, Assign | Step):
                raise self._no("it assigns within an expression")
            if isinstance(part, Name) and part.variable in path.known:
                swaps[part] = path.known[part.variable]
        return self._settled(edited(expr, swaps))

    def _settled(self, expr: Expr) -> Expr:
        """An expression with ``NOW`` wherever the extreme is found."""
        swaps = dict[Node, Node]()
        for part in every(expr):
            if (found := self._extreme(part)) is not None:
                self._note(*found)
                swaps[part] = NOW
        return edited(expr, swaps) if swaps else expr

    def _extreme(self, expr: Expr) -> tuple[Variable, str, Expr] | None:
        """The scalar, the direction and what is compared, of ``fmaxf(m, s)`` and its kin."""
        match expr:
            case Call(function=name, arguments=(one, other)) if bare(name) in _EXTREMES:
                op = _EXTREMES[bare(name)]
                if self._state(one) is None:
                    one, other = other, one
            case Choice(test=Binary(op=">" | ">=" | "<" | "<=" as op, left=left, right=right),
                        then=then, other=last):  # fmt: skip
                if self._shown(left) != self._shown(then):
                    left, right, op = right, left, MIRRORED[op]
                if (self._shown(left), self._shown(right)) != (
                    self._shown(then), self._shown(last)
                ):  # fmt: skip
                    return None
                one, other, op = (left, right, op[0])
                if self._state(one) is None:
                    one, other = other, one
            case _:
                return None
        state = self._state(one)
        return (state, op, other) if state is not None and not self._of_states(other) else None

    def _state(self, expr: Expr) -> Variable | None:
        own = expr.variable if isinstance(expr, Name) else None
        return own if own in self.states else None

    def _of_states(self, expr: Expr) -> bool:
        return NOW in {*every(expr)} or bool(names([expr]) & self.states)

    def _shown(self, expr: Expr) -> str:
        return self.kernel.show(Evaluate(None, 0, expr))
