"""Faults planted in correct kernels are caught: a fixed sample here, all of them in make soak."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from optiml_magic.problem import prepare
from optiml_magic.testing.mutations import OPERATORS, Mutant, mutants
from tests.mutations.equivalent import EQUIVALENT
from tests.mutations.subjects import SUBJECTS
from tests.mutations.trial import chosen, trial
from tests.present import SOAK

RECORD = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "results" / "mutations.json").read_text()
)
SAMPLE = ("known/histogram", "known/matmul_tiled")
EACH = 12  # every so many-th mutant of a sampled kernel


def sample(kernel: str) -> list[str]:
    found = chosen(prepare(SUBJECTS[kernel](), seeds=1).program.text, 1)
    return [mutant.name for mutant in found[:: 1 if SOAK else EACH]]


@pytest.mark.parametrize("kernel", SUBJECTS if SOAK else SAMPLE)
def test_planted_faults_are_caught(kernel: str, tmp_path: Path) -> None:
    judged = list(trial(kernel, tmp_path, most=1, only=sample(kernel)))
    argued = EQUIVALENT.get(kernel, {})
    missed = {row.name for row in judged if row.end == "missed"} - argued.keys()
    assert {f"{kernel} {name}" for name in missed} <= set(RECORD["missed"])
    assert not [row for row in judged if row.end == "caught" and row.name in argued]
    assert any(row.end == "caught" for row in judged)


def test_the_record_is_what_its_rows_say() -> None:
    ends = [
        (f"{kernel} {name}", end)
        for kernel, rows in RECORD["ends"].items()
        for name, end in rows.items()
    ]
    argued = {f"{kernel} {name}" for kernel, found in EQUIVALENT.items() for name in found}
    uncounted = [name for name, end in ends if end in ("same", "twin", "stillborn")]
    missed = [name for name, end in ends if end == "missed" and name not in argued]
    faults = len(ends) - len(uncounted) - RECORD["argued_to_be_no_fault"]
    assert (len(ends), faults, missed) == (RECORD["mutants"], RECORD["faults"], RECORD["missed"])
    assert faults - len(missed) == RECORD["caught"] >= 0.98 * faults
    assert faults >= 200
    assert not RECORD["contradictions"]


@cache
def planted(kernel: str) -> tuple[Mutant, ...]:
    return tuple(mutants(prepare(SUBJECTS[kernel](), seeds=1).program.text))


def test_every_argued_mutant_exists_and_has_a_reason() -> None:
    for kernel, reasons in EQUIVALENT.items():
        names = {mutant.name for mutant in planted(kernel)}
        assert reasons.keys() <= names, kernel
        assert all(reasons.values())


def test_every_operator_is_used() -> None:
    used = {mutant.operator for kernel in SUBJECTS for mutant in planted(kernel)}
    assert used == OPERATORS.keys()
