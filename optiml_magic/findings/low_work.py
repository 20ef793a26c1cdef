"""Too little work per thread: index arithmetic and launching outweigh what the thread is for."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.model.hypothesis import TIME

_FEW = 40.0  # executed instructions per thread
_ENOUGH_WAVES = 2.0  # below it the chip is not even full, and more work per thread would hurt


class LowWorkPerThread:
    """Fires once for the kernel."""

    name = "low_work_per_thread"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "launch", "mixed"})
    metrics: tuple[str, ...] = ("smsp__thread_inst_executed.sum",)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        measured = subject.measured
        threads = measured.get("launch__thread_count")
        executed = measured.get("smsp__thread_inst_executed.sum")
        waves = measured.get("launch__waves_per_multiprocessor")
        if not threads or executed is None or waves is None or waves < _ENOUGH_WAVES:
            return
        each = executed / threads
        if each < _FEW:
            yield Finding(
                tool=self.name,
                severity="note",
                cause=f"Each thread executes only {each:.0f} instructions, much of it finding out "
                "where it is.",
                evidence=(
                    Evidence(
                        "smsp__thread_inst_executed.sum",
                        each,
                        _FEW,
                        "inst/thread",
                        subject.counted_by,
                    ),
                ),
                actions=(
                    Action(
                        "Give each thread several elements: a grid-stride loop or float4 loads.",
                        "vectorise_map",
                        metric="smsp__thread_inst_executed.sum",
                        factor=(1.1, 3.0),
                    ),
                    Action("Try other block sizes.", "block_size", TIME),
                ),
                gain=(1.0, 1.3),
                reason="index arithmetic and the start of a thread are spread over more elements",
            )
