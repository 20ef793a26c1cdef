"""What locals and shared arrays hold, as far as that differs from thread to thread of a block."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal as One

from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Cast,
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
from optiml_magic.kernels.functions import BLOCK_BARRIERS
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.halving import block_of
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import CType

Kind = One["thread", "width", "lane", "warp", "warps", "number", "part", "lead", "second", "first",
           "mixed", "parts", "leads", "whole"]  # fmt: skip


@dataclass(frozen=True)
class Role:
    """What a local or a shared array holds.

    A local may be the ``thread`` or the ``lane`` that it is, its ``warp``, the ``width`` of the
    block or how many ``warps`` that are, a ``number``, or a ``part`` that its thread has combined
    by ``op``. Of a ``lead`` the first lane of each warp has what that warp combined; in the
    ``second`` round the lanes have the leads of all warps, and of a ``first`` the first thread has
    the whole. An array has the ``parts`` of threads or the ``leads`` of warps as its elements, or
    the ``whole`` as its first.

    Attributes:
        across: whether blocks have parts of it as well.
        begun: what all parts began with, or what a number is, as ``key_of`` says; empty where that
            is not known.
        apart: the rounds of a warp that are done, each by how far its lanes were apart.
        lanes: whether these rounds give all lanes what they give the first.
        warps: whether each warp makes the second round, not only the first one.
    """

    kind: Kind
    op: str = ""
    across: bool = False
    begun: str = ""
    apart: frozenset[int] = frozenset()
    lanes: bool = False
    warps: bool = False


RoleOf = dict[Variable, Role]
_NONE = Role("number")


class Roles:
    """A role for each local and each shared array; what has none is alike for any block."""

    def __init__(self, width: int, exchanging: frozenset[str]) -> None:
        self.width = width
        self.exchanging = exchanging  # the functions whose lanes exchange values
        self.alone = False  # whether one thread is looked at
        self.roles: RoleOf = {}
        self.blocks = False  # whether a block knows which one it is

    def plain(self, expr: Expr) -> None:
        """Raise NotLegal where an expression may tell how many threads there are, or which."""
        for part in every(expr):
            self.known(part)

    def known(self, part: Expr, *, parts: Container[Variable] | None = None) -> None:
        """The same for one node; these ``parts`` of reductions may be named."""
        if isinstance(part, Lambda | Unread) or (
            isinstance(part, Call) and part.callee is not None
        ):
            raise NotLegal("an expression is not read")
        self._exchanges(part)
        counting = isinstance(part, Call) and bare_name(part.function) in BLOCK_BARRIERS
        if isinstance(part, Call) and counting and part.arguments:
            raise NotLegal(f"`{part.function}` counts threads")
        name = builtin(part)
        if name in ("threadIdx.x", "blockDim.x"):
            raise NotLegal("a thread tells where in its block it stands")
        self.blocks |= name == "blockIdx.x"
        if isinstance(part, Assign | Step) and parts is None:
            raise NotLegal("an expression changes something")
        if isinstance(part, Unary) and part.op == "&" and not isinstance(part.operand, Index):
            raise NotLegal("it takes the address of a local")
        if isinstance(part, Index) and (array := self.shared(part)) is not None:
            first = bare(part.index)
            whole = self.whole(array) and isinstance(first, Literal) and first.value == 0
            if not whole:
                raise NotLegal(f"which element of `{array.name}` it takes is not followed")
        if isinstance(part, Name) and part.variable is not None:
            self.named(part.variable, parts=parts)

    def without_exchanges(self, expr: Expr) -> None:
        """Raise NotLegal where lanes exchange values in an expression."""
        for part in every(expr):
            self._exchanges(part)

    def _exchanges(self, part: Expr) -> None:
        if isinstance(part, Call) and bare_name(part.function) in self.exchanging:
            raise NotLegal(f"its lanes exchange values by `{part.function}`")

    def named(self, variable: Variable, *, parts: Container[Variable] | None) -> None:
        role = self.roles.get(variable, _NONE)
        if variable.storage == "shared":
            if variable.array and not self.whole(variable):
                raise NotLegal(f"`{variable.name}` is not combined yet")
            return
        own = role.kind == "part" and not role.apart and variable in (parts or ())
        whole = self.alone and role.kind == "first" and not role.across
        if role.kind != "number" and not own and not whole:
            raise NotLegal(f"`{variable.name}` differs from thread to thread")

    def whole(self, array: Variable) -> bool:
        """Whether the first element is what all threads of the block combined."""
        role = self.roles.get(array, _NONE)
        return role.kind == "whole" and not role.across

    def role(self, expr: Expr) -> Role:
        """That of a local or an array by name; of a number that nobody knows for all others."""
        known = isinstance(expr, Name) and expr.variable is not None
        return self.roles.get(expr.variable, _NONE) if known else _NONE  # type: ignore[attr-defined]

    def is_thread(self, expr: Expr) -> bool:
        return builtin(expr) == "threadIdx.x" or self.role(expr).kind == "thread"

    def is_width(self, expr: Expr) -> bool:
        return block_of(expr, self.width) or self.role(expr).kind == "width"

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
    found: RoleOf = {}
    for variable in one.keys() | other.keys():
        roles = {one.get(variable, _NONE), other.get(variable, _NONE)}
        if len(roles) == 1:
            found[variable] = roles.pop()
        elif variable.storage != "shared" and any(r.kind != "number" for r in roles):
            found[variable] = Role("mixed")
    return found


def key_of_cast(cast: Cast, kind: CType | None) -> str:
    """What a constant is that becomes a float of this type, ``(T)(0.0f)``; empty if another.

    The type is None where nobody knows it: nothing and one are the same in any.
    """
    key = key_of(cast.operand)
    if key in ("0", "1") and kind is None:
        return key
    singles = all(e.text[-1] in "fF" for e in every(cast.operand) if isinstance(e, Literal))
    keeps = key in ("0", "1") or (singles and kind is not None and kind.size in (4, 8))
    return key if keeps and kind is not None and kind.floating and kind.lanes == 1 else ""


def key_of(expr: Expr) -> str:
    """What a constant is, numbers by their value; empty for what is not certainly one."""
    match expr:
        case Literal(value=None) | Name(variable=Variable()):
            return ""
        case Literal(value=float() as value) if not value.is_integer() or abs(value) >= 2**53:
            return repr(value)
        case Literal(text=text, value=int() | float() as value):
            return f"{'-' * text.startswith('-')}{abs(int(value))}"
        case Name(name=name):
            return name
        case Unary(op="-" | "+" as op, operand=operand):
            key = key_of(operand)
            return key[1:] if key.startswith("-") and op == "-" else key and op.strip("+") + key
    return ""
