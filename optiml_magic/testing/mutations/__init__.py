"""Faults that a program could have: small changes of a correct kernel's text, each of one operator.

An operator is a function of a node of the syntax tree; it yields the edits that make the node
wrong. They are what mutation testing calls first-order mutants (DeMillo, Lipton and Sayward 1978);
the classes are those of King and Offutt's Mothra, with those of CUDA beside them: barriers,
atomics, masks, axes and precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from optiml_magic.source.edits import apply
from optiml_magic.source.syntax import line_of, parse, walk
from optiml_magic.testing.mutations import control, cooperation, expressions, indices, precision
from optiml_magic.testing.mutations.base import Function, Operator, function

_HOST = ("main",)


def _operators(*families: ModuleType) -> Iterator[tuple[str, Operator]]:
    for family in families:
        for name, found in vars(family).items():
            is_own = callable(found) and found.__module__ == family.__name__
            if is_own and not name.startswith("_"):
                yield name, found


OPERATORS: Mapping[str, Operator] = dict(
    _operators(expressions, indices, control, cooperation, precision)
)


@dataclass(frozen=True)
class Mutant:
    """A program with one fault; ``name`` says which operator planted it where."""

    name: str
    operator: str
    line: int
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a program's device functions, operator by operator, in the text's order."""
    syntax = parse(text)
    functions = [
        function(syntax, node)
        for node in walk(syntax.root)
        if node.type == "function_definition" and _on_device(syntax.source(node))
    ]
    for name, operator in OPERATORS.items():
        seen: dict[str, int] = {}
        for owner in functions:
            for node in walk(owner.body):
                for change in operator(owner, node):
                    row, column = node.start_point
                    place = f"{name}@{row + 1}:{column + 1}"
                    seen[place] = seen.get(place, 0) + 1
                    suffix = f"#{seen[place]}" if seen[place] > 1 else ""
                    yield Mutant(place + suffix, name, line_of(node), apply(text, change))


def _on_device(source: str) -> bool:
    return "__global__" in source or "__device__" in source


__all__ = ["OPERATORS", "Function", "Mutant", "mutants"]
