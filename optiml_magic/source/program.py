"""A kernel program: one CUDA C++ text and the directives in it.

Every edit touches the characters it is about and no others; the text is what the user typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar

from optiml_magic.errors import SourceError, nearest
from optiml_magic.source.checks import (
    check_dispatches,
    check_spelling,
    check_text,
    check_unique,
)
from optiml_magic.source.directives import (
    ArgvDirective,
    Directive,
    InitDirective,
    LaunchDirective,
    RepeatDirective,
    RequireDirective,
    ScratchDirective,
    SizeDirective,
    TuneDirective,
    ZeroDirective,
    grouped,
)
from optiml_magic.source.grammar import HEAD, parse_directive
from optiml_magic.source.lexer import Lexed, lex
from optiml_magic.source.macros import substituted, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CONDITIONALS = frozenset({"if", "elif", "ifdef", "ifndef", "elifdef", "elifndef"})
_INT32 = range(-(2**31), 2**31)
_D = TypeVar("_D", bound=Directive)


@dataclass(frozen=True)
class Program:
    """Two programs are equal when their texts are."""

    text: str
    directives: tuple[Directive, ...] = field(compare=False, repr=False)
    lexed: Lexed = field(compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<program of {len(self.text.splitlines())} lines; .text is its text>"

    @property
    def launches(self) -> tuple[LaunchDirective, ...]:
        return self._of(LaunchDirective)

    @property
    def alternatives(self) -> tuple[tuple[LaunchDirective, ...], ...]:
        """The launches in order, those of one dispatch together; of each step one runs."""
        return tuple(map(tuple, grouped(self.launches, lambda launch: launch)))

    @property
    def tunes(self) -> tuple[TuneDirective, ...]:
        return self._of(TuneDirective)

    @property
    def requires(self) -> tuple[RequireDirective, ...]:
        return self._of(RequireDirective)

    @property
    def scratch(self) -> tuple[ScratchDirective, ...]:
        return self._of(ScratchDirective)

    @property
    def zeros(self) -> tuple[ZeroDirective, ...]:
        return self._of(ZeroDirective)

    @property
    def inits(self) -> tuple[InitDirective, ...]:
        return self._of(InitDirective)

    @property
    def sizes(self) -> tuple[SizeDirective, ...]:
        return self._of(SizeDirective)

    @property
    def argv(self) -> tuple[ArgvDirective, ...]:
        """What a ``main`` would be given: a text with one has it dropped, and these as well."""
        return self._of(ArgvDirective)

    @property
    def is_template(self) -> bool:
        """Whether a tuned name still lacks its value."""
        return any(tune.value is None for tune in self.tunes)

    @property
    def values(self) -> dict[str, int]:
        """The tuned names that have a value."""
        return {tune.name: tune.value for tune in self.tunes if tune.value is not None}

    @property
    def macros(self) -> dict[str, int]:
        """The tuned names that an ``#if`` asks for; one without a value has its first."""
        asked = self._preprocessor_names
        return {
            tune.name: tune.values[0] if tune.value is None else tune.value
            for tune in self.tunes
            if tune.name in asked
        }

    def with_values(self, values: Mapping[str, int]) -> Program:
        """This program with these tuned values; the other tuned names keep theirs."""
        tunes = {tune.name: tune for tune in self.tunes}
        for name in values:
            if name not in tunes:
                known = ", ".join(tunes) or "none"
                raise SourceError(
                    f"`{name}` is not a tuned name",
                    fix=nearest(name, tunes) or f"use a tuned name: {known}",
                )
        edits = []
        for name, value in values.items():
            tune = tunes[name]
            _check_member(tune, value)
            spelled = str(value) if tune.value is not None else f" = {value}"
            edits.append((tune.value_start, tune.value_end, spelled))
        return parse_program(_splice(self.text, edits))

    def legal_values(self) -> Iterator[dict[str, int]]:
        """Every assignment of all tuned names that the sets and conditions allow, in order."""
        tunes = self.tunes
        chosen: dict[str, int] = {}
        known: set[str] = set()
        due: list[list[TuneDirective]] = []
        pending = [tune for tune in tunes if tune.condition]
        for tune in tunes:
            known.add(tune.name)
            due.append([t for t in pending if t.condition and t.condition.names <= known])
            pending = [t for t in pending if t not in due[-1]]

        def extend(depth: int) -> Iterator[dict[str, int]]:
            if depth == len(tunes):
                yield dict(chosen)
                return
            for value in tunes[depth].values:
                chosen[tunes[depth].name] = value
                if all(_holds(tune, chosen) for tune in due[depth]):
                    yield from extend(depth + 1)

        yield from extend(0)

    def compiled_text(self, *, numbered: bool = True) -> str:
        """The text for the compiler: tuned values defined after the includes.

        ``numbered`` keeps the line numbers of this text in the compiler's messages.
        """
        for tune in self.tunes:
            if tune.value is None:
                raise SourceError(
                    f"`{tune.name}` has no value yet",
                    fix=f"choose one: `{replace(tune, value=tune.values[0])}`",
                    line=tune.line,
                )
        macros = self.macros
        used = self._used_names
        values = {name: value for name, value in self.values.items() if name in used}
        if not values:
            return self.text
        at = self._after_includes
        newline = self._newline
        lines = [_definition(name, value, macro=name in macros)
                 for name, value in values.items()]  # fmt: skip
        opening = newline if self.text[:at] and not self.text[:at].endswith("\n") else ""
        if numbered:
            lines.append(f"#line {self.lexed.line_at(at) + bool(opening)}")
        return _splice(self.text, [(at, at, opening + "".join(line + newline for line in lines))])

    def with_directive(self, directive: Directive | str) -> Program:
        """This program with one more directive, below the last one or else below the includes."""
        newline = self._newline
        if self.directives:
            last = self.directives[-1]
            at = self.text.find("\n", last.end) + 1 or len(self.text)
            beside = self.text.rfind("\n", 0, last.start) + 1
            indent = self.text[beside : last.start]
        else:
            at, indent = self._after_includes, ""
        opening = newline if at and not self.text[:at].endswith("\n") else ""
        line = f"{opening}{indent if indent.isspace() else ''}{str(directive).strip()}{newline}"
        return parse_program(_splice(self.text, [(at, at, line)]))

    def with_launches(self, launches: Iterable[Directive]) -> Program:
        """This program with launches, and what goes with them, where no line of the code moves.

        They go on blank lines at the top while there are some, and then to the end.
        """
        lines = self.text.splitlines(keepends=True)
        ending = self._newline
        blank = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        for at, launch in enumerate(launches):
            if at < blank:
                lines[at] = f"{launch}{ending}"
            else:
                if lines and not lines[-1].endswith("\n"):
                    lines[-1] += ending
                lines.append(f"{launch}{ending}")
        return parse_program("".join(lines))

    def without(self, directive: Directive) -> Program:
        """This program without one of its directives; its line goes with it."""
        found = next((d for d in self.directives if d is directive), None) or next(
            (d for d in self.directives if str(d) == str(directive)), None
        )
        if found is None:
            raise SourceError(f"`{directive}` is not in this program", fix="name one that is")
        begin = self.text.rfind("\n", 0, found.start) + 1
        if self.text[begin : found.start].strip():
            return parse_program(_splice(self.text, [(found.start, found.end, "")]))
        end = self.text.find("\n", found.end) + 1 or len(self.text)
        return parse_program(_splice(self.text, [(begin, end, "")]))

    def _of(self, kind: type[_D]) -> tuple[_D, ...]:
        return tuple(d for d in self.directives if isinstance(d, kind))

    @cached_property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @cached_property
    def _used_names(self) -> frozenset[str]:
        """Every word of the code, the preprocessor and the launched kernels' names."""
        names = set(_WORD.findall(self.lexed.code))
        for line in self.lexed.lines:
            if not HEAD.match(line.text):
                names.update(_WORD.findall(line.text))
        for launch in self.launches:
            names.update(_WORD.findall(launch.kernel or ""))
        return frozenset(names)

    @cached_property
    def _preprocessor_names(self) -> frozenset[str]:
        """The words that an ``#if`` reads, through macros too: a constexpr is 0 there."""
        bodies: dict[str, set[str]] = {}
        names: set[str] = set()
        for line in self.lexed.lines:
            words = _WORD.findall(line.rest)
            if line.word == "define" and words:
                bodies.setdefault(words[0], set()).update(words[1:])
            elif line.word in _CONDITIONALS:
                names.update(words)
        fresh = set(names)
        while fresh:
            fresh = set().union(*(bodies.get(name, ()) for name in fresh)) - names
            names |= fresh
        return frozenset(names)

    @cached_property
    def _after_includes(self) -> int:
        """The offset of the line below the last include that stands before any code."""
        first_code = re.search(r"\S", self.lexed.code)
        limit = first_code.start() if first_code else len(self.text)
        depth, inside, at = 0, False, 0
        for line in self.lexed.lines:
            if line.start > limit:
                break
            if line.word in ("if", "ifdef", "ifndef"):
                depth += 1
            elif line.word == "endif":
                depth -= 1
            inside = line.word == "include" or (inside and depth > 0)
            if (line.word == "include" and depth == 0) or (line.word == "endif" and inside):
                at = self.text.find("\n", line.end) + 1 or len(self.text)
            inside = inside and depth > 0
        return at


@lru_cache(maxsize=512)
def parse_program(text: str) -> Program:
    """The program that ``text`` holds, or a SourceError at the line of a wrong directive.

    A text that no file could hold, or no person would read, is one as well.
    """
    check_text(text)
    lexed = lex(text)
    numbers = whole_numbers(lexed)
    directives: list[Directive] = []
    repeat: RepeatDirective | None = None
    before: LaunchDirective | None = None
    for line in lexed.active():
        if line.word == "line" or line.word.isdigit():
            raise SourceError(
                "a line directive, which makes every line number below it wrong",
                fix="remove it",
                line=lexed.line_at(line.start),
            )
        if not HEAD.match(line.text):
            check_spelling(line, lexed)
            continue
        found = parse_directive(line.text, line=lexed.line_at(line.start), start=line.start)
        found = substituted(found, numbers) if numbers else found
        if isinstance(found, RepeatDirective):
            repeat = found
        elif isinstance(found, LaunchDirective) and found.repeat is None:
            # A dispatch is one step of its round, whose repeat stands on its first launch.
            around = before.repeat if found.otherwise and before is not None else repeat
            found = replace(found, repeat=around)
        if isinstance(found, LaunchDirective):
            before = found
        directives.append(found)
    check_unique(directives)
    check_dispatches(directives)
    program = Program(text, tuple(directives), lexed)
    _check_tunes(program)
    return program


def _check_tunes(program: Program) -> None:
    names = {tune.name for tune in program.tunes}
    for line in program.lexed.lines:
        words = _WORD.findall(line.rest)
        if line.word == "define" and words and words[0] in names:
            raise SourceError(
                f"`{words[0]}` is tuned, and defined here as well",
                fix="remove the #define; the tune directive gives the value",
                line=program.lexed.line_at(line.start),
            )
    values = program.values
    for tune in program.tunes:
        if tune.condition is None:
            continue
        for name in sorted(tune.condition.names - names):
            raise SourceError(
                f"`{name}` in `if {tune.condition}` is not a tuned name",
                fix=nearest(name, names) or "write conditions on sizes as `require`",
                line=tune.line,
            )
        if tune.condition.names <= values.keys() and not _holds(tune, values):
            given = ", ".join(f"{n} = {values[n]}" for n in sorted(tune.condition.names))
            raise SourceError(
                f"{given} breaks `if {tune.condition}`",
                fix="choose values for which the condition holds",
                line=tune.line,
            )


def _check_member(tune: TuneDirective, value: int) -> None:
    if value not in tune.values:
        raise SourceError(
            f"{tune.name} = {value} is not in its set",
            fix=f"choose one of {', '.join(map(str, tune.values))}",
            line=tune.line,
        )


def _holds(tune: TuneDirective, values: Mapping[str, int]) -> bool:
    return tune.condition is None or bool(tune.condition.evaluate(values))


def _definition(name: str, value: int, *, macro: bool) -> str:
    if macro:
        return f"#define {name} {value}" if value >= 0 else f"#define {name} ({value})"
    return f"constexpr {'int' if value in _INT32 else 'long long'} {name} = {value};"


def _splice(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
