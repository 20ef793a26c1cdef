"""What host functions share: variables of the file, members of a class, helpers that allocate."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.hoststatements import with_main_around

KERNEL = (
    "__global__ void k(const float* x, float* y, float s, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = s * x[i]; }\n"
)
LAUNCH = "k<<<(n + 255) / 256, 256>>>(x, y, s, n);"


def told(host: str, kind: str) -> dict[str, object]:
    _, notes = drop_host_code(KERNEL + host)
    return {note.name: note.value for note in notes if note.kind == kind}


def bound(host: str) -> tuple[object, ...]:
    """The size of ``x``, ``s`` and ``n``, as far as the host's code says them."""
    numbers = told(host, "literal")
    return told(host, "allocated").get("x"), numbers.get("s"), numbers.get("n")


def launches(host: str) -> list[str]:
    text, _ = drop_host_code(KERNEL + host)
    return [line for line in text.splitlines() if line.startswith("#pragma optiml launch")]


ALLOCATES = "cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));"
VARIABLES = "int n = 1 << 10; float s = 0.5f; float *x, *y;\n"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ((f"{VARIABLES} void make() {{ {ALLOCATES} }} void go() {{ {LAUNCH} }}"
          "int main() { make(); go(); }"), (1024, 0.5, 1024)),
        (f"{VARIABLES} int main() {{ {ALLOCATES} {LAUNCH} }}", (1024, 0.5, 1024)),
        (f"int n, m = 6; double s = m / 4.0; float *x, *y; int main() {{ n = m * 4; {ALLOCATES} {LAUNCH} }}",
         (24, 1.5, 24)),
        (f"int n; float s = 1; float *x, *y; void set() {{ n = 50; }} int main() {{ set(); {ALLOCATES} {LAUNCH} }}",
         (50, 1, 50)),
        (f"{VARIABLES} int main(int argc, char** argv) {{ if (argc > 1) n = atoi(argv[1]); {ALLOCATES} {LAUNCH} }}",
         (1024, 0.5, 1024)),
        (f"#define HALF 0.5\n#define S (HALF * 3)\nint n = 8; float *x, *y, s = S; int main() {{ {ALLOCATES} {LAUNCH} }}",
         (8, 1.5, 8)),
        (f"{VARIABLES} void more() {{ n = 7; }} int main() {{ more(); {ALLOCATES} {LAUNCH} }}",
         (None, 0.5, None)),
        (f"{VARIABLES} int main() {{ n *= 2; {ALLOCATES} {LAUNCH} }}", (None, 0.5, None)),
        (f"{VARIABLES} int main() {{ ask(&n); {ALLOCATES} {LAUNCH} }}", (None, 0.5, None)),
        (f"{VARIABLES} int main() {{ int n = read(); {ALLOCATES} {LAUNCH} }}", (None, 0.5, None)),
        (f"{VARIABLES} void one() {{ {ALLOCATES} }} void two() {{ {ALLOCATES} }} int main() {{ {LAUNCH} }}",
         (None, 0.5, 1024)),
    ],
)  # fmt: skip
def test_variables_of_the_file_are_known_where_they_have_one_value(
    host: str, found: tuple[object, ...]
) -> None:
    assert bound(host) == found


MEMBERS = "int n; float s = 0.25f; float *x, *y;"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ((f"class A {{ public: A(int c) : n(c) {{ {ALLOCATES} }} void go() {{ {LAUNCH} }} private: {MEMBERS} }};"
          "int main() { A a(40); for (int i = 0; i < 9; i++) a.go(); }"), (40, 0.25, 40)),
        ((f"struct A {{ {MEMBERS} A(int c); void go(); }}; A::A(int c) {{ this->n = c; {ALLOCATES} }}"
          f"void A::go() {{ {LAUNCH} }} int main() {{ A* a = new A(40); a->go(); }}"), (40, 0.25, 40)),
        ((f"struct A {{ {MEMBERS} A(int c) : n{{c * 2}} {{ make(); }} void make() {{ {ALLOCATES} }} void go() {{ {LAUNCH} }} }};"
          "int main() { auto a = std::make_unique<A>(20); a->go(); }"), (40, 0.25, 40)),
        ((f"struct A {{ {MEMBERS} A(int c) : n(c) {{ {ALLOCATES} }} void grow() {{ n++; }} void go() {{ {LAUNCH} }} }};"
          "int main() { A a(40); a.go(); }"), (None, 0.25, None)),
        ((f"struct A {{ {MEMBERS} A() : n(4) {{ {ALLOCATES} }} A(int c) : n(c) {{ {ALLOCATES} }} void go() {{ {LAUNCH} }} }};"
          "int main() { A a(40); a.go(); }"), (None, None, None)),
    ],
)  # fmt: skip
def test_members_are_known_by_the_constructor(host: str, found: tuple[object, ...]) -> None:
    assert bound(host) == found


def test_of_several_objects_no_member_is_known() -> None:
    host = (
        f"class A {{ public: A(int c) : n(c) {{ {ALLOCATES} }} void go() {{ {LAUNCH} }} private: {MEMBERS} }};"
        "int main() { A a(40), b(70); b.go(); }"
    )
    assert bound(host) == (None, 0.25, None)


def test_what_a_function_allocates_again_has_no_one_size() -> None:
    host = f"{VARIABLES} void make(int n) {{ {ALLOCATES} }} int main() {{ make(4); make(5); {LAUNCH} }}"
    assert bound(host) == (None, 0.5, 1024)


USES = "int main() {{ int n = 30; float s = 1; float* y = 0; {} " + LAUNCH + " }}"
ON_DEVICE = (
    "template <typename T> T* get(size_t c) { T* p; cudaMalloc(&p, c * sizeof(T)); return p; }"
)


@pytest.mark.parametrize(
    ("helper", "made", "found"),
    [
        (ON_DEVICE, "float* x = get<float>(n);", 30),
        (ON_DEVICE, "float* x; x = get<float>(2 * n);", 60),
        (ON_DEVICE, "float* x = get<double>(n);", None),
        (ON_DEVICE, "float* x = get<float>(ask());", None),
        ("void get(float** p, int c) { cudaMalloc((void**)p, c * sizeof(float)); }",
         "float* x; get(&x, n);", 30),
        ("void get(float*& p, int c) { cudaMalloc(&p, c * sizeof(float)); }", "float* x; get(x, n);", 30),
        (("float* get(const std::vector<float>& v) { float* p; cudaMalloc(&p, v.size() * sizeof(float));"
          " return p; }"), "std::vector<float> h(n + 1); float* x = get(h);", 31),
        (("float* in(int c) { float* p; cudaMalloc(&p, c * 4); return p; } float* get(int c) { float* q = in(c);"
          " return q; }"), "float* x = in(n);", 30),
        ("void get(float** p, size_t bytes) { cudaMalloc(p, bytes); }",
         "float* x; size_t bytes = n * sizeof(float); get(&x, bytes);", 30),
        ("float* get(int c) { float *p, *q; cudaMalloc(&p, c * 4); cudaMalloc(&q, 4); return c ? p : q; }",
         "float* x = get(n);", None),
    ],
)  # fmt: skip
def test_what_a_helper_allocates_has_the_size_that_it_is_called_with(
    helper: str, made: str, found: int | None
) -> None:
    assert told(f"{helper} {USES.format(made)}", "allocated").get("x") == found


def test_launches_outside_of_functions_are_read() -> None:
    cell = f"int n = 1000;\nfloat *x, *y;\nfloat s = 2.0f;\ncudaMalloc(&x, n * sizeof(float));\n{LAUNCH}\n"
    assert launches(cell) == ["#pragma optiml launch k grid(cdiv(n, 256)) block(256)"]
    assert bound(cell) == (1000, 2.0, 1000)
    text, _ = drop_host_code(KERNEL + cell)
    assert "cudaMalloc" not in text


@pytest.mark.parametrize(
    "text",
    [
        "int main() { go(); }\nint n = 4;\nfoo(n);\n",
        "int n = 4;\nconst float* x;\n",
        "__device__ int f(int a) { return a; }\n",
    ],
)
def test_a_text_with_a_main_or_without_statements_stays(text: str) -> None:
    assert with_main_around(text, {"__device__"}) == text


def test_no_line_moves_where_statements_get_a_main() -> None:
    text = "const int N = 8;\nint n = N;\n// go\nfor (int i = 0; i < n; i++)\n    go(i);\n__device__ int d;\n"
    made = with_main_around(text, {"__device__"})
    assert [line.strip() for line in made.splitlines()] == [
        "const int N = 8;", "int main() { int n = N;", "// go", "for (int i = 0; i < n; i++)", "go(i); }",
        "__device__ int d;",
    ]  # fmt: skip


HELPED = (
    "int up(int a, int b) { return (a + b - 1) / b; }\n"
    "dim3 blocks(int w, int h, dim3 t) { return dim3(up(w, t.x), up(h, t.y)); }\n"
    "dim3 named(int x, int b) { dim3 g((x + b - 1) / b, 2); return g; }\n"
)


@pytest.mark.parametrize(
    ("grid", "found"),
    [
        ("blocks(n, 9, t)", "grid(cdiv(n, 32), cdiv(9, 4)) block(32, 4)"),
        ("named(n, 64)", "grid(cdiv(n, 64), 2) block(32, 4)"),
    ],
)
def test_a_grid_that_a_function_makes_is_read(grid: str, found: str) -> None:
    main = (
        f"int main() {{ int n = 99; dim3 t(32, 4); dim3 g = {grid}; k<<<g, t>>>(x, y, 1.0f, n); }}"
    )
    assert launches(HELPED + main) == [f"#pragma optiml launch k {found}"]


def test_arguments_that_are_listed_one_by_one_are_read() -> None:
    main = (
        "int main() { int n = 40; float s = 2; float *x, *y; cudaMalloc(&x, n * sizeof(float));\n"
        "void* args[4]; args[0] = &x; args[1] = (void*)&y; args[2] = &s; args[3] = &n;\n"
        "cudaLaunchKernel((void*)k, dim3(2), dim3(32), args, 0, 0); }"
    )
    assert bound(main) == (40, 2, 40)
    assert bound(main.replace("args[2] = &s;", "")) == (None, None, None)


PITCHED = (
    "__global__ void p(const float* a, float* b, size_t pitch, int w, int h) {\n"
    "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;\n"
    "    if (x < w) b[y * (pitch / 4) + x] = a[y * (pitch / 4) + x]; }\n"
    "int main() { int w = {w}, h = 6; size_t pitch; float *a, *b;\n"
    "cudaMallocPitch(&a, &pitch, w * sizeof(float), h); cudaMallocPitch((void**)&b, &pitch, w * 4, h);\n"
    "p<<<dim3((w + 31) / 32, h), 32>>>(a, b, pitch, w, h); }\n"
)


@pytest.mark.parametrize(("width", "columns"), [(200, 256), (128, 128)])
def test_rows_of_pitched_memory_are_as_long_as_the_device_makes_them(
    width: int, columns: int
) -> None:
    text = PITCHED.replace(
        "cudaMallocPitch((void**)&b, &pitch,", "cudaMallocPitch((void**)&b, &other,"
    )
    text = text.replace("size_t pitch;", "size_t pitch, other;").replace("{w}", str(width))
    made, notes = drop_host_code(text)
    found = {
        note.name: note.shape or note.value
        for note in notes
        if note.kind in ("allocated", "literal")
    }
    assert found["a"] == (6, columns)
    assert found["pitch"] == columns * 4
    assert ("init(b) = 0" in made) == (columns > width)


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("k<<<1, 32>>>(d[now], d[1 - now], t, n); now = 1 - now; t += 0.5f;", (64, 0.25, 64)),
        ("k<<<1, 32>>>(d[now], d[1 - now], t, n); if (ask()) t = 2;", (64, 0.25, 64)),
        ("t += 0.5f; now = 1 - now; k<<<1, 32>>>(d[0], d[1], t, n);", (64, None, 64)),
        ("k<<<1, 32>>>(d[ask()], d[now], t, n);", (None, 0.25, 64)),
    ],
)
def test_what_a_loop_changes_behind_a_launch_has_its_first_value_there(
    loop: str, found: tuple[object, ...]
) -> None:
    main = (
        "int main() { int n = 64, now = 0; float t = 0.25f; float* d[2];\n"
        "for (int i = 0; i < 2; i++) cudaMalloc(&d[i], n * sizeof(float));\n"
        f"for (int step = 0; step < 9; step++) {{ {loop} }} }}"
    )
    assert bound(main) == found


def test_each_of_two_pointers_in_an_array_is_a_buffer_of_its_own() -> None:
    main = (
        "int main() { int n = 64, now = 1; float* d[2]; cudaMalloc(&d[0], 256); cudaMalloc(&d[1], 256);\n"
        "while (ask()) { k<<<1, 32>>>(d[now], d[1 - now], 2, n); now = 1 - now;"
        " k<<<1, 32>>>(d[0], d[1], 3, n); } }"
    )
    assert launches(main)[0] == "#pragma optiml launch k grid(1) block(32)"


@pytest.mark.parametrize(
    ("copy", "found"),
    [
        ("cudaMemcpy(y, h, 256, cudaMemcpyHostToDevice);", True),
        ("cudaMemcpy(y, x, 256, cudaMemcpyDeviceToDevice);", True),
        ("cudaMemcpy(x, h, 256, cudaMemcpyHostToDevice);", False),
    ],
)
def test_an_output_that_the_host_copies_to_holds_something_before(copy: str, found: bool) -> None:
    main = (
        "int main() { int n = 64; float s = 1, *x, *y; cudaMalloc(&x, 256); cudaMalloc(&y, 256);\n"
        f"{copy} {LAUNCH} cudaMemcpy(h, y, 256, cudaMemcpyDeviceToHost); }}"
    )
    assert ("#pragma optiml init(y) = 0" in drop_host_code(KERNEL + main)[0]) == found


@pytest.mark.parametrize(
    ("argument", "size"),
    [
        ("x + i * 16", 64),
        ("&x[i * 16]", 64),
        ("&x[at]", 64),
        ("x + i * 16 + 1", None),
        ("x + ask()", None),
        ("x + 16", None),
    ],
)
def test_the_first_part_of_an_array_is_its_beginning(argument: str, size: int | None) -> None:
    main = (
        "int main() { int n = 64; float s = 1, *x, *y; cudaMalloc(&x, n * sizeof(float));\n"
        "for (int i = 0; i < 4; i++) { int at = i * 16;"
        f" k<<<1, 32, 0, streams[i]>>>({argument}, y, s, n / 4); }} }}"
    )
    assert told(main, "allocated").get("x") == size
