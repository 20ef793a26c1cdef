"""What this machine can do: each line a fact, and the remedy where something is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from optiml_magic.devices.choice import choose
from optiml_magic.devices.driver import driver_release, require_release
from optiml_magic.errors import OptimlError
from optiml_magic.profilers.permission import permission
from optiml_magic.settings import Settings

if TYPE_CHECKING:
    from optiml_magic.optimize import Checked


@dataclass(frozen=True)
class Fact:
    """One line of the doctor's: whether it is well, what was found, what to do."""

    well: bool
    what: str
    found: str
    remedy: str = ""


def examine(settings: Settings) -> tuple[Fact, ...]:
    """All facts; a check that fails is a fact as well, never an exception."""
    return tuple(_facts(settings))


def render(facts: tuple[Fact, ...]) -> str:
    """The facts as text."""
    lines = []
    for fact in facts:
        lines.append(f"{'ok ' if fact.well else 'NO '} {fact.what:<10} {fact.found}")
        if fact.remedy:
            lines.append(f"    {'':<10} remedy: {fact.remedy}")
    return "\n".join(lines)


def _facts(settings: Settings) -> Iterator[Fact]:
    here = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    yield Fact(
        True,
        "optiml",
        f"{_version()} on Python {sys.version.split()[0]}, {here}",
    )
    yield _tried("compiler", _compiler)
    yield _nvcc(settings)
    yield Fact(True, "emulator", f"llvmlite {metadata.version('llvmlite')}")
    runs: list[Checked] = []
    yield _tried("end to end", lambda: _end_to_end(settings, runs))
    yield _driver()
    if driver_release():
        yield _tried("CUDA", _fit)
    yield _counters(runs)
    choice = choose("auto")
    yield Fact(True, "device", f"auto means {choice.name}: {choice.reason}")
    yield Fact(True, "home", f"{settings.home} ({_size(settings.home)})")


def _version() -> str:
    try:
        return metadata.version("optiml-magic")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _tried(what: str, look: Callable[[], str]) -> Fact:
    try:
        return Fact(True, what, look())
    except OptimlError as error:
        return Fact(False, what, error.message, error.fix)


def _compiler() -> str:
    from optiml_magic.compilers.nvrtc import NvrtcCompiler, include_folders

    compiler = NvrtcCompiler()
    folders = include_folders(compiler.major)
    return f"{compiler.version}, headers in {len(folders)} folders"


def _fit() -> str:
    from optiml_magic.compilers.nvrtc import NvrtcCompiler

    compiler, release = NvrtcCompiler(), driver_release()
    require_release(compiler.version, compiler.major, release)
    return f"the driver knows CUDA {release}, NVRTC makes cubins of CUDA {compiler.major}"


def _nvcc(settings: Settings) -> Fact:
    from optiml_magic.compilers.nvcc import NvccCompiler

    found = _tried("nvcc", lambda: NvccCompiler().version)
    if not found.well and settings.compiler != "nvcc":
        return Fact(True, "nvcc", f"{found.found}; only --compiler nvcc asks for it")
    return found


def _end_to_end(settings: Settings, runs: list[Checked]) -> str:
    from optiml_magic.optimize import evaluate_once
    from optiml_magic.testing.kernels import known_task

    checked = evaluate_once(known_task("saxpy", n=1000), settings)
    runs.append(checked)
    verdict = checked.evaluation.verdict
    return f"saxpy on {checked.choice.name}: {verdict.outcome}, {verdict.summary}"


def _driver() -> Fact:
    path = Path("/proc/driver/nvidia/version")
    if not path.exists():
        return Fact(True, "GPU", "no NVIDIA driver here; kernels run emulated")
    return _tried("GPU", lambda: choose("cuda").reason)


def _counters(runs: list[Checked]) -> Fact:
    """Whether ncu may read the counters: known only by asking it, as the run on a GPU did."""
    notes = runs[0].notes if runs else ()
    found = permission(notes, emulated=not runs or runs[0].choice.is_emulated)
    return Fact(found.well, "ncu", found.found, found.remedy)


def _size(folder: Path) -> str:
    total = (
        sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) if folder.is_dir() else 0
    )
    return f"{total / 1e6:.1f} MB"
