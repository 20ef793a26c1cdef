"""The input kernel kept for the sizes that a faster one does not cover: the host chooses.

What a step could not do for all sizes it says with ``require``. Here that becomes the condition of
a launch, and where it does not hold the launch of the input program runs, with the input kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.tree import Function
from optiml_magic.kernels.unit import Unit
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.directives import LaunchDirective, RequireDirective, ScratchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Binary, Expression
from optiml_magic.source.grammar import HEAD
from optiml_magic.source.program import Program, parse_program

_WRAPPERS = ("template_declaration", "linkage_specification")
_WORD = re.compile(r"[A-Za-z_]\w*")


def dispatched(made: Program, before: Program, root: Program) -> Program:
    """``made`` of ``before``, with its new requirements as a condition of its launches.

    Where that does not hold, the launches of the input program ``root`` run. The requirements stay
    where this cannot be said: where the launches of ``made`` are not those of ``root`` one by one,
    or the texts of both kernels do not fit into one program.
    """
    new = [r for r in made.requires if r not in before.requires]
    if not new:
        return made
    try:
        beside = [*_beside(made, before, root, _all(new))]
        return parse_program(apply(made.text, [*_without(made, new), *beside])) if beside else made
    except (NotLegal, SourceError):
        return made


def unmet(made: Kernel, before: Program) -> RequireDirective | None:
    """The first new requirement that the sizes at hand do not meet, where these are known."""
    facts, given = made.facts, made.launch.args
    if facts is None:
        return None
    names = [p.name for p in made.function.parameters]
    passed = [a.name for a in given] if given is not None else names
    known = {
        name: int(facts.scalars[parameter])
        for parameter, name in zip(names, passed, strict=False)
        if name is not None and parameter in facts.scalars
    }
    shapes = {array.buffer: array.shape for array in facts.arrays.values()}
    return _failing(made.program, before, known, shapes)


def unverified(
    made: Program, before: Program, facts: LaunchFacts | None
) -> RequireDirective | None:
    """The first new requirement that keeps a program from being verified, where that is known."""
    return _failing(made, before, facts.verified, {}) if facts is not None else None


def _failing(
    made: Program, before: Program, known: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> RequireDirective | None:
    """The first new requirement that these sizes do not meet; of some nobody knows it."""
    for require in made.requires:
        with suppress(SourceError):  # it reads what is not known, or what another launch is given
            met = require.condition.evaluate({**known, **made.values}, shapes)
            if not met and require not in before.requires:
                return require
    return None


def _all(requires: Sequence[RequireDirective]) -> Expression:
    found = requires[0].condition
    for require in requires[1:]:
        found = both(found, require.condition)
    return found


def both(one: Expression, other: Expression) -> Expression:
    """That both hold."""
    tree = Binary("&&", one.tree, other.tree)
    return Expression(tree, str(Expression(tree, "")))


def _without(made: Program, new: Sequence[RequireDirective]) -> Iterator[Edit]:
    for require in new:
        start = made.text.rfind("\n", 0, require.start) + 1
        end = made.text.find("\n", require.end) + 1 or len(made.text)
        yield _edit(made, start, end, "")


def _edit(made: Program, start: int, end: int, text: str) -> Edit:
    return Edit(len(made.text[:start].encode()), len(made.text[:end].encode()), text)


def _beside(made: Program, before: Program, root: Program, condition: Expression) -> Iterator[Edit]:
    """The edits that bring the launches and kernels of ``root`` into ``made``."""
    steps, olds, roots = made.alternatives, before.alternatives, root.alternatives
    if len(steps) != len(roots) or any(len(step) > 1 for step in roots):
        raise NotLegal("its launches are not those of the input program, one by one")
    for step, old, (original,) in zip(steps, olds, roots, strict=True):
        own, last = Kernel(root, original), Kernel(made, step[-1])
        name = original.kernel or own.function.name
        kept = replace(original, kernel=name, otherwise=last.launch.otherwise)
        same = replace(last.launch, kernel=last.launch.kernel or last.function.name).bare
        if same != kept.bare or _source(last) != _source(own):
            yield from _split(last, own, kept, condition)
        changed = [
            at for at, launch in enumerate(step[:-1])
            if launch.bare != old[at].bare
            or _source(Kernel(made, launch)) != _source(Kernel(before, old[at]))
        ]  # fmt: skip
        if changed and len(step) > 2:
            raise NotLegal("where it does not hold, another launch than the last would run")
        for at in changed:
            narrower = replace(step[at], condition=both(step[at].condition or condition, condition))
            yield _edit(made, step[at].start, step[at].end, str(narrower))


def _split(
    last: Kernel, own: Kernel, kept: LaunchDirective, condition: Expression
) -> Iterator[Edit]:
    """Edits: the kernel under a new name, the input program's below it, and a launch of each."""
    function, program = last.function, last.program
    _check_alike(last, own, kept)
    bare = function.name.rpartition("::")[2]
    head = last.unit.origin.origin(*(function.head or function.span))
    raw = program.text.encode()
    named = list(re.finditer(rf"\b{bare}\b".encode(), raw[slice(*head)]))
    if len(named) != 1:
        raise NotLegal("its name does not stand in front of its parameters once")
    fast = last.fresh(f"{bare}_fast")
    start = head[0] + named[0].start()
    yield Edit(start, start + len(bare), fast)
    _, end = declaration(last.unit, function)
    yield Edit(end, end, f"\n\n{_source(own)}")
    spelled = last.launch.kernel or function.name
    launched, opening, arguments = spelled.partition("<")
    scope = launched.rpartition("::")
    faster = replace(last.launch, kernel=f"{scope[0]}{scope[1]}{fast}{opening}{arguments}")
    line = program.text.rfind("\n", 0, last.launch.start) + 1
    margin = program.text[line : last.launch.start]
    directives = [*_lacking(program, own), *kept.dispatched(faster, condition)]
    text = ("\n" + (margin if margin.isspace() else "")).join(map(str, directives))
    yield _edit(program, last.launch.start, last.launch.end, text)


def _lacking(program: Program, own: Kernel) -> Iterator[ScratchDirective]:
    """The scratch of an input kernel that a program has no longer."""
    given = [argument.name for argument in own.launch.args or ()]
    asked = {*given, *(p.name for p in own.function.parameters if own.launch.args is None)}
    known = {scratch.name for scratch in program.scratch}
    yield from (s for s in own.program.scratch if s.name in asked - known)


def _check_alike(last: Kernel, own: Kernel, kept: LaunchDirective) -> None:
    """Raise NotLegal where the input kernel would mean something else beside the new one."""
    if last.function.name != own.function.name:
        raise NotLegal("its kernel has another name than that of the input program")
    source = _source(own)
    words = {*_WORD.findall(source), *kept.names}
    values, known = last.program.values, own.program.values
    if any(values.get(name) != value for name, value in known.items() if name in words):
        raise NotLegal("tuned names of the input kernel have other values")
    if any(HEAD.match(line.strip()) for line in source.splitlines()):
        raise NotLegal("directives stand inside of its kernel")
    lines = {line.text for line in last.program.lexed.lines}
    if any(x.text not in lines and not HEAD.match(x.text) for x in own.program.lexed.lines):
        raise NotLegal("it lacks macros of the input program")
    present = {_text(last.unit, f.span) for f in last.unit.functions}
    if any(_text(own.unit, f.span) not in present for f in reached(own.unit, own.function)):
        raise NotLegal("a function that the input kernel calls is another one")


def _source(kernel: Kernel) -> str:
    """The text of a kernel, with the head of its template."""
    start, end = declaration(kernel.unit, kernel.function)
    return kernel.program.text.encode()[start:end].decode()


def declaration(unit: Unit, function: Function) -> tuple[int, int]:
    """Where the declaration stands that holds this function alone, in bytes of the text."""
    node = unit.syntax.root.descendant_for_byte_range(*function.span)
    while node is not None and node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    if node is None or not unit.origin.whole(node.start_byte, node.end_byte):
        raise NotLegal("a macro makes more than its kernel")
    return unit.origin.origin(node.start_byte, node.end_byte)


def _text(unit: Unit, span: tuple[int, int]) -> bytes:
    return unit.syntax.text[slice(*span)]
