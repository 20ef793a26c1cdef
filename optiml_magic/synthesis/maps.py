"""Operations element by element: ufuncs, conversions, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.model.dtypes import kind
from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.graph import Constant, DType, Map, Node, Position, indexed
from optiml_magic.synthesis.refusals import RefusalError
from optiml_magic.synthesis.sizes import Extents, Size, axis, constant
from optiml_magic.synthesis.table import function

_INT64 = np.dtype(np.int64)
_ONE = constant(1)


def operand(trace: Trace, value: Any) -> Traced:
    """A value as an array: what is traced already, a size, a number, or numbers of its own."""
    if isinstance(value, Traced):
        return value
    if isinstance(value, Size):
        return Traced(trace, Position((), _INT64, value.expression), int)
    if isinstance(value, (list, tuple)) and any_traced(value):
        from optiml_magic.synthesis.joining import stack

        return stack(trace, value)
    array = np.array(value)
    if array.dtype.kind not in "biufcV":
        raise RefusalError(
            f"a value of type {type(value).__name__}", "compute with arrays of numbers alone"
        )
    weak = type(value) if type(value) in (int, float, complex) else None
    array.flags.writeable = False
    return Traced(trace, Constant(tuple(map(constant, array.shape)), array.dtype, array), weak)


def any_traced(values: Sequence[Any]) -> bool:
    """Whether there is a traced array or a size among the values, at any depth of lists."""
    return any(
        any_traced(x) if isinstance(x, (list, tuple)) else isinstance(x, (Traced, Size))
        for x in values
    )


def cast(node: Node, dtype: Any) -> Node:
    """The same numbers in another dtype."""
    wanted = np.dtype(dtype)
    if node.dtype == wanted:
        return node
    if isinstance(node, Constant):
        return Constant(node.shape, wanted, node.value.astype(wanted))
    return Map(node.shape, wanted, "cast", (node,))


def entering(value: Traced, dtype: DType) -> Node:
    """An operand in the dtype of a loop; OverflowError where a number of Python's is beyond it."""
    node = value.node
    if value.weak is int and isinstance(node, Constant) and dtype.kind in "iu":
        return Constant((), dtype, np.array(node.value.item(), dtype))
    if value.weak is float and isinstance(node, Constant) and node.dtype != dtype:
        return Map(node.shape, dtype, "cast", (node,))  # what it was before is known still
    return cast(node, dtype)


def full(value: Any, dtype: Any, shape: Extents = ()) -> Node:
    """One number everywhere."""
    number = np.array(value, dtype)
    number.flags.writeable = False
    return spread(Constant((), number.dtype, number), shape)


def spread(node: Node, shape: Extents) -> Node:
    """Broadcast to a shape whose extents are the node's own, except where they are 1."""
    offset = len(shape) - len(node.shape)
    at = tuple(
        axis(k + offset) if extent == shape[k + offset] else constant(0)
        for k, extent in enumerate(node.shape)
    )
    return indexed(node, at, shape)


def agreed(trace: Trace, one: Polynomial, two: Polynomial) -> Polynomial:
    """The extent of two axes that are broadcast together; ValueError where they cannot be."""
    if two in (one, _ONE):
        return one
    if one == _ONE:
        return two
    left, right = trace.size(one), trace.size(two)
    if left == right:
        return two if two.value is not None else one
    if left == 1:
        return two
    if right == 1:
        return one
    raise ValueError(f"extents {one} and {two} cannot be broadcast together")


def together(trace: Trace, shapes: Sequence[Extents]) -> Extents:
    """The shape of several that are broadcast together."""
    rank = max(map(len, shapes), default=0)
    found = [_ONE] * rank
    for shape in shapes:
        for k, extent in enumerate(shape, start=rank - len(shape)):
            found[k] = agreed(trace, found[k], extent)
    return tuple(found)


def fitted(trace: Trace, node: Node, shape: Extents) -> Node:
    """Broadcast to a shape, with what has to be assumed for it; ValueError where it cannot be."""
    offset = len(shape) - len(node.shape)
    kept = node.shape[max(0, -offset) :]
    if any(extent != _ONE for extent in node.shape[: max(0, -offset)]):
        raise ValueError(f"an array of {len(node.shape)} axes does not fit {len(shape)}")
    at: list[Polynomial] = [constant(0)] * max(0, -offset)
    for k, extent in enumerate(kept, start=max(0, offset)):
        if extent == _ONE != shape[k]:
            at.append(constant(0))
        elif extent == shape[k] or trace.size(extent) == trace.size(shape[k]):
            at.append(axis(k))
        elif trace.size(extent) == 1:
            at.append(constant(0))
        else:
            raise ValueError(f"extent {extent} does not fit {shape[k]}")
    return indexed(node, tuple(at), shape)


def mapped(trace: Trace, ufunc: Any, *values: Any, dtype: Any = None) -> Traced:
    """A ufunc of one result, in the loop that NumPy takes for these dtypes."""
    known = vars(np).get(ufunc.__name__) is ufunc
    if not known or ufunc.nout != 1:
        raise RefusalError(f"`{ufunc.__name__}` is not traced", "write it in other functions")
    operands = [operand(trace, value) for value in values]
    wanted = tuple(x.weak if x.weak in (int, float, complex) else x.dtype for x in operands)
    signature = (*([None] * ufunc.nin), None if dtype is None else np.dtype(dtype))
    *loop, result = ufunc.resolve_dtypes((*wanted, None), signature=signature, casting="same_kind")
    shape = together(trace, [x.extents for x in operands])
    arguments = tuple(
        fitted(trace, entering(x, into), shape) for x, into in zip(operands, loop, strict=True)
    )
    return Traced(trace, Map(shape, result, ufunc.__name__, arguments))


def delivered(trace: Trace, result: Traced, out: Any) -> Any:
    """The result, put into ``out`` where one is given."""
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        return result
    if not isinstance(target, Traced):
        raise RefusalError("`out` is a plain array", "make it by `np.empty` in the reference")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise TypeError(f"cannot cast from {result.dtype} to {target.dtype} in place")
    target.put(fitted(trace, cast(result.node, target.dtype), target.extents))
    return target


def called(trace: Trace, ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc, called."""
    out, chosen = options.get("out"), options.get("where", True)
    if ufunc is np.divmod:
        return tuple(mapped(trace, each, *inputs) for each in (np.floor_divide, np.remainder))
    if ufunc is np.modf:
        trunk = mapped(trace, np.trunc, *inputs)
        rest = mapped(trace, np.subtract, operand(trace, inputs[0]), trunk)
        return mapped(trace, np.copysign, rest, *inputs), trunk
    result = mapped(trace, ufunc, *inputs, dtype=options.get("dtype"))
    if chosen is not True:
        target = out[0] if isinstance(out, tuple) else out
        if target is None:
            raise RefusalError(
                "`where=` without `out=` leaves numbers undefined", "use `np.where` instead"
            )
        result = where(trace, chosen, result, target)
    return delivered(trace, result, out)


@function(np.where)
def where(trace: Trace, condition: Any, one: Any = None, two: Any = None) -> Traced:
    if one is None or two is None:
        raise RefusalError(
            "`np.where` of a condition alone has as many results as the data say",
            "give both alternatives",
        )
    chosen, *sides = (operand(trace, value) for value in (condition, one, two))
    shape = together(trace, [x.extents for x in (chosen, *sides)])
    dtype = np.result_type(*(_representative(x) for x in sides))
    arguments = [fitted(trace, cast(chosen.node, bool), shape)]
    arguments += [fitted(trace, entering(x, dtype), shape) for x in sides]
    return Traced(trace, Map(shape, dtype, "where", tuple(arguments)))


@function(np.copyto)
def copyto(trace: Trace, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    del casting
    values = fitted(trace, entering(operand(trace, src), dst.dtype), dst.extents)
    if where is not True:
        values = trace.function(np.where, (where, Traced(trace, values), dst), {}).node
    dst.put(values)


@function(np.putmask)
def putmask(trace: Trace, a: Any, mask: Any, values: Any) -> None:
    copyto(trace, a, values, where=mask)


@function(np.choose)
def choose(trace: Trace, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    which = operand(trace, a)
    last = len(choices) - 1
    if mode == "wrap":
        which = mapped(trace, np.remainder, which, last + 1)
    result = operand(trace, choices[last])
    for k in reversed(range(last)):
        compare = np.less_equal if mode == "clip" and k == 0 else np.equal
        result = where(trace, mapped(trace, compare, which, k), choices[k], result)
    return delivered(trace, result, out)


@function(np.piecewise)
def piecewise(
    trace: Trace, x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any
) -> Traced:
    given = operand(trace, x)
    tests = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    values = [f(given, *args, **kwargs) if callable(f) else f for f in funclist]
    result: Any = values.pop() if len(values) > len(tests) else 0
    for test, value in zip(tests, values, strict=True):
        result = where(trace, test, value, result)
    return Traced(
        trace, cast(fitted(trace, operand(trace, result).node, given.extents), given.dtype)
    )


@function(np.result_type)
def result_type(trace: Trace, *arrays_and_dtypes: Any) -> DType:
    return np.result_type(
        *(
            _representative(operand(trace, x)) if isinstance(x, (Traced, Size)) else x
            for x in arrays_and_dtypes
        )
    )


@function(np.select)
def select(trace: Trace, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = operand(trace, default)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(trace, condition, choice, result)
    return result


def common(values: Sequence[Traced]) -> DType:
    """The dtype of several that are put into one array."""
    return np.result_type(*(_representative(x) for x in values))


def _representative(value: Traced) -> Any:
    return value.weak(0) if value.weak in (int, float, complex) else value.dtype


@function(np.ndarray.astype, getattr(np, "astype", None))
def astype(trace: Trace, x: Any, dtype: Any, *, copy: bool = True) -> Traced:
    if np.dtype(dtype) == x.dtype and not copy:
        return operand(trace, x)
    wanted = np.dtype(dtype)
    if kind(wanted) == kind(x.dtype) == "f" and wanted.itemsize < x.dtype.itemsize:
        return Traced(trace, Map(x.extents, wanted, "narrowed", (x.node,)))
    return Traced(trace, cast(x.node, wanted))


@function(np.clip)
def clip(
    trace: Trace, x: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any
) -> Any:
    low, high = more.get("min", a_min), more.get("max", a_max)
    result = operand(trace, x)
    if low is not None:
        result = mapped(trace, np.maximum, result, low)
    if high is not None:
        result = mapped(trace, np.minimum, result, high)
    return delivered(trace, result, out)


@function(np.round, np.around)
def rounded(trace: Trace, x: Any, decimals: int = 0, out: Any = None) -> Any:
    value = operand(trace, x)
    if value.dtype.kind in "iub" and decimals >= 0:
        result = Traced(trace, value.node)
    elif decimals == 0:
        result = mapped(trace, np.rint, value)
    else:
        scale = 10.0 ** abs(decimals)
        up, down = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
        scaled = mapped(trace, np.rint, mapped(trace, up, value, scale))
        result = mapped(trace, down, scaled, scale)
    return delivered(trace, result, out)


@function(np.nan_to_num)
def nan_to_num(
    trace: Trace, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    value = operand(trace, x)
    if value.dtype.kind != "f":
        return Traced(trace, value.node)
    bounds = np.finfo(value.dtype)
    result = where(trace, mapped(trace, np.isnan, value), nan, value)
    for number, instead in (
        (np.inf, bounds.max if posinf is None else posinf),
        (-np.inf, bounds.min if neginf is None else neginf),
    ):
        result = where(trace, mapped(trace, np.equal, value, number), float(instead), result)
    return result if copy else delivered(trace, result, value)
