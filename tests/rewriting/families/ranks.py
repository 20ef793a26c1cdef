"""Rank filters: windows that a thread sorts, as far as it has to, and of which it takes some."""

from __future__ import annotations

import re
from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_KINDS = {"float": "f4", "int": "i4", "unsigned char": "u1"}
_SWAP = "{ KIND t = v[p]; v[p] = v[q]; v[q] = t; }"


def _sorted(rng: Random, count: int, rounds: int) -> tuple[str, range]:
    """Statements that sort, and the places where they put what belongs there."""
    op = rng.choice(["<", "<", "<=", ">"])
    other = {"<": ">", "<=": ">=", ">": "<"}[op]
    first, last = range(rounds), range(count - rounds, count)
    least = rng.choice([f"v[p] {op} v[m]", f"v[m] {other} v[p]"])
    swap = rng.choice([
        "KIND t = v[m]; v[m] = v[q]; v[q] = t;", "KIND t = v[q]; v[q] = v[m]; v[m] = t;",
        "if (m != q) { KIND t = v[m]; v[m] = v[q]; v[q] = t; }",
    ])  # fmt: skip
    moved = f"int p = q - 1;\nwhile (p >= 0 && key {op} v[p]) {{ v[p + 1] = v[p]; p--; }}"
    head = f"for (int q = 0; q < {rounds}; q++)"
    better = f"if (v[p] {op} best) {{ best = v[p]; m = p; }}"
    behind = f"for (int p = {rng.choice(['q + 1', 'q + 1', 'q'])}; p < {count}; ++p)"
    return rng.choice([
        (f"{head} {{\nint m = q;\n{behind} {{\nif ({least}) m = p;\n}}\n{swap}\n}}", first),
        (f"{head} {{\nint m = q;\nKIND best = v[q];\n{behind} {better}\nv[m] = v[q];\nv[q] = best;\n}}", first),
        (f"{head} for (int p = q + 1; p < {count}; p++) if (v[p] {op} v[q]) {_SWAP}", first),
        (f"{head} for (int p = 0; p < {count - 1} - q; p++) if (v[p + 1] {op} v[p]) "
         + _SWAP.replace("q]", "p + 1]"), last),
        (f"{head} for (int p = {count - 1}; p > q; p--) if (v[p] {op} v[p - 1]) "
         + _SWAP.replace("q]", "p - 1]"), first),
        (f"for (int q = 1; q < {count}; q++) {{\nKIND key = v[q];\n{moved}\nv[p + 1] = key;\n}}", range(count)),
    ])  # fmt: skip


def ranked(rng: Random) -> Made:
    """The middle of a window, another of its ranks, or a sum of those in its middle."""
    kind, count = rng.choice([*_KINDS]), rng.choice([3, 5, 7, 9, 9, 25])
    middle = count // 2
    rounds = rng.choice([middle + 1, middle + 1, count, count - 1, 2])
    sorting, placed = _sorted(rng, count, min(rounds, count))
    places = [*placed] if rng.randrange(6) else [*range(count)]  # some that are not in order
    place = middle if middle in placed and rng.choice([0, 1]) else rng.choice(places)
    value = f"v[{place}]"
    if rng.choice([0, 0, 1]) and len(places) > 1:
        sorting += f"\nKIND s = 0;\nfor (int q = {places[0]}; q <= {place}; q++) s += v[q];"
        value = rng.choice(["s", f"s - v[{places[0]}]"])
    inside = "KIND e = 0;\nif (i + j >= 0 && i + j < n) e = a[i + j];"
    fill = rng.choice([
        f"for (int j = 0; j < {count}; j++) v[j] = a[i + j];",
        f"int c = 0;\nfor (int j = 0; j < {count}; j++) {{\nv[c] = a[i + j];\nc++;\n}}",
        f"for (int j = 0; j < {count}; j++) {{ int at = min(i + j, n - 1); v[j] = a[at]; }}",
        f"int c = 0;\nfor (int j = -{middle}; j <= {middle}; j++) {{\n{inside}\nv[c++] = e;\n}}",
    ])  # fmt: skip
    helper, call = "", f"{sorting}\nout[i] = {value};"
    if rng.choice([0, 1, 1]):
        body = "\n".join(f"    {line}" for line in sorting.splitlines())
        given = rng.choice(["KIND* v", "KIND* v", f"KIND v[{count}]"])
        helper = f"__device__ KIND rank_of({given}) {{\n{body}\n    return {value};\n}}\n\n"
        call = rng.choice(["out[i] = rank_of(v);", "KIND r = rank_of(v) + a[i];\nout[i] = r;"])
    whole = f"KIND v[{count}];\n{fill}\n{call}"
    text = program(
        rng, "ranked", "const KIND* a, KIND* out, int n", axes(rng, ("i", "n")),
        whole.replace("KIND", kind),
    )  # fmt: skip
    text = (helper + text).replace("KIND", kind)
    text = text.replace("unsigned int ", "int ").replace("unsigned i", "int i")
    dtype = _KINDS[kind]
    arrays = {"a": Array(dtype, (f"n + {count}",)), "out": Array(dtype, ("n",), "zeros")}
    return Made("ranked", text, arrays, *sizes_of(rng, ["n"], (1, 5, 31, 33, 64, 65, 130, 300)))


def in_image(rng: Random) -> Made:
    """Ranks of the bytes around each of an image."""
    sorting, placed = _sorted(rng, 9, rng.choice([5, 5, 9]))
    place = 4 if rng.randrange(3) else rng.choice(placed)
    py, px = rng.choice(
        [("y + dy", "x + dx"), ("min(max(y + dy, 0), h - 1)", "min(max(x + dx, 0), w - 1)")]
    )
    load = f"v[c++] = a[({py}) * w + {px}];"
    if py == "y + dy":
        within = "y + dy >= 0 && y + dy < h && x + dx >= 0 && x + dx < w"
        load = rng.choice([f"KIND e = 0;\nif ({within}) e = {load[9:]}\nv[c++] = e;", load])
    fill = f"int c = 0;\nfor (int dy = -1; dy <= 1; dy++) for (int dx = -1; dx <= 1; dx++) {{\n{load}\n}}"
    value = rng.choice([f"v[{place}]", f"v[{place}]", f"255 - v[{place}]", f"v[{place}] / 3"])
    body = f"KIND v[9];\n{fill}\n{sorting}\nout[y * w + x] = {value};"
    if load.startswith("v[c++] = a[(y + dy)"):
        body = f"if (x >= 1 && y >= 1 && x < w - 1 && y < h - 1) {{\n{body}\n}}"
    text = program(
        rng, "in_image", "const KIND* a, KIND* out, int w, int h", axes(rng, ("x", "w"), ("y", "h")), body,
    ).replace("KIND", "unsigned char")  # fmt: skip
    text = re.sub(r"unsigned (?!char)(int )?", "int ", text)
    arrays = {"a": Array("u1", ("h", "w")), "out": Array("u1", ("h", "w"), "zeros")}
    return Made("in_image", text, arrays, *sizes_of(rng, ["w", "h"], (1, 2, 5, 16, 33, 48, 64)))


FAMILY = (ranked, in_image)
