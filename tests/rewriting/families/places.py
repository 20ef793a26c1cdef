"""Blocks that find an extreme and its place: trees over pairs, which tell equals apart."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, indented, sizes_of

_ORDERS = {">": ("<", "-INFINITY", "-1e30f"), "<": (">", "INFINITY", "3.4e38f")}


def _taking(rng: Random, op: str, one: tuple[str, str], other: tuple[str, str], types: tuple[str, str]) -> str:  # fmt: skip
    """What takes another thread's pair, where that is better."""
    kind, counter = types
    (v, at), (w, by) = one, other
    names = ""
    if rng.choice([0, 0, 1]):
        names = f"{kind} y = {w};\n{counter} q = {by};\n"
        w, by = "y", "q"
    opposite = _ORDERS[op][0]
    better = rng.choice([f"{w} {op} {v}", f"{v} {opposite} {w}"])
    tie = rng.choice([f"({w} == {v} && {by} < {at})", f"({v} == {w} && {at} > {by})"])
    test = rng.choice([f"{better} || {tie}"] * 7 + [f"{better} || {tie.replace('<', '<=')}"])  # fmt: skip
    taken = [f"{v} = {w};", f"{at} = {by};"]
    rng.shuffle(taken)
    return f"{names}if ({test}) {{ {' '.join(taken)} }}"


def _tree(rng: Random, op: str, width: int, types: tuple[str, str]) -> str:
    """The rounds in which a block puts its pairs together."""
    one, other = ("v[t]", "at[t]"), ("v[t + d]", "at[t + d]")
    taking = _taking(rng, op, one, other, types)
    match rng.randrange(4):
        case 0:
            return f"for (int d = 1; d < {width}; d *= 2) {{\nif (t % (2 * d) == 0) {{\n{taking}\n}}\n__syncthreads();\n}}"  # fmt: skip
        case 1:
            taking = _taking(rng, op, ("v[0]", "at[0]"), ("v[d]", "at[d]"), types)
            return f"if (t == 0) {{\nfor (int d = 1; d < {width}; ++d) {{\n{taking}\n}}\n}}\n__syncthreads();"  # fmt: skip
    head = rng.choice([f"int d = {width // 2}; d > 0; d >>= 1", "int d = blockDim.x / 2; d; d /= 2"])  # fmt: skip
    return f"for ({head}) {{\nif (t < d) {{\n{taking}\n}}\n__syncthreads();\n}}"


def found(rng: Random) -> Made:
    """A block for every row, or one element of it a thread."""
    width, op = rng.choice([32, 64, 128]), rng.choice([">", "<"])
    whole = rng.choice([0, 0, 1])
    types = (("float", "int")[whole], rng.choice(["int", "int", "long long", "unsigned"]))
    kind, counter = types
    begin = rng.choice(["100000", "9999"] if whole else _ORDERS[op][1:])
    begin = f"-{begin}" if whole and op == ">" else begin
    step = rng.choice(["blockDim.x", str(width)])
    keeps = rng.choice([op, op, op, f"{op}="])
    at = rng.choice(["j", "j", "j", "cols - j"])
    first = rng.choice(["0", "0", "-1", "t"]) if counter != "unsigned" else "0"
    shape = rng.choice(["rounds", "rounds", "element"])
    if shape == "rounds":
        body = (
            f"{kind} best = {begin};\n{counter} place = {first};\n"
            f"for ({counter} j = t; j < cols; j += {step}) {{\n{kind} x = a[row * cols + j];\n"
            f"if (x {keeps} best) {{ best = x; place = {at}; }}\n}}\nv[t] = best;\nat[t] = place;"
        )
    else:
        body = (
            f"{counter} i = ({counter})row * {width} + t;\n"
            f"v[t] = i < rows * cols ? a[i] : {begin};\nat[t] = {rng.choice(['i', 't', 'i'])};"
        )
    ended = rng.choice(["best_of[row] = v[0];\nplace_of[row] = at[0];", "place_of[row] = at[0];\nbest_of[row] = v[0];"])  # fmt: skip
    lines = (
        f"__shared__ {kind} v[{width}];\n__shared__ {counter} at[{width}];\nint t = threadIdx.x, row = blockIdx.x;\n"
        f"{body}\n__syncthreads();\n{_tree(rng, op, width, types)}\nif (t == 0) {{\n{ended}\n}}"
    )
    text = (
        f"#pragma optiml launch found grid(rows) block({width})\n"
        f"__global__ void found(const {kind}* a, {kind}* best_of, {counter}* place_of, int rows, int cols) {{\n"
        f"{indented(lines)}\n}}\n"
    )
    dtype, places = {"float": "f4", "int": "i4"}[kind], {"int": "i4", "unsigned": "u4", "long long": "i8"}[counter]  # fmt: skip
    arrays = {"a": Array(dtype, ("rows", "cols")), "best_of": Array(dtype, ("rows",), "zeros"), "place_of": Array(places, ("rows",), "zeros")}  # fmt: skip
    return Made("block_places", text, arrays, *sizes_of(rng, ["rows", "cols"], (1, 2, 5, 31, 33, 65, 127, 200)))  # fmt: skip


FAMILY = (found,)
