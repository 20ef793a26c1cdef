"""Where the pointers and references of one function may come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.formals import Formal, declared, text_of
from optiml_magic.source.syntax import line_of, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

_PLACES = frozenset({"subscript_expression", "field_expression", "pointer_expression"})
_NAMES = frozenset({"identifier", "type_identifier", "namespace_identifier"})
_NUMBERS = frozenset({"primitive_type", "sized_type_specifier"})
_ROUNDS = 12
_MAX_STEPS = 2000
_MAX_MEMBERS = 50
_NONE: frozenset[str] = frozenset()


class Pointers:
    """For each local of a function the parameters it may point into, whenever that is.

    ``unclear`` names the parameters that are shadowed, stored, or used by a construct beyond this
    analysis; ``returning`` the functions whose result may point where their arguments do.
    """

    def __init__(
        self, formals: Sequence[Formal], body: Node | None, returning: frozenset[str] = _NONE
    ) -> None:
        self.returning = returning
        self.stored: list[Node] = []
        self.targets: dict[str, frozenset[str]] = {}
        self.references: set[str] = set()
        self.holders: set[str] = set()
        self.unclear: set[str] = set()
        for formal in formals:
            if formal.may_point or formal.reference:
                self.targets[formal.name] = frozenset({formal.name})
            if formal.reference:
                self.references.add(formal.name)
            if formal.depth > 1 or (formal.depth == 0 and formal.may_point):
                self.holders.add(formal.name)
        self.names = {formal.name for formal in formals}
        if body is not None:
            self._follow(body)

    def referred(self, name: str) -> frozenset[str]:
        """The parameters whose memory a bare name designates: it is a reference to them."""
        return self.targets.get(name, _NONE) if name in self.references else _NONE

    def held(self, node: Node) -> frozenset[str]:
        """The parameters that the value of an expression may point into."""
        return self._roots(node, place=False)

    def places(self, node: Node) -> frozenset[str]:
        """The parameters that an expression may designate memory of."""
        return self._roots(node, place=True)

    def is_place(self, node: Node) -> bool:
        return node.type in _PLACES

    def mentioned(self, node: Node) -> frozenset[str]:
        """Every parameter that any name inside a node may lead to."""
        found: set[str] = set()
        for part in walk(node):
            if part.type in _NAMES:
                found |= self.targets.get(text_of(part), _NONE)
        return frozenset(found)

    def _roots(self, node: Node, *, place: bool) -> frozenset[str]:
        found: set[str] = set()
        stack = [(node, place)]
        steps = 0
        while stack:
            current, as_place = stack.pop()
            steps += 1
            if steps > _MAX_STEPS:
                raise SourceError(
                    "an expression nested too deeply to follow",
                    fix="Split it with named variables.",
                    line=line_of(node),
                )
            if current.type == "identifier":
                name = text_of(current)
                if not as_place or name in self.references:
                    found |= self.targets.get(name, _NONE)
            else:
                stack.extend(self._place_parts(current) if as_place else self._parts(current))
        return frozenset(found)

    def _parts(self, node: Node) -> list[tuple[Node, bool]]:
        """The parts whose pointers an expression's value may be, and whether as places."""
        kind = node.type
        if kind in ("subscript_expression", "field_expression"):
            base = node.child_by_field_name("argument")
            return [(base, False)] if base is not None and self._holds(base) else []
        if kind == "pointer_expression":
            base = node.child_by_field_name("argument")
            if base is None:
                return []
            if text_of(node.child_by_field_name("operator")) == "&":
                return [(base, True)]
            return [(base, False)] if self._holds(base) else []
        if kind == "binary_expression":
            operator = text_of(node.child_by_field_name("operator"))
            sides = ("left", "right") if operator == "+" else ("left",)
            return _fields(node, sides) if operator in ("+", "-", "&", "|") else []
        if kind == "conditional_expression":
            return _fields(node, ("consequence", "alternative"))
        if kind == "assignment_expression":
            return _fields(node, ("left", "right"))
        if kind == "comma_expression":
            return _fields(node, ("right",))
        if kind == "cast_expression":
            return _fields(node, ("value",))
        if kind == "call_expression":
            listed = node.child_by_field_name("arguments")
            function = text_of(node.child_by_field_name("function"))
            name = function.partition("<")[0].rpartition("::")[2]
            if not name.endswith("_cast") and name not in self.returning:
                return []
            if name.endswith("_cast") and "&" in function:
                return []
            return [(part, False) for part in (listed.named_children if listed else ())]
        if kind in ("parenthesized_expression", "update_expression", "initializer_list",
                    "compound_literal_expression", "condition_clause"):  # fmt: skip
            return [(part, False) for part in node.named_children]
        return []

    def _place_parts(self, node: Node) -> list[tuple[Node, bool]]:
        kind = node.type
        base = node.child_by_field_name("argument")
        if kind == "subscript_expression" and base is not None:
            return [(base, False), *([(base, True)] if base.type in _PLACES else [])]
        if kind == "field_expression" and base is not None:
            arrow = any(child.type == "->" for child in node.children)
            return [(base, not arrow)]
        if kind == "pointer_expression" and base is not None:
            is_address = text_of(node.child_by_field_name("operator")) == "&"
            return [] if is_address else [(base, False)]
        if kind == "conditional_expression":
            return [(part, True) for part, _ in _fields(node, ("consequence", "alternative"))]
        if kind == "assignment_expression":
            return [(part, True) for part, _ in _fields(node, ("left",))]
        if kind == "comma_expression":
            return [(part, True) for part, _ in _fields(node, ("right",))]
        if kind in ("parenthesized_expression", "update_expression"):
            return [(part, True) for part in node.named_children]
        if kind == "call_expression" and "&" in text_of(node.child_by_field_name("function")):
            listed = node.child_by_field_name("arguments")
            return [(part, True) for part in (listed.named_children if listed else ())]
        return []

    def _holds(self, base: Node) -> bool:
        """Whether an element or member of ``base`` may itself be a pointer we follow."""
        for _ in range(_MAX_MEMBERS):
            if base.type == "identifier":
                return text_of(base) in self.holders
            inner = base.child_by_field_name("argument")
            if inner is None and base.type == "parenthesized_expression":
                inner = base.named_child(0)
            if inner is None:
                return False
            base = inner
        return False

    def _follow(self, body: Node) -> None:
        """Collect what every local may hold until nothing changes."""
        flows: list[tuple[str, Node, bool]] = []
        for node in walk(body):
            if node.type == "declaration":
                flows += self._declared(node)
            elif node.type == "assignment_expression":
                flows += self._assigned(node)
            elif node.type == "call_expression" and text_of(
                node.child_by_field_name("function")
            ) in ("swap", "std::swap", "cuda::std::swap"):
                flows += _swapped(node)
            elif node.type == "ERROR":
                self.unclear |= self.mentioned(node)
        for _ in range(_ROUNDS):
            changed = False
            for name, value, place in flows:
                before = self.targets.get(name, _NONE)
                after = before | self._roots(value, place=place)
                changed = changed or after != before
                self.targets[name] = after
            if not changed:
                break
        else:
            self.unclear |= self.names
        for value in self.stored:
            self.unclear |= self.held(value)

    def _declared(self, node: Node) -> list[tuple[str, Node, bool]]:
        flows: list[tuple[str, Node, bool]] = []
        type_node = node.child_by_field_name("type")
        number = type_node is not None and type_node.type in _NUMBERS
        number = number and text_of(type_node) not in ("size_t", "uintptr_t", "intptr_t")
        for child in node.children_by_field_name("declarator"):
            shape = declared(child)
            if shape.name in self.names:
                self.unclear.add(shape.name)
            if shape.function:  # `float* r(a + 1);` reads as a function to the grammar
                self.unclear |= self.mentioned(child)
                continue
            if shape.reference:
                self.references.add(shape.name)
            if shape.array or (shape.depth == 0 and not number) or shape.depth > 1:
                self.holders.add(shape.name)
            value = child.child_by_field_name("value")
            if child.type == "init_declarator" and value is not None:
                if number and not (shape.depth or shape.reference):
                    continue
                flows.append((shape.name, value, shape.reference))
        return flows

    def _assigned(self, node: Node) -> list[tuple[str, Node, bool]]:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None or text_of(node.child_by_field_name("operator")) != "=":
            return []
        base: Node | None = left
        while base is not None and base.type in _PLACES:
            base = base.child_by_field_name("argument")
        name = text_of(base) if base is not None and base.type == "identifier" else ""
        if not name or name in self.references or (base != left and name not in self.holders):
            self.stored.append(right)
            return []
        return [(name, right, False)]


def _swapped(node: Node) -> list[tuple[str, Node, bool]]:
    listed = node.child_by_field_name("arguments")
    names = listed.named_children if listed is not None else []
    if len(names) != 2 or any(part.type != "identifier" for part in names):
        return []
    return [(text_of(names[0]), names[1], False), (text_of(names[1]), names[0], False)]


def _fields(node: Node, names: Sequence[str]) -> list[tuple[Node, bool]]:
    parts = [node.child_by_field_name(name) for name in names]
    return [(part, False) for part in parts if part is not None]
