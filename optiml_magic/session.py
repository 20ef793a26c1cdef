"""The members of one command put together: compiler, device, profiler, levels, inspector.

With ``optimize.py`` the composition: the only two places that name concrete members.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from optiml_magic import early
from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.compilers.pool import CompilerPool
from optiml_magic.compilers.sass import RememberedCode
from optiml_magic.devices.choice import Choice, choose
from optiml_magic.devices.driver import require_release
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation.tools import Extent, Tools
from optiml_magic.findings import TOOLS, wanted
from optiml_magic.journal import SCHEMA, About, RunHeader
from optiml_magic.model.experience import Origin
from optiml_magic.model.measurement import Measurement, Missing
from optiml_magic.model.roofline import Roofs
from optiml_magic.model.task import Task
from optiml_magic.model.thought import Wanted
from optiml_magic.model.vocabulary import default_counters
from optiml_magic.plugins import Plugins, load
from optiml_magic.problem import Problem
from optiml_magic.problem.card import Refusal
from optiml_magic.profilers.base import AddedProfiler, Profiler
from optiml_magic.profilers.emulated import EmulatedProfiler
from optiml_magic.profilers.energy import EnergyProfiler
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.profilers.levels import Levels, Measured
from optiml_magic.profilers.ncu import NcuCounters
from optiml_magic.profilers.ncu_process import Run
from optiml_magic.profilers.nothing import nothing
from optiml_magic.profilers.roofs import Card, Compile, published, roofs
from optiml_magic.proposers.base import Proposer
from optiml_magic.provenance import (
    inputs_digest,
    options_digest,
    source_digest,
)
from optiml_magic.settings import Settings
from optiml_magic.timings import Timings
from optiml_magic.verifiers.disputed import EMULATING, EmulatedInspector, SecondOpinion
from optiml_magic.verifiers.hazards import DeviceInspector, Inspector
from optiml_magic.verifiers.sanitizer import SANITIZING, SanitizerInspector
from optiml_magic.version import package_version

_COMPILERS = max(1, min(4, (os.cpu_count() or 2) - 1))  # beside a card; ours
_BY_LINE = 60.0  # seconds of ncu's figures by line of one run, where no limit asks for less; ours
_LEAST_BY_LINE = 5.0  # the first kernel in a process of ncu takes two of them anyway; ours
_LOOKING = 3.0  # seconds for hazards of a finalist, at least; ours
_INSPECTING = 10.0  # seconds for the hazards of all finalists, at least; ours
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Session:
    """The members in use and the device they were chosen for."""

    tools: Tools
    choice: Choice
    plugins: Plugins
    compilers: CompilerPool

    def begin(self, problem: Problem) -> None:
        """The counters' inputs are those of ``problem``, and nothing of it has run yet.

        Raises MachineError where the driver is older than what the compiler makes.
        """
        if not self.choice.is_emulated:
            compiler = self.compilers
            require_release(compiler.version, compiler.major, self.choice.driver)
        self.tools.levels.put([instance.case for instance in problem.instances])


@contextmanager
def session(
    settings: Settings,
    *,
    task: Task | None = None,
    counted: bool = False,
    machine: bool = False,
    extent: Extent = "oracle",
    timings: Timings | None = None,
) -> Iterator[Session]:
    """Compiler, device host and tools for the length of one command; their processes start now.

    Programs are compiled with what ``task`` and the settings ask for. ``counted``: ncu counts, on
    the inputs of the problem that ``Session.begin`` names.
    ``machine``: emulated counts are weighted by the machine code too; half a second a new build.
    The emulated device inspects for hazards by itself. On a GPU compute-sanitizer does, which takes
    seconds: there the finalists are inspected in place of all who would win.
    """
    options = options_of(task or Task(""), settings)
    choice = choose(settings.device)
    plugins = load()
    emulated = choice.is_emulated
    with ExitStack() as children:
        device = HostedDevice(choice.name, seconds=settings.run_seconds)
        children.callback(device.close)
        if task is not None:
            device.start()  # while the compiler's host does, and the task is prepared

        compilers = children.enter_context(ExitStack())  # they are closed after their pool

        def another() -> CachedCompiler:
            hosted = compilers.enter_context(closing(compiler_of(settings, options)))
            return CachedCompiler(hosted, settings.compiled)

        compiler = CompilerPool(another(), another, 1 if emulated else _COMPILERS)
        children.callback(compiler.close)
        profiler: Profiler = (
            EmulatedProfiler(
                device,
                choice.chip,
                sample=settings.count_instructions,
                disassemble=RememberedCode(settings.disassembled) if machine else None,
            )
            if emulated
            else EventsProfiler(device, choice.chip)
        )
        inspector: Inspector | None = DeviceInspector(device) if emulated else None
        looking = math.inf
        if not emulated and extent != "oracle":
            inspector = _inspector_of(choice, settings, whole=extent == "all")
            children.callback(inspector.close)
            if extent == "all":
                inspector.warm()
            if extent == "winners":
                extent, looking = "finalists", max(_LOOKING, settings.seconds / 10)
        first = partial(nothing, _compiling(compiler, choice.chip))
        levels = _levels_of(
            choice, device, settings, plugins, first, counted=counted, machine=machine
        )
        children.callback(levels.close)
        levels.warm(closely=True)
        early.end()
        tools = Tools(
            compiler=compiler,
            options=options,
            device=device,
            chip=choice.chip,
            profiler=profiler,
            findings=(*TOOLS, *plugins.tools),
            instructions=settings.instructions,
            levels=levels,
            roofs=roofs_of(choice, compiler, device, settings),
            inspector=inspector,
            extent=extent,
            inspect_seconds=looking,
            timings=timings or Timings(),
            trial_seconds=settings.for_trials,
        )
        yield Session(tools, choice, plugins, compiler)


def _inspector_of(choice: Choice, settings: Settings, *, whole: bool) -> Inspector:
    """compute-sanitizer, and who is asked where it is known to be wrong.

    Of a search, which is not the ``whole`` command, they may take a third of its seconds, or ten.
    """
    most = SANITIZING if whole else min(SANITIZING, max(_INSPECTING, settings.seconds / 3))
    return SecondOpinion(
        early.inspector(choice.name) or SanitizerInspector(choice.name, seconds=most),
        EmulatedInspector(f"emulated:{choice.chip.name}", seconds=min(EMULATING, most)),
    )


def compiler_of(settings: Settings, options: CompileOptions) -> HostedCompiler:
    """The compiler that the settings name, in a child that starts now."""
    first, others = settings.compile_seconds, settings.for_candidates
    return HostedCompiler(settings.compiler, first, options.include, others)


def _levels_of(
    choice: Choice,
    device: HostedDevice,
    settings: Settings,
    plugins: Plugins,
    first: Callable[[], Run | None],
    *,
    counted: bool,
    machine: bool,
) -> Levels:
    """Static code, energy where it is asked for, and ncu's counters where they are ``counted``.

    The counters are those that the tools read; profilers of other packages come last. ``machine``
    is for who looks at one kernel: NVIDIA's rules on a card, which take seconds; on an emulated
    device the machine code, which takes half a second a new build. ``first`` is for ncu to count
    while it is not needed yet.
    """
    emulated = choice.is_emulated
    draws = settings.energy or settings.objective == "energy"
    disassemble = RememberedCode(settings.disassembled)  # the counters read the same code again
    counters = None
    if not emulated and counted:
        counters = NcuCounters(
            choice.name,
            metrics=(*default_counters(), *wanted((*TOOLS, *plugins.tools))),
            disassemble=disassemble,
            by_line_seconds=min(_BY_LINE, max(_LEAST_BY_LINE, settings.seconds / 12)),
        )
        if not machine:  # there the kernel itself comes as soon as ncu is there
            counters.until_known(first)
        if (begun := early.counters(choice.name)) is not None:
            counters.take_over(begun)
    return Levels(
        emulated=emulated,
        depth="rules" if machine else "lines",
        counters=counters,
        disassemble=disassemble if machine or not emulated else None,
        energy=EnergyProfiler(device) if draws and not emulated else None,
        added=partial(_added, device, plugins.profilers),
    )


def _added(device: HostedDevice, profilers: Sequence[AddedProfiler], run: Measured) -> Measurement:
    """The measurement with what the profilers of other packages add to it."""
    measured = run.measurement
    for profiler in profilers:
        found = profiler.measure(device, run.build, run.job, measured)
        if isinstance(found, Missing):
            measured = replace(measured, missing=(*measured.missing, found))
        else:
            measured = replace(measured, metrics=(*measured.metrics, *found))
    return measured


def _compiling(compiler: Compiler, chip: Chip) -> Compile:
    """Of our own kernels, with nobody's options."""
    return lambda text, names: compiler.compile(text, names, chip, CompileOptions())


def roofs_of(
    choice: Choice,
    compiler: Compiler,
    device: HostedDevice,
    settings: Settings,
) -> Callable[[], Roofs]:
    """The roofs of a card, measured at first use and kept; of an emulated chip the published."""

    @cache
    def found() -> Roofs:
        if choice.is_emulated:
            return published(choice.chip)

        driver = _DRIVER.read_text().split("\n")[0] if _DRIVER.exists() else ""
        card = Card(choice.card or choice.chip.title, driver)
        compiled = _compiling(compiler, choice.chip)
        return roofs(choice.chip, card, settings.home / "roofs", device, compiled)

    return found


def about_of(problem: Problem, members: Session, model: str, run: str) -> About:
    """What a report says of a run beside its steps; ``model`` says why it was taken."""
    notes = (*problem.notes, *members.plugins.notes)
    driver = f"CUDA {members.choice.driver}" if members.choice.driver else ""
    compiler = members.tools.compiler.version
    origin = Origin(run, time.strftime("%Y-%m-%d"), driver, compiler, package_version())
    return About(members.choice.reason, problem.oracle, problem.launch, notes, model, origin)


def written_for(about: About, wanted: Wanted, problem: Problem, timings: Timings) -> About:
    """With who wrote the input kernel, and what runs in its place until there is one."""
    about = replace(about, author=wanted.author)
    if problem.references is None:
        return about
    with timings.stage("measure"):
        peer = problem.references.timed(problem.instances[0].values)
    if isinstance(peer, Refusal):
        note = f"CuPy does not run the reference here: {peer.reason}"
        return replace(about, notes=(*about.notes, note))
    return replace(about, peer=peer)


def header_of(
    problem: Problem,
    members: Session,
    settings: Settings,
    proposers: Sequence[Proposer],
    batch: int,
) -> RunHeader:
    """What the first line of the journal says of a new run."""
    reference = problem.task.reference
    return RunHeader(
        schema=SCHEMA,
        run=f"{problem.name}-{uuid.uuid4().hex[:8]}",
        task=problem.name,
        program=problem.program.text,
        inputs_digest=inputs_digest(problem, settings),
        reference=getattr(reference, "__qualname__", "") if reference else "",
        reference_digest=source_digest(reference) if reference else "",
        device=members.choice.name,
        compiler=members.tools.compiler.version,
        seed=settings.seed,
        policy=settings.policy,
        batch=batch,
        proposers=tuple(proposer.name for proposer in proposers),
        plugins=members.plugins.names,
        exact=settings.exact,
        options_digest=options_digest(members.tools.options, problem.program.text),
        objective=settings.objective,
    )
