"""Commands that the documents name: the script or target is there, and takes what stands behind it.

Scripts are read and not run: what an option is called stands in their text.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Never

import pytest

from optiml_magic.commands.parsers import cell_parser, line_parser

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.rglob("*.py"))
TABLE = BENCHMARKS / "README.md"
PAGES = [ROOT / "README.md", TABLE, *sorted((ROOT / "docs").rglob("*.md"))]
TOLD = [*PAGES, *SCRIPTS]  # scripts in what they say first
COMMAND = re.compile(r"(?:\$ )?(?:python benchmarks/|make |%{0,2}optiml )")
SCRIPT = re.compile(r"[a-z_]+(?:/[a-z_]+)?\.py\b")  # as the table of the benchmarks names one
SPAN = re.compile(r"`([^`]*)`")
SHAPE = ("nargs", "action", "dest")
NAMED = re.compile(r"\bbenchmarks/[\w/.*-]+\.(?:py|cu|md|json|jsonl|gz|txt|tsv)\b")


def text_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".md" else ast.get_docstring(ast.parse(text)) or ""


def commands(path: Path) -> Iterator[str]:
    """Those on lines of their own, with the lines that go on with one, and those within lines."""
    fenced, told = False, ""
    prose = []
    for line in text_of(path).splitlines():
        if path == TABLE:  # the first cell says what is run
            yield from (f"python benchmarks/{one}" for one in SPAN.findall(line.split(" | ")[0])
                        if SCRIPT.match(one))  # fmt: skip
        if line.startswith("```"):
            fenced = not fenced
        elif told and line.startswith(" " * 8):
            told += " " + line.strip()
            continue
        elif (fenced or line.startswith("    ")) and COMMAND.match(line.strip()):
            yield from [told] * bool(told)
            told = line.strip().split("  ")[0].split(" # ")[0]
            continue
        elif not fenced:
            prose.append(line)
        yield from [told] * bool(told)
        told = ""
    yield from [told] * bool(told)
    for span in SPAN.findall("\n".join(prose)):
        one = " ".join(span.split())
        if COMMAND.match(one):
            yield one


def words(command: str) -> list[str]:
    """Without what says that a word may be left out or come again."""
    return re.sub(r"\[,[^]]*\]|\.\.\.|[\[\]]", " ", command.removeprefix("$ ")).split()


class Parser(argparse.ArgumentParser):
    """Says what is wrong where argparse ends the process."""

    def error(self, message: str) -> Never:
        raise ValueError(message)


@cache
def taken(script: Path) -> Parser:
    """What a script takes: its arguments as they stand in its text, whatever their values."""
    parser = Parser(add_help=False)
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            more = {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg in SHAPE}
            parser.add_argument(*map(ast.literal_eval, node.args), **more)
    return parser


def unknown(command: str) -> str:
    """What is wrong with a command; nothing where it is one."""
    program, first, *rest = [*words(command), ""]
    rest = rest[:-1]
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return "" if first in targets else f"no target {first}"
    if program == "python":
        try:
            taken(ROOT / first).parse_args(rest)
        except (ValueError, OSError) as wrong:
            return str(wrong)
        return ""
    verbs = parser_of(program)
    if first not in verbs:
        return f"no {program} {first}"
    flags = {word for word in rest if word.startswith("--")}
    return ", ".join(sorted(flags - {*verbs[first]._option_string_actions}))


@cache
def parser_of(program: str) -> dict[str, argparse.ArgumentParser]:
    parser = line_parser() if program == "optiml" else cell_parser()
    (verbs,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(verbs.choices)


def test_what_is_told_to_be_run_can_be_run() -> None:
    told = [(path.relative_to(ROOT), command) for path in TOLD for command in commands(path)]
    assert len(told) > 200
    assert not [(*one, found) for one in told if (found := unknown(one[1]))]


def test_a_file_of_the_benchmarks_that_is_named_is_there() -> None:
    named = {(path.relative_to(ROOT), one) for path in TOLD for one in NAMED.findall(text_of(path))}
    records = re.findall(r"`(results/[^`]+)`", text_of(TABLE))
    named |= {(TABLE.relative_to(ROOT), f"benchmarks/{one}") for one in records}
    assert len(named) > 50
    assert not [one for one in named if not [*ROOT.glob(re.sub(r"[A-Z]{2,}", "*", one[1]))]]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python benchmarks/gpu/rates.py FOLDER [--seconds N]", ""),
        ("python benchmarks/gpu/rates.py FOLDER --hurry N", "unrecognized arguments: --hurry N"),
        ("python benchmarks/gpu/rates.py --seconds N", "arguments are required: folder"),
        ("python benchmarks/gpu/ratings.py", "No such file"),
        ("make test", ""),
        ("make haste", "no target haste"),
        ("optiml check TASK.py --json OUT", ""),
        ("optiml check TASK.py --hurry", "--hurry"),
        ("%%optiml optimise", "no %%optiml optimise"),
    ],
)
def test_what_is_wrong_is_seen(command: str, found: str) -> None:
    assert found in unknown(command)
    assert bool(found) == bool(unknown(command))
