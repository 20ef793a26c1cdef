"""What all outputs of a product add to one place: each thread adds up its own, each warp adds once.

``atomicAdd(loss, f(sum))`` for every output would be as many updates of one address as there are
outputs; the sums of a tile's threads are in registers together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Call, Expr, Index, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Evaluate, Statement, walk

_SIZES = (4, 8)


@dataclass(frozen=True, eq=False)
class Added:
    """A statement that adds a value to the element at a place, the same for all outputs."""

    statement: Statement
    access: Access
    place: Expr
    value: Expr

    @property
    def exact(self) -> bool:
        return self.access.element.integral

    def kept(self, name: str, shown: Callable[[Expr], str]) -> str:
        """What stands for it: the thread's own sum."""
        return f"{name} += {shown(self.value)};"

    def declared(self, name: str) -> str:
        return f"{self.access.element.name} {name} = 0;"

    def finished(self, name: str, apart: str, shown: Callable[[Expr], str]) -> str:
        """Adds up the sums of a warp, whose first lane then adds them to the element."""
        return (
            f"#pragma unroll\nfor (int {apart} = 16; {apart} > 0; {apart} /= 2) "
            f"{name} += __shfl_xor_sync(~0u, {name}, {apart});\n"
            f"if (threadIdx.x % 32 == 0) atomicAdd({shown(self.place)}, {name});"
        )


def added(kernel: Kernel, accesses: Iterable[Access]) -> list[Added]:
    """The atomic operations of a kernel, where all are such sums; raises NotLegal otherwise."""
    statements = {
        s.expression: s for s in walk(kernel.function.body) if isinstance(s, Evaluate)
    }  # fmt: skip
    found = []
    for access in accesses:
        call = access.own
        match call:
            case Call(function="atomicAdd", arguments=(place, value)) if (
                call in statements and access.call is None and not access.loops
            ):
                pass
            case _:
                raise NotLegal("it adds to what others hold", access.line)
        kind, form = access.element, access.index
        plain = kind.kind in ("int", "float") and kind.size in _SIZES and access.space == "global"
        if not plain or form is None or not _anywhere(place):
            raise NotLegal("it adds to an element that differs between threads", access.line)
        found.append(Added(statements[call], access, place, value))
    return found


def _anywhere(place: Expr) -> bool:
    """Whether a place can be said behind all else: by parameters and numbers alone."""
    inside = [*every(place)]
    names = [e.variable for e in inside if isinstance(e, Name)]
    parameters = all(v is not None and v.storage == "parameter" for v in names)
    return parameters and sum(isinstance(e, Index) for e in inside) <= 1
