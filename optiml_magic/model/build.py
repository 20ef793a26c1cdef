"""What a compiler returns: machine code with its resources, or diagnostics on lines of the cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler, on a 1-based line of the kernel text (0: no line).

    ``undefined`` is the name that is not defined, where the message says that.
    """

    line: int
    severity: Literal["error", "warning"]
    message: str
    undefined: str = ""


@dataclass(frozen=True)
class Resources:
    """What one kernel takes on the chip, as ptxas reports it; sizes in bytes."""

    registers: int  # per thread
    shared_bytes: int  # static, per block, as ptxas counts it: sm_90 adds 1 KB of its own at launch
    local_bytes: int  # stack frame, per thread
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True)
class ModuleVariable:
    """A ``__constant__`` or ``__device__`` variable by its lowered name; size in bytes.

    NVRTC makes one of each constant at namespace scope, of which the code may only have the value:
    such a one is not ``referred`` to.
    """

    name: str
    nbytes: int
    space: Literal["constant", "device"]
    referred: bool = True


@dataclass(frozen=True)
class MachineInstruction:
    """``opcode`` as nvdisasm prints it (``LDS.128``); ``ptx_line`` 1-based, 0 where unknown.

    ``text`` is the whole instruction, ``@!P0 LDS.128 R4, [R2]``.
    """

    opcode: str
    ptx_line: int
    text: str = ""


@dataclass(frozen=True)
class Build:
    """A compiled program. ``names`` maps each name expression to its lowered name.

    A name expression is a kernel's, ``scan<float, 32>``, or a variable's, ``&table``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {
        "ser_json_bytes": "base64",
        "val_json_bytes": "base64",
    }

    ptx: str
    cubin: bytes
    names: dict[str, str]
    resources: dict[str, Resources]  # by lowered name
    warnings: tuple[Diagnostic, ...]
    variables: tuple[ModuleVariable, ...]
    digest: str  # SHA-256 of PTX and cubin compiled without line information, 16 hex digits
    early_returns: tuple[int, ...] = ()  # lines of branches that leave a kernel, in its text


@dataclass(frozen=True)
class CompileFailure:
    """A program that does not compile: at least one error, in the order of the text."""

    errors: tuple[Diagnostic, ...]
    log: str
