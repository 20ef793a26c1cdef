"""What host functions see that is not their own: variables of the file, and members of a class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostchanges import given_anew, is_given_from_outside, set_once, target
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.syntax import nodes_of, parse, passed_to
from optiml_magic.source.values import changes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

CLASSES = frozenset({"class_specifier", "struct_specifier"})
_NUMBERS = frozenset({"number_literal", "parenthesized_expression", "binary_expression"})
_MAKERS = frozenset({"make_unique", "make_shared"})
_NAMES = frozenset({"identifier", "field_identifier", "destructor_name"})


@dataclass(frozen=True, eq=False)
class Outer:
    """What a variable is set to, once and for all, and in which function; None for none."""

    value: Node
    function: Node | None


def class_of(function: Node) -> str:
    """The name of the class that a function is a member of; empty for none."""
    around = function.parent
    while around is not None and around.type not in CLASSES:
        around = around.parent
    if around is not None:
        return text_of(around.child_by_field_name("name"))
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "qualified_identifier":
        declarator = declarator.child_by_field_name("declarator")
    return text_of(declarator.child_by_field_name("scope")) if declarator is not None else ""


def member_name(function: Node) -> str:
    """The name of a function within its class, or of one that is in none."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in _NAMES:
        inner = declarator.child_by_field_name("declarator")
        inner = inner or declarator.child_by_field_name("name")
        declarator = inner or next((c for c in declarator.children if c.type in _NAMES), None)
    return text_of(declarator)


def functions_of(root: Node) -> list[Node]:
    """Every function that a text defines."""
    return [node for node in nodes_of(root) if node.type == "function_definition"]


@lru_cache(maxsize=256)
def own_names(function: Node) -> frozenset[str]:
    """What a function declares: under these names it sees nothing from outside."""
    found = {formal.name for formal in formals(function)}
    for node in nodes_of(function):
        if node.type == "declaration":
            found |= {declared(one).name for one in node.children_by_field_name("declarator")}
    return frozenset(found)


def outer_variables(root: Node) -> dict[tuple[str, str], Outer]:
    """The variables of the file, and those of classes, that have one value, by class and name.

    A member is known by its constructor: of a class with several it is not clear which one runs.
    """
    found: dict[tuple[str, str], list[Outer]] = {}
    unclear: set[tuple[str, str]] = set()
    known = {*_declared(root, found)}
    for name, value in _real_macros(root):
        found.setdefault(("", name), []).append(Outer(value, None))
    made: dict[str, int] = {}
    for function in functions_of(root):
        owner = class_of(function)
        body = function.child_by_field_name("body")
        if owner and member_name(function) == owner:
            made[owner] = made.get(owner, 0) + 1
            for name, value in _initialised(function):
                # What a member is declared with counts for nothing then.
                found[owner, name] = [Outer(value, function)]
        if body is None:
            continue
        by_name: dict[tuple[str, str], list[Node]] = {}
        own = own_names(function)
        for name, node in (*changes(body), *given_anew(body), *_of_this(body)):
            key = (owner, name) if (owner, name) in known else ("", name)
            if key in known and name not in own:
                by_name.setdefault(key, []).append(node)
        for key, nodes in by_name.items():
            if all(map(is_given_from_outside, nodes)):
                continue
            right = set_once(nodes, body)
            plain = right is not None and target(nodes[0]) in (key[1], f"this->{key[1]}")
            if right is None or not plain:
                unclear.add(key)
            else:
                found.setdefault(key, []).append(Outer(right, function))
    several = {owner for owner, count in made.items() if count > 1}
    return {
        key: values[0]
        for key, values in found.items()
        if len(values) == 1 and key not in unclear and key[0] not in several
    }


def _real_macros(root: Node) -> Iterator[tuple[str, Node]]:
    """The macros that stand for numbers with a point, ``#define DT (ALPHA * 1e-3)``."""
    for node in nodes_of(root):
        if node.type != "preproc_def":
            continue
        words = text_of(node.child_by_field_name("value")).split("//")[0]
        reread = parse(f"auto x = {words};").root
        made = next((n for n in nodes_of(reread) if n.type == "init_declarator"), None)
        value = made.child_by_field_name("value") if made is not None else None
        if value is not None and value.type in _NUMBERS:
            yield text_of(node.child_by_field_name("name")), value


def _declared(root: Node, found: dict[tuple[str, str], list[Outer]]) -> Iterator[tuple[str, str]]:
    """The variables by class and name; what they are declared with goes to ``found``."""
    stack = [(root, "")]
    while stack:
        node, owner = stack.pop()
        for child in node.children:
            if child.type in CLASSES:
                body = child.child_by_field_name("body")
                if body is not None:
                    stack.append((body, text_of(child.child_by_field_name("name"))))
            elif child.type in ("declaration", "field_declaration"):
                value = child.child_by_field_name("default_value")
                for one in child.children_by_field_name("declarator"):
                    shape = declared(one)
                    given = value or one.child_by_field_name("value")
                    if shape.function or shape.reference or not shape.name:
                        continue
                    yield owner, shape.name
                    empty = text_of(given) in ("nullptr", "NULL") or shape.array
                    if given is not None and not empty:
                        found.setdefault((owner, shape.name), []).append(Outer(given, None))
            elif child.type not in ("function_definition", "comment"):
                stack.append((child, owner))


def _initialised(constructor: Node) -> Iterator[tuple[str, Node]]:
    """What a constructor makes members of: ``: n(count), m{3}``."""
    for listed in constructor.children:
        if listed.type != "field_initializer_list":
            continue
        for one in listed.named_children:
            given = one.named_children[-1] if one.named_child_count > 1 else None
            if given is not None and given.named_child_count == 1:
                yield text_of(one.named_child(0)), given.named_children[0]


def _of_this(body: Node) -> Iterator[tuple[str, Node]]:
    """The members that are changed as ``this->n``."""
    for node in nodes_of(body):
        named = node.child_by_field_name("left") or node.child_by_field_name("argument")
        changes_it = node.type in ("assignment_expression", "update_expression") or (
            node.type == "pointer_expression" and text_of(node).startswith("&")
        )
        if changes_it and named is not None and text_of(named).startswith("this->"):
            yield text_of(named.child_by_field_name("field")), node


def constructed_in(root: Node, classes: Collection[str]) -> Iterator[tuple[str, Node, list[Node]]]:
    """The objects that a text makes of ``classes``: the class, where, and what it is given."""
    for node in nodes_of(root):
        if node.type == "declaration":
            name = text_of(node.child_by_field_name("type")).partition("<")[0]
            for one in node.children_by_field_name("declarator") if name in classes else ():
                if declared(one).depth == 0 and not declared(one).reference:
                    value = one.child_by_field_name("value")
                    listed = value is not None and value.type in (
                        "argument_list",
                        "initializer_list",
                    )
                    own = value.named_children if value is not None and listed else ()
                    yield name, one, [argument for argument in own if argument.type != "comment"]
        elif node.type == "new_expression":
            name = text_of(node.child_by_field_name("type")).partition("<")[0]
            if name in classes:
                yield name, node, passed_to(node)
        elif node.type == "call_expression":
            called = text_of(node.child_by_field_name("function"))
            base, _, given = called.partition("<")
            name = given.rstrip("> ") if base.rpartition("::")[2] in _MAKERS else called
            if name in classes:
                yield name, node, passed_to(node)
