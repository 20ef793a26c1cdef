"""What a task needs at least, what the chip can do at most, and where a kernel stands between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optiml_magic.model.finding import RooflineClass

Basis = Literal["declared", "traced", "counted", "unknown"]
Precision = Literal["fp64", "fp32", "tensor"]


@dataclass(frozen=True)
class Work:
    """What one run of a task has to compute and to move at least; None where nobody knows.

    ``declared``: by the task. ``traced``: the reference was run on arrays that count, and the bytes
    are those of inputs and outputs. ``counted``: the input kernel's own, which need not be least.
    """

    flops: float | None
    bytes: float | None
    flops_basis: Basis
    bytes_basis: Basis
    precision: Precision = "fp32"

    @property
    def intensity(self) -> float | None:
        """Operations per byte; None where either is unknown."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None


@dataclass(frozen=True)
class Roofs:
    """The most that one card does: bytes/s of device memory, operations/s (an fma counting two).

    ``measured`` on this card by our own kernels, or the vendor's ``published`` limits. A tensor
    roof of None: the chip has none that we know of.
    """

    chip: str
    memory: float
    fp32: float
    fp64: float
    tensor: float | None  # half precision in, float32 sums
    launch: float  # seconds of an empty launch
    source: Literal["measured", "published"]
    note: str = ""

    def compute(self, precision: Precision) -> float:
        """The roof of one precision; that of float32 where the chip has no tensor cores."""
        if precision == "tensor":
            return self.tensor or self.fp32
        return self.fp64 if precision == "fp64" else self.fp32

    def ridge(self, precision: Precision = "fp32") -> float:
        """Operations per byte from which on a kernel can be bound by arithmetic."""
        return self.compute(precision) / self.memory


@dataclass(frozen=True)
class Standing:
    """Where one kernel stands under the roofs. ``because`` says from what the class follows."""

    kind: RooflineClass
    because: str
    work: Work
    roofs: Roofs
    seconds: float

    @property
    def floor(self) -> float | None:
        """Seconds below which no kernel can do the task; None where its work is unknown."""
        terms = [term for term in (self._of_bytes, self._of_flops) if term is not None]
        return max(*terms, self.roofs.launch) if terms else None

    @property
    def by_operations(self) -> bool:
        """Whether the floor is that of the task's operations, not of its bytes or a launch."""
        return self._of_flops is not None and self._of_flops == self.floor

    @property
    def _of_bytes(self) -> float | None:
        return None if self.work.bytes is None else self.work.bytes / self.roofs.memory

    @property
    def _of_flops(self) -> float | None:
        roof = self.roofs.compute(self.work.precision)
        return None if self.work.flops is None else self.work.flops / roof

    @property
    def distance(self) -> float | None:
        """The kernel's time over its floor."""
        return self.seconds / self.floor if self.floor else None

    @property
    def achieved(self) -> float | None:
        """Operations per second."""
        return None if self.work.flops is None else self.work.flops / self.seconds
