"""What is known of a kernel's arguments once it is bound, for whoever decides on more than text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from optiml_magic.model.launch import Dim3

Role = Literal["in", "out", "inout", "scratch"]


@dataclass(frozen=True)
class ArrayFacts:
    """One pointer parameter at the given sizes.

    ``buffer`` is the array behind it, ``alignment`` that of its first byte, in bytes. ``least`` and
    ``greatest`` are those of what an input holds; None for an output, for NaN and for structs. Of
    an ``exact`` one each element must be the number that is wanted. ``alike`` is how many in a row
    are the same in the mean, of whole numbers that are an input.
    """

    buffer: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    alignment: int
    least: float | None = None
    greatest: float | None = None
    exact: bool = False
    alike: float | None = None


@dataclass(frozen=True)
class LaunchFacts:
    """One launch: ``arrays`` and ``scalars`` by parameter; grid in blocks, block in threads.

    ``kernel`` is as its directive names it, and ``line`` that of the directive. ``inputs`` are the
    whole numbers of the task by name, which a directive may read and the kernel need not take;
    ``verified`` are those of the first inputs that programs are verified on, and ``members`` those
    of structures that are passed by value: ``shape.rows``.
    """

    kernel: str
    line: int
    grid: Dim3
    block: Dim3
    arrays: Mapping[str, ArrayFacts]
    scalars: Mapping[str, int | float]
    inputs: Mapping[str, int] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)
    verified: Mapping[str, int] = field(default_factory=dict)

    def aliased(self, one: str, other: str) -> bool:
        """Whether two parameters lead to one array."""
        return self.arrays[one].buffer == self.arrays[other].buffer

    @property
    def fixed(self) -> dict[str, int]:
        """The built-in variables that the launch fixes, by their names in a kernel."""
        return {
            f"{name}.{axis}": extent
            for name, dim in (("blockDim", self.block), ("gridDim", self.grid))
            for axis, extent in zip("xyz", dim, strict=True)
        }


@dataclass(frozen=True)
class Facts:
    """The launches of one program on one set of inputs; tolerances of the loosest output.

    They are those that run there, in order: of a launch that a dispatch passes over nothing is
    said, since no size or range of these inputs is one that it works on.
    ``variables`` are the arrays of the module that the task fills, by their names. ``defines`` are
    all macros from outside of the text; None where nobody knows them.
    """

    launches: tuple[LaunchFacts, ...]
    variables: Mapping[str, ArrayFacts]
    rtol: float
    atol: float
    chip: str
    defines: Mapping[str, str] | None = None

    @property
    def buffers(self) -> dict[str, int]:
        """The bytes of each array of the task by its name; scratch is none."""
        every = [*self.variables.values()]
        every += [array for launch in self.launches for array in launch.arrays.values()]
        return {array.buffer: array.nbytes for array in every if array.role != "scratch"}
