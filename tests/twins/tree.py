"""What the forms ask of a syntax tree: names and their types, loops, conditions, what is changed.

They ask only what their own rewriting needs to be right, and answer "no" where they are not sure:
a form that leaves a kernel alone costs a twin, one that changes its meaning costs the whole test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.source import edits
from optiml_magic.source.edits import Edit
from optiml_magic.source.syntax import Syntax, parse, walk

BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
SIGNED = frozenset({"int", "long long", "long"})
INTEGERS = SIGNED | {"unsigned", "unsigned int", "size_t"}
RELATIONS = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Name:
    """A parameter or local: ``kind`` is scalar, pointer, array or reference."""

    name: str
    type: str
    kind: str
    constant: bool
    declaration: Node
    declarator: Node


def src(node: Node | None) -> str:
    """The text of a node."""
    assert node is not None
    assert node.text is not None
    return node.text.decode()


def field(node: Node, name: str) -> Node:
    """The child of that field, which must be there."""
    found = node.child_by_field_name(name)
    assert found is not None, f"{node.type} has no {name}"
    return found


def functions(syntax: Syntax) -> list[Node]:
    return [
        node
        for node in walk(syntax.root)
        if node.type == "function_definition" and node.child_by_field_name("body") is not None
    ]


def replace(node: Node, text: str) -> Edit:
    return Edit(node.start_byte, node.end_byte, text)


def before(node: Node, text: str) -> Edit:
    return Edit(node.start_byte, node.start_byte, text)


def after(node: Node, text: str) -> Edit:
    return Edit(node.end_byte, node.end_byte, text)


def edited(text: str, made: Iterable[Edit]) -> str | None:
    """The text with the edits made, or None where there are none."""
    found = list(made)
    return edits.apply(text, found) if found else None


def repeated(text: str, step: Callable[[Syntax], Iterable[Edit] | None]) -> str | None:
    """The text after as many steps as there are: each sees what the one before it made."""
    now = text
    for _ in range(200):
        made = list(step(parse(now)) or ())
        if not made:
            break
        now = edits.apply(now, made)
    return now if now != text else None


def with_prelude(text: str, *lines: str) -> str:
    """The text with these lines before everything but its includes."""
    includes = [m.end() for m in re.finditer(r"^#include.*\n", text, re.MULTILINE)]
    at = includes[-1] if includes else 0
    return text[:at] + "".join(line + "\n" for line in lines) + text[at:]


def words(node: Node) -> set[str]:
    """Every identifier in a subtree; members and types are none."""
    return {src(n) for n in walk(node) if n.type == "identifier"}


def changed(node: Node) -> set[str]:
    """The names that a subtree assigns, counts up, declares or takes the address of."""
    found: set[str] = set()
    for inner in walk(node):
        if inner.type == "assignment_expression":
            found |= _root(field(inner, "left"))
        elif inner.type == "update_expression" or (
            inner.type == "pointer_expression" and src(inner).startswith("&")
        ):
            found |= _root(field(inner, "argument"))
        elif inner.type == "declaration":
            found |= {name.name for name in _declared(inner)}
    return found


def _root(node: Node) -> set[str]:
    """The name that an assignable expression changes; an element changes no name."""
    return {src(node)} if node.type == "identifier" else set()


def names(function: Node) -> list[Name]:
    """The parameters and locals of a function in the order of the text."""
    return [
        name
        for node in walk(function)
        if node.type in ("declaration", "parameter_declaration")
        for name in _declared(node)
    ]


def types(function: Node) -> dict[str, Name]:
    """The names of a function; one that is declared twice as different things is left out."""
    found: dict[str, Name] = {}
    odd: set[str] = set()
    for name in names(function):
        known = found.setdefault(name.name, name)
        if (known.type, known.kind) != (name.type, name.kind):
            odd.add(name.name)
    return {name: one for name, one in found.items() if name not in odd}


def declared_once(function: Node, name: str) -> bool:
    return sum(one.name == name for one in names(function)) == 1


def parameters(function: Node) -> list[Name]:
    return [n for n in names(function) if n.declaration.type == "parameter_declaration"]


def _declared(node: Node) -> Iterator[Name]:
    kind_of = node.child_by_field_name("type")
    if kind_of is None:
        return
    qualifiers = {src(c) for c in node.children if c.type == "type_qualifier"}
    constant = bool(qualifiers & {"const", "constexpr"})
    for declarator in node.children_by_field_name("declarator"):
        inner, kind = declarator, "scalar"
        if inner.type == "init_declarator":
            inner = field(inner, "declarator")
        while inner.type != "identifier":
            kind = {"pointer_declarator": "pointer", "array_declarator": "array"}.get(
                inner.type, "reference"
            )
            below = inner.child_by_field_name("declarator") or next(
                (c for c in inner.children if c.type == "identifier"), None
            )
            if below is None:
                return
            inner = below
        yield Name(src(inner), src(kind_of), kind, constant, node, declarator)


def is_integer(node: Node, known: Mapping[str, Name], allowed: frozenset[str] = INTEGERS) -> bool:
    """Whether an expression is of ``allowed`` integer types all through, and changes nothing."""
    if node.type == "identifier":
        name = known.get(src(node))
        return name is not None and name.kind == "scalar" and name.type in allowed
    if node.type == "number_literal":
        return src(node).isdigit()
    if node.type == "field_expression":
        return "unsigned" in allowed and src(field(node, "argument")) in BUILTINS
    if node.type == "parenthesized_expression":
        return is_integer(node.named_children[0], known, allowed)
    if node.type == "binary_expression" and src(field(node, "operator")) in "+-*/%":
        return all(is_integer(field(node, side), known, allowed) for side in ("left", "right"))
    if node.type == "subscript_expression":
        array = known.get(src(field(node, "argument")))
        return (
            array is not None
            and array.kind in ("pointer", "array")
            and array.type in allowed
            and is_integer(index_of(node), known)
        )
    return False


def index_of(subscript: Node) -> Node:
    return field(subscript, "indices").named_children[0]


def in_index(node: Node) -> bool:
    """Whether an expression is, or is part of, what stands between the brackets of an access."""
    while node.parent is not None:
        if node.parent.type == "subscript_argument_list":
            return True
        node = node.parent
    return False


def operator(node: Node) -> str:
    found = node.child_by_field_name("operator")
    return src(found) if found is not None else ""


def bare(node: Node) -> Node:
    """The expression in any parentheses."""
    while node.type == "parenthesized_expression":
        node = node.named_children[0]
    return node


def condition_of(node: Node) -> Node:
    """The condition of an ``if`` or ``while`` without its parentheses, or that of a ``for``."""
    found = field(node, "condition")
    if found.type == "condition_clause":
        return field(found, "value")
    return bare(found)


def negation(node: Node, known: Mapping[str, Name]) -> str:
    """The text of a condition's opposite; a comparison of floats may hold a NaN and keeps its sign."""
    node = bare(node)
    if node.type == "unary_expression" and src(node).startswith("!"):
        return src(bare(field(node, "argument")))
    if node.type == "binary_expression":
        sign = operator(node)
        left, right = field(node, "left"), field(node, "right")
        if sign in ("&&", "||"):
            other = "||" if sign == "&&" else "&&"
            sides = [negation(side, known) for side in (left, right)]
            joined = [f"({s})" if other == "&&" and "||" in s else s for s in sides]
            return f" {other} ".join(joined)
        whole = is_integer(left, known) and is_integer(right, known)
        if sign in _OPPOSITES and whole:
            return f"{src(left)} {_OPPOSITES[sign]} {src(right)}"
    return f"!({src(node)})"


def enclosing(node: Node, *kinds: str) -> Node | None:
    """The nearest ancestor of one of these types."""
    found = node.parent
    while found is not None and found.type not in kinds:
        found = found.parent
    return found


def function_of(node: Node) -> Node:
    found = enclosing(node, "function_definition")
    assert found is not None
    return found


def statements(block: Node) -> list[Node]:
    """The statements of a compound statement, or a single one itself."""
    if block.type != "compound_statement":
        return [block]
    return [child for child in block.named_children if child.type != "comment"]


def contains(node: Node, *kinds: str) -> bool:
    return any(inner.type in kinds for inner in walk(node))


def skips(body: Node) -> bool:
    """Whether a loop's own ``continue`` is in its body: what moves there would be jumped over."""
    loops = ("for_statement", "while_statement", "do_statement")
    return any(
        n.type == "continue_statement" and ((e := enclosing(n, *loops)) is None or e == body.parent)
        for n in walk(body)
    )


@dataclass(frozen=True)
class Counted:
    """``for (int k = start; condition; update) body`` with one counter, whatever its step."""

    node: Node
    counter: str
    type: str
    start: Node
    condition: Node
    update: Node
    body: Node

    @property
    def by_one(self) -> bool:
        """Whether the counter goes up by one, and nothing else changes it."""
        step, *others = re.sub(r"\s", "", src(self.update)).split(",")
        k = self.counter
        alone = not any(re.search(rf"\b{k}\b", other) for other in others)
        steps = {f"{k}++", f"++{k}", f"{k}+=1", f"{k}={k}+1"}
        return step in steps and alone and k not in changed(self.body)


def counted(node: Node) -> Counted | None:
    """A ``for`` statement as a counted loop, where it is one."""
    if node.type != "for_statement":
        return None
    parts = [node.child_by_field_name(f) for f in ("initializer", "condition", "update", "body")]
    if any(part is None for part in parts):
        return None
    start, condition, update, body = (part for part in parts if part is not None)
    declarators = start.children_by_field_name("declarator")
    if start.type != "declaration" or len(declarators) != 1:
        return None
    (declarator,) = declarators
    if declarator.type != "init_declarator" or field(declarator, "declarator").type != "identifier":
        return None
    return Counted(
        node,
        src(field(declarator, "declarator")),
        src(field(start, "type")),
        field(declarator, "value"),
        condition,
        update,
        body,
    )


def loops(syntax: Syntax) -> Iterator[Counted]:
    """The counted loops of a text, the outer ones first."""
    for node in walk(syntax.root):
        found = counted(node)
        if found is not None:
            yield found


def inside(body: Node) -> str:
    """The text between the braces of a body, or the one statement that it is."""
    text = src(body)
    return text[1:-1].strip() if body.type == "compound_statement" else text


def fresh(wanted: str, syntax: Syntax) -> str:
    """``wanted``, or with a number where the text has it already."""
    taken, name, count = words(syntax.root), wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}{count}"
    return name


def input_loads(syntax: Syntax) -> Iterator[tuple[Node, Name]]:
    """The subscripts of arrays that a function may only read, each with its array."""
    for node in walk(syntax.root):
        if node.type != "subscript_expression" or node.parent is None:
            continue
        if node.parent.type in ("pointer_expression", "field_expression"):
            continue
        array = types(function_of(node)).get(src(field(node, "argument")))
        if array is not None and array.kind == "pointer" and array.constant:
            yield node, array
