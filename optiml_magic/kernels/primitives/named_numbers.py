"""Numbers that a text names outside of all functions are macros: ``constexpr int N = 1024;``.

A macro is its number wherever it stands, so that rules see what they see of a number in the text,
such as by which the index of a thread is taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.lexer import Lexed, lex
from optiml_magic.source.macros import outside, whole_numbers
from optiml_magic.source.program import Program, parse_program

_CONSTANT = re.compile(
    r"^[ \t]*(?=[^;={]*\bconst(?:expr)?\b)(?:(?:static|inline|const|constexpr)\s+)+"
    r"int\s+(?:const\s+)?(?P<first>[A-Za-z_]\w*)\s*=[^;{},]*;[ \t]*$",
    re.ASCII | re.MULTILINE,
)
_UNNAMED = re.compile(r"^[ \t]*enum\s*\{(?P<names>[^{};]*)\}\s*;[ \t]*$", re.ASCII | re.MULTILINE)
_GREATEST = 2**31 - 1
_DECIDES = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "undef"})
_TYPES = r"\b(?:unsigned|int|long|short|char|bool|auto|float|double|void|\w+_t|dim3|\w+[1-4])"
# Where it is a member, has an address, is called or given a value, is caught, or declared again.
_OTHERWISE = "|".join(
    (
        r"(?:\.|->|::|(?<!&)&)\s*{0}\b",
        r"\b{0}\b\s*(?:\(|::|=(?!=))",
        r"\[[^\[\]]*\b{0}\b[^\[\]]*\]\s*\(",
        _TYPES + r"\s*(?:const\b\s*)?[*&]+\s*(?:const\b\s*|__restrict__\s*)*{0}\b",
        _TYPES + r"\s+[^;(){{}}]*,\s*[*&]*\s*{0}\b",
        r"\b(?!return\b|case\b|else\b)[A-Za-z_]\w*\s+{0}\b",
    )
)


def named_numbers(program: Program) -> Program:
    """The program with macros for whole numbers outside of functions, where they are just that."""
    if "const" not in program.text and "enum" not in program.text:
        return program
    lexed = lex(program.text)
    known, text, edits = whole_numbers(lexed), program.text, list[Edit]()
    last = max((line.start for line in lexed.lines if line.word == "include"), default=0)
    for start, end, names in _declared(lexed):
        before = lexed.code[:start].rstrip()[-1:]
        if start < last or before not in {"", ";", "}"}:  # a header or a template has it, too
            continue
        rest = lexed.code[:start] + " " * (end - start) + lexed.code[end:]
        if all(abs(known.get(n, 2**31)) <= _GREATEST and _plain(n, rest, lexed) for n in names):
            words = "\n".join(f"#define {n} {_shown(known[n])}" for n in names)
            at, until = (len(text[:place].encode()) for place in (start, end))
            edits.append(Edit(at, until, words))
    return parse_program(apply(text, edits)) if edits else program


def _declared(lexed: Lexed) -> Iterator[tuple[int, int, list[str]]]:
    """Where declarations stand that are lines of their own, and what they name."""
    shown = outside(lexed)
    for constant in _CONSTANT.finditer(shown):
        yield *_trimmed(constant), [constant["first"]]
    for unnamed in _UNNAMED.finditer(lexed.code):
        if shown[_trimmed(unnamed)[0]] != "e":
            continue
        parts = [part.partition("=")[0].strip() for part in unnamed["names"].split(",")]
        yield *_trimmed(unnamed), [part for part in parts if part]


def _trimmed(found: re.Match[str]) -> tuple[int, int]:
    words = found[0]
    start = found.start() + len(words) - len(words.lstrip())
    return start, start + len(words.strip())


def _plain(name: str, rest: str, lexed: Lexed) -> bool:
    """Whether a name stands for its number alone wherever else a text has it."""
    word = re.compile(rf"\b{name}\b", re.ASCII)
    if re.search(_OTHERWISE.format(name), rest, re.ASCII):
        return False
    return not any(
        word.search(line.text) and (line.word in _DECIDES or "unroll" in line.text)
        for line in lexed.lines
    )


def _shown(number: int) -> str:
    return str(number) if number >= 0 else f"({number})"
