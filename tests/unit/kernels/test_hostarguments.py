"""Numbers of a program that asks how many arguments it is given, as it runs without any."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
HEAD = "int main(int argc, char** argv) { "
LAUNCH = " k<<<1, 64>>>(a, b, c); }"


def number(host: str) -> object:
    """What the host's ``c`` is where it launches."""
    _, notes = drop_host_code(ONE + host)
    return next((note.value for note in notes if note.kind == "literal"), None)


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("int c; if (argc > 1) c = atoi(argv[1]); else c = 1 << 4;", 16),
        ("int c; if (argc > 1) { c = atoi(argv[1]); } else { c = 16; }", 16),
        ("int c; if (argc <= 1) c = 16; else c = atoi(argv[1]);", 16),
        ("int c, d; if (argc == 3) { c = read(argv, 1); d = 2; } else { c = d = 16; }", 16),
        ("int c; if (argc > 2) c = 1; else if (argc > 1) c = 2; else c = 16;", 16),
        ("int c = 16; if (argc > 1) { c = parse(argv[1]); c += 1; }", 16),
        ("int c = 16; if (argc > 1) scan(argv[1], &c);", 16),
        ("int d; if (argc > 1) d = atoi(argv[1]); else d = 8; int c = 2 * d;", 16),
        ("int c = 0; if (argc > 1) c = atoi(argv[1]); else c = 16;", 16),
        ("int c = 0; if (argc > 1) { c = atoi(argv[1]); } else { c = 1 << 4; }", 16),
        ("int c = 0, d = 0; if (argc > 2) { c = 1; d = c; } else { c = 16; d = c; }", 16),
        ("int c = 0; c = 16; if (argc > 1) c = atoi(argv[1]);", 16),
        ("int c = 3; c = 4; c = 16;", 16),
        (
            "int c = 16; while ((o = getopt(argc, argv, s)) != -1) if (o == 'n') c = atoi(optarg);",
            16,
        ),
    ],
)
def test_a_run_without_arguments_takes_the_branches_for_it(host: str, found: int) -> None:
    assert number(HEAD + host + LAUNCH) == found


@pytest.mark.parametrize(
    "host",
    [
        "int c; if (argc > 1) c = 4; else if (slow()) c = 16;",
        "int c; if (slow()) c = 4; else c = 16;",
        "int c; if (argc > 1 && slow()) c = 4; else c = 16;",
        "int c; argc--; if (argc > 1) c = 4; else c = 16;",
        "int c; start(&argc, &argv); if (argc > 1) c = 4; else c = 16;",
        "int c; take(argc); if (argc > 1) c = 4; else c = 16;",
        "int c; { int argc = read(); if (argc > 1) c = 4; else c = 16; }",
        "int c; for (int i = 0; i < 3; i++) { if (argc > 1) c = 4; else c = i; }",
        "int c; if (argc > 1) c = 4; else { int c; c = 16; }",
        "int c; if (argc > 1) c = 4; else { c = 16; c++; }",
        "int c = 9; use(c); if (argc > 1) c = 4; else c = 16;",
        "int c = 9; int* p = &c; if (argc > 1) c = 4; else c = 16; *p = 3;",
        "int c = 100; if (argc < 2) { c = 10; return 1; }",
        "int c; if (argc < 2) { c = 10; usage(); exit(1); } ",
        "int c = 100; if (argc < 2) { return 1; } else { c = atoi(argv[1]) + 1; use(&c); }",
        "int c = 9; c = c + 4;",
        "int c = 9; c = 4; if (slow()) c = 16;",
        "int c = 9; if (slow()) c = 16; else c = 4;",
        "int c = 9; c = 4; c += 4;",
        "int c = 9; c = 4; c++;",
        "int c = 9; c = 4; read(&c);",
        "int c = 9; c = 4; take(c);",
        "int c = 9; c = 4; auto f = [&] { c = 16; }; f();",
        "int c = 9; again: c = 4; while (slow()) { c = 16; }",
        "int c = 9; int d = 4; c = d; d = 5;",
        "int c; if (argc > 1) c = 4; else c += 16;",
        "int c; if (argc > 1) c = 4; else while (slow()) c = 16;",
        "int c; auto f = [&] { if (argc > 1) c = 4; else c = 16; };",
    ],
)
def test_what_may_be_another_number_is_not_known(host: str) -> None:
    assert number("void take(int& argc) { argc = 3; }\n" + HEAD + host + LAUNCH) is None


def test_a_function_that_is_given_no_arguments_of_a_program_is_not_asked() -> None:
    host = "void f(int count) { int c; if (count > 1) c = 4; else c = 16;"
    assert number(host + LAUNCH) is None
