"""Scalars that the keys of a tile change at once, and those that follow key after key."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.weighted_tiles import by_tiles
from tests.unit.primitives.alike import kernel_of, unchanged, written
from tests.unit.primitives.test_weighted import ARRAYS, ATTENTION, OTHERS, SIZES

_BEGIN = ATTENTION[: ATTENTION.index("        float best")]
_END = ATTENTION[ATTENTION.index("    }\n    for (int e = 0; e < 12; e++) out") :]
_ADD = "for (int e = 0; e < 12; e++) a[e] = a[e] * c + p * v[j * 12 + e];"
_ONLINE = f"""float best = fmaxf(top, s), c = expf(top - best), p = expf(s - best);
sum = sum * c + p; {_ADD} top = best;"""
_BRANCHED = """if (s > top) {
    float c = expf(top - s);
    sum *= c;
    for (int e = 0; e < 12; e++) a[e] *= c;
    top = s;
}
float p = expf(s - top);
sum += p;
for (int e = 0; e < 12; e++) a[e] += p * v[j * 12 + e];"""
_APART = f"""float c, p;
if (s <= top) {{ c = 1.0f; p = expf(s - top); }}
else {{ c = expf(top - s); p = 1.0f; top = s; }}
sum = fmaf(sum, c, p); {_ADD}"""


def _attention(body: str, before: str = "") -> str:
    return _BEGIN.replace("    float top", f"    {before}\n    float top", 1) + body + _END


def _leaves_the_same(text: str) -> str:
    made = written(by_tiles(kernel_of(text)))
    assert unchanged(text, made, ARRAYS, SIZES, OTHERS, rounds=True) == "same"
    return made


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (_ONLINE, ""),
        (_BRANCHED, ""),
        (_BRANCHED.replace("s > top", "top < s"), ""),
        (_APART, ""),
        (_ONLINE.replace("fmaxf(top, s)", "top > s ? top : s"), ""),
        (_ONLINE.replace("fmaxf(top, s)", "s < top ? top : s"), ""),
        (_ONLINE.replace("expf(top - best)", "exp2f((top - best) * 1.44f)").replace(
            "expf(s - best)", "exp2f(1.44f * (s - best))"), ""),
        (_ONLINE.replace("fmaxf", "fminf").replace("expf(top - best)", "expf(-1.0f * (top - best))")
            .replace("expf(s - best)", "expf(-1.0f * (s - best))"), ""),
        ("s = s * 0.5f + few[j]; " + _ONLINE, ""),
        ("if (few[j]) s = -1e30f; " + _ONLINE, ""),
        (f"if (few[j] != 1) {{ {_ONLINE} }}", ""),
        (f"if (few[j] == 1) continue; {_BRANCHED}", ""),
        ("s = s * own - (i - j) * 0.01f; " + _ONLINE, "float own = q[i * 8] + 1.0f;"),
        (_ONLINE.replace("p * v", "p * own * v"), "float own = q[i * 8] + 1.0f;"),
        (_ONLINE.replace("p * v", "p * few[j] * v"), ""),
        (_ONLINE + " keys_seen++;", "int keys_seen = 0;"),
        (_ONLINE + " twice = twice * c + 2.0f * p;", "float twice = 0.0f;"),
        ("float p = expf(-s * s); sum += p; for (int e = 0; e < 12; e++) a[e] += p * v[j * 12 + e];",
         ""),
    ],
)  # fmt: skip
def test_an_extreme_may_come_first(body: str, before: str) -> None:
    text = _attention(body, before)
    for name in ("keys_seen", "twice"):
        if name in before:
            text = text.replace("(sum + 1.0f)", f"(sum + {name} + 1.0f)")
    made = _leaves_the_same(text)
    assert "row_from" in made
    assert "scores" not in made


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (_ONLINE.replace("expf(s - best)", "expf(s - top)"), ""),
        (_ONLINE.replace("expf(s - best)", "__expf(s - best)"), ""),
        (_ONLINE.replace("sum * c + p", "sum + p"), ""),
        (_ONLINE.replace("sum * c + p", "sum * p + c"), ""),
        (_ONLINE.replace("expf(top - best)", "0.9f"), ""),
        (_ONLINE.replace("top = best;", "top = best * 0.99f;"), ""),
        (_ONLINE.replace("top = best;", "if (few[j]) top = best;"), ""),
        (_ONLINE.replace("fmaxf(top, s)", "fmaxf(top, s + top * 0.01f)"), ""),
        (_BRANCHED.replace("top = s;", "top = s; last = j;"), "int last = 0;"),
        (_BRANCHED.replace("sum *= c;", ""), ""),
        (_BRANCHED.replace("top = s;", "top = s + 0.5f;"), ""),
    ],
)
def test_scalars_that_depend_on_the_order_follow_in_order(body: str, before: str) -> None:
    text = _attention(body, before)
    if before:
        text = text.replace("(sum + 1.0f)", "(sum + last + 1.0f)")
    made = _leaves_the_same(text)
    assert "row_from" not in made
    assert "scores" in made
