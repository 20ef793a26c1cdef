"""P5 undone: results that a thread has in a local each are elements of a local array.

``s0 += x * b[c]; s1 += x * b[c + 16];`` and in the end ``o[c] = s0; o[c + 16] = s1;`` is what a
thread does for two results by hand. In loops over an array of them it is one step for each, so that
others see what has a thread of its own (``unjammed``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import INT, named

_MOST = 64  # results of a thread in registers: ours
_SEEN = frozenset({"builtin", "scalar", "counter", "operation", "select"})
_Swaps = dict[Node, Node | tuple[Statement, ...] | None]


@dataclass(frozen=True, eq=False)
class _Place:
    """An element that a statement asks for: its array, and how its index is spelled."""

    node: Index
    array: str
    form: Polynomial


@dataclass(frozen=True, eq=False)
class _Run:
    """Statements in a row, each of which does for its result what the first does."""

    statements: tuple[Evaluate, ...]
    results: tuple[Variable, ...]
    steps: tuple[Polynomial, ...]  # elements from a result to the next, of each place of the first


@primitive
def enlisted(kernel: Kernel) -> Kernel:
    """The kernel whose threads have their results in an array; they have several."""
    body, effects = kernel.function.body, Effects(kernel)
    changed = {e.target.variable for e in expressions(body)
               if isinstance(e, Assign) and isinstance(e.target, Name)}  # fmt: skip
    for block in (s for s in walk(body) if isinstance(s, Block)):
        begun = {v: v.value for s in block.body if isinstance(s, Declare) for v in s.variables
                 if v in changed - effects.addressed and _is_result(kernel, v)}  # fmt: skip
        runs = _Runs(kernel, begun).found() if len(begun) > 1 else []
        for results in dict.fromkeys(run.results for run in runs):
            own = [run for run in runs if run.results == results]
            if _is_all(kernel, own) and len({_shown(kernel, begun[v]) for v in results}) == 1:
                return _made(kernel, block, own)
    raise NotLegal("no thread keeps several results, each in its own local")


def _is_result(kernel: Kernel, variable: Variable) -> bool:
    """Whether this is a number that begins with nothing, or with what is spelled there."""
    kind = named(variable.type.base, kernel.unit.aliases)
    plain = (kind.floating or kind.integral) and kind.lanes == 1 and not variable.type.depth
    begun = variable.value is None or isinstance(variable.value, Literal)
    own = variable.storage == "local" and not variable.extents and not variable.type.reference
    return own and plain and begun and not variable.initial and not variable.type.const


def _is_all(kernel: Kernel, runs: Sequence[_Run]) -> bool:
    """Whether nothing else asks for the results of these."""
    results = {*runs[0].results}
    inside = {e for run in runs for s in run.statements for e in expressions(s)}
    named_ = (e for e in expressions(kernel.function.body) if isinstance(e, Name))
    alike = len({v.type.base for v in results}) == 1
    return alike and all(e in inside for e in named_ if e.variable in results)


def _shown(kernel: Kernel, value: Expr | None) -> str:
    return "" if value is None else kernel.spelled(value)


class _Runs:
    """Finds the runs of a kernel over locals that may be results."""

    def __init__(self, kernel: Kernel, begun: dict[Variable, Expr | None]) -> None:
        self.kernel, self.begun, self.effects = kernel, begun, Effects(kernel)
        self.forms = dict[Index, Polynomial | None]()
        for access in kernel.reading.accesses:
            node = access.node.target if isinstance(access.node, Assign) else access.node
            if isinstance(node, Index):
                known = access.index if access.call is None else None
                self.forms[node] = known if self.forms.get(node, known) == known else None

    def found(self) -> list[_Run]:
        blocks = (s for s in walk(self.kernel.function.body) if isinstance(s, Block))
        return [run for block in blocks for run in self._in(block.body)]

    def _in(self, statements: Sequence[Statement]) -> Iterator[_Run]:
        at = 0
        while at < len(statements):
            run = self._from(statements[at:])
            if run is not None:
                yield run
            at += len(run.statements) if run is not None else 1

    def _from(self, statements: Sequence[Statement]) -> _Run | None:
        """As many as are alike from the first on; None where that is it alone."""
        taken, results, steps = list[Evaluate](), list[Variable](), tuple[Polynomial, ...]()
        places = list[list[_Place]]()
        for statement in statements[:_MOST]:
            result = self._result(statement)
            if not isinstance(statement, Evaluate) or result is None or result in results:
                break
            own = self._places(statement)
            shape = self._shape(statement, result, own) if own is not None else ""
            if own is None or (taken and shape != self._shape(taken[0], results[0], places[0])):
                break
            if taken:
                by = self._between(places[0], own, len(taken))
                if by is None or (len(taken) > 1 and by != steps):
                    break
                steps = by
            taken.append(statement)
            results.append(result)
            places.append(own)
        return _Run(tuple(taken), tuple(results), steps) if len(taken) > 1 else None

    def _result(self, statement: Statement) -> Variable | None:
        """The one local that may be a result of which a statement asks; None for several."""
        found = {e.variable for e in expressions(statement) if isinstance(e, Name)}
        own = [v for v in found if v in self.begun]
        return own[0] if len(own) == 1 and self._is_plain(statement, own[0]) else None

    def _is_plain(self, statement: Statement, result: Variable) -> bool:
        """Whether it changes nothing but the result or an element, so that indices stay."""
        for expr in expressions(statement):
            match expr:
                case Step() | Lambda() | Unread():
                    return False
                case Assign() if not self._is_own(statement, expr, result):
                    return False
                case Call(function=name) if not pure(bare(name)):
                    return False
        return True

    def _is_own(self, statement: Statement, change: Assign, result: Variable) -> bool:
        whole = isinstance(statement, Evaluate) and statement.expression is change
        target = change.target
        return whole and (
            isinstance(target, Index) or (isinstance(target, Name) and target.variable is result)
        )

    def _places(self, statement: Statement) -> list[_Place] | None:
        """The elements that it asks for by indices that are read; None where one is not."""
        symbols, found = self.kernel.reading.symbols, list[_Place]()
        for node in (e for e in expressions(statement) if isinstance(e, Index)):
            form = self.forms.get(node)
            if form is None or not symbols.known(form) or not isinstance(node.base, Name):
                return None
            if any(symbols[name].kind not in _SEEN for name in symbols.inside(form)):
                return None
            kind = self.kernel.reading.types.get(node.index)
            found.append(_Place(node, f"{node.base.name} {kind}", form))
        return found

    def _shape(self, statement: Statement, result: Variable, places: Sequence[_Place]) -> str:
        """What a statement does, without which result it is for and where its elements are."""
        swaps: dict[Node, Node] = {p.node: text(f"<{p.array}>") for p in places}
        swaps |= {e: text("<result>") for e in expressions(statement)
                  if isinstance(e, Name) and e.variable is result}  # fmt: skip
        return " ".join(self.kernel.show(statement, swaps).split())

    def _between(
        self, first: Sequence[_Place], other: Sequence[_Place], results: int
    ) -> tuple[Polynomial, ...] | None:
        """How far elements are from one result to the next; None where nothing says it."""
        found = list[Polynomial]()
        for one, two in zip(first, other, strict=True):
            by = (two.form - one.form).over(Polynomial.constant(results))
            if by is None or (by.value is None and not self._is_said(one, by)):
                return None
            found.append(by)
        return tuple(found)

    def _is_said(self, place: _Place, by: Polynomial) -> bool:
        """Whether sizes say how far it is, in the 32 bits that hold the index of an element.

        A sum of them may have parts that these bits do not hold.
        """
        kernel, base = self.kernel, place.node.base
        given = {p.name: p for p in kernel.function.parameters}
        hidden = {v.name for v in declared_in(kernel.function.body)}
        return (
            kernel.reading.types.get(place.node.index) == INT
            and len(by.terms) == 1
            and isinstance(base, Name)
            and base.variable in given.values()
            and by.symbols <= given.keys() - hidden - self.effects.moved
            and not {given[name].type.base for name in by.symbols} - {"int"}
            and base.name not in self.effects.moved
        )


def _made(kernel: Kernel, block: Block, runs: Sequence[_Run]) -> Kernel:
    results = runs[0].results
    array, turn = kernel.fresh(f"{results[0].name}_all"), kernel.fresh("turn")
    head = f"for (int {turn} = 0; {turn} < {len(results)}; ++{turn})"
    swaps: _Swaps = {}
    declared = [s for s in block.body
                if isinstance(s, Declare) and not {*results}.isdisjoint(s.variables)]  # fmt: skip
    for statement in declared:
        kept = tuple(v for v in statement.variables if v not in results)
        swaps[statement] = replace(statement, variables=kept, span=None) if kept else None
    first, value = declared[0], results[0].value
    begun = f" {head} {array}[{turn}] = {kernel.spelled(value)};" if value is not None else ""
    own = lines(f"{results[0].type.base} {array}[{len(results)}];{begun}")
    left = swaps[first]
    swaps[first] = (own, left) if isinstance(left, Statement) else (own,)
    for run in runs:
        one, *others = run.statements
        inner: dict[Node, Node] = {e: text(f"{array}[{turn}]") for e in expressions(one)
                                   if isinstance(e, Name) and e.variable is results[0]}  # fmt: skip
        places = [e for e in expressions(one) if isinstance(e, Index)]
        for node, by in zip(places, run.steps, strict=True):
            if by.terms:
                inner[node.index] = text(f"({kernel.spelled(node.index)}) + {turn} * ({by})")
        swaps[one] = lines(f"{head} {kernel.show(one, inner).strip()}")
        swaps |= dict.fromkeys(others)
    return kernel.rewritten(edited(kernel.function.body, swaps))
