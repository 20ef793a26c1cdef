"""``a = *p++; b = *p++;`` as ``a = p[0]; b = p[1]; p += 2;``: what moves does so once a round.

So does ``x[i++]``. Between its changes the name of what moves stands for it and how far it has come
in the round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from optiml_magic.kernels.changes import Change, skips
from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, declared_in, loops_in
from optiml_magic.kernels.primitives.flow import ends
from optiml_magic.kernels.primitives.naming import shadowed
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named


def moved_once(kernel: Kernel, at: int) -> Kernel:
    """The kernel with what the body of the loop of this number moves several times moved once.

    It is the same kernel where nothing does, or where how far it has come is not known.
    """
    loop = loops_in(kernel.function.body)[at]
    if not isinstance(loop.body, Block) or skips(loop.body):
        return kernel
    ways = {v: way for v in _several(kernel, loop) if (way := _Way(v, loop.body)).known}
    if not ways:
        return kernel
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for way in ways.values():
        swaps |= way.swaps(kernel)
    behind = tuple(lines(f"{v.name} += {way.total};") for v, way in ways.items())
    body = edited(loop.body, swaps)
    made = edited(kernel.function.body, {loop.body: Block(None, body.line, (*body.body, *behind))})
    return kernel.rewritten(made)


def goes_along(kernel: Kernel, axis: Axis) -> bool:
    """Whether a loop moves a pointer, or an index, besides its counter: ``p += width;``."""
    combined = {r.place for r in kernel.reading.reductions if axis.name in r.axes}
    return any(
        change.always and not change.within and change.op in ("+", "-")
        for variable, found in Effects(kernel).changed(axis.node.body).items()
        for change in found
        if variable.name not in combined and _whole(kernel, variable)
    )


def _several(kernel: Kernel, loop: Loop) -> list[Variable]:
    """What a loop moves in several places, or amid a statement, by the same in each round."""
    effects = Effects(kernel)
    inside = effects.inside(loop)
    head = [e for e in (loop.test, loop.update) if e is not None]
    elsewhere = effects.changed(*(Evaluate(None, loop.line, e) for e in head))
    body = kernel.function.body
    around = [s for s in walk(body) if isinstance(s, Loop) and loop in {*walk(s.body)}]
    anew, own = [declared_in(a.body) for a in around], declared_in(loop.body)
    left = any(ends(loop.body, "break"))
    changed = effects.changed(loop.body)
    hidden = shadowed(kernel.function)
    called = {e.name for e in named_by_lambdas(kernel)}
    declared = [s for s in walk(body) if isinstance(s, Declare)]
    bound = {
        e.variable
        for s in declared
        for v in s.variables
        if v.type.reference and v.value is not None
        for e in every(v.value)
        if isinstance(e, Name)
    }
    return [
        variable
        for variable, found in changed.items()
        if (len(found) > 1 or (not variable.type.depth and not _stands_alone(loop, variable)))
        and variable not in elsewhere
        and not variable.type.reference
        and variable not in bound
        and variable.name not in hidden | called
        and _whole(kernel, variable)
        and all(_regular(kernel, change, changed, own, hidden) for change in found)
        and not (left and _named(effects.inside(body) - inside, variable))
        and not (left and any(variable not in begun for begun in anew))
    ]


def _stands_alone(loop: Loop, variable: Variable) -> bool:
    """Whether a change of a local is a statement of its own, not a part of one: `x[i++]`."""
    changes = (s.expression for s in walk(loop.body) if isinstance(s, Evaluate))
    return any(isinstance(e, Assign | Step) and _is(e.target, variable) for e in changes)


def _whole(kernel: Kernel, variable: Variable) -> bool:
    """Whether a sum with it is computed as it is kept: a pointer, or a number of a whole word."""
    kind = named(variable.type.base, kernel.unit.aliases)
    return bool(variable.type.depth) or (not kind.floating and (kind.size or 0) >= 4)


def _regular(
    kernel: Kernel, change: Change, changed: Collection[Variable], own: Collection[Variable],
    hidden: Collection[str],
) -> bool:  # fmt: skip
    """Whether a change is by a number, or by what no round changes and nothing hides."""
    if not change.always or change.within or change.op not in ("+", "-"):
        return False
    value, kind = change.value, change.variable.type
    if not isinstance(value, Name):
        return value is None or (isinstance(value, Literal) and isinstance(value.value, int))
    by = value.variable
    if by is None or by in changed or by in own or by.name in hidden:
        return False
    step = named(by.type.base, kernel.unit.aliases)
    whole = step.integral and step.signed and (step.size or 0) >= 4
    return not by.type.depth and (whole if kind.depth else by.type.base == kind.base)


def named_by_lambdas(kernel: Kernel) -> Iterator[Name]:
    """What functions within the kernel's own body name."""
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Lambda):
            inside = expressions(expr.function.body)
            yield from (e for e in inside if isinstance(e, Name))


def _named(places: Iterable[Expr], variable: Variable) -> bool:
    return any(isinstance(e, Name) and e.variable is variable for e in places)


class _Way:
    """How far a variable has come at each place of a body that names it."""

    def __init__(self, variable: Variable, body: Block) -> None:
        self.variable = variable
        self.known = True
        self.far: dict[Expr, str] = {}  # what stands for the variable there
        self.gone: list[Statement] = []
        self._steps: list[tuple[str, str]] = []
        for statement in body.body:
            self._statement(statement)

    @property
    def total(self) -> str:
        """How far it comes in a round."""
        ones = sum(int(f"{sign}{by}") for sign, by in self._steps if by.isdigit())
        words = "".join(f" {sign} {by}" for sign, by in self._steps if not by.isdigit())
        if not words:
            return str(ones)
        first = words.removeprefix(" + ") if words.startswith(" + ") else words.replace(" ", "", 1)
        return first + (f" {'-' if ones < 0 else '+'} {abs(ones)}" if ones else "")

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Blank):
            return
        if isinstance(statement, Evaluate) and self._moves(statement.expression):
            self.gone.append(statement)
            return
        for top in statement.expressions:
            self._expression(top)
        for inner in statement.statements:
            self._placed(expressions(inner))

    def _moves(self, expression: Expr) -> bool:
        """Whether an expression is a change and no more; then it is counted."""
        match expression:
            case Step(target=Name(variable=v)) if v is self.variable:
                self._steps.append((expression.op[0], "1"))
                return True
            case Assign(op="+=" | "-=", target=Name(variable=v), value=value) if v is self.variable:
                sign = expression.op[0]
            case Assign(op="=", target=Name(variable=v), value=Binary() as whole) if (
                v is self.variable
            ):
                sign = whole.op
                value = whole.right if _is(whole.left, v) else whole.left
            case _:
                return False
        words = str(value.value) if isinstance(value, Literal) else getattr(value, "name", "")
        self.known = self.known and words.isidentifier() | words.isdigit()
        self._steps.append((sign, words))
        return True

    def _expression(self, top: Expr) -> None:
        """One that is evaluated as a whole: a change in it, and nothing else of the variable."""
        steps = [e for e in every(top) if isinstance(e, Step) and _is(e.target, self.variable)]
        names = [e for e in every(top) if _is(e, self.variable)]
        if not steps:
            self._placed(every(top))
            return
        step = steps[0]
        if len(names) > 1 or any(isinstance(e, Lambda) for e in every(top)):
            self.known = False
            return
        if step.prefix:
            self._steps.append((step.op[0], "1"))
        self.far[step] = self.total
        if not step.prefix:
            self._steps.append((step.op[0], "1"))

    def _placed(self, places: Iterable[Expr]) -> None:
        for place in places:
            if _is(place, self.variable):
                self.far[place] = self.total
            elif isinstance(place, Assign | Step) and _is(place.parts[0], self.variable):
                self.known = False

    def swaps(self, kernel: Kernel) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """What stands in the place of what names the variable."""
        name = self.variable.name
        found: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(self.gone)
        led = {
            e.operand: e
            for e in Effects(kernel).inside(kernel.function.body)
            if isinstance(e, Unary) and e.op == "*"
        }
        for place, far in self.far.items():
            if place in led:
                found[led[place]] = text(f"{name}[{far}]")
            elif far != "0":
                found[place] = text(f"({name} + {far})".replace("+ -", "- "))
            elif isinstance(place, Step):
                found[place] = place.target
        return found


def _is(expression: Expr, variable: Variable | None) -> bool:
    return isinstance(expression, Name) and expression.variable is variable
