"""NVRTC through cuda-bindings: CUDA C++ to PTX and cubin in one compilation, with no driver.

Source: NVRTC documentation, "Basic Usage" and "Supported Compile Options".
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.diagnostics import CELL, parse_log
from optiml_magic.compilers.variables import module_variables
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build, CompileFailure, Diagnostic, Resources

_SHIMS = Path(__file__).parent / "shims"
_UNUSED_PRAGMA = 161  # our directives are pragmas unknown to the compiler


class NvrtcCompiler:
    """The default compiler. Raises MachineError at construction where NVRTC cannot be loaded."""

    def __init__(self) -> None:
        self._nvrtc = _bindings()
        major, minor = self._call("nvrtcVersion")
        self._version = f"nvrtc {major}.{minor} ({_wheel_version()})"
        # Some versions keep machine code of their own accord, and then ptxas reports no resources.
        self._uncached = ["--no-cache"]
        if isinstance(
            self._run("", (), ["--gpu-architecture=sm_80", "--no-cache"]), CompileFailure
        ):
            self._uncached = []

    @property
    def version(self) -> str:
        return self._version

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        flags = _flags(chip, options)
        reporting = ["-lineinfo", "--ptxas-options=-v", *self._uncached]
        first = self._run(text, kernels, [*flags, *reporting])
        if isinstance(first, CompileFailure):
            return first
        # Line information moves with every comment, so the identity comes from a build without it;
        # from its PTX as well, which is what the emulated device runs: ptxas drops more than NVVM.
        plain = self._run(text, kernels, flags)
        if isinstance(plain, CompileFailure):
            raise InternalError("the text compiles with -lineinfo and not without it")
        ptx, cubin, names, log = first
        kernels_ = {low for name, low in names.items() if not name.startswith("&")}
        if kernels_ - _resources(log).keys():
            raise InternalError(f"ptxas reported no resources of a kernel:\n{log}")
        return Build(
            ptx=ptx,
            cubin=cubin,
            names=names,
            resources=_resources(log),
            variables=module_variables(ptx),
            warnings=tuple(d for d in parse_log(log) if d.severity == "warning"),
            digest=hashlib.sha256(plain[0].encode() + plain[1]).hexdigest()[:16],
        )

    def _run(
        self, text: str, kernels: tuple[str, ...], flags: list[str]
    ) -> tuple[str, bytes, dict[str, str], str] | CompileFailure:
        program = self._call("nvrtcCreateProgram", text.encode(), CELL.encode(), 0, [], [])
        try:
            for kernel in kernels:
                self._call("nvrtcAddNameExpression", program, kernel.encode())
            raw = [flag.encode() for flag in flags]
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(raw), raw)
            log = self._read(program, "ProgramLog").decode(errors="replace")
            if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
                return _failure(log, str(status.name))
            names = {
                kernel: self._call("nvrtcGetLoweredName", program, kernel.encode()).decode()
                for kernel in kernels
            }
            ptx = self._read(program, "PTX").rstrip(b"\0").decode()
            return ptx, self._read(program, "CUBIN"), names, log
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _read(self, program: Any, what: str) -> bytes:
        data = bytearray(self._call(f"nvrtcGet{what}Size", program))
        # The bindings write into a bytes object of the right size in place.
        buffer = bytes(data)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.rstrip(b"\0") if what == "ProgramLog" else buffer

    def _call(self, function: str, *arguments: Any) -> Any:
        status, *values = getattr(self._nvrtc, function)(*arguments)
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise InternalError(f"{function} failed: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)


def include_folders() -> tuple[Path, ...]:
    """The header folders of the PyPI wheels, then our shims for what NVRTC lacks."""
    try:
        import nvidia
    except ImportError:
        return (*_toolkit(), _SHIMS)
    wheels = [folder for root in nvidia.__path__ for folder in Path(root).glob("*/include")]
    nested = [folder / "cccl" for folder in wheels if (folder / "cccl").is_dir()]
    return (*wheels, *nested, *_toolkit(), _SHIMS)


def _toolkit() -> tuple[Path, ...]:
    """The headers of an installed toolkit, behind those of the wheels, which may lack some."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    found = [Path(home, "include") for home in homes if home]
    return tuple(folder for folder in found if folder.is_dir())[:1]


def _flags(chip: Chip, options: CompileOptions) -> list[str]:
    return [
        f"--gpu-architecture={chip.architecture}",
        f"--std={options.std}",
        "-default-device",
        f"-diag-suppress={_UNUSED_PRAGMA}",
        *(["--use_fast_math"] if options.fast_math else []),
        *(f"--include-path={folder}" for folder in include_folders()),
        "--pre-include=optiml_prelude.h",
    ]


def _failure(log: str, status: str) -> CompileFailure:
    errors = tuple(d for d in parse_log(log) if d.severity == "error")
    return CompileFailure(errors or (Diagnostic(0, "error", log.strip() or status),), log)


_FUNCTION = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def _resources(log: str) -> dict[str, Resources]:
    """Resources by lowered name, from the log of ``ptxas -v``."""
    found: dict[str, Resources] = {}
    for section in re.split(r"(?=ptxas info\s*: Compiling entry function)", log):
        name, stack, used = _FUNCTION.search(section), _STACK.search(section), _USED.search(section)
        if name and stack and used:
            found[name["name"]] = Resources(
                registers=int(used[1]),
                shared_bytes=int(used[2] or 0),
                local_bytes=int(stack[1]),
                spill_store_bytes=int(stack[2]),
                spill_load_bytes=int(stack[3]),
            )
    return found


@lru_cache(maxsize=1)
def _bindings() -> Any:
    advice = "pip install cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt"
    if sys.platform == "darwin":
        advice = "NVIDIA ships no NVRTC for macOS: use a Linux container or a remote kernel"
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as cause:
        raise MachineError(f"NVRTC cannot be loaded here ({cause})", fix=advice) from cause
    return nvrtc


def _wheel_version() -> str:
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return metadata.version(wheel)
        except metadata.PackageNotFoundError:
            continue
    return "system"
