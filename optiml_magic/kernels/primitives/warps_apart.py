"""P4, warps apart: blocks whose warps have nothing to do with each other, as blocks of one warp.

``row = blockIdx.x * 8 + threadIdx.x / 32`` of a block of 256 threads is the number of a warp in the
grid. Where no warp waits for another, or shares memory with one, a launch of as many blocks of one
warp does the same, and a row is a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, builtin
from optiml_magic.kernels.functions import BLOCK_BARRIERS, LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.primitives.places import axis_of, own_text_only, tops
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.whole_numbers import WholeNumbers, is_below
from optiml_magic.source.expressions import Expression, Number, parse_expression

_WARP = 32
_WORD = 4  # bytes of a whole number that an index fits
_BLOCK = "blockIdx.x"
_ONE = Polynomial.constant(1)


@primitive
def warps_apart(kernel: Kernel) -> Kernel:
    """The kernel with a warp a block, where blocks of several warps let these work alone."""
    calls = kernel.reading.calls
    if not any(map(LANES.fullmatch, calls)):
        raise NotLegal("its lanes do nothing together")
    if calls & BLOCK_BARRIERS or any(a.space == "shared" for a in kernel.reading.accesses):
        raise NotLegal("its warps share memory, or wait for each other")
    if calls & set(TOLD):
        raise NotLegal("it prints, which tells how many threads there are")
    if kernel.launch.shared is not None:
        raise NotLegal("it has dynamic shared memory")
    own_text_only(kernel)
    every_place_read(kernel)
    return _Apart(kernel).kernel()


class _Apart:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.numbers = WholeNumbers(kernel)
        wide, high, deep = kernel.block
        if wide is None or high is None or deep != 1 or wide % _WARP:
            raise NotLegal("its blocks have no whole number of warps")
        self.rows = high > 1  # whose warps are the rows of the block
        if (self.rows and wide != _WARP) or wide * high == _WARP:
            raise NotLegal("its blocks are no rows of one warp each")
        self.wide, self.warps = wide, wide * high // _WARP

    def kernel(self) -> Kernel:
        swaps: dict[Node, Node] = {}
        for top in tops(self.old.function.body):
            stack = [top]
            while stack:
                expr = stack.pop()
                words = self._words(expr)
                if words is None:
                    stack += expr.parts
                elif words:
                    swaps[expr] = text(self.numbers.typed(expr, words))
        launch, block = self.old.launch, parse_expression(str(_WARP))
        whole = parse_expression(f"({launch.grid[0]}) * {self.warps}")
        body = edited(self.old.function.body, swaps)
        made = self.old.rewritten(
            body, launch=replace(launch, grid=(whole, *launch.grid[1:]), block=(block,))
        )
        for count in self._counts():
            if is_below(made, count.tree):
                grid = (parse_expression(str(count)), *launch.grid[1:])
                made = made.rewritten(made.function.body, launch=replace(made.launch, grid=grid))
                break
        return with_grid(made)

    def _words(self, expr: Expr) -> str | None:
        """What stands for an expression; empty where it stays, None for one that is no place."""
        if isinstance(expr, Name) and expr.variable is not None:
            return ""  # a local's value is exchanged where it gets it
        if self._is_item(expr):
            return _BLOCK
        if self._is_warp(expr):
            return f"{_BLOCK} % {self.warps}u"
        if self._is_lane(expr):
            return "threadIdx.x"
        if self._is_index(expr):
            return f"{_BLOCK} * {_WARP}u + threadIdx.x"
        if self._is_warps(expr):
            return f"{self.warps}u"
        name = builtin(expr)
        if name == "threadIdx.x" and not self.rows:
            raise NotLegal("a thread asks for its place in a block of several warps")
        if name.startswith("gridDim"):
            raise NotLegal("it counts the blocks of its grid")
        return {
            _BLOCK: f"{_BLOCK} / {self.warps}u", "blockDim.x": f"{self.wide}u",
            "blockDim.y": f"{self.warps if self.rows else 1}u", "blockDim.z": "1u",
            "threadIdx.z": "0u", "threadIdx.y": f"{_BLOCK} % {self.warps}u" if self.rows else "0u",
        }.get(name)  # fmt: skip

    def _is_item(self, expr: Expr) -> bool:
        """``blockIdx.x * 8 + threadIdx.x / 32``, or the index of a thread by 32."""
        whole = self.numbers.bare(expr)
        if self._by_warp(whole) and isinstance(whole, Binary):
            return self._is_index(self.numbers.meant(whole.left))
        if not isinstance(whole, Binary) or whole.op != "+":
            return False
        return any(
            self._is_warp(self.numbers.meant(warp)) and self._is_first(self.numbers.meant(first))
            for first, warp in ((whole.left, whole.right), (whole.right, whole.left))
        )

    def _is_first(self, expr: Expr) -> bool:
        if not isinstance(expr, Binary) or expr.op != "*":
            return False
        return any(
            builtin(self.numbers.meant(block)) == _BLOCK and self._is_warps(self.numbers.meant(by))
            for block, by in ((expr.left, expr.right), (expr.right, expr.left))
        )

    def _is_warps(self, expr: Expr) -> bool:
        """Whether this is how many warps a block has."""
        expr = self.numbers.bare(expr)
        if isinstance(expr, Literal):
            return expr.value == self.warps
        if self.rows:
            return builtin(expr) == "blockDim.y"
        whole = self._by_warp(expr) and isinstance(expr, Binary)
        return whole and builtin(self.numbers.meant(expr.left)) == "blockDim.x"  # type: ignore[attr-defined]

    def _is_warp(self, expr: Expr) -> bool:
        """Whether this is which warp of its block a thread is of."""
        expr = self.numbers.bare(expr)
        if self.rows:
            return builtin(expr) == "threadIdx.y"
        whole = self._by_warp(expr) and isinstance(expr, Binary)
        return whole and builtin(self.numbers.meant(expr.left)) == "threadIdx.x"  # type: ignore[attr-defined]

    def _is_lane(self, expr: Expr) -> bool:
        match self.numbers.bare(expr):
            case Binary(op="%", left=left, right=right) if self._is_size(right):
                return self._is_place(left)
            case Binary(op="&", left=left, right=Literal(value=31)):
                return self._is_place(left)
        return False

    def _is_place(self, expr: Expr) -> bool:
        """Whether this is a thread's place in its block, or in the grid."""
        meant = self.numbers.meant(expr)
        return builtin(meant) == "threadIdx.x" or (not self.rows and self._is_index(meant))

    def _is_index(self, expr: Expr) -> bool:
        return not self.rows and axis_of(self.old, self.numbers.bare(expr)) == "x"

    def _by_warp(self, expr: Expr) -> bool:
        match expr:
            case Binary(op="/", right=right):
                return self._is_size(right)
            case Binary(op=">>", right=Literal(value=5)):
                return True
        return False

    def _is_size(self, expr: Expr) -> bool:
        expr = self.numbers.meant(expr)
        return (isinstance(expr, Literal) and expr.value == _WARP) or (
            isinstance(expr, Name) and expr.name == "warpSize" and expr.variable is None
        )

    def _counts(self) -> Iterator[Expression]:
        """How many warps the launch may be meant for."""
        tree, block = self.old.launch.grid[0].tree, self.old.launch.block[0].tree
        rows = rounded_up(tree, Number(self.warps), self.warps)
        if self.rows and rows is None:
            rows = rounded_up(tree, self.old.launch.block[1].tree, self.warps)
        threads = None if self.rows else rounded_up(tree, block, self.wide)
        form = form_of(threads) if threads is not None else None
        each = form.divided(_WARP) if form is not None else None
        found = [Expression(rows, "")] if rows is not None else []
        found += [parse_expression(str(each))] if each is not None else []
        for count in found:
            if said_alike(self.old, count.names):
                yield count
