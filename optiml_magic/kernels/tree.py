"""The statements of a kernel as a tree that prints back to the text it came from.

What is not understood is a ``Verbatim`` leaf. The tree is text made typed; what it *does* is read
from it in ``reading.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from optiml_magic.kernels.expressions import Expr, Span, every

Storage = Literal["parameter", "local", "shared", "dynamic", "static"]


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as declared: ``base`` without qualifiers and stars, ``depth`` the number of stars.

    ``const`` is that of what a pointer or a reference leads to, or of a value itself.
    """

    base: str
    depth: int = 0
    reference: bool = False
    const: bool = False
    volatile: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A parameter or a local; ``extents`` are those of an array, None for one without.

    It begins as ``value``, or is made from the ``initial`` ones, as ``opening`` says.
    """

    name: str
    type: TypeName
    storage: Storage
    line: int
    span: Span | None = None
    extents: tuple[Expr | None, ...] = ()
    value: Expr | None = None
    initial: tuple[Expr, ...] = ()
    restrict: bool = False
    opening: str = "="

    @property
    def array(self) -> bool:
        return bool(self.extents)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """``lead`` spans what stands before a statement in its block: blanks and comments."""

    span: Span | None
    line: int
    lead: Span | None = field(default=None, kw_only=True)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements directly inside."""
        return ()

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions of this statement itself."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Block(Statement):
    """``{ ... }``; what stands between the last statement and the brace is ``tail``."""

    body: tuple[Statement, ...]
    tail: Span | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.body


@dataclass(frozen=True, slots=True, eq=False)
class Declare(Statement):
    """One declaration of one or more variables; ``words`` stand before the first: its type."""

    words: str
    variables: tuple[Variable, ...]

    @property
    def expressions(self) -> tuple[Expr, ...]:
        found: list[Expr] = []
        for variable in self.variables:
            found += [extent for extent in variable.extents if extent is not None]
            found += [*variable.initial] if variable.value is None else [variable.value]
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Statement):
    """An expression for its effect."""

    expression: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.expression,)


@dataclass(frozen=True, slots=True, eq=False)
class If(Statement):
    """``before`` is what ``if (int p = f(); p)`` declares.

    ``head`` spans what stands before ``then``, ``middle`` what stands between it and ``other``.
    """

    test: Expr
    then: Statement
    other: Statement | None = None
    before: Statement | None = None
    constant: bool = False
    head: Span | None = None
    middle: Span | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for s in (self.before, self.then, self.other) if s is not None)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.test,)


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Statement):
    """``for``, ``while`` or ``do``; the last two have neither ``before`` nor ``update``.

    ``head`` spans what stands before the body, ``foot`` the test that follows that of a ``do``.
    """

    kind: Literal["for", "while", "do"]
    before: Statement | None
    test: Expr | None
    update: Expr | None
    body: Statement
    head: Span | None = None
    foot: Span | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for s in (self.before, self.body) if s is not None)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(e for e in (self.test, self.update) if e is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Leave(Statement):
    """``return``, ``break`` or ``continue``."""

    kind: Literal["return", "break", "continue"]
    value: Expr | None = None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return () if self.value is None else (self.value,)


@dataclass(frozen=True, slots=True, eq=False)
class Blank(Statement):
    """A lone semicolon, a pragma, a using or a static assertion: nothing that runs.

    One that ``hints`` says no more than how to unroll the loop behind it.
    """

    hints: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Written(Statement):
    """Statements that an edit made, as text: several lines, without their indentation."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Verbatim(Statement):
    """Text that is kept as it is; ``reason`` says why, and what it may do is all that is known.

    ``inner`` are the statements in it that can be read, in no known order; ``mentions`` the names
    in it, and its assembly. It ``jumps`` where control may leave it sideways.
    """

    reason: str
    mentions: tuple[Expr, ...] = ()
    inner: tuple[Statement, ...] = ()
    jumps: bool = False

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.mentions


@dataclass(frozen=True, slots=True, eq=False)
class TemplateParameter:
    """A pack takes all the arguments that are left."""

    name: str
    is_type: bool
    default: str | None = None
    is_pack: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A kernel or a function that it may call; ``name`` includes its namespaces.

    ``head`` spans what stands before the body, ``whole`` the function with its template head.
    """

    name: str
    span: Span
    line: int
    parameters: tuple[Variable, ...]
    template: tuple[TemplateParameter, ...]
    body: Block
    result: TypeName
    kernel: bool = False
    method: bool = False
    required: int = 0
    launch_bounds: str | None = None
    head: Span | None = None
    whole: Span | None = None


def walk(statement: Statement) -> Iterator[Statement]:
    """A statement and all inside it, each before its parts."""
    stack = [statement]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.statements))


def expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression in a statement and in all inside it."""
    for inner in walk(statement):
        for expression in inner.expressions:
            yield from every(expression)


def body_of(statement: Statement) -> tuple[Statement, ...]:
    """The statements of a body, in braces or not."""
    return statement.body if isinstance(statement, Block) else (statement,)


def only_leaves(statement: Statement, kind: str) -> bool:
    """Whether a statement, in braces or not, leaves in this way and does nothing else."""
    inside = body_of(statement)
    return len(inside) == 1 and isinstance(inside[0], Leave) and inside[0].kind == kind
