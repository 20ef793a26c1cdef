"""Members of other packages: the documented example really installed, and broken ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, optimize
from optiml_magic.plugins import Plugins, load
from optiml_magic.profilers.base import AddedProfiler
from optiml_magic.proposers.rewrites.base import Rewrite
from optiml_magic.settings import resolve
from optiml_magic.testing.plugin_contracts import ProfilerContract, RuleContract, ToolContract
from tests.installing import installed

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "optiml-restrict"
KERNEL = """\
#pragma optiml launch total grid(cdiv(rows, 128)) block(128)
__global__ void total(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        out[row] = 0.0f;
        for (int i = 0; i < cols; ++i) out[row] += a[i];
    }
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def example(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    monkeypatch.syspath_prepend(str(site))
    yield load()
    sys.modules.pop("optiml_restrict", None)


def summed() -> Task:
    import numpy as np

    a = np.linspace(0.5, 1, 64, dtype=np.float32)
    return Task(
        KERNEL,
        reference=lambda a, rows: np.full(rows, a.sum(dtype=np.float64)),
        inputs={"a": a, "rows": 1024, "cols": 64},
        outputs={"out": "f4[rows]"},
    )


def test_without_packages_there_are_none() -> None:
    assert load() == Plugins()


def test_the_example_is_found_and_named(example: Plugins) -> None:
    assert example.notes == ()
    assert [tool.name for tool in example.tools] == ["missing_restrict"]
    assert [profiler.name for profiler in example.profilers] == ["read_only_loads"]
    assert [rule.name for rule in example.rules] == ["restrict"]
    assert example.names == (
        "missing_restrict of optiml-restrict 0.1.0",
        "read_only_loads of optiml-restrict 0.1.0",
        "restrict of optiml-restrict 0.1.0",
    )


@pytest.mark.usefixtures("example")
def test_its_tool_fires_its_rule_answers_and_its_metric_confirms(home: Path) -> None:
    settings = resolve({"device": "emulated", "llm": "none", "budget": 8})
    result = optimize(summed(), settings)
    root = result.trajectory.root.evaluation
    (finding,) = [f for f in root.findings if f.tool == "missing_restrict"]
    assert finding.line == 2
    (step,) = [s for s in result.trajectory.steps if s.candidate.proposal.proposer == "restrict"]
    assert step.candidate.proposal.answers == "missing_restrict"
    assert step.evaluation.verdict.passed
    test = step.evaluation.test
    assert test is not None
    assert (test.state, test.before, test.source) == ("confirmed", 0.0, "compiler")
    assert test.after
    assert not [f for f in step.evaluation.findings if f.tool == "missing_restrict"]


@pytest.mark.usefixtures("example")
class TestExampleTool(ToolContract):
    @pytest.fixture
    def tool(self, example: Plugins) -> object:
        return example.tools[0]


@pytest.mark.usefixtures("example")
class TestExampleProfiler(ProfilerContract):
    @pytest.fixture
    def profiler(self, site: Path, monkeypatch: pytest.MonkeyPatch) -> AddedProfiler:
        """Not installed, or what it measures would stand there already."""
        monkeypatch.syspath_prepend(str(site))
        import optiml_restrict  # type: ignore[import-not-found]

        monkeypatch.setattr("optiml_magic.session.load", Plugins)
        return optiml_restrict.ReadOnlyLoads()


@pytest.mark.usefixtures("example")
class TestExampleRule(RuleContract):
    @pytest.fixture
    def rule(self, example: Plugins) -> Rewrite:
        return example.rules[0]


BROKEN = """\
class Raises:
    name = "raises"
    classes = frozenset({"memory", "compute", "latency", "launch", "mixed"})
    metrics = ()
    def diagnose(self, subject):
        raise RuntimeError("no luck")

class Clashes(Raises):
    name = "uncoalesced_access"

class Talks(Raises):
    name = "talks"
    def diagnose(self, subject):
        yield "advice"

class Exits(Raises):
    name = "leaves"
    def diagnose(self, subject):
        raise SystemExit(3)

class Says(Raises):
    name = "says"
    def diagnose(self, subject):
        from optiml_magic.model.finding import Evidence, Finding
        seen = (Evidence("x", 1.0, 2.0, "%", "ncu", 1),)
        yield Finding("says", "info", "A severity of its own.", seen, (), (1.0, 1.2))
        yield Finding("says", "note", "No evidence.", (), (), (1.0, 1.2))
        yield Finding("says", "note", "No gain.", seen, (), None)
        yield Finding("says", "note", "No actions.", seen, None, (1.0, 1.2))
        yield Finding("says", "note", "Gains backwards.", seen, (), (2.0, 1.2))
        yield Finding("other", "note", "Of another.", seen, (), (1.0, 1.2))
        nan = (Evidence("x", float("nan"), 2.0, "%", "ncu", 1),)
        yield Finding("says", "note", "No number.", nan, (), (1.0, 1.2))
        far = (Evidence("x", 1.0, 2.0, "%", "ncu", 999),)
        yield Finding("says", "note", "No such line.", far, (), (1.0, 1.2))
        yield Finding("says", "note", "All is well.", seen, (), (1.0, 1.2))

class Nameless(Raises):
    name = ""

class Refuses:
    def __init__(self):
        raise ValueError("not today")

class Rule:
    name = "rule"
    def propose(self, program, view):
        return 7

class Late:
    name = "late"
    def propose(self, program, view):
        from optiml_magic.model.idea import Idea
        from optiml_magic.model.refusal import Refusal
        for number, make in enumerate((lambda: 1 / 0, lambda: 7, lambda: Refusal("late", "a jump", 2))):
            yield Idea(f"{number}", "late", make, f"late {number}", prior=1.0)
        yield Idea("no prior", "late", lambda: "", "late 3", prior=2.0)
        yield Idea("no key", "late", lambda: "", "")
        yield Refusal("late", 7)
        yield "an idea"

class Profiler:
    name = "profiler"
    def measure(self, device, build, job, measured):
        raise OSError("no counter")

lacking = object()
"""
POINTS = """\
[project]
name = "broken"
version = "1.0"
[project.entry-points."optiml_magic.tools"]
clashes = "broken_plugin:Clashes"
exits = "broken_exit:anything"
lacking = "broken_plugin:lacking"
missing = "no_such_module:Tool"
nameless = "broken_plugin:Nameless"
raises = "broken_plugin:Raises"
refuses = "broken_plugin:Refuses"
leaves = "broken_plugin:Exits"
says = "broken_plugin:Says"
talks = "broken_plugin:Talks"
[project.entry-points."optiml_magic.rules"]
rule = "broken_plugin:Rule"
late = "broken_plugin:Late"
[project.entry-points."optiml_magic.profilers"]
profiler = "broken_plugin:Profiler"
"""


@pytest.mark.slow
def test_broken_ones_are_named_and_stop_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(POINTS)
    (project / "broken_plugin.py").write_text(BROKEN)
    (project / "broken_exit.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(installed(project, tmp_path)))
    found = load()
    assert [tool.name for tool in found.tools] == ["leaves", "raises", "says", "talks"]
    told = " ".join(found.notes)
    for said in (
        "plug-in `clashes` of broken",
        "left out: there is a `uncoalesced_access` already",
        "`exits` of broken (optiml_magic.tools) is left out: SystemExit: 3",
        "`lacking` of broken (optiml_magic.tools) is left out: it has no name, classes",
        "`missing` of broken (optiml_magic.tools) is left out: ModuleNotFoundError",
        "`nameless` of broken (optiml_magic.tools) is left out: its name is ''",
        "`refuses` of broken (optiml_magic.tools) is left out: ValueError: not today",
    ):
        assert said in told
    settings = resolve({"device": "emulated", "llm": "none", "budget": 2})
    result = optimize(summed(), settings)
    assert all(step.evaluation.verdict.passed for step in result.trajectory.steps)
    notes = " ".join(result.summary.notes)
    for said in (
        "`raises` of broken (optiml_magic.tools) is left out: RuntimeError: no luck",
        "`talks` of broken (optiml_magic.tools) is left out: it gave a str where a Finding",
        "`leaves` of broken (optiml_magic.tools) is left out: SystemExit: 3",
        "`says` of broken (optiml_magic.tools) is left out: its Finding:",
        "`says` of broken (optiml_magic.tools) is left out: its finding has no evidence",
        "`says` of broken (optiml_magic.tools) is left out: its finding gains from 2.0 to 1.2",
        "`says` of broken (optiml_magic.tools) is left out: it gave a finding of `other`",
        "`says` of broken (optiml_magic.tools) is left out: its finding is about line 999 of",
        "`rule` of broken (optiml_magic.rules) is left out: TypeError",
        "`late` of broken (optiml_magic.rules) is left out: ZeroDivisionError",
        "`late` of broken (optiml_magic.rules) is left out: it gave a int where a Refusal",
        "`late` of broken (optiml_magic.rules) is left out: it gave a str where a Idea",
        "`late` of broken (optiml_magic.rules) is left out: its prior is 2.0",
        "`late` of broken (optiml_magic.rules) is left out: its Idea has no key",
        "`late` of broken (optiml_magic.rules) is left out: its Refusal",
        "`profiler` of broken (optiml_magic.profilers) is left out: OSError: no counter",
        "ValueError: not today",
    ):
        assert said in notes
    refused = [str(refusal) for refusal in result.trajectory.root.refused]
    assert refused.count("late: the rule failed") == 1
    assert "late: a jump, line 2" in refused
    said = [f.cause for f in result.trajectory.root.evaluation.findings if f.tool == "says"]
    assert said == ["All is well."]
    checked = evaluate_once(summed(), settings)
    assert any("no luck" in note for note in checked.notes)
    assert checked.evaluation.measurement is not None
    assert "failed" in checked.evaluation.measurement.why("profiler")
