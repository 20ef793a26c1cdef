"""The array that a reference computes with while it is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Protocol

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.evaluate import known, sizes_of
from optiml_magic.synthesis.graph import DType, Node, Place, Position, Scatter, identity, indexed
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents, Owner, Size, axes_of
from optiml_magic.synthesis.table import METHODS

_MOST_STEPS = 256  # of one loop that is unrolled
_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "lshift": np.left_shift,
    "rshift": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_KINDS = {"f": float, "i": int, "b": bool}


class Trace(Owner, Protocol):
    """One run of a reference, as the families of functions see it."""

    sizes: Mapping[str, int]
    library: Any
    plain: Mapping[str, Any]

    def size(self, expression: Polynomial) -> int:
        """The extent as a number that knows its expression."""

    def function(self, func: Any, args: Any, kwargs: Any) -> Any: ...

    def made(self, node: Node) -> None:
        """One more array was made."""


class Traced:
    """A cell that holds a node: what writes to it puts another node in.

    A view has a cell as its base and a place in it for each of its indices; it reads and writes
    there. ``weak`` is the Python type of a number that takes the dtype of what it meets.
    """

    def __init__(self, trace: Trace, node: Node, weak: type | None = None) -> None:
        trace.made(node)
        self.trace = trace
        self.weak = weak
        self._node = node
        self._base: Traced | None = None
        self._seen: Node | None = None
        self._at: tuple[Place, ...] = ()
        self._fixed = ""

    def viewed(self, at: tuple[Place, ...], shape: Extents) -> Traced:
        """A view: element i of it lies at ``at`` of this."""
        view = Traced(self.trace, indexed(self.node, at, shape))
        view._base, view._at, view._seen = self, at, self.node
        return view

    def fixed(self, why: str) -> Traced:
        """This, never to be written to from here on."""
        self._fixed = why
        return self

    @property
    def node(self) -> Node:
        """What it holds now."""
        if self._base is not None and self._base.node is not self._seen:
            self._seen = self._base.node
            self._node = indexed(self._seen, self._at, self._node.shape)
        return self._node

    @property
    def owns(self) -> bool:
        """Whether it is not a view."""
        return self._base is None

    def views(self, base: Traced, at: tuple[Place, ...]) -> bool:
        """Whether it is the view of those places."""
        return self._base is base and self._at == at

    def put(self, values: Node) -> None:
        """Other content, of the same shape and dtype."""
        assert values.dtype == self.dtype
        if self._fixed:
            raise RefusalError(f"it writes to {self._fixed}", "write to a copy, made by `.copy()`")
        self.trace.made(values)
        if self._base is None:
            self._node = values
        else:
            self._base.put(scattered(self._base.node, self._at, values, "set"))

    @property
    def extents(self) -> Extents:
        return self._node.shape

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.trace.size(extent) for extent in self._node.shape)

    @property
    def dtype(self) -> DType:
        return self._node.dtype

    @property
    def ndim(self) -> int:
        return len(self._node.shape)

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total = total * extent
        return total

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        return self.trace.function(np.transpose, (self,), {})

    @property
    def mT(self) -> Any:  # noqa: N802
        return self.trace.function(np.swapaxes, (self, -1, -2), {})

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        count = len(self)
        unrolled(count)
        return (self[at] for at in range(count))

    def __getitem__(self, key: Any) -> Any:
        return self.trace.function(operator.getitem, (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.trace.function(operator.setitem, (self, key, value), {})

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return lambda *args, **options: self.trace.function(
                getattr(np, name), (self, *args), options
            )
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"an array has no attribute {name!r}")
        raise RefusalError(f"`.{name}` of an array is not traced", "write it in other functions")

    def astype(self, dtype: Any, *_: Any, copy: bool = True, **__: Any) -> Any:
        return self.trace.function(np.ndarray.astype, (self, dtype), {"copy": copy})

    def copy(self, order: str = "C") -> Traced:
        del order
        return Traced(self.trace, self.node)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        whole = shape[0] if len(shape) == 1 else shape
        return self.trace.function(np.reshape, (self, whole), {"order": order})

    def flatten(self, order: str = "C") -> Any:
        return self.copy().reshape(-1, order=order)

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 else axes or None
        return self.trace.function(np.transpose, (self, order), {})

    def sort(self, axis: int = -1, **options: Any) -> None:
        self.put(self.trace.function(np.sort, (self, axis), options).node)

    def fill(self, value: Any) -> None:
        self[...] = value

    def item(self, *at: Any) -> Any:
        here: Any = self[at] if at else self
        return here.__float__() if here.dtype.kind == "f" else here.__int__()

    def tolist(self) -> Any:
        if (numbers := self.numbers()) is None:
            _decides("a list of Python's from an array")
        return numbers.tolist()

    def __complex__(self) -> complex:
        return complex(self._whole("a number of Python's from an array"))

    @property
    def real(self) -> Traced:
        if self.dtype.kind == "c":
            raise RefusalError("`.real` of complex numbers", "compute both parts by themselves")
        return self

    @property
    def imag(self) -> Any:
        return self.trace.function(np.zeros_like, (self,), {})

    @property
    def flat(self) -> Any:
        return self.reshape(-1)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise RefusalError(
            "an array that is traced is put where only a plain array fits",
            "make the result by NumPy functions of the arrays that are given",
        )

    def __bool__(self) -> bool:
        return bool(self._whole("a branch on the values of an array"))

    def __int__(self) -> int:
        return int(self._whole("a number of Python's from an array"))

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._whole("a number of Python's from an array"))

    def _whole(self, what: str) -> Any:
        """The number, where it is made of sizes, which it pins, and of constants alone."""
        node = self.node
        if isinstance(node, Position) and not self.ndim and not axes_of(node.expression):
            return self.trace.size(node.expression)
        if (number := self.numbers()) is None or number.size != 1:
            _decides(what)
        return number.item()

    def numbers(self) -> Any:
        """What it holds, where sizes and constants alone decide that; the sizes are pinned."""
        found = known(self.node, self.trace.sizes)
        for name in sorted(sizes_of(self.node)) if found is not None else ():
            int(self.trace.size(Polynomial.symbol(name)))
        return found

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            return self.trace.function(np.round, (self, digits), {})
        return round(float(self))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.trace.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        del types
        return self.trace.function(func, args, kwargs)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from optiml_magic.synthesis.torch_names import called

        del types
        options = kwargs or {}
        every = [*args, *options.values(), *(args[0] if args and type(args[0]) is list else ())]
        (first, *_) = (x for x in every if isinstance(x, cls))
        return called(first.trace, func, args, options)

    __hash__ = object.__hash__

    def __pow__(self, exponent: Any) -> Any:
        short = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}
        plain = type(exponent) in (int, float) and exponent in short
        if plain and (exponent == 2 or self.dtype.kind == "f"):
            return _weakly(self.trace.ufunc(short[exponent], "__call__", (self,), {}), self)
        return _weakly(self.trace.ufunc(np.power, "__call__", (self, exponent), {}), self, exponent)


def _decides(what: str) -> NoReturn:
    raise RefusalError(
        f"{what}: which way it goes is known only when the data are",
        "compute both ways and choose with `np.where`, or make it a size",
    )


def unrolled(count: int) -> None:
    """Whether a loop of so many steps may be traced step by step."""
    if count > _MOST_STEPS:
        raise RefusalError(
            f"a loop of {count} steps", "write it over whole arrays, with an axis for the loop"
        )


def scattered(base: Node, at: tuple[Place, ...], values: Node, operation: str) -> Node:
    """A ``Scatter``, or the values themselves where they are all."""
    whole = at == identity(len(base.shape)) and base.shape == values.shape
    if whole and operation == "set":
        return values
    return Scatter(base.shape, base.dtype, base, at, values, operation)


def _weakly(result: Any, *operands: Any) -> Any:
    """Numbers of Python's alone give one."""
    if isinstance(result, Traced) and all(
        x.weak if isinstance(x, Traced) else type(x) in (int, float, bool, Size) for x in operands
    ):
        result.weak = _KINDS.get(result.dtype.kind)
    return result


def _binary(ufunc: Any, *, swapped: bool = False) -> Callable[[Traced, Any], Any]:
    def operated(self: Traced, other: Any) -> Any:
        operands = (other, self) if swapped else (self, other)
        return _weakly(self.trace.ufunc(ufunc, "__call__", operands, {}), *operands)

    return operated


def _inner(ufunc: Any) -> Callable[[Traced, Any], Any]:
    def operated(self: Traced, other: Any) -> Any:
        if not self.ndim and self.owns:  # a number is another afterwards
            return _weakly(self.trace.ufunc(ufunc, "__call__", (self, other), {}), self, other)
        self.trace.ufunc(ufunc, "__call__", (self, other), {"out": (self,)})
        return self

    return operated


def _unary(ufunc: Any) -> Callable[[Traced], Any]:
    def operated(self: Traced) -> Any:
        return _weakly(self.trace.ufunc(ufunc, "__call__", (self,), {}), self)

    return operated


_ufunc: Any
for _spelling, _ufunc in _OPERATORS.items():
    if _spelling != "pow":
        setattr(Traced, f"__{_spelling}__", _binary(_ufunc))
    setattr(Traced, f"__r{_spelling}__", _binary(_ufunc, swapped=True))
    setattr(Traced, f"__i{_spelling}__", _inner(_ufunc))
for _spelling, _ufunc in {
    "matmul": np.matmul, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}.items():  # fmt: skip
    setattr(Traced, f"__{_spelling}__", _binary(_ufunc))
setattr(Traced, "__rmatmul__", _binary(np.matmul, swapped=True))  # noqa: B010
for _spelling, _ufunc in {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}.items():  # fmt: skip
    setattr(Traced, f"__{_spelling}__", _unary(_ufunc))
