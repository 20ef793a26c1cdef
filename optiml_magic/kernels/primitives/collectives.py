"""Normal form: groups of threads and what libraries combine over them, by built-in functions.

``tile.thread_rank()`` is ``threadIdx.x % 32`` and ``cg::reduce(tile, x, cg::plus<float>())`` the
shuffles that it consists of; ``cub::BlockReduce<float, 256>(temp).Sum(x)`` is shuffles and a word
of shared memory for each warp. Rules then see threads that work together as they see any others.
Sources: CUDA C++ Programming Guide, "Cooperative Groups"; CUB, "BlockReduce" and "WarpReduce".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels import groups
from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Call, Expr, Member, Name
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.functors import combining
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Blank, Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import CType, named

_WARP = 32
_ALL = "0xffffffffu"
_CUB = re.compile(r"cub::(Block|Warp)Reduce\s*<([^<>;]*)>")
_NAMED = re.compile(
    r"(?:typedef\s+(cub::\w+\s*<[^<>;]*>)\s*(\w+)\s*;|using\s+(\w+)\s*=\s*(cub::\w+\s*<[^<>;]*>))"
)
_LIBRARY = re.compile(r"\b(?:cub::|BlockReduce|WarpReduce|this_thread_block|tiled_partition)")
_FUNCTOR = re.compile(r"(?:::)?(?:\w+::)+(\w+)(?:<\s*([\w ]*)\s*>)?")
_MADE = re.compile(r"(\w+)\s*(?:\(\s*\)|\{\s*\})")  # a functor of the text
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
        self.groups = self._groups()
        self.line = kernel.block[1:] == (1, 1) or len(kernel.launch.block) == 1
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
        shown, dropped = self.old.show(left), {*self.groups} | self.shared
        gone = {*self.named, *(v.name for v in dropped)}
        if _LIBRARY.search(shown) or gone & set(_WORD.findall(shown)):
            raise NotLegal("what it asks of a group of threads is not followed")
        new = self.old.rewritten(left, helpers=self.helpers.values())
        order = [_ORDER] * self.ordered
        return replace(new, arithmetic=tuple(dict.fromkeys((*new.arithmetic, *order))))

    def _groups(self) -> dict[Variable, int]:
        """The locals that are groups, with the threads of each; 0 for the block."""
        found = dict[Variable, int]()
        for statement in walk(self.old.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                value = variable.value
                size = _threads_of(value, found) if isinstance(value, Call) else None
                if size is not None:
                    found[variable] = size
        return found

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
        if function == "sync" and first is not None and len(expr.arguments) == 1:
            words = self._synced(first)
            return text(words) if words else None
        return None

    def _size(self, expr: Expr | None) -> int | None:
        """The threads of a group; 0 for the block, None for what is no group."""
        if isinstance(expr, Name) and expr.variable in self.groups:
            return self.groups[expr.variable]
        return _threads_of(expr, self.groups) if isinstance(expr, Call) else None

    def _asked(self, call: Call, size: int) -> str:
        """What a group is asked for; empty for what is not followed."""
        function, given = call.function, [self._shown(a) for a in call.arguments]
        if function == "sync" and not given:
            return self._synced(size)
        if not self.line or size > _WARP or size & (size - 1):
            return ""
        if not size:
            return {"thread_rank": "threadIdx.x", "size": "blockDim.x",
                    "num_threads": "blockDim.x"}.get(function, "")  # fmt: skip
        if function in _SHUFFLES:
            return f"{_SHUFFLES[function]}({', '.join([_mask(size), *given, str(size)])})"
        if function in _VOTES and size == _WARP:
            return f"{_VOTES[function]}({', '.join([_ALL, *given])})"
        return {
            "thread_rank": f"(threadIdx.x % {size}u)", "size": f"{size}u",
            "num_threads": f"{size}u", "meta_group_rank": f"(threadIdx.x / {size}u)",
            "meta_group_size": f"(blockDim.x / {size}u)",
        }.get(function, "")  # fmt: skip

    def _synced(self, size: int) -> str:
        """The barrier of a group; empty where its lanes are not one behind the other."""
        if not size:
            return "__syncthreads()"
        known = size == _WARP or (self.line and size < _WARP)
        return f"__syncwarp({_mask(size)})" if known else ""

    def _by_cub(self, call: Call) -> Node | None:
        """``BlockReduce(temp).Sum(x)``, of as many threads as the block has."""
        made = call.receiver
        if not isinstance(made, Call):
            return None
        words = self.named.get(made.function, self.old.spelled(made).split("(")[0])
        found = _CUB.search(words)
        count = len(call.arguments)
        if count > 1 and bare(self.old.spelled(call.arguments[-1])) == "blockDim.x":
            count -= 1  # all threads of the block have one
        if found is None or (call.function, count) not in (("Sum", 1), ("Reduce", 2)):
            return None
        own, (kind, *more) = self.old.block[0], found[2].split(",")
        value, type_ = call.arguments[0], named(kind.strip(), self.old.unit.aliases)
        op = "+" if call.function == "Sum" else self._op(call.arguments[1], type_)
        if found[1] == "Warp":
            return None if more else self._combined(value, op, _WARP, type_)
        if own is None or self.old.block[1:] != (1, 1) or own % _WARP:
            return None
        return self._combined(value, op, own, type_)

    def _op(self, expr: Expr, kind: CType | None = None) -> str:
        """What a functor does, of a library or of the text; empty for what is not followed."""
        spelled = self.old.spelled(expr)
        found, made = _FUNCTOR.match(spelled), _MADE.fullmatch(spelled)
        if made is not None and kind is not None:
            return combining(self.old.unit, made[1], kind)
        if found is None or re.search(rf"\b(?:struct|class)\s+{found[1]}\b", self.old.unit.text):
            return ""
        return _COMBINED.get(found[1], "")

    def _combined(
        self, value: Expr, op: str, size: int, wanted: CType | None = None
    ) -> Node | None:
        """The call of a helper, of the type that the library computes in."""
        own = self.old.reading.types.get(value)
        kind = wanted or own
        if own is None or kind is None or not kind.size or kind.size < 4 or kind.lanes != 1:
            return None
        if not op or not (kind.integral or kind.floating) or (size < _WARP and not self.line):
            return None
        self.ordered |= kind.floating and op == "+"
        lanes = self._of_lanes(kind, op, min(size, _WARP))
        name = lanes if size <= _WARP else self._of_block(kind, op, size, lanes)
        shown = self._shown(value)
        return text(f"{name}({shown if own.name == kind.name else f'({kind.name})({shown})'})")

    def _of_lanes(self, kind: CType, op: str, size: int) -> str:
        words = kind.name.replace(" ", "_")
        name = self.old.fresh(f"lanes_{_WORDS[op]}_{words}_{size}")
        other = f"__shfl_xor_sync({_mask(size)}, value, apart, {size})"
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


def _threads_of(call: Call, known: Mapping[Variable, int]) -> int | None:
    """The threads of a group that is made of the whole block; 0 for that itself."""
    kind = groups.made(call) or ""
    if groups.is_block(kind):
        return 0
    match call.arguments:
        case [Name(variable=Variable() as whole)] if known.get(whole) == 0:
            return groups.tile_size(kind)
        case [Call() as whole] if groups.is_block(groups.made(whole) or ""):
            return groups.tile_size(kind)
    return None


def _mask(size: int) -> str:
    """The lanes of a thread's tile, of which the others may be elsewhere."""
    if size == _WARP:
        return _ALL
    return f"({(1 << size) - 1:#x}u << (threadIdx.x % {_WARP}u / {size}u * {size}u))"


def _joined(op: str, one: str, other: str) -> str:
    return f"{op}({one}, {other})" if op in ("min", "max") else f"{one} {op} {other}"
