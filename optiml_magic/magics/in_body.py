"""A cell's CUDA: what may follow, and what a built-in, a directive or a parameter means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from numbers import Number
from typing import Any

from tree_sitter import Node

from optiml_magic.errors import SourceError
from optiml_magic.kernels.builtins import AXES, BUILTINS
from optiml_magic.magics.offer import Offer, Word, words
from optiml_magic.source import syntax
from optiml_magic.source.dtypes import SCALARS
from optiml_magic.source.grammar import CLAUSES, FORMS, HEAD
from optiml_magic.source.lexer import lex
from optiml_magic.source.operators import FUNCTIONS, SM_COUNT

_CURSOR = "\x01"
_WORD = re.compile(r"\w*$", re.ASCII)
_MEMBER = re.compile(r"(\w*)\s*(?:\.|->)\s*$", re.ASCII)
_PRAGMA = re.compile(r"#\s*pragma\s+$")
_TUNED = re.compile(r"^\s*#\s*pragma\s+optiml\s+tune\s+(\w+)", re.MULTILINE)
_NAME = re.compile(r"(\w*)\s*$", re.ASCII)
_OF_BUFFERS = ("zero", "init", "swap", "size", "shape")
_AFTER = {"tune": ("in", "if"), "repeat": ("swap",), "launch": (*CLAUSES, "if", "else")}
_BASIC = ("auto", "bool", "char", "double", "float", "int", "void", "true", "false", "size_t")
_NAMED = ("preproc_def", "preproc_function_def", "alias_declaration", "enumerator")
_CONTEXTS = ("parameter_declaration", "optional_parameter_declaration")


def complete(text: str, offset: int) -> Offer:
    """What may be typed at an offset of a cell's body."""
    before = text[:offset]
    found = _WORD.search(before)
    assert found is not None
    fragment = found[0]
    where = before[: found.start()]
    line, code = _surroundings(before)
    if line is not None:
        head = line[: len(line) - len(fragment)]
        return Offer.of(fragment, _on_directive(head, text, fragment))
    if not code or fragment[:1].isdigit():
        return Offer(fragment)
    member = _MEMBER.search(where)
    return Offer.of(fragment, _members(member[1], text) if member else _code(text, fragment))


def about(text: str, offset: int, namespace: Mapping[str, Any]) -> str:
    """One line on what stands at an offset, or on the call around it; empty where unknown."""
    end = offset + len(re.match(r"\w*", text[offset:], re.ASCII)[0])  # type: ignore[index]  # it matches
    before = text[:end]
    line, code = _surroundings(before)
    word = _WORD.search(before)[0]  # type: ignore[index]  # it matches
    if line is not None:
        head = HEAD.match(line)
        first = re.match(r"\s*(\w+)", line[head.end() :]) if head else None
        name = word if word in FORMS else first[1] if first else ""
        if name in FORMS:
            return f"#pragma optiml {FORMS[name].usage}: {FORMS[name].means}"
    if line is None and not code:
        return ""
    if word in BUILTINS:
        return str(BUILTINS[word])
    if word:
        return _parameter(text, end, word, namespace)
    called = (name for name in _opened(before) if name in BUILTINS)
    return str(BUILTINS.get(next(called, ""), ""))


def _parameter(text: str, end: int, word: str, namespace: Mapping[str, Any]) -> str:
    """How the function around a place declares a parameter, and what the notebook has for it."""
    try:
        root = syntax.parse(text).root
    except SourceError:  # the command tells of it
        return ""
    at = len(text[:end].encode())
    before = [
        node
        for node in syntax.walk(root)
        if node.type == "function_declarator" and node.start_byte < at
    ]
    if not before or not _inside(text.encode()[before[-1].end_byte : at].decode()):
        return ""
    names = [node for node in syntax.walk(before[-1]) if node.type == "identifier"]
    for node in names:
        if _text(node) == word and _declares(node) and _kind(node) == "param":
            return f"{_declaration(node)}: parameter of {_text(names[0])}{_held(word, namespace)}"
    return ""


def _inside(body: str) -> bool:
    """Whether what follows a function's parameters is still in its body, or not yet."""
    code = lex(body).code
    return not code.strip() or code.count("{") > code.count("}")


def _declaration(name: Node) -> str:
    whole: Node | None = name
    while whole is not None and whole.type not in _CONTEXTS:
        whole = whole.parent
    return " ".join(_text(whole or name).split())


def _held(name: str, namespace: Mapping[str, Any]) -> str:
    value = namespace.get(name)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"; {name} of the notebook is {getattr(value, 'dtype', '')}{list(shape)}"
    return f"; {name} of the notebook is {value}" if isinstance(value, Number) else ""


def parameters(text: str) -> list[str]:
    """The names of the parameters of kernels and other functions."""
    return [name for name, kind in _names(text).items() if kind == "param"]


def _surroundings(before: str) -> tuple[str | None, bool]:
    """The preprocessor line that the cursor is on, or None; and whether it is in code.

    In comments and strings it is on no line, and in no code.
    """
    lexed = lex(before + _CURSOR)
    if lexed.lines and lexed.lines[-1].end > len(before):
        line = lexed.lines[-1].text
        return (line[:-1], False) if line.endswith(_CURSOR) else (None, False)
    return None, lexed.code.endswith(_CURSOR)


def _opened(before: str) -> Iterator[str]:
    """What stands before each bracket that is open, the innermost first; empty for nothing."""
    closed = 0
    for at in range(len(before) - 1, -1, -1):
        if before[at] in ")]":
            closed += 1
        elif before[at] in "([":
            closed -= 1
            if closed < 0:
                closed = 0
                name = _NAME.search(before[:at])
                yield name[1] if name else ""
        elif before[at] in ";{}":
            return


def _on_directive(head: str, text: str, fragment: str) -> list[Word]:
    """What may follow on a preprocessor line; ``head`` is what is there before the fragment."""
    if head.lstrip() == "#":
        return words([w[1:] for w in _keywords() if w[0] == "#"] + ["pragma"])
    if _PRAGMA.fullmatch(head):
        return words(["optiml", "unroll"])
    ours = HEAD.match(head)
    if ours is None:
        other = re.match(r"#\s*(include|pragma|error|ifn?def)\b", head)
        return [] if other else _code(text, fragment)
    rest = head[ours.end() :]
    first = re.match(r"\s*(\w+)", rest, re.ASCII)
    if first is None:
        return words(FORMS)
    return _after(first[1], rest[first.end() :], text)


def _after(word: str, rest: str, text: str) -> list[Word]:
    names = _names(text)
    buffers = words((n for n, kind in names.items() if kind == "param"), "param")
    tuned = words(dict.fromkeys(_TUNED.findall(text)), "instance")
    expression = [*tuned, *buffers, *words(FUNCTIONS, "function"), Word(SM_COUNT, "instance")]
    inside = next(_opened(word + rest), None)
    if inside is not None:
        return buffers if inside in _OF_BUFFERS else expression
    match word:
        case "launch":
            own = words((n for n, kind in names.items() if kind == "function"), "function")
            return [*(own if not rest.strip() else []), *words(_AFTER[word])]
        case "scratch":
            return words(SCALARS, "class") if rest.strip() else []
        case "require":
            return expression
        case "size":
            return expression if "=" in rest else buffers
        case "tune" if "if" in rest.split():
            return expression
        case _:
            return words(_AFTER.get(word, ()) if rest.strip() else ())


def _members(owner: str, text: str) -> list[Word]:
    if owner in BUILTINS:
        return words(AXES[:3], "instance") if BUILTINS[owner].kind == "instance" else []
    own = (name for name, kind in _names(text).items() if kind == "field")
    return words([*own, *AXES], "instance")


def _code(text: str, fragment: str) -> list[Word]:
    """The cell's own names first; the one that is being typed is not a name yet."""
    own = [
        Word(name, "instance" if kind == "field" else kind)
        for name, kind in _names(text).items()
        if name != fragment or len(re.findall(rf"\b{re.escape(name)}\b", text)) > 1
    ]
    tuned = words(dict.fromkeys(_TUNED.findall(text)), "instance")
    known = [Word(b.name, b.kind) for b in BUILTINS.values() if b.name != "unroll"]
    keywords = words(w for w in _keywords() if w[0] not in "#_")
    return [*own, *tuned, *known, *words(_BASIC), *keywords]


@lru_cache(maxsize=1)
def _keywords() -> tuple[str, ...]:
    """The words that the grammar of the language has."""
    language = syntax.language()
    kinds = {
        language.node_kind_for_id(each) or ""
        for each in range(language.node_kind_count)
        if language.node_kind_is_visible(each) and not language.node_kind_is_named(each)
    }
    return tuple(sorted(kind for kind in kinds if re.fullmatch(r"#?[A-Za-z_]\w+", kind)))


@lru_cache(maxsize=16)
def _names(text: str) -> Mapping[str, str]:
    """The names that a text declares, in order, also one with errors; and what each is."""
    found: dict[str, str] = {}
    try:
        root = syntax.parse(text).root
    except SourceError:  # the command tells of it
        return found
    for name, kind in _declared(root):
        found.setdefault(name, kind)
    return found


def _declared(root: Node) -> Iterator[tuple[str, str]]:
    for node in syntax.walk(root):
        if node.type == "type_identifier":
            above = node.parent
            if above is not None and above.child_by_field_name("name") == node:
                yield _text(node), "class"
        elif node.type in ("identifier", "field_identifier") and _declares(node):
            yield _text(node), _kind(node)


def _declares(node: Node) -> bool:
    above = node.parent
    if above is None:
        return False
    if above.type in _NAMED:
        return above.child_by_field_name("name") == node
    return above.type in ("reference_declarator", "preproc_params") or (
        above.child_by_field_name("declarator") == node
    )


def _kind(node: Node) -> str:
    above = node.parent
    while above is not None and above.type.endswith("declarator"):
        if above.type == "function_declarator":
            return "function"
        above = above.parent
    if above is not None and above.type in _CONTEXTS:
        return "param"
    if above is not None and above.type == "preproc_function_def":
        return "function"
    return "field" if node.type == "field_identifier" else "instance"


def _text(node: Node) -> str:
    return (node.text or b"").decode()
