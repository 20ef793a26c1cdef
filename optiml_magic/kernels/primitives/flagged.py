"""P17, guard to flag: threads that would leave, or wait beside a branch, go along and do nothing.

After it every thread of a block comes to the loops that are asked for: what stood under a condition
that differs between them stands under a flag. What has no effect but its value is not put under
one; what loads has a zero in the place of the value where the flag is down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import edited, text
from optiml_magic.kernels.expressions import Binary, Call, Choice, Expr, Literal, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.flow import Flow, ends
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    TypeName,
    Variable,
    body_of,
    walk,
)

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_INTEGRAL = ("int", "bool")


@primitive
def flagged(kernel: Kernel, at: Sequence[int]) -> Kernel:
    """All threads of a block come to the loops with these numbers."""
    effects = Effects(kernel)
    effects.straightforward()
    loops = loops_in(kernel.function.body)
    made = _Flagging(kernel, effects, [loops[number] for number in at])
    body = made.block(kernel.function.body.body, "", True, True, "return")
    if not made.used:
        return kernel
    return kernel.rewritten(edited(kernel.function.body, {kernel.function.body: _block(body)}))


class _Flagging:
    """Statements on the way to ``targets``; a ``flag`` is empty where all threads are there."""

    def __init__(self, kernel: Kernel, effects: Effects, targets: Sequence[Loop]) -> None:
        self.kernel = kernel
        self.effects = effects
        self.targets = targets
        self.flow = Flow(kernel)
        self.used: list[str] = []
        self.apart = set[Variable]()  # of which threads whose flag is down have another value

    def block(
        self, statements: Sequence[Statement], flag: str, returns: bool, rounds: bool,
        home: str = "",
    ) -> list[Statement]:  # fmt: skip
        """Statements in a row; ``returns`` and ``rounds`` say whether these may end early there.

        A way out that is no ``home`` one leads beyond them as well: whoever took it is let go
        where nothing is left to come to.
        """
        made: list[Statement] = []
        hint: list[Statement] = []
        gone: list[Statement] = []
        for at, statement in enumerate(statements):
            if isinstance(statement, Blank) and isinstance(_next(statements, at), Loop):
                hint = [statement]  # to the compiler: it stays in front of its loop
                continue
            later = any(self._leads(s) for s in statements[at + 1 :])
            if self._leads(statement):
                may = returns and not later, rounds and not later
                made += self._toward(statement, flag, *may, hint)
            elif later and isinstance(statement, If) and self._leaves(statement):
                found, inside = self._left(statement, flag)
                made += found
                if inside and inside != flag:
                    words = f"{flag} && !{inside}" if flag else f"!{inside}"
                    gone += self._gone(statement, words, returns, rounds, home)
                flag = inside
            elif later:
                made += self._guarded(statement, flag, hint)
            else:
                made += [*gone, *self._after([*hint, *statements[at:]], flag, returns, rounds)]
                return made
            hint = []
        return [*made, *gone]

    def _gone(
        self, branch: If, words: str, returns: bool, rounds: bool, home: str
    ) -> list[Statement]:
        """The way out of those that left by a branch, behind the last loop that they come to."""
        last = body_of(branch.then)[-1]
        assert isinstance(last, Leave)
        if last.kind == home:
            return []
        if not (returns if last.kind == "return" else rounds):
            raise NotLegal("threads leave it in more ways than one", last.line)
        return [_when(words, [last])]

    def _leads(self, statement: Statement) -> bool:
        return any(s in self.targets for s in walk(statement))

    # -- towards a loop

    def _toward(
        self,
        statement: Statement,
        flag: str,
        returns: bool,
        rounds: bool,
        hint: Sequence[Statement] = (),
    ) -> list[Statement]:
        match statement:
            case Loop() if statement in self.targets:
                found = [*hint, statement]
                if flag:
                    self.apart |= {*self.effects.changed(statement)}
                return [_when(flag, found)] if flag else found
            case Block(body=body):
                return [_block(self.block(body, flag, returns, rounds))]
            case Loop(body=body):
                self.flow.together(statement)
                if flag and self._loads(*statement.expressions):
                    raise NotLegal("what a loop around it loads may not be there", statement.line)
                inner = self._settled(body_of(body), flag)
                if self._differs(statement):
                    raise NotLegal("its loop's rounds are not known to all threads", statement.line)
                return [*hint, replace(statement, body=inner, span=None)]
            case If():
                return self._branch(statement, flag, returns, rounds)
        raise NotLegal("how it comes to the loop is not followed", statement.line)

    def _settled(self, statements: Sequence[Statement], flag: str) -> Block:
        """The rounds of a loop: what one of them leaves behind, the next begins with."""
        used = [*self.used]
        while True:
            self.used, known = [*used], len(self.apart)
            inner = _block(self.block(statements, flag, False, True, "continue"))
            if len(self.apart) == known:
                return inner

    def _branch(self, branch: If, flag: str, returns: bool, rounds: bool) -> list[Statement]:
        test, other = branch.test, branch.other
        alike = branch.constant or (self.flow.uniform(branch) and not self._differs(branch))
        if alike and not (flag and self._loads(test)):
            then = _block(self.block(body_of(branch.then), flag, returns, rounds))
            if other is not None:
                other = _block(self.block(body_of(other), flag, returns, rounds))
            return [replace(branch, then=then, other=other, span=None)]
        if branch.before is not None or (other is not None and self._leads(other)):
            raise NotLegal("both branches of a condition come to a loop", branch.line)
        declared, inside = self._flag(self._shown(test), flag, branch)
        made = [declared, *self.block(body_of(branch.then), inside, returns, rounds)]
        if other is not None:
            self._no_way_out(other, returns, rounds)
            made.append(_when(f"{flag} && !{inside}" if flag else f"!{inside}", [other]))
        return [_block(made)]

    def _leaves(self, branch: If) -> bool:
        """Whether a branch is there for some to leave the kernel or the round."""
        last = body_of(branch.then)[-1:]
        return branch.other is None and bool(last) and isinstance(last[0], Leave)

    def _left(self, branch: If, flag: str) -> tuple[list[Statement], str]:
        """A branch by which threads leave: after it their flag is down."""
        if not flag and self.flow.uniform(branch) and not self._differs(branch):
            return [branch], ""
        *before, last = body_of(branch.then)
        assert isinstance(last, Leave)
        if last.kind == "break" or branch.before is not None:
            raise NotLegal("the loop is left early", branch.line)
        for statement in before:
            self._no_way_out(statement, False, False)
        test = branch.test
        if isinstance(test, Binary) and test.op in _OPPOSITE and self._whole(test):
            stays = self._shown(replace(test, op=_OPPOSITE[test.op], span=None))
        else:
            stays = f"!({self._shown(test)})"
        declared, inside = self._flag(stays, flag, branch)
        made: list[Statement] = [declared]
        if before:
            made.append(_when(f"{flag} && !{inside}" if flag else f"!{inside}", before))
        return made, inside

    def _whole(self, test: Binary) -> bool:
        """Whether a comparison has an opposite: that of numbers, which may be none, has not."""
        kinds = self.kernel.reading.types
        sides = (kinds.get(test.left), kinds.get(test.right))
        return all(kind is not None and kind.integral for kind in sides)

    def _flag(self, words: str, flag: str, branch: If) -> tuple[Statement, str]:
        if self.effects.changed(Evaluate(None, branch.line, branch.test)):
            raise NotLegal("a condition changes something", branch.line)
        inside = self.kernel.fresh("inside", *self.used)
        self.used.append(inside)
        if flag:
            words = f"{flag} && {words if words.startswith('!') else f'({words})'}"
        value = text(words) if words.startswith("(") else _spelled(words)
        variable = Variable(inside, TypeName("bool"), "local", branch.line, value=value)
        return Declare(None, branch.line, "const bool ", (variable,)), inside

    # -- beside it

    def _guarded(
        self, statement: Statement, flag: str, hint: Sequence[Statement]
    ) -> list[Statement]:
        """A statement between the start and a loop, for those whose flag is up."""
        self._no_way_out(statement, False, False, alone=bool(flag))
        if not flag or isinstance(statement, Blank):
            self._follow(statement)
            return [*hint, statement]
        if isinstance(statement, Declare):
            variables = tuple(self._value(v, flag) for v in statement.variables)
            self.apart |= {v for v, own in zip(statement.variables, variables, strict=True)
                           if v != own}  # fmt: skip
            self._follow(statement)
            same = variables == statement.variables
            return [statement if same else replace(statement, variables=variables, span=None)]
        self.apart |= {*self.effects.changed(statement)}
        return [_when(flag, [*hint, statement])]

    def _differs(self, statement: Statement) -> bool:
        """Whether what it asks is another value where the flag is down."""
        before = statement.before if isinstance(statement, Loop | If) else None
        asked = (*statement.expressions, *(before.expressions if before is not None else ()))
        return bool(names(asked) & self.apart)

    def _follow(self, statement: Statement) -> None:
        """Note what a statement makes of values that differ."""
        within = {e for s in walk(statement) for e in names(s.expressions)}
        if within & self.apart:
            self.apart |= {*self.effects.changed(statement)}
            self.apart |= {v for s in walk(statement) if isinstance(s, Declare)
                           for v in s.variables}  # fmt: skip

    def _value(self, variable: Variable, flag: str) -> Variable:
        given = [e for e in (variable.value, *variable.initial) if e is not None]
        if not self._loads(*given):
            return variable
        value, kind = variable.value, variable.type
        if value is None or kind.reference or variable.array or variable.opening == "{":
            raise NotLegal(f"what `{variable.name}` begins with may not be there", variable.line)
        nothing = self._nothing(variable, value)
        return replace(variable, value=Choice(None, text(flag), value, text(nothing)), span=None)

    def _nothing(self, variable: Variable, value: Expr) -> str:
        kind = self.kernel.reading.types.get(value)
        if variable.type.depth:
            return "nullptr"
        if kind is None or kind.kind == "unknown" or " " in variable.type.base:
            plain = kind is not None and kind.kind in ("int", "bool", "float")
            if not plain:
                raise NotLegal(f"what `{variable.name}` is, is not known", variable.line)
        if kind is not None and (kind.kind in _INTEGRAL or kind.name in ("float", "double")):
            return "0"
        name = variable.type.base if variable.type.base != "auto" else kind.name if kind else ""
        return f"{name}()"

    def _loads(self, *given: Expr) -> bool:
        """Whether to compute these may fail where a thread has no business there."""
        inside = {part for expr in given for part in every(expr)}
        if any(access.own in inside for access in self.kernel.reading.accesses):
            return True
        if any(self._called(e) for e in inside if isinstance(e, Call)):
            return True
        return any(
            isinstance(e, Binary) and e.op in "/%" and not isinstance(e.right, Literal)
            for e in inside
        )

    def _called(self, call: Call) -> bool:
        return call.callee is not None or bool(
            self.kernel.unit.called(call.function, len(call.arguments))
        )

    def _after(
        self, statements: Sequence[Statement], flag: str, returns: bool, rounds: bool
    ) -> list[Statement]:
        for statement in statements:
            self._no_way_out(statement, returns, rounds, alone=bool(flag))
            if flag:
                self.apart |= {*self.effects.changed(statement)}
            else:
                self._follow(statement)
        return [_when(flag, statements)] if flag and statements else [*statements]

    def _no_way_out(
        self, statement: Statement, returns: bool, rounds: bool, *, alone: bool = True
    ) -> None:
        """Raise NotLegal where some threads would leave what the others go on with."""
        for found in ends(statement):
            allowed = returns if found.kind == "return" else rounds and found.kind == "continue"
            if not allowed and (alone or not self._alike(found)):
                raise NotLegal("threads leave it in more ways than one", found.line)

    def _alike(self, found: Leave) -> bool:
        around = self.flow.around(found)
        return not any(isinstance(s, Loop) for s in around) and all(
            self.flow.uniform(s) for s in around if isinstance(s, If)
        )

    def _shown(self, expr: Expr) -> str:
        return self.kernel.spelled(expr)


def _next(statements: Sequence[Statement], at: int) -> Statement | None:
    return statements[at + 1] if at + 1 < len(statements) else None


def _block(statements: Sequence[Statement]) -> Block:
    return Block(None, 0, tuple(statements))


def _when(flag: str, statements: Sequence[Statement]) -> If:
    return If(None, statements[0].line, _spelled(flag), _block(statements))


def _spelled(words: str) -> Expr:
    return replace(text("x"), text=words)  # type: ignore[call-arg]
