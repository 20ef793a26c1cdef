"""What lanes of a warp do in step, without a word for it, with the words that it needs.

``volatile float* s`` and ``s[t] += s[t + 16];`` were enough while the lanes of a warp ran together.
Since Volta they may run apart: one may store what another is still to load. So a lane keeps what it
computes until all have loaded, ``{ float own = s[t] + s[t + 16]; __syncwarp(); s[t] = own;
__syncwarp(); }``. Where some lanes of a warp may be elsewhere, ``if (t == 0)``, nobody may wait for
all of them: a step there stays as it is.
Source: CUDA C++ Programming Guide, "Independent Thread Scheduling".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import declared, parameters, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, name_of, nodes_of, parse, walk

_WAIT = "__syncwarp()"
_WORD = re.compile(r"[A-Za-z_]\w*")
_WARP = 32
#: What all lanes of a warp have alike, though it is made of a thread's number.
_WARPS = re.compile(r"(?:threadIdx\s*\.\s*x|\w+)\s*(?:/\s*(?:32u?|warpSize)|>>\s*5)\b")
_BELOW = re.compile(r"[\s(]*(?:threadIdx\s*\.\s*x|\w+)\s*(?:<|>=)\s*(\w+?)[uU]?[\s)]*")
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
_LEFT = frozenset({"break_statement", "continue_statement", "goto_statement"})
_CLOSED = frozenset({"identifier", "number_literal", "subscript_expression", "call_expression"})


@dataclass(frozen=True)
class _Memory:
    """Where lanes meet: the type of its elements, and whether each access is one of its own."""

    type: str
    volatile: bool


@dataclass(frozen=True)
class _Step:
    """A store of what other elements hold; ``asked`` is which lanes make it, empty for all."""

    statement: Node
    type: str
    place: str
    value: str
    asked: str
    lane: frozenset[str]  # the names that say which lane it is


def warp_steps(text: str) -> tuple[str, tuple[Note, ...]]:
    """The text with such steps in full, and a note for each function; no line of it moves."""
    edits, notes = list[Edit](), list[Note]()
    for function in walk(parse(text).root):
        body = function.child_by_field_name("body")
        if function.type != "function_definition" or body is None:
            continue
        memory = {**dict(_given(function)), **dict(_declared(body))}
        found = [s for node in nodes_of(body) if (s := _step(node, memory, function)) is not None]
        steps = [
            step for step in found
            if not _waits(_behind(step.statement), "__syncthreads")
            and _together(step.statement, function, step.lane, text)
        ]  # fmt: skip
        if not steps:
            continue
        edits += [_edit(step, text) for step in steps]
        edits += _stored_before(steps, memory)
        first, last = (line_of(steps[at].statement) for at in (0, -1))
        where = f"on line {first}" if first == last else f"from line {first} to {last}"
        told = f"lanes of a warp may run apart: {_WAIT} is put between loads and stores {where}"
        notes.append(Note("warp_steps", told, name_of(function)))
    return apply(text, edits), tuple(notes)


def _given(function: Node) -> Iterator[tuple[str, _Memory]]:
    """Pointers that a function of the device is given."""
    if "__global__" in text_of(function).partition("(")[0]:
        return
    for node in parameters(function):
        yield from _named(node)


def _declared(body: Node) -> Iterator[tuple[str, _Memory]]:
    for node in nodes_of(body):
        words = text_of(node).partition("=")[0].split() if node.type == "declaration" else []
        if "__shared__" in words or ("volatile" in words and "*" in text_of(node)):
            yield from _named(node)


def _named(node: Node) -> Iterator[tuple[str, _Memory]]:
    kind = text_of(node.child_by_field_name("type"))
    for declarator in node.children_by_field_name("declarator"):
        shape = declared(declarator)
        if shape.depth == 1 and shape.name and kind != "auto":
            words = text_of(node).partition(shape.name)[0].split()
            yield shape.name, _Memory(kind, "volatile" in words)


def _step(node: Node, memory: Mapping[str, _Memory], function: Node) -> _Step | None:
    change = _change(node, memory)
    if change is None:
        return None
    left, right = (change.child_by_field_name(side) for side in ("left", "right"))
    if left is None or right is None:
        return None
    place, own = text_of(left), memory[text_of(left.child_by_field_name("argument"))]
    others = [e for e in walk(right) if _element(e, memory) and text_of(e) != place]
    lane = _names(left) - _counters(node)  # what says which lane it is stands in both places
    if not others or not lane or any(not lane <= _names(other) for other in others):
        return None
    if not own.volatile and not _waits(_behind(node), "__syncwarp"):
        return None
    op, value = text_of(change.child_by_field_name("operator")), text_of(right)
    value = value if right.type in _CLOSED else f"({value})"
    value = text_of(right) if op == "=" else f"{place} {op[:-1]} {value}"
    statement, asked = _asked(node, function)
    return _Step(statement, own.type, place, value, asked, lane)


def _names(element: Node) -> frozenset[str]:
    """The names in an index."""
    return frozenset(_WORD.findall(text_of(element.child_by_field_name("indices"))))


def _counters(node: Node) -> frozenset[str]:
    """What the loops around a statement count."""
    loops = (around for around in _around(node) if around.type == "for_statement")
    updates = (text_of(loop.child_by_field_name("update")) for loop in loops)
    return frozenset(name for update in updates for name in _WORD.findall(update))


def _around(node: Node) -> Iterator[Node]:
    """What a statement of a function is in, from the inside."""
    around = node.parent
    while around is not None and around.type != "function_definition":
        yield around
        around = around.parent


def _change(node: Node, memory: Mapping[str, _Memory]) -> Node | None:
    """The assignment to an element that a statement is."""
    inner = next(iter(node.named_children), None)
    if (
        node.type != "expression_statement"
        or inner is None
        or inner.type != "assignment_expression"
    ):
        return None
    left = inner.child_by_field_name("left")
    return inner if left is not None and _element(left, memory) else None


def _is_store(node: Node, memory: Mapping[str, _Memory]) -> bool:
    """Whether a statement stores an element, ``int t = s[i] = v;`` too."""
    if node.type != "declaration":
        return _change(node, memory) is not None
    inside = (n for n in walk(node) if n.type == "assignment_expression")
    sides = (n.child_by_field_name("left") for n in inside)
    return any(left is not None and _element(left, memory) for left in sides)


def _element(node: Node, memory: Mapping[str, _Memory]) -> bool:
    named = node.type == "subscript_expression" and node.child_by_field_name("argument")
    return bool(named) and text_of(node.child_by_field_name("argument")) in memory


def _asked(node: Node, function: Node) -> tuple[Node, str]:
    """The statement with the branch that leads to no other one, and what that asks of a lane."""
    around = node.parent
    if around is not None and around.type == "compound_statement":
        inside = [c for c in around.named_children if c.type != "comment"]
        if inside[0] == node and all(_waits(c, "__syncwarp") for c in inside[1:]):
            around = around.parent
    if around is None or around.type != "if_statement" or around.child_by_field_name("alternative"):
        return node, ""
    condition = around.child_by_field_name("condition")
    locals_ = {
        declared(declarator).name
        for declaring in nodes_of(function)
        if declaring.type in ("declaration", "parameter_declaration")
        for declarator in declaring.children_by_field_name("declarator")
    }
    asked = text_of(condition)
    return (around, asked) if {"threadIdx", *locals_} & {*_WORD.findall(asked)} else (node, "")


def _together(
    node: Node, function: Node, lane: frozenset[str], text: str, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether all lanes of a warp that have not ended come to a statement, and to its function."""
    apart = lane | _by_thread(function)
    for around in _around(node):
        if around.type == "lambda_expression" or (
            around.type in _LOOPS and any(n.type in _LEFT for n in nodes_of(around))
        ):
            return False
        asked = text_of(around.child_by_field_name("condition"))
        whole = around.type == "if_statement"
        parts = re.split(r"&&|\|\|", asked)
        if "[" in asked or not all(_alike(p, apart, text, whole=whole) for p in parts):
            return False
    if "__global__" in text_of(function).partition("(")[0]:
        return True
    name = name_of(function)
    return name not in seen and all(
        _together(call, caller, frozenset(), text, seen | {name})
        for caller in nodes_of(parse(text).root) if caller.type == "function_definition"
        for call in nodes_of(caller)
        if call.type == "call_expression" and re.match(rf"{name}\b", text_of(call))
    )  # fmt: skip


def _alike(part: str, apart: frozenset[str], text: str, *, whole: bool) -> bool:
    """Whether a comparison is the same for all lanes of a warp; ``whole``: ``t < 32`` is."""
    if not apart & {*_WORD.findall(_WARPS.sub("0", part))}:
        return True
    found = _BELOW.fullmatch(part) if whole else None
    if found is None:
        return False
    number = found[1]
    said = re.search(rf"(?:#define\s+{number}\s+|\b{number}\s*=\s*)\(?(\d+)\b", text)
    number = said[1] if said else number
    return number == "warpSize" or (number.isdigit() and int(number) % _WARP == 0)


def _by_thread(function: Node) -> frozenset[str]:
    """The names of what may differ between the lanes of a warp, by the thread's number."""
    given = list[tuple[str, str]]()
    for node in nodes_of(function):
        if node.type == "init_declarator":
            value = node.child_by_field_name("value")
            given.append((declared(node).name, text_of(value)))
        elif node.type == "assignment_expression":
            sides = (node.child_by_field_name(side) for side in ("left", "right"))
            left, right = map(text_of, sides)
            given.append((left, right))
    found, before = {"threadIdx"}, 0
    while len(found) != before:
        before = len(found)
        found |= {name for name, value in given if found & {*_WORD.findall(_WARPS.sub("0", value))}}
    return frozenset(found)


def _behind(statement: Node) -> Node | None:
    """The statement behind one, or behind the branch that it is all of."""
    following = statement.next_named_sibling
    while following is not None and following.type == "comment":
        following = following.next_named_sibling
    around = statement.parent
    inside = around is not None and around.type == "compound_statement"
    if following is None and inside and around is not None:
        around = around.parent
    if following is None and around is not None and around.type == "if_statement":
        return _behind(around)
    return following


def _waits(node: Node | None, function: str) -> bool:
    return node is not None and text_of(node).startswith(f"{function}(")


def _edit(step: _Step, text: str) -> Edit:
    used = {*_WORD.findall(text)}
    own, there = (next(n for k in range(len(used) + 1) if (n := f"{name}{k or ''}") not in used)
                  for name in ("own", "there"))  # fmt: skip
    value, store = step.value, f"{step.place} = {own};"
    if step.asked:
        value, store = f"{there} ? ({value}) : 0", f"if ({there}) {store}"
    made = f"{step.type} {own} = {value}; {_WAIT}; {store}"
    made += "" if _waits(_behind(step.statement), "__syncwarp") else f" {_WAIT};"
    made = f"{{ const bool {there} = {step.asked}; {made} }}" if step.asked else f"{{ {made} }}"
    node = step.statement
    lines = node.end_point[0] - node.start_point[0]
    return Edit(node.start_byte, node.end_byte, made + "\n" * lines)


def _stored_before(steps: list[_Step], memory: Mapping[str, _Memory]) -> Iterator[Edit]:
    """A wait behind each store among the statements in front of a step, and of what that is in."""
    whole, seen = {s.statement.id for s in steps}, set[int]()
    for step in steps:
        inner, around = step.statement, step.statement.parent
        while around is not None and around.type != "function_definition":
            before = around.named_children if around.type == "compound_statement" else ()
            for node in before:
                stores = node.end_byte <= inner.start_byte and _is_store(node, memory)
                behind = _behind(node)
                waited = _waits(behind, "__syncwarp") or _waits(behind, "__syncthreads")
                if stores and node.id not in whole | seen and not waited:
                    seen.add(node.id)
                    yield Edit(node.end_byte, node.end_byte, f" {_WAIT};")
            inner, around = around, around.parent
