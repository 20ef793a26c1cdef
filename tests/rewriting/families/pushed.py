"""Threads that add to elements which their places and rounds name, and data now and then."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made

_HEAD = "const float* a, const float* b, float* out, float* more, int* num, int n, int m, int w"
_PLANE = """\
#pragma optiml launch pushed grid(cdiv(m, 8), cdiv(n, 4)) block(8, 4)
__global__ void pushed({head}) {{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
{guarded}
}}
"""
_FLAT = """\
#pragma optiml launch pushed grid(cdiv(n * m, 32)) block(32)
__global__ void pushed({head}) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n * m) return;
    int {first} = t / {size}, {second} = t % {size};
{body}
}}
"""
_LINE = """\
#pragma optiml launch pushed grid(cdiv(n, 32)) block(32)
__global__ void pushed({head}) {{
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    const int c = {place};
{body}
}}
"""
_OPS = ("Add", "Add", "Add", "Max", "Min", "Sub")


def pushed(rng: Random) -> Made:
    """A nest of loops in which threads update elements, and what they find for that before."""
    rounds = ["for (int i = 0; i < w; i++)"]
    if rng.random() < 0.4:
        rounds.append(rng.choice([
            "for (int j = 0; j < 3; ++j)", "for (int j = 0; j <= i; j++)",
            "for (int j = 0; j < m; j += 1)", "for (int j = i; j < w; ++j)",
        ]))  # fmt: skip
    inner = len(rounds) > 1
    places = [
        "c * w + i",
        "i",
        "r * w + i",
        "i * m + c",
        "(i + c)",
        "w - 1 - i",
        "(int)a[c] * w + i",
    ]
    if inner:
        places += ["(c * w + i) * w + j", "i * w + j", "j", "(i * 3 + j) % (w * w)", "c * w + j"]
    factors = [
        "a[r * m + c]",
        "b[r * w + i]",
        "(float)(r - c)",
        "b[c % n * w + i]",
        "2.0f",
        "g",
        "h",
    ]
    factors += ["p[c % 3]", "b[r * w + j % w]"] if inner else []
    updates, kind = [], rng.choice(_OPS)
    for _ in range(rng.choice([1, 1, 2, 3])):
        value = f" {rng.choice('*+-')} ".join(rng.sample(factors, rng.choice([1, 2])))
        whole = rng.random() < 0.3
        op = kind if whole else "Add"
        array = "num" if whole else rng.choice(["out", "out", "more"])
        given = f"(int)({value})" if whole else value
        place = rng.choice(places)
        where = rng.choice([f"&{array}[{place}]", f"&{array}[{place}]", f"{array} + ({place})"])
        test = rng.choice(["", "", "", "", "if (b[r * w + i] > 1.0f) ", "if (i > 0) "])
        updates.append(f"{test}atomic{op}({where}, {given});")
    if rng.random() < 0.2:
        updates.append(rng.choice(["num[0] = n;", "if (i == 3) break;", "g += 1.0f;"]))
    found = {
        "g": ["float g = a[r * m + c];", "float g = rintf(a[r * m + c] * 0.5f);",
              "float g = 0.0f; for (int k = 0; k < w; k++) g += b[r * w + k];",
              "float z = 0.0f; for (int k = 0; k < w; k++) z += b[r * w + k]; float g = z + 1.0f;"],
        "h": ["float h = g * 2.0f;", "const float h = rintf(powf(g, 2.0f));", "float h = c;"],
        "p": ["float p[3]; for (int k = 0; k < 3; k++) p[k] = g * k;"],
    }  # fmt: skip
    text, asked = " ".join(updates), list[str]()
    if "p[" in text:
        asked.append("p")
    asked += [name for name in "hg" if name in "".join(updates) or asked]
    before = [rng.choice(found[name]) for name in ("g", "h", "p") if name in asked or name == "g"]
    middle = rng.choice(["", "", "float q = b[r * w + i]; "]) if not inner else ""
    nest = f"{{ {middle}{text} }}"
    for head in reversed(rounds):
        nest = f"{head} {nest}"
    extra = rng.choice(["", "", "", " atomicAdd(&num[c], 1);", " more[r * m + c] = g;"])
    body = f"    {' '.join(before)}{extra}\n    {nest}"
    shape = rng.choice(["plane", "plane", "flat", "line"])
    if shape == "plane":
        guard = rng.choice(["if (r >= n || c >= m) return;\n{0}", "if (c >= m) return;\nif (r >= n) return;\n{0}",
                            "if (r < n && c < m) {{\n{0}\n}}", "if (r < n) if (c < m) {{\n{0}\n}}"])  # fmt: skip
        whole = _PLANE.format(head=_HEAD, guarded=guard.format(body))
    elif shape == "flat":
        first, second, size = rng.choice([("r", "c", "m"), ("c", "r", "n")])
        whole = _FLAT.format(head=_HEAD, body=body, first=first, second=second, size=size)
    else:
        whole = _LINE.format(head=_HEAD, body=body, place=rng.choice(["r % m", "0", "m - 1"]))
    one, other = (
        {"n": rng.choice([1, 3, 9, 17]), "m": rng.choice([1, 2, 8, 11]), "w": rng.choice([1, 4, 7])}
        for _ in range(2)
    )
    room = "n * w + m * w * (w + 3) + 8 * w + n * m + 9 * w * w"
    arrays = {
        "a": Array("f4", ("n", "m"), "below eight"),
        "b": Array("f4", ("n", "w"), "below eight"),
        "out": Array("f4", (room,), "numbers"),
        "more": Array("f4", (room,), "numbers"),
        "num": Array("i4", (room,), "numbers"),
    }
    one["eight"], other["eight"] = 8, 8
    return Made("pushed", whole, arrays, one, other, exact=False, hidden=("eight",))


FAMILY = (pushed,)
