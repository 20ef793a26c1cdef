"""The ``<<<...>>>`` launches of host functions as launch directives, and what they pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostcalls import callers
from optiml_magic.kernels.hostpassed import Passed
from optiml_magic.kernels.hostscope import Call, Host, expressed
from optiml_magic.kernels.signature import kernels, split_name
from optiml_magic.source.definitions import definitions
from optiml_magic.source.directives import Directive, LaunchDirective
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, walk
from optiml_magic.source.values import constants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues
    from optiml_magic.kernels.unit import Unit
    from optiml_magic.source.syntax import Syntax

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})


@dataclass(frozen=True)
class Launches:
    """``directives`` has one for the first launch of each kernel, and ``notes`` what was read.

    ``others`` clear buffers that the host clears, and give numbers that it takes from shapes.
    """

    directives: tuple[LaunchDirective, ...]
    others: tuple[Directive, ...]
    notes: tuple[Note, ...]


def launches(syntax: Syntax, unit: Unit, defines: Mapping[str, int]) -> Launches:
    """A directive for the first launch of each kernel, and notes on what could not be said."""
    found: list[LaunchDirective] = []
    notes: list[Note] = []
    seen: dict[str, str] = {}
    passed = Passed()
    host = Host({**defines, **constants(syntax)}, definitions(syntax), callers(syntax))
    for call in _calls(syntax, unit, notes, host):
        directive = _directive(call, passed)
        if directive is None:
            told = (
                f"the launch of `{call.name}` on line {call.line} is not expressible with its "
                "parameters; write its launch directive"
            )
            notes.append(Note("unread_launch", told, call.name))
        elif call.name not in seen:
            seen[call.name] = str(directive)
            found.append(directive)
            notes += passed.told(call, directive)
            if call.looped:
                told = (
                    f"`{call.name}` is launched in a loop (line {call.line}); the "
                    "directive is one round, add repeat(n) for more"
                )
                notes.append(Note("launch", told, call.name))
        elif seen[call.name] == str(directive):
            told = f"`{call.name}` is launched again on line {call.line}; kept once"
            notes.append(Note("launch", told, call.name))
        else:
            shown = passed.shown(directive)
            told = f"another launch of `{call.name}` on line {call.line}: {shown}"
            notes.append(Note("launch", told, call.name))
    return Launches(tuple(found), passed.others, tuple(notes))


def _calls(syntax: Syntax, unit: Unit, notes: list[Note], host: Host) -> Iterator[Call]:
    known = kernels(unit)
    for node in walk(syntax.root):
        if node.type != "kernel_call_syntax" or node.parent is None:
            continue
        call = node.parent
        name = text_of(call.child_by_field_name("function"))
        base, arguments = split_name(name)
        matching = [k for k in known if k.name.rsplit("::")[-1] == base.rsplit("::")[-1]]
        listed = call.child_by_field_name("arguments")
        function, looped = _enclosing(call)
        if len(matching) != 1 or function is None or listed is None:
            told = f"the launch of `{name}` on line {line_of(call)} names a kernel that is not here"
            notes.append(Note("unread_launch", told, name))
            continue
        given = [child for child in listed.named_children if child.type != "comment"]
        kernel = matching[0]
        written = kernel.name + (f"<{', '.join(arguments)}>" if arguments else "")
        found = Call(kernel, written, tuple(node.named_children), tuple(given), function,
                      line_of(call), looped, host)  # fmt: skip
        yield replace(found, name=_with_numbers(found, arguments))


def _with_numbers(call: Call, arguments: Sequence[str]) -> str:
    """Its name as device code knows it: template arguments that are locals of the host by value.

    What PyTorch dispatches on is a type for each instance; here it is that of most tensors.
    """
    values, caller = call.as_run, call.host.callers.get(call.place)
    types = caller.types if caller is not None else {}
    arguments = [types.get(argument, argument) for argument in arguments]
    found = [values.local(argument) for argument in arguments]
    given = [str(a if n is None else n) for a, n in zip(arguments, found, strict=True)]
    if "AT_DISPATCH_" in text_of(call.function):
        given = ["float" if name == "scalar_t" else name for name in given]
    return call.kernel.name + (f"<{', '.join(given)}>" if given else "")


def _enclosing(node: Node) -> tuple[Node | None, bool]:
    looped, parent = False, node.parent
    while parent is not None and parent.type != "function_definition":
        looped = looped or parent.type in _LOOPS
        parent = parent.parent
    return parent, looped


def _directive(call: Call, passed: Passed) -> LaunchDirective | None:
    """The directive of one launch, ``passed`` under the names of those before it."""
    parameters = call.kernel.parameters
    body = call.function.child_by_field_name("body")
    if body is None or len(call.arguments) != len(parameters) or not 2 <= len(call.config) <= 4:
        return None
    pairs = list(zip(parameters, call.arguments, strict=True))
    before = passed.names(call)
    names = [passed.name(call, *pair, before) for pair in pairs]
    own = {
        text_of(argument): name
        for (parameter, argument), name in reversed(list(zip(pairs, names, strict=True)))
        if argument.type == "identifier" and not parameter.pointer and name.isidentifier()
    }
    scalars = {**before, **own}
    values = call.values(scalars)
    for (parameter, argument), name in zip(pairs, names, strict=True):
        if not parameter.pointer and name.isidentifier():
            values.spell(argument, name)
            scalars = {**scalars, name: name} if name in values.spelled.values() else scalars
    grid, block = (_axes(values, part, scalars) for part in call.config[:2])
    shared = None
    if len(call.config) > 2 and text_of(call.config[2]) != "0":
        shared = expressed(values, call.config[2], scalars)
        if shared is None:
            return None
    if grid is None or block is None:
        return None
    by_name = names == [parameter.name for parameter in parameters]
    arguments = map(parse_expression, names)
    args = None if by_name else tuple(arguments)
    return LaunchDirective(call.name, grid, block, shared, args)


def _axes(
    values: HostValues, node: Node, scalars: Mapping[str, str]
) -> tuple[Expression, ...] | None:
    axes = values.axes(node)
    if not axes or len(axes) > 3:
        return None
    found = [expressed(values, axis, scalars) for axis in axes]
    while len(found) > 1 and str(found[-1]) == "1":
        found.pop()
    return tuple(e for e in found if e is not None) if all(found) else None
