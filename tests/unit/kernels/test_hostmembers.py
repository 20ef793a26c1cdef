"""Structs that a host function fills member by member, and what it launches with them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.unpacked import unpacked

ONE = (
    "struct P { int n; float a; const float* x; float* y; };\n"
    "__global__ void k(P p) { p.y[p.n] = p.a * p.x[p.n]; }\n"
)
LAUNCH = " k<<<4, 64>>>(s); }\n"
GROW = "void grow(P& p) { p.n *= 2; }\nvoid renew(float*& x) { x = other; }\n"


def told(host: str, kind: str) -> dict[str, object]:
    _, notes = drop_host_code(unpacked(ONE + GROW + host)[0])
    return {note.name: note.extent or note.value for note in notes if note.kind == kind}


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("P s; s.n = 1 << 4; s.a = 2.5f;", {"p_n": 16, "p_a": 2.5}),
        ("P s, t; s.n = t.n = 16; t.a = 3.0f;", {"p_n": 16}),
        ("int n = 8; P s; s.n = 2 * n;", {"p_n": 16}),
        ("P s; P t; t.n = 4; s.n = 4 * t.n;", {"p_n": 16}),
        ("P s; s.n = 16; s.x = x; cudaMalloc(&s.y, 64);", {"p_n": 16}),
    ],
)
def test_numbers_of_members_are_known(host: str, found: dict[str, object]) -> None:
    assert told(f"int main() {{ {host}{LAUNCH}", "literal") == found


@pytest.mark.parametrize(
    "host",
    [
        "P s; s.n = 16; s.n = 8;",
        "P s; s.n = 16; s.n++;",
        "P s; s.n = 16; change(&s);",
        "P s; s.n = 16; change(&s.n);",
        "P s; s.n = 16; grow(s);",
        "P s; s.n = 16; s.set(8);",
        "P s; s.n = 16; s = other;",
        "P s; s.n = 16; P& t = s; t.n = 8;",
        "P s; s.n = 16; std::swap(s, t);",
        "P s; s.n = 16; int& m = s.n; m = 8;",
        "P t; P& s = t; s.n = 16; t.n = 8;",
        "P s; if (slow()) s.n = 16;",
        "P s; for (int i = 0; i < 3; i++) s.n = i;",
        "P s = made(); s.n = read();",
        "P s; s.n = 16; { P s;",
        "P s; s.n = 16; auto f = [&] { s.n = 8; };",
        "int n = 16; P s; s.n = n; n = 8; n++;",
        "P s[2]; s[0].n = 16;",
        "P s; s.q.n = 16;",
    ],
)
def test_members_that_may_be_others_are_not_read(host: str) -> None:
    more = "}" if host.endswith("{ P s;") else ""
    assert not told(f"int main() {{ {host}{LAUNCH}{more}", "literal").get("p_n")


def test_a_buffer_that_a_member_is_set_to_is_that_buffer() -> None:
    host = (
        "int main() { float *x, *y; cudaMalloc(&x, 64 * sizeof(float));\n"
        "cudaMalloc(&y, 32 * sizeof(float)); P s; s.x = x; s.y = y;"
    )
    assert told(host + LAUNCH, "allocated") == {"p_x": "64", "p_y": "32"}


@pytest.mark.parametrize(
    "more", ["renew(x);", "x = y;", "std::swap(x, y);", "s.x = y;", "{ float* x; }", "change(&s);"]
)
def test_a_buffer_that_may_be_another_is_not_taken(more: str) -> None:
    host = (
        "int main() { float *x, *y; cudaMalloc(&x, 64 * sizeof(float));\n"
        f"cudaMalloc(&y, 32 * sizeof(float)); P s; s.x = x; s.y = y; {more}"
    )
    assert "p_x" not in told(host + LAUNCH, "allocated")


def grids(host: str) -> list[str]:
    text, _ = drop_host_code(unpacked(ONE + GROW + host)[0])
    return [line for line in text.splitlines() if line.startswith("#pragma optiml launch")]


def test_a_grid_of_what_a_member_is_set_to_is_of_the_member() -> None:
    host = "int main() { int n = 640; P s; s.n = n; k<<<n / 64, 64>>>(s); }\n"
    assert grids(host) == ["#pragma optiml launch k grid(p_n / 64) block(64)"]


@pytest.mark.parametrize(
    "host",
    [
        "int n = 640; P s; s.n = n; n = 64; k<<<n / 64, 64>>>(s);",
        "int n = 640; P s; s.n = n; { int n = 64; k<<<n / 64, 64>>>(s); }",
        "int n = 640; P s; s.n = n; s.n = 4; k<<<n / 64, 64>>>(s);",
    ],
)
def test_a_grid_of_another_number_is_not_of_the_member(host: str) -> None:
    assert not any("p_n" in line for line in grids(f"int main() {{ {host} }}"))
