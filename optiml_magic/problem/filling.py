"""Whole numbers as a loop of the host would fill an array with them."""

from __future__ import annotations

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.kernels.hostfilled import INDEX
from optiml_magic.model.dtypes import DType
from optiml_magic.source.expressions import Binary, Choice, Expression, Name, Node, Number, Unary

_COMPARES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
             "==": np.equal, "!=": np.not_equal}  # fmt: skip
_PLAIN = {"+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and,
          "|": np.bitwise_or, "^": np.bitwise_xor}  # fmt: skip


def as_filled(text: Expression, dtype: DType, count: int, seed: int) -> Array | None:
    """``count`` elements, each by its place and by numbers that ``rand`` may give.

    None where the elements cannot hold them, or one is divided by zero.
    """
    rng = np.random.default_rng(seed)
    found = _value(text.tree, count, rng)
    if found is None or dtype.kind not in "iu":
        return None
    limits, whole = np.iinfo(dtype), np.broadcast_to(found, (count,))
    fits = count == 0 or (whole.min() >= limits.min and whole.max() <= limits.max)
    return whole.astype(dtype) if fits else None


def _value(tree: Node, count: int, rng: np.random.Generator) -> Array | None:
    if isinstance(tree, Number):
        return np.asarray(tree.value, np.int64)
    if isinstance(tree, Name):
        if tree.name == INDEX:
            return np.arange(count, dtype=np.int64)
        return rng.integers(0, 2**31, count)
    if isinstance(tree, Unary):
        inner = _value(tree.operand, count, rng)
        return np.negative(inner) if inner is not None and tree.op == "-" else None
    if isinstance(tree, Choice):
        parts = [_value(part, count, rng) for part in (tree.condition, tree.then, tree.otherwise)]
        asked, then, otherwise = parts
        if asked is None or then is None or otherwise is None:
            return None
        return np.where(asked != 0, then, otherwise)
    return _combined(tree, count, rng) if isinstance(tree, Binary) else None


def _combined(tree: Binary, count: int, rng: np.random.Generator) -> Array | None:
    left, right = (_value(side, count, rng) for side in (tree.left, tree.right))
    if left is None or right is None:
        return None
    if tree.op in _PLAIN:
        return np.asarray(_PLAIN[tree.op](left, right))
    if tree.op in _COMPARES:
        return np.asarray(_COMPARES[tree.op](left, right)).astype(np.int64)
    if tree.op not in "/%" or not np.all(right):
        return None
    quotient = np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right)  # as C rounds it
    return np.asarray(quotient if tree.op == "/" else left - quotient * right)
