"""A block that works on a part of an array of its own, from one barrier to the next."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made

_SIZES = (1, 2, 4, 7, 8, 16, 31, 32, 40)
_TURNS = """\
    float* from = own;
    float* to = own + n;
    for (int step = 0; step < ROUNDS; ++step) {
        for (int e = t; e < n; e += T) { LET to[e] = VALUE; }
        __syncthreads();
        float* other = from; from = to; to = other;
    }
    out[blockIdx.x * T + t] = from[t % n];
"""
_ROUNDS = """\
    LOOP {
        float kept = 0.0f;
        int e = t % n;
        { LET kept = VALUE; }
        __syncthreads();
        if (t < n TEST) { from[e] OP kept; }
        __syncthreads();
    }
    out[blockIdx.x * T + t] = from[PLACE];
"""


def slices(rng: Random) -> Made:
    """Rounds that load elements near their own or anywhere in their block's part, and store one."""
    turns = rng.random() < 0.3
    threads = rng.choice([8, 32, 40])
    room = "2 * n" if turns else rng.choice(["n", "n", "(n + 3)", "2 * n"])
    begin = rng.choice(["", "", " + 1"]) if room not in ("n", "2 * n") else ""
    first = f"blockIdx.x * {room}{begin}"
    places = ["e", "(e + 1) % n", "n - 1 - e", "max(e - 1, 0)", "min(e + 2, n - 1)", "e / 2",
              "(e % 2 == 0 && e + 1 < n ? e + 1 : e)", "step % n", "(e + step) % n", "(few[e] & 31) % n",
              "(e > step ? e - step : 0)"]  # fmt: skip
    terms = [
        f"from[{p}]" for p in rng.sample(places[: rng.choice([6, 9, 11])], rng.choice([1, 2, 3]))
    ]
    value = f" {rng.choice('+-')} ".join(rng.sample([*terms, "0.5f", "(float)few[e]"], len(terms)))
    let = rng.choice(["", "", "if (few[e] > 3) e = n - 1 - e;", "int far = e; e = far;"])
    if let.startswith("if"):  # threads may store to the element of another one
        let, value = "int far = e; if (few[e] > 3) far = n - 1 - far;", f"{value} + from[far]"
    loop = rng.choice([
        "for (int step = 0; step < n; ++step)", "for (int step = 1; step < n; step *= 2)",
        "for (int step = n; step > 0; step /= 2)", "for (int step = 0; step < rounds; ++step)",
        "for (int step = 0; step < few[0] % 4; ++step)",
        "int step = 0;\n    while (step++ < 5)", "for (unsigned step = 0; step < 3u; step++)",
    ])  # fmt: skip
    test = rng.choice(["", "", "&& few[e] > 2", "&& e > 1", "&& (e & 1) == 0", "&& e < n - 1"])
    text = (_TURNS if turns else _ROUNDS).replace("LET", let).replace("LOOP", loop)
    text = text.replace("VALUE", value).replace("TEST", test)
    text = text.replace("ROUNDS", rng.choice(["3", "n", "rounds", "few[0] % 3"]))
    text = text.replace("OP", rng.choice(["=", "=", "+=", "-="]))
    text = text.replace("PLACE", rng.choice(["t % n", "0", "n - 1", "min(few[t % n], n - 1)"]))
    way = rng.random()
    opening = f"    float* own = a + {first};\n"
    if way < 0.3:
        opening = f"    float* own = &a[{first}];\n"
    elif way < 0.6 and not turns:
        opening = f"    const int first = {first};\n"
        text = text.replace("from[", "a[first + ")
    if "own" in opening and not turns:
        opening += "    float* from = own;\n" if rng.random() < 0.5 else ""
        text = text if "from =" in opening else text.replace("from[", "own[")
    guard = rng.choice(["", "", "    if (blockIdx.x >= rows) return;\n",
                        "    int row = blockIdx.x;\n    if (row >= rows) return;\n"])  # fmt: skip
    head = f"#define T {threads}\n#pragma optiml launch slices grid(rows) block({threads})\n"
    head += "__global__ void slices(float* a, const int* few, float* out, int rows, int n, int rounds) {\n"
    fill = f"    for (int e = t; e < {room}; e += T) a[blockIdx.x * {room} + e] = 0.25f * e;\n    __syncthreads();\n"
    filled = fill if rng.random() < 0.3 else ""
    whole = f"{head}{guard}    int t = threadIdx.x;\n{filled}{opening}{text}}}\n"
    one, other = (
        {"rows": rng.choice([1, 2, 3]), "n": rng.choice([s for s in _SIZES if s <= threads]),
         "rounds": rng.choice([0, 1, 4])} for _ in range(2)
    )  # fmt: skip
    arrays = {
        "a": Array("f4", (f"rows * ({room})",)),
        "few": Array("i4", ("64",), "below far"),
        "out": Array("f4", ("rows * 64",), "zeros"),
    }
    one["far"], other["far"] = 7, 7
    return Made("slices", whole, arrays, one, other, exact=False, hidden=("far",))


FAMILY = (slices,)
