"""Loops that a round may end, shared by lanes: the same results, and what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.ended import asked_within
from optiml_magic.kernels.primitives.lanes import Lanes, share
from tests.present import drawn, examples, sampled
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

WARP = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (64, 128))
APART = Lanes("apart", 4, 64, (2, 4, 8, 32), (64, 128))
BLOCK = Lanes("block", 64, 64, (32, 64, 128), (32, 64, 128))
STACKED = Lanes("stacked", 2, 64, (2, 4), (64, 128))
ROWS = """\
__device__ bool ends(const float* a, int at) { return a[at] > 2.0f; }
__device__ bool tells(int at) { printf("%d", at); return at > 20; }
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, const float* b, const int* c, float* o, int h, int w, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h) return;
    float s = 0;
    int at = -1;
    BODY
    o[i] = s + at;
}
"""
ARRAYS = {
    "a": Array("f4", ("h", "w")), "b": Array("f4", ("w",)),
    "c": Array("i4", ("h", "w"), "below w"), "o": Array("f4", ("h",), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"h": 70, "w": 37, "d": 3}, {"h": 3, "w": 1, "d": 0}
LOOP = "for (int j = 0; j < w; ++j)"
PADDED = f"{LOOP} {{ int at = c[i * w + j]; if (at > w - 4) break; float v = a[i * w + j]; s += v * b[at]; }}"


def made(
    body: str, lanes: Lanes = WARP, arrays: dict[str, Array] = ARRAYS
) -> tuple[str, Kernel | Refused]:
    text = ROWS.replace("BODY", body)
    stand = Stand(Made("one", text, dict(arrays), dict(SIZES), dict(OTHERS)))
    at = (body.count("for (int r"),)
    plain = all_counted(where_legal(asked_within, kernel_of(text, stand.facts(text))), at)
    return text, plain if isinstance(plain, Refused) else share(plain, at, lanes)


#: Loops that end early, by how people write them.
BODIES = {
    "padding": PADDED,
    "what is loaded is what ends it": f"{LOOP} {{ if (a[i * w + j] > 2.0f) break; s += a[i * w + j]; }}",
    "another array ends it": f"{LOOP} {{ if (b[j] > 2.0f) break; s += a[i * w + j]; }}",
    "with what ends it": f"{LOOP} {{ s += a[i * w + j]; if (b[j] > 2.0f) break; }}",
    "where it ends": f"{LOOP} {{ float v = a[i * w + j]; if (v > 2.0f) {{ at = j; break; }} s += v; }}",
    "what it ends with": f"float last = -1; {LOOP} {{ float v = a[i * w + j]; if (v > 1.5f) {{ last = v * 2; break; }} s += v; }} s += last;",
    "counting ends it": f"int n = 0; {LOOP} {{ if (++n > 3) break; s += b[j]; }}",
    "a flag": f"bool met = false; {LOOP} {{ if (c[i * w + j] == d) {{ met = true; break; }} s += b[j]; }} s += met ? 9 : 1;",
    "by two ways": f"{LOOP} {{ float v = a[i * w + j]; if (v > 2.0f) break; if (v < -2.0f) {{ at = j; break; }} s += v; }}",
    "by two ways with values": f"{LOOP} {{ float v = a[i * w + j]; if (v > 1.5f) {{ at = j; break; }} float u = v * b[j];"
                               " if (u < -1.0f) { at = 100 + j; break; } s += u; }",
    "rounds that are left out": f"{LOOP} {{ float v = a[i * w + j]; if (v < 0) continue; if (v > 2.0f) break; s += v; }}",
    "rounds that are left out behind it": f"{LOOP} {{ float v = a[i * w + j]; if (v > 2.0f) break; if (v < 0) continue; s += v; }}",
    "the last is counted": f"int n = 0; {LOOP} {{ ++n; float v = a[i * w + j]; if (v < 0) continue; if (v > 1.5f) break; s += v; }} s += n;",
    "the ending is counted": f"{LOOP} {{ if (c[i * w + j] == d) {{ at += 2; break; }} at += 1; }}",
    "or else": f"{LOOP} {{ int n = c[i * w + j]; if (n != d) s += b[n]; else break; }}",
    "all that ends": f"{LOOP} {{ int n = c[i * w + j]; if (n != d) {{ float t = b[n]; s += t * t; }} else break; s += 1; }}",
    "the greatest before": f"float m = -9; {LOOP} {{ float v = a[i * w + j]; if (v > 2.0f) break; m = fmaxf(m, v); }} s = m;",
    "the place of the greatest": f"float m = -9; {LOOP} {{ float v = a[i * w + j]; if (v > 2.0f) break; if (v > m) {{ m = v; at = j; }} }} s = m;",
    "down": "for (int j = w - 1; j >= 0; --j) { float v = a[i * w + j]; if (v > 2.0f) { at = j; break; } s += v; }",
    "by two": "for (int j = 1; j < w; j += 2) { float v = b[j]; if (a[i * w] < v) { at = j; break; } s += v; }",
    "a wide counter": "for (long long j = 0; j < w; ++j) { if (c[i * w + j] == d) { at = (int)j; break; } s += b[j]; }",
    "the rest of a row": "for (int j = i; j <= w - 1; ++j) { if (c[i * w + j] == d) break; s += a[i * w + j]; }",
    "in another loop": "for (int r = 0; r < 3; ++r) for (int j = 0; j < w; ++j) { if (c[i * w + j] == r) break; s += b[j]; }",
    "rows of another loop": "for (int r = 0; r <= i; ++r) { for (int j = 0; j < w; ++j) { if (c[r * w + j] == d) { at += j; break; } s += b[j]; } }",
    "a function": f"{LOOP} {{ if (ends(a, i * w + j)) break; s += a[i * w + j]; }}",
    "loads by a function": f"{LOOP} {{ int at = __ldg(&c[i * w + j]); if (at == d) break; s += __ldg(b + at); }}",
    "a loop in it": f"{LOOP} {{ float t = 0; for (int l = 0; l < 3; ++l) t += b[j] * l; if (t > 6.0f) {{ at = j; break; }} s += t; }}",
    "what it asks by is changed first": f"{LOOP} {{ float v = a[i * w + j]; v *= b[j]; s += v; float u = v + 1; u *= 2; if (u > 3.0f) {{ at = 1; break; }} v = 0; s += v; }}",
    "a local of outside": f"float v; {LOOP} {{ v = a[i * w + j]; if (v > 2.0f) break; s += v; }}",
    "a pointer": f"{LOOP} {{ const float* p = a + i * w + j; if (*p > 2.0f) break; s += *p; }}",
    "while": "int j = 0; while (j < w) { if (c[i * w + j] == d) { at = j; break; } s += a[i * w + j]; j++; }",
    "how far it came": "int j = 0; while (j < w) { if (a[i * w + j] > 1.0f) break; s += a[i * w + j]; ++j; } at = j;",
    "how far it came in the head": "int j; for (j = 0; j < w; j += 1) { if (c[i * w + j] == d) break; s += b[j]; } at = j;",
    "how far it came by two ways": "int j = 1; while (j <= w) { float v = a[i * w + j - 1]; if (v > 1.5f) { at = 3; break; } if (v < -1.5f) break; s += v; j++; } s += j;",
    "in the test": "for (int j = 0; j < w && c[i * w + j] != d; j++) s += a[i * w + j];",
    "in the test before the end": "int j = 0; while (a[i * w] < 1.5f && j < w && b[j] < 1.9f) { s += b[j]; ++j; } at = j;",
    "in the test and in a round": "for (int j = 0; j < w && b[j] < 1.9f; ++j) { if (c[i * w + j] == d) { at = j; break; } if (b[j] < 0) continue; s += b[j]; }",
    "not in the test": "for (int j = 0; !(j >= w || c[i * w + j] == d); j++) s += a[i * w + j];",
    "endless": "int j = 0; while (true) { if (j >= w) break; float v = a[i * w + j]; if (v > 2.0f) break; s += v; j += 1; }",
    "a moving pointer": "const float* p = a + i * w; for (int j = 0; j < w; ++j, ++p) { if (*p > 2.0f) break; s += *p; }",
    "hinted": "\n#pragma unroll 4\n" + PADDED,
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(BODIES, every=2))
@pytest.mark.parametrize("lanes", [WARP, APART, BLOCK], ids=lambda one: one.group)
def test_rounds_behind_the_first_that_ends_it_are_none(name: str, lanes: Lanes) -> None:
    if lanes is not WARP and not drawn(name, 3):
        return
    if lanes is APART and name == "the place of the greatest":
        return  # what goes along with an extreme is not combined apart
    before, found = made(BODIES[name], lanes)
    text = kernel_of(written(found)).program
    assert "_first<" in text.text
    number = "THREADS" if lanes is BLOCK else "LANES"
    for count in lanes.counts[:: examples(2, 1)]:
        after = text.with_values({number: count}).text
        end = end_of(before, after, ARRAYS, SIZES, OTHERS, rounds=True)
        assert end in ("same", "narrowed"), after


#: Loops whose rounds say too much to each other, or ask for what may not be there.
STAY = {
    "the sum ends it": (f"{LOOP} {{ s += a[i * w + j]; if (s > 9.0f) break; }}", "depends on rounds before"),
    "a count ends it": (f"int n = 0; {LOOP} {{ if (n > 3) break; if (a[i * w + j] > 0) ++n; s += b[j]; }}", "depends on rounds before"),
    "what is stored ends it": (f"{LOOP} {{ if (o[j % h] > 0) break; s += a[i * w + j]; }}", "written as well"),
    "one beyond": (f"{LOOP} {{ if (a[i * w + j + 1] > 2.0f) break; s += b[j]; }}", "may end before"),
    "a place by the data": (f"{LOOP} {{ if (b[c[i * w + j]] > 2.0f) break; s += b[j]; }}", "is not known"),
    "rows by the data": ("for (int j = c[i * w]; j < c[i * w + 1]; ++j) { if (b[j] > 2.0f) break; s += b[j]; }", "not known"),
    "a value by two ways": (f"{LOOP} {{ at = 0; if (b[j] > 1.0f) {{ at = j; break; }} s += b[j]; }}", "from round to round"),
    "in a branch of a branch": (f"{LOOP} {{ if (i % 2) {{ if (b[j] > 2.0f) break; }} s += b[j]; }}", "does more"),
    "by a way that does more": (f"{LOOP} {{ if (b[j] > 2.0f) break; else s += 1; s += b[j]; }}", "does more"),
    "work between two ways": (f"{LOOP} {{ if (b[j] > 2.0f) break; s += b[j]; if (b[j] < -2.0f) break; }}", "between"),
    "a quotient": (f"{LOOP} {{ if (d / c[i * w + j] > 2) break; s += b[j]; }}", "divide by 0"),
    "what goes on": (f"float t = 1; {LOOP} {{ if (b[j] > 2.0f) break; t = b[j] - t * t; s += t; }}", "from round to round"),
    "where a pointer came": ("const float* p = b; while (p < b + w) { if (*p > 2.0f) break; s += *p; ++p; } at = (int)(p - b);", ""),
    "a function that waits": (f"{LOOP} {{ if (b[j] > __int_as_float(clock())) break; s += b[j]; }}", "may have side effects"),
    "a function that prints": (f"{LOOP} {{ if (tells(j)) break; s += b[j]; }}", "may have side effects"),
    "the sum in the test": ("for (int j = 0; j < w && s < 9.0f; ++j) s += b[j];", "depends on rounds before"),
    "a test that moves": ("int j = 0; while (j < w && b[j++] < 1.0f) s += b[j];", ""),
    "a test at the end": ("int j = 0; do { s += b[j]; ++j; } while (j < w && b[j] < 1.0f);", ""),
    "a quotient in the test": ("for (int j = 0; d != 0 && j < w / d; ++j) s += b[j];", ""),
    "what was added changes": (f"{LOOP} {{ float v = a[i * w + j]; s += v; v *= b[j]; if (v > 1.0f) break; }}", "changes what it asks by"),
    "what it asks by changes as it adds": (f"{LOOP} {{ float v = a[i * w + j]; {{ v *= 2; s += v; }} if (v > 1.0f) break; }}", "changes what it asks by"),
    "what it asked by changes": (f"{LOOP} {{ float v = a[i * w + j]; if (v > 1.5f) {{ at = 1; break; }} v = v * b[j]; if (v < -1.0f) {{ at = 2; break; }} s += v; }}", "changes what it asks by"),
    "what it asked by changes in a declaration": (f"{LOOP} {{ float v = a[i * w + j]; s += v; float u = (v *= b[j]); if (u > 1.0f) break; }}", "changes what it asks by"),
    "asking changes what it asks by": (f"{LOOP} {{ float v = a[i * w + j]; if ((v += 1) > 2.0f) break; s += v; }}", "changes something"),
    "an array of a round": (f"{LOOP} {{ float v[2] = {{b[j], 1}}; if (v[0] > 2.0f) break; s += v[0]; }}", "not a value"),
    "a reference": (f"{LOOP} {{ const float& v = b[j]; if (v > 2.0f) break; s += v; }}", ""),
    "one element": (f"{LOOP} {{ if (b[j] > 2.0f) break; o[i] = b[j]; }}", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_what_lanes_may_not_share_is_refused(name: str) -> None:
    body, reason = STAY[name]
    assert reason in refused(made(body)[1])


def test_arrays_that_end_before_the_loop_are_refused() -> None:
    short = {**ARRAYS, "c": Array("i4", ("h", "w - 1"), "below w")}
    assert "`c` may end before the loop does" in refused(made(PADDED, arrays=short)[1])
    text = ROWS.replace("BODY", PADDED)
    assert "is not known" in refused(share(kernel_of(text), (0,), WARP))


def test_the_launch_asks_for_what_rounds_behind_the_end_ask_by() -> None:
    after = written(made(PADDED)[1])
    assert "#pragma optiml require size(c) >= h * w" in after
    assert "size(a)" not in after
    assert "lanes_from" not in after


def test_lanes_that_only_meet_in_memory_do_not_find_the_first() -> None:
    assert "it is left early" in refused(made(PADDED, STACKED)[1])
