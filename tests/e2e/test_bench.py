"""The suite of `optiml bench` on the emulated device: right, resumed, and drawn as it says."""

from __future__ import annotations

import inspect
import json
import runpy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.bench.entry import Entry, Part
from optiml_magic.bench.peers import bound
from optiml_magic.bench.run import FILE, Suite
from optiml_magic.bench.suite import SUITE, chosen
from optiml_magic.cli import main
from optiml_magic.errors import UsageError
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from tests.present import sampled

DRAWING = Path(__file__).parents[2] / "benchmarks" / "suite"
GELU = next(entry for entry in SUITE if entry.name == "gelu")
LIBRARIES = [
    (entry, name) for entry in SUITE for name in entry.libraries if name != "cuSPARSE"
]  # which NumPy has not


@pytest.mark.parametrize("entry", sampled(SUITE, 20), ids=lambda e: e.name)
def test_a_task_gives_its_references_result(entry: Entry) -> None:
    settings = resolve({"device": "emulated:h200"})
    verdict = evaluate_once(entry.task("checked"), settings, counters=False).evaluation.verdict
    assert verdict.passed, verdict


@pytest.mark.parametrize(("entry", "name"), LIBRARIES, ids=lambda e: getattr(e, "name", e))
def test_a_library_computes_what_the_reference_does(entry: Entry, name: str) -> None:
    """By NumPy, which has the names that are used of CuPy."""
    values = entry.inputs(np.random.default_rng(0), **entry.checked)
    double = {n: _double(v) for n, v in values.items()}
    found = bound(entry.libraries[name], np, double)()
    known = inspect.signature(entry.reference).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in known.values())
    wanted = entry.reference(**{n: v for n, v in double.items() if every or n in known})
    listed = wanted.values() if isinstance(wanted, dict) else _several(wanted)
    for one, other in zip(_several(found), listed, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-6, atol=1e-9)


def _double(value: Any) -> Any:
    floating = getattr(value, "dtype", None) is not None and value.dtype.kind == "f"
    return value.astype(np.float64) if floating and value.ndim else value


def _several(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    small = replace(GELU, small={"n": 2000})
    settings = resolve({"device": "emulated:h200", "budget": 1, "seconds": 60})
    suite = Suite([small], "small", settings, tmp_path, peers=True, command="optiml bench gelu")
    (row,) = suite.run()
    assert (row.source, row.speedup, row.error) == ("estimated", 1.0, "")
    assert row.over_floor > 1.0
    before = (tmp_path / FILE).read_bytes()
    assert suite.run() == [row]
    assert (tmp_path / FILE).read_bytes() == before
    other = replace(suite, settings=replace(settings, budget=2))
    with pytest.raises(
        UsageError, match="rows of another device, size, budget, limit, origin or policy"
    ):
        other.run()


def test_programs_are_timed_again_on_a_card_alone(tmp_path: Path) -> None:
    small = replace(GELU, small={"n": 2000})
    settings = resolve({"device": "emulated:h200", "budget": 1, "seconds": 60})
    suite = Suite([small], "small", settings, tmp_path, peers=True, command="optiml bench gelu")
    with pytest.raises(UsageError, match="nothing is timed on emulated"):
        suite.retime()


def test_a_task_that_was_opened_since_is_run_again(tmp_path: Path) -> None:
    drawn = replace(GELU, small={"n": 2000}, source="a public kernel")
    settings = resolve({"device": "emulated:h200", "budget": 1, "seconds": 60})
    suite = Suite([drawn], "small", settings, tmp_path, peers=True, command="optiml bench gelu")
    assert [row.part for row in suite.run()] == ["held-out"]
    since = replace(suite, entries=[replace(drawn, opened=True)])
    assert [row.part for row in since.run()] == ["open"]
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 2


def test_a_run_may_begin_from_references(tmp_path: Path) -> None:
    small = replace(GELU, small={"n": 2000})
    settings = resolve({"device": "emulated:h200", "budget": 1, "seconds": 60})
    suite = Suite([small], "small", settings, tmp_path, peers=True, command="optiml bench gelu")
    (row,) = replace(suite, origin="reference").run()
    assert (row.setup.origin, row.error) == ("reference", "")
    assert "out[i] = 0.5f * x2" in row.program
    with pytest.raises(UsageError, match="origin"):
        suite.run()


def test_the_command_lists_tasks_and_names_those_that_are_near(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "products", "--part", "open", "--list"]) == 0
    assert "products/matmul" in capsys.readouterr().out
    assert main(["bench", "transpos"]) == 2
    assert "did you mean `transpose`?" in capsys.readouterr().err
    with pytest.raises(UsageError, match="held-out"):
        chosen(["histograms"], "held-out")


def test_what_is_held_out_was_drawn_and_was_not_opened() -> None:
    draw = runpy.run_path(str(DRAWING / "draw.py"))
    drawn, opened = draw["drawn"](), draw["opened"]()
    kept = (DRAWING / "held_out.jsonl").read_text().splitlines()
    assert drawn == [json.loads(line) for line in kept]
    assert max(Counter(one["field"] for one in drawn).values()) == 2
    assert _sources(part="held-out") == {_source(one) for one in drawn}
    assert _sources(part="open") == {_source(one) for one in opened}
    assert all(one["date"] and one["why"] for one in opened)
    assert len(SUITE) >= 36
    assert len({entry.family for entry in SUITE}) >= 14
    assert 4 * len(drawn) >= len(SUITE)


def _source(one: dict[str, str]) -> str:
    return f"{one['repository']} {one['file']}"


def _sources(part: Part) -> set[str]:
    return {entry.source for entry in SUITE if entry.source and entry.part == part}


def test_what_was_drawn_stays_drawn_when_something_is_opened() -> None:
    draw = runpy.run_path(str(DRAWING / "draw.py"))
    drawn: Callable[[], list[dict[str, str]]] = draw["drawn"]
    before = drawn()
    drawn.__globals__["opened"] = lambda: [*draw["opened"](), before[0], before[9]]
    after = drawn()
    assert [one for one in after if one in before] == [*before[1:9], *before[10:]]
    assert len(after) == len(before)


def test_every_kernel_has_one_task() -> None:
    assert len({entry.name for entry in SUITE}) == len(SUITE)
    kernels = (Path(GELU.path).parents[1]).glob("*/*.cu")
    assert {entry.path for entry in SUITE} == set(kernels)
