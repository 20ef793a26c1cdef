"""Which pointer parameters a function reads and writes.

One pass over the function, blind to the order of statements: every local that may hold a pointer
is followed to the parameters it may come from, then every expression that designates memory is a
read, a write or both by where it stands. What cannot be followed makes a parameter uncertain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from optiml_magic.source.aliases import resolve, type_aliases
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.formals import Formal, declared, formals, text_of
from optiml_magic.source.pointers import Pointers
from optiml_magic.source.syntax import name_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

VALUE, WRITE, BOTH, PLACE = "value", "write", "both", "place"
"""How an expression is used: its value, stored to, both, or only as a place (``&x``, ``r = x``)."""

_MAX_CALLS = 40
_UNEVALUATED = frozenset({"sizeof_expression", "decltype", "alignof_expression", "type_descriptor"})
_READERS = re.compile(r"__ld(?:g|ca|cs|cg|cv|lu)")
_WRITERS = re.compile(r"__st(?:wb|cg|cs|wt)")
_HARMLESS = re.compile(
    r"__prefetch\w*|prefetch\w*|__is[A-Z]\w*|__cvta_\w+|assert|printf|__builtin_\w+|[sd]izeof"
)
_USES = {  # how each argument is used by functions that every kernel may call
    "memcpy": (WRITE, VALUE),
    "memmove": (WRITE, VALUE),
    "memset": (WRITE,),
    "__pipeline_memcpy_async": (WRITE, VALUE),
    "load_matrix_sync": (None, VALUE),
    "store_matrix_sync": (WRITE,),
}
_ASSUMING = frozenset({"__builtin_assume_aligned", "assume_aligned", "launder"})
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_WORD = re.compile(r"\w+")
_ASM_READS = re.compile(r"\b(?:ld|atom|cp\.async|ldmatrix|ldu)\b")
_ASM_WRITES = re.compile(r"\b(?:st|red|atom)\b")


@dataclass(frozen=True)
class Access:
    reads: bool = False
    writes: bool = False
    certain: bool = True


@dataclass
class _Seen:
    """What was seen of each parameter so far."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)

    def add(self, names: Iterable[str], use: str | None) -> None:
        if use in (VALUE, BOTH):
            self.reads.update(names)
        if use in (WRITE, BOTH):
            self.writes.update(names)

    def add_access(self, names: Iterable[str], access: Access) -> None:
        names = set(names)
        self.reads |= names if access.reads else set()
        self.writes |= names if access.writes else set()
        self.unclear |= names if not access.certain else set()


class Accesses:
    """The functions of one text and what each does with its parameters."""

    def __init__(self, syntax: Syntax) -> None:
        self.functions: dict[str, list[Node]] = {}
        for node in walk(syntax.root):
            if node.type == "function_definition" and (name := name_of(node)):
                self.functions.setdefault(name.split("<")[0], []).append(node)
        self.macros = _macros(syntax.root)
        self.dynamic_shared = frozenset(_dynamic_shared(syntax.root))
        self.aliases = type_aliases(syntax)
        self.returning = _ASSUMING | {
            name for name, nodes in self.functions.items() if any(map(_returns_pointer, nodes))
        }
        self._known: dict[int, Mapping[str, Access]] = {}
        self._depth = 0

    def of(self, function: Node) -> Mapping[str, Access]:
        """Access by parameter name, for pointers, references and structs that may hold pointers."""
        if function.id not in self._known:
            # A recursive call meets this entry: nothing is certain of what is still being read.
            names = [formal.name for formal in formals(function)]
            self._known[function.id] = dict.fromkeys(names, Access(certain=False))
            self._depth += 1
            self._known[function.id] = _Reader(self, function).accesses()
            self._depth -= 1
        return self._known[function.id]

    def formals(self, function: Node) -> tuple[Formal, ...]:
        """The parameters of a function with the aliases of their types followed."""
        found = []
        for formal in formals(function):
            spelled, depth, const = resolve(formal.type, self.aliases)
            found.append(
                replace(
                    formal,
                    type=spelled,
                    depth=formal.depth + depth,
                    const=formal.const or const,
                )
            )
        return tuple(found)

    def uses_dynamic_shared(self, function: Node) -> bool:
        """Whether a function, or one of this text that it calls, names ``extern __shared__``."""
        seen: set[str] = set()
        stack = [function]
        while stack and self.dynamic_shared:
            words = set(_WORD.findall(text_of(stack.pop())))
            if words & self.dynamic_shared:
                return True
            for name in (words & self.functions.keys()) - seen:
                seen.add(name)
                stack += self.functions[name]
        return False

    def macro_words(self, body: Node | None) -> frozenset[str]:
        """The words that macros used in a body bring in, behind the back of its tree."""
        fresh = set(_WORD.findall(text_of(body))) & self.macros.keys()
        found: set[str] = set()
        while fresh:
            brought = set().union(*(self.macros[name] for name in fresh)) - found
            found |= brought
            fresh = brought & self.macros.keys()
        return frozenset(found)

    def too_deep(self) -> bool:
        return self._depth > _MAX_CALLS

    def called(self, name: str, count: int) -> list[Node]:
        """The functions of this text that a call with ``count`` arguments may mean."""
        found = []
        for function in self.functions.get(name, ()):
            given = formals(function)
            needed = sum(not formal.optional for formal in given)
            if needed <= count <= len(given):
                found.append(function)
        return found


class _Reader:
    """Reads one function."""

    def __init__(self, accesses: Accesses, function: Node) -> None:
        self.all = accesses
        self.formals = accesses.formals(function)
        self.body = function.child_by_field_name("body")
        self.pointers = Pointers(self.formals, self.body, accesses.returning)
        self.seen = _Seen()

    def accesses(self) -> Mapping[str, Access]:
        self.seen.unclear |= self.pointers.unclear
        for word in self.all.macro_words(self.body):
            self.seen.unclear |= self.pointers.targets.get(word, frozenset())
        stack = [(self.body, VALUE)] if self.body is not None else []
        while stack:
            stack.extend(self.visit(*stack.pop()))
        return {formal.name: self.access(formal) for formal in self.formals}

    def access(self, formal: Formal) -> Access:
        name = formal.name
        return Access(
            name in self.seen.reads, name in self.seen.writes, name not in self.seen.unclear
        )

    def visit(self, node: Node, use: str) -> list[tuple[Node, str]]:
        """Record what this node does; give the parts to visit and how each is used."""
        kind = node.type
        if kind in _UNEVALUATED:
            return []
        if kind == "ERROR" or node.is_missing:
            self.seen.unclear |= self.pointers.mentioned(node)
            return []
        if kind == "identifier":
            self.seen.add(self.pointers.referred(text_of(node)), use)
            return []
        if kind in ("subscript_expression", "field_expression"):
            return self.visit_place(node, use)
        if kind == "pointer_expression":
            argument = node.child_by_field_name("argument")
            if argument is None:
                return []
            if text_of(node.child_by_field_name("operator")) == "&":
                return [(argument, PLACE)]
            return self.visit_place(node, use)
        if kind == "parenthesized_expression":
            return [(child, use) for child in node.named_children]
        if kind == "assignment_expression":
            return self.visit_assignment(node)
        if kind == "update_expression":
            return [(child, BOTH) for child in node.named_children]
        if kind == "conditional_expression":
            return self.visit_conditional(node, use)
        if kind == "call_expression":
            return self.visit_call(node, use)
        if kind == "gnu_asm_expression":
            return self.visit_asm(node)
        if kind == "init_declarator":
            shape = declared(node.child_by_field_name("declarator"))
            value = node.child_by_field_name("value")
            if value is not None and value.type in ("argument_list", "initializer_list"):
                self.visit_constructor(node, value.named_children)
            return [(value, PLACE if shape.reference else VALUE)] if value is not None else []
        if kind == "for_range_loop" and (right := node.child_by_field_name("right")) is not None:
            self.seen.unclear |= self.pointers.mentioned(right)
        return [(child, VALUE) for child in node.named_children]

    def visit_constructor(self, node: Node, arguments: list[Node]) -> None:
        """An object may keep a reference to what it is made from, as ``atomic_ref`` does."""
        made = node.parent.child_by_field_name("type") if node.parent is not None else None
        name = callee(made)
        for at, argument in enumerate(arguments):
            places = self.pointers.places(argument)
            kept = name.endswith("_ref") or any(
                self.all.formals(constructor)[at].reference
                for constructor in self.all.called(name, len(arguments))
            )
            self.seen.unclear |= places if kept else set()

    def visit_place(self, node: Node, use: str) -> list[tuple[Node, str]]:
        """An expression that designates memory: ``p[i]``, ``*p``, ``p->x`` or ``place.x``."""
        if use != PLACE:
            self.seen.add(self.pointers.places(node), use)
        base = node.child_by_field_name("argument")
        parts = [(child, VALUE) for child in node.named_children if child != base]
        if base is not None:
            inner = self.pointers.is_place(base) and bool(self.pointers.places(base))
            parts.append((base, PLACE if inner or _is_member(node) else VALUE))
        return parts

    def visit_assignment(self, node: Node) -> list[tuple[Node, str]]:
        left, right = (node.child_by_field_name(side) for side in ("left", "right"))
        plain = text_of(node.child_by_field_name("operator")) == "="
        parts = [(left, WRITE if plain else BOTH), (right, VALUE)]
        return [(part, use) for part, use in parts if part is not None]

    def visit_conditional(self, node: Node, use: str) -> list[tuple[Node, str]]:
        condition = node.child_by_field_name("condition")
        return [(child, VALUE if child == condition else use) for child in node.named_children]

    def visit_asm(self, node: Node) -> list[tuple[Node, str]]:
        """Pointers among the operands are used as the instructions' names say."""
        code = text_of(node.child_by_field_name("assembly_code"))
        reads, writes = bool(_ASM_READS.search(code)), bool(_ASM_WRITES.search(code))
        held = self.pointers.mentioned(node)
        self.seen.add_access(held, Access(reads, writes, certain=reads or writes))
        inputs = node.child_by_field_name("input_operands")
        return [(inputs, VALUE)] if inputs is not None else []

    def visit_call(self, node: Node, use: str) -> list[tuple[Node, str]]:
        function = node.child_by_field_name("function")
        listed = node.child_by_field_name("arguments")
        arguments = listed.named_children if listed is not None else []
        arguments = [part for part in arguments if part.type != "comment"]
        name = callee(function)
        if name.endswith("_cast"):
            keeps = "&" in text_of(function)
            return [(part, use if keeps else VALUE) for part in arguments]
        parts: list[tuple[Node, str]] = [(part, VALUE) for part in arguments]
        if function is not None and function.type == "field_expression":
            self.seen.unclear |= self.pointers.mentioned(function)
            parts.append((function, PLACE))
        elif function is not None and function.type == "identifier":
            self.seen.unclear |= self.pointers.held(function)
        if name.startswith("atomic") and arguments:
            self.seen.add(self.pointers.held(arguments[0]), BOTH)
            return parts
        if name == "swap":
            return [(part, BOTH) for part in arguments]
        if _HARMLESS.fullmatch(name):
            return parts
        uses = _USES.get(name)
        if _READERS.fullmatch(name) or _WRITERS.fullmatch(name):
            uses = (VALUE,) if _READERS.fullmatch(name) else (WRITE,)
        if uses is not None:
            for argument, its_use in zip(arguments, uses, strict=False):
                self.seen.add(self.pointers.held(argument), its_use)
            return parts
        return self.visit_arguments(name, arguments) + parts[len(arguments) :]

    def visit_arguments(self, name: str, arguments: list[Node]) -> list[tuple[Node, str]]:
        """Follow pointers into a function of this text; of any other, nothing is known."""
        called = self.all.called(name, len(arguments))
        if not called or self.all.too_deep():
            for argument in arguments:
                self.seen.unclear |= self.pointers.held(argument)
            return [(argument, VALUE) for argument in arguments]
        parts = []
        for at, argument in enumerate(arguments):
            use = VALUE
            for function in called:
                formal = self.all.formals(function)[at]
                access = self.all.of(function).get(formal.name, Access(certain=False))
                held = self.pointers.held(argument)
                if formal.reference:
                    held, use = held | self.pointers.places(argument), PLACE
                elif held and not formal.may_point:
                    access = Access(certain=False)
                self.seen.add_access(held, access)
            parts.append((argument, use))
        return parts


def callee(function: Node | None) -> str:
    """The bare name of what is called, without scope and template arguments."""
    while function is not None and function.type not in _NAMES:
        inner = function.child_by_field_name("name") or function.child_by_field_name("field")
        if inner is None:
            return ""
        function = inner
    return text_of(function)


def _returns_pointer(function: Node) -> bool:
    """Whether a result may point: a pointer, a reference, or a type that may hold one."""
    shape = declared(function.child_by_field_name("declarator"))
    spelled = text_of(function.child_by_field_name("type"))
    return (
        shape.depth > 0
        or shape.reference
        or (spelled != "void" and element_dtype(spelled)[0] is None)
    )


def _is_member(node: Node) -> bool:
    return node.type == "field_expression" and any(c.type == "." for c in node.children)


def _dynamic_shared(root: Node) -> Iterator[str]:
    for node in walk(root):
        if node.type == "declaration":
            words = _WORD.findall(text_of(node).partition("[")[0])
            if "extern" in words and "__shared__" in words:
                yield from (declared(d).name for d in node.children_by_field_name("declarator"))


def _macros(root: Node) -> dict[str, frozenset[str]]:
    """The words in the body of each macro of a text, its own parameters left out."""
    found: dict[str, frozenset[str]] = {}
    for node in walk(root):
        if node.type in ("preproc_def", "preproc_function_def"):
            name = text_of(node.child_by_field_name("name"))
            words = frozenset(_WORD.findall(text_of(node.child_by_field_name("value"))))
            own = frozenset(_WORD.findall(text_of(node.child_by_field_name("parameters"))))
            found[name] = found.get(name, frozenset()) | (words - own)
    return found
