"""A NumPy reference, run once on arrays that write down what is done with them."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.dtypes import kind
from optiml_magic.rebound import rebound
from optiml_magic.synthesis import (  # noqa: F401  # fill the table
    joining,
    lifting,
    lookups,
    making,
    missing,
    products,
    views,
)
from optiml_magic.synthesis.array import Traced
from optiml_magic.synthesis.graph import Graph, Input, Node
from optiml_magic.synthesis.indexing import added
from optiml_magic.synthesis.library import Library, own, plain
from optiml_magic.synthesis.maps import called, mapped, operand
from optiml_magic.synthesis.reductions import accumulated, reduced
from optiml_magic.synthesis.refusals import RefusalError, Refused
from optiml_magic.synthesis.sizes import Assumption, Extents, Size, constant, substituted, valued
from optiml_magic.synthesis.table import FUNCTIONS

_MOST_ARRAYS = 20_000
_NO_SHAPES: Mapping[str, Extents] = MappingProxyType({})


class _Tracing:
    """One run: its sizes and what was assumed of them."""

    def __init__(self, reference: Callable[..., Any], sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        code = _code(reference)
        self._file = code.co_filename if code is not None else ""
        self.assumptions: dict[Assumption, None] = {}
        self._arrays = 0
        self._pinned: dict[str, int] = {}
        self._written: dict[Any, Any] = {}
        self.library = Library(self)
        self.plain = plain(self)

    def assume(self, assumption: Assumption) -> None:
        known = {name: constant(value) for name, value in self._pinned.items()}
        apart = substituted(assumption.left - assumption.right, known)
        if apart.value is not None:  # it follows from what was assumed before
            return
        self.assumptions.setdefault(assumption)
        name = str(assumption.left)
        if (
            assumption.relation == "=="
            and name in self.sizes
            and assumption.right.value is not None
        ):
            self._pinned[name] = assumption.right.value

    def size(self, expression: Polynomial) -> int:
        number = valued(expression, self.sizes)
        return int(number) if expression.value is not None else Size(number, expression, self)

    def number(self, size: Size) -> Traced:
        return operand(self, size)

    def made(self, node: Node) -> None:
        if not node.line:
            object.__setattr__(node, "line", self._line())
        self._arrays += 1
        if self._arrays > _MOST_ARRAYS:
            raise RefusalError(
                f"more than {_MOST_ARRAYS} arrays",
                "write its loops over whole arrays, with an axis for each loop",
            )

    def _line(self) -> int:
        """The innermost line of the reference's file that is being run."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: Any) -> Any:
        if ufunc.signature is not None and method == "__call__":
            return self.function(ufunc, inputs, options)
        match method:
            case "__call__":
                return called(self, ufunc, inputs, options)
            case "reduce":
                return reduced(self, ufunc, *inputs, **{"axis": 0, **options})
            case "accumulate":
                return accumulated(self, ufunc, *inputs, **options)
            case "at":
                return added(self, ufunc, *inputs)
            case "outer" if len(inputs) == 2:
                one, two = (operand(self, x) for x in inputs)
                return mapped(self, ufunc, one[(..., *([None] * two.ndim))], two)
        raise RefusalError(f"`np.{ufunc.__name__}.{method}`", "write it in other functions")

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        entry = FUNCTIONS.get(func)
        if entry is None and isinstance(func, np.ufunc) and func.signature is None:
            return called(self, func, args, kwargs)
        done = NotImplemented if entry is None else entry(self, *args, **kwargs)
        return self._as_written(func, args, kwargs) if done is NotImplemented else done

    def _as_written(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What NumPy's own code of a function computes, where that is Python."""
        home = str(getattr(func, "__module__", "numpy"))
        name = f"{home}.{func.__name__}".replace("numpy", "np", 1)
        code = own(func)
        if code is None:
            raise RefusalError(f"`{name}` is not traced", "write it in functions that are")
        if func not in self._written:
            self._written[func] = rebound(code, self.library, self.plain)
        try:
            return self._written[func](*args, **kwargs)
        except RefusalError as error:
            if error.reason.endswith("is not traced"):
                error.reason = f"`{name}` is not traced"
            elif "`np." not in error.reason:
                error.reason = f"`{name}`: {error.reason}"
            raise
        except (TypeError, AttributeError) as error:
            raise RefusalError(
                f"`{name}` is not traced", "write it in functions that are"
            ) from error


def traced(
    reference: Callable[..., Any],
    values: Mapping[str, Any],
    sizes: Mapping[str, int],
    shapes: Mapping[str, Extents] = _NO_SHAPES,
) -> Graph | Refused:
    """The graph of a reference.

    Args:
        reference: in NumPy.
        values: what it is called with, by the names of its parameters; only dtypes and shapes of
            arrays are looked at. A whole number under the name of a size is that size.
        sizes: at which the values were made.
        shapes: of the arrays as expressions of sizes (``fitted`` finds them). Without, an extent is
            the size that has its value, and else a constant.
    """
    trace = _Tracing(reference, sizes)
    try:
        inputs = _inputs(values, sizes, shapes)
    except RefusalError as error:
        return Refused(error.reason, 0, error.fix)
    arguments = {
        name: Traced(trace, node, _weak(values[name])) for name, node in inputs.items()
    } | {
        name: Size(int(sizes[name]), Polynomial.symbol(name), trace)
        for name in values
        if name not in inputs
    }
    stand_in = rebound(reference, trace.library, trace.plain)
    try:
        outputs = _outputs(trace, stand_in(**arguments))
    except RefusalError as error:
        return Refused(error.reason, _line(reference, error), error.fix)
    except Exception as error:  # noqa: BLE001  # a reference may raise what it likes
        line = _line(reference, error)
        reason = f"{type(error).__name__}: {error}"
        return Refused(reason, line, "give it what it computes with in NumPy without an error")
    return Graph(tuple(inputs.values()), outputs, dict(sizes), tuple(trace.assumptions))


def _inputs(
    values: Mapping[str, Any], sizes: Mapping[str, int], shapes: Mapping[str, Extents]
) -> dict[str, Input]:
    found = {}
    for name, value in values.items():
        if name in sizes and isinstance(value, (int, np.integer)):
            continue
        array = np.asarray(value)
        if kind(array.dtype) == "V":
            raise RefusalError(
                f"`{name}` holds {array.dtype}", "give arrays of numbers; a struct by its members"
            )
        shape = shapes.get(name) or tuple(_extent(name, n, sizes) for n in array.shape)
        found[name] = Input(shape, array.dtype, name)
    return found


def _extent(name: str, extent: int, sizes: Mapping[str, int]) -> Polynomial:
    fitting = [size for size, value in sizes.items() if value == extent]
    if len(fitting) > 1:
        raise RefusalError(
            f"an axis of `{name}` may be {' or '.join(fitting)}: all are {extent}",
            "trace at sizes that differ",
        )
    return Polynomial.symbol(fitting[0]) if fitting else constant(extent)


def _weak(value: Any) -> type | None:
    return type(value) if type(value) in (int, float, complex) else None


def _outputs(trace: _Tracing, answer: Any) -> tuple[tuple[str, Node], ...]:
    if answer is None:
        raise RefusalError("it returns nothing", "return the arrays that it computes")
    if isinstance(answer, Mapping):
        named = {str(name): value for name, value in answer.items()}
    elif isinstance(answer, tuple):
        named = {str(k): value for k, value in enumerate(answer)}
    else:
        named = {"": answer}
    return tuple((name, operand(trace, value).node) for name, value in named.items())


def _line(reference: Callable[..., Any], error: BaseException) -> int:
    """The innermost line of the reference's own file that led to the error."""
    code = _code(reference)
    if code is None:
        return 0
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == code.co_filename]
    return lines[-1] if lines else 0


def _code(reference: Callable[..., Any]) -> CodeType | None:
    inner = reference
    while isinstance(inner, functools.partial):
        inner = inner.func
    code = getattr(inner, "__code__", None)
    return code if isinstance(code, CodeType) else None
