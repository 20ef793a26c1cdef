"""The arrays that Python makes with NumPy and CuPy: how many elements of which type."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

CTYPES = {
    "float32": "float", "float64": "double", "double": "double", "int32": "int",
    "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
    "uint8": "unsigned char", "int8": "signed char", "int16": "short", "uint16": "unsigned short",
    "float16": "__half", "bool_": "bool", "intc": "int",
}  # fmt: skip
_OF_SHAPE = frozenset({"zeros", "ones", "empty", "random", "random_sample", "standard_normal"})
_OF_AXES = frozenset({"rand", "randn"})
_ALIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})
_SAME = frozenset({"asarray", "array", "ascontiguousarray", "copy", "to_gpu", "to_device"})


@dataclass(frozen=True)
class Made:
    """An array; ``zeros`` where it holds nothing else."""

    extents: Sequence[ast.expr]
    ctype: str
    zeros: bool = False


def made(node: ast.expr, known: Mapping[str, Made]) -> Made | None:
    """What an expression makes, from arrays that are ``known`` by name; None where that is open."""
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func).rpartition(".")[2]
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    words = {word.arg: word.value for word in node.keywords}
    first = node.args[0] if node.args else None
    if name in ("astype", "copy", "reshape", "ravel") and owner is not None:
        inner = _alike(owner, known)
        if inner is not None and name == "astype" and first is not None:
            return _of_type(inner, first)
        if inner is not None:
            return replace(inner, zeros=False)
    dtype = words.get("dtype")
    if first is not None and name in _OF_SHAPE and set(words) <= {"dtype", "order"}:
        dtype = dtype or (node.args[1] if len(node.args) > 1 else None)
        plain = Made(_extents(first), "double", name == "zeros")
        return _of_type(plain, dtype) if dtype is not None else plain
    if name in _OF_AXES and node.args:
        plain = Made(node.args, "double")
        return _of_type(plain, dtype) if dtype is not None else plain
    if name == "arange" and len(node.args) == 1:
        plain = Made(node.args, "long long")
        return _of_type(plain, dtype) if dtype is not None else plain
    like = _alike(first, known)
    if like is not None and name in (*_ALIKE, *_SAME):
        like = replace(like, zeros=name == "zeros_like")
        return _of_type(like, dtype) if dtype is not None else like
    nbytes = isinstance(first, ast.Attribute) and first.attr == "nbytes"
    if name == "mem_alloc" and isinstance(first, ast.Attribute) and nbytes:
        like = _alike(first.value, known)
        return replace(like, zeros=False) if like is not None else None
    return None


def _alike(node: ast.expr | None, known: Mapping[str, Made]) -> Made | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return made(node, known) if node is not None else None


def _of_type(array: Made, dtype: ast.expr) -> Made | None:
    name = dtype_of(dtype)
    return replace(array, ctype=CTYPES[name]) if name in CTYPES else None


def dtype_of(node: ast.expr) -> str:
    """``float32`` of ``np.float32`` and of the string."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node).rpartition(".")[2]


def _extents(shape: ast.expr) -> Sequence[ast.expr]:
    return shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else [shape]


class Extents(ast.NodeTransformer):
    """``x.shape[0]``, ``x.size`` and ``len(x)`` as what a known array was made with."""

    def __init__(self, known: Mapping[str, Made]) -> None:
        self.known = known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=int(axis)),
            ) if name in self.known and 0 <= axis < len(self.known[name].extents):
                return self.known[name].extents[axis]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known = self.known.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if known is not None and node.attr == "shape":
            return ast.Tuple(list(known.extents))
        if known is not None and node.attr == "size":
            whole, *others = known.extents
            for other in others:
                whole = ast.BinOp(whole, ast.Mult(), other)
            return whole
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.known:
                return self.known[name].extents[0]
        return node
