"""Kernels launched one after the other, of which each reads what the one before has written."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from tests.rewriting.families.maps import value
from tests.rewriting.writing import LINE_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting


def maps(rng: Random) -> Made:
    """Two to four of them, element by element; the arrays between them scratch or results."""
    names = ["a", *[f"t{k}" for k in range(rng.choice([1, 1, 2, 3]))], "out"]
    arrays = {"a": Array("f4", ("n",)), "b": Array("f4", ("n",))}
    text, above = "", ""
    for k, (source, target) in enumerate(pairwise(names)):
        read = rng.choice(
            [f"{source}[i]"] * 5 + [f"{source}[n - 1 - i]", f"{source}[i] + {source}[0]"]
        )
        stored = f"{target}[i] = {value(rng, [read, 'b[i]'], 1)};"
        stored = rng.choice([
            stored, stored, stored,
            f"float v = {read};\n{target}[i] = v > 0.0f ? v : -v;",
            f"if ({read} > 0.0f) {{\n{stored}\n}} else {{\n{target}[i] = 1.0f;\n}}",
            f"{stored}\n{target}[i] += 0.5f;",
        ])  # fmt: skip
        parameters = f"const float* {source}, const float* b, float* {target}, int n"
        if "square(" in stored:
            above = "__device__ float square(float v) { return v * v; }\n"
        text += program(rng, f"k{k}", parameters, axes(rng, ("i", "n")), stored)
    scratch = [name for name in names[1:-1] if rng.choice([0, 1, 1])]
    for name in names[1:]:
        if name not in scratch:
            arrays[name] = Array("f4", ("n",), "zeros")
    directives = "".join(f"#pragma optiml scratch {name} f4[n]\n" for name in scratch)
    return Made("chain", above + directives + text, arrays, *sizes_of(rng, ["n"], LINE_EXTENTS))


def in_place(rng: Random) -> Made:
    """Two or three of them that change one array, one of them perhaps sometimes only."""
    text, above = "", ""
    for k in range(rng.choice([2, 2, 3])):
        stored = f"x[i] = {value(rng, ['x[i]', 'b[i]'], 1)};"
        stored = rng.choice([
            stored, stored, stored,
            f"if (b[i] > 0.0f) return;\n{stored}",
            f"if (x[i] > 0.0f) {{\n{stored}\n}}",
            "x[i] += b[i];",
            f"{stored}\ny[i] = x[i];",
            f"float v = x[i];\n{stored}\ny[i] = v - x[i];",
            "y[i] = y[i] + x[i];\nx[i] = 0.0f;",
        ])  # fmt: skip
        if "square(" in stored:
            above = "__device__ float square(float v) { return v * v; }\n"
        parameters = "const float* b, float* x, float* y, int n"
        text += program(rng, f"k{k}", parameters, axes(rng, ("i", "n")), stored)
    arrays = {name: Array("f4", ("n",)) for name in "bxy"}
    sizes = sizes_of(rng, ["n"], LINE_EXTENTS)
    return Made("in_place", above + text, arrays, *sizes, {}, ("x", "y"))


def table(rng: Random) -> Made:
    """A plane, by planes, rows, columns or one index of all; some threads take rows of it."""
    at = flat(rng, "row", "cols", "col")
    plane = (("col", "cols"), ("row", "rows"))
    first = program(
        rng, "first", "const float* a, float* mid, int rows, int cols", axes(rng, *plane),
        f"mid[{at}] = a[{at}]{rng.choice([' * 0.5f', ' - 1.0f', ''])};",
    )  # fmt: skip
    parameters = "const float* mid, const float* a, float* out, int rows, int cols"
    source = rng.choice(["mid[{0}]", "mid[{0}]", "mid[{0}] * a[{0}]"]).format(at)
    match rng.randrange(4):
        case 0:
            over, shape = axes(rng, ("row", "rows")), ("rows",)
            step = counting(rng, f"s += {source.replace('col', 'j').replace('js', 'cols')};")
            body = f"float s = 0.0f;\n{step}\nout[row] = s;"
        case 1:
            over, shape = axes(rng, ("col", "cols")), ("cols",)
            step = counting(rng, f"s = fmaxf(s, {source.replace('row', 'i').replace('is', 'rows')});", "i", "rows")  # fmt: skip
            body = f"float s = 0.0f;\n{step}\nout[col] = s;"
        case _:
            over, shape = axes(rng, *plane), ("rows", "cols")
            body = f"out[{at}] = {source} + 1.0f;"
    text = first + program(rng, "second", parameters, over, body)
    arrays = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", shape, "zeros")}
    if rng.choice([0, 1, 1]):
        text = "#pragma optiml scratch mid f4[rows * cols]\n" + text
    else:
        arrays["mid"] = Array("f4", ("rows", "cols"), "zeros")
    sizes = sizes_of(rng, ["rows", "cols"], (1, 3, 4, 8, 17, 32, 33, 64))
    return Made("table", text, arrays, *sizes)


def normalised(rng: Random) -> Made:
    """A number of each row, what is made of the row with it, and perhaps the same once more."""
    above, text, scratch, source = "", "", [], "a"
    plane = (("col", "cols"), ("row", "rows"))
    arrays = {"a": Array("f4", ("rows", "cols")), "b": Array("f4", ("cols",))}
    for k in range(rng.choice([1, 1, 2])):
        at, last = flat(rng, "row", "cols", "j"), f"v{k}"
        step = rng.choice([f"s += {source}[{at}];", f"s = fmaxf(s, {source}[{at}]);"])
        text += program(
            rng, f"number{k}", f"const float* {source}, float* s{k}, int rows, int cols",
            axes(rng, ("row", "rows")), f"float s = 0.0f;\n{counting(rng, step)}\ns{k}[row] = s;",
        )  # fmt: skip
        at = flat(rng, "row", "cols", "col")
        stored = value(rng, [f"{source}[{at}]", f"s{k}[row]", "b[col]"], 1)
        body = f"{last}[{at}] = {source}[{at}] - {stored};"
        if "square(" in body:
            above = "__device__ float square(float v) { return v * v; }\n"
        parameters = f"const float* {source}, const float* s{k}, const float* b, float* {last}"
        text += program(
            rng, f"made{k}", f"{parameters}, int rows, int cols", axes(rng, *plane), body
        )
        scratch.append((f"s{k}", ("rows",)))
        scratch.append((last, ("rows", "cols")))
        source = last
    for name, shape in scratch:
        if name == source or rng.choice([0, 0, 1]):
            arrays[name] = Array("f4", shape, "zeros")
        else:
            above += f"#pragma optiml scratch {name} f4[{' * '.join(shape)}]\n"
    sizes = sizes_of(rng, ["rows", "cols"], (1, 3, 4, 8, 17, 32, 33, 64))
    return Made("normalised", above + text, arrays, *sizes)


def finished(rng: Random) -> Made:
    """Products of rows and columns, and what is done to each of them by one index of all."""
    names = ["rows", "cols", *rng.choice([[], [], ["depth"]])]
    at, index = [("col", "cols"), ("row", "rows")], flat(rng, "row", "cols", "col")
    if "depth" in names:
        at.append(("layer", "depth"))
        index = "(layer * rows + row) * cols + col"
    step = counting(rng, rng.choice(["s += a[row * cols + j] * b[col];", "s = fmaxf(s, a[row * cols + j] + b[j]);"]))  # fmt: skip
    parameters = (
        f"const float* a, const float* b, float* out, {', '.join(f'int {n}' for n in names)}"
    )
    text = program(
        rng, "first", parameters, axes(rng, *at), f"float s = 0.0f;\n{step}\nout[{index}] = s;"
    )
    for k in range(rng.choice([1, 2])):
        whole = " * ".join(rng.sample(names, len(names)))
        read = rng.choice(
            ["b[i % cols]", "a[i % (rows * cols)]", "b[i % cols] * a[i / cols % rows]", "0.5f"]
        )
        stored = rng.choice([
            f"out[i] += {read};", f"out[i] = fmaxf(out[i] * 0.5f + {read}, 0.0f);",
            f"float v = out[i];\nif (v > {read}) out[i] = v - 1.0f;",
        ])  # fmt: skip
        text += program(rng, f"then{k}", parameters, axes(rng, ("i", whole)), stored)
    arrays = {"a": Array("f4", ("rows", "cols")), "b": Array("f4", ("cols",)),
              "out": Array("f4", tuple(names), "zeros")}  # fmt: skip
    return Made("finished", text, arrays, *sizes_of(rng, names, (1, 3, 4, 8, 17, 32)))


FAMILY = (maps, maps, in_place, table, normalised, finished)
