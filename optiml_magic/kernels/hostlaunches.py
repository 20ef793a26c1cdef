"""The ``<<<...>>>`` launches of host functions as launch directives, and what they pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostbranches import Group, groups
from optiml_magic.kernels.hostcalls import callers
from optiml_magic.kernels.hostchanges import referring
from optiml_magic.kernels.hostconstants import Copied, copied_numbers, filled_constants
from optiml_magic.kernels.hostdeduced import deduced
from optiml_magic.kernels.hostidle import coming_to
from optiml_magic.kernels.hostparts import parts_passed
from optiml_magic.kernels.hostpassed import Passed, scalar_of
from optiml_magic.kernels.hostscope import Call, Host, expressed
from optiml_magic.kernels.hostspelled import spell
from optiml_magic.kernels.hostwritten import written_launches
from optiml_magic.kernels.signature import kernels, split_name
from optiml_magic.source.aliases import spelled, type_aliases, type_macros
from optiml_magic.source.definitions import definitions
from optiml_magic.source.directives import Directive, LaunchDirective
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.syntax import line_of, name_of
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

    ``others`` clear buffers that the host clears, and give numbers that it takes from shapes;
    ``constants`` are the numbers that it copies to those of the device.
    """

    directives: tuple[LaunchDirective, ...]
    others: tuple[Directive, ...]
    notes: tuple[Note, ...]
    constants: Mapping[str, Copied]


@dataclass(frozen=True)
class _Unread:
    """A launch that no directive can say: what is missing, and the directive but for that."""

    missing: tuple[str, ...]
    sketch: str
    parts: tuple[str, ...] = ()  # of arrays that are passed elsewhere, too


def launches(syntax: Syntax, unit: Unit, defines: Mapping[str, int]) -> Launches:
    """A directive for the first launch of each kernel, and notes on what could not be said."""
    found: list[LaunchDirective] = []
    notes: list[Note] = []
    seen: dict[str, str] = {}
    types = {**type_aliases(syntax), **type_macros(syntax)}
    host = Host({**defines, **constants(syntax)}, definitions(syntax), callers(syntax),
                types, referring(syntax.root), syntax.root)  # fmt: skip
    made = sorted(_calls(syntax, unit, notes, host), key=lambda call: call.order)
    reached, idle = coming_to(made, syntax.root)
    notes += idle
    passed = Passed(parts_passed(reached))
    for group in groups(reached):
        first, *others = group.calls
        chosen = _dispatched(group, passed) if others and first.name not in seen else []
        if chosen:
            for call, chosen_directive in chosen:
                seen[call.name] = str(chosen_directive)
                found.append(chosen_directive)
                notes += passed.told(call, chosen_directive)
            continue
        notes += [_other_branch(call, first) for call in others]
        directive = _directive(first, passed)
        if isinstance(directive, _Unread):
            notes.append(_unread(first, directive, len(found)))
            notes += passed.told(first, None)
            continue
        if first.name in seen:
            notes.append(_again(first, directive, seen[first.name], passed))
            continue
        seen[first.name] = str(directive)
        found.append(directive)
        notes += [*passed.told(first, directive), *_more(first)]
    notes += filled_constants(syntax.root, host.fixed)
    copied = copied_numbers(syntax.root, host, unit.structs)
    return Launches(tuple(found), passed.others, tuple(notes), copied)


def _dispatched(group: Group, passed: Passed) -> list[tuple[Call, LaunchDirective]]:
    """The launches of the branches of one ``if``, by what they ask; none where that is unclear."""
    chosen: list[tuple[Call, LaunchDirective]] = []
    for call, condition in zip(group.calls, group.conditions, strict=False):
        directive = _directive(call, passed, condition)
        if isinstance(directive, _Unread):
            return []
        chosen.append((call, replace(directive, otherwise=bool(chosen))))
    return chosen


def _other_branch(call: Call, first: Call) -> Note:
    told = (
        f"the launch of `{call.name}` on line {call.line} is left out: it excludes that of "
        f"`{first.name}` on line {first.line}, and which of the two runs is not known"
    )
    return Note("launch", told, call.name)


def _unread(call: Call, unread: _Unread, place: int) -> Note:
    told = f"the launch of `{call.name}` on line {call.line} is not expressible with its parameters"
    names = ", ".join(f"`{name}`" for name in unread.missing)
    why = f": {names} {'are' if unread.missing[1:] else 'is'} not known" if names else ""
    if unread.parts:
        parts = " and ".join(f"`{part}`" for part in unread.parts)
        why += f"{',' if why else ':'} {parts} begins within an array that is passed elsewhere, too"
    fix = f"write how it runs, with your own sizes for the words in capitals: {unread.sketch}"
    return Note("unread_launch", f"{told}{why}; write its launch directive", call.name, fix=fix,
                why=why, line=call.line, place=place)  # fmt: skip


def _again(call: Call, directive: LaunchDirective, before: str, passed: Passed) -> Note:
    if before == str(directive):
        told = f"`{call.name}` is launched again on line {call.line}; kept once"
    else:
        shown = passed.shown(directive)
        told = f"another launch of `{call.name}` on line {call.line}: {shown}"
    return Note("launch", told, call.name)


def _more(call: Call) -> Iterator[Note]:
    """That a launch stands for several."""
    if call.looped:
        told = (
            f"`{call.name}` is launched in a loop (line {call.line}); the "
            "directive is one round, add repeat(n) for more"
        )
        yield Note("launch", told, call.name)
    caller = call.host.callers.get(call.place)
    if caller is not None and caller.others:
        lines = ", ".join(map(str, caller.others))
        own = name_of(call.function)
        told = f"`{own}`, which launches `{call.name}`, is called again on line {lines}; kept once"
        yield Note("launch", told, call.name)


def _calls(syntax: Syntax, unit: Unit, notes: list[Note], host: Host) -> Iterator[Call]:
    known = kernels(unit)
    for written in written_launches(syntax):
        base, arguments = split_name(written.name)
        matching = [k for k in known if k.name.rsplit("::")[-1] == base.rsplit("::")[-1]]
        function, looped = _enclosing(written.node)
        if len(matching) != 1 or function is None:
            told = (
                f"the launch of `{written.name}` on line {line_of(written.node)} names a kernel "
                "that is not here"
            )
            notes.append(Note("unread_launch", told, written.name))
            continue
        kernel = matching[0]
        name = kernel.name + (f"<{', '.join(arguments)}>" if arguments else "")
        found = Call(kernel, name, written.config, written.arguments, written.node, function,
                     line_of(written.node), looped, host)  # fmt: skip
        yield replace(found, name=_with_numbers(found, arguments))


def _with_numbers(call: Call, arguments: Sequence[str]) -> str:
    """Its name as device code knows it: template arguments that are locals of the host by value.

    What PyTorch dispatches on is a type for each instance; here it is that of most tensors.
    """
    values, caller = call.as_run, call.host.callers.get(call.place)
    types = {**call.host.aliases, **(caller.types if caller is not None else {})}
    arguments = [spelled(argument, types) for argument in arguments]
    found = [values.local(argument) for argument in arguments]
    given = [str(a if n is None else n) for a, n in zip(arguments, found, strict=True)]
    given += _deduced(call, len(given), types)
    if "AT_DISPATCH_" in text_of(call.function):
        given = ["float" if name == "scalar_t" else name for name in given]
    return call.kernel.name + (f"<{', '.join(given)}>" if given else "")


def _deduced(call: Call, given: int, types: Mapping[str, str]) -> Iterator[str]:
    """The template arguments behind those that are given, as far as what is passed says them."""
    wanted = call.kernel.template_parameters[given:]
    taken = [(parameter.ctype, parameter.depth) for parameter in call.kernel.parameters]
    names = [parameter.name for parameter in wanted if parameter.is_type]
    found = deduced(names, taken, call.arguments, call.function, types)
    for parameter in wanted:
        if parameter.name not in found:
            break
        yield found[parameter.name]


def _enclosing(node: Node) -> tuple[Node | None, bool]:
    looped, parent = False, node.parent
    while parent is not None and parent.type != "function_definition":
        looped = looped or (parent.type in _LOOPS and not _runs_once(parent))
        parent = parent.parent
    return parent, looped


def _runs_once(loop: Node) -> bool:
    """Whether it is ``do { } while (0)``, as macros have it."""
    condition = text_of(loop.child_by_field_name("condition")).strip("() ")
    return loop.type == "do_statement" and condition in ("0", "false")


def _directive(
    call: Call, passed: Passed, condition: Node | None = None
) -> LaunchDirective | _Unread:
    """The directive of one launch, ``passed`` under the names of those before it."""
    parameters = call.kernel.parameters
    body = call.function.child_by_field_name("body")
    if body is None or len(call.arguments) != len(parameters) or not 2 <= len(call.config) <= 4:
        return _Unread((), f"#pragma optiml launch {call.name} grid(BLOCKS) block(THREADS)")
    pairs = list(zip(parameters, call.arguments, strict=True))
    before = passed.names(call)
    names = [passed.name(call, *pair, before) for pair in pairs]
    own = {
        text_of(scalar_of(parameter, argument)): name
        for (parameter, argument), name in reversed(list(zip(pairs, names, strict=True)))
        if scalar_of(parameter, argument).type == "identifier"
        and not parameter.pointer
        and name.isidentifier()
    }
    scalars = {**before, **own}
    values = call.values(scalars)
    values.otherwise = call.as_run
    for (parameter, argument), name in zip(pairs, names, strict=True):
        if not parameter.pointer and name.isidentifier():
            spell(values, argument, name)
            scalars = {**scalars, name: name} if name in values.spelled.values() else scalars
    values.spelled |= passed.extents(call, values)
    missing: list[str] = []
    parts = [text_of(argument) for _, argument in pairs if argument.start_byte in passed.parts]
    grid, block = (
        _axes(values, part, scalars, word, missing)
        for part, word in zip(call.config, ("BLOCKS", "THREADS"), strict=False)
    )
    shared = None
    if len(call.config) > 2 and text_of(call.config[2]) != "0":
        shared = expressed(values, call.config[2], scalars)
        if shared is None:
            missing.append(text_of(call.config[2]))
            shared = parse_expression("BYTES")
    values.otherwise = None  # a branch is no matter of the numbers that one run has
    asked = expressed(values, condition, scalars) if condition is not None else None
    if condition is not None and asked is None:
        missing.append(text_of(condition))
    by_name = names == [parameter.name for parameter in parameters]
    args = None if by_name else tuple(map(parse_expression, names))
    directive = LaunchDirective(call.name, grid, block, shared, args, condition=asked)
    if missing or parts:
        return _Unread(tuple(missing), str(directive), tuple(parts))
    passed.assumed[str(directive)] = dict(values.assumed)
    return directive


def _axes(
    values: HostValues, node: Node, scalars: Mapping[str, str], word: str, missing: list[str]
) -> tuple[Expression, ...]:
    """The extents that a node gives, a ``word`` for each of the ``missing`` ones."""
    axes = values.axes(node) or [node]
    found = []
    for axis, name in zip(axes[:3], "XYZ", strict=False):
        extent = expressed(values, axis, scalars)
        if extent is None:
            missing.append(text_of(axis))
            extent = parse_expression(word if len(axes) == 1 else f"{word}_{name}")
        found.append(extent)
    while len(found) > 1 and str(found[-1]) == "1":
        found.pop()
    return tuple(found)
