"""Small problems of one thread each in registers."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import Kernel, where_legal
from optiml_magic.kernels.primitives.endings import ended
from optiml_magic.kernels.primitives.owned import hold, unroll
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
"""
SUMS = """\
    for (int r = 0; r < 4; r++) {
        float s = 0.0f;
        for (int k = 0; k <= r; k++) s += a[4 * i + k];
        c[4 * i + r] = s;
    }
"""
# As a triangle is solved: from the last one back, each by those behind it.
BACK = """\
    for (int r = 3; r >= 0; r--) {
        float s = a[4 * i + r];
        for (int k = r + 1; k < 4; k++) s -= 0.5f * c[4 * i + k];
        c[4 * i + r] = s;
    }
"""
# As a matrix is eliminated in its place: nothing is stored to its first row.
IN_PLACE = """\
    for (int k = 0; k < 3; k++)
        for (int r = k + 1; r < 3; r++) {
            c[9 * i + r * 3 + k] *= a[9 * i + k];
            for (int q = k + 1; q < 3; q++)
                c[9 * i + r * 3 + q] -= c[9 * i + r * 3 + k] * c[9 * i + k * 3 + q];
        }
"""


def program(body: str) -> str:
    return f"{HEAD}{body}}}\n"


def ran(before: str, after: str, elements: int) -> str:
    arrays = {name: Array("f4", (f"{elements} * n",)) for name in "ac"}
    return end_of(before, after, arrays, {"n": 70}, {"n": 3})


def test_a_place_of_the_same_name_as_ours_stays() -> None:
    text = re.sub(r"\bi\b", "at", program(SUMS))
    after = written(hold(kernel_of(text), 0))
    assert "a[at * 4 + at_2]" in after
    assert ran(text, after, 4) == "same"


def test_by_vectors_and_unrolled() -> None:
    text = program(SUMS)
    after = written(hold(kernel_of(text), 0))
    for now in (
        "    alignas(16) float a_own[4];\n    if ((size_t)&a[i * 4] % 16 == 0) {\n",
        "    #pragma unroll\n    for (int r = 0; r < 4; r++) {",
        "        #pragma unroll\n        for (int k = 0; k <= r; k++) s += a_own[k];",
        "c_own[r] = s;",
        (
            "*reinterpret_cast<float4*>(&c[i * 4 + at]) = "
            "*reinterpret_cast<const float4*>(&c_own[at]);"
        ),
    ):
        assert now in after
    assert "c_own[at] = c[" not in after  # nobody asks for its first values
    assert ran(text, after, 4) == "same"


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        (SUMS.replace("float s = 0.0f", "float s = c[4 * i + r]"), 4),
        (SUMS.replace("4 * i", "5 * i + 1"), 6),  # the fifth of five stays
        (SUMS.replace("4 * i + r]", "4 * i + 3 - r]"), 4),
        (SUMS.replace("c[4 * i + r] = s;", "if (r > 1) c[4 * i + r] = s; else "
                      "c[4 * i + r] = s + 1.0f;"), 4),
        (SUMS.replace("float s = 0.0f", "if (a[4 * i + r] > 0.5f) continue; float s = 0.0f")
         .replace("r++) {", "r++) { c[4 * i + r] = 2.0f;"), 4),
        (f"    for (int t = 0; t < 2; t++) {{\n{SUMS}    }}\n".replace("4 * i", "8 * i + 4 * t"), 8),
        (BACK, 4),
        (BACK.replace("r + 1; k < 4; k++", "3; k > r; --k"), 4),
        (SUMS.replace("r = 0; r < 4", "r = 2; r < 6").replace("k = 0; k <= r", "k = r; k < r + 2")
         .replace("c[4 * i + r]", "c[4 * i + r - 2]").replace("+ k]", "+ k - 2]"), 5),
        (IN_PLACE, 9),
        (IN_PLACE.replace("9 * i", "12 * i + n % 3"), 14),
        (IN_PLACE.replace("c[9 * i + r * 3 + k] *=", "if (r > 1 || a[9 * i] > 0.5f) "
                          "c[9 * i + r * 3 + k] *="), 9),
    ],
)  # fmt: skip
def test_it_does_the_same(body: str, elements: int) -> None:
    text = program(body)
    made = hold(kernel_of(text), 0)
    assert ran(text, written(made), elements) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (SUMS.replace("r < 4", "r < n"), "how many rounds a loop has is not a number, line 5"),
        (SUMS.replace("c[4", "if (s > 1.0f) break; c[4"), "the loop has another way out, line 5"),
        (SUMS.replace("r < 4", "r < 400").replace("k <= r", "k <= 90"),
         "its loops have too many rounds to be written out, line 5"),
        (SUMS.replace("a[4 * i + k]", "a[k * n + i]").replace("c[4 * i + r]", "c[r * n + i]"),
         "no elements that lie together are a thread's own, line 5"),
        (SUMS.replace("a[4 * i + k]", "1.0f").replace("c[4", "if (s > 1.0f) c[4"),
         "no elements that lie together are a thread's own, line 5"),
        (SUMS.replace("a[4 * i + k]", "a[k]").replace("c[4 * i + r]", "c[4 * (n - 1) + r]"),
         "no elements that lie together are a thread's own, line 5"),
        (SUMS.replace("a[4 * i + k]", "1.0f").replace("r < 4; r++", "r < 8; r += 2"),
         "no elements that lie together are a thread's own, line 5"),
        # The first of four is perhaps another thread's last, which it stores to.
        (SUMS.replace("r = 0;", "r = 1;").replace("float s = 0.0f", "float s = c[3 * i]")
         .replace("a[4 * i + k]", "c[3 * i + k]").replace("c[4 * i + r]", "c[3 * i + r]"),
         "no elements that lie together are a thread's own, line 5"),
        (SUMS.replace("a[4 * i + k]", "c[k]").replace("float s", "{ int k = r; } float s"),
         "a local has the name of a counter, line 5"),
    ],
)  # fmt: skip
def test_refused(body: str, why: str) -> None:
    assert refused(hold(kernel_of(program(body)), 0)) == why


def test_a_local_array() -> None:
    text = program(
        "    float v[3];\n    for (int j = 0; j < 3; j++) v[j] = a[3 * i + j];\n"
        "    #pragma unroll 1\n    for (int j = 0; j < 3; j++) c[3 * i + j] = v[2 - j];\n"
    )
    after = written(unroll(kernel_of(text), 0))
    assert "    #pragma unroll\n    for (int j = 0; j < 3; j++) v[j] = a[3 * i + j];" in after
    assert ran(text, after, 3) == "same"


WALK = """\
    for (int r = 0; r < M; r++) {
        TYPE s = a[M * i + r];
        for (int k = 0; k <= r; k++) s += a[M * i + k];
        c[M * i + r] = s;
    }
"""


def walk(count: int, kind: str = "float", body: str = WALK) -> str:
    return (
        program(body.replace("M", str(count))).replace("TYPE", kind).replace("float*", f"{kind}*")
    )


@pytest.mark.parametrize(
    ("count", "kind", "moves"),
    sampled(
        [
            (8, "float", "load_pieces<2, 2>"),
            (24, "float", "load_pieces<6, 6>"),
            (40, "float", "load_pieces<10, 5>"),
            (9, "float", "load_units<9>(reinterpret_cast<unsigned int*>(a_own)"),
            (6, "int", "load_units<3>(reinterpret_cast<uint2*>(a_own)"),
            (5, "double", "load_units<5>(reinterpret_cast<uint2*>(a_own)"),
            (20, "unsigned char", "load_units<5>(reinterpret_cast<unsigned int*>(a_own)"),
        ],
        3,
    ),
)
def test_a_warp_brings_its_records(count: int, kind: str, moves: str) -> None:
    text = walk(count, kind)
    after = written(hold(kernel_of(text), 0, together=True))
    assert moves in after
    code = {"float": "f4", "int": "i4", "double": "f8", "unsigned char": "u1"}[kind]
    arrays = {name: Array(code, (f"{count} * n",)) for name in "ac"}
    assert end_of(text, after, arrays, {"n": 70}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    "body",
    sampled(
        [
            WALK.replace("TYPE s = a", "TYPE s = c"),
            WALK.replace("M * i", "1 + M * i"),  # begins at no multiple of 16 bytes
            WALK.replace("c[M * i + r] = s", "c[M * i + r] = s * a[M * i + (M - 1 - r)]"),
            "    if (i % 3 == 1) return;\n" + WALK,  # no warp is whole
            "    if (a[M * (i - i % 32)] > 0.5f) {\n" + WALK + "    }\n",  # some warps go there
        ],
        2,
    ),
)
@pytest.mark.parametrize("count", sampled([7, 8], 2))
def test_records_wherever_they_lie(body: str, count: int) -> None:
    text = walk(count, body=body)
    after = written(hold(kernel_of(text), 0, together=True))
    arrays = {name: Array("f4", (f"{count} * n + 1",)) for name in "ac"}
    assert end_of(text, after, arrays, {"n": 200}, {"n": 33}) == "same"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (walk(4), "what threads own does not lie in rows, line 5"),  # one vector each
        (walk(8).replace("8 * i", "9 * i"), "what threads own does not lie in rows, line 5"),
        (walk(8).replace("64", "48"), "its blocks are not whole warps of one row"),
        (walk(7, "unsigned char"), "what threads own does not lie in rows, line 5"),
    ],
)
def test_no_rows(text: str, why: str) -> None:
    assert refused(hold(kernel_of(text), 0, together=True)) == why


INVERSE = """\
    float p = a[6 * i], q = a[6 * i + 1], r = a[6 * i + 2];
    float s = a[6 * i + 3] + a[6 * i + 4] * a[6 * i + 5];
    if (p < 0.5f) {
        for (int j = 0; j < 6; j++) c[6 * i + j] = 1.0f;
        return;
    }
    for (int j = 0; j < 3; j++) c[6 * i + j] = p * q + (float)j;
    c[6 * i + 3] = r;
    c[6 * i + 4] = r + s;
    c[6 * i + 5] = c[6 * i + 4] * 0.5f;
"""
STEPS = """\
    float v[8];
    for (int j = 0; j < 8; j++) v[j] = a[8 * i + j];
    for (int t = 0; t < n % 3; t++) v[0] += v[7];
    for (int j = 0; j < 8; j++) c[8 * i + j] = v[7 - j];
"""


@pytest.mark.parametrize(
    ("body", "elements", "held"),
    sampled(
        [
            (INVERSE, 6, "ac"),
            (INVERSE.replace("c[6 * i + 5] =", "if (q > r) c[6 * i + 5] ="), 6, "a"),
            (INVERSE.replace("a[6 * i + 5]", "(q > r ? a[6 * i + 5] : 2.0f)"), 6, "c"),
            (INVERSE.replace("    if (p", "    if (q > 0.9f) return;\n    if (p"), 6, "a"),
            (STEPS, 8, "ac"),
            (STEPS.replace("a[8 * i + j]", "c[8 * i + j]"), 8, "c"),
            (f"    if (a[i] > 0.5f) {{\n{STEPS.replace('a[', 'c[')}    }}\n", 8, "c"),
            (f"    for (int t = 0; t < n; t += n / 2 + 1) {{\n{STEPS}    }}\n", 8, "ac"),
        ],
        4,
    ),
)
def test_all_that_a_thread_does(body: str, elements: int, held: str) -> None:
    text = program(body)
    after = written(hold(where_legal(ended, kernel_of(text)), None, together=True))
    assert {name for name in "ac" if f"float {name}_own[{elements}];" in after} == {*held}
    arrays = {name: Array("f4", (f"{elements} * n",)) for name in "ac"}
    assert end_of(text, after, arrays, {"n": 70}, {"n": 3}, rounds=True) == "same"


@pytest.mark.parametrize(
    "body",
    [
        INVERSE.replace("6 * i", "7 * i").replace("a[", "c["),
        STEPS.replace("j < 8; j++", "j < n; j++"),
        "    for (int t = 0; t < 3; t++) c[9 * i + t] = a[9 * i + t];\n",
        "    if (i > 5) c[i] = a[i]; else c[i] = 2.0f;\n",
    ],
)
def test_nothing_that_lies_together(body: str) -> None:
    text = program(body)
    assert "a thread's own" in refused(hold(kernel_of(text), None)) or "in rows" in refused(
        hold(kernel_of(text), None, together=True)
    )


def test_branches_that_leave() -> None:
    text = program("    if (a[i] > 1.0f) { c[i] = 1.0f; return; }\n    c[i] = a[i];\n")
    assert "} else {\n        c[i] = a[i];\n    }\n}" in written(ended(kernel_of(text)))
    for other in ("    c[i] = a[i];\n", "    if (n > 3) return;\n    c[i] = a[i];\n"):
        assert refused(ended(kernel_of(program(other)))) == "no branch ends in a way out"


ITEM = "struct Item { float x, y; int k; float u, v, w, m; };\n"
MOVE = "    c[i].x += c[i].u * 0.5f;\n    c[i].y = c[i].v - c[i].x;\n"
EACH = "".join(f"    c[i].{m} = a[i].{m};\n" for m in "xykuvwm")


@pytest.mark.parametrize(
    ("body", "held"),
    sampled(
        [
            (MOVE + "    if (c[i].x > 0.6f) c[i].k = i;\n", "c"),
            (MOVE + "    if (a[i].x > 0.6f) c[i].w = a[i].y;\n", "ac"),
            (EACH, "ac"),
            (EACH.replace("    c[i].w", "    if (a[i].x > 0.5f) c[i].w"), "a"),
            (EACH.replace("c[i].w", "c[n - 1 - i].w"), "a"),
            ("    Item& t = c[i];\n" + MOVE.replace("c[i]", "t"), "c"),
            ("    Item* t = c + i;\n" + MOVE.replace("c[i].", "t->"), "c"),
            ("    Item t = a[i];\n" + MOVE.replace("c[i]", "t") + "    c[i] = t;\n", "ac"),
        ],
        4,
    ),
)
def test_structures(body: str, held: str) -> None:
    text = program(body).replace("float*", "Item*").replace("__global__", f"{ITEM}__global__")
    after = written(hold(kernel_of(text), None, together=True))
    assert {name for name in "ac" if f"Item {name}_own[1];" in after} == {*held}
    array = Array("x:f4 y:f4 k:i4 u:f4 v:f4 w:f4 m:f4", ("n",))
    arrays = dict.fromkeys("ac", array)
    assert end_of(text, after, arrays, {"n": 70}, {"n": 3}, rounds=True) == "same"


def test_extents_that_are_tuned() -> None:
    """An index that no local holds is not spelled by the extent that blocks have at the moment."""
    text = program("    Item& t = c[i];\n" + MOVE.replace("c[i]", "t"))
    text = text.replace("float*", "Item*").replace("__global__", f"{ITEM}__global__")
    tuned = text.replace("#pragma", "#pragma optiml tune B in {64, 128} = 64\n#pragma", 1)
    tuned = tuned.replace("64)", "B)")
    assert "&c[((int)(blockIdx.x * blockDim.x + threadIdx.x))]" in written(
        hold(kernel_of(tuned), None, together=True)
    )
    apart = tuned.replace("c[i]", "c[blockIdx.x * blockDim.x + threadIdx.x * 1 + blockIdx.x * 0]")
    assert isinstance(hold(kernel_of(apart), None, together=True), Kernel)


def test_structures_that_more_than_one_thread_may_have() -> None:
    text = program(MOVE).replace("float*", "Item*").replace("__global__", f"{ITEM}__global__")
    for other in (
        text.replace("grid(cdiv(n, 64))", "grid(cdiv(n, 64), 2)"),
        text.replace("c[i]", "c[threadIdx.x]"),
        text.replace("c[i].v", "c[i ^ 1].v"),
    ):
        assert "a thread's own" in refused(hold(kernel_of(other), None, together=True))


def test_an_array_in_a_structure_that_a_pointer_leads_to_is_no_array_of_its_own() -> None:
    text = program("    c[i] = a->r[0] * i + a->r[1] * n + a->t;\n").replace("float* a", "Pose* a")
    text = text.replace("__global__", "struct Pose { float r[2]; float t; };\n__global__")
    assert "a thread's own" in refused(hold(kernel_of(text), None, together=True))
