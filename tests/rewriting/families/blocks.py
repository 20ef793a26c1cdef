"""A block a row, a column or a channel: a strided loop, a tree in shared memory, what comes of it."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

#: How threads ``t`` of a block of ``B`` put together ``s``; ``{0}`` combines two elements.
_TREES = (
    "for (int d = B / 2; d > 0; d /= 2) {{ if (t < d) {0}; __syncthreads(); }}",
    "for (unsigned d = blockDim.x >> 1; d >= 1; d >>= 1) {{ if (t < d) {{ {0}; }} __syncthreads(); }}",
    "for (int d = 1; d < B; d *= 2) {{ if (t % (2 * d) == 0) {0}; __syncthreads(); }}",
    (
        "for (int d = B / 2; d > 16; d >>= 1) {{ if (t < d) {0}; __syncthreads(); }}"
        " if (t == 0) for (int d = 1; d < 32 && d < B; ++d) {0}; __syncthreads();"
    ),
    "if (t == 0) {{ for (int d = 1; d < B; ++d) {0}; }}\n__syncthreads();",
)
_OPS = {
    "sum": ("{0}", "0", "s[t] += s[t + d]"),
    "greatest": ("fmaxf(v, {0})", "-INFINITY", "s[t] = fmaxf(s[t], s[t + d])"),
    "least": ("fminf({0}, v)", "INFINITY", "s[t] = fminf(s[t + d], s[t])"),
}
_INDEX = {
    "row": ("r * w + i", "r * w + {0}"),
    "column": ("i * h + r", "{0} * h + r"),
}


def _round(rng: Random, op: str, element: str) -> str:
    if op == "sum":
        value = rng.choice([element, f"{element} * {element}", f"fabsf({element})"])
        return rng.choice([f"v += {value};", f"v = v + {value};"])
    return f"v = {_OPS[op][0].format(element)};"


def blocks(rng: Random) -> Made:
    """A block for each row or column; what it found goes to all threads, or one stores it."""
    width = rng.choice([32, 64, 128])
    op, along = rng.choice(["sum", "sum", *_OPS]), rng.choice([*_INDEX])
    place = _INDEX[along][0]
    _, start, pair = _OPS[op]
    step = rng.choice(["blockDim.x", "B", str(width)])
    tree = rng.choice(_TREES).format(pair)
    element, single = f"a[{place}]", rng.randrange(4) == 0
    if single:  # an element a thread, as long as there are some
        first = f"int i = t;\nfloat v = i < w ? {element} : {start};"
        rounds = ""
    else:
        first = f"float v = {start};"
        head = rng.choice([f"for (int i = t; i < w; i += {step}) {{ {{0}} }}",
                           f"int i = t;\nwhile (i < w) {{ {{0}} i += {step}; }}"])  # fmt: skip
        rounds = head.replace("{0}", _round(rng, op, element))
    put = f"s[t] = v;\n__syncthreads();\n{tree}"
    kept = rng.choice(["all", "one"]) if op != "sum" or not single else "one"
    if kept == "one":
        end = rng.choice(["if (t == 0) o[r] = s[0];", "if (!t) { float all = s[0]; o[r] = all + 1.0f; }"])  # fmt: skip
    elif single:
        end = f"if (i < w) o[{place}] = v - s[0];"
    else:
        end = f"for (int k = t; k < w; k += {step}) o[{_INDEX[along][1].format('k')}] = a[{_INDEX[along][1].format('k')}] - s[0];"  # fmt: skip
    dynamic = rng.choice([True, False])
    shared = f" shared({width} * 4)" if dynamic else ""
    body = indented(f"{first}\n{rounds}\n{put}\n{end}")
    text = f"""\
#define B {width}
#pragma optiml launch blocks grid(h) block({width}){shared}
__global__ void blocks(const float* a, float* o, int h, int w) {{
    {"extern __shared__ float s[];" if dynamic else "__shared__ float s[B];"}
    int t = threadIdx.x, r = blockIdx.x;
{body}
}}
"""
    shape = ("h", "w") if along == "row" else ("w", "h")
    arrays = {
        "a": Array("f4", shape),
        "o": Array("f4", ("h",) if kept == "one" else shape, "zeros"),
    }
    sizes, others = sizes_of(rng, ["h", "w"])
    if single:
        sizes, others = ({**s, "w": min(s["w"], width)} for s in (sizes, others))
    return Made("blocks", text, arrays, sizes, others)


FAMILY = (blocks,)
