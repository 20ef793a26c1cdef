"""The memory of host code: how many elements a buffer has, and whether it begins with zeros."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code

ONE = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"


def directives(host: str) -> list[str]:
    text, _ = drop_host_code(ONE + host)
    head = "#pragma optiml "
    return [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]


def allocated(host: str, device: str = ONE) -> dict[str, object]:
    _, notes = drop_host_code(device + host)
    return {note.name: note.extent for note in notes if note.kind == "allocated"}


def test_a_vector_that_is_made_of_another_is_a_copy() -> None:
    host = (
        "int main() { thrust::device_vector<float> a(64), b = a;\n"
        "k<<<1, 32>>>(b.data(), a.data(), 4); }\n"
    )
    assert directives(host) == ["launch k grid(1) block(32)"]


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("thrust::device_vector<float> a(c); k<<<1, 32>>>(a.data(), b, c);", {"x": "n"}),
        (("thrust::host_vector<float> h(c, 1.0f); thrust::device_vector<float> a = h;"
         "k<<<1, 32>>>(a.data(), b, c);"), {"x": "n"}),
        (("std::vector<float> h(c); thrust::device_vector<float> a(h.begin(), h.end());"
         "k<<<1, 32>>>(a.data(), b, c);"), {"x": "n"}),
        ("thrust::device_vector<double> a(c); k<<<1, 32>>>(a.data(), b, c);", {}),
        ("thrust::device_vector<float> a(c); a.resize(3); k<<<1, 32>>>(a.data(), b, c);", {}),
        ("thrust::device_vector<float> a{1, 2}; k<<<1, 32>>>(a.data(), b, c);", {}),
        ("thrust::device_vector<float> a; k<<<1, 32>>>(a.data(), b, c);", {}),
        ("size_t s = c * 4; s = 2 * c * sizeof(float); cudaMalloc(&a, s); k<<<1, 32>>>(a, b, c);",
         {"x": "2 * n"}),
        (("size_t s = c * sizeof(float); cudaMalloc(&a, s); s = 9 * c * sizeof(float);"
          "k<<<1, 32>>>(a, b, c);"), {"x": "n"}),
        (("size_t s = 4; s = c * sizeof(float); if (big) { s *= 2; } cudaMalloc(&a, s);"
          "k<<<1, 32>>>(a, b, c);"), {}),
        (("size_t s = c * sizeof(float); for (;;) { cudaMalloc(&a, s); k<<<1, 32>>>(a, b, c);"
          "s = 9 * c * sizeof(float); }"), {}),
        (("size_t s; s = c * sizeof(float); while (more()) { cudaMalloc(&a, s);"
          "k<<<1, 32>>>(a, b, c); s = 9 * c * sizeof(float); }"), {}),
        (("for (;;) { size_t s = c * sizeof(float); cudaMalloc(&a, s); k<<<1, 32>>>(a, b, c);"
          "s = 9 * c * sizeof(float); }"), {"x": "n"}),
        (("size_t s = 4; int d = c; s = d * sizeof(float); d = 9; cudaMalloc(&a, s);"
          "k<<<1, 32>>>(a, b, c);"), {"x": "n"}),
        (("size_t s = 4; auto f = [&] { s = 9; }; s = c * sizeof(float); f(); cudaMalloc(&a, s);"
          "k<<<1, 32>>>(a, b, c);"), {}),
        (("size_t s = 4; s = c * sizeof(float); grow(&s); cudaMalloc(&a, s);"
          "k<<<1, 32>>>(a, b, c);"), {}),
        (("size_t s = 4; s = c * sizeof(float); again: cudaMalloc(&a, s); s = 9; goto again;"
          "k<<<1, 32>>>(a, b, c);"), {}),
        (("size_t s = c; s = s * sizeof(float); cudaMalloc(&a, s); k<<<1, 32>>>(a, b, c);"), {"x": "n"}),
        ("cudaMalloc(&a, c * sizeof(float)); c /= 2; k<<<1, 32>>>(a, b, c);", {}),
        ("size_t s = c * sizeof(float); c -= 1; cudaMalloc(&a, s); k<<<1, 32>>>(a, b, c);", {}),
        ("c -= 1; cudaMalloc(&a, c * sizeof(float)); k<<<1, 32>>>(a, b, c); c = 4;", {"x": "n"}),
        ("cudaMalloc(&a, c * 4); k<<<1, 32>>>(a, b, c);", {"x": "n"}),
        ("cudaMalloc(&a, 4 * c * 4); k<<<1, 32>>>(a, b, c);", {"x": "n * 4"}),
        ("int w = 4; cudaMalloc(&a, c * w); k<<<1, 32>>>(a, b, c);", {"x": "n"}),
        ("cudaMalloc(&a, c * 8); k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); a = other(c); k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); a++; k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); a += 5; k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); grow((void**)&a); k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); cudaMalloc(&d, 2 * c * 4); a = d; k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); cudaMalloc(&d, 2 * c * 4); std::swap(a, d); k<<<1, 32>>>(a, b, c);",
         {}),
        ("cudaMalloc(&a, c * 4); cudaMalloc(&d, c * 4); std::swap(d, a); k<<<1, 32>>>(a, b, c);",
         {"x": "n"}),
        ("cudaMalloc(&a, c * 4); cudaMalloc(&d, c * 4); float* e = a; a = d; k<<<1, 32>>>(a, b, c);",
         {"x": "n"}),
        ("float** p = &a; cudaMalloc(&a, c * 4); cudaMalloc(p, c * 8); k<<<1, 32>>>(a, b, c);", {}),
        ("float*& r = a; cudaMalloc(&a, c * 4); cudaMalloc(&r, c * 8); k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * 4); void* all[] = {&a, &b}; k<<<1, 32>>>(a, b, c);", {"x": "n"}),
        ("a = other(c); cudaMalloc(&a, c * 4); k<<<1, 32>>>(a, b, c); a = other(9);", {"x": "n"}),
        ("cudaMalloc(&a, c * 4 + 4); k<<<1, 32>>>(a, b, c);", {}),
        ("cudaMalloc(&a, c * sizeof(double)); k<<<1, 32>>>(a, b, c);", {}),
    ],
)  # fmt: skip
def test_vectors_have_the_size_that_they_are_made_with(host: str, found: dict[str, object]) -> None:
    assert allocated(f"void f(int c) {{ {host} }}\n") == found


@pytest.mark.parametrize(
    "host",
    [
        "int c = 64; cudaMalloc(&a, c * sizeof(float)); { int c = 32; k<<<1, 32>>>(a, b, c); }",
        "{ int c = 64; cudaMalloc(&a, c * sizeof(float)); } { int c = 9; k<<<1, 32>>>(a, b, c); }",
        "cudaMalloc(&a, m * sizeof(float)); { int m = 32; k<<<1, 32>>>(a, b, m); }",
        "int c = 64; resize(c); cudaMalloc(&a, c * sizeof(float)); k<<<1, 32>>>(a, b, 4);",
    ],
)
def test_a_size_that_another_name_hides_is_not_taken_for_it(host: str) -> None:
    changing = "void resize(int& more) { more *= 2; }\n"
    assert not allocated(f"{changing}void f(int m) {{ {host} }}\n")


BUFFER = """\
template <typename T> class Buffer {{
 public:
  explicit Buffer(size_t n) : n_(n) {{ {allocation} }}
  T* get() {{ return p_; }}
 private:
  T* p_;
  size_t n_;
}};
"""


@pytest.mark.parametrize(
    ("allocation", "kind", "found"),
    [
        ("cudaMalloc(&p_, n * sizeof(T));", "Buffer<float> a(c)", {"x": "n"}),
        ("check(cudaMalloc((void**)&p_, sizeof(T) * n_));", "Buffer<float> a(c)", {"x": "n"}),
        ("cudaMalloc(&p_, n * sizeof(T));", "Buffer<float> a{c}", {"x": "n"}),
        ("cudaMalloc(&p_, n * sizeof(T));", "Buffer<int64_t> a(c)", {}),
        ("cudaMalloc(&p_, (n + 1) * sizeof(T));", "Buffer<float> a(c)", {}),
        ("cudaMalloc(&p_, n);", "Buffer<float> a(c)", {}),
        ("cudaMalloc(&p_, m * sizeof(T));", "Buffer<float> a(c)", {}),
        ("cudaMalloc(&p_, n * sizeof(T)); cudaMalloc(&q_, n * sizeof(T));", "Buffer<float> a(c)", {}),
        ("cudaMalloc(&p_, n * sizeof(T));", "Buffer<float> a(c, 2)", {}),
        ("cudaMalloc(&p_, n * sizeof(T));", "Other<float> a(c)", {}),
    ],
)  # fmt: skip
def test_classes_that_allocate_are_read(
    allocation: str, kind: str, found: dict[str, object]
) -> None:
    host = BUFFER.format(allocation=allocation)
    host += f"void f(int c) {{ {kind}; k<<<1, 32>>>(a.get(), b, c); }}\n"
    assert allocated(host) == found


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("torch::empty_like(in)", "size(x)"),
        ("torch::zeros({rows, in.size(1)}, in.options())", "shape(x, 0) * shape(x, 1)"),
        ("at::empty({rows}, in.options())", "shape(x, 0)"),
        ("torch::empty({other}, in.options())", None),
        ("torch::empty_like(mask)", None),
        ("in.clone()", None),
    ],
)
def test_tensors_have_the_size_that_they_are_made_with(made: str, found: str | None) -> None:
    host = (
        f"torch::Tensor f(torch::Tensor in) {{ auto rows = in.size(0); auto out = {made};\n"
        "k<<<rows, 32>>>(in.data_ptr<float>(), out.data_ptr<float>(), in.size(1)); }\n"
    )
    assert allocated(host).get("y") == found
    assert directives(host)[:1] == ["launch k grid(shape(x, 0)) block(32)"]
    assert ("init(y) = 0" in directives(host)) == ("zeros" in made)


@pytest.mark.parametrize(
    ("host", "starts"),
    [
        ("cudaMemset(b, 0, s);", ["init(y) = 0"]),
        ("cudaMemset(b, 0, ((s)));", ["init(y) = 0"]),
        ("cudaMemset(b, 1, s);", []),
        ("cudaMemset(a, 0, s);", []),  # an input: zeros would prove nothing
    ],
)
def test_what_is_cleared_and_written_begins_with_zeros(host: str, starts: list[str]) -> None:
    main = "int main() { cudaMalloc(&a, s); cudaMalloc(&b, s);"
    main += f"{host} k<<<1, 32>>>(a, b, 4); }}\n"
    assert directives(main)[1:] == starts


@pytest.mark.parametrize(
    ("arrays", "found"),
    [
        ("float h[4][8];", "4 * 8"),
        ("int h[3];", "3"),  # of as many bytes
        ("double h[4];", None),
        ("float* h;", None),
        ("float h[4], g; void f() { float h[5]; }", None),
    ],
)
def test_sizes_of_arrays_of_the_host(arrays: str, found: str | None) -> None:
    main = "int main() { float k2[2 * 9] = {}; cudaMalloc((void**)&a, sizeof(h));\n"
    main += "cudaMalloc(&b, sizeof k2); k<<<1, 32>>>(a, b, 4); }\n"
    known = allocated(f"{arrays}\n{main}")
    assert known.get("y") == "2 * 9"
    assert known.get("x") == found


def test_constants_that_the_host_fills_have_their_size() -> None:
    device = "#define R 2\n__constant__ float w[2 * R + 1][3], one, left[4];\n"
    device += "__constant__ int begun[4] = {1, 2};\n" + ONE
    host = "int main() { cudaMemcpyToSymbol(w, h, 60); cudaMemcpyToSymbol(one, &h, 4);\n"
    host += "cudaMemcpyToSymbol(begun, h, 16); }\n"
    assert allocated(host, device) == {"w": "15", "one": "1", "begun": "4"}
