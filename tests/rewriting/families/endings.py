"""Rows and tables that end early: padding, a mark, a limit; what is added up comes before."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_ENDS = ["c[i * m + j] == 1", "a[i * m + j] > 1.5f", "b[j] > 1.75f", "c[i * m + j] == i % 5",
         "a[i * m + j] * b[j] < -2.0f", "c[i * m + j] < 1 && b[j] > 0.0f"]  # fmt: skip
_ADDS = ["s += a[i * m + j];", "s += v * b[j];", "s += b[c[i * m + j]];", "n += 1;",
         "s = fmaxf(s, v);", "n |= c[i * m + j];", "if (v > s) { s = v; n = (int)j; }",
         "if (v < 0.0f) continue;\ns += v;", "if (v > 0.5f) n += (int)j;"]  # fmt: skip
_GIVES = ["", "", "at = (int)j;", "last = v;", "at = c[i * m + j];", "met = true;", "n += 2;"]


def ended(rng: Random) -> Made:
    """What each item has summed up when its row ended, and where that was."""
    counter = rng.choice(["int", "int", "int", "unsigned", "long long"])
    end = "m" if counter != "unsigned" else "(unsigned)m"
    head = rng.choice([
        f"for ({counter} j = 0; j < {end}; ++j)", f"for ({counter} j = 0; j < {end}; j++)",
        f"for ({counter} j = {rng.choice('012')}; j < {end}; j += {rng.choice('123')})",
        "for (int j = m - 1; j >= 0; --j)", "for (int j = i % 2; j <= m - 1; ++j)",
        "for (int j = i; j < m; j++)", "while",
    ])  # fmt: skip
    adds = rng.sample(_ADDS, rng.choice([1, 1, 2]))
    tests = rng.sample(_ENDS, rng.choice([1, 1, 1, 2]))
    round_ = ["float v = a[i * m + j];"]
    for at, test in enumerate(tests):
        gives = rng.choice(_GIVES)
        round_.append(rng.choice([f"if ({test}) {{ {gives} break; }}"] * 4 + [
            f"if ({test}) {{ {gives} {rng.choice(['s = b[0];', 'break;'])} break; }}".replace(
                "break; break;", "break;"),
            f"if (!({test})) {{ {adds[0]} }} else break;".replace("continue;", ";"),
        ]))  # fmt: skip
        if at == 0 and rng.random() < 0.2:
            round_.append("float u = v + b[j];\nif (u > 3.0f) continue;")
    where = rng.choice([len(round_)] * 5 + [1])
    if head == "while":
        adds = [a.replace("continue;", ";") for a in adds]
        round_ = [r for r in round_ if "continue" not in r]
        where = min(where, len(round_))
    round_[where:where] = adds
    inner = "\n".join(round_)
    more = f" && !({rng.choice(_ENDS)})" if rng.random() < 0.2 else ""
    bound, _, step = head.rpartition("; ")
    head = f"{bound}{more}; {step}" if bound else head
    loop = f"{head} {{\n{inner}\n}}\n"
    if head == "while":
        loop = f"int j = 0;\nwhile (j < m{more}) {{\n{inner}\n{rng.choice(['j++', '++j', 'j += 1'])};\n}}\n"
    if rng.random() < 0.15:
        loop = f"for (int r = 0; r < 2; ++r) {{\n{loop}s += (float)at;\n}}\n"
    body = (
        f"float s = {rng.choice(['0.0f', '0.0f', 'b[0]'])}, last = -1.0f;\nint n = 0, at = -1;\n"
        f"bool met = false;\n{loop}out[i] = s + last + (float)(n + at) + (met ? 0.5f : 0.0f);"
    )
    text = program(
        rng, "ended", "const float* a, const float* b, const int* c, float* out, int n0, int m",
        axes(rng, ("i", "n0")), body,
    )  # fmt: skip
    arrays = {
        "a": Array("f4", ("n0", "m")),
        "b": Array("f4", ("m",)),
        "c": Array("i4", ("n0", "m"), "below m"),
        "out": Array("f4", ("n0",), "zeros"),
    }
    return Made("ended", text, arrays, *sizes_of(rng, ["n0", "m"], (1, 2, 5, 31, 33, 65, 130, 300)))


FAMILY = (ended,)
