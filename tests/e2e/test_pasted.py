"""Cells as people paste them, in a real IPython shell: whole files, and kernels without a note."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from optiml_magic.errors import OptimlError
from optiml_magic.model.task import Task
from optiml_magic.optimize import prepared
from optiml_magic.settings import resolve

SETUP = """\
import numpy as np
rng = np.random.default_rng(0)
"""
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "optiml_magic")
    shell.run_cell(SETUP)
    yield shell
    InteractiveShell.clear_instance()


def checked(shell: InteractiveShell, body: str, given: str = "", line: str = "check") -> Any:
    """What a cell gives after the Python line ``given``, or its error."""
    with capture_output():
        assert shell.run_cell(given).success
        outcome = shell.run_cell(f"%%optiml {line}\n{body}")
    if outcome.error_in_exec is not None:
        raise outcome.error_in_exec
    assert outcome.error_before_exec is None
    return outcome.result


def test_an_output_gets_the_shape_that_its_stores_tell(shell: InteractiveShell) -> None:
    body = (
        "__global__ void mirror(const float* a, float* out, int rows, int cols) {\n"
        "    int col = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    int row = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (row < rows && col < cols) out[col * rows + row] = a[row * cols + col];\n}\n"
    )
    given = "rows, cols = 33, 47; a = rng.random((rows, cols), dtype=np.float32)"
    found = checked(shell, body, given)
    assert found.passed, found
    assert "`out` has rows * cols elements, by its stores" in repr(found)


def test_an_output_with_a_border_has_no_shape_of_its_own(shell: InteractiveShell) -> None:
    body = (
        "__global__ void step(const float* a, float* out, int n) {\n"
        f"    {INDEX}\n    if (i > 0 && i < n - 1) out[i] = a[i - 1] + a[i + 1];\n}}\n"
    )
    with pytest.raises(OptimlError, match="the shape of the output `out` is not known"):
        checked(shell, body, "n = 100; a = rng.random(n, dtype=np.float32)")


TWO = """\
#include <iostream>
#include "timer.h"
#include <thrust/device_vector.h>
using namespace std;
#define CHECK(call) do { if (call != cudaSuccess) exit(1); } while (0)
#define THREADS 256
__global__ void parts(const float* in, float* partial, int n) {
    __shared__ float cache[THREADS];
    float sum = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        sum += in[i];
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int i = blockDim.x / 2; i != 0; i /= 2) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = cache[0];
}
__global__ void total(const float* partial, float* out, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) sum += partial[i];
    *out = sum;
}
int main(int argc, char** argv) {
    int size = 3000;
    if (argc > 1) size = atoi(argv[1]);
    int blocks;
    blocks = min(8, (size + THREADS - 1) / THREADS);
    size_t bytes = size * sizeof(float);
    float *d_in, *d_partial, *d_out;
    CHECK(cudaMalloc((void**)&d_in, bytes));
    CHECK(cudaMalloc(&d_partial, blocks * sizeof(float)));
    CHECK(cudaMalloc(&d_out, sizeof(float)));
    parts<<<blocks, THREADS>>>(d_in, d_partial, size);
    total<<<1, 1>>>(d_partial, d_out, blocks);
    cout << "done" << endl;
}
"""


def test_a_whole_program_runs_without_any_array_of_the_notebook(shell: InteractiveShell) -> None:
    found = checked(shell, TWO)
    assert found.passed, found
    told = repr(found)
    assert "`n` is 3000, as `parts` is launched with it" in told
    assert "`in` is 3000 random float32 from 0 to 1" in told
    assert "args(partial, out, min(8, (n + 256 - 1) / 256))" in told


def test_what_the_notebook_has_under_the_host_s_names_is_taken(shell: InteractiveShell) -> None:
    given = "size = 700; d_in = np.ones(size, np.float32)"
    found = checked(shell, TWO, given, "run")
    partial, out = found
    assert out.item() == 700
    assert partial.shape == (3,)


def test_two_buffers_of_the_host_stay_two(shell: InteractiveShell) -> None:
    body = (
        f"__global__ void twice(float* y, const float* x, int n) {{\n    {INDEX}\n"
        "    if (i < n) y[i] = 2 * x[i];\n}\n"
        f"__global__ void thrice(float* y, const float* x, int n) {{\n    {INDEX}\n"
        "    if (i < n) y[i] = 3 * x[i];\n}\n"
        "int main() {\n    int N = 100, M = 60;\n    float *a, *b, *c;\n"
        "    cudaMalloc(&a, N * sizeof(float)); cudaMalloc(&b, N * sizeof(float));\n"
        "    cudaMalloc(&c, M * sizeof(float));\n"
        "    twice<<<1, 128>>>(b, a, N);\n    thrice<<<1, 128>>>(c, a, M);\n}\n"
    )
    found = checked(shell, body, "x = np.arange(100, dtype=np.float32)", "run")
    assert [array.tolist() for array in found] == [
        [2.0 * i for i in range(100)],
        [3.0 * i for i in range(60)],
    ]


CLEARED = """\
#include "../common/book.h"
__global__ void histo(const unsigned char* bytes, long size, unsigned* counts) {
    for (long i = threadIdx.x + blockIdx.x * blockDim.x; i < size; i += blockDim.x * gridDim.x)
        atomicAdd(&counts[bytes[i]], 1);
}
int main() {
    unsigned char* dev; unsigned* dev_histo;
    HANDLE_ERROR(cudaMalloc((void**)&dev, SIZE));
    HANDLE_ERROR(cudaMalloc((void**)&dev_histo, 256 * sizeof(int)));
    HANDLE_ERROR(cudaMemset(dev_histo, 0, 256 * sizeof(int)));
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, 0));
    int blocks = prop.multiProcessorCount;
    histo<<<blocks * 2, 256>>>(dev, SIZE, dev_histo);
}
"""


def test_what_the_host_clears_is_cleared(shell: InteractiveShell) -> None:
    given = "size = 3000; bytes = rng.integers(0, 256, size).astype(np.uint8)"
    found = checked(shell, CLEARED.replace("int main", "#define SIZE 3000\nint main"), given, "run")
    values = shell.user_ns["bytes"]
    assert found.tolist() == [int((values == value).sum()) for value in range(256)]


def test_a_class_of_the_host_is_dropped_with_its_launch(shell: InteractiveShell) -> None:
    body = (
        '#include <vector>\nnamespace gpu {\nextern "C" void report(int) { }\n'
        f"__global__ void twice(const float* x, float* y, int count) {{ {INDEX}\n"
        "    if (i < count) y[i] = 2 * x[i];\n}\n"
        "class Twice {\npublic:\n    explicit Twice(int n) : n_(n) { cudaMalloc(&x_, n); }\n"
        "    void run() { int threads = 128;\n"
        "        twice<<<(n_ + threads - 1) / threads, threads>>>(x_, y_, n_); }\n"
        "private:\n    int n_; float *x_, *y_;\n};\n"
        "struct Row { std::string name; double mean; };\n}\n"
    )
    found = checked(shell, body, "count = 300; x = rng.random(count, dtype=np.float32)")
    assert found.passed, found
    assert "grid(cdiv(count, 128)) block(128)" in repr(found)


def test_floats_are_no_doubles(shell: InteractiveShell) -> None:
    head = "__global__ void k(const double* x, double* y, int n)"
    body = f"{head} {{ {INDEX} if (i < n) y[i] = x[i]; }}"
    with pytest.raises(OptimlError, match=r"`x` holds float32, and .* pointer is to float64"):
        checked(shell, body, "n = 100; x = rng.random(n, dtype=np.float32)")


EXTENSION = """\
#include <torch/extension.h>
template <typename scalar_t>
__global__ void relu(const scalar_t* __restrict__ input, scalar_t* __restrict__ output,
                     size_t size, int cols) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) output[i] = input[i] > 0 ? input[i] : scalar_t(i % cols);
}
torch::Tensor forward(torch::Tensor input) {
    auto output = torch::empty_like(input);
    const int threads = 256;
    const auto size = input.numel();
    const dim3 blocks((size + threads - 1) / threads);
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "relu", ([&] {
        relu<scalar_t><<<blocks, threads>>>(input.data_ptr<scalar_t>(),
            output.data_ptr<scalar_t>(), size, static_cast<int>(input.size(1)));
    }));
    return output;
}
"""


@pytest.mark.parametrize("quoted", [False, True])
def test_an_extension_of_pytorch_tells_its_sizes(shell: InteractiveShell, quoted: bool) -> None:
    body = EXTENSION
    if quoted:
        body = f"import torch\nsource = r'''\n{EXTENSION}'''\nload_inline('m', '', source)\n"
    given = "input = rng.standard_normal((33, 17), dtype=np.float32)"
    found = checked(shell, body, given, "run")
    values = shell.user_ns["input"].ravel()
    columns = [i % 17 for i in range(values.size)]
    wanted = [float(v) if v > 0 else float(c) for v, c in zip(values, columns, strict=True)]
    assert found.tolist() == wanted


def test_an_extension_asks_for_its_tensor_at_the_kernel(shell: InteractiveShell) -> None:
    with pytest.raises(OptimlError, match="no array named `input`") as error:
        checked(shell, EXTENSION)
    assert error.value.fix == "define `input` as a float32 array"
    assert error.value.line == 4


def test_a_size_of_an_array_that_no_kernel_has_is_told_as_such(shell: InteractiveShell) -> None:
    body = (
        "#pragma optiml size n = size(other)\n"
        f"__global__ void k(float* y, int n) {{ {INDEX} if (i < n) y[i] = i; }}"
    )
    with pytest.raises(OptimlError, match="unknown array `other`"):
        checked(shell, body, line="check --out y:float32[8]")


def test_an_error_in_a_string_is_on_its_line(shell: InteractiveShell) -> None:
    kernel = f"__global__ void k(const float* x, float* y, int n) {{\n  {INDEX}\n"
    body = f"import cupy\nk = cupy.RawKernel('''\n{kernel}  y[i] = missing;\n}}''', 'k')\n"
    with pytest.raises(OptimlError) as error:
        checked(shell, body)
    assert error.value.line == 6


def test_a_formatted_string_is_refused(shell: InteractiveShell) -> None:
    body = "k = RawKernel(f'''__global__ void k(float* y) {{ y[0] = {value}; }}''', 'k')\n"
    with pytest.raises(OptimlError, match="the kernel is an f-string"):
        checked(shell, body)


def test_a_parameter_that_python_has_no_variable_for(shell: InteractiveShell) -> None:
    head = "__global__ void k(const float* in, float* out, int n)"
    body = f"{head} {{ {INDEX} if (i < n) out[i] = in[i]; }}"
    with pytest.raises(OptimlError, match="no array named `in`") as error:
        checked(shell, body, "n = 100")
    assert error.value.fix == "name the variable that it is: --inputs in=..."


WRAPPED = """\
%%cu
#include <vector>
template <typename T>
__global__ void scaled(const T* x, const int* y, T* out, T factor, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < w && j < h) out[j * w + i] = factor * x[j * w + i] + y[j * w + i];
}
template <typename T>
void launch(const T* x, const int* y, T* out, int w, int h) {
    dim3 t(16, 16), b((w + t.x - 1) / t.x, (h + t.y - 1) / t.y);
    scaled<T><<<b, t>>>(x, y, out, 1.0f / 4, w, h);
}
int main() {
    const int W = 50, H = 30;
    std::vector<float> v(W * H, 1.0f);
    float *d_x, *d_out;
    int* d_y;
    cudaMalloc(&d_x, v.size() * sizeof(float));
    cudaMalloc(&d_y, v.size() * sizeof(int));
    cudaMalloc(&d_out, W * H * sizeof(float));
    launch<float>(d_x, d_y, d_out, W, H);
}
!nvcc -o a a.cu && ./a
"""


def test_a_wrapper_has_the_numbers_and_the_memory_of_its_caller(shell: InteractiveShell) -> None:
    found = checked(shell, WRAPPED)
    assert found.passed, found
    told = repr(found)
    assert "`factor` is 0.25" in told
    assert "`x` is 1500 random float32 from 0 to 1" in told
    assert "`y` is 1500 random int32 from 0 to 99" in told


def test_an_array_of_indices_is_not_made_up(shell: InteractiveShell) -> None:
    body = WRAPPED.replace("+ y[j * w + i]", "+ x[y[j * w + i]]")
    with pytest.raises(OptimlError, match="no array named `y`"):
        checked(shell, body)


PARTS = """\
#include <stdint.h>
typedef struct { float scale; int8_t codes[32]; } Group;
typedef struct { float x, y; } Point;
__global__ void named_alone(float* state, float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
__global__ void all_parts(const Group* g, const Point* p, const float4* v, float* x, float* state,
                          int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    state[i] += g[i].scale * g[i].codes[i % 32] + p[i].x - p[i].y + v[i].w + x[i];
}
int main() {
    const int n = 1024;
    Group* d_g; Point* d_p; float *d_v, *d_x, *d_state;
    cudaMalloc(&d_g, n * sizeof(Group));
    cudaMalloc(&d_p, sizeof(Point) * n);
    cudaMalloc(&d_v, 4 * n * sizeof(float));
    cudaMalloc(&d_x, n * sizeof(float));
    cudaMalloc(&d_state, n * sizeof(float));
    named_alone<<<n / 256, 256>>>(d_state, d_x, n);
    all_parts<<<n / 256, 256>>>(d_g, d_p, reinterpret_cast<float4*>(d_v), d_x, d_state, n);
}
"""


def test_elements_of_any_kind_are_made_up_as_the_host_allocates_them(
    shell: InteractiveShell,
) -> None:
    found = checked(shell, PARTS)
    assert found.passed, found
    told = repr(found)
    assert "`g` is 1024 random struct {scale: float32, codes: int8[32]} from 0 to 99" in told
    assert "`p` is 1024 random struct {x: float32, y: float32} from 0 to 1:" in told
    assert "`v` is 4096 random float32 from 0 to 1: `v` has 4 * n / 4 elements" in told
    assert "`state` is 1024 random float32" in told


def test_a_struct_with_an_index_in_it_is_not_made_up(shell: InteractiveShell) -> None:
    body = PARTS.replace("x[i];", "x[i + g[i].codes[3]];")
    with pytest.raises(OptimlError, match="no array named `g`"):
        checked(shell, body)


def test_arrays_have_the_axes_that_their_size_names() -> None:
    """So that all of it is smaller where its sizes are."""
    program = (
        "__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {\n"
        "    float sum = 0;\n"
        "    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;\n"
        "    for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];\n"
        "    c[i * n + j] += sum;\n}\n"
        "int main() {\n    const int M = 64, N = 32, K = 48;\n    float *a, *b, *c;\n"
        "    cudaMalloc(&a, M * K * sizeof(float));\n"
        "    cudaMalloc(&b, sizeof(float) * K * N);\n"
        "    cudaMalloc(&c, 4 * (M * N));\n"
        "    product<<<dim3(N / 16, M / 16), dim3(16, 16)>>>(a, b, c, M, N, K);\n}\n"
    )
    problem = prepared(Task(program), resolve({"device": "emulated", "verify_seeds": 1}))
    (first, *_) = problem.instances
    shapes = {n: v.shape for n, v in first.values.items() if isinstance(v, np.ndarray)}
    assert shapes == {"a": (64, 48), "b": (48, 32), "c": (64, 32)}
    assert problem.sizing is not None
    assert problem.sizing.own == {"m": 64, "n": 32, "k": 48}
    smaller = problem.sizing.draw({"k": 3, "m": 5}, 1)
    assert (smaller["a"].shape, smaller["b"].shape) == ((5, 3), (3, 32))


MATRICES = """\
typedef struct { int width; int height; float* elements; } Matrix;
__global__ void product(const Matrix, const Matrix, Matrix);
void multiply(const Matrix A, const Matrix B, Matrix C) {
    Matrix d_A;
    d_A.width = A.width; d_A.height = A.height;
    size_t size = A.width * A.height * sizeof(float);
    cudaMalloc(&d_A.elements, size);
    Matrix d_B;
    d_B.width = B.width; d_B.height = B.height;
    cudaMalloc(&d_B.elements, B.width * B.height * sizeof(float));
    Matrix d_C;
    d_C.width = C.width; d_C.height = C.height;
    cudaMalloc(&d_C.elements, C.width * C.height * sizeof(float));
    dim3 dimBlock(16, 16);
    dim3 dimGrid(B.width / dimBlock.x, A.height / dimBlock.y);
    product<<<dimGrid, dimBlock>>>(d_A, d_B, d_C);
}
__global__ void product(Matrix A, Matrix B, Matrix C) {
    float sum = 0;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    for (int e = 0; e < A.width; ++e)
        sum += A.elements[row * A.width + e] * B.elements[e * B.width + col];
    C.elements[row * C.width + col] = sum;
}
"""


def test_structs_of_the_host_are_launched_by_their_members(shell: InteractiveShell) -> None:
    given = (
        "A_width = B_height = 48; A_height = C_height = 64; B_width = C_width = 32\n"
        "A_elements = rng.random((64, 48), dtype=np.float32)\n"
        "B_elements = rng.random((48, 32), dtype=np.float32)\n"
        "def times(A_elements, B_elements): return A_elements @ B_elements\n"
    )
    found = checked(shell, MATRICES, given, "check --ref times")
    assert found.passed, found
    assert "grid(B_width / 16, A_height / 16) block(16, 16)" in repr(found)


def test_a_reference_in_c_is_told_from_one_that_is_missing(shell: InteractiveShell) -> None:
    body = TWO + "void sum_cpu(const float* in, float* out, int n) {\n    *out = in[0];\n}\n"
    with pytest.raises(OptimlError, match="C\\+\\+ host code of this cell, which is not run"):
        checked(shell, body, line="check --ref sum_cpu")
