"""What the checklist of a release says, of right and of wrong things; and the wheel that is built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
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


SHARE = "optiml_magic-0.1.0.data/data/share/jupyter/labextensions/optiml-magic"
EXTENSION = [
    f"{SHARE}/{name}"
    for name in (
        "package.json", "install.json", "static/style.js", "static/remoteEntry.1a2b.js",
        "schemas/optiml-magic/runs.json",
    )
]  # fmt: skip


def test_a_wheel_has_the_extension_and_nothing_of_its_making() -> None:
    assert not release.extension([*WHEEL, *EXTENSION], ["runs.json"]).wrong
    lacking = [name for name in EXTENSION if "remoteEntry" not in name]
    told = release.extension(lacking, ["runs.json", "toolbar.json"]).wrong
    assert told == "lacks schemas/optiml-magic/toolbar.json, static/remoteEntry.*.js"
    more = [*EXTENSION, f"{SHARE}/static/1.js.map", f"{SHARE}/node_modules/a/index.js"]
    assert release.extension(more, []).wrong == "has node_modules/a/index.js, static/1.js.map"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("  optiml-magic v0.1.0 \x1b[32menabled\x1b[0m \x1b[32mOK\x1b[0m (python, optiml-magic)", ""),
        ("  optiml-magic v0.1.0 \x1b[31mdisabled\x1b[0m OK", "disabled OK"),
        ("  optiml-magic v0.1.0 enabled X", "enabled X"),
        ("JupyterLab v4.6.6\n  other v1 enabled OK", "JupyterLab v4.6.6"),
    ],
)  # fmt: skip
def test_what_jupyterlab_says_of_the_extension_is_read(said: str, wrong: str) -> None:
    found = release.listed(said)
    assert wrong in found.wrong
    assert bool(found.wrong) == bool(wrong)


def test_a_file_that_is_too_large_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"0" * 1000)
    assert not release.size(file).wrong
    with file.open("r+b") as opened:
        opened.truncate(4_100_000)
    assert release.size(file).wrong == "a.whl has 4.10 MB, more than 4"


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
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("npm"), reason="the extension is built where npm is")
def test_what_is_built_is_right_and_jupyterlab_takes_it_without_node(tmp_path: Path) -> None:
    """From a copy of what is committed; installed beside the libraries that are here already."""
    root = tmp_path / "clean"
    tracked = release.files(ROOT, draft=True)
    for name in tracked:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    wheel, sdist = release.built(root, tmp_path / "dist")
    assert wheel.name == f"optiml_magic-{optiml_magic.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"optiml_magic-{optiml_magic.__version__}.dist-info"
        told = archive.read(f"{info}/METADATA")
        points = archive.read(f"{info}/entry_points.txt").decode()
    with tarfile.open(sdist) as archive:
        packed = [member.name for member in archive if member.isfile()]
    schemas = [path.name for path in (ROOT / "labextension" / "schema").glob("*.json")]
    checks = [
        release.wheel_files(names, tracked), release.sdist_files(packed, tracked),
        release.extension(names, schemas), release.metadata(told),
        release.size(wheel), release.size(sdist),
    ]  # fmt: skip
    assert [check.wrong for check in checks if check.wrong] == []
    assert f"{info}/licenses/LICENSE" in names
    assert "optiml = optiml_magic.cli:main" in points
    assert "cuda-optiml = optiml_magic.reports.lexer:CudaOptimlLexer" in points
    for needed in ("py.typed", "widgets/search.js", "experience/shipped.jsonl"):
        assert f"optiml_magic/{needed}" in names

    env = tmp_path / "env"
    venv.create(env, with_pip=False)
    python = str(env / "bin" / "python")
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *install, str(wheel)], check=True
    )
    (site,) = env.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER"))}
    done = subprocess.run(
        [python, "-m", "jupyterlab.labextensions", "list"],
        cwd=tmp_path,
        env={**clean, "HOME": str(tmp_path), "PATH": str(env / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not release.listed(done.stdout + done.stderr).wrong
    assert str(env) in done.stdout + done.stderr
