"""Warps of a block that have nothing to do with each other; a block a small matrix; ends of items."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_SIZES = (1, 2, 5, 31, 33, 65, 127)


def _made(name: str, text: str, arrays: dict[str, Array], rng: Random, names: list[str]) -> Made:
    return Made(name, text, arrays, *sizes_of(rng, names, _SIZES))


def warp_rows(rng: Random) -> Made:
    """A warp a row, in a block of several."""
    warps = rng.choice([2, 4, 8])
    plane = rng.choice([0, 0, 1])
    if plane:
        block, lane = f"32, {warps}", "threadIdx.x"
        row = rng.choice([f"blockIdx.x * {warps} + threadIdx.y", "blockIdx.x * blockDim.y + w"])
        named = "int w = threadIdx.y;"
        grid = f"(rows + {warps - 1}) / {warps}"
    else:
        block = str(32 * warps)
        lane = rng.choice(["threadIdx.x % 32", "threadIdx.x & 31", "t % warpSize"])
        row, grid = rng.choice(
            [
                ("(blockIdx.x * blockDim.x + threadIdx.x) / 32", f"(rows * 32 + {32 * warps - 1}) / {32 * warps}"),
                (f"blockIdx.x * {warps} + (t >> 5)", f"cdiv(rows, {warps})"),
                ("blockIdx.x * (blockDim.x / 32) + w", f"rows / {warps} + 1"),
            ]
        )  # fmt: skip
        named = "int t = threadIdx.x, w = t / 32;"
    op, start = rng.choice([("s += {};", "0.0f"), ("s = fmaxf(s, {});", "-100.0f")])
    shuffle = rng.choice(["__shfl_xor_sync", "__shfl_down_sync"])
    other = f"{shuffle}(0xffffffff, s, d)"
    body = f"""\
{named}
const int lane = {lane};
int row = {row};
if (row >= rows) return;
float s = {start};
for (int j = lane; j < cols; j += 32) {op.format("a[row * cols + j]")}
for (int d = 16; d > 0; d /= 2) {op.format(other)}
if (lane == 0) out[row] = s{rng.choice(["", " * 2.0f", " + row"])};"""
    text = (
        f"#pragma optiml launch warps grid({grid}) block({block})\n"
        f"__global__ void warps(const float* a, float* out, int rows, int cols) {{\n"
        f"{indented(body)}\n}}\n"
    )
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("rows",), "zeros")}
    return _made("warp_rows", text, arrays, rng, ["rows", "cols"])


def matrices(rng: Random) -> Made:
    """A block a small matrix, a thread an element."""
    n = rng.choice([6, 8, 12, 16, 32])
    width = rng.choice([str(n), "N"])
    b, i, j = (rng.choice(pair) for pair in (("blockIdx.x", "b"), ("threadIdx.y", "i"), ("threadIdx.x", "j")))  # fmt: skip
    left = rng.choice([f"a[({b} * {width} + {i}) * {width} + k]", f"a[({b} * {width} + k) * {width} + {i}]"])  # fmt: skip
    right = f"c[({b} * {width} + k) * {width} + {j}]"
    inner = rng.choice([f"s += {left} * {right};", f"s = fmaxf(s, {left} - {right});"])
    guard = rng.choice(["", "", f"if ({i} < {j}) return;\n"])
    body = f"""\
int b = blockIdx.x, i = threadIdx.y, j = threadIdx.x;
{guard}float s = {rng.choice(["0", f"a[{b} * {width} * {width}]"])};
for (int k = 0; k < {width}; ++k) {inner}
out[({b} * {width} + {i}) * {width} + {j}] = s;"""
    text = (
        f"#define N {n}\n#pragma optiml launch boxes grid(m) block({rng.choice(['N', str(n)])}, {n})\n"
        f"__global__ void boxes(const float* a, const float* c, float* out, int m) {{\n"
        f"{indented(body)}\n}}\n"
    )
    whole = ("m", str(n * n))
    arrays = {"a": Array("f4", whole), "c": Array("f4", whole), "out": Array("f4", whole, "zeros")}
    return _made("matrices", text, arrays, rng, ["m"])


def ends(rng: Random) -> Made:
    """Items of which those at an end do something else."""
    n = rng.choice(["n", "n - 1", "(int)n"])
    at = rng.choice(["i", "k"])
    right = rng.choice([f"{at} + 1 < {n} ? x[{at} + 1] : 0.0f", f"{at} < n - 1 ? 2.0f : x[0]",
                        f"{at} >= n - 2 ? 1.0f : x[{at}]"])  # fmt: skip
    last = rng.choice([f"if ({at} + 1 >= n) {{ s = -s; }}", f"if ({at} >= 2) s *= 2; else s += 1;",
                       f"if ({at} == n - 1) return;", f"if (!({at} + 3 < n) && {at} > 1) s = 0;"])  # fmt: skip
    body = f"""\
int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i >= n) return;
const int k = i;
float s = x[i];
s += {right};
{last}
out[i] = s;"""
    text = (
        f"#pragma optiml launch ends grid(cdiv(n, {rng.choice([32, 64])})) block(64)\n"
        f"__global__ void ends(const float* x, float* out, int n) {{\n{indented(body)}\n}}\n"
    )
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("ends", text, arrays, *sizes_of(rng, ["n"], (2, 3, 33, 700, 4099)))


def parts(rng: Random) -> Made:
    """Three numbers an item to four, or two to one, the last item short."""
    some, more = rng.choice([(3, 4), (2, 2), (4, 1)])
    loads = "\n".join(
        f"int v{k} = " + (f"at + {k} < n ? x[at + {k}] : 0;" if k else "x[at];")
        for k in range(some)
    )
    stores = "\n".join(f"out[i * {more} + {k}] = v{k % some} + {k};" for k in range(more))
    body = f"""\
int i = blockIdx.x * blockDim.x + threadIdx.x;
int at = i * {some};
if (at >= n) return;
{loads}
{stores}"""
    text = (
        f"#pragma optiml launch parts grid(((n + {some - 1}) / {some} + 63) / 64) block(64)\n"
        f"__global__ void parts(const unsigned char* x, unsigned char* out, int n) {{\n{indented(body)}\n}}\n"
    )
    arrays = {"x": Array("u1", ("n",)), "out": Array("u1", (f"{more}*n",), "zeros")}
    return Made("parts", text, arrays, *sizes_of(rng, ["n"], (1, 3, 100, 4001)))


FAMILY = (warp_rows, matrices, ends, parts)
