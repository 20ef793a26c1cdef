"""Programs as rules see them do what the ones that people write do."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest

from optiml_magic.proposers.rules import plain
from optiml_magic.source.program import parse_program
from tests.present import examples
from tests.twins.renaming import all_names
from tests.twins.tree import (
    Edit,
    Syntax,
    index_of,
    input_loads,
    repeated,
    src,
    with_prelude,
)
from tests.twins.tree import replace as replaced

from .drawing import made
from .offers import Offer
from .trying import IllMadeError, Stand
from .writing import Made

_LAUNCH = re.compile(r"^#pragma optiml launch .*$", re.MULTILINE)
_KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\(\w+\) )?\w+\((.*?)\)\s*\{", re.DOTALL)
_BODIES = (
    "if (place < 0) return from[0];\n    return from[place];",
    "if (place < 0) place = 0;\n    return from[place];",
    "int there = place + 1;\n    if (there <= 0) { return from[0]; } else { return from[there - 1]; }",
    "if (place < 0 || !from) return 0;\n    int there = place;\n    return place < 0 ? 0 : from[there];",
)


def under_other_names(one: Made) -> Made | None:
    """The kernel with parameters that are called otherwise than what its launch passes."""
    launches, heads = _LAUNCH.findall(one.text), _KERNEL.findall(one.text)
    if len(launches) != 1 or len(heads) != 1 or " args(" in launches[0] or "#define" in one.text:
        return None
    parameters = [re.findall(r"\w+", head)[-1] for head in heads[0].split(",")]
    if not {*parameters} <= {*all_names(one.text)}:
        return None
    body = re.sub(
        rf"(?<![.\w])({'|'.join(parameters)})\b", r"\1_given",
        one.text.replace(launches[0], "@launch"),
    )  # fmt: skip
    passed = f"{launches[0]} args({', '.join(parameters)})"
    return replace(one, text=body.replace("@launch", passed))


def by_lambdas(one: Made, rng: Random) -> Made | None:
    """The kernel with the loads of one array by a lambda that looks at the place first."""
    heads = [*_KERNEL.finditer(one.text)]
    pointers = (
        re.findall(r"const (float|int)\* (?:__restrict__ )?(\w+)", heads[0][1]) if heads else []
    )
    if len(heads) != 1 or not pointers:
        return None
    kind, array = rng.choice(pointers)
    body = rng.choice(_BODIES).replace("from", array).replace(f" || !{array}", "")
    head = f"\n    auto fetch = [&](int place) -> {kind} {{ {body} }};\n"
    rest = one.text[heads[0].end() :]
    called = re.sub(rf"(?<![\w&]){array}\[([^\[\]]*)\](?! *[-+]?=[^=])", r"fetch(\1)", rest)
    return replace(one, text=one.text[: heads[0].end()] + head + called) if called != rest else None


def within_bounds(one: Made, rng: Random) -> Made | None:
    """The kernel with loads by functions that look at the place first."""
    fetched = set[str]()

    def step(syntax: Syntax) -> list[Edit]:
        for node, array in input_loads(syntax):
            kind = re.sub(r"\bconst\b|\*|__restrict__", "", array.type).strip()
            if kind in ("float", "int", "double"):
                fetched.add(kind)
                return [replaced(node, f"fetch_{kind}({array.name}, {src(index_of(node))})")]
        return []

    text = repeated(one.text, step)
    for kind in sorted(fetched):
        body = rng.choice(_BODIES)
        head = f"__device__ {kind} fetch_{kind}(const {kind}* from, int place)"
        text = text and with_prelude(text, f"{head} {{\n    {body}\n}}")
    return replace(one, text=text) if text and fetched else None


@pytest.mark.parametrize("form", ["names", "bounds", "both", "lambdas"])
def test_what_rules_see_does_the_same(form: str) -> None:
    seen = called = 0
    for seed in range(examples(6, 400)):
        rng = Random(seed)
        one: Made | None = made(rng)
        if form in ("bounds", "both"):
            one = within_bounds(one, rng)
        if form in ("names", "both") and one is not None:
            one = under_other_names(one)
        if form == "lambdas":
            one = by_lambdas(one, rng)
        if one is None:
            continue
        try:
            stand = Stand(one)
            after = plain(parse_program(stand.text), one.sizes).text
            if after == stand.text:
                continue
            found = stand.applied(Offer("plain", "", after), stand.text)
        except IllMadeError:
            continue  # a load that nobody may make is in a function now
        assert found.sound, f"{found.end}: {found.detail}\n{stand.text}\n// becomes\n{after}"
        seen, called = seen + 1, called + ("_given" in stand.text and "_given" not in after)
    assert called if form in ("names", "both") else seen
