"""A kernel as a rule sees it: its parameters, its locals, and which declaration a name means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from optiml_magic.source.syntax import Syntax, name_of, parse, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_SCOPES = ("compound_statement", "for_statement", "lambda_expression")
_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


@dataclass(frozen=True)
class Variable:
    """A parameter or a local. ``start`` tells two locals of one name apart."""

    name: str
    type: str  # as written, with qualifiers, without the stars
    pointer: bool
    array: bool
    start: int
    scope: Node
    value: Node | None = None
    parameter: bool = False

    @property
    def symbol(self) -> str:
        return self.name if self.parameter else f"{self.name}@{self.start}"

    @property
    def element(self) -> str:
        """The type without qualifiers: ``float`` of ``const float* __restrict__``."""
        return re.sub(r"\b(const|volatile|static|__shared__|constexpr)\b", "", self.type).strip()


@dataclass(frozen=True)
class Kernel:
    """One ``__global__`` function of a parsed text."""

    syntax: Syntax
    function: Node

    @property
    def name(self) -> str:
        return name_of(self.function)

    @property
    def body(self) -> Node:
        body = self.function.child_by_field_name("body")
        assert body is not None
        return body

    def text(self, node: Node) -> str:
        return self.syntax.source(node)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return (*self._parameters(), *self._locals())

    @cached_property
    def mutated(self) -> frozenset[int]:
        """The ``start`` of every variable that changes after its declaration."""
        targets = [target for node in walk(self.body) for target in _targets(node)]
        targets += self._passed_by_reference()
        variables = (self.resolve(target) for target in targets)
        return frozenset(variable.start for variable in variables if variable is not None)

    def resolve(self, identifier: Node) -> Variable | None:
        """The innermost variable in scope that ``identifier`` names."""
        name, at = self.text(identifier), identifier.start_byte
        seen = [
            v
            for v in self.variables
            if v.name == name
            and v.start <= at
            and v.scope.start_byte <= at < v.scope.end_byte
            and not (v.value and v.value.start_byte <= at < v.value.end_byte)
        ]
        return max(seen, key=lambda v: v.start, default=None)

    def steady(self, variable: Variable) -> bool:
        """Whether the variable keeps the value of its declaration."""
        return variable.start not in self.mutated

    def loop_of(self, variable: Variable) -> Node | None:
        """The ``for`` whose counter this is: declared in its head, changed in its update alone."""
        loop = variable.scope
        if loop.type != "for_statement" or variable.parameter:
            return None
        update = loop.child_by_field_name("update")
        changes = [
            target
            for node in walk(loop)
            for target in _targets(node)
            if self.resolve(target) == variable
        ]
        if update is None or len(changes) != 1:
            return None
        return loop if update.start_byte <= changes[0].start_byte < update.end_byte else None

    def declarator(self, variable: Variable) -> Node | None:
        """What stands around the name in its declaration, such as the ``array_declarator``."""
        name = self.syntax.root.descendant_for_byte_range(variable.start, variable.start + 1)
        return name.parent if name is not None else None

    def calls(self) -> Iterator[tuple[str, Node]]:
        """Each call in the body by the name it calls."""
        for node in walk(self.body):
            called = (
                node.child_by_field_name("function") if node.type == "call_expression" else None
            )
            if called is not None:
                yield self.text(called), node

    def builtins(self) -> Iterator[Node]:
        """Each ``threadIdx.x`` and the like in the body."""
        return (node for node in walk(self.body) if builtin(node))

    def _passed_by_reference(self) -> Iterator[Node]:
        """Names given to functions of this text that take references."""
        taking = {
            name_of(node)
            for node in walk(self.syntax.root)
            if node.type == "function_definition"
            and b"&" in (node.child_by_field_name("declarator") or node).text  # type: ignore[operator]
        }
        for called, node in self.calls():
            arguments = node.child_by_field_name("arguments")
            if called.split("<")[0] in taking and arguments is not None:
                yield from (a for a in arguments.named_children if a.type == "identifier")

    def _parameters(self) -> Iterator[Variable]:
        declarator = self.function.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator else None
        for child in parameters.named_children if parameters else ():
            if child.type == "parameter_declaration":
                yield from self._declared(child, self.function, parameter=True)

    def _locals(self) -> Iterator[Variable]:
        for node in walk(self.body):
            if node.type == "declaration":
                yield from self._declared(node, _scope(node), parameter=False)

    def _declared(self, node: Node, scope: Node, *, parameter: bool) -> Iterator[Variable]:
        type_node = node.child_by_field_name("type")
        declarators = node.children_by_field_name("declarator")
        if type_node is None or not declarators:
            return
        written = self.syntax.text[node.start_byte : declarators[0].start_byte].decode()
        for declarator in declarators:
            value, inner = None, declarator
            if inner.type == "init_declarator":
                value = inner.child_by_field_name("value")
                inner = inner.child_by_field_name("declarator") or inner
            kinds = set()
            while inner.type not in ("identifier", "init_declarator") and inner.named_children:
                kinds.add(inner.type)
                inner = inner.child_by_field_name("declarator") or inner.named_children[-1]
            if inner.type == "identifier":
                yield Variable(
                    self.text(inner),
                    " ".join(written.split()),
                    "pointer_declarator" in kinds,
                    bool(kinds - {"pointer_declarator"}),
                    inner.start_byte,
                    scope,
                    value,
                    parameter,
                )


def kernels(text: str) -> tuple[Kernel, ...]:
    """Every kernel of a program's text."""
    syntax = parse(text)
    return tuple(Kernel(syntax, function) for function in syntax.kernels())


def builtin(node: Node) -> str:
    """``threadIdx.x`` for such a node, an empty string for any other."""
    if node.type != "field_expression" or node.text is None:
        return ""
    argument = node.child_by_field_name("argument")
    name = argument.text.decode() if argument is not None and argument.text else ""
    return "".join(node.text.decode().split()) if name in _BUILTINS else ""


def _scope(node: Node) -> Node:
    parent = node.parent
    while parent is not None and parent.type not in _SCOPES:
        parent = parent.parent
    assert parent is not None
    return parent


def _targets(node: Node) -> Iterator[Node]:
    """The names that a node changes, or may change through their address."""
    if node.type == "assignment_expression":
        yield from _names(node.child_by_field_name("left"))
    elif node.type == "update_expression" or (
        node.type == "pointer_expression" and node.children[0].type == "&"
    ):
        yield from _names(node.child_by_field_name("argument"))


def _names(target: Node | None) -> Iterator[Node]:
    """The variable behind ``x``, ``(x)`` or ``x.y``; what a pointer leads to is no name."""
    while target is not None and target.type in ("parenthesized_expression", "field_expression"):
        target = target.child_by_field_name("argument") or target.named_children[0]
    if target is not None and target.type == "identifier":
        yield target
