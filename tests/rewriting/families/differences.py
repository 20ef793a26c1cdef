"""Elements of two rows that differ, counted for all pairs of rows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.rewriting.writing import Array, Made, axes, indented, program

from .rows import counting

_MANY, _LONG = (32, 33, 37, 40, 48), (64, 65, 70, 96, 100)
_FEW, _SHORT = (1, 2, 5, 31, 33), (1, 3, 31, 32, 64, 65)
_KINDS = {
    "int": "i4", "unsigned int": "u4", "unsigned char": "u1", "signed char": "i1", "short": "i2",
    "unsigned short": "u2",
}  # fmt: skip
_CONTENTS = ("below d", "below few", "few bits", "numbers")
_DIFFERS = """\
__device__ __forceinline__ bool differ(KIND one, KIND other) {
    return one != other;
}
"""


def _compared(rng: Random, kind: str, one: str, other: str) -> tuple[str, str]:
    """A round that counts in ``c``, and a function that it calls."""
    if rng.random() < 0.5:
        one, other = other, one
    calls = rng.choice(["if (differ({0}, {1})) c++;", "c += differ({0}, {1});"])
    step, above = rng.choice([
        ("if ({0} != {1}) c++;", ""), ("if ({0} == {1}) c++;", ""), ("c += {0} != {1};", ""),
        ("c += ({0} == {1});", ""), ("c += {0} != {1} ? 1 : 0;", ""),
        ("c += ({0} == {1}) ? 0 : 1;", ""), ("if ({0} == {1}) continue;\nc += 1;", ""),
        (f"const {kind} one = {{0}};\nconst {kind} other = {{1}};\nif (one != other) {{{{ c += 1; }}}}", ""),
        ("const bool same = {0} == {1};\nif (!same) ++c;", ""), ("if (!({0} == {1})) c++;", ""),
        ("auto u = {0}, v = {1};\nc += int(u != v);", ""), (calls, _DIFFERS.replace("KIND", kind)),
    ])  # fmt: skip
    return step.format(one, other), above


def _rounds(rng: Random, step: str) -> str:
    return rng.choice([
        f"for (int k = 0; k < d; k++) {{\n{step}\n}}", f"for (int k = 0; k < d; ++k) {{\n{step}\n}}",
        f"#pragma unroll 4\nfor (int k = 0; k < d; k++) {{\n{step}\n}}",
        f"for (int k = 0; k <= d - 1; k += 1) {{\n{step}\n}}",
    ])  # fmt: skip


def _places(rng: Random, *, two: bool) -> tuple[str, str, bool]:
    """The elements of both rows, and whether rows are columns of memory."""
    other = "b" if two else "a"
    turned = rng.choice([False, False, False, True])
    if turned:
        return "a[k * n + i]", f"{other}[k * {'m' if two else 'n'} + j]", True
    one = rng.choice(["a[i * d + k]", "a[k + i * d]", "a[d * i + k]"])
    return one, one.replace("a[", f"{other}[").replace("i", "j"), False


def _arrays(rng: Random, kind: str, *, two: bool, turned: bool, out: str) -> dict[str, Array]:
    content, letter = rng.choice(_CONTENTS), _KINDS.get(kind, "f4")
    columns = "m" if two else "n"
    found = {"a": Array(letter, ("d", "n") if turned else ("n", "d"), content)}
    if two:
        found["b"] = Array(letter, ("d", "m") if turned else ("m", "d"), content)
    return {**found, "out": Array(out, ("n", columns), "zeros")}


def _made(
    rng: Random, name: str, text: str, arrays: dict[str, Array], *, two: bool, exact: bool = True
) -> Made:
    first = {"n": rng.choice(_MANY), "d": rng.choice(_LONG), "few": 4}
    others = {"n": rng.choice(_FEW), "d": rng.choice(_SHORT), "few": 4}
    if two:
        first["m"], others["m"] = rng.choice(_MANY), rng.choice(_FEW)
    return Made(name, text, arrays, first, others, exact=exact, hidden=("few",))


def _parameters(kind: str, out: str, *, two: bool) -> str:
    given = f"const {kind}* a, const {kind}* b" if two else f"const {kind}* a"
    return f"{given}, {out}* out, int n, {'int m, ' if two else ''}int d"


def mismatches(rng: Random) -> Made:
    """A thread a pair, of one set of rows or of two."""
    two, kind = rng.random() < 0.5, rng.choice([*_KINDS])
    one, other, turned = _places(rng, two=two)
    step, above = _compared(rng, kind, one, other)
    columns = "m" if two else "n"
    begun, end = rng.choice(
        [("0", "c"), ("0", "c"), ("0", "d - c"), ("i + j", "2 * c"), ("3", "c")]
    )
    held = rng.choice(["int", "int", "unsigned int", "long long"])
    body = f"{held} c = {begun};\n{_rounds(rng, step)}\nout[i * {columns} + j] = {end};"
    over = axes(rng, ("j", columns), ("i", "n"))
    text = program(
        rng, "mismatches", _parameters(kind, "int", two=two), over, body, above=above
    )  # fmt: skip
    arrays = _arrays(rng, kind, two=two, turned=turned, out="i4")
    return _made(rng, "mismatches", text, arrays, two=two)


def shares(rng: Random) -> Made:
    """What part of two rows is alike, or a distance that is made of it."""
    two, kind = rng.random() < 0.5, rng.choice([*_KINDS])
    one, other, turned = _places(rng, two=two)
    step, above = _compared(rng, kind, one, other)
    columns = "m" if two else "n"
    end = rng.choice([
        "(float)c / d", "1.0f - c / (float)d", "c * 0.125f", "c > d / 2 ? 1.0f : 0.0f",
        "sqrtf((float)c)", "-0.75f * logf(1.0f - c / (2.0f * d))", "expf(-(float)c / d)",
    ])  # fmt: skip
    body = f"int c = 0;\n{_rounds(rng, step)}\nout[i * {columns} + j] = {end};"
    over = axes(rng, ("j", columns), ("i", "n"))
    text = program(rng, "shares", _parameters(kind, "float", two=two), over, body, above=above)
    arrays = _arrays(rng, kind, two=two, turned=turned, out="f4")
    return _made(rng, "shares", text, arrays, two=two, exact=False)


def once(rng: Random) -> Made:
    """Pairs of one side of the diagonal, some of them written to both."""
    kind = rng.choice([*_KINDS])
    one, other, turned = _places(rng, two=False)
    step, above = _compared(rng, kind, one, other)
    test = rng.choice(["j > i", "i < j", "j >= i", "j < i", "i >= j"])
    both = rng.choice(["", "", "\nout[j * n + i] = c;"])
    counted = f"int c = 0;\n{_rounds(rng, step)}\nout[i * n + j] = c;{both}"
    left = rng.choice([f"if (!({test})) return;\n{counted}", f"if ({test}) {{\n{counted}\n}}"])
    over = axes(rng, ("j", "n"), ("i", "n"))
    text = program(rng, "once", _parameters(kind, "int", two=False), over, left, above=above)
    arrays = _arrays(rng, kind, two=False, turned=turned, out="i4")
    return replace(_made(rng, "once", text, arrays, two=False), inout=("out",))


def by_blocks(rng: Random) -> Made:
    """A block a pair, whose threads share out the rounds."""
    two, kind, width = rng.random() < 0.5, rng.choice([*_KINDS]), rng.choice([32, 64, 128])
    one, other, turned = _places(rng, two=two)
    step, above = _compared(rng, kind, one, other)
    columns = "m" if two else "n"
    place = f"out[i * {columns} + j]"
    summed, zeroed = f"atomicAdd(&{place}, c);", "#pragma optiml zero(out)\n"
    if rng.random() < 0.6:
        zeroed = ""
        summed = rng.choice([
            f"""__shared__ int sums[{width}];
sums[threadIdx.x] = c;
__syncthreads();
for (int s = {width // 2}; s > 0; s /= 2) {{
if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
__syncthreads();
}}
if (threadIdx.x == 0) {place} = sums[0];""",
            f"""__shared__ int sum;
if (threadIdx.x == 0) sum = 0;
__syncthreads();
atomicAdd(&sum, c);
__syncthreads();
if (threadIdx.x == 0) {place} = sum;""",
        ])  # fmt: skip
    rows, across = rng.choice([("y", "x"), ("x", "y")])
    grid = f"{columns}, n" if rows == "y" else f"n, {columns}"
    stride = rng.choice(["blockDim.x", str(width)])
    body = (
        f"int i = blockIdx.{rows}, j = blockIdx.{across};\nint c = 0;\n"
        f"for (int k = threadIdx.x; k < d; k += {stride}) {{\n{step}\n}}\n{summed}"
    )
    text = (
        f"{above}{zeroed}#pragma optiml launch by_blocks grid({grid}) block({width})\n"
        f"__global__ void by_blocks({_parameters(kind, 'int', two=two)}) {{\n{indented(body)}\n}}\n"
    )
    arrays = _arrays(rng, kind, two=two, turned=turned, out="i4")
    return _made(rng, "by blocks", text, arrays, two=two)


def nearly(rng: Random) -> Made:
    """Rounds that ask for more than whether two elements differ."""
    kind = rng.choice([*_KINDS, "float"])
    one, other, turned = _places(rng, two=False)
    update = rng.choice([
        "if ({0} < {1}) c++;", "if ({0} != {1} && {0} != 3) c++;", "if ({0} != {1}) c += k;",
        "if ({0} == 0 || {1} == 0) continue;\nif ({0} != {1}) c++;", "c ^= {0} != {1};",
        "if ({0} != {1}) c++;\nif (c > 9) break;", "c += ((int){0} & 1) != ((int){1} & 1);",
        "if ({0} != {1}) c++; else c--;", "if (k > 3 && {0} == {1}) c++;", "c += {0} - {1};",
        "if ((signed char){0} != (signed char){1}) c++;", "if ({0} != {1}) c = k;",
        "c += {0} != {1};\nif ({0} == 2) c += 2;", "if ({0} != {1}) c += 2;",
        "c += (unsigned char){0} == {1};", "if (__popc((int){0} ^ (int){1}) > 1) c++;",
    ])  # fmt: skip
    body = f"int c = 0;\n{counting(rng, update.format(one, other), 'k', 'd')}\nout[i * n + j] = c;"
    over = axes(rng, ("j", "n"), ("i", "n"))
    text = program(rng, "nearly", _parameters(kind, "int", two=False), over, body)
    arrays = _arrays(rng, kind, two=False, turned=turned, out="i4")
    return _made(rng, "nearly differences", text, arrays, two=False)


def nearest(rng: Random) -> Made:
    """The row of many that differs least from a thread's own, and by how much."""
    kind = rng.choice([*_KINDS])
    one, other, turned = _places(rng, two=True)
    step, above = _compared(rng, kind, one, other)
    kept = rng.choice([
        "if (c < least) { least = c; at = j; }", "least = min(least, c);\nif (c == least) at = j;",
    ])  # fmt: skip
    tried = f"int c = 0;\n{_rounds(rng, step)}\n{kept}"
    body = (
        f"int least = d + 1, at = -1;\nfor (int j = 0; j < m; j++) {{\n{tried}\n}}\n"
        "out[2 * i] = at;\nout[2 * i + 1] = least;"
    )
    text = program(
        rng, "nearest", _parameters(kind, "int", two=True), axes(rng, ("i", "n")), body,
        above=above,
    )  # fmt: skip
    arrays = _arrays(rng, kind, two=True, turned=turned, out="i4")
    arrays["out"] = Array("i4", ("n", "2"), "zeros")
    return _made(rng, "nearest", text, arrays, two=True)


FAMILY = (mismatches, shares, once, by_blocks, nearly, nearest)
