"""The pages of the rules: one for each, and what they say is what the code says."""

from __future__ import annotations

import re

import pytest

from benchmarks.rewriting.pages import PAGES, changed, gist, taught
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import Rewrite

_INDEX = PAGES / "README.md"
_FIX = "make rules"
_CODE = re.compile(r"```.*?```|`[^`\n]*`\B", re.DOTALL)


def test_there_is_a_page_for_each_rule_and_no_other() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert pages == {rule.name for rule in REWRITES}, _FIX


@pytest.mark.parametrize("rule", REWRITES, ids=lambda rule: rule.name)
def test_a_page_says_what_its_rule_says(rule: Rewrite) -> None:
    page, index = (p.read_text() for p in (PAGES / f"{rule.name}.md", _INDEX))
    assert taught(rule)
    assert f"\n\n{taught(rule)}\n\n" in page, _FIX
    assert f"| [`{rule.name}`]({rule.name}.md) | {gist(rule)} |" in index, _FIX


def test_pages_lead_to_pages_that_are_there() -> None:
    for path in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", _CODE.sub("", path.read_text())):
            assert (PAGES / link).exists(), f"{path.name}: {link}; {_FIX}"


def test_only_what_differs_is_shown() -> None:
    before = (
        "#pragma optiml launch k grid(1) block(32)\n"
        "__device__ float same(float x) {\n    return x;\n}\n"
        "// a comment\n"
        "__global__ void k(float* x) {\n    x[0] = same(x[0]);\n}\n"
    )
    fast = "__global__ void k_fast(float* x) {\n    x[0] = 1;\n}"
    launch = "#pragma optiml launch k_fast grid(1) block(32) if (n > 1)"
    old, new = changed(before, f"{launch}\n{before}{fast}\n")
    assert new == f"{launch}\n{fast}"
    assert "same(float x)" not in old
    assert "__global__ void k(float* x)" in old
