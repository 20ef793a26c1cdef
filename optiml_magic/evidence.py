"""What a session measures with: the levels beside the durations, and the roofs of the chip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.compilers.sass import RememberedCode
from optiml_magic.devices.base import Case
from optiml_magic.devices.choice import Choice
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.findings import TOOLS
from optiml_magic.findings.base import wanted
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.measurement import Measurement, Missing
from optiml_magic.model.roofline import Roofs
from optiml_magic.model.vocabulary import default_counters
from optiml_magic.plugins import Plugins
from optiml_magic.profilers.base import AddedProfiler
from optiml_magic.profilers.energy import EnergyProfiler
from optiml_magic.profilers.levels import Levels, Measured
from optiml_magic.profilers.ncu import NcuCounters
from optiml_magic.profilers.roofs import Card, published, roofs
from optiml_magic.settings import Settings

_DRIVER = Path("/proc/driver/nvidia/version")


def levels_of(
    choice: Choice,
    cases: Sequence[Case],
    device: HostedDevice,
    settings: Settings,
    plugins: Plugins,
    *,
    machine: bool,
) -> Levels:
    """Static code, energy where it is asked for, and ncu's counters where there are ``cases``.

    The counters are those that the tools read; profilers of other packages come last. ``machine``
    is for who looks at one kernel: NVIDIA's rules on a card, which take seconds; on an emulated
    device the machine code, which takes half a second a new build.
    """
    emulated = choice.is_emulated
    disassemble = RememberedCode(settings.disassembled)  # the counters read the same code again
    counters = None
    if not emulated and cases:
        metrics = tuple(dict.fromkeys((*default_counters(), *wanted((*TOOLS, *plugins.tools)))))
        counters = NcuCounters(choice.name, cases, metrics=metrics, disassemble=disassemble)
    return Levels(
        emulated=emulated,
        depth="rules" if machine else "lines",
        counters=counters,
        disassemble=disassemble if machine or not emulated else None,
        energy=EnergyProfiler(device) if settings.energy and not emulated else None,
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

        def compiled(text: str, names: tuple[str, ...]) -> Build | CompileFailure:
            return compiler.compile(text, names, choice.chip, CompileOptions())

        driver = _DRIVER.read_text().split("\n")[0] if _DRIVER.exists() else ""
        card = Card(choice.card or choice.chip.title, driver)
        return roofs(choice.chip, card, settings.home / "roofs", device, compiled)

    return found
