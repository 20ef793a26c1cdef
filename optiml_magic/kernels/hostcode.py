"""A pasted ``.cu`` file, host code and all, to a kernel program.

Host functions, host variables and host-only includes are dropped; the ``<<<...>>>`` launches in
them become launch directives where their arguments can be written as the directives' expressions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostlaunches import launches as launched
from optiml_magic.kernels.hostmacros import with_launches_expanded, without_idle_branches
from optiml_magic.kernels.unit import lift
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import text_of
from optiml_magic.source.notes import Note
from optiml_magic.source.program import parse_program
from optiml_magic.source.syntax import line_of, name_of, parse, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tree_sitter import Node

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
_ON_HOST = re.compile(
    r"<<<|\bcuda(?:Malloc|Free|Memcpy|Memset)\w*\s*[<(]|\bcuda(?:Stream|Event)_t\b|"
    r"\bstd::(?:vector|string|map|unordered_map|function|unique_ptr|shared_ptr|chrono)\b"
)
_LIBRARIES = re.compile(r"<(?P<name>thrust|cub)/[\w./]+>")
_OF_CUDA = re.compile(
    r"(?:cu[A-Z]|cuda|cooperative_groups|curand|mma\b|math_|device_|vector_|sm_|texture_|surface_|"
    r"cub/|thrust/|nv/|crt/|common_functions|builtin_types|driver_types|host_)"
)


def drop_host_code(
    text: str,
    defines: Mapping[str, int] | None = None,
    lacks: Callable[[str], bool] = lambda _: False,
) -> tuple[str, tuple[Note, ...]]:
    """The kernel program in a pasted file, and a note for each thing done to it.

    A text without host functions and launches, or headers of frameworks, comes back as it is, with
    no notes. ``defines`` are integer macros from outside of the text; ``lacks`` tells of the name
    of a header whether the task is without it.
    """
    syntax = parse(text)
    dropped = list(_host_parts(syntax.root))
    functions = [_function_in(node) for node in dropped]
    frameworks = any(_FRAMEWORKS.search(text_of(node)) for node in dropped)
    expanded = with_launches_expanded(without_idle_branches(text, defines or {}))
    running = syntax if expanded == text else parse(expanded)
    launches = any(node.type == "kernel_call_syntax" for node in walk(running.root))
    if not any(functions) and not launches and not frameworks:
        return text, ()
    left = apply(text, [_blanked(syntax.text, node) for node in dropped])
    idle = list(_idle_includes(syntax.root, left, lacks))
    dropped, functions = [*dropped, *idle], [*functions, *(None for _ in idle)]
    notes = [_dropped(function) for function in functions if function]
    for node, function in zip(dropped, functions, strict=True):
        if function is None:
            told = f"dropped host line {line_of(node)}: `{_first_line(node)}`"
            notes.append(Note("dropped_line", told))
    unit = lift(text, defines, foreign=True)
    found = launched(running, unit, defines or {})
    device_text = apply(text, [_blanked(syntax.text, node) for node in dropped]).rstrip() + "\n"
    program = parse_program(device_text)
    if program.launches:
        return device_text, tuple(notes)
    notes += [Note("launch", f"proposed from a launch: {d}") for d in found.directives]
    notes += [Note("launch", f"proposed from the host's code: {d}") for d in found.others]
    text = program.with_launches([*found.directives, *found.others]).text
    return text, (*notes, *found.notes)


def _idle_includes(root: Node, left: str, lacks: Callable[[str], bool]) -> Iterator[Node]:
    """Headers of libraries that only host code used, and own ones that nobody has here."""
    for node in walk(root):
        if node.type != "preproc_include" or _is_host(node):
            continue
        path = text_of(node.child_by_field_name("path"))
        library = _LIBRARIES.fullmatch(path)
        if library is not None and not re.search(rf"\b{library['name']}\s*::", left):
            yield node
        own = path.strip('"')
        if path.startswith('"') and not _OF_CUDA.match(own) and lacks(own):
            yield node


def _dropped(function: Node) -> Note:
    name = name_of(function)
    told = f"dropped host function `{name}` (line {line_of(function)})"
    return Note("dropped_function", told, name)


def _host_parts(node: Node) -> Iterator[Node]:
    """The outermost nodes that only a host compiler needs."""
    for child in node.children:
        if child.type == "linkage_specification" and _is_host_alone(child):
            yield child
        elif child.type in _CONTAINERS:
            yield from _host_parts(child)
        elif _is_host(child):
            yield child


def _is_host_alone(node: Node) -> bool:
    """Whether ``extern "C"`` stands before one declaration of the host's."""
    body = node.child_by_field_name("body")
    return body is not None and body.type not in _CONTAINERS and _is_host(body)


def _is_host(node: Node) -> bool:
    if node.type == "preproc_include":
        return _HOST_HEADERS.fullmatch(text_of(node.child_by_field_name("path"))) is not None
    if node.type == "using_declaration":
        return re.search(r"(?<![\w:])(?:::)?std\b", text_of(node)) is not None
    if node.type == "template_declaration":
        return any(_is_host(child) for child in node.children)
    if node.type in ("class_specifier", "struct_specifier"):
        text = text_of(node)
        return _ON_HOST.search(text) is not None and "__device__" not in text
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
    if node.type in ("template_declaration", "linkage_specification"):
        return next((c for c in node.children if c.type == "function_definition"), None)
    return node if node.type == "function_definition" else None


def _first_line(node: Node) -> str:
    line = text_of(node)
    return line if len(line) <= 60 else line[:57] + "..."


def _blanked(raw: bytes, node: Node) -> Edit:
    """The removal of a node that leaves its line breaks, so that no other line moves."""
    removed = raw[node.start_byte : node.end_byte]
    return Edit(node.start_byte, node.end_byte, "\n" * removed.count(b"\n"))
