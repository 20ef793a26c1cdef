"""What calling the programs of a run needs, as plain data that goes through JSON.

Dtypes are spelled as ``model.dtypes`` spells them. A number is itself; anything else, such as the
content of a ``__constant__`` variable, has its dtype, its shape and its bytes in base64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Number = bool | int | float


@dataclass(frozen=True)
class Content:
    """An array, or a number that JSON has no place for."""

    dtype: str
    shape: tuple[int, ...]
    base64: str


@dataclass(frozen=True)
class Parameter:
    """A buffer that a kernel takes, or a variable that is filled before it runs."""

    name: str
    role: Literal["input", "output", "inout"]
    dtype: str
    lanes: int
    line: int
    place: Literal["parameter", "variable"]


@dataclass(frozen=True)
class Called:
    """How the programs of a run are compiled and called; ``shapes`` are those of its inputs.

    ``verified`` are smaller sizes that the run was verified at, if there were any.
    """

    name: str
    buffers: tuple[Parameter, ...]
    scalars: tuple[str, ...]
    structs: dict[str, str]
    shapes: dict[str, tuple[int, ...]]
    values: dict[str, Number | Content]
    outputs: dict[str, str]
    headers: dict[str, str]
    include: tuple[str, ...]
    defines: dict[str, str]
    settings: dict[str, Number | str]
    verified: dict[str, int] = field(default_factory=dict)
