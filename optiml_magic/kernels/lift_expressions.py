"""Expressions of the grammar to ours; what neither knows is ``Unread`` with what it mentions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tree_sitter import Node

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
from optiml_magic.kernels.literals import number as read_number
from optiml_magic.kernels.tree import Variable
from optiml_magic.source.syntax import Syntax, walk

_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "__builtin_bit_cast"})
_TYPE_NODES = frozenset({"primitive_type", "sized_type_specifier"})
_VALUES = frozenset(
    {"lambda_expression", "subscript_expression", "parenthesized_expression", "call_expression"}
)
_MADE = {
    "struct_specifier": "name", "class_specifier": "name", "union_specifier": "name",
    "alias_declaration": "name", "type_definition": "declarator",
    "type_parameter_declaration": "name", "optional_type_parameter_declaration": "name",
}  # fmt: skip
_TYPE = "type_identifier"
#: What other words for operators mean ([lex.digraph]).
_WORDS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^",
          "compl": "~", "not_eq": "!=", "and_eq": "&=", "or_eq": "|=", "xor_eq": "^="}  # fmt: skip
_DEEPEST = 150


class TooDeepError(Exception):
    """Nested beyond what a person writes, and what this recursion should follow."""


@dataclass
class ExpressionLifter:
    """Lifts expressions; ``scopes`` has the variables in sight, the innermost last."""

    syntax: Syntax
    scopes: list[dict[str, Variable]] = field(default_factory=list)
    less: frozenset[int] = frozenset()  # where the tree has a > for what the text has a <
    bare: Mapping[int, int] = field(default_factory=dict[int, int])  # parentheses it lacks
    depth: int = 0

    def text(self, node: Node | None) -> str:
        return "" if node is None else self.syntax.text[node.start_byte : node.end_byte].decode()

    def mentions(self, node: Node) -> tuple[Expr, ...]:
        """The names and the calls in a piece of text, each name as the variable it may be."""
        found: list[Expr] = []
        for part in walk(node):
            if part.type in ("identifier", "type_identifier", "field_identifier"):
                name = self.text(part)
                found.append(Name(span_of(part), name, self.resolve(name)))
            elif part.type == "gnu_asm_expression":
                code = part.child_by_field_name("assembly_code")
                found.append(Unread(span_of(part), self.text(code)))
        return tuple(found)

    def resolve(self, name: str) -> Variable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def expression(self, node: Node) -> Expr:
        handler = _EXPRESSIONS.get(node.type)
        if handler is None:
            return Unread(span_of(node), self.text(node), self.mentions(node))
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooDeepError
        try:
            found = handler(self, node)
        finally:
            self.depth -= 1
        return self._closed(found) if self.bare else found

    def _closed(self, found: Expr) -> Expr:
        """An expression with the parentheses around names at its ends, which the tree lacks."""
        if found.span is None:
            return found
        (start, end), text = found.span, self.syntax.text
        before, behind = start - 1, end
        while text[before : before + 1].isspace():
            before -= 1
        while text[behind : behind + 1].isspace():
            behind += 1
        first = before if start <= self.bare.get(before, -1) < end else start
        last = behind + 1 if start <= self._opened.get(behind, -1) < end else end
        return found if found.span == (first, last) else replace(found, span=(first, last))

    @cached_property
    def _opened(self) -> dict[int, int]:
        return {close: start for start, close in self.bare.items()}

    def number(self, node: Node) -> Expr:
        text = self.text(node)
        read = read_number(text)
        return Literal(span_of(node), text, read[0] if read else None)

    def boolean(self, node: Node) -> Expr:
        return Literal(span_of(node), self.text(node), int(node.type == "true"))

    def identifier(self, node: Node) -> Expr:
        name = self.text(node)
        return Name(span_of(node), name, self.resolve(name))

    def parenthesized(self, node: Node) -> Expr:
        inner = [c for c in node.named_children if c.type != "comment"]
        if len(inner) != 1:
            return Unread(span_of(node), self.text(node), self.mentions(node))
        return self.expression(inner[0])

    def two(self, node: Node, first: str, second: str) -> tuple[Expr, Expr]:
        left, right = node.child_by_field_name(first), node.child_by_field_name(second)
        assert left is not None
        assert right is not None
        return self.expression(left), self.expression(right)

    def operator(self, node: Node) -> str:
        operator = node.child_by_field_name("operator")
        if operator is None:
            return ""
        return "<" if operator.start_byte in self.less else _WORDS.get(operator.type, operator.type)

    def binary(self, node: Node) -> Expr:
        return Binary(span_of(node), self.operator(node), *self.two(node, "left", "right"))

    def comma(self, node: Node) -> Expr:
        return Binary(span_of(node), ",", *self.two(node, "left", "right"))

    def unary(self, node: Node) -> Expr:
        argument = node.child_by_field_name("argument")
        assert argument is not None
        return Unary(span_of(node), self.operator(node), self.expression(argument))

    def assign(self, node: Node) -> Expr:
        target = node.child_by_field_name("left")
        while target is not None and target.type == "subscript_expression":
            target = target.child_by_field_name("argument")
        made = target.child_by_field_name("function") if target is not None else None
        if made is not None and made.type in _TYPE_NODES:  # a declaration: float (*rows)[4] = p
            return Unread(span_of(node), self.text(node), self.mentions(node))
        return Assign(span_of(node), self.operator(node), *self.two(node, "left", "right"))

    def step(self, node: Node) -> Expr:
        argument = node.child_by_field_name("argument")
        assert argument is not None
        operator = node.child_by_field_name("operator")
        assert operator is not None
        prefix = operator.start_byte < argument.start_byte
        return Step(span_of(node), operator.type, self.expression(argument), prefix)

    def choice(self, node: Node) -> Expr:
        parts = [node.child_by_field_name(p) for p in ("condition", "consequence", "alternative")]
        if any(part is None for part in parts):
            return Unread(span_of(node), self.text(node), self.mentions(node))
        test, then, other = (self.expression(part) for part in parts if part is not None)
        return Choice(span_of(node), test, then, other)

    def subscript(self, node: Node) -> Expr:
        base, indices = (node.child_by_field_name(p) for p in ("argument", "indices"))
        parts = operands(indices) if indices is not None else []
        if base is None or len(parts) != 1:
            return Unread(span_of(node), self.text(node), self.mentions(node))
        return Index(span_of(node), self.expression(base), self.expression(parts[0]))

    def field(self, node: Node) -> Expr:
        base = node.child_by_field_name("argument")
        assert base is not None
        name = self.text(node.child_by_field_name("field"))
        return Member(span_of(node), self.expression(base), name, self.operator(node) == "->")

    def cast(self, node: Node) -> Expr:
        value = node.child_by_field_name("value")
        assert value is not None
        spelled = blanks(self.text(node.child_by_field_name("type")))
        return Cast(span_of(node), spelled, self.expression(value))

    def call(self, node: Node) -> Expr:
        function, listed = (node.child_by_field_name(p) for p in ("function", "arguments"))
        if function is None or listed is None:
            return Unread(span_of(node), self.text(node), self.mentions(node))
        arguments = tuple(self.expression(part) for part in operands(listed))
        if function.type == "field_expression":
            base = function.child_by_field_name("argument")
            name = self.text(function.child_by_field_name("field"))
            receiver = self.expression(base) if base is not None else None
            arrow = any(child.type == "->" for child in function.children)
            return Call(span_of(node), name, arguments, (), (), receiver, arrow=arrow)
        template: tuple[str, ...] = ()
        values: tuple[Expr | None, ...] = ()
        inner = function
        if inner.type == "qualified_identifier":
            inner = inner.child_by_field_name("name") or inner
            while inner.type == "qualified_identifier":
                inner = inner.child_by_field_name("name") or inner
        if inner.type == "template_function":
            listed = inner.child_by_field_name("arguments")
            given = operands(listed) if listed is not None else []
            template = tuple(blanks(self.text(part)) for part in given)
            values = tuple(self._template_value(part) for part in given)
            inner = inner.child_by_field_name("name") or inner
        if function.type in _TYPE_NODES and len(arguments) == 1:
            return Cast(span_of(node), self.text(function), arguments[0], f"{self.text(function)}(")
        name = blanks(self.text(inner))
        if name in _CASTS and len(template) == 1 and len(arguments) == 1:
            return Cast(span_of(node), template[0], arguments[0], name)
        if len(arguments) == 1 and (spelled := self._parenthesized_type(function)):
            return Cast(span_of(node), spelled, arguments[0])
        if function.type in _VALUES:
            return Call(span_of(node), "", arguments, callee=self.expression(function))
        if inner.type not in ("identifier", "type_identifier"):
            return Unread(span_of(node), self.text(node), self.mentions(node))
        spelled = blanks(self.text(function))
        scope = spelled.partition("<")[0].rpartition("::")[0]
        if not scope and (variable := self.resolve(name)) is not None:
            callee = Name(span_of(inner), name, variable)
            return Call(span_of(node), "", arguments, template, values, None, callee)
        if self._is_member(function):
            callee = Name(span_of(function), spelled, None)
            return Call(span_of(node), "", arguments, callee=callee)
        full = f"{scope}::{name}" if scope else name
        return Call(span_of(node), full, arguments, template, values)

    def _is_member(self, function: Node) -> bool:
        """Whether a type has a function, ``Ops<float>::max``, which is none of CUDA's."""
        part: Node | None = function
        while part is not None and part.type == "qualified_identifier":
            scope = part.child_by_field_name("scope")
            if scope is not None and (
                scope.type == "template_type" or self.text(scope) in self._types
            ):
                return True
            part = part.child_by_field_name("name")
        return False

    @cached_property
    def _types(self) -> frozenset[str]:
        """The names that the text gives to types, those of templates among them."""
        made = [n for n in walk(self.syntax.root) if n.type in _MADE]
        names = [n.child_by_field_name(_MADE[n.type]) or next(iter(n.named_children[::-1]), None)
                 for n in made]  # fmt: skip
        return frozenset(self.text(n) for n in names if n is not None and n.type == _TYPE)

    def _parenthesized_type(self, node: Node) -> str:
        """The name in ``(real)(a - b)``, which the grammar takes for a call of what it is."""
        inner = [c for c in node.named_children if c.type != "comment"]
        if node.type != "parenthesized_expression" or len(inner) != 1:
            return ""
        name = self.text(inner[0]) if inner[0].type == "identifier" else ""
        return name if name not in self._declared and self.resolve(name) is None else ""

    @cached_property
    def _declared(self) -> frozenset[str]:
        """The names of the functions that the text declares."""
        heads = (n for n in walk(self.syntax.root) if n.type == "function_declarator")
        names = (self.text(head.child_by_field_name("declarator")) for head in heads)
        return frozenset(name.rpartition("::")[2] for name in names)

    def _template_value(self, node: Node) -> Expr | None:
        """A template argument that is a value; the grammar takes a lone name for a type."""
        if node.type != "type_descriptor":
            return self.expression(node)
        name = blanks(self.text(node))
        variable = self.resolve(name)
        return Name(span_of(node), name, variable) if variable is not None else None

    def braces(self, node: Node) -> Expr:
        members = tuple(self.expression(part) for part in operands(node))
        return Braces(span_of(node), "", members)

    def compound(self, node: Node) -> Expr:
        value = node.child_by_field_name("value")
        members = tuple(self.expression(part) for part in operands(value)) if value else ()
        spelled = blanks(self.text(node.child_by_field_name("type")))
        return Braces(span_of(node), spelled, members)

    def qualified(self, node: Node) -> Expr:
        return Name(span_of(node), blanks(self.text(node)), None)

    def string(self, node: Node) -> Expr:
        return Literal(span_of(node), self.text(node), None)

    def closure(self, node: Node) -> Expr:
        return Unread(span_of(node), self.text(node), self.mentions(node))

    def sizeof(self, node: Node) -> Expr:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if kind is not None:
            return Call(span_of(node), "sizeof", (), (blanks(self.text(kind)),))
        inner = (self.expression(value),) if value is not None else ()
        return Call(span_of(node), "sizeof", inner)


def span_of(node: Node) -> Span:
    return node.start_byte, node.end_byte


def blanks(text: str) -> str:
    """A text with its white space made single blanks."""
    return " ".join(text.split())


def operands(node: Node) -> list[Node]:
    """What stands in a list, its comments left out."""
    return [child for child in node.named_children if child.type != "comment"]


_EXPRESSIONS: dict[str, Callable[[ExpressionLifter, Node], Expr]] = {
    "identifier": ExpressionLifter.identifier,
    "type_identifier": ExpressionLifter.identifier,
    "number_literal": ExpressionLifter.number,
    "char_literal": ExpressionLifter.number,
    "true": ExpressionLifter.boolean,
    "false": ExpressionLifter.boolean,
    "null": ExpressionLifter.boolean,
    "string_literal": ExpressionLifter.string,
    "concatenated_string": ExpressionLifter.string,
    "parenthesized_expression": ExpressionLifter.parenthesized,
    "binary_expression": ExpressionLifter.binary,
    "comma_expression": ExpressionLifter.comma,
    "unary_expression": ExpressionLifter.unary,
    "pointer_expression": ExpressionLifter.unary,
    "assignment_expression": ExpressionLifter.assign,
    "update_expression": ExpressionLifter.step,
    "conditional_expression": ExpressionLifter.choice,
    "subscript_expression": ExpressionLifter.subscript,
    "field_expression": ExpressionLifter.field,
    "cast_expression": ExpressionLifter.cast,
    "call_expression": ExpressionLifter.call,
    "initializer_list": ExpressionLifter.braces,
    "compound_literal_expression": ExpressionLifter.compound,
    "qualified_identifier": ExpressionLifter.qualified,
    "sizeof_expression": ExpressionLifter.sizeof,
    "lambda_expression": lambda self, node: self.closure(node),
}
