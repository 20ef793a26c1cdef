"""Any text gives a value or a SourceError, soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from known_texts import KERNEL_TEXTS

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.signature import kernels
from optiml_magic.kernels.unit import lift
from optiml_magic.source.program import parse_program
from optiml_magic.source.syntax import parse
from tests.present import examples

PIECES = [
    "#pragma optiml ", "launch k grid(1) block(", "tune T in {1}", "*", "&", "(", ")", "[", "]",
    "{", "}", "<", ">", ";", ",", "=", "+=", "->", ".", "\\\n", "\r\n", "\n", '"', "'", 'R"(',
    "/*", "*/", "//", "#if 0\n", "#endif\n", "__global__ void k(", "template <class T> ",
    "blockIdx.x", "threadIdx.x", "<<<", ">>>", "if (i < n) ", "return;", "for (;;) ", "é", "\x00",
    "__align__(", "\ud800", "dim3 ", "using T = ", "int main() {", "asm(", "const ", "auto& r = ",
]  # fmt: skip


def everything(text: str) -> None:
    """All that this package does to a text; each stage may refuse it."""

    def attempt(stage, *arguments):
        try:
            return stage(*arguments)
        except SourceError:
            return None

    program = attempt(parse_program, text)
    if program is not None:
        assert program.text == text
        attempt(program.compiled_text)
        for directive in program.directives:
            attempt(program.without, directive)
    attempt(drop_host_code, text)
    syntax = attempt(parse, text)
    for kernel in attempt(kernels, text) or () if syntax is not None else ():
        attempt(kernel.instantiate, ["float"])
    unit = attempt(lift, text) if program is not None and syntax is not None else None
    for function in unit.kernels if unit is not None else ():
        attempt(infer_launch, unit, function)


@st.composite
def mutated(draw):
    text = draw(st.sampled_from(KERNEL_TEXTS))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        until = min(len(text), at + draw(st.integers(0, 12)))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[until:]
    return text


FUZZ = settings(
    max_examples=examples(15, 3000), deadline=20_000, suppress_health_check=[HealthCheck.too_slow]
)


@FUZZ
@given(mutated())
def test_mutated_kernels(text):
    everything(text)


@FUZZ
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_random_pieces(text):
    everything(text)


@FUZZ
@given(st.text(max_size=200))
def test_random_text(text):
    everything(text)


DEEP = examples(2_500, 20_000)
BODY = "__global__ void k(float* p, int n) {{ {} }}"


@pytest.mark.parametrize(
    "text",
    [
        BODY.format("p[0] = " + "(" * DEEP + "1" + ")" * DEEP + ";"),
        BODY.format("p[0] = " + "n + " * DEEP + "1;"),
        BODY.format("*" * DEEP + "p = 1;"),
        BODY.format("x = " + "*&" * DEEP + "p;"),
        BODY.format("p" + "[p" * DEEP + "]" * DEEP + " = 1;"),
        BODY.format("p" + "[0]" * DEEP + " = 1;"),
        BODY.format("{" * DEEP + "}" * DEEP),
        BODY.format("if (n) " * DEEP + "p[0] = 1;"),
        BODY.format("f(" * DEEP + "p" + ")" * DEEP + ";"),
        BODY.format("float* q = p; " * (DEEP // 7)),
        BODY.format(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = 1; " * (DEEP // 25)
        ),
        BODY.format(
            "float* q0 = p;" + "".join(f"float* q{i + 1} = q{i};" for i in range(DEEP // 7))
        ),
        "".join(f"__device__ void f{i}(float* p) {{ f{i + 1}(p); }}\n" for i in range(DEEP // 10)),
        "__align__(" * (DEEP // 2),
        "#pragma optiml launch k grid(" + "(" * DEEP,
        "#pragma optiml tune A in {" + ", ".join(map(str, range(DEEP))) + "}",
        "#pragma optiml zero(" + "a" * (5 * DEEP) + ")",
        "/*" * (2 * DEEP),
        'R"(' * (2 * DEEP),
        '"' * (5 * DEEP),
        "#define A B\n" * (DEEP // 3),
        "x" * (5 * DEEP),
        "<" * (5 * DEEP),
        "a<" * DEEP,
        "typedef int a;" * (DEEP // 4),
        "namespace a {" * (DEEP // 4),
        "".join(f"#define M{i} M{i + 1}\n" for i in range(DEEP // 7)) + "#if M0\n#endif\n",
    ],
    ids=lambda text: text[:30] + "..." + text[50:70],
)
def test_large_and_deep_texts_end_soon(text):
    begun = time.process_time()  # other processes are no fault of the text
    everything(text)
    assert time.process_time() - begun < DEEP / 1_000
