"""What stands around a kernel in a cell: Python that holds it as a string, lines of a notebook."""

from __future__ import annotations

import ast
import re

from optiml_magic.commands.python.launches import as_host_code
from optiml_magic.commands.python.models import as_called
from optiml_magic.commands.python.sources import kernel_strings, macros
from optiml_magic.commands.python.templates import with_templates_filled
from optiml_magic.source.syntax import name_of, parse, walk

_COMMANDS = re.compile(
    r"^(?:%%\w+[^\n]*|!(?:nvcc|\./|nsys|ncu|nvprof|nvidia-smi)\b[^\n]*|```[\w+-]*[ \t]*)$",
    re.MULTILINE,
)


def without_commands(text: str) -> str:
    """The text without lines of a notebook or a page around it: ``%%cu``, ``!nvcc``, fences."""
    return _COMMANDS.sub("", text)


def kernel_in(text: str) -> str | None:
    """The strings of a Python text that hold kernels, on their own lines; None where it is C++.

    Behind them stands what the Python launches with, as host code of C++.

    Raises UsageError where such a string is made up when the text runs.
    """
    tree = _parsed(text)
    found = kernel_strings(tree) if tree is not None else []
    if tree is None or not found:
        return None
    lines = [""] * text.count("\n")
    for node in found:
        own = str(node.value).split("\n")
        first = node.lineno - 1
        lines += [""] * (first + len(own) - len(lines))
        for at, line in enumerate(own, first):
            lines[at] = f"{lines[at]} {line}" if lines[at] else line
    while lines[-1].isspace() or not lines[-1]:
        lines.pop()
    return (
        "\n".join(lines)
        + "\n"
        + as_host_code(as_called(tree), len(lines) + 1, _wrappers("\n".join(lines)))
        + "\n"
    )


def _wrappers(text: str) -> frozenset[str]:
    """The host functions of C++ that Python may call."""
    functions = [node for node in walk(parse(text).root) if node.type == "function_definition"]
    heads = [(node.text or b"").partition(b"(")[0] for node in functions]
    return frozenset(
        name_of(node) for node, head in zip(functions, heads, strict=True) if b"__" not in head
    )


def macros_in(text: str) -> dict[str, str]:
    """The macros that a Python text has its kernels compiled with.

    Raises UsageError where one is known only when the text runs.
    """
    tree = _parsed(text)
    return macros(tree) if tree is not None else {}


def _parsed(text: str) -> ast.Module | None:
    try:
        return with_templates_filled(ast.parse(text))
    except (SyntaxError, ValueError):
        return None
