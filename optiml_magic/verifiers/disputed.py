"""Reports that compute-sanitizer makes of right programs, and who is asked instead.

``DISPUTED`` names their kinds, each with its evidence. A program that is accused of these alone is
looked at by the emulated device, which checks the same rules in another way: what it does not
confirm is told, and rejects nobody. Any other report stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.devices.base import Case, Job
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.errors import OptimlError
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard, HazardKind
from optiml_magic.model.verdict import OutputCheck, Writer
from optiml_magic.verifiers.hazards import DeviceInspector, Inspection, Inspector

DISPUTED: dict[HazardKind, str] = {
    # Compute Sanitizer, release notes of 2025.4: "synccheck would report false positives when using
    # cp.arrive.async without .noinc", as cuda::pipeline does; fixed for code that a compiler of
    # CUDA 13.1 or later has made.
    "missed_phase": "synccheck counts copies that report to an mbarrier as arrivals",
}

EMULATING = 60.0  # seconds of one run there; ours


class SecondOpinion:
    """Inspections of ``first``; where they hold disputed reports alone, ``second`` decides."""

    def __init__(self, first: Inspector, second: Inspector) -> None:
        self._first = first
        self._second = second
        self.name = first.name

    def put(self, case: Case) -> None:
        self._first.put(case)
        self._second.put(case)

    def warm(self) -> None:
        """The second is asked in few cases, and not waited for in the others."""
        self._first.warm()

    def close(self) -> None:
        self._first.close()
        self._second.close()

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        return self._first.writer(build, job, check)

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        found = self._first.inspect(runs)
        disputed = [at for at, inspection in enumerate(found) if _disputed(inspection)]
        again = self._second.inspect([runs[at] for at in disputed]) if disputed else []
        for at, opinion in zip(disputed, again, strict=True):
            if not opinion.unchecked and not _errors(opinion):
                found[at] = self._told(found[at])
        return found

    def _told(self, inspection: Inspection) -> Inspection:
        """The disputed reports as warnings."""
        return replace(
            inspection,
            hazards=tuple(
                replace(
                    hazard,
                    severity="warning",
                    message=f"{hazard.message}; set aside, since {DISPUTED[hazard.kind]}, and "
                    f"{self._second.name} found the rule kept",
                )
                if hazard.severity == "error"
                else hazard
                for hazard in inspection.hazards
            ),
        )


class EmulatedInspector:
    """The emulated device's own checks, on a host that lasts for one inspection."""

    def __init__(self, device: str, *, seconds: float = EMULATING) -> None:
        self.name = device
        self._cases: dict[str, Case] = {}
        self._seconds = seconds

    def put(self, case: Case) -> None:
        self._cases[case.key] = case.without_answers()

    def warm(self) -> None:
        """Its host starts with an inspection."""

    def close(self) -> None:
        """Its host ends with an inspection."""

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        """Nobody is named: this device did not run the wrong program."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        host = HostedDevice(self.name, seconds=self._seconds)
        try:
            for key in dict.fromkeys(job.case for _, job in runs):
                host.put(self._cases[key])
            return DeviceInspector(host).inspect(runs)
        except OptimlError as lost:
            return [Inspection((), lost.message) for _ in runs]
        finally:
            host.close()


def _errors(inspection: Inspection) -> list[Hazard]:
    return [hazard for hazard in inspection.hazards if hazard.severity == "error"]


def _disputed(inspection: Inspection) -> bool:
    errors = _errors(inspection)
    return bool(errors) and all(hazard.kind in DISPUTED for hazard in errors)
