"""Launches that a pasted program does not come to, and parts of arrays that are passed twice."""

from __future__ import annotations

import pytest

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.prepared import with_launches

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
TWO = ONE + "__global__ void l(const float* p, float* q, int m) { q[m] = p[m]; }\n"


def launches(host: str, device: str = ONE, defines: dict[str, int] | None = None) -> list[str]:
    text, _ = drop_host_code(device + host, defines)
    head = "#pragma optiml launch k "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


def numbers(host: str, defines: dict[str, int] | None = None) -> dict[str, object]:
    _, notes = drop_host_code(ONE + host, defines)
    return {note.name: note.value for note in notes if note.kind == "literal"}


def told(host: str, device: str = ONE) -> str:
    return "\n".join(note.text for note in drop_host_code(device + host)[1])


@pytest.mark.parametrize(
    "host",
    [
        "#if 0\nvoid f() { k<<<9, 9>>>(a, b, 9); }\n#endif\nint main() { k<<<1, 32>>>(a, b, 3); }",
        "int main() {\n#if 0\nk<<<9, 9>>>(a, b, 9);\n#endif\nk<<<1, 32>>>(a, b, 3); }",
        ("#define V 2\nint main() {\n#if V == 1\nk<<<9, 9>>>(a, b, 9);\n#else\n"
         "k<<<1, 32>>>(a, b, 3);\n#endif\n}"),
        ("int main() {\n#ifdef WIDE\nk<<<9, 9>>>(a, b, 9);\n#elif !defined(NONE)\n"
         "k<<<1, 32>>>(a, b, 3);\n#endif\n}"),
        "#ifdef BIG\n#define N 9\n#else\n#define N 3\n#endif\nint main() { k<<<1, 32>>>(a, b, N); }",
        "int main() {\n#if 0\nint n = 9;\n#else\nint n = 3;\n#endif\nk<<<1, 32>>>(a, b, n); }",
        ("#if 0\n#define RUN(n) k<<<9, 9>>>(a, b, n)\n#else\n"
         "#define RUN(n) k<<<1, 32>>>(a, b, n)\n#endif\nint main() { RUN(3); }"),
        "void old() { k<<<9, 9>>>(a, b, 9); }\nint main() { k<<<1, 32>>>(a, b, 3); }",
        ("void old(int n) { k<<<9, 9>>>(a, b, n); }\nvoid old(int n);\n"
         "void run() { k<<<1, 32>>>(a, b, 3); }\nint main() { run(); }"),
        ("void run(int n) { if (n > 5) { return; } k<<<1, 32>>>(a, b, 3); }\n"
         "int main() { int n = 9; if (n > 5) { k<<<1, 32>>>(a, b, 3); exit(0); } "
         "k<<<9, 9>>>(a, b, 9); }"),
        "int main() { int v = 1; if (v) {} else { return 1; } k<<<1, 32>>>(a, b, 3); }",
    ],
)  # fmt: skip
def test_a_launch_that_is_not_come_to_is_none(host: str) -> None:
    assert launches(host) == ["grid(1) block(32)"]
    assert numbers(host) == {"n": 3}


def test_a_macro_of_the_task_chooses_the_branch() -> None:
    host = (
        "int main() {\n#ifdef BIG\nint n = BIG;\n#else\nint n = 3;\n#endif\nk<<<1, 1>>>(a, b, n); }"
    )
    assert numbers(host, {"BIG": 9}) == {"n": 9}


def test_a_branch_that_a_header_may_choose_is_not_decided() -> None:
    host = '#include "sizes.h"\nint main() {\n#ifdef BIG\nint n = 9;\n#else\nint n = 3;\n#endif\n'
    assert numbers(f"{host}k<<<1, 1>>>(a, b, n); }}") == {}


@pytest.mark.parametrize(
    "host",
    [
        "void run() { k<<<9, 9>>>(a, b, 9); }\nint main() { std::thread t(run); k<<<1, 1>>>(a, b, 3); }",
        "struct S { S() { k<<<9, 9>>>(a, b, 9); } };\nint main() { S s; k<<<1, 1>>>(a, b, 3); }",
        "void run() { k<<<9, 9>>>(a, b, 9); }\nvoid other() { k<<<1, 1>>>(a, b, 3); }",
        "void run() { k<<<9, 9>>>(a, b, 9); }\nint main() { return 0; }",
    ],
)
def test_a_function_that_may_be_called_is_kept(host: str) -> None:
    assert "nothing calls" not in told(host)
    assert launches(host) == ["grid(9) block(9)"]


def test_a_function_that_nobody_calls_is_said() -> None:
    host = "void old() { k<<<9, 9>>>(a, b, 9); }\nint main() { k<<<1, 32>>>(a, b, 3); }"
    assert "the launch of `k` on line 2 is left out: nothing calls `old` (line 2)" in told(host)


@pytest.mark.parametrize(
    "host",
    [
        "void run(int n) { if (n > 5) return; k<<<1, 32>>>(a, b, n); }\nint main() { run(9); run(3); }",
        "int main(int argc, char** argv) { if (argc < 2) return 1; k<<<1, 32>>>(a, b, argc + n); }",
        "int main() { int n = 5; auto f = [&](int n) { k<<<1, 32>>>(a, b, n); }; f(7); }",
    ],
)
def test_a_number_that_another_call_gives_is_not_known(host: str) -> None:
    assert launches(host) == ["grid(1) block(32)"]
    assert numbers(host) == {}


def test_a_number_is_converted_as_it_is_passed() -> None:
    assert numbers("int main() { float n = 7.9f; k<<<1, 32>>>(a, b, n); }") == {"n": 7}


@pytest.mark.parametrize(
    ("host", "part"),
    [
        ("k<<<1, 32>>>(a, b, 4); l<<<1, 32>>>(b + 4, c, 4);", "b + 4"),
        ("k<<<1, 32>>>(a, b, 4); l<<<1, 32>>>(&b[4], c, 4);", "&b[4]"),
        ("k<<<1, 32>>>(a, b + 2, 4); l<<<1, 32>>>(4 + b, c, 4);", "b + 2"),
        ("float* p = b + n; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4);", "p"),
        ("float* p = b + n; k<<<1, 32>>>(a, p + 1, 4); l<<<1, 32>>>(b, c, 4);", "p + 1"),
        ("k<<<1, 32>>>(s.a, s.b, 4); l<<<1, 32>>>(s.b + 4, c, 4);", "s.b + 4"),
        ("k<<<1, 32>>>(a, v.data(), 4); l<<<1, 32>>>((float*)v.data() + 4, c, 4);",
         "(float*)v.data() + 4"),
        ("k<<<1, 32>>>(a, a + 1, 4); l<<<1, 32>>>(b, c, 4);", "a + 1"),
    ],
)  # fmt: skip
def test_a_part_of_what_is_passed_elsewhere_is_said(host: str, part: str) -> None:
    _, notes = drop_host_code(f"{TWO}int main() {{ {host} }}\n")
    (unread, *_) = [note for note in notes if note.kind == "unread_launch"]
    assert f"`{part}` begins within an array that is passed elsewhere, too" in unread.text
    with pytest.raises(SourceError, match="begins within an array"):
        with_launches(f"{TWO}int main() {{ {host} }}\n")


def test_a_part_that_a_wrapper_passes_is_one() -> None:
    host = (
        "void first(float* u, float* v) { k<<<1, 32>>>(u, v, 4); }\n"
        "int main() { first(a, b + 4); l<<<1, 32>>>(b, c, 4); }\n"
    )
    assert "`v` begins within an array that is passed elsewhere, too" in told(host, TWO)


@pytest.mark.parametrize(
    "host",
    [
        "k<<<1, 32>>>(a + 1, b, 4); l<<<1, 32>>>(a, c, 4);",  # which nobody writes
        "k<<<1, 32>>>(a + n, b + n, 4); l<<<1, 32>>>(b + n, c + n, 4);",
        "k<<<1, 32>>>(a + n, b + n, 4); l<<<1, 32>>>(d + m, c + m, 4);",
        "k<<<1, 32>>>(next(1), next(2), 4); l<<<1, 32>>>(next(2), c, 4);",
        "k<<<1, 32>>>(a, h[0], 4); l<<<1, 32>>>(h[1], c, 4);",
        "k<<<1, 32>>>(a, &b[0], 4); l<<<1, 32>>>(b, c, 4);",
    ],
)
def test_other_parts_are_arrays_of_their_own(host: str) -> None:
    found = drop_host_code(f"{TWO}int main() {{ {host} }}\n")[0]
    assert found.count("#pragma optiml launch") == 2


def test_a_pointer_that_a_wrapper_sets_is_not_what_it_was_given() -> None:
    host = (
        "void first(float* u, float* v) { v = other(); k<<<1, 32>>>(u, v, 4); }\n"
        "int main() { first(a, b); l<<<1, 32>>>(b, c, 4); }\n"
    )
    assert "args(y" not in drop_host_code(TWO + host)[0]


def test_launches_that_lack_the_same_are_told_together_and_in_their_order() -> None:
    device = TWO + TWO.replace(" k(", " a(").replace(" l(", " b(")
    host = "int main() { k<<<g, 32>>>(u, v, 4);\na<<<2, 32>>>(u, v, 4);\nl<<<g, 64>>>(v, u, 4);\n"
    with pytest.raises(SourceError) as error:
        with_launches(f"{device}{host}b<<<h, 1>>>(u, v, 4); }}\n")
    assert error.value.message == (
        "the launches of `k` (line 5) and `l` (line 7) are not expressible with their parameters: "
        "`g` is not known; write their launch directives; the launch of `b` on line 8 is not "
        "expressible with its parameters: `h` is not known; write its launch directive"
    )
    written = error.value.fix.partition("capitals: ")[2].split("; ")
    assert [line.split()[3] for line in written] == ["k", "a", "l", "b"]


def test_a_launch_that_is_repeated_is_written_once() -> None:
    host = "int main() { k<<<g, 32>>>(u, v, 4); l<<<1, 2>>>(v, u, 4);\nk<<<g, 32>>>(u, v, 4); }\n"
    with pytest.raises(SourceError, match="the launches of `k`") as error:
        with_launches(TWO + host)
    assert error.value.fix.count("launch k") == 1
