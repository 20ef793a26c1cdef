"""What every format of an export starts from: a program, its task's interface, what is known."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from optiml_magic import binding
from optiml_magic.binding import BoundBuffer, Interface, launched
from optiml_magic.binding.interface import pairs
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.errors import UsageError
from optiml_magic.exports.device_text import DeviceText, device_text
from optiml_magic.exports.own_variables import own_variables
from optiml_magic.kernels.signature import Kernel, Parameter
from optiml_magic.kernels.unit import lift
from optiml_magic.kernels.variables import DeviceVariable
from optiml_magic.model.dtypes import DType
from optiml_magic.source.directives import LaunchDirective, RepeatDirective, grouped
from optiml_magic.source.expressions import Binary, Choice, Expression, Node, Unary
from optiml_magic.source.expressions import Call as CallNode
from optiml_magic.source.grammar import HEAD
from optiml_magic.source.lexer import lex
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.program import Program

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Export(Protocol):
    """One format: its files end in ``suffix``; ``form`` says in a few words what they are."""

    suffix: str
    form: str

    def render(self, what: Exportable) -> str:
        """The file's text. Raises UsageError for what this format cannot hold."""


@dataclass(frozen=True)
class Step:
    """One launch: its directive, the kernel it starts, what each parameter is given."""

    directive: LaunchDirective
    kernel: Kernel
    arguments: tuple[tuple[Parameter, Expression], ...]

    @property
    def name(self) -> str:
        """The name expression: a kernel, or an instance of a template."""
        return self.directive.kernel or self.kernel.name

    @property
    def bare_name(self) -> str:
        """The kernel's name without its namespace."""
        return self.kernel.name.rpartition("::")[2]


@dataclass(frozen=True)
class Round:
    """Launches in order, once, or as often as ``repeat`` says.

    Each place holds one launch, or those of a dispatch: the first whose condition holds runs.
    """

    repeat: RepeatDirective | None
    places: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Exportable:
    """A concrete program with what a caller needs to know of its task.

    ``shapes`` and ``values`` are those of the inputs that it was measured on, and checked where it
    was not ``verified`` at smaller sizes; ``outputs`` the task's specifications of its outputs;
    ``about`` where the program comes from.
    """

    name: str
    program: Program
    interface: Interface
    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Any]
    outputs: Mapping[str, str]
    about: tuple[str, ...] = ()
    options: CompileOptions = field(default_factory=CompileOptions)
    verified: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def identifier(self) -> str:
        """The task's name as an identifier of C++ and of Python."""
        spelled = re.sub(r"\W", "_", self.name, flags=re.ASCII) or "kernel"
        return (
            f"kernel_{spelled}" if spelled[0].isdigit() or keyword.iskeyword(spelled) else spelled
        )

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The launches, those of one ``repeat`` together."""
        found: list[Round] = []
        steps = [
            Step(directive, kernel, tuple(pairs(directive, kernel)))
            for directive, kernel in launched(self.program, self.interface.defines)
        ]
        for place in map(tuple, grouped(steps, lambda step: step.directive)):
            repeat = place[0].directive.repeat
            if repeat is not None and found and found[-1].repeat is repeat:
                found[-1] = Round(repeat, (*found[-1].places, place))
            else:
                found.append(Round(repeat, (place,)))
        return tuple(found)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every launch in order, each once, those of a dispatch that do not run as well."""
        return tuple(step for group in self.rounds for place in group.places for step in place)

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression that is evaluated before the launches."""
        return binding.expressions(self.program, self.interface)

    @cached_property
    def extents(self) -> tuple[tuple[str, int | None], ...]:
        """Each array whose shape or size is read, with the axis; that of a size is None."""
        found = dict.fromkeys(
            (array, None if axis is None else constant_axis(array, axis, self.fixed))
            for expression in self.expressions
            for array, axis in _extents(expression.tree)
        )
        return tuple(found)

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """The task's scalars in order, then other sizes that the launches read."""
        return tuple(n for n in binding.scalars(self.program, self.interface) if n != SM_COUNT)

    @cached_property
    def sized(self) -> frozenset[str]:
        """The scalars that an expression reads, beside being passed on."""
        return frozenset().union(*(e.names for e in self.expressions))

    def parameter(self, name: str) -> Parameter | None:
        """The first parameter that is given just this name."""
        return next((p for s in self.steps for p, e in s.arguments if e.name == name), None)

    @property
    def starts(self) -> dict[str, str]:
        """Outputs that start from the values of an array, with its name."""
        return {d.buffer: d.value for d in self.program.inits if isinstance(d.value, str)}

    @cached_property
    def fixed(self) -> dict[str, int]:
        """The tuned names and the integer macros, with their values."""
        return {**self.interface.constants, **self.program.values}

    @cached_property
    def device(self) -> DeviceText:
        """The program's text with all that its compilation was given."""
        kernels = [step.name for step in self.steps]
        return device_text(self.program, kernels, self.fixed, self.options)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What nvcc was given beside; UsageError where that names something of this machine."""
        found = self.options.arguments
        if any("/" in word or "\\" in word for word in found):
            raise UsageError(
                "an argument of nvcc names a file or folder, which the export cannot take along",
                fix="take it out of --nvcc-args",
            )
        return found

    @property
    def arrays(self) -> tuple[BoundBuffer, ...]:
        """The buffers that are parameters of the kernels."""
        return tuple(b for b in self.interface.buffers if b.place == "parameter")

    @cached_property
    def tables(self) -> tuple[tuple[DeviceVariable, BoundBuffer], ...]:
        """The variables of the program that the task fills, each with its buffer."""
        return tuple(binding.bound_variables(self.program, self.interface))

    @cached_property
    def own(self) -> tuple[DeviceVariable, ...]:
        """The variables that a run has to set back first."""
        return own_variables(lift(self.device.text), [variable.name for variable, _ in self.tables])

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the code and of the preprocessor's lines, directives left out."""
        lexed = lex(self.device.text)
        lines = [line.text for line in lexed.lines if not HEAD.match(line.text)]
        return frozenset(_WORD.findall("\n".join([lexed.code, *lines])))

    def constants(self, expressions: Iterable[Expression]) -> tuple[int, ...] | None:
        """Their values where they follow from fixed names and numbers alone, else None."""
        given = tuple(expressions)
        if any(e.names - self.fixed.keys() or e.arrays for e in given):
            return None
        return tuple(e.evaluate(self.fixed) for e in given)

    def filled(self, dtype: DType | str, value: float) -> np.ndarray[Any, Any]:
        """One element holding what ``init(buffer) = value`` says; shape ``(1,)``."""
        return np.asarray([float(value)]).astype(np.dtype(dtype))

    def preface(self) -> Iterator[str]:
        """What stands at the head of every file."""
        yield f"{self.identifier}: exported by optiml-magic."
        yield from (" ".join(line.split()) for line in self.about)
        shapes = [f"{b.name}{list(self.shapes[b.name])}" for b in self.interface.buffers]
        values = [f"{n} = {_number(self.values[n])}" for n in self.scalars if n in self.values]
        smaller = ", ".join(f"{name} = {size}" for name, size in self.verified.items())
        yield f"{'Measured' if smaller else 'Checked'} at: {', '.join([*shapes, *values])}."
        if smaller:
            yield f"Checked at: {smaller}, and below."
        if self.device.missing:
            yield f"Needs headers, whose folder -I has to name: {', '.join(self.device.missing)}."


class Names:
    """Names that collide with nothing taken; a word is kept where it is free."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def fresh(self, word: str) -> str:
        """``word``, or the same with underscores behind it."""
        name = re.sub(r"\W", "_", word, flags=re.ASCII)
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _extents(node: Node) -> Iterator[tuple[str, Node | None]]:
    """Each ``size(array)`` and ``shape(array, axis)`` in a tree; the axis of a size is None."""
    match node:
        case CallNode("size" | "shape" as function, (array, *axis)):
            yield array.name, axis[0] if function == "shape" else None  # type: ignore[union-attr]
        case CallNode("sizeof"):
            return
        case CallNode(_, parts):
            for part in parts:
                yield from _extents(part)
        case Unary(_, operand):
            yield from _extents(operand)
        case Binary(_, left, right):
            yield from _extents(left)
            yield from _extents(right)
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _extents(part)


def constant_axis(array: str, axis: Node, tuned: Mapping[str, int]) -> int:
    """The axis of ``shape(array, axis)``, which must not depend on a size."""
    expression = Expression(axis, "")
    if expression.names - tuned.keys() or expression.arrays:
        raise UsageError(
            f"the axis in `shape({array}, {expression})` is not constant",
            fix="write the number of the axis",
        )
    return expression.evaluate(dict(tuned))


def _number(value: Any) -> Any:
    return (
        value.item() if isinstance(value, (np.generic, np.ndarray)) and value.size == 1 else value
    )
