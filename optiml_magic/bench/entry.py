"""One task of the suite: kernel, reference, inputs at three sizes, floor, and peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from optiml_magic.bench.floors import Floor
from optiml_magic.model.task import Task

Part = Literal["open", "held-out"]
Size = Literal["full", "small", "checked"]
Values = dict[str, Any]
Peer = Callable[..., Any]
_KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Entry:
    """A task at any of its sizes.

    Attributes:
        name: unique in the suite; the kernel is ``kernels/<family>/<name>.cu``.
        reference: in NumPy, of the inputs by name.
        inputs: ``inputs(rng, **sizes)``, arrays and scalars by parameter name.
        full: sizes of real work on a GPU, with a working set well above its L2.
        small: sizes for a quick try, on an emulated device as well.
        checked: sizes that candidates are verified at on a GPU, and that the tests run.
        floor: of the sizes.
        torch: ``torch(torch, **tensors)``, by eager torch and by ``torch.compile``.
        libraries: ``library(cupy, **arrays)`` by the name of the library that does the work.
        outputs: as in ``Task``.
        source: the public kernel that it was drawn for, where it was drawn to be held out.
        opened: drawn once, and held out no more.
    """

    name: str
    family: str
    reference: Callable[..., Any]
    inputs: Callable[..., Values]
    full: Mapping[str, int]
    small: Mapping[str, int]
    checked: Mapping[str, int]
    floor: Callable[..., Floor]
    torch: Peer | None = None
    libraries: Mapping[str, Peer] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    opened: bool = False

    @property
    def part(self) -> Part:
        """Held out where it was drawn and not opened since, else open."""
        return "held-out" if self.source and not self.opened else "open"

    @property
    def path(self) -> Path:
        """The kernel's file."""
        return _KERNELS / self.family / f"{self.name}.cu"

    def sizes(self, size: Size) -> Mapping[str, int]:
        """The sizes of that name."""
        return {"full": self.full, "small": self.small, "checked": self.checked}[size]

    def task(self, size: Size) -> Task:
        """To search or to check at these sizes; at the full ones, verified at ``checked``."""
        sizes = self.sizes(size)
        floor = self.floor(**sizes)
        return Task(
            self.path,
            reference=self.reference,
            inputs=self.inputs,
            sizes=sizes,
            verify_sizes=self.checked if size == "full" else {},
            outputs=self.outputs,
            bytes=floor.least_bytes,
            flops=floor.flops or None,
            name=self.name,
        )


def uniform(rng: np.random.Generator, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
    """Floats between two bounds; a large array in a fraction of what doubles would take."""
    found = rng.random(shape, dtype=np.float32)
    found *= np.float32(high - low)
    found += np.float32(low)
    return found
