"""Copies that change the order of axes, and what cuts off, pads, masks or turns around."""

from __future__ import annotations

import re
from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_EXTENTS = (1, 2, 3, 5, 8, 9, 12, 16, 19, 32, 33)
_WORDS = ("int", "int", "unsigned", "size_t")


def _signed(text: str) -> str:
    """Indices that may be compared with what is below zero."""
    return re.sub(r"unsigned (?!char)(int )?", "int ", text)


def _horner(digits: list[str], extents: dict[str, str]) -> str:
    """The place of an element whose digits these are, the slowest first."""
    place = digits[0]
    for digit in digits[1:]:
        place = f"({place}) * {extents[digit]} + {digit}"
    return place


def permuted(rng: Random) -> Made:
    """Axes in another order, by the digits of the index of what is read or of what is written."""
    count = rng.choice([2, 3, 3, 4, 4])
    names = list("pqrs")[:count]
    extents = dict(zip(names, ["b", "c", "d", "e"], strict=False))
    order = rng.sample(names, count)
    words = rng.choice(_WORDS)
    lines, taken, weights = [], rng.choice(["steps", "steps", "weights", "mixed"]), list[str]()
    if taken == "steps":
        lines.append(f"{words} t = i;")
    for name in reversed(names):
        size = extents[name]
        if taken == "steps":
            last = name == names[0] and rng.choice([0, 1])
            lines.append(f"{rng.choice(['int', words])} {name} = {'t' if last else f't % {size}'};")
            lines.append(rng.choice([f"t /= {size};", f"t = t / {size};"]))
            continue
        by = " / ".join(weights) if taken == "mixed" else f"({' * '.join(weights)})"
        digit = f"i / {by}" if weights else "i"
        whole = name == names[0] and rng.choice([0, 1])
        lines.append(f"int {name} = {digit if whole else f'({digit}) % {size}'};")
        weights.append(size)
    there, back = _horner(order, extents), rng.choice([0, 1])
    change = rng.choice(["{}", "{}", "{} * 2", "{} + q"])
    kind, typed = rng.choice([("f4", "float"), ("f4", "float"), ("u1", "unsigned char"), ("f8", "double")])  # fmt: skip
    loaded, stored = ("i", there) if back else (there, "i")
    lines.append(f"out[{stored}] = {change.format(f'a[{loaded}]')};")
    total = " * ".join(extents[n] for n in names)
    parameters = ", ".join(f"int {extents[n]}" for n in names)
    block = rng.choice([32, 64, 128])
    head = f"#pragma optiml launch turned grid(cdiv({total}, {block})) block({block})\n"
    head += f"__global__ void turned(const {typed}* a, {typed}* out, {parameters}) {{\n"
    start = f"{words} i = blockIdx.x * blockDim.x + threadIdx.x;"
    body = "\n".join(lines)
    style = rng.choice(["leave", "inside", "loop"])
    if style == "loop":
        step = "blockDim.x * gridDim.x"
        text = f"for ({start[:-1]}; i < {total}; i += {step}) {{\n{body}\n}}\n}}\n"
        head = head.replace(f"grid(cdiv({total}, {block}))", f"grid({rng.choice([1, 2, 7])})")
    elif style == "inside":
        text = f"{start}\nif (i < {total}) {{\n{body}\n}}\n}}\n"
    else:
        text = f"{start}\nif (i >= {total}) return;\n{body}\n}}\n"
    shape = [extents[n] for n in names]
    turned = [extents[n] for n in order]
    arrays = {"a": Array(kind, tuple(shape if back else turned), "positive"),
              "out": Array(kind, tuple(turned if back else shape), "zeros")}  # fmt: skip
    return Made("permuted", head + text, arrays, *sizes_of(rng, sorted(extents[n] for n in names), _EXTENTS))  # fmt: skip


def windowed(rng: Random) -> Made:
    """Windows whose loops end at the borders, by ``max`` and ``min``."""
    r, stride = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
    low, high = rng.choice([("0", "{n}"), ("0", "{n}"), ("1", "{n} - 1")])

    def loop(k: str, at: str, size: str) -> str:
        wide = size if stride == 1 else f"{size} * {stride}"
        place = at if stride == 1 else f"{at} * {stride}"
        top = high.format(n=wide)
        ends = [f"max({place} - {r}, {low})", f"min({place} + {r}, {top} - 1)"]
        if rng.choice([0, 1]):
            return f"for (int {k} = {ends[0]}; {k} <= {ends[1]}; {k}++)"
        return f"for (int {k} = {ends[0]}; {k} < min({place} + {r + 1}, {top}); ++{k})"

    kind, typed = rng.choice([("f4", "float"), ("u1", "unsigned char"), ("i4", "int")])
    row = "w" if stride == 1 else f"(w * {stride})"
    load = f"a[yy * {row} + xx]"
    inner, begin = rng.choice([
        (f"s += {load};", "0"), (f"if ({load} > s) s = {load};", "0"),
        (f"{{ s += {load} * 2; n++; }}", "0"), (f"s = max(s, (int){load});", "0"),
    ])  # fmt: skip
    counted = "n++" in inner
    body = f"int s = {begin};\n" + ("int n = 0;\n" if counted else "")
    body += f"{loop('yy', 'y', 'h')}\n{loop('xx', 'x', 'w')}\n{inner}\n"
    body += f"out[y * w + x] = {'n > 0 ? s / n : 7' if counted else 's'};"
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "windowed", f"const {typed}* a, {typed}* out, int w, int h", over, body)
    text = _signed(text)
    one, other = sizes_of(rng, ["w", "h"], (3, 4, 5, 8, 12, 16, 24, 32, 33, 48, 64))
    shape = ("h", "w") if stride == 1 else ("2 * h", "2 * w")
    arrays = {"a": Array(kind, shape, "positive"), "out": Array(kind, ("h", "w"), "zeros")}
    return Made("windowed", text, arrays, one, other)


def masked(rng: Random) -> Made:
    """Triangles, borders of zeros, rows of two arrays, rows turned around, planes of a pixel."""
    here = "out[y * w + x]"
    body, shapes = rng.choice([
        (f"{here} = x <= y + 1 ? a[y * w + x] : 0;", ("h", "w")),
        (f"if (x >= y) {here} = a[y * w + x]; else {here} = 0;", ("h", "w")),
        (f"{here} = a[y * w + (w - 1 - x)];", ("h", "w")),
        (f"{here} = a[(h - 1 - y) * w + x];", ("h", "w")),
        ((f"float v = 0;\nif (y >= 1 && y < h - 1 && x >= 1 && x < w - 1)\n"
         f"v = a[(y - 1) * (w - 2) + x - 1];\n{here} = v;"), ("h", "w")),
        (f"if (y < h / 2) {here} = a[y * w + x]; else {here} = b[(y - h / 2) * w + x];", ("h", "w")),
        (("int at = y * w + x;\nfloat u = a[at] * 2, v = b[at];\nout[at] = u;\n"
         "out[at + h * w] = v;\nout[at + 2 * h * w] = u + v;"), ("3 * h", "w")),
    ])  # fmt: skip
    over = axes(rng, ("x", "w"), ("y", "h"))
    text = program(rng, "masked", "const float* a, const float* b, float* out, int w, int h", over, body)  # fmt: skip
    text = _signed(text)
    arrays = {"a": Array("f4", ("h", "w")), "b": Array("f4", ("h", "w")),
              "out": Array("f4", shapes, "zeros")}  # fmt: skip
    return Made(
        "masked", text, arrays, *sizes_of(rng, ["w", "h"], (2, 3, 4, 8, 12, 16, 32, 33, 64))
    )


FAMILY = (permuted, permuted, windowed, masked)
