"""A pasted ``.cu`` file, host code and all, to a kernel program.

Host functions, host variables and host-only includes are dropped; the ``<<<...>>>`` launches in
them become launch directives where their arguments can be written as the directives' expressions.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostarguments import COUNT
from optiml_magic.kernels.hostargv import command_line, names_asked, with_numbers_given
from optiml_magic.kernels.hostconstants import initialised
from optiml_magic.kernels.hostlaunches import launches as launched
from optiml_magic.kernels.hostmacros import (
    with_launches_expanded,
    without_idle_branches,
    without_linkage,
)
from optiml_magic.kernels.hoststatements import STATEMENTS, with_main_around
from optiml_magic.kernels.unit import lift
from optiml_magic.source.dtypes import element_dtype
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.notes import Note, NoteKind
from optiml_magic.source.program import parse_program
from optiml_magic.source.syntax import line_of, name_of, nodes_of, parse, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from tree_sitter import Node

    from optiml_magic.source.syntax import Syntax

_HOST_HEADERS = re.compile(
    r"""[<"](?:iostream|fstream|sstream|iomanip|ostream|istream|ios|vector|string|map|set|list|deque|
    queue|stack|bitset|unordered_map|unordered_set|algorithm|numeric|random|chrono|complex|atomic|
    thread|mutex|future|condition_variable|memory|functional|iterator|execution|filesystem|regex|locale|typeinfo|
    typeindex|any|variant|optional|string_view|charconv|new|
    stdexcept|exception|system_error|cstdlib|stdlib\.h|cstring|string\.h|strings\.h|ctime|time\.h|
    cstdarg|stdarg\.h|cctype|ctype\.h|cerrno|errno\.h|csignal|signal\.h|cinttypes|inttypes\.h|
    malloc\.h|memory\.h|getopt\.h|libgen\.h|fcntl\.h|pthread\.h|sched\.h|dirent\.h|unistd\.h|
    conio\.h|[wW]indows\.h|omp\.h|mpi\.h|
    sys/[\w.]+|cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h|device_launch_parameters\.h|
    cuda_profiler_api\.h|cudaProfiler\.h|cublas[\w.]*|cusparse[\w.]*|cufft[\w.]*|cusolver[\w.]*|
    curand\.h|cudnn[\w.]*|nccl\.h|nvml\.h|nvrtc\.h|nvToolsExt\.h|nvtx3/[\w./]+|(?:[\w./]*/)?helper_\w+\.h|gtest/[\w.]+|
    (?:torch|ATen|c10|pybind11|tensorflow)/[\w./]+)[>"]""",
    re.VERBOSE,
)
_OFFERED = re.compile(  # those of them that compilers of kernels have as well
    r"""[<"](?:algorithm|iostream|cstdlib|stdlib\.h|cstring|string\.h|sys/types\.h|cuda\.h|cuda_runtime\.h|
    cuda_runtime_api\.h|device_launch_parameters\.h)[>"]""",
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
    r"<<<|\bcuda(?:Malloc|Free|Memcpy|Memset)\w*\s*[<(]|\bcuda(?:Stream|Event)\w+|"
    r"\bstd::(?:vector|string|map|unordered_map|function|unique_ptr|shared_ptr|chrono|cout|cerr|"
    r"[io]?f?stream|[io]?stringstream)\b|"
    r"\b(?:getopt|exit|atoi|atof|fprintf|fopen|gettimeofday)\s*\("
)
_LIBRARIES = re.compile(r"<(?P<name>\w+)(?:/[\w./+-]+|\.h(?:pp|xx)?)>")
_OF_COMPILER = frozenset({"assert", "float", "limits", "math", "stdint", "stdio", "stddef"})
_TYPES = frozenset(
    {"struct_specifier", "class_specifier", "union_specifier", "type_definition",
     "alias_declaration"}
)  # fmt: skip
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

    A text without host functions and launches, or headers of frameworks, comes back as it is, but
    for headers that no compiler of kernels has. ``defines`` are integer macros from outside of the
    text; ``lacks`` tells of the name of a header whether the task is without it.
    """
    whole, given = text, command_line(text)
    text = without_linkage(given.text)
    syntax = parse(text)
    marks = _standing_for(syntax.root, _DEVICE_WORDS)
    dropped = list(_host_parts(syntax.root, marks))
    functions = [_function_in(node) for node in dropped]
    frameworks = any(_FRAMEWORKS.search(text_of(node)) for node in dropped)
    expanded = with_launches_expanded(without_idle_branches(text, defines or {}))
    expanded = with_main_around(expanded, marks - {"constexpr"})
    if given.arguments:
        expanded = with_numbers_given(expanded, given.arguments)
    running = syntax if expanded == text else parse(expanded)
    launches = any(node.type == "kernel_call_syntax" for node in walk(running.root))
    if not any(functions) and not launches and not frameworks:
        alone = [node for node in dropped if text == whole and _is_of_hosts_alone(node)]
        return apply(whole, [_blanked(syntax.text, node) for node in alone]), tuple(
            Note("dropped_line", _line_dropped(node), line=line_of(node)) for node in alone
        )
    left = apply(text, [_blanked(syntax.text, node) for node in dropped])
    unit = lift(text, defines, foreign=True)
    found = launched(running, unit, {**(defines or {}), COUNT: len(given.arguments or ()) + 1})
    launching = " ".join(str(directive) for directive in found.directives)
    idle = [
        *_idle_types(syntax, dropped, launching),
        *(node for node in _idle_includes(syntax.root, left, lacks) if not _is_in(node, dropped)),
    ]
    idle += _members_of_hosts(syntax.root, marks, [*dropped, *idle])
    dropped, functions = [*dropped, *idle], [*functions, *(None for _ in idle)]
    notes = [_dropped(function) for function in functions if function]
    for node, function in zip(dropped, functions, strict=True):
        if function is None:
            told = _line_dropped(node)
            own = text_of(node.child_by_field_name("path"))
            absent = node in idle and own.startswith('"')
            kind: NoteKind = "absent_header" if absent else "dropped_line"
            notes.append(Note(kind, told, own.strip('"') if absent else "", line=line_of(node)))
    asked = names_asked(running) if given.arguments is None else ()
    if asked:
        fix = f"#pragma optiml argv({', '.join(asked)})"
        notes.append(Note("argv", f"numbers of the command line can be given: {fix}", fix=fix))
    edits, numbers = initialised(syntax.root, found.constants)
    edits += [_blanked(syntax.text, node) for node in dropped]
    device_text = apply(text, edits).rstrip() + "\n"
    notes += numbers
    program = parse_program(device_text)
    if program.launches:
        return device_text, tuple(notes)
    notes += [Note("launch", f"proposed from a launch: {d}") for d in found.directives]
    notes += [Note("launch", f"proposed from the host's code: {d}") for d in found.others]
    text = program.with_launches([*found.directives, *found.others]).text
    known = {note.name for note in numbers}
    return text, (*notes, *(n for n in found.notes if n.name not in known))


def _idle_includes(root: Node, left: str, lacks: Callable[[str], bool]) -> Iterator[Node]:
    """Headers of libraries that only host code used, and own ones that nobody has here."""
    for node in nodes_of(root):
        if node.type != "preproc_include" or _is_host(node):
            continue
        path = text_of(node.child_by_field_name("path"))
        library = _LIBRARIES.fullmatch(path)
        if library is not None and _is_idle(library["name"], path.strip("<>"), left, lacks):
            yield node
        own = path.strip('"')
        if path.startswith('"') and not _OF_CUDA.match(own) and lacks(own):
            yield node


def _is_in(node: Node, others: Iterable[Node]) -> bool:
    return any(one.start_byte <= node.start_byte < one.end_byte for one in others)


def _is_idle(library: str, header: str, left: str, lacks: Callable[[str], bool]) -> bool:
    """Whether what is ``left`` names nothing of a library, which the compiler may not have."""
    if library not in ("cub", "thrust") and (
        library in _OF_COMPILER or _OF_CUDA.match(header) or not lacks(header)
    ):
        return False
    return not re.search(rf"\b{library}\s*::|\bnamespace\s+{library}\b", left)


def _idle_types(syntax: Syntax, dropped: Iterable[Node], launching: str) -> list[Node]:
    """Types made of types of hosts, where neither what is left nor a launch has their names."""
    every = [node for node in _outermost(syntax.root) if node.type in _TYPES]
    own = {name for node in every for name in _names(node)}
    types = [node for node in every if any(_is_foreign(one, own) for one in walk(node))]
    found: list[Node] = []
    gone = {*dropped}
    while True:
        left = apply(syntax.text.decode(), [_blanked(syntax.text, node) for node in gone])
        words = Counter(re.findall(r"\w+", f"{left} {launching}"))
        idle = [node for node in types if node not in gone and _is_unnamed(node, words)]
        if not idle:
            return found
        found += idle
        gone.update(idle)


def _outermost(node: Node) -> Iterator[Node]:
    """What stands outside of any function and type."""
    for child in node.children:
        if child.type in _CONTAINERS:
            yield from _outermost(child)
        else:
            yield child


def _is_unnamed(node: Node, words: Mapping[str, int]) -> bool:
    """Whether nothing has the names of a type but itself."""
    own = Counter(re.findall(r"\w+", text_of(node)))
    names = _names(node)
    return bool(names) and all(words[name] == own[name] for name in names)


def _names(node: Node) -> set[str]:
    """The names that a type has."""
    names = {text_of(node.child_by_field_name("name"))}
    if node.type == "type_definition":
        kind = node.child_by_field_name("type")
        names = {declared(one).name for one in node.children_by_field_name("declarator")}
        made = kind is not None and kind.type != "template_type"
        names |= {text_of(kind.child_by_field_name("name"))} if made and kind is not None else set()
    return names - {""}


def _is_foreign(node: Node, own: Collection[str]) -> bool:
    """Whether a name is that of a type which neither the text nor device code has."""
    name = text_of(node)
    return node.type == "type_identifier" and name not in own and element_dtype(name)[0] is None


def _dropped(function: Node) -> Note:
    name = name_of(function)
    told = f"dropped host function `{name}` (line {line_of(function)})"
    return Note("dropped_function", told, name)


def _line_dropped(node: Node) -> str:
    return f"dropped host line {line_of(node)}: `{_first_line(node)}`"


def _is_of_hosts_alone(node: Node) -> bool:
    if node.type != "preproc_include":
        return False
    return _OFFERED.fullmatch(text_of(node.child_by_field_name("path"))) is None


def _standing_for(root: Node, words: Collection[str]) -> frozenset[str]:
    """Some words, and the macros of the text that stand for one, as ``#define HD __device__``."""
    bodies = dict[str, set[str]]()
    for node in nodes_of(root):
        if node.type == "preproc_def":
            own = re.findall(r"\w+", text_of(node.child_by_field_name("value")))
            bodies.setdefault(text_of(node.child_by_field_name("name")), set()).update(own)
    found = {*words}
    while more := {name for name, body in bodies.items() if body & found} - found:
        found |= more
    return frozenset(found)


def _host_parts(node: Node, marks: frozenset[str]) -> Iterator[Node]:
    """The outermost nodes that only a host compiler needs."""
    for child in node.children:
        if child.type == "linkage_specification" and _is_host_alone(child, marks):
            yield child
        elif child.type in _CONTAINERS:
            yield from _host_parts(child, marks)
        elif _is_host(child, marks):
            yield child


def _members_of_hosts(root: Node, marks: frozenset[str], dropped: Iterable[Node]) -> Iterator[Node]:
    """Functions of types that are said to be for hosts, which device code cannot call."""
    hosts, gone = _standing_for(root, {"__host__"}) - marks, [*dropped]
    for node in nodes_of(root):
        if node.type != "function_definition" or node.parent is None or _is_in(node, gone):
            continue
        head = node.parent if node.parent.type == "template_declaration" else node
        inside = head.parent is not None and head.parent.type == "field_declaration_list"
        if inside and _device_words(node, hosts) and not _device_words(node, marks):
            gone.append(head)
            yield head


def _is_host_alone(node: Node, marks: frozenset[str]) -> bool:
    """Whether ``extern "C"`` stands before one declaration of the host's."""
    body = node.child_by_field_name("body")
    return body is not None and body.type not in _CONTAINERS and _is_host(body, marks)


def _is_host(node: Node, marks: frozenset[str] = _DEVICE_WORDS) -> bool:
    if node.type == "preproc_include":
        return _HOST_HEADERS.fullmatch(text_of(node.child_by_field_name("path"))) is not None
    if node.type == "using_declaration":
        return re.search(r"(?<![\w:])(?:::)?std\b", text_of(node)) is not None
    if node.type == "template_declaration":
        return any(_is_host(child, marks) for child in node.children)
    if node.type == "alias_declaration":
        return _ON_HOST.search(text_of(node)) is not None
    if node.type in ("class_specifier", "struct_specifier"):
        text = text_of(node)
        device = (marks - _DEVICE_WORDS) | {"__device__"}
        return _ON_HOST.search(text) is not None and not device & {*re.findall(r"\w+", text)}
    if node.type == "function_definition":
        return not _device_words(node, marks)
    if node.type == "declaration":
        words = _device_words(node, marks) - {"constexpr"}
        if "std::" in text_of(node).replace("cuda::std::", ""):
            return not words
        const = any(text_of(c) in ("const", "constexpr") for c in node.children)
        return not words and not const
    return node.type in (*STATEMENTS, "call_expression") and not _is_macro_of_device(node)


def _is_macro_of_device(node: Node) -> bool:
    """Whether ``MAKE(Add)`` stands for device code, as a macro of the text of its name says."""
    called = re.match(r"(\w+)\s*\(", text_of(node))
    root = node
    while root.parent is not None:
        root = root.parent
    return called is not None and any(
        define.type == "preproc_function_def"
        and text_of(define.child_by_field_name("name")) == called[1]
        and any(word in text_of(define) for word in _DEVICE_WORDS)
        for define in nodes_of(root)
    )


def _device_words(node: Node, marks: frozenset[str]) -> frozenset[str]:
    """The markers in front of a declaration that keep it for the device."""
    return marks.intersection(re.findall(r"\w+", _head(node)))


def _head(node: Node) -> str:
    """What stands in front of the name of a declaration."""
    declarator = node.child_by_field_name("declarator")
    end = declarator.start_byte if declarator is not None else node.end_byte
    return (node.text or b"")[: end - node.start_byte].decode(errors="replace")


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
