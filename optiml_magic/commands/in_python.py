"""What stands around a kernel in a cell: Python that holds it as a string, lines of a notebook."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from optiml_magic.commands.python_launches import as_host_code
from optiml_magic.errors import UsageError

_KERNEL = "__global__"
_FILLS = frozenset({"format", "format_map", "replace"})
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
    while lines[-1].isspace() or not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n" + as_host_code(tree, len(lines) + 1) + "\n"


def _strings(tree: ast.AST) -> Iterator[ast.Constant]:
    named = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _holds_kernel(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        pattern = _pattern(node)
        if _holds_kernel(pattern) or (isinstance(pattern, ast.Name) and pattern.id in named):
            raise UsageError(
                "the kernel is a template: its text is known only when Python fills it in",
                fix="print it, and paste only that text below %%optiml",
                line=getattr(node, "lineno", None),
            )
        if isinstance(node, ast.JoinedStr) and _KERNEL in ast.unparse(node):
            raise UsageError(
                "the kernel is an f-string: its text is known only when Python runs it",
                fix="print it, and paste only that text below %%optiml",
                line=node.lineno,
            )
        if isinstance(node, ast.Constant) and _holds_kernel(node):
            yield node


def _holds_kernel(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNEL in node.value


def _pattern(node: ast.AST) -> ast.AST | None:
    """What is filled in by ``%``, ``format``, ``replace`` or ``Template``, where a node does so."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return node.left
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            return node.func.value
        if ast.unparse(node.func).rpartition(".")[2] == "Template" and node.args:
            return node.args[0]
    return None
