"""Items that a text deals out by hand: several to a thread, or blocks in a plane of them."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, sizes_of

_DOES = (
    "out[{0}] = 2.0f * x[{0}] + y[{0}];", "float v = x[{0}];\nout[{0}] = v > 0.0f ? v : 0.5f * v;",
    "float v = x[{0}] * y[{0}];\nif (v > 1.0f) out[{0}] = v;", "out[{0}] += x[{0}];",
    "if ({0} > 0) out[{0}] = x[{0}] - x[{0} - 1];", "out[{0}] = y[{0} % 7] * x[{0}];",
    "out[n - 1 - {0}] = x[{0}];",
)  # fmt: skip
_SIZES = (1, 2, 31, 33, 64, 257, 511, 1025)


def _made(family: str, text: str, rng: Random) -> Made:
    first, second = sizes_of(rng, ["n"], _SIZES)
    arrays = {"x": Array("f4", ("n",)), "y": Array("f4", ("n + 7",)), "out": Array("f4", ("n",))}
    return Made(family, text, arrays, first, second, inout=("out",))


def _kernel(name: str, grid: str, block: int, body: str, above: str = "") -> str:
    head = f"__global__ void {name}(const float* x, const float* y, float* out, int n)"
    launch = f"#pragma optiml launch {name} grid({grid}) block({block})"
    return f"{above}{launch}\n{head} {{\n{body}\n}}\n"


def dealt(rng: Random) -> Made:
    """A thread takes several items, the width of its block apart."""
    block, count = rng.choice([32, 64, 128]), rng.choice([2, 3, 4, 8, 16])
    wide = rng.choice(["blockDim.x", str(block)])
    many = rng.choice([str(count), "ITEMS"])
    thread = rng.choice(["threadIdx.x", "threadIdx.x", "tid"])
    start = rng.choice([
        f"blockIdx.x * {wide} * {many} + {thread}", f"blockIdx.x * ({wide} * {many}) + {thread}",
        f"{thread} + {many} * blockIdx.x * {wide}", f"blockIdx.x * {block * count} + {thread}",
    ])  # fmt: skip
    kind, does = rng.choice(["int", "int", "unsigned int", "const int"]), rng.choice(_DOES)
    head = rng.choice(
        [
            f"for (int k = 0; k < {many}; ++k) {{",
            f"for (int k = 0; k < {block * count}; k += {block}) {{",
        ]
    )
    at = (
        "start + k"
        if f"+= {block}" in head
        else rng.choice([f"start + k * {wide}", f"{wide} * k + start"])
    )
    way = rng.choice(["continue", "break", "return"])
    rounds = rng.choice([
        f"{head}\nint i = {at};\nif (i < n) {{\n{does.format('i')}\n}}\n}}",
        f"{head}\nint i = {at};\nif (i >= n) {way};\n{does.format('i')}\n}}",
        f"#pragma unroll\n{head}\nif (({at}) < n) {{\n{does.format(f'({at})')}\n}}\n}}",
    ])  # fmt: skip
    tid = "const int tid = threadIdx.x;\n" if thread == "tid" else ""
    body = f"{tid}{kind} start = {start};\n{rounds}"
    grid = rng.choice([f"cdiv(n, {block * count})", f"(n + {block * count - 1}) / {block * count}"])
    return _made("dealt", _kernel("dealt", grid, block, body, f"#define ITEMS {count}\n"), rng)


def copied(rng: Random) -> Made:
    """The same, once for each item in the text."""
    block, count = rng.choice([32, 64, 128]), rng.choice([2, 3, 4])
    wide = rng.choice(["blockDim.x", str(block)])
    steps = [f" + {k} * {wide}" if k > 1 else f" + {wide}" if k else "" for k in range(count)]
    does = rng.choice([d for d in _DOES if "float v" not in d])
    named = rng.choice([True, False])
    names = [f"i{k}" if named else f"i0{step}" for k, step in enumerate(steps)]
    lines = [f"int i0 = blockIdx.x * {wide} * {count} + threadIdx.x;"]
    if named:
        lines += [
            f"int {name} = i0{step};" for name, step in zip(names[1:], steps[1:], strict=True)
        ]
    order = [*names] if rng.choice([1, 1, 1, 0]) else [*reversed(names)]
    lines += [f"if ({at} < n) {{ {does.format(f'({at})' if ' ' in at else at)} }}" for at in order]
    return _made(
        "copied", _kernel("copied", f"cdiv(n, {block * count})", block, "\n".join(lines)), rng
    )


def in_a_plane(rng: Random) -> Made:
    """Blocks of two axes that are numbered as one."""
    block, across = rng.choice([32, 64, 128]), rng.choice([1, 3, 8])
    number = rng.choice([
        "blockIdx.y * gridDim.x + blockIdx.x", "blockIdx.x + blockIdx.y * gridDim.x",
        "gridDim.x * blockIdx.y + blockIdx.x", "by * gridDim.x + bx", "blockIdx.x * gridDim.y + blockIdx.y",
    ])  # fmt: skip
    start = rng.choice([
        "int b = {0};\nint i = b * blockDim.x + threadIdx.x;", "int i = ({0}) * blockDim.x + threadIdx.x;",
        "int i = blockIdx.x * blockDim.x + threadIdx.x + blockIdx.y * gridDim.x * blockDim.x;",
    ]).format(number)  # fmt: skip
    if "by" in start.replace("blockIdx", ""):
        start = f"int bx = blockIdx.x, by = blockIdx.y;\n{start}"
    does = rng.choice(_DOES).format("i")
    body = rng.choice([
        f"{start}\nif (i >= n) return;\n{does}", f"{start}\nif (i < n) {{\n{does}\n}}",
        f"{start}\nfor (; i < n; i += gridDim.x * gridDim.y * blockDim.x) {{\n{does}\n}}",
    ])  # fmt: skip
    grid = rng.choice(
        [f"{across}, cdiv(n, {across * block})"] * 3 + [f"cdiv(n, {block}), 1", f"cdiv(n, {block})"]
    )
    if rng.choice([1, 0, 0]):
        body = body.replace("* blockDim.x", "* blockDim.x * blockDim.y", 1)
    return _made("in_a_plane", _kernel("in_a_plane", grid, block, body), rng)


def in_numbers(rng: Random) -> Made:
    """Sizes that are macros, in whole blocks without a guard."""
    side = rng.choice([16, 32, 64])
    launch = "#pragma optiml launch numbered grid(N / B, N / B) block(B, B)"
    places = "int j = blockIdx.x * B + threadIdx.x;\nint i = blockIdx.y * blockDim.y + threadIdx.y;"
    does = rng.choice([
        "float s = 0.0f;\nfor (int k = 0; k < N; ++k) s += x[i * N + k] * y[k * N + j];\nout[i * N + j] = s;",
        "out[j * N + i] = x[i * N + j];", "out[i * N + j] = x[i * N + j] + y[i * N + j];",
        "out[i * N + j] = x[i * N + j] * y[j];",
    ])  # fmt: skip
    head = "__global__ void numbered(const float* x, const float* y, float* out, int n)"
    text = f"#define N {side}\n#define B 16\n{launch}\n{head} {{\n{places}\n{does}\n}}\n"
    arrays = {name: Array("f4", (str(side), str(side))) for name in ("x", "y", "out")}
    return Made("in_numbers", text, arrays, {"n": 1}, {"n": 2}, inout=("out",))


def rows_of_a_block(rng: Random) -> Made:
    """Threads that take several rows each, the height of their block apart."""
    tall, wide, rows = rng.choice([(2, 32, 16), (8, 32, 32), (4, 16, 16)])
    does = rng.choice([
        "out[(y + j) * n + x] = a[(y + j) * n + x] * 2.0f;", "out[x * m_ + y + j] = a[(y + j) * n + x];",
        "out[(y + j) * n + x] += a[x] * (y + j);", "out[(y + j) * n + x] = a[((y + j) % 3) * n + x];",
    ])  # fmt: skip
    guard = rng.choice(["if (x < n && y + j < m_) ", "if (y + j >= m_) break;\nif (x < n) "])
    body = (
        f"int x = blockIdx.x * {wide} + threadIdx.x;\nint y = blockIdx.y * {rows} + threadIdx.y;\n"
        f"for (int j = 0; j < {rows}; j += {tall}) {{\n{guard}{{ {does} }}\n}}"
    )
    text = (
        f"#pragma optiml launch rows_of_a_block grid(cdiv(n, {wide}), cdiv(m_, {rows})) block({wide}, {tall})\n"
        f"__global__ void rows_of_a_block(const float* a, float* out, int n, int m_) {{\n{body}\n}}\n"
    )
    first, second = sizes_of(rng, ["n", "m_"], (1, 3, 31, 33, 64, 65))
    arrays = {"a": Array("f4", ("m_ + 3", "n")), "out": Array("f4", ("m_", "n"))}
    return Made("rows_of_a_block", text, arrays, first, second, inout=("out",))


FAMILY = (rows_of_a_block, dealt, copied, in_a_plane, in_numbers)
