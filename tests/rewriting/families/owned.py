"""A small problem a thread: matrices and vectors of constant extents, in memory and in locals."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, program, sizes_of

_PARAMETERS = "const float* a, const float* b, float* c, int n"


def _finished(rng: Random, name: str, body: str, size: int, more: str = "", **kept) -> Made:
    text = program(rng, name, _PARAMETERS, axes(rng, ("i", "n")), body, above=more)
    shape = (f"{size} * n",)
    arrays = {name: Array("f4", shape) for name in "abc"}
    sizes, others = sizes_of(rng, ["n"], LONG_EXTENTS)
    return Made(f"owned_{name}", text, arrays, sizes, others, inout=("c",), **kept)


def products(rng: Random) -> Made:
    """Products of small matrices, whole or of a triangle."""
    n = rng.choice([2, 3, 4, 5])
    at = rng.choice(["i * N * N", "N * N * i", "i * (N * N)"])
    head = rng.choice(["int k = 0; k < N; k++", "int k = 0; k < N; ++k", "int k = 0; k <= q; ++k"])
    store = rng.choice(["=", "=", "+="])
    guard = rng.choice(["", "", "if (q <= r) ", "if (b[i] > 0.0f) "])
    start = rng.choice(["0.0f", "c[AT + r * N + q]" if store == "=" else "0.5f"])
    body = (
        f"for (int r = 0; r < N; r++) {{\nfor (int q = 0; q < N; ++q) {{\nfloat s = {start};\n"
        f"for ({head}) s += a[AT + r * N + k] * b[AT + k * N + q];\n"
        f"{guard}c[AT + r * N + q] {store} s;\n}}\n}}"
    ).replace("AT", at)
    return _finished(rng, "products", body, n * n, f"#define N {n}\n")


def factors(rng: Random) -> Made:
    """Rows that are made from those before them."""
    n = rng.choice([2, 3, 4])
    above = rng.choice(["c[AT + r * N + q] = 0.0f;\ncontinue;", "c[AT + r * N + q] = a[i];\ncontinue;"])  # fmt: skip
    last = rng.choice(["s * 0.25f", "r == q ? s : s * 0.5f + c[AT + q * N + q] * 0.125f"])
    body = (
        "for (int r = 0; r < N; r++) {\nfor (int q = 0; q < N; q++) {\n"
        f"if (q > r) {{\n{above}\n}}\nfloat s = a[AT + r * N + q];\n"
        "for (int k = 0; k < q; k++) s -= c[AT + r * N + k] * 0.5f;\n"
        f"c[AT + r * N + q] = {last};\n}}\n}}"
    ).replace("AT", "i * N * N")
    return _finished(rng, "factors", body, n * n, f"#define N {n}\n", exact=False)


def eliminated(rng: Random) -> Made:
    """A matrix that is changed where it lies, of an extent that the text or a size says."""
    n, given = rng.choice([2, 3, 4]), rng.choice([0, 1])
    at = rng.choice(["i * N * N", "N * N * i", "(i * N) * N"])
    first = rng.choice(["k + 1", "k + 1", "k", "0"])
    guard = rng.choice(["", "", "if (b[i] > 0.0f) ", "if (r != 1) "])
    inner = rng.choice(["int q = k + 1; q < N; q++", "int q = N - 1; q > k; q--"])
    body = (
        f"for (int k = 0; k < N; k++) {{\nfor (int r = {first}; r < N; r++) {{\n"
        f"{guard}c[AT + r * N + k] {rng.choice(['*=', '+=', '='])} c[AT + k * N + k] * 0.25f;\n"
        f"for ({inner}) c[AT + r * N + q] -= c[AT + r * N + k] * a[AT + k * N + q] * 0.5f;\n"
        "}\n}"
    ).replace("AT", at)
    if not given:
        return _finished(rng, "eliminated", body, n * n, f"#define N {n}\n", exact=False)
    parameters = f"{_PARAMETERS}, int m"
    text = program(rng, "eliminated", parameters, axes(rng, ("i", "n")), body.replace("N", "m"))
    arrays = {name: Array("f4", ("n * m * m",)) for name in "abc"}
    sizes, others = sizes_of(rng, ["n"], LONG_EXTENTS)
    return Made("owned_eliminated", text, arrays, sizes | {"m": n},
                others | {"m": rng.choice([1, 2, 3, 4])}, inout=("c",), exact=False)  # fmt: skip


def locals_(rng: Random) -> Made:
    """A local array between loops that fill it and loops that use it."""
    n = rng.choice([3, 4, 6, 8])
    place = rng.choice(["j", "N - 1 - j"])
    fill = f"for (int j = 0; j < N; j++) v[{place}] = a[i * N + j];"
    use = rng.choice(
        [
            "for (int j = 0; j < N; j++) c[i * N + j] = v[N - 1 - j] + b[i * N + j];",
            (
                "for (int j = 1; j < N; ++j) v[j] += v[j - 1];\n"
                "for (int j = 0; j < N; ++j) c[i * N + j] = v[j];"
            ),
            "float s = 0.0f;\nfor (int j = 0; j < N; ++j) s += v[j] * b[i * N + j];\nc[i] = s;",
            "for (int j = 0; j < N; ++j) if (v[j] > 0.0f) c[i * N + j] = v[j];",
        ]
    )
    return _finished(rng, "locals", f"float v[N];\n{fill}\n{use}", n, f"#define N {n}\n")


def records(rng: Random) -> Made:
    """A record a thread, each element of it by its place: loaded, branched upon, and stored."""
    n = rng.choice([5, 6, 7, 8, 9, 12, 16, 20])
    at = rng.choice(["i * N", "N * i", "i * N", "(i * N)"])
    places = [*range(n)]
    rng.shuffle(places)
    loads = "".join(f"float v{k} = a[AT + {k}];\n" for k in places)
    if rng.random() < 0.3:
        loads = loads.replace("a[AT + 1]", "(b[i] > 0.0f ? a[AT + 1] : 0.5f)")
    sums = [f"v{k} {rng.choice('+-*')} v{rng.randrange(n)}" for k in range(n)]
    stores = "".join(f"c[AT + {k}] = {sums[k]};\n" for k in rng.sample(places, n))
    other = rng.choice(["c[AT + j] = 0.0f;", "c[AT + j] = v0;", "if (j != 2) c[AT + j] = b[i];"])
    branch = f"if (v{n - 1} > v0) {{\nfor (int j = 0; j < N; j++) {other}\nreturn;\n}}\n"
    some = f"if (v1 > 0.0f) c[AT + {n - 1}] = v2;\n"
    body = loads + rng.choice(["", "", branch, "if (v0 > 2.5f) return;\n"]) + stores
    body += rng.choice(["", "", some])
    return _finished(rng, "records", body.replace("AT", at), n, f"#define N {n}\n", exact=False)


def structures(rng: Random) -> Made:
    """A structure a thread, its members loaded, changed and stored one by one."""
    members = ["x", "y", "z", "u", "v", "w", "m"][: rng.choice([5, 6, 7])]
    kinds = dict.fromkeys(members, "float") | {rng.choice(members): rng.choice(["int", "float"])}
    declared = "".join(f" {kinds[m]} {m};" for m in members)
    value = rng.choice(["c[i].{a} * 0.5f", "a[i].{a} + c[i].{b}", "a[i].{a}", "c[i].{b} - 1.0f"])
    lines = []
    for member in rng.sample(members, rng.randint(1, len(members))):
        given = value.format(a=rng.choice(members), b=rng.choice(members))
        guard = rng.choice(["", "", "", f"if (a[i].{rng.choice(members)} > 0.5f) "])
        lines.append(f"{guard}c[i].{member} {rng.choice(['=', '=', '+='])} {given};\n")
    parameters = "const Item* a, Item* c, int n"
    body = rng.choice(["", "if (c[i].x > 2.0f) return;\n"]) + "".join(lines)
    text = program(
        rng, "structures", parameters, axes(rng, ("i", "n")), body,
        above=f"struct Item {{{declared} }};\n",
    )  # fmt: skip
    shape = " ".join(f"{m}:{'i4' if kinds[m] == 'int' else 'f4'}" for m in members)
    sizes, others = sizes_of(rng, ["n"], LONG_EXTENTS)
    arrays = dict.fromkeys("ac", Array(shape, ("n",)))
    return Made("owned_structures", text, arrays, sizes, others, inout=("c",), exact=False)


FAMILY = (
    structures, products, products, factors, eliminated, eliminated, locals_, records, records,
)  # fmt: skip
