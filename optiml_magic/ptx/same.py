"""Whether a kernel is one and the same in two modules: its code and all that this reaches."""

from __future__ import annotations

import re
from dataclasses import replace

from optiml_magic.ptx.nouns import Call, Function, Instruction, Label, PtxModule

_WORD = re.compile(r"[\w$]+")
# Behind a name that the parser made the module's only one; local memory, by its kernel's place.
_SCOPE = re.compile(r"#\d+|\b__local_depot\d+")


def same_kernel(one: PtxModule, other: PtxModule, name: str) -> bool:
    """Whether the kernel of that lowered name computes the same, instruction by instruction.

    Lines and the numbers of labels and scopes do not count. A kernel that calls through a pointer
    is the same as no other: what it reaches is not known.
    """
    if any(name not in module.functions for module in (one, other)):
        return False
    first, second = _reached(one, name), _reached(other, name)
    return first is not None and first == second


def _reached(module: PtxModule, name: str) -> dict[str, str] | None:
    """Each function and variable that a function reaches, spelled out; None where nobody knows."""
    variables = {variable.name: variable for variable in module.variables}
    found: dict[str, str] = {}
    due = [name]
    while due:
        name = due.pop()
        function = module.functions.get(name)
        if function is not None and _points(function):
            return None
        found[name] = repr(variables[name]) if function is None else _spelled(function)
        words = dict.fromkeys(_WORD.findall(found[name]))
        due += [w for w in words if (w in variables or w in module.functions) and w not in found]
    return found


def _points(function: Function) -> bool:
    return any(isinstance(item, Call) and item.pointer is not None for item in function.body)


def _spelled(function: Function) -> str:
    labels = [item.name for item in function.body if isinstance(item, Label)]
    numbers = {label: f"label {number}" for number, label in enumerate(labels)}
    bare = [
        replace(item, line=0, ptx_line=0)
        if isinstance(item, Instruction)
        else replace(item, line=0)
        if isinstance(item, Call)
        else item
        for item in function.body
    ]
    text = repr(replace(function, body=bare))
    scopes = {scope: f"#{n}" for n, scope in enumerate(dict.fromkeys(_SCOPE.findall(text)))}
    text = _SCOPE.sub(lambda scope: scopes[scope[0]], text)
    return _WORD.sub(lambda word: numbers.get(word[0], word[0]), text)
