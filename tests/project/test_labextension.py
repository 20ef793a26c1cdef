"""The JupyterLab extension says what the package says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import optiml_magic
from optiml_magic.commands.parsers import cell_parser
from optiml_magic.magics import first
from optiml_magic.reports import marks
from optiml_magic.runs import saved

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "labextension"


def constant(file: str, name: str) -> str:
    text = (EXTENSION / "src" / file).read_text()
    found = re.search(rf"const {name} = '?([^';]+)'?;", text)
    assert found is not None, (file, name)
    return found[1]


def test_versions_schemas_and_types_are_those_of_the_package() -> None:
    package = json.loads((EXTENSION / "package.json").read_text())
    lock = json.loads((EXTENSION / "package-lock.json").read_text())
    assert package["version"] == lock["version"] == optiml_magic.__version__
    assert constant("marks.ts", "MARKS") == marks.MIME
    assert constant("marks.ts", "SCHEMA") == str(marks.SCHEMA)
    assert constant("saved.ts", "FORMAT") == saved.FORMAT
    assert constant("saved.ts", "SCHEMA") == str(saved.SCHEMA)
    assert constant("kernel.ts", "SCHEMA") == str(first.SCHEMA)
    assert constant("kernel.ts", "TARGET") == first.TARGET


def test_the_toolbar_knows_the_flags_of_every_command() -> None:
    """A change of a command belongs into ``labextension/src/flags.json`` too."""
    kept = json.loads((EXTENSION / "src" / "flags.json").read_text())
    (verbs,) = (a for a in cell_parser()._actions if a.dest == "verb")
    assert kept == {
        verb: {
            flag: action.nargs != 0
            for action in verbs.choices[verb]._actions
            for flag in action.option_strings
            if flag not in ("-h", "--help")
        }
        for verb in ("optimize", "synthesize", "check", "profile", "annotate", "run")
    }


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (EXTENSION / "package-lock.json").read_text()


def test_what_jupyterlab_shares_is_not_bundled() -> None:
    """Else two copies of an editor or of a widget library would not know each other."""
    package = json.loads((EXTENSION / "package.json").read_text())
    shared = package["jupyterlab"]["sharedPackages"]
    assert shared == {
        name: {"requiredVersion": version}  # of the oldest JupyterLab that is for
        for name, version in package["dependencies"].items()
        if name.startswith("@jupyterlab/")
    }
    bundled = EXTENSION.parent / "optiml_magic" / "labextension" / "static"
    if bundled.is_dir():
        licences = json.loads((bundled / "third-party-licenses.json").read_text())
        assert {each["name"] for each in licences["packages"]} <= {
            "@codemirror/legacy-modes", "css-loader", "style-loader",
        }  # fmt: skip
