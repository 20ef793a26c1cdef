"""From a program's text to something that can be run."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.evaluation import stages
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.build import Diagnostic
from optiml_magic.model.task import Task
from optiml_magic.preparation import Prepared, advice, telling
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.source import syntax

TEXT = """
#define WIDTH 32
struct Pair {{ float a, b; }};
__constant__ float scale[2];
__device__ int launches;
#pragma optiml tune T in {{1, 2}} = 1
#pragma optiml launch k grid(cdiv(n, 32)) block(WIDTH_)
__global__ void k(const Pair* x, float* out, int n) {{
    int i = blockIdx.x * WIDTH + threadIdx.x;
    if (i >= n) return;
    out[i] = scale[0] * x[i].a + scale[1] * x[i].b * {value}f * T;
}}
""".replace("WIDTH_", "32")


def test_a_fresh_text_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.ones(64, np.dtype([("a", "f4"), ("b", "f4")]))
    scale, out = np.ones(2, np.float32), np.zeros(64, np.float32)
    inputs = {"x": pairs, "scale": scale, "out": out, "n": 64}
    problem = prepare(Task(TEXT.format(value="1.0"), inputs=inputs), seeds=1)
    [instance.case for instance in problem.instances]
    parsed: list[bytes] = []

    def counted(text: bytes) -> bytes:
        parsed.append(text)
        return text

    with session(resolve({"device": "emulated"}), counted=True) as members:
        context = Context.of(problem, members.tools, exact=False, thorough=False)
        monkeypatch.setattr(syntax, "_mask_attributes", counted)  # every parse goes through it
        made = stages.prepare(TEXT.format(value="3.25"), context)
    assert isinstance(made, Prepared), made
    assert len(parsed) == 1
    assert made.build.early_returns == (10,)


def test_a_program_is_the_same_however_many_sides_of_its_dispatch_there_was_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = {"x": np.ones(96, np.dtype([("a", "f4"), ("b", "f4")])), "scale": np.ones(2, "f4"),
              "out": np.zeros(96, "f4"), "n": 96}  # fmt: skip
    problem = prepare(Task(TEXT.format(value="1.0"), inputs=inputs), seeds=1)
    with session(resolve({"device": "emulated"}), counted=True) as members:
        context = Context.of(problem, members.tools, exact=False, thorough=False)
        text = TEXT.format(value="3.25")
        first = stages.prepare(text, context)
        assert isinstance(first, Prepared)
        extra = [(first.plans[0][0], first.plans[0][1])]
        monkeypatch.setattr(type(context.scrutiny.trials), "sides", lambda *_: (extra, ()))
        again = stages.prepare(text, context)
    assert isinstance(again, Prepared)
    assert len(again.plans) == len(first.plans) + 1
    assert again.identity == first.identity


def undefined(name: str) -> Diagnostic:
    return Diagnostic(3, "error", f'identifier "{name}" is undefined', name)


@pytest.mark.parametrize(
    ("error", "absent", "fix"),
    [
        (undefined("colums"), (), "did you mean `columns`?"),
        (undefined("depth"), (), "fix this line"),
        (undefined("helper"), (), "dropped host function `helper` (line 1): mark it __device__"),
        (undefined("real"), ("types.h",), "it may be of `types.h`, which the task lacks"),
        (Diagnostic(3, "error", 'expected a ";"'), ("types.h",), "fix this line"),
        (
            Diagnostic(1, "error", 'cannot open source file "own.h"'),
            (),
            "pass its folder with -I, or keep its text with %%optiml header own.h",
        ),
    ],
)
def test_what_to_do_about_an_error_of_the_compiler(
    error: Diagnostic, absent: tuple[str, ...], fix: str
) -> None:
    dropped = {"helper": "dropped host function `helper` (line 1)"}
    assert advice(error, dropped, absent, "void k(int columns, int row) {}").startswith(fix)


def test_the_error_of_a_name_is_shown_where_a_header_is_missing() -> None:
    errors = [Diagnostic(2, "error", "does not apply here"), undefined("real")]
    assert telling(errors, ("types.h",)).undefined == "real"
    assert telling(errors, ()).line == 2
