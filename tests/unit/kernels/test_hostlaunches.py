"""Launches of host code: which of them run, in which order, with which buffers and numbers."""

from __future__ import annotations

import pytest

from optiml_magic.errors import SourceError, UsageError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.prepared import with_launches

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
TWO = ONE + "__global__ void l(const float* p, float* q, int m) { q[m] = p[m]; }\n"
ADDS = "__global__ void k(const float* x, float* y, int n) { y[n] += x[n]; }\n"


def directives(host: str, device: str = ONE) -> list[str]:
    text, _ = drop_host_code(device + host)
    head = "#pragma optiml "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


def told(host: str, kind: str, device: str = ONE) -> dict[str, object]:
    _, notes = drop_host_code(device + host)
    return {note.name: note.extent or note.value for note in notes if note.kind == kind}


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        (("void f(int v) { if (v == 1) k<<<1, 32>>>(a, b, 3); else k<<<2, 32>>>(a, b, 3); }\n"
         "int main() { f(1); }"), "grid(1)"),
        (("void f(int v) { if (v == 1) k<<<1, 32>>>(a, b, 3); else k<<<2, 32>>>(a, b, 3); }\n"
         "int main() { f(4); }"), "grid(2)"),
        (("void f(int v) { switch (v) { case 1: k<<<1, 32>>>(a, b, 3); break;\n"
         "case 2: k<<<2, 32>>>(a, b, 3); break; default: k<<<3, 32>>>(a, b, 3); } }\n"
         "int main(int argc, char** argv) { int v = 2; if (argc > 1) v = atoi(argv[1]); f(v); }"),
         "grid(2)"),
        (("int main() { int v = 9; switch (v) { case 1: k<<<1, 32>>>(a, b, 3); break;\n"
         "default: k<<<3, 32>>>(a, b, 3); } }"), "grid(3)"),
        ("int main() { if (0) { k<<<1, 32>>>(a, b, 3); } k<<<2, 32>>>(a, b, 3); }", "grid(2)"),
        ("void f() { return; }\nint main() { { k<<<2, 32>>>(a, b, 3); }; ; }", "grid(2)"),
    ],
)  # fmt: skip
def test_the_branch_that_the_program_takes_is_launched(host: str, launch: str) -> None:
    assert directives(host) == [f"launch k {launch} block(32)"]


@pytest.mark.parametrize(
    ("host", "launches"),
    [
        (("void f(int v, int n) { if (v == 1) k<<<1, 32>>>(a, b, n); k<<<2, 32>>>(a, b, n); }\n"
         "int main() { f(1, 9); f(2, 9); }"), ["launch k grid(1) block(32)"]),
        ("int main() { int v = 1; switch (v) { case 1: g(); case 2: k<<<2, 32>>>(a, b, 3); } }",
         ["launch k grid(2) block(32)"]),
        ("int main() { int v = read(); if (v) k<<<1, 32>>>(a, b, 3); }",
         ["launch k grid(1) block(32)"]),
    ],
)  # fmt: skip
def test_a_branch_that_may_be_taken_stays(host: str, launches: list[str]) -> None:
    assert directives(host) == launches


def test_a_function_that_is_called_twice_may_come_to_both_branches() -> None:
    host = (
        "void f(int v) { if (v == 1) k<<<1, 32>>>(a, b, 3); else l<<<2, 32>>>(a, b, 3); }\n"
        "int main() { f(1); f(2); }\n"
    )
    _, notes = drop_host_code(TWO + host)
    left_out = [note.text for note in notes if "left out" in note.text]
    assert directives(host, TWO) == ["launch k grid(1) block(32)"]
    assert left_out == [
        (
            "the launch of `l` on line 3 is left out: it excludes that of `k` on line 3, and which "
            "of the two runs is not known"
        )
    ]


def test_branches_on_what_a_launch_passes_are_a_dispatch() -> None:
    host = (
        "void f(int n, int m) { if (n < 64) { k<<<1, 32>>>(a, b, n); }\n"
        "else if (n < 99) { k<<<2, 64>>>(a, b, n); } else { k<<<3, 128>>>(a, b, n); } }\n"
    )
    assert directives(host) == [
        "launch k grid(1) block(32) if (n < 64)",
        "launch k grid(2) block(64) else if (n < 99)",
        "launch k grid(3) block(128) else",
    ]


@pytest.mark.parametrize(
    "branch",
    [
        "if (fast()) k<<<1, 32>>>(a, b, n); else k<<<2, 32>>>(a, b, n);",
        "if (m < 4) k<<<1, 32>>>(a, b, n); else k<<<2, 32>>>(a, b, n);",
        "if (n < 4) { k<<<1, 32>>>(a, b, n); k<<<5, 32>>>(b, a, n); } else k<<<2, 32>>>(a, b, n);",
        "if (n < 4) k<<<1, 32>>>(a, b, n); else if (n < 9) k<<<2, 32>>>(a, b, n);",
    ],
)
def test_of_branches_that_cannot_be_said_the_first_is_taken(branch: str) -> None:
    assert directives(f"void f(int n, int m) {{ {branch} }}\n") == ["launch k grid(1) block(32)"]


def test_launches_run_in_the_order_of_the_calls() -> None:
    host = (
        "void second(float* u, float* v) { l<<<1, 32>>>(u, v, 4); }\n"
        "void first(float* u, float* v) { k<<<1, 32>>>(u, v, 4); }\n"
        "int main() { first(a, b); second(b, c); }\n"
    )
    assert directives(host, TWO) == [
        "launch k grid(1) block(32)",
        "launch l grid(1) block(32) args(y, q, m)",
    ]


@pytest.mark.parametrize(
    ("passed", "links"),
    [
        ("k<<<1, 32>>>(a, b, 4); l<<<1, 32>>>(b, c, 4);", True),
        ("k<<<1, 32>>>(a, (float*)b, 4); l<<<1, 32>>>(static_cast<float*>(b), c, 4);", True),
        (("k<<<1, 32>>>(x.data_ptr<float>(), b.data_ptr<float>(), 4);"
         "l<<<1, 32>>>(b.data_ptr<float>(), c.data_ptr<float>(), 4);"), True),
        (("k<<<1, 32>>>(raw_pointer_cast(x.data()), thrust::raw_pointer_cast(&b[0]), 4);"
         "l<<<1, 32>>>(thrust::raw_pointer_cast(b.data()), c.data().get(), 4);"), True),
        ("k<<<1, 32>>>(s.a, s.b, 4); l<<<1, 32>>>(s.b, s.c, 4);", True),
        ("float* p = b; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4);", True),
        ("auto p = b.contiguous(); k<<<1, 32>>>(a, p.get(), 4); l<<<1, 32>>>(b.get(), c, 4);", True),
        ("k<<<1, 32>>>(a, b, 4); b = other(); l<<<1, 32>>>(b, c, 4);", False),
        ("k<<<1, 32>>>(a, b, 4); std::swap(b, d); l<<<1, 32>>>(b, c, 4);", False),
        ("float* p = b; k<<<1, 32>>>(a, p, 4); b = d; l<<<1, 32>>>(p, c, 4);", True),
        ("float* p = b; b = d; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4);", False),
        ("float* p = b; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4); b = d;", True),
        ("float* p = b; p = d; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4);", False),
        ("float* p = d + n; k<<<1, 32>>>(a, p, 4); l<<<1, 32>>>(b, c, 4);", False),
        ("k<<<1, 32>>>(s.a, s.b, 4); l<<<1, 32>>>(t.b, s.c, 4);", False),
        ("k<<<1, 32>>>(a, nullptr, 4); l<<<1, 32>>>(nullptr, c, 4);", False),
        ("k<<<1, 32>>>(a, h[0], 4); l<<<1, 32>>>(h[1], c, 4);", False),
        ("k<<<1, 32>>>(a, next(), 4); l<<<1, 32>>>(other(), c, 4);", False),
    ],
)  # fmt: skip
def test_a_buffer_is_one_wherever_its_pointer_comes_from(passed: str, links: bool) -> None:
    found = directives(f"int main() {{ {passed} }}\n", TWO)
    assert ("args(y, q, m)" in found[1]) == links


@pytest.mark.parametrize(
    ("call", "launch"),
    [
        ("void* args[] = {&a, &b, &c}; cudaLaunchKernel((void*)k, dim3(c), dim3(32), args, 0, 0);",
         ["launch k grid(n) block(32) shared(0)"]),
        (("void* args[] = {(void*)&a, &b, &c}; dim3 g(c / 2), t(64);"
         "cudaLaunchCooperativeKernel((const void*)k, g, t, args, c * 4, s);"),
         ["launch k grid(n / 2) block(64) shared(n * 4)"]),
        ("void* args[] = {&a, &b}; cudaLaunchKernel((void*)k, dim3(c), dim3(32), args);", []),
        ("void* args[3]; cudaLaunchKernel((void*)k, dim3(c), dim3(32), args);", []),
        ("void* args[] = {&a, b, &c}; cudaLaunchKernel((void*)k, dim3(c), dim3(32), args);", []),
        ("cudaLaunchKernel((void*)k, dim3(c), dim3(32), list());", []),
    ],
)  # fmt: skip
def test_a_launch_by_a_function_is_read(call: str, launch: list[str]) -> None:
    found = [line.replace(" shared(0)", "") for line in directives(f"void f(int c) {{ {call} }}\n")]
    assert found == [line.replace(" shared(0)", "") for line in launch]


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        (("int s; cudaDeviceGetAttribute(&s, cudaDevAttrMultiProcessorCount, 0);"
         "k<<<4 * s, 32>>>(a, b, 4);"), "grid(4 * sm_count) block(32)"),
        (("int s; cudaDeviceGetAttribute(&s, cudaDevAttrMaxThreadsPerBlock, 0);"
         "k<<<4, s>>>(a, b, 4);"), "grid(4) block(1024)"),
        ("cudaDeviceProp p; get(&p, 0); k<<<4, p.maxThreadsPerBlock / 2>>>(a, b, 4);",
         "grid(4) block(1024 / 2)"),
        (("int t = 128, o; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&o, k, t, 0);"
         "k<<<o, t>>>(a, b, 4);"), "grid(2048 / 128) block(128)"),
        (("int sm_count; cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0);"
         "k<<<sm_count, 32>>>(a, b, 4);"), "grid(sm_count) block(32)"),
        ("int sm_count = 5; k<<<sm_count, 32>>>(a, b, 4);", "grid(5) block(32)"),
        ("{ dim3 t(32); } { dim3 t(64); k<<<4, t>>>(a, b, 4); }", "grid(4) block(64)"),
        ("if (c) { int t = 32; g(t); } else { int t = 64; k<<<4, t>>>(a, b, 4); }",
         "grid(4) block(64)"),
        ("if (c) { dim3 g; g.x = c; k<<<g, 32>>>(a, b, c); }", "grid(n) block(32)"),
        ("int g = 1e2; k<<<g, 32>>>(a, b, 4);", "grid(100) block(32)"),
        ("dim3 g, t; t.x = 8; t.y = 4; g.y = c / t.y; k<<<g, t>>>(a, b, c);",
         "grid(1, n / 4) block(8, 4)"),
        ("k<<<c, 32>>>(a, b, (int)c);", "grid(n) block(32)"),
        ("k<<<c, 32>>>(a, b, static_cast<int>(c));", "grid(n) block(32)"),
    ],
)  # fmt: skip
def test_numbers_of_a_launch_are_read(host: str, launch: str) -> None:
    assert directives(f"void f(int c) {{ {host} }}\n") == [f"launch k {launch}"]


@pytest.mark.parametrize(
    "host",
    [
        "int s; cudaDeviceGetAttribute(&s, cudaDevAttrClockRate, 0); k<<<s, 32>>>(a, b, 4);",
        (
            "int s; cudaDeviceGetAttribute(&s, cudaDevAttrMultiProcessorCount, 0); s *= 2;"
            "k<<<s, 32>>>(a, b, 4);"
        ),
        "k<<<d.y, 32>>>(a, b, 4);",
        "int g = c / 4; { int c = 9; k<<<g, 32>>>(a, b, c); }",
        "int g = 4; grow(g); k<<<g, 32>>>(a, b, 4);",
        "dim3 g(4); grow(g.x); k<<<g, 32>>>(a, b, 4);",
        "float g = 4.0f; k<<<g, 32>>>(a, b, 4);",
        "dim3 g; g.x = 4; if (c) g.y = 2; k<<<g, 32>>>(a, b, 4);",
        "dim3 g; if (c) { g.x = 4; } k<<<g, 32>>>(a, b, 4);",
        "dim3 g; if (c) g.x = 4; else k<<<g, 32>>>(a, b, 4);",
        "dim3 g; g.x = 4; g.x = 5; k<<<g, 32>>>(a, b, 4);",
        "dim3 g; k<<<g, 32>>>(a, b, 4); g.x = 4;",
        "dim3 g; g.x = 4; g = other; k<<<g, 32>>>(a, b, 4);",
        "dim3 g; g.x = 4; change(&g); k<<<g, 32>>>(a, b, 4);",
        "dim3 g; g.x += 4; k<<<g, 32>>>(a, b, 4);",
        "auto p = sizes(); k<<<p.y, 32>>>(a, b, 4);",
        "int t = 4; { int t = 8; } change(&t); k<<<t, 32>>>(a, b, 4);",
    ],
)
def test_numbers_that_may_be_others_are_not_read(host: str) -> None:
    grow = "template <typename T> void grow(T& more) { more *= 2; }\n"
    assert not directives(f"{grow}void f(int c, dim3 d) {{ {host} }}\n")


def test_numbers_that_a_launch_does_not_pass_are_those_of_the_program_and_told() -> None:
    host = (
        "void f(int t, dim3 d, int c) { dim3 g(c / t, d.y); k<<<g, t>>>(a, b, c); }\n"
        "int main() { dim3 d(4, 6); f(32, d, 640); }\n"
    )
    text, notes = drop_host_code(ONE + host)
    assert "launch k grid(n / 32, 6) block(32)" in text
    found = [note.text for note in notes if "does not pass" in note.text]
    assert found == [
        (
            "the launch of `k` has 32 for `t`, 6 for `d.y`, which it does not pass: write its launch "
            "directive for other sizes"
        )
    ]


def test_a_launch_that_is_not_read_says_what_is_missing_and_what_to_write() -> None:
    host = "void f(int rows, int c) { k<<<dim3(rows, 2), 64>>>(a, b, c); }\n"
    with pytest.raises(SourceError, match="`rows` is not known") as error:
        with_launches(ONE + host)
    assert error.value.fix.endswith("#pragma optiml launch k grid(BLOCKS_X, 2) block(64)")


def test_a_program_of_which_one_launch_is_not_read_is_refused() -> None:
    host = "void f(int rows, int c) { k<<<4, 64>>>(a, b, c); l<<<rows, 64>>>(b, d, c); }\n"
    with pytest.raises(SourceError, match="the launch of `l` on line 3") as error:
        with_launches(TWO + host)
    assert error.value.fix.endswith(
        "#pragma optiml launch k grid(4) block(64); "
        "#pragma optiml launch l grid(BLOCKS) block(64) args(y, q, n)"
    )


def test_numbers_of_an_inferred_launch_are_known() -> None:
    device = ONE.replace(
        "y[n] =", "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] ="
    )
    host = "void f(int t, int c) { k<<<up(c, t), t>>>(a, b, c); }\nint main() { f(best(), 77); }\n"
    assert told(host, "literal", device) == {"n": 77}
    assert with_launches(device + host).launch == "inferred"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("T(3)", 3.0), ("(T)3", 3.0), ("static_cast<T>(0.5)", 0.5), ("float(1) / 4", 0.25),
        ("T(half())", None), ("(int)2.5", 2),
    ],
)  # fmt: skip
def test_casts_of_numbers_are_read(argument: str, value: float | None) -> None:
    device = "template <class T> __global__ void k(T* y, T a) { y[0] = a; }\n"
    host = (
        f"template <typename T> void f() {{ k<T><<<1, 32>>>(b, {argument}); }}\n"
        "int main() { f<float>(); f<double>(); }\n"
    )
    assert told(host, "literal", device).get("a") == value


def test_kernels_of_which_no_launch_is_read_say_so_for_each() -> None:
    host = "void f(int g) { k<<<g, 64>>>(a, b, 4); l<<<g, 64>>>(b, d, 4); }\n"
    with pytest.raises(SourceError, match=r"`k` \(line 3\) and `l` \(line 3\)") as error:
        with_launches(TWO + host)
    assert error.value.fix.count("#pragma optiml launch") == 2


@pytest.mark.parametrize(
    ("kernel", "fix"),
    [
        (
            "__global__ void k(torch::PackedTensorAccessor32<float, 2> x) { x[0][0] = 1; }",
            "data_ptr",
        ),
        ("__global__ void k(float* x) { at::Half h = x[0]; x[0] = h; }", "float or __half"),
    ],
)
def test_types_of_pytorch_in_a_kernel_are_named(kernel: str, fix: str) -> None:
    with pytest.raises(UsageError, match="is of PyTorch's headers") as error:
        with_launches(f"#include <torch/extension.h>\n{kernel}\n")
    assert fix in error.value.fix
    assert error.value.line == 2


def test_a_namespace_of_the_text_s_own_is_none_of_pytorch() -> None:
    device = "namespace at { struct P { float x; }; }\n"
    kernel = "__global__ void k(float* y) { at::P p{2.0f}; y[blockIdx.x] = p.x; }\n"
    host = "int main() { k<<<1, 1>>>(b); }\n"
    assert with_launches(device + kernel + host).launch == "given"


@pytest.mark.parametrize(
    ("host", "grid"),
    [
        ("c *= 2; int g = c / 32; k<<<g, 32>>>(a, b, c);", "grid(n / 32)"),
        ("c *= 2; dim3 g(c / 32); k<<<g, 32>>>(a, b, c);", "grid(n / 32)"),
        ("c *= 2; dim3 g; g.x = c / 32; k<<<g, 32>>>(a, b, c);", "grid(n / 32)"),
        ("int g = c / 32; k<<<g, 32>>>(a, b, c); c *= 2;", "grid(n / 32)"),
        ("int g = c / 32; c *= 2; k<<<g, 32>>>(a, b, c);", None),
        ("dim3 g(c / 32); c *= 2; k<<<g, 32>>>(a, b, c);", None),
        ("dim3 g; g.x = c / 32; c *= 2; k<<<g, 32>>>(a, b, c);", None),
        ("int h = c; int g = h / 32; c -= 1; k<<<g, 32>>>(a, b, c);", None),
        ("int g = c / 32; for (; c > 0; c -= 32) k<<<g, 32>>>(a, b, c);", None),
        ("int g; g = c / 32; read(&c); k<<<g, 32>>>(a, b, c);", None),
    ],
)
def test_a_grid_of_what_a_number_was_before_is_not_of_what_is_passed(
    host: str, grid: str | None
) -> None:
    found = directives(f"void f(int c) {{ {host} }}\n")
    assert found == ([] if grid is None else [f"launch k {grid} block(32)"])


SCALES = (
    "template <typename T> __global__ void k(const T* x, T* y, T f, int n) { y[n] = f * x[n]; }\n"
)


@pytest.mark.parametrize(
    ("host", "launch"),
    [
        ("int main() { float *a, *b; k<<<1, 32>>>(a, b, 2.0f, 3); }", "k<float>"),
        ("int main() { const double* a; double* b; k<<<1, 32>>>(a, b, s, 3); }", "k<double>"),
        ("typedef float real;\nint main() { real *a, *b; k<<<1, 32>>>(a, b, s, 3); }", "k<float>"),
        ("#define REAL double\nint main() { REAL *a; k<<<1, 32>>>(a, b, s, 3); }", "k<double>"),
        ("int main() { k<<<1, 32>>>((int*)a, (int*)b, 2, 3); }", "k<int>"),
        (
            (
                "template <class U> void f(U* a, U* b, int n) { k<<<1, 32>>>(a, b, (U)2, n); }\n"
                "int main() { short *p, *q; f(p, q, 3); }"
            ),
            "k<short>",
        ),
    ],
)
def test_template_arguments_are_deduced_from_what_is_passed(host: str, launch: str) -> None:
    assert directives(host, SCALES) == [f"launch {launch} grid(1) block(32)"]


@pytest.mark.parametrize(
    "host",
    [
        "int main() { float* a; double* b; k<<<1, 32>>>(a, b, s, 3); }",
        "int main() { auto a = made(); k<<<1, 32>>>(a, b, s, 3); }",
        "int main() { if (x) { float* a; } else { int* a; k<<<1, 32>>>(a, a, s, 3); } float* a; }",
    ],
)
def test_a_template_argument_that_nothing_says_alike_is_asked_for(host: str) -> None:
    assert directives(host, SCALES)[0].split(" grid")[0] == "launch k"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("float s = 1.0f / sqrtf(16); k<<<1, 32>>>(a, b, s, 3);", 0.25),
        ("double s = 2 * M_PI; k<<<1, 32>>>(a, b, s, 3);", 6.283185307179586),
        ("float s = pow(2, 0.5) * 0 + std::exp(0.0f); k<<<1, 32>>>(a, b, s, 3);", 1.0),
        ("float s; int d; s = 0.5f, d = 4; k<<<1, 32>>>(a, b, s, d);", 0.5),
        ("float s = sqrt(-1.0); k<<<1, 32>>>(a, b, s, 3);", None),
        ("float s = measure(2.0f); k<<<1, 32>>>(a, b, s, 3);", None),
    ],
)
def test_numbers_by_functions_and_constants_of_the_c_library(host: str, found: object) -> None:
    device = "__global__ void k(const float* x, float* y, float f, int n) { y[n] = f * x[n]; }\n"
    assert told(f"int main() {{ {host} }}", "literal", device).get("f") == found


def test_extents_that_are_set_again_are_those_set_last() -> None:
    host = (
        "int main() { dim3 g, b; g = dim3(4, 2); b = dim3(32); k<<<g, b>>>(a, c, 3); "
        "g = dim3(8); b = dim3(64); l<<<g, b>>>(c, d, 3); }"
    )
    assert [line.partition(" args")[0] for line in directives(host, TWO)] == [
        "launch k grid(4, 2) block(32)", "launch l grid(8) block(64)"
    ]  # fmt: skip


def test_a_number_that_is_made_of_itself_is_not_followed() -> None:
    host = "int main() { float d; read(d); d = d / 2; float s = 1 / d; k<<<1, 32>>>(a, b, s, 3); }"
    device = "__global__ void k(const float* x, float* y, float f, int n) { y[n] = f * x[n]; }\n"
    assert "f" not in told(host, "literal", device)


def test_a_bare_semicolon_leaves_nothing() -> None:
    assert directives("int main() { if (n > 2) ; k<<<2, 32>>>(a, b, 3); }") == [
        "launch k grid(2) block(32)"
    ]


@pytest.mark.parametrize(
    ("macro", "grid"),
    [
        ("((a) + (b) - 1) / (b)", "cdiv(n, 32)"),
        ("(a + b - 1) / b", "cdiv(n, 32)"),
    ],
)
def test_a_macro_without_brackets_around_it_is_read_where_it_stands_alone(
    macro: str, grid: str
) -> None:
    head = f"#define BLOCKS(a, b) {macro}\n"
    host = "int main() { int n = 99; k<<<BLOCKS(n, 32), 32>>>(a, b, n); }"
    assert directives(head + host) == [f"launch k grid({grid}) block(32)"]
    beside = head + "int main() { int n = 99; k<<<2 * BLOCKS(n, 32), 32>>>(a, b, n); }"
    assert all(grid not in line for line in directives(beside))


@pytest.mark.parametrize(
    ("enumeration", "given", "found"),
    [
        ("enum Mode { SUM, MEAN };", "MEAN", 1),
        ("typedef enum { SUM = 4, MEAN } Mode;", "MEAN", 5),
        ("enum Mode : int { SUM = 1 << 3, MEAN = SUM + 2 };", "MEAN", 10),
        ("enum Mode { SUM, MEAN };", "(Mode)1", 1),
    ],
)
def test_an_enumeration_is_passed_as_its_number(enumeration: str, given: str, found: int) -> None:
    device = (
        f"{enumeration}\n__global__ void k(const float* x, float* y, Mode m) {{ y[m] = x[m]; }}\n"
    )
    assert told(f"int main() {{ k<<<1, 32>>>(a, b, {given}); }}", "literal", device) == {"m": found}


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("for (int s = 4; s < 99; s *= 2) k<<<1, 32>>>(a, b, s);", 4),
        ("for (int i = 0; i < 9; i++) for (int j = i + 2; j; j--) k<<<1, 32>>>(a, b, j);", 2),
        (("int sizes[] = {32, 64};"
          "for (int i = 0; i < 2; i++) { int s = sizes[i]; k<<<1, 32>>>(a, b, s); }"), 32),
        ("for (int i = 0; i < 9; i++) f(i); for (int i = 3; i < 9; i++) k<<<1, 32>>>(a, b, i);", 3),
        ("for (int i = 0; i < 9; i++) { i += read(); k<<<1, 32>>>(a, b, i); }", None),
        ("int i = 1; while (i < 9) { i *= 2; k<<<1, 32>>>(a, b, i); }", None),
        ("int sizes[] = {32, 64}; sizes[0] = read(); k<<<1, 32>>>(a, b, sizes[0]);", None),
    ],
)  # fmt: skip
def test_a_loop_that_launches_gives_the_numbers_of_its_first_round(
    host: str, found: object
) -> None:
    assert told(f"int main() {{ {host} }}", "literal").get("n") == found


def test_the_first_round_decides_no_branch() -> None:
    host = "int main() { for (int i = 0; i < 9; i++) if (i > 0) k<<<1, 32>>>(a, b, 4); }"
    assert directives(host) == ["launch k grid(1) block(32)"]
    other = "int main() { for (int i = 0; i < 9; i++) { if (i % 2) k<<<1, 32>>>(a, b, 4); } }"
    assert directives(other) == ["launch k grid(1) block(32)"]


def test_an_include_within_a_host_function_goes_with_it() -> None:
    host = 'int main() {\n#include "more.inl"\nk<<<1, 32>>>(a, b, 4); }\n'
    text, _ = drop_host_code(ONE + host, lacks=lambda _: True)
    assert "more.inl" not in text
