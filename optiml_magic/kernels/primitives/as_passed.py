"""Parameters have the names that the launch has for what it passes: ``args(x, W, n)``.

One kernel that is launched for several arrays calls them otherwise than the task does. Where a
kernel has one launch, sizes mean the same in its guards and in its grid once they are called alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels.expressions import Call, Cast, Lambda, Name, Unread
from optiml_magic.kernels.primitives.apart import kernel_of
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.tree import Declare, Function, Verbatim, expressions, walk
from optiml_magic.model.facts import Facts
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.lexer import lex
from optiml_magic.source.program import Program, parse_program

_DECLARING = frozenset({"struct", "class", "union", "enum"})
_PRAGMA = re.compile(r"#\s*pragma\b")
_WORD = re.compile(r"(?<![.\w])(?<!->)[A-Za-z_]\w*")


def as_passed(program: Program) -> Program:
    """The program whose kernels call what they are given as their one launch does."""
    names = [kernel_of(launch) for launch in program.launches]
    for at, name in enumerate(names):
        if names.count(name) == 1 and program.launches[at].args is not None:
            try:
                program = _made(program, program.launches[at])
            except NotLegal:
                continue
    return program


def facts_as_passed(
    facts: Facts | None, before: Program, after: Program, own: Program
) -> Facts | None:
    """What is known of the arguments, by the names of parameters in the program ``after``.

    Launches are on the lines that they have in the program that rules see, their ``own``.
    """
    if facts is None or before is after:
        return facts
    launches = zip(before.launches, after.launches, own.launches, strict=True)
    called = {seen.line: _called(before, old, after, new) for old, new, seen in launches}
    return replace(facts, launches=tuple(
        replace(
            launch,
            arrays={called[launch.line].get(n, n): a for n, a in launch.arrays.items()},
            scalars={called[launch.line].get(n, n): v for n, v in launch.scalars.items()},
            members={_member(called[launch.line], n): v for n, v in launch.members.items()},
        ) if launch.line in called else launch
        for launch in facts.launches
    ))  # fmt: skip


def _locals_alone(function: Function) -> set[str]:
    """The names of locals that nothing else in a function has."""
    inside = [*expressions(function.body)]
    declared = [s for s in walk(function.body) if isinstance(s, Declare)]
    others = {e.name for e in inside if isinstance(e, Name) and e.variable is None}
    others |= {e.function for e in inside if isinstance(e, Call)}
    others |= {word for s in declared for word in _WORD.findall(s.words)}
    others |= {word for e in inside if isinstance(e, Cast) for word in _WORD.findall(e.type)}
    if any(isinstance(e, Unread | Lambda) for e in inside) or any(
        isinstance(s, Verbatim) for s in walk(function.body)
    ):
        return set()
    return {v.name for s in declared for v in s.variables} - others


def _called(
    before: Program, old: LaunchDirective, after: Program, new: LaunchDirective
) -> dict[str, str]:
    one, other = Kernel(before, old).function, Kernel(after, new).function
    pairs = zip(one.parameters, other.parameters, strict=True)
    return {p.name: q.name for p, q in pairs if p.name != q.name}


def _member(called: Mapping[str, str], name: str) -> str:
    base, dot, rest = name.partition(".")
    return f"{called.get(base, base)}{dot}{rest}"


def _made(program: Program, launch: LaunchDirective) -> Program:
    kernel = Kernel(program, launch)
    parameters, given = [p.name for p in kernel.function.parameters], launch.args or ()
    if len(given) != len(parameters):
        raise NotLegal("its launch passes more or less than its parameters", kernel.function.line)
    raw, lexed = program.text.encode(), lex(program.text)
    start, end = (len(raw[:at].decode()) for at in declaration(kernel.unit, kernel.function))
    own = {word[0] for word in _WORD.finditer(lexed.code, start, end)}
    if own & _DECLARING:
        raise NotLegal("it declares a type of its own", kernel.function.line)
    others = (line.text for line in lexed.lines if not _PRAGMA.match(line.text))
    meant = {word for line in others for word in _WORD.findall(line)}
    passed = [str(argument) for argument in given]
    called = {
        p: a for p, a in zip(parameters, passed, strict=True)
        if p and p != a and _WORD.fullmatch(a) and passed.count(a) == 1
        and not {p, a} & meant and a not in program.values
    }  # fmt: skip
    locals_ = _locals_alone(kernel.function)
    while taken := {p for p, a in called.items() if a in own - called.keys() - locals_}:
        called = {p: a for p, a in called.items() if p not in taken}
    if not called:
        raise NotLegal("its parameters are called as what its launch passes", kernel.function.line)
    for name in sorted(locals_ & {*called.values()} - called.keys()):
        called[name] = kernel.fresh(name, *called.values())
    text = program.text
    for word in reversed([*_WORD.finditer(lexed.code, start, end)]):
        if word[0] in called:
            text = f"{text[: word.start()]}{called[word[0]]}{text[word.end() :]}"
    return parse_program(text)
