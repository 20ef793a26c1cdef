"""Kernels whose threads wait for each other between steps: lattices, trees, scans, exchanges."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_LINES = (1, 5, 31, 64, 100, 129, 200, 256)
_SIDES = (1, 3, 8, 13, 16, 17, 31)
_WAIT = "__syncthreads();\n"


def _text(name: str, launch: str, parameters: str, body: str) -> str:
    return (
        f"#pragma optiml launch {name} {launch}\n"
        f"__global__ void {name}({parameters}) {{\n{indented(body)}\n}}\n"
    )


def _steps(rng: Random, inner: str, count: int) -> str:
    """``inner`` several times over, in a loop of some kind whose counter all threads share."""
    head, foot = rng.choice([
        (f"for (int step = 0; step < {count}; ++step) {{\n", "}\n"),
        (f"int step = 0;\nwhile (step < {count}) {{\n", "step++;\n}\n"),
        ("int step = 0;\ndo {\n", f"}} while (++step < {count});\n"),
        (f"for (int step = {count - 1}, left = 7; step >= 0; --step, left += 2) {{\n", "}\n"),
        (f"for (int step = 0; step < {count}; step += 1) {{\nif (rounds == step) break;\n", "}\n"),
    ])  # fmt: skip
    return f"{head}{inner}{foot}"


def _end(rng: Random, value: str) -> str:
    return rng.choice([
        f"if (i < n) out[i] = {value};", f"if (i >= n) return;\nout[i] = {value};",
        f"if (i < n) {{\nfloat v = {value};\nout[i] = v;\n}}",
    ])  # fmt: skip


def _line(rng: Random, name: str, w: int, body: str, room: int) -> Made:
    where = rng.choice([
        f"int t = threadIdx.x;\nint i = blockIdx.x * {w} + t;\n",
        "const int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;\n",
        f"unsigned at = threadIdx.x;\nint t = at;\nint i = t + {w} * blockIdx.x;\n",
    ])  # fmt: skip
    first = rng.choice([
        "s[t] = i < n ? a[i] : 0.0f;\n", "float mine = 0.0f;\nif (i < n) mine = a[i];\ns[t] = mine;\n",
        "if (i < n) s[t] = a[i]; else s[t] = 0.5f;\n",
    ])  # fmt: skip
    declared = f"__shared__ float s[{room}];\n"
    text = _text(name, f"grid(cdiv(n, {w})) block({w})",
                 "const float* a, float* out, int n, int rounds",
                 declared + where + first + body)  # fmt: skip
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    one, other = sizes_of(rng, ["n"], _LINES)
    one["rounds"], other["rounds"] = rng.choice([1, 2, 9]), rng.choice([0, 1, 3])
    return Made(name, text, arrays, one, other)


def lattice(rng: Random) -> Made:
    """Each step takes near elements of the one before."""
    w, far = rng.choice([32, 64, 128]), rng.choice([1, 1, 2, 3])
    edge = f"if (t == 0) {{ {' '.join(f's[{w + k}] = {k}.5f;' for k in range(far))} }}\n"
    before = f"(t >= {far} ? s[t - {far}] : {rng.choice(['0.0f', '1.5f', 's[t]'])})"
    update = rng.choice([
        f"s[t] + s[t + {far}]", f"fmaxf(s[t], s[t + {far}])", f"0.5f * (s[t + {far}] + {before})",
        f"s[t] + {before} - s[t + 1]", f"s[t + {far}] > s[t] ? s[t + 1] : {before}",
    ])  # fmt: skip
    guard = rng.choice(["", "", f"if (t < {w - 3} - step) ", "if (t % 2 == step % 2) "])
    inner = rng.choice([
        f"float next = s[t];\n{guard}next = {update};\n{_WAIT}s[t] = next;\n{_WAIT}",
        f"float next;\nnext = {update};\n{_WAIT}{guard}s[t] = next;\n{_WAIT}",
        f"float next = {update};\n{_WAIT}{guard}s[t] += next;\ncount += s[t] > 1.0f;\n{_WAIT}",
    ])  # fmt: skip
    body = f"{edge}int count = 0;\n{_WAIT}{_steps(rng, inner, rng.choice([1, 3, 4]))}"
    value = rng.choice(["s[t] + count", f"s[t] + s[0] + count + s[{w}]"])
    return _line(rng, "lattice", w, body + _end(rng, value), w + far)


def tree(rng: Random) -> Made:
    """A sum, an extreme or a transform by halves; not all of it is a reduction."""
    w = rng.choice([32, 64, 128])
    head = rng.choice([
        f"for (int d = {w // 2}; d > 0; d /= 2) {{\n", "for (int d = blockDim.x / 2; d > 0; d >>= 1) {\n",
    ])  # fmt: skip
    inner = rng.choice([
        f"if (t < d) s[t] += s[t + d];\n{_WAIT}", f"if (t < d) s[t] = fmaxf(s[t], s[t + d]);\n{_WAIT}",
        (f"float p = 0.0f, q = 0.0f;\nif (t < d) {{ p = s[2 * t]; q = s[2 * t + 1]; }}\n{_WAIT}"
        f"if (t < d) {{ s[t] = p + q; s[t + d] = p - q; }}\n{_WAIT}"),
        f"float other = s[t ^ d];\n{_WAIT}s[t] = t & d ? other - s[t] : s[t] + other;\n{_WAIT}",
        f"float p = s[t], q = s[t ^ d];\n{_WAIT}if ((t & d) == 0 ? q < p : q > p) s[t] = q;\n{_WAIT}",
    ])  # fmt: skip
    value = rng.choice(["s[t]", "s[0]", "s[t] - s[0]"])
    return _line(rng, "tree", w, f"{_WAIT}{head}{inner}}}\n{_end(rng, value)}", w)


def scan(rng: Random) -> Made:
    """What lies before, by distances that double; in one array or from one to the other."""
    w = rng.choice([32, 64])
    combined = rng.choice(["{} + {}", "fmaxf({}, {})"])
    head = f"for (int d = 1; d < {rng.choice([str(w), 'blockDim.x'])}; d *= 2) {{\n"
    left = rng.choice(["s[t - d]", "s[t - d]", "s[t > d ? t - d : 0]"])
    inner = rng.choice([
        f"float v = s[t];\nif (t >= d) v = {combined.format('v', left)};\n{_WAIT}s[t] = v;\n{_WAIT}",
        (f"float v = t >= d ? {left} : 0.0f;\n{_WAIT}"
        f"if (t >= d) s[t] = {combined.format('s[t]', 'v')};\n{_WAIT}"),
    ])  # fmt: skip
    body = f"float own = s[t];\n{_WAIT}{head}{inner}}}\n"
    return _line(rng, "waiting_scan", w, body + _end(rng, rng.choice(["s[t]", "s[t] - own"])), w)


def plane(rng: Random) -> Made:
    """Steps over a tile whose threads are rows and columns."""
    w, h = rng.choice([(8, 8), (16, 4), (8, 16), (32, 4)])
    x, y = ("threadIdx.x", "threadIdx.y") if rng.choice([0, 1]) else ("tx", "ty")
    own, around = f"s[{y}][{x}]", [
        f"({y} > 0 ? s[{y} - 1][{x}] : 0.0f)", f"({y} + 1 < {h} ? s[{y} + 1][{x}] : 1.0f)",
        f"({x} > 0 ? s[{y}][{x} - 1] : 0.5f)", f"({x} + 1 < {w} ? s[{y}][{x} + 1] : 0.0f)",
    ]  # fmt: skip
    update = rng.choice([
        f"{own} + {rng.choice(around)}", f"fminf({own}, {rng.choice(around)})",
        f"0.5f * ({around[0]} + {around[1]})", f"{around[2]} + {around[3]} - {own}",
    ])  # fmt: skip
    inner = f"float next = {update};\n{_WAIT}{own} = next;\n{_WAIT}"
    body = (
        f"__shared__ float s[{h}][{w + rng.choice([0, 1])}];\n"
        "int tx = threadIdx.x, ty = threadIdx.y;\n"
        f"int col = blockIdx.x * {w} + tx, row = blockIdx.y * {h} + ty;\n"
        "bool inside = row < m && col < n;\n"
        f"{own} = inside ? a[row * n + col] : 0.0f;\n{_WAIT}"
        f"{_steps(rng, inner, rng.choice([1, 2, 3]))}"
    ) + rng.choice([
        f"if (inside) out[row * n + col] = {own};",
        f"if (!inside) return;\nout[row * n + col] = {own} + s[0][{x}];",
    ])  # fmt: skip
    text = _text("waiting_plane", f"grid(cdiv(n, {w}), cdiv(m, {h})) block({w}, {h})",
                 "const float* a, float* out, int m, int n, int rounds", body)  # fmt: skip
    arrays = {"a": Array("f4", ("m", "n")), "out": Array("f4", ("m", "n"), "zeros")}
    one, other = sizes_of(rng, ["m", "n"], _SIDES)
    one["rounds"], other["rounds"] = rng.choice([1, 2, 9]), rng.choice([0, 1, 3])
    return Made("waiting_plane", text, arrays, one, other)


def cone(rng: Random) -> Made:
    """Each step leaves fewer elements than the one before, down to what is asked for at the end."""
    w, down, by = rng.choice([32, 64, 128]), rng.choice([True, True, False]), rng.choice([1, 1, 2])
    far = rng.randint(1, by)
    near = f"s[t + {far}]" if down else f"s[t - {far}]"
    bound = f"t < {w} - {by} * step - {by}" if down else f"t >= {by} * step + {by}"
    if rng.choice([0, 0, 1]):
        bound = f"{bound} && t {'>= step' if down else f'< {w} - step'}"
    scale = rng.choice(["0.5f", "c[0]", "c[blockIdx.x]", "c[t]"])
    value = rng.choice([
        f"{scale} * s[t] + 0.25f * {near}", f"fmaxf(s[t], {scale} + {near})",
        f"{near} > s[t] ? {near} - step : {scale}",
    ])  # fmt: skip
    count = rng.choice([1, 3, 3 if "*" in value else w // by - 1])  # products stay exact
    guard = rng.choice([f"if ({bound}) ", f"bool active = {bound};\nif (active) "])
    store = f"{_WAIT}if ({bound}) s[t] = next;\n{_WAIT}"
    inner = rng.choice([
        f"float next = 0.0f;\n{guard}next = {value};\n{store}",
        f"float next = s[t];\n{guard}{{\nnext = {value};\n}}\n{_WAIT}s[t] = next;\n{_WAIT}",
        f"float next = {bound} ? {value} : s[t];\n{_WAIT}s[t] = next;\n{_WAIT}",
        f"{guard}q[t] = {value};\n{_WAIT}if ({bound}) s[t] = q[t];\n{_WAIT}",
        f"float other = {near if down else 's[t]'};\nfloat next = other + {scale};\n{store}",
    ])  # fmt: skip
    last = f"{w} - {by * count}" if down else f"{by * count}"
    end = rng.choice([f"t {'<' if down else '>='} {last}", f"t == {0 if down else w - 1}", "true"])
    whole = f"for (int step = 0; step < {count}; ++step) {{\n{inner}}}\n"
    down_to = inner.replace("step", f"({count} - left)")
    down_to = f"for (int left = {count}; left > 0; left--) {{\n{down_to}}}\n"
    rounds = rng.choice([whole, whole, down_to, _steps(rng, inner, count)])
    body = f"__shared__ float q[{w}];\n{_WAIT}{rounds}"
    made = _line(rng, "cone", w, f"{body}if ({end} && i < n) out[i] = s[t];", w + 4)
    text = made.text.replace("const float* a,", "const float* a, const float* c,")
    arrays = {"a": made.arrays["a"], "c": Array("f4", ("n + 128",)), "out": made.arrays["out"]}
    return replace(made, text=text, arrays=arrays)


def rimmed(rng: Random) -> Made:
    """Several steps in a tile that a name says the extent of, whose rim is right no more."""
    e, plane = rng.choice([(8, True), (16, True), (64, False), (128, False)])
    name, rim = rng.choice(["TILE", "W", "BLOCK_DIM"]), rng.choice(["steps", "steps", "2"])
    said = rng.choice([f"#define {name} {e}\n", f"constexpr int {name} = {e};\n",
                       f"const int {name} = {e};  // of a block\n"])  # fmt: skip
    axes = ["x", "y"] if plane else ["x"]
    own = "".join(f"[t{axis}]" for axis in reversed(axes))
    inner = f"({name} - 2 * {rim})"
    body = f"__shared__ float s{f'[{name}]' * len(axes)}, next{f'[{name}]' * len(axes)};\n"
    for axis in axes:
        body += f"int t{axis} = threadIdx.{axis};\n"
        body += f"int {axis} = {inner} * blockIdx.{axis} + t{axis} - {rim};\n"
    inside = " && ".join(f"{a} >= 0 && {a} < {'n' if a == 'x' else 'm'}" for a in axes)
    place = "y * n + x" if plane else "x"
    edge = rng.choice(["0.5f", "0.0f"])
    body += f"bool inside = {inside};\ns{own} = inside ? a[{place}] : {edge};\n{_WAIT}"
    near = [own.replace(f"t{axis}", f"t{axis} {sign} 1") for axis in axes for sign in "+-"]
    near = rng.sample(near, rng.randint(1, len(near)))
    value = rng.choice([
        f"0.5f * s{own} + " + " + ".join(f"0.25f * s{at}" for at in near),
        f"fmaxf(s{own}, s{near[0]})", f"s{own} - s{near[-1]}",
    ])  # fmt: skip
    bound = " && ".join(f"t{a} >= i && t{a} < {name} - i" for a in axes)
    guard = rng.choice(
        [f"if ({bound}) ", f"if (inside && {bound}) ", f"bool on = inside && {bound};\nif (on) "]
    )
    again = guard[guard.rindex("if ") :]
    last = " && ".join(f"t{a} >= {rim} && t{a} < {name} - {rim}" for a in axes)
    body += (
        f"for (int i = 1; i <= steps; {rng.choice(['i++', '++i', 'i += 1'])}) {{\n"
        f"{guard}next{own} = {value};\n{_WAIT}{again}s{own} = next{own};\n{_WAIT}}}\n"
        f"if (inside && {last}) out[{place}] = s{own};"
    )
    sizes = [f"cdiv({size}, {e} - 2 * {rim})" for size in ("n", "m")[: len(axes)]]
    launch = f"grid({', '.join(sizes)}) block({', '.join([str(e)] * len(axes))})"
    parameters = "const float* a, float* out, int m, int n, int steps"
    shape = ("m", "n") if plane else ("n",)
    arrays = {"a": Array("f4", shape), "out": Array("f4", shape, "zeros")}
    one, other = sizes_of(rng, ["m", "n"], _SIDES if plane else _LINES)
    one["steps"], other["steps"] = rng.choice([1, 2]), rng.choice([1, 2])
    return Made("rimmed", said + _text("rimmed", launch, parameters, body), arrays, one, other)


FAMILY = (lattice, lattice, tree, scan, plane, cone, cone, rimmed)
