"""Blocks whose rounds read one row in shared memory and fill another, or the same behind a barrier."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made

_WIDTH = 64
_BORDER = 4  # elements on either side of those of the threads
_HEAD = """\
#pragma optiml launch turns grid(n) block(64)
__global__ void turns(const float* a, const float* b, float* out, int n, int rounds) {
"""
#: How rows take turns: what is declared, the rows that are read and filled, and what ends a round.
_TURNS = (
    ("__shared__ float s[2][72];\nint cur = 0;", "s[cur]", "s[1 - cur]", "cur = 1 - cur;"),
    ("__shared__ float s[2][72];\nint cur = 0;", "s[cur]", "s[cur ^ 1]", "cur ^= 1;"),
    ("__shared__ float s[2][72];\nint cur = 0, to = 1;", "s[cur]", "s[to]", "int kept = cur;\ncur = to;\nto = kept;"),
    ("__shared__ float s[72], q[72];\nfloat *from = s, *into = q;", "from", "into", "float* kept = from;\nfrom = into;\ninto = kept;"),
)  # fmt: skip
_NEAR = (
    "{0}[t + 4]", "{0}[t + 5]", "{0}[t + 3]", "{0}[t + 6]", "{0}[(t + 1) % 64 + 4]", "{0}[(t + 63) % 64 + 4]",
    "{0}[max(t - 1, 0) + 4]", "{0}[min(t + 1, 63) + 4]", "{0}[t == 0 ? 5 : t + 3]", "{0}[(t ^ 1) + 4]",
    "{0}[4]", "{0}[67 - t]", "{0}[t]", "{0}[t + 8]",
)  # fmt: skip
_TESTS = ("", "", "", "if (t < 63 - r) ", "if (t > r) ", "if (t > 0 && t < 63) ", "if (t & 1) ", "if (t <= 40 - r) ")  # fmt: skip


def turns(rng: Random) -> Made:
    """A few rounds over a block's row: at its ends a ring, a border, a mirror; in part of it."""
    asked = rng.sample(_NEAR, rng.choice([1, 2, 2, 3]))
    weights = rng.sample(["0.5f", "0.25f", "-0.5f", "1.0f"], len(asked))
    head, old, new, turn = rng.choice(_TURNS)
    test = rng.choice(_TESTS)
    loop = rng.choice(["for (int r = 0; r < 5; ++r)", "for (int r = 0; r < rounds; r++)"])
    if rng.random() < 0.4:  # one row: all have loaded before anyone stores
        head, old, new, turn = "__shared__ float s[72];", "s", "s", ""
    begun = rng.choice(["", "", "u + "])
    value = begun + " + ".join(
        f"{w} * {place.format(old)}" for w, place in zip(weights, asked, strict=True)
    )
    stored = f"{new}[t + 4] = next;"
    if not turn:
        step = f"float next = 0.0f;\n{test}next = {value};\n__syncthreads();\n{test}{stored}"
        wait = "__syncthreads();"
    elif rng.random() < 0.3 and test:
        step = f"{test}{new}[t + 4] = {value};\nelse {new}[t + 4] = {old}[t + 4];"
        wait = rng.choice([f"__syncthreads();\n{turn}", f"{turn}\n__syncthreads();"])
    else:
        step = f"{test}{new}[t + 4] = {value};"
        wait = rng.choice([f"__syncthreads();\n{turn}", f"{turn}\n__syncthreads();"])
    filled = ["a[o * 64 + t]", "a[o * 64 + t] + u", "t * 0.25f"]
    rows = {row: rng.choice(filled) for row in (("s",) if not turn else ("s[0]", "s[1]"))}
    if "from" in head:
        rows = {"s": rows["s[0]"], "q": rows["s[1]"]}
    alike = rng.random() < 0.5
    first = next(iter(rows))
    fills = [f"{row}[t + 4] = {rows[first] if alike else value};" for row, value in rows.items()]
    ends = [
        f"{row}[t] = {end};\n{row}[t + 68] = {other};"
        for row, end, other in (
            (row, *("u", "1.0f")) if alike else (row, *rng.sample(["u", "1.0f", "0.5f", "t"], 2))
            for row in rows
        )
    ]
    border = "\n".join(["if (t < 4) {", *ends, "}"])
    last = rng.choice(["t + 4", "t + 4", "4", "67 - t"])
    left = rng.choice(["", "", "if (t == 0) "]) if last != "67 - t" else ""
    body = "\n".join([
        "int t = threadIdx.x, o = blockIdx.x;", "float u = b[o];", head, *fills, border,
        "__syncthreads();", f"{loop} {{", step, wait, "}", f"{left}out[o * 64 + t] = {old}[{last}];",
    ])  # fmt: skip
    arrays = {
        "a": Array("f4", ("n", str(_WIDTH))),
        "b": Array("f4", ("n",)),
        "out": Array("f4", ("n", str(_WIDTH)), "zeros"),
    }
    sizes = {"n": rng.choice([3, 40]), "rounds": rng.choice([2, 5])}
    others = {"n": rng.choice([1, 7]), "rounds": rng.choice([0, 1, 4])}
    return Made("turns", f"{_HEAD}{body}\n}}\n", arrays, sizes, others)


FAMILY = (turns,)
