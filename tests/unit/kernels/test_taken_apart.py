"""Parameters that no array of the host can be given for: structs with pointers, pointers to rows."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.flat_rows import flat_rows
from optiml_magic.kernels.prepared import with_launches
from optiml_magic.kernels.unpacked import unpacked

MATRIX = "typedef struct { int width; const float* elements; } Matrix;\n"


def test_members_stand_for_the_struct() -> None:
    text, (note,) = unpacked(
        MATRIX + "__global__ void f(const Matrix a, int n,\n  float* out) "
        "{ out[n] = (a).elements[a.width]; }"
    )
    assert text == (
        MATRIX + "__global__ void f(int a_width, const float* a_elements, int n,\n"
        "  float* out) { out[n] = a_elements[a_width]; }"
    )
    assert (note.kind, note.name) == ("unpacked", "a")


@pytest.mark.parametrize(
    "body",
    ["{ out[0] = get(a); }", "{ Matrix b = a; out[0] = b.width; }", "{ int w = W; }"],
)
def test_a_struct_used_as_a_whole_is_made_again(body: str) -> None:
    text, _ = unpacked(f"#define W a.width\n{MATRIX}__global__ void f(Matrix a, float* out) {body}")
    made = "{ Matrix a; a.width = a_width; a.elements = a_elements;"
    assert f"f(int a_width, const float* a_elements, float* out) {made}{body[1:]}" in text


def test_launches_that_list_arguments_list_the_members_and_prototypes_go() -> None:
    text, _ = unpacked(
        f"{MATRIX}#pragma optiml launch f grid(1) block(32) args(m, x)\n"
        "__global__ void f(Matrix m, float* x);\n"
        "__global__ void f(Matrix m, float* x) { x[0] = m.width; }\n"
    )
    assert "args(m_width, m_elements, x)" in text
    assert text.count("__global__") == 1
    assert text.count("\n") == 4


def test_a_name_that_the_code_has_is_not_taken() -> None:
    text, _ = unpacked(MATRIX + "__global__ void f(Matrix a) { int a_width = a.width; }")
    assert "f(int a_width_2, const float* a_elements) { int a_width = a_width_2; }" in text


@pytest.mark.parametrize(
    "struct",
    [
        "struct S { float x[3]; float* p; };",
        "struct S { int x : 3; float* p; };",
        "struct S { void (*call)(int); float* p; };",
        "struct S { float& r; float* p; };",
        "struct S { int x; float y; };",
        "struct T { float* p; }; struct S { T t; };",
    ],
)
def test_structs_that_stay(struct: str) -> None:
    text = f"{struct}\n__global__ void f(S s, float* out) {{ out[0] = s.x; }}"
    assert unpacked(text) == (text, ())


def test_rows_become_one_index() -> None:
    text, notes = flat_rows(
        "#define N 64\n__global__ void f(const float a[N][N], float (*b)[3], int c[][2][N]) {\n"
        "  b[a[0][1]][i + 1] = c[i][1][j] + use(a[j]);\n}"
    )
    assert text == (
        "#define N 64\n__global__ void f(const float* a, float* b, int* c) {\n"
        "  b[(long long)(a[0 * N + 1]) * 3 + (i + 1)] = "
        "c[((long long)i * 2 + 1) * N + j] + use((a + j * N));\n}"
    )
    assert [note.name for note in notes] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void f(float a[2][2]) { g(a); }",
        "__global__ void f(float a[2][2]) { float a[3]; a[0] = 1; }",
        "#define A a\n__global__ void f(float a[2][2]) { A[1][1] = 2; }",
        "__global__ void f(float* a[2], float b[4]) { a[0][1] = b[2]; }",
        "__device__ void f(float a[2][2]) { a[0][1] = 2; }",
    ],
)
def test_what_is_not_indexed_alone_stays(text: str) -> None:
    assert flat_rows(text) == (text, ())


def test_both_are_told_of_a_prepared_text() -> None:
    prepared = with_launches(
        f"{MATRIX}__global__ void f(Matrix m, float x[][8]) {{ x[threadIdx.x][1] = m.width; }}\n"
        "#pragma optiml launch f grid(1) block(32)\n"
    )
    assert [note.kind for note in prepared.notes] == ["unpacked", "flat_rows"]
    assert "x[(long long)(threadIdx.x) * 8 + 1] = m_width" in prepared.program.text
