"""Normal form: groups of threads and what libraries combine over them, by built-in functions.

``tile.thread_rank()`` is ``threadIdx.x % 32`` and ``cg::reduce(tile, x, cg::plus<float>())`` the
shuffles that it consists of; ``cub::BlockReduce<float, 256>(temp).Sum(x)`` is shuffles and a word
of shared memory for each warp. Rules then see threads that work together as they see any others.
Sources: CUDA C++ Programming Guide, "Cooperative Groups"; CUB, "BlockReduce" and "WarpReduce".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from optiml_magic.kernels import groups
from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Call, Expr, Member, Name
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Blank, Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import CType

_WARP = 32
_ALL = "0xffffffffu"
_CUB = re.compile(r"cub::(Block|Warp)Reduce\s*<([^<>;]*)>")
_NAMED = re.compile(
    r"(?:typedef\s+(cub::\w+\s*<[^<>;]*>)\s*(\w+)\s*;|using\s+(\w+)\s*=\s*(cub::\w+\s*<[^<>;]*>))"
)
_LIBRARY = re.compile(r"\b(?:cub::|BlockReduce|WarpReduce|this_thread_block|tiled_partition)")
_FUNCTOR = re.compile(r"(?:::)?(?:\w+::)*(\w+)")
_WORD = re.compile(r"\w+")
_COMBINED = {
    "plus": "+", "less": "min", "greater": "max", "bit_and": "&", "bit_or": "|", "bit_xor": "^",
    "Sum": "+", "Min": "min", "Max": "max", "minimum": "min", "maximum": "max",
}  # fmt: skip
_WORDS = {"+": "sum", "min": "least", "max": "greatest", "&": "and", "|": "or", "^": "xor"}
_ORDER = "the order of additions"
_SHUFFLES = {"shfl": "__shfl_sync", "shfl_down": "__shfl_down_sync", "shfl_up": "__shfl_up_sync",
             "shfl_xor": "__shfl_xor_sync"}  # fmt: skip
_VOTES = {"any": "__any_sync", "all": "__all_sync", "ballot": "__ballot_sync"}


@primitive
def collectives(kernel: Kernel) -> Kernel:
    """The kernel without groups of its block, and without reductions of CUB; it has some."""
    if not _LIBRARY.search(kernel.show(kernel.function.body)):
        raise NotLegal("it asks for no group of threads")
    return _Spelling(kernel).kernel()


class _Spelling:
    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        self.helpers: dict[str, str] = {}
        self.ordered = False  # whether sums of floats are added up in another order
        body = kernel.function.body
        self.groups = dict(self._groups())
        self.named = self._aliases()
        self.shared = {
            v for s in walk(body) if isinstance(s, Declare) for v in s.variables
            if "TempStorage" in v.type.base or "TempStorage" in s.words
        }  # fmt: skip

    def kernel(self) -> Kernel:
        body = self.old.function.body
        for expr in [*expressions(body)][::-1]:  # arguments before what asks for them
            made = self._spelled(expr)
            if made is not None:
                self.swaps[expr] = made
        self._drop()
        left = edited(body, self.swaps)
        shown, gone = (
            self.old.show(left),
            {*self.named, *(v.name for v in {*self.groups} | self.shared)},
        )
        if _LIBRARY.search(shown) or gone & set(_WORD.findall(shown)):
            raise NotLegal("what it asks of a group of threads is not followed")
        new = self.old.rewritten(left, helpers=self.helpers.values())
        order = [_ORDER] * self.ordered
        return replace(new, arithmetic=tuple(dict.fromkeys((*new.arithmetic, *order))))

    def _groups(self) -> Iterator[tuple[Variable, int]]:
        """The locals that are groups, with the threads of each; 0 for the block."""
        for statement in walk(self.old.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                value = variable.value
                kind = groups.made(value) if isinstance(value, Call) else variable.type.base
                size = 0 if groups.is_block(kind or "") else groups.tile_size(kind or "")
                if size is not None:
                    yield variable, size

    def _aliases(self) -> Mapping[str, str]:
        """What ``typedef`` and ``using`` call reductions of CUB."""
        shown = [self.old.unit.text]
        shown += [self.old.show(s) for s in walk(self.old.function.body) if isinstance(s, Blank)]
        found = dict[str, str]()
        for whole in shown:
            for first, name, other, second in _NAMED.findall(whole):
                found[name or other] = first or second
        return found

    def _drop(self) -> None:
        """What only names groups, or types and storage of reductions."""
        for statement in walk(self.old.function.body):
            if isinstance(statement, Blank) and _NAMED.search(self.old.show(statement)):
                self.swaps[statement] = None
            if isinstance(statement, Declare):
                gone = {*self.groups} | self.shared
                left = tuple(v for v in statement.variables if v not in gone)
                if len(left) < len(statement.variables):
                    self.swaps[statement] = (
                        replace(statement, variables=left, span=None) if left else None
                    )

    def _spelled(self, expr: Expr) -> Node | None:
        if isinstance(expr, Member) and isinstance(expr.base, Call):
            size = self._size(expr.base.receiver)
            place = groups.place(groups.BLOCK, expr.base.function) if size == 0 else None
            return text(f"{place}.{expr.field}") if place else None
        if not isinstance(expr, Call):
            return None
        size = self._size(expr.receiver)
        if size is not None:
            words = self._asked(expr, size)
            return text(words) if words else None
        if expr.receiver is not None:
            return self._by_cub(expr)
        function = bare(expr.function)
        first = self._size(expr.arguments[0]) if expr.arguments else None
        if function == "reduce" and first and len(expr.arguments) == 3:
            return self._combined(expr.arguments[1], self._op(expr.arguments[2]), first)
        if function in ("sync", "reduce", "inclusive_scan") and first is not None:
            return (
                text("__syncthreads()" if not first else "__syncwarp()")
                if (function == "sync")
                else None
            )
        return None

    def _size(self, expr: Expr | None) -> int | None:
        """The threads of a group; 0 for the block, None for what is no group."""
        if isinstance(expr, Name) and expr.variable in self.groups:
            return self.groups[expr.variable]
        if isinstance(expr, Call):
            kind = groups.made(expr) or ""
            return 0 if groups.is_block(kind) else groups.tile_size(kind)
        return None

    def _asked(self, call: Call, size: int) -> str:
        """What a group is asked for; empty for what is not followed."""
        function, given = call.function, [self._shown(a) for a in call.arguments]
        if function in groups.SYNCS and not given:
            return "__syncthreads()" if not size else "__syncwarp()"
        line = self.old.block[1:] == (1, 1) or len(self.old.launch.block) == 1
        if not line or size > _WARP or (size and size & (size - 1)):
            return ""
        if not size:
            return {"thread_rank": "threadIdx.x", "size": "blockDim.x",
                    "num_threads": "blockDim.x"}.get(function, "")  # fmt: skip
        if function in _SHUFFLES:
            return f"{_SHUFFLES[function]}({', '.join([_ALL, *given, str(size)])})"
        if function in _VOTES and size == _WARP:
            return f"{_VOTES[function]}({', '.join([_ALL, *given])})"
        return {
            "thread_rank": f"(threadIdx.x % {size}u)", "size": f"{size}u",
            "num_threads": f"{size}u", "meta_group_rank": f"(threadIdx.x / {size}u)",
            "meta_group_size": f"(blockDim.x / {size}u)",
        }.get(function, "")  # fmt: skip

    def _by_cub(self, call: Call) -> Node | None:
        """``BlockReduce(temp).Sum(x)``, of as many threads as the block has."""
        made = call.receiver
        if not isinstance(made, Call):
            return None
        words = self.named.get(made.function, self.old.spelled(made).split("(")[0])
        found = _CUB.search(words)
        count = len(call.arguments)
        if found is None or (call.function, count) not in (("Sum", 1), ("Reduce", 2)):
            return None
        op = "+" if call.function == "Sum" else self._op(call.arguments[1])
        own = self.old.block[0]
        if found[1] == "Warp":
            whole = len(found[2].split(",")) == 1
            return self._combined(call.arguments[0], op, _WARP) if whole else None
        if own is None or self.old.block[1:] != (1, 1) or own % _WARP:
            return None
        return self._combined(call.arguments[0], op, own)

    def _op(self, expr: Expr) -> str:
        found = _FUNCTOR.match(self.old.spelled(expr))
        return _COMBINED.get(found[1], "") if found is not None else ""

    def _combined(self, value: Expr, op: str, size: int) -> Node | None:
        kind = self.old.reading.types.get(value)
        if kind is None or not op or not kind.size or kind.size < 4 or kind.lanes != 1:
            return None
        self.ordered |= kind.floating and op == "+"
        lanes = self._of_lanes(kind, op, min(size, _WARP))
        name = lanes if size <= _WARP else self._of_block(kind, op, size, lanes)
        return text(f"{name}({self._shown(value)})")

    def _of_lanes(self, kind: CType, op: str, size: int) -> str:
        words = kind.name.replace(" ", "_")
        name = self.old.fresh(f"lanes_{_WORDS[op]}_{words}_{size}")
        other = f"__shfl_xor_sync({_ALL}, value, apart, {size})"
        self.helpers[name] = (
            f"__device__ __forceinline__ {kind.name} {name}({kind.name} value) {{\n"
            f"    for (int apart = {size // 2}; apart > 0; apart /= 2)\n"
            f"        value = {_joined(op, 'value', other)};\n    return value;\n}}\n"
        )
        return name

    def _of_block(self, kind: CType, op: str, size: int, lanes: str) -> str:
        words = kind.name.replace(" ", "_")
        name, warps = self.old.fresh(f"block_{_WORDS[op]}_{words}"), size // _WARP
        self.helpers[name] = (
            f"__device__ __forceinline__ {kind.name} {name}({kind.name} value) {{\n"
            f"    __shared__ {kind.name} parts[{warps}];\n"
            f"    value = {lanes}(value);\n"
            f"    __syncthreads();\n"
            f"    if (threadIdx.x % {_WARP} == 0) parts[threadIdx.x / {_WARP}] = value;\n"
            f"    __syncthreads();\n"
            f"    {kind.name} whole = parts[0];\n"
            f"    for (int warp = 1; warp < {warps}; ++warp)\n"
            f"        whole = {_joined(op, 'whole', 'parts[warp]')};\n"
            f"    return whole;\n}}\n"
        )
        return name

    def _shown(self, expr: Expr) -> str:
        return self.old.spelled(expr, self.swaps)


def _joined(op: str, one: str, other: str) -> str:
    return f"{op}({one}, {other})" if op in ("min", "max") else f"{one} {op} {other}"
