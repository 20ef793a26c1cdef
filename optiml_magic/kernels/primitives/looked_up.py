"""P13 over values: what depends on one byte alone is computed for each of the 256, and looked up.

``gamma(image[i] / 255.0)`` is a power for every pixel, of which there are 256 different ones, and
``code(text[i])``, a switch, sends the lanes of a warp different ways. A launch before computes all
of them into scratch, where the kernel loads its own: from a cache that 256 values fit into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.costs import is_long
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.parameters import with_parameters
from optiml_magic.kernels.primitives.places import tops
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
from optiml_magic.source.directives import LaunchDirective, ScratchDirective
from optiml_magic.source.expressions import parse_expression

_VALUES, _HOLE = 256, "@byte"
_BRANCHES = 3  # ways that lanes may go, from which on a load is less: ours
_SIZES = (4, 8)


@dataclass(frozen=True, eq=False)
class Lookup:
    """Expressions that are one function of one byte each, ``sources``, and of what is ``given``."""

    expressions: tuple[Expr, ...]
    sources: tuple[Expr, ...]
    type: CType
    signed: bool
    given: tuple[Variable, ...]
    words: str
    long: bool

    @property
    def called(self) -> str:
        """What a title says of it: its function, or what it computes."""
        (first, *_) = self.expressions
        return first.function if isinstance(first, Call) else self.words.replace(_HOLE, "a byte")


def lookups(kernel: Kernel) -> list[Lookup]:
    """What of a kernel is worth a table, those that share one together."""
    finder, found = _Finder(kernel), dict[str, list[tuple[Expr, Expr]]]()
    for top in tops(kernel.function.body):
        for expr, source in finder.within(top):
            found.setdefault(finder.words(expr, source), []).append((expr, source))
    return [finder.lookup(words, pairs) for words, pairs in found.items()]


@primitive
def looked_up(kernel: Kernel) -> Kernel:
    """The kernel behind a launch for each such function, with loads in their places."""
    every_place_read(kernel)
    launch = kernel.launch
    if launch.condition is not None or launch.otherwise or launch.repeat is not None:
        raise NotLegal("its launch is one of a dispatch or of several rounds")
    if not kernel.function.parameters or kernel.function.template:
        raise NotLegal("it has no parameters, or is a template")
    found = lookups(kernel)
    if not found:
        raise NotLegal("nothing that it computes depends on one byte alone")
    for _ in found:  # each is looked for anew in what was made of the one before
        kernel = _made(kernel, lookups(kernel)[0])
    return kernel


def _made(kernel: Kernel, one: Lookup) -> Kernel:
    launch, plain = kernel.launch, (kernel.launch.kernel or kernel.function.name).partition("<")[0]
    bare = plain.rpartition("::")[2]
    table = kernel.fresh("of_byte")
    name = kernel.fresh(f"{bare}_values", table)
    scratch = parse_expression(table)
    args = first = None
    if launch.args is not None:
        first = (*(a for p, a in zip(kernel.function.parameters, launch.args, strict=True)
                   if p in one.given), scratch)  # fmt: skip
        args = (*launch.args, scratch)
    raw, kind = kernel.unit.syntax.text, "signed" if one.signed else "unsigned"
    given = [raw[slice(*p.span)].decode() for p in kernel.function.parameters
             if p in one.given and p.span is not None]  # fmt: skip
    value = kernel.fresh("value")
    made = (
        f"__global__ void {name}({', '.join([*given, f'{one.type.name}* {table}'])}) {{\n"
        f"    const {kind} char {value} = ({kind} char)threadIdx.x;\n"
        f"    {table}[threadIdx.x] = {one.words.replace(_HOLE, value)};\n}}"
    )
    swaps: dict[Node, Node] = {
        expr: Index(None, text(table), Cast(None, "unsigned char", source))
        for expr, source in zip(one.expressions, one.sources, strict=True)
    }
    letter = "f" if one.type.floating else "i" if one.type.signed else "u"
    width = parse_expression(str(_VALUES))
    before = LaunchDirective(name, (parse_expression("1"),), (width,), args=first)
    found = kernel.rewritten(
        edited(kernel.function.body, swaps), launch=replace(launch, args=args), helpers=[made],
        directives=[ScratchDirective(table, f"<{letter}{one.type.size}", width), before],
    )  # fmt: skip
    return with_parameters(found, [f"const {one.type.name}* {table}"])


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.types = kernel, kernel.reading.types
        self.effects = Effects(kernel)
        self._quiet = dict[Function, bool]()

    def within(self, expr: Expr) -> Iterator[tuple[Expr, Expr]]:
        """The parts of an expression that are worth a table, each with its byte.

        What stands around one of them is left to the threads, so that more of them are alike.
        """
        parts = expr.parts
        if isinstance(expr, Assign):  # where it stores is no value
            parts = (*expr.target.parts, expr.value)
        inner = [found for part in parts for found in self.within(part)]
        source = self._source(expr) if len(inner) != 1 else None
        if source is not None and self._is_worth(expr):
            yield expr, source
        else:
            yield from inner

    def words(self, expr: Expr, source: Expr) -> str:
        """What is computed, whatever byte it is of."""
        swaps: dict[Node, Node] = {e: text(_HOLE) for e in every(expr) if same(e, source)}
        return self.kernel.spelled(edited(expr, swaps)).replace(f"({_HOLE})", _HOLE)

    def lookup(self, words: str, pairs: Sequence[tuple[Expr, Expr]]) -> Lookup:
        expr, source = pairs[0]
        kind, byte = self.types[expr], self.types[source]
        asked = {leaf.variable for leaf in _outside(expr, source) if isinstance(leaf, Name)}
        given = tuple(p for p in self.kernel.function.parameters if p in asked)
        return Lookup(
            tuple(e for e, _ in pairs), tuple(s for _, s in pairs), kind, byte.signed, given, words,
            is_long(self.kernel, expr),
        )  # fmt: skip

    def _source(self, expr: Expr) -> Expr | None:
        """The byte that an expression is a function of, besides numbers that are given."""
        kind = self.types.get(expr)
        plain = kind is not None and kind.kind in ("int", "float") and not kind.depth
        if kind is None or not plain or kind.lanes != 1 or kind.size not in _SIZES:
            return None
        found = [*self._leaves(expr)]
        sources = [leaf for leaf in found if isinstance(leaf, Expr)]
        if len(sources) != len(found) or not sources:
            return None
        return sources[0] if all(same(sources[0], other) for other in sources[1:]) else None

    def _leaves(self, expr: Expr) -> Iterator[Expr | None]:
        """The bytes that an expression takes; None for anything else that is not given."""
        kind = self.types.get(expr)
        byte = kind is not None and kind.kind == "int" and kind.size == 1 and not kind.depth
        loaded = isinstance(expr, Index) or (isinstance(expr, Member) and not expr.arrow)
        if byte and loaded and not any(isinstance(e, Assign | Step) for e in every(expr)):
            yield expr
            return
        match expr:
            case Literal():
                return
            case Name(variable=Variable() as variable):
                scalar = variable.storage == "parameter" and not variable.type.depth
                own = byte and variable in self.effects.lasting and not variable.array
                if own and not scalar:
                    yield expr
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
            if statement.kind != "for" or not counted:
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
        return is_long(self.kernel, expr) or branches + inner >= _BRANCHES


def _outside(expr: Expr, source: Expr) -> Iterator[Expr]:
    """The parts of an expression that are not of the byte itself."""
    if not same(expr, source):
        yield expr
        for part in expr.parts:
            yield from _outside(part, source)
