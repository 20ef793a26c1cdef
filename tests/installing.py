"""Packages of plug-ins, installed by pip from a wheel that is made here: no network, no backend."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path


def wheel(project: Path, into: Path) -> Path:
    """A pure wheel of a project: the modules beside its pyproject.toml and its entry points."""
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    name, version = table["name"].replace("-", "_"), table["version"]
    info = f"{name}-{version}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{n} = {where}\n" for n, where in members.items())
        for group, members in table.get("entry-points", {}).items()
    )
    files = {module.name: module.read_text() for module in project.glob("*.py")} | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {table['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    path = into / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
        record = [*files, f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{inside},,\n" for inside in record))
    return path


def installed(project: Path, into: Path) -> Path:
    """The folder that pip installed a project into."""
    target = into / "site"
    words = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", *words, "--target", str(target), str(wheel(project, into))],
        check=True,
        timeout=100,
    )
    return target
