"""NVRTC through cuda-bindings: CUDA C++ to PTX and cubin in one compilation, with no driver.

Source: NVRTC documentation, "Basic Usage" and "Supported Compile Options".
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.diagnostics import CELL, failure, parse_log
from optiml_magic.compilers.prelude import declared, is_brief, standard
from optiml_magic.compilers.ptxas import resources
from optiml_magic.compilers.variables import module_variables
from optiml_magic.errors import InternalError, MachineError, UsageError
from optiml_magic.model.build import Build, CompileFailure

_SHIMS = Path(__file__).parent / "shims"
# _GLOBAL__N__00000000_7_cell_cu_ef30682a_31231, with the length of it all before it.
_ACCIDENT = re.compile(r"(?:\d+)?((?:_GLOBAL__N_|_INTERNAL)_\w*?_cell_cu_)[0-9a-f]{8}_\d+")
#: What -lineinfo adds: where each instruction is from, and the names of inlined functions.
_LINES = re.compile(
    r"^(?:\t\.(?:loc|file)\t.*|\t\.section\t\.debug_str\n\t\{\n(?:.*\n)*?\t\})\n?",
    re.MULTILINE,
)
_LAST_OF_SEPARATE_WHEELS = 12
#: Headers of the host alone, which headers of the text may ask for: they are empty.
_OF_HOST = (
    "chrono", "ctime", "deque", "exception", "fstream", "functional", "getopt.h", "iomanip",
    "iostream", "iterator", "list", "map", "memory", "mutex", "new", "numeric", "omp.h", "queue",
    "random", "regex", "set", "sstream", "stack", "stdexcept", "string", "sys/time.h", "thread",
    "time.h", "unistd.h", "unordered_map", "unordered_set", "vector",
)  # fmt: skip
_UNUSED_PRAGMA = 161  # our directives are pragmas unknown to the compiler


class NvrtcCompiler:
    """The default compiler. Raises MachineError at construction where NVRTC cannot be loaded."""

    def __init__(self) -> None:
        self._nvrtc = _bindings()
        major, minor = self._call("nvrtcVersion")
        self._major, self._release = int(major), int(major) * 1000 + int(minor) * 10
        self._version = f"nvrtc {major}.{minor} ({_wheel_version(major)})"
        # Some versions keep machine code of their own accord, and then ptxas reports no resources.
        self._uncached = ["--no-cache"]
        if isinstance(
            self._run("", (), ["--gpu-architecture=sm_80", "--no-cache"]), CompileFailure
        ):
            self._uncached = []

    @property
    def version(self) -> str:
        return self._version

    @property
    def major(self) -> int:
        return self._major

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        texts = {"": text, **dict(options.headers)}
        flags = [
            *_flags(chip, options, self._major),
            # As nvcc has it of a header that comes before every text, and cuda.h says it again.
            *(f"-D{name}={self._release}" for name in ("CUDART_VERSION", "CUDA_VERSION")),
            *_of_prelude(texts),
        ]
        reporting = ["-lineinfo", "--ptxas-options=-v", *self._uncached]
        found = self._run(text, kernels, [*flags, *reporting], options.headers)
        if isinstance(found, CompileFailure):
            return found
        ptx, cubin, names, log = found
        launched = {low for name, low in names.items() if not name.startswith("&")}
        if launched - resources(log).keys():
            raise InternalError(f"ptxas reported no resources of a kernel:\n{log}")
        return Build(
            ptx=ptx,
            cubin=cubin,
            names=names,
            resources=resources(log),
            variables=module_variables(ptx),
            warnings=tuple(d for d in parse_log(log) if d.severity == "warning"),
            digest=_digest(ptx),
        )

    def _run(
        self,
        text: str,
        kernels: tuple[str, ...],
        flags: list[str],
        headers: tuple[tuple[str, str], ...] = (),
    ) -> tuple[str, bytes, dict[str, str], str] | CompileFailure:
        known = {name for name, _ in headers}
        headers = (*headers, *((name, "\n") for name in _OF_HOST if name not in known))
        names = [name.encode() for name, _ in headers]
        texts = [content.encode() for _, content in headers]
        program = self._call(
            "nvrtcCreateProgram", text.encode(), CELL.encode(), len(headers), texts, names
        )
        try:
            for kernel in kernels:
                self._call("nvrtcAddNameExpression", program, kernel.encode())
            raw = [flag.encode() for flag in flags]
            (status,) = self._nvrtc.nvrtcCompileProgram(program, len(raw), raw)
            log = self._read(program, "ProgramLog").decode(errors="replace")
            if status == self._nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
                raise UsageError(log.strip(), fix=f"remove this option for {self._version}")
            if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
                return failure(log, str(status.name), text)
            lowered = {
                kernel: self._call("nvrtcGetLoweredName", program, kernel.encode()).decode()
                for kernel in kernels
            }
            ptx = self._read(program, "PTX").rstrip(b"\0").decode()
            return ptx, self._read(program, "CUBIN"), lowered, log
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _read(self, program: Any, what: str) -> bytes:
        size = self._call(f"nvrtcGet{what}Size", program)
        if not size:  # as of the cubin for a virtual architecture
            return b""
        data = bytearray(size)
        # The bindings write into a bytes object of the right size in place.
        buffer = bytes(data)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.rstrip(b"\0") if what == "ProgramLog" else buffer

    def _call(self, function: str, *arguments: Any) -> Any:
        status, *values = getattr(self._nvrtc, function)(*arguments)
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise InternalError(f"{function} failed: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)


def _digest(ptx: str) -> str:
    """Of the PTX as it is without -lineinfo, whose line numbers move with every comment.

    Less the accident as well: names of internal linkage hold the second and the process.
    """
    plain = _LINES.sub("", ptx).rstrip("\n") + "\n\n"
    return hashlib.sha256(_ACCIDENT.sub(r"\g<1>", plain).encode()).hexdigest()[:16]


def include_folders(major: int) -> tuple[Path, ...]:
    """The headers of CUDA ``major``: of the PyPI wheels, of a toolkit, then our own shims.

    Ahead of all are those of ours that stand for headers which NVRTC refuses.
    """
    wheels = [folder for folder in _wheel_folders("include") if _is_of(folder.parent, major)]
    nested = [folder / "cccl" for folder in wheels if (folder / "cccl").is_dir()]
    return (_SHIMS / "ahead", *wheels, *nested, *_toolkit(major), _SHIMS)


def _wheel_folders(name: str) -> list[Path]:
    try:
        import nvidia
    except ImportError:
        return []
    return [folder for root in nvidia.__path__ for folder in sorted(Path(root).glob(f"*/{name}"))]


def _is_of(wheel: Path, major: int) -> bool:
    """From CUDA 13 on the wheels share one folder, ``cu13``; before, each had its own."""
    shared = re.fullmatch(r"cu(\d+)", wheel.name)
    return int(shared[1]) == major if shared else major == _LAST_OF_SEPARATE_WHEELS


def _toolkit(major: int) -> tuple[Path, ...]:
    """The headers of an installed toolkit, behind those of the wheels, which may lack some."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    found = [Path(home, "include") for home in homes if home]
    fitting = [folder for folder in found if _release(folder) == major][:1]
    return tuple(f for folder in fitting for f in (folder, folder / "cccl") if f.is_dir())


def _release(include: Path) -> int:
    """The major version that ``cuda.h`` states; 0 where it cannot be read."""
    try:
        text = (include / "cuda.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    stated = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.MULTILINE)
    return int(stated[1]) // 1000 if stated else 0


def _flags(chip: Chip, options: CompileOptions, major: int) -> list[str]:
    return [
        f"--gpu-architecture={chip.architecture}",
        f"--std={options.std}",
        "-default-device",
        f"-diag-suppress={_UNUSED_PRAGMA}",
        *(["--use_fast_math"] if options.fast_math else []),
        *(f"--define-macro={name}={value}" for name, value in options.defines),
        *(f"--include-path={folder}" for folder in options.include),
        *(f"--include-path={folder}" for folder in include_folders(major)),
        "--pre-include=optiml_prelude.h",
    ]


def _of_prelude(texts: Mapping[str, str]) -> list[str]:
    own = [f"-DOPTIML_OWN_{name}" for name in declared(texts.values())]
    whole = [] if is_brief(texts) else ["-DOPTIML_WHOLE_STD"]
    return [*own, *whole, *(f"--pre-include={name}" for name in standard(texts.values()))]


@lru_cache(maxsize=1)
def _bindings() -> Any:
    advice = "pip install cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt"
    if sys.platform == "darwin":
        advice = "NVIDIA ships no NVRTC for macOS: use a Linux container or a remote kernel"
    try:
        _load_library_of_bindings()
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as cause:
        raise MachineError(f"NVRTC cannot be loaded here ({cause})", fix=advice) from cause
    return nvrtc


def _load_library_of_bindings() -> None:
    """Load the wheel's NVRTC of the bindings' own CUDA release, before the bindings look for one.

    Left alone they take the newest that is installed, and beside CuPy for CUDA 12 there may be two.
    """
    try:
        major = int(metadata.version("cuda-bindings").split(".")[0])
    except metadata.PackageNotFoundError:
        return  # not from a wheel: nothing here to choose from
    for folder in _wheel_folders("lib"):
        library = folder / f"libnvrtc.so.{major}"
        if _is_of(folder.parent, major) and library.is_file():
            ctypes.CDLL(str(library))
            return


def _wheel_version(major: int) -> str:
    separate = major <= _LAST_OF_SEPARATE_WHEELS
    try:
        return metadata.version("nvidia-cuda-nvrtc" + (f"-cu{major}" if separate else ""))
    except metadata.PackageNotFoundError:
        return "system"
