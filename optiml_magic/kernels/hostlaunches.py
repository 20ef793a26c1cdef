"""The ``<<<...>>>`` launches of host functions as launch directives, and what they pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostcalls import Caller, callers
from optiml_magic.kernels.hostmemory import allocations, cleared, touched
from optiml_magic.kernels.hosttensors import tensor_extent, tensor_of
from optiml_magic.kernels.hostvalues import HostValues
from optiml_magic.kernels.signature import Kernel, Parameter, kernels, split_name
from optiml_magic.source.definitions import Definition, definitions
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    SizeDirective,
    ZeroDirective,
)
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import line_of, walk
from optiml_magic.source.values import constants, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.unit import Unit
    from optiml_magic.source.syntax import Syntax

_DEEPEST = 4  # wrappers within wrappers; ours
_LITERALS = frozenset({"number_literal", "unary_expression", "true", "false"})
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})


@dataclass(frozen=True)
class Launches:
    """``directives`` has one for the first launch of each kernel, and ``notes`` what was read.

    ``others`` clear buffers that the host clears, and give numbers that it takes from shapes.
    """

    directives: tuple[LaunchDirective, ...]
    others: tuple[Directive, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class _Host:
    """What a text says outside of its functions."""

    fixed: Mapping[str, int]
    functions: Mapping[str, Definition]
    callers: Mapping[int, Caller]

    def values(self, function: Node, kept: Mapping[str, str]) -> HostValues:
        """What may be said in the names of a function's parameters, and in ``kept``."""
        body = function.child_by_field_name("body") or function
        names = [formal.name for formal in formals(function)]
        return HostValues(body, names, self.fixed, kept, self.functions)

    def as_run(self, function: Node, depth: int = 0) -> HostValues:
        """The numbers of the program where its command line gives none."""
        body = function.child_by_field_name("body") or function
        own = {formal.name for formal in formals(function)}
        fixed = {name: value for name, value in self.fixed.items() if name not in own}
        fixed |= {"argc": 1} if "argc" in own else {}
        caller = self.callers.get(function.start_byte)
        if caller is not None and depth < _DEEPEST:
            outer = self.as_run(caller.function, depth + 1)
            numbers = {name: outer.number(given) for name, given in caller.arguments.items()}
            fixed |= {name: n for name, n in numbers.items() if isinstance(n, int)}
        return HostValues(body, (), fixed, (), self.functions, as_run=True)


@dataclass(frozen=True, eq=False)
class _Call:
    """One ``kernel<<<config>>>(arguments)`` in a host function."""

    kernel: Kernel
    name: str
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    function: Node
    line: int
    looped: bool
    host: _Host

    @property
    def place(self) -> int:
        """Of which function the names are."""
        return self.function.start_byte

    def values(self, kept: Mapping[str, str]) -> HostValues:
        return self.host.values(self.function, kept)

    @cached_property
    def as_run(self) -> HostValues:
        return self.host.as_run(self.function)


def launches(syntax: Syntax, unit: Unit, defines: Mapping[str, int]) -> Launches:
    """A directive for the first launch of each kernel, and notes on what could not be said."""
    found: list[LaunchDirective] = []
    notes: list[Note] = []
    seen: dict[str, str] = {}
    passed = _Passed()
    host = _Host({**defines, **constants(syntax)}, definitions(syntax), callers(syntax))
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


def _calls(syntax: Syntax, unit: Unit, notes: list[Note], host: _Host) -> Iterator[_Call]:
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
        found = _Call(kernel, written, tuple(node.named_children), tuple(given), function,
                      line_of(call), looped, host)  # fmt: skip
        yield replace(found, name=_with_numbers(found, arguments))


def _with_numbers(call: _Call, arguments: Sequence[str]) -> str:
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


def _directive(call: _Call, passed: _Passed) -> LaunchDirective | None:
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
        shared = _expression(values, call.config[2], scalars)
        if shared is None:
            return None
    if grid is None or block is None:
        return None
    by_name = names == [parameter.name for parameter in parameters]
    arguments = map(parse_expression, names)
    args = None if by_name else tuple(arguments)
    return LaunchDirective(call.name, grid, block, shared, args)


class _Passed:
    """The names under which launches pass what the host gave them."""

    def __init__(self) -> None:
        self._buffers: dict[str, str] = {}  # by what the host calls them
        self._places: dict[str, int] = {}  # the function that passed a buffer first under a name
        self._scalars: dict[str, tuple[_Call, Node]] = {}  # what the host passed first under a name
        self._host: dict[int, dict[str, str]] = {}  # names of numbers, by function and host's name
        self._tensors: dict[str, str] = {}  # buffers by the tensor that they are the data of
        self._launched: set[str] = set()  # the buffers that a launch so far was given
        self._others: dict[str, Directive] = {}

    @property
    def others(self) -> tuple[Directive, ...]:
        return tuple(self._others.values())

    def names(self, call: _Call) -> dict[str, str]:
        """The host's names of numbers that launches of the same function passed before."""
        return dict(self._host.get(call.place, {}))

    def name(
        self, call: _Call, parameter: Parameter, argument: Node, before: Mapping[str, str]
    ) -> str:
        """A buffer keeps the name that it first bound to, a number that of its parameter.

        A number that an earlier launch of the function passed keeps the name that it has there, and
        one that the host computes from such numbers is passed as that.
        """
        if parameter.pointer:
            return self._buffer(call, parameter, argument)
        text = text_of(argument)
        if argument.type == "identifier" and text in before:
            return before[text]
        if before and argument.type == "identifier":
            computed = _expression(call.values(before), argument, before)
            if computed is not None and computed.names - {SM_COUNT}:
                return str(computed)
        first, given = self._scalars.setdefault(parameter.name, (call, argument))
        if self._same(first, given, call, argument):
            name = parameter.name
        else:
            name = _own(call, parameter.name)
            self._scalars[name] = call, argument
        if argument.type == "identifier":
            self._host.setdefault(call.place, {}).setdefault(text, name)
        return name

    def _buffer(self, call: _Call, parameter: Parameter, argument: Node) -> str:
        if argument.type != "identifier":
            tensor = tensor_of(argument)
            if tensor and (parameter.const or not parameter.writes):
                self._tensors.setdefault(tensor, parameter.name)
            return parameter.name
        text = text_of(argument)
        if text not in self._buffers:
            taken = self._places.setdefault(parameter.name, call.place) == call.place
            name = parameter.name
            if taken and name in self._buffers.values():
                name = _own(call, name)
            self._buffers[text] = name
        return self._buffers[text]

    @staticmethod
    def _same(first: _Call, given: Node, call: _Call, argument: Node) -> bool:
        """Whether two launches pass one number: by its value, or by its name in one function."""
        numbers = first.as_run.number(given), call.as_run.number(argument)
        if numbers != (None, None):
            alike = first.place == call.place and text_of(given) == text_of(argument)
            return numbers[0] == numbers[1] or alike
        return first.place != call.place or text_of(given) == text_of(argument)

    def told(self, call: _Call, directive: LaunchDirective) -> Iterator[Note]:
        """What is known of each thing that a launch passes: numbers, names, and sizes of arrays."""
        own = [parameter.name for parameter in call.kernel.parameters]
        names = own if directive.args is None else [str(a) for a in directive.args]
        triples = list(zip(names, call.kernel.parameters, call.arguments, strict=True))
        for name, parameter, argument in triples:
            value = call.as_run.number(argument) if name in self._scalars else None
            if argument.type == "identifier" and text_of(argument) != name:
                told = (
                    f"`{name}` is your `{text_of(argument)}`, as `{call.name}` is launched with it"
                )
                called = text_of(argument)
                yield Note("called", f"{told} (line {call.line})", name, called=called)
            if value is not None:
                if parameter.dtype and parameter.dtype[-2] in "iub" and value == int(value):
                    value = int(value)
                shown = text_of(argument) if argument.type in _LITERALS else value
                told = f"`{name}` is {shown}, as `{call.name}` is launched with it"
                yield Note("literal", f"{told} (line {call.line})", name, value)
        arguments = split_name(call.name)[1]
        exact = (
            call.kernel.instantiate(arguments).parameters if arguments else call.kernel.parameters
        )
        for name, parameter, argument in zip(names, exact, call.arguments, strict=True):
            if parameter.pointer and argument.type in ("identifier", "field_expression"):
                yield from self._memory(call, parameter, argument, name)
            elif not parameter.pointer and name.isidentifier():
                extent = tensor_extent(argument, call.as_run, self._tensors)
                if extent is not None:
                    self._others.setdefault(name, SizeDirective(name, extent))

    def _memory(
        self, call: _Call, parameter: Parameter, argument: Node, name: str
    ) -> Iterator[Note]:
        """What the function that has the buffer, this one or a caller, does with its memory."""
        host, function, sizes = call.host, call.function, self.names(call)
        alone = True
        for _ in range(_DEEPEST):
            caller = host.callers.get(function.start_byte)
            given = caller.arguments.get(text_of(argument)) if caller is not None else None
            if caller is None or given is None or given.type != "identifier":
                break
            sizes = {text_of(node): sizes[own] for own, node in caller.arguments.items()
                     if own in sizes and node.type == "identifier"}  # fmt: skip
            alone = alone and not touched(function, argument)
            function, argument = caller.function, given
        body = function.child_by_field_name("body") or function
        values = host.values(function, sizes), host.as_run(function)
        caller = host.callers.get(function.start_byte)
        types = caller.types if caller is not None else {}
        yield from allocations(body, argument, parameter, name, values, sizes, types)
        first = name not in self._launched
        if first and alone and parameter.reads and cleared(body, argument):
            self._others[name] = ZeroDirective(name)
        self._launched.add(name)

    def shown(self, directive: LaunchDirective) -> LaunchDirective:
        """A directive with whole numbers in the place of names that stand for them."""
        known = {n: call.as_run.number(a) for n, (call, a) in self._scalars.items()}
        whole = {n: value for n, value in known.items() if isinstance(value, int)}
        args = directive.args
        return replace(directive, args=args and tuple(a.substituted(whole) for a in args))


def _own(call: _Call, name: str) -> str:
    """A name for what a kernel is passed, where the one of its parameter is another's."""
    return f"{split_name(call.name)[0].rpartition('::')[2]}_{name}"


def _axes(
    values: HostValues, node: Node, scalars: Mapping[str, str]
) -> tuple[Expression, ...] | None:
    axes = values.axes(node)
    if not axes or len(axes) > 3:
        return None
    found = [_expression(values, axis, scalars) for axis in axes]
    while len(found) > 1 and str(found[-1]) == "1":
        found.pop()
    return tuple(e for e in found if e is not None) if all(found) else None


def _expression(values: HostValues, node: Node, scalars: Mapping[str, str]) -> Expression | None:
    """The node's value in the names of the task."""
    expression = values.expression(node)
    if expression is None or not expression.names <= {*scalars, SM_COUNT}:
        return None
    renamed = re.sub(r"[A-Za-z_]\w*", lambda m: scalars.get(m[0], m[0]), str(expression))
    return tidy(parse_expression(renamed))
