"""The kernels that Python has handles of, by CuPy and PyCUDA, and the calls that launch them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.commands.python.expressions import last
from optiml_magic.commands.python.names import bound, unknown

_PREPARED = {"prepared_call": 2, "prepared_async_call": 3, "prepared_timed_call": 2}


@dataclass(frozen=True)
class Launch:
    """One launch; nothing but its kernel is known where it is written in an unusual way."""

    kernel: str
    grid: ast.expr
    block: ast.expr
    arguments: Sequence[ast.expr] = ()
    shared: ast.expr | None = None


def handles_in(tree: ast.Module) -> Mapping[str, str]:
    """The kernels by the names that Python has for them; none for a name that is set otherwise."""
    found: dict[str, str] = {}
    kept: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            for target, value in _pairs(node.targets[0], node.value):
                name, kernel = ast.unparse(target), _kernel(value)
                if kernel and found.setdefault(name, kernel) == kernel:
                    kept[name] += 1
    times = Counter(bound(tree))
    return {name: kernel for name, kernel in found.items() if times[name] <= kept[name]}


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _kernel(node: ast.expr) -> str:
    """The name in ``RawKernel(code, "name")`` and ``module.get_function("name")``."""
    if not isinstance(node, ast.Call):
        return ""
    at = {"RawKernel": 1, "get_function": 0}.get(last(node.func))
    if at is None:
        return ""
    named = [word.value for word in node.keywords if word.arg == "name"]
    for one in [*named, *node.args[at : at + 1]]:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "(" not in one.value:
            return one.value
    return ""


def handle(call: ast.Call, handles: Mapping[str, str]) -> str:
    """The kernel that a call is one of, by its own name or by what PyCUDA has prepared."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _PREPARED:
        function = function.value
    return handles.get(ast.unparse(function)) or _kernel(function)


def mentioned(tree: ast.AST, handles: Mapping[str, str]) -> frozenset[str]:
    """The names that launches mention."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    launching = [call for call in calls if handle(call, handles)]
    nodes = (node for call in launching for node in ast.walk(call))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def launch_in(call: ast.Call, handles: Mapping[str, str]) -> Launch | None:
    """CuPy's ``kernel(grid, block, (...))`` or PyCUDA's ``kernel(..., block=...)``."""
    kernel = handle(call, handles)
    if not kernel:
        return None
    words = {word.arg: word.value for word in call.keywords if word.arg}
    shared = words.get("shared_mem", words.get("shared", words.get("shared_size")))
    unread = Launch(kernel, unknown("grid"), unknown("block"))
    if any(isinstance(one, ast.Starred) for one in call.args):
        return unread
    if isinstance(call.func, ast.Attribute) and call.func.attr in _PREPARED:
        before = _PREPARED[call.func.attr]
        if len(call.args) < before:
            return unread
        return Launch(kernel, call.args[0], call.args[1], call.args[before:], shared)
    if "block" in words and "args" not in words and "shared_mem" not in words:
        one: ast.expr = ast.Tuple([ast.Constant(1)])
        return Launch(kernel, words.get("grid", one), words["block"], call.args, shared)
    parts = {**dict(zip(("grid", "block", "args"), call.args, strict=False)), **words}
    given = parts.get("args")
    if not {"grid", "block"} <= parts.keys() or not isinstance(given, (ast.Tuple, ast.List)):
        return unread
    if any(isinstance(one, ast.Starred) for one in given.elts):
        return unread
    return Launch(kernel, parts["grid"], parts["block"], given.elts, shared)
