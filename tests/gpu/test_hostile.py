"""The hostile kernels on a real card: each its verdict, the next one passes, no memory is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.optimize import evaluate_once
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.hostile import HOSTILE, SETTINGS, healthy, task
from tests.present import SOAK
from tests.processes import eventually

pytestmark = pytest.mark.gpu
NAMES = [name for name, hostile in HOSTILE.items() if SOAK or not hostile.slow]
CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0")  # as nvidia-smi numbers them
SLACK = 64  # MiB: a driver keeps a little for itself


def used() -> int:
    """MiB of the card's memory in use, by anyone."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", CARD]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    before = used()
    with session(resolve({"device": "cuda", **SETTINGS})) as members:
        evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
        evaluator([Candidate(0, None, Proposal(healthy(0), "", "test"))])
        yield evaluator
    assert eventually(lambda: used() <= before + SLACK)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_its_verdict_and_the_next_one_passes(evaluator: Evaluator, name: str) -> None:
    number, hostile = 1 + list(HOSTILE).index(name), HOSTILE[name]
    (ended,) = evaluator([Candidate(2 * number, None, Proposal(hostile.text, "", "test"))])
    assert ended.verdict.outcome in hostile.outcomes("cuda:0"), ended.verdict
    assert ended.verdict.summary
    (healthy_one,) = evaluator(
        [Candidate(2 * number + 1, None, Proposal(healthy(number), "", "test"))]
    )
    assert healthy_one.verdict.passed, healthy_one.verdict
    assert healthy_one.duplicate_of is None


def test_what_a_kernel_prints_is_told_up_to_a_cap() -> None:
    """100,000 times is more than CUDA's buffer holds; a few thousand characters are shown."""
    settings = resolve({"device": "cuda", **SETTINGS})
    checked = evaluate_once(task(), settings, program=HOSTILE["printf flood"].text)
    assert checked.evaluation.verdict.passed
    printed = checked.evaluation.verdict.printed
    assert len(printed) < 5000
    assert printed.endswith("bytes more")
