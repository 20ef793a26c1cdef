from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_texts import KERNEL_TEXTS

from optiml_magic.errors import SourceError
from optiml_magic.source.directives import LaunchDirective, RepeatDirective
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import parse_program

TWO_TUNES = """#include <a.h>
#pragma optiml tune A in {1, 2, 0x10} = 2 if A * B < 20 // why
#pragma optiml tune B in {4, 8} = 4
__global__ void k(int* p) { p[A] = B; }
"""


def pragma(line: str):
    (directive,) = parse_program(f"#pragma optiml {line}\n").directives
    return directive


CANONICAL = [
    "launch k grid(cdiv(n, 256)) block(256)",
    "launch grid(1) block(1)",
    "launch ns::scan<float, TILE> grid(a, b, c) block(1, 2, 3) shared(4 * n) args(x, y, n + 1)",
    "launch k grid(1) block(1) args()",
    "launch k grid(1) block(1) repeat(n / 2) swap(a, b) swap(c, d)",
    "repeat(8) swap(a, b)",
    "tune TILE in {8, 16, 32}",
    "tune TILE in {8, 16, 32} = 16 if TILE * TILE <= 1024",
    "tune D in {-1, 1} = -1",
    "require n % 4 == 0",
    "scratch partial f4[cdiv(n, 256)]",
    "scratch flags u1[n]",
    "scratch h bfloat16[n]",
    "zero(bins)",
    "init(out) = 0",
    "init(out) = -1.5",
    "init(out) = -INFINITY",
    "init(out) = NAN",
    "init(out) = start",
    "size n = shape(a, 0)",
]


@pytest.mark.parametrize("line", CANONICAL)
def test_canonical_directives_print_as_they_are(line):
    text = f"#pragma optiml {line}"
    assert [str(d) for d in parse_program(text).directives] == [text]
    assert pragma(line) == pragma(line.replace(", ", " ,  ").replace("(", " ( ", 1))


def test_a_launch_in_parts():
    launch = pragma("launch k<float, 4> block(32, 8) grid(cdiv(n, 32)) shared(64)")
    assert launch == LaunchDirective(
        "k<float, 4>",
        (parse_expression("cdiv(n, 32)"),),
        (parse_expression("32"), parse_expression("8")),
        parse_expression("64"),
    )
    assert launch.line == 1
    assert launch.names == {"n"}


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("lunch k grid(1) block(1)", "unknown directive `lunch`", "`launch`"),
        ("", "a directive is missing", "launch, tune"),
        ("launch k grid(1)", "needs `block(...)`", "block("),
        ("launch k grid(1) grid(2) block(1)", "`grid` is given twice", ""),
        ("launch k grid(1, 2, 3, 4) block(1)", "1 to 3 axes", ""),
        ("launch k grid(1 block(2)", "never closed", ""),
        ("launch k grid() block(1)", "an operand is missing", ""),
        ("launch k<a grid(1) block(1)", "is not a kernel name", ""),
        ("launch k grid(1) block(1) later", "unexpected `later`", ""),
        ("tune A in {1, 1}", "repeat", ""),
        ("tune A in {1} = 2", "A = 2 is not in its set", "one of 1"),
        ("tune A in {}", "is not an integer", ""),
        ("tune A of {1}", "`in` expected", ""),
        ("tune A in {1} if B > 0", "`B` in `if B > 0` is not a tuned name", ""),
        ("tune A in {1, 2} = 2 if A < 2", "A = 2 breaks `if A < 2`", ""),
        ("scratch s P[n]", "`P` is not an element type", ""),
        ("scratch s float[n, 2]", "one extent", ""),
        ("zero(a b)", "one buffer", ""),
        ("init(a) = 1 + 2", "neither a number nor an array", ""),
        ("require n % 4 == 0 and more", "unexpected `and`", ""),
        ("swap(a, b)", "unknown directive `swap`", ""),
    ],
)
def test_refused_directives_name_their_line(line, message, fix):
    with pytest.raises(SourceError) as caught:
        parse_program(f"\n\n#pragma optiml {line}\n")
    assert message in caught.value.message
    assert fix in caught.value.fix
    assert caught.value.line == 3


def test_twice_the_same_and_a_define_beside_a_tune_are_refused():
    with pytest.raises(SourceError, match="line 1 already"):
        parse_program("#pragma optiml zero(a)\n#pragma optiml zero(a)\n")
    with pytest.raises(SourceError, match="line 2: `T` is tuned, and defined here as well"):
        parse_program("#pragma optiml tune T in {1} = 1\n#define T 4\n")


@pytest.mark.parametrize("line", ["#line 9", "#  line 9", "# 9", '#line 9 "a.cu"'])
def test_a_text_keeps_its_line_numbers(line):
    with pytest.raises(SourceError, match="line 2: a line directive"):
        parse_program(f"int a;\n{line}\n")
    parse_program(f"// {line}\n#if 0\n{line}\n#endif\n")


@pytest.mark.parametrize(
    "text",
    [
        "// #pragma optiml nonsense\n",
        "// a comment \\\n#pragma optiml nonsense\n",
        "/*\n#pragma optiml nonsense\n*/\n",
        'const char* s = "\\\n#pragma optiml nonsense\\\n";\n',
        'auto s = R"x(\n#pragma optiml nonsense\n)" )x";\n',
        "#if 0\n#pragma optiml nonsense\n#endif\n",
        "#if 1\n#else\n#pragma optiml nonsense\n#endif\n",
        "int a; #pragma optiml nonsense\n",
        "#pragma optimize nonsense\n",
        "#pragma optiml_magic nonsense\n",
        "#pragma unroll\n",
    ],
)
def test_what_is_not_a_directive(text):
    assert parse_program(text).directives == ()


@pytest.mark.parametrize("word", ["optim", "optimll", "optmil", "opitml", "otpiml"])
def test_a_pragma_that_is_nearly_ours_is_an_error(word):
    with pytest.raises(SourceError, match=f"unknown pragma `{word}`") as error:
        parse_program(f"int x;\n#pragma {word} launch k grid(1) block(1)\n")
    assert error.value.line == 2


def test_directives_after_tricky_text_are_found():
    text = (
        "int x = 1'000'000; char c = '\"'; // it's \"\n"
        "/* a */ # /* b */ pragma optiml zero /* c */ (out) // d\n"
        "#if 0\n#else\n\t#pragma optiml launch k grid(1,\\\n   2) block(3)\r\n#endif"
    )
    program = parse_program(text)
    assert [str(d) for d in program.directives] == [
        "#pragma optiml zero(out)",
        "#pragma optiml launch k grid(1, 2) block(3)",
    ]
    assert [d.line for d in program.directives] == [2, 5]


def test_repeat_applies_to_the_launches_that_follow():
    program = parse_program(
        "#pragma optiml launch a grid(1) block(1)\n"
        "#pragma optiml repeat(n) swap(x, y)\n"
        "#pragma optiml launch b grid(1) block(1)\n"
        "#pragma optiml launch c grid(1) block(1) repeat(2)\n"
        "#pragma optiml launch d grid(1) block(1)\n"
    )
    first, second, third, fourth = program.launches
    around = RepeatDirective(parse_expression("n"), (("x", "y"),))
    assert first.repeat is None
    assert second.repeat == around
    assert third.repeat == RepeatDirective(parse_expression("2"))
    assert fourth.repeat is second.repeat
    assert str(second) == "#pragma optiml launch b grid(1) block(1)"


def test_values_and_templates():
    program = parse_program(TWO_TUNES)
    assert program.values == {"A": 2, "B": 4}
    assert not program.is_template
    assert list(program.legal_values()) == [
        {"A": 1, "B": 4}, {"A": 1, "B": 8}, {"A": 2, "B": 4}, {"A": 2, "B": 8},
    ]  # fmt: skip
    changed = program.with_values({"B": 8, "A": 1})
    assert changed.text == TWO_TUNES.replace("= 2 if", "= 1 if").replace("= 4\n", "= 8\n")
    with pytest.raises(SourceError, match="A = 16, B = 4 breaks `if A \\* B < 20`"):
        program.with_values({"A": 16})
    with pytest.raises(SourceError, match="A = 3 is not in its set"):
        program.with_values({"A": 3})
    with pytest.raises(SourceError, match="`a` is not a tuned name"):
        program.with_values({"a": 3})


def test_a_template_gets_its_value_in_place():
    text = "#pragma optiml tune\tT in {1, 2}  if T < 3 // é\r\nint x = T;"
    program = parse_program(text)
    assert program.is_template
    with pytest.raises(SourceError, match="`T` has no value yet"):
        program.compiled_text()
    chosen = program.with_values({"T": 2})
    assert chosen.text == "#pragma optiml tune\tT in {1, 2} = 2  if T < 3 // é\r\nint x = T;"
    assert chosen.compiled_text() == "constexpr int T = 2;\r\n#line 1\r\n" + chosen.text


def test_many_legal_values_come_one_at_a_time():
    lines = [f"#pragma optiml tune V{i} in {{1, 2, 3, 4, 5, 6, 7, 8}}" for i in range(12)]
    lines[5] += " if V5 == V0 && V1 == 8"
    values = parse_program("\n".join(lines)).legal_values()
    first = next(values)
    assert first["V1"] == 8
    assert first["V5"] == first["V0"] == 1


def test_compiled_text_keeps_line_numbers_and_uses_macros_for_the_preprocessor():
    text = (
        "// head\n#ifdef X\n#include <x.h>\n#endif\n#include <a.h>\n"
        "#pragma optiml tune A in {1, 2} = 2\n#pragma optiml tune B in {4} = 4\n"
        "#pragma optiml tune C in {5} = 5\n#pragma optiml tune D in {-6} = -6\n"
        "#define TWICE (2 * A)\n#if TWICE > 3\nint b = B;\n#endif\n"
        "#pragma optiml launch k<D> grid(C) block(1)\n// C\n"
    )
    lines = text.splitlines(keepends=True)
    assert parse_program(text).compiled_text() == "".join(
        [*lines[:5], "#define A 2\n", "constexpr int B = 4;\n", "constexpr int D = -6;\n",
         "#line 6\n", *lines[5:]]
    )  # fmt: skip


def test_an_include_after_code_is_not_leading():
    text = "int a = T;\n#include <b.h>\n#pragma optiml tune T in {5000000000} = 5000000000\n"
    assert parse_program(text).compiled_text() == (
        "constexpr long long T = 5000000000;\n#line 1\n" + text
    )


def test_a_program_without_tunes_compiles_as_it_is():
    assert parse_program(KERNEL_TEXTS[0]).compiled_text() == KERNEL_TEXTS[0]


def test_directives_come_and_go_without_other_changes():
    text = "#include <a.h>\r\n__global__ void k() {}  // é"
    program = parse_program(text)
    more = program.with_directive("#pragma optiml zero(x)").with_directive(
        LaunchDirective("k", (parse_expression("1"),), (parse_expression("2"),))
    )
    assert more.text == (
        "#include <a.h>\r\n#pragma optiml zero(x)\r\n"
        "#pragma optiml launch k grid(1) block(2)\r\n__global__ void k() {}  // é"
    )
    assert more.without(more.launches[0]).without(more.zeros[0]).text == text
    with pytest.raises(SourceError, match="is not in this program"):
        program.without(more.zeros[0])


def test_a_directive_behind_a_comment_leaves_the_comment():
    program = parse_program("/* a */ #pragma optiml zero(x)\nint y;")
    assert program.without(program.zeros[0]).text == "/* a */ \nint y;"


@pytest.mark.parametrize("text", KERNEL_TEXTS)
def test_known_kernels_print_their_own_directives(text):
    program = parse_program(text)
    written = [line for line in text.splitlines() if line.startswith("#pragma optiml")]
    assert program.text == text
    assert [str(directive) for directive in program.directives] == written


NOISE = st.sampled_from(
    ["", "\n", "\r\n", "\t", "// é 🙂\n", "/* x\n */", "int a;\n", '"#pragma"\n', "#define Q 1\n"]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NOISE, st.sampled_from(CANONICAL[:-1])), max_size=6, unique_by=str))
def test_editing_back_and_forth_restores_the_text(parts):
    text = "".join(f"{noise}\n#pragma optiml {line}\n" for noise, line in parts)
    try:
        program = parse_program(text)
    except SourceError:
        return
    assert program.text == text
    again = program.with_directive("#pragma optiml size last = 1")
    assert again.without(again.sizes[-1]).text == text
    for directive in program.directives:
        (reread, *_) = parse_program(str(directive)).directives
        assert str(reread) == str(directive)


def test_directives_know_the_whole_numbers_that_the_text_defines() -> None:
    text = """\
#define MB 16u
#define NB (MB * 2)  // of a block
#define TWICE 1
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#ifdef OTHER
#define WIDE 8
#endif
#pragma optiml scratch parts f4[n / NB]
#pragma optiml repeat(NB)
#pragma optiml launch k grid(width / MB, n / WIDE, TWICE) block(MB, n) if (n % MB == 0)
#pragma optiml launch k grid(n) block(MB) else
#pragma optiml launch l grid(MB) block(NB)
#undef TWICE
"""
    program = parse_program(text)
    first, second, third = program.launches
    assert [str(e) for e in (*first.grid, *first.block)] == [
        "width / 16", "n / WIDE", "TWICE", "16", "n",
    ]  # fmt: skip
    assert str(first.condition) == "n % 16 == 0"
    assert (str(third.grid[0]), str(third.block[0])) == ("16", "32")
    assert first.repeat is second.repeat is third.repeat
    assert first.repeat is not None
    assert str(first.repeat.count) == "32"
    assert str(program.scratch[0].count) == "n / 32"
    assert program.text == text


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("const int N = 1 << 12;\n", "N=4096"),
        ("static constexpr unsigned int M = 16, N = M * (2 + 1);\n", "N=48"),
        ("#define M 3\nconst size_t N = M + 1;  // rows\n", "N=4"),
        ("const int N = 4;\nvoid f() { const int M = 3; }\n", "N=4"),
        ("namespace a { const int N = 3; }\n", "N"),
        ("const int N = 4;\n__global__ void other(int N) {}\n", "N"),
        ("const float N = 4;\n", "N"),
        ("__global__ void other(const int* x, const int N = 3);\n", "N"),
        ("const int N = f(3);\n", "N"),
        ("enum { M = 3, N = M * 2 };\n", "N=6"),
        ("enum Sizes {\n    M = 3,  // rows\n    N = 5,\n};\n", "N=5"),
        ("enum { N };\n", "N"),
        ("enum { N = 3 };\n__global__ void other(int N) {}\n", "N"),
        ("struct s { enum { N = 3 }; };\n", "N"),
    ],
)
def test_they_know_its_constants_as_well(text: str, grid: str) -> None:
    (launch,) = parse_program(f"{text}#pragma optiml launch k grid(N) block(32)\n").launches
    assert str(launch.grid[0]) == grid.rpartition("=")[2]


def test_a_long_function_is_read_beside_constants() -> None:
    body = "    out[0] = 1;\n" * 60_000  # of which each blank once led to a look ahead to the end
    text = f"const int N = 4;\nvoid f(int* out) {{\n{body}}}\nstatic const int M = N + 1;\n"
    (launch,) = parse_program(f"{text}#pragma optiml launch k grid(M) block(32)\n").launches
    assert str(launch.grid[0]) == "5"
