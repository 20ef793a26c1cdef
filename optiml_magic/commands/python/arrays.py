"""The arrays that Python makes with NumPy and CuPy: how many elements of which type."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.commands.python.names import unknown

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
_FLAT = frozenset({"ravel", "flatten"})
_VIEWS = frozenset({"reshape", "ravel", "squeeze", "data_ptr"})
_ON_DEVICE = frozenset({"cuda", "contiguous"})
_POINTERS = frozenset({"ptr", "gpudata", "data"})
_MAYBE_COPIES = frozenset({"asarray", "ascontiguousarray"})  # none where it is one already


@dataclass(frozen=True)
class Made:
    """An array; ``zeros`` where it holds nothing else.

    Its whole numbers are random within ``limits``, the second left out, or it ``counts`` from the
    ``first``, which is 0 where there is none, by ``steps``.

    One that is not ``shaped`` has as many elements, along axes that are not known.
    """

    extents: Sequence[ast.expr]
    ctype: str
    zeros: bool = False
    shaped: bool = True
    torch: bool = False
    limits: tuple[ast.expr, ast.expr] | None = None
    counts: bool = False
    first: ast.expr | None = None
    steps: tuple[ast.expr, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """What its extents are computed from."""
        own = (*self.extents, *(self.limits or ()), *self.steps)
        own += (self.first,) if self.first is not None else ()
        nodes = (inner for extent in own for inner in ast.walk(extent))
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name))

    @property
    def size(self) -> ast.expr:
        """How many elements it has."""
        whole, *others = self.extents or [ast.Constant(1)]
        for other in others:
            whole = ast.BinOp(whole, ast.Mult(), other)
        return whole


def keeps_axes(node: ast.expr) -> bool:
    """Whether an expression is an array by its name, or a method that leaves its axes alone."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[]) if attr in _ON_DEVICE:
            return keeps_axes(value)
    return isinstance(node, ast.Name)


def with_own_axes(node: ast.expr) -> ast.expr:
    """A number, or an array that a name has with these axes; nothing known of a view."""
    view = not keeps_axes(node) and memory_of(node) is not None
    return unknown(ast.unparse(node)) if view else node


def memory_of(node: ast.expr, maybe: frozenset[str] = frozenset()) -> ast.Name | None:
    """The name of the array that an expression is the memory of, from its beginning on.

    What may make a copy, ``asarray(x)``, makes none of the names in ``maybe``.
    """
    match node:
        case ast.Attribute(value=value, attr="T"):
            return value if isinstance(value, ast.Name) else None
        case ast.Name():
            return node
        case ast.Attribute(value=value, attr=attr) if attr in _POINTERS:
            return memory_of(value, maybe)
        case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=None)):
            return _in_order(value, maybe)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _VIEWS | _ON_DEVICE:
            return _in_order(value, maybe)
        case ast.Call(
            func=ast.Attribute(attr=attr), args=[ast.Name(id=name) as value], keywords=[]
        ) if attr in _MAYBE_COPIES and name in maybe:
            return value
    return None


def _in_order(node: ast.expr, maybe: frozenset[str]) -> ast.Name | None:
    """The same of what a view is made of: one of a transposed array is a copy."""
    transposed = any(isinstance(n, ast.Attribute) and n.attr == "T" for n in ast.walk(node))
    return None if transposed else memory_of(node, maybe)


def made(node: ast.expr, known: Mapping[str, Made]) -> Made | None:
    """What an expression makes, from arrays that are ``known`` by name; None where that is open."""
    if isinstance(node, ast.Attribute) and node.attr == "T":
        inner = _alike(node.value, known)
        return replace(inner, zeros=False, shaped=False, counts=False) if inner else None
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func).rpartition(".")[2]
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    words = {word.arg: word.value for word in node.keywords}
    first = node.args[0] if node.args else None
    if owner is not None and (name in _ON_DEVICE or (name == "to" and _is_device(node))):
        return _alike(owner, known)
    if name in ("astype", "copy", "reshape", *_FLAT) and owner is not None:
        inner = _alike(owner, known)
        if inner is not None and name == "astype" and first is not None:
            return _of_type(inner, first)
        if inner is not None and name in ("reshape", *_FLAT):
            return _reshaped(inner, node.args if name == "reshape" else [], words)
        if inner is not None:
            return replace(inner, zeros=False)
    found = _new(name, node.args, words, torch=ast.unparse(node.func).startswith("torch."))
    if found is not None:
        return found
    dtype = words.get("dtype")
    like = _alike(first, known)
    if like is not None and name in (*_ALIKE, *_SAME) and len(node.args) == 1:
        like = replace(like, zeros=name == "zeros_like")
        if name in _ALIKE:
            like = replace(like, limits=None, counts=False)
        return _of_type(like, dtype) if dtype is not None else like
    nbytes = isinstance(first, ast.Attribute) and first.attr == "nbytes"
    if name == "mem_alloc" and isinstance(first, ast.Attribute) and nbytes:
        like = _alike(first.value, known)
        return replace(like, zeros=False) if like is not None else None
    return None


def _is_device(call: ast.Call) -> bool:
    """Whether ``x.to("cuda")`` only moves it."""
    words = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return len(words) == len(call.args) == 1 and not call.keywords and "cuda" in str(words[0])


def _new(
    name: str, given: Sequence[ast.expr], words: Mapping[str | None, ast.expr], *, torch: bool
) -> Made | None:
    """What is made of numbers alone."""
    if name in ("randint", "integers") and (drawn := _whole(given, words, torch=torch)) is not None:
        return drawn
    if not given or set(words) - {"dtype", "order", "device"}:
        return None
    dtype, real = words.get("dtype"), "float" if torch else "double"
    if name in _OF_AXES or (torch and name in _OF_SHAPE):
        listed = len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List))
        plain = Made(_extents(given[0]) if listed else given, real, name == "zeros", torch=torch)
    elif name in _OF_SHAPE and len(given) <= (1 if dtype is not None else 2):
        dtype = dtype or (given[1] if len(given) > 1 else None)
        plain = Made(_extents(given[0]), real, name == "zeros")
    elif name == "arange" and len(given) in (2, 3):
        first, end, *steps = given
        many = ast.BinOp(end, ast.Sub(), first)
        if steps:
            less = ast.BinOp(ast.BinOp(many, ast.Add(), steps[0]), ast.Sub(), ast.Constant(1))
            many = ast.BinOp(less, ast.FloorDiv(), steps[0])
        plain = Made([many], "long long", counts=True, first=first, steps=tuple(steps))
    elif name in ("arange", "permutation", "randperm") and len(given) == 1:
        plain = Made(given, "long long", counts=True)
    else:
        return None
    return _of_type(plain, dtype) if dtype is not None else plain


def _whole(
    given: Sequence[ast.expr], words: Mapping[str | None, ast.expr], *, torch: bool
) -> Made | None:
    """``randint(low, high, size)`` and ``randint(high, size=...)``."""
    if set(words) - {"dtype", "device", "size", "low", "high"}:
        return None
    rest = [*given]
    size = words.get("size") or (
        rest.pop() if len(rest) == 3 or (torch and len(rest) == 2) else None
    )
    ends = [*rest, *(words[end] for end in ("low", "high") if end in words)]
    if size is None or not 1 <= len(ends) <= 2:
        return None
    low, high = ends if len(ends) == 2 else (ast.Constant(0), ends[0])
    plain = Made(_extents(size), "long long", torch=torch, limits=(low, high))
    return _of_type(plain, words["dtype"]) if "dtype" in words else plain


def _reshaped(
    array: Made, given: Sequence[ast.expr], words: Mapping[str | None, ast.expr]
) -> Made | None:
    """The same elements along other axes, where these are numbers, or one that takes the rest."""
    axes = _extents(given[0]) if len(given) == 1 else given
    flat = not axes or [ast.unparse(axis) for axis in axes] == ["-1"]
    if words:
        return None
    if flat:
        return replace(array, extents=[array.size], zeros=False, shaped=True)
    rest = any(isinstance(axis, ast.UnaryOp) for axis in axes)
    if rest or any(not isinstance(axis, (ast.Constant, ast.Name)) for axis in axes):
        return replace(array, extents=[array.size], zeros=False, shaped=False)
    return replace(array, extents=axes, zeros=False, shaped=True)


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
    """``x.shape[0]``, ``x.size`` and ``len(x)`` as what a known array was made with.

    Of one that is ``reshaped`` nobody knows which axes it has.
    """

    def __init__(self, known: Mapping[str, Made], reshaped: Collection[str]) -> None:
        self._known = known
        self._reshaped = {name for name, array in known.items() if not array.shaped}
        self._reshaped |= set(reshaped)

    def _axes(self, node: ast.expr) -> Sequence[ast.expr]:
        """The extents of an array with that name, where they are known."""
        array = self._known.get(node.id) if isinstance(node, ast.Name) else None
        return array.extents if array is not None and array.shaped else ()

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=value, attr="shape"),
                slice=ast.Constant(value=int(axis)),
            ) if 0 <= axis < len(self._axes(value)):
                return self._axes(value)[axis]
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr == "shape" and name in self._reshaped:
            return unknown(ast.unparse(node))
        if node.attr == "shape" and (axes := self._axes(node.value)):
            return ast.Tuple(list(axes))
        return self._known[name].size if node.attr == "size" and name in self._known else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name) as value]):
                if name in self._reshaped:
                    return unknown(ast.unparse(node))
                axes = self._axes(value)
                return axes[0] if axes else node
        return node
