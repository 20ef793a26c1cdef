"""A plug-in of three members: a profiler counts, a tool advises, a rule does it.

A kernel that reads an array through a pointer that might alias its output cannot keep the values,
nor read them through the read-only path. Source: CUDA C++ Programming Guide, "__restrict__".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from optiml_magic.devices.base import Device, Job
from optiml_magic.findings import Subject
from optiml_magic.model.build import Build
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.measurement import Measurement, Metric
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.source.program import Program

READ_ONLY = "ptx__read_only_loads"
PLAIN = "ptx__global_loads"
_POINTER = re.compile(r"(\*)\s*(?=\w+\s*[,)])")
_PARAMETERS = re.compile(r"__global__[^(]*\([^)]*\)")


class ReadOnlyLoads:
    """Counts the loads in the PTX: all of global memory, and those by the read-only path."""

    name = "read_only_loads"

    def measure(
        self, device: Device, build: Build, job: Job, measured: Measurement
    ) -> Sequence[Metric]:
        loads = re.findall(r"ld\.global(\.nc)?", build.ptx)
        return (
            Metric(PLAIN, len(loads), "inst", "compiler"),
            Metric(READ_ONLY, loads.count(".nc"), "inst", "compiler"),
        )


class MissingRestrict:
    """Fires once where no load is read-only and a parameter could say that it is."""

    name = "missing_restrict"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "compute", "latency", "launch", "mixed"}
    )
    metrics: tuple[str, ...] = ()  # no hardware counter

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        loads, read_only = (subject.measured.get(name) for name in (PLAIN, READ_ONLY))
        if not loads or read_only is None or read_only:
            return  # a tool whose figures are absent stays silent
        lines = subject.program.text.splitlines()
        line = next((n for n, text in enumerate(lines, 1) if "__global__" in text), 0)
        yield Finding(
            tool=self.name,
            severity="note",
            cause="No pointer is __restrict__: what is read might be what was just written.",
            evidence=(Evidence(READ_ONLY, 0.0, 1.0, "inst", "compiler", line),),
            actions=(
                Action(
                    "Mark the pointers __restrict__: no two of them overlap.",
                    "restrict",
                    READ_ONLY,
                    "higher",
                ),
            ),
            gain=(1.0, 1.5),
        )


class Restrict:
    """Adds ``__restrict__`` to every pointer parameter; buffers of a task never overlap."""

    name = "restrict"

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        if any(_POINTER.search(head) for head in _PARAMETERS.findall(program.text)):
            yield Idea(
                "mark the pointers __restrict__",
                self.name,
                partial(_restricted, program.text),
                "restrict",
                "The compiler may keep what it read, and read it through the read-only path.",
                Hypothesis(READ_ONLY, "higher", "loads become read-only"),
                prior=0.3,
            )
        else:
            yield Refusal(self.name, "no pointer parameter is without it")


def _restricted(text: str) -> str:
    return _PARAMETERS.sub(lambda head: _POINTER.sub("* __restrict__ ", head[0]), text)
