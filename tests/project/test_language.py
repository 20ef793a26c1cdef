"""What users read is plain English in one style; what a machine can see of that, it keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "optiml_magic").rglob("*.py"))
ADVICE = ("fix", "remedy")


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _texts(node: ast.expr) -> Iterator[tuple[str, str]]:
    """How each text that an expression may come to begins and ends; "" where code decides it."""
    match node:
        case ast.Constant(value=str(text)) if text:
            yield text, text
        case ast.JoinedStr(values=values) if values:
            edges = [
                v.value if isinstance(v, ast.Constant) else "" for v in (values[0], values[-1])
            ]
            yield str(edges[0]), str(edges[1])
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
        case ast.BoolOp(values=several):
            for one in several:
                yield from _texts(one)
        case ast.BinOp(left=first, op=ast.Add(), right=last):
            begins, ends = list(_texts(first)), list(_texts(last))
            yield from ((b, e) for b, _ in begins for _, e in ends)


def _advice() -> Iterator[tuple[str, str, str]]:
    """Where each ``fix=`` is, how it begins and how it ends."""
    for path in SOURCES:
        for call in ast.walk(_parsed(path)):
            for given in _given(call) if isinstance(call, ast.Call) else ():
                where = f"{path.relative_to(ROOT)}:{given.lineno}"
                yield from ((where, *text) for text in _texts(given))


def _given(call: ast.Call) -> list[ast.expr]:
    """What a call says to do: by the word ``fix``, or as the last argument of these two."""
    named = [keyword.value for keyword in call.keywords if keyword.arg in ADVICE]
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return named + (call.args[1:2] if name in ("RefusalError", "error") else [])


# Words that begin a statement about things, where a fix is something to do.
STATEMENTS = {
    "it",
    "its",
    "the",
    "a",
    "an",
    "there",
    "this",
    "these",
    "that",
    "they",
    "no",
    "known",
}


def test_a_fix_is_an_imperative_in_lower_case_without_a_full_stop() -> None:
    found = list(_advice())
    assert len(found) > 200
    bad = [
        (where, begins, ends)
        for where, begins, ends in found
        if begins[:1].isupper()
        or begins.partition(" ")[0] in STATEMENTS
        or begins.startswith("-")
        or ends.endswith("!")
        or (ends.endswith(".") and not ends.endswith("..."))
    ]
    assert not bad


# Each was read as a riddle by somebody who did not know the code.
RIDDLES = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"hears? no button": "say what to press instead",
    r"\bwhich side strode\b": "which side jumps",
    r"\bit is no (?!longer|more|other)[a-z]": "it is not a",
    r"\bsay --": "pass --",
    r"\bforetell": "predict",
    r"\bwithout a look at\b": "without checking",
}


def _messages() -> Iterator[tuple[str, str]]:
    """Every text of the package, docstrings among them, behind where it is."""
    for path in SOURCES:
        for node in ast.walk(_parsed(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_text_of_the_package_is_a_riddle() -> None:
    found = [
        f"{where}: {text[:100]} ({remedy})"
        for where, text in _messages()
        for riddle, remedy in RIDDLES.items()
        if re.search(riddle, text)
    ]
    assert not found


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("riddle", RIDDLES)
def test_no_page_is_a_riddle(riddle: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in PAGES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(riddle, line)
    ]
    assert not found, RIDDLES[riddle]
