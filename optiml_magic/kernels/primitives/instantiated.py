"""A kernel that is a template becomes what its launch makes of it, ``k<float, 64>`` a plain ``k``.

Sizes of local arrays and numbers of rounds are then numbers, and types are those of elements.
"""

from __future__ import annotations

import re

from optiml_magic.kernels.primitives.apart import renamed
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.tree import Declare, walk
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.lexer import lex
from optiml_magic.source.program import Program, parse_program

_TYPE = re.compile(r"[\w:]+(?: \w+)*")
_PLAIN = re.compile(r"\w+")


def instantiated(program: Program) -> Program:
    """The program with such kernels instantiated, those alone that one launch asks for.

    As it was where a macro has a part of a kernel, or hides what its parameters are.
    """
    for launch in program.launches:
        name, given = split_name(launch.kernel or "")
        if given and [split_name(d.kernel or "")[0] for d in program.launches].count(name) == 1:
            try:
                program = _made(
                    program, next(d for d in program.launches if d.kernel == launch.kernel)
                )
            except NotLegal:
                continue
    return program


def _made(program: Program, launch: LaunchDirective) -> Program:
    kernel = Kernel(program, launch)
    function, unit, raw = kernel.function, kernel.unit, program.text.encode()
    start, end = declaration(unit, function)
    own, _ = unit.origin.origin(*function.span)
    values = _values(kernel)
    code = lex(program.text).code
    bare = function.name.rpartition("::")[2]
    # ``template __global__ void k<float>(...);`` asks for what the launch makes by itself.
    again = rf"\btemplate\s+(?!<)[^;{{}}<]*\b{re.escape(bare)}\s*<[^;{{}}]*;"
    asked = [match.span() for match in re.finditer(again, code)]
    for first, last in asked:
        code = code[:first] + " " * (last - first) + code[last:]
    if len(re.findall(rf"\b{re.escape(bare)}\b", code)) != 1:
        raise NotLegal("the kernel is named elsewhere in the text", function.line)
    first, last = (len(raw[:at].decode()) for at in (own, end))
    seen = unit.syntax.text[slice(*function.span)].decode()
    edits = [Edit(start, own, "")]
    places = [[len(program.text[:at].encode()) for at in span] for span in asked]
    edits += [Edit(begin, stop, "") for begin, stop in places]
    for name, value in values.items():
        found = [*re.finditer(rf"\b{name}\b", code[first:last])]
        if len(found) != len(re.findall(rf"\b{name}\b", lex(seen).code)):
            raise NotLegal(f"a macro names `{name}`", function.line)
        for match in found:
            _check_place(code, first + match.start(), first + match.end(), value)
            at = len(program.text[: first + match.start()].encode())
            edits.append(Edit(at, at + len(name), value))
    edits.append(renamed(program, launch, split_name(launch.kernel or "")[0]))
    return parse_program(apply(program.text, edits))


def _values(kernel: Kernel) -> dict[str, str]:
    """What is written in the place of each parameter of the template, as the launch says."""
    function = kernel.function
    _, given = split_name(kernel.launch.kernel or "")
    locals_ = {v.name for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    taken = locals_ | {v.name for v in function.parameters}
    found = dict[str, str]()
    for at, parameter in enumerate(function.template):
        words = given[at] if at < len(given) else parameter.default
        if words is None or parameter.is_pack or not parameter.name or parameter.name in taken:
            raise NotLegal("what a parameter of its template is, is not known", function.line)
        if parameter.is_type and not _TYPE.fullmatch(words):
            raise NotLegal(f"`{words}` is not a plain type", function.line)
        plain = parameter.is_type or _PLAIN.fullmatch(words)
        found[parameter.name] = words if plain else f"({words})"
    if any(re.search(rf"\b{name}\b", words) for name in found for words in found.values()):
        raise NotLegal("a parameter of its template is another's default", function.line)
    return found


def _check_place(code: str, start: int, end: int, value: str) -> None:
    before, after = code[:start].rstrip(), code[end:].lstrip()
    if before.endswith((".", "->", "::")):
        raise NotLegal("a member has the name of a parameter of its template")
    if " " in value and after.startswith("("):
        raise NotLegal(f"`{value}` does not stand in front of brackets")
