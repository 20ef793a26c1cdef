"""A struct that is passed by value, as a parameter for each of its members.

One that holds pointers is always so, one of numbers where host code launches its kernel.

``__global__ void f(Matrix a)`` takes addresses inside of ``a``, which no array of the host can
hold. Afterwards it takes ``int a_width, float* a_elements``: what every other stage understands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from optiml_magic.kernels.hostbraces import braces
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.structs import Structs
from optiml_magic.source.aliases import resolve, type_aliases
from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import declared, parameters, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.program import parse_program
from optiml_magic.source.syntax import Syntax, in_macros, name_of, parse, passed_to, walk

_BROAD = frozenset({"array_declarator", "function_declarator", "reference_declarator"})

_NAMES = frozenset({"identifier", "field_expression"})


@dataclass(frozen=True)
class _Member:
    """``before`` and ``after`` are what stands around its name where it is declared."""

    name: str
    before: str
    after: str
    pointer: bool

    def parameter(self, name: str) -> str:
        return f"{self.before}{name}{self.after}"


@dataclass(frozen=True)
class _Packed:
    """A parameter that is such a struct, with the names that its members have as parameters."""

    node: Node
    name: str
    type: str
    names: Mapping[str, str]
    members: tuple[_Member, ...]


def unpacked(text: str) -> tuple[str, tuple[Note, ...]]:
    """The text with such parameters taken apart, and a note for each; no line of it moves.

    One whose struct has members that no parameter can be, such as arrays, stays as it is.
    """
    if "struct" not in text and "class" not in text:
        return text, ()
    syntax = parse(text)
    structs = Structs(syntax, type_aliases(syntax))
    launched = set(_launched_by_host(syntax))
    taken = {text_of(n) for n in walk(syntax.root) if n.type in ("identifier", "type_identifier")}
    edits, notes, kernels = list[Edit](), list[Note](), dict[str, dict[str, list[str]]]()
    places: dict[str, dict[int, tuple[_Member, ...]]] = {}
    for function in _kernels(syntax):
        kernel, body = name_of(function), function.child_by_field_name("body")
        if body is None:
            continue
        wanted = kernel in launched
        for one in _packed(function, structs, type_aliases(syntax), taken, wanted):
            at = parameters(function).index(one.node)
            places.setdefault(kernel, {})[at] = one.members
            names = list(one.names.values())
            edits += _apart(one, syntax, body)
            kernels.setdefault(kernel, {})[one.name] = names
            told = f"`{one.type} {one.name}` of `{kernel}` is passed as {', '.join(names)}"
            notes.append(Note("unpacked", told, one.name))
    if not edits:
        return text, ()
    edits += _prototypes(syntax, kernels)
    edits += _calls(syntax, places)
    return _launched(apply(text, edits), kernels), tuple(notes)


def _kernels(syntax: Syntax) -> Iterator[Node]:
    for node in walk(syntax.root):
        if node.type == "function_definition" and "__global__" in _head(node):
            yield node


def _head(node: Node) -> str:
    declarator = node.child_by_field_name("declarator")
    end = declarator.start_byte if declarator is not None else node.end_byte
    return (node.text or b"")[: end - node.start_byte].decode(errors="replace")


def _packed(
    function: Node, structs: Structs, aliases: Mapping[str, str], taken: set[str], numbers: bool
) -> Iterator[_Packed]:
    """Its structs that hold pointers, and those of nothing but ``numbers`` where that is asked."""
    for node in parameters(function):
        shape = declared(node.child_by_field_name("declarator"))
        spelled, depth, _ = resolve(text_of(node.child_by_field_name("type")), aliases)
        body = structs.body(spelled) if shape.name else None
        if body is None or depth or shape.depth or shape.reference:
            continue
        members = list(_members(body))
        if None in members or not any(member and member.pointer for member in members):
            plain = all(member and scalar_dtype(member.before.strip()) for member in members)
            fields = all(n.type in ("comment", "field_declaration") for n in body.named_children)
            if None in members or not members or not (numbers and plain and fields):
                continue
        names = {}
        for member in filter(None, members):
            own, more = f"{shape.name}_{member.name}", 1
            while own in taken:
                more += 1
                own = f"{shape.name}_{member.name}_{more}"
            taken.add(own)
            names[member.name] = own
        yield _Packed(node, shape.name, spelled, names, tuple(filter(None, members)))


def _members(body: Node) -> Iterator[_Member | None]:
    """Those that hold something; None for one that no parameter can be."""
    for node in body.named_children:
        if node.type != "field_declaration":
            plain = node.type in ("comment", "access_specifier", "function_definition")
            if not plain:
                yield None
            continue
        declarators = node.children_by_field_name("declarator")
        if not declarators or any(child.type == "bitfield_clause" for child in node.children):
            yield None
            continue
        start = (node.text or b"")[: declarators[0].start_byte - node.start_byte].decode()
        for declarator in declarators:
            kinds = {inner.type for inner in walk(declarator)}
            shape = declared(declarator)
            if shape.function and "pointer_declarator" not in kinds:
                continue  # a method
            if kinds & _BROAD or "static" in start or not shape.name:
                yield None
                continue
            whole = text_of(declarator)
            at = re.search(rf"\b{re.escape(shape.name)}\b(?!.*\b{re.escape(shape.name)}\b)", whole)
            if at is None:
                yield None
                continue
            head = f"{' '.join(start.split())} {whole[: at.start()]}".replace(" *", "*")
            head = head if head.endswith((" ", "*")) else f"{head} "
            head = f"{head} " if head.endswith("*") else head
            yield _Member(shape.name, head, whole[at.end() :], shape.depth > 0)


def _apart(packed: _Packed, syntax: Syntax, body: Node) -> Iterator[Edit]:
    """The members as parameters, and each use by its member; else the struct made of them again."""
    spelled = (member.parameter(packed.names[member.name]) for member in packed.members)
    yield Edit(packed.node.start_byte, packed.node.end_byte, ", ".join(spelled))
    uses = [n for n in walk(body) if n.type == "identifier" and text_of(n) == packed.name]
    found = [_use(node) for node in uses]
    hidden = in_macros(syntax, packed.name)
    if not hidden and all(use is not None and text_of(use[1]) in packed.names for use in found):
        for node, field in filter(None, found):
            yield Edit(node.start_byte, node.end_byte, packed.names[text_of(field)])
        return
    given = "".join(f" {packed.name}.{name} = {own};" for name, own in packed.names.items())
    at = body.start_byte + 1
    yield Edit(at, at, f" {packed.type} {packed.name};{given}")


def _use(name: Node) -> tuple[Node, Node] | None:
    """The expression ``a.member`` that a name stands in, and the member's; None for another use."""
    node, parent = name, name.parent
    while parent is not None and parent.type == "parenthesized_expression":
        node, parent = parent, parent.parent
    if parent is None or parent.type != "field_expression":
        return None
    field = parent.child_by_field_name("field")
    dotted = any(child.type == "." for child in parent.children)
    owner = parent.child_by_field_name("argument")
    return (parent, field) if field is not None and dotted and owner == node else None


def _launched_by_host(syntax: Syntax) -> Iterator[str]:
    """The kernels that host code of the text launches."""
    for node in walk(syntax.root):
        if node.type == "kernel_call_syntax" and node.parent is not None:
            function = text_of(node.parent.child_by_field_name("function"))
            yield split_name(function)[0].rpartition("::")[2]


def _prototypes(syntax: Syntax, kernels: Mapping[str, object]) -> Iterator[Edit]:
    """Declarations ahead of the kernels, which would declare others now, taken away."""
    for node in walk(syntax.root):
        if node.type == "declaration" and "__global__" in _head(node) and name_of(node) in kernels:
            removed = node.text or b""
            yield Edit(node.start_byte, node.end_byte, "\n" * removed.count(b"\n"))


def _calls(
    syntax: Syntax, places: Mapping[str, Mapping[int, tuple[_Member, ...]]]
) -> Iterator[Edit]:
    """Launches of host functions, which pass the members of what they passed."""
    for node in walk(syntax.root):
        call = node.parent
        if node.type != "kernel_call_syntax" or call is None:
            continue
        own = split_name(text_of(call.child_by_field_name("function")))[0].rpartition("::")[2]
        given = passed_to(call)
        for at, members in places.get(own, {}).items():
            if at < len(given):
                whole = text_of(given[at])
                whole = whole if given[at].type in _NAMES else f"({whole})"
                by_name = {member.name: f"{whole}.{member.name}" for member in members}
                listed = braces(given[at])
                if listed is not None:
                    by_name = _listed(listed, [member.name for member in members]) or by_name
                spelled = ", ".join(by_name.values())
                yield Edit(given[at].start_byte, given[at].end_byte, spelled)


def _listed(listed: Node, names: list[str]) -> dict[str, str]:
    """The members that ``{n, x}`` gives in place of a struct, where it gives all of them."""
    values = [one for one in listed.named_children if one.type != "comment"]
    pairs = [one.child_by_field_name("designator") for one in values]
    own = [text_of(pair).removeprefix(".") if pair is not None else "" for pair in pairs]
    if len(values) != len(names) or own not in ([""] * len(names), names):
        return {}
    parts = [text_of(one.child_by_field_name("value") or one) for one in values]
    return dict(zip(names, parts, strict=True))


def _launched(text: str, kernels: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Launches that list the arguments, with the members in the place of the struct."""
    edits = []
    for launch in parse_program(text).launches:
        own = split_name(launch.kernel)[0] if launch.kernel else next(iter(kernels))
        members = kernels.get(own.rpartition("::")[2])
        if members is None or launch.args is None:
            continue
        names = [n for arg in launch.args for n in members.get(str(arg), [str(arg)])]
        new = replace(launch, args=tuple(parse_expression(name) for name in names))
        start, end = (len(text[:at].encode()) for at in (launch.start, launch.end))
        edits.append(Edit(start, end, str(new)))
    return apply(text, edits)
