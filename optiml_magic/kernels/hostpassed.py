"""The names of a task for what launches pass, and what the host's code says of each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostallocated import Memory, end_of, function_seeing, memory_of
from optiml_magic.kernels.hostfilled import copied, filled
from optiml_magic.kernels.hostmemory import allocations, cleared, is_padded, touched
from optiml_magic.kernels.hostpointers import is_null, pointed, read_at, times_set, uncast
from optiml_magic.kernels.hostscope import Call, expressed
from optiml_magic.kernels.hostspelled import spell
from optiml_magic.kernels.hosttensors import shape_made, tensor_extent, tensor_made, tensor_of
from optiml_magic.kernels.signature import Parameter, split_name
from optiml_magic.source.directives import (
    Directive,
    InitDirective,
    LaunchDirective,
    SizeDirective,
    ZeroDirective,
)
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues

_LITERALS = frozenset({"number_literal", "unary_expression", "true", "false"})


class Passed:
    """The names under which launches pass what the host gave them."""

    def __init__(self, parts: frozenset[int]) -> None:
        self.parts = parts  # the places of arguments that are parts of what is passed elsewhere
        self._buffers: dict[tuple[str, int], str] = {}  # by what the host calls them, and when
        self._places: dict[str, int] = {}  # the function that passed a buffer first under a name
        self._scalars: dict[str, tuple[Call, Node]] = {}  # what the host passed first under a name
        self._host: dict[int, dict[str, str]] = {}  # names of numbers, by function and host's name
        self._tensors: dict[str, str] = {}  # buffers by the tensor that they are the data of
        self._launched: set[str] = set()  # the buffers that a launch so far was given
        self._written: set[str] = set()
        self._members: dict[int, dict[str, tuple[Node, str]]] = {}  # the same of members
        self._named: dict[tuple[int, frozenset[tuple[str, str]], int], HostValues] = {}
        self._others: dict[str, Directive] = {}
        self.assumed: dict[str, dict[str, int]] = {}  # numbers in a directive that it cannot name

    @property
    def others(self) -> tuple[Directive, ...]:
        """What is to be done before the launches.

        What is cleared and only read is an input, of which zeros would prove nothing.
        """
        return tuple(
            directive
            for name, directive in self._others.items()
            if isinstance(directive, SizeDirective) or name in self._written
        )

    def names(self, call: Call) -> dict[str, str]:
        """The host's names of numbers that launches of the same function passed before."""
        return dict(self._host.get(call.place, {}))

    def name(
        self, call: Call, parameter: Parameter, argument: Node, before: Mapping[str, str]
    ) -> str:
        """A buffer keeps the name that it first bound to, a number that of its parameter.

        A number that an earlier launch of the function passed keeps the name that it has there, and
        one that the host computes from such numbers is passed as that.
        """
        if parameter.pointer:
            return self._buffer(call, parameter, argument)
        argument = scalar_of(parameter, argument)
        text = text_of(argument)
        if argument.type == "identifier" and text in before:
            return before[text]
        if before and argument.type == "identifier":
            computed = expressed(call.values(before), argument, before)
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
        elif argument.type == "field_expression":
            self._members.setdefault(call.place, {}).setdefault(text, (argument, name))
        return name

    def _buffer(self, call: Call, parameter: Parameter, argument: Node) -> str:
        if is_null(argument):
            return parameter.name
        function, name, given = call.origin(argument)
        read = read_at(given, call.named_in(function)) if name else given
        times = times_set(name, read, function) if name else 0
        key = (name or f"{call.place}: {text_of(argument)}", times)
        if key not in self._buffers:
            taken = self._places.setdefault(parameter.name, function.start_byte)
            own = parameter.name
            if taken == function.start_byte and own in self._buffers.values():
                own = _own(call, own)
            self._buffers[key] = own
        own = self._buffers[key]
        tensor = tensor_of(argument) or (name if argument.type == "identifier" else "")
        if tensor and (parameter.const or not parameter.writes):
            self._tensors.setdefault(tensor, own)
        return own

    @staticmethod
    def _same(first: Call, given: Node, call: Call, argument: Node) -> bool:
        """Whether two launches pass one number: by its value, or by its name in one function."""
        numbers = first.as_run.number(given), call.as_run.number(argument)
        if numbers != (None, None):
            alike = first.place == call.place and text_of(given) == text_of(argument)
            return numbers[0] == numbers[1] or alike
        return first.place != call.place or text_of(given) == text_of(argument)

    def extents(self, call: Call, values: HostValues) -> dict[str, str]:
        """What the host's code has for extents of tensors, by the buffers that are their data."""
        found = {}
        for node in walk(call.function):
            if node.type in ("call_expression", "subscript_expression"):
                extent = tensor_extent(node, values, self._tensors)
                if extent is not None:
                    found[text_of(node)] = str(extent)
        return found

    def told(self, call: Call, directive: LaunchDirective | None) -> Iterator[Note]:
        """What is known of each thing that a launch passes: numbers, names, and sizes of arrays.

        Of one that no directive says, what it passes has the names of its parameters.
        """
        own = [parameter.name for parameter in call.kernel.parameters]
        if len(call.arguments) != len(own):
            return
        args = directive.args if directive is not None else None
        names = own if args is None else [str(a) for a in args]
        assumed = self.assumed.get(str(directive), {}).items()
        if assumed:
            numbers = ", ".join(f"{number} for `{text}`" for text, number in assumed)
            told = (
                f"the launch of `{call.name}` has {numbers}, which it does not pass: write its "
                "launch directive for other sizes"
            )
            yield Note("launch", told, call.name)
        triples = list(zip(names, call.kernel.parameters, call.arguments, strict=True))
        for name, parameter, argument in triples:
            extent = tensor_extent(argument, call.as_run, self._tensors)
            if extent is not None and not parameter.pointer and name.isidentifier():
                self._others.setdefault(name, SizeDirective(name, extent))
        for name, parameter, argument in triples:
            value = call.as_run.number(argument) if name in self._scalars else None
            scalar = scalar_of(parameter, argument)
            called = text_of(scalar) if scalar.type == "identifier" else ""
            if parameter.pointer:
                called = pointed(argument, call.names)
            if called.isidentifier() and called != name and not is_null(argument):
                told = f"`{name}` is your `{called}`, as `{call.name}` is launched with it"
                yield Note("called", f"{told} (line {call.line})", name, called=called)
            if value is not None and name not in self._others:
                if parameter.dtype and parameter.dtype[-2] in "iu" and math.isfinite(value):
                    value = int(value)
                elif parameter.dtype and parameter.dtype[-2] == "b":
                    value = int(bool(value))
                shown = text_of(argument) if argument.type in _LITERALS else value
                told = f"`{name}` is {shown}, as `{call.name}` is launched with it"
                yield Note("literal", f"{told} (line {call.line})", name, value)
        arguments = split_name(call.name)[1]
        exact = (
            call.kernel.instantiate(arguments).parameters if arguments else call.kernel.parameters
        )
        for name, parameter, argument in zip(names, exact, call.arguments, strict=True):
            if parameter.pointer and not is_null(argument):
                yield from self._memory(call, parameter, argument, name)

    def _memory(
        self, call: Call, parameter: Parameter, argument: Node, name: str
    ) -> Iterator[Note]:
        """What the function that has the buffer, this one or a caller, does with its memory."""
        host, sizes, within = call.host, self.names(call), call.function
        *inner, (function, origin, given) = call.passing(argument)
        while within != function and (caller := host.callers.get(within.start_byte)):
            sizes = {text_of(node): sizes[own] for own, node in caller.arguments.items()
                     if own in sizes and node.type == "identifier"}  # fmt: skip
            within = caller.function
        if not origin:
            return
        seeing = function_seeing(host, function, origin)
        if seeing != function:
            function, given = seeing, end_of(seeing)
        body = function.child_by_field_name("body") or function
        members = self._members.get(function.start_byte, {})
        key = (function.start_byte, frozenset(sizes.items()), len(members))
        if key not in self._named:
            self._named[key] = host.values(function, sizes)
            for member, own in members.values():
                spell(self._named[key], member, own)
        sizes |= {own: own for _, own in members.values()}
        values = self._named[key], host.as_run(function)  # in any block of it
        caller = host.callers.get(function.start_byte)
        types = {**host.aliases, **(caller.types if caller is not None else {})}
        memory = memory_of(host, function, origin, values[1])
        if memory.function == function:
            yield from allocations(given, origin, parameter, name, values, sizes, types)
        else:
            bound = host.values(memory.function, {}), memory.known
            yield from allocations(end_of(memory.function), memory.name, parameter, name, bound, {},
                                   memory.known.types)  # fmt: skip
        outer = Memory(function, origin, values[1])
        yield from filled(host, memory, name, given, host.as_run(function, given), outer)
        made = None
        if function == call.function and (definition := values[0].definition(origin)):
            values[0].spelled |= self.extents(call, values[0])
            made = tensor_made(definition, values[0], sizes, self._tensors)
        if made is not None:
            told = f"`{name}` has {made[0]} elements, as `{origin}` is made"
            yield Note("allocated", told, name, extent=str(made[0]))
        elif shape := shape_made(values[1].definition(origin), values[1]):
            count = math.prod(shape)
            axes = " x ".join(map(str, shape))
            told = f"`{name}` has {count} elements ({axes}), as `{origin}` is made"
            yield Note("allocated", told, name, count, extent=str(count), shape=shape)
        first = name not in self._launched and not any(
            touched(one, called, passed) for one, called, passed in inner
        )
        if first and (cleared(body, origin, given) or (made is not None and made[1])):
            keeps = parameter.reads or parameter.adds
            self._others[name] = ZeroDirective(name) if keeps else InitDirective(name, 0)
        holds = is_padded(body, origin, values[1]) or any(copied(origin, given, body))
        if first and holds and not parameter.reads and not parameter.adds:
            # What a kernel leaves out stays what it was: zeros stand in for that.
            self._others.setdefault(name, InitDirective(name, 0))
        self._launched.add(name)
        if parameter.writes:
            self._written.add(name)

    def shown(self, directive: LaunchDirective) -> LaunchDirective:
        """A directive with whole numbers in the place of names that stand for them."""
        known = {n: call.as_run.number(a) for n, (call, a) in self._scalars.items()}
        whole = {n: value for n, value in known.items() if isinstance(value, int)}
        args = directive.args
        return replace(directive, args=args and tuple(a.substituted(whole) for a in args))


def scalar_of(parameter: Parameter, argument: Node) -> Node:
    """The host's number that a launch passes, without the cast of one integer to another."""
    whole = parameter.dtype is not None and parameter.dtype[-2] in "iu"
    inner = uncast(argument)
    return inner if whole and inner.type == "identifier" else argument


def _own(call: Call, name: str) -> str:
    """A name for what a kernel is passed, where the one of its parameter is another's."""
    return f"{split_name(call.name)[0].rpartition('::')[2]}_{name}"
