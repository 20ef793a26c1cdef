"""What isolation costs, how long recovery from each fault takes, what 500 evaluations leave.

    python benchmarks/gpu/survival.py OUT.jsonl [DEVICE] [SECONDS]

Each fact is one line of OUT.jsonl, written when it is known. After SECONDS (200) it stops; the same
command goes on where it stopped. On an emulated device it shows the same, less the card's memory.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.facts import Fact, record
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.hosted import HostedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.choice import choose
from optiml_magic.devices.host import open_device
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.problem import prepare
from optiml_magic.session import Session, session
from optiml_magic.settings import Settings, resolve
from optiml_magic.testing.contracts import DeviceContract
from optiml_magic.testing.hostile import HOSTILE, SETTINGS, healthy, task

ENDING = ExitStack()
FOLDER = Path(tempfile.mkdtemp(prefix="optiml-survival-"))
EVALUATIONS = 500
PART = 50
CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0")  # as nvidia-smi numbers them
RUNS = 30


def main(out: Path, device: str, seconds: float) -> None:
    if rows := record(facts(device), out, device, seconds):
        summarise(rows)


def facts(device: str) -> Iterator[Fact]:
    yield "isolation", "execute", lambda: cost_of_execute(device)
    yield "isolation", "compile", cost_of_compile
    yield "isolation", "start", lambda: cost_of_start(device)
    for name in HOSTILE:
        yield "recovery", name, partial(recovery, device, name)
    for part in range(EVALUATIONS // PART):
        yield "leaks", str(part), partial(evaluations, device, part)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cost_of_execute(device: str) -> dict[str, Any]:
    """One verifying run through the host and in this very process, in turn."""
    contract, hosted, direct = DeviceContract(), HostedDevice(device), open_device(device)
    build = contract.build()
    job = contract.job(build)
    rows: tuple[list[float], list[float]] = ([], [])
    for one in (hosted, direct):
        one.put(contract.case())
        one.execute(build, job)
    for _ in range(RUNS):
        for one, found in zip((hosted, direct), rows, strict=True):
            found.append(timed(partial(one.execute, build, job)))
    hosted.close()
    direct.close()
    return {"hosted": statistics.median(rows[0]), "direct": statistics.median(rows[1])}


def cost_of_compile() -> dict[str, Any]:
    hosted, direct = HostedCompiler("nvrtc"), NvrtcCompiler()
    start = timed(lambda: hosted.version)
    both: tuple[HostedCompiler | NvrtcCompiler, ...] = (hosted, direct)
    rows: tuple[list[float], list[float]] = ([], [])
    for number in range(RUNS):
        for one, found in zip(both, rows, strict=True):
            text = f"// {number}\n{healthy(number)}"
            found.append(timed(partial(compiled, one, text)))
    hosted.close()
    return {
        "hosted": statistics.median(rows[0]),
        "direct": statistics.median(rows[1]),
        "start": start,
    }


def compiled(compiler: HostedCompiler | NvrtcCompiler, text: str) -> Build:
    build = compiler.compile(text, ("twice",), choose("emulated").chip, CompileOptions())
    assert isinstance(build, Build), build
    return build


def cost_of_start(device: str) -> dict[str, Any]:
    """Until a new host has taken its inputs and run once."""
    contract = DeviceContract()
    build = contract.build()
    found = []
    for _ in range(3):
        host = HostedDevice(device)
        host.put(contract.case())
        found.append(timed(partial(host.execute, build, contract.job(build))))
        host.close()
    return {"hosted": statistics.median(found)}


@cache
def opened(device: str) -> tuple[Evaluator, Session]:
    """One evaluator for all hostile kernels, warm."""
    members = ENDING.enter_context(session(settings(device)))
    evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
    passes(evaluator, 0)
    return evaluator, members


def settings(device: str) -> Settings:
    return resolve({"device": device, "home": FOLDER, **SETTINGS})


def recovery(device: str, name: str) -> dict[str, Any]:
    """How a hostile kernel ended, after how long, and the time of the next healthy evaluation."""
    hostile = HOSTILE[name]
    first = 1_000_000 + 10 * list(HOSTILE).index(name)  # machine code that nobody compiled yet
    evaluator = opened(device)[0]
    usual = timed(lambda: passes(evaluator, first))
    began = time.perf_counter()
    (ended,) = evaluator([candidate(first + 1, hostile.text)])
    seconds = time.perf_counter() - began
    after = timed(lambda: passes(evaluator, first + 2))
    verdict = ended.verdict
    return {
        "outcome": str(verdict.outcome),
        "expected": verdict.outcome in hostile.outcomes(device),
        "summary": verdict.summary[:200],
        "seconds": seconds,
        "next": after,
        "recovery": max(0.0, after - usual),
    }


def evaluations(device: str, part: int) -> dict[str, Any]:
    """50 in a row, one in ten hostile; the memory of the card before and after."""
    rng = random.Random(part)
    names = [n for n, h in HOSTILE.items() if not h.slow and "endless" not in n]
    ENDING.close()
    before = card_memory(device)
    with session(settings(device)) as members:
        evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
        for number in range(part * PART, part * PART + PART):
            if number % 10 != 5:
                passes(evaluator, number)
                continue
            hostile = HOSTILE[name := rng.choice(names)]
            (ended,) = evaluator([candidate(number, hostile.text)])
            assert ended.verdict.outcome in hostile.outcomes(device), (name, ended.verdict)
        restarts = members.tools.device.restarts  # type: ignore[attr-defined]
    deadline = time.monotonic() + 10
    while card_memory(device) > before and time.monotonic() < deadline:
        time.sleep(0.2)
    after = card_memory(device)
    return {"evaluations": PART, "restarts": restarts, "mib_before": before, "mib_after": after}


def passes(evaluator: Evaluator, number: int) -> None:
    (ended,) = evaluator([candidate(number, healthy(number))])
    assert ended.verdict.passed, ended.verdict


def card_memory(device: str) -> int:
    """MiB in use on the card, by anyone; 0 where there is none."""
    if not device.startswith("cuda"):
        return 0
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", CARD]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])


def candidate(number: int, text: str) -> Candidate:
    return Candidate(number, None, Proposal(text, "", "survival"))


def summarise(rows: list[dict[str, Any]]) -> None:
    kinds = {kind: [r for r in rows if r["what"] == kind] for kind in ("recovery", "leaks")}
    wrong = [r["name"] for r in kinds["recovery"] if not r["expected"]]
    print(f"{len(kinds['recovery'])} hostile kernels, not as expected: {wrong or 'none'}")
    slowest = max(kinds["recovery"], key=lambda r: r["recovery"])
    print(f"slowest recovery: {slowest['recovery']:.2f} s, after {slowest['name']}")
    count = sum(r["evaluations"] for r in kinds["leaks"])
    first, last = kinds["leaks"][0]["mib_before"], kinds["leaks"][-1]["mib_after"]
    print(f"{count} evaluations; memory of the card {first} MiB before, {last} MiB after")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("device", nargs="?", default="cuda:0")
    parser.add_argument("seconds", type=float, nargs="?", default=200.0)
    with ENDING:
        main(**vars(parser.parse_args()))
