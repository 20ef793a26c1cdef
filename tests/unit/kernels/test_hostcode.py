from __future__ import annotations

import numpy as np
import pytest
from known_texts import KERNEL_TEXTS

from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.hostmacros import without_linkage
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare

DEVICE = """\
#include <cuda_fp16.h>
#define N 1024
constexpr int BLOCK = 256;
struct P { float x; };
__constant__ float coef[16];
__device__ int total;
__device__ float sq(float x) { return x * x; }
__host__ __device__ inline int half_of(int x) { return x / 2; }
constexpr int two() { return 2; }
using namespace nvcuda;
// adds
template <typename T>
__global__ void add(const T* x, T* y, int n) { y[0] += sq(x[n]); }
"""
HOST = """\
#include <iostream>
#include <vector>
#include <cuda_runtime.h>
using namespace std;
static int calls = 0;
std::vector<int> gv;
void prototype(int);
template <class T> void hosted(T x) { }
"""


def pasted(main: str, device: str = DEVICE) -> tuple[str, tuple[str, ...]]:
    text, notes = drop_host_code(device + HOST + main)
    return text, tuple(note.text for note in notes if note.kind != "called")


def test_notes_have_a_kind_and_a_name():
    main = "int main() { add<int><<<n / 3.0, 2>>>(a, b, m); gone<<<1, 2>>>(a); }\n"
    _, notes = drop_host_code(DEVICE + HOST + main)
    named = {(note.kind, note.name) for note in notes}
    assert ("dropped_function", "main") in named
    assert ("unread_launch", "gone") in named
    assert ("unread_launch", "add<int>") in named
    assert ("dropped_line", "") in named
    assert [str(note) for note in notes] == [note.text for note in notes]


@pytest.mark.parametrize("text", [*KERNEL_TEXTS, DEVICE, "", "int x = 3;"])
def test_a_text_without_host_code_is_left_alone(text):
    assert drop_host_code(text) == (text, ())


def test_functions_that_a_macro_marks_for_the_device_stay():
    device = """\
#if defined(__CUDACC__)
  #define DEV __host__ __device__
#else
  #define DEV
#endif
#define QUICK DEV inline
QUICK float twice(float x) { return 2 * x; }
template <int N>
DEV void clear(float* a) { for (int i = 0; i < N; i++) a[i] = 0; }
DEV
static inline int next(int i) { return i + 1; }
__global__ void k(float* x) { clear<4>(x); x[next(4)] = twice(x[5]); }
"""
    text, notes = drop_host_code(device + "int half(int x) { return x / 2; }\n")
    assert text == device
    assert [note.name for note in notes] == ["half"]


def test_host_functions_between_the_braces_for_c_go():
    header = """\
#ifdef __cplusplus
extern "C" {
#endif
void wait(int ms);
int read(const char* name) { return fopen(name, "r") != nullptr; }
%s
#ifdef __cplusplus
}  // as it began
#endif
"""
    kernel = "__global__ void k(float* x, int n) { x[n] = 1; }"
    text, notes = drop_host_code(header % kernel + "int main() { k<<<1, 32>>>(x, 4); }\n")
    assert {*without_blank_lines(text)} == {kernel, "#pragma optiml launch k grid(1) block(32)"}
    assert [n.name for n in notes if n.kind == "dropped_function"] == ["read", "main"]
    lone = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    assert without_linkage(lone) == lone


def test_types_that_only_hosts_use_go():
    types = """\
using namespace std::chrono;
typedef high_resolution_clock ticks;
typedef duration<float> seconds_of;
struct Options {
    int n;
    Options(int argc, char** argv) { if (getopt(argc, argv, "n:") < 0) exit(1); }
};
"""
    kernel = "__global__ void k(float* x, int n) { x[n] = 1; }"
    main = "int main() { Options o(1, 0); seconds_of t = ticks::now(); k<<<1, 32>>>(x, 4); }\n"
    text, _ = drop_host_code(types + kernel + "\n" + main)
    left = {*without_blank_lines(text)} - {";"}
    assert left == {kernel, "#pragma optiml launch k grid(1) block(32)"}


def test_functions_of_a_type_that_are_for_hosts_go():
    kernel = """\
#define HOST_ONLY __host__
struct Span {
    float* at; int n;
    __host__ Span(int n) : at(new float[n]), n(n) {}
    __host__ __device__ int size() const { return n; }
    template <typename> HOST_ONLY void print() const { puts("span"); }
    __device__ float& operator[](int i) { return at[i]; }
};
__global__ void k(Span x) { x[0] = x.size(); }
"""
    text, _ = drop_host_code(kernel + "int main() { k<<<1, 32>>>(Span(4)); }\n")
    assert "new float" not in text
    assert "puts" not in text
    assert "int size() const" in text
    assert "operator[]" in text


def test_headers_that_only_hosts_have_go_without_any_host_code():
    kernel = "__global__ void k(float* x) { x[0] = std::max(x[1], 0.f); }\n"
    text, notes = drop_host_code(
        f"#include <chrono>\n#include <algorithm>\n{kernel}#include <atomic>\n"
    )
    assert text == f"\n#include <algorithm>\n{kernel}\n"
    assert [note.text for note in notes] == [
        "dropped host line 1: `#include <chrono>`",
        "dropped host line 4: `#include <atomic>`",
    ]


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_no_line_of_the_device_code_moves():
    host = "#include <vector>\nint helper() {\n  return 3;\n}\n"
    text, _ = drop_host_code(host + DEVICE + "int main() { add<int><<<1, 2>>>(a, b, m); }\n")
    before, after = (host + DEVICE).splitlines(), text.splitlines()
    assert after[4 : len(before)] == before[4:]
    assert after[0] == "#pragma optiml launch add<int> grid(1) block(2)"
    assert after[1:4] == ["", "", ""]


def test_device_code_stays_byte_for_byte_and_the_notes_say_what_went():
    text, notes = pasted("int main() {\n  add<float><<<(m + 255) / 256, 256>>>(a, b, m);\n}\n")
    directive = "#pragma optiml launch add<float> grid(cdiv(n, 256)) block(256)"
    assert text == f"{DEVICE}{directive}\n"
    assert notes == (
        "dropped host function `hosted` (line 21)",
        "dropped host function `main` (line 22)",
        "dropped host line 14: `#include <iostream>`",
        "dropped host line 15: `#include <vector>`",
        "dropped host line 16: `#include <cuda_runtime.h>`",
        "dropped host line 17: `using namespace std;`",
        "dropped host line 18: `static int calls = 0;`",
        "dropped host line 19: `std::vector<int> gv;`",
        "dropped host line 20: `void prototype(int);`",
        f"proposed from a launch: {directive}",
    )


@pytest.mark.parametrize(
    ("main", "launch"),
    [
        ("int m = N; add<float><<<(m + BLOCK - 1) / BLOCK, BLOCK>>>(a, b, m);",
         "grid(cdiv(n, 256)) block(256)"),
        ("int t = 128; int g = (N + t - 1) / t; add<float><<<g, t>>>(a, b, N);",
         "grid(cdiv(n, 128)) block(128)"),
        (("dim3 b(16, 16); dim3 g((c + b.x - 1) / b.x, (c + b.y - 1) / b.y);"
         "add<float><<<g, b>>>(a, y, c);"),
         "grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)"),
        (("const dim3 b = dim3(32, 4, 1); add<float><<<dim3{c / 2, 3}, b, 32 * sizeof(float), s>>>"
         "(a, y, c);"),
         "grid(n / 2, 3) block(32, 4) shared(32 * sizeof(float))"),
        ("add<float><<<1, 32, 0, stream>>>(a, y, 1 << 20);", "grid(1) block(32)"),
        ("dim3 b(BLOCK, BLOCK); add<float><<<c, b>>>(a, y, c);", "grid(n) block(256, 256)"),
        ("add<float><<<ceil(c / 256.0), 256>>>(a, y, c);", "grid(cdiv(n, 256)) block(256)"),
        ("add<float><<<(int)ceilf((float)c / BLOCK), 8>>>(a, y, c);", "grid(cdiv(n, 256)) block(8)"),
        ("add<float><<<ceil(double(c) / 8), 8>>>(a, y, c);", "grid(cdiv(n, 8)) block(8)"),
        (
            "dim3 b(64); dim3 g((size_t)ceil(((float)c) / ((float)b.x))); add<float><<<g, b>>>(a, y, c);",
            "grid(cdiv(n, 64)) block(64)",
        ),
        ("add<float><<<ceil(c / 256), 256>>>(a, y, c);", "grid(n / 256) block(256)"),
    ],
)  # fmt: skip
def test_launch_arguments_become_expressions_of_the_parameters(main, launch):
    text, _ = pasted(f"void run(int c) {{ {main} }}\n")
    assert f"#pragma optiml launch add<float> {launch}\n" in text


@pytest.mark.parametrize(
    ("definition", "grid"),
    [
        ("#define UP(M, N) (((M) + (N)-1) / (N))", "cdiv(n, 256)"),
        ("int UP(int a, int b) { return a % b ? a / b + 1 : a / b; }", "cdiv(n, 256)"),
        ("int UP(int a, int b) { return a / b + (a % b > 0); }", "cdiv(n, 256)"),
        ("int UP(int a, int b) { if (a % b != 0) return a / b + 1; return a / b; }", "cdiv(n, 256)"),
        ("int UP(int a, int b) { unsigned r = a / b; if (a % b) { r++; } return r; }", "cdiv(n, 256)"),
        ("int UP(int a, int b) { int c = b; c *= 2; if (a > 9) { c = 4; } else c -= 1; return a / c; }",
         "n > 9 ? n / 4 : n / (256 * 2 - 1)"),
        ("template <typename T> inline T UP(T a, T b) { return (a + b - 1) / b; }", "cdiv(n, 256)"),
        ("#define UP(a, b) min(a, b * 2) // half", "min(n, 256 * 2)"),
    ],
)  # fmt: skip
def test_the_file_s_own_macros_and_functions_are_read(definition, grid):
    text, _ = pasted(f"{definition}\nint main() {{ add<float><<<UP(m, BLOCK), 32>>>(a, b, m); }}\n")
    assert f"#pragma optiml launch add<float> grid({grid}) block(32)\n" in text


@pytest.mark.parametrize(
    "definition",
    [
        "#define UP(a, b) a / b",  # what stands around the call may bind its parts
        "#define UP(a, b) (a * 2 / b)",  # and so may these brackets, for a sum as argument
        "int UP(float a, int b) { return a / b * 2; }",
        "int UP(int a, int b) { while (a % b) a++; return a / b; }",
        "int UP(int a, int b) { float r = a; return r / b; }",
        "int UP(int a, int b) { ask(&a); return a / b; }",
        "int UP(int& a, int b) { a += b; return a / b; }",
        "int total = 0; int UP(int a, int b) { total += a; return a / b; }",
        "int UP(int a, int b) { if (a > 4) return a; }",
        "int UP(int a) { return a; }",
        "#define UP(a, b) (a)\nint UP(int a, int b) { return b; }",
    ],
)
def test_a_definition_that_may_mean_something_else_is_not_used(definition):
    text, notes = pasted(
        f"{definition}\nint main() {{ add<float><<<UP(m + 1, BLOCK), 32>>>(a, b, m); }}\n"
    )
    assert "#pragma optiml" not in text
    assert "is not expressible" in notes[-1]


@pytest.mark.parametrize(
    ("main", "note"),
    [
        ("add<float><<<blocks(m), 32>>>(a, b, m);", "is not expressible"),
        ("int g = 1; g += m; add<float><<<g, 32>>>(a, b, m);", "is not expressible"),
        ("add<float><<<other, 32>>>(a, b, m);", "is not expressible"),
        ("add<float><<<1, 32>>>(a, b);", "is not expressible"),
        ("dim3 g(1, 1); g.x = m; add<float><<<g, 32>>>(a, b, m);", "is not expressible"),
        ("add<float><<<ceil((float)m), 32>>>(a, b, m);", "is not expressible"),
        ("add<float><<<ceil(m / 2.5), 32>>>(a, b, m);", "is not expressible"),
        ("sub<<<1, 32>>>(a, b, m);", "names a kernel that is not here"),
    ],
)
def test_what_is_not_expressible_is_a_note(main, note):
    text, notes = pasted(f"int main() {{ {main} }}\n")
    assert "#pragma optiml" not in text
    assert note in notes[-1]


def test_loops_and_repetitions_are_said():
    text, notes = pasted(
        "int main() { for (int i = 0; i < 9; ++i) { add<int><<<1, 2>>>(a, b, m); }\n"
        "add<int><<<1, 2>>>(a, b, m);\n"
        "add<int><<<3, 2>>>(a, b, m); }"
    )
    assert text.count("#pragma optiml") == 1
    assert "is launched in a loop (line 22)" in notes[-3]
    assert "is launched again on line 23; kept once" in notes[-2]
    assert "another launch of `add<int>` on line 24: " in notes[-1]


def test_two_kernels_that_share_a_buffer_get_its_first_name():
    device = (
        "__global__ void one(const float* in, float* part, int n) { }\n"
        "__global__ void two(const float* src, float* out, int n) { }\n"
    )
    text, _ = pasted("int main() { one<<<4, 5>>>(x, p, m); two<<<1, 4>>>(p, y, m); }", device)
    assert text == (
        device + "#pragma optiml launch one grid(4) block(5)\n"
        "#pragma optiml launch two grid(1) block(4) args(part, out, n)\n"
    )


def test_written_launches_are_not_replaced():
    written = "#pragma optiml launch add<int> grid(7) block(8)\n"
    text, notes = pasted(written + "int main() { add<int><<<1, 2>>>(a, b, m); }\n")
    assert without_blank_lines(text) == (DEVICE + written).splitlines()
    assert not any("proposed" in note for note in notes)


def test_a_macro_that_makes_functions_of_the_device_stays():
    made = "#define MAKE(W) template <class T> struct W { __device__ T of(T x) { return x; } };\n"
    on_host = "#define REGISTER(W) static int id_##W = note(#W);\n"
    device = (
        f"{made}MAKE(Same)\n{on_host}__global__ void k(int* p) {{ p[0] = Same<int>().of(3); }}\n"
    )
    text, _ = drop_host_code(f"{device}REGISTER(Same)\nint main() {{ k<<<1, 1>>>(p); }}\n")
    assert "\nMAKE(Same)\n" in text
    assert "\nREGISTER(Same)" not in text


def test_nested_places_are_searched():
    text, notes = drop_host_code(
        'extern "C" {\n__global__ void k(int n) { }\nint main() { k<<<1, 1>>>(2); }\n}\n'
        "namespace a {\nvoid host() { }\n}\n#ifdef X\nvoid other() { }\n#endif\n"
    )
    assert text == (
        'extern "C" {\n__global__ void k(int n) { }\n\n}\nnamespace a {\n\n}\n#ifdef X\n\n#endif\n'
        "#pragma optiml launch k grid(1) block(1)\n"
    )
    assert [note.kind for note in notes if note.kind != "dropped_function"] == ["launch", "literal"]


LITERALS = """\
#include <cstdio>
#include <cuda_runtime.h>
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
__global__ void add(float* y, float a, bool twice, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += twice ? 2 * a : a;
}
int main() {
    scale<<<(n + 255) / 256, 256>>>(d_x, d_y, 2.5f, n);
    add<<<(n + 255) / 256, 256>>>(d_y, -1, true, n);
    add<<<(n + 255) / 256, 256>>>(d_y, 3, false, n);
}
"""


def test_literals_that_a_launch_passes_are_told_and_launches_keep_their_order():
    text, notes = drop_host_code(LITERALS)
    launches = [line for line in text.splitlines() if line.startswith("#pragma")]
    assert launches == [
        "#pragma optiml launch scale grid(cdiv(n, 256)) block(256)",
        "#pragma optiml launch add grid(cdiv(n, 256)) block(256) args(y, add_a, twice, n)",
    ]
    found = {note.name: note.value for note in notes if note.kind == "literal"}
    assert found == {"a": 2.5, "add_a": -1, "twice": 1}
    again = next(note.text for note in notes if note.text.startswith("another launch of `add`"))
    assert "args(y, 3, 0, n)" in again


@pytest.mark.parametrize("drawn", [False, True])
def test_a_task_need_not_give_what_a_launch_passes(drawn):
    x = np.arange(6, dtype=np.float32)
    inputs = (lambda rng: {"x": x, "n": 6}) if drawn else {"x": x, "n": 6}
    task = Task(LITERALS, lambda x: 2.5 * x - 2, inputs, outputs={"y": "f4[n]"})
    found = prepare(task, seeds=1)
    values = found.instances[0].values
    assert (values["a"], values["add_a"], values["twice"]) == (2.5, -1, 1)
    assert any(note.startswith("`add_a` is -1, as `add` is launched") for note in found.notes)


def test_what_a_task_gives_stands_in_the_place_of_a_literal():
    x = np.arange(6, dtype=np.float32)
    task = Task(LITERALS, lambda x, a: a * x - 2, {"x": x, "n": 6, "a": 4.0},
                outputs={"y": "f4[n]"})  # fmt: skip
    found = prepare(task, seeds=1)
    assert found.instances[0].values["a"] == 4
    assert not any(note.startswith("`a` is 2.5f") for note in found.notes)


SETS = "__global__ void k(const float* x, float* y, int n, int m) { }\n"


def launch_of(host: str, device: str = SETS) -> list[str]:
    text, _ = pasted(host, device)
    return [line for line in text.splitlines() if line.startswith("#pragma")]


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        ("int t, g; t = 64; g = (c + t - 1) / t; k<<<g, t>>>(a, b, c, d);",
         "grid(cdiv(n, 64)) block(64)"),
        ("cudaDeviceProp p; k<<<p.multiProcessorCount * 4, 64>>>(a, b, c, d);",
         "grid(sm_count * 4) block(64)"),
    ],
)  # fmt: skip
def test_what_is_set_once_is_known(host: str, launch: str) -> None:
    assert launch_of(f"void f(int c, int d) {{ {host} }}\n") == [
        f"#pragma optiml launch k {launch}"
    ]


@pytest.mark.parametrize(
    "host",
    [
        "int g; g = 4; if (c > 9) g = 8; k<<<g, 64>>>(a, b, c, d);",
        "int g; if (c > 9) g = 8; k<<<g, 64>>>(a, b, c, d);",
        "int g; for (;;) { g = c; } k<<<g, 64>>>(a, b, c, d);",
        "int g; g = 4; query(&g); k<<<g, 64>>>(a, b, c, d);",
        "int g; g = 4; int& h = g; k<<<g, 64>>>(a, b, c, d);",
        "int g; g = 4; { int g; g = 2; } k<<<g, 64>>>(a, b, c, d);",
        "int g; g += 4; k<<<g, 64>>>(a, b, c, d);",
        "int g; g = atoi(argv[1]); k<<<g, 64>>>(a, b, c, d);",
    ],
)
def test_what_may_be_set_otherwise_is_not_known(host: str) -> None:
    assert not launch_of(f"void f(int c, int d) {{ {host} }}\n")


def noted(host: str, kind: str) -> dict[str, object]:
    _, notes = drop_host_code(SETS + f"int main(int argc, char** argv) {{ {host} }}\n")
    return {note.name: note.extent or note.value for note in notes if note.kind == kind}


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("int c = 1 << 4, d = c * 2; k<<<1, 64>>>(a, b, c, d);", {"n": 16, "m": 32}),
        ("int c = 9; if (argc > 1) c = atoi(argv[1]); k<<<1, 64>>>(a, b, c, 3);", {"n": 9, "m": 3}),
        ("int c = argc > 1 ? atoi(argv[1]) : 5; k<<<1, 64>>>(a, b, c, 3);", {"n": 5, "m": 3}),
        ("int c = fast() ? 4 : 5; k<<<1, 64>>>(a, b, c, 3);", {"m": 3}),
        ("int c = 9; if (slow()) c = 2; k<<<1, 64>>>(a, b, c, 3);", {"m": 3}),
        ("int c = 9; read(&c); k<<<1, 64>>>(a, b, c, 3);", {"m": 3}),
        ("int c = 9; k<<<1, 64>>>(a, b, c++, c / 0);", {}),
    ],
)
def test_numbers_of_the_host_are_those_of_a_run_without_arguments(host, found):
    assert noted(host, "literal") == found


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("cudaMalloc(&a, c * sizeof(float)); k<<<1, 64>>>(a, b, c, d);", {"x": "n"}),
        ("CHECK(cudaMalloc((void**)&b, sizeof(int) * c * (d + 1))); k<<<1, 64>>>(a, b, c, d);",
         {"y": "n * (m + 1)"}),
        ("size_t s = c * sizeof(*a); cudaMalloc(&a, s); k<<<1, 64>>>(a, b, c, d);", {"x": "n"}),
        ("size_t s = c * sizeof(*h); cudaMalloc(&a, s); k<<<1, 64>>>(a, b, c, d);", {}),
        ("cudaMalloc(&a, c * sizeof(double)); k<<<1, 64>>>(a, b, c, d);", {}),
        ("cudaMalloc(&a, 4 * c); k<<<1, 64>>>(a, b, c, d);", {"x": "n"}),
        ("cudaMalloc(&a, c * sizeof(float)); cudaMalloc(&a, 4); k<<<1, 64>>>(a, b, c, d);", {}),
        ("cudaMalloc(&a, 16 * sizeof(float)); k<<<1, 64>>>(a, b, c, d);", {"x": "16"}),
        ("cudaMalloc(&other, c * sizeof(float)); k<<<1, 64>>>(a, b, c, d);", {}),
    ],
)  # fmt: skip
def test_allocations_say_how_many_elements_a_buffer_has(host, found):
    assert noted(host, "allocated") == found


@pytest.mark.parametrize(
    ("host", "clears"),
    [
        ("cudaMemset(b, 0, s);", True),
        ("cudaMemset(b, 1, s);", False),
        ("cudaMemset(b, 0, s / 2);", False),
        ("cudaMemset(a, 0, s);", False),
        ("cudaMemset(b, 0, s); cudaMemcpy(b, h, s, cudaMemcpyHostToDevice);", False),
        ("if (c > 1) cudaMemset(b, 0, s);", False),
        ("if (c > 1) { cudaMemset(b, 0, s); }", False),
        ("for (int i = 0; i < c; i++) cudaMemset(b, 0, s);", False),
        ("cudaMemset(b, 0, s); if (c > 1) cudaMemset(b, 1, s);", False),
        ("k<<<1, 64>>>(a, b, c, d); cudaMemset(b, 0, s);", False),
    ],
)
def test_a_buffer_that_the_host_clears_begins_with_zeros(host, clears):
    device = SETS.replace("{ }", "{ y[n] += x[m]; }")
    main = f"int main() {{ cudaMalloc(&b, s); {host} k<<<1, 64>>>(a, b, c, d); }}\n"
    assert ("#pragma optiml zero(y)" in launch_of(main, device)) == clears


def test_numbers_that_differ_in_one_function_have_names_of_their_own():
    device = (
        "__global__ void one(float* y, int n) { }\n__global__ void two(float* z, int n) { }\n"
        "__global__ void sum(float* y, int count) { }\n"
    )
    host = "void f(int c, int d) { one<<<1, 32>>>(p, c); two<<<1, 32>>>(q, d); int g = c / 2;\n"
    assert launch_of(f"{host}sum<<<1, 32>>>(p, g); }}", device) == [
        "#pragma optiml launch one grid(1) block(32)",
        "#pragma optiml launch two grid(1) block(32) args(z, two_n)",
        "#pragma optiml launch sum grid(1) block(32) args(y, n / 2)",
    ]


def test_one_number_has_one_name():
    device = (
        "__global__ void one(float* y, int n) { }\n__global__ void two(float* y, int count) { }\n"
    )
    assert launch_of("void f(int c) { one<<<c, 32>>>(p, c); two<<<c, 32>>>(p, c); }\n", device) == [
        "#pragma optiml launch one grid(n) block(32)",
        "#pragma optiml launch two grid(n) block(32) args(y, n)",
    ]


def test_what_is_cleared_in_the_round_of_its_launch_is_cleared():
    device = SETS.replace("{ }", "{ y[n] += x[m]; }")
    main = (
        "int main() { cudaMalloc(&b, s); for (int i = 0; i < 9; i++) {"
        " cudaMemset(b, 0, s); k<<<1, 64>>>(a, b, c, d); } }\n"
    )
    assert "#pragma optiml zero(y)" in launch_of(main, device)


def test_headers_that_only_host_code_used_go():
    head = '#include <thrust/device_vector.h>\n#include <cub/cub.cuh>\n#include "timer.h"\n'
    head += '#include "cuda_fp16.h"\n#include "mine.cuh"\n'
    device = head + "__global__ void k(int n) { cub::CTA_SYNC(); }\n"
    text, _ = drop_host_code(device + "int main() { }\n", None, {"timer.h"}.__contains__)
    assert [line for line in text.splitlines() if "include" in line] == [
        "#include <cub/cub.cuh>",
        '#include "cuda_fp16.h"',
        '#include "mine.cuh"',
    ]


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        ("k<<<(m.rows + 63) / 64, 64>>>(a, b, m.rows, m.cols);", "grid(cdiv(n, 64)) block(64)"),
        ("int g = v.size() / 64; k<<<g, 64>>>(a, b, v.size(), 2);", "grid(n / 64) block(64)"),
        ("M d; d.rows = m.rows; k<<<m.rows, 64>>>(a, b, d.rows, 2);", "grid(n) block(64)"),
        ("M d; d.rows = m.rows; k<<<d.rows, 64>>>(a, b, d.rows, 2);", "grid(n) block(64)"),
    ],
)
def test_what_a_launch_passes_is_known_by_how_it_is_spelled(host: str, launch: str) -> None:
    assert launch_of(f"void f(M m, std::vector<int>& v) {{ {host} }}\n") == [
        f"#pragma optiml launch k {launch}"
    ]


@pytest.mark.parametrize(
    "host",
    [
        "int g = m.rows / 64; m.rows = 5; k<<<g, 64>>>(a, b, m.rows, 2);",
        "int g = m.rows / 64; m.rows -= 5; k<<<g, 64>>>(a, b, m.rows, 2);",
        "int g = m.rows / 64; m = other; k<<<g, 64>>>(a, b, m.rows, 2);",
        "int g = m.rows / 64; change(&m); k<<<g, 64>>>(a, b, m.rows, 2);",
        "int g = m.rows / 64; { M m; k<<<g, 64>>>(a, b, m.rows, 2); } M m;",
        "int g = v.size() / 64; v.push_back(1); k<<<g, 64>>>(a, b, v.size(), 2);",
        "int g = m.rows / 64; if (c) m.rows = 5; k<<<g, 64>>>(a, b, m.rows, 2);",
        "M d; d.rows = m.rows; m.rows = 3; k<<<m.rows, 64>>>(a, b, d.rows, 2);",
        "k<<<m.cols, 64>>>(a, b, m.rows, 2);",
    ],
)
def test_what_may_have_changed_since_is_not_known(host: str) -> None:
    assert not launch_of(f"void f(M m, std::vector<int>& v) {{ {host} }}\n")


def test_types_that_only_host_code_used_go_with_it() -> None:
    clock = "struct Clock { struct timespec from, to; };\nstruct Clock clock_of_all;\n"
    kept = "struct Pair { float a, b; };\nstruct Handles { handle_t stream; };\n"
    uses = "__global__ void k(float* y, Handles* h) { y[0] = 1; }\n"
    text, _ = drop_host_code(clock + kept + uses + "int main() { k<<<1, 1>>>(y, h); }")
    assert "Clock" not in text
    assert "timespec" not in text
    assert kept in text


def test_a_functor_that_a_launch_names_stays() -> None:
    functor = "struct Op { half_t unit; float operator()(float x) const { return x; } };\n"
    kernel = "template <class F> __global__ void k(float* y) { y[0] = F()(y[0]); }\n"
    text, _ = drop_host_code(functor + kernel + "int main() { k<Op><<<1, 1>>>(y); }")
    assert functor in text


@pytest.mark.parametrize(
    ("header", "code", "kept"),
    [
        ("<raylib.h>", "", False),
        ("<opencv2/opencv.hpp>", "", False),
        ("<execution>", "", False),
        ("<cstdarg>", "", False),
        ("<math.h>", "", True),
        ("<cuda_fp16.h>", "", True),
        ("<cutlass/array.h>", "cutlass::Array<float, 4> a; ", True),
    ],
)
def test_headers_that_nobody_has_go_where_nothing_of_them_is_named(
    header: str, code: str, kept: bool
) -> None:
    device = f"#include {header}\n__global__ void k(float* y) {{ {code}y[0] = 1; }}\n"
    text, _ = drop_host_code(device + "int main() { k<<<1, 1>>>(y); }", lacks=lambda _: True)
    assert (header in text) is kept


def test_a_comment_within_a_long_macro_hides_nothing_behind_it() -> None:
    macro = "#define TIMED(call) \\\n do { \\\n /* warm up */ \\\n call; \\\n } while (0)\n"
    kernel = "template <const int B>\n__global__ void k(float* y) { y[B] = 1; }\n"
    text, _ = drop_host_code(macro + kernel + "int main() { k<3><<<1, 1>>>(y); }")
    assert "launch k<3> grid(1) block(1)" in text
    assert macro + kernel in text
