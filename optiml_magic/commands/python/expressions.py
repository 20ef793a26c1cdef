"""Expressions of whole numbers in Python, as C++ writes them."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence

from optiml_magic.commands.python.arrays import CTYPES, Made, memory_of

UNREAD = "unread()"
_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%", ast.LShift: "<<",
    ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
    ast.NotEq: "!=",
}  # fmt: skip
PLAIN = frozenset({ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.Tuple, *_BINARY})
_PASSED = frozenset({"In", "Out", "InOut"})  # of PyCUDA, around an array
_INTEGERS = frozenset({"int", "int32", "int64", "uint32", "uint64", "intc", "uintc"})
_RESERVED = frozenset({
    "asm", "auto", "bool", "case", "catch", "char", "const", "constexpr", "default", "delete",
    "do", "double", "enum", "explicit", "extern", "float", "friend", "goto", "inline", "int",
    "long", "mutable", "namespace", "new", "operator", "private", "protected", "public",
    "register", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
    "throw", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
})  # fmt: skip
_FLOATS = {"float": "double", **{n: c for n, c in CTYPES.items() if c in ("float", "double")}}


def is_name(text: str) -> bool:
    """Whether a name of Python is one in C++, too."""
    return text.isidentifier() and text.isascii() and text not in _RESERVED


def last(function: ast.expr) -> str:
    """The name of what is called, without that of its module or object."""
    return ast.unparse(function).rpartition(".")[2]


def extents(node: ast.expr) -> str:
    """A grid or a block; one that is a name is all of it."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return f"dim3({axes(node.elts)})"
    return _said(node)


def axes(parts: Sequence[ast.expr]) -> str:
    """The extents along each axis."""
    return ", ".join(_said(axis) for axis in parts)


def argument(node: ast.expr) -> str:
    """What is passed: an array by its name, whatever PyCUDA or CuPy has around it."""
    if isinstance(node, ast.Call) and last(node.func) in _PASSED and len(node.args) == 1:
        return argument(node.args[0])
    return _said(memory_of(node) or node)


def _said(node: ast.expr) -> str:
    """An expression; one that is not known by its own words, as two of them may differ."""
    text = expression(node)
    return f"unread({json.dumps(ast.unparse(node))})" if text == UNREAD else text


def expression(node: ast.expr) -> str:
    """An expression of whole numbers in C++."""
    match node:
        case ast.Constant(value=bool() as value):
            return str(value).lower()
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.Name(id=name) if is_name(name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=ast.BinOp(op=ast.FloorDiv()) as inner):
            if isinstance(inner.left, ast.UnaryOp) and isinstance(inner.left.op, ast.USub):
                return _rounded_up(inner.left.operand, inner.right)  # -(-n // b)
            return f"(-{expression(inner)})"
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"(-{expression(inner)})"
        case ast.BinOp(left=ast.Constant(value=int(base)), op=ast.Pow(),
                       right=ast.Constant(value=int(power))) if 0 <= power < 64:  # fmt: skip
            return str(base**power)
        case ast.BinOp(left=left, op=ast.Mod(), right=right) if _may_be_negative(left):
            one, other = expression(left), expression(right)
            return f"(({one} % {other} + {other}) % {other})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return f"({expression(left)} {_BINARY[type(op)]} {expression(right)})"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"((double){expression(left)} / {expression(right)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
            return f"({expression(left)} {_BINARY[type(op)]} {expression(right)})"
        case ast.IfExp():
            parts = (expression(part) for part in (node.test, node.body, node.orelse))
            return "({} ? {} : {})".format(*parts)
        case ast.Attribute(value=ast.Name(id=name), attr="size") if is_name(name):
            return f"{name}.numel()"
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
            slice=ast.Constant(value=int(axis)),
        ) if axis >= 0 and is_name(name):
            return f"{name}.size({axis})"
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(axis))) if (
            0 <= axis < 3 and is_name(name)
        ):
            return f"{name}.{'xyz'[int(axis)]}"  # of what a launch has for its extents
        case ast.Call():
            return _called(node)
    return UNREAD


def _may_be_negative(node: ast.expr) -> bool:
    """Whether something is taken away: the rest has another sign in C++ than in Python then."""
    return any(isinstance(inner, (ast.Sub, ast.USub)) for inner in ast.walk(node))


def _called(call: ast.Call) -> str:
    name, given = last(call.func), call.args
    alone = isinstance(call.func, ast.Name)
    if len(given) == 1 and not call.keywords:
        (one,) = given
        if name == "ceil" and isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
            return _rounded_up(one.left, one.right)
        if name in _INTEGERS:
            return f"(int)({expression(one)})"
        if name in _FLOATS:
            return f"({_FLOATS[name]})({expression(one)})"
        if name == "len" and alone and isinstance(one, ast.Name) and is_name(one.id):
            return f"{one.id}.size(0)"
    if name in ("min", "max") and alone and len(given) == 2 and not call.keywords:
        return f"{name}({expression(given[0])}, {expression(given[1])})"
    if name == "cdiv" and len(given) == 2 and not call.keywords:
        return _rounded_up(given[0], given[1])
    return UNREAD


def _rounded_up(left: ast.expr, right: ast.expr) -> str:
    one, other = expression(left), expression(right)
    return f"(({one} + {other} - 1) / {other})"


def drawn(array: Made) -> str:
    """What a loop of C++ sets element ``i`` to; empty for what holds no indices."""
    if array.limits is None:
        by = "".join(f" * ({expression(step)})" for step in array.steps)
        first = f"({expression(array.first)}) + " if array.first is not None else ""
        return f"{first}i{by}" if array.counts else ""
    low, high = map(expression, array.limits)
    return f"({low}) + rand() % (({high}) - ({low}))"


def tensor(array: Made) -> str:
    """A new tensor of PyTorch as C++ makes it; empty where it would not say of which kind."""
    kinds = {"float": "", "long long": ", torch::kInt64", "int": ", torch::kInt32"}
    if not (array.torch and array.shaped and array.ctype in kinds):
        return ""
    extents = ", ".join(expression(extent) for extent in array.extents)
    return f"torch::{'zeros' if array.zeros else 'empty'}({{{extents}}}{kinds[array.ctype]})"
