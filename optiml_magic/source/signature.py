"""The kernels of a text: names, parameters, types, and what the code does with each pointer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.accesses import Access, Accesses
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.expressions import nearest
from optiml_magic.source.formals import Formal, declared, formals, text_of
from optiml_magic.source.syntax import Syntax, line_of, name_of, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tree_sitter import Node

    from optiml_magic.source.directives import LaunchDirective


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter and what the code does with it.

    ``dtype`` is the numpy dtype of a scalar or of an element (``<f4``, ``bfloat16``), of one lane
    for a vector type; None for a struct and for a template parameter not yet instantiated.
    ``ctype`` is the element's C++ type with typedefs resolved; ``const`` is that of the pointee.
    Of a pointer, ``reads`` and ``writes`` say what was seen, and ``certain`` whether everything
    could be seen; of a struct by value, what was seen through the pointers in it.
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


@dataclass(frozen=True)
class TemplateParameter:
    """A pack takes all the arguments that are left."""

    name: str
    is_type: bool
    default: str | None = None
    is_pack: bool = False


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
            fix=nearest(name, names) or f"It has {', '.join(names) or 'none'}.",
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
                fix="Drop the others from the launch.",
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


def kernels(source: str | Syntax) -> tuple[Kernel, ...]:
    """The kernels that a text defines, in order of appearance."""
    return _of_text(source) if isinstance(source, str) else _of_syntax(source)


@lru_cache(maxsize=128)
def _of_text(text: str) -> tuple[Kernel, ...]:
    """Every stage asks for those of the same text."""
    return _of_syntax(parse(text))


def _of_syntax(syntax: Syntax) -> tuple[Kernel, ...]:
    accesses = Accesses(syntax)
    return tuple(_kernel(node, accesses) for node in syntax.kernels())


def select(known: Sequence[Kernel], launch: LaunchDirective) -> Kernel:
    """The kernel that a launch names, instantiated with the template arguments it gives."""
    names = sorted({kernel.name for kernel in known})
    if launch.kernel is None:
        if len(known) != 1:
            raise SourceError(
                f"the launch names no kernel, and there are {len(known)}",
                fix=f"Name one: {', '.join(names)}." if names else "Write a __global__ function.",
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
            fix=nearest(base, names) or f"Kernels here: {', '.join(names) or 'none'}.",
            line=launch.line or None,
        )
    if len(found) > 1:
        raise SourceError(
            f"`{base}` is overloaded",
            fix="Give each kernel a name of its own.",
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
            fix=f"Name them in the launch: {kernel.name}<{', '.join(wanted)}>.",
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


def _kernel(node: Node, accesses: Accesses) -> Kernel:
    uses = accesses.of(node)
    templates = _template_parameters(node)
    # A template parameter hides an alias of the same name.
    visible = {k: v for k, v in accesses.aliases.items() if k not in {t.name for t in templates}}
    return Kernel(
        name="::".join([*_namespaces(node), name_of(node)]),
        parameters=tuple(_parameter(f, uses.get(f.name, Access()), visible)
                         for f in formals(node)),
        template_parameters=templates,
        line=line_of(node),
        dynamic_shared=accesses.uses_dynamic_shared(node),
        launch_bounds=_launch_bounds(node),
        start_byte=node.start_byte,
        end_byte=node.end_byte,
        aliases=tuple(sorted(visible.items())),
    )  # fmt: skip


def _parameter(formal: Formal, access: Access, aliases: Mapping[str, str]) -> Parameter:
    spelled, depth, const = resolve(formal.type, aliases)
    const = const or formal.const
    depth += formal.depth
    dtype, lanes = (None, 1) if formal.reference or depth > 1 else element_dtype(spelled)
    pointer = depth > 0
    return Parameter(
        name=formal.name,
        ctype=spelled + ("&" if formal.reference else ""),
        dtype=dtype,
        pointer=pointer,
        const=const,
        reads=access.reads and (pointer or dtype is None),
        writes=access.writes and (pointer or dtype is None) and not const,
        certain=not pointer or const or access.certain,
        line=formal.line,
        lanes=lanes,
        depth=depth,
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


def _template_parameters(function: Node) -> tuple[TemplateParameter, ...]:
    parent = function.parent
    listed = parent.child_by_field_name("parameters") if parent is not None else None
    if parent is None or parent.type != "template_declaration" or listed is None:
        return ()
    found = []
    for node in listed.named_children:
        is_type = "type_parameter" in node.type
        default = node.child_by_field_name("default_type" if is_type else "default_value")
        if is_type:
            name = text_of(next((c for c in node.children if c.type == "type_identifier"), None))
        else:
            name = declared(node.child_by_field_name("declarator")).name
        pack = node.type.startswith("variadic")
        found.append(TemplateParameter(name, is_type, text_of(default) or None, pack))
    return tuple(found)


def _namespaces(node: Node) -> Iterable[str]:
    names = []
    parent = node.parent
    while parent is not None:
        if parent.type == "namespace_definition":
            names.append(text_of(parent.child_by_field_name("name")))
        parent = parent.parent
    return [name for name in reversed(names) if name]


def _launch_bounds(function: Node) -> str | None:
    for node in function.children:
        if node.type == "launch_bounds":
            return text_of(node.named_child(0)) or None
    return None
