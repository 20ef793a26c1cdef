"""What a launch is read with: its call, the function that makes it, and the text around that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostcalls import Caller
from optiml_magic.kernels.hostvalues import HostValues
from optiml_magic.kernels.signature import Kernel
from optiml_magic.source.definitions import Definition
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import formals
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.values import tidy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Node

DEEPEST = 4  # wrappers within wrappers; ours


@dataclass(frozen=True)
class Host:
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
        if caller is not None and depth < DEEPEST:
            outer = self.as_run(caller.function, depth + 1)
            numbers = {name: outer.number(given) for name, given in caller.arguments.items()}
            fixed |= {name: n for name, n in numbers.items() if isinstance(n, int)}
        return HostValues(body, (), fixed, (), self.functions, as_run=True)


@dataclass(frozen=True, eq=False)
class Call:
    """One ``kernel<<<config>>>(arguments)`` in a host function."""

    kernel: Kernel
    name: str
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    function: Node
    line: int
    looped: bool
    host: Host

    @property
    def place(self) -> int:
        """Of which function the names are."""
        return self.function.start_byte

    def values(self, kept: Mapping[str, str]) -> HostValues:
        return self.host.values(self.function, kept)

    @cached_property
    def as_run(self) -> HostValues:
        return self.host.as_run(self.function)


def expressed(values: HostValues, node: Node, scalars: Mapping[str, str]) -> Expression | None:
    """The node's value in the names of the task."""
    expression = values.expression(node)
    if expression is None or not expression.names <= {*scalars, SM_COUNT}:
        return None
    renamed = re.sub(r"[A-Za-z_]\w*", lambda m: scalars.get(m[0], m[0]), str(expression))
    return tidy(parse_expression(renamed))
