"""A thread for every row: reductions of all kinds, loops that store, loops that must stay."""

from __future__ import annotations

import re
from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

_OTHER = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_ROW_PARAMETERS = "const float* a, const float* x, float* out, int rows, int cols"


def counting(rng: Random, inner: str, name: str = "j", extent: str = "cols") -> str:
    """A loop over the columns of a row, all of them, in one of the ways to write it."""
    heads = [
        f"for (int {name} = 0; {name} < {extent}; ++{name})",
        f"for (int {name} = 0; {name} < {extent}; {name}++)",
        f"for (int {name} = 0; {name} <= {extent} - 1; {name} += 1)",
        f"for (unsigned {name} = 0; {name} < {extent}; ++{name})",
        f"for (int {name} = {extent} - 1; {name} >= 0; --{name})",
    ]
    head = heads[rng.choice([0, 0, 0, 0, 1, 1, 2, 3, 4])]
    pragma = rng.choice(["", "", "", "", "#pragma unroll 4\n"])
    braced = "\n" in inner or inner.startswith(("if", "float")) or rng.choice([0, 1])
    return f"{pragma}{head} {{\n{inner}\n}}" if braced else f"{pragma}{head} {inner}"


def _layout(rng: Random) -> tuple[str, tuple[str, ...]]:
    """The element of row and column, and the array's shape: rows together, or columns.

    Rows may lie further apart than they are long, or begin at an odd element.
    """
    kind = rng.choice([0, 0, 0, 0, 0, 1, 1, 2, 3])
    if kind == 1:
        return f"a[{flat(rng, 'j', 'rows', 'row')}]", ("cols", "rows")
    if kind == 2:
        return f"a[{flat(rng, 'row', 'ld', 'j')}]", ("rows", "ld")
    if kind == 3:
        return f"a[{flat(rng, 'row', 'cols', 'j')} + 1]", ("rows * cols + 1",)
    return f"a[{flat(rng, 'row', 'cols', 'j')}]", ("rows", "cols")


def _over(rng: Random):
    return axes(rng, ("row", "rows"))


def _made(rng: Random, family: str, body: str, shape: tuple[str, ...], **more) -> Made:
    arrays = {
        "a": Array("f4", shape, more.pop("content", "numbers")),
        "x": Array("f4", ("cols",)),
        "out": Array(more.pop("dtype", "f4"), more.pop("out", ("rows",)), "zeros"),
    }
    parameters = more.pop("parameters", _ROW_PARAMETERS)
    first, second = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    if shape == ("rows", "ld"):
        parameters += ", int ld"
        first["ld"], second["ld"] = (s["cols"] + rng.choice([0, 1, 3, 4]) for s in (first, second))
    text = program(rng, family, parameters, _over(rng), body, above=more.pop("above", ""))
    return Made(family, text, arrays, first, second, **more)


def _step(rng: Random, element: str) -> tuple[str, str, str]:
    """A declaration, what a round does, and what is left: exact in any order."""
    terms = [element, element, f"{element} * x[j]", f"{element} * {element}", f"fabsf({element})"]
    term = rng.choice(terms)
    kind = rng.randrange(9)
    if kind < 3:
        start = rng.choice(["0.0f", "0.0f", "0", "0.5f", "x[0]"])
        step = rng.choice([f"s += {term};", f"s += {term};", f"s = s + {term};", f"s = {term} + s;", f"s -= {term};"])  # fmt: skip
        return f"float s = {start};", step, "s"
    if kind == 3:
        return "float s = -1e30f;", f"s = fmaxf(s, {element});", "s"
    if kind == 4:
        first = element.replace("j", "0") if "j * " not in element else "1e30f"
        step = rng.choice([f"s = fminf({element}, s);", f"if ({element} < s) s = {element};"])
        return f"float s = {first};", step, "s"
    if kind == 5:
        step = rng.choice([
            f"if ({element} > s) s = {element};",
            f"float v = {element};\nif (s < v) {{\ns = v;\n}}",
            f"s = {element} > s ? {element} : s;",
        ])  # fmt: skip
        return "float s = -100.0f;", step, "s"
    if kind == 6:
        step = rng.choice([f"if ({element} > 0.5f) n += 1;", f"if ({element} > 0.5f) ++n;", f"n += {element} > 0.5f;", f"n += (int)({element} * 8.0f);"])  # fmt: skip
        return "int n = 0;", step, "n"
    if kind == 7:
        step = f"float v = {element};\ns += v;\nt += v * v;\nm = fmaxf(m, v);"
        return "float s = 0.0f, t = 0.0f, m = -10.0f;", step, "s + t * m"
    return "double s = 0.0;", f"s += (double){term};", "(float)s"


def extreme(rng: Random) -> Made:
    """The least or the greatest of a row, or both or its place, which begin with the first."""
    element, shape = _layout(rng)
    first = re.sub(r"\bj\b", "0", element)
    declared, ends = f"float m = {first};", ["m", "m", "m - x[0]"]
    step = rng.choice([
        f"m = fmaxf(m, {element});",
        f"m = fminf({element}, m);",
        f"if ({element} > m) m = {element};",
        f"m = {element} < m ? {element} : m;",
        f"float v = {element};\nif (v > m) m = v;",
    ])  # fmt: skip
    head = rng.choice(["int j = 1; j < cols; ++j", "int j = 1; j < cols; j++", "int j = 1; j <= cols - 1; j += 1"])  # fmt: skip
    kind = rng.randrange(4)
    if kind == 2:
        step += "\n" + rng.choice(
            [f"o = fminf(o, {element});", f"if (o > {element}) o = {element};"]
        )
        declared, ends = f"{declared}\nfloat o = {first};", ["m - o", "m + o * x[0]"]
    if kind == 3:
        sign = rng.choice(["<", ">"])
        taken = [f"m = {element};", f"spot = {rng.choice(['j', 'j', 'j + 1'])};"]
        rng.shuffle(taken)
        step = "\n".join([f"if ({element} {sign} m) {{", *taken, "}"])
        declared += f"\nint spot = {rng.choice(['0', '0', '-1'])};"
        ends = ["spot", "m + spot"]
    body = f"{declared}\nfor ({head}) {{\n{step}\n}}\nout[row] = {rng.choice(ends)};"
    return _made(rng, "row_extreme", body, shape)


def reduction(rng: Random) -> Made:
    """One loop, one result."""
    element, shape = _layout(rng)
    start, step, left = _step(rng, element)
    guard = rng.choice(["", "", "", "", "if (j > 0) ", "if (j % 2 == 0) ", "if (x[j] > 0.0f) "])
    if guard and "\n" in step:
        guard = ""
    body = [start, counting(rng, guard + step)]
    ends = [
        left,
        left,
        left,
        f"({left}) * 0.5f",
        f"({left}) * 0.5",
        f"{left} + x[0]",
        f"({left}) > 0 ? {left} : 0",
    ]
    body.append(f"out[row] = {rng.choice(ends)};")
    return _made(rng, "row_reduction", "\n".join(body), shape)


def part(rng: Random) -> Made:
    """A loop over some of the columns: from one on, every other, up to the row's own number."""
    element, shape = _layout(rng)
    head = rng.choice([
        "for (int j = 1; j < cols; ++j)",
        "for (int j = 0; j < cols; j += 2)",
        "for (int j = 0; j + 1 < cols; ++j)",
        "for (int j = 0; j <= cols - 2; ++j)",
        "for (int j = 0; j <= row && j < cols; ++j)",
        "for (int j = row; j < cols; ++j)",
        "for (int j = row % 3; j < cols; j += 3)",
        "for (int j = cols / 2; j < cols; ++j)",
    ])  # fmt: skip
    body = f"float s = 0.25f;\n{head} s += {element};\nout[row] = s;"
    return _made(rng, "row_part", body, shape)


def several(rng: Random) -> Made:
    """Loops over the same row one after the other, each with what came before."""
    element, shape = _layout(rng)
    kind = rng.randrange(4)
    if kind == 0:
        loops = [
            "float mean = 0.0f;", counting(rng, f"mean += {element};"), "mean /= cols;",
            "float var = 0.0f;",
            counting(rng, f"float d = {element} - mean;\nvar += d * d;"),
        ]  # fmt: skip
        end = rng.choice(["out[row] = var / cols;", "out[row] = mean + sqrtf(var / cols + 1e-5f);"])
        return _made(rng, "row_variance", "\n".join([*loops, end]), shape, exact=False)
    if kind == 1:
        target = element.replace("a[", "out[")
        loops = [
            "float m = -1e30f;", counting(rng, f"m = fmaxf(m, {element});"), "float s = 0.0f;",
            counting(rng, f"s += expf({element} - m);"),
            counting(rng, f"{target} = expf({element} - m) / s;"),
        ]  # fmt: skip
        found = _made(rng, "row_softmax", "\n".join(loops), shape, out=shape, exact=False)
        return found.aliased("a", "out") if rng.choice([0, 0, 0, 1]) else found
    if kind == 2:
        loops = [
            "float s = 0.0f;", counting(rng, f"s += {element};"), "float m = -8.0f;",
            counting(rng, f"m = fmaxf(m, {element} * x[j]);"), "out[row] = s - 2.0f * m;",
        ]  # fmt: skip
        return _made(rng, "row_twice", "\n".join(loops), shape)
    loops = ["float s = 0.0f;", counting(rng, f"s += {element};"), "float c = 0.0f;"]
    loops += [counting(rng, f"if ({element} * 8.0f > s) c += 1.0f;"), "out[row] = c;"]
    return _made(rng, "row_above", "\n".join(loops), shape)


def storing(rng: Random) -> Made:
    """A row that is written, out of place or in place, after a reduction of it or without."""
    element, shape = _layout(rng)
    inplace = rng.choice([0, 1])
    target = element if inplace else element.replace("a[", "out[")
    loops = []
    if rng.choice([0, 1, 1]):
        loops = ["float s = 0.0f;", counting(rng, f"s += {element};")]
    else:
        loops = ["float s = x[0];"]
    use = rng.choice([f"{element} * x[j]", f"{element} - s", f"{element} + s * 0.5f"])
    loops.append(counting(rng, f"{target} = {use};"))
    parameters, inout = _ROW_PARAMETERS, ()
    if inplace:
        parameters, inout = "float* a, const float* x, int rows, int cols", ("a",)
    found = _made(
        rng, "row_stores", "\n".join(loops), shape, out=shape, parameters=parameters, inout=inout
    )
    if inplace:
        del found.arrays["out"]
        return found
    return found.aliased("a", "out") if rng.choice([0, 0, 1]) else found


def normalised(rng: Random) -> Made:
    """Mean and variance of a row, then the row by them, scaled and shifted by column."""
    element, shape = _layout(rng)
    target = element.replace("a[", "out[")
    scaled = f"({element} - mean) * scale" + rng.choice(["", " * x[j]", " * x[j] + x[0]"])
    if rng.choice([0, 1]):
        sums = f"float v = {element};\ns += v;\nq += v * v;"
        loops = ["float s = 0.0f, q = 0.0f;", counting(rng, sums), "float mean = s / cols;"]
        loops += ["float var = q / cols - mean * mean;"]
    else:
        loops = ["float mean = 0.0f;", counting(rng, f"mean += {element};"), "mean = mean / cols;"]
        loops += ["float var = 0.0f;", counting(rng, f"float d = {element} - mean;\nvar += d * d;")]
        loops += ["var /= cols;"]
    loops.append(rng.choice(["float scale = rsqrtf(var + 0.5f);", "float scale = 1.0f / sqrtf(var + 0.5f);", "float scale = 1.0 / sqrt(var + 0.5);"]))  # fmt: skip
    loops.append(counting(rng, f"{target} = {scaled};"))
    return _made(rng, "row_norm", "\n".join(loops), shape, out=shape, exact=False)


def stacked(rng: Random) -> Made:
    """Rows of several planes: the plane is an axis of the grid of its own, or an outer loop."""
    element = rng.choice(
        ["a[(plane * rows + row) * cols + j]", "a[plane * rows * cols + row * cols + j]"]
    )
    step = rng.choice([f"s += {element};", f"s = fmaxf(s, {element});", f"s += {element} * x[j];"])
    start = "float s = 0.0f;"
    parameters = "const float* a, const float* x, float* out, int planes, int rows, int cols"
    if rng.choice([0, 1]):
        body = f"{start}\n{counting(rng, step)}\nout[plane * rows + row] = s;"
        over = axes(rng, ("row", "rows"), ("plane", "planes"))
        out = ("planes", "rows")
    else:
        inner = counting(rng, step)
        whole = rng.choice([0, 1])
        body = f"for (int plane = 0; plane < planes; ++plane) {{\n{start}\n{inner}\nout[plane * rows + row] = s;\n}}"  # fmt: skip
        out = ("planes", "rows")
        if whole:
            body = f"{start}\nfor (int plane = 0; plane < planes; ++plane) {{\n{inner}\n}}\nout[row] = s;"  # fmt: skip
            out = ("rows",)
        over = _over(rng)
    text = program(rng, "stacked", parameters, over, body)
    arrays = {
        "a": Array("f4", ("planes", "rows", "cols")),
        "x": Array("f4", ("cols",)),
        "out": Array("f4", out, "zeros"),
    }
    return Made("row_stacked", text, arrays, *sizes_of(rng, ["planes", "rows", "cols"], (1, 2, 3, 5, 8, 16, 33)))  # fmt: skip


def place(rng: Random) -> Made:
    """Where the largest is: the first of equals, or the last; more than one may go along."""
    element, shape = _layout(rng)
    sign = rng.choice([">", ">", ">=", "<", "<="])
    start = rng.choice(["-100.0f" if sign[0] == ">" else "100.0f", "0.5f", element])
    start = start.replace("j", "0") if "j * " not in start else "0.5f"
    named = rng.choice([0, 1])
    value = "v" if named else element
    test = rng.choice(
        [f"{value} {sign} best", f"{value} {sign} best", f"best {_OTHER[sign]} {value}"]
    )
    along = {"spot": rng.choice(["j", "j", "j", "j * 2 + 1", "cols - j"])}
    if rng.choice([0, 0, 1]):
        along["with"] = rng.choice(["x[j]", "(float)j"])
    kind = rng.randrange(7)
    if kind < 3:
        taken = [f"best = {value};", *(f"{name} = {found};" for name, found in along.items())]
        rng.shuffle(taken)
        lines = [f"if ({test}) {{", *taken, "}"]
    elif kind == 3:
        targets = {"best": value, **along}
        lines = [f"const bool more = {test};"]
        lines += [f"{name} = more ? {found} : {name};" for name, found in targets.items()]
    elif kind in (4, 5):
        lines = [f"{name} = {test} ? {found} : {name};" for name, found in along.items()]
        lines += [f"best = {test} ? {value} : best;"]
    else:  # of what comes before the comparison it is another one
        lines = [f"best = {test} ? {value} : best;", f"spot = {test} ? j : spot;"]
    guard = rng.choice(["", "", "", "if (j % 2 == 0) "])
    lines = [f"{guard}{{", *lines, "}"] if guard else lines
    if named:
        lines = [f"float v = {element};", *lines]
    declared = f"float best = {start};\nint spot = {rng.choice(['0', '-1', '7'])};"
    ends = ["spot", "spot", "spot + (int)(best * 8.0f)"]
    if "with" in along:
        declared += "\nfloat with = -1.0f;"
        ends = ["spot + (int)(with * 8.0f)"]
    again = rng.choice([0, 0, 0, 1])
    more = counting(rng, f"n += {element} > best - 0.5f && j > spot;") if again else ""
    declared += "\nint n = 0;" if again else ""
    body = f"{declared}\n{counting(rng, chr(10).join(lines))}\n{more}\nout[row] = {rng.choice(ends)}{' + n * 1000' if again else ''};"
    parameters = _ROW_PARAMETERS.replace("float* out", "int* out")
    return _made(rng, "row_place", body, shape, parameters=parameters, dtype="i4")


def staying(rng: Random) -> Made:
    """Loops whose rounds have an order: what leaves them, carries on, or reads what it wrote."""
    element, shape = _layout(rng)
    kind = rng.randrange(7)
    target = element.replace("a[", "out[")
    inner, start, end, out = {
        0: (f"if ({element} > 1.5f) break;\ns += {element};", "float s = 0.0f;", "out[row] = s;", ("rows",)),
        1: (f"s += {element};\n{target} = s;", "float s = 0.0f;", "", shape),
        2: (f"s = s * 0.5f + {element};", "float s = 0.0f;", "out[row] = s;", ("rows",)),
        3: (f"if ({element} > 1.0f) {{\nlast = j;\n}}", "int last = -1;", "out[row] = (float)last;", ("rows",)),
        4: (f"if ({element} < 0.0f) continue;\ns += {element} * x[j];", "float s = 0.0f;", "out[row] = s;", ("rows",)),
        5: (f"s = {element};", "float s = 0.0f;", "out[row] = s;", ("rows",)),
        6: (f"if (s < 4.0f) s += {element};", "float s = 0.0f;", "out[row] = s;", ("rows",)),
    }[kind]  # fmt: skip
    body = "\n".join(part for part in (start, counting(rng, inner), end) if part)
    return _made(rng, "row_order", body, shape, out=out, exact=kind != 2)


def sparse(rng: Random) -> Made:
    """Rows whose bounds and columns come from memory."""
    value = rng.choice(["values[k]", "values[k] * x[columns[k]]", "values[k] * x[columns[k]]"])
    first, last = "starts[row]", "starts[row + 1]"
    named = rng.choice([0, 1])
    head = "int first = starts[row];\nint last = starts[row + 1];\n" if named else ""
    first, last = ("first", "last") if named else (first, last)
    step = rng.choice([f"s += {value};", f"s += {value};", f"s = fmaxf(s, {value});"])
    loop = f"for (int k = {first}; k < {last}; ++k) {{\n{step}\n}}"
    if rng.choice([0, 0, 1]):
        loop += f"\nfor (int k = {first}; k < {last}; ++k) t += values[k];"
        head += "float t = 0.0f;\n"
    end = "y[row] = s + t;" if "float t" in head else rng.choice(["y[row] = s;", "y[row] = 2.0f * s + 1.0f;"])  # fmt: skip
    body = f"{head}float s = 0.0f;\n{loop}\n{end}"
    parameters = "const int* starts, const int* columns, const float* values, const float* x, float* y, int rows"  # fmt: skip
    text = program(rng, "sparse", parameters, _over(rng), body)
    arrays = {
        "starts": Array("i4", ("rows + 1",), "starts nnz"),
        "columns": Array("i4", ("nnz",), "below cols"),
        "values": Array("f4", ("nnz",)),
        "x": Array("f4", ("cols",)),
        "y": Array("f4", ("rows",), "zeros"),
    }
    sizes, others = (
        {"rows": rng.choice((1, 3, 7, 16, 33, 64)), "cols": rng.choice((1, 5, 32)), "nnz": rng.choice((1, 7, 64, 150, 300))}
        for _ in range(2)
    )  # fmt: skip
    return Made("sparse", text, arrays, sizes, others, hidden=("cols", "nnz"))


def typed(rng: Random) -> Made:
    """Rows of bytes, halves, integers and doubles."""
    dtype, spelled, read = rng.choice([
        ("u1", "unsigned char", "{}"), ("f2", "__half", "__half2float({})"), ("i4", "int", "{}"),
        ("f8", "double", "{}"), ("i2", "short", "{}"),
    ])  # fmt: skip
    element = read.format(f"a[{flat(rng, 'row', 'cols', 'j')}]")
    total = rng.choice(["float"]) if dtype == "f2" else {"f8": "double"}.get(dtype, rng.choice(["int", "float", "unsigned"]))  # fmt: skip
    step = rng.choice([f"s += {element};", f"s = s + {element};", f"if ({element} > s) s = {element};"])  # fmt: skip
    if dtype in ("u1", "i4") and total == "int":
        step = rng.choice([step, f"s |= {element};", f"s ^= {element};", f"s = max(s, (int){element});"])  # fmt: skip
    if total == "unsigned" and dtype != "u1":
        total = "int"
    body = f"{total} s = 0;\n{counting(rng, step)}\nout[row] = s;"
    out = {"float": "f4", "int": "i4", "unsigned": "u4", "double": "f8"}[total]
    parameters = f"const {spelled}* a, {total}* out, int rows, int cols"
    above = "#include <cuda_fp16.h>\n" if dtype == "f2" else ""
    text = program(rng, "typed", parameters, _over(rng), body, above=above)
    arrays = {"a": Array(dtype, ("rows", "cols")), "out": Array(out, ("rows",), "zeros")}
    return Made("row_typed", text, arrays, *sizes_of(rng, ["rows", "cols"], LONG_EXTENTS))


FAMILY = (reduction, reduction, reduction, extreme, part, several,
    several, normalised, stacked, storing, place, place, staying, sparse, typed)  # fmt: skip
