from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import HealthCheck, settings
from present import BROWSER, DRIVER, NVCC, SAMPLE, SOAK, examples, thinned

from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers import rules

HERE = Path(__file__).parent

settings.register_profile(
    "fixed",
    max_examples=examples(30, 2000),
    derandomize=not SOAK,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


def pytest_report_header() -> str:
    return f"present: NVIDIA driver {DRIVER}, browser {BROWSER}, nvcc {NVCC or None}, soak {SOAK}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SAMPLE:
        kept = _sample(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for item in items:
        if item.get_closest_marker("gpu") and not DRIVER:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA driver on this machine"))
        if item.get_closest_marker("browser") and not BROWSER:
            item.add_marker(pytest.mark.skip(reason="no chromium on this machine"))


def _sample(items: list[pytest.Item]) -> set[pytest.Item]:
    """All tests but those of units, of whose many cases some are enough for every change."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept = set[pytest.Item]()
    for cases in functions.values():
        numbers = {*range(len(cases))}
        folders = cases[0].path.relative_to(HERE).parts
        if folders[0] in ("unit", "rewriting", "twins"):
            numbers = thinned([case.nodeid for case in cases], folders[-2])
        kept.update(cases[number] for number in numbers)
    return kept


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test spends the money of whoever runs it."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPTIML_LLM", "OPTIML_LLM_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def faults_of_rules_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that breaks is a failure here, though a user's search goes on."""

    def raised(rule: str, error: Exception) -> Refusal:
        raise error

    monkeypatch.setattr(rules, "broken", raised)


@pytest.fixture(autouse=True, scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder of compiled programs for all tests of a run, whichever worker they are on."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "caches"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTIML_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journals and experience of a test stay in its own folder; code is compiled once."""
    monkeypatch.delenv("OPTIML_EXPERIENCE", raising=False)
    monkeypatch.setenv("OPTIML_SHIPPED", os.devnull)  # what ships changes; a test has its own
    folder = tmp_path / "optiml"
    monkeypatch.setenv("OPTIML_HOME", str(folder))
    return folder


@pytest.fixture
def own_caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For a test that looks at the caches: nothing is in them yet."""
    monkeypatch.delenv("OPTIML_CACHE")
    return home
