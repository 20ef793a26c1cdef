"""Rounds that change something under tests alone get a branch on these tests around what they do.

``for (p = 0; p < 4; ++p) if (v > best[p]) { ...; break; }`` becomes ``if (v > best[0] || ...) for
...``, and ``p = 4; while (p > 0 && v > best[p - 1]) ...`` one on the test of its first round. As
long as no test has held nothing has changed, so each may be asked before all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

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
    Unary,
    Unread,
    conjuncts,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.sorted_lists import sorted_test
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
    body_of,
    walk,
)

_WRITTEN = 32  # elements of a list that is walked through without a loop: ours
_MOST = 16  # tests that a branch asks: ours
_ROUNDS = 64  # rounds of a loop that are followed: ours
_FAR = 1 << 20  # numbers that are followed
_WORD = 4  # bytes
_ACTS = Assign | Step | Call | Lambda | Unread
_COMPARED = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}

#: Locals of a round whose numbers are known as long as no test has held, None for any other.
_Known = Mapping[Variable, int | None]


@primitive
def gated(kernel: Kernel, at: int) -> Kernel:
    """The kernel with a branch around all that a round of the loop with this number may change."""
    loop, effects = loops_in(kernel.function.body)[at], Effects(kernel)
    effects.straightforward()
    block = Block(None, loop.line, _gated(kernel, effects, loop.body))
    return kernel.rewritten(edited(kernel.function.body, {loop.body: block}))


def _gated(kernel: Kernel, effects: Effects, whole: Statement) -> tuple[Statement, ...]:
    """The statements of a round, or of the branch that it ends with, the last in a branch."""
    body = body_of(whole)
    match body[-1:]:
        case (If(before=None, constant=False, other=None, then=then) as last,):
            with suppress(NotLegal):
                inner = Block(None, then.line, _gated(kernel, effects, then))
                return (*body[:-1], edited(last, {then: inner}))
    reason = NotLegal("a round changes something whatever it finds", whole.line)
    for first in range(len(body)):
        try:
            tests, _ = _Asked(kernel, effects).by(body[first:], {})
        except NotLegal as why:
            reason = why
            continue
        if tests:
            own = _own(kernel, effects, body[:first], body[first:])
            return (*body[:first], lines(f"if ({_joined(tests, '||')}) {{\n{own}\n}}"))
    raise reason


def _own(
    kernel: Kernel, effects: Effects, head: Sequence[Statement], rest: Sequence[Statement]
) -> str:
    """What the branch does: with locals of its own for those of the round that it changes."""
    given = [v for s in head if isinstance(s, Declare) for v in s.variables]
    inner = {v.name for s in rest for o in walk(s) if isinstance(o, Declare) for v in o.variables}
    made, swaps = list[str](), dict[Node, Node]()
    for variable in given:
        if variable not in effects.changed(*rest):
            continue
        other = variable.type.depth or variable.type.reference or variable.array
        if other or variable in effects.lent or variable.name in inner:
            raise NotLegal(f"`{variable.name}` may have another name", variable.line)
        name = kernel.fresh(f"{variable.name}_put")
        made.append(f"{declared_type(kernel, variable)} {name} = {variable.name};")
        swaps |= {
            e: text(name)
            for s in rest
            for e in effects.inside(s)
            if isinstance(e, Name) and e.variable is variable
        }
    return "\n".join([*made, *_written_out(kernel, effects, rest, swaps)])


def _written_out(
    kernel: Kernel, effects: Effects, rest: Sequence[Statement], swaps: Mapping[Node, Node]
) -> Iterator[str]:
    """Statements whose loops over a sorted list are unrolled, so that it may lie in registers.

    One that is left by ``break`` makes all of its rounds, or else a compiler does not unroll it.
    """
    for statement in rest:
        test = sorted_test(kernel, effects, statement) if isinstance(statement, Loop) else None
        if not isinstance(statement, Loop) or test is None or not _numbered(test):
            yield kernel.show(statement, swaps)
            continue
        (branch,) = (s for s in body_of(statement.body) if isinstance(s, If))
        more = dict[Node, Node | tuple[Statement, ...] | None](swaps)
        hint = lines("#pragma unroll")
        more |= {one: (hint, edited(one, swaps)) for one in loops_in(branch.then)}
        then = body_of(branch.then)
        if isinstance(then[-1], Leave):
            looks = kernel.fresh("is_looking")
            more[branch.test] = text(f"{looks} && ({kernel.spelled(branch.test, swaps)})")
            more[then[-1]] = lines(f"{looks} = false;")
            shown = f"bool {looks} = true;\n#pragma unroll\n{kernel.show(statement, more)}"
            yield f"{{\n{shown}\n}}"
        else:
            yield f"#pragma unroll\n{kernel.show(statement, more)}"


def _numbered(test: Expr) -> bool:
    """Whether the test of a list's last element says that it has few elements."""
    match test:
        case Binary(right=Index(index=Binary(left=Literal(value=int() as count)))):
            return count <= _WRITTEN
    return False


@dataclass(frozen=True)
class _Asked:
    """The tests under which statements of a round change anything but the round's own locals."""

    kernel: Kernel
    effects: Effects

    def by(self, statements: Sequence[Statement], known: _Known) -> tuple[list[str], _Known]:
        """Tests, one of which holds where anything changes, and what is known where none does."""
        tests = list[str]()
        for statement in statements:
            more, known = self._of(statement, known)
            tests += more
        if len(tests) > _MOST:
            raise NotLegal("a round has too many tests", statements[0].line)
        return list(dict.fromkeys(tests)), known

    def _of(self, statement: Statement, known: _Known) -> tuple[list[str], _Known]:
        match statement:
            case Blank():
                return [], known
            case Block(body=body):
                tests, inner = self.by(body, known)
                return tests, {v: inner[v] for v in known}
            case Declare(variables=variables):
                return [], {**known, **{v: self._begun(v, known) for v in variables}}
            case Evaluate(
                expression=Assign(op="=", target=Name(variable=Variable() as own)) as put
            ):
                if own in known and not self._acts(put.value):
                    return [], {**known, own: self._number_in(own, put.value, known)}
            case If(before=None, constant=False, other=None):
                return self._branch(statement, known), known
            case Loop(kind="for" | "while"):
                return self._loop(statement, known)
        raise NotLegal("a round changes something whatever it finds", statement.line)

    def _begun(self, variable: Variable, known: _Known) -> int | None:
        value = variable.value
        plain = not (variable.type.reference or variable.type.depth or variable.array)
        if variable.storage != "local" or variable.type.reference:
            raise NotLegal(f"`{variable.name}` is not a local of its round", variable.line)
        for part in (value, *variable.initial):
            if part is not None and self._acts(part):
                raise NotLegal(f"`{variable.name}` is not a plain local", variable.line)
        return self._number_in(variable, value, known) if plain and value is not None else None

    def _number_in(self, own: Variable, value: Expr, known: _Known) -> int | None:
        """The number that a local then is, where its type holds any below zero too."""
        kind = type_of(self.kernel, own)
        whole = kind.integral and kind.signed and kind.lanes == 1 and (kind.size or 0) >= _WORD
        lent = own in self.effects.lent
        return _number(value, known) if whole and not lent else None

    def _acts(self, expr: Expr) -> bool:
        return any(isinstance(e, _ACTS) for e in every(expr))

    def _branch(self, branch: If, known: _Known) -> list[str]:
        decided = _holds(branch.test, known)
        if decided is False:
            return []
        tests = [] if decided else [self._shown(branch.test, known)]
        try:
            inner, behind = self.by(body_of(branch.then), known)
        except NotLegal:
            if decided:
                raise
            return tests
        if any(behind[v] != known[v] for v in known):
            raise NotLegal("a round changes something whatever it finds", branch.line)
        return [_joined([*tests, _joined(inner, "||")], "&&")] if inner else []

    def _loop(self, loop: Loop, known: _Known) -> tuple[list[str], _Known]:
        around = known
        if loop.before is not None:
            begun, known = self._of(loop.before, known)
            assert not begun
        tests, known = self._rounds(loop, known)
        return tests, {v: known[v] for v in around}

    def _rounds(self, loop: Loop, known: _Known) -> tuple[list[str], _Known]:
        """Those of a loop's rounds, until one is made or not by what is not known before."""
        last = sorted_test(self.kernel, self.effects, loop)
        if last is not None:
            return [self._shown(last, known)], known
        tests = list[str]()
        for _ in range(_ROUNDS):
            decided = _holds(loop.test, known) if loop.test is not None else True
            if decided is False:
                return tests, known
            if decided is None and loop.test is not None:
                return [*tests, self._shown(loop.test, known)], known
            more, known = self.by(body_of(loop.body), known)
            tests += more
            known = self._stepped(loop, known)
        raise NotLegal("a loop inside a round has too many rounds", loop.line)

    def _stepped(self, loop: Loop, known: _Known) -> _Known:
        match loop.update:
            case Step(op=op, target=Name(variable=Variable() as own)) if own in known:
                by = 1 if op == "++" else -1
            case Assign(op="+=" | "-=" as op, target=Name(variable=Variable() as own), value=value):
                step = _number(value, known)
                if own not in known or step is None:
                    raise NotLegal("how a loop goes on is not followed", loop.line)
                by = step if op == "+=" else -step
            case _:
                raise NotLegal("how a loop goes on is not followed", loop.line)
        value_before = known[own]
        if value_before is None:
            raise NotLegal("how a loop goes on is not followed", loop.line)
        return {**known, own: value_before + by}

    def _shown(self, test: Expr, known: _Known) -> str:
        """A test as it is asked before the round's own locals, by their numbers."""
        if self._acts(test):
            raise NotLegal("the test changes something")
        parts = [p for p in conjuncts(test) if not _holds(p, known)]
        swaps: dict[Node, Node] = {}
        for part in parts:
            _swap(part, known, swaps)
        unknown = {
            e for p in parts for e in every(p)
            if isinstance(e, Name) and e.variable in known and e.variable is not None
            and known[e.variable] is None
        }  # fmt: skip
        if unknown:
            raise NotLegal("a test needs a value that the round computes first")
        return _joined([self.kernel.spelled(p, swaps) for p in parts], "&&")


def _swap(expr: Expr, known: _Known, swaps: dict[Node, Node]) -> None:
    """Write numbers for the largest parts that are known by locals of the round."""
    asks = any(isinstance(e, Name) and e.variable in known for e in every(expr))
    value = _number(expr, known) if asks else None
    if value is not None:
        swaps[expr] = text(str(value) if value >= 0 else f"({value})")
        return
    for part in expr.parts:
        _swap(part, known, swaps)


def _joined(parts: Sequence[str], op: str) -> str:
    return f" {op} ".join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts)


def _number(expr: Expr, known: _Known) -> int | None:
    """The number that an expression of signed numbers is; None where it is not known or far."""
    match expr:
        case Literal(value=int() as value, text=words):
            return value if value < _FAR and words.isdigit() else None
        case Name(variable=Variable() as own):
            return known.get(own)
        case Unary(op="-", operand=operand):
            inner = _number(operand, known)
            return -inner if inner is not None else None
        case Binary(op="+" | "-" as op, left=left, right=right):
            one, other = _number(left, known), _number(right, known)
            if one is None or other is None:
                return None
            found = one + other if op == "+" else one - other
            return found if abs(found) < _FAR else None
    return None


def _holds(test: Expr, known: _Known) -> bool | None:
    """Whether a test holds; None where that is not known."""
    match test:
        case Unary(op="!", operand=operand):
            inner = _holds(operand, known)
            return not inner if inner is not None else None
        case Binary(op="&&", left=left, right=right):
            sides = (_holds(left, known), _holds(right, known))
            return False if False in sides else None if None in sides else True
        case Binary(op=op, left=left, right=right) if op in _COMPARED:
            one, other = _number(left, known), _number(right, known)
            return _COMPARED[op](one, other) if one is not None and other is not None else None
    return None
