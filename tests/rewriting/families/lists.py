"""What lists have in common, by binary search: neighbours of nodes, rows of sparse matrices."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_SIZES = (1, 2, 3, 5, 8, 9, 16, 17, 33)


def _middle(rng: Random) -> str:
    return rng.choice(["(lo + hi) / 2", "(lo + hi) >> 1", "lo + (hi - lo) / 2", "(hi + lo) / 2"])


def _search(rng: Random, low: str, high: str, wanted: str, found: str) -> str:
    """A search of ``list`` between two places, the second behind the last."""
    middle, count = _middle(rng), rng.choice(["int", "int", "const int"])
    form = rng.choice(["closed", "closed", "open", "first"])
    if form == "first":
        return (
            f"int lo = {low};\nint hi = {high};\nwhile (lo < hi) {{\nint mid = {middle};\n"
            f"if (list[mid] < {wanted}) lo = mid + 1;\nelse hi = mid;\n}}\n"
            f"if (lo < {high} && list[lo] == {wanted}) {{ {found} }}"
        )
    begun = f"int lo = {low}, hi = {high}{' - 1' if form == 'closed' else ''};\n"
    head, up = ("lo <= hi", "mid - 1") if form == "closed" else ("lo < hi", "mid")
    steps = rng.choice([
        f"if (v == {wanted}) {{ {found} break; }}\nif (v < {wanted}) lo = mid + 1;\nelse hi = {up};",
        f"if (v < {wanted}) lo = mid + 1;\nelse if (v > {wanted}) hi = {up};\nelse {{ {found} break; }}",
        f"if ({wanted} < v) {{ hi = {up}; }} else if (v == {wanted}) {{ {found} break; }} else lo = mid + 1;",
    ])  # fmt: skip
    return f"{begun}while ({head}) {{\n{count} mid = {middle};\n{count} v = list[mid];\n{steps}\n}}"


def shared(rng: Random) -> Made:
    """How many elements of one list are in another, all of one length."""
    return _shared(rng, "shared", same=True)


def common(rng: Random) -> Made:
    """The same of lists of any length."""
    return _shared(rng, "common", same=False)


def _shared(rng: Random, name: str, *, same: bool) -> Made:
    one, other = rng.choice([("i", "to[i]"), ("to[i]", "i"), ("i / 2", "to[i]")])
    ends = "p * m", "(p + 1) * m"
    if not same:
        ends = "starts[p]", "starts[p + 1]"
    own = [end.replace("p", "one") for end in ends]
    low, high = (end.replace("p", "other") for end in ends)
    found = rng.choice(["count++;", "count += 1;", "count += k;", "if (count < 9) count++;"])
    held = rng.choice([f"const int low = {low}, high = {high};\n", ""])
    ends = ("low", "high") if held else (low, high)
    search = _search(rng, *ends, "wanted", found)
    loop = f"for (int k = {own[0]}; k < {own[1]}; k++) {{\nint wanted = list[k];\n{search}\n}}"
    text = program(
        rng, name, "const int* list, const int* starts, const int* to, int* out, int n, int m",
        axes(rng, ("i", "n")),
        f"const int one = {one}, other = {other};\nint count = 0;\n{held}{loop}\nout[i] = count;",
    )  # fmt: skip
    arrays = {
        "list": Array("i4", ("n", "m"), rng.choice(["rising m", "rising n", "rising n", "below n"])),
        "starts": Array("i4", ("n + 1",), "starts n"), "to": Array("i4", ("n",), "below n"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    return Made(name, text, arrays, *sizes_of(rng, ["n", "m"], _SIZES))


def products(rng: Random) -> Made:
    """Values of one sparse row whose columns another has as well, added up."""
    found = rng.choice(["s += x[k];", "s += x[k] * 2.0f;", "s = fmaxf(s, x[k]);", "s += 1.0f;"])
    search = _search(rng, "first", "first + m", "wanted", found)
    kind = rng.choice(["int", "const int"])
    loop = rng.choice([
        f"for (int k = i * m; k < (i + 1) * m; ++k) {{\n{kind} wanted = list[k];\n{search}\n}}",
        f"for (int k = 0; k < m; k++) {{\nint wanted = list[i * m + k];\n{search}\n}}",
        f"int k = i * m;\nwhile (k < (i + 1) * m) {{\nint wanted = list[k];\n{search}\nk++;\n}}",
    ])  # fmt: skip
    text = program(
        rng, "products", "const int* list, const float* x, const int* to, float* out, int n, int m",
        axes(rng, ("i", "n")),
        f"const int first = to[i] * m;\nfloat s = 0.0f;\n{loop}\nout[i] = s;",
    )  # fmt: skip
    arrays = {
        "list": Array("i4", ("n", "m"), rng.choice(["rising m", "rising n"])),
        "x": Array("f4", ("n", "m")), "to": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    return Made("products", text, arrays, *sizes_of(rng, ["n", "m"], _SIZES))


def triangles(rng: Random) -> Made:
    """Edges whose ends have a neighbour in common, asked for by a function."""
    answer, no = rng.choice([("true", "false"), ("1", "0")])
    kind = "bool" if answer == "true" else "int"
    above = (
        f"__device__ {kind} has(const int* list, int low, int high, int key) {{\n"
        f"while (low <= high) {{\nint mid = {_middle(rng).replace('lo', 'low').replace('hi', 'high')};\n"
        f"if (list[mid] == key) return {answer};\n"
        f"if (list[mid] < key) low = mid + 1;\nelse high = mid - 1;\n}}\nreturn {no};\n}}\n"
    )
    call = (
        f"has(list, other * m, {rng.choice(['other * m + m - 1', '(other + 1) * m - 1'])}, list[k])"
    )
    add = rng.choice([f"if ({call}) count++;", f"count += {call} ? 1 : 0;", f"count += {call};"])
    text = program(
        rng, "triangles", "const int* list, const int* to, int* out, int n, int m",
        axes(rng, ("i", "n")),
        "const int other = to[i];\nint count = 0;\n"
        f"for (int k = i * m; k < (i + 1) * m; k++) {{\n{add}\n}}\nout[i] = count;",
        above=above,
    )  # fmt: skip
    arrays = {
        "list": Array("i4", ("n", "m"), rng.choice(["rising m", "rising n", "below n"])),
        "to": Array("i4", ("n",), "below n"), "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    return Made("triangles", text, arrays, *sizes_of(rng, ["n", "m"], _SIZES))


def moved(rng: Random) -> Made:
    """Lists of which each round searches another part, or asks where it ends: left as they are."""
    low, found = rng.choice([
        ("to[i] * m + k % 2", "count++;"), ("to[i] * m", "count += lo;"),
        ("to[(i + k) % n] * m", "count++;"), ("to[i] * m", "count += mid;"),
    ])  # fmt: skip
    text = program(
        rng, "moved", "const int* list, const int* to, int* out, int n, int m",
        axes(rng, ("i", "n")),
        f"int count = 0;\nfor (int k = 0; k < m; k++) {{\nint wanted = list[i * m + k];\n"
        f"int lo = {low}, hi = {low.removesuffix(' + k % 2')} + m - 1;\nwhile (lo <= hi) {{\n"
        f"int mid = (lo + hi) / 2;\nif (list[mid] == wanted) {{ {found} break; }}\n"
        "if (list[mid] < wanted) lo = mid + 1; else hi = mid - 1;\n}\n}\nout[i] = count;",
    )  # fmt: skip
    arrays = {
        "list": Array("i4", ("n", "m"), "rising n"), "to": Array("i4", ("n",), "below n"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    return Made("moved", text, arrays, *sizes_of(rng, ["n", "m"], _SIZES))


FAMILY = (shared, common, products, triangles, moved)
