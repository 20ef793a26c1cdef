"""What a part of a loop's rounds leaves in scratch, and how the parts are put together.

A piece is what the rounds combine, or a local that goes along with an extreme, such as its place.
Where parts are neighbouring rounds and are put together in their order, the loop's own test decides
between two of them: of equals it keeps the first. One that keeps the last would take a part that
has found nothing, which still holds what the loop began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.selections import selected
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Loop
from optiml_magic.kernels.types import CType

_TAKES_EQUALS = {"<=", ">=", "!<", "!>"}


@dataclass(frozen=True, eq=False)
class Piece:
    """``place`` in the loop, ``local`` in the kernel that makes parts, and where it leaves them.

    ``reduction`` is None for what goes along with another piece, which has it as one of ``along``.
    """

    place: str
    type: CType
    local: str
    scratch: str
    reduction: Reduction | None = None
    along: tuple[Piece, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether a part begins with what the loop began with, and is that place itself."""
        return self.reduction is None or combine.idempotent(self.reduction)

    @property
    def begin(self) -> str:
        """What a part holds of a thread that does not come to the loop; nobody asks for it."""
        if self.reduction is None or (self.type.integral and self.kept):
            return "0"
        plain = replace(self.reduction, op="+") if self.kept else self.reduction
        return combine.identity(plain)

    @property
    def dtype(self) -> str:
        """The type of a part, as a directive says it."""
        return self.type.dtype

    def joining(self, at: str) -> str:
        """The statement by which the place takes in the part that lies there in scratch."""
        assert self.reduction is not None
        other = f"{self.scratch}[{at}]"
        if not self.along:
            return combine.joining(self.reduction, self.place, other)
        taken = [f"{p.place} = {p.scratch}[{at}];" for p in (self, *self.along)]
        better = f"{other} {combine.test(self.reduction)} {self.place}"
        return "\n".join([f"if ({better}) {{", *taken, "}"])


def pieces(
    kernel: Kernel, loop: Loop, found: Iterable[Reduction], effects: Effects,
    fresh: Callable[[str], str],
) -> Iterator[Piece]:  # fmt: skip
    """Those of a loop's reductions, each before what goes along with it."""
    for reduction in found:
        along = []
        if reduction.carried:
            if _TAKES_EQUALS & {*reduction.tests}:
                raise NotLegal("of equals it keeps the last one", reduction.line)
            for variable in selected(kernel, kernel.axes()[loop], loop, reduction, effects).carried:
                name, kind = variable.name, type_of(kernel, variable)
                local, scratch = fresh(f"{name}_part"), fresh(f"{name}_parts")
                along.append(Piece(name, kind, local, scratch))
        place = reduction.place
        local, scratch = fresh(f"{place}_part"), fresh(f"{place}_parts")
        yield Piece(place, reduction.type, local, scratch, reduction, tuple(along))
        yield from along
