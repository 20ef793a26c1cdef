"""What the locals of a host function are where it launches: numbers, and ``dim3`` extents."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.signature import split_name
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import name_of, parse, walk
from optiml_magic.source.values import Values, changes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.definitions import Definition

_REAL = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_VECTOR = re.compile(r"(?:std|thrust)?(?:::)?(?:host_|device_)?vector\s*<")
_SIZE = re.compile(r"(\w+)\.size\(\)")
_RESIZED = re.compile(
    r"\b(\w+)(?:\.|->)(?:push_back|emplace_back|resize|assign|insert|erase|clear|pop_back|swap)\b"
)
_SWAPS = frozenset({"swap", "std::swap", "std::exchange"})
_ON_THE_LINE = re.compile(r"\bargv\b|\bstd::cin\b|\bscanf\b|\bgetenv\b")


class HostValues(Values):
    """The locals of a host function, with the axes of its ``dim3`` ones.

    One that is declared bare and set once, outside of any branch, has that value. With ``as_run``,
    one that only the command line changes has its value where none is given there. ``spelled`` has
    names for what a launch passes that is no name itself, ``mat.rows``, by its text.
    """

    def __init__(
        self,
        body: Node,
        names: Collection[str],
        constants: Mapping[str, int] | None = None,
        kept: Collection[str] = (),
        functions: Mapping[str, Definition] | None = None,
        *,
        as_run: bool = False,
    ) -> None:
        self._body = body
        self.spelled: dict[str, str] = {}
        self._vectors: dict[str, Node] = {}
        super().__init__(body, names, constants, kept, functions)
        places: dict[str, list[Node]] = {}
        for name, node in (*changes(body), *_lent(body)):
            places.setdefault(name, []).append(node)
        self.changed |= places.keys()
        self.names -= self.changed
        for name in {found[1] for found in _RESIZED.finditer(text_of(body))} | self.changed:
            self._vectors.pop(name, None)
        for name, nodes in places.items():
            right = _set_once(nodes, body) if _target(nodes[0]) == name else None
            if right is not None and self.declared.get(name) == 1 and name not in self.definitions:
                self.definitions[name] = right
                self.changed -= {name}
            elif as_run and all(map(_is_given_from_outside, nodes)):
                self.changed -= {name}

    def number(self, node: Node | None) -> int | float | None:
        """The value of a literal, of what is computed from whole ones, or of a name for one."""
        if node is None:
            return None
        literal = literal_number(node)
        if literal is not None:
            return literal
        expression = self.expression(node)
        if expression is not None and not expression.names | expression.arrays:
            try:
                return expression.evaluate({})
            except SourceError:  # a division by zero
                return None
        if node.type == "identifier":
            local = self.definition(text_of(node))
            return self.number(local) if local is not None else None
        return self._real(node)

    def _real(self, node: Node) -> int | float | None:
        """A quotient, product, sum or difference of which one side is no whole number."""
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            return self.number(node.named_child(0))
        if node.type != "binary_expression":
            return None
        left, right = (self.number(node.child_by_field_name(side)) for side in ("left", "right"))
        apply = _REAL.get(text_of(node.child_by_field_name("operator")))
        if left is None or right is None or apply is None:
            return None
        if isinstance(left, int) and isinstance(right, int):
            return None  # what whole numbers do has been asked
        try:
            return float(apply(left, right))
        except (ZeroDivisionError, OverflowError):
            return None

    def local(self, name: str) -> int | float | None:
        """The number that a local of that name stands for."""
        given = self.definition(name)
        return None if given is None else self.number(given)

    def _declare(self, node: Node) -> None:
        """``dim3 block(TILE, TILE)`` reads like a function's declaration; it is none."""
        super()._declare(node)
        kind = text_of(node.child_by_field_name("type"))
        if _VECTOR.match(kind):
            for child in node.children_by_field_name("declarator"):
                count = _first_argument(child)
                if count is not None and self.declared.get(declared(child).name) == 1:
                    self._vectors[declared(child).name] = count
        if not kind.endswith("dim3"):
            return
        for child in node.children_by_field_name("declarator"):
            if child.type == "function_declarator":
                axes = text_of(child.child_by_field_name("parameters"))
                reread = walk(parse(f"auto x = dim3{axes};").root)
                value = next((n for n in reread if n.type == "call_expression"), None)
                if value is not None:
                    self.definitions[declared(child).name] = value

    def spell(self, node: Node, name: str) -> None:
        """Take ``name`` for what is spelled like a node, where nothing of that changes.

        A member that is set once, from another that stays, stands for that one, too.
        """
        if node.type not in ("field_expression", "call_expression"):
            return
        roots = {text_of(n) for n in walk(node) if n.type == "identifier"}
        mutated = {found[1] for found in _RESIZED.finditer(text_of(self._body))}
        if roots & mutated or any(self.declared.get(root, 1) != 1 for root in roots):
            return
        places = [n for root, n in changes(self._body) if root in roots]
        if node.type == "call_expression" and places:
            return
        own, written = text_of(node), [n for n in places if _target(n) == text_of(node)]
        if any(_target(n) in roots for n in places):
            return
        if written:
            right = _set_once(written, self._body)
            first = next(n for n in walk(self._body) if text_of(n) == own)
            if right is None or first.start_byte != written[0].start_byte:
                return  # before it is set there, it is something else
            if right.type == "field_expression":
                others = {text_of(n) for n in walk(right) if n.type == "identifier"}
                if not others & self.changed:
                    self.spelled.setdefault(text_of(right), name)
        self.spelled[own] = name

    def text(self, node: Node | None, depth: int = 0) -> str | None:
        if node is not None and text_of(node) in self.spelled:
            return self.spelled[text_of(node)]
        if node is not None and node.type == "conditional_expression":
            decided = self.number(node.child_by_field_name("condition"))
            if decided is not None:
                way = "consequence" if decided else "alternative"
                return self.text(node.child_by_field_name(way), depth + 1)
        if node is not None and node.type == "call_expression":
            size = _SIZE.fullmatch(text_of(node))
            if size is not None and size[1] in self._vectors:
                return super().text(self._vectors[size[1]], depth + 1)
        if node is not None and node.type == "field_expression":
            field = text_of(node.child_by_field_name("field"))
            if field == "multiProcessorCount":
                return SM_COUNT
            axes = self.axes(node.child_by_field_name("argument"))
            if axes is None or field not in ("x", "y", "z"):
                return None
            at = "xyz".index(field)
            return super().text(axes[at], depth + 1) if at < len(axes) else "1"
        return super().text(node, depth)

    def axes(self, node: Node | None) -> list[Node] | None:
        """The extents of a ``dim3`` expression; a number is its first; None if it is not known."""
        if node is None:
            return None
        if node.type == "identifier":
            local = self.definition(text_of(node))
            if local is not None and local.type in ("argument_list", "initializer_list",
                                                    "call_expression"):  # fmt: skip
                return self.axes(local)
            return [node]
        if node.type in ("argument_list", "initializer_list"):
            return list(node.named_children)
        if node.type == "call_expression" and text_of(
            node.child_by_field_name("function")
        ).endswith("dim3"):
            return self.axes(node.child_by_field_name("arguments"))
        if node.type == "compound_literal_expression":
            return self.axes(node.child_by_field_name("value"))
        return [node]


def _lent(body: Node) -> Iterator[tuple[str, Node]]:
    """The names that functions of the text have by a reference, that are swapped or read into."""
    root = body
    while root.parent is not None:
        root = root.parent
    taken: dict[str, list[tuple[bool, ...]]] = {}
    for function in (n for n in walk(root) if n.type == "function_definition"):
        lends = tuple(formal.reference and not formal.const for formal in formals(function))
        taken.setdefault(name_of(function), []).append(lends)
    for node in walk(body):
        if node.type == "call_expression":
            name = split_name(text_of(node.child_by_field_name("function")))[0]
            listed = node.child_by_field_name("arguments")
            given = [a for a in (listed.named_children if listed else ()) if a.type != "comment"]
            for at, argument in enumerate(given):
                known = taken.get(name, [])
                lent = any(at < len(lends) and lends[at] for lends in known)
                if argument.type == "identifier" and (lent or name in _SWAPS):
                    yield text_of(argument), node
        elif node.type == "expression_statement":
            yield from _read_into(node.named_child(0))


def _read_into(node: Node | None) -> Iterator[tuple[str, Node]]:
    """The names that a stream gives values to, ``in >> a >> b;``."""
    while node is not None and node.type == "binary_expression":
        right = node.child_by_field_name("right")
        if text_of(node.child_by_field_name("operator")) != ">>" or right is None:
            return
        if right.type == "identifier":
            yield text_of(right), node
        node = node.child_by_field_name("left")


def _first_argument(declarator: Node) -> Node | None:
    """Of ``v(n, 1.0f)``, which reads like a function's declaration where it has no literal."""
    listed = declarator.child_by_field_name("value") or declarator.child_by_field_name("parameters")
    if listed is None or listed.type not in ("argument_list", "parameter_list"):
        return None
    reread = walk(parse(f"auto x = f{text_of(listed)};").root)
    found = next((n for n in reread if n.type == "argument_list"), None)
    return found.named_child(0) if found is not None else None


def literal_number(node: Node) -> int | float | None:
    """The value of a literal."""
    words = text_of(node)
    if node.type in ("true", "false"):
        return int(node.type == "true")
    found = number(words) if node.type in ("number_literal", "unary_expression") else None
    return None if found is None else found[0]


def _set_once(nodes: list[Node], body: Node) -> Node | None:
    """What a local is set to, where that is one assignment that nothing can go around."""
    (first, *others), statement = nodes, nodes[0].parent
    if others or first.type != "assignment_expression" or statement is None:
        return None
    straight = statement.type == "expression_statement" and statement.parent == body
    plain = text_of(first.child_by_field_name("operator")) == "="
    return first.child_by_field_name("right") if straight and plain else None


def _target(change: Node) -> str:
    """What one change writes to, or takes the address of, as it is spelled."""
    for field in ("left", "argument", "value"):
        target = change.child_by_field_name(field)
        if target is not None:
            return text_of(target)
    return ""


def _is_given_from_outside(node: Node) -> bool:
    """Whether a change only takes what the command line or a file gives."""
    whole = node
    while whole.parent is not None and "statement" not in whole.type:
        whole = whole.parent
    return _ON_THE_LINE.search(text_of(whole)) is not None
