"""A text to its functions as typed trees, once, whatever it holds.

Source: the C++ grammar of tree-sitter-cuda over the preprocessed text. A statement that it or this
module does not understand becomes a ``Verbatim`` leaf with what it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tree_sitter import Node

from optiml_magic.kernels.assembly import in_registers
from optiml_magic.kernels.expressions import Expr, Lambda, Name, Span, Unread
from optiml_magic.kernels.lift_declarations import DeclarationLifter, declarator_in, is_parameter
from optiml_magic.kernels.lift_expressions import TooDeepError, span_of
from optiml_magic.kernels.lift_nodes import (
    copies,
    head_is_sound,
    in_class,
    named,
    outermost,
    outside,
)  # fmt: skip
from optiml_magic.kernels.lift_switch import Case, branches
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
    TypeName,
    Verbatim,
)
from optiml_magic.source.syntax import walk

_NOTHING = frozenset(
    {
        "preproc_call", "preproc_def", "preproc_function_def", "preproc_include",
        "using_declaration", "alias_declaration", "type_definition", "static_assert_declaration",
        "struct_specifier", "empty_declaration",
    }
)  # fmt: skip
_HINT = re.compile(r"#\s*pragma\s+(?:GCC\s+)?(?:no)?unroll\b")
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_KEYWORDS = ("struct ", "union ", "enum ", "typename ", "class ")
_PARAMETERS = frozenset(
    {
        "parameter_declaration", "optional_parameter_declaration",
        "variadic_parameter_declaration",
    }
)  # fmt: skip
_JUMPS = frozenset({"goto_statement", "labeled_statement"})
_HOLDERS = frozenset(
    {
        "case_statement",
        "catch_clause",
        "preproc_else",
        "preproc_elif",
        "preproc_elifdef",
        "else_clause",
    }
)
_DEEPEST = 150
_LeaveKind = Literal["return", "break", "continue"]
_LEAVES: dict[str, _LeaveKind] = {
    "return_statement": "return",
    "break_statement": "break",
    "continue_statement": "continue",
}


@dataclass(kw_only=True)
class Lifter(DeclarationLifter):
    """Lifts the functions of one parsed text."""

    def functions(self) -> Iterator[Function]:
        """Every function with a body, in the order of the text."""
        for node in walk(self.syntax.root):
            if node.type == "function_definition" and named(node):
                yield self.function(node)

    def declarations(self) -> Iterator[Declare]:
        """The variables of the module and its constants, in the order of the text."""
        for node in outside(self.syntax.root):
            if node.type == "declaration":
                self.scopes = [{}]  # names of the module are no variables of a function
                lifted = self.declaration(node, None)
                if isinstance(lifted, Declare):
                    yield lifted

    def enumerators(self) -> Iterator[tuple[str, Expr | None]]:
        """The named numbers of enumerations; one without a value follows the one before."""
        for node in walk(self.syntax.root):
            if node.type == "enumerator":
                value = node.child_by_field_name("value")
                name = self.text(node.child_by_field_name("name"))
                yield name, self.expression(value) if value is not None else None

    def function(self, node: Node) -> Function:
        self.scopes = [{}]
        self.depth = 0
        declarator = node.child_by_field_name("declarator")
        result = self._type(node)
        while declarator is not None and declarator.type != "function_declarator":
            if declarator.type == "pointer_declarator":
                result = TypeName(result.base, result.depth + 1, False, result.const)
            elif declarator.type == "reference_declarator":
                result = TypeName(result.base, result.depth, True, result.const)
            declarator = declarator.child_by_field_name("declarator") or declarator_in(declarator)
        listed = declarator.child_by_field_name("parameters") if declarator else None
        nodes = [c for c in (listed.named_children if listed else ()) if is_parameter(c)]
        parameters = tuple(self._parameter(child) for child in nodes)
        body = node.child_by_field_name("body")
        bounds = next((c for c in node.children if c.type == "launch_bounds"), None)
        first = bounds.named_children[0] if bounds and bounds.named_children else None
        return Function(
            name="::".join([*self._namespaces(node), named(node)]),
            span=(node.start_byte, node.end_byte),
            line=self.line(node),
            parameters=parameters,
            template=self._template(node),
            body=self._body(body) if body is not None else Block(None, self.line(node), ()),
            result=result,
            kernel=any(child.type == "__global__" for child in node.children),
            method=in_class(node),
            required=sum(child.type != "optional_parameter_declaration" for child in nodes),
            launch_bounds=self.text(first) or None,
            head=(node.start_byte, body.start_byte) if body is not None else None,
            whole=(outermost(node).start_byte, node.end_byte),
        )

    def _body(self, node: Node) -> Block:
        try:
            lifted = self.block(node)
        except TooDeepError:
            leaf = Verbatim(
                span_of(node), self.line(node), "nested too deeply", self.mentions(node)
            )
            return Block(span_of(node), self.line(node), (leaf,))
        assert isinstance(lifted, Block)
        return lifted

    def closure(self, node: Node) -> Expr:
        captures = self.text(node.child_by_field_name("captures"))
        declarator, body = (node.child_by_field_name(part) for part in ("declarator", "body"))
        if body is None or "=" in captures.strip("[]").strip()[1:]:
            return super().closure(node)
        mentions = self.mentions(node)
        written = declarator.child_by_field_name("parameters") if declarator else None
        nodes = [c for c in (written.named_children if written else ()) if is_parameter(c)]
        self.scopes.append({})
        parameters = tuple(self._parameter(child) for child in nodes)
        lifted = self.block(body)
        self.scopes.pop()
        assert isinstance(lifted, Block)
        required = sum(child.type != "optional_parameter_declaration" for child in nodes)
        returned = [c for c in (declarator.named_children if declarator else ())
                    if c.type == "trailing_return_type"]  # fmt: skip
        words = self.text(returned[0]).removeprefix("->").strip() if returned else "auto"
        result = TypeName(words.removesuffix("*").strip(), int(words.endswith("*")))
        function = Function("", span_of(node), self.line(node), parameters, (), lifted, result,
                            required=required)  # fmt: skip
        return Lambda(span_of(node), function, copies(captures), mentions)

    def block(self, node: Node, lead: Span | None = None) -> Statement:
        self.scopes.append({})
        statements: list[Statement] = []
        at = node.start_byte + 1
        for child in node.named_children:
            if child.type == "comment":
                continue
            statements.append(self.statement(child, (at, child.start_byte)))
            at = max(child.end_byte, (statements[-1].span or (0, 0))[1])
        self.scopes.pop()
        tail = (at, max(at, node.end_byte - 1))
        return Block(span_of(node), self.line(node), tuple(statements), tail, lead=lead)

    def statement(self, node: Node, lead: Span | None = None) -> Statement:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooDeepError
        try:
            return self._statement(node, lead)
        finally:
            self.depth -= 1

    def _statement(self, node: Node, lead: Span | None) -> Statement:
        kind = node.type
        if kind == "compound_statement":
            return self.block(node, lead)
        if kind in _NOTHING:
            end = node.next_sibling  # the semicolon of a structure is not part of it
            last = end if end is not None and end.type == ";" else node
            span, hints = (node.start_byte, last.end_byte), bool(_HINT.match(self.text(node)))
            return Blank(span, self.line(node), lead=lead, hints=hints)
        if kind in ("ERROR", "preproc_if", "preproc_ifdef") or node.is_missing:
            why = "the grammar stops here" if kind == "ERROR" else "an undecided conditional"
            return self.verbatim(node, why, lead)
        lifted = _STATEMENTS.get(kind)
        if lifted is None:
            return self.verbatim(node, kind.replace("_", " "), lead)
        if node.has_error and not head_is_sound(node):
            return self.verbatim(node, "the grammar stops here", lead)
        return lifted(self, node, lead)

    def expression_statement(self, node: Node, lead: Span | None) -> Statement:
        inner = next((c for c in node.named_children if c.type != "comment"), None)
        if inner is None:
            return Blank(span_of(node), self.line(node), lead=lead)
        known = in_registers(self.text(inner), span_of(inner), self.resolve)
        if known is not None:
            return Evaluate(span_of(node), self.line(node), known, lead=lead)
        if inner.type in ("gnu_asm_expression", "lambda_expression", "co_await_expression"):
            return self.verbatim(node, inner.type.replace("_", " "), lead)
        return Evaluate(span_of(node), self.line(node), self.expression(inner), lead=lead)

    def branch(self, node: Node, lead: Span | None) -> Statement:
        self.scopes.append({})
        before, test = self._condition(node.child_by_field_name("condition"))
        then = node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        inner = None
        if otherwise is not None:
            inner = next((c for c in otherwise.named_children if c.type != "comment"), None)
        try:
            if test is None or then is None:
                return self.verbatim(node, "a condition that is not understood", lead)
            return If(
                span_of(node), self.line(node), test, self.statement(then),
                self.statement(inner) if inner is not None else None, before,
                any(c.type == "constexpr" for c in node.children),
                (node.start_byte, then.start_byte),
                (then.end_byte, inner.start_byte) if inner is not None else None, lead=lead,
            )  # fmt: skip
        finally:
            self.scopes.pop()

    def switch(self, node: Node, lead: Span | None) -> Statement:
        self.scopes.append({})
        before, subject = self._condition(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        cases = list(self._cases(body)) if body is not None else []
        self.scopes.pop()
        if subject is None or any(case is None for case in cases):
            return self.verbatim(node, "switch statement", lead)
        found = branches(subject, [case for case in cases if case is not None])
        if found is None or (before is not None and not isinstance(found, If)):
            return self.verbatim(node, "switch statement", lead)
        if isinstance(found, If):
            found = replace(found, before=before)
        return replace(found, span=span_of(node), line=self.line(node), lead=lead)

    def _cases(self, body: Node) -> Iterator[Case | None]:
        """The cases of a switch, None for what is none."""
        for node in body.named_children:
            if node.type == "comment":
                continue
            if node.type != "case_statement" or node.has_error:
                yield None
                continue
            value = node.child_by_field_name("value")
            colon = next((c for c in node.children if c.type == ":"), node)
            self.scopes.append({})
            statements: list[Statement] = []
            at = colon.end_byte
            for child in node.named_children:
                if child.start_byte >= at and child.type != "comment":
                    statements.append(self.statement(child, (at, child.start_byte)))
                    at = child.end_byte
            self.scopes.pop()
            yield self.expression(value) if value is not None else None, tuple(statements)

    def _condition(self, node: Node | None) -> tuple[Statement | None, Expr | None]:
        if node is None:
            return None, None
        if node.type != "condition_clause":
            return None, self.expression(node)
        begins = node.child_by_field_name("initializer")
        value = node.child_by_field_name("value")
        before = None
        if begins is not None:
            inner: Node | None = begins
            if begins.type == "init_statement":
                inner = begins.named_children[0] if begins.named_children else None
            before = self.statement(inner) if inner is not None else None
        if value is not None and value.type == "declaration":
            before = self.declaration(value, None)
            if not isinstance(before, Declare) or len(before.variables) != 1:
                return None, None
            variable = before.variables[0]
            return before, Name(None, variable.name, variable)
        return before, self.expression(value) if value is not None else None

    def for_loop(self, node: Node, lead: Span | None) -> Statement:
        self.scopes.append({})
        begins = node.child_by_field_name("initializer")
        before: Statement | None = None
        if begins is not None:
            if begins.type in ("declaration", "init_statement"):
                before = self.statement(begins)
            else:
                before = Evaluate(span_of(begins), self.line(begins), self.expression(begins))
        test, update = (node.child_by_field_name(part) for part in ("condition", "update"))
        body = node.child_by_field_name("body")
        loop = Loop(
            span_of(node), self.line(node), "for", before,
            self.expression(test) if test is not None else None,
            self.expression(update) if update is not None else None,
            self.statement(body) if body is not None else Blank(None, self.line(node)),
            (node.start_byte, body.start_byte) if body is not None else None, lead=lead,
        )  # fmt: skip
        self.scopes.pop()
        return loop

    def while_loop(self, node: Node, lead: Span | None) -> Statement:
        self.scopes.append({})
        before, test = self._condition(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        try:
            if test is None or body is None or before is not None:
                return self.verbatim(node, "a condition that is not understood", lead)
            kind: Literal["while", "do"] = "do" if node.type == "do_statement" else "while"
            return Loop(span_of(node), self.line(node), kind, None, test, None,
                        self.statement(body), (node.start_byte, body.start_byte),
                        (body.end_byte, node.end_byte) if kind == "do" else None,
                        lead=lead)  # fmt: skip
        finally:
            self.scopes.pop()

    def leave(self, node: Node, lead: Span | None) -> Statement:
        kind: _LeaveKind = _LEAVES[node.type]
        value = next((c for c in node.named_children if c.type != "comment"), None)
        found = self.expression(value) if value is not None else None
        return Leave(span_of(node), self.line(node), kind, found, lead=lead)

    def init_statement(self, node: Node, lead: Span | None) -> Statement:
        inner = next((c for c in node.named_children if c.type != "comment"), None)
        if inner is None:
            return Blank(span_of(node), self.line(node), lead=lead)
        return self.statement(inner, lead)

    def stray_else(self, node: Node, lead: Span | None) -> Statement:
        return self.verbatim(node, "an else without its if", lead)

    def verbatim(self, node: Node, reason: str, lead: Span | None) -> Verbatim:
        inner = () if node.type == "ERROR" or node.is_missing else tuple(self._inner(node))
        return Verbatim(
            span_of(node), self.line(node), reason, self.mentions(node), inner,
            jumps=node.type in _JUMPS, lead=lead,
        )  # fmt: skip

    def _inner(self, node: Node) -> Iterator[Statement]:
        """The statements and expressions inside a construct that is kept as it is."""
        if node.type in ("gnu_asm_expression", "expression_statement", "declaration"):
            return
        self.scopes.append({})
        ranged = node.child_by_field_name("right") if node.type == "for_range_loop" else None
        if ranged is not None:  # its elements are behind a name that is not followed
            unread = Unread(span_of(ranged), self.text(ranged), self.mentions(ranged))
            yield Evaluate(span_of(ranged), self.line(ranged), unread)
        for child in node.named_children:
            if child.type == "compound_statement" and node.type == "switch_statement":
                yield from self._inner(child)  # its cases do not follow each other
            elif child.type in _STATEMENTS or child.type == "compound_statement":
                yield self.statement(child)
            elif child.type == "condition_clause":
                _, test = self._condition(child)
                if test is not None:
                    yield Evaluate(span_of(child), self.line(child), test)
            elif child.type in _HOLDERS:
                yield from self._inner(child)
            elif child.type.endswith(("_statement", "_loop")) or child.type == "ERROR":
                yield self.statement(child)
        self.scopes.pop()


_STATEMENTS: dict[str, Callable[[Lifter, Node, Span | None], Statement]] = {
    "declaration": Lifter.declaration,
    "init_statement": Lifter.init_statement,
    "expression_statement": Lifter.expression_statement,
    "if_statement": Lifter.branch,
    "switch_statement": Lifter.switch,
    "for_statement": Lifter.for_loop,
    "while_statement": Lifter.while_loop,
    "do_statement": Lifter.while_loop,
    "return_statement": Lifter.leave,
    "break_statement": Lifter.leave,
    "continue_statement": Lifter.leave,
    "else_clause": Lifter.stray_else,
}
