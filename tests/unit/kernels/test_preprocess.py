from __future__ import annotations

import re
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from present import examples

import optiml_magic
from optiml_magic.kernels.preprocessor.lines import lines, without_literals
from optiml_magic.kernels.preprocessor.preprocess import Preprocessed, preprocess
from optiml_magic.kernels.preprocessor.tokens import read

from .macro_texts import macro_text

ROOT = Path(__file__).parents[3]
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for folder in (Path(optiml_magic.__file__).parent / "testing", ROOT / "tests" / "tutorials")
    for path in sorted(folder.rglob("*.cu"))
}
GCC = shutil.which("g++")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no g++ on this machine")


def code(text: str) -> str:
    """The text without its preprocessor lines."""
    out, at = [], 0
    for line in lines(text, without_literals(text)):
        out.append(text[at : line.start])
        at = line.end
    return "".join([*out, text[at:]])


def tokens(text: str) -> list[str]:
    return [token.text for token, _ in read(text.encode().decode("latin-1"))]


def expanded(text: str, **options) -> str:
    """The code that is left of a text, on one line, its white space single."""
    return " ".join(code(preprocess(text, **options).text.decode()).split())


def by_gcc(text: str, *options: str) -> str | None:
    """What g++ makes of the text, None where it complains."""
    command = [str(GCC), "-std=gnu++17", "-E", "-P", "-w", "-x", "c++", *options, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    spelled = re.sub(r"\\U([0-9a-f]{8})", lambda found: chr(int(found[1], 16)), done.stdout)
    return spelled if done.returncode == 0 else None


def check(text: str, result: Preprocessed) -> None:
    """What holds of every result."""
    raw = text.encode("utf-8", "surrogatepass")
    assert result.text.count(b"\n") == raw.count(b"\n")
    assert result.pieces[0].start == result.pieces[0].origin_start == 0
    assert result.pieces[-1].end == len(result.text)
    assert result.pieces[-1].origin_end == len(raw)
    for one, other in pairwise(result.pieces):
        assert one.end == other.start
        assert one.origin_end == other.origin_start
    for piece in result.pieces:
        stands = result.text[piece.start : piece.end] == raw[piece.origin_start : piece.origin_end]
        assert piece.kind != "plain" or stands
        assert result.plain(piece.start, piece.end) == (piece.kind == "plain" or not raw)
    places = range(0, len(result.text) + 1, max(1, len(result.text) // 40))
    origins = [result.origin(start, end) for start in places for end in places if start <= end]
    assert all(0 <= start <= end <= len(raw) for start, end in origins)
    starts = [result.origin(at, at)[0] for at in places]
    ends = [result.origin(0, at)[1] for at in places]
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    for start, end in result.undecided:
        assert result.plain(start, end)
        assert result.text[start : start + 1] in (b"#", b"%")


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("#define N 16\nint a[N], NN, xN; // N\n", "int a[16], NN, xN; // N"),
        ("#define N 16\nchar *s = \"N\", *r = R\"(N)\"; char c = 'N';\n",
         "char *s = \"N\", *r = R\"(N)\"; char c = 'N';"),
        ("int N;\n#define N 1\nN\n#undef N\nN\n", "int N; 1 N"),
        ("#define NEG -1\na-NEG\n", "a- -1"),
        ("#define P +\nx+P y\n", "x+ + y"),
        ("#define f 1\nx = 2.f + 1e+f + a.f + 1'0.f;\n", "x = 2.f + 1e+f + a. 1 + 1'0.f;"),
        ("#define E\nE x E;\n", "x ;"),
        ("#define D 0x1E\n#define P .5\n#define L L\nD+D -D.x 1 P; L'a' L\"b\"\n",
         "0x1E +0x1E -0x1E .x 1 .5; L'a' L\"b\""),
        ("#define SQ(x) ((x)*(x))\nSQ(a + SQ(2)); int SQ;\n",
         "((a + ((2)*(2)))*(a + ((2)*(2)))); int SQ;"),
        ("#define SQ(x) x*x\nSQ\n (\n3)\n", "3*3"),
        ("#define F(a, b) a b\nF(1) F(1,2,3) F((1,2), [3])\n", "F(1) F(1,2,3) (1,2) [3]"),
        ("#define f(x) x f\nf(1)(2)\n", "1 f(2)"),
        ("#define x y\n#define y x\nx y\n", "x y"),
        ("#define x x\nx\n", "x"),
        ("#define CALL SQ\n#define SQ(x) x*x\nCALL(3) CALL\n", "3*3 SQ"),
        ("#define CAT(a, b) a##b\n#define XY 7\nCAT(X,Y) CAT(,Y) CAT(X,) CAT(,)\n", "7 Y X"),
        ("#define CAT(a, b) a##b\nCAT(+,-)\n", "CAT(+,-)"),
        ('#define S(x) #x\n#define X(x) S(x)\n#define N 3\nS(N  + "\\n") X( N )\n',
         '"N + \\"\\\\n\\"" "3"'),
        ("#define L(f, ...) p(f, ##__VA_ARGS__)\nL(1) L(1, 2, 3)\n", "p(1) p(1,2, 3)"),
        ("#define L(...) p(__VA_ARGS__)\nL() L((1, 2), 3)\n", "p() p((1, 2), 3)"),
        ("#define L(f, ...) p(f __VA_OPT__(,) __VA_ARGS__)\nL(1) L(1, 2)\n", "p(1) p(1, 2)"),
        ("#define L(f, r...) p(f, r)\nL(1, 2, 3)\n", "p(1, 2, 3)"),
        ("#define RUN(k) k<<<1, 2>>>()\nRUN(go);\n", "go<<<1, 2>>>();"),
        ("#define AT(i) a[i]\nAT(\n#pragma x\n1)\n", "AT( 1)"),
        ("#define H #\nH pragma\n", "H pragma"),
        ("#define N 1\n#pragma unroll N\n#include N\nN\n", "1"),
        ("#define X(a) S(a)\n#define S(a) #a\nS(__LINE__) X(__LINE__)\n", '"__LINE__" X(__LINE__)'),
        ("#define AB 1\nA\\\nB AB\\\nC x = \\\nAB;\n", "A\\ B AB\\ C x = \\ 1;"),
        ("#define MAX(a, b) \\\n  ((a) > \\\n (b))\nMAX(1, 2)\n", "((1) > (2))"),
        ("#define N 1 // one\n#define M /* two\n */ 2\nN M\n", "1 2"),
        ("x # define N 1\n/* */ # define M 2\nN M\n", "x # define N 1 /* */ N 2"),
        ("%: define N 1\nN\n", "1"),
        ("#define é 1\n#define a$ 2\né éé a$ a\n", "1 éé 2 a"),
        ('#pragma push_macro("N")\n#define N 1\nN\n#pragma pop_macro("N")\nN\n', "1 N"),
        ("#define N(\nN N(1)\n", "N N(1)"),
        # An expression that is all of a statement loses its parentheses, which the grammar
        # does not read around assignments.
        ("#define Q(a, b) (a += b, \\\n  b ^= a)\nf(); Q(x, y);\n", "f(); x += y, y ^= x ;"),
        ("#define Q(a, b) (a += b, b ^= a)\nx = Q(y, z); { Q(y, z); }\n",
         "x = (y += z, z ^= y); { y += z, z ^= y ; }"),
        ("#define Q(a, b) (a) + (b, 1)\n; Q(x, y);\n", "; (x) + (y, 1);"),
        ("#define Q(a) (a)\n; Q(x);\n", "; (x);"),
        ("#define Q(a, b) (a * b, x = 2)\n; Q(m, n);\n", "; (m * n, x = 2);"),  # no declaration
        ("#define Q(a, b) (a == b, x <<= 2)\n; Q(m, n);\n", "; (m == n, x <<= 2);"),
        ("#define Q(a, b) (a[b]++, b <<= 2)\n; Q(m, n);\n", "; m[n]++, n <<= 2 ;"),
        ("#define (\n#define\n#define 1 2\n#define N 1\nN\n", "1"),
    ],
)  # fmt: skip
def test_macros(text, becomes):
    assert expanded(text) == becomes
    check(text, preprocess(text))


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("#if 0\nA\n#elif 1\nB\n#else\nC\n#endif\n", "B"),
        ("#define T 16\n#if T > 8 && T % 8 == 0\nA T\n#endif\n", "A 16"),
        ("#ifdef X\nA\n#else\nB\n#endif\n#ifndef X\nC\n#endif\n", "B C"),
        ("#ifndef X_H\n#define X_H\n#define N 1\nN\n#endif\n", "1"),
        ("#ifndef __X_H__\n#define __X_H__\n#define N 1\nN\n#endif\n", "1"),
        ("#if 1\n#if 0\nA\n#else\nB\n#endif\n#elif X\nC\n#endif\nD\n", "B D"),
        ("#if defined(X) && X(3) || defined Y\nA\n#else\nB\n#endif\n", None),
        ("#if defined X || !defined(Y)\nA\n#else\nB\n#endif\n", "A"),
        ("#define F(x) (x * 2)\n#if F(3) == 6\nA\n#endif\n", "A"),
        ("#if -1 > 0u\nA\n#endif\n", "A"),
        ("#if (2 ? 0x10 : 1'0) == 16 and not 0\nA\n#endif\n", "A"),
        ("#if 'a' == 97 && 0 - 1 < 0 && ~0 == -1 && 7 / 2 == 3\nA\n#endif\n", "A"),
        ("#if 1 || 1 / 0\nA\n#endif\n", "A"),
        ("#ifdef __CUDACC__\nA\n#else\nB\n#endif\n", "A"),
        ("#if __cplusplus >= 201402L\nA\n#endif\n", "A"),
        ("#ifdef __CUDA_ARCH__\nA\n#endif\n", "A"),
        ("#if CUDART_VERSION < 9000\nA\n#elif CUDA_VERSION >= 9000\nB\n#endif\n", "B"),
        ("#if defined(X) && __has_include(<cuda/std/span>)\nA\n#endif\nB\n", "B"),
        ("#if 0\nit's \"\n#else\nB\n#endif\n", "B"),
        ("/*\n#if 0\n*/ A\n//#endif\n", None),
        ('R"(\n#if 0\n)" A\n', 'R"( #if 0 )" A'),
        ('#include <cstdio>\n#include "cuda_fp16.h"\n#ifdef X\nA\n#endif\nB\n', "B"),
        ('#ifdef X\nA\n#endif\n#include "mine.h"\nB\n', "B"),
        ("#if 0\nA\n#elifdef X\nB\n#elifndef X\nC\n#endif\n", "C"),
    ],
)  # fmt: skip
def test_conditionals(text, becomes):
    result = preprocess(text)
    if becomes is not None:
        assert expanded(text) == becomes
    else:
        assert code(result.text.decode()) == code(text)
    assert not result.undecided or becomes is None
    assert len(result.text) == len(text) or "N" in text or "T" in text
    check(text, result)


@pytest.mark.parametrize(
    "condition",
    [
        "#if __CUDA_ARCH__ >= 700", "#ifdef __NVCC__", "#ifdef __GNUC__", "#if CUDART_VERSION > 12080",
        "#if __cplusplus > 201703L", "#if __has_include(<x>)", "#ifndef M_PI", "#if", "#ifdef",
        "#if 1 / 0", "#if 1.5", "#if (1", "#if 1, 2", "#if X(3)", "#if 1 +", '#if "a"', "#if 1 1",
        "#ifndef __forceinline__\n#define __forceinline__", "#if 0\n#else\n#elif 1",
    ],
)  # fmt: skip
def test_what_cannot_be_told_stays_as_it_is(condition):
    text = f"#define T 1\n{condition}\n#define N T\n#undef T\nT N\n#else\nT\n#endif\nN T\n"
    result = preprocess(text)
    assert result.text == text.encode()
    assert result.undecided == ((12, len(text) - 5),)


def test_a_header_of_the_user_may_define_any_name():
    text = '#include "mine.h"\n#define N 1\n#ifdef X\n#endif\n#ifdef N\nN\n#endif\n'
    result = preprocess(text)
    assert [text[start:end] for start, end in result.undecided] == ["#ifdef X\n#endif"]
    assert expanded(text) == "1"


def test_a_conditional_without_end_stays():
    text = "#define N 1\nN\n#if 1\nN\n"
    assert expanded(text) == "1 N"
    assert expanded("#endif\n#else\n#define N 1\nN\n#endif\n") == "1"


def test_names_from_outside():
    assert expanded("x[TILE] = F(2);", defines={"TILE": 32, "F(x)": "x + x"}) == "x[32] = 2 + 2;"
    asked = "#if defined(__NVCC__) && CUDART_VERSION >= 12000\nA\n#endif\n"
    assert expanded(asked, defines={"__NVCC__": 1, "CUDART_VERSION": 12090}) == "A"
    assert expanded("#define TILE 8\nTILE\n", defines={"TILE": 32}) == "8"
    assert expanded("#ifndef TILE\n#define TILE 8\n#endif\nTILE\n", defines={"TILE": 32}) == "32"
    assert expanded("N", defines={"N": True}) == "1"
    assert expanded("N 1", defines={"": 1, "1": 2, "N": "a\nb"}) == "a b 1"


def test_the_architecture():
    text = "#if __CUDA_ARCH__ >= 800\nA\n#else\nB\n#endif\n"
    assert (expanded(text, arch=90), expanded(text, arch=75)) == ("A", "B")


def test_where_a_span_comes_from():
    text = "#define N 16\né = a[N + 1];\n#if 0\n#endif\nb;\n"
    result = preprocess(text)
    raw, made = text.encode(), result.text
    number = made.index(b"16", 20)
    assert raw[slice(*result.origin(number, number + 1))] == b"N"
    assert raw[slice(*result.origin(number - 2, number + 6))] == b"a[N + 1"
    assert raw[slice(*result.origin(made.index(b"b"), made.index(b"b") + 2))] == b"b;"
    assert result.plain(made.index(b"a"), number)
    assert not result.plain(number, number + 2)
    assert not result.plain(number - 1, number + 4)
    assert not result.plain(made.index(b"b") - 3, made.index(b"b") + 1)
    assert result.origin(number + 1, number + 1) == result.origin(number, number + 2)
    assert result.origin(len(made), len(made)) == (len(raw), len(raw))


@pytest.mark.parametrize(
    "text",
    [
        "#define A0 x x\n" + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 40))
        + "A39\n" * 200,
        "#define F(x) x x\n" + "F(" * 60 + "1" + ")" * 60,
        "#define F(x) x x\n" + "F(1, " * 3000,
        "#define S(x) #x\n#define X(x) S(x)\n" + "X(" * 40 + '"\\\\"' + ")" * 40,
        "#define A 1\n#if " + "(" * 3000 + "\n#endif\n#if " + "!" * 3000 + "1\n#endif\nA",
        "#define A 1\n" + "A /" * 3000 + "#" * 3000,
        "#if 1\n" * 2000 + "#endif\n" * 2000,
        "#define A A B\n#define B A(B)\n" + "A(B " * 1000,
    ],
    ids=lambda text: text[:24].strip(),
)  # fmt: skip
def test_nothing_takes_long(text):
    start = time.process_time()
    result = preprocess(text)
    assert time.process_time() - start < 2
    check(text, result)


def test_rounds_that_macros_write_out_are_all_there():
    rotated = "#define R(x, n) (((x) >> (n)) | ((x) << (32 - (n))))\n"
    mixed = "#define M(x) (R(x, 2) ^ R(x, 13) ^ R(x, 22))\n"
    round_ = "#define ROUND(a, b, i) { unsigned t = b + M(a) + M(b) + M(a ^ b) + w[i]; a += t; b = t; }\n"
    made = expanded(rotated + mixed + round_ + "ROUND(a, b, 1)\n" * 64)
    assert made.count("a += t") == 64 + made.count("#define ROUND")


def test_a_text_without_macros_is_returned_as_it_is():
    for text in ("", "int a;\n", "#include <x>\n#pragma once\n", "#define N 1\nM\n", "é\ud800"):
        result = preprocess(text)
        assert result.text == text.encode("utf-8", "surrogatepass")
        assert len(result.pieces) == 1
        check(text, result)


@pytest.mark.parametrize("name", TEXTS)
def test_every_kernel_of_this_repository(name):
    check(TEXTS[name], preprocess(TEXTS[name], {"TILE_N": 4}))


@needs_gcc
@pytest.mark.parametrize("name", [name for name in TEXTS if "#define" in TEXTS[name]])
def test_kernels_as_gcc_has_them(name):
    text = re.sub(r"(?m)^\s*#\s*(?:include|pragma).*$", "", TEXTS[name])
    result = preprocess(text)
    assert not result.undecided
    made = by_gcc(text)
    assert made is not None
    assert tokens(code(result.text.decode())) == tokens(made)


@needs_gcc
@hypothesis_settings(max_examples=examples(60, 3000))
@given(st.integers(0, 2**32))
def test_random_macros_as_gcc_has_them(seed):
    text = macro_text(seed)
    result = preprocess(text)
    check(text, result)
    made = by_gcc(text)
    if made is None or result.undecided:  # an error to gcc is nothing to expand to here
        return
    ours = code(result.text.decode())
    if re.search(r"['\"]\w", made):  # g++ lets a name come to stand at a literal
        assert "".join(tokens(ours)) == "".join(tokens(made))
    else:
        assert tokens(ours) == tokens(made)


PIECES = [
    "#define ", "#undef ", "#if ", "#ifdef ", "#elif ", "#else", "#endif", "#", "##", "A", "B",
    "F(", "(x)", "(", ")", ",", "...", "__VA_ARGS__", "__VA_OPT__(", "defined", "1", "'", '"',
    'R"(', ')"', "\\\n", "\r\n", "\n", "\n", " ", " ", "/*", "*/", "//", "?", ":", "&&", "é",
    "\ud800", "\x00", "#include <a.h>\n", '#pragma pop_macro("A")\n', "%:", "<<<", "__has_x(",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_text_gives_a_result(text):
    check(text, preprocess(text))
    check(text, preprocess(text, {"B": text}, arch=90))


@given(st.integers(0, 2**32), st.data())
def test_torn_texts_give_a_result(seed, data):
    text = macro_text(seed)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + 1 :]
    check(text, preprocess(text))


def test_the_time_it_takes():
    kernel = TEXTS["tests/tutorials/images/convolution_2d.cu"]
    text = kernel + "".join(line + "\n" for line in kernel.splitlines() if "#" not in line) * 5
    plain = "\n".join(line for line in text.splitlines() if "#" not in line)

    def least(text: str) -> float:
        times = []
        for _ in range(20):
            start = time.process_time()
            preprocess(text)
            times.append(time.process_time() - start)
        return min(times)

    assert least(text) < 0.02  # a tenth of it on a machine that does nothing else
    assert least(plain) < 0.002
