"""Symbols of a few bits in words: packed bases, maps of bits, fingerprints, genotypes."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_LONG = (0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128)
_ROWS = (1, 7, 33, 40)
_MOST = 200  # symbols of a row
_KINDS = {"u1": "unsigned char", "u4": "unsigned int", "u8": "unsigned long long", "i4": "int"}
_MASKS = {1: ("1", "1u"), 2: ("3", "3u"), 4: ("15", "0xf")}


class _Packing:
    """How symbols lie in words, and how a kernel asks for one of them."""

    def __init__(self, rng: Random) -> None:
        self.dtype = rng.choice(["u4", "u4", "u4", "u8", "u1", "i4"])
        self.bits = rng.choice([1, 2, 2, 4])
        self.width = 8 * int(self.dtype[1])
        self.count = self.width // self.bits
        self.stride = -(-_MOST // self.count)
        self.top = rng.choice([False, False, False, True])
        self.function = rng.choice([0, 1])
        self.masked = rng.choice([0, 1])
        self.mask = rng.choice(_MASKS[self.bits])
        self.powers = [self.count.bit_length() - 1, self.bits.bit_length() - 1]

    def place(self, rng: Random, at: str) -> str:
        rest = f"{at} & {self.count - 1}" if self.masked else f"{at} % {self.count}"
        shifted = f"(({rest}) << {self.powers[1]})" if self.bits > 1 else f"({rest})"
        shift = rng.choice([f"{self.bits} * ({rest})", shifted])
        return f"{self.width - self.bits} - {shift}" if self.top else shift

    def spelled(self, rng: Random, array: str, at: str) -> str:
        at = f"({at})" if "+" in at else at
        word = f"{at} >> {self.powers[0]}" if self.masked else f"{at} / {self.count}"
        return f"(({array}[{word}] >> ({self.place(rng, at)})) & {self.mask})"

    def above(self, rng: Random) -> str:
        kind = rng.choice(["int", "unsigned int", "unsigned char"])
        body = f"return {self.spelled(rng, 'w', 'at')};"
        if rng.choice([0, 1]):
            word = f"at >> {self.powers[0]}" if self.masked else f"at / {self.count}"
            shift, own = self.place(rng, "at"), _KINDS[self.dtype]
            body = f"const {own} v = w[{word}];\nreturn (v >> ({shift})) & {self.mask};"
        return f"__device__ {kind} sym(const {_KINDS[self.dtype]}* w, int at) {{\n{body}\n}}\n"

    def symbol(self, rng: Random, array: str, at: str) -> str:
        return f"sym({array}, {at})" if self.function else self.spelled(rng, array, at)


def _asked(rng: Random, one: str, other: str, bits: int) -> str:
    return rng.choice([
        f"{one} == {other}", f"{one} != {other}", f"{one} && {other}", f"{one} || !{other}",
        f"({one} & {other}) != 0", f"{one} == {rng.randrange(1 << bits)}", f"({one} ^ {other})",
    ])  # fmt: skip


def _made(rng: Random, family: str, packing: _Packing, inner: str, *, few: bool) -> Made:
    kind = _KINDS[packing.dtype]
    start = rng.choice([
        f"const {kind}* x = a + i * {packing.stride};\nconst {kind}* y = b + i * {packing.stride};",
        f"const {kind}* x = &a[{packing.stride} * i];\nconst {kind}* y = &b[{packing.stride} * i];",
    ])  # fmt: skip
    body = f"{start}\nint d = 0, e = 0;\n{inner}\nout[2 * i] = d;\nout[2 * i + 1] = e;"
    parameters = f"const {kind}* a, const {kind}* b, int* out, int n, int m, int p, int q"
    above = packing.above(rng) if packing.function else ""
    text = program(rng, family, parameters, axes(rng, ("i", "n")), body, above=above)
    content = "few bits" if few else "bits"
    words = Array(packing.dtype, ("n", str(packing.stride)), content)
    arrays = {"a": words, "b": words, "out": Array("i4", ("2 * n",), "zeros")}
    first, second = (
        {"n": rng.choice(_ROWS), "m": rng.choice(_LONG), "p": rng.choice([0, 3, 16, 37]),
         "q": rng.choice([0, 1, 32])} for _ in range(2)
    )  # fmt: skip
    return Made(family, text, arrays, first, second)


def counted_symbols(rng: Random) -> Made:
    """How many symbols of two rows are alike, or are of a kind."""
    packing = _Packing(rng)
    one = packing.symbol(rng, "x", rng.choice(["j", "j + p", "p + j"]))
    other = packing.symbol(rng, "y", rng.choice(["j", "j", "j + q"]))
    asked = _asked(rng, one, other, packing.bits)
    work = rng.choice([
        f"if ({asked}) d++;", f"d += ({asked}) ? 3 : -2;", f"if ({asked}) ++d; else e += q;",
        f"d += {one};\nif ({asked}) e -= 1;", f"if (!({asked})) continue;\nd = d + 2;",
        f"const int s = {one}, t = {other};\nd += s == t;\ne += s != 0 && t != 0;",
        f"d ^= ({asked}) != 0;",
    ])  # fmt: skip
    head = rng.choice([
        "for (int j = 0; j < m; j++)", "for (int j = 0; j <= m - 1; ++j)", "for (int j = q; j < m; j += 1)",
        "for (int j = 0; j < 128; j++)", "for (unsigned int j = 0; j < m; ++j)",
    ])  # fmt: skip
    inner = f"{head} {{\n{work}\n}}"
    if "continue" not in work and rng.choice([0, 0, 1]):
        inner = f"int j = 0;\nwhile (j < m) {{\n{work}\nj++;\n}}\ne += j;"
    return _made(rng, "counted_symbols", packing, inner, few=False)


def first_symbols(rng: Random) -> Made:
    """How far two rows go alike, or where the first symbol of a kind is."""
    packing = _Packing(rng)
    one = packing.symbol(rng, "x", rng.choice(["d", "d + p", "p + d"]))
    other = packing.symbol(rng, "y", rng.choice(["d", "d", "d + q"]))
    asked = rng.choice(
        [f"{one} == {other}", f"{one} == {other}", f"!({one} && {other})", f"{one} == 0"]
    )
    bounds = rng.choice(["d < m", "d < m && d + p < 150", "d <= m - 1 && q + d >= 0"])
    inner = rng.choice([
        f"while ({bounds} && {asked}) d++;",
        f"for (; {bounds}; ++d) {{\nif (!({asked})) break;\n}}",
        f"for (d = 0; {bounds}; d++) {{\nif (!({asked})) {{\ne = d + 5;\nbreak;\n}}\n}}",
        f"while (true) {{\nif (!({bounds}) || !({asked})) break;\nd += 1;\n}}",
        f"while ({bounds}) {{\nif ({asked}) d++;\nelse break;\n}}",
    ])  # fmt: skip
    return _made(rng, "first_symbols", packing, inner, few=True)


FAMILY = (counted_symbols, first_symbols)
