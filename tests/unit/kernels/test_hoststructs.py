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
