"""Expressions that are functions of one byte, and of numbers that are given.

A local stands for what it was declared with: ``float v = image[i] / 255.0f; ... powf(v, 2.2f)`` is
a function of ``image[i]``. So does an element of a table that the kernel only reads, at the byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
    is_logical,
)
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_counted
from optiml_magic.kernels.primitives.places import bare, code
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType

VALUES, HOLE = 256, "@byte"
_BRANCHES = 3  # ways that lanes may go, from which on a load is less: ours
_SIZES = (4, 8)
_PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_WORDS = 48  # letters of a title: ours
_OWN_TYPES = re.compile(r"\b(?:typedef|using)\b")
_MOST = 1000  # parts of an expression: ours
_FIRST = 64  # elements of a table that are asked for by numbers: ours


@dataclass(frozen=True, eq=False)
class Lookup:
    """Expressions that are one function of one byte each, ``sources``, and of what is ``given``.

    ``sizes`` are the elements that tables among these have to have.
    """

    expressions: tuple[Expr, ...]
    sources: tuple[Expr, ...]
    type: CType
    signed: bool
    given: tuple[Variable, ...]
    words: str
    long: bool
    sizes: Mapping[str, int]

    @property
    def called(self) -> str:
        """What a title says of it: its function, or what it computes."""
        (first, *_) = self.expressions
        words = self.words.replace(HOLE, "a byte")
        if isinstance(first, Call):
            return first.function
        return words if len(words) <= _WORDS else "what a byte says"


class Finder:
    """What of a kernel's expressions is worth a table."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.types = kernel, kernel.reading.types
        self.effects = Effects(kernel)
        self._quiet = dict[Function, bool]()
        self._sizes = dict[Expr, int]()
        body = kernel.function.body
        given = Counter(v.name for v in (*declared_in(body), *kernel.function.parameters))
        self._hidden = {name for name, count in given.items() if count > 1}
        span = body.span or kernel.function.span
        self._types = bool(_OWN_TYPES.search(code(kernel.unit, span)))
        stores = [a for a in kernel.reading.accesses if a.mode != "load"]
        self._lost = any(not a.array for a in stores)
        self._stored = {a.array for a in stores}
        self._counters = {
            axis.variable for axis in kernel.reading.axes if is_counted(axis, self.effects)
        }

    def within(self, expr: Expr) -> Iterator[tuple[Expr, Expr]]:
        """The parts of an expression that are worth a table, each with its byte.

        What stands around one of them is left to the threads, so that more of them are alike.
        """
        parts = expr.parts
        if isinstance(expr, Assign):  # where it stores is not a value
            parts = (*expr.target.parts, expr.value)
        inner = [found for part in parts for found in self.within(part)]
        source = self._source(expr) if len(inner) != 1 else None
        if source is not None and self._is_worth(expr):
            yield expr, source
        else:
            yield from inner

    def words(self, expr: Expr, source: Expr) -> str:
        """What is computed, whatever byte it is of."""
        whole = self.kernel.spelled(self._whole(expr, source))
        return whole.replace(f"({HOLE})", HOLE)

    def lookup(self, words: str, pairs: Sequence[tuple[Expr, Expr]]) -> Lookup:
        expr, source = pairs[0]
        kind, byte = self.types[expr], self.types[source]
        outside = [*self._outside(expr, source)]
        asked = {leaf.variable for leaf in outside if isinstance(leaf, Name)}
        given = tuple(p for p in self.kernel.function.parameters if p in asked)
        sizes = dict[str, int]()
        for name, place in filter(None, map(self._table, outside)):
            sizes[name] = max(sizes.get(name, 0), VALUES if place is None else place + 1)
        return Lookup(
            tuple(e for e, _ in pairs), tuple(s for _, s in pairs), kind, byte.signed, given, words,
            is_long(self.kernel, expr) or self._divides(expr), sizes,
        )  # fmt: skip

    def _whole(self, expr: Expr, source: Expr) -> Expr:
        """An expression with its byte as a hole, and what locals stand for in their places."""
        if same(expr, source):
            return text(HOLE)
        value = self._value(expr)
        if value is not None and isinstance(expr, Name) and expr.variable is not None:
            return Cast(None, self.types[expr].name, self._whole(value, source))
        swaps: dict[Node, Node] = {part: self._whole(part, source) for part in expr.parts}
        return edited(expr, {old: new for old, new in swaps.items() if old is not new})

    def _outside(self, expr: Expr, source: Expr) -> Iterator[Expr]:
        """The parts of an expression that are not of the byte itself."""
        if same(expr, source):
            return
        value = self._value(expr)
        if value is not None:
            yield from self._outside(value, source)
            return
        yield expr
        for part in expr.parts:
            yield from self._outside(part, source)

    def _value(self, expr: Expr) -> Expr | None:
        """What a local was declared with that is a number, and still is wherever it is named."""
        local = expr.variable if isinstance(expr, Name) else None
        if local is None or local not in self.effects.lasting or local.storage != "local":
            return None
        kind = self.types.get(expr)
        number = kind is not None and kind.kind in ("int", "float") and not kind.depth
        if not number or kind is None or kind.lanes != 1 or local.array or local.type.volatile:
            return None
        if local.type.base == "auto" or local.value is None or not self._stays_so(local.value):
            return None
        return local.value

    def _stays_so(self, value: Expr) -> bool:
        """Whether an expression has one value as long as the locals in it are alive."""
        for part in every(value):
            match part:
                case Assign() | Step():
                    return False
                case Call() if not (part.receiver is None and self._computes(part)):
                    return False
                case Name(variable=Variable() as variable):
                    given = variable.storage == "parameter"
                    steady = variable.name not in self.effects.moved if given else (
                        variable in self.effects.lasting or variable in self._counters
                    )  # fmt: skip
                    if (
                        not steady
                        or variable.name in self._hidden
                        or variable.type.reference
                        or variable.type.volatile
                    ):
                        return False
                case Index(base=base) if not self._is_read_only(base):
                    return False
                case Name(name=name) if name not in _PLACES:
                    return False
                case Unary(op="*" | "&"):
                    return False
        return True

    def _is_read_only(self, base: Expr) -> bool:
        """Whether it is a parameter's array that the kernel only reads."""
        plain = bare(base)
        array = plain.variable if isinstance(plain, Name) else None
        return (
            array is not None and array.storage == "parameter" and array.type.depth == 1
            and not array.type.volatile and array.name not in self.effects.moved
            and not self._lost
            and not any(self.effects.same(array.name, other) for other in self._stored)
        )  # fmt: skip

    def _table(self, expr: Expr) -> tuple[str, int | None] | None:
        """The table that an expression takes an element of, and which; None for one by a byte."""
        if not isinstance(expr, Index) or not self._is_read_only(expr.base):
            return None
        kind, index = self.types.get(expr), bare(expr.index)
        number = kind is not None and kind.kind in ("int", "float") and not kind.depth
        base = bare(expr.base)
        if not number or kind is None or kind.lanes != 1 or not isinstance(base, Name):
            return None
        if isinstance(index, Literal):
            few = isinstance(index.value, int) and 0 <= index.value < _FIRST
            return (base.name, int(index.value)) if few and index.value is not None else None
        return (base.name, None) if self._is_byte(index) else None

    def _is_byte(self, expr: Expr) -> bool:
        """Whether it is an unsigned byte, in whatever type of whole numbers it is held."""
        kind, plain = self.types.get(expr), bare(expr)
        if isinstance(plain, Cast):
            whole = self.types.get(plain)
            wide = whole is not None and whole.kind == "int" and (whole.size or 0) >= _SIZES[0]
            return wide and self._is_byte(plain.operand)
        value = self._value(plain)
        if value is not None and kind is not None and kind.kind == "int":
            return self._is_byte(value) and ((kind.size or 0) >= _SIZES[0] or not kind.signed)
        return kind is not None and kind.kind == "int" and kind.size == 1 and not (
            kind.signed or kind.depth
        )  # fmt: skip

    def _source(self, expr: Expr) -> Expr | None:
        """The byte that an expression is a function of, besides numbers that are given."""
        kind = self.types.get(expr)
        plain = kind is not None and kind.kind in ("int", "float") and not kind.depth
        if kind is None or not plain or kind.lanes != 1 or kind.size not in _SIZES:
            return None
        if self._types or self._size(expr) > _MOST:
            return None
        source: Expr | None = None
        for leaf in self._leaves(expr):
            if leaf is None or not same(source or leaf, leaf):
                return None
            source = leaf
        return source if source is not None and self._is_certain(expr, source) else None

    def _size(self, expr: Expr) -> int:
        """How many parts an expression has, those of what its locals stand for among them."""
        if expr not in self._sizes:
            value = self._value(expr)
            parts = expr.parts if value is None else (value,)
            self._sizes[expr] = 1 + sum(map(self._size, parts))
        return self._sizes[expr]

    def _is_certain(self, expr: Expr, source: Expr) -> bool:
        """Whether a byte is loaded whatever else an expression finds."""
        if same(expr, source):
            return True
        value = self._value(expr)
        if value is not None:
            return self._is_certain(value, source)
        match expr:
            case Choice(test=test, then=then, other=other):
                both = self._is_certain(then, source) and self._is_certain(other, source)
                return both or self._is_certain(test, source)
            case Binary(left=left) if is_logical(expr):
                return self._is_certain(left, source)
        return any(self._is_certain(part, source) for part in expr.parts)

    def _leaves(self, expr: Expr) -> Iterator[Expr | None]:
        """The bytes that an expression takes; None for anything else that is not given."""
        kind = self.types.get(expr)
        byte = kind is not None and kind.kind == "int" and kind.size == 1 and not kind.depth
        loaded = isinstance(expr, Index) or (isinstance(expr, Member) and not expr.arrow)
        table = self._table(expr)
        if table is not None and table[1] is None and isinstance(expr, Index):
            yield from self._leaves(expr.index)
            return
        if table is not None and not byte:
            return
        does = any(isinstance(e, Assign | Step) for e in every(expr)) or any(
            isinstance(e, Call) and not (e.receiver is None and self._computes(e))
            for e in every(expr)
        )  # fmt: skip
        if byte and loaded and not does:
            yield expr
            return
        match expr:
            case Literal():
                return
            case Name(variable=Variable() as variable):
                scalar = variable.storage == "parameter" and not variable.type.depth
                own = byte and variable in self.effects.lasting and not variable.array
                value = self._value(expr)
                if own and not scalar:
                    yield expr
                elif value is not None:
                    yield from self._leaves(value)
                elif not scalar or variable.type.reference or variable.name in self.effects.moved:
                    yield None
            case Binary() | Choice() | Cast() | Unary(op="+" | "-" | "!" | "~"):
                for part in expr.parts:
                    yield from self._leaves(part)
            case Call(receiver=None, callee=None, template=()):
                if not self._computes(expr):
                    yield None
                for part in expr.arguments:
                    yield from self._leaves(part)
            case _:
                yield None

    def _computes(self, call: Call) -> bool:
        """Whether a function makes its result of what it is given alone."""
        found = self.kernel.unit.called(call.function, len(call.arguments))
        if not found:
            return pure(call.function)
        return len(found) == 1 and self._is_quiet(found[0])

    def _is_quiet(self, function: Function) -> bool:
        if function not in self._quiet:
            self._quiet[function] = False  # of one that calls itself nothing is known
            own = {v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
            own |= {*function.parameters}
            plain = not function.template and not function.method and not any(
                v.type.depth or v.type.reference or v.array or v.storage in ("shared", "static")
                for v in own
            )  # fmt: skip
            self._quiet[function] = plain and all(
                self._does_little(s, own) for s in walk(function.body)
            )
        return self._quiet[function]

    def _does_little(self, statement: Statement, own: set[Variable]) -> bool:
        if isinstance(statement, Loop):
            bound = statement.test
            counted = isinstance(bound, Binary) and isinstance(bound.right, Literal)
            if statement.kind != "for" or not counted or not _steps_on(statement):
                return False
        elif not isinstance(statement, Blank | Block | Declare | Evaluate | If | Leave):
            return False
        return all(self._stays(e, own) for top in statement.expressions for e in every(top))

    def _stays(self, expr: Expr, own: set[Variable]) -> bool:
        match expr:
            case Name(variable=variable):
                return variable in own
            case Assign(target=target) | Step(target=target):
                return isinstance(target, Name) and target.variable in own
            case Call(receiver=None, callee=None, template=()):
                return self._computes(expr)
        return isinstance(expr, Literal | Binary | Choice | Cast) or (
            isinstance(expr, Unary) and expr.op in "+-!~"
        )

    def _is_worth(self, expr: Expr) -> bool:
        """Whether an expression is long, or parts the lanes of a warp several ways."""
        calls = [e for e in every(expr) if isinstance(e, Call)]
        own = [f for c in calls for f in self.kernel.unit.called(c.function, len(c.arguments))]
        branches = sum(
            isinstance(s, If | Loop) for f in own for s in walk(f.body)
        ) + sum(isinstance(e, Choice) or is_logical(e) for e in every(expr))  # fmt: skip
        inner = sum(isinstance(e, Choice) for f in own for e in expressions(f.body))
        return is_long(self.kernel, expr) or self._divides(expr) or branches + inner >= _BRANCHES

    def _divides(self, expr: Expr) -> bool:
        """Whether it divides whole numbers of 64 bits, which takes about a hundred instructions."""
        return any(
            isinstance(e, Binary) and e.op in "/%" and not isinstance(bare(e.right), Literal)
            and (kind := self.types.get(e)) is not None and kind.kind == "int" and kind.size == 8
            for e in every(expr)
        )  # fmt: skip


def _steps_on(loop: Loop) -> bool:
    """Whether a loop moves its counter by a number at the end of its rounds, and nowhere else."""
    match loop.test, loop.update:
        case Binary(left=Name(variable=counter)), Step(target=Name(variable=moved)):
            steps = moved is counter
        case Binary(left=Name(variable=counter)), Assign(
            op="+=" | "-=", target=Name(variable=moved), value=Literal(value=value)
        ):
            steps = moved is counter and bool(value)
        case _:
            return False
    changes = (e.target for e in expressions(loop.body) if isinstance(e, Assign | Step))
    return steps and not any(isinstance(t, Name) and t.variable is counter for t in changes)
