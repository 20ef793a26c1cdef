"""Where a thread stands in its group: ``tile.thread_rank()`` and its kin."""

from __future__ import annotations

from optiml_magic.kernels import groups, types
from optiml_magic.kernels.evaluation import Evaluator
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.values import Value


class GroupEvaluator(Evaluator):
    """Evaluates what cooperative groups say of a thread."""

    def standing(self, group: str, method: str) -> Value | None:
        """Where a thread stands in a group; None where that is not known."""
        variable = groups.place(group, method)
        if variable is not None:
            fields = {axis: self.builtin(f"{variable}.{axis}") for axis in "xyz"}
            return Value(types.CType("dim3", "record"), fields=fields)
        size = groups.tile_size(group)
        if size is not None and method in ("size", "num_threads"):
            return self.number(Polynomial.constant(size), types.UINT)
        ranked = method in ("thread_rank", "meta_group_rank")
        if not ranked or (size is None and not groups.is_block(group)):
            return None
        rank = self.builtin("threadIdx.z")
        for axis in "yx":
            row = self.combined("*", rank, self.builtin(f"blockDim.{axis}"))
            rank = self.combined("+", row, self.builtin(f"threadIdx.{axis}"))
        if size is None:
            return rank
        op = "%" if method == "thread_rank" else "/"
        return self.combined(op, rank, self.number(Polynomial.constant(size), types.UINT))
