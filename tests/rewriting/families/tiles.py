"""Kernels with shared memory and barriers already, and those whose threads write to one place."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, flat, indented, sizes_of


def _text(name: str, launch: str, parameters: str, body: str, above: str = "") -> str:
    return (
        f"{above}#pragma optiml launch {name} {launch}\n"
        f"__global__ void {name}({parameters}) {{\n{indented(body)}\n}}\n"
    )


_TREE = """\
for (int half = {w} / 2; half > 0; half {halved}) {{
if (t < half) part[t] {step} part[t + half]{end};
__syncthreads();
}}"""


def _tree(rng: Random, width: int | str) -> tuple[str, str]:
    """A reduction of ``part``, and how a thread adds to its own."""
    halved = rng.choice(["/= 2", ">>= 1", "= half / 2"])
    if rng.choice([0, 0, 1]):
        return _TREE.format(w=width, halved=halved, step="= fmaxf(part[t],", end=")"), "max"
    return _TREE.format(w=width, halved=halved, step="+=", end=""), "sum"


def block_rows(rng: Random) -> Made:
    """A block for every row."""
    width = rng.choice([32, 64])
    tree, kind = _tree(rng, rng.choice([width, "blockDim.x"]))
    add = "s += a[row * cols + j];" if kind == "sum" else "s = fmaxf(s, a[row * cols + j]);"
    start = "0.0f" if kind == "sum" else "-100.0f"
    body = (
        f"__shared__ float part[{width}];\nint t = threadIdx.x;\nint row = blockIdx.x;\n"
        f"float s = {start};\nfor (int j = t; j < cols; j += {rng.choice(['blockDim.x', str(width)])}) {add}\n"
        f"part[t] = s;\n__syncthreads();\n{tree}\n"
    )
    if rng.choice([0, 1]):
        body += "if (t == 0) out[row] = part[0];"
        out = ("rows",)
    else:
        body += f"for (int j = t; j < cols; j += blockDim.x) out[{flat(rng, 'row', 'cols', 'j')}] = a[row * cols + j] - part[0];"  # fmt: skip
        out = ("rows", "cols")
    text = _text("block_rows", f"grid(rows) block({width})", "const float* a, float* out, int rows, int cols", body)  # fmt: skip
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", out, "zeros")}
    return Made("block_rows", text, arrays, *sizes_of(rng, ["rows", "cols"], (1, 2, 5, 7, 31, 32, 33, 65, 127)))  # fmt: skip


def block_sums(rng: Random) -> Made:
    """A block for every so many elements."""
    width = rng.choice([32, 64, 128])
    tree, kind = _tree(rng, rng.choice([width, "blockDim.x"]))
    rest = "0.0f" if kind == "sum" else "-100.0f"
    body = (
        f"__shared__ float part[{width}];\nint t = threadIdx.x;\n"
        f"int i = blockIdx.x * {rng.choice(['blockDim.x', str(width)])} + t;\npart[t] = i < n ? x[i] : {rest};\n"
        f"__syncthreads();\n{tree}\nif (t == 0) out[blockIdx.x] = part[0];"
    )
    text = _text("block_sums", f"grid(cdiv(n, {width})) block({width})", "const float* x, float* out, int n", body)  # fmt: skip
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", (f"(n + {width - 1}) / {width}",), "zeros")}  # fmt: skip
    return Made("block_sums", text, arrays, *sizes_of(rng, ["n"], (1, 5, 31, 64, 100, 129, 200)))


def tiled_product(rng: Random) -> Made:
    """A product whose factors are in shared memory already."""
    w = rng.choice([4, 8, 16])
    above = rng.choice([f"#define T {w}\n", f"constexpr int T = {w};\n"])
    pad = rng.choice(["", " + 1"])
    body = f"""__shared__ float s[T][T{pad}];
__shared__ float u[T][T{pad}];
int col = blockIdx.x * T + threadIdx.x;
int row = blockIdx.y * T + threadIdx.y;
float sum = 0.0f;
for (int p = 0; p < k; p += T) {{
s[threadIdx.y][threadIdx.x] = row < m && p + threadIdx.x < k ? a[row * k + p + threadIdx.x] : 0.0f;
u[threadIdx.y][threadIdx.x] = col < n && p + threadIdx.y < k ? b[(p + threadIdx.y) * n + col] : 0.0f;
__syncthreads();
for (int q = 0; q < T; ++q) sum += s[threadIdx.y][q] * u[q][threadIdx.x];
__syncthreads();
}}
if (row < m && col < n) c[row * n + col] = sum{rng.choice(["", " * 0.5f"])};"""
    text = _text("tiled_product", f"grid(cdiv(n, {w}), cdiv(m, {w})) block({w}, {w})", "const float* a, const float* b, float* c, int m, int n, int k", body, above)  # fmt: skip
    arrays = {"a": Array("f4", ("m", "k")), "b": Array("f4", ("k", "n")), "c": Array("f4", ("m", "n"), "zeros")}  # fmt: skip
    return Made("tiled_product", text, arrays, *sizes_of(rng, ["m", "n", "k"], (1, 3, 8, 13, 16, 17, 31)))  # fmt: skip


def tiled_transpose(rng: Random) -> Made:
    """A transpose through shared memory, with or without a spare column."""
    w = rng.choice([8, 16])
    high = rng.choice([w, w // 2])
    pad = rng.choice(["", " + 1"])
    body = f"""__shared__ float tile[{w}][{w}{pad}];
int x = blockIdx.x * {w} + threadIdx.x;
int y = blockIdx.y * {w} + threadIdx.y;
for (int d = 0; d < {w}; d += {high}) {{
if (x < cols && y + d < rows) tile[threadIdx.y + d][threadIdx.x] = a[(y + d) * cols + x];
}}
__syncthreads();
x = blockIdx.y * {w} + threadIdx.x;
y = blockIdx.x * {w} + threadIdx.y;
for (int d = 0; d < {w}; d += {high}) {{
if (x < rows && y + d < cols) out[(y + d) * rows + x] = tile[threadIdx.x][threadIdx.y + d];
}}"""
    text = _text("tiled_transpose", f"grid(cdiv(cols, {w}), cdiv(rows, {w})) block({w}, {high})", "const float* a, float* out, int rows, int cols", body)  # fmt: skip
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("cols", "rows"), "zeros")}
    return Made("tiled_transpose", text, arrays, *sizes_of(rng, ["rows", "cols"]))


def halo(rng: Random) -> Made:
    """Neighbours of a line through shared memory."""
    width = rng.choice([32, 64])
    body = f"""__shared__ float s[{width + 2}];
int i = blockIdx.x * blockDim.x + threadIdx.x;
int t = threadIdx.x + 1;
s[t] = i < n ? a[i] : 0.0f;
if (threadIdx.x == 0) s[0] = i > 0 ? a[i - 1] : 0.0f;
if (threadIdx.x == blockDim.x - 1) s[t + 1] = i + 1 < n ? a[i + 1] : 0.0f;
__syncthreads();
{rng.choice(["if (i < n) out[i] = s[t - 1] + s[t] * 2.0f + s[t + 1];", "if (i >= n) return;" + chr(10) + "out[i] = s[t - 1] - s[t + 1];"])}"""  # fmt: skip
    text = _text("halo", f"grid(cdiv(n, {width})) block({width})", "const float* a, float* out, int n", body)  # fmt: skip
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("halo", text, arrays, *sizes_of(rng, ["n"], (1, 5, 31, 64, 100, 129)))


def warp_rows(rng: Random) -> Made:
    """A warp for every row, with shuffles."""
    warps = rng.choice([1, 2, 4])
    down = rng.choice(["__shfl_down_sync", "__shfl_xor_sync"])
    body = f"""int lane = threadIdx.x % 32;
int row = blockIdx.x * {warps} + threadIdx.x / 32;
if (row >= rows) return;
float s = 0.0f;
for (int j = lane; j < cols; j += 32) s += a[row * cols + j];
for (int d = 16; d > 0; d /= 2) s += {down}(0xffffffff, s, d);
if (lane == 0) out[row] = s;"""
    text = _text("warp_rows", f"grid(cdiv(rows, {warps})) block({32 * warps})", "const float* a, float* out, int rows, int cols", body)  # fmt: skip
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("rows",), "zeros")}
    return Made("warp_rows", text, arrays, *sizes_of(rng, ["rows", "cols"]))


def counts(rng: Random) -> Made:
    """Atomics on whole numbers, whose order does not show."""
    width = rng.choice([32, 64])
    body = f"""int i = blockIdx.x * blockDim.x + threadIdx.x;
if (i < n) {{
{rng.choice(["atomicAdd(&out[at[i]], 1);", "atomicAdd(&out[at[i]], i);", "atomicMax(&out[at[i]], i);"])}
}}"""
    text = _text("counts", f"grid(cdiv(n, {width})) block({width})", "const int* at, int* out, int n, int bins", body, "#pragma optiml init(out) = 0\n")  # fmt: skip
    arrays = {"at": Array("i4", ("n",), "below bins"), "out": Array("i4", ("bins",), "zeros")}
    return Made("counts", text, arrays, *sizes_of(rng, ["n", "bins"]))


def grid_sums(rng: Random) -> Made:
    """One sum of all elements: the blocks share the rounds of a loop."""
    width = rng.choice([32, 64])
    tree = _TREE.format(
        w=rng.choice([width, "blockDim.x"]), halved=rng.choice(["/= 2", ">>= 1"]), step="+=", end=""
    )
    stride = rng.choice(["blockDim.x * gridDim.x", f"gridDim.x * {width}"])
    body = f"""__shared__ int part[{width}];
int t = threadIdx.x, s = 0;
for (int i = blockIdx.x * {rng.choice(["blockDim.x", str(width)])} + threadIdx.x; i < n; i += {stride}) {rng.choice(["s += x[i];", "if (x[i] > 3) s += 1;"])}
part[t] = s;
__syncthreads();
{tree}
if (t == 0) atomicAdd(out, part[0]);"""
    text = _text("grid_sums", f"grid(3) block({width})", "const int* x, int* out, int n", body, "#pragma optiml init(out) = 0\n")  # fmt: skip
    arrays = {"x": Array("i4", ("n",)), "out": Array("i4", ("1",), "zeros")}
    return Made("grid_sums", text, arrays, *sizes_of(rng, ["n"], (1, 31, 64, 200, 333)))


FAMILY = (
    block_rows,
    block_sums,
    grid_sums,
    tiled_product,
    tiled_transpose,
    halo,
    warp_rows,
    counts,
)
