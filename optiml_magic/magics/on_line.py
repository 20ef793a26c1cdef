"""The line of a command: what may follow, and what a word of it means.

Commands, options and their help are those of the parsers; their values come from where they are
checked.
"""

from __future__ import annotations

import argparse
import glob
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from optiml_magic.commands import parsers
from optiml_magic.commands.misspelt import functions, is_value
from optiml_magic.devices import choice
from optiml_magic.errors import UsageError
from optiml_magic.magics import in_body
from optiml_magic.magics.offer import Offer, Session, Word, words
from optiml_magic.settings import CHOICES, resolve

_CELL = "%%"
_FRAGMENT = re.compile(r"\S*$")
_SEPARATED = re.compile(r"[^,=]*$")
_RESULTS = ("best", "export", "save", "compare", "replay", "resume")
_SEARCHES = ("stop", "pause", "resume")


def complete(line: str, session: Session, body: str | None) -> Offer:
    """What may follow on a ``line`` that ends at the cursor; ``body`` is None for a line magic."""
    found = _FRAGMENT.search(line)
    assert found is not None
    fragment = found[0]
    try:
        given = parsers.split(line[: len(line) - len(fragment)])
    except UsageError:  # a quote is open: what is in it is the user's own
        return Offer("")
    if not given:
        return Offer.of(fragment, (Word(verb, "magic") for verb in _commands(body)))
    command = _read(given)
    if command is None:
        return Offer(fragment)
    flag, given_value, value = fragment.partition("=")
    if given_value and flag in command.parser.options:
        return _values(command, command.parser.options[flag], value, session, body)
    if command.waiting is not None:
        return _values(command, command.waiting, fragment, session, body)
    place = _positional(command)
    offer = Offer(fragment)
    if place is not None and not fragment.startswith("-"):
        offer = _values(command, place, fragment, session, body)
    return offer if offer.words else Offer.of(fragment, words(_flags(command, fragment), "param"))


def about(line: str, offset: int) -> str:
    """One line on the word of a ``line`` that is at ``offset``; empty where there is none."""
    before = re.search(r"\S*$", line[:offset])
    after = re.match(r"\S*", line[offset:])
    assert before is not None
    assert after is not None
    word = before[0] + after[0]
    try:
        given = parsers.split(line[: before.start()])
    except UsageError:
        return ""
    known = _parser().commands
    if not given:
        return f"%optiml {word}: {known[word][1]}" if word in known else ""
    command = _read(given)
    if command is None:
        return ""
    action = command.parser.options.get(word.partition("=")[0]) or command.waiting
    if action is None and not word.startswith("-"):
        action = _positional(command)
    return _described(action) if action is not None and word else ""


@lru_cache(maxsize=1)
def _parser() -> parsers.Parser:
    return parsers.cell_parser()


def _commands(body: str | None) -> list[str]:
    """All; above a cell those that take one."""
    known = _parser().commands
    return [v for v, (p, _) in known.items() if body is None or p.prog.startswith(_CELL)]


@dataclass
class _Command:
    """A command as far as it is written; ``waiting`` is the option whose value comes next."""

    verb: str
    parser: parsers.Parser
    used: set[str] = field(default_factory=set)
    positionals: int = 0
    waiting: argparse.Action | None = None


def _read(given: list[str]) -> _Command | None:
    known = _parser().commands
    if given[0] not in known:
        return None
    command = _Command(given[0], known[given[0]][0])
    for word in given[1:]:
        flag, equals, _ = word.partition("=")
        action = command.parser.options.get(flag)
        if command.waiting is not None:
            command.waiting = None
        elif action is not None:
            command.used.update(action.option_strings)
            command.waiting = action if action.nargs != 0 and not equals else None
        elif not word.startswith("-"):
            command.positionals += 1
    return command


def _positional(command: _Command) -> argparse.Action | None:
    places = command.parser.positionals
    if places and places[-1].nargs in ("+", "*"):
        return places[min(command.positionals, len(places) - 1)]
    return places[command.positionals] if command.positionals < len(places) else None


def _flags(command: _Command, fragment: str) -> Iterable[str]:
    """Options that are not there yet, or may come again."""
    for flag, action in command.parser.options.items():
        again = isinstance(action, argparse._AppendAction)  # noqa: SLF001  # it has no other name
        asked = action.dest != "help" or fragment.startswith(("-h", "--h"))
        if asked and (again or flag not in command.used):
            yield flag


def _values(
    command: _Command, action: argparse.Action, text: str, session: Session, body: str | None
) -> Offer:
    """What an argument may be; nothing where only the user knows."""
    if action.choices is not None:
        return Offer.of(text, words(map(str, action.choices), "enum"))
    if action.dest in _LISTS:
        part = _SEPARATED.search(text)
        assert part is not None
        renamed = text[: part.start()].endswith("=")
        return Offer.of(part[0], _LISTS[action.dest](session, body or "", renamed))
    if action.dest in CHOICES:
        return Offer.of(text, words(filter(None, CHOICES[action.dest]), "enum"))
    if action.dest in _VALUES:
        return Offer.of(text, _VALUES[action.dest](session))
    if action.dest in _FILES:
        return Offer.of(text, words(_paths(text), "path"))
    if action.dest in _NAMES and not action.option_strings:
        found = words(session.searches, "instance") if command.verb in _SEARCHES else []
        return Offer.of(text, found + (_results(session) if command.verb in _RESULTS else []))
    return Offer(text)


def _inputs(session: Session, body: str, renamed: bool) -> list[Word]:
    """``a,b=other``: parameters, and behind the ``=`` what the notebook has."""
    own = words(_held(session, is_value), "instance")
    return own if renamed else [*words(in_body.parameters(body), "param"), *own]


def _parameters(_: Session, body: str, renamed: bool) -> list[Word]:
    return [] if renamed else words(in_body.parameters(body), "param")


def _results(session: Session) -> list[Word]:
    """Results of the notebook, then the runs of this home, the newest first."""
    from optiml_magic.runs.history import journals

    module = sys.modules.get("optiml_magic.result")  # without it nothing is a result yet
    kinds = (module.Result,) if module else ()
    held = _held(session, lambda value: isinstance(value, kinds))
    runs = [path.stem for path in journals(resolve().runs)]
    return [*words(held, "instance"), *words(runs, "path")]


def _held(session: Session, wanted: Callable[[Any], bool]) -> list[str]:
    """The user's names for values of a kind; a module may have every attribute there is."""
    return [
        name
        for name, value in session.namespace.items()
        if name[0] != "_" and not isinstance(value, (type, ModuleType)) and wanted(value)
    ]


def _paths(text: str) -> list[str]:
    found = sorted(Path().glob(f"{glob.escape(text)}*")) if text[:1] not in ("/", "~") else []
    return [f"{path}/" if path.is_dir() else str(path) for path in found]


def _described(action: argparse.Action) -> str:
    """An argument as its command's help has it."""
    name = action.metavar or action.dest.upper()
    shown = " ".join([*action.option_strings[-1:], *([] if action.nargs == 0 else [str(name)])])
    text = (action.help or "").replace("%%", "%")
    choices = f" ({', '.join(map(str, action.choices))})" if action.choices is not None else ""
    return f"{shown}: {text}{choices}"


_LISTS: Mapping[str, Callable[[Session, str, bool], list[Word]]] = {
    "inputs": _inputs,
    "args": _parameters,
    "out": _parameters,
    "inout": _parameters,
}
_VALUES: Mapping[str, Callable[[Session], list[Word]]] = {
    "device": lambda _: words(choice.names(), "enum"),
    "ref": lambda session: words(functions(session.namespace), "function"),
    "examples": lambda session: words(_held(session, lambda v: isinstance(v, list)), "instance"),
    "llm": lambda _: words(("auto", "none"), "enum"),
    "resume": _results,
}
_FILES = ("file", "include")
_NAMES = ("name", "one", "two", "runs")
KNOWN = (*_LISTS, *_VALUES, *_FILES, *_NAMES)
"""The arguments whose values are known here; a test holds them against the parsers."""
