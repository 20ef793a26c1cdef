"""A function in which the threads of a block wait for each other stands where a kernel calls it.

``block_add(v, &sum);`` adds up what a block's threads have, and then updates memory: what the
kernel does together is only seen with it. What a function shares is one array for all of its
calls, in whose place it stands once.
"""

from __future__ import annotations

import re
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Call, Expr, Name, every
from optiml_magic.kernels.functions import BLOCK_BARRIERS, bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.moving_names import means_the_same
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.primitives.unshadowed import renaming
from optiml_magic.kernels.tree import (
    Blank,
    Declare,
    Evaluate,
    Function,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType, named

_LASTING = ("shared", "dynamic", "static")
_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def in_place(kernel: Kernel) -> Kernel:
    """The kernel with the bodies of such functions among its own statements."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    taken: list[str] = []
    shared: dict[Variable, str] = {}
    calls: dict[Function, int] = {}
    for statement in kernel.function.body.body:
        match statement:
            case Evaluate(expression=Call() as call):
                function = called_alone(kernel, call)
                if function is not None and _waits(function):
                    _check(kernel, function)
                    swaps[statement] = _body(kernel, function, call, taken, shared)
                    calls[function] = calls.get(function, 0) + 1
    if not swaps:
        raise NotLegal("it calls no function that waits, as a statement of its own")
    for function, count in calls.items():
        if _lasting(function) and _calls(kernel, function) != count:
            reason = f"`{function.name}` may keep what it shared from call to call"
            raise NotLegal(reason, function.line)
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _waits(function: Function) -> bool:
    calls = (e for e in expressions(function.body) if isinstance(e, Call))
    return any(bare(call.function) in BLOCK_BARRIERS for call in calls)


def _check(kernel: Kernel, function: Function) -> None:
    """Raise NotLegal where a body would not mean the same among the kernel's statements."""
    line, inside = function.line, [*walk(function.body)]
    if function.result.base != "void" or function.result.depth or function.template:
        raise NotLegal(f"`{function.name}` is a template, or returns something", line)
    for statement in inside:
        if isinstance(statement, Leave) and statement.kind == "return":
            raise NotLegal(f"`{function.name}` is left before its end", statement.line)
        if isinstance(statement, Blank) and "#pragma" not in kernel.show(statement):
            raise NotLegal(f"`{function.name}` has declarations of its own", statement.line)
    inner = {v for s in function.body.body for part in s.statements for v in declared_in(part)}
    if _lasting(function) & inner and _calls(kernel, function) > 1:
        raise NotLegal(f"`{function.name}` declares shared memory inside a branch", line)
    if not means_the_same(kernel, function):
        raise NotLegal(f"a name in `{function.name}` means something else in the kernel", line)


def _lasting(function: Function) -> set[Variable]:
    """What a function finds as its last call has left it."""
    return {v for v in declared_in(function.body) if v.storage in _LASTING}


def _calls(kernel: Kernel, function: Function) -> int:
    """How often a function is called by what a kernel comes to."""
    own = (kernel.function, *reached(kernel.unit, kernel.function))
    calls = [e for f in own for e in expressions(f.body) if isinstance(e, Call)]
    return sum(bare(call.function) == bare(function.name) for call in calls)


def _body(
    kernel: Kernel, function: Function, call: Call, taken: list[str], shared: dict[Variable, str]
) -> tuple[Statement, ...]:
    """Locals for what is given, and the statements of a function with names that are free.

    What a call before has declared for all of them, in ``shared``, is not declared again.
    """
    words = {*_WORD.findall(kernel.show(kernel.function.body)), *taken}
    words |= {p.name for p in kernel.function.parameters}
    declared, called = declared_in(function.body), dict[Variable, str]()
    before_now = {v: shared[v] for v in declared if v in shared}
    for variable in sorted(declared - before_now.keys(), key=lambda v: v.line):
        new = variable.name
        if new in words:
            new = called[variable] = kernel.fresh(new, *taken)
        taken.append(new)
        if variable.storage in _LASTING:
            shared[variable] = new
    changes: dict[Node, Node | None] = {**renaming(function.body, called | before_now)}
    changes |= {
        s: None for s in walk(function.body)
        if isinstance(s, Declare) and not before_now.keys().isdisjoint(s.variables)
    }  # fmt: skip
    body = edited(function.body, changes)
    before: list[Statement] = []
    swaps: dict[Node, Node] = {}
    for parameter, argument in zip(function.parameters, call.arguments, strict=True):
        name = _name(kernel, function, call, parameter, argument)
        if name is None:
            if parameter.array or parameter.type.reference:
                raise NotLegal(f"what `{parameter.name}` leads to is not followed", function.line)
            name = kernel.fresh(parameter.name, *taken)
            taken.append(name)
            const = "const " if parameter.type.const else ""
            kind = f"{const}{parameter.type.base}{'*' * parameter.type.depth}"
            before.append(lines(f"{kind} {name} = {kernel.spelled(argument)};"))
        swaps |= {e: text(name) for e in expressions(body)
                  if isinstance(e, Name) and e.variable is parameter}  # fmt: skip
    return (*before, *(edited(one, swaps) for one in body.body))


def _name(
    kernel: Kernel, function: Function, call: Call, parameter: Variable, argument: Expr
) -> str | None:
    """The name that may stand for a parameter, as it is the same all along; None for others."""
    if not isinstance(argument, Name) or argument.variable is None:
        return None
    given = argument.variable
    if _kind(kernel, given) != _kind(kernel, parameter) or given.type.reference:
        return None
    if parameter.type.reference:
        return None if given.array else argument.name
    if _kind(kernel, given).kind in ("record", "unknown") or _asks_for_size(function, given):
        return None
    others = (e for one in call.arguments if one is not argument for e in every(one))
    led = any(isinstance(e, Name) and e.variable is given for e in others)
    led = led or given in Effects(kernel).addressed
    led = led or (given.storage == "shared" and not given.array)  # others write to it meanwhile
    changed = Effects(kernel).changed(function.body)
    return None if led or parameter in changed else argument.name


def _asks_for_size(function: Function, given: Variable) -> bool:
    """Whether an array is more to a function than the pointer that it is given."""
    calls = (e for e in expressions(function.body) if isinstance(e, Call))
    return given.array and any(call.function == "sizeof" for call in calls)


def _kind(kernel: Kernel, variable: Variable) -> CType:
    kind = named(variable.type.base, kernel.unit.aliases)
    return replace(kind, depth=variable.type.depth + len(variable.extents))
