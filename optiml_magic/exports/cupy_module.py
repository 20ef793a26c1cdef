"""A Python module that needs CuPy and NumPy alone: the source and a function to call it with."""

from __future__ import annotations

import builtins
import keyword
import math
import shlex
from collections.abc import Iterator

import numpy as np

from optiml_magic import binding
from optiml_magic.binding import BoundBuffer
from optiml_magic.exports.base import Exportable, Names
from optiml_magic.exports.cupy_launches import CupyLaunches
from optiml_magic.exports.device_text import for_nvrtc
from optiml_magic.exports.module import FUNCTIONS, NEEDS
from optiml_magic.exports.output_shapes import specified
from optiml_magic.exports.own_variables import in_namespace
from optiml_magic.exports.python_expressions import PythonExpressions
from optiml_magic.exports.python_literals import (
    dtype_text,
    is_integer,
    literal,
    nested,
    quoted,
    raw_string,
    struct,
    tupled,
)
from optiml_magic.model.dtypes import BFLOAT16, widened
from optiml_magic.source.operators import SM_COUNT

_MOST_NUMBERS = 64  # of a table that is written into the file
_NEEDS_BFLOAT16 = (
    'if int(cp.__version__.split(".")[0]) < 14:',
    '    raise ImportError("bfloat16 needs CuPy 14 or later")',
    "",
)


class CupyModuleExport:
    """Meant to be read and edited: the function stands first, what it is made of below."""

    suffix = ".py"
    form = "a CuPy module"

    def render(self, what: Exportable) -> str:
        return Module(what).text()


class Module:
    """Writes one module."""

    imports: tuple[str, ...] = ()  # beside CuPy's and NumPy's
    standard: tuple[str, ...] = ()  # of Python's own library, beside what functions need
    # What no parameter may be called:
    taken = frozenset({"cp", "np", "math", "ml_dtypes", "operator", "MODULE", "SOURCE"})

    def __init__(self, what: Exportable) -> None:
        self._what = what
        taken = {*dir(builtins), *keyword.kwlist, *FUNCTIONS, *self.taken}
        names = Names(taken - {what.identifier})
        self._name = names.fresh(what.identifier)
        self._fresh = names.fresh
        self._inputs = [b for b in what.arrays if b.role != "output"]
        self._tables = [b for b in what.interface.buffers if b.place == "variable"]
        self._outputs = what.interface.named("output")
        known = {b.name for b in self._inputs}
        self._starts = [s for s in dict.fromkeys(what.starts.values()) if s not in known]
        arrays = [b.name for b in what.interface.buffers] + self._starts
        every = [*what.fixed, *arrays, *(d.name for d in what.program.scratch)]
        self._names = {n: names.fresh(n) for n in dict.fromkeys([*every, *what.scalars, SM_COUNT])}
        self._spell = PythonExpressions(self._names, what.fixed)
        self._used = self._spell.used
        self._launches = CupyLaunches(what, self._spell, self._fresh, self._names)
        words = Names({*what.words, *what.fixed})
        space = words.fresh(f"{what.identifier}_own")
        self._begin = f"{space}::{words.fresh('begin')}" if what.own else ""
        self._source = for_nvrtc(what.device.text)
        if what.own:
            self._source += in_namespace(what.own, self._begin, words.fresh)

    def text(self) -> str:
        """The whole module."""
        what = self._what
        body = [f"    {line}" if line else "" for line in self._body()]
        front = list(self._front())
        self._used |= {need for name in self._used for need in NEEDS.get(name, ())}
        options = [f"-std={what.options.std}", "-diag-suppress=161"]
        options += ["--use_fast_math"] if what.options.fast_math else []
        names = [step.name for step in what.steps] + [f"&{v.name}" for v, _ in what.tables]
        kernels = dict.fromkeys([*names, *([self._begin] if self._begin else [])])
        imports = {"math": "_table", "operator": "_integer"}
        standard = [f"import {name}" for name, use in imports.items() if use in self._used]
        standard += self.standard
        constants = list(self._constants())
        narrow = any("ml_dtypes." in line for line in [*body, *self._parameters()])
        return "\n".join(
            [
                *self._docstring(),
                "",
                *([*standard, ""] if standard else []),
                "import cupy as cp",
                *(["import ml_dtypes"] if narrow else []),
                "import numpy as np",
                *self.imports,
                "",
                *(_NEEDS_BFLOAT16 if narrow else []),
                *raw_string("SOURCE", self._source),
                "",
                "# 161: the compiler does not know the #pragma optiml lines; they change nothing.",
                "MODULE = cp.RawModule(",
                "    code=SOURCE,",
                f"    options={tupled(map(quoted, options))},",
                f"    name_expressions={tupled(map(quoted, kernels))},",
                ")",
                *constants,
                "",
                "",
                *front,
                f"def {self._name}({', '.join(self._parameters())}):",
                *body,
                *(f"\n\n{FUNCTIONS[name].rstrip()}" for name in FUNCTIONS if name in self._used),
                "",
            ]
        )

    def _front(self) -> Iterator[str]:
        """What stands before the function."""
        yield from ()

    def _docstring(self) -> Iterator[str]:
        what = self._what
        about = [*what.preface()]
        if what.arguments:
            about.append(f"Checked with nvcc {shlex.join(what.arguments)}, not so here.")
        first, *about = [line.replace("\\", "/").replace('"""', "'''") for line in about]
        arrays = [self._names[b.name] for b in self._inputs] + self._starts
        arrays += [f"{n}={n}" for n in map(self._table_parameter, self._tables) if "=" not in n]
        results = [self._names[b.name] for b in what.interface.named("output", "inout")]
        yield f'"""{first}'
        yield ""
        yield from about
        yield ""
        yield from self._usage(", ".join(results), ", ".join(arrays))
        yield '"""'

    def _usage(self, results: str, arguments: str) -> Iterator[str]:
        """How it is called."""
        yield f"    {results} = {self._name}({arguments})"
        yield ""
        yield "Arrays are CuPy arrays or torch tensors on the GPU, contiguous; inputs stay as they"
        yield "are. Results are CuPy arrays, made on CuPy's current stream; torch.from_dlpack"
        yield "takes them."

    def _constants(self) -> Iterator[str]:
        read = frozenset().union(*(e.names for e in self._what.expressions))
        tuned = {n: v for n, v in self._what.fixed.items() if n in read}
        if tuned:
            yield ""
            yield "# As they are in the source."
            yield from (f"{self._names[name]} = {value}" for name, value in tuned.items())

    def _parameters(self) -> Iterator[str]:
        yield from (self._names[b.name] for b in self._inputs)
        yield from (self._names[start] for start in self._starts)
        yield from (f"{self._names[n]}={self._default(n)}" for n in self._what.scalars)
        if self._outputs or self._tables:
            yield "*"
            yield from (self._table_parameter(b) for b in self._tables)
            yield from (f"{self._names[b.name]}=None" for b in self._outputs)

    def _table_parameter(self, bound: BoundBuffer) -> str:
        """A small one keeps the task's numbers, written out; a larger one has to be given."""
        name = self._names[bound.name]
        shape = self._what.shapes[bound.name]
        if bound.dtype.names is not None or math.prod(shape) > _MOST_NUMBERS:
            return name
        value = binding.content(bound, self._what.values)
        wide = value.astype(widened(bound.dtype))
        return f"{name}={nested(wide.item() if wide.shape == (1,) else wide.tolist())}"

    def _default(self, name: str) -> str:
        """A number that does not follow sizes keeps the task's value."""
        value = self._what.values.get(name)
        if name in {d.name for d in self._what.program.sizes} or value is None:
            return "None"
        several = isinstance(value, (np.void, np.ndarray))
        return "None" if several or is_integer(value) else literal(value)

    def _body(self) -> Iterator[str]:
        what = self._what
        yield f'"""{self._summary()}"""'
        for buffer in self._inputs:
            yield from self._checked(buffer, buffer.name, copied=buffer.role == "inout")
        for bound in self._tables:
            yield self._table(bound)
        for buffer in self._outputs:
            start = what.starts.get(buffer.name)
            if start in self._starts:
                yield from self._checked(buffer, start, copied=False)
        for name in what.scalars:
            yield from self._scalar(name)
        if any(SM_COUNT in e.names for e in what.expressions):
            attributes = 'cp.cuda.Device().attributes["MultiProcessorCount"]'
            yield f"{self._names[SM_COUNT]} = {attributes}"
        for requirement in what.program.requires:
            message = f"{what.name} needs {requirement.condition}"
            yield f"if not ({self._spell.condition(requirement.condition)}):"
            yield f"    raise ValueError({quoted(message)})"
        for buffer in self._outputs:
            yield from self._output(buffer)
        yield from self._launches.extents()
        for scratch in what.program.scratch:
            count = self._spell.text(scratch.count)
            self._used.add("_count")
            count = f"_count({quoted(scratch.name)}, {count})"
            yield f"{self._names[scratch.name]} = cp.empty({count}, {dtype_text(scratch.dtype)})"
        yield from self._set_before()
        for group in what.rounds:
            yield from self._launches.launched(group)
        written = what.interface.named("output", "inout")
        yield f"return {', '.join(self._names[b.name] for b in written)}"

    def _summary(self) -> str:
        """What the function takes and gives back."""
        written = ", ".join(
            self._names[b.name] for b in self._what.interface.named("output", "inout")
        )
        free = [self._names[n] for n in self._what.scalars if self._default(n) == "None"]
        follow = f"; {', '.join(free)} follow from the shapes where they can" if free else ""
        return f"Return {written}{follow}."

    def _checked(self, buffer: BoundBuffer, name: str, *, copied: bool) -> Iterator[str]:
        self._used.add("_array")
        variable, rank = self._names[name], len(self._what.shapes[buffer.name])
        lanes = self._launches.lanes(buffer.name)
        more = f", lanes={lanes}" if lanes > 1 else ""
        call = f"_array({quoted(name)}, {variable}, {dtype_text(buffer.dtype)}, {rank}{more})"
        yield f"{variable} = {call}{'.copy()' if copied else ''}"

    def _table(self, bound: BoundBuffer) -> str:
        self._used.add("_table")
        variable, shape = self._names[bound.name], self._what.shapes[bound.name]
        dtype = struct(bound.dtype) if bound.dtype.names is not None else dtype_text(bound.dtype)
        return f"{variable} = _table({quoted(bound.name)}, {variable}, {dtype}, {shape!r})"

    def _scalar(self, name: str) -> Iterator[str]:
        yield from self._follows(name)
        parameter, variable = self._what.parameter(name), self._names[name]
        kind = np.dtype(parameter.dtype).kind if parameter and parameter.dtype else ""
        if kind in ("i", "u") or (name in self._what.sized and kind == ""):
            self._used.add("_integer")
            yield f"{variable} = _integer({quoted(name)}, {variable})"

    def _follows(self, name: str) -> Iterator[str]:
        """A scalar that was left out, from the shapes of the inputs."""
        what, variable = self._what, self._names[name]
        directive = next((d for d in what.program.sizes if d.name == name), None)
        value = what.values.get(name)
        if directive is not None:
            yield f"if {variable} is None:"
            yield f"    {variable} = {self._spell.text(directive.expression)}"
        elif isinstance(value, (np.void, np.ndarray)) or value is None:
            yield f"if {variable} is None:"
            yield f"    raise TypeError({quoted(f'pass {name}')})"
        elif is_integer(value):
            yield f"if {variable} is None:"
            places = list(self._places(int(value)))
            fixed = any(int(value) in what.shapes[b.name] for b in self._tables)
            twins = [n for n, v in what.values.items() if is_integer(v) and v == value]
            if places and twins == [name]:
                yield f"    {variable} = {self._agreed(name, places)}"
            elif fixed and twins == [name]:  # the extent of a variable, which is always the same
                yield f"    {variable} = {int(value)}"
            else:
                fix = f"pass {name}: it does not follow from the shapes of the inputs"
                yield from (f"    {line}" for line in self._only_same_shapes(fix))
                yield f"    {variable} = {int(value)}"

    def _places(self, extent: int) -> Iterator[str]:
        for buffer in self._inputs:
            for axis, before in enumerate(self._what.shapes[buffer.name]):
                if before == extent:
                    yield f"{self._names[buffer.name]}.shape[{axis}]"

    def _agreed(self, name: str, places: list[str]) -> str:
        if len(places) == 1:
            return places[0]
        self._used.add("_agreed")
        return f"_agreed({quoted(name)}, {', '.join(places)})"

    def _only_same_shapes(self, fix: str) -> Iterator[str]:
        given = "".join(f"{self._names[b.name]}.shape, " for b in self._inputs)
        before = tuple(self._what.shapes[b.name] for b in self._inputs)
        if before:
            yield f"if ({given.rstrip()}) != {before!r}:"
            yield f"    raise ValueError({quoted(fix)})"

    def _output(self, buffer: BoundBuffer) -> Iterator[str]:
        what, variable = self._what, self._names[buffer.name]
        start = what.starts.get(buffer.name)
        yield f"if {variable} is None:"
        if start is not None:
            made = f"cp.empty_like({self._names[start]})"
        else:
            before, shape = self._shape(buffer)
            yield from (f"    {line}" for line in before)
            made = f"cp.empty({shape}, {dtype_text(buffer.dtype)})"
        yield f"    {variable} = {made}"
        yield "else:"
        lines = self._checked(buffer, buffer.name, copied=False)
        yield from (f"    {line}" for line in lines)

    def _shape(self, buffer: BoundBuffer) -> tuple[list[str], str]:
        """An output's shape as an expression, and the lines that have to stand before it."""
        what, before = self._what, self._what.shapes[buffer.name]
        given = specified(what.outputs.get(buffer.name, ""))
        if given and all(e.names | e.arrays <= self._names.keys() for e in given):
            axes = [self._spell.text(expression) for expression in given]
            return [], tupled(axes)
        axes, lines = [], list[str]()
        for axis, extent in enumerate(before):
            followed = [n for n in what.scalars if is_integer(what.values.get(n, "")) and
                        int(what.values[n]) == extent]  # fmt: skip
            places = [self._names[n] for n in followed] + list(self._places(extent))
            axes.append(self._agreed(f"axis {axis} of {buffer.name}", places) if places else "")
        if not all(axes):
            fix = f"pass {buffer.name}=...: its shape does not follow from these inputs"
            lines += self._only_same_shapes(fix)
        return lines, tupled(a or str(e) for a, e in zip(axes, before, strict=True))

    def _set_before(self) -> Iterator[str]:
        what = self._what
        if what.own:
            yield f"_launch({quoted(self._begin)}, (1, 1, 1), (256, 1, 1), ())"
        for variable, bound in what.tables:
            self._used.add("_fill")
            yield f"_fill({quoted('&' + variable.name)}, {self._names[bound.name]})"
        dtypes = {b.name: b.dtype for b in what.interface.buffers}
        dtypes |= {d.name: np.dtype(d.dtype) for d in what.program.scratch}
        for directive in what.program.inits:
            name = self._names[directive.buffer]
            if isinstance(directive.value, str):
                yield f"{name}[...] = {self._names[directive.value]}"
            else:
                element = what.filled(dtypes[directive.buffer], directive.value)
                if element.dtype == BFLOAT16:
                    bits = int(element.view(np.uint16)[0])
                    yield f"{name}.view(np.uint16).fill({bits:#x})  # {directive.value}"
                else:
                    yield f"{name}.fill({literal(element[0])})"
        yield from (f"{self._names[d.buffer]}.fill(0)" for d in what.program.zeros)
