"""Hundreds of evaluations in a row, hostile ones among them: nothing is left behind."""

from __future__ import annotations

import os
import random
import threading

import pytest

from optiml_magic.child.spare import SPARES
from optiml_magic.devices import hosted
from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.hostile import HOSTILE, SETTINGS, healthy, task
from tests.present import examples
from tests.processes import children, descriptors, eventually, resident, shared_files

COUNT = examples(6, 500)
WARM = examples(3, 60)
GROWTH = 64 << 20  # bytes of resident memory over all of them, caches and fragments included
CRASH = "a crash of the host"


def test_nothing_leaks() -> None:
    SPARES.end()
    own, rng = os.getpid(), random.Random(0)
    others, files, threads = children(own), shared_files(), threading.active_count()
    names = [name for name, hostile in HOSTILE.items() if not hostile.slow]
    with session(resolve({"device": "emulated", **SETTINGS})) as members:
        evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
        for number in range(COUNT):
            if number == WARM:
                before = descriptors(own), resident(own)
            chosen = rng.choice([*names, *[""] * len(names), CRASH])
            if chosen == CRASH:
                members.tools.device._child._process.kill()  # type: ignore[attr-defined]
            hostile = HOSTILE.get(chosen) if number else None
            text = hostile.text if hostile else healthy(number)
            (ended,) = evaluator([Candidate(number, None, Proposal(text, "", "test"))])
            if hostile:
                assert ended.verdict.outcome in hostile.ends, (chosen, ended.verdict)
            elif chosen != CRASH:
                assert ended.verdict.passed, ended.verdict
            assert len(children(own) - others) <= 2  # one that compiles, one that runs
        assert descriptors(own) <= before[0] + 4
        assert resident(own) <= before[1] + GROWTH
    assert len(children(own) - others) <= 2
    SPARES.end()
    assert eventually(lambda: children(own) <= others)
    assert eventually(lambda: threading.active_count() <= threads)
    # Others on this machine have files of their own there.
    assert not {name for name in shared_files() - files if "optiml" in name}


@pytest.mark.slow
def test_a_host_that_has_loaded_too_much_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each candidate has a variable of 256 KB, which a card would keep with its module."""
    monkeypatch.setattr(hosted, "_LOADED_BYTES", 1 << 20)
    hosts = []
    with session(resolve({"device": "emulated", **SETTINGS})) as members:
        evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
        for number in range(8):
            text = f"__device__ float large[1 << 16];\n{healthy(number)}".replace(
                "{\n", "{\n    if (threadIdx.x == 77777) large[threadIdx.x] = 1.0f;\n", 1
            )
            (ended,) = evaluator([Candidate(number, None, Proposal(text, "", "test"))])
            assert ended.verdict.passed, ended.verdict
            hosts.append(members.tools.device._child._process.pid)  # type: ignore[attr-defined]
        assert members.tools.device.restarts == 0  # type: ignore[attr-defined]
    assert hosts == [hosts[0]] * 4 + [hosts[4]] * 4
    assert hosts[0] != hosts[4]
