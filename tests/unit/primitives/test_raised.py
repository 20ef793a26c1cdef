"""Blocks that work together as one thread an item: the same results, and what is refused."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.raised import raised
from tests.present import drawn
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* a, float* o, int h, int w) {
    __shared__ float part[64];
    __shared__ float other[64];
    int t = threadIdx.x, row = blockIdx.x;
"""
SUM = HEAD + "    float sum = 0.0f;\n    for (int i = t; i < w; i += 64) sum += a[row * w + i];\n"
STORED = SUM + "    part[t] = sum;\n    __syncthreads();\n"
END = "    if (t == 0) o[row] = part[0];\n}\n"
#: How a block combines ``part``, by what it is called.
TREES = {
    "halves": "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }",
    "while": "int d = blockDim.x / 2; while (d) { if (t < d) part[t] = part[t] + part[t + d]; __syncthreads(); d /= 2; }",
    "modulo": "for (int d = 1; d < 64; d *= 2) { if (t % (2 * d) == 0) part[t] += part[t + d]; __syncthreads(); }",
    "index": "for (unsigned d = 1; d < blockDim.x; d <<= 1) { int i = 2 * d * t; if (i < 64) part[i] += part[i + d]; __syncthreads(); }",
    "warp": "if (t < 32) { volatile float* p = part; p[t] += p[t + 32]; } __syncthreads();"
    " for (int d = 16; d; d /= 2) { if (t < d) part[t] += part[t + d]; __syncthreads(); }",
    "serial": "if (t == 0) { float all = 0.0f; for (int i = 0; i < 64; ++i) all += part[i]; part[0] = all; }",
    "quarters": "if (t < 16) part[t] += part[t + 16] + part[t + 32] + part[t + 48]; __syncthreads();"
    " if (t == 0) for (int i = 1; i < 16; i++) part[0] += part[i];",
    "lanes": "float v = part[t]; for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);"
    " if (t % 32 == 0) other[t / 32] = v; __syncthreads(); if (t == 0) part[0] = other[0] + other[1];",
    "butterfly": "float v = part[t] + part[t ^ 32]; for (int d = 1; d < 32; d *= 2) v += __shfl_xor_sync(~0u, v, d);"
    " __syncthreads(); part[t] = v;",
}  # fmt: skip
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h",), "zeros")}
PLANE = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}
SIZES, OTHERS = {"h": 5, "w": 150}, {"h": 2, "w": 7}


@pytest.mark.parametrize("name", TREES)
def test_every_tree_is_one_sum(name: str) -> None:
    text = f"{STORED}    {TREES[name]}\n    __syncthreads();\n{END}"
    after = written(raised(kernel_of(text)))
    assert "grid(cdiv(h, 256)) block(256)" in after
    body = after.partition("{")[2]
    assert "__shared__" not in body
    assert "__syncthreads" not in body
    assert body.count("for (") == 1
    if drawn(name):
        assert end_of(text, after, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < w; i += 64) { int c = i + t; if (c < w) sum += a[row * w + c]; }",
        "for (int i = 0; i < w; i += blockDim.x) if (t + i < w) sum += a[row * w + t + i];",
    ],
)
def test_rounds_that_all_threads_count_alike(loop: str) -> None:
    head = f"{HEAD}    float sum = 0.0f;\n    {loop}\n    part[t] = sum;\n    __syncthreads();\n"
    text = f"{head}    {TREES['halves']}\n    __syncthreads();\n{END}"
    after = written(raised(kernel_of(text)))
    assert "__shared__" not in after
    assert end_of(text, after, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


#: Trees that leave something out, or take it twice, and threads that meet.
WRONG = {
    "stops early": "for (int d = 32; d > 1; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }",
    "begins late": "for (int d = 16; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }",
    "takes one twice": "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }"
    " if (t == 0) part[0] += part[1];",
    "another operation": "for (int d = 32; d > 1; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }"
    " if (t == 0) part[0] = fmaxf(part[0], part[1]);",
    "half of a warp": "float v = part[t]; for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d); part[t] = v;",
    "one warp's": "float v = part[t]; for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d); part[t] = v;",
    "not the first": "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); } part[0] = part[1];",
    "scaled on the way": "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += 0.5f * part[t + d]; __syncthreads(); }",
    "a difference": "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] -= part[t + d]; __syncthreads(); }",
    "by the data": "for (int d = 32; d > 0; d >>= 1) { if (t < d && a[t] > 0.0f) part[t] += part[t + d]; __syncthreads(); }",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_whole_is_refused(name: str) -> None:
    refused(raised(kernel_of(f"{STORED}    {WRONG[name]}\n    __syncthreads();\n{END}")))


TREE = TREES["halves"]
#: Kernels that are raised, with the arrays they have.
KERNELS = {
    "stored between": SUM.replace("float sum", "float v = a[row * w + t % w];\n    float sum") + """\
    if (t == 0) o[row] = v;
    float s = sum; sum = 0.0f;
    part[t] = s; __syncthreads();
    """ + TREE + """
    float mean = part[0] / w; __syncthreads();
    for (int i = t; i < w; i += 64) { float d = a[row * w + i] - mean; sum += d * d; }
    part[t] = sum; sum = 0.0f; __syncthreads();
    """ + TREE + """
    if (!t) { o[row] += part[0]; }
}
""",
    "softmax": HEAD + """\
    float m = -INFINITY;
    for (int i = t; i < w; i += blockDim.x) m = fmaxf(m, a[row * w + i]);
    part[t] = m; __syncthreads();
    for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] = fmaxf(part[t], part[t + d]); __syncthreads(); }
    m = part[0]; __syncthreads();
    float sum = 0.0f;
    for (int i = t; i < w; i += blockDim.x) { float e = expf(a[row * w + i] - m); o[row * w + i] = e; sum += e; }
    part[t] = sum; __syncthreads();
    """ + TREE + """
    for (int i = t; i < w; i += blockDim.x) o[row * w + i] /= part[0];
}
""",
    "one element a thread": HEAD.replace("row = blockIdx.x", "row = blockIdx.x, n = h * w, at = row * 64 + t") + """\
    float v = at < n ? a[at] : 0.0f;
    part[t] = v * v; __syncthreads();
    """ + TREE + """
    float norm = sqrtf(part[0]) + 1.0f;
    if (at < n) o[at] = v / norm;
}
""",
    "rows that blocks go through": HEAD.replace("row = blockIdx.x", "n = w").replace("grid(h)", "grid(2)") + """\
    for (int row = blockIdx.x; row < h; row += gridDim.x) {
        float sum = 0.0f;
        for (int i = t; i < n; i += 64) sum += a[row * n + i];
        part[t] = sum; __syncthreads();
        """ + TREE + """
        if (t == 0) o[row] = part[0] / n;
        __syncthreads();
    }
}
""",
    "added up in shared memory": HEAD + """\
    part[t] = 0.0f;
    for (int i = t; i < w; i += 64) part[t] += a[row * w + i];
    __syncthreads();
    if (t == 0) { float all = 0.0f; for (int i = 0; i < 64; ++i) all += part[i]; o[row] = all; }
}
""",
    "two at once": SUM.replace("sum = 0.0f", "sum = 0.0f, most = a[row * w]").replace(
        "sum += a[row * w + i];", "{ float v = a[row * w + i]; sum += v; if (v > most) most = v; }") + """\
    part[t] = sum; other[t] = most; __syncthreads();
    for (int d = 32; d > 0; d >>= 1) {
        if (t < d) { part[t] += part[t + d]; if (other[t] < other[t + d]) other[t] = other[t + d]; }
        __syncthreads();
    }
    if (t == 0) o[row] = part[0] - other[0];
}
""",
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    text = KERNELS[name]
    after = written(raised(kernel_of(text)))
    assert "__syncthreads" not in after
    arrays = ARRAYS if re.search(r"o\[row\]", text) else PLANE
    sizes = {"h": 5, "w": 64} if "one" in name else SIZES
    assert end_of(text, after, arrays, sizes, {"h": 3, "w": 64}, rounds=True) == "same"


TOTAL = """\
#pragma optiml init(o) = 0
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* o, int n) {
    __shared__ float part[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? a[i] : 0.0f;
    __syncthreads();
    %s
    if (t == 0) atomicAdd(o, part[0]%s);
}
"""


def test_blocks_that_add_to_one_place_add_each_for_themselves() -> None:
    text = TOTAL % (TREE, " / n")
    after = written(raised(kernel_of(text)))
    assert re.search(r"if \(i < n\) \{\s+atomicAdd\(o, a\[i\] / n\);", after)
    line = {"a": Array("f4", ("n",)), "o": Array("f4", ("1",), "zeros")}
    assert end_of(text, after, line, {"n": 512}, {"n": 4}, rounds=True) == "same"
    whole = (TOTAL % (TREE, " / n")).replace("float", "int").replace("0.0f", "0")
    for other in (*(TOTAL % (TREE, m) for m in (" * part[0]", " + 1.0f", " - n")), whole):
        found = raised(kernel_of(other))  # blocks add what they have together, or stay
        assert isinstance(found, Refused) or "for (int thread" in found.program.text


ALL = "float all = 0; for (int j = 0; j < 64; j++) all += part[j];"


@pytest.mark.parametrize(
    "end",
    [
        f"{ALL} atomicAdd(o, all);",
        f"float w = 2.0f; {ALL} if (n > 3) atomicAdd(o, all); o[1] = w;",
        f"{ALL} o[1] = 3.0f; atomicAdd(o, all);",
    ],
)
def test_what_one_thread_does_for_a_block_all_do_or_it_alone(end: str) -> None:
    first, _, _ = TOTAL.partition("    %s\n")
    text = f"{first}    if (t == 0) {{ {end} }}\n}}\n"
    after = raised(kernel_of(text))
    line = {"a": Array("f4", ("n",)), "o": Array("f4", ("2",), "zeros")}
    same = end_of(text, written(after), line, {"n": 512}, {"n": 4}, rounds=True)
    assert same == "same"


def test_a_value_that_is_multiplied_by_itself_is_a_part_as_any_other() -> None:
    square = "float v = i < n ? a[i] : 0.0f; v *= v; part[t] = v;"
    text = (TOTAL % (TREE, "")).replace("part[t] = i < n ? a[i] : 0.0f;", square)
    assert square in text
    after = written(raised(kernel_of(text)))
    assert "for (int thread" not in after
    line = {"a": Array("f4", ("n",)), "o": Array("f4", ("1",), "zeros")}
    assert end_of(text, after, line, {"n": 512}, {"n": 4}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("kind", "start", "step", "said"),
    [
        ("float", "0.0f", "part[t] += part[t + d]", ("the order of additions",)),
        ("float", "1.0f", "part[t] *= part[t + d]", ("the order of additions",)),
        ("float", "-INFINITY", "part[t] = fmaxf(part[t], part[t + d])", ()),
        ("int", "0", "part[t] += part[t + d]", ()),
    ],
)
def test_it_says_where_floats_are_added_up_in_another_order(
    kind: str, start: str, step: str, said: tuple[str, ...]
) -> None:
    inner = step.replace("part[t + d]", "a[row * w + i]").replace("part[t]", "sum")
    tree = f"for (int d = 32; d > 0; d >>= 1) {{ if (t < d) {step}; __syncthreads(); }}"
    text = f"{STORED}    {tree}\n{END}".replace("sum += a[row * w + i]", inner)
    text = text.replace("float", kind).replace(f"{kind} sum = 0.0f", f"{kind} sum = {start}")
    found = raised(kernel_of(text))
    assert isinstance(found, Kernel), found
    assert found.arithmetic == said


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("part[t] = fmaxf(part[t], part[t + d])", ()),
        ("part[t] = part[t] > part[t + d] ? part[t] : part[t + d]",
         ("what an extreme is where an element is NaN",)),
    ],
)  # fmt: skip
def test_it_says_where_elements_are_compared_in_another_order(
    step: str, said: tuple[str, ...]
) -> None:
    tree = f"for (int d = 32; d > 0; d >>= 1) {{ if (t < d) {step}; __syncthreads(); }}"
    element = "part[t] = t < w ? a[row * w + t] : -INFINITY;\n    __syncthreads();\n"
    found = raised(kernel_of(f"{HEAD}    {element}    {tree}\n{END}"))
    assert isinstance(found, Kernel), found
    assert found.arithmetic == said


def _refusal(text: str, old: str, new: str) -> str:
    assert old in text
    return refused(raised(kernel_of(text.replace(old, new))))


def test_what_is_refused() -> None:
    text = f"{STORED}    {TREE}\n{END}"
    written(raised(kernel_of(text)))
    assert "does not begin with nothing" in _refusal(text, "sum = 0.0f", "sum = 1.0f")
    assert "rounded on the way" in _refusal(text, "float part[64]", "double part[64]")
    assert "where in its block" in _refusal(text, "a[row * w + i]", "a[row * w + i + t]")
    assert "goes from round to round" in _refusal(text, "sum += a[row", "sum = 0.5f * sum + a[row")
    assert "stores part" in _refusal(
        text, "if (t == 0) o[row] = part[0]", "o[row * 64 + t] = part[t]"
    )
    assert "stores part" in _refusal(text, "o[row] = part[0]", "o[row] = part[1]")
    assert refused(raised(kernel_of(text.replace("t; i < w; i += 64", "t; i < w; i += 32"))))
    assert refused(raised(kernel_of(text.replace("t; i < w", "2 * t; i < w"))))
    assert refused(raised(kernel_of(text.replace("int i = t;", "int i = 63 - t;"))))
    assert "wait" in _refusal(
        text, "sum += a[row * w + i];", "{ sum += a[row * w + i]; __syncthreads(); }"
    )
    assert refused(
        raised(kernel_of(text.replace("if (t == 0) o", "if (t < 2) o[row + t] = part[t]; o")))
    )
    assert "number" in _refusal(text, "block(64)", "block(w)")
    alone = (
        HEAD + "    part[t] = 0.0f; __syncthreads();\n    if (t < w) o[row * w + t] = 1.0f;\n}\n"
    )
    assert "combine nothing" in refused(raised(kernel_of(alone)))
    body = "sum += a[row * w + i];"
    assert "not read" in _refusal(text, body, "{ if (a[row * w + i] > 9.0f) break; sum += 1.0f; }")
    assert "not read" in _refusal(text, body, "{ if (a[row * w + i] > 9.0f) return; sum += 1.0f; }")
    assert "`other`" in _refusal(text, body, "{ sum += a[row * w + i]; other[0] = 1.0f; }")
    assert refused(raised(kernel_of(text.replace("i < w;", "i < w - t;"))))
    assert "begin" in _refusal(text, "sum = 0.0f", "sum = t ? 0.0f : a[row]")
    assert "a part" in _refusal(text, "part[t] = sum;", "part[t] = sum / w;")
    gone = (
        "if (t > 60) return;\n    o[row * 64 + t] = a[row * 64 + t] - part[0];\n    if (t == 0) o"
    )
    assert "gone" in _refusal(text, "if (t == 0) o", gone)


@pytest.mark.parametrize("rounds", ["3", "64", "n"])
def test_rounds_around_those_that_threads_share_stay_rounds(rounds: str) -> None:
    text = f"""\
#pragma optiml launch k grid(h) block(32)
__global__ void k(const float* a, float* o, int h, int n) {{
    __shared__ float part[32];
    float sum = 0.0f;
    for (int g = 0; g < {rounds}; g++)
        for (int i = threadIdx.x; i < 100; i += 32) sum += a[(g * h + blockIdx.x) * 100 + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 16; s > 0; s /= 2) {{
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }}
    if (threadIdx.x == 0) o[blockIdx.x] = part[0];
}}
"""
    after = written(raised(kernel_of(text)))
    assert (after.count("for (") == 2) == (rounds != "3")
    arrays = {"a": Array("f4", ("64 * h * 100",)), "o": Array("f4", ("h",), "zeros")}
    assert end_of(text, after, arrays, {"h": 5, "n": 9}, {"h": 1, "n": 2}) in ("same", "rounds")


def test_a_walk_with_a_choice_in_each_round_is_given_up() -> None:
    """What each step is spelled with doubles in every round."""
    text = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, float* o, int h, int w) {
    __shared__ float tile[32][32];
    int t = threadIdx.x, row = blockIdx.x * 32;
    float x = 0.0f;
    for (int j = 0; j < w; j += 32) {
        for (int s = 0; s < 32; ++s) {
            if (row + t < h && j + s < w) x += a[(row + t) * w + j + s];
            tile[t][s] = x;
        }
        __syncthreads();
        for (int r = 0; r < 32; ++r)
            if (row + r < h && j + t < w) o[(row + r) * w + j + t] = tile[r][t];
        __syncthreads();
    }
}
"""
    assert "`x` becomes is too long to follow" in refused(raised(kernel_of(text)))


PLANES = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4), 2) block(8, 4)
__global__ void k(const int* a, int* o, int h, int w) {
    __shared__ int s[2][4][8];
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = blockIdx.y * 4 + threadIdx.y, p = 0, q = 0;
    if (x < w && y < h) { p = a[y * w + x]; q = p * p; }
    s[0][threadIdx.y][threadIdx.x] = p;
    s[1][threadIdx.y][threadIdx.x] = q;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        int f = 0, g = 0;
        for (int j = 0; j < 4; ++j) for (int i = 0; i < 8; ++i) { f += s[0][j][i]; g += s[1][j][i]; }
        STORES
    }
}
"""


@pytest.mark.parametrize(
    ("stores", "extents", "alone"),
    [
        ("atomicAdd(&o[blockIdx.z], f + g);", ("2",), False),
        ("atomicAdd(o + 2 * blockIdx.z, f); atomicAdd(o + 2 * blockIdx.z + 1, g);", ("4",), True),
        ("atomicAdd(&o[blockIdx.x], f); atomicAdd(&o[blockIdx.x], g);", ("w",), False),
        ("o[blockIdx.x * gridDim.y + blockIdx.y] = f - g;", ("h", "w"), False),
    ],
)
def test_threads_along_two_axes_are_rounds_of_both(
    stores: str, extents: tuple[str, ...], alone: bool
) -> None:
    """Those that add to one place along all of them stay threads."""
    text = PLANES.replace("STORES", stores)
    after = written(raised(kernel_of(text)))
    assert "__shared__" not in after
    assert ("thread %" in after) is not alone
    arrays = {"a": Array("i4", ("h", "w")), "o": Array("i4", extents, "zeros")}
    assert end_of(text, after, arrays, {"h": 9, "w": 21}, {"h": 1, "w": 3}) == "same"


@pytest.mark.parametrize("block", ["64", "8, 8"])
@pytest.mark.parametrize(
    "value",
    [
        "(threadIdx.x - 5) / 2",
        "(threadIdx.x - 5u < 3u)",
        "(h - threadIdx.x) / 3",
        "-threadIdx.x / 5",
        "(h - blockDim.x) / 3",
        "(w + a[0] - blockDim.x * 2) / 3",
    ],
)
def test_places_of_threads_wrap_around_as_they_did(block: str, value: str) -> None:
    place = "threadIdx.x" if block == "64" else "threadIdx.y * 8 + threadIdx.x"
    text = f"""\
#pragma optiml launch k grid(h) block({block})
__global__ void k(const int* a, unsigned int* o, int h, int w) {{
    __shared__ unsigned int s[64];
    s[{place}] = a[blockIdx.x * 64 + {place}] * ({value});
    __syncthreads();
    if ({place} == 0) {{
        unsigned int f = 0;
        for (int i = 0; i < 64; ++i) f += s[i];
        o[blockIdx.x] = f;
    }}
}}
"""
    after = written(raised(kernel_of(text)))
    arrays = {"a": Array("i4", ("h", "64")), "o": Array("u4", ("h",), "zeros")}
    assert end_of(text, after, arrays, {"h": 9, "w": 1}, {"h": 1, "w": 3}) == "same"


def test_two_locals_of_one_name_stay_two() -> None:
    twice = "".join(
        f"    {{ unsigned i = row * w + t + {first}; if (i < (row + 1) * w) sum += a[i]; }}\n"
        for first in (0, 64)
    )
    text = f"{HEAD}    float sum = 0.0f;\n{twice}    part[t] = sum;\n    __syncthreads();\n"
    text += f"    {TREES['halves']}\n{END}"
    after = written(raised(kernel_of(text)))
    assert "__shared__" not in after.partition("{")[2]
    assert end_of(text, after, ARRAYS, {"h": 5, "w": 150}, OTHERS, rounds=True) == "same"
