"""What this machine can do: each line a fact, and the remedy where something is missing."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from optiml_magic.commands.platforms import Fact, commands_fact, platform_fact
from optiml_magic.devices.choice import choose
from optiml_magic.devices.driver import driver_release, require_release
from optiml_magic.errors import MachineError, OptimlError
from optiml_magic.experience.store import Experience
from optiml_magic.files import writing
from optiml_magic.plugins import load
from optiml_magic.profilers.permission import permission
from optiml_magic.settings import CHOICES, Settings
from optiml_magic.version import package_version

if TYPE_CHECKING:
    from optiml_magic.devices.ratio import Ratio
    from optiml_magic.model.measurement import Measurement
    from optiml_magic.optimize import Checked

_TIMED_ELEMENTS = 1 << 24  # about 50 us on a large card
_NOISE = 0.01  # as much as a gain has to exceed
_REPORT = "see the line `end to end`"


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
        f"{package_version()} on Python {sys.version.split()[0]}, {here}",
    )
    yield platform_fact(sys.platform, platform.machine())
    compiler = _tried("compiler", _compiler)
    nvcc = _tried("nvcc", _nvcc)
    yield compiler
    yield _wanted_nvcc(nvcc, settings)
    there = zip(CHOICES["compiler"], (compiler, nvcc), strict=True)
    yield commands_fact(sys.platform, tuple(name for name, fact in there if fact.well))
    yield Fact(True, "emulator", f"llvmlite {metadata.version('llvmlite')}")
    runs: list[Checked] = []
    yield _tried("end to end", lambda: _end_to_end(settings, runs))
    yield _driver()
    if driver_release():
        yield _tried("CUDA", _fit)
    yield _counters(runs)
    yield _tried("timing", lambda: _timing(settings, runs))
    choice = choose("auto")
    yield Fact(True, "device", f"auto means {choice.name}: {choice.reason}")
    yield _plugins()
    yield _experience(settings)
    yield _tried("home", lambda: _home(settings.home))


def _plugins() -> Fact:
    found = load()
    names = ", ".join(found.names) or "none"
    if not found.notes:
        return Fact(True, "plug-ins", names)
    return Fact(False, "plug-ins", "; ".join((names, *found.notes)), "fix or uninstall them")


def _experience(settings: Settings) -> Fact:
    if settings.experience == "none":
        return Fact(True, "experience", "not used, as requested")
    path = settings.experience_file
    if not path.exists():
        return Fact(True, "experience", "none yet: every optimize adds to it")
    with closing(Experience(path)) as file:
        applied = sum(tally.applied for tally in file.tallies() if tally.kind == "rule")
        if file.notes:
            return Fact(False, "experience", "; ".join(file.notes), f"remove {path}")
    return Fact(True, "experience", f"{applied} edits of earlier runs")


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
    return f"the driver supports CUDA {release}, NVRTC makes cubins of CUDA {compiler.major}"


def _nvcc() -> str:
    from optiml_magic.compilers.nvcc import NvccCompiler

    return NvccCompiler().version


def _wanted_nvcc(found: Fact, settings: Settings) -> Fact:
    if not found.well and settings.compiler != "nvcc":
        return Fact(True, "nvcc", f"{found.found}; only --compiler nvcc needs it")
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


def _timing(settings: Settings, runs: list[Checked]) -> str:
    """A kernel timed against itself, as two runs with buffers of their own; and the card's state.

    MachineError where the two differ by more than a gain has to.
    """
    if not runs:
        return f"not tried; {_REPORT}"
    if runs[0].choice.is_emulated:
        return f"times are estimated on {runs[0].choice.name}; nothing is timed"
    from optiml_magic.evaluation import Evaluator
    from optiml_magic.model.candidate import Candidate, Proposal
    from optiml_magic.problem import prepare
    from optiml_magic.profilers.events import EventsProfiler
    from optiml_magic.session import session
    from optiml_magic.testing.kernels import known_task

    problem = prepare(known_task("saxpy", n=_TIMED_ELEMENTS), seeds=1)
    with session(settings) as members:
        root = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
        (evaluation,) = Evaluator(problem, members.tools)([root])
        profiler, measured = members.tools.profiler, evaluation.measurement
    if not isinstance(profiler, EventsProfiler) or profiler.itself is None or measured is None:
        raise MachineError(f"saxpy was not timed: {evaluation.verdict.summary}", fix=_REPORT)
    return describe_timing(profiler.itself, measured)


def describe_timing(itself: Ratio, measured: Measurement) -> str:
    """The ratio, whether it is within the noise, and what the card said of itself.

    MachineError where it is not within the noise.
    """
    found = f"saxpy, {measured.seconds * 1e6:.1f} us, against itself: {itself}"
    if itself.beyond > 1 + _NOISE:
        raise MachineError(
            f"{found}, which should include 1",
            fix="keep others off the GPU while kernels are timed; every interval is wider now",
        )
    state = measured.conditions
    if state is None or state.after is None:
        return f"{found}, within noise; {state.absent if state else 'its state is unknown'}"
    card = state.after
    limits = f", held back by {', '.join(state.limits)}" if state.limits else ""
    return (
        f"{found}, within noise; {card.sm_clock} MHz, {card.temperature} degrees, "
        f"{card.power:.0f} W{limits}"
    )


def _home(folder: Path) -> str:
    """Where journals go and how much is there; MachineError where nothing can be written."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    with (
        writing(folder, fix="set OPTIML_HOME to a folder with room that you may write to"),
        tempfile.TemporaryFile(dir=place),
    ):
        return f"{folder} ({_size(folder)})"


def _size(folder: Path) -> str:
    total = (
        sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) if folder.is_dir() else 0
    )
    return f"{total / 1e6:.1f} MB"
