"""The names of a task for what launches pass, and what the host's code says of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostmemory import allocations, cleared
from optiml_magic.kernels.hostscope import DEEPEST, Call, expressed
from optiml_magic.kernels.hosttensors import tensor_extent, tensor_of
from optiml_magic.kernels.signature import Parameter, split_name
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    SizeDirective,
    ZeroDirective,
)
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.operators import SM_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_LITERALS = frozenset({"number_literal", "unary_expression", "true", "false"})


class Passed:
    """The names under which launches pass what the host gave them."""

    def __init__(self) -> None:
        self._buffers: dict[str, str] = {}  # by what the host calls them
        self._places: dict[str, int] = {}  # the function that passed a buffer first under a name
        self._scalars: dict[str, tuple[Call, Node]] = {}  # what the host passed first under a name
        self._host: dict[int, dict[str, str]] = {}  # names of numbers, by function and host's name
        self._tensors: dict[str, str] = {}  # buffers by the tensor that they are the data of
        self._launched: set[str] = set()  # the buffers that a launch so far was given
        self._others: dict[str, Directive] = {}

    @property
    def others(self) -> tuple[Directive, ...]:
        return tuple(self._others.values())

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
        return name

    def _buffer(self, call: Call, parameter: Parameter, argument: Node) -> str:
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
    def _same(first: Call, given: Node, call: Call, argument: Node) -> bool:
        """Whether two launches pass one number: by its value, or by its name in one function."""
        numbers = first.as_run.number(given), call.as_run.number(argument)
        if numbers != (None, None):
            alike = first.place == call.place and text_of(given) == text_of(argument)
            return numbers[0] == numbers[1] or alike
        return first.place != call.place or text_of(given) == text_of(argument)

    def told(self, call: Call, directive: LaunchDirective) -> Iterator[Note]:
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
        self, call: Call, parameter: Parameter, argument: Node, name: str
    ) -> Iterator[Note]:
        """What the function that has the buffer, this one or a caller, does with its memory."""
        host, function, sizes = call.host, call.function, self.names(call)
        for _ in range(DEEPEST):
            caller = host.callers.get(function.start_byte)
            given = caller.arguments.get(text_of(argument)) if caller is not None else None
            if caller is None or given is None or given.type != "identifier":
                break
            sizes = {text_of(node): sizes[own] for own, node in caller.arguments.items()
                     if own in sizes and node.type == "identifier"}  # fmt: skip
            function, argument = caller.function, given
        body = function.child_by_field_name("body") or function
        values = host.values(function, sizes), host.as_run(function)
        caller = host.callers.get(function.start_byte)
        types = caller.types if caller is not None else {}
        yield from allocations(body, argument, parameter, name, values, sizes, types)
        first = name not in self._launched
        if first and parameter.reads and cleared(body, argument):
            self._others[name] = ZeroDirective(name)
        self._launched.add(name)

    def shown(self, directive: LaunchDirective) -> LaunchDirective:
        """A directive with whole numbers in the place of names that stand for them."""
        known = {n: call.as_run.number(a) for n, (call, a) in self._scalars.items()}
        whole = {n: value for n, value in known.items() if isinstance(value, int)}
        args = directive.args
        return replace(directive, args=args and tuple(a.substituted(whole) for a in args))


def _own(call: Call, name: str) -> str:
    """A name for what a kernel is passed, where the one of its parameter is another's."""
    return f"{split_name(call.name)[0].rpartition('::')[2]}_{name}"
