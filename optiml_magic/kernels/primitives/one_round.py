"""What each thread of a block does behind its last barrier, as one round of a loop they share.

``int d = threadIdx.x; for (k) acc += p[k] * v[k * 128 + d]; out[d] = acc;`` is a loop over ``d`` by
the block's threads that has a round for each of them. So ``raised`` sees what a block does for the
elements of a row, however they were dealt out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    If,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)

_THREAD = "threadIdx.x"


@primitive
def one_round(kernel: Kernel) -> Kernel:
    """The kernel whose last section is such a loop."""
    body, width = kernel.function.body, kernel.block[0]
    waits = [at for at, s in enumerate(body.body) if any(map(_waits, expressions(s)))]
    if kernel.block[1:] != (1, 1) or width is None or not waits:
        raise NotLegal("no block of one axis waits for its threads")
    section = [s for s in body.body[waits[-1] + 1 :] if not isinstance(s, Blank)]
    for part in (p for s in section for p in walk(s)):
        if isinstance(part, Leave) and part.kind == "return":
            raise NotLegal("a thread leaves before the end", part.line)
    if any(LANES.fullmatch(name) for name in kernel.reading.calls):
        raise NotLegal("its lanes exchange values")
    own = _Own(kernel)
    loops = [o for s in section for o in loops_in(s)]
    if not loops or not any(own.asked(e) for s in section for e in expressions(s)):
        raise NotLegal("no loop of a thread's own stands behind its last barrier")
    if any(own.asked(e) for o in loops if o.before for e in expressions(o.before)):
        raise NotLegal("its threads share the rounds of a loop already", loops[0].line)
    bound, inside = own.bound(section, width)
    counter = kernel.fresh("element")
    plain = {e for s in inside for e in _in_ints(s)}
    swaps: dict[Node, Node] = {
        e: text(counter if own.signed(e) or e in plain else f"(unsigned){counter}")
        for s in inside for e in expressions(s) if own.asked(e)
    }  # fmt: skip
    shown = "\n".join(kernel.show(edited(s, swaps)) for s in inside)
    head = f"for (int {counter} = {_THREAD}; {counter} < {bound}; {counter} += {width})"
    made = (*body.body[: waits[-1] + 1], lines(f"{head} {{\n{shown}\n}}"))
    return kernel.rewritten(replace(body, body=made))


def _waits(expr: Expr) -> bool:
    return isinstance(expr, Call) and bare(expr.function) in BLOCK_BARRIERS


def _in_ints(statement: Statement) -> Iterator[Expr]:
    """Where it does not matter whether a small number has a sign."""
    for part in walk(statement):
        for variable in part.variables if isinstance(part, Declare) else ():
            if variable.value is not None and variable.type.base == "int":
                yield variable.value
    for expr in expressions(statement):
        if isinstance(expr, Index):
            yield expr.index


class _Own:
    """Where a thread stands in its block, by whatever name."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        top = kernel.function.body.body
        self.locals = frozenset(
            v for s in top if isinstance(s, Declare) for v in s.variables
            if v.value is not None and builtin(v.value) == _THREAD
            and v in self.effects.lasting and v.type.base in ("int", "auto", "unsigned")
        )  # fmt: skip

    def asked(self, expr: Expr) -> bool:
        return builtin(expr) == _THREAD or (
            isinstance(expr, Name) and expr.variable in self.locals
        )  # fmt: skip

    def signed(self, expr: Expr) -> bool:
        """Whether an int says so, which the loop counts by."""
        named = isinstance(expr, Name) and expr.variable is not None
        return named and expr.variable.type.base == "int"  # type: ignore[attr-defined]

    def bound(self, section: Sequence[Statement], width: int) -> tuple[str, Sequence[Statement]]:
        """How many threads have a round, and what they do in it."""
        match section:
            case [*lets, If(
                test=Binary(op="<", left=left, right=right), then=then, other=None, before=None
            )] if self.asked(left) and all(self._only_says(s) for s in lets):  # fmt: skip
                kind = self.kernel.reading.types.get(right)
                plain = kind is not None and kind.integral and kind.size == 4 and kind.signed
                # A number below zero is beyond all those without a sign.
                number = isinstance(right, Literal)
                if not self.signed(left) and plain and not number:
                    return str(width), section
                if plain and all(self._is_size(e) for e in every(right)):
                    inside = then.body if isinstance(then, Block) else (then,)
                    return f"min({self.kernel.spelled(right)}, {width})", (*lets, *inside)
        return str(width), section

    def _only_says(self, statement: Statement) -> bool:
        """Whether a statement gives locals their values, and does nothing else."""
        return isinstance(statement, Declare) and not any(
            isinstance(e, Assign | Step | Lambda | Unread)
            or (isinstance(e, Call) and not only_computes(self.kernel, e))
            for e in expressions(statement)
        )  # fmt: skip

    def _is_size(self, expr: Expr) -> bool:
        """Whether an expression is a number, or of parameters and numbers alone."""
        if isinstance(expr, Name):
            variable: Variable | None = expr.variable
            return variable is None or variable.storage == "parameter"
        return not isinstance(expr, Call | Assign | Step)
