"""P3, innermost: what rounds test and compute around the loop in them, the rounds of that loop do.

``for (i) { if (row is outside) continue; for (j) ... }`` of a window within an image is ``for (i)
for (j) if (row is inside) ...``, which with the channels around it can be one loop. It undoes what
``hoisted`` does, for steps that ask for a loop alone in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.functions import OF_ALL_NUMBERS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import (
    Effects,
    declared_in,
    is_simple,
    loops_in,
    names,
    parted,
)
from optiml_magic.kernels.primitives.hoisted import conjuncts
from optiml_magic.kernels.primitives.led import under_names
from optiml_magic.kernels.primitives.mapped import joined_test
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    only_leaves,
    walk,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@primitive
def innermost(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, and each in it, does nothing but the loop in it."""
    made, found = kernel, False
    while True:
        loops = [loops_in(made.function.body)[at]]
        loops += loops_in(loops[0].body)
        body = next((b for b in (_sunk(made, loop) for loop in loops[::-1]) if b is not None), None)
        if body is None:
            break
        made, found = made.rewritten(body), True
    if not found:
        raise NotLegal("nothing stands around a loop in it", loops[0].line)
    return made


def _sunk(kernel: Kernel, outer: Loop) -> Block | None:
    """The body of the kernel where this loop is alone around the one in it; None where it is."""
    if not any(isinstance(s, Loop) for s in walk(outer.body)):
        return None
    around = _Around(kernel, outer)
    if not around.parts:
        return None
    around.check()
    inner = replace(around.inner, body=around.body(), span=None, lead=None)
    alone = replace(outer, body=Block(None, outer.line, (inner,)), span=None)
    made = edited(kernel.function.body, {outer: alone})
    assert isinstance(made, Block)
    return made


class _Around:
    """What stands around the loop in a loop, in order: locals, and tests of what follows."""

    def __init__(self, kernel: Kernel, outer: Loop) -> None:
        self.kernel, self.outer, self.effects = kernel, outer, Effects(kernel)
        self.parts: list[Declare | Expr] = []
        if any(isinstance(s, Blank) and says(kernel, s) for s in walk(outer.body)):
            raise NotLegal("more than statements stands in its rounds", outer.line)
        self.inner = self._find([*parted(outer.body)])

    def _find(self, statements: Sequence[Statement]) -> Loop:
        for at, statement in enumerate(statements):
            rest = statements[at + 1 :]
            match statement:
                case Declare():
                    self.parts.append(statement)
                case If(before=None, other=None, constant=False, test=test, then=then):
                    if rest and only_leaves(then, "continue"):
                        unless = conjuncts(self.kernel, Unary(None, "!", test))
                        self.parts.append(joined_test(unless, "&&"))
                    elif not rest:
                        self.parts.append(test)
                        return self._find([*parted(then)])
                    else:
                        break
                case Block() if not rest:
                    return self._find([*parted(statement)])
                case Loop() if not rest:
                    return statement
                case _:
                    break
        raise NotLegal("more than locals and tests stands around a loop in it", self.outer.line)

    def check(self) -> None:
        """Raise NotLegal where it might not be done in each round as well."""
        inner, effects = self.inner, self.effects
        axis = self.kernel.axes().get(inner)
        if inner.kind != "for" or axis is None or not axis.exact or not is_simple(axis, effects):
            raise NotLegal("the inner loop does not count from 0 in its head", inner.line)
        if not all(only_computes(e, divides=False) for e in _stops(inner)):
            raise NotLegal("how many rounds the inner loop makes may depend on a test", inner.line)
        if any(isinstance(s, Leave) and s.kind != "continue" for s in walk(self.outer)):
            raise NotLegal("a round may be the last", self.outer.line)
        tops = [*self._tops()]
        if not all(only_computes(e) for e in tops):
            raise NotLegal("what stands around the inner loop loads or changes", self.outer.line)
        if names(tops) & {*effects.changed(inner)}:
            raise NotLegal("it asks for what rounds change", self.outer.line)
        self._check_other_names(tops)
        self._check_names(tops)

    def _check_other_names(self, tops: Sequence[Expr]) -> None:
        """Raise NotLegal where rounds may change what it asks for by another name."""
        declared = [(d, v) for d in self.kernel.unit.declarations for v in d.variables]
        module = {v.name for d, v in declared if not (v.type.const and not v.type.depth)
                  and not {"__constant__", "constexpr"} & {*d.words.split()}}  # fmt: skip
        # Of an array, a name is its address.
        several = {v for v in under_names(self.kernel.function.body) if not v.array}
        for e in (e for top in tops for e in every(top) if isinstance(e, Name)):
            if e.variable in several or (e.variable is None and e.name in module):
                raise NotLegal(f"rounds may change `{e.name}` by another name", self.outer.line)

    def _check_names(self, tops: Sequence[Expr]) -> None:
        """Raise NotLegal where a name would mean something else in the inner loop."""
        inner, own = self.inner, [v for s in self._lets() for v in s.variables]
        inside = {v.name for v in declared_in(inner)}
        for variable in own:
            steady = variable in self.effects.lasting and variable.storage == "local"
            if not steady or variable.array:
                raise NotLegal(f"`{variable.name}` is not a local of each round", self.outer.line)
        called = [v.name for v in own]
        said = {e.name for top in tops for e in every(top) if isinstance(e, Name)}
        if len({*called}) < len(called) or inside & {*called, *said}:
            raise NotLegal("the inner loop has the same names for others", inner.line)
        if {*own} & names(_stops(inner)):
            raise NotLegal("how many rounds the inner loop makes depends on them", inner.line)

    def _lets(self) -> Iterator[Declare]:
        yield from (part for part in self.parts if isinstance(part, Declare))

    def _tops(self) -> Iterator[Expr]:
        for part in self.parts:
            yield from part.expressions if isinstance(part, Declare) else (part,)

    def body(self) -> Block:
        """The body of the inner loop with all of it in front."""
        line = self.inner.line
        statements: tuple[Statement, ...] = (self.inner.body,)
        if isinstance(self.inner.body, Block):
            statements = self.inner.body.body
        for part in reversed(self.parts):
            if isinstance(part, Declare):
                statements = (replace(part, span=None, lead=None), *statements)
            else:
                statements = (If(None, line, part, Block(None, line, statements)),)
        return Block(None, line, statements)


def says(kernel: Kernel, blank: Blank) -> bool:
    """Whether what is no statement is more than a comment or a hint."""
    return not blank.hints and bool(_COMMENT.sub("", kernel.show(blank)).strip(" ;\n"))


def _stops(loop: Loop) -> list[Expr]:
    """What the head of a loop asks for, without its counter's step."""
    begun = loop.before.expressions if loop.before is not None else ()
    return [*begun, *([loop.test] if loop.test is not None else [])]


def only_computes(expr: Expr, *, divides: bool = True) -> bool:
    """Whether an expression loads and changes nothing; ``divides`` where it may by any number."""
    match expr:
        case Unary(op="&", operand=Index()):
            return all(only_computes(e, divides=divides) for e in expr.operand.parts)
        case Unary(op=op) if op not in "+-!~":
            return False
        case Call(function=name) if name not in OF_ALL_NUMBERS:
            return False
        case Binary(op="/" | "%", right=right) if not divides:
            if not isinstance(right, Literal) or not right.value:
                return False
    plain = isinstance(expr, Literal | Name | Unary | Binary | Cast | Choice | Call)
    return bool(builtin(expr)) or (
        plain and all(only_computes(e, divides=divides) for e in expr.parts)
    )
