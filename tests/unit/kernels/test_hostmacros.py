"""Launches of host code that stand in macros of the text."""

from __future__ import annotations

import pytest

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.hostmacros import with_launches_expanded
from optiml_magic.kernels.prepared import with_launches

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
TWO = ONE + "__global__ void l(const float* p, float* q, int m) { q[m] = p[m]; }\n"
LAUNCH = "#define LAUNCH(f, n, ...) f<<<((n) + 63) / 64, 64>>>(__VA_ARGS__)\n"


def launches(text: str) -> list[str]:
    head = "#pragma optiml launch "
    lines = drop_host_code(text)[0].splitlines()
    return [line.removeprefix(head) for line in lines if line.startswith(head)]


@pytest.mark.parametrize(
    ("macro", "use", "found"),
    [
        (LAUNCH, "LAUNCH(k, c, a, b, c);", "k grid(cdiv(n, 64)) block(64)"),
        (LAUNCH, "LAUNCH(k,\n  c, a,\n  b, c);", "k grid(cdiv(n, 64)) block(64)"),
        (LAUNCH + "#define RUN(f, ...) LAUNCH(f, 640, __VA_ARGS__)\n", "RUN(k, a, b, c);",
         "k grid(cdiv(640, 64)) block(64)"),
        ("#define RUN(f, ...) \\\n  do { f<<<4, 64>>>(__VA_ARGS__); CHECK(last()); } while (0)\n",
         "RUN(k, a, b, c);", "k grid(4) block(64)"),
        ("#define RUN(f, ...) { int t = 32; f<<<2 * t, t>>>(__VA_ARGS__); }\n",
         "RUN(k, a, b, c);", "k grid(2 * 32) block(32)"),
        ("#define K(x, y, n) k<<<4, 64>>>(x, y, n)\n", "K(a, b, c);", "k grid(4) block(64)"),
        ("#define TIMED(s) { start(); s; stop(); }\n", "TIMED((k<<<4, 64>>>(a, b, c)));",
         "k grid(4) block(64)"),
        (LAUNCH + LAUNCH, "LAUNCH(k, c, a, b, c);", "k grid(cdiv(n, 64)) block(64)"),
    ],
)  # fmt: skip
def test_a_launch_in_a_macro_is_read(macro: str, use: str, found: str) -> None:
    assert launches(f"{macro}{ONE}void f(int c) {{ {use} }}\n") == [found]


def test_two_uses_of_a_macro_are_two_launches_on_their_lines() -> None:
    host = "void f(int c) {\n// LAUNCH(l, c, b, d, c);\nLAUNCH(k, c, a,\n b, c);\nLAUNCH(l, c, b, d, c);\n}"
    text, notes = drop_host_code(LAUNCH + TWO + host)
    assert [found.split()[0] for found in launches(LAUNCH + TWO + host)] == ["k", "l"]
    assert "#define LAUNCH" in text
    assert not any("in a loop" in note.text for note in notes)
    unknown = host.replace("LAUNCH(l, c,", "LAUNCH(l, rows(),")
    with pytest.raises(SourceError, match="the launch of `l` on line 8"):
        with_launches(LAUNCH + TWO + unknown)


def test_a_macro_in_a_loop_is_launched_in_one() -> None:
    host = "void f(int c) { for (int i = 0; i < 3; i++) LAUNCH(k, c, a, b, c); }\n"
    _, notes = drop_host_code(LAUNCH + ONE + host)
    assert any("is launched in a loop (line 3)" in note.text for note in notes)


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef WIDE\n#define RUN(f) f<<<4, 64>>>(a)\n#else\n#define RUN(f) f<<<2, 64>>>(a)\n#endif\n",
        "#define RUN(f) f<<<4, 64>>>(a)\n#undef RUN\n",
        "#define OTHER(f) f<<<4, 64>>>(a)\n#define RUN(f) f(a)\n",
        "#define RUN(f, n) f<<<n, 64>>>(a)\n",
        '#define RUN(f) f<<<4, 64>>>(a)\n// RUN(k) "RUN(k)"\nvoid g() { puts("RUN(k)"); MY_RUN(k); }\n',
    ],
)  # fmt: skip
def test_what_is_not_sure_to_launch_stays_as_it_is(text: str) -> None:
    whole = text + ('void f() { x = "é"; RUN(k); }\n' if "MY_RUN" not in text else "")
    assert with_launches_expanded(whole) == whole


def test_letters_and_lines_stay_where_they_are() -> None:
    text = LAUNCH + 'void f() { puts("größe"); LAUNCH(k,\n c, é); }\n'
    expanded = with_launches_expanded(text)
    assert "größe" in expanded
    assert "k<<<((c) + 63) / 64, 64>>>(é)" in expanded
    assert expanded.count("\n") == text.count("\n")
