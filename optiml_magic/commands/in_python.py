"""What stands around a kernel in a cell: Python that holds it as a string, lines of a notebook."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from optiml_magic.errors import UsageError

_KERNEL = "__global__"
_COMMANDS = re.compile(
    r"^(?:%%\w+[^\n]*|!(?:nvcc|\./|nsys|ncu|nvprof|nvidia-smi)\b[^\n]*|```[\w+-]*[ \t]*)$",
    re.MULTILINE,
)


def without_commands(text: str) -> str:
    """The text without lines of a notebook or a page around it: ``%%cu``, ``!nvcc``, fences."""
    return _COMMANDS.sub("", text)


def kernel_in(text: str) -> str | None:
    """The strings of a Python text that hold kernels, on their own lines; None where it is C++.

    Raises UsageError where such a string is made up when the text runs.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    found = list(_strings(tree))
    if not found:
        return None
    lines = [""] * text.count("\n")
    for node in found:
        own = str(node.value).split("\n")
        first = node.lineno - 1
        lines += [""] * (first + len(own) - len(lines))
        for at, line in enumerate(own, first):
            lines[at] = f"{lines[at]} {line}" if lines[at] else line
    return "\n".join(lines) + "\n"


def _strings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and _KERNEL in ast.unparse(node):
            raise UsageError(
                "the kernel is an f-string: its text is known only when Python runs it",
                fix="print it, and paste only that text below %%optiml",
                line=node.lineno,
            )
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNEL in node.value:
            yield node
