"""Loops over the same elements: softmax, norms and sums of rows and columns, also in place."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import LONG_EXTENTS, Array, Made, axes, flat, program, sizes_of

from .rows import counting

_PARAMETERS = "const float* a, const float* x, float* out, int rows, int cols"


def _first(rng: Random, element: str, target: str) -> tuple[str, str, str]:
    """A declaration, what the first loop does, and what it leaves; exact in any order."""
    return rng.choice([
        ("float s = 0.0f;", f"s += {element};", "s"),
        ("float s = -100.0f;", f"s = fmaxf(s, {element});", "s"),
        ("float s = -100.0f;", f"if ({element} > s) s = {element};", "s"),
        ("float s = 0.0f;", f"float v = {element} * x[j];\n{target} = v;\ns += v;", "s"),
        ("float s = 0.5f;", f"{target} = {element} + 1.0f;\ns += {target};", "s"),
        ("float s = 0.0f, q = 0.0f;", f"float v = {element};\ns += v;\nq += v * v;", "s + q"),
    ])  # fmt: skip


def _later(rng: Random, element: str, target: str, left: str, *, stored: bool) -> list[str]:
    """What the loops behind the first do, one or two of them."""
    steps = [
        f"{target} = {element} - {left};",
        f"t += fabsf({element} - {left});",
        f"if ({element} > x[j]) t += {element};",
        f"for (int i = 0; i < 2; ++i) t += {element} * i;",
    ]
    if stored:
        steps += [
            f"{target} -= {left};",
            f"t += {target};",
            f"{target} = {target} * 0.5f + {left};",
        ]
        steps += [f"if (t > 1.0f) {target} = {left};"]
    return [rng.choice(steps) for _ in range(rng.choice([1, 1, 2]))]


def _loops(rng: Random, element: str, target: str, name: str) -> str:
    declared, step, left = _first(rng, element, target)
    stored = target in step
    parts = [declared, "float t = 0.0f;", counting(rng, step)]
    if rng.choice([0, 0, 0, 1]):
        parts.append(rng.choice([f"if ({left} > 3.0f) return;", f"if (x[0] > 0.0f) {target.replace('j', '0')} = 3.0f;"]))  # fmt: skip
    parts += [counting(rng, s) for s in _later(rng, element, target, left, stored=stored)]
    return "\n".join([*parts, f"sums[{name}] = t + {left};"])


def _arrays(shape: tuple[str, str], count: str) -> dict[str, Array]:
    return {
        "a": Array("f4", shape),
        "x": Array("f4", ("cols",)),
        "out": Array("f4", shape),
        "sums": Array("f4", (count,), "zeros"),
    }


def alone(rng: Random) -> Made:
    """A thread goes over a row of its own, or over a column, several times."""
    column = rng.choice([0, 1, 1])
    at = flat(rng, "j", "rows", "row") if column else flat(rng, "row", "cols", "j")
    element = rng.choice([f"a[{at}]", f"a[{at}]", f"out[{at}]"])
    body = _loops(rng, element, f"out[{at}]", "row")
    parameters = _PARAMETERS.replace("int rows", "float* sums, int rows")
    text = program(rng, "again", parameters, axes(rng, ("row", "rows")), body)
    shape = ("cols", "rows") if column else ("rows", "cols")
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("again", text, _arrays(shape, "rows"), *sizes, inout=("out",))


_TREE = """\
{name}[threadIdx.x] = {value};
__syncthreads();
for (int h = {half}; h > 0; h /= 2) {{
if (threadIdx.x < h) {name}[threadIdx.x] += {name}[threadIdx.x + h];
__syncthreads();
}}
float {whole} = {name}[0];
__syncthreads();"""


def together(rng: Random) -> Made:
    """The threads of a block go over a row, and combine what they found in between."""
    width = rng.choice([16, 32, 64])
    stride = rng.choice([str(width), "blockDim.x"])
    at = rng.choice(["row * cols + j", "cols * row + j"])
    element, target = f"a[{at}]", f"out[{at}]"
    head = f"for (int j = threadIdx.x; j < cols; j += {stride})"
    stored = rng.choice([0, 1])
    first = f"{target} = {element} * 2.0f;\ns += {target};" if stored else f"s += {element};"
    parts = ["int row = blockIdx.x;", "__shared__ float held[64];", "float s = 0.0f;"]
    parts.append(f"{head} {{\n{first}\n}}")
    parts.append(_TREE.format(name="held", value="s", half=width // 2, whole="total"))
    later = [f"{target} = {element} - total;"]
    if stored:
        later = [f"{target} -= total;", f"{target} = {target} * 0.5f;", *later]
    if rng.choice([0, 1]):
        parts += ["float q = 0.0f;", f"{head} q += fabsf({element}) + total;"]
        parts.append(_TREE.format(name="held", value="q", half=width // 2, whole="more"))
        later = [f"{target} = {element} - more;", f"{target} = {element} + total * more;"]
    parts.append(f"{head} {rng.choice(later)}")
    body = "\n".join(parts)
    text = f"#pragma optiml launch again grid(rows) block({width})\n__global__ void again({_PARAMETERS}) {{\n{body}\n}}\n"  # fmt: skip
    arrays = {n: array for n, array in _arrays(("rows", "cols"), "1").items() if n != "sums"}
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("again_block", text, arrays, *sizes, inout=("out",))


def online(rng: Random) -> Made:
    """The greatest value so far, and sums that are scaled anew as it grows, then what they are for."""
    element = rng.choice([f"a[{flat(rng, 'r', 'cols', 'j')}]", f"a[{flat(rng, 'j', 'rows', 'r')}]"])
    named = f"float t = {element};\n"
    step = rng.choice([
        f"{named}float n = fmaxf(m, t);\nd = d * expf(m - n) + expf(t - n);\nm = n;",
        f"float n = max({element}, m);\nd = d * expf(m - n) + expf({element} - n);\nm = n;",
        f"{named}if (t > m) {{ d *= expf(m - t); m = t; }}\nd += expf(t - m);",
        f"{named}if (t > m) {{ d = d * __expf(m - t) + 1.0f; m = t; }} else d += __expf(t - m);",
        (f"{named}float old = m;\nif (m < t) m = t;\nfloat f = expf(old - m), p = expf(t - m);\n"
         "d = d * f + p;\no = o * f + p * x[j];"),
        f"{named}float n = t > m ? t : m;\nd = d * expf(m - t) + expf(t - n);\nm = n;",
        f"{named}float n = fmaxf(m, t);\nd = d * expf(m - n) + j * expf(t - n);\nm = n;",
        f"{named}float n = fmaxf(m, t);\nd = d * expf(m - n) - expf(t - n);\nif (j > 1) m = n;",
    ])  # fmt: skip
    begin = rng.choice(["-1e30f", "-100.0f", "a[0]", "-INFINITY"])
    last = counting(rng, f"{element.replace('a[', 'out[', 1)} = expf({element} - m) / d;")
    behind = rng.choice(["", f"{last}\n"])
    body = (
        f"float m = {begin}, d = {rng.choice(['0.0f', '0.0f', '1.0f'])}, o = x[0];\n"
        f"{counting(rng, step)}\n{behind}sums[r] = m + d + o;"
    )
    parameters = "const float* a, const float* x, float* out, float* sums, int rows, int cols"
    text = program(rng, "online", parameters, axes(rng, ("r", "rows")), body)
    arrays = _arrays(("rows", "cols"), "rows")
    sizes = sizes_of(rng, ["rows", "cols"], LONG_EXTENTS)
    return Made("online", text, arrays, *sizes, exact=False)


FAMILY = (alone, alone, together, online)
