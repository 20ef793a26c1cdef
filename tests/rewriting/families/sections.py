"""Blocks that wait for one of their threads, and whose threads walk along rows between barriers."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made

_ROWS, _WIDTHS = (1, 2, 3, 5), (64, 128, 96)


def _alone(rng: Random, m: str) -> str:
    """What one thread does for its block."""
    first = rng.choice(["threadIdx.x == 0", "t == 0", "!threadIdx.x"])
    head = rng.choice([f"for (int j = 0; j < {m}; ++j)", f"for (int j = 0; j < {m}; j++)",
                       f"for (int j = {m} - 1; j >= 0; --j)", "for (int j = 1; j < W; ++j)"])  # fmt: skip
    does = rng.choice([
        f"float s = 0.0f;\n{head} s += part[j];\ntotal = s;",
        f"{head} total += part[j];",
        f"{head} part[0] += part[j] * 0.5f;\ntotal = part[0];",
        (f"float s = part[0];\n{head} s = fmaxf(s, part[j]);\ntotal = s;\n"
        f"float e = 0.0f;\n{head} {{ part[j] = part[j] - s; e += part[j]; }}\nmost = e;"),
        f"float s = 0.0f;\n{head} s += a[i * m + j % m];\nif (s > 0.5f) total = s; else most = s;",
        (f"float b = -1.0f;\nint w = 0;\n{head} if (part[j] > b) {{ b = part[j]; w = j; }}\n"
        "most = b;\ntotal = w;"),
        f"float r = 0.0f;\n{head} {{ r += part[j]; part[j] = r; }}\ntotal = r;",
        (f"float s = 1.0f;\n{head} {{ if (part[j] > 0.75f) continue; s += scale * part[j]; }}\n"
        "out[i * W] = s;\ntotal = s;"),
        f"{head} if (part[j] > total) total = part[j];",
    ])  # fmt: skip
    return f"if ({first}) {{\n{does}\n}}"


def _each(rng: Random) -> str:
    """What each thread does for rows of its own."""
    row = rng.choice(
        ["a[j % n * m + k]", "a[j % n * m + k]", "b[k] * a[j % n * m + k]", "a[k * n + j % n]"]
    )
    inner = f"for (int k = 0; k < m; ++k) s += {row};"
    head = rng.choice([
        "for (int j = threadIdx.x; j < W; j += blockDim.x)", "for (int j = t; j < W; j += W)",
        "for (int j = t; j < W - 3; j += blockDim.x)",
    ])  # fmt: skip
    end = rng.choice(["part[j] = s;", "part[j] = s * scale;", "if (j % 3) part[j] = s;", "out[i * W + j] = s;\npart[j] = s;"])  # fmt: skip
    skip = rng.choice(["", "", "if (j % 5 == 2) continue;\n"])
    if rng.choice([0, 0, 1]):
        end = _kept(rng, end)
    return f"{head} {{\n{skip}float s = 0.0f;\n{inner}\n{end}\n}}"


def _kept(rng: Random, end: str) -> str:
    """What a thread keeps of all of its rows, beside what it stores of each."""
    keeps = rng.choice([
        "best = fmaxf(best, s);", "if (s > best) { best = s; where = j; }", "sum += s * (t + 1);",
        "if (s > best) best = s; else sum += s;", "s *= 0.5f;\nsum += s;\nbest = fmaxf(best, sum);",
        "last[j % 2] = s;\nsum += last[0];",
    ])  # fmt: skip
    return rng.choice([f"{end}\n{keeps}", f"{keeps}\n{end}", keeps])


def _down(rng: Random) -> str:
    """What threads do for columns, of which there may be fewer than threads."""
    width = rng.choice(["20", "m", "W / 2", "W + 5"])
    value = rng.choice(
        ["part[k] * a[k % n * m + j % m]", "b[(k + j) % 128]", "a[k % n * m + j % m]"]
    )
    end = rng.choice(
        ["if (j < W) out[i * W + j] = s;", "if (s > 0.5f && j < W) out[i * W + j] = s;"]
    )
    head = f"for (int j = t; j < {width}; j += {rng.choice(['W', 'blockDim.x'])})"
    return f"{head} {{\nfloat s = 0.0f;\nfor (int k = 0; k < m; ++k) s += {value};\n{end}\n}}"


def _all(rng: Random) -> str:
    return rng.choice(["part[t] *= 0.5f;", "part[t] += total;", "part[t] = part[t] - most;"])


def waiting(rng: Random) -> Made:
    """Two or three phases between barriers, perhaps again and again."""
    phases = [
        _alone(rng, rng.choice(["m", "W"]))
        if rng.choice([0, 1])
        else rng.choice([_each, _down])(rng)
        for _ in range(rng.choice([1, 2, 2]))
    ]
    phases.insert(rng.randrange(len(phases) + 1), _all(rng))
    return _made(rng, phases)


def alone(rng: Random) -> Made:
    """One thread works for its block."""
    return _made(rng, [_alone(rng, rng.choice(["m", "W"]))])


def each(rng: Random) -> Made:
    """Threads walk along rows, or down columns."""
    return _made(rng, [rng.choice([_each, _down])(rng)])


def _made(rng: Random, phases: list[str]) -> Made:
    """A block for each row."""
    width = rng.choice(_WIDTHS)
    body = "\n__syncthreads();\n".join(phases)
    if rng.choice([0, 0, 1]):
        body = f"for (int r = 0; r < 2; ++r) {{\n{body}\n__syncthreads();\n}}"
    text = (
        f"#define W {width}\n#pragma optiml launch waiting grid(n) block({width})\n"
        "__global__ void waiting(const float* a, const float* b, float* out, int n, int m, float scale) {\n"
        "    __shared__ float part[W];\n    __shared__ float total, most;\n"
        "    const int i = blockIdx.x, t = threadIdx.x;\n"
        "    float best = -9.0f, sum = 0.0f, last[2] = {0.0f, 0.0f};\n    int where = 0;\n"
        "    part[t] = b[t] * 0.25f;\n    if (t == 0) { total = 0.0f; most = 0.0f; }\n"
        f"    __syncthreads();\n{body}\n    __syncthreads();\n"
        "    out[i * W + t] = total + part[t] + most + best + sum + where + last[1];\n}\n"
    )
    arrays = {
        "a": Array("f4", ("n", "m")), "b": Array("f4", ("128",)),
        "out": Array("f4", ("n", str(width)), "zeros"),
    }  # fmt: skip
    first, second = ({"n": rng.choice(_ROWS), "m": rng.choice((33, 64))} for _ in "12")
    return Made("waiting", text, arrays, first, second, {"scale": 0.5})


FAMILY = (waiting, alone, each)
