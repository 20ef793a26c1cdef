"""A tree back to text: what was not edited as its own bytes, what was as a person would write it.

A node with a span is printed from the text that it was lifted from, comments and macros included;
one without is spelled anew, and its parts by the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Span,
    Step,
    Unary,
    Unread,
)
from optiml_magic.kernels.spelling import Unspelled
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
    Written,
)
from optiml_magic.kernels.unit import Unit
from optiml_magic.source.syntax import without_hint

_INDENT = "    "
_IS_LOOP = re.compile(r"(?:for|while|do)\b")
# How tightly operators bind: the C++ standard, [expr.compound].
_LEVELS = {
    ",": 1, "=": 2, "?": 3, "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10,
    "<=": 10, ">": 10, ">=": 10, "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13,
}  # fmt: skip
_UNARY, _POSTFIX, _PRIMARY = 14, 15, 16


def printed(
    unit: Unit, function: Function, finish: Callable[[str], str] = lambda text: text
) -> str:
    """The text of ``unit`` with this function in place of the one that it was lifted from.

    ``finish`` is what becomes of the function's own text.
    """
    source = next(f for f in unit.functions if f.name == function.name and f.line == function.line)
    raw = unit.text.encode()
    start, end = unit.origin.origin(*source.span)
    return raw[:start].decode() + finish(Printer(unit).function(function)) + raw[end:].decode()


class Printer:
    """Prints the nodes of one unit."""

    def __init__(self, unit: Unit) -> None:
        self._raw = unit.text.encode()
        self._origin = unit.origin
        self._reached = 0  # in the original text: an invocation is printed once

    def function(self, function: Function) -> str:
        """A function; its head is kept."""
        if function.body.span is not None or function.head is None:
            return self._own(function.span)
        return self._own(function.head) + self.statement(function.body, 0)

    def statement(self, statement: Statement, level: int = 0) -> str:
        """A statement, without what stands before it."""
        if statement.span is not None:
            return self._own(statement.span)
        return self._spelled(statement, level)

    def expression(self, expression: Expr, binding: int = 0) -> str:
        """An expression, in parentheses where what is around it binds tighter."""
        if expression.span is not None:
            text = self._own(expression.span)
            return f"({text})" if binding > _bare_level(expression) else text
        text, level = self._written(expression)
        return f"({text})" if binding > level else text

    def _own(self, span: Span) -> str:
        """The text that a span comes from; of a macro's part what the macro stands for."""
        if span[0] == span[1]:
            return ""
        start, end = self._origin.origin(*span)
        again = start < self._reached and not self._origin.plain(*span)
        if again or not self._origin.whole(*span):
            return self._origin.text[span[0] : span[1]].decode()
        self._reached = max(self._reached, end)
        return self._raw[start:end].decode()

    def _spelled(self, statement: Statement, level: int) -> str:
        match statement:
            case Block():
                return self._block(statement, level)
            case Declare(words=words, variables=variables):
                return f"{words}{', '.join(map(self._declarator, variables))};"
            case Evaluate(expression=expression):
                return f"{self.expression(expression)};"
            case If():
                return self._branch(statement, level)
            case Loop():
                return self._loop(statement, level)
            case Leave(kind=kind, value=value):
                return f"{kind} {self.expression(value)};" if value is not None else f"{kind};"
            case Blank():
                return ";"
            case Written(text=text):
                return text.replace("\n", f"\n{_INDENT * level}")
        raise Unspelled(f"a {type(statement).__name__.lower()} statement, line {statement.line}")

    def _block(self, block: Block, level: int) -> str:
        inside, last = list[str](), ""
        for inner in block.body:
            lead = self._lead(inner, level + 1)
            # A directive has its line to itself, and that line's end belongs to it.
            alone = last.startswith("#") or (inside and last and self._begins_line(inner))
            if "\n" not in lead and alone:
                lead = f"\n{_INDENT * (level + 1)}{lead.lstrip()}"
            text = self.statement(inner, level + 1)
            inside += [lead, text]
            last = text.rpartition("\n")[2].lstrip()
        closing = self._own(block.tail) if block.tail is not None else f"\n{_INDENT * level}"
        return f"{{{''.join(inside)}{closing}}}"

    def _begins_line(self, statement: Statement) -> bool:
        """Whether a statement stood below a directive."""
        if statement.lead is None or not self._origin.whole(*statement.lead):
            return False
        start, _ = self._origin.origin(*statement.lead)
        return self._raw[:start].endswith(b"\n")

    def _lead(self, statement: Statement, level: int) -> str:
        """What stands between the statement before and this one."""
        return f"\n{_INDENT * level}" if statement.lead is None else self._own(statement.lead)

    def _branch(self, branch: If, level: int) -> str:
        if branch.head is not None:
            head = self._own(branch.head)
        else:
            before = self.statement(branch.before, level) + " " if branch.before else ""
            word = "if constexpr" if branch.constant else "if"
            head = f"{word} ({before}{self.expression(branch.test)}) "
        text = _leading(head, self.statement(branch.then, level))
        if branch.other is None:
            return text
        middle = self._own(branch.middle) if branch.middle is not None else " else "
        return text + _leading(middle, self.statement(branch.other, level))

    def _loop(self, loop: Loop, level: int) -> str:
        test = self.expression(loop.test) if loop.test is not None else ""
        if loop.head is not None:
            head = self._own(loop.head)
        elif loop.kind == "do":
            head = "do "
        elif loop.kind == "while":
            head = f"while ({test}) "
        else:
            before = self.statement(loop.before, level) if loop.before is not None else ";"
            before = before if before.endswith(";") else f"{before};"
            update = self.expression(loop.update) if loop.update is not None else ""
            head = f"for ({before} {test}; {update}) "
        foot = ""
        if loop.kind == "do":
            foot = self._own(loop.foot) if loop.foot is not None else f" while ({test});"
        return _leading(head, self.statement(loop.body, level)) + foot

    def _declarator(self, variable: Variable) -> str:
        kind = variable.type
        stars = "*" * kind.depth + ("&" if kind.reference else "")
        extents = "".join(
            f"[{self.expression(extent) if extent is not None else ''}]"
            for extent in variable.extents
        )
        text = f"{stars}{' __restrict__ ' if variable.restrict else ''}{variable.name}{extents}"
        value, braced = variable.value, variable.opening == "{"
        given = variable.initial if value is None else (value,)
        if braced and isinstance(value, Literal) and value.span is None and value.value == 0:
            given = ()  # what the braces left out
        elif not given and not braced:
            return text
        closing = {"(": ")", "{": "}", "=": ""}[variable.opening]
        apart = " = " if variable.opening == "=" else variable.opening
        return f"{text}{apart}{self._listed(given)}{closing}"

    def _listed(self, parts: Sequence[Expr]) -> str:
        return ", ".join(self.expression(part, _LEVELS["="]) for part in parts)

    def _written(self, expression: Expr) -> tuple[str, int]:
        """An expression spelled anew, and how tightly it binds."""
        match expression:
            case Literal(text=text) | Unread(text=text):
                return text, _PRIMARY if not text.startswith(("-", "+")) else _UNARY
            case Name(name=name):
                return name, _PRIMARY
            case Member(base=base, field=field, arrow=arrow):
                return f"{self.expression(base, _POSTFIX)}{'->' if arrow else '.'}{field}", _POSTFIX
            case Index(base=base, index=index):
                return f"{self.expression(base, _POSTFIX)}[{self.expression(index)}]", _POSTFIX
            case Unary(op=op, operand=operand):
                inner = self.expression(operand, _UNARY)
                apart = " " if inner.startswith(op) else ""  # - -x is not --x
                return f"{op}{apart}{inner}", _UNARY
            case Binary(op=op, left=left, right=right):
                level = _LEVELS[op]
                behind = level if op == "," else level + 1  # a, (b, c) is a, b, c
                sides = self.expression(left, level), self.expression(right, behind)
                return (", " if op == "," else f" {op} ").join(sides), level
            case Choice(test=test, then=then, other=other):
                level = _LEVELS["?"]
                parts = (self.expression(test, level + 1), self.expression(then),
                         self.expression(other, level))  # fmt: skip
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", level
            case Cast(type=spelling, operand=operand, spelled="("):
                return f"({spelling}){self.expression(operand, _UNARY)}", _UNARY
            case Cast(operand=operand, spelled=spelled) if spelled.endswith("("):
                return f"{spelled}{self.expression(operand, _LEVELS['='])})", _POSTFIX
            case Cast(type=spelling, operand=operand, spelled=spelled):
                return f"{spelled}<{spelling}>({self.expression(operand, _LEVELS['='])})", _POSTFIX
            case Call(function=function, arguments=arguments, template=template):
                given = f"<{', '.join(template)}>" if template else ""
                if function == "sizeof" and template:
                    return f"sizeof({template[0]})", _POSTFIX
                receiver, before = expression.receiver, ""
                if receiver is not None:
                    to = "->" if expression.arrow else "."
                    before = f"{self.expression(receiver, _POSTFIX)}{to}"
                if expression.callee is not None:
                    called = self.expression(expression.callee)
                    match expression.callee:
                        case Name(variable=variable, name=name):
                            named = variable is not None or "::" in name
                        case _:
                            named = False
                    before, function = "", called if named else f"({called})"
                return f"{before}{function}{given}({self._listed(arguments)})", _POSTFIX
            case Assign(op=op, target=target, value=value):
                level, choice = _LEVELS["="], _LEVELS["?"]  # (c ? x : y) = z is not c ? x : y = z
                place = self.expression(target, choice + 1)
                return f"{place} {op} {self.expression(value, level)}", level
            case Step(op=op, target=target, prefix=prefix):
                if prefix:
                    return f"{op}{self.expression(target, _UNARY)}", _UNARY
                return f"{self.expression(target, _POSTFIX)}{op}", _POSTFIX
            case Braces(type=spelling, members=members):
                return f"{spelling}{{{self._listed(members)}}}", _PRIMARY
        raise Unspelled(f"a {type(expression).__name__.lower()} with something new in it")


def _leading(head: str, body: str) -> str:
    """A head and what it leads to: an unroll hint between them is for a loop alone."""
    return head + body if _IS_LOOP.match(body) else without_hint(head) + body


def _bare_level(expression: Expr) -> int:
    """How tightly an expression binds that is printed as it stands."""
    match expression:
        case Binary(op=op):
            return _LEVELS[op]
        case Assign():
            return _LEVELS["="]
        case Choice():
            return _LEVELS["?"]
        case Unary() | Cast(spelled="("):
            return _UNARY
        case Step(prefix=True):
            return _UNARY
        case Unread():
            return 0
    return _POSTFIX
