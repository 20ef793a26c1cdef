"""Kernels whose blocks bring elements into shared memory, plainly or in a way that looks like it."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_LINES = (1, 5, 31, 64, 100, 129, 200)
_SIDES = (1, 3, 8, 13, 16, 17, 31)


def _text(name: str, launch: str, parameters: str, body: str, above: str = "") -> str:
    return (
        f"{above}#pragma optiml launch {name} {launch}\n"
        f"__global__ void {name}({parameters}) {{\n{indented(body)}\n}}\n"
    )


def _stored(rng: Random, place: str, test: str, value: str, other: str) -> str:
    """One element, or another value where a test fails."""
    return rng.choice([
        f"{place} = {test} ? {value} : {other};",
        f"if ({test}) {place} = {value}; else {place} = {other};",
        f"if ({test}) {{ {place} = {value}; }} else {{ {place} = {other}; }}",
        f"{place} = {other};\nif ({test}) {place} = {value};",
        f"{place} = !({test}) ? {other} : {value};",
    ])  # fmt: skip


def product(rng: Random) -> Made:
    """A product of tiles in many spellings; its rest adds zeros, or something else."""
    w = rng.choice([4, 8])
    flat, turned, above = rng.choice([0, 0, 1]), rng.choice([0, 0, 1]), f"#define T {w}\n"
    head, at = rng.choice([
        ("for (int p = 0; p < (k + T - 1) / T; ++p) {", "p * T"),
        ("for (int p = 0; p < k; p += T) {", "p"),
        ("for (int p = 0; p < (k - 1) / T + 1; p++) {", "T * p"),
        ("for (int p = 0; p < k / T; ++p) {", "p * T"),
    ])  # fmt: skip
    other = rng.choice(["0.0f", "0.0f", "0.0f", "0", "1.0f"])
    s, u = ("s[ty * T + {}]", "u[{} * T + tx]") if flat else ("s[ty][{}]", "u[{}][tx]")
    second = u.format("ty")
    inner = rng.choice([
        "for (int q = 0; q < T; ++q) ", f"for (int q = 0; q < T && {at} + q < k; ++q) ",
        "#pragma unroll\nfor (int q = 0; q < T; q++) ",
    ])  # fmt: skip
    b = f"b[col * k + {at} + ty]" if turned else f"b[({at} + ty) * n + col]"
    sum_ = rng.choice([f"sum += {s.format('q')} * {u.format('q')};",
                       f"{{ float d = {s.format('q')} - {u.format('q')}; sum += d * d; }}",
                       f"sum = fmaxf(sum, {s.format('q')} + {u.format('q')});"])  # fmt: skip
    room = ("[T * T]",) * 2 if flat else ("[T][T]", rng.choice(["[T][T]", "[T][T + 1]"]))
    end = rng.choice([
        "if (row < m && col < n) c[row * n + col] = sum;",
        "if (row >= m || col >= n) return;\nc[row * n + col] = sum * 0.5f;",
    ])  # fmt: skip
    body = (
        f"__shared__ float s{room[0]};\n__shared__ float u{room[1]};\n"
        "int tx = threadIdx.x, ty = threadIdx.y;\nint col = blockIdx.x * T + tx;\n"
        f"int row = blockIdx.y * T + ty;\nfloat sum = 0.0f;\n{head}\n"
        + _stored(rng, s.format("tx"), f"row < m && {at} + tx < k", f"a[row * k + {at} + tx]", other)
        + "\n" + _stored(rng, second, f"col < n && {at} + ty < k", b, other)
        + f"\n__syncthreads();\n{inner}{sum_}\n__syncthreads();\n}}\n{end}"
    )  # fmt: skip
    text = _text("product", f"grid(cdiv(n, {w}), cdiv(m, {w})) block({w}, {w})",
                 "const float* a, const float* b, float* c, int m, int n, int k", body, above)  # fmt: skip
    arrays = {"a": Array("f4", ("m", "k")), "b": Array("f4", ("n", "k") if turned else ("k", "n")),
              "c": Array("f4", ("m", "n"), "zeros")}  # fmt: skip
    return Made("brought product", text, arrays, *sizes_of(rng, ["m", "n", "k"], _SIDES))


def whole_tiles(rng: Random) -> Made:
    """A product without guards, of sizes that are whole tiles."""
    w = rng.choice([4, 8])
    walk = rng.choice([
        (f"for (int p = 0; p < n / {w}; ++p) {{\n"
        f"s[ty][tx] = a[row * n + p * {w} + tx];\nu[ty][tx] = b[(p * {w} + ty) * n + col];\n"),
        (f"for (int i = n * {w} * blockIdx.y, j = {w} * blockIdx.x; "
        f"i < n * {w} * blockIdx.y + n; i += {w}, j += {w} * n) {{\n"
        "s[ty][tx] = a[i + n * ty + tx];\nu[ty][tx] = b[j + n * ty + tx];\n"),
    ])  # fmt: skip
    body = (
        f"__shared__ float s[{w}][{w}], u[{w}][{w}];\nint tx = threadIdx.x, ty = threadIdx.y;\n"
        f"int col = blockIdx.x * {w} + tx, row = blockIdx.y * {w} + ty;\nfloat sum = 0.0f;\n{walk}"
        f"__syncthreads();\nfor (int q = 0; q < {w}; ++q) sum += s[ty][q] * u[q][tx];\n"
        "__syncthreads();\n}\nc[row * n + col] = sum;"
    )
    text = _text("whole_tiles", f"grid(n / {w}, n / {w}) block({w}, {w})",
                 "const float* a, const float* b, float* c, int n", body,
                 f"#pragma optiml require n % {w} == 0\n")  # fmt: skip
    arrays = {n: Array("f4", ("n", "n"), "zeros" if n == "c" else "numbers") for n in "abc"}
    sizes = [{"n": w * rng.choice([1, 2, 3])} for _ in range(2)]
    return Made("whole tiles", text, arrays, *sizes)


def halo(rng: Random) -> Made:
    """A line with its neighbours on both sides, brought by the first threads or in rounds."""
    w, r = rng.choice([32, 64]), rng.choice([1, 2, 3])
    rounds = (
        f"for (int e = threadIdx.x; e < {w + 2 * r}; e += {rng.choice(['blockDim.x', str(w)])}) {{\n"
        f"int g = blockIdx.x * {w} + e - {r};\n"
        + _stored(rng, "s[e]", "g >= 0 && g < n", "a[g]", "0.0f") + "\n}"
    )  # fmt: skip
    parts = (
        _stored(rng, f"s[threadIdx.x + {r}]", "i < n", "a[i]", "0.0f")
        + f"\nif (threadIdx.x < {r}) {{\n"
        + _stored(rng, "s[threadIdx.x]", f"i >= {r}", f"a[i - {r}]", "0.0f").replace(
            f"i >= {r}", f"i >= {r} && i - {r} < n")
        + "\n"
        + _stored(rng, f"s[threadIdx.x + {w + r}]", f"i + {w} < n", f"a[i + {w}]", "0.0f") + "\n}"
    )  # fmt: skip
    body = (
        f"__shared__ float s[{w + 2 * r}];\nint i = blockIdx.x * {w} + threadIdx.x;\n"
        f"{rng.choice([rounds, parts])}\n__syncthreads();\n"
        f"float v = 0.0f;\nfor (int d = {-r}; d <= {r}; ++d) v += s[threadIdx.x + {r} + d];\n"
        "if (i < n) out[i] = v;"
    )
    text = _text("halo", f"grid(cdiv(n, {w})) block({w})", "const float* a, float* out, int n", body)  # fmt: skip
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("brought halo", text, arrays, *sizes_of(rng, ["n"], _LINES))


def window(rng: Random) -> Made:
    """A plane with its borders and a small filter, both in shared memory."""
    w, h, r = *rng.choice([(8, 8), (16, 4), (8, 4)]), 1
    wide, high = w + 2 * r, h + 2 * r
    other = rng.choice(["0.0f", "0.0f", "2.0f"])
    body = (
        f"__shared__ float s[{high}][{wide}];\n__shared__ float f[9];\n"
        f"int t = threadIdx.y * {w} + threadIdx.x;\nif (t < 9) f[t] = b[t];\n"
        f"for (int e = t; e < {wide * high}; e += {w * h}) {{\n"
        f"int gy = blockIdx.y * {h} + e / {wide} - {r}, gx = blockIdx.x * {w} + e % {wide} - {r};\n"
        + _stored(rng, f"s[e / {wide}][e % {wide}]", "gx >= 0 && gx < n && gy >= 0 && gy < m",
                  "a[gy * n + gx]", other)
        + f"\n}}\n__syncthreads();\nint x = blockIdx.x * {w} + threadIdx.x;\n"
        f"int y = blockIdx.y * {h} + threadIdx.y;\n"
        + rng.choice(["if (x >= n || y >= m) return;\n", "if (x < n && y < m) {\n"])
        + "float v = 0.0f;\nfor (int i = 0; i < 3; ++i)\nfor (int j = 0; j < 3; ++j)\n"
        "v += s[threadIdx.y + i][threadIdx.x + j] * f[i * 3 + j];\nout[y * n + x] = v;"
    )  # fmt: skip
    body += "\n}" if "{\nfloat v" in body else ""
    text = _text("window", f"grid(cdiv(n, {w}), cdiv(m, {h})) block({w}, {h})",
                 "const float* a, const float* b, float* out, int m, int n", body)  # fmt: skip
    arrays = {"a": Array("f4", ("m", "n")), "b": Array("f4", ("9",)),
              "out": Array("f4", ("m", "n"), "zeros")}  # fmt: skip
    return Made("brought window", text, arrays, *sizes_of(rng, ["m", "n"], _SIDES))


def bodies(rng: Random) -> Made:
    """All elements, a tile at a time, for each thread; the rest of the last tile is left out."""
    w = rng.choice([32, 64])
    rest = rng.choice([
        (f"for (int j = 0; j < {w}; ++j) ", "p + t < n ? x[p + t] : 0.0f"),
        (f"for (int j = 0; j < {w} && p + j < n; ++j) ", "p + t < n ? x[p + t] : 0.0f"),
        (f"for (int j = 0; j < min({w}, n - p); ++j) ", "p + t < n ? x[p + t] : 9.0f"),
    ])  # fmt: skip
    body = (
        f"__shared__ float s[{w}];\nint t = threadIdx.x;\nint i = blockIdx.x * blockDim.x + t;\n"
        f"float own = i < n ? x[i] : 0.0f;\nfloat sum = 0.0f;\nfor (int p = 0; p < n; p += {w}) {{\n"
        f"s[t] = {rest[1]};\n__syncthreads();\n{rest[0]}sum += s[j] * "
        f"{rng.choice(['own', '(own + 1.0f)', '0.5f'])};\n__syncthreads();\n}}\n"
        "if (i < n) out[i] = sum;"
    )
    text = _text("bodies", f"grid(cdiv(n, {w})) block({w})", "const float* x, float* out, int n", body)  # fmt: skip
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("bodies", text, arrays, *sizes_of(rng, ["n"], _LINES))


_NEARLY = (
    # what is brought, and what each thread reads behind the barrier
    ("s[{w} - 1 - t] = {a};", "s[t] + s[{w} - 1 - t]"),
    ("s[t] = {a};\nif (t % 2 == 0) s[t] = 1.0f;", "s[t] * s[t ^ 1]"),
    ("s[t] = {a};\ns[t] *= 2.0f;", "s[{w} - 1 - t]"),
    ("if (i < n) s[t] = x[i];\n__syncthreads();\nif (i >= n) s[{w} - 1 - t] = 0.0f;",
     "(blockIdx.x * {w} + {w} <= n ? s[{w} - 1 - t] : 0.0f)"),
    ("s[t] = {a} + t;", "s[{w} - 1 - t]"),
    ("s[(t + 3) % {w}] = {a};", "s[t] - s[(t + 1) % {w}]"),
    ("s[t] = {a};\n__syncthreads();\nif (t < 5) s[t] = i < n ? x[n - 1 - i] : 0.0f;", "s[t / 2]"),
    ("if (blockIdx.x * {w} + {w} <= n) s[t] = x[i]; else s[t] = 3.0f;", "s[{w} - 1 - t]"),
    ("s[t] = 0.0f;\nif (i < n && x[i] > 0.0f) s[t] = x[i];", "s[{w} - 1 - t]"),
    ("s[t] = i < n ? x[i] : 0.0f;\nif (i < n) out[i] = x[i] * 4.0f;", "s[{w} - 1 - t]"),
    ("for (int e = 0; e < 3; ++e) s[t] = i + e < n ? x[i + e] : 0.0f;", "s[{w} - 1 - t]"),
)  # fmt: skip


def nearly(rng: Random) -> Made:
    """What looks like elements that are brought, and is something else as well."""
    w = rng.choice([32, 64])
    brought, read = rng.choice(_NEARLY)
    brought = brought.replace("{a}", "(i < n ? x[i] : 0.0f)")
    body = (
        f"__shared__ float s[{w}];\nint t = threadIdx.x;\nint i = blockIdx.x * {w} + t;\n"
        f"{brought}\n__syncthreads();\nfloat v = {read};\nif (i < n) out[i] = v;"
    ).replace("{w}", str(w))
    text = _text("nearly", f"grid(cdiv(n, {w})) block({w})", "const float* x, float* out, int n", body)  # fmt: skip
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Made("nearly brought", text, arrays, *sizes_of(rng, ["n"], _LINES))


FAMILY = (product, product, whole_tiles, halo, window, bodies, nearly)
