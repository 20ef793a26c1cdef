"""A loaded module: its kernels as machine code, its variables and their initial bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optiml_magic.emulator import calls
from optiml_magic.emulator.instructions.access import PARAMETER
from optiml_magic.emulator.launch import Limits, Run, launch
from optiml_magic.emulator.layout import GLOBAL_BASE, WINDOW
from optiml_magic.emulator.lower import lower_kernel
from optiml_magic.emulator.memory import Bytes, Memory
from optiml_magic.emulator.places import Area, plain_name
from optiml_magic.emulator.records import Kernel
from optiml_magic.ptx import cfg
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import Address, Function, Instruction, PtxModule, Symbol, Variable
from optiml_magic.ptx.parser import parse

_GAP = 4096  # between variables of a module


@dataclass(frozen=True)
class Global:
    """A ``__device__`` or ``__constant__`` variable; ``image`` is what each launch starts with."""

    name: str
    address: int
    image: Bytes
    itemsize: int = 1


def load(
    ptx: str,
    *,
    early_returns: Iterable[int] = (),
    checks: bool = False,
    objects: Path | None = None,
) -> Module:
    """Parse, lower and compile. Raises UnsupportedPtx, naming the instruction and its line.

    ``early_returns`` has the lines of branches by which lanes leave a kernel, as its text has them.
    In PTX a way to the end may as well be one around a barrier, and without them it is taken for
    one.
    With ``checks`` every launch looks for hazards as well: another, slower machine code.
    ``objects`` is a folder where object code is kept from one process to the next.
    """
    return Module(parse(ptx), early_returns=early_returns, checks=checks, objects=objects)


class Module:
    """Kernels by lowered name in ``entries``; device variables by name in ``globals_``."""

    def __init__(
        self,
        module: PtxModule,
        *,
        early_returns: Iterable[int] = (),
        checks: bool = False,
        objects: Path | None = None,
    ) -> None:
        from optiml_magic.emulator.jit import WORKERS, Native  # llvmlite loads only here

        functions = calls.addresses(module)
        self.globals_ = _place_globals(module.variables, functions)
        self._kernels: dict[str, Kernel] = {}
        lines = frozenset(early_returns)
        texts: list[str] = []
        for function in module.functions.values():
            if function.entry:
                kernel, text = _kernel(
                    module, function, self.globals_, len(texts), early=lines, checks=checks
                )
                self._kernels[function.name] = kernel
                texts.append(text)
        self._native = Native("\n".join(texts), WORKERS[checks], objects) if texts else None

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(self._kernels)

    def images(self) -> dict[str, Bytes]:
        """The initial bytes of every variable by name, to be changed and passed to ``launch``."""
        return {name: variable.image.copy() for name, variable in self.globals_.items()}

    def launch(  # noqa: PLR0913  # a launch has this many parts
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        *,
        dynamic_shared: int,
        arguments: Sequence[bytes],
        memory: Memory,
        limits: Limits,
        count: bool,
        variables: Mapping[str, Bytes] | None = None,
    ) -> Run:
        """Run one grid to its end or its first fault.

        ``variables`` holds the module's variables, as ``images`` gives them, and keeps what the
        grid leaves there; without it each grid begins with their initial values. Raises ValueError
        for an unknown kernel, or arguments that its parameters do not fit.
        """
        if kernel not in self._kernels or self._native is None:
            raise ValueError(f"no kernel {kernel!r}; the module has {', '.join(self.entries)}")
        found = self._kernels[kernel]
        variables = self.images() if variables is None else variables
        return launch(
            found,
            self._native,
            [
                Area(g.address, g.image.nbytes, plain_name(g.name), g.itemsize, variables[g.name])
                for g in self.globals_.values()
            ],
            grid,
            block,
            dynamic_shared=dynamic_shared,
            parameters=_pack(found, arguments),
            memory=memory,
            limits=limits,
            count=count,
        )


def _place_globals(variables: Iterable[Variable], functions: dict[str, int]) -> dict[str, Global]:
    at = GLOBAL_BASE + _GAP
    placed: dict[str, tuple[Variable, int]] = {}
    for variable in variables:
        if variable.space in ("global", "const"):
            at = -(-at // max(variable.align, 256)) * max(variable.align, 256)
            placed[variable.name] = variable, at
            at += variable.size + _GAP
    addresses = functions | {name: address for name, (_, address) in placed.items()}
    return {
        name: Global(name, address, _image(variable, addresses), variable.element)
        for name, (variable, address) in placed.items()
    }


def _image(variable: Variable, addresses: dict[str, int]) -> Bytes:
    image = np.zeros(variable.size, np.uint8)
    at = 0
    for value in variable.initial:
        if isinstance(value, Symbol):
            if value.name not in addresses:
                message = f"The initial value `{value.name}` of `{variable.name}` is not supported."
                raise UnsupportedPtx(".global", 0, message)
            raw = struct.pack("<Q", addresses[value.name] + value.offset)[: variable.element]
        else:
            raw = (value & (1 << 8 * variable.element) - 1).to_bytes(variable.element, "little")
        image[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
        at += variable.element
    return image


def _kernel(
    module: PtxModule,
    function: Function,
    globals_: dict[str, Global],
    number: int,
    *,
    early: frozenset[int],
    checks: bool,
) -> tuple[Kernel, str]:
    flat = calls.inline(module, function)
    symbols = calls.addresses(module) | {n: g.address for n, g in globals_.items()}
    offsets, parameter_bytes = _offsets(flat.params)
    parameters = GLOBAL_BASE + (1 << 31) + (number << 20)  # where their bytes can be addressed
    for name, offset in offsets.items():
        symbols[PARAMETER + name] = offset
        symbols[name] = parameters + offset
    local, local_bytes = _offsets(v for v in flat.variables if v.space in ("local", "param"))
    named = _names(flat)
    shared_variables = {
        v.name: v
        for v in [*module.variables, *flat.variables]
        if v.space == "shared" and v.name in named
    }
    static = [v for v in shared_variables.values() if v.size]
    shared, shared_bytes = _offsets(static)
    if len(static) < len(shared_variables):  # dynamic shared memory begins aligned
        shared_bytes = -(-shared_bytes // 16) * 16
    shared |= {v.name: shared_bytes for v in shared_variables.values() if not v.size}
    if local_bytes >= WINDOW:
        raise UnsupportedPtx(".local", 0, f"{local_bytes} bytes of local memory are too many.")
    name = f"k{number}_" + re.sub(r"\W", "_", function.name)
    graph = cfg.build(flat, early)
    lowered = lower_kernel(name, graph, symbols | local | shared, checks=checks)
    kernel = Kernel(
        function.name,
        name,
        lowered,
        tuple((offsets[p.name], p.size) for p in flat.params),
        parameters,
        parameter_bytes,
        shared_bytes,
        -(-local_bytes // 16) * 16,
        tuple(
            Area(shared[v.name], v.size, plain_name(v.name), v.element)
            for v in shared_variables.values()
        ),
        function.most_threads,
        function.block,
    )
    return kernel, lowered.text


def _offsets(variables: Iterable[Variable]) -> tuple[dict[str, int], int]:
    """Offsets in declaration order, each aligned, and the bytes in all."""
    at = 0
    offsets: dict[str, int] = {}
    for variable in variables:
        at = -(-at // variable.align) * variable.align
        offsets[variable.name] = at
        at += variable.size
    return offsets, at


def _names(function: Function) -> set[str]:
    found = set()
    for item in function.body:
        if isinstance(item, Instruction):
            for operand in item.operands:
                base = operand.base if isinstance(operand, Address) else operand
                if isinstance(base, Symbol):
                    found.add(base.name)
    return found


def _pack(kernel: Kernel, arguments: Sequence[bytes]) -> bytes:
    if len(arguments) != len(kernel.parameters):
        raise ValueError(
            f"{kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} were given"
        )
    packed = bytearray(max(kernel.parameter_bytes, 1))
    for number, (raw, (offset, size)) in enumerate(zip(arguments, kernel.parameters, strict=True)):
        if len(raw) != size:
            raise ValueError(
                f"parameter {number} of {kernel.name} has {size} bytes, {len(raw)} were given"
            )
        packed[offset : offset + size] = raw
    return bytes(packed)
