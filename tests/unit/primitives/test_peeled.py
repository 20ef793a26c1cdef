"""First rounds of loops over local tables, in front of these."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_row import one_row
from optiml_magic.kernels.primitives.peeled import peeled
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from tests.ideas import asked

from .alike import end_of, kernel_of, refused, written
from .test_one_row import ARRAYS, HEAD, SIZES

COST = "(x[i * m + a - 1] < x[i * m + b - 1] ? 0.5f : 1.25f)"
INNER = f"fminf(d[a - 1][b - 1] + {COST}, fminf(d[a - 1][b], d[a][b - 1]) + 1.0f)"


def filled(body: str, ends: str = "a <= m", columns: str = "b <= w") -> str:
    return (
        f"float d[16][16]; for (int a = 0; {ends}; ++a) for (int b = 0; {columns}; b++) {{ {body} }}"
        " y[i] = d[m][w];"
    )


@pytest.mark.parametrize(
    "body",
    [
        filled(f"if (a == 0 || b == 0) d[a][b] = 0.25f; else d[a][b] = {INNER};"),
        filled(f"if (a == 0) d[a][b] = b; else if (b == 0) d[a][b] = a; else d[a][b] = {INNER};"),
        filled(f"if (a == 0) d[a][b] = 0.5f * b; else if (b < 1) d[a][b] = a; else {{ float v = {INNER}; d[a][b] = v; }}"),
        filled(f"if (a > 0 && b > 0) d[a][b] = {INNER}; else d[a][b] = a + b;"),
        filled(f"if (!a || !b) {{ d[a][b] = a; }} else if ({COST} > 1.0f) d[a][b] = d[a - 1][b - 1]; else d[a][b] = fmaxf(d[a - 1][b], d[a][b - 1]);"),
        filled(f"d[a][b] = a == 0 || 0 == b ? 0.0f : {INNER};"),
        filled(f"d[a][b] = a == 0 ? 0.5f * b : b == 0 ? 0.5f * a : {INNER};", "a < 16", "b < 16").replace("i * m + a - 1", "0").replace("i * m + b - 1", "i").replace("d[m][w]", "d[15][15]"),
    ],
)  # fmt: skip
def test_a_border_stands_in_front(body: str) -> None:
    text = HEAD % body
    made = written(peeled(kernel_of(text)))
    assert "int a = 1;" in made
    assert "int b = 1;" in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"
    row = written(one_row(kernel_of(made)))
    assert end_of(text, row, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "body",
    [
        filled(f"if (a == 3 || b == 2) d[a][b] = 0.25f; else d[a][b] = {INNER};"),
        filled("if (b > a) d[a][b] = 0.25f; else d[a][b] = 1.0f;"),
        f"int q = 0; {filled(f'if (q++ > 9 || a == 0 || b == 0) d[a][b] = 0; else d[a][b] = {INNER};')}",
        filled(f"if (a == 0 || b == 0) {{ d[a][b] = 0.25f; continue; }} d[a][b] = {INNER};"),
        filled(f"if (a == 0 || b == 0) d[a][b] = 0.25f; else d[a][b] = {INNER};").replace("++a", "a += 2").replace("b++", "b += 2"),
        "for (int a = 0; a < m; ++a) { if (a == 0) y[i] = 0; else y[i] += x[i * m + a]; }",
    ],
)  # fmt: skip
def test_what_asks_otherwise_stays(body: str) -> None:
    assert "no loop over a local table" in refused(peeled(kernel_of(HEAD % body)))


def test_a_common_subsequence_is_swept() -> None:
    body = filled(
        f"if (a == 0 || b == 0) d[a][b] = 0; else if ({COST} > 1.0f) d[a][b] = d[a - 1][b - 1] + 1;"
        " else d[a][b] = d[a - 1][b] > d[a][b - 1] ? d[a - 1][b] : d[a][b - 1];"
    )
    text = (HEAD % body).replace("[16]", "[200]")
    ideas, _ = asked(SkewSweeps(), text)
    assert [idea.move for idea in ideas] == ["skew_sweeps 0 row", "skew_sweeps 0 sweeps 0"]
    for idea in ideas:
        made = idea.make()
        assert isinstance(made, str)
        assert end_of(text, made, ARRAYS, *SIZES) == "same"
