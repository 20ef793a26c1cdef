"""Items from the last to the first, as in flips and reversals; vectors of three numbers."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LINE_EXTENTS, Array, Made, axes, program, sizes_of

_KINDS = {"u1": "unsigned char", "i2": "short", "f4": "float", "f8": "double"}
_TRIPLES = {"u1": "uchar3", "i1": "char3", "i2": "short3", "f4": "float3", "i4": "int3"}
_ROWS = (1, 2, 3, 8, 15, 16, 24, 32, 48, 64, 130, 256)


def reversal(rng: Random) -> Made:
    """Elements of a line, or groups of a few, in the other order; some also where they are."""
    kind, group = rng.choice([*_KINDS]), rng.choice([1, 1, 2, 3, 4])
    far = rng.choice(["(n - 1 - i)", "(n - i - 1)", "(last - i)"])
    own = [f"{group} * i + {c}" if group > 1 else "i" for c in range(group)]
    other = [f"{group} * {far} + {c}" if group > 1 else far[1:-1] for c in range(group)]
    way = rng.choice(["load", "store", "both", "place", "ends"])
    lines = []
    for c in rng.sample(range(group), group):
        there = other[rng.choice([c, group - 1 - c])]
        if way == "load":
            lines.append(f"out[{own[c]}] = a[{there}] + b[i];")
        elif way == "store":
            lines.append(f"out[{other[c]}] = a[{own[c]}] + b[i];")
        elif way == "both":
            lines.append(f"out[{other[c]}] = a[{own[c]}] + a[{there}];")
        elif way == "place":
            lines.append(f"out[{other[c]}] = out[{other[c]}] * 2 + b[i];")
        else:
            lines += [f"out[{own[c]}] = a[{there}];", f"out[{group} * n + {other[c]}] = b[i];"]
    test = rng.choice(["", "", "if (b[i] > 3) "])
    if test:
        lines = [test + "{", *lines, "}"]
    body = "\n".join([*(["int last = n - 1;"] if "last" in far else []), *lines])
    kinds = f"const {_KINDS[kind]}* a, const {_KINDS[kind]}* b, {_KINDS[kind]}* out, int n"
    text = program(rng, "reversal", kinds, axes(rng, ("i", "n")), body)
    arrays = {
        "a": Array(kind, (f"{group} * n",)), "b": Array(kind, ("n",)),
        "out": Array(kind, (f"{2 * group} * n",)),
    }  # fmt: skip
    return Made("reversal", text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS), inout=("out",))


def flip(rng: Random) -> Made:
    """The rows of a plane in the other order, pixels of one number or of a few, or upside down."""
    kind, many = rng.choice([*_KINDS, "u1"]), rng.choice([1, 1, 3, 4])
    row, column = rng.choice([("y", "w - 1 - x"), ("h - 1 - y", "w - 1 - x"), ("h - 1 - y", "x")])
    here, there = "(y * w + x)", f"(({row}) * w + {column})"
    to, source = rng.choice([(here, there), (there, here)])
    if many == 1:
        body = f"out[{to}] = a[{source}];"
    elif rng.choice([0, 1]):
        body = "\n".join(f"out[{to} * {many} + {c}] = a[{source} * {many} + {c}];"
                         for c in range(many))  # fmt: skip
    else:
        body = (
            f"for (int c = 0; c < {many}; c++) out[{to} * {many} + c] = a[{source} * {many} + c];"
        )
    over = axes(rng, ("x", "w"), ("y", "h"))
    if rng.choice([0, 0, 1]):
        over = axes(rng, ("i", "w * h"))
        body = f"int x = i % w, y = i / w;\n{body}"
    text = program(rng, "flip", f"const {_KINDS[kind]}* a, {_KINDS[kind]}* out, int w, int h", over, body)  # fmt: skip
    shape = ("h", "w", str(many))
    arrays = {"a": Array(kind, shape), "out": Array(kind, shape, "zeros")}
    return Made("flip", text, arrays, *sizes_of(rng, ["w", "h"], _ROWS))


def triples(rng: Random) -> Made:
    """Elements of a vector of three: colours, points."""
    kind = rng.choice([*_TRIPLES])
    name, words = _TRIPLES[kind], {"i1": "signed char", "i4": "int"}.get(kind) or _KINDS[kind]
    there = rng.choice(["i", "i", "n - 1 - i"])
    way = rng.choice(["whole", "parts", "planes", "made", "place"])
    parameters, shape = f"const {name}* p, {name}* out, int n", ("n", "3")
    body = f"{name} v = p[{there}];\nv.y += v.z;\nout[i] = v;"
    if way == "parts":
        body = f"{name} v;\nv.x = p[{there}].z;\nv.y = p[{there}].x;\nv.z = 5;\nout[i] = v;"
    elif way == "made":
        body = f"{name} v = p[i];\nout[{there}] = make_{name}(v.z, v.x, v.y);"
    elif way == "place":
        body = f"{name} v = out[{there}];\nv.x += p[{there}].y;\nout[{there}] = v;"
    elif way == "planes":
        parameters = f"const {name}* p, {words}* out, int n"
        body = "\n".join(f"out[i + {c} * n] = p[{there}].{f};" for c, f in enumerate("xyz"))
        shape = ("3", "n")
    if rng.choice([0, 0, 1]):
        body = f"if (i % 3 != 1) {{\n{body}\n}}"
    text = program(rng, "triples", parameters, axes(rng, ("i", "n")), body)
    arrays = {"p": Array(kind, ("n", "3")), "out": Array(kind, shape)}
    return Made("triples", text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS), inout=("out",))


def swapped(rng: Random) -> Made:
    """Both ends, or both halves, of a line or of each row, exchanged where they are."""
    kind, rows = rng.choice([*_KINDS]), rng.choice([0, 0, 1])
    count, row = ("w", "y * w + ") if rows else ("n", "")
    item = "x" if rows else "i"
    half = rng.choice([f"{count} / 2", f"{count} / 2", f"({count} + 1) / 2"])
    far = rng.choice([
        f"{row}{count} - 1 - {item}", f"{row}{count} - 1 - {item}", f"{row}{item} + {half}",
    ])  # fmt: skip
    one, other = f"v[{row}{item}]", f"v[{far}]"
    body = rng.choice([
        f"{_KINDS[kind]} t = {one};\n{one} = {other};\n{other} = t;",
        f"{_KINDS[kind]} s = {one} + {other}, d = {one} - {other};\n{one} = s;\n{other} = d;",
        f"{one} += 1;\n{other} += 2;",
        f"if ({one} > {other}) {{\n{_KINDS[kind]} t = {one};\n{one} = {other};\n{other} = t;\n}}",
        f"{one} = {other} * 2;",
    ])  # fmt: skip
    spans = (("x", half), ("y", "h")) if rows else (("i", half),)
    sizes = ["w", "h"] if rows else ["n"]
    text = program(rng, "swapped", f"{_KINDS[kind]}* v, {', '.join(f'int {s}' for s in sizes)}", axes(rng, *spans), body)  # fmt: skip
    whole = ("h * w + 1",) if rows else ("n + 1",)
    extents = [n for n in (_ROWS if rows else LINE_EXTENTS) if n > 1]  # then there is an item
    if "+ 1" in half and "- 1" not in far:  # the halves of an odd line lie over the next row
        extents = [2 * n for n in extents]
    drawn = sizes_of(rng, sizes, extents)
    return Made("swapped", text, {"v": Array(kind, whole)}, *drawn, inout=("v",))


FAMILY = (reversal, flip, triples, swapped)
