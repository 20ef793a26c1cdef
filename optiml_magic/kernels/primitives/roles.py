"""What locals and shared arrays hold, as far as that differs from thread to thread of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    Unary,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.halving import block_of
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.tree import Variable

RoleOf = dict[Variable, str]


class Roles:
    """A role for each local and each shared array; what has none is alike for any block.

    A local may be a ``thread`` or a ``width``, a ``part +`` of a sum, a number as ``= 0``, or
    ``mixed``; an array has ``parts +`` of a sum, or the ``whole`` of it as its first element.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.roles: RoleOf = {}
        self.blocks = False  # whether a block knows which one it is

    def first_thread(self, test: Expr) -> bool:
        match test:
            case Binary(op="==", left=left, right=right):
                sides = bare(left), bare(right)
                return any(
                    self.is_thread(a) and isinstance(b, Literal) and b.value == 0
                    for a, b in (sides, sides[::-1])
                )
            case Unary(op="!", operand=operand):
                return self.is_thread(bare(operand))
        return False

    def plain(self, expr: Expr) -> None:
        """Raise NotLegal where an expression may tell how many threads there are, or which."""
        for part in every(expr):
            self.known(part)

    def known(self, part: Expr, *, parts: bool = False) -> None:
        """The same for one node; ``parts`` of reductions may be named."""
        if isinstance(part, Lambda | Unread) or (
            isinstance(part, Call) and part.callee is not None
        ):
            raise NotLegal("an expression is not read")
        name = builtin(part)
        if name in ("threadIdx.x", "blockDim.x"):
            raise NotLegal("a thread tells where in its block it stands")
        self.blocks |= name == "blockIdx.x"
        if isinstance(part, Assign | Step) and not parts:
            raise NotLegal("an expression changes something")
        if isinstance(part, Unary) and part.op == "&" and not isinstance(part.operand, Index):
            raise NotLegal("it takes the address of a local")
        if isinstance(part, Index) and (array := self.shared(part)) is not None:
            first = bare(part.index)
            if self.roles.get(array) != "whole" or not isinstance(first, Literal) or first.value:
                raise NotLegal(f"which element of `{array.name}` it takes is not followed")
        if isinstance(part, Name) and part.variable is not None:
            self.named(part.variable, parts=parts)

    def named(self, variable: Variable, *, parts: bool) -> None:
        role = self.roles.get(variable, "")
        if role in ("thread", "width", "mixed") or (role.startswith("part ") and not parts):
            raise NotLegal(f"`{variable.name}` differs from thread to thread")
        if variable.storage == "shared" and variable.array and role != "whole":
            raise NotLegal(f"`{variable.name}` is not combined yet")

    def role(self, expr: Expr) -> str:
        known = isinstance(expr, Name) and expr.variable is not None
        return self.roles.get(expr.variable, "") if known else ""  # type: ignore[attr-defined]

    def is_thread(self, expr: Expr) -> bool:
        return builtin(expr) == "threadIdx.x" or self.role(expr) == "thread"

    def is_width(self, expr: Expr) -> bool:
        return block_of(expr, self.width) or self.role(expr) == "width"

    def shared(self, expr: Expr) -> Variable | None:
        """The shared array that an expression takes an element of."""
        if isinstance(expr, Index) and isinstance(expr.base, Name):
            variable = expr.base.variable
            return variable if variable is not None and variable.storage == "shared" else None
        return None

    def of_global(self, target: Index) -> None:
        base = bare(target.base)
        if not isinstance(base, Name) or base.variable is None or base.variable.storage == "shared":
            raise NotLegal("where it stores is not followed")
        self.plain(base)


@contextmanager
def at_line(line: int) -> Iterator[None]:
    """Why not gets this line where it has none."""
    try:
        yield
    except NotLegal as reason:
        raise NotLegal(reason.reason, reason.line or line) from None


def merged(one: RoleOf, other: RoleOf) -> RoleOf:
    """What is certain of locals after one of two ways here."""
    found = {}
    for variable in one.keys() | other.keys():
        roles = {one.get(variable, ""), other.get(variable, "")}
        if len(roles) == 1:
            found[variable] = roles.pop()
        elif variable.storage != "shared" and any(r and not r.startswith("=") for r in roles):
            found[variable] = "mixed"
    return found
