"""The checklist of a release: builds, looks, installs and tries, and publishes nothing.

    python release.py            into dist/; refuses a tree with changes
    python release.py --draft    takes the tree as it is, and a version without a date

Each line is a check; exit status 1 where one failed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import Metadata

import optiml_magic

ROOT = Path(__file__).parent
PACKAGE = "optiml_magic/"
BUILT = "optiml_magic/labextension/"  # the JupyterLab extension, in no repository
SHARED = re.compile(r"[^/]+\.(?:dist-info|data/data/share/jupyter)/")
INSTALLED = re.compile(r"[^/]+\.data/data/share/jupyter/labextensions/optiml-magic/")
MOST = {".whl": 4.0, ".gz": 14.0}  # megabytes
HEADING = re.compile(r"## \[(?P<version>[^]]+)\] - (?P<when>.+)")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
TASK = """\
import numpy as np
from optiml_magic import Task

a = np.arange(12, dtype=np.float32).reshape(3, 4)
kernel = '''__global__ void transpose(const float* a, float* out, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) out[i % cols * rows + i / cols] = a[i];
}'''
task = Task(kernel, reference=lambda a: a.T, inputs={"a": a, "rows": 3, "cols": 4})
"""
IN_A_SHELL = """\
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
assert shell.run_cell("%load_ext optiml_magic").success
assert shell.run_cell("%optiml help").success
"""


@dataclass(frozen=True)
class Check:
    """One line of the list: ``wrong`` is empty where it is well."""

    what: str
    found: str
    wrong: str = ""

    def __str__(self) -> str:
        return f"{'NO ' if self.wrong else 'ok '} {self.what:<11} {self.wrong or self.found}"


def changes(root: Path) -> list[str]:
    """What differs from what is committed."""
    return _git(root, "status", "--porcelain").splitlines()


def files(root: Path, *, draft: bool) -> list[str]:
    """What is committed; of a draft also what would be."""
    more = ("--cached", "--others", "--exclude-standard") if draft else ()
    return [name for name in _git(root, "ls-files", *more).splitlines() if (root / name).is_file()]


def version(changelog: str, package: str, labextension: str, *, draft: bool) -> Check:
    """Whether the changelog begins with the version, and a date; and all others have it."""
    first = next((line for line in changelog.splitlines() if line.startswith("## ")), "")
    newest = HEADING.fullmatch(first)
    wrong = ""
    if newest is None:
        wrong = "CHANGELOG.md has no heading like `## [0.1.0] - 2026-01-31`"
    elif newest["version"] != package:
        wrong = f"CHANGELOG.md begins with {newest['version']}, and the package is {package}"
    elif labextension not in ("", package):
        wrong = f"labextension/package.json has {labextension}, and the package is {package}"
    elif not draft and not DATE.fullmatch(newest["when"]):
        wrong = f"{package} is `{newest['when']}` in CHANGELOG.md: give it its date"
    return Check("version", f"{package}, {newest['when'] if newest else first}", wrong)


def wheel_files(names: Iterable[str], tracked: Iterable[str]) -> Check:
    """Whether a wheel has all files of the package, and no others."""
    wanted = {name for name in tracked if name.startswith(PACKAGE)}
    found = {name for name in names if not SHARED.match(name)}
    return _same("wheel has", found, wanted)


def extension(names: Iterable[str], schemas: Iterable[str]) -> Check:
    """Whether a wheel has the JupyterLab extension where that looks, and nothing of its making."""
    found = {INSTALLED.sub("", name) for name in names if INSTALLED.match(name)}
    wanted = {"package.json", "install.json", "static/style.js", "static/remoteEntry.*.js"}
    wanted |= {f"schemas/optiml-magic/{name}" for name in schemas}
    missing = sorted(each for each in wanted if not fnmatch.filter(found, each))
    odd = sorted(each for each in found if each.endswith(".map") or "node_modules" in each)
    wrong = [f"lacks {', '.join(missing[:3])}"] if missing else []
    wrong += [f"has {', '.join(odd[:3])}"] if odd else []
    return Check("extension", f"{len(found)} files", "; ".join(wrong))


def listed(said: str) -> Check:
    """Whether JupyterLab says of the extension that it is enabled and in order."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", said)
    line = next((each.strip() for each in plain.splitlines() if "optiml-magic v" in each), "")
    well = re.search(r"\benabled\b.*\bOK\b", line)
    return Check("JupyterLab", line, "" if well else f"says `{line or plain.strip()[-300:]}`")


def size(file: Path) -> Check:
    """How large a file is, and whether that is what was meant."""
    megabytes, most = file.stat().st_size / 1e6, MOST[file.suffix]
    wrong = f"{file.name} has {megabytes:.2f} MB, more than {most:g}" if megabytes > most else ""
    return Check("size", f"{megabytes:.2f} MB {file.name}", wrong)


def sdist_files(names: Iterable[str], tracked: Iterable[str]) -> Check:
    """Whether an sdist has all files of the repository, and no others but what was built."""
    inside = {name.partition("/")[2] for name in names}
    found = {name for name in inside if not name.startswith(BUILT)} - {"PKG-INFO"}
    return _same("sdist has", found, set(tracked))


def metadata(text: bytes) -> Check:
    """Whether an index would take it; a requirement by URL it would not."""
    try:
        found = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return Check("metadata", "", "; ".join(map(str, group.exceptions)))
    by_url = [str(one) for one in found.requires_dist or () if one.url]
    if by_url:
        return Check("metadata", "", f"requirements by URL: {', '.join(by_url)}")
    extras = ", ".join(found.provides_extra or ())
    return Check("metadata", f"Python {found.requires_python}, extras {extras}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--draft", action="store_true", help="of a tree with changes, undated")
    draft = parser.parse_args().draft
    changed = changes(ROOT)
    if changed and not draft:
        print(f"NO  tree        {len(changed)} changes are not committed, such as {changed[0]}")
        return 1
    checks = [_shown(Check("tree", f"{len(changed)} changes" if changed else "all is committed"))]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    package = ROOT / "labextension" / "package.json"
    labextension = json.loads(package.read_text())["version"] if package.is_file() else ""
    own = optiml_magic.__version__
    checks.append(_shown(version(changelog, own, labextension, draft=draft)))
    wheel, sdist = built(ROOT, ROOT / "dist")
    tracked = files(ROOT, draft=draft)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (told,) = [archive.read(name) for name in names if name.endswith(".dist-info/METADATA")]
    checks += map(_shown, (wheel_files(names, tracked), metadata(told)))
    with tarfile.open(sdist) as archive:
        checks.append(_shown(sdist_files([m.name for m in archive if m.isfile()], tracked)))
    schemas = [path.name for path in (ROOT / "labextension" / "schema").glob("*.json")]
    checks += map(_shown, (extension(names, schemas), size(wheel), size(sdist)))
    checks += _tried(wheel)
    return int(any(check.wrong for check in checks))


def built(root: Path, folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist that it was built from, in place of earlier ones."""
    for old in folder.glob("optiml_magic-*"):
        old.unlink()
    _run([sys.executable, "-m", "build", "--outdir", str(folder), str(root)], root)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def _tried(wheel: Path) -> list[Check]:
    """The wheel in an environment of its own, used from a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        programs = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        python, optiml = str(programs / "python"), str(programs / "optiml")
        (folder / "task.py").write_text(TASK)
        quiet = ["--quiet", "--disable-pip-version-check"]
        commands: dict[str, list[str]] = {
            "installs": [python, "-m", "pip", "install", *quiet, f"{wheel}[lab]"],
            "fits": [python, "-m", "pip", "check"],
            "version is": [optiml, "--version"],
            "doctor": [optiml, "doctor"],
            "check": [optiml, "check", "task.py", "--device", "emulated"],
            "%load_ext": [python, "-c", IN_A_SHELL],
            "JupyterLab": [python, "-m", "jupyterlab.labextensions", "list"],
        }
        checks = []
        for what, command in commands.items():
            done = _attempt(command, folder)
            checks.append(_shown(_outcome(what, done)))
        all_of_it = sum(f.stat().st_size for f in (folder / "env").rglob("*") if f.is_file())
        print(f"    {all_of_it / 1e6:6.0f} MB with all that it needs, JupyterLab among it")
        return checks


def _outcome(what: str, done: subprocess.CompletedProcess[str]) -> Check:
    lines = [line for line in done.stdout.splitlines() if line.strip()] or ["done"]
    if done.returncode:
        return Check(
            what, "", f"exit status {done.returncode}: {(done.stderr or done.stdout)[-500:]}"
        )
    if what == "doctor" and (bad := [line for line in lines if line.startswith("NO ")]):
        return Check(what, "", "; ".join(bad))
    if what == "JupyterLab":
        return listed(done.stdout + done.stderr)
    return Check(what, lines[0] if what in ("version is", "check") else "done")


def _attempt(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that knows nothing of this repository, the user's settings, and Node."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPTIML_"))}
    clean["OPTIML_HOME"] = str(folder / "home")
    clean["PATH"] = str(Path(command[0]).parent)
    return subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )


def _same(what: str, found: set[str], wanted: set[str]) -> Check:
    missing, odd = sorted(wanted - found), sorted(found - wanted)
    wrong = [f"lacks {', '.join(missing[:3])}"] if missing else []
    wrong += [f"has {', '.join(odd[:3])}, which no commit has"] if odd else []
    return Check(what, f"all {len(wanted)} files and no others", "; ".join(wrong))


def _shown(check: Check) -> Check:
    print(check, flush=True)
    return check


def _git(root: Path, *words: str) -> str:
    return _run(["git", *words], root)


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
