"""What a launch is read with: its call, the function that makes it, and the text around that."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostarguments import COUNT
from optiml_magic.kernels.hostbranches import Arm, arms, is_reached
from optiml_magic.kernels.hostcalls import Caller, call_of
from optiml_magic.kernels.hosthiding import hiding
from optiml_magic.kernels.hostouter import Outer, class_of, outer_variables, own_names
from optiml_magic.kernels.hostpointers import pointed, times_set, uncast
from optiml_magic.kernels.hosttensors import extents_asked, shape_made
from optiml_magic.kernels.hostvalues import HostValues
from optiml_magic.kernels.signature import Kernel, split_name
from optiml_magic.source.aliases import resolve
from optiml_magic.source.definitions import Definition
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import formals, text_of
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import nodes_of, passed_to
from optiml_magic.source.values import tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

_NAMES = frozenset({"identifier", "field_identifier"})
DEEPEST = 4  # wrappers within wrappers; ours


@dataclass(frozen=True)
class Host:
    """What a text says outside of its functions."""

    fixed: Mapping[str, int]
    functions: Mapping[str, Definition]
    callers: Mapping[int, Caller]
    aliases: Mapping[str, str]
    referring: Mapping[str, frozenset[int]]
    root: Node
    read: dict[tuple[int, int, int, bool], HostValues] = field(default_factory=dict)
    asked: dict[tuple[str, str], int | float | None] = field(default_factory=dict)

    @cached_property
    def outer(self) -> Mapping[tuple[str, str], Outer]:
        """The variables that functions see from outside, by class and name."""
        return outer_variables(self.root)

    def values(
        self, function: Node, kept: Mapping[str, str], place: Node | None = None
    ) -> HostValues:
        """What may be said in the names of a function that are ``kept``, seen from a place.

        One that hides another is not known: what is computed with it may mean the other.
        """
        body = function.child_by_field_name("body") or function
        own = [formal.name for formal in formals(function)]
        fixed = {name: value for name, value in self.fixed.items() if name not in own}
        values = HostValues(body, fixed, kept, self.functions, place=place,
                            referring=self.referring)  # fmt: skip
        values.hide(hiding(body, own, place))
        return values

    def as_run(
        self, function: Node, place: Node | None = None, depth: int = 0, *, every: bool = False
    ) -> HostValues:
        """The numbers of the program where its command line gives none.

        A function that is called several times has those of its first call, or, with ``every``,
        none that a call gives it. So does what a loop counts have that of the first round, or none.
        """
        key = (function.start_byte, place.start_byte if place is not None else -1, depth, every)
        if key not in self.read:
            seen = self._seen(function)
            self.read[key] = self._as_run(function, place, depth, every=every, seen=seen)
        return self.read[key]

    def _is_called_once(self, function: Node) -> bool:
        """Whether no function on the way to one is called again."""
        for _ in range(DEEPEST):
            caller = self.callers.get(function.start_byte)
            if caller is None or caller.others:
                return caller is None
            function = caller.function
        return False

    def _as_run(
        self,
        function: Node,
        place: Node | None,
        depth: int,
        *,
        every: bool,
        seen: Mapping[str, int | float],
    ) -> HostValues:
        body = function.child_by_field_name("body") or function
        own = [formal.name for formal in formals(function)]
        fixed = {name: value for name, value in self.fixed.items() if name not in own}
        fixed |= {COUNT: self.fixed.get(COUNT, 1)} if COUNT in own else {}
        whole, reals = _by_kind(seen)
        fixed |= whole
        caller = self.callers.get(function.start_byte)
        several = every and not self._is_called_once(function)
        if caller is not None and depth < DEEPEST and not (several and caller.others):
            outer = self.as_run(caller.function, caller.call, depth + 1, every=every)
            whole, real = _by_kind(_given(caller, outer))
            fixed |= whole
            reals |= real
        values = HostValues(body, fixed, (), self.functions, as_run=True, place=place,
                            referring=self.referring, rounds=every)  # fmt: skip
        values.hide(hiding(body, own, place))
        values.changed -= seen.keys()
        values.reals = reals
        values.types = {**self.aliases, **(caller.types if caller is not None else {})}
        return values

    def in_call(self, called: Node, call: Node, outer: HostValues) -> HostValues:
        """The numbers of a function in one call of it, from one with these ``outer`` numbers."""
        body = called.child_by_field_name("body") or called
        arguments = passed_to(call)
        given = split_name(text_of(call.child_by_field_name("function")))[1]
        caller = call_of(called, given, arguments, call, outer.body)
        own = [formal.name for formal in formals(called)]
        seen = {**self.fixed, **self._seen(called)}
        fixed, reals = _by_kind({**{name: n for name, n in seen.items() if name not in own},
                                 **_given(caller, outer)})  # fmt: skip
        values = HostValues(body, fixed, (), self.functions, as_run=True, referring=self.referring)
        values.hide(hiding(body, own, None))
        values.reals = reals
        types = {name: resolve(kind, outer.types)[0] for name, kind in caller.types.items()}
        values.types = {**self.aliases, **types}
        return values

    def _seen(self, function: Node) -> dict[str, int | float]:
        """The numbers that a function sees and that are not its own."""
        owner, own = class_of(function), own_names(function)
        found: dict[str, int | float] = {}
        for key in self.outer:
            if key[0] not in ("", owner) or key[1] in own:
                continue
            number = self._asked(key)
            if isinstance(number, int) and key[1] in self.fixed:
                continue
            if number is not None and (key[0] or key[1] not in found):
                found |= {key[1]: number} | ({f"this->{key[1]}": number} if key[0] else {})
        return found

    def _asked(self, key: tuple[str, str]) -> int | float | None:
        """The number of an outer variable, which may be computed from others."""
        if key not in self.asked:
            self.asked[key] = None  # of one that asks for itself
            self.asked[key] = self._computed(key[0], self.outer[key])
        return self.asked[key]

    def _computed(self, owner: str, outer: Outer) -> int | float | None:
        where = outer.function or outer.value
        names = {text_of(node) for node in nodes_of(where) if node.type in _NAMES}
        own = own_names(outer.function) if outer.function is not None else frozenset[str]()
        found = {name: self._asked(key) for name in names - own
                 for key in (("", name), (owner, name)) if key in self.outer}  # fmt: skip
        known = {name: number for name, number in found.items() if number is not None}
        fixed, reals = _by_kind(known)
        if outer.function is None:
            values = HostValues(where, {**self.fixed, **fixed}, (), self.functions, as_run=True)
        else:
            # Each of several objects has its own: no call of a constructor stands for the others.
            values = copy(self._as_run(outer.function, None, 0, every=True, seen={}))
            values.constants = {**values.constants, **fixed}
            values.changed -= known.keys()
        values.reals = {**values.reals, **reals}
        return values.number(outer.value)


def _by_kind(numbers: Mapping[str, int | float]) -> tuple[dict[str, int], dict[str, float]]:
    """The whole numbers, and the others."""
    fixed = {name: number for name, number in numbers.items() if isinstance(number, int)}
    return fixed, {name: n for name, n in numbers.items() if isinstance(n, float)}


def _is_in(node: Node, function: Node) -> bool:
    return function.start_byte < node.start_byte < function.end_byte


def _given(caller: Caller, outer: HostValues) -> dict[str, int | float]:
    """The numbers that a call gives a function, by how the function asks for them."""
    found: dict[str, int | float | None] = {}
    for name, given in caller.arguments.items():
        axes = outer.axes(given) or []
        found |= {f"{name}.{axis}": outer.number(node)
                  for axis, node in zip("xyz", axes, strict=False)}  # fmt: skip
        found |= {name: outer.number(given), **dict(_members(name, given, outer))}
        size = outer.vector(text_of(given))
        found |= {f"{name}.size()": outer.number(size)} if size is not None else {}
    return {name: number for name, number in found.items() if number is not None}


def _members(name: str, given: Node, values: HostValues) -> list[tuple[str, int | float | None]]:
    """The members of a struct that is given by value, and the extents of a tensor."""
    own = f"{pointed(given, values)}."
    found = [
        (f"{name}.{member.removeprefix(own)}", values.number(right))
        for member, right in values.members.items()
        if given.type == "identifier" and member.startswith(own)
    ]
    shape = shape_made(values.definition(own[:-1]), values)
    known = {**values.constants, **extents_asked(own[:-1], shape)}
    handed = [(name + n[len(own) - 1 :], known[n]) for n in known if n.startswith(own)]
    return [*found, *handed] if own[:-1] not in values.changed else found


@dataclass(frozen=True, eq=False)
class Call:
    """One ``kernel<<<config>>>(arguments)`` in a host function."""

    kernel: Kernel
    name: str
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    node: Node
    function: Node
    line: int
    looped: bool
    host: Host

    @property
    def place(self) -> int:
        """Of which function the names are."""
        return self.function.start_byte

    @cached_property
    def order(self) -> tuple[int, ...]:
        """When it is launched: the place of each call that leads to it, the outermost first."""
        return tuple(node.start_byte for node in reversed(self.way))

    @cached_property
    def way(self) -> tuple[Node, ...]:
        """The calls that lead to it, itself first, and the function where they begin last."""
        found, function = [self.node], self.function
        for _ in range(DEEPEST):
            caller = self.host.callers.get(function.start_byte)
            if caller is None:
                break
            found.append(caller.call)
            function = caller.function
        return (*found, function)

    @cached_property
    def is_reached(self) -> bool:
        """Whether the program may come here as it runs; of a function's calls one is followed."""
        function, node = self.function, self.node
        for _ in range(DEEPEST):
            if not is_reached(node, self.host.as_run(function, node, every=True)):
                return False
            caller = self.host.callers.get(function.start_byte)
            if caller is None or caller.others:
                break
            node, function = caller.call, caller.function
        return True

    def origin(self, argument: Node) -> tuple[Node, str, Node]:
        """The function whose memory an argument is, what that calls it, and where it gives it.

        The name is empty where the argument is no beginning of memory.
        """
        return self.passing(argument)[-1]

    def passing(self, argument: Node) -> list[tuple[Node, str, Node]]:
        """The same of each function that hands it on, from the one that launches outwards."""
        function, name = self.function, pointed(argument, self.names)
        name = name or self._element(argument) or self._begin(argument)
        found = [(function, name, argument)]
        for _ in range(DEEPEST):
            caller = self.host.callers.get(function.start_byte)
            given = caller.arguments.get(name) if caller is not None else None
            if times_set(name, found[-1][2], function):
                break  # it is other memory than the function was given
            outer = ""
            if caller is not None and given is not None:
                outer = pointed(given, self.host.values(caller.function, {}, caller.call))
            if caller is None or given is None or not outer:
                break
            function, name = caller.function, outer
            found.append((function, name, given))
        return found

    def _element(self, argument: Node) -> str:
        """``d[1]`` of ``d[1 - now]``, by what ``now`` is when the program first comes there."""
        node = uncast(argument)
        array, indices = (node.child_by_field_name(part) for part in ("argument", "indices"))
        at = self.as_run.number(indices.named_child(0)) if indices is not None else None
        plain = array is not None and array.type == "identifier" and isinstance(at, int)
        return f"{text_of(array)}[{at}]" if plain else ""

    def _begin(self, argument: Node) -> str:
        """``d`` of ``d + i * chunk`` and of ``&d[i * chunk]`` where the program has none of it."""
        node = uncast(argument)
        base, offset = (node.child_by_field_name(part) for part in ("left", "right"))
        if node.type == "pointer_expression" and (element := node.child_by_field_name("argument")):
            base, offset = (element.child_by_field_name(p) for p in ("argument", "indices"))
            offset = offset.named_child(0) if offset is not None else None
        sums = text_of(node.child_by_field_name("operator")) in ("+", "-", "&")
        if base is None or offset is None or not sums or self.as_run.number(offset) != 0:
            return ""
        return pointed(base, self.names)

    def named_in(self, function: Node) -> HostValues:
        """The locals of a function on the way to the launch, where it goes on."""
        place = next((n for n in self.way if _is_in(n, function)), self.node)
        return self.host.values(function, {}, place)

    def values(self, kept: Mapping[str, str]) -> HostValues:
        return self.host.values(self.function, kept, self.node)

    @cached_property
    def names(self) -> HostValues:
        """The locals where it stands, for what needs none of the task's names."""
        return self.values({})

    @cached_property
    def sides(self) -> Mapping[int, Arm]:
        """The branches that it is in, by their places, of those that are not decided."""
        values = self.host.as_run(self.function, self.node, every=True)
        return {arm.place: arm for arm in arms(self.node, values)}

    @cached_property
    def as_run(self) -> HostValues:
        """The numbers of the program, but for those of a first call that does not come here."""
        values = self.host.as_run(self.function, self.node)
        if is_reached(self.node, values):
            return values
        return self.host.as_run(self.function, self.node, every=True)


def expressed(values: HostValues, node: Node, scalars: Mapping[str, str]) -> Expression | None:
    """The node's value in the names of the task."""
    expression = values.expression(node)
    if expression is None or not expression.names <= {*scalars, SM_COUNT}:
        return None
    renamed = re.sub(r"[A-Za-z_]\w*", lambda m: scalars.get(m[0], m[0]), str(expression))
    return tidy(parse_expression(renamed))
