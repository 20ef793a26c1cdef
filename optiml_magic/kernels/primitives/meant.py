"""The function that a call means, with names as they are where it is called.

A plain function is that as it stands, a lambda asks for what it captures, and a method for the
members of its object.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Lambda, Member, Name, Step, Unary
from optiml_magic.kernels.methods import fields_of, method_of, only_method
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.moving_names import means_the_same
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.tree import (
    Declare,
    Function,
    Leave,
    Loop,
    TypeName,
    Variable,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named


def meant(kernel: Kernel, call: Call) -> Function | None:
    """The one function that a call means, as one of this kernel's own; None where that is open."""
    if isinstance(call.callee, Name) and call.callee.variable is not None:
        value = call.callee.variable.value
        if isinstance(value, Lambda):
            return _captured(kernel, call.callee.variable, value, call)
        return _of_object(kernel, call.callee, "operator()", call)
    if isinstance(call.receiver, Name):
        return _of_object(kernel, call.receiver, call.function, call)
    return called_alone(kernel, call)


def unnamed(kernel: Kernel) -> Kernel:
    """The kernel without lambdas that nobody calls any more."""
    asked = {e.variable for e in expressions(kernel.function.body) if isinstance(e, Name)}
    gone: dict[Node, Node | None] = {
        s: None for s in walk(kernel.function.body)
        if isinstance(s, Declare) and all(
            isinstance(v.value, Lambda) and v not in asked for v in s.variables
        )
    }  # fmt: skip
    return kernel.rewritten(edited(kernel.function.body, gone)) if gone else kernel


def _captured(kernel: Kernel, local: Variable, value: Lambda, call: Call) -> Function | None:
    """A lambda as a function: what it captures has the same name where it is called."""
    function = value.function
    free = {e.variable for e in expressions(function.body) if isinstance(e, Name)} - {None}
    own = {*declared_in(function.body), *function.parameters}
    captured = {v for v in free if v is not None} - own
    declared = [v.name for v in (*declared_in(kernel.function.body), *kernel.function.parameters)]
    targets = [e.target for e in expressions(kernel.function.body) if isinstance(e, Assign)]
    again = any(isinstance(e, Name) and e.variable is local for e in targets)
    if again or any(declared.count(v.name) > 1 for v in captured):
        return None
    changed = {e.target.variable for e in expressions(function.body)
               if isinstance(e, Assign | Step) and isinstance(e.target, Name)}  # fmt: skip
    if value.copies and not all(_stays(kernel, v) and v not in changed for v in captured):
        return None
    if len(function.parameters) != len(call.arguments):
        return None
    gives = any(isinstance(s, Leave) and s.value is not None for s in walk(function.body))
    if not gives and any(isinstance(s, Loop) for s in walk(function.body)):
        return None  # a step of its own, as tiles have them
    result = function.result if gives else TypeName("void")
    return replace(function, name=local.name, result=result)


def _stays(kernel: Kernel, variable: Variable) -> bool:
    effects = Effects(kernel)
    if variable.storage == "parameter":
        return variable not in effects.changed(kernel.function.body)
    return variable in effects.lasting


def _of_object(kernel: Kernel, place: Name, name: str, call: Call) -> Function | None:
    """A method as a function: it names the members of a local of its structure, which stays."""
    local, unit, count = place.variable, kernel.unit, len(call.arguments)
    if local is None:
        return None
    kind = named(local.type.base, unit.aliases)
    written = only_method(unit, name, count, kind)
    function = method_of(unit, place, name, count, kind, references=True)
    if written is None or function is None or len(function.parameters) != count:
        return None
    inside = [*expressions(function.body)]
    own = {v.name for v in (*declared_in(function.body), *function.parameters)}
    if local.name in own or any(isinstance(e, Assign | Step) for e in inside):
        return None
    if not _read(kernel, local) or not means_the_same(kernel, written, fields_of(unit, kind)):
        return None
    return replace(function, name=name if name != "operator()" else local.name)


def _read(kernel: Kernel, local: Variable) -> bool:
    """Whether the members of a local are asked for, and methods called, and nothing else."""
    inside = [*expressions(kernel.function.body)]
    targets = [e.target for e in inside if isinstance(e, Assign | Step)]
    targets += [e.operand for e in inside if isinstance(e, Unary) and e.op == "&"]
    asked = {e.base for e in inside if isinstance(e, Member) and e not in targets}
    called = {part for e in inside if isinstance(e, Call) for part in (e.receiver, e.callee)}
    return all(e in asked | called for e in inside if isinstance(e, Name) and e.variable is local)
