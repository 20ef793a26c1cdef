"""What the checklist of a release says, of right and of wrong things; and the wheel that is built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import optiml_magic
import release

ROOT = Path(__file__).parents[2]
TRACKED = ("README.md", "optiml_magic/__init__.py", "optiml_magic/py.typed", "tests/test_a.py")
WHEEL = (
    "optiml_magic/__init__.py",
    "optiml_magic/py.typed",
    "optiml_magic-0.1.0.dist-info/METADATA",
    "optiml_magic-0.1.0.dist-info/licenses/LICENSE",
    "optiml_magic-0.1.0.data/data/share/jupyter/labextensions/optiml-magic/package.json",
)
METADATA = b"Metadata-Version: 2.4\nName: a\nVersion: 1\nRequires-Dist: numpy\n"


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = release.version(text, optiml_magic.__version__, "", draft=True)
    assert not found.wrong
    assert len(text.splitlines()) < 100


@pytest.mark.parametrize(
    ("heading", "labextension", "draft", "wrong"),
    [
        ("## [1.2.0] - 2026-01-31", "1.2.0", False, ""),
        ("## [1.2.0] - 2026-01-31", "", False, ""),
        ("## [1.2.0] - unreleased", "", True, ""),
        ("## [1.2.0] - unreleased", "", False, "give it its date"),
        ("## [1.1.0] - 2026-01-31", "", False, "begins with 1.1.0"),
        ("## [1.2.0] - 2026-01-31", "1.1.0", False, "package.json has 1.1.0"),
        ("## 1.2.0", "", True, "no heading"),
    ],
)
def test_versions_agree(heading: str, labextension: str, draft: bool, wrong: str) -> None:
    changelog = f"# Changelog\n\n{heading}\n\n## [1.0.0] - 2025-01-01\n"
    found = release.version(changelog, "1.2.0", labextension, draft=draft)
    assert wrong in found.wrong
    assert bool(found.wrong) == bool(wrong)
    assert str(found).startswith("NO  version" if wrong else "ok  version")


def test_a_wheel_has_the_package_and_no_more() -> None:
    assert not release.wheel_files(WHEEL, TRACKED).wrong
    lacking = [name for name in WHEEL if "typed" not in name]
    assert "lacks optiml_magic/py.typed" in release.wheel_files(lacking, TRACKED).wrong
    more = [*WHEEL, "tests/test_a.py", "optiml_magic/left.pyc"]
    assert "has optiml_magic/left.pyc, tests/test_a.py" in release.wheel_files(more, TRACKED).wrong


def test_an_sdist_has_the_repository_and_what_was_built() -> None:
    names = [f"optiml_magic-0.1.0/{name}" for name in (*TRACKED, "PKG-INFO")]
    built = "optiml_magic-0.1.0/optiml_magic/labextension/package.json"
    assert not release.sdist_files([*names, built], TRACKED).wrong
    assert "lacks README.md" in release.sdist_files(names[1:], TRACKED).wrong
    odd = [*names, "optiml_magic-0.1.0/secret.env"]
    assert "has secret.env" in release.sdist_files(odd, TRACKED).wrong


def test_metadata_that_no_index_takes_are_told() -> None:
    assert not release.metadata(METADATA).wrong
    assert "by URL" in release.metadata(METADATA + b"Requires-Dist: b @ file:///b\n").wrong
    assert release.metadata(METADATA.replace(b"Version: 1\n", b"Version: one\n")).wrong


def test_a_tree_with_changes_is_refused(tmp_path: Path) -> None:
    shutil.copy(ROOT / "release.py", tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "release.py"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    assert release.changes(tmp_path) == []
    (tmp_path / "forgotten.py").write_text("")
    done = subprocess.run(
        [sys.executable, "release.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert re.fullmatch(
        r"NO  tree +1 changes are not committed, such as \?\? forgotten.py\n", done.stdout
    )
    assert not (tmp_path / "dist").exists()


def test_extras_that_the_documents_name_are_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    named = (ROOT / "README.md").read_text().partition("Extras: ")[2].partition("It is not on")[0]
    assert set(re.findall(r"`(\w+)`", named)) == set(extras)


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="what is committed is known in a repository"
)
def test_the_wheel_that_is_built_is_right(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)],
        env={**os.environ, "OPTIML_LABEXTENSION": "none"},
        check=True,
        timeout=100,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"optiml_magic-{optiml_magic.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 4e6
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"optiml_magic-{optiml_magic.__version__}.dist-info"
        told = archive.read(f"{info}/METADATA")
        points = archive.read(f"{info}/entry_points.txt").decode()
    found = release.wheel_files(names, release.files(ROOT, draft=True))
    assert not found.wrong
    assert not release.metadata(told).wrong
    assert f"{info}/licenses/LICENSE" in names
    assert "optiml = optiml_magic.cli:main" in points
    assert "cuda-optiml = optiml_magic.reports.lexer:CudaOptimlLexer" in points
    for needed in ("py.typed", "widgets/search.js", "experience/shipped.jsonl"):
        assert f"optiml_magic/{needed}" in names
