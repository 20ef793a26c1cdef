"""Real NVRTC, a cache of loaded modules (the JIT dominates), and one way to launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optiml_magic.compilers
from optiml_magic import emulator
from optiml_magic.compilers.nvrtc import _bindings
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift

SHIMS = Path(optiml_magic.compilers.__file__).parent / "shims"


@cache
def ptx_of(source: str, *options: str) -> str:
    import nvidia

    nvrtc = _bindings()  # the library that the product takes, wherever it is installed
    folders = [p for root in nvidia.__path__ for p in Path(root).glob("*/include")]
    folders += [p / "cccl" for p in folders if (p / "cccl").is_dir()]
    options = options or ("--gpu-architecture=sm_90",)
    flags = [*options, "-lineinfo", "--std=c++17", *(f"-I{p}" for p in (*folders, SHIMS))]
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"cell.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
    if int(status):
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return text.rstrip(b"\0").decode()


@cache
def module_of(source: str, *options: str) -> emulator.Module:
    return emulator.load(ptx_of(source, *options), early_returns=early_returns(lift(source)))


Run = Callable[..., emulator.Run]


def launch(
    module: emulator.Module,
    kernel: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    shared: int = 0,
    count: bool = True,
    threads: int = 2,
    instructions: int = 10**9,
) -> emulator.Run:
    """Arrays go to the device and come back in place; NumPy scalars go by value."""
    memory = emulator.Memory()
    raw, resident = [], []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            address = memory.allocate(argument.nbytes)
            memory.view(address)[:] = argument.reshape(-1).view(np.uint8)
            resident.append((address, argument))
            raw.append(address.to_bytes(8, "little"))
        else:
            raw.append(argument if isinstance(argument, bytes) else argument.tobytes())
    run = module.launch(
        kernel,
        _three(grid),
        _three(block),
        dynamic_shared=shared,
        arguments=raw,
        memory=memory,
        limits=emulator.Limits(instructions=instructions, threads=threads),
        count=count,
    )
    for address, array in resident:
        array.reshape(-1).view(np.uint8)[:] = memory.view(address)
    return run


def _three(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    values = (extent,) if isinstance(extent, int) else extent
    return (*values, 1, 1)[:3]  # type: ignore[return-value]


@pytest.fixture
def run() -> Run:
    """``run(source, kernel, grid, block, *arguments, ...)``: compile, load, launch."""

    def call(source: str, kernel: str, *rest: Any, **named: Any) -> emulator.Run:
        return launch(module_of(source), kernel, *rest, **named)

    return call


@pytest.fixture
def compile_ptx() -> Callable[..., str]:
    return ptx_of
