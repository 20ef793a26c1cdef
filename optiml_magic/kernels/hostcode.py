"""A pasted ``.cu`` file, host code and all, to a kernel program.

Host functions, host variables and host-only includes are dropped; the ``<<<...>>>`` launches in
them become launch directives where their arguments can be written as the directives' expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optiml_magic.kernels.literals import number
from optiml_magic.kernels.signature import Kernel, Parameter, kernels, split_name
from optiml_magic.kernels.unit import Unit, lift
from optiml_magic.source.definitions import Definition, definitions
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.program import parse_program
from optiml_magic.source.syntax import line_of, name_of, parse, walk
from optiml_magic.source.values import Values, constants, tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

_HOST_HEADERS = re.compile(
    r"""[<"](?:iostream|fstream|sstream|iomanip|ostream|istream|vector|string|map|set|list|deque|
    unordered_map|unordered_set|algorithm|numeric|random|chrono|thread|mutex|memory|functional|
    stdexcept|exception|cstdlib|stdlib\.h|cstring|string\.h|ctime|time\.h|unistd\.h|omp\.h|mpi\.h|
    sys/[\w.]+|cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h|device_launch_parameters\.h|
    cuda_profiler_api\.h|cudaProfiler\.h|cublas[\w.]*|cusparse[\w.]*|cufft[\w.]*|cusolver[\w.]*|
    curand\.h|nvToolsExt\.h|nvtx3/[\w./]+|(?:[\w./]*/)?helper_\w+\.h|gtest/[\w.]+|
    (?:torch|ATen|c10|pybind11|tensorflow)/[\w./]+)[>"]""",
    re.VERBOSE,
)
_FRAMEWORKS = re.compile(r"""[<"](?:torch|ATen|c10|pybind11|tensorflow)/""")  # of hosts alone
_CONTAINERS = frozenset(
    {
        "translation_unit", "namespace_definition", "declaration_list", "linkage_specification",
        "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif",
    }
)  # fmt: skip
_DEVICE_WORDS = frozenset({"__global__", "__device__", "__constant__", "__managed__", "constexpr"})
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})


def drop_host_code(
    text: str, defines: Mapping[str, int] | None = None
) -> tuple[str, tuple[Note, ...]]:
    """The kernel program in a pasted file, and a note for each thing done to it.

    A text without host functions and launches, or headers of frameworks, comes back as it is, with
    no notes. ``defines`` are integer macros from outside of the text.
    """
    syntax = parse(text)
    dropped = list(_host_parts(syntax.root))
    functions = [_function_in(node) for node in dropped]
    frameworks = any(_FRAMEWORKS.search(text_of(node)) for node in dropped)
    launches = any(node.type == "kernel_call_syntax" for node in walk(syntax.root))
    if not any(functions) and not launches and not frameworks:
        return text, ()
    notes = [_dropped(function) for function in functions if function]
    for node, function in zip(dropped, functions, strict=True):
        if function is None:
            told = f"dropped host line {line_of(node)}: `{_first_line(node)}`"
            notes.append(Note("dropped_line", told))
    unit = lift(text, defines, foreign=True)
    directives, more = _launches(syntax, unit, defines or {})
    device_text = apply(text, [_blanked(syntax.text, node) for node in dropped]).rstrip() + "\n"
    program = parse_program(device_text)
    if program.launches:
        return device_text, tuple(notes)
    notes += [Note("launch", f"proposed from a launch: {d}") for d in directives]
    return program.with_launches(directives).text, (*notes, *more)


def _dropped(function: Node) -> Note:
    name = name_of(function)
    told = f"dropped host function `{name}` (line {line_of(function)})"
    return Note("dropped_function", told, name)


def _host_parts(node: Node) -> Iterator[Node]:
    """The outermost nodes that only a host compiler needs."""
    for child in node.children:
        if child.type in _CONTAINERS:
            yield from _host_parts(child)
        elif _is_host(child):
            yield child


def _is_host(node: Node) -> bool:
    if node.type == "preproc_include":
        return _HOST_HEADERS.fullmatch(text_of(node.child_by_field_name("path"))) is not None
    if node.type == "using_declaration":
        return re.search(r"(?<![\w:])(?:::)?std\b", text_of(node)) is not None
    if node.type == "template_declaration":
        return any(_is_host(child) for child in node.children)
    if node.type == "function_definition":
        return not _device_words(node)
    if node.type == "declaration":
        words = _device_words(node) - {"constexpr"}
        if "std::" in text_of(node).replace("cuda::std::", ""):
            return not words
        const = any(text_of(c) in ("const", "constexpr") for c in node.children)
        return not words and not const
    return node.type in ("expression_statement", "call_expression")


def _device_words(node: Node) -> frozenset[str]:
    """The markers in front of a declaration that keep it for the device."""
    declarator = node.child_by_field_name("declarator")
    end = declarator.start_byte if declarator is not None else node.end_byte
    head = (node.text or b"")[: end - node.start_byte].decode(errors="replace")
    return _DEVICE_WORDS.intersection(re.findall(r"\w+", head))


def _function_in(node: Node) -> Node | None:
    if node.type == "template_declaration":
        return next((c for c in node.children if c.type == "function_definition"), None)
    return node if node.type == "function_definition" else None


def _first_line(node: Node) -> str:
    line = text_of(node)
    return line if len(line) <= 60 else line[:57] + "..."


def _blanked(raw: bytes, node: Node) -> Edit:
    """The removal of a node that leaves its line breaks, so that no other line moves."""
    removed = raw[node.start_byte : node.end_byte]
    return Edit(node.start_byte, node.end_byte, "\n" * removed.count(b"\n"))


@dataclass(frozen=True)
class _Call:
    """One ``kernel<<<config>>>(arguments)`` in a host function."""

    kernel: Kernel
    name: str
    config: tuple[Node, ...]
    arguments: tuple[Node, ...]
    function: Node
    line: int
    looped: bool


class _HostValues(Values):
    """The locals of a host function, with the axes of its ``dim3`` ones."""

    def _declare(self, node: Node) -> None:
        """``dim3 block(TILE, TILE)`` reads like a function's declaration; it is none."""
        super()._declare(node)
        if not text_of(node.child_by_field_name("type")).endswith("dim3"):
            return
        for child in node.children_by_field_name("declarator"):
            if child.type == "function_declarator":
                axes = text_of(child.child_by_field_name("parameters"))
                reread = walk(parse(f"auto x = dim3{axes};").root)
                value = next((n for n in reread if n.type == "call_expression"), None)
                if value is not None:
                    self.definitions[declared(child).name] = value

    def text(self, node: Node | None, depth: int = 0) -> str | None:
        if node is not None and node.type == "field_expression":
            field = text_of(node.child_by_field_name("field"))
            axes = self.axes(node.child_by_field_name("argument"))
            if axes is None or field not in ("x", "y", "z"):
                return None
            at = "xyz".index(field)
            return super().text(axes[at], depth + 1) if at < len(axes) else "1"
        return super().text(node, depth)

    def axes(self, node: Node | None) -> list[Node] | None:
        """The extents of a ``dim3`` expression; a number is its first; None if it is not known."""
        if node is None:
            return None
        if node.type == "identifier":
            local = self.definition(text_of(node))
            if local is not None and local.type in ("argument_list", "initializer_list",
                                                    "call_expression"):  # fmt: skip
                return self.axes(local)
            return [node]
        if node.type in ("argument_list", "initializer_list"):
            return list(node.named_children)
        if node.type == "call_expression" and text_of(
            node.child_by_field_name("function")
        ).endswith("dim3"):
            return self.axes(node.child_by_field_name("arguments"))
        if node.type == "compound_literal_expression":
            return self.axes(node.child_by_field_name("value"))
        return [node]


def _launches(
    syntax: Syntax, unit: Unit, defines: Mapping[str, int]
) -> tuple[list[LaunchDirective], list[Note]]:
    """A directive for the first launch of each kernel, and notes on what could not be said."""
    found: list[LaunchDirective] = []
    notes: list[Note] = []
    seen: dict[str, str] = {}
    passed = _Passed()
    fixed, functions = {**defines, **constants(syntax)}, definitions(syntax)
    for call in _calls(syntax, unit, notes):
        directive = _directive(call, fixed, functions, passed)
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
    return found, notes


def _calls(syntax: Syntax, unit: Unit, notes: list[Note]) -> Iterator[_Call]:
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
            told = f"the launch of `{name}` on line {line_of(call)} names no kernel here"
            notes.append(Note("unread_launch", told, name))
            continue
        given = [child for child in listed.named_children if child.type != "comment"]
        kernel = matching[0]
        written = kernel.name + (f"<{', '.join(arguments)}>" if arguments else "")
        yield _Call(kernel, written, tuple(node.named_children), tuple(given), function,
                    line_of(call), looped)  # fmt: skip


def _enclosing(node: Node) -> tuple[Node | None, bool]:
    looped, parent = False, node.parent
    while parent is not None and parent.type != "function_definition":
        looped = looped or parent.type in _LOOPS
        parent = parent.parent
    return parent, looped


def _directive(
    call: _Call,
    fixed: Mapping[str, int],
    functions: Mapping[str, Definition],
    passed: _Passed,
) -> LaunchDirective | None:
    """The directive of one launch, ``passed`` under the names of those before it."""
    parameters = call.kernel.parameters
    body = call.function.child_by_field_name("body")
    if body is None or len(call.arguments) != len(parameters) or not 2 <= len(call.config) <= 4:
        return None
    scalars = {
        text_of(argument): parameter.name
        for parameter, argument in reversed(list(zip(parameters, call.arguments, strict=True)))
        if argument.type == "identifier" and not parameter.pointer
    }
    names = [f.name for f in formals(call.function)]
    values = _HostValues(body, names, fixed, kept=scalars, functions=functions)
    grid, block = (_axes(values, part, scalars) for part in call.config[:2])
    shared = None
    if len(call.config) > 2 and text_of(call.config[2]) != "0":
        shared = _expression(values, call.config[2], scalars)
        if shared is None:
            return None
    if grid is None or block is None:
        return None
    names = [passed.name(call, *pair) for pair in zip(parameters, call.arguments, strict=True)]
    by_name = names == [parameter.name for parameter in parameters]
    arguments = map(parse_expression, names)
    args = None if by_name else tuple(arguments)
    return LaunchDirective(call.name, grid, block, shared, args)


class _Passed:
    """The names under which launches pass what the host gave them."""

    def __init__(self) -> None:
        self._buffers: dict[str, str] = {}  # by what the host calls them
        self._scalars: dict[str, Node] = {}  # what the host passed first under a name

    def name(self, call: _Call, parameter: Parameter, argument: Node) -> str:
        """A buffer keeps the name that it first bound to, a number that of its parameter."""
        if parameter.pointer:
            if argument.type != "identifier":
                return parameter.name
            return self._buffers.setdefault(text_of(argument), parameter.name)
        first = self._scalars.setdefault(parameter.name, argument)
        numbers = _number(first), _number(argument)
        if numbers == (None, None) or numbers[0] == numbers[1]:
            return parameter.name
        own = f"{split_name(call.name)[0].rpartition('::')[2]}_{parameter.name}"
        self._scalars[own] = argument
        return own

    def told(self, call: _Call, directive: LaunchDirective) -> Iterator[Note]:
        """A note for each number that a launch passes as a literal."""
        own = [parameter.name for parameter in call.kernel.parameters]
        names = own if directive.args is None else [str(a) for a in directive.args]
        for name, argument in zip(names, call.arguments, strict=True):
            value = _number(argument) if name in self._scalars else None
            if value is not None:
                told = f"`{name}` is {text_of(argument)}, as `{call.name}` is launched with it"
                yield Note("literal", f"{told} (line {call.line})", name, value)

    def shown(self, directive: LaunchDirective) -> LaunchDirective:
        """A directive with whole numbers in the place of names that stand for them."""
        known = {n: _number(a) for n, a in self._scalars.items()}
        whole = {n: value for n, value in known.items() if isinstance(value, int)}
        args = directive.args
        return replace(directive, args=args and tuple(a.substituted(whole) for a in args))


def _number(node: Node) -> int | float | None:
    """The value of a literal."""
    words = text_of(node)
    if node.type in ("true", "false"):
        return int(node.type == "true")
    found = number(words) if node.type in ("number_literal", "unary_expression") else None
    return None if found is None else found[0]


def _axes(
    values: _HostValues, node: Node, scalars: Mapping[str, str]
) -> tuple[Expression, ...] | None:
    axes = values.axes(node)
    if not axes or len(axes) > 3:
        return None
    found = [_expression(values, axis, scalars) for axis in axes]
    while len(found) > 1 and str(found[-1]) == "1":
        found.pop()
    return tuple(e for e in found if e is not None) if all(found) else None


def _expression(values: _HostValues, node: Node, scalars: Mapping[str, str]) -> Expression | None:
    """The node's value in the kernel's own parameter names."""
    expression = values.expression(node)
    if expression is None or not expression.names <= set(scalars):
        return None
    renamed = re.sub(r"[A-Za-z_]\w*", lambda m: scalars.get(m[0], m[0]), str(expression))
    return tidy(parse_expression(renamed))
