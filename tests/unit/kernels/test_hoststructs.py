"""Structs that the host passes by value: their members as numbers, and arrays with their sizes."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.prepared import with_launches

MATRIX = """\
struct Matrix { int width; int height; float* elements; };
__global__ void scale(Matrix A, Matrix B) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < A.height && col < A.width)
        B.elements[row * B.width + col] = 2 * A.elements[row * A.width + col];
}
void run(const Matrix A, Matrix B) {
    Matrix d_A, d_B;
    d_A.width = A.width; d_A.height = A.height;
    size_t size = A.width * A.height * sizeof(float);
    cudaMalloc(&d_A.elements, size);
    d_B.width = B.width; d_B.height = B.height;
    size = B.width * B.height * sizeof(float);
    cudaMalloc(&d_B.elements, size);
    dim3 threads(16, 16), blocks(A.width / threads.x, A.height / threads.y);
    scale<<<blocks, threads>>>(d_A, d_B);
}
"""


def told(host: str) -> dict[str, object]:
    notes = with_launches(MATRIX + host).notes
    return {n.name: n.value or n.extent for n in notes if n.kind in ("literal", "allocated")}


def test_members_have_the_names_of_the_task() -> None:
    prepared = with_launches(MATRIX)
    assert [str(launch) for launch in prepared.program.launches] == [
        "#pragma optiml launch scale grid(A_width / 16, A_height / 16) block(16, 16)"
    ]
    extents = {note.name: note.extent for note in prepared.notes if note.kind == "allocated"}
    assert extents == {"A_elements": "A_width * A_height", "B_elements": "B_width * B_height"}


def test_members_that_a_caller_sets_are_known() -> None:
    host = (
        "int main() { Matrix A, B; int w; w = 64; A.width = w; A.height = 32;\n"
        "B.width = A.width; B.height = A.height; run(A, B); }\n"
    )
    assert told(host) == {
        "A_width": 64, "A_height": 32, "B_width": 64, "B_height": 32,
        "A_elements": 2048, "B_elements": 2048,
    }  # fmt: skip


@pytest.mark.parametrize(
    "main",
    [
        "Matrix A, B; A.width = 64; A.width = 32; run(A, B);",
        "Matrix A, B; A.width = 64; fill(&A); run(A, B);",
        "Matrix A, B; A.width = 64; A = other(); run(A, B);",
        "Matrix A, B; A.width = 64; if (big) A.width = 4; run(A, B);",
        "Matrix A, B; int w = 64; A.width = w; w = 4; A.height = w; run(A, B); w = 3;",
        "Matrix A, B; A.width = 64; { Matrix A; run(A, B); }",
        "Matrix A, B, C; A.width = 64; run(C, B);",
        "Matrix A, B; A.width = 64; A.grow(); run(A, B);",
    ],
)
def test_members_that_may_be_others_are_not_known(main: str) -> None:
    assert "A_width" not in told(f"int main() {{ {main} }}\n")


def test_a_member_that_the_wrapper_changes_is_not_that_of_its_caller() -> None:
    text = MATRIX.replace("d_A.width = A.width;", "A.width += 4; d_A.width = A.width;")
    notes = with_launches(
        text.replace("const Matrix", "Matrix")
        + "int main() { Matrix A, B; A.width = 64; run(A, B); }\n"
    ).notes
    assert "A_width" not in {note.name for note in notes if note.kind == "literal"}


PARAMS = """\
struct Params { int n; float a; const float* x; float* y; };
__global__ void scale(Params p) { if (threadIdx.x < p.n) p.y[threadIdx.x] = p.a * p.x[threadIdx.x]; }
"""
NUMBERS = """\
struct Params { int n; float a; };
__global__ void scale(Params p, float* y) { if (threadIdx.x < p.n) y[threadIdx.x] *= p.a; }
"""
MADE = "int n = 40; float *x, *y; cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));"


def bound(text: str) -> dict[str, object]:
    notes = with_launches(text).notes
    return {n.name: n.value or n.extent for n in notes if n.kind in ("literal", "allocated")}


@pytest.mark.parametrize(
    "passed",
    [
        "Params p = {n, 2.0f, x, y}; scale<<<1, n>>>(p);",
        "Params p{n, 2.0f, x, y}; scale<<<1, n>>>(p);",
        "struct Params p = {.n = n, .a = 2.0f, .x = x, .y = y}; scale<<<1, p.n>>>(p);",
        "Params p = {.x = x, .n = n, .y = y, .a = 2.0f}; scale<<<1, p.n>>>(p);",
        "Params p = {0}; p.n = n; p.a = 2.0f; p.x = x; p.y = y; scale<<<1, n>>>(p);",
        "scale<<<1, n>>>({n, 2.0f, x, y});",
        "scale<<<1, n>>>(Params{n, 2.0f, x, y});",
        "scale<<<1, n>>>((Params){.n = n, .a = 2.0f, .x = x, .y = y});",
    ],
)
def test_braces_give_members_their_values(passed: str) -> None:
    found = bound(f"{PARAMS}int main() {{ {MADE} {passed} }}\n")
    assert found == {"p_n": 40, "p_a": 2.0, "p_x": 40, "p_y": 40}


@pytest.mark.parametrize(
    "passed",
    [
        "Params p = {n, 2.0f, x, y}; p.n = 4; p.n = 5; scale<<<1, 32>>>(p);",
        "Params p = {n, 2.0f, x, y}; p = other(); scale<<<1, 32>>>(p);",
        "Params p = {n, 2.0f, x, y}; fill(&p); scale<<<1, 32>>>(p);",
        "Params p = {n, 2.0f, x, y}; if (big) p.n = 5; scale<<<1, 32>>>(p);",
        "Params p = {n, 2.0f, x, y}; { Params p; scale<<<1, 32>>>(p); }",
        "Params p = {n, 2.0f, x, y}; p.halve(); scale<<<1, 32>>>(p);",
        "Params p = {.k = n, .a = 2.0f}; scale<<<1, 32>>>(p);",
        "Params p = {.a = 2.0f, n}; scale<<<1, 32>>>(p);",
        "Params p(n, 2.0f, x, y); scale<<<1, 32>>>(p);",
        "n = 7; Params p = {n, 2.0f, x, y}; n = 9; scale<<<1, 32>>>(p);",
        "for (n = 1; n < 9; n *= 2) { Params p = {n, 2.0f, x, y}; scale<<<1, 32>>>(p); }",
    ],
)
def test_members_that_change_behind_their_braces_are_not_known(passed: str) -> None:
    assert "p_n" not in bound(f"{PARAMS}int main() {{ {MADE} {passed} }}\n")


@pytest.mark.parametrize(
    "members",
    [
        "int n; float a; Params(int v, float w, const float* s, float* t) {}",
        "int v[2]; int n; float a;",
        "int n() { return 4; } float a;",
    ],
)
def test_braces_of_a_struct_that_is_made_by_itself_say_nothing(members: str) -> None:
    text = PARAMS.replace("int n; float a;", members)
    host = f"int main() {{ {MADE} Params p = {{n, 2.0f, x, y}}; scale<<<1, 32>>>(p); }}\n"
    assert "p_n" not in bound(text + host)


def test_a_struct_of_numbers_is_taken_apart_where_the_host_launches() -> None:
    host = f"int main() {{ {MADE} Params p = {{n, 2.0f}}; scale<<<1, n>>>(p, y); }}\n"
    assert bound(NUMBERS + host) == {"p_n": 40, "p_a": 2.0, "y": 40}
    alone = with_launches(f"#pragma optiml launch scale grid(1) block(32)\n{NUMBERS}")
    assert "Params p" in alone.program.text


@pytest.mark.parametrize("more", ["Params() {}", "float3 c;", "Params* next() { return this; }"])
def test_a_struct_of_more_than_numbers_stays(more: str) -> None:
    text = NUMBERS.replace("float a;", f"float a; {more}")
    host = f"int main() {{ {MADE} Params p; p.n = n; scale<<<1, 32>>>(p, y); }}\n"
    assert "Params p" in with_launches(text + host).program.text


def test_numbers_that_braces_give_are_those_of_the_grid() -> None:
    host = f"int main() {{ {MADE} Params p = {{n, 2.0f}}; scale<<<n / 8, 8>>>(p, y); }}\n"
    (launch,) = with_launches(NUMBERS + host).program.launches
    assert str(launch) == "#pragma optiml launch scale grid(p_n / 8) block(8)"


def test_members_that_are_no_whole_numbers_go_through_wrappers() -> None:
    host = (
        "void run(Params p, float* y) { scale<<<1, 32>>>(p, y); }\n"
        f"int main() {{ {MADE} float a = 2.5f; Params p; p.n = n; p.a = a; run(p, y); }}\n"
    )
    assert bound(NUMBERS + host)["p_a"] == 2.5
    changed = host.replace("{ scale", "{ p.a *= 2; scale")
    assert "p_a" not in bound(NUMBERS + changed)
