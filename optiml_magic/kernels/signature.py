"""The kernels of a text: names, parameters, types, and what the code does with each pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError, nearest
from optiml_magic.kernels.read import read
from optiml_magic.kernels.tree import Function, TemplateParameter, Variable
from optiml_magic.kernels.unit import Unit, lift
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype

if TYPE_CHECKING:
    from optiml_magic.kernels.reading import Reading
    from optiml_magic.source.directives import LaunchDirective


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter and what the code does with it.

    ``dtype`` is the numpy dtype of a scalar or of an element (``<f4``, ``bfloat16``), of one lane
    for a vector type; None for a struct and for a template parameter not yet instantiated.
    ``ctype`` is the element's C++ type with typedefs resolved; ``const`` is that of the pointee.
    Of a pointer, ``reads`` and ``writes`` say what was seen, and ``certain`` whether everything
    could be seen; of a struct by value, what was seen through the pointers in it. ``adds`` says
    that it is changed by atomics alone, so that it holds something before.
    """

    name: str
    ctype: str
    dtype: str | None
    pointer: bool
    const: bool
    reads: bool
    writes: bool
    certain: bool
    line: int
    lanes: int = 1
    depth: int = 0
    adds: bool = False


@dataclass(frozen=True)
class Kernel:
    """A ``__global__`` function; ``name`` includes its namespaces.

    ``start_byte`` and ``end_byte`` span its definition in the UTF-8 text. ``launch_bounds`` is the
    text of the greatest number of threads in a block, where given.
    """

    name: str
    parameters: tuple[Parameter, ...]
    template_parameters: tuple[TemplateParameter, ...]
    line: int
    dynamic_shared: bool = False
    launch_bounds: str | None = None
    template_arguments: tuple[str, ...] = ()
    start_byte: int = 0
    end_byte: int = 0
    aliases: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def parameter(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        names = [parameter.name for parameter in self.parameters]
        raise SourceError(
            f"`{self.name}` has no parameter `{name}`",
            fix=nearest(name, names) or f"choose one of {', '.join(names)}",
            line=self.line,
        )

    def instantiate(self, arguments: Sequence[str]) -> Kernel:
        """The kernel with its template parameters replaced; missing ones take their defaults."""
        given = list(arguments)
        for parameter in self.template_parameters[len(given) :]:
            if parameter.default is None:
                break
            given.append(parameter.default)
        pack = any(parameter.is_pack for parameter in self.template_parameters)
        if len(given) > len(self.template_parameters) and not pack:
            raise SourceError(
                f"`{self.name}` takes {len(self.template_parameters)} template arguments, "
                f"not {len(given)}",
                fix="drop the others from the launch",
                line=self.line,
            )
        pairs = zip(self.template_parameters, given, strict=False)
        types = {p.name: text for p, text in pairs if not p.is_pack}
        aliases = dict(self.aliases)
        return replace(
            self,
            template_arguments=tuple(given),
            parameters=tuple(_instantiated(p, types, aliases) for p in self.parameters),
        )


def kernels(
    source: str | Unit, defines: Mapping[str, int | str] | None = None
) -> tuple[Kernel, ...]:
    """The kernels of a text, in order of appearance.

    ``defines`` are all macros from outside of it; None where nobody knows them.
    """
    if isinstance(source, str):
        source = lift(source, defines, foreign=defines is None)
    return _of(source)


@lru_cache(maxsize=128)
def _of(unit: Unit) -> tuple[Kernel, ...]:
    """Every stage asks for those of the same text."""
    return tuple(_kernel(function, unit) for function in unit.kernels)


def select(known: Sequence[Kernel], launch: LaunchDirective) -> Kernel:
    """The kernel that a launch names, instantiated with the template arguments it gives."""
    names = sorted({kernel.name for kernel in known})
    if launch.kernel is None:
        if len(known) != 1:
            raise SourceError(
                f"the launch names no kernel, and there are {len(known)}",
                fix=f"name one: {', '.join(names)}" if names else "write a __global__ function",
                line=launch.line or None,
            )
        return _complete(known[0].instantiate(()), launch)
    base, arguments = split_name(launch.kernel)
    found = [kernel for kernel in known if kernel.name == base]
    found = found or [k for k in known if k.name.rsplit("::", 1)[-1] == base.rsplit("::", 1)[-1]]
    if launch.args is not None and len(found) > 1:
        found = [k for k in found if len(k.parameters) == len(launch.args)] or found
    if not found:
        raise SourceError(
            f"there is no kernel `{base}`",
            fix=nearest(base, names)
            or f"name a kernel of this program: {', '.join(names) or 'it has none'}",
            line=launch.line or None,
        )
    if len(found) > 1:
        raise SourceError(
            f"`{base}` is overloaded",
            fix="give each kernel a name of its own",
            line=launch.line or None,
        )
    return _complete(found[0].instantiate(arguments), launch)


def _complete(kernel: Kernel, launch: LaunchDirective) -> Kernel:
    """The kernel, if each of its template parameters has its argument: none can be deduced."""
    wanted = [p.name for p in kernel.template_parameters if not p.is_pack]
    if len(kernel.template_arguments) < len(wanted):
        raise SourceError(
            f"`{kernel.name}` lacks its template argument "
            f"`{wanted[len(kernel.template_arguments)]}`",
            fix=f"name them in the launch: {kernel.name}<{', '.join(wanted)}>",
            line=launch.line or kernel.line,
        )
    return kernel


def split_name(expression: str) -> tuple[str, tuple[str, ...]]:
    """``ns::scan<float, 4>`` to its name and template arguments."""
    base, _, rest = expression.partition("<")
    if not rest:
        return base.strip().removeprefix("::"), ()
    arguments, depth, begin = [], 0, 0
    inner = rest.rsplit(">", 1)[0]
    for at, char in enumerate(inner):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            arguments.append(inner[begin:at].strip())
            begin = at + 1
    arguments.append(inner[begin:].strip())
    return base.strip().removeprefix("::"), tuple(filter(None, arguments))


def _kernel(function: Function, unit: Unit) -> Kernel:
    reading = read(unit, function)
    # A template parameter hides an alias of the same name.
    hidden = {parameter.name for parameter in function.template}
    visible = {name: kind for name, kind in unit.aliases.items() if name not in hidden}
    start, end = unit.origin.origin(*function.span)
    return Kernel(
        name=function.name,
        parameters=tuple(_parameter(v, reading, visible) for v in function.parameters),
        template_parameters=function.template,
        line=function.line,
        dynamic_shared=unit.uses_dynamic_shared(function),
        launch_bounds=function.launch_bounds,
        start_byte=start,
        end_byte=end,
        aliases=tuple(sorted(visible.items())),
    )


def _parameter(variable: Variable, reading: Reading, aliases: Mapping[str, str]) -> Parameter:
    name, kind = variable.name, variable.type
    spelled, depth, const = resolve(kind.base, aliases)
    const = const or kind.const
    depth += kind.depth + len(variable.extents)
    dtype, lanes = (None, 1) if kind.reference or depth > 1 else element_dtype(spelled)
    pointer = depth > 0
    modes = {access.mode for access in reading.of(name)} if pointer or dtype is None else set()
    return Parameter(
        name=name,
        ctype=spelled + ("&" if kind.reference else ""),
        dtype=dtype,
        pointer=pointer,
        const=const,
        reads=not modes <= {"store"},
        writes=not modes <= {"load"} and not const,
        certain=not pointer or const or name not in reading.unclear,
        line=variable.line,
        lanes=lanes,
        depth=depth,
        adds=pointer and "atomic" in modes and modes <= {"atomic", "load"},
    )


def _instantiated(
    parameter: Parameter, types: Mapping[str, str], aliases: Mapping[str, str]
) -> Parameter:
    if parameter.dtype is not None or not types or parameter.depth > 1:
        return parameter
    words = re.split(r"(\w+)", parameter.ctype)
    spelled, depth, const = resolve("".join(types.get(word, word) for word in words), aliases)
    depth += parameter.depth
    dtype, lanes = (None, 1) if depth > 1 or "&" in spelled else element_dtype(spelled)
    const = const or parameter.const
    return replace(
        parameter, ctype=spelled, dtype=dtype, lanes=lanes, depth=depth, pointer=depth > 0,
        const=const, writes=parameter.writes and not const, certain=parameter.certain or const,
    )  # fmt: skip
