"""What ncu costs: 16 verified candidates in one process against one process each.

    python benchmarks/gpu/ncu_batch.py OUT.jsonl [SECONDS] [DEVICE]

Each fact is one line of OUT.jsonl, written when it is known: cold is the first batch of a fresh
process tree, repeated the second and third. Then what each choice of metrics costs, so that the
default ones can be chosen. After SECONDS (110) it stops; the same command goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.facts import Fact, record
from optiml_magic.compilers.sass import disassemble
from optiml_magic.devices.base import Case, Job
from optiml_magic.evaluation import stages
from optiml_magic.evaluation.stages import Context
from optiml_magic.findings import TOOLS
from optiml_magic.findings.base import wanted
from optiml_magic.model.build import Build
from optiml_magic.model.vocabulary import (
    STALLS,
    brief_counters,
    default_counters,
    line_counters,
)
from optiml_magic.preparation import Prepared
from optiml_magic.problem import prepare
from optiml_magic.profilers.ncu import NcuCounters, Refused
from optiml_magic.profilers.ncu_request import Depth
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

COUNT = 16
ENDING = ExitStack()
SIZES = {"rows": 2048, "cols": 2048}
FEW = ("smsp__inst_executed.sum", "dram__bytes.sum")
STALL_RATIOS = tuple(
    f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio" for why in STALLS
)
WITHOUT_STALLS = tuple(n for n in default_counters() if n not in STALL_RATIOS)
USED = tuple(dict.fromkeys((*default_counters(), *wanted(TOOLS))))
# By name: the metrics of a launch, those of its instructions.
CHOICES = {
    "of a search": (brief_counters(), ()),
    "two metrics": (FEW, ()),
    "defaults without stalls": (WITHOUT_STALLS, ()),
    "defaults": (default_counters(), ()),
    "lines": (FEW, line_counters(samples=False)),
    "lines and samples": (FEW, line_counters()),
    "without stalls, lines and samples": (WITHOUT_STALLS, line_counters()),
    "all that is used": (USED, line_counters()),
}


def main(out: Path, seconds: float, device: str) -> None:
    record(facts(device), out, device, seconds)


def facts(device: str) -> Iterator[Fact]:
    everything, brief = CHOICES["all that is used"], CHOICES["of a search"]
    for name in ("cold", "repeated", "repeated again"):
        yield "batch of 16", name, lambda: counted(device, brief, [range(COUNT)])
    one_each = [range(at, at + 1) for at in range(4)]
    yield "one process each", "first 4 of 16", lambda: counted(device, brief, one_each)
    for name, choice in CHOICES.items():
        yield "choice, 16", name, partial(counted, device, choice, [range(COUNT)])
    yield (
        "with rules",
        "one candidate",
        lambda: counted(device, everything, [range(1)], depth="rules"),
    )


def counted(
    device: str,
    choice: tuple[Sequence[str], Sequence[str]],
    batches: Sequence[range],
    *,
    depth: Depth = "lines",
) -> dict[str, Any]:
    runs, cases = verified(device)
    metrics, by_line = choice
    seconds, missing, lines = [], set(), 0
    for batch in batches:
        counters = NcuCounters(
            device, cases, metrics=metrics, by_line=by_line, disassemble=disassemble
        )
        began = time.perf_counter()
        found = counters.count([runs[at] for at in batch], depth=depth)
        seconds.append(time.perf_counter() - began)
        if isinstance(found, Refused):
            return {"refused": found.reason, "seconds": seconds}
        missing |= {m.name for one in found for m in one.missing}
        lines += sum(len(k.lines) for one in found for k in one.kernels)
    return {
        "candidates": sum(len(batch) for batch in batches),
        "seconds": sum(seconds),
        "each": [round(s, 3) for s in seconds],
        "metrics": len(metrics) + len(by_line),
        "missing": sorted(missing),
        "lines": lines,
    }


@cache
def verified(device: str) -> tuple[list[tuple[Build, Job]], list[Case]]:
    """16 programs of one task, different machine code each, all verified."""
    problem = prepare(known_task("transpose_naive", **SIZES), seeds=1)
    cases = [instance.case for instance in problem.instances]
    members = ENDING.enter_context(session(resolve({"device": device, "verify_seeds": 1})))
    context = Context.of(problem, members.tools, exact=False, thorough=False)
    runs, seen = [], set()
    for number in range(COUNT):
        text = problem.program.text.replace(
            "out[", f"if (cols == -{number + 1}) return;\n    out[", 1
        )
        prepared = stages.prepare(text, context)
        assert isinstance(prepared, Prepared), prepared
        verdict = stages.verify(prepared, context)
        assert verdict.passed, verdict
        seen.add(prepared.identity)
        runs.append((prepared.build, context.job(prepared)))
    assert len(seen) == COUNT
    return runs, cases


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("seconds", type=float, nargs="?", default=110.0)
    parser.add_argument("device", nargs="?", default="cuda:0")
    with ENDING:
        main(**vars(parser.parse_args()))
