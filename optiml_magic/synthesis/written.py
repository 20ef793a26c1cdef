"""A reference that a model wrote, as a function: nothing in it reaches beyond NumPy's arithmetic.

The text is read before anything of it runs. It may hold functions, ``for`` loops, and calls of the
functions, methods and built-ins named here; no import but NumPy's, no ``while``, no name with an
underscore in front, no attribute that is not a function of arrays. So it cannot open a file, reach
a module, or look into an object.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import linecache
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from optiml_magic.synthesis import tracing
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.table import FUNCTIONS, METHODS

_FIX = "write it in functions of NumPy alone, as formulas over whole arrays"
_LONGEST = 20_000  # characters
_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.If, ast.IfExp, ast.Expr, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.Starred, ast.Pass, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_BUILTINS = (
    "range", "len", "min", "max", "abs", "sum", "float", "int", "bool", "enumerate", "zip", "round",
    "tuple", "list", "reversed", "sorted",
)  # fmt: skip
_IMPORT = "__import__"  # NumPy's own methods ask for it; a name like this the text cannot have
_ATTRIBUTES = frozenset((
    *METHODS, "shape", "dtype", "T", "ndim", "size", "astype", "reshape", "transpose", "copy",
    "flatten", "sort", "fill", "real", "imag", "newaxis", "pi", "e", "inf", "nan", "bool_",
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "linalg", "add", "at", "reduce", "accumulate", "outer", "finfo", "iinfo", "eps",
    "random", "standard_normal", "normal", "uniform", "integers", "permutation", "choice",
    "arange", "linspace", "array", "asarray", "zeros", "ones", "empty", "full", "eye",
))  # fmt: skip
_GENERATORS = frozenset(("default_rng", "seed"))


@cache
def _allowed() -> frozenset[str]:
    assert tracing  # whose import fills the table
    ufuncs = {name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    traced = {getattr(entry, "__name__", "") for entry in FUNCTIONS}
    return (_ATTRIBUTES | ufuncs | traced) - _GENERATORS


def functions(text: str, *wanted: str) -> dict[str, Callable[..., Any]] | Refused:
    """The functions of a text by name, those ``wanted`` among them; or what it may not hold."""
    if len(text) > _LONGEST:
        return Refused(f"it has more than {_LONGEST} characters", 0, _FIX)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as broken:
        line = getattr(broken, "lineno", 0) or 0
        return Refused(f"it is not Python: {broken}"[:200], line, _FIX)
    tree.body = [x for x in tree.body if not _is_numpy(x)]
    for node in ast.walk(tree):
        why = "; ".join(_faults(node))
        if why:
            return Refused(why, getattr(node, "lineno", 0), _FIX)
    unknown = _unknown(tree)
    if unknown is not None:
        return Refused(f"`{unknown.id}` is not allowed", unknown.lineno, _FIX)
    found = {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}
    if len(found) < len(tree.body):
        return Refused("it holds more than functions", tree.body[0].lineno, _FIX)
    lacking = [name for name in wanted if name not in found]
    if lacking:
        return Refused(f"there is no function `{lacking[0]}`", 0, f"Define `{lacking[0]}`.")
    return _made(tree, text, found)


def _made(tree: ast.Module, text: str, found: set[str]) -> dict[str, Callable[..., Any]]:
    """Their source can be had like that of any function, for digests and for refusals."""
    name = f"<written {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    allowed = {word: getattr(builtins, word) for word in (*_BUILTINS, _IMPORT)}
    names: dict[str, Any] = {"np": np, "numpy": np, "__builtins__": allowed, "__name__": "written"}
    exec(compile(tree, name, "exec"), names)  # noqa: S102  # what it may hold was looked at above
    return {word: names[word] for word in found}


def _is_numpy(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Import):
        return False
    return all(one.name == "numpy" and one.asname in (None, "np") for one in node.names)


def _unknown(tree: ast.Module) -> ast.Name | None:
    """A name that the text neither defines nor may use: one day its globals may be others."""
    nodes = list(ast.walk(tree))
    own = {x.id for x in nodes if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)}
    own |= {x.arg for x in nodes if isinstance(x, ast.arg)}
    own |= {x.name for x in nodes if isinstance(x, ast.FunctionDef)}
    known = {*own, *_BUILTINS, "np", "numpy"}
    return next((x for x in nodes if isinstance(x, ast.Name) and x.id not in known), None)


def _faults(node: ast.AST) -> Iterator[str]:
    """What of a node is not allowed."""
    if not isinstance(node, _NODES):
        yield f"`{type(node).__name__}` is not allowed"
    if isinstance(node, ast.Name) and node.id.startswith("_"):
        yield f"the name `{node.id}` is not allowed"
    if isinstance(node, ast.arg) and node.arg.startswith("_"):
        yield f"the name `{node.arg}` is not allowed"
    if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.name.startswith("_")):
        yield f"`{node.name}` may have no decorator, and no underscore in front"
    if isinstance(node, ast.Attribute) and node.attr not in _allowed():
        yield f"`.{node.attr}` is not allowed"
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        yield "bytes are not allowed"
