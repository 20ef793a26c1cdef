"""Every constant that a search decides by stands in docs/search.md, with the value of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "optiml_magic"
FILES = [
    *sorted((PACKAGE / "search").rglob("*.py")),
    *sorted((PACKAGE / "tuning").glob("*.py")),
    *sorted((PACKAGE / "engines").glob("*.py")),
    *(PACKAGE / "evaluation" / name for name in ("limit.py", "asking.py")),
    PACKAGE / "rewards.py",
    PACKAGE / "model" / "objective.py",
]
ROW = re.compile(r"^\| `(\S+)` `(\w+)` \| (.+?) \| .+ \|$", re.MULTILINE)
# Where every count begins, what no candidate has, and one candidate at a time: nothing is chosen.
NEUTRAL = {"0", "0.0", "-1.0", "1", "float('-inf')", "float('inf')", "False", "''"}
TREE = "tree.py"  # the fields of its nodes begin with what an empty node has


def _chosen(path: Path) -> Iterator[tuple[str, str]]:
    """Names of numbers in a module and in its frozen classes, with their text."""
    body = ast.parse(path.read_text()).body
    frozen = [one for one in body if isinstance(one, ast.ClassDef) and one.decorator_list]
    for one in (*body, *(line for each in frozen for line in each.body)):
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            name, value = one.targets[0].id, one.value
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value:
            name, value = one.target.id, one.value
        else:
            continue
        numbers = [n for n in ast.walk(value) if isinstance(n, ast.Constant)]
        of_numbers = numbers and all(isinstance(n.value, int | float) for n in numbers)
        if of_numbers and ast.unparse(value) not in NEUTRAL:
            yield name, ast.unparse(value)


def test_the_table_has_the_constants_of_the_code() -> None:
    rows = ROW.findall((ROOT / "docs" / "search.md").read_text())
    assert len({(file, name) for file, name, _ in rows}) == len(rows)
    told = {(file, name): ast.unparse(ast.parse(value)) for file, name, value in rows}
    found = {}
    for path in FILES:
        if path.name == TREE:
            continue
        for name, value in _chosen(path):
            place = path.relative_to(PACKAGE).as_posix().removeprefix("search/")
            found[place, name] = value
    assert found == told
