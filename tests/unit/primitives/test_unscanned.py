"""Blocks that scan in shared memory, as one thread for each that adds up its elements in a row."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.unscanned import unscanned
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = "#pragma optiml launch k grid(h) block(64)\n"
TEXT = (
    HEAD + "__global__ void k(const {kind}* x, {kind}* y, {kind}* last, int h) {{\n"
    "    __shared__ {kind} s[64];\n    int t = threadIdx.x;\n{body}\n}}\n"
)
X, Y = "x[blockIdx.x * 64 + t]", "y[blockIdx.x * 64 + t]"
WAIT = "__syncthreads();"
BEGUN = f"s[t] = {X}; {WAIT}"
ONE = (
    f"for (int d = 1; d < 64; d *= 2) {{ {{kind}} v = 0; if (t >= d) v = s[t - d]; {WAIT}\n"
    f"s[t] += v; {WAIT} }}"
)
GUARDED = (
    f"for (int d = 1; d < blockDim.x; d <<= 1) {{ {{kind}} v = t >= d ? s[t - d] : 0; {WAIT}\n"
    f"if (t >= d) s[t] += v; {WAIT} }}"
)
HELD = (
    f"for (unsigned d = 1; d <= 32; d += d) {{ if (threadIdx.x >= d) own += s[threadIdx.x - d];\n"
    f"{WAIT} s[t] = own; {WAIT} }}"
)
WHILE = (
    f"int d = 1; while (d < 64) {{ {{kind}} v = s[t]; if (t - d >= 0) v += s[t - d]; {WAIT}\n"
    f"s[t] = v; d = d * 2; {WAIT} }}"
)
TWO = f"""\
__shared__ {{kind}} b[2][64]; int in = 0, out = 1; b[0][t] = {X}; {WAIT}
for (int d = 1; d < 64; d *= 2) {{
    if (t >= d) b[out][t] = b[in][t] + b[in][t - d];
    else b[out][t] = b[in][t];
    in = 1 - in; out = 1 - out;
    {WAIT}
}}
{Y} = b[in][t];"""
GREATEST = (
    f"for (int d = 1; d < 64; d *= 2) {{ {{kind}} v = s[t]; if (t >= d) v = BY(v, s[t - d]); {WAIT}\n"
    f"s[t] = v; {WAIT} }}"
)
TREE = f"""\
__shared__ {{kind}} b[128]; int off = 1; const int at = blockIdx.x * 64;
if (blockIdx.x * 2 + 1 >= h) return;
b[2 * t] = x[at * 2 + 2 * t]; b[2 * t + 1] = x[at * 2 + 2 * t + 1];
for (int d = 64; d > 0; d >>= 1) {{
    {WAIT}
    if (t < d) {{ int a = off * (2 * t + 1) - 1, c = off * (2 * t + 2) - 1; b[c] += b[a]; }}
    off *= 2;
}}
if (t == 0) b[127] = 0;
for (int d = 1; d < 128; d *= 2) {{
    off >>= 1;
    {WAIT}
    if (t < d) {{
        int a = off * (2 * t + 1) - 1, c = off * (2 * t + 2) - 1;
        {{kind}} v = b[a]; b[a] = b[c]; b[c] += v;
    }}
}}
{WAIT}
y[at * 2 + 2 * t] = b[2 * t]; y[at * 2 + 2 * t + 1] = b[2 * t + 1];"""
TEXT_OF_ZEROS = (
    f"{BEGUN} for (int d = 1; d < 64; d *= 2) {{ float v = t >= d ? s[t - d] : 0; float u = s[t];\n"
    f"{WAIT} s[t] = fmaxf(u, v); {WAIT} }} {Y} = s[t];"
)
SCANS = {
    "one array": f"{BEGUN} {ONE} {Y} = s[t];",
    "guarded": f"{BEGUN} {GUARDED} {Y} = s[t];",
    "in a register": f"{{kind}} own = {X}; s[t] = own; {WAIT} {HELD} {Y} = own;",
    "while": f"{BEGUN} {WHILE} {Y} = s[t];",
    "two arrays": TWO,
    "up and down a tree": TREE,
    "exclusive": f"{BEGUN} {ONE} {Y} = t == 0 ? 0 : s[t - 1];",
    "exclusive by difference": f"{{kind}} own = {X}; s[t] = own; {WAIT} {ONE} {Y} = s[t] - own;",
    "a branch before": f"{BEGUN} {ONE} if (t > 0) {Y} = s[t - 1]; else {Y} = 7;",
    "the last one's": f"{BEGUN} {ONE} {Y} = s[t]; if (t == 63) last[blockIdx.x] = s[t];",
    "in place": f"int i = blockIdx.x * 64 + t; s[t] = y[i] + x[i]; {WAIT} {ONE} y[i] = s[t];",
    "of what is computed": f"s[t] = {X} * 2 + t; {WAIT} {ONE} {Y} = s[t] * 3;",
    "a branch for what is there": f"int i = blockIdx.x * 64 + t; if (i < h * 50) s[t] = x[i];\n"
    f"else {{ s[t] = 0; }} {WAIT} {ONE} if (i < h * 50) y[i] = s[t];",
    "with the end of blocks": f"if (blockIdx.x >= h - 1) return; {BEGUN} {ONE} {Y} = s[t];",
    "to another local": f"{BEGUN} {ONE} {{kind}} mine = s[t]; {Y} = mine + 1;",
}  # fmt: skip


def text(body: str, kind: str = "float") -> str:
    return TEXT.format(kind=kind, body=body.replace("{kind}", kind))


def end(before: str, made: Kernel | Refused, dtype: str = "f4", *, rounds: bool = True,
        content: str = "numbers") -> str:  # fmt: skip
    arrays = {
        "x": Array(dtype, ("h", "64"), content), "y": Array(dtype, ("h", "64"), "numbers"),
        "last": Array(dtype, ("h",), "zeros"),
    }  # fmt: skip
    return end_of(before, written(made), arrays, {"h": 5}, {"h": 2}, rounds=rounds)


@pytest.mark.parametrize("kind", ["float", "int"])
@pytest.mark.parametrize("body", SCANS.values(), ids=SCANS)
def test_every_way_to_scan_is_a_running_sum(body: str, kind: str) -> None:
    before = text(body, kind)
    made = unscanned(kernel_of(before))
    assert "__syncthreads" not in written(made)
    exact = kind == "int"
    assert end(before, made, "i4" if exact else "f4", rounds=not exact) == "same"


@pytest.mark.parametrize("by", ["fmaxf", "fminf", "max", "min"])
def test_running_extremes(by: str) -> None:
    kind = "float" if by[0] == "f" else "int"
    before = text(f"{BEGUN} {GREATEST.replace('BY', by)} {Y} = s[t];", kind)
    made = unscanned(kernel_of(before))
    assert end(before, made, "f4" if kind == "float" else "i4", rounds=False) == "same"


def test_what_a_scan_is_converted_to_stays() -> None:
    before = text(f"{BEGUN} {ONE} int own = s[t]; {Y} = own + 0.25f;")
    made = unscanned(kernel_of(before))
    assert "= own + 0.25f" in written(made)
    assert end(before, made) == "same"


def test_lanes_share_what_a_block_scanned() -> None:
    ideas, _ = asked(RowToLanes(), text(SCANS["one array"]))
    first = next(i for i in ideas if "lanes of a warp share" in i.title)
    made = first.make()
    assert "lanes_before_sum" in str(made)
    assert first.arithmetic == ("the order of additions",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{BEGUN} {ONE.replace('+= v', '-= v')} {Y} = s[t];", "`-`"),
        (f"{BEGUN} {ONE.replace('+= v', '+= v * 2')} {Y} = s[t];", "`*`"),
        (f"{BEGUN} {ONE.replace('d *= 2', 'd += 1')} {Y} = s[t];", "an element twice"),
        (f"{BEGUN} {ONE.replace('d < 64', 'd < 32')} {Y} = s[t];", "more than the elements up to"),
        (f"{BEGUN} {ONE.replace('int d = 1', 'int d = 2')} {Y} = s[t];", "more than the elements"),
        (f"{BEGUN} {ONE.replace('d < 64', 'd < h')} {Y} = s[t];", "how many rounds"),
        (f"{BEGUN} {ONE.replace('t >= d', 't > d')} {Y} = s[t];", "more than the elements"),
        (f"{BEGUN} {ONE.replace(WAIT, '', 1)} {Y} = s[t];", "may still load"),
        (f"{BEGUN} {ONE} {Y} = s[63 - t];", "more than the elements"),
        (f"{BEGUN} {ONE} {Y} = s[63];", "more than the elements"),
        (f"{BEGUN} {ONE} {Y} = s[t - 1];", "not in `s`"),
        (f"s[t] = {X}; {ONE} {Y} = s[t];", "may not have stored yet"),
        (f"s[63 - t] = {X}; {WAIT} {ONE} {Y} = s[t];", "out of their order"),
        (f"if (t < h) s[t] = {X}; {WAIT} {ONE} {Y} = s[t];", "share no elements"),
        (f"s[t] = x[blockIdx.x * 64 + t] + y[blockIdx.x]; {WAIT} {ONE} {Y} = s[t];",
         "load what others store"),
        (f"{BEGUN} {ONE} y[blockIdx.x * 64 + t / 2] = x[t] + s[t]; y[0] = y[1];",
         "load what others store"),
        (f"{BEGUN} {ONE} atomicAdd(last, s[t]);", "add to one place"),
        (f"if (t >= h) return; {BEGUN} {ONE} {Y} = s[t];", "leave and others go on"),
        (f"{BEGUN} {ONE} float* p = s; {Y} = p[t];", "goes beyond"),
        (f"float* p = s; {BEGUN} {ONE.replace('s[t] +=', 'p[t] +=')} {Y} = s[t];", "goes beyond"),
        (f"{BEGUN} {ONE} float v = __shfl_up_sync(~0u, s[t], 1); {Y} = v;", "exchange values"),
        (f"{BEGUN} {ONE} for (int j = 0; j < 2; ++j) {Y} = s[t] * j;", "a loop asks"),
        (f"{BEGUN} {ONE} s[t] = 2 * s[t]; {WAIT} {Y} = s[t];", "`*`"),
        (f"{BEGUN} {ONE} s[t] = {X}; {WAIT} {Y} = s[t];", "something else"),
        (f"int n = 0; {BEGUN} {ONE.replace('{kind} v', 'n += d; float v')} {Y} = s[t] + n;",
         "`n` changes"),
        (TEXT_OF_ZEROS, "would begin with zero"),
        (f"{BEGUN} if (t < 32) {{ {ONE} }} {Y} = s[t];", "not all threads come to a barrier"),
        (f"{BEGUN} {ONE.replace('if (t >= d)', 'if (threadIdx.x - d >= 0)')} {Y} = s[t];",
         "not in `s`"),
        (f"{BEGUN} {ONE} if (t == 63) last[0] = s[0];", "more than the elements"),
        (f"{BEGUN} {ONE.replace('{kind} v', 'int v')} {Y} = s[t];", "into something else"),
        (f"__shared__ int b[64]; {BEGUN} {ONE} b[t] = s[t]; {WAIT} {Y} = b[t];", "several types"),
        (f"s[t] = {X}; s[t] = {X} + 1; {WAIT} {ONE} {Y} = s[t];", "out of their order"),
    ],
)  # fmt: skip
def test_what_is_no_scan_of_a_row_is_refused(body: str, reason: str) -> None:
    assert reason in refused(unscanned(kernel_of(text(body))))


def test_the_block_that_a_scan_is_for_is_no_longer_tuned() -> None:
    tuned = "#pragma optiml tune T in {64, 128} = 64\n"
    before = tuned + text(SCANS["one array"]).replace("block(64)", "block(T)")
    made = unscanned(kernel_of(before))
    assert "{64, 128}" not in written(made)
    assert end(before.replace("{64, 128}", "{64}"), made) == "same"


@pytest.mark.parametrize("block", ["16", "64, 2"])
def test_other_blocks_are_refused(block: str) -> None:
    before = text(SCANS["one array"]).replace("block(64)", f"block({block})")
    assert "rows of threads" in refused(unscanned(kernel_of(before)))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("float f(float v) { __syncthreads(); return v; }", "waits, or shares"),
        ("float f(float v) { __shared__ float o[64]; o[threadIdx.x] = v; return o[3]; }", ""),
        ("float f(float v) { __syncwarp(); return v; }", "`__syncwarp` is not followed"),
        ("float f(float v) { __threadfence(); return v; }", "`__threadfence` is not followed"),
    ],
)
def test_functions_that_do_more_than_compute_are_refused(function: str, reason: str) -> None:
    before = text(f"{BEGUN} {ONE} {Y} = f(s[t]);").replace(
        "__global__", f"__device__ {function}\n__global__"
    )
    assert reason in refused(unscanned(kernel_of(before)))
