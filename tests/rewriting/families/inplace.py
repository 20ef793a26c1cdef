"""A thread a line that goes through an array in place: sums, filters, sweeps there and back."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program, sizes_of

_LENGTHS = (1, 2, 3, 5, 8, 9, 17, 33, 40)


def inplace(rng: Random) -> Made:
    """Rounds that load elements of an array, at and beside their own, and store one or two."""
    place = rng.choice(["j * w + i", "j * w + i", "i * h + j", "j * s + i", "(h - 1 - j) * w + i"])
    near = [f"x[{place}]", f"x[{place.replace('j', '(j - 1)', 1)}]",
            f"x[{place.replace('j', '(j + 1)', 1)}]", "y[j]", f"y[{place}]", "last"]  # fmt: skip
    value = f" {rng.choice('+-')} ".join(rng.sample(near, rng.choice([1, 2, 2, 3])))
    steps = [f"last = {value};" if rng.random() < 0.5 else f"float v = {value}; last += v;"]
    steps.append(
        f"x[{place}] {rng.choice(['=', '=', '=', '+=', '-='])} {rng.choice(['last', 'last', '0.5f * last', 'y[j]'])};"
    )
    if rng.random() < 0.25 and not any("y[" in step for step in steps):  # else threads race
        steps.append(f"y[j * w + i] = {rng.choice(near[:3])};")
    if rng.random() < 0.15:
        steps.reverse()
    if rng.random() < 0.15:
        steps[-1] = f"if (few[j] > 0) {{ {steps[-1]} }}"
    head = rng.choice([
        "int j = 1; j < h - 1; ++j", "int j = 1; j + 1 < h; j++", "int j = h - 2; j > 0; --j",
        "size_t j = 1; j < h - 1; j++" if "- 1" not in value else "int j = 1; j < h - 1; j++",
    ])  # fmt: skip
    body = f"float last = 0.5f;\nfor ({head}) {{\n" + "\n".join(steps) + "\n}\n"
    parameters = "float* x, float* y, const int* few, int w, int h, int s"
    text = program(rng, "inplace", parameters, axes(rng, ("i", "w")), body)
    text = text.replace("unsigned int ", "int ").replace("unsigned ", "int ")
    one, other = sizes_of(rng, ["w"], _LENGTHS)
    for sizes in (one, other):
        sizes["h"] = rng.choice(_LENGTHS)
        sizes["s"] = sizes["w"] * rng.choice([1, 1, 2])
    side = Array("f4", ("(h + 1)", "2 * w + s"), "zeros")
    arrays = {
        "x": Array("f4", side.shape),
        "y": Array("f4", side.shape),
        "few": Array("i4", ("h",)),
    }
    return Made("inplace", text, arrays, one, other, exact=False)


FAMILY = (inplace,)
