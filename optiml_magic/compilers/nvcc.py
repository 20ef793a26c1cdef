"""nvcc as a program: the toolkit's own front end and host headers, for what NVRTC cannot compile.

Source: CUDA Compiler Driver NVCC, "NVCC Command Options".
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.diagnostics import CELL, failure, parse_log
from optiml_magic.compilers.includes import preprocessed_refused
from optiml_magic.compilers.ptxas import resources
from optiml_magic.compilers.variables import module_variables
from optiml_magic.errors import InternalError, MachineError, UsageError
from optiml_magic.model.build import Build, CompileFailure, Diagnostic

_FILE = CELL.rsplit("/", 1)[-1]
_DEFINES = "optiml_defines.h"
_FOLDER = "optiml_include_{}"
_KEPT = "optiml_kept"
_BEHIND = " (in the launch's kernel)"
_NAME = "optiml_name_{}"
_UNUSED_PRAGMA = 161  # our directives are pragmas unknown to the compiler
_SECONDS = 300

# A device variable initialised with an address: its initialiser spells the lowered name.
_NAMED = re.compile(
    r"^(?:\.visible |\.weak )?\.global \.align \d+ \.u64 \w*optiml_name_(?P<at>\d+)\w* = "
    r"(?:generic\()?(?P<name>[\w$.]+)\)?;\n",
    re.MULTILINE,
)
# Names of internal linkage hold a hash of the folder that was compiled in.
_HASHED = re.compile(r"(_GLOBAL__N__|_INTERNAL_)[0-9a-f]{8}_")


class NvccCompiler:
    """nvcc by its path. Raises MachineError at construction where it or its host is missing."""

    def __init__(self) -> None:
        self._nvcc = find_nvcc()
        told = _output([self._nvcc, "--version"])
        release = re.search(r"release (\d+)\.\d+, V([\d.]+)", told)
        if release is None:
            raise MachineError(
                f"{self._nvcc} does not report its version", fix="name a working nvcc: OPTIML_NVCC"
            )
        self._major = int(release[1])
        host = os.environ.get("NVCC_CCBIN", "g++")
        added = [f"{name}={os.environ[name]}" for name in _AFFECTING if name in os.environ]
        self._version = ", ".join([f"nvcc {release[2]}", _host_version(host), *added])

    @property
    def version(self) -> str:
        return self._version

    @property
    def major(self) -> int:
        return self._major

    def compile(
        self, text: str, kernels: tuple[str, ...], chip: Chip, options: CompileOptions
    ) -> Build | CompileFailure:
        with tempfile.TemporaryDirectory(prefix="optiml-nvcc-") as name:
            folder = Path(name)
            _write_sources(folder, text, kernels, options)
            flags = [*_flags(chip, options), *options.arguments]
            # With line information, and without it for the identity, as with NVRTC.
            kept = folder / _KEPT
            kept.mkdir(exist_ok=True)
            more = ["-lineinfo", "--keep", "--keep-dir", _KEPT]
            with ThreadPoolExecutor(2) as both:
                lined = both.submit(self._built, folder, "lined", [*flags, *more])
                plain = both.submit(self._built, folder, "plain", flags)
            first, second = lined.result(), plain.result()
            files = kept.glob("*.ii")
            written = [path.read_text(encoding="utf-8", errors="replace") for path in files]
        complaint = next(filter(None, map(preprocessed_refused, written)), None)
        if complaint is not None:
            return CompileFailure((complaint,), complaint.message)
        if not written and not isinstance(first, str):
            raise InternalError("nvcc kept nothing that its preprocessor wrote")
        if isinstance(first, str):
            self._check_host(first)
            return _failure(first, text)
        if isinstance(second, str):
            raise InternalError("the text compiles with -lineinfo and not without it")
        ptx, cubin, names, log = first
        found = resources(log)
        if names.keys() != set(range(len(kernels))):
            raise InternalError(f"nvcc reported the names {names} for {kernels}")
        lowered = {kernel: names[at] for at, kernel in enumerate(kernels)}
        launched = {low for kernel, low in lowered.items() if not kernel.startswith("&")}
        if launched - found.keys():
            raise InternalError(f"ptxas reported no resources of a kernel:\n{log}")
        return Build(
            ptx=ptx,
            cubin=cubin,
            names=lowered,
            resources=found,
            variables=module_variables(ptx),
            warnings=tuple(d for d in _diagnostics(log, text) if d.severity == "warning"),
            digest=hashlib.sha256(second[0].encode() + second[1]).hexdigest()[:16],
        )

    def _built(
        self, folder: Path, stem: str, flags: list[str]
    ) -> tuple[str, bytes, dict[int, str], str] | str:
        """PTX, cubin, names by their number, and the log; the log alone where it fails."""
        raw, clean, cubin = (folder / f"{stem}{end}" for end in (".raw.ptx", ".ptx", ".cubin"))
        status, log = self._run([*flags, "-ptx", _FILE, "-o", raw.name], folder)
        if status:
            return _relative(log, folder)
        ptx, names = _named(_relative(raw.read_text(encoding="utf-8"), folder))
        clean.write_text(ptx, encoding="utf-8")
        more, assembled = self._run(
            [*flags, "-Xptxas", "-v", "-cubin", clean.name, "-o", cubin.name], folder
        )
        log = _relative(log + assembled, folder)
        return log if more else (ptx, cubin.read_bytes(), names, log)

    def _run(self, arguments: list[str], folder: Path) -> tuple[int, str]:
        try:
            done = subprocess.run(  # noqa: S603  # the user's nvcc, the user's arguments
                [self._nvcc, *arguments],
                cwd=folder, capture_output=True, text=True, errors="replace", check=False,
                timeout=_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 1, f"nvcc fatal   : no answer within {_SECONDS} s"
        return done.returncode, done.stderr + done.stdout

    def _check_host(self, log: str) -> None:
        """What is nvcc's own complaint is no fault of the text: the user's or the machine's."""
        fatal = re.search(r"^nvcc fatal\s*: (.*)$", log, re.MULTILINE)
        unsupported = re.search(
            r"^.*host_config\.h.*#error.*?-- (unsupported .*)$", log, re.MULTILINE
        )
        if unsupported:
            raise MachineError(
                f"nvcc does not take this host compiler: {unsupported[1]}",
                fix="install an older g++ and name it: NVCC_CCBIN=g++-13",
            )
        if fatal and "host compiler" in fatal[1]:
            raise MachineError(f"nvcc: {fatal[1]}", fix="install g++, or name one: NVCC_CCBIN")
        if fatal:
            raise UsageError(f"nvcc: {fatal[1]}", fix="fix --nvcc-args")


_AFFECTING = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


def find_nvcc() -> str:
    """The nvcc named by OPTIML_NVCC, of CUDA_HOME, or on the PATH; MachineError where none is."""
    named, home = os.environ.get("OPTIML_NVCC"), os.environ.get("CUDA_HOME")
    if named:
        found = shutil.which(named)
        if found is None:
            raise MachineError(
                f"OPTIML_NVCC={named} is not a program", fix="name an nvcc that exists"
            )
        return found
    inside = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else None
    found = inside or shutil.which("nvcc")
    if found is None:
        raise MachineError(
            "nvcc was not found",
            fix="install the CUDA toolkit and name it: CUDA_HOME, or OPTIML_NVCC=/path/to/nvcc; "
            "or use --compiler nvrtc",
        )
    return found


def _host_version(host: str) -> str:
    found = shutil.which(host)
    if found is None:
        raise MachineError(
            f"nvcc needs a host compiler, and there is no {host}",
            fix="install g++, or name one: NVCC_CCBIN",
        )
    told = _output([found, "--version"]).splitlines()
    return told[0].strip() if told else host


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(  # noqa: S603  # a compiler asked for its version
            command, capture_output=True, text=True, check=False, timeout=60
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as cause:
        raise MachineError(f"{command[0]} does not run ({cause})", fix="name another") from cause


def _write_sources(
    folder: Path, text: str, kernels: tuple[str, ...], options: CompileOptions
) -> None:
    """The cell with a variable for each kernel behind its last line, and what was typed beside."""
    for name, content in options.headers:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for at, place in enumerate(options.include):
        # Its name may hold what nvcc passes through a shell unquoted, or splits at a comma.
        (folder / _FOLDER.format(at)).symlink_to(place, target_is_directory=True)
    lines = [f"#define {name} {value}\n" for name, value in options.defines]
    (folder / _DEFINES).write_text("".join(lines), encoding="utf-8")
    variables = [
        f"__device__ const void* {_NAME.format(at)} = (const void*)({kernel});\n"
        for at, kernel in enumerate(kernels)
    ]
    source = text if text.endswith("\n") else text + "\n"
    (folder / _FILE).write_text(source + "".join(variables), encoding="utf-8")


def _flags(chip: Chip, options: CompileOptions) -> list[str]:
    return [
        f"-arch={chip.architecture}",
        f"-std={options.std}",
        f"-diag-suppress={_UNUSED_PRAGMA}",
        *(["--use_fast_math"] if options.fast_math else []),
        "-include", _DEFINES,
        "-I.",
        *(f"-I{_FOLDER.format(at)}" for at in range(len(options.include))),
    ]  # fmt: skip


def _named(ptx: str) -> tuple[str, dict[int, str]]:
    """The PTX without the variables, and the lowered names that they spelled."""
    names = {int(match["at"]): match["name"] for match in _NAMED.finditer(ptx)}
    return _NAMED.sub("", ptx), names


def _relative(text: str, folder: Path) -> str:
    """No folder of this compile in what is kept: the cell is ``/cell.cu``, as with NVRTC."""
    for spelled in {str(folder), str(folder.resolve())}:
        text = text.replace(spelled + "/", "/")
    return _HASHED.sub(r"\g<1>00000000_", text)


def _diagnostics(log: str, text: str) -> tuple[Diagnostic, ...]:
    """The log's messages; one on the lines behind the text is about the name of a launch."""
    last = text.count("\n") + (not text.endswith("\n"))
    named = re.sub(rf"^{re.escape(_FILE)}(?=[(:])", CELL, log, flags=re.MULTILINE)
    return tuple(
        d if d.line <= last else replace(d, line=0, message=d.message + _BEHIND)
        for d in parse_log(named, text)
    )


def _failure(log: str, text: str) -> CompileFailure:
    found = tuple(d for d in _diagnostics(log, text) if d.severity == "error")
    # Where the text itself is wrong, what follows for the names behind it says nothing new.
    own = tuple(d for d in found if not d.message.endswith(_BEHIND))
    return CompileFailure(own or found, log) if found else failure(log, "nvcc failed")
